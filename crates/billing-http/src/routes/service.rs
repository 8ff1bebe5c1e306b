//! Handlers for health, metrics and the OpenAPI document.

use actix_web::HttpResponse;
use actix_web::http::header::ContentType;
use actix_web::web::{Data, Json};
use billing_application::verify;
use billing_report::NumbersAs;
use serde::Serialize;
use utoipa::ToSchema;

use crate::blocking::blocking;
use crate::call::{Call, Reply};
use crate::dto::verification::VerificationJson;
use crate::metrics::OPEN_METRICS;
use crate::problem::Problem;
use crate::query::Query;
use crate::query::lists::OpenApiParams;
use crate::state::HttpState;

/// The health of the service.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthJson {
    /// Always `ok`; other states are problem documents.
    #[schema(example = "ok")]
    status: &'static str,
}

const OK: HealthJson = HealthJson { status: "ok" };

pub(crate) async fn live() -> Json<HealthJson> {
    Json(OK)
}

pub(crate) async fn ready(state: Data<HttpState>) -> Result<Json<HealthJson>, Problem> {
    state.check_not_stopping()?;
    let reached = blocking(&state, |services| Ok(services.store.ready()?)).await;
    reached.map(|()| Json(OK)).map_err(|_| Problem::not_ready("the service cannot use its database"))
}

/// The OpenAPI document for each representation of decimals.
pub(crate) struct Description {
    /// Returns the document, built on first use.
    pub(crate) json: fn(NumbersAs) -> &'static str,
}

pub(crate) async fn openapi(description: Data<Description>, query: Query) -> Reply {
    let OpenApiParams { numbers } = query.read()?;
    Ok(HttpResponse::Ok().content_type(ContentType::json()).body((description.json)(numbers)))
}

pub(crate) async fn last_verification(call: Call) -> Reply {
    call.read::<VerificationJson, _>(verify::last_verification).await
}

/// Returns the metrics, unless they have an address of their own.
pub(crate) async fn metrics(state: Data<HttpState>) -> Reply {
    if state.settings().metrics_apart { Err(Problem::unknown_route()) } else { told_metrics(state).await }
}

/// Returns the metrics.
pub(crate) async fn told_metrics(state: Data<HttpState>) -> Reply {
    let text = state.metrics().text().map_err(|_| Problem::internal())?;
    Ok(HttpResponse::Ok().content_type(OPEN_METRICS).body(text))
}

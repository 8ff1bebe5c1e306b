//! What operators and tools ask the service about itself.

use std::sync::LazyLock;

use actix_web::http::header::ContentType;
use actix_web::web::{Data, Json};
use actix_web::{HttpResponse, Responder};
use serde::Serialize;
use utoipa::ToSchema;

use super::{Answer, blocking};
use crate::openapi::openapi_json;
use crate::problem::Problem;
use crate::state::HttpState;

/// The OpenAPI document, as it is answered.
pub(crate) static OPENAPI: LazyLock<String> = LazyLock::new(openapi_json);

/// How the service is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HealthJson {
    /// Always `ok`; anything else is a problem document.
    #[schema(example = "ok")]
    status: &'static str,
}

const OK: HealthJson = HealthJson { status: "ok" };

/// Whether the process answers at all.
#[utoipa::path(get, path = "/health/live", tag = "service",
    responses((status = 200, description = "It does", body = HealthJson)))]
pub(crate) async fn live() -> Json<HealthJson> {
    Json(OK)
}

/// Whether requests should be sent here.
#[utoipa::path(get, path = "/health/ready", tag = "service",
    responses((status = 200, description = "They should", body = HealthJson)))]
pub(crate) async fn ready(state: Data<HttpState>) -> Answer<HealthJson> {
    state.check_not_stopping()?;
    let reached = blocking(&state, |services| Ok(services.store.ready()?)).await;
    reached.map(|()| Json(OK)).map_err(|_| Problem::not_ready("the service cannot use its store"))
}

/// This description of the interface.
#[utoipa::path(get, path = "/openapi.json", tag = "service", operation_id = "openapi",
    responses((status = 200, description = "An OpenAPI document", body = serde_json::Value)))]
pub(crate) async fn openapi() -> impl Responder {
    HttpResponse::Ok().content_type(ContentType::json()).body(OPENAPI.as_str())
}

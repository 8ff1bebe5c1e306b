//! Handlers for health, metrics and the OpenAPI document.

use std::time::Duration;

use actix_web::http::header::{ContentType, VARY};
use actix_web::web::{Data, Json};
use actix_web::{HttpRequest, HttpResponse};
use billing_application::{billing_run, webhooks};
use billing_domain::report::NumbersAs;

use crate::blocking::blocking;
use crate::metrics::MetricsFormat;
use crate::respond::{HttpProblem, HttpReply};
use crate::state::HttpState;
use crate::static_text::StaticText;
use billing_api::dto::health::{HealthJson, NodeJson};
use billing_api::problem::Problem;
use billing_api::query::Query;
use billing_api::query::lists::OpenApiParams;

const OK: HealthJson = HealthJson { status: "ok", nodes: Vec::new() };

pub(crate) async fn live() -> Json<HealthJson> {
    Json(OK)
}

pub(crate) async fn ready(state: Data<HttpState>) -> Result<Json<HealthJson>, HttpProblem> {
    state.check_ready().await?;
    let nodes = state.services().store.nodes().into_iter();
    let nodes = nodes.map(|node| NodeJson { name: node.name, serves: node.problem.is_none() }).collect();
    Ok(Json(HealthJson { nodes, ..OK }))
}

/// The OpenAPI document for each representation of decimals.
pub(crate) struct Description {
    /// Returns the document, built on first use.
    pub(crate) json: fn(NumbersAs) -> &'static StaticText,
}

pub(crate) async fn openapi(request: HttpRequest, description: Data<Description>) -> HttpReply {
    let OpenApiParams { numbers } = Query::of(request.path(), request.query_string())?.read()?;
    let mut response = HttpResponse::Ok();
    response.content_type(ContentType::json());
    Ok((description.json)(numbers).respond(&request, response))
}

/// Returns the metrics, unless they have an address of their own.
pub(crate) async fn metrics(request: HttpRequest, state: Data<HttpState>) -> HttpReply {
    if state.settings().metrics_apart { Err(Problem::unknown_route().into()) } else { told_metrics(request, state).await }
}

/// Returns the metrics.
pub(crate) async fn told_metrics(request: HttpRequest, state: Data<HttpState>) -> HttpReply {
    count_late_contracts(&state).await;
    count_webhooks(&state).await;
    let format = MetricsFormat::preferred_by(&request);
    let text = state.metrics().text(format).map_err(|_| Problem::internal())?;
    Ok(HttpResponse::Ok().content_type(format.content_type()).insert_header((VARY, "accept")).body(text))
}

/// The longest wait of a request for metrics for a count in the database. Prometheus waits ten seconds for all metrics.
const COUNT_WAIT: Duration = Duration::from_secs(2);

/// Counts the contracts with late documents, at most once a minute. If the database is slow, the request does not wait for the
/// count, which then appears in a later request.
async fn count_late_contracts(state: &HttpState) {
    if !state.metrics().must_count_late_contracts() {
        return;
    }
    let counted_for = state.clone();
    let counting = blocking(state.services(), move |services| {
        let contracts = billing_run::count_late_contracts(services)?;
        counted_for.metrics().set_late_contracts(contracts);
        Ok(())
    });
    if let Ok(Err(problem)) = tokio::time::timeout(COUNT_WAIT, counting).await {
        tracing::warn!(code = problem.code(), "cannot count the contracts with late documents; the metrics have the last count");
    }
}

/// Counts the pending deliveries of webhooks, like [`count_late_contracts`].
async fn count_webhooks(state: &HttpState) {
    if !state.metrics().must_count_webhooks() {
        return;
    }
    let counted_for = state.clone();
    let counting = blocking(state.services(), move |services| {
        let backlog = webhooks::webhook_backlog(services)?;
        counted_for.metrics().set_webhook_backlog(backlog, services.machine_now());
        Ok(())
    });
    if let Ok(Err(problem)) = tokio::time::timeout(COUNT_WAIT, counting).await {
        tracing::warn!(code = problem.code(), "cannot count the pending deliveries of webhooks; the metrics have the last count");
    }
}

//! Exchange rates for tax.

use actix_web::HttpResponse;
use billing_application::catalog;

use super::{Caller, OnceAnswer};
use crate::body::Body;
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Query};

/// Keeps an exchange rate, in the place of the one of the same currencies and day.
#[utoipa::path(post, path = "/api/exchange_rates/", tag = "catalog", request_body = ExchangeRateBody,
    responses((status = 200, description = "The exchange rate that is kept", body = ExchangeRateJson)))]
pub(crate) async fn put_exchange_rate(caller: Caller, Body(body): Body) -> OnceAnswer {
    let rate = ExchangeRateBody::read(&body)?;
    let kept = caller
        .once(Some(&body))
        .answer::<ExchangeRateJson, _>(move |services, principal| catalog::put_exchange_rate(services, principal, rate));
    kept.await
}

/// Lists exchange rates by creation.
#[utoipa::path(get, path = "/api/exchange_rates/filter", tag = "catalog", params(crate::openapi::PageParams),
    responses((status = 200, description = "A page of exchange rates", body = Vec<ExchangeRateJson>)))]
pub(crate) async fn list_exchange_rates(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let page = query.page(DEFAULT_PAGE_SIZE)?;
    let found = caller.run(move |services, principal| catalog::list_exchange_rates(services, principal, page)).await?;
    Ok(query.answer::<_, ExchangeRateJson>(page, &found))
}

//! Exchange rates for tax.

use actix_web::HttpResponse;
use billing_application::catalog;

use super::OnceAnswer;
use crate::body::Body;
use crate::caller::Caller;
use crate::dto::exchange_rates::{ExchangeRateBody, ExchangeRateJson};
use crate::problem::Problem;
use crate::query::{DEFAULT_PAGE_SIZE, Paged, Query};

pub(crate) async fn put_exchange_rate(caller: Caller, Body(body): Body) -> OnceAnswer {
    let rate = ExchangeRateBody::read_rate(&body)?;
    let kept = caller
        .once(Some(&body))
        .answer::<ExchangeRateJson, _>(move |services, principal| catalog::put_exchange_rate(services, principal, rate));
    kept.await
}

pub(crate) async fn list_exchange_rates(caller: Caller, query: Query) -> Result<HttpResponse, Problem> {
    let Paged(page) = query.read::<Paged<DEFAULT_PAGE_SIZE>>()?;
    let found = caller.run(move |services, principal| catalog::list_exchange_rates(services, principal, page)).await?;
    Ok(query.answer::<_, ExchangeRateJson>(page, &found))
}

//! Exchange rates for tax. Issued documents keep the one they were issued with.

use billing_domain::access::Principal;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, transact};
use billing_domain::tax::ExchangeRate;

use crate::error::UseCaseResult;
use crate::{Services, UseCase, allow};

/// Keeps one, in the place of the one of the same currencies and day.
///
/// # Errors
/// [`Store`](crate::error::UseCaseError::Store).
pub fn put_exchange_rate(services: &Services, principal: &Principal, rate: ExchangeRate) -> UseCaseResult<ExchangeRate> {
    let organization = allow(principal, UseCase::PutExchangeRate)?;
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        tx.put_exchange_rate(organization, &rate, now)?;
        Ok(rate)
    })
}

/// Reads a page of them, by creation.
///
/// # Errors
/// [`Store`](crate::error::UseCaseError::Store).
pub fn list_exchange_rates(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<ExchangeRate>> {
    let organization = allow(principal, UseCase::ListExchangeRates)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.exchange_rates(organization, page)?))
}

//! Exchange rates for tax. Issued documents keep the one they were issued with.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, transact};
use billing_domain::tax::ExchangeRate;

use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
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
        let present = tx.exchange_rate(organization, rate.from, rate.to, rate.date)?;
        tx.put_exchange_rate(organization, &rate, now)?;
        let put = AuditSubject::ExchangeRate(&rate);
        // The one on a day before isn't replaced.
        let (action, change) = match present.as_ref().filter(|present| present.date == rate.date) {
            None => (AuditAction::Create, AuditChange::Made(put)),
            Some(present) => (AuditAction::Edit, AuditChange::From(AuditSubject::ExchangeRate(present), put)),
        };
        record_audit_event(tx, services, AuditContext::of(principal), action, change)?;
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

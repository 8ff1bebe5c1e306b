//! Exchange rates for tax. Issued documents keep the rate as of their issue.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Access, transact};
use billing_domain::tax::ExchangeRate;

use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::UseCaseResult;
use crate::{Services, UseCase, allow};

/// Saves an exchange rate. Replaces the rate for the same currencies and day.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the rate cannot be saved.
pub fn put_exchange_rate(services: &Services, principal: &Principal, rate: ExchangeRate) -> UseCaseResult<ExchangeRate> {
    let organization = allow(principal, UseCase::PutExchangeRate)?;
    let now = services.now();
    transact(&*services.store, Access::Write, |tx| {
        let present = tx.exchange_rate(organization, rate.from, rate.to, rate.date)?;
        tx.put_exchange_rate(organization, &rate, now)?;
        let put = AuditSubject::ExchangeRate(&rate);
        // The lookup may return the rate of an earlier day, which is not replaced.
        let (action, change) = match present.as_ref().filter(|present| present.date == rate.date) {
            None => (AuditAction::Create, AuditChange::Made(put)),
            Some(present) => (AuditAction::Edit, AuditChange::From(AuditSubject::ExchangeRate(present), put)),
        };
        record_audit_event(tx, services, AuditContext::of(principal), action, change)?;
        Ok(rate)
    })
}

/// Returns a page of exchange rates, ordered by creation.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the rates cannot be read.
pub fn list_exchange_rates(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<ExchangeRate>> {
    let organization = allow(principal, UseCase::ListExchangeRates)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.exchange_rates(organization, page)?))
}

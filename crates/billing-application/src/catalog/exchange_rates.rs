//! Exchange rates for tax. Issued documents keep the rate as of their issue.

use billing_domain::audit::AuditAction;
use billing_domain::page::{ListRequest, Page};
use billing_domain::ports::StoredExchangeRate;
use billing_domain::tax::ExchangeRate;

use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::UseCaseResult;

/// Saves an exchange rate. Replaces the rate for the same currencies and day.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the rate cannot be saved.
pub fn put_exchange_rate(cx: &mut Cx<'_>, rate: ExchangeRate) -> UseCaseResult<StoredExchangeRate> {
    let present = cx.tx.exchange_rate(cx.organization, rate.from, rate.to, rate.date)?;
    let updated_at = cx.tx.put_exchange_rate(cx.organization, &rate, cx.now)?;
    let put = AuditSubject::ExchangeRate(&rate);
    // The lookup may return the rate of an earlier day, which is not replaced.
    let (action, change) = match present.as_ref().filter(|present| present.date == rate.date) {
        None => (AuditAction::Create, AuditChange::Made(put)),
        Some(present) => (AuditAction::Edit, AuditChange::From(AuditSubject::ExchangeRate(present), put)),
    };
    cx.audit(action, change)?;
    Ok(StoredExchangeRate { rate, updated_at })
}

/// Returns a page of exchange rates.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the rates cannot be read.
pub fn list_exchange_rates(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<StoredExchangeRate>> {
    Ok(cx.tx.listed_exchange_rates(cx.organization, &list.updates, list.by, list.page)?)
}

//! The check whether the data of a customer and an entity suffices for e-invoices, before a document exists.

use billing_domain::einvoice::{Missing, missing_of_parties};
use billing_domain::party::BankTransferDetails;
use billing_domain::refs::{CustomerRef, EntityRef};

use super::{entity_of_customer, only};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseResult};

/// Returns the terms that e-invoices of an entity for a customer would lack; empty if none is missing. Without a reference, the
/// entity is the customer's default entity, else the organization's.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the customer does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) if the entity does not exist, or if there is no default entity.
pub fn check_e_invoice(cx: &mut Cx<'_>, reference: &CustomerRef, asked: Option<&EntityRef>) -> UseCaseResult<Vec<Missing>> {
    let customer = only(ResourceKind::Customer, cx.tx.customers_by_refs(cx.organization, std::slice::from_ref(reference))?)?;
    let entity = entity_of_customer(cx, &customer, asked)?;
    let profile = &entity.profile;
    let payment = customer.profile.payment.or(&profile.payment);
    let account_ref = payment.bank_transfer.as_ref().and_then(BankTransferDetails::account_ref);
    let accounts = cx.tx.bank_accounts_by_refs(cx.organization, &Vec::from_iter(account_ref))?;
    let account = accounts.into_iter().next().map(|account| account.profile);
    let today = profile.time_zone.service_date(cx.now);
    Ok(missing_of_parties(&customer, &entity, account, today))
}

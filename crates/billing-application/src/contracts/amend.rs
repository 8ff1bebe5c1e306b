//! Edits, cancels and resumes contracts. The contract's book decides which documents this affects (billing rules 7).
//!
//! `allow_backdated` raises the limit on the number of documents that become due at once (billing rules 1.6).

use std::sync::Arc;

use billing_domain::audit::AuditAction;
use billing_domain::contract::Contract;
use billing_domain::contract::amendment::{CancelAt, ContractEdit, QuantityChange};
use billing_domain::contract::resolve::Catalog;
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::amend::{self, BackdatingPolicy};
use billing_domain::ledger::recount::Recount;
use billing_domain::metadata::MetadataSubject;
use billing_domain::patch::Patch;
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef};
use billing_domain::usage::UsageKey;
use billing_domain::violation::Violations;
use billing_domain::warning::Warning;

use super::create::{catalog_of, named_by};
use super::{ContractView, view};
use crate::audit::{AuditChange, AuditSubject};
use crate::book_repository::{self, distinct};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::permissions::allow_payment_details_of_contract;

/// Edits a contract. `customer_ref` may be given, but not changed.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Invalid`] with every violation.
/// - [`UseCaseError::Conflict`] if the contract is cancelled, or the edit would leave usage without a line item or period.
pub fn edit_contract(
    cx: &mut Cx<'_>,
    contract_ref: ContractRef,
    customer_ref: Option<&CustomerRef>,
    edit: &ContractEdit,
    allow_backdated: bool,
) -> UseCaseResult<ContractView> {
    amend(cx, AuditAction::Edit, contract_ref, allow_backdated, |cx, book, backdated| {
        if customer_ref.is_some_and(|given| *given != book.contract.customer_ref) {
            return Err(Violations::one(&["customer_ref"], "not_changeable", "cannot change: create a new contract").into());
        }
        let catalog: Catalog = match &edit.products {
            None => Catalog::default(),
            Some(patches) => catalog_of(cx.tx, cx.organization, &book.customer, &named_by(patches))?,
        };
        // These entities may bill the contract after the edit.
        let named: Vec<EntityRef> = catalog.entities.iter().chain(&catalog.default_entity).cloned().collect();
        for entity in cx.tx.lock_entities_shared(cx.organization, &distinct(named))? {
            if book.entity(&entity.entity_ref).is_err() {
                book.entities.push(Arc::new(entity));
            }
        }
        let accounts = edit.products.iter().flatten().filter_map(|patch| match &patch.bank_transfer {
            Patch::Set(details) => details.account_ref(),
            Patch::Keep | Patch::Clear => None,
        });
        book_repository::load_legal_data(cx.tx, cx.organization, book, accounts, cx.now)?;
        let (organization, now, mut ids) = (cx.organization, cx.now, cx.ids());
        let recount = |contract: &Contract, period_key: &UsageKey| -> UseCaseResult<Recount> {
            let counted = cx.tx.recount_usage(organization, contract, period_key, None)?;
            // The totals of line items may not exist yet.
            let keys: Vec<_> = counted.totals.keys().map(|key| (contract.customer_id, key.clone())).collect();
            cx.tx.lock_usage(organization, &keys)?;
            Ok(counted)
        };
        let before = Arc::clone(&book.contract);
        amend::edit(book, (edit, &catalog), backdated, now, recount, &mut ids)?;
        Warning::of_product_taxes(book, Some(&before), cx.now)?.into_iter().for_each(|warning| cx.warn(warning));
        Ok(())
    })
}

/// Changes the quantity of a fixed line item from a day on.
///
/// # Errors
/// Returns all errors of [`edit_contract`].
pub fn change_quantity(
    cx: &mut Cx<'_>,
    contract_ref: ContractRef,
    change: &QuantityChange,
    allow_backdated: bool,
) -> UseCaseResult<ContractView> {
    amend(cx, AuditAction::ChangeQuantity, contract_ref, allow_backdated, |cx, book, backdated| {
        Ok(amend::change_quantity(book, change, backdated, cx.now, &mut cx.ids())?)
    })
}

/// Cancels a contract.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Conflict`] if the contract is already cancelled or ended, or has usage dated after its last day.
pub fn cancel_contract(
    cx: &mut Cx<'_>,
    contract_ref: ContractRef,
    last_day: CancelAt,
    allow_backdated: bool,
) -> UseCaseResult<ContractView> {
    amend(cx, AuditAction::Cancel, contract_ref, allow_backdated, |cx, book, backdated| {
        Ok(amend::cancel(book, last_day, backdated, cx.now, &mut cx.ids())?)
    })
}

/// Resumes a cancelled contract whose last day is not over.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Conflict`] if the contract is not cancelled or has ended.
pub fn resume_contract(cx: &mut Cx<'_>, contract_ref: ContractRef, allow_backdated: bool) -> UseCaseResult<ContractView> {
    amend(cx, AuditAction::Resume, contract_ref, allow_backdated, |cx, book, backdated| {
        Ok(amend::resume(book, backdated, cx.now, &mut cx.ids())?)
    })
}

/// Locks a contract, decides, and saves the decision.
fn amend(
    cx: &mut Cx<'_>,
    action: AuditAction,
    contract_ref: ContractRef,
    allow_backdated: bool,
    decide: impl FnOnce(&mut Cx<'_>, &mut ContractBook, BackdatingPolicy) -> UseCaseResult<()>,
) -> UseCaseResult<ContractView> {
    let (organization, now) = (cx.organization, cx.now);
    let backdated = if allow_backdated { BackdatingPolicy::Allowed } else { BackdatingPolicy::Refused };
    let book = book_repository::lock_book_by_ref(cx, contract_ref)?;
    let mut book = book.ok_or(UseCaseError::Unknown(ResourceKind::Contract))?;
    // A shortened contract needs the last day of usage, and changed prices need the maximum.
    book_repository::recount_all(cx.tx, organization, &mut book)?;
    let children = Vec::from_iter(book.outer_children());
    if !children.is_empty() {
        book_repository::load_documents(cx.tx, organization, &mut book, &children)?;
    }
    let present = view((*book.contract).clone(), &book.entities, now)?;
    decide(cx, &mut book, backdated)?;
    allow_payment_details_of_contract(cx.principal()?, Some(&present.contract), &book.contract)?;
    book_repository::write(cx, &mut book)?;
    let subject = MetadataSubject::Contract(book.contract.customer_id, contract_ref);
    cx.tx.put_metadata(organization, subject, &present.contract.metadata, &book.contract.metadata)?;
    let amended = view((*book.contract).clone(), &book.entities, now)?;
    cx.audit(action, AuditChange::From(AuditSubject::Contract(&present), AuditSubject::Contract(&amended)))?;
    let customer_name = Some(book.customer.profile.name.clone());
    Ok(ContractView { customer_name, warnings: cx.warnings().to_vec(), ..amended })
}

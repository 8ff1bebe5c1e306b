//! Edits, cancels and resumes contracts. The contract's book decides which documents this affects (billing rules 7).

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::amendment::{CancelAt, ContractEdit, QuantityChange};
use billing_domain::contract::resolve::Catalog;
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::amend::{self, BackdatingPolicy};
use billing_domain::patch::Patch;
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef};
use billing_domain::violation::Violations;

use super::create::{catalog_of, named_by};
use super::{ContractView, view};
use crate::accounts::CommandContext;
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::book_repository::{self, supplies};
use crate::dry_run::{Effects, dry_run};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The options of an amendment.
#[derive(Clone, Copy, Debug, Default)]
pub struct AmendmentOptions {
    /// Whether to return the effects without storing anything.
    pub dry_run: bool,
    /// Whether the higher limit applies to the number of documents that become due at once (billing rules 1.6).
    pub allow_backdated: bool,
}

/// The outcome of an amendment.
#[derive(Clone, Debug)]
pub enum AmendmentOutcome {
    /// The amended contract.
    Done(Box<ContractView>),
    /// The effects in a dry run.
    DryRun(Effects),
}

/// Edits a contract. `customer_ref` may be given, but not changed.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Invalid`] with every violation.
/// - [`UseCaseError::Conflict`] if the contract is cancelled, or the edit would leave usage without a line item or period.
pub fn edit_contract(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    customer_ref: Option<&CustomerRef>,
    edit: &ContractEdit,
    options: AmendmentOptions,
) -> UseCaseResult<AmendmentOutcome> {
    amend(services, principal, (UseCase::EditContract, AuditAction::Edit), contract_ref, options, &|tx, book, backdated, now| {
        if customer_ref.is_some_and(|given| *given != book.contract.customer_ref) {
            return Err(Violations::one(&["customer_ref"], "not_changeable", "cannot change: create a new contract").into());
        }
        let catalog: Catalog = match &edit.products {
            None => Catalog::default(),
            Some(patches) => catalog_of(tx, principal.organization(), &book.customer, &named_by(patches))?,
        };
        // These entities may bill the contract after the edit.
        let named: Vec<EntityRef> = catalog.entities.iter().chain(&catalog.default_entity).cloned().collect();
        for entity in tx.entities_by_refs(principal.organization(), &named)? {
            if book.entity(&entity.entity_ref).is_err() {
                book.entities.push(entity);
            }
        }
        let accounts = edit.products.iter().flatten().filter_map(|patch| match &patch.bank_transfer {
            Patch::Set(details) => details.account_ref(),
            Patch::Keep | Patch::Clear => None,
        });
        book_repository::load_legal_data(tx, principal.organization(), book, accounts, now)?;
        Ok(amend::edit(book, edit, &catalog, backdated, now, &mut supplies(services))?)
    })
}

/// Changes the quantity of a fixed line item from a day on.
///
/// # Errors
/// Returns all errors of [`edit_contract`].
pub fn change_quantity(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    change: &QuantityChange,
    options: AmendmentOptions,
) -> UseCaseResult<AmendmentOutcome> {
    amend(
        services,
        principal,
        (UseCase::ChangeQuantity, AuditAction::ChangeQuantity),
        contract_ref,
        options,
        &|_, book, backdated, now| Ok(amend::change_quantity(book, change, backdated, now, &mut supplies(services))?),
    )
}

/// Cancels a contract.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Conflict`] if the contract is already cancelled or ended, or has usage dated after its last day.
pub fn cancel_contract(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    last_day: CancelAt,
    options: AmendmentOptions,
) -> UseCaseResult<AmendmentOutcome> {
    amend(
        services,
        principal,
        (UseCase::CancelContract, AuditAction::Cancel),
        contract_ref,
        options,
        &|_, book, backdated, now| Ok(amend::cancel(book, last_day, backdated, now, &mut supplies(services))?),
    )
}

/// Resumes a cancelled contract whose last day is not over.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the contract does not exist.
/// - [`UseCaseError::Conflict`] if the contract is not cancelled or has ended.
pub fn resume_contract(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    options: AmendmentOptions,
) -> UseCaseResult<AmendmentOutcome> {
    amend(
        services,
        principal,
        (UseCase::ResumeContract, AuditAction::Resume),
        contract_ref,
        options,
        &|_, book, backdated, now| Ok(amend::resume(book, backdated, now, &mut supplies(services))?),
    )
}

type Decide<'a> = &'a dyn Fn(&mut dyn Tx, &mut ContractBook, BackdatingPolicy, Timestamp) -> UseCaseResult<()>;

/// Locks a contract, decides, and saves the decision or returns its effects.
fn amend(
    services: &Services,
    principal: &Principal,
    (use_case, action): (UseCase, AuditAction),
    contract_ref: ContractRef,
    options: AmendmentOptions,
    decide: Decide<'_>,
) -> UseCaseResult<AmendmentOutcome> {
    let now = services.now();
    let organization = allow(principal, use_case)?;
    // An outer dry run already rolls back everything, so no nested dry run is necessary.
    if options.dry_run && services.rehearsal().is_none() {
        let options = AmendmentOptions { dry_run: false, ..options };
        let mut amend =
            |services: &Services<'_>| amend(services, principal, (use_case, action), contract_ref, options, decide).map(drop);
        return dry_run(services, principal, &mut amend).map(AmendmentOutcome::DryRun);
    }
    let backdated = if options.allow_backdated { BackdatingPolicy::Allowed } else { BackdatingPolicy::Refused };
    let amended = transact(&*services.store, Access::Write, |tx| {
        let book = book_repository::lock_book_by_ref(tx, organization, contract_ref, now)?;
        let mut book = book.ok_or(UseCaseError::Unknown(ResourceKind::Contract))?;
        // A shortened contract needs the last day of usage, and changed prices need the maximum.
        book_repository::recount_all(tx, organization, &mut book)?;
        let children = Vec::from_iter(book.outer_children());
        if !children.is_empty() {
            book_repository::load_documents(tx, organization, &mut book, &children)?;
        }
        let present = view((*book.contract).clone(), &book.entities, now)?;
        decide(tx, &mut book, backdated, now)?;
        book_repository::write(tx, CommandContext::of(services, principal, now), &mut book)?;
        let amended = view((*book.contract).clone(), &book.entities, now)?;
        let change = AuditChange::From(AuditSubject::Contract(&present), AuditSubject::Contract(&amended));
        record_audit_event(tx, services, AuditContext::of(principal), action, change)?;
        Ok::<_, UseCaseError>(amended)
    });
    amended.map(|view| AmendmentOutcome::Done(Box::new(view)))
}

//! Bank accounts for customers' payments. Issued documents keep the account data as of their issue.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::bank::{BankAccount, BankAccountProfile};
use billing_domain::patch::Changes;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::BankAccountRef;

use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::error::{ResourceKind, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Creates a bank account.
///
/// # Errors
/// Returns [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
pub fn create_bank_account(
    services: &Services,
    principal: &Principal,
    account_ref: BankAccountRef,
    profile: BankAccountProfile,
) -> UseCaseResult<BankAccount> {
    let organization = allow(principal, UseCase::CreateBankAccount)?;
    profile.check()?;
    let made = BankAccount { account_ref, profile, created_at: services.now() };
    transact(&*services.store, Access::Write, |tx| {
        inserted(ResourceKind::BankAccount, tx.insert_bank_account(organization, &made)?)?;
        record_audit_event(
            tx,
            services,
            AuditContext::of(principal),
            AuditAction::Create,
            AuditChange::Made(AuditSubject::BankAccount(&made)),
        )?;
        Ok(made.clone())
    })
}

/// Changes a bank account.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the account does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values.
pub fn edit_bank_account(
    services: &Services,
    principal: &Principal,
    reference: &BankAccountRef,
    changes: &Changes<BankAccountProfile>,
) -> UseCaseResult<BankAccount> {
    let organization = allow(principal, UseCase::EditBankAccount)?;
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.bank_accounts_by_refs(organization, std::slice::from_ref(reference))?;
        let present = only(ResourceKind::BankAccount, found)?;
        let mut made = present.clone();
        changes.apply(&mut made.profile);
        made.profile.check()?;
        updated(ResourceKind::BankAccount, tx.update_bank_account(organization, &made)?)?;
        let change = AuditChange::From(AuditSubject::BankAccount(&present), AuditSubject::BankAccount(&made));
        record_audit_event(tx, services, AuditContext::of(principal), AuditAction::Edit, change)?;
        Ok(made)
    })
}

/// Returns a bank account.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the account does not exist.
pub fn get_bank_account(services: &Services, principal: &Principal, reference: &BankAccountRef) -> UseCaseResult<BankAccount> {
    let organization = allow(principal, UseCase::GetBankAccount)?;
    transact(&*services.store, Access::Read, |tx| {
        only(ResourceKind::BankAccount, tx.bank_accounts_by_refs(organization, std::slice::from_ref(reference))?)
    })
}

/// Returns a page of bank accounts, ordered by creation.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the accounts cannot be read.
pub fn list_bank_accounts(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<BankAccount>> {
    let organization = allow(principal, UseCase::ListBankAccounts)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.bank_accounts(organization, page)?))
}

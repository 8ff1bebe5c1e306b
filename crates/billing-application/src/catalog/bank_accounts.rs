//! Bank accounts that customers pay to. Issued documents keep what they were issued with.

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

/// Makes one.
///
/// # Errors
/// [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists).
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

/// Changes one.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown), or [`Invalid`](crate::error::UseCaseError::Invalid) values.
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

/// Reads one.
///
/// # Errors
/// [`Unknown`](crate::error::UseCaseError::Unknown).
pub fn get_bank_account(services: &Services, principal: &Principal, reference: &BankAccountRef) -> UseCaseResult<BankAccount> {
    let organization = allow(principal, UseCase::GetBankAccount)?;
    transact(&*services.store, Access::Read, |tx| {
        only(ResourceKind::BankAccount, tx.bank_accounts_by_refs(organization, std::slice::from_ref(reference))?)
    })
}

/// Reads a page of them, by creation.
///
/// # Errors
/// [`Store`](crate::error::UseCaseError::Store).
pub fn list_bank_accounts(services: &Services, principal: &Principal, page: PageRequest) -> UseCaseResult<Page<BankAccount>> {
    let organization = allow(principal, UseCase::ListBankAccounts)?;
    transact(&*services.store, Access::Read, |tx| Ok(tx.bank_accounts(organization, page)?))
}

//! Bank accounts for customers' payments. Issued documents keep the account data as of their issue.

use billing_domain::audit::AuditAction;
use billing_domain::page::{ListRequest, Page};
use billing_domain::party::bank::{BankAccount, BankAccountProfile};
use billing_domain::patch::Changes;
use billing_domain::refs::BankAccountRef;

use super::{inserted, only, updated};
use crate::audit::{AuditChange, AuditSubject};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseResult};

/// Creates a bank account.
///
/// # Errors
/// Returns [`AlreadyExists`](crate::error::UseCaseError::AlreadyExists) if the reference is in use.
pub fn create_bank_account(
    cx: &mut Cx<'_>,
    account_ref: BankAccountRef,
    profile: BankAccountProfile,
) -> UseCaseResult<BankAccount> {
    profile.check()?;
    let made = BankAccount { account_ref, profile, created_at: cx.now, updated_at: cx.now };
    inserted(ResourceKind::BankAccount, cx.tx.insert_bank_account(cx.organization, &made)?)?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::BankAccount(&made)))?;
    Ok(made)
}

/// Changes a bank account.
///
/// # Errors
/// Returns one of these errors:
/// - [`Unknown`](crate::error::UseCaseError::Unknown) if the account does not exist.
/// - [`Invalid`](crate::error::UseCaseError::Invalid) for invalid values.
pub fn edit_bank_account(
    cx: &mut Cx<'_>,
    reference: &BankAccountRef,
    changes: &Changes<BankAccountProfile>,
) -> UseCaseResult<BankAccount> {
    let found = cx.tx.bank_accounts_by_refs(cx.organization, std::slice::from_ref(reference))?;
    let present = only(ResourceKind::BankAccount, found)?;
    let mut made = present.clone();
    changes.apply(&mut made.profile);
    made.profile.check()?;
    if made != present {
        made.updated_at = cx.now;
    }
    updated(ResourceKind::BankAccount, cx.tx.update_bank_account(cx.organization, &made)?)?;
    let change = AuditChange::From(AuditSubject::BankAccount(&present), AuditSubject::BankAccount(&made));
    cx.audit(AuditAction::Edit, change)?;
    Ok(made)
}

/// Returns a bank account.
///
/// # Errors
/// Returns [`Unknown`](crate::error::UseCaseError::Unknown) if the account does not exist.
pub fn get_bank_account(cx: &mut Cx<'_>, reference: &BankAccountRef) -> UseCaseResult<BankAccount> {
    only(ResourceKind::BankAccount, cx.tx.bank_accounts_by_refs(cx.organization, std::slice::from_ref(reference))?)
}

/// Returns a page of bank accounts.
///
/// # Errors
/// Returns [`Store`](crate::error::UseCaseError::Store) if the accounts cannot be read.
pub fn list_bank_accounts(cx: &mut Cx<'_>, list: &ListRequest) -> UseCaseResult<Page<BankAccount>> {
    Ok(cx.tx.listed_bank_accounts(cx.organization, &list.updates, list.by, list.page)?)
}

//! What a contract bills in its current and in its next period: stored documents as they are, the others
//! as they would be opened (billing rules 7). Nothing is stored by asking.

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, day_after};
use billing_domain::contract::ContractProduct;
use billing_domain::document::linking::{Share, Slot, share, share_for_usage};
use billing_domain::document::{Document, Lifecycle};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::ContractRef;

use crate::Services;
use crate::documents::{DocumentView, view_planned, view_stored};
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::Account;

/// The documents whose own period contains today.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn current_invoices(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
) -> UseCaseResult<Vec<DocumentView>> {
    invoices(services, principal, contract_ref, &|product, today| {
        product.period_at(today).map(|current| share(product, current, Slot::Period)).into_iter().collect()
    })
}

/// The documents of the period after the current one; of the first period when the contract hasn't started. Usage
/// that no next period takes over is on a closing invoice.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn next_invoices(services: &Services, principal: &Principal, contract_ref: ContractRef) -> UseCaseResult<Vec<DocumentView>> {
    invoices(services, principal, contract_ref, &|product, today| {
        let current = product.period_at(today);
        let next = match current {
            Some(current) => product.period_after(current.period.span().end()),
            None => product.first_period().filter(|first| today < first.period.span().start()),
        };
        let closing = current.map(|current| share_for_usage(product, current)).filter(|share| share.slot == Slot::Closing);
        closing.into_iter().chain(next.map(|next| share(product, next, Slot::Period))).collect()
    })
}

type Pick<'a> = &'a dyn for<'c> Fn(&'c ContractProduct, Date) -> Vec<Share<'c>>;

fn invoices(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    pick: Pick<'_>,
) -> UseCaseResult<Vec<DocumentView>> {
    let now = services.now();
    transact(&*services.store, Access::Read, |tx| {
        let contract = tx.contract(principal.organization, contract_ref)?.ok_or(UseCaseError::Unknown(Thing::Contract))?;
        let account = Account::read(tx, principal.organization, contract)?;
        let mut stored: Vec<Document> = Vec::new();
        let mut planned = Vec::new();
        let mut covered = Vec::new();
        for product in &account.contract.products {
            let Some(terms) = product.newest_terms() else { continue };
            for share in pick(product, account.today(terms, now)?) {
                let open = account.stored(tx, &share)?;
                let is_open = open.is_some();
                match share.slot {
                    Slot::Closing => stored.extend(open),
                    Slot::Period | Slot::UsageDebit => stored.extend(stored_in(tx, &account, share.own.period.span())?),
                }
                if is_open || covered.contains(&(product.no, share.slot)) {
                    continue;
                }
                let plan = account.plan(tx, &share)?;
                covered.extend(plan.shares.iter().map(|(share, _)| (share.own.product_no, share.slot)));
                planned.push(plan);
            }
        }
        stored.sort_by_key(|document| document.head.document_ref);
        stored.dedup_by_key(|document| document.head.document_ref);
        let mut views: Vec<DocumentView> = Vec::new();
        for document in stored {
            views.push(view_stored(tx, &account, document, now)?);
        }
        for plan in &planned {
            views.push(view_planned(tx, &account, plan)?);
        }
        Ok(views)
    })
}

/// Documents in force whose own period starts with a period.
fn stored_in(tx: &mut dyn Tx, account: &Account, span: Period) -> UseCaseResult<Vec<Document>> {
    let contract = &account.contract;
    let first_day = Period::new(span.start(), day_after(span.start())).unwrap_or(span);
    let found = tx.documents_of_contract(account.organization, contract.customer_id, contract.contract_ref, first_day)?;
    let in_force =
        |document: &Document| !matches!(document.lifecycle, Lifecycle::Void(_)) && document.head.period.start() == span.start();
    Ok(found.into_iter().filter(in_force).collect())
}

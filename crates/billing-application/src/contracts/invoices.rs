//! What a contract bills in its current and in its next period: stored documents as they are, the others
//! as they would be opened (billing rules 7). Nothing is stored by asking.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::{BookDocument, Purpose};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::view::{self, Shown};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{ContractKey, ContractRef, DocumentRef};
use billing_domain::refusal::Refusal;

use crate::books;
use crate::documents::{DocumentView, Relatives, show_all};
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// The documents whose own period contains today, with their open adjustments and children.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn current_invoices(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
) -> UseCaseResult<Vec<DocumentView>> {
    invoices(services, principal, contract_ref, view::current, Children::Shown)
}

/// The documents of the period after the current one; of the first period when the contract hasn't started. Usage
/// that no next period takes over is on a closing invoice.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn next_invoices(services: &Services, principal: &Principal, contract_ref: ContractRef) -> UseCaseResult<Vec<DocumentView>> {
    invoices(services, principal, contract_ref, view::next, Children::LeftOut)
}

/// What a contract bills in its current and its next period and isn't opened yet.
pub(crate) fn planned_invoices(tx: &mut dyn Tx, contract: ContractKey, now: Timestamp) -> UseCaseResult<Vec<DocumentView>> {
    let organization = contract.organization;
    let book = books::empty(tx, contract, None)?.ok_or(UseCaseError::Unknown(Thing::Contract))?;
    let book = books::whole(tx, organization, book, now)?;
    let shown = view::current(&book, now)?.into_iter().chain(view::next(&book, now)?);
    let planned = shown.filter(|shown| !shown.is_opened).collect();
    show_all(tx, organization, &book, &Relatives::default(), planned, now)
}

/// Whether the documents of events due upon usage are listed beside their invoice.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Shown,
    LeftOut,
}

type Ask = fn(&ContractBook, Timestamp) -> Result<Vec<Shown>, Refusal>;

fn invoices(
    services: &Services,
    principal: &Principal,
    contract_ref: ContractRef,
    ask: Ask,
    children: Children,
) -> UseCaseResult<Vec<DocumentView>> {
    let now = services.now();
    let organization = allow(principal, UseCase::PreviewInvoices)?;
    transact(&*services.store, Access::Read, |tx| {
        let agreed = tx.agreement_of(organization, contract_ref)?.ok_or(UseCaseError::Unknown(Thing::Contract))?;
        let book = books::with_parties(tx, organization, agreed)?;
        let book = books::whole(tx, organization, book, now)?;
        let mut shown = ask(&book, now)?;
        let opened: Vec<DocumentRef> =
            shown.iter().filter(|shown| shown.is_opened).map(|shown| shown.document.head.document_ref).collect();
        let relatives = Relatives::of_book(tx, organization, &book, &opened)?;
        if children == Children::Shown {
            let is_child = |below: &&BookDocument| below.head.purpose == Purpose::Usage && !below.standing.is_void();
            let with_children = |parent: Shown| {
                let below = relatives.below(parent.document.head.document_ref).into_iter().filter(is_child);
                let below = below.map(|child| Shown { document: child.clone(), is_opened: true, content: None });
                std::iter::once(parent).chain(below.collect::<Vec<_>>())
            };
            shown = shown.into_iter().flat_map(with_children).collect();
        }
        show_all(tx, organization, &book, &relatives, shown, now)
    })
}

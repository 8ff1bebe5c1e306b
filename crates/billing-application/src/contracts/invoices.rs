//! What a contract bills in its current and in its next period: stored documents as they are, the others
//! as they would be opened (billing rules 7). Nothing is stored by asking.

use billing_domain::access::Principal;
use billing_domain::calendar::Timestamp;
use billing_domain::document::Purpose;
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::view::{self, Shown};
use billing_domain::ports::{Access, transact};
use billing_domain::refs::ContractRef;
use billing_domain::refusal::Refusal;

use crate::Services;
use crate::books;
use crate::documents::{DocumentView, show, show_document};
use crate::error::{Thing, UseCaseError, UseCaseResult};

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
    let organization = principal.organization;
    transact(&*services.store, Access::Read, |tx| {
        let contract = tx.contract(organization, contract_ref)?.ok_or(UseCaseError::Unknown(Thing::Contract))?;
        let book = books::empty(tx, organization, contract)?;
        let book = books::whole(tx, organization, book)?;
        let mut views = Vec::new();
        for shown in ask(&book, now)? {
            let head = &shown.document.head;
            let (document_ref, customer_id) = (head.document_ref, head.customer_id);
            let may_have_children = children == Children::Shown && shown.is_opened && matches!(head.purpose, Purpose::Regular(_));
            views.push(show(tx, organization, &book, shown, now)?);
            if may_have_children {
                for child in tx.documents_of_parent(organization, customer_id, document_ref)? {
                    if child.head.purpose == Purpose::Usage && !child.lifecycle.is_void() {
                        views.push(show_document(tx, organization, &book, child, now)?);
                    }
                }
            }
        }
        Ok(views)
    })
}

//! The documents of a contract's current and next period. Stored documents are shown as they are, and others as they would be
//! opened (billing rules 7). Nothing is stored.

use std::collections::BTreeSet;

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::document::{BookDocument, LifecycleStatus, Purpose};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::preview::{self, DocumentPreview};
use billing_domain::ports::Tx;
use billing_domain::refs::{ContractKey, ContractRef, DocumentRef, OrganizationId};
use billing_domain::refusal::Refusal;

use crate::book_repository;
use crate::carry_out::Cx;
use crate::documents::{DocumentView, RelatedDocuments, show_all};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// Returns the documents whose own period contains today, with their open adjustments and children.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the contract does not exist.
pub fn current_invoices(cx: &mut Cx<'_>, contract_ref: ContractRef) -> UseCaseResult<Vec<DocumentView>> {
    invoices(cx, contract_ref, preview::preview_current_period, Children::Listed)
}

/// Returns the documents of the period after the current one, or of the first period if the contract has not started. Usage
/// without a next period appears on a closing invoice.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the contract does not exist.
pub fn next_invoices(cx: &mut Cx<'_>, contract_ref: ContractRef) -> UseCaseResult<Vec<DocumentView>> {
    invoices(cx, contract_ref, preview::preview_next_period, Children::LeftOut)
}

/// Returns the planned documents of a contract's current and next period that are not opened yet.
pub(crate) fn planned_invoices(tx: &mut dyn Tx, contract: ContractKey, now: Timestamp) -> UseCaseResult<Vec<DocumentView>> {
    let organization = contract.organization;
    let book = book_repository::load_header(tx, contract, None)?.ok_or(UseCaseError::Unknown(ResourceKind::Contract))?;
    let book = book_repository::load_book(tx, organization, book, now)?;
    let shown = preview::preview_current_period(&book, now)?.into_iter().chain(preview::preview_next_period(&book, now)?);
    let planned = shown.filter(|shown| !shown.is_opened).collect();
    show_all(tx, organization, &book, &RelatedDocuments::default(), planned, now)
}

/// Whether to list the child documents of events due upon usage.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Children {
    Listed,
    LeftOut,
}

type Ask = fn(&ContractBook, Timestamp) -> Result<Vec<DocumentPreview>, Refusal>;

fn invoices(cx: &mut Cx<'_>, contract_ref: ContractRef, ask: Ask, children: Children) -> UseCaseResult<Vec<DocumentView>> {
    let (organization, now) = (cx.organization, cx.now);
    let agreed = cx.tx.agreement_of(organization, contract_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Contract))?;
    let book = book_repository::with_parties(cx.tx, organization, agreed)?;
    let mut book = book_repository::load_book(cx.tx, organization, book, now)?;
    // Remove children, because the book contains only those with open adjustments.
    let mut shown = ask(&book, now)?;
    shown.retain(|shown| shown.document.head.purpose != Purpose::Usage);
    let opened = |shown: &[DocumentPreview]| -> Vec<DocumentRef> {
        shown.iter().filter(|shown| shown.is_opened).map(|shown| shown.document.head.document_ref).collect()
    };
    let mut parents = opened(&shown);
    if children == Children::Listed {
        parents.extend(later_invoices(&book, now)?);
    }
    let mut relatives = RelatedDocuments::of_book(cx.tx, organization, &book, &book_repository::distinct(parents))?;
    if children == Children::Listed {
        add_children(cx.tx, organization, &mut book, &relatives, &mut shown, now)?;
    }
    relatives.complete(cx.tx, organization, &book, &opened(&shown))?;
    show_all(cx.tx, organization, &book, &relatives, shown, now)
}

/// Returns the regular documents whose period ends after today, including void ones. With `DURING_USE` they are the parents
/// of the current period's children, but are not listed with that period.
fn later_invoices(book: &ContractBook, now: Timestamp) -> UseCaseResult<Vec<DocumentRef>> {
    let mut later = Vec::new();
    for document in book.documents().filter(|document| matches!(document.head.purpose, Purpose::Regular(_))) {
        if document.head.period.end() > today_of(book, document, now)? {
            later.push(document.head.document_ref);
        }
    }
    Ok(later)
}

fn today_of(book: &ContractBook, document: &BookDocument, now: Timestamp) -> UseCaseResult<Date> {
    Ok(book.entity(&document.head.entity_ref)?.profile.time_zone.service_date(now))
}

/// Adds the children in force whose parent is listed or whose own period contains today. Also adds their open adjustments
/// that are not listed. Each document appears once: after its parent if that is listed, and otherwise in order of opening.
fn add_children(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &mut ContractBook,
    relatives: &RelatedDocuments,
    shown: &mut Vec<DocumentPreview>,
    now: Timestamp,
) -> UseCaseResult<()> {
    let mut listed: BTreeSet<DocumentRef> = shown.iter().map(|shown| shown.document.head.document_ref).collect();
    let mut children: Vec<BookDocument> = Vec::new();
    for child in relatives.children().filter(|child| !child.status.is_void()) {
        let is_below_listed = child.head.parent.is_some_and(|parent| listed.contains(&parent));
        if is_below_listed || child.head.period.contains(today_of(book, child, now)?) {
            children.push(child.clone());
        }
    }
    let drafts: Vec<DocumentRef> =
        children.iter().filter(|child| child.status == LifecycleStatus::Draft).map(|child| child.head.document_ref).collect();
    book_repository::load_documents(tx, organization, book, &drafts)?;
    let refs: BTreeSet<DocumentRef> = children.iter().map(|child| child.head.document_ref).collect();
    let mut added: Vec<DocumentPreview> = Vec::new();
    for document in children {
        let document_ref = document.head.document_ref;
        added.push(match document.status {
            LifecycleStatus::Draft => preview::stored(book, document_ref)?,
            _ => DocumentPreview { document, is_opened: true, content: None },
        });
    }
    let is_open_of_child = |document: &&BookDocument| {
        document.status == LifecycleStatus::Draft
            && document.head.purpose == Purpose::Adjustment
            && document.head.parent.is_some_and(|parent| refs.contains(&parent))
            && !listed.contains(&document.head.document_ref)
    };
    let open: Vec<DocumentRef> = book.documents().filter(is_open_of_child).map(|document| document.head.document_ref).collect();
    for document_ref in open {
        added.push(preview::stored(book, document_ref)?);
    }
    listed.extend(refs);
    shown.extend(added);
    shown.sort_by_key(|shown| {
        let head = &shown.document.head;
        let parent = head.parent.filter(|parent| head.purpose == Purpose::Usage && listed.contains(parent));
        (!shown.is_opened, shown.is_opened.then_some((parent.unwrap_or(head.document_ref), head.document_ref)))
    });
    Ok(())
}

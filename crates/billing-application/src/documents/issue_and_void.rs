//! Issues drafts and voids issued documents.

use billing_domain::access::Principal;
use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::document::{Document, Lifecycle};
use billing_domain::ledger::{ContractBook, issue};
use billing_domain::ports::{Access, Tx, transact};
use billing_domain::refs::{DocumentRef, OrganizationId};

use super::{DocumentView, show_refs};
use crate::accounts::CommandContext;
use crate::audit::{AuditChange, AuditContext, AuditSubject, record_audit_event};
use crate::book_repository::{self, corrupt, supplies};
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::{Services, UseCase, allow};

/// Issues a draft now, independently of its due time.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Conflict`] if it is not a draft.
pub fn issue_document(services: &Services, principal: &Principal, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    act(services, principal, (UseCase::IssueDocument, AuditAction::Issue), document_ref, |tx, book, _, now| {
        let outcome = issue::issue(book, document_ref, now, &mut supplies(services))?;
        issue::schedule_next_run(book, now)?;
        book_repository::write(tx, CommandContext::of(services, principal, now), book)?;
        Ok(outcome.issued.first().map_or(document_ref, |(issued, _)| *issued))
    })
}

/// Voids an unpaid issued document. Its period becomes unbilled, and a replacement bills everything again.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the document does not exist. Returns [`UseCaseError::Conflict`] for any of these:
/// - a draft
/// - a document with payments, applied credits, adjustments or children
/// - an adjustment or a child
/// - a document whose usage another issued document now bills
pub fn void_document(services: &Services, principal: &Principal, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    act(services, principal, (UseCase::VoidDocument, AuditAction::Void), document_ref, |tx, book, document, now| {
        let dependents = tx.documents_of_parents(principal.organization(), document.head.customer_id, &[document_ref])?;
        let has_children = dependents.iter().any(|dependent| !dependent.status.is_void());
        issue::require_voidable(document.head.purpose)?;
        match document.lifecycle {
            Lifecycle::Issued(issued) => issue::void(book, document_ref, &issued.content, has_children, now)?,
            Lifecycle::Draft | Lifecycle::Uncollectible(_) | Lifecycle::Void(_) | Lifecycle::Discarded(_) => {
                return Err(conflict("not_issued", "only an issued document can be voided"));
            }
        }
        book_repository::write(tx, CommandContext::of(services, principal, now), book)?;
        Ok(document_ref)
    })
}

/// Locks the document's contract, executes the action, and returns the document that results.
fn act(
    services: &Services,
    principal: &Principal,
    (use_case, done): (UseCase, AuditAction),
    document_ref: DocumentRef,
    mut action: impl FnMut(&mut dyn Tx, &mut ContractBook, Document, Timestamp) -> UseCaseResult<DocumentRef>,
) -> UseCaseResult<DocumentView> {
    let now = services.now();
    let organization = allow(principal, use_case)?;
    transact(&*services.store, Access::Write, |tx| {
        let found = tx.document(organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
        let book = book_repository::lock_book(tx, found.head.contract_key(organization), now)?;
        let mut book = book.ok_or_else(|| corrupt("a document", &document_ref, "has no contract"))?;
        book_repository::load_documents(tx, organization, &mut book, &[document_ref])?;
        book_repository::load_legal_data(tx, organization, &mut book, [], now)?;
        // Load the document again, because only now can nobody else change it.
        let document = tx.documents_by_refs(organization, &[found.head.customer_id], &[document_ref])?.pop();
        let document = document.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
        let before = show_one(tx, organization, &book, document_ref, now)?;
        let answered = action(tx, &mut book, document, now)?;
        let after = show_one(tx, organization, &book, answered, now)?;
        let change = AuditChange::From(AuditSubject::Document(&before), AuditSubject::Document(&after));
        record_audit_event(tx, services, AuditContext::of(principal), done, change)?;
        Ok(after)
    })
}

/// Returns the current view of a document in a book.
fn show_one(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    document_ref: DocumentRef,
    now: Timestamp,
) -> UseCaseResult<DocumentView> {
    let shown = show_refs(tx, organization, book, &[document_ref], now)?;
    shown.into_iter().next().ok_or(UseCaseError::InvariantViolation("a document without a view"))
}

fn conflict(code: &'static str, detail: &str) -> UseCaseError {
    UseCaseError::Conflict { code, detail: detail.to_owned() }
}

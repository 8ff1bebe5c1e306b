//! Issues drafts and voids issued documents.

use billing_domain::audit::AuditAction;
use billing_domain::calendar::Timestamp;
use billing_domain::document::{Document, Lifecycle};
use billing_domain::ledger::{ContractBook, issue};
use billing_domain::ports::Tx;
use billing_domain::refs::{DocumentRef, OrganizationId};

use super::{DocumentView, show_refs};
use crate::audit::{AuditChange, AuditSubject};
use crate::billing_run::require_trusted_clock;
use crate::book_repository::{self, corrupt};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};
use crate::notices;

/// Issues a draft now, independently of its due time.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::Unknown`] if the document does not exist.
/// - [`UseCaseError::Conflict`] if it is not a draft, or if neither the service nor the caller trusts the clock.
pub fn issue_document(cx: &mut Cx<'_>, document_ref: DocumentRef, trust_clock: bool) -> UseCaseResult<DocumentView> {
    let is_dry_run = cx.is_dry_run();
    act(cx, AuditAction::Issue, document_ref, |cx, book, document| {
        if !is_dry_run && require_trusted_clock(cx.services, trust_clock)? {
            let draft = show_one(cx.tx, cx.organization, book, document_ref, cx.now)?;
            let change = AuditChange::Unshown(AuditSubject::Document(&draft));
            cx.audit_of(document.head.customer_id, AuditAction::TrustClock, change)?;
        }
        let outcome = issue::issue(book, document_ref, cx.now, &mut cx.ids())?;
        issue::schedule_next_run(book, cx.now)?;
        let billed_again = notices::end_failure(cx, book)?;
        book_repository::write_all_with(cx, [book], Vec::from_iter(billed_again))?;
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
pub fn void_document(cx: &mut Cx<'_>, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    act(cx, AuditAction::Void, document_ref, |cx, book, document| {
        let dependents = cx.tx.documents_of_parents(cx.organization, &[(document.head.customer_id, document_ref)])?;
        let has_children = dependents.iter().any(|dependent| !dependent.status.is_void());
        issue::require_voidable(document.head.purpose)?;
        match document.lifecycle {
            Lifecycle::Issued(issued) => issue::void(book, document_ref, &issued.content, has_children, cx.now)?,
            Lifecycle::Draft | Lifecycle::Uncollectible(_) | Lifecycle::Void(_) | Lifecycle::Discarded(_) => {
                return Err(conflict("not_issued", "only an issued document can be voided"));
            }
        }
        book_repository::write(cx, book)?;
        Ok(document_ref)
    })
}

/// Locks the document's contract, executes the action, and returns the document that results.
fn act(
    cx: &mut Cx<'_>,
    done: AuditAction,
    document_ref: DocumentRef,
    action: impl FnOnce(&mut Cx<'_>, &mut ContractBook, Document) -> UseCaseResult<DocumentRef>,
) -> UseCaseResult<DocumentView> {
    let (organization, now) = (cx.organization, cx.now);
    let found = cx.tx.document(organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    let book = book_repository::lock_book(cx, found.head.contract_key(organization))?;
    let mut book = book.ok_or_else(|| corrupt("a document", &document_ref, "has no contract"))?;
    // A write-off changes the document under this lock alone.
    cx.lock_accounts(&[found.head.customer_id])?;
    book_repository::load_documents(cx.tx, organization, &mut book, &[document_ref])?;
    book_repository::load_legal_data(cx.tx, organization, &mut book, [], now)?;
    // Load the document again, because only now can nobody else change it.
    let document = cx.tx.documents_by_refs(organization, &[found.head.customer_id], &[document_ref])?.pop();
    let document = document.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    let before = show_one(cx.tx, organization, &book, document_ref, now)?;
    let answered = action(cx, &mut book, document)?;
    let after = show_one(cx.tx, organization, &book, answered, now)?;
    let change = AuditChange::From(AuditSubject::Document(&before), AuditSubject::Document(&after));
    cx.audit_of(found.head.customer_id, done, change)?;
    Ok(after)
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

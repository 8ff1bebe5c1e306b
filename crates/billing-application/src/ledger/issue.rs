//! Issuing a draft: the one way from open to frozen, whoever asks for it.

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::document::correction::{kind_of, negated};
use billing_domain::document::linking::Share;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument, Purpose, due_date};
use billing_domain::money::Money;
use billing_domain::ports::Tx;
use billing_domain::refs::DocumentRef;

use super::{Account, Unnumbered};
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// What became of a draft.
pub(crate) enum Issued {
    /// It is issued, or the document of the other kind that took its lines over is.
    Issued(Box<DocumentHead>, Money),
    /// It had neither event, amount nor child, and is void.
    Voided(Money),
}

/// Issues a draft, or puts it out of force when nothing stands on it (billing rules 2). A draft credit or
/// debit whose total has the wrong sign hands its lines to a document of the other kind (billing rules 5).
/// The contract must be held exclusively.
pub(crate) fn issue_draft(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    head: DocumentHead,
    now: Timestamp,
) -> UseCaseResult<Issued> {
    let content = account.draft_content(tx, &head)?;
    if !stands(tx, account, &head, &content)? {
        void(tx, account, &head, now)?;
        return Ok(Issued::Voided(content.total));
    }
    let wrong_sign = head.kind != DocumentKind::Invoice && content.total.minor() < 0 && head.purpose != Purpose::Usage;
    let (head, content) = if wrong_sign { turn(services, tx, account, head, now)? } else { (head, content) };
    let total = content.total;
    freeze(tx, account, &head, content, now)?;
    Ok(Issued::Issued(Box::new(head), total))
}

/// What became of a share's document: the reference and number it had before, its kind, and its fate.
pub(crate) type IssuedShare = (Option<(DocumentRef, DocumentNumber)>, DocumentKind, Issued);

/// Issues the document of a share, open or not; `None` when it is issued already, or when nothing has to stand
/// on it. The contract must be held exclusively.
pub(crate) fn issue_share(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    share: &Share<'_>,
    now: Timestamp,
) -> UseCaseResult<Option<IssuedShare>> {
    match account.stored(tx, share)? {
        Some(document) if document.is_draft() => {
            let was = Some((document.head.document_ref, document.head.number.clone()));
            let kind = document.head.kind;
            Ok(Some((was, kind, issue_draft(services, tx, account, document.head, now)?)))
        }
        Some(_) => Ok(None),
        None => {
            let planned = account.plan(tx, share)?;
            if !has_amount(&account.preview(tx, &planned)?) && !replaces_events(tx, account, share)? {
                return Ok(None);
            }
            let head = account.open(services, tx, &planned)?;
            let kind = head.kind;
            Ok(Some((None, kind, issue_draft(services, tx, account, head, now)?)))
        }
    }
}

/// Whether a void document of the same place has events that a replacement takes over.
fn replaces_events(tx: &mut dyn Tx, account: &Account, share: &Share<'_>) -> UseCaseResult<bool> {
    let (customer_id, contract_ref) = (account.contract.customer_id, account.contract.contract_ref);
    let start = share.own.period.span().start();
    match tx.last_void(account.organization, customer_id, contract_ref, share.own.product_no, start, share.slot)? {
        Some(void) => Ok(tx.has_events(account.organization, customer_id, void)?),
        None => Ok(false),
    }
}

/// Whether a draft has anything that keeps it: an amount, an event, a document that names it as parent.
fn stands(tx: &mut dyn Tx, account: &Account, head: &DocumentHead, content: &DocumentContent) -> UseCaseResult<bool> {
    Ok(has_amount(content)
        || tx.has_events(account.organization, head.customer_id, head.document_ref)?
        || !tx.documents_of_parent(account.organization, head.customer_id, head.document_ref)?.is_empty())
}

/// Whether any line has an amount.
fn has_amount(content: &DocumentContent) -> bool {
    content.products.iter().flat_map(|product| &product.lines).any(|line| line.amount.minor() != 0)
}

fn void(tx: &mut dyn Tx, account: &Account, head: &DocumentHead, now: Timestamp) -> UseCaseResult<()> {
    if tx.void_draft(account.organization, head.customer_id, head.document_ref, now)? {
        Ok(())
    } else {
        Err(UseCaseError::InvariantViolation("a draft that is held changed"))
    }
}

/// Hands a draft's lines and events to a new document of the other kind.
fn turn(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    head: DocumentHead,
    now: Timestamp,
) -> UseCaseResult<(DocumentHead, DocumentContent)> {
    let lines = match head.purpose {
        Purpose::Regular(_) => account.draft_content(tx, &head)?.ledger_lines(),
        Purpose::Usage | Purpose::Adjustment => tx.ledger_lines(account.organization, head.customer_id, head.document_ref)?,
    };
    let lines = negated(lines)?;
    let kind = match head.kind {
        DocumentKind::Credit => DocumentKind::Debit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Credit,
    };
    let turned = account.number(
        services,
        tx,
        Unnumbered {
            kind,
            purpose: Purpose::Adjustment,
            entity_ref: &head.entity_ref,
            currency: head.currency,
            period: head.period,
            is_partial_period: head.is_partial_period,
            parts: head.parts.clone(),
            net_terms: head.net_terms,
            payment: head.payment.clone(),
            parent: head.parent,
            replaces: None,
        },
    )?;
    tx.move_events(account.organization, head.customer_id, head.document_ref, turned.document_ref)?;
    void(tx, account, &head, now)?;
    tx.put_ledger_lines(account.organization, turned.customer_id, turned.document_ref, &lines)?;
    let content = account.content_of_lines(&turned, &lines)?;
    Ok((turned, content))
}

/// Freezes a draft with what it says. A credit lowers what is due on its parent.
pub(super) fn freeze(
    tx: &mut dyn Tx,
    account: &Account,
    head: &DocumentHead,
    content: DocumentContent,
    now: Timestamp,
) -> UseCaseResult<()> {
    if !content.adds_up() {
        return Err(UseCaseError::InvariantViolation("a document's total is not the sum of its lines"));
    }
    let issue_date = account.entity(&head.entity_ref)?.profile.time_zone.service_date(now);
    let total = content.total;
    let issued = IssuedDocument {
        issued_at: now,
        issue_date,
        due_date: due_date(issue_date, head.net_terms),
        parties: account.parties(&head.entity_ref)?,
        po_number: account.contract.po_number.clone(),
        note: account.note_of(head)?,
        content,
    };
    if !tx.issue_document(account.organization, head.customer_id, head.document_ref, &issued)? {
        return Err(UseCaseError::InvariantViolation("a draft that is held changed"));
    }
    // Nothing may be left to pay from the first moment: a total of zero, or credits issued before.
    settle_on(tx, account, head.document_ref, Money::zero(total.currency()), issue_date)?;
    match (head.kind, head.parent) {
        (DocumentKind::Credit, Some(parent)) => settle_on(tx, account, parent, total, issue_date),
        (DocumentKind::Credit | DocumentKind::Debit | DocumentKind::Invoice, _) => Ok(()),
    }
}

/// Counts a credit that is issued on a day against a document, and notes whether anything is left to pay.
fn settle_on(tx: &mut dyn Tx, account: &Account, document_ref: DocumentRef, credit: Money, on: Date) -> UseCaseResult<()> {
    let document = account.document(tx, document_ref)?;
    let mut settlement = document.settlement;
    settlement.credits = settlement.credits.checked_add(credit)?;
    if let Some(issued) = document.lifecycle.issued() {
        settlement = settlement.dated(issued.content.total, on)?;
    }
    if settlement == document.settlement {
        return Ok(());
    }
    Ok(tx.settle_document(account.organization, document.head.customer_id, document_ref, &settlement)?)
}

/// The kind of a child for what it bills (billing rules 3).
pub(super) const fn child_kind(amount: Money) -> DocumentKind {
    match kind_of(amount) {
        DocumentKind::Credit => DocumentKind::Credit,
        DocumentKind::Debit | DocumentKind::Invoice => DocumentKind::Invoice,
    }
}

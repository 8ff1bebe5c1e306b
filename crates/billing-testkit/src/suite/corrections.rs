//! Changes of documents after they were opened: amendments, voids, adjustments and payments.

use billing_domain::document::linking::SlotKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{
    DocumentHead, DocumentKind, DocumentState, IssuedDocument, Lifecycle, LifecycleStatus, Purpose, Settlement,
};
use billing_domain::party::NetTerms;
use billing_domain::ports::{DocumentFilter, Lock, Store, StoreError};
use billing_domain::refs::{CustomerId, DocumentRef, ProductNo};
use uuid::Uuid;

use super::documents::two_products;
use super::{World, all, later, read, refs_of, settle, transact_answer, undo, world, write};
use crate::Singly as _;
use crate::fixtures::{self, cents, date};

/// Returns the document in the slot of a month's own invoice.
fn in_place(store: &dyn Store, w: &World, no: u16, start: &str) -> Option<DocumentRef> {
    let found = w.in_place(store, no, start, SlotKind::Period);
    assert!(found.len() < 2, "a place is taken once");
    found.first().copied()
}

/// Creates the head of an adjustment without storing it.
pub(super) fn adjustment(w: &World, kind: DocumentKind, parent: &DocumentHead, seconds: i64) -> DocumentHead {
    let head = w.head(1);
    DocumentHead {
        purpose: Purpose::Adjustment,
        kind,
        number: DocumentNumber { kind, ..head.number.clone() },
        parent: Some(parent.document_ref),
        created_at: later(seconds),
        ..head
    }
}

fn update(store: &dyn Store, w: &World, head: &DocumentHead) -> bool {
    write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.update_draft(w.org, head, later(1))
    })
}

pub(super) fn void_issued(store: &dyn Store, w: &World, head: &DocumentHead) -> bool {
    write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.void_issued(head.key(w.org), later(60), fixtures::date("2026-02-12"))
    })
}

fn amended(head: &DocumentHead) -> DocumentHead {
    DocumentHead {
        period: fixtures::period("2026-01-01", "2026-01-20"),
        is_partial_period: true,
        parts: vec![ProductNo(1), ProductNo(0)],
        ..head.clone()
    }
}

pub fn a_draft_is_updated_and_comes_back(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let head = w.open(store, DocumentHead { parts: vec![ProductNo(0)], ..w.head(1) });
    let other = w.open(store, w.head(2));
    let amended = amended(&head);
    // Net terms and payment details keep the values the document was opened with.
    let asked = DocumentHead { net_terms: NetTerms::Days(14), payment: fixtures::full_payment(), ..amended.clone() };
    assert!(update(store, &w, &asked));
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!(format!("{:?}", stored.head), format!("{amended:?}"));
    assert_eq!((stored.head, stored.lifecycle), (amended, Lifecycle::Draft));
    assert_eq!(read(store, |tx| tx.document(w.org, other.document_ref)).map(|document| document.head), Some(other));
}

pub fn an_update_rolled_back_leaves_the_draft(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let head = w.open(store, DocumentHead { parts: vec![ProductNo(0)], ..w.head(1) });
    undo(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        assert!(tx.update_draft(w.org, &amended(&head), later(1))?);
        Ok(())
    });
    assert_eq!(read(store, |tx| tx.document(w.org, head.document_ref)).map(|document| document.head).as_ref(), Some(&head));
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), Some(head.document_ref));
    assert_eq!(in_place(store, &w, 1, "2026-01-01"), None);
}

pub fn an_updated_draft_is_found_by_the_products_it_has_now(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let both = w.open(store, w.head(1));
    assert!(update(store, &w, &DocumentHead { parts: vec![ProductNo(1)], ..both.clone() }));
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), None);
    assert_eq!(in_place(store, &w, 1, "2026-01-01"), Some(both.document_ref));
    // The previous slot is free. A slot never has two documents.
    let alone = w.open(store, DocumentHead { parts: vec![ProductNo(0)], ..w.head(1) });
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), Some(alone.document_ref));
}

pub fn a_draft_is_not_updated_once_it_is_none(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let issued = w.issue(store, w.head(1), cents(100));
    let void = w.open(store, w.head(2));
    w.void(store, &void);
    for head in [&issued, &void, &w.head(3)] {
        let before = read(store, |tx| tx.document(w.org, head.document_ref));
        assert!(!update(store, &w, &DocumentHead { net_terms: NetTerms::Days(99), parts: vec![ProductNo(0)], ..head.clone() }));
        assert_eq!(read(store, |tx| tx.document(w.org, head.document_ref)), before);
    }
}

pub fn an_issued_document_is_voided_once_and_keeps_what_it_says(store: &dyn Store) {
    let w = world(store);
    let draft = w.open(store, w.head(2));
    let void_draft = w.open(store, w.head(3));
    w.void(store, &void_draft);
    let head = w.issue(store, w.head(1), cents(1234));
    let Some(Lifecycle::Issued(issued)) =
        read(store, |tx| tx.document(w.org, head.document_ref)).map(|document| document.lifecycle)
    else {
        panic!("not issued")
    };
    for never_issued in [&draft, &void_draft, &w.head(4)] {
        assert!(!void_issued(store, &w, never_issued));
    }
    assert!(void_issued(store, &w, &head));
    assert!(!void_issued(store, &w, &head), "voided twice");
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!(format!("{:?}", stored.lifecycle), format!("{:?}", Lifecycle::Void(issued)));
    assert_eq!((stored.state(), stored.head), (Ok(DocumentState::Void), head));
    assert!(read(store, |tx| tx.document(w.org, draft.document_ref)).is_some_and(|document| document.is_draft()));
}

pub fn a_voided_document_frees_its_place(store: &dyn Store) {
    let w = world(store);
    let head = w.issue(store, w.head(1), cents(100));
    undo(store, |tx| {
        w.hold(tx)?;
        tx.void_issued(head.key(w.org), later(1), fixtures::date("2026-02-12"))
    });
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), Some(head.document_ref), "rolled back");
    assert!(void_issued(store, &w, &head));
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), None);
    let again = w.open(store, DocumentHead { replaces: Some(head.document_ref), ..w.head(1) });
    assert_eq!(in_place(store, &w, 0, "2026-01-01"), Some(again.document_ref));
}

pub fn documents_that_name_a_parent_come_by_creation_void_ones_too(store: &dyn Store) {
    let w = world(store);
    let (invoice, other) = (w.issue(store, w.head(1), cents(100)), w.open(store, w.head(2)));
    let third = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 3));
    let first = w.issue(store, adjustment(&w, DocumentKind::Credit, &invoice, 1), cents(5));
    let child = DocumentHead { purpose: Purpose::Usage, parent: Some(invoice.document_ref), created_at: later(2), ..w.head(1) };
    let child = w.open(store, child);
    let of_other = w.open(store, adjustment(&w, DocumentKind::Debit, &other, 2));
    w.void(store, &child);
    let named = |parent: &DocumentHead| -> Vec<DocumentRef> {
        let found = read(store, |tx| tx.documents_of_parents(w.org, &[(w.customer.id, parent.document_ref)]));
        found.into_iter().map(|document| document.head.document_ref).collect()
    };
    assert_eq!(named(&invoice), [first.document_ref, child.document_ref, third.document_ref]);
    assert_eq!(named(&other), [of_other.document_ref]);
    assert_eq!(named(&first), []);
    let stored = read(store, |tx| tx.documents_of_parents(w.org, &[(w.customer.id, invoice.document_ref)]));
    assert_eq!(stored[1].head, child);
    assert_eq!((stored[0].status, stored[1].status), (LifecycleStatus::Issued, LifecycleStatus::Discarded));
    let parents = [other.document_ref, invoice.document_ref, w.head(9).document_ref];
    let of_both = parents.map(|parent| (w.customer.id, parent));
    assert_eq!(read(store, |tx| tx.documents_of_parents(w.org, &of_both)).len(), 4);
    // A document of another customer has no such children, also when several customers are named.
    let of_stranger = CustomerId::from_uuid(Uuid::from_u128(99));
    let of_several = [(of_stranger, other.document_ref), (w.customer.id, invoice.document_ref)];
    assert_eq!(read(store, |tx| tx.documents_of_parents(w.org, &of_several)), stored);
    assert_eq!(read(store, |tx| tx.documents_of_parents(w.org, &[])), []);
}

pub fn what_payments_and_credits_say_is_replaced_and_read_back(store: &dyn Store) {
    let w = world(store);
    let currency = fixtures::currency("KWD");
    let amount = |minor| billing_domain::money::Money::from_minor(minor, currency);
    let head = w.issue(store, DocumentHead { currency, ..w.head(1) }, amount(1000));
    let untouched = w.issue(store, w.head(2), cents(1000));
    let stored = |head: &DocumentHead| read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    assert_eq!(stored(&head).settlement, Settlement::none(currency));
    let none = Settlement::none(currency);
    let rows = [
        (Settlement { paid: amount(1), ..none }, DocumentState::PartiallyPaid),
        (Settlement { credits: amount(999), ..none }, DocumentState::PartiallyPaid),
        (
            Settlement { paid: amount(400), credits: amount(600), paid_date: Some(date("2026-02-03")), ..none },
            DocumentState::Paid,
        ),
        (Settlement { paid: amount(1000), paid_date: Some(date("9999-12-31")), ..none }, DocumentState::Paid),
        (none, DocumentState::Issued),
    ];
    for (settlement, state) in rows {
        write(store, |tx| settle(tx, w.org, &head, amount(1000), LifecycleStatus::Issued, settlement));
        assert_eq!((stored(&head).settlement, stored(&head).state()), (settlement, Ok(state)));
    }
    assert_eq!(stored(&untouched).settlement, Settlement::none(fixtures::eur()));
    undo(store, |tx| settle(tx, w.org, &head, amount(1000), LifecycleStatus::Issued, rows[2].0));
    assert_eq!(stored(&head).settlement, none);
}

pub fn a_document_that_is_not_there_cannot_be_settled(store: &dyn Store) {
    let w = world(store);
    let unknown = w.head(1);
    let settlement = Settlement::none(fixtures::eur());
    let answer = transact_answer(store, |tx| settle(tx, w.org, &unknown, cents(1), LifecycleStatus::Issued, settlement));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn a_void_document_is_never_issued_again(store: &dyn Store) {
    let w = world(store);
    let head = w.issue(store, w.head(1), cents(100));
    assert!(void_issued(store, &w, &head));
    let again: IssuedDocument = w.frozen(&head, cents(5));
    assert!(!write(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.issue_document(head.key(w.org), &again)
    }));
    let documents = read(store, |tx| tx.documents(w.org, &DocumentFilter::default(), all()));
    assert_eq!(refs_of(&documents.items), [head.document_ref], "void ones are listed, too");
    assert_eq!(documents.items[0].lifecycle.issued().map(|issued| issued.content.total), Some(cents(100)));
}

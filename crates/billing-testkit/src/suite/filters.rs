//! Filters of document lists.

use billing_domain::document::linking::SlotKind;
use billing_domain::document::{DocumentHead, DocumentKind, DocumentState, LifecycleStatus, Settlement};
use billing_domain::ports::{DocumentFilter, Store};
use billing_domain::refs::DocumentRef;

use super::corrections::void_issued;
use super::documents::two_products;
use super::{World, all, done, later, month, page, read, refs_of, settle, world, write};
use crate::FreshIds;
use crate::fixtures::{self, cents, date};

pub fn documents_are_listed_by_creation_then_by_reference_in_pages(store: &dyn Store) {
    let w = world(store);
    let made = |n, seconds| DocumentHead { created_at: later(seconds), ..w.head(n) };
    let (a, b, c, older) = (made(1, 5), made(2, 5), made(3, 5), made(4, 1));
    for head in [&c, &a, &older, &b] {
        w.open(store, head.clone());
    }
    let expected = [&older, &a, &b, &c].map(|head| head.document_ref);
    let list = |request| read(store, |tx| tx.documents(w.org, &DocumentFilter::default(), request));
    assert_eq!(refs_of(&list(all()).items), expected);
    for (number, part) in [(0, &expected[..3]), (1, &expected[3..]), (2, &[])] {
        let listed = list(page(3, number));
        assert_eq!((refs_of(&listed.items).as_slice(), listed.total), (part, 4));
    }
}

pub fn each_field_of_a_filter_narrows_the_list(store: &dyn Store) {
    let w = world(store);
    let other = two_products(store, &w);
    let second_contract = w.another_contract(3);
    let second_entity = fixtures::entity("second");
    write(store, |tx| {
        tx.insert_contract(w.org, &second_contract, None)?;
        done(tx.insert_entity(w.org, &second_entity))
    });
    let made = |seconds, head: DocumentHead| DocumentHead { created_at: later(seconds), ..head };
    let january = w.open(store, made(1, w.head(1)));
    let february = w.open(store, made(2, w.head(2)));
    let debit = fixtures::document_in_slot(&FreshIds, &w.contract, &w.entity, month(3), SlotKind::UsageDebit);
    let debit = w.open(store, made(3, DocumentHead { parent: Some(february.document_ref), ..debit }));
    let elsewhere = fixtures::document_head(&FreshIds, &second_contract, &second_entity, month(4));
    let elsewhere = w.open(store, made(4, elsewhere));
    let others = other.open(store, made(5, other.head(5)));
    let any = DocumentFilter::default;
    let every = [&january, &february, &debit, &elsewhere, &others];
    let rows: [(DocumentFilter, &[&DocumentHead]); 12] = [
        (any(), &every),
        (DocumentFilter { customer_id: Some(w.customer.id), ..any() }, &every[..4]),
        (DocumentFilter { customer_id: Some(other.customer.id), ..any() }, &[&others]),
        (DocumentFilter { contract_ref: Some(w.contract.contract_ref), ..any() }, &every[..3]),
        (DocumentFilter { entity_ref: Some(second_entity.entity_ref.clone()), ..any() }, &[&elsewhere]),
        (DocumentFilter { kind: Some(DocumentKind::Debit), ..any() }, &[&debit]),
        (DocumentFilter { kind: Some(DocumentKind::Credit), ..any() }, &[]),
        (DocumentFilter { from: Some(date("2026-03-01")), ..any() }, &every[2..]),
        (DocumentFilter { from: Some(date("2026-03-02")), ..any() }, &every[3..]),
        (DocumentFilter { to: Some(date("2026-02-01")), ..any() }, &every[..2]),
        (DocumentFilter { to: Some(date("2026-01-31")), ..any() }, &every[..1]),
        (
            DocumentFilter {
                customer_id: Some(w.customer.id),
                contract_ref: Some(w.contract.contract_ref),
                entity_ref: Some(w.entity.entity_ref.clone()),
                kind: Some(DocumentKind::Invoice),
                state: Some(DocumentState::Draft),
                from: Some(date("2026-02-01")),
                to: Some(date("2026-02-28")),
                ..any()
            },
            &[&february],
        ),
    ];
    for (filter, expected) in rows {
        let listed = read(store, |tx| tx.documents(w.org, &filter, all()));
        let expected: Vec<_> = expected.iter().map(|head| head.document_ref).collect();
        assert_eq!((refs_of(&listed.items), listed.total), (expected.clone(), expected.len() as u64), "{filter:?}");
        // The total counts the whole filtered list, not the page.
        let first = read(store, |tx| tx.documents(w.org, &filter, page(1, 0)));
        assert_eq!((refs_of(&first.items).as_slice(), first.total), (&expected[..expected.len().min(1)], expected.len() as u64));
    }
}

fn in_state(store: &dyn Store, w: &World, state: DocumentState) -> Vec<DocumentRef> {
    let filter = DocumentFilter { state: Some(state), ..DocumentFilter::default() };
    refs_of(&read(store, |tx| tx.documents(w.org, &filter, all())).items)
}

pub fn the_state_of_a_filter_is_derived(store: &dyn Store) {
    let w = world(store);
    let draft = w.open(store, w.head(1));
    let issued = w.issue(store, w.head(2), cents(1));
    let for_nothing = w.issue(store, w.head(3), cents(0));
    let void = w.open(store, w.head(4));
    w.void(store, &void);
    let rows: [(DocumentState, &[&DocumentHead]); 6] = [
        (DocumentState::Draft, &[&draft]),
        (DocumentState::Issued, &[&issued]),
        (DocumentState::PartiallyPaid, &[]),
        (DocumentState::Paid, &[&for_nothing]),
        (DocumentState::Void, &[&void]),
        (DocumentState::Uncollectible, &[]),
    ];
    for (state, expected) in rows {
        let expected: Vec<_> = expected.iter().map(|head| head.document_ref).collect();
        assert_eq!(in_state(store, &w, state), expected, "{state:?}");
    }
}

pub fn what_is_settled_counts_towards_the_state(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(1000));
    let untouched = w.issue(store, w.head(2), cents(1000));
    let none = Settlement::none(fixtures::eur());
    let rows: [(Settlement, DocumentState); 6] = [
        (Settlement { credits: cents(400), ..none }, DocumentState::PartiallyPaid),
        (Settlement { credits: cents(400), paid: cents(599), ..none }, DocumentState::PartiallyPaid),
        (Settlement { credits: cents(400), paid: cents(600), ..none }, DocumentState::Paid),
        (Settlement { credits: cents(1000), ..none }, DocumentState::Paid),
        (Settlement { paid: cents(1000), paid_date: Some(date("2026-02-01")), ..none }, DocumentState::Paid),
        (none, DocumentState::Issued),
    ];
    for (settlement, expected) in rows {
        write(store, |tx| settle(tx, w.org, &invoice, cents(1000), LifecycleStatus::Issued, settlement));
        for state in [DocumentState::PartiallyPaid, DocumentState::Paid] {
            let found = if state == expected { vec![invoice.document_ref] } else { vec![] };
            assert_eq!(in_state(store, &w, state), found, "{settlement:?}");
        }
        let issued = [invoice.document_ref, untouched.document_ref];
        let issued = if expected == DocumentState::Issued { &issued[..] } else { &issued[1..] };
        assert_eq!(in_state(store, &w, DocumentState::Issued), issued, "{settlement:?}");
    }
}

pub fn a_document_voided_after_its_issue_is_void(store: &dyn Store) {
    let w = world(store);
    let head = w.issue(store, w.head(1), cents(0));
    assert_eq!(in_state(store, &w, DocumentState::Paid), [head.document_ref]);
    assert!(void_issued(store, &w, &head));
    assert_eq!(in_state(store, &w, DocumentState::Void), [head.document_ref]);
    assert_eq!(in_state(store, &w, DocumentState::Paid), []);
}

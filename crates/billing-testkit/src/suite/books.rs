//! Contract books: their rows, and the writes of decisions.

use billing_domain::contract::Contract;
use billing_domain::document::lines::{BaseAndAmount, DiscountAndTax, SumKey};
use billing_domain::document::linking::{BillingSlot, SlotKind};
use billing_domain::document::{DocumentHead, DocumentKind, Lifecycle, LifecycleStatus, Purpose, Settlement};
use billing_domain::ports::{FamilySum, Store, StoreError};
use billing_domain::refs::{CreditGrantRef, DocumentRef, ProductNo};
use billing_domain::usage::UsageEvent;

use super::charges::charge_of;
use super::corrections::{adjustment, void_issued};
use super::documents::{full_content, two_products};
use super::{World, done, later, month, read, settle, transact_answer, undo, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, date, percent, taxed};

fn book(store: &dyn Store, w: &World) -> Vec<billing_domain::document::BookDocument> {
    read(store, |tx| w.rows(tx)).documents
}

/// Creates the head of a child of an invoice without storing it.
fn child_of(w: &World, invoice: &DocumentHead, seconds: i64) -> DocumentHead {
    DocumentHead { purpose: Purpose::Usage, parent: Some(invoice.document_ref), created_at: later(seconds), ..w.head(1) }
}

pub fn a_contracts_documents_come_by_creation_void_ones_too_but_no_issued_children(store: &dyn Store) {
    let w = world(store);
    assert_eq!(book(store, &w), []);
    let elsewhere = two_products(store, &w);
    elsewhere.open(store, elsewhere.head(1));
    // The documents are opened in a different order than their creation times.
    let march = w.open(store, DocumentHead { created_at: later(4), ..w.head(3) });
    let invoice = w.issue(store, DocumentHead { created_at: later(1), ..w.head(1) }, cents(100));
    let debit = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 5));
    let void = w.issue(store, DocumentHead { created_at: later(2), ..w.head(2) }, cents(100));
    assert!(void_issued(store, &w, &void));
    let discarded = w.open(store, DocumentHead { created_at: later(3), ..w.head(4) });
    w.void(store, &discarded);
    w.issue(store, child_of(&w, &invoice, 6), cents(100));
    // Of the children, only those that aren't issued yet are loaded.
    let open = w.open(store, child_of(&w, &invoice, 7));
    let heads: Vec<DocumentHead> = book(store, &w).into_iter().map(|document| document.head).collect();
    assert_eq!(heads, [invoice, void, discarded, march, debit, open]);
}

pub fn documents_of_a_book_say_how_far_they_have_come(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let debit = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    let void = w.issue(store, DocumentHead { created_at: later(2), ..w.head(2) }, cents(7));
    assert!(void_issued(store, &w, &void));
    let discarded = w.open(store, DocumentHead { created_at: later(3), ..w.head(3) });
    w.void(store, &discarded);
    let none = Settlement::none(fixtures::eur());
    let settlement = Settlement { paid: cents(40), credits: cents(60), paid_date: Some(date("2026-02-03")), ..none };
    write(store, |tx| settle(tx, w.org, &invoice, cents(100), LifecycleStatus::Issued, settlement));
    let shown: Vec<_> = book(store, &w)
        .into_iter()
        .map(|known| (known.head.document_ref, known.family, known.status, known.total, known.settlement))
        .collect();
    let (first, second) = (invoice.document_ref, void.document_ref);
    let expected = [
        (first, first, LifecycleStatus::Issued, Some(cents(100)), settlement),
        (debit.document_ref, first, LifecycleStatus::Draft, None, none),
        (second, second, LifecycleStatus::Void, Some(cents(7)), none),
        (discarded.document_ref, discarded.document_ref, LifecycleStatus::Discarded, None, none),
    ];
    assert_eq!(shown, expected);
    // The caller determines the document family. The adjustment of a child belongs to the child's invoice.
    let child = w.issue(store, child_of(&w, &invoice, 4), cents(3));
    let credit = adjustment(&w, DocumentKind::Credit, &child, 5);
    write(store, |tx| {
        w.hold(tx)?;
        tx.open_document(w.org, &credit, first)
    });
    assert_eq!(book(store, &w).last().map(|known| (known.head.clone(), known.family)), Some((credit.clone(), first)));
    assert_eq!(read(store, |tx| tx.document(w.org, credit.document_ref)).map(|document| document.family), Some(first));
}

pub fn documents_in_force_are_found_by_their_places(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let one_part = |head: DocumentHead, no: usize| DocumentHead { parts: vec![head.parts[no]], ..head };
    let shared = w.issue(store, w.head(1), cents(100));
    let of_first = w.open(store, one_part(w.head(2), 0));
    let of_second = w.open(store, one_part(w.head(2), 1));
    let in_slot = |kind| fixtures::document_in_slot(&FreshIds, &w.contract, &w.entity, month(1), kind);
    let debit = w.open(store, in_slot(SlotKind::UsageDebit));
    let closing = w.open(store, DocumentHead { created_at: later(-1), ..in_slot(SlotKind::Closing) });
    // Children, adjustments and void documents occupy no slot.
    w.open(store, DocumentHead { purpose: Purpose::Usage, parent: Some(shared.document_ref), ..w.head(3) });
    w.open(store, DocumentHead { purpose: Purpose::Adjustment, parent: Some(shared.document_ref), ..w.head(3) });
    let (discarded, void) = (w.open(store, w.head(4)), w.issue(store, w.head(5), cents(1)));
    w.void(store, &discarded);
    assert!(void_issued(store, &w, &void));
    let rows = [
        (0, "2026-01-01", SlotKind::Period, Some(&shared)),
        (1, "2026-01-01", SlotKind::Period, Some(&shared)),
        (2, "2026-01-01", SlotKind::Period, None),
        (0, "2026-02-01", SlotKind::Period, Some(&of_first)),
        (1, "2026-02-01", SlotKind::Period, Some(&of_second)),
        (0, "2026-01-01", SlotKind::UsageDebit, Some(&debit)),
        (1, "2026-01-01", SlotKind::Closing, Some(&closing)),
        (0, "2026-02-01", SlotKind::Closing, None),
        (0, "2026-01-02", SlotKind::Period, None),
        (0, "2026-03-01", SlotKind::Period, None),
        (0, "2026-04-01", SlotKind::Period, None),
        (0, "2026-05-01", SlotKind::Period, None),
    ];
    for (no, start, kind, expected) in rows {
        let expected: Vec<DocumentRef> = expected.iter().map(|head| head.document_ref).collect();
        assert_eq!(w.in_place(store, no, start, kind), expected, "{no} {start} {kind:?}");
    }
    let places = |rows: &[(u16, &str, SlotKind)]| -> Vec<BillingSlot> {
        let of = |(no, start, kind): &(u16, &str, SlotKind)| BillingSlot {
            product_no: ProductNo(*no),
            period_start: date(start),
            kind: *kind,
        };
        rows.iter().map(of).collect()
    };
    let find = |places: &[BillingSlot]| {
        let found = read(store, |tx| {
            tx.documents_in_places(&places.iter().map(|slot| (w.contract.key(w.org), *slot)).collect::<Vec<_>>())
        });
        found.into_iter().map(|document| document.head).collect::<Vec<_>>()
    };
    assert_eq!(find(&[]), []);
    // Documents are sorted by creation without duplicates. A product and a start date of different slots don't match.
    let several =
        places(&[(1, "2026-02-01", SlotKind::Period), (0, "2026-01-01", SlotKind::Period), (1, "2026-01-01", SlotKind::Period)]);
    let mut expected = vec![shared.clone(), of_second];
    expected.sort_by_key(|head| (head.created_at, head.document_ref));
    assert_eq!(find(&several), expected);
    let by_creation = places(&[(0, "2026-01-01", SlotKind::Period), (0, "2026-01-01", SlotKind::Closing)]);
    assert_eq!(find(&by_creation), [closing, shared]);
}

pub fn documents_of_a_book_are_found_by_reference_children_too(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let child = w.open(store, child_of(&w, &invoice, 2));
    let void = w.open(store, DocumentHead { created_at: later(1), ..w.head(2) });
    w.void(store, &void);
    w.open(store, w.head(3));
    let find = |refs: &[DocumentRef]| {
        let found = read(store, |tx| tx.book_documents_by_refs(w.org, &[w.customer.id], refs));
        found.into_iter().map(|known| (known.head, known.status)).collect::<Vec<_>>()
    };
    assert_eq!(find(&[]), []);
    let unknown = w.head(9).document_ref;
    let asked = [child.document_ref, unknown, void.document_ref, invoice.document_ref, child.document_ref];
    assert_eq!(
        find(&asked),
        [(invoice, LifecycleStatus::Issued), (void, LifecycleStatus::Discarded), (child, LifecycleStatus::Draft)]
    );
}

pub fn documents_with_events_are_those_with_one_that_is_not_deleted(store: &dyn Store) {
    let w = world(store);
    let elsewhere = two_products(store, &w);
    let heads: Vec<DocumentHead> = (1..=6).map(|n| w.open(store, w.head(n))).collect();
    let event = |head: &DocumentHead, month_of_2026: u32, product_no: u16, deleted: bool| {
        let used = fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
        let mut event = UsageEvent { deleted, ..used };
        event.placement.service_period = month(month_of_2026);
        event.placement.product_no = ProductNo(product_no);
        event
    };
    // The events cover several documents in a period, a document in several periods, and deleted events in between.
    let events = [
        event(&heads[0], 1, 0, false),
        event(&heads[0], 2, 1, false),
        event(&heads[1], 1, 0, true),
        event(&heads[2], 1, 0, true),
        event(&heads[2], 7, 3, false),
        event(&heads[3], 1, 0, false),
        event(&heads[3], 1, 0, true),
        event(&heads[4], 9, 0, true),
    ];
    let other = elsewhere.open(store, elsewhere.head(1));
    let of_other = UsageEvent { customer_id: elsewhere.customer.id, ..event(&other, 1, 0, false) };
    write(store, |tx| {
        w.insert_events(tx, &events)?;
        elsewhere.insert_events(tx, std::slice::from_ref(&of_other))
    });
    let mut expected: Vec<DocumentRef> = [0, 2, 3].into_iter().map(|n| heads[n].document_ref).collect();
    expected.sort();
    let found = || Vec::from_iter(read(store, |tx| w.rows(tx)).with_events);
    assert_eq!(found(), expected);
    // A void document keeps its events. Issued documents aren't queried.
    w.void(store, &heads[2]);
    assert_eq!(found(), expected);
    assert!(write(store, |tx| {
        w.hold(tx)?;
        tx.issue_document(heads[0].key(w.org), &w.frozen(&heads[0], cents(1)))
    }));
    expected.retain(|document| *document != heads[0].document_ref);
    assert_eq!(found(), expected);
}

pub fn books_read_together_are_as_those_read_alone(store: &dyn Store) {
    let w = world(store);
    let (second, empty) = (two_products(store, &w), w.another_contract(3));
    write(store, |tx| tx.insert_contract(w.org, &empty, None));
    let other = world(store);
    for (w, name) in [(&w, "a"), (&second, "b"), (&other, "a")] {
        let issued = w.issue(store, w.head(1), cents(100));
        let open = w.open(store, w.head(2));
        let charge = charge_of(&w.contract, name);
        let event = fixtures::event(&FreshIds, &open, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
        let event = UsageEvent { customer_id: w.customer.id, ..event };
        write(store, |tx| {
            w.hold(tx)?;
            let sum = FamilySum {
                family: issued.document_ref,
                key: SumKey::Tax(taxed("7")),
                sum: BaseAndAmount { base: 1, amount: 1 },
            };
            tx.add_family_sums(w.org, w.customer.id, &[sum])?;
            done(tx.insert_charge(w.org, &charge))?;
            w.insert_events(tx, std::slice::from_ref(&event))
        });
    }
    let keys = [&w.contract, &second.contract, &empty].map(|contract| contract.key(w.org));
    let stranger = w.contract.key(other.org);
    let wanted = [keys[2], other.contract.key(other.org), keys[1], stranger, keys[0], keys[1]];
    let together = read(store, |tx| tx.rows_of_books(&wanted));
    for key in wanted {
        let alone = read(store, |tx| tx.book_rows(key));
        assert_eq!(together.get(&key).cloned().unwrap_or_default(), alone);
        let is_empty = key == keys[2] || key == stranger;
        let counts = [alone.documents.len(), alone.lines.len(), alone.sums.len(), alone.charges.len(), alone.with_events.len()];
        assert_eq!(counts, if is_empty { [0; 5] } else { [2, 1, 1, 1, 1] });
        assert_eq!(alone.usage.iter().count(), usize::from(!is_empty));
    }
    assert_eq!(read(store, |tx| tx.rows_of_books(&[])), std::collections::BTreeMap::new());
}

pub fn contracts_and_customers_come_by_reference(store: &dyn Store) {
    let w = world(store);
    let (second, other) = (two_products(store, &w), world(store));
    let unknown = w.another_contract(9);
    let asked = [&second.contract, &unknown, &other.contract, &w.contract, &unknown].map(|contract| contract.key(w.org));
    let found = read(store, |tx| tx.agreements(&asked));
    let alone = |contract: &Contract| read(store, |tx| tx.agreement(contract.key(w.org), None)).expect("a contract");
    assert_eq!(found, [alone(&w.contract), alone(&second.contract)]);
    assert_eq!(read(store, |tx| tx.agreements(&[])), []);
}

/// Returns the sums of document families.
fn sums(store: &dyn Store, w: &World, families: &[DocumentRef]) -> Vec<FamilySum> {
    let found = read(store, |tx| w.rows(tx)).sums;
    let of = |family: &DocumentRef| {
        let sums = found.get(family).into_iter().flat_map(|sums| sums.iter());
        sums.map(|(key, sum)| FamilySum { family: *family, key: key.clone(), sum }).collect::<Vec<_>>()
    };
    families.iter().flat_map(of).collect()
}

pub fn sums_of_families_begin_at_zero_and_are_added_to(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (w.issue(store, w.head(1), cents(1)), w.issue(store, w.head(2), cents(1)));
    let (one, other) = (one.document_ref, other.document_ref);
    let rates = |discount: &str, tax: &str| DiscountAndTax { discount: percent(discount), tax: taxed(tax) };
    let of = |family, key, base, amount| FamilySum { family, key, sum: BaseAndAmount { base, amount } };
    let add = |added: &[FamilySum]| {
        write(store, |tx| {
            w.hold(tx)?;
            tx.add_family_sums(w.org, w.customer.id, added)
        });
    };
    assert_eq!(sums(store, &w, &[one, other]), []);
    let keys = [
        SumKey::Discount(ProductNo(0), rates("10.50", "7")),
        SumKey::Discount(ProductNo(0), rates("10.50", "19")),
        SumKey::Discount(ProductNo(1), rates("0", "0.00")),
        SumKey::Discount(ProductNo(1), DiscountAndTax { tax: fixtures::untaxed(), ..rates("10.50", "0") }),
        SumKey::Discount(ProductNo(1), rates("10.50", "19")),
        SumKey::Tax(taxed("0")),
        SumKey::Tax(fixtures::untaxed()),
        SumKey::Tax(taxed("19.000")),
        SumKey::Prepaid(taxed("19"), CreditGrantRef::from_uuid(w.customer.id.as_uuid())),
    ];
    let first: Vec<FamilySum> = (1..).zip(&keys).map(|(n, key)| of(one, key.clone(), 1000 * n, n)).collect();
    add(&first);
    assert_eq!(sums(store, &w, &[one, other]), first);
    // Rates are equal regardless of their notation. An entry that occurs twice in a call counts twice.
    let same = SumKey::Discount(ProductNo(0), rates("10.5", "19.0"));
    add(&[
        of(one, same.clone(), -300, -3),
        of(other, keys[7].clone(), i64::MAX, i64::MIN),
        of(one, same, -1000, -1),
        of(one, keys[5].clone(), 0, 1),
    ]);
    let mut expected = first.clone();
    expected[1].sum = BaseAndAmount { base: 700, amount: -2 };
    expected[5].sum.amount += 1;
    assert_eq!(sums(store, &w, &[one]), expected);
    assert_eq!(sums(store, &w, &[other]), [of(other, keys[7].clone(), i64::MAX, i64::MIN)]);
    undo(store, |tx| {
        w.hold(tx)?;
        tx.add_family_sums(w.org, w.customer.id, &first)
    });
    assert_eq!(sums(store, &w, &[one]), expected, "rolled back");
    add(&[]);
}

pub fn sums_of_a_family_that_is_not_there_are_corrupt(store: &dyn Store) {
    let w = world(store);
    let family = w.head(1).document_ref;
    let answer = transact_answer(store, |tx| {
        w.hold(tx)?;
        tx.add_family_sums(
            w.org,
            w.customer.id,
            &[FamilySum { family, key: SumKey::Tax(taxed("7")), sum: BaseAndAmount::default() }],
        )
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn a_draft_put_out_of_force_keeps_what_it_said(store: &dyn Store) {
    let w = two_products(store, &world(store));
    let head = w.open(store, w.head(1));
    let mut draft_content = w.draft_content(&head);
    draft_content.content = full_content(&w, head.period);
    draft_content.po_number = Some(fixtures::line("PO 1"));
    draft_content.note = Some(fixtures::prose("One\nTwo"));
    draft_content.parties.customer_legal_name = Some(fixtures::line("Acme Ltd"));
    assert!(write(store, |tx| {
        w.hold(tx)?;
        tx.void_draft(head.key(w.org), &draft_content, later(1))
    }));
    let stored = read(store, |tx| tx.document(w.org, head.document_ref)).expect("a document");
    let expected = Lifecycle::Discarded(Some(Box::new(draft_content)));
    assert_eq!(format!("{:?}", stored.lifecycle), format!("{expected:?}"));
    assert_eq!((stored.lifecycle, stored.head), (expected, head));
}

pub fn a_number_taken_twice_is_corrupt(store: &dyn Store) {
    if store.shard_count() > 0 {
        // No node of a cluster sees all numbers. `verify` reports duplicates.
        return;
    }
    let w = world(store);
    let first = w.open(store, w.head(1));
    let twin = DocumentHead { number: first.number.clone(), number_in_contract: 2, ..w.head(2) };
    let answer = transact_answer(store, |tx| {
        w.hold(tx)?;
        tx.open_document(w.org, &twin, twin.document_ref)
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(read(store, |tx| tx.document(w.org, twin.document_ref)), None);
}

pub fn a_draft_updated_to_a_taken_place_is_corrupt(store: &dyn Store) {
    let w = world(store);
    let (january, february) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let answer = transact_answer(store, |tx| {
        w.hold(tx)?;
        tx.update_draft(w.org, &DocumentHead { period: january.period, ..february.clone() }, later(1))
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(read(store, |tx| tx.document(w.org, february.document_ref)).map(|document| document.head), Some(february));
}

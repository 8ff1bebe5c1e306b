//! Changes of events: revisions, documents of the events, and recounted totals.

use billing_domain::access::Actor;
use billing_domain::document::{DocumentHead, DocumentKind, Purpose};
use billing_domain::ports::{Store, StoreError, StoreResult, Tx};
use billing_domain::refs::{ApiKeyRef, CustomerId, DocumentRef, EventRef, FormatRef, ProductNo};
use billing_domain::usage::{FormattedSource, Placement, ReportData, ReportValue, UsageEvent, UsageKey, UsageTotal, Validations};
use uuid::Uuid;

use super::documents::two_products;
use super::{World, done, later, month, read, transact_answer, undo, world, write};
use crate::FreshIds;
use crate::fixtures::{self, date, quantity};

/// The number exceeds every statement, buffer and page limit of a database.
const MANY: i64 = 2_500;

fn event(w: &World, head: &DocumentHead, seconds: i64, quantity: &str) -> UsageEvent {
    fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(seconds), fixtures::quantity(quantity))
}

fn insert(store: &dyn Store, w: &World, events: &[UsageEvent]) {
    write(store, |tx| w.insert_events(tx, events));
}

fn stored(store: &dyn Store, w: &World, event: &UsageEvent) -> UsageEvent {
    read(store, |tx| tx.event(w.org, event.event_ref)).expect("an event")
}

fn document_of(store: &dyn Store, w: &World, event: &UsageEvent) -> DocumentRef {
    stored(store, w, event).placement.document_ref
}

pub fn a_revision_takes_the_events_place_and_the_one_before_is_kept(store: &dyn Store) {
    let w = world(store);
    let (january, february) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let report = ReportData::new([("a".to_owned(), ReportValue::Number("1.50".to_owned()))]);
    let first = UsageEvent {
        report_data: Some(report),
        validations: Some(Validations { currency: Some(fixtures::eur()), entity_ref: None }),
        formatted: Some(FormattedSource {
            format_ref: FormatRef::parse("format-1").expect("a reference"),
            format_version: 7,
            raw_event: r#"{"b": 1.50}"#.to_owned(),
        }),
        recorded_at: later(1),
        revised_at: later(1),
        ..event(&w, &january, 0, "1.50")
    };
    let second = UsageEvent {
        occurred_at: later(40 * 86_400),
        service_date: date("2026-02-09"),
        quantity: quantity("2.5"),
        report_data: None,
        validations: None,
        placement: Placement { service_period: february.period, document_ref: february.document_ref, ..first.placement },
        revision: 2,
        revised_at: later(2),
        revised_by: Actor::ApiKey(ApiKeyRef::from_uuid(Uuid::now_v7())),
        ..first.clone()
    };
    let third = UsageEvent { deleted: true, revision: 3, revised_at: later(3), ..second.clone() };
    let untouched = event(&w, &january, 5, "9");
    insert(store, &w, &[first.clone(), untouched.clone()]);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref])), []);
    write(store, |tx| tx.revise_events(w.org, &[(first.clone(), second.clone())]));
    assert_eq!(stored(store, &w, &first), second);
    write(store, |tx| tx.revise_events(w.org, &[(second.clone(), third.clone())]));
    assert_eq!(stored(store, &w, &first), third);
    let kept = read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref]));
    assert_eq!(format!("{kept:?}"), format!("{:?}", [&first, &second]), "oldest first, to the last digit");
    assert_eq!(kept, [first, second]);
    assert_eq!(stored(store, &w, &untouched), untouched);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[untouched.event_ref])), []);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[EventRef::from_uuid(Uuid::now_v7())])), []);
}

pub fn revising_what_is_superseded_already_is_contended(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let first = event(&w, &head, 0, "1");
    let next = |revision, quantity: &str| UsageEvent { revision, quantity: fixtures::quantity(quantity), ..first.clone() };
    let (second, other_second) = (next(2, "2"), next(2, "3"));
    insert(store, &w, std::slice::from_ref(&first));
    write(store, |tx| tx.revise_events(w.org, &[(first.clone(), second.clone())]));
    for (superseded, revised) in [(&first, &other_second), (&next(3, "4"), &next(4, "5"))] {
        let answer = transact_answer(store, |tx| tx.revise_events(w.org, &[(superseded.clone(), revised.clone())]));
        assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
    }
    let unknown = event(&w, &head, 0, "1");
    let answer =
        transact_answer(store, |tx| tx.revise_events(w.org, &[(unknown.clone(), UsageEvent { revision: 2, ..unknown.clone() })]));
    assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
    assert_eq!(stored(store, &w, &first), second);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref])), [first]);
}

pub fn several_events_are_revised_at_once_or_none_is(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events: Vec<UsageEvent> = (0..3).map(|n| event(&w, &head, n, "1")).collect();
    insert(store, &w, &events);
    let next = |event: &UsageEvent| UsageEvent {
        quantity: fixtures::quantity("2.5"),
        report_data: None,
        revision: event.revision + 1,
        revised_at: later(7),
        ..event.clone()
    };
    let revisions: Vec<(UsageEvent, UsageEvent)> = events[..2].iter().map(|event| (event.clone(), next(event))).collect();
    write(store, |tx| tx.revise_events(w.org, &revisions));
    write(store, |tx| tx.revise_events(w.org, &[]));
    let refs: Vec<EventRef> = events.iter().rev().map(|event| event.event_ref).collect();
    let expected = vec![next(&events[0]), next(&events[1]), events[2].clone()];
    assert_eq!(read(store, |tx| tx.events_by_refs(w.org, &refs)), expected);
    assert_eq!(read(store, |tx| tx.events_of_customers(w.org, &[w.customer.id], &refs)), expected);
    assert_eq!(read(store, |tx| tx.events_of_customers(w.org, &[CustomerId::from_uuid(Uuid::now_v7())], &refs)), []);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &refs)), events[..2]);
    // One of the events already has a newer revision.
    let mixed = [(events[2].clone(), next(&events[2])), revisions[0].clone()];
    let answer = transact_answer(store, |tx| tx.revise_events(w.org, &mixed));
    assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
    assert_eq!(read(store, |tx| tx.events_by_refs(w.org, &refs)), expected);
    assert_eq!(read(store, |tx| tx.events_by_refs(w.org, &[])), []);
    assert_eq!(read(store, |tx| tx.events_by_refs(w.org, &[EventRef::from_uuid(Uuid::now_v7())])), []);
}

pub fn a_revision_rolled_back_leaves_no_trace(store: &dyn Store) {
    let w = world(store);
    let (head, other) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let first = event(&w, &head, 0, "1");
    insert(store, &w, std::slice::from_ref(&first));
    undo(store, |tx| {
        tx.revise_events(w.org, &[(first.clone(), UsageEvent { revision: 2, deleted: true, ..first.clone() })])?;
        tx.move_events(head.key(w.org), other.document_ref)?;
        assert_eq!(tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref])?.len(), 1);
        Ok(())
    });
    assert_eq!(stored(store, &w, &first), first);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref])), []);
}

pub fn all_events_of_a_document_move_and_their_revisions_stay(store: &dyn Store) {
    let w = world(store);
    let (from, to, third) = (w.open(store, w.head(1)), w.open(store, w.head(2)), w.open(store, w.head(3)));
    let elsewhere = two_products(store, &w);
    let others = elsewhere.open(store, elsewhere.head(1));
    let first = event(&w, &from, 0, "1");
    let second = UsageEvent { revision: 2, quantity: quantity("2"), ..first.clone() };
    let deleted = UsageEvent { deleted: true, ..event(&w, &from, 1, "1") };
    // The events of an adjustment belong to the period that it corrects.
    let mut of_another_period = event(&w, &from, 2, "1");
    of_another_period.placement.service_period = month(7);
    let mut of_another_product = event(&w, &from, 2, "1");
    of_another_product.placement.product_no = ProductNo(3);
    let (staying, of_others) = (event(&w, &third, 3, "1"), event(&elsewhere, &others, 4, "1"));
    let moving = [first.clone(), deleted, of_another_period, of_another_product];
    insert(store, &w, &moving);
    insert(store, &w, std::slice::from_ref(&staying));
    insert(store, &elsewhere, std::slice::from_ref(&of_others));
    write(store, |tx| tx.revise_events(w.org, &[(first.clone(), second.clone())]));
    let has_events = |head: &DocumentHead| w.has_events(store, head);
    assert!(has_events(&from) && !has_events(&to));
    write(store, |tx| tx.move_events(from.key(w.org), to.document_ref));
    for event in &moving {
        assert_eq!(document_of(store, &w, event), to.document_ref);
    }
    assert_eq!(document_of(store, &w, &staying), third.document_ref);
    assert_eq!(document_of(store, &w, &of_others), others.document_ref);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[first.event_ref])), [first]);
    assert!(!has_events(&from) && has_events(&to));
    // No events are left to move.
    write(store, |tx| tx.move_events(from.key(w.org), third.document_ref));
    assert_eq!(document_of(store, &w, &moving[0]), to.document_ref);
}

pub fn events_of_one_period_of_a_product_move_alone(store: &dyn Store) {
    let w = world(store);
    let (from, to, third) = (w.open(store, w.head(1)), w.open(store, w.head(2)), w.open(store, w.head(3)));
    let placed = |product_no: u16, n: u32, head: &DocumentHead, deleted| {
        let event = event(&w, head, 0, "1");
        let placement = Placement { product_no: ProductNo(product_no), service_period: month(n), ..event.placement };
        UsageEvent { placement, deleted, ..event }
    };
    let moving = [placed(0, 1, &from, false), placed(0, 1, &from, true)];
    let staying = [placed(1, 1, &from, false), placed(0, 2, &from, false), placed(0, 1, &third, false)];
    insert(store, &w, &moving);
    insert(store, &w, &staying);
    let start = month(1).start();
    write(store, |tx| tx.move_events_of_period(from.key(w.org), to.document_ref, ProductNo(0), start));
    for event in &moving {
        assert_eq!(document_of(store, &w, event), to.document_ref);
    }
    for event in &staying {
        assert_eq!(stored(store, &w, event), *event);
    }
}

pub fn a_document_has_events_in_any_of_its_contracts_periods(store: &dyn Store) {
    let w = world(store);
    let heads: Vec<DocumentHead> = (1..=4).map(|n| w.open(store, w.head(n))).collect();
    // Every second document has events of a later period, stored among events of other documents.
    for (n, head) in heads.iter().enumerate().filter(|(n, _)| n % 2 == 0) {
        let mut late = event(&w, head, 0, "1");
        late.placement.service_period = month(12);
        let mut deleted = UsageEvent { deleted: true, ..event(&w, &heads[n + 1], 0, "1") };
        deleted.placement.service_period = month(12);
        insert(store, &w, &[late, deleted]);
    }
    for (n, head) in heads.iter().enumerate() {
        assert_eq!(w.has_events(store, head), n % 2 == 0, "{n}");
    }
}

fn total_of(events: &[UsageEvent]) -> UsageTotal {
    let plus = |total: UsageTotal, event: &UsageEvent| total.plus(event.counted());
    events.iter().try_fold(UsageTotal::ZERO, plus).expect("in range")
}

/// Creates the events of one total, and for each part of its key an event that doesn't count in it.
fn counted_and_not(store: &dyn Store, w: &World) -> (UsageKey, Vec<UsageEvent>) {
    let (head, other_head) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let zeta = fixtures::usage_product("Zeta");
    write(store, |tx| done(tx.insert_usage_product(w.org, &zeta)));
    // The events belong to several documents and are unordered.
    let mut counted: Vec<UsageEvent> = (0..9).map(|n| event(w, &head, (n * 7) % 9, &format!("{n}.50"))).collect();
    for event in counted.iter_mut().step_by(3) {
        event.placement.document_ref = other_head.document_ref;
    }
    let deleted = UsageEvent { deleted: true, ..event(w, &head, 99, "100") };
    let mut of_another_product = event(w, &head, 1, "1");
    of_another_product.placement.product_no = ProductNo(1);
    let mut of_another_period = event(w, &head, 1, "1");
    of_another_period.placement.service_period = month(2);
    let of_another_usage = UsageEvent { usage_product_ref: zeta.usage_product_ref.clone(), ..event(w, &head, 1, "1") };
    insert(store, w, &counted);
    insert(store, w, &[deleted, of_another_product, of_another_period, of_another_usage]);
    (counted[0].period_key(), counted)
}

/// Returns the total of all line items, counted again.
fn recounted(tx: &mut dyn Tx, w: &World, key: &UsageKey, except: Option<EventRef>) -> StoreResult<UsageTotal> {
    let counted = tx.recount_usage(w.org, &w.contract, key, except)?;
    assert_eq!(counted.uncounted, None);
    Ok(counted.total(key))
}

pub fn a_total_is_counted_again_from_events_that_are_not_deleted(store: &dyn Store) {
    let w = world(store);
    let (key, counted) = counted_and_not(store, &w);
    let recount = |except| read(store, |tx| recounted(tx, &w, &key, except));
    assert_eq!(format!("{:?}", recount(None)), format!("{:?}", total_of(&counted)));
    for left_out in [0, 4, 8] {
        let rest: Vec<UsageEvent> =
            counted.iter().enumerate().filter(|(n, _)| *n != left_out).map(|(_, event)| event.clone()).collect();
        assert_eq!(recount(Some(counted[left_out].event_ref)), total_of(&rest));
    }
    assert_eq!(recount(Some(EventRef::from_uuid(Uuid::now_v7()))), total_of(&counted));
    let never_used = UsageKey { period_start: date("2026-12-01"), ..key };
    assert_eq!(read(store, |tx| recounted(tx, &w, &never_used, None)), UsageTotal::ZERO);
}

pub fn a_total_of_many_events_is_counted_again(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events: Vec<UsageEvent> = (0..MANY).map(|n| event(&w, &head, n, &n.to_string())).collect();
    insert(store, &w, &events);
    let key = events[0].period_key();
    assert_eq!(read(store, |tx| recounted(tx, &w, &key, None)), total_of(&events));
    // The transaction remains usable after a long read.
    let (total, again) = write(store, |tx| {
        let total = recounted(tx, &w, &key, Some(events[0].event_ref))?;
        Ok((total, recounted(tx, &w, &key, None)?))
    });
    assert_eq!((total.events, again.events), (MANY.unsigned_abs() - 1, MANY.unsigned_abs()));
}

pub fn an_adjustment_has_events_of_the_period_it_corrects(store: &dyn Store) {
    let w = world(store);
    let invoice = w.open(store, w.head(1));
    let adjustment = DocumentHead {
        purpose: Purpose::Adjustment,
        kind: DocumentKind::Debit,
        number: billing_domain::document::numbering::DocumentNumber { kind: DocumentKind::Debit, ..w.head(1).number },
        parent: Some(invoice.document_ref),
        ..w.head(2)
    };
    let adjustment = w.open(store, adjustment);
    let mut late = event(&w, &adjustment, 0, "1");
    late.placement.service_period = month(1);
    insert(store, &w, std::slice::from_ref(&late));
    assert!(w.has_events(store, &adjustment));
}

//! Queries of usage: lists, sums and reports.

use billing_domain::page::{Direction, Page};
use std::ops::ControlFlow;

use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentHead, DocumentKind, Purpose};
use billing_domain::ports::{BilledDocumentKey, EventFilter, EventScope, EventSortKey, Lock, Store};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, EventRef, OrganizationId, UsageProductRef};
use billing_domain::report::ReportedEvent;
use billing_domain::summary::MeteredEvent;
use billing_domain::usage::{Placement, ReportData, ReportValue, UsageEvent};
use uuid::Uuid;

use super::{World, all, done, later, page, read, reads_backward, refs_of, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, quantity};

/// The number exceeds every statement, buffer and page limit of a database.
const MANY: i64 = 2_500;

fn event(w: &World, head: &DocumentHead, seconds: i64, quantity: &str) -> UsageEvent {
    fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(seconds), fixtures::quantity(quantity))
}

fn insert(store: &dyn Store, w: &World, events: &[UsageEvent]) {
    write(store, |tx| tx.insert_events(w.org, events));
}

fn revise(store: &dyn Store, w: &World, before: &UsageEvent, change: impl FnOnce(&mut UsageEvent)) -> UsageEvent {
    let mut after = UsageEvent { revision: before.revision + 1, ..before.clone() };
    change(&mut after);
    write(store, |tx| tx.revise_events(w.org, &[(before.clone(), after.clone())]));
    after
}

fn report(entries: &[(&str, &str)]) -> Option<ReportData> {
    let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), ReportValue::Number((*value).to_owned())));
    Some(ReportData::new(entries))
}

fn refs(events: &[UsageEvent]) -> Vec<EventRef> {
    events.iter().map(|event| event.event_ref).collect()
}

fn listed(store: &dyn Store, w: &World, filter: &EventFilter) -> Vec<EventRef> {
    let found = read(store, |tx| tx.events(w.org, filter, EventSortKey::Timestamp, all()));
    assert_eq!(read(store, |tx| tx.count_events(w.org, filter)), found.len() as u64);
    refs(&found)
}

fn metered(store: &dyn Store, organization: OrganizationId, filter: &EventFilter) -> Vec<MeteredEvent> {
    let mut visited = Vec::new();
    read(store, |tx| {
        visited.clear();
        tx.visit_metered(organization, filter, false, &mut |metered| {
            visited.push(metered);
            ControlFlow::Continue(())
        })
    });
    visited
}

fn data(store: &dyn Store, organization: OrganizationId, scope: &EventScope) -> Vec<ReportData> {
    let mut visited = Vec::new();
    read(store, |tx| {
        visited.clear();
        tx.visit_report_data(organization, scope, &mut |data| {
            visited.push(data);
            ControlFlow::Continue(())
        })
    });
    visited
}

fn reported(store: &dyn Store, organization: OrganizationId, scope: &EventScope) -> Vec<ReportedEvent> {
    let mut visited = Vec::new();
    read(store, |tx| {
        visited.clear();
        tx.visit_reported(organization, scope, &mut |event| {
            visited.push(event);
            ControlFlow::Continue(())
        })
    });
    visited
}

fn everything() -> EventScope {
    EventScope::Now(EventFilter::default())
}

fn billed(head: &DocumentHead) -> EventScope {
    let DocumentHead { customer_id, contract_ref, document_ref, .. } = *head;
    EventScope::Billed(BilledDocumentKey { customer_id, contract_ref, document_ref })
}

pub fn events_come_by_timestamp_then_reference_in_pages(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    // The events are stored out of order. Two have the same timestamp.
    let events = [5, 1, 3, 3, 2].map(|seconds| event(&w, &head, seconds, "1"));
    insert(store, &w, &events);
    let mut expected = events.to_vec();
    expected.sort_by_key(|event| (event.occurred_at, event.event_ref));
    for (size, number, of_page) in [(2, 0, &expected[..2]), (2, 2, &expected[4..]), (5, 0, &expected[..]), (2, 3, &[])] {
        let found = read(store, |tx| tx.events(w.org, &EventFilter::default(), EventSortKey::Timestamp, page(size, number)));
        assert_eq!(found, of_page, "{size} {number}");
    }
    let mut as_reported = events.to_vec();
    as_reported.sort_by_key(|event| event.event_ref);
    let of_one = EventFilter { customer_id: Some(w.customer.id), ..EventFilter::default() };
    for filter in [EventFilter::default(), of_one] {
        let found = |page| read(store, |tx| tx.events(w.org, &filter, EventSortKey::Created, page));
        assert_eq!(found(all()), as_reported);
        assert_eq!(found(page(2, 1)), as_reported[2..4]);
        for by in [EventSortKey::Timestamp, EventSortKey::Created] {
            reads_backward(|page| {
                read(store, |tx| {
                    let items = tx.events(w.org, &filter, by, page)?;
                    Ok(Page { items, total: tx.count_events(w.org, &filter)? })
                })
            });
        }
    }
}

pub fn a_document_bills_each_event_once_as_it_was_when_it_was_issued(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let untouched = event(&w, &head, 1, "1");
    let before = UsageEvent { report_data: report(&[("a", "1")]), ..event(&w, &head, 2, "2") };
    insert(store, &w, &[untouched.clone(), before.clone()]);
    // The document is still a draft, so it bills no events yet.
    let issued_with = revise(store, &w, &before, |event| event.report_data = report(&[("a", "2")]));
    let issued = w.frozen(&head, cents(300));
    assert!(write(store, |tx| {
        tx.lock_contract(head.contract_key(w.org), Lock::Exclusive)?;
        tx.issue_document(head.key(w.org), &issued)
    }));
    // Changes that don't affect the total stay on the document.
    let data = revise(store, &w, &issued_with, |event| event.report_data = report(&[("a", "3")]));
    let time = revise(store, &w, &data, |event| event.occurred_at = later(9));
    revise(store, &w, &time, |event| event.quantity = quantity("3"));
    let mut found = Vec::new();
    read(store, |tx| {
        found.clear();
        tx.visit_reported(w.org, &billed(&head), &mut |event| {
            found.push((event.event_ref, event.occurred_at, event.quantity, event.report_data));
            ControlFlow::Continue(())
        })
    });
    let shown = |event: &UsageEvent| (event.event_ref, event.occurred_at, event.quantity, event.report_data.clone());
    assert_eq!(found, [shown(&untouched), shown(&issued_with)]);
}

pub fn each_field_of_a_filter_narrows_the_events(store: &dyn Store) {
    let w = world(store);
    let (january, february) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let other_product = fixtures::usage_product("bytes");
    let (other_customer, other_contract) = (fixtures::customer(&FreshIds, "globex"), w.another_contract(2));
    let terms = fixtures::agreed(&w.pricing, "2026-01-01", "2026-12-31");
    let their_contract = fixtures::contract(&FreshIds, &other_customer, vec![terms]);
    let their_contract = billing_domain::contract::Contract { number: 3, ..their_contract };
    write(store, |tx| {
        done(tx.insert_usage_product(w.org, &other_product))?;
        done(tx.insert_customer(w.org, &other_customer))?;
        tx.insert_contract(w.org, &other_contract, None)?;
        tx.insert_contract(w.org, &their_contract, None)
    });
    let month = january.period;
    let of_contract = w.open(store, fixtures::document_head(&FreshIds, &other_contract, &w.entity, month));
    let theirs = w.open(store, fixtures::document_head(&FreshIds, &their_contract, &w.entity, month));
    let usual = event(&w, &january, 0, "1");
    let later_on = event(&w, &february, 10, "1");
    let bytes = UsageEvent { usage_product_ref: other_product.usage_product_ref.clone(), ..event(&w, &january, 20, "1") };
    let elsewhere = event(&w, &of_contract, 30, "1");
    let foreign = event(&w, &theirs, 40, "1");
    let events = [usual, later_on, bytes, elsewhere, foreign];
    insert(store, &w, &events);
    let of = |wanted: &[usize]| wanted.iter().map(|i| events[*i].event_ref).collect::<Vec<_>>();
    let none = EventFilter::default();
    let rows = [
        (none.clone(), of(&[0, 1, 2, 3, 4])),
        (EventFilter { customer_id: Some(other_customer.id), ..none.clone() }, of(&[4])),
        (EventFilter { usage_product_ref: Some(other_product.usage_product_ref.clone()), ..none.clone() }, of(&[2])),
        (EventFilter { document_ref: Some(january.document_ref), ..none.clone() }, of(&[0, 2])),
        (EventFilter { contract_ref: Some(w.contract.contract_ref), ..none.clone() }, of(&[0, 1, 2])),
        (EventFilter { from: Some(later(10)), ..none.clone() }, of(&[1, 2, 3, 4])),
        (EventFilter { to: Some(later(10)), ..none.clone() }, of(&[0])),
        (
            EventFilter { from: Some(later(10)), to: Some(later(40)), customer_id: Some(w.customer.id), ..none.clone() },
            of(&[1, 2, 3]),
        ),
        (EventFilter { from: Some(later(40)), to: Some(later(10)), ..none.clone() }, of(&[])),
        (EventFilter { customer_id: Some(CustomerId::from_uuid(Uuid::now_v7())), ..none.clone() }, of(&[])),
        (EventFilter { document_ref: Some(DocumentRef::from_uuid(Uuid::now_v7())), ..none.clone() }, of(&[])),
        (EventFilter { contract_ref: Some(ContractRef::from_uuid(Uuid::now_v7())), ..none }, of(&[])),
    ];
    for (filter, expected) in rows {
        assert_eq!(listed(store, &w, &filter), expected, "{filter:?}");
        assert_eq!(metered(store, w.org, &filter).len(), expected.len(), "{filter:?}");
        let report = reported(store, w.org, &EventScope::Now(filter.clone()));
        assert_eq!(report.iter().map(|event| event.event_ref).collect::<Vec<_>>(), expected, "{filter:?}");
    }
}

pub fn labels_narrow_the_events_by_their_values_as_sent(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let labels: [&[(&str, ReportValue)]; 5] = [
        &[("model", ReportValue::Text("a\"b".to_owned())), ("kind", ReportValue::Text("input".to_owned()))],
        &[("model", ReportValue::Number("1.50".to_owned()))],
        &[("model", ReportValue::Bool(true))],
        // A text that looks like the label.
        &[("note", ReportValue::Text("[\"model\",{\"text\":\"x\"}]".to_owned())), ("model", ReportValue::Null)],
        &[],
    ];
    let events: Vec<UsageEvent> = labels
        .iter()
        .zip(0..)
        .map(|(labels, minute)| {
            let entries = labels.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
            UsageEvent { report_data: Some(ReportData::new(entries)), ..event(&w, &head, minute, "1") }
        })
        .collect();
    insert(store, &w, &events);
    let of = |wanted: &[usize]| wanted.iter().map(|i| events[*i].event_ref).collect::<Vec<_>>();
    type LabelValues<'a> = &'a [(&'a str, &'a [&'a str])];
    let rows: [(LabelValues<'_>, Vec<EventRef>); 8] = [
        (&[("model", &["a\"b"])], of(&[0])),
        (&[("model", &["a\"b", "true", "1.50"])], of(&[0, 1, 2])),
        (&[("model", &["1.5"])], of(&[])),
        (&[("model", &["x"])], of(&[])),
        (&[("model", &["a\"b"]), ("kind", &["input"])], of(&[0])),
        (&[("model", &["a\"b"]), ("kind", &["output"])], of(&[])),
        (&[("kind", &["INPUT"])], of(&[])),
        (&[("kin", &["input"])], of(&[])),
    ];
    for (wanted, expected) in rows {
        let owned = |(key, values): &(&str, &[&str])| ((*key).to_owned(), values.iter().map(|it| (*it).to_owned()).collect());
        let filter = EventFilter {
            customer_id: Some(w.customer.id),
            labels: wanted.iter().map(owned).collect(),
            ..EventFilter::default()
        };
        assert_eq!(listed(store, &w, &filter), expected, "{wanted:?}");
        assert_eq!(metered(store, w.org, &filter).len(), expected.len(), "{wanted:?}");
        assert_eq!(reported(store, w.org, &EventScope::Now(filter)).len(), expected.len(), "{wanted:?}");
    }
}

pub fn deleted_events_pass_no_filter(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let gone = UsageEvent { deleted: true, report_data: report(&[("a", "1")]), ..event(&w, &head, 0, "1") };
    insert(store, &w, &[gone, event(&w, &head, 1, "2")]);
    assert_eq!(listed(store, &w, &EventFilter::default()).len(), 1);
    assert_eq!(metered(store, w.org, &EventFilter::default())[0].quantity, quantity("2"));
    for scope in [everything(), billed(&head)] {
        assert_eq!(reported(store, w.org, &scope).len(), 1);
        assert_eq!(data(store, w.org, &scope), []);
    }
}

pub fn what_counts_is_visited_until_the_visitor_has_enough(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events = [event(&w, &head, 0, "0.1"), event(&w, &head, 1, "12345678901234.000001"), event(&w, &head, 2, "3")];
    insert(store, &w, &events);
    let mut found = metered(store, w.org, &EventFilter::default());
    found.sort_by_key(|metered| metered.occurred_at);
    let expected = events.map(|event| MeteredEvent {
        customer_id: w.customer.id,
        usage_product_ref: event.usage_product_ref,
        event_ref: event.event_ref,
        occurred_at: event.occurred_at,
        quantity: event.quantity,
        unique_digest: None,
    });
    assert_eq!(found, expected);
    let mut visited = 0;
    read(store, |tx| {
        visited = 0;
        tx.visit_metered(w.org, &EventFilter::default(), true, &mut |_| {
            visited += 1;
            if visited == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        // The transaction is still usable.
        assert_eq!(tx.count_events(w.org, &EventFilter::default())?, 3);
        Ok(())
    });
    assert_eq!(visited, 2);
}

pub fn report_data_is_visited_where_there_is_any(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let with = |seconds, entries: &[(&str, &str)]| UsageEvent { report_data: report(entries), ..event(&w, &head, seconds, "1") };
    let events = [with(0, &[("b", "1.50"), ("a", "2")]), event(&w, &head, 1, "1"), with(2, &[("c", "-0")])];
    insert(store, &w, &events);
    for scope in [everything(), billed(&head)] {
        let mut found = data(store, w.org, &scope);
        found.sort_by_key(|data| data.entries().len());
        assert_eq!(found, [report(&[("c", "-0")]).expect("data"), report(&[("b", "1.50"), ("a", "2")]).expect("data")]);
        let mut visited = 0;
        read(store, |tx| {
            visited = 0;
            tx.visit_report_data(w.org, &scope, &mut |_| {
                visited += 1;
                ControlFlow::Break(())
            })
        });
        assert_eq!(visited, 1);
    }
}

pub fn reported_events_come_in_order_with_names_and_numbers(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events = [3, 1, 2, 2].map(|seconds| event(&w, &head, seconds, "1.50"));
    let events = events.map(|event| UsageEvent { report_data: report(&[("z", "1.50"), ("a", "1e400")]), ..event });
    insert(store, &w, &events);
    let mut expected = events.to_vec();
    expected.sort_by_key(|event| (event.occurred_at, event.event_ref));
    for scope in [everything(), billed(&head)] {
        let found = reported(store, w.org, &scope);
        assert_eq!(found.len(), expected.len());
        for (found, event) in found.iter().zip(&expected) {
            assert_eq!((found.event_ref, found.occurred_at), (event.event_ref, event.occurred_at));
            assert_eq!((&found.customer_ref, &found.customer_name), (&w.customer.customer_ref, &w.customer.profile.name));
            assert_eq!(found.usage_product_ref, w.product.usage_product_ref);
            assert_eq!(found.usage_product_name, w.product.profile.name);
            assert_eq!(found.quantity.as_decimal().to_string(), "1.50");
            assert_eq!(found.document_numbers.as_slice(), std::slice::from_ref(&head.number));
            assert_eq!(found.report_data, event.report_data);
        }
        let mut visited = Vec::new();
        read(store, |tx| {
            visited.clear();
            tx.visit_reported(w.org, &scope, &mut |event| {
                visited.push(event.event_ref);
                if visited.len() == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            })?;
            assert_eq!(tx.count_events(w.org, &EventFilter::default())?, 4);
            Ok(())
        });
        assert_eq!(visited, refs(&expected[..2]));
    }
}

pub fn many_events_are_visited_one_by_one(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events: Vec<UsageEvent> = (0..MANY).map(|n| event(&w, &head, (n * 7919) % MANY, &n.to_string())).collect();
    insert(store, &w, &events);
    let mut expected = events.clone();
    expected.sort_by_key(|event| (event.occurred_at, event.event_ref));
    let found = reported(store, w.org, &everything());
    assert_eq!(found.iter().map(|event| event.event_ref).collect::<Vec<_>>(), refs(&expected));
    assert_eq!(metered(store, w.org, &EventFilter::default()).len(), expected.len());
    let last = read(store, |tx| tx.events(w.org, &EventFilter::default(), EventSortKey::Timestamp, page(1000, 2)));
    assert_eq!(last, expected[2000..]);
    assert_eq!(read(store, |tx| tx.count_events(w.org, &EventFilter::default())), 2_500);
    // The only event of its product is far from both ends of the list.
    let rare = UsageProductRef::parse("rare").expect("a reference");
    let of_rare = fixtures::event(&FreshIds, &head, &rare, later(MANY / 2), quantity("1"));
    insert(store, &w, std::slice::from_ref(&of_rare));
    let all_of_rare = EventFilter { usage_product_ref: Some(rare), ..EventFilter::default() };
    for direction in [Direction::Forward, Direction::Backward] {
        for filter in [
            all_of_rare.clone(),
            EventFilter { from: Some(later(1)), ..all_of_rare.clone() },
            EventFilter { from: Some(later(MANY / 2)), to: Some(later(MANY / 2 + 1)), ..all_of_rare.clone() },
        ] {
            let first = page(1, 0).in_direction(direction);
            let found = read(store, |tx| tx.events(w.org, &filter, EventSortKey::Timestamp, first));
            assert_eq!(found, std::slice::from_ref(&of_rare), "{filter:?}");
            assert_eq!(read(store, |tx| tx.count_events(w.org, &filter)), 1);
            let second = page(1, 1).in_direction(direction);
            assert_eq!(read(store, |tx| tx.events(w.org, &filter, EventSortKey::Timestamp, second)), []);
        }
    }
    // A range of time with many events, and one whose page is not full.
    let range = EventFilter { from: Some(later(100)), to: Some(later(2_300)), ..EventFilter::default() };
    let mut of_range: Vec<UsageEvent> = expected[100..2_300].to_vec();
    of_range.push(of_rare);
    of_range.sort_by_key(|event| (event.occurred_at, event.event_ref));
    for (number, of_page) in [(0, &of_range[..1000]), (2, &of_range[2000..])] {
        let found = read(store, |tx| tx.events(w.org, &range, EventSortKey::Timestamp, page(1000, number)));
        assert_eq!(found, of_page, "{number}");
    }
    assert_eq!(read(store, |tx| tx.count_events(w.org, &range)), 2_201);
}

/// Stores the draft adjustment of an invoice.
fn adjustment(store: &dyn Store, w: &World, parent: &DocumentHead, kind: DocumentKind) -> DocumentHead {
    let head = w.head(1);
    let number = DocumentNumber { kind, ..head.number };
    let head = DocumentHead { kind, purpose: Purpose::Adjustment, parent: Some(parent.document_ref), number, ..head };
    w.open(store, DocumentHead { period: parent.period, ..head })
}

fn put_on(event: &mut UsageEvent, document: &DocumentHead) {
    let placement = Placement { document_ref: document.document_ref, ..event.placement };
    event.placement = Placement { service_period: document.period, ..placement };
}

pub fn an_event_names_every_document_of_its_period_that_carries_it(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let february = w.open(store, w.head(2));
    let (debit, credit) =
        (adjustment(store, &w, &invoice, DocumentKind::Debit), adjustment(store, &w, &invoice, DocumentKind::Credit));
    let (moved, plain) = (event(&w, &february, 1, "1"), event(&w, &invoice, 2, "1"));
    let first = event(&w, &invoice, 0, "1");
    insert(store, &w, &[first.clone(), moved.clone(), plain.clone()]);
    let second = revise(store, &w, &first, |event| put_on(event, &debit));
    let third = revise(store, &w, &second, |event| put_on(event, &credit));
    let fourth = revise(store, &w, &third, |event| put_on(event, &debit));
    // The current period's documents don't include the document of another period.
    revise(store, &w, &moved, |event| put_on(event, &invoice));
    let numbers = |store| {
        let found = reported(store, w.org, &everything());
        found.iter().map(|event| event.document_numbers.as_slice().to_vec()).collect::<Vec<_>>()
    };
    let of = |heads: &[&DocumentHead]| heads.iter().map(|head| head.number.clone()).collect::<Vec<_>>();
    assert_eq!(numbers(store), [of(&[&invoice, &credit, &debit]), of(&[&invoice]), of(&[&invoice])]);
    // Void documents aren't listed, because other documents replace them.
    w.void(store, &credit);
    assert_eq!(numbers(store)[0], of(&[&invoice, &debit]));
    let kept = read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[fourth.event_ref]));
    assert_eq!(kept, [first, second, third]);
}

pub fn a_document_bills_events_as_they_were_when_it_was_issued(store: &dyn Store) {
    let w = world(store);
    let (january, february) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let [kept, edited_before, edited_after, deleted_before, deleted_after, moved_before, moved_after] =
        [0, 1, 2, 3, 4, 5, 6].map(|seconds| event(&w, &january, seconds, "1"));
    let events = [&kept, &edited_before, &edited_after, &deleted_before, &deleted_after, &moved_before, &moved_after];
    insert(store, &w, &events.map(Clone::clone));
    let two = quantity("2");
    revise(store, &w, &edited_before, |event| event.quantity = two);
    revise(store, &w, &deleted_before, |event| event.deleted = true);
    revise(store, &w, &moved_before, |event| put_on(event, &february));
    let bills = |head: &DocumentHead| {
        let found = reported(store, w.org, &billed(head));
        found.iter().map(|event| (event.event_ref, event.quantity.as_decimal().to_string())).collect::<Vec<_>>()
    };
    let of = |rows: &[(&UsageEvent, &str)]| rows.iter().map(|(e, q)| (e.event_ref, (*q).to_owned())).collect::<Vec<_>>();
    let as_issued = of(&[(&kept, "1"), (&edited_before, "2"), (&edited_after, "1"), (&deleted_after, "1"), (&moved_after, "1")]);
    assert_eq!(bills(&january), as_issued, "a draft bills what there is");
    let issued = w.frozen(&january, cents(600));
    assert!(write(store, |tx| {
        tx.lock_contract(january.contract_key(w.org), billing_domain::ports::Lock::Exclusive)?;
        tx.issue_document(january.key(w.org), &issued)
    }));
    let debit = adjustment(store, &w, &january, DocumentKind::Debit);
    let three = quantity("3");
    let second = revise(store, &w, &edited_after, |event| {
        put_on(event, &debit);
        event.quantity = three;
    });
    revise(store, &w, &second, |event| event.quantity = quantity("4"));
    revise(store, &w, &deleted_after, |event| {
        put_on(event, &debit);
        event.deleted = true;
    });
    revise(store, &w, &moved_after, |event| put_on(event, &february));
    assert_eq!(bills(&january), as_issued, "an issued document's events are those of its issue");
    assert_eq!(bills(&debit), of(&[(&edited_after, "4")]));
    assert_eq!(bills(&february), of(&[(&moved_before, "1"), (&moved_after, "1")]));
    let numbers = reported(store, w.org, &billed(&january));
    assert!(numbers.iter().all(|event| event.document_numbers.as_slice() == std::slice::from_ref(&january.number)));
}

pub fn superseded_revisions_of_events_come_by_event(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (one, other, untouched) = (event(&w, &head, 0, "1"), event(&w, &head, 1, "1"), event(&w, &head, 2, "1"));
    insert(store, &w, &[one.clone(), other.clone(), untouched.clone()]);
    let second = revise(store, &w, &one, |event| event.quantity = quantity("2"));
    revise(store, &w, &other, |event| event.quantity = quantity("2"));
    revise(store, &w, &second, |event| event.quantity = quantity("3"));
    let asked = [other.event_ref, untouched.event_ref, one.event_ref, EventRef::from_uuid(Uuid::now_v7())];
    let mut expected = vec![one, second, other];
    expected.sort_by_key(|event| (event.event_ref, event.revision));
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &asked)), expected);
    assert_eq!(read(store, |tx| tx.superseded_revisions(w.org, &[w.customer.id], &[])), []);
}

pub fn documents_by_references_leave_out_what_is_not_there(store: &dyn Store) {
    let w = world(store);
    let (issued, draft) = (w.issue(store, w.head(1), cents(100)), w.open(store, w.head(2)));
    let unknown = DocumentRef::from_uuid(Uuid::now_v7());
    let asked = [draft.document_ref, unknown, issued.document_ref];
    let mut found = read(store, |tx| tx.documents_by_refs(w.org, &[w.customer.id], &asked));
    found.sort_by_key(|document| document.head.period.start());
    assert_eq!(refs_of(&found), [issued.document_ref, draft.document_ref]);
    for document in found {
        assert_eq!(read(store, |tx| tx.document(w.org, document.head.document_ref)), Some(document));
    }
    assert_eq!(read(store, |tx| tx.documents_by_refs(w.org, &[w.customer.id], &[])), []);
}

pub fn another_organization_reads_no_usage(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head = w.issue(store, w.head(1), cents(100));
    let debit = adjustment(store, &w, &head, DocumentKind::Debit);
    let first = UsageEvent { report_data: report(&[("a", "1")]), ..event(&w, &head, 0, "1") };
    insert(store, &w, std::slice::from_ref(&first));
    revise(store, &w, &first, |event| put_on(event, &debit));
    let own = EventFilter::default();
    let theirs = EventFilter {
        customer_id: Some(w.customer.id),
        contract_ref: Some(w.contract.contract_ref),
        document_ref: Some(debit.document_ref),
        ..EventFilter::default()
    };
    for filter in [own, theirs] {
        assert_eq!(listed(store, &stranger, &filter), []);
        assert_eq!(metered(store, stranger.org, &filter), []);
        assert_eq!(reported(store, stranger.org, &EventScope::Now(filter)), []);
    }
    for scope in [billed(&head), billed(&debit)] {
        assert_eq!(data(store, w.org, &scope).len(), 1);
        assert_eq!(data(store, stranger.org, &scope), []);
        assert_eq!(reported(store, stranger.org, &scope), []);
    }
    assert_eq!(read(store, |tx| tx.documents_by_refs(stranger.org, &[w.customer.id], &[head.document_ref])), []);
}

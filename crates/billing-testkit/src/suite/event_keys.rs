//! Idempotency keys of events.

use std::collections::BTreeMap;
use std::sync::mpsc;
use std::time::Duration;

use billing_domain::document::DocumentHead;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::ports::{Access, RollBack, Store, StoreError, Tx, transact};
use billing_domain::refs::CustomerId;
use billing_domain::usage::{AnswerForm, EventKeyRecord, FactsDigest, NewEventKeyRecord, Placement, UsageEvent};

use super::{World, done, keep_events, kept_events, later, read, world, write};
use crate::{FreshIds, fixtures};

/// The time limit for a duplicate that waits for the first request.
const PATIENCE: Duration = Duration::from_secs(10);

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect(text)
}

fn event(w: &World, head: &DocumentHead) -> UsageEvent {
    fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(1), fixtures::quantity("2"))
}

fn kept(event: &UsageEvent, text: &str) -> EventKeyRecord {
    let facts = FactsDigest(std::array::from_fn(|i| u8::try_from(i * 7).expect("a byte")));
    let answer = format!("{{\"event_ref\":\"{}\"}}\n ✓", event.event_ref);
    EventKeyRecord { key: key(text), facts, event_ref: event.event_ref, answer, form: AnswerForm::Event }
}

fn taken(kept: &EventKeyRecord, head: &DocumentHead) -> NewEventKeyRecord {
    NewEventKeyRecord { kept: kept.clone(), document_ref: head.document_ref, document_number: head.number.clone() }
}

fn keep(tx: &mut dyn Tx, w: &World, event: &UsageEvent, taken: &NewEventKeyRecord) -> Result<(), StoreError> {
    tx.insert_events(w.org, std::slice::from_ref(event))?;
    keep_events(tx, w.org, w.customer.id, std::slice::from_ref(taken))
}

pub fn kept_keys_come_back_to_the_byte_by_their_keys(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events = [event(&w, &head), event(&w, &head), event(&w, &head)];
    let (a, b, c) = (kept(&events[0], "a b'\"c"), kept(&events[1], "B-é"), kept(&events[2], "c"));
    write(store, |tx| {
        assert_eq!(kept_events(tx, w.org, w.customer.id, std::slice::from_ref(&a.key))?, []);
        tx.insert_events(w.org, &events)?;
        keep_events(tx, w.org, w.customer.id, &[&c, &a, &b].map(|kept| taken(kept, &head)))
    });
    let asked = [key("c"), key("unknown"), key("B-é"), a.key.clone(), key("C")];
    let of_customer = asked.clone().map(|key| (w.customer.id, key));
    let bodies = read(store, |tx| tx.delivered_facts(w.org, &of_customer));
    assert_eq!(bodies, BTreeMap::from([&a, &b, &c].map(|kept| ((w.customer.id, kept.key.clone()), kept.facts))));
    assert_eq!(read(store, |tx| kept_events(tx, w.org, w.customer.id, &asked)), [b, a, c]);
    assert_eq!(read(store, |tx| kept_events(tx, w.org, w.customer.id, &[])), []);
}

pub fn a_delivery_replaces_facts_and_response_of_a_key_if_nobody_else_did(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events = [event(&w, &head), event(&w, &head)];
    let (first, other) = (kept(&events[0], "k"), kept(&events[1], "other"));
    write(store, |tx| {
        tx.insert_events(w.org, &events)?;
        keep_events(tx, w.org, w.customer.id, &[&first, &other].map(|kept| taken(kept, &head)))
    });
    let later = EventKeyRecord { facts: FactsDigest([9; 16]), answer: "{\"later\":1}".to_owned(), ..first.clone() };
    let deliver = |before: FactsDigest, kept: &EventKeyRecord| {
        let delivered = [(w.customer.id, before, kept.clone())];
        transact(store, Access::Write, |tx| tx.update_event_keys(w.org, &delivered))
    };
    deliver(first.facts, &later).expect("a delivery");
    let seen = || read(store, |tx| kept_events(tx, w.org, w.customer.id, &[key("k"), key("other")]));
    assert_eq!(seen(), [later.clone(), other.clone()]);
    // Another delivery was faster.
    let stale = EventKeyRecord { facts: FactsDigest([8; 16]), ..later.clone() };
    assert!(matches!(deliver(first.facts, &stale), Err(StoreError::Contended)));
    assert_eq!(seen(), [later, other]);
}

pub fn a_key_belongs_to_one_customer_of_one_organization(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head = w.open(store, w.head(1));
    let event = event(&w, &head);
    let kept = kept(&event, "k");
    let other = fixtures::customer(&FreshIds, "other");
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        keep(tx, &w, &event, &taken(&kept, &head))
    });
    let seen = |organization, customer: CustomerId| read(store, |tx| kept_events(tx, organization, customer, &[key("k")]));
    assert_eq!(seen(w.org, w.customer.id), [kept]);
    assert_eq!(seen(w.org, other.id), []);
    assert_eq!(seen(stranger.org, w.customer.id), []);
    assert_eq!(seen(stranger.org, stranger.customer.id), []);
    let bodies =
        |organization, customer: CustomerId| read(store, |tx| tx.delivered_facts(organization, &[(customer, key("k"))])).len();
    assert_eq!([bodies(w.org, w.customer.id), bodies(w.org, other.id), bodies(stranger.org, w.customer.id)], [1, 0, 0]);
}

pub fn a_key_outlives_its_event(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let event = event(&w, &head);
    let kept = kept(&event, "k");
    write(store, |tx| keep(tx, &w, &event, &taken(&kept, &head)));
    write(store, |tx| tx.revise_events(w.org, &[(event.clone(), UsageEvent { revision: 2, deleted: true, ..event.clone() })]));
    assert_eq!(read(store, |tx| kept_events(tx, w.org, w.customer.id, &[key("k")])), [kept]);
}

/// Creates the record of a typical response, which contains only the references and number of the event's document.
fn kept_of_place(event: &UsageEvent, head: &DocumentHead, text: &str) -> EventKeyRecord {
    let (event_ref, document_ref, number) = (event.event_ref, head.document_ref, &head.number);
    let answer = format!(
        "{{\"event_ref\":\"{event_ref}\",\"related_document_ref\":\"{document_ref}\",\"related_document_numbers\":\"{number}\"}}"
    );
    EventKeyRecord { answer, form: AnswerForm::Place, ..kept(event, text) }
}

pub fn an_answer_stays_the_same_wherever_its_event_goes(store: &dyn Store) {
    let w = world(store);
    let (first, second, third) = (w.open(store, w.head(1)), w.open(store, w.head(2)), w.open(store, w.head(3)));
    let events = [event(&w, &first), event(&w, &first), event(&w, &first)];
    let keys = ["moved", "revised", "as if elsewhere"];
    let mut kept: Vec<EventKeyRecord> = events.iter().zip(keys).map(|(event, text)| kept_of_place(event, &first, text)).collect();
    // A response that names a different document can't be derived from the event's document.
    kept[2].answer = kept_of_place(&events[2], &third, keys[2]).answer;
    write(store, |tx| {
        tx.insert_events(w.org, &events)?;
        keep_events(tx, w.org, w.customer.id, &Vec::from_iter(kept.iter().map(|kept| taken(kept, &first))))
    });
    kept.sort_by(|a, b| a.key.cmp(&b.key));
    let again = || read(store, |tx| kept_events(tx, w.org, w.customer.id, &keys.map(key)));
    assert_eq!(again(), kept);
    let on = |event: &UsageEvent, head: &DocumentHead, revision| UsageEvent {
        revision,
        placement: Placement { document_ref: head.document_ref, ..event.placement },
        ..event.clone()
    };
    write(store, |tx| tx.revise_events(w.org, &[(events[1].clone(), on(&events[1], &second, 2))]));
    assert_eq!(again(), kept);
    write(store, |tx| tx.revise_events(w.org, &[(on(&events[1], &second, 2), on(&events[1], &third, 3))]));
    assert_eq!(again(), kept);
    write(store, |tx| tx.move_events(first.key(w.org), second.document_ref));
    assert_eq!(again(), kept);
    write(store, |tx| tx.move_events(second.key(w.org), third.document_ref));
    assert_eq!(again(), kept);
    let moved = read(store, |tx| tx.event(w.org, events[0].event_ref)).expect("an event");
    assert_eq!(moved.placement.document_ref, third.document_ref);
}

pub fn a_key_that_is_there_makes_the_transaction_contended(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (first, second) = (event(&w, &head), event(&w, &head));
    write(store, |tx| keep(tx, &w, &first, &taken(&kept(&first, "k"), &head)));
    let mut reported = Vec::new();
    // Some stores retry the work, which doesn't resolve the contention here.
    let outcome = store.run(Access::Write, &mut |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&second)).expect("an event");
        let both = [kept(&second, "fresh"), kept(&second, "k")].map(|kept| taken(&kept, &head));
        reported.push(keep_events(tx, w.org, w.customer.id, &both));
        Err(RollBack)
    });
    assert!(matches!(outcome, Ok(()) | Err(StoreError::Contended)), "{outcome:?}");
    assert!(
        !reported.is_empty() && reported.iter().all(|reported| matches!(reported, Err(StoreError::Contended))),
        "{reported:?}"
    );
    read(store, |tx| {
        assert_eq!(tx.event(w.org, second.event_ref)?, None);
        assert_eq!(kept_events(tx, w.org, w.customer.id, &[key("fresh"), key("k")])?, [kept(&first, "k")]);
        Ok(())
    });
}

pub fn of_two_twins_the_second_sees_the_first(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (first, second) = (event(&w, &head), event(&w, &head));
    let take = |event: &UsageEvent| {
        write(store, |tx| {
            let known = kept_events(tx, w.org, w.customer.id, &[key("k")])?;
            if let Some(known) = known.into_iter().next() {
                return Ok(known);
            }
            let kept = kept(event, "k");
            keep(tx, &w, event, &taken(&kept, &head))?;
            Ok(kept)
        })
    };
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|threads| {
        for event in [&first, &second] {
            let sender = sender.clone();
            threads.spawn(move || sender.send(take(event)).ok());
        }
        let answers = [(); 2].map(|()| receiver.recv_timeout(PATIENCE).expect("an answer"));
        assert_eq!(answers[0], answers[1]);
    });
    let stored = read(store, |tx| Ok([tx.event(w.org, first.event_ref)?, tx.event(w.org, second.event_ref)?]));
    assert_eq!(stored.iter().flatten().count(), 1);
}

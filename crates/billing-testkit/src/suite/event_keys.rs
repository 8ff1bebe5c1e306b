//! The keys that events were sent with.

use std::sync::mpsc;
use std::time::Duration;

use billing_domain::document::DocumentHead;
use billing_domain::idempotency::{BodyHash, IdempotencyKey};
use billing_domain::ports::{Access, RollBack, Store, StoreError, Tx};
use billing_domain::refs::CustomerId;
use billing_domain::usage::{EventKey, KeptEvent, UsageEvent};

use super::{World, done, later, read, world, write};
use crate::{FreshIds, fixtures};

/// How long a twin may take that waits for the first.
const PATIENCE: Duration = Duration::from_secs(10);

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::parse(text).expect(text)
}

fn event(w: &World, head: &DocumentHead) -> UsageEvent {
    fixtures::event(&FreshIds, head, &w.product.usage_product_ref, later(1), fixtures::quantity("2"))
}

fn kept(event: &UsageEvent, text: &str) -> KeptEvent {
    let body = BodyHash(std::array::from_fn(|i| u8::try_from(i * 7).expect("a byte")));
    let answer = format!("{{\"event_ref\":\"{}\"}}\n ✓", event.event_ref);
    KeptEvent { sent: EventKey { key: key(text), body }, event_ref: event.event_ref, answer }
}

fn keep(tx: &mut dyn Tx, w: &World, event: &UsageEvent, kept: &KeptEvent) -> Result<(), StoreError> {
    tx.insert_events(w.org, std::slice::from_ref(event))?;
    tx.keep_events(w.org, w.customer.id, std::slice::from_ref(kept))
}

pub fn kept_keys_come_back_to_the_byte_by_their_keys(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let events = [event(&w, &head), event(&w, &head), event(&w, &head)];
    let (a, b, c) = (kept(&events[0], "a b'\"c"), kept(&events[1], "B-é"), kept(&events[2], "c"));
    write(store, |tx| {
        assert_eq!(tx.kept_events(w.org, w.customer.id, std::slice::from_ref(&a.sent.key))?, []);
        tx.insert_events(w.org, &events)?;
        tx.keep_events(w.org, w.customer.id, &[c.clone(), a.clone(), b.clone()])
    });
    let asked = [key("c"), key("unknown"), key("B-é"), a.sent.key.clone(), key("C")];
    assert_eq!(read(store, |tx| tx.kept_events(w.org, w.customer.id, &asked)), [b, a, c]);
    assert_eq!(read(store, |tx| tx.kept_events(w.org, w.customer.id, &[])), []);
}

pub fn a_key_belongs_to_one_customer_of_one_organization(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head = w.open(store, w.head(1));
    let event = event(&w, &head);
    let kept = kept(&event, "k");
    let other = fixtures::customer(&FreshIds, "other");
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        keep(tx, &w, &event, &kept)
    });
    let seen = |organization, customer: CustomerId| read(store, |tx| tx.kept_events(organization, customer, &[key("k")]));
    assert_eq!(seen(w.org, w.customer.id), [kept]);
    assert_eq!(seen(w.org, other.id), []);
    assert_eq!(seen(stranger.org, w.customer.id), []);
    assert_eq!(seen(stranger.org, stranger.customer.id), []);
}

pub fn a_key_outlives_its_event(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let event = event(&w, &head);
    let kept = kept(&event, "k");
    write(store, |tx| keep(tx, &w, &event, &kept));
    write(store, |tx| tx.revise_event(w.org, &event, &UsageEvent { revision: 2, deleted: true, ..event.clone() }));
    assert_eq!(read(store, |tx| tx.kept_events(w.org, w.customer.id, &[key("k")])), [kept]);
}

pub fn a_key_that_is_there_makes_the_transaction_contended(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (first, second) = (event(&w, &head), event(&w, &head));
    write(store, |tx| keep(tx, &w, &first, &kept(&first, "k")));
    let mut told = Vec::new();
    // Some stores run the work again, which doesn't help here.
    let outcome = store.run(Access::Write, &mut |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&second)).expect("an event");
        let both = [kept(&second, "fresh"), kept(&second, "k")];
        told.push(tx.keep_events(w.org, w.customer.id, &both));
        Err(RollBack)
    });
    assert!(matches!(outcome, Ok(()) | Err(StoreError::Contended)), "{outcome:?}");
    assert!(!told.is_empty() && told.iter().all(|told| matches!(told, Err(StoreError::Contended))), "{told:?}");
    read(store, |tx| {
        assert_eq!(tx.event(w.org, second.event_ref)?, None);
        assert_eq!(tx.kept_events(w.org, w.customer.id, &[key("fresh"), key("k")])?, [kept(&first, "k")]);
        Ok(())
    });
}

pub fn of_two_twins_the_second_sees_the_first(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let (first, second) = (event(&w, &head), event(&w, &head));
    let take = |event: &UsageEvent| {
        write(store, |tx| {
            let known = tx.kept_events(w.org, w.customer.id, &[key("k")])?;
            if let Some(known) = known.into_iter().next() {
                return Ok(known);
            }
            let kept = kept(event, "k");
            keep(tx, &w, event, &kept)?;
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

//! Row locks: threads that would interfere with each other without them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Barrier, mpsc};
use std::time::Duration;

use billing_domain::document::DocumentHead;
use billing_domain::document::linking::{BillingSlot, SlotKind};
use billing_domain::ports::{DocumentFilter, Lock, Store, Tx};
use billing_domain::refs::{EventRef, ProductNo};
use billing_domain::usage::{CountedEvent, UsageKey};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::documents::two_products;
use super::{all, done, later, lock_usage, month, put_usage, read, usage, world, write, write_contended};
use crate::fixtures::{self, cents, quantity};
use crate::{FreshIds, Singly as _};

const THREADS: u32 = 4;
const ROUNDS: u32 = 10;

pub fn a_held_contract_makes_check_then_open_safe(store: &dyn Store) {
    let w = world(store);
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                for n in 1..=ROUNDS {
                    write_contended(store, |tx| {
                        let contract = w.contract.key(w.org);
                        let version = tx.lock_contract(contract, Lock::Exclusive)?;
                        assert_eq!(version, Some(1));
                        let slot =
                            BillingSlot { product_no: ProductNo(0), period_start: month(n).start(), kind: SlotKind::Period };
                        if tx.documents_in_places(&[(contract, slot)])?.is_empty() {
                            w.open_in(tx, w.head(n))?;
                        }
                        Ok(())
                    });
                }
            });
        }
    });
    let stored = read(store, |tx| tx.documents(w.org, &DocumentFilter::default(), all()));
    let mut numbers: Vec<u64> = stored.items.iter().map(|document| document.head.number.sequence).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=u64::from(ROUNDS)).collect::<Vec<_>>());
    let unknown = w.another_contract(9).key(w.org);
    assert_eq!(write(store, |tx| tx.lock_contract(unknown, Lock::Shared)), None);
}

pub fn a_contract_held_shared_can_be_read_but_not_changed_by_others(store: &dyn Store) {
    let w = world(store);
    let drafts = |tx: &mut dyn Tx| Ok(w.rows(tx)?.documents);
    std::thread::scope(|threads| {
        let mut other = None;
        let (sender, receiver) = mpsc::channel();
        write(store, |tx| {
            tx.lock_contract(w.contract.key(w.org), Lock::Shared)?;
            let before = drafts(tx)?;
            // The work may be retried, but the other thread must start only once.
            other.get_or_insert_with(|| {
                let (sender, w) = (sender.clone(), &w);
                threads.spawn(move || {
                    sender.send(read(store, |tx| tx.contract(w.org, w.contract.contract_ref))).ok();
                    write_contended(store, |tx| w.open_in(tx, w.head(1)));
                });
                let seen = receiver.recv_timeout(Duration::from_secs(10)).expect("a reader waits for nobody");
                assert_eq!(seen.as_ref(), Some(&w.contract));
            });
            // Without the lock, the other thread would open its document in this time.
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(drafts(tx)?, before);
            Ok(())
        });
    });
    assert_eq!(read(store, drafts).len(), 1, "held no longer");
}

pub fn contracts_held_together_in_any_order_end_in_no_deadlock(store: &dyn Store) {
    let w = world(store);
    let second = two_products(store, &w);
    let third = w.another_contract(3);
    write(store, |tx| tx.insert_contract(w.org, &third, None));
    let unknown = w.another_contract(9).key(w.org);
    let [first, second, third] = [w.contract.key(w.org), second.contract.key(w.org), third.key(w.org)];
    let (alone, shared) = (Lock::Exclusive, Lock::Shared);
    let wanted = [
        vec![(first, alone), (second, alone), (third, alone)],
        vec![(third, shared), (unknown, alone), (second, alone), (first, alone)],
        vec![(second, alone), (third, alone), (second, shared), (first, shared)],
        vec![(third, alone), (first, shared), (second, alone)],
    ];
    let start = Barrier::new(wanted.len());
    std::thread::scope(|threads| {
        for mine in &wanted {
            threads.spawn(|| {
                start.wait();
                for n in 1..=ROUNDS {
                    write_contended(store, |tx| {
                        tx.hold_contracts(mine)?;
                        // Every thread locks the second contract exclusively.
                        let slot =
                            BillingSlot { product_no: ProductNo(0), period_start: month(n).start(), kind: SlotKind::Period };
                        if tx.documents_in_places(&[(second, slot)])?.is_empty() {
                            let head = DocumentHead { contract_ref: second.contract, customer_id: second.customer, ..w.head(n) };
                            w.open_held(tx, head)?;
                        }
                        Ok(())
                    });
                }
            });
        }
    });
    let stored = read(store, |tx| tx.documents(w.org, &DocumentFilter::default(), all()));
    let mut numbers: Vec<u64> = stored.items.iter().map(|document| document.head.number.sequence).collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=u64::from(ROUNDS)).collect::<Vec<_>>());
    write(store, |tx| tx.hold_contracts(&[]));
}

pub fn an_entity_is_not_deleted_while_a_customer_begins_to_name_it(store: &dyn Store) {
    let w = world(store);
    for n in 0..ROUNDS {
        let spare = fixtures::entity(&format!("spare-{n}"));
        let refs = std::slice::from_ref(&spare.entity_ref);
        let mut naming = fixtures::customer(&FreshIds, &format!("naming-{n}"));
        naming.profile.entity_ref = Some(spare.entity_ref.clone());
        write(store, |tx| done(tx.insert_entity(w.org, &spare)));
        let start = Barrier::new(2);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                start.wait();
                write_contended(store, |tx| {
                    if tx.entities_by_refs(w.org, refs)?.is_empty() {
                        return Ok(());
                    }
                    tx.lock_entities_shared(w.org, refs)?;
                    done(tx.insert_customer(w.org, &naming))
                });
            });
            threads.spawn(|| {
                start.wait();
                write_contended(store, |tx| {
                    tx.hold_entity(w.org, &spare)?;
                    if tx.entity_user(w.org, &spare.entity_ref)?.is_none() {
                        tx.delete_entity(w.org, &spare.entity_ref)?;
                    }
                    Ok(())
                });
            });
        });
        let is_there = !read(store, |tx| tx.entities_by_refs(w.org, refs)).is_empty();
        let is_named = !read(store, |tx| tx.customers_by_refs(w.org, std::slice::from_ref(&naming.customer_ref))).is_empty();
        assert_eq!(is_there, is_named, "round {n}");
    }
}

pub fn a_held_draft_is_issued_by_one_alone(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let issued = w.frozen(&head, cents(1));
    let (start, won) = (Barrier::new(THREADS as usize), AtomicU32::new(0));
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                let mine = write_contended(store, |tx| {
                    w.hold(tx)?;
                    tx.issue_document(head.key(w.org), &issued)
                });
                won.fetch_add(u32::from(mine), Ordering::Relaxed);
            });
        }
    });
    assert_eq!(won.into_inner(), 1);
}

/// Adds an event to each total, as recording usage does.
fn add_one(tx: &mut dyn Tx, w: &super::World, keys: &[UsageKey]) -> billing_domain::ports::StoreResult<()> {
    let held = lock_usage(tx, w.org, w.customer.id, keys)?;
    let event_ref = EventRef::from_uuid(Uuid::now_v7());
    let plus = |(key, total): (UsageKey, billing_domain::usage::UsageTotal)| {
        let event = CountedEvent {
            event_ref,
            occurred_at: later(0),
            service_date: month(1).start(),
            quantity: quantity("0.5"),
            is_distinct: None,
        };
        (key, total.plus(event).expect("in range"))
    };
    let totals: Vec<_> = held.into_iter().map(plus).collect();
    put_usage(tx, w.org, w.customer.id, &totals)
}

pub fn held_totals_lose_no_update(store: &dyn Store) {
    let w = world(store);
    let key = fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref);
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                start.wait();
                for _ in 0..ROUNDS {
                    write_contended(store, |tx| add_one(tx, &w, std::slice::from_ref(&key)));
                }
            });
        }
    });
    let total = read(store, |tx| usage(tx, w.org, w.customer.id, std::slice::from_ref(&key))).remove(0).1;
    assert_eq!(total.events, u64::from(THREADS * ROUNDS));
    assert_eq!(total.sum.as_decimal(), Decimal::new(i64::from(THREADS * ROUNDS) * 5, 1));
}

pub fn totals_held_in_any_order_end_in_no_deadlock(store: &dyn Store) {
    let w = world(store);
    let forwards: Vec<UsageKey> =
        (1..=6).map(|n| fixtures::usage_key(&w.contract, 0, &format!("2026-{n:02}-01"), &w.product.usage_product_ref)).collect();
    let backwards: Vec<UsageKey> = forwards.iter().rev().cloned().collect();
    let start = Barrier::new(THREADS as usize);
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (w, start, keys) = (&w, &start, if thread % 2 == 0 { &forwards } else { &backwards });
            threads.spawn(move || {
                start.wait();
                for _ in 0..ROUNDS {
                    write_contended(store, |tx| add_one(tx, w, keys));
                }
            });
        }
    });
    let totals = read(store, |tx| usage(tx, w.org, w.customer.id, &forwards));
    assert_eq!(totals.len(), forwards.len());
    assert!(totals.iter().all(|(_, total)| total.events == u64::from(THREADS * ROUNDS)));
}

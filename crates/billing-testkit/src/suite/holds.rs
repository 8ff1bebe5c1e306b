//! Holds: usage that is about to happen.

use billing_domain::hold::{Hold, HoldEnd, HoldEntry, OpenEntry};
use billing_domain::page::{Direction, PageRequest};
use billing_domain::ports::{Insertion, Store};
use billing_domain::refs::{EventRef, HoldRef, LineItemId, ProductNo};
use billing_domain::usage::UsageKey;
use uuid::Uuid;

use super::*;
use crate::fixtures;

fn key(w: &World, line_item_id: Option<&str>) -> UsageKey {
    UsageKey {
        contract_ref: w.contract.contract_ref,
        product_no: ProductNo(0),
        period_start: fixtures::date("2026-01-01"),
        usage_product_ref: fixtures::usage_product_ref("calls"),
        line_item_id: line_item_id.map(|id| LineItemId::parse(id).expect(id)),
    }
}

/// A hold with two entries that is made after some seconds and open for ten.
fn hold(w: &World, reference: &str, seconds: i64) -> Hold {
    let entry =
        |line_item_id, quantity: &str| HoldEntry { key: key(w, line_item_id), quantity: fixtures::quantity(quantity), end: None };
    Hold {
        hold_ref: HoldRef::parse(reference).expect(reference),
        customer_id: w.customer.id,
        digest: [7; 32],
        made_at: later(seconds),
        expires_at: later(seconds + 10),
        entries: vec![entry(None, "0.000000001"), entry(Some("calls"), "999999999999999.5")],
    }
}

fn made(store: &dyn Store, w: &World, reference: &str, seconds: i64) -> Hold {
    let made = hold(w, reference, seconds);
    assert_eq!(write(store, |tx| tx.insert_hold(w.org, &made)), Insertion::Done);
    made
}

fn open(store: &dyn Store, w: &World, seconds: i64) -> Vec<OpenEntry> {
    read(store, |tx| tx.open_entries(w.org, &[w.customer.id], later(seconds)))
}

pub fn a_hold_comes_back_with_its_entries_in_order(store: &dyn Store) {
    let w = world(store);
    let made = made(store, &w, "h", 1);
    assert_eq!(read(store, |tx| tx.hold(w.org, w.customer.id, &made.hold_ref)), Some(made.clone()));
    let again = Hold { digest: [8; 32], ..made.clone() };
    assert_eq!(write(store, |tx| tx.insert_hold(w.org, &again)), Insertion::Taken("hold_ref"));
    let other = HoldRef::parse("other").expect("a reference");
    assert_eq!(read(store, |tx| tx.hold(w.org, w.customer.id, &other)), None);
}

pub fn an_entry_is_open_until_it_ends_or_the_hold_expires(store: &dyn Store) {
    let w = world(store);
    let (first, second) = (made(store, &w, "a", 1), made(store, &w, "b", 5));
    let places = |entries: Vec<OpenEntry>| entries.into_iter().map(|entry| (entry.place.1, entry.place.2)).collect::<Vec<_>>();
    let (a, b) = (first.hold_ref.clone(), second.hold_ref.clone());
    let all = [(a.clone(), 0), (a.clone(), 1), (b.clone(), 0), (b.clone(), 1)];
    let found = open(store, &w, 10);
    assert_eq!(found[1].key, key(&w, Some("calls")));
    assert_eq!((found[1].quantity, found[1].made_at), (fixtures::quantity("999999999999999.5"), later(1)));
    assert_eq!(places(found), all);
    assert_eq!(places(open(store, &w, 11)), all[2..]);

    let event = EventRef::from_uuid(Uuid::now_v7());
    write(store, |tx| tx.settle_entries(w.org, &[((w.customer.id, b.clone(), 1), event)], later(7)));
    // An entry ends once.
    write(store, |tx| tx.settle_entries(w.org, &[((w.customer.id, b.clone(), 1), EventRef::from_uuid(Uuid::nil()))], later(8)));
    assert_eq!(places(open(store, &w, 9)), all[..3]);
    write(store, |tx| tx.release_hold(w.org, w.customer.id, &b, later(9)));
    assert_eq!(places(open(store, &w, 9)), all[..2]);
    let ends = |hold: Option<Hold>| hold.expect("a hold").entries.into_iter().map(|entry| entry.end).collect::<Vec<_>>();
    let settled = HoldEnd { at: later(7), event: Some(event) };
    let released = HoldEnd { at: later(9), event: None };
    assert_eq!(ends(read(store, |tx| tx.hold(w.org, w.customer.id, &b))), [Some(released), Some(settled)]);
    // What has expired is not released.
    write(store, |tx| tx.release_hold(w.org, w.customer.id, &a, later(11)));
    assert_eq!(ends(read(store, |tx| tx.hold(w.org, w.customer.id, &a))), [None, None]);
}

pub fn holds_are_listed_by_creation(store: &dyn Store) {
    let w = world(store);
    let (late, early) = (made(store, &w, "a", 5), made(store, &w, "b", 1));
    let listed = |open_at: Option<i64>, page: PageRequest| {
        let page = read(store, |tx| tx.holds(w.org, w.customer.id, open_at.map(later), page));
        (page.items, page.total)
    };
    assert_eq!(listed(None, all()), (vec![early.clone(), late.clone()], 2));
    assert_eq!(listed(Some(10), all().in_direction(Direction::Backward)), (vec![late.clone(), early], 2));
    assert_eq!(listed(Some(11), all()), (vec![late.clone()], 1));
    // Of a hold whose first entry has ended, all entries are listed.
    write(store, |tx| {
        tx.settle_entries(w.org, &[((w.customer.id, late.hold_ref.clone(), 0), EventRef::from_uuid(Uuid::nil()))], later(6))
    });
    let (items, total) = listed(Some(7), all());
    assert_eq!((items.iter().map(|hold| hold.entries.len()).collect::<Vec<_>>(), total), (vec![2, 2], 2));
}

pub fn expired_holds_are_deleted_in_parts(store: &dyn Store) {
    let w = world(store);
    let (old, new) = (made(store, &w, "a", 1), made(store, &w, "b", 5));
    while write(store, |tx| tx.purge_holds(later(12), 1)) == 1 {}
    assert_eq!(read(store, |tx| tx.hold(w.org, w.customer.id, &old.hold_ref)), None);
    assert_eq!(read(store, |tx| tx.hold(w.org, w.customer.id, &new.hold_ref)), Some(new));
}

pub fn another_organization_has_no_holds(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let made = made(store, &w, "h", 1);
    let (customer, hold_ref) = (w.customer.id, made.hold_ref.clone());
    read(store, |tx| {
        assert_eq!(tx.hold(stranger.org, customer, &hold_ref)?, None);
        assert_eq!(tx.holds(stranger.org, customer, None, all())?.total, 0);
        assert_eq!(tx.open_entries(stranger.org, &[customer], later(2))?, []);
        Ok(())
    });
    write(store, |tx| tx.release_hold(stranger.org, customer, &hold_ref, later(2)));
    write(store, |tx| {
        tx.settle_entries(stranger.org, &[((customer, hold_ref.clone(), 0), EventRef::from_uuid(Uuid::nil()))], later(2))
    });
    assert_eq!(read(store, |tx| tx.hold(w.org, customer, &hold_ref)), Some(made));
}

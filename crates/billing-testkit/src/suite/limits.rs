//! Limits, and the customers that have them.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::limit::{Limit, LimitLevels, LimitMetric, ReachedLevels};
use billing_domain::page::{Direction, PageRequest};
use billing_domain::ports::{Lock, Store};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{EntityRef, LimitRef, LineItemId, ProductNo};
use rust_decimal::Decimal;
use uuid::Uuid;

use super::*;
use crate::fixtures;

fn key(w: &World) -> AccountKey {
    AccountKey { customer_id: w.customer.id, entity_ref: w.entity.entity_ref.clone(), currency: fixtures::eur() }
}

fn limit(w: &World, entity_ref: &EntityRef, max: &str, seconds: i64) -> Limit {
    Limit {
        limit_ref: LimitRef::from_uuid(Uuid::now_v7()),
        customer_id: w.customer.id,
        metric: LimitMetric::Owed { entity_ref: entity_ref.clone(), currency: fixtures::eur() },
        levels: LimitLevels { max: Some(max.parse::<Decimal>().expect(max)), thresholds: Vec::new() },
        reached: ReachedLevels::default(),
        notifications: 0,
        created_at: later(seconds),
        updated_at: later(seconds),
    }
}

fn insert(store: &dyn Store, w: &World, limit: &Limit) {
    write(store, |tx| tx.insert_limit(w.org, limit));
}

pub fn a_limit_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let made = limit(&w, &w.entity.entity_ref, "999999999999999.99", 1);
    insert(store, &w, &made);
    assert_eq!(read(store, |tx| tx.limit(w.org, made.limit_ref)), Some(made.clone()));
    let thresholds = vec![Decimal::new(-2000, 2), Decimal::new(5, 1)];
    let reached =
        ReachedLevels { window_start: Some(fixtures::date("2026-01-01")), thresholds: 2, max_at: Some(Decimal::new(-1, 1)) };
    let levels = LimitLevels { max: None, thresholds };
    let edited = Limit { levels, reached, notifications: 7, updated_at: later(9), ..made.clone() };
    assert!(write(store, |tx| tx.update_limit(w.org, &edited)));
    assert_eq!(read(store, |tx| tx.limits_of(w.org, &[w.customer.id])), std::slice::from_ref(&edited));
    assert!(write(store, |tx| tx.delete_limit(w.org, &edited)));
    assert!(!write(store, |tx| tx.delete_limit(w.org, &edited)) && !write(store, |tx| tx.update_limit(w.org, &edited)));
    assert_eq!(read(store, |tx| tx.limit(w.org, made.limit_ref)), None);
}

pub fn limits_of_all_metrics_are_listed_by_creation(store: &dyn Store) {
    let w = world(store);
    let first = limit(&w, &w.entity.entity_ref, "1", 1);
    let (contract_ref, product_no) = (w.contract.contract_ref, ProductNo(7));
    let spend = LimitMetric::Spend { contract_ref, product_no, currency: fixtures::eur() };
    let quantity = |line_item_id| {
        let usage_product_ref = fixtures::usage_product_ref("calls");
        LimitMetric::Quantity { contract_ref, product_no, usage_product_ref, line_item_id }
    };
    let of_item = quantity(Some(LineItemId::parse("calls").expect("an ID")));
    let others = [(spend, 2), (quantity(None), 3), (of_item, 4)];
    let others = others.map(|(metric, seconds)| Limit { metric, ..limit(&w, &w.entity.entity_ref, "2", seconds) });
    let made: Vec<Limit> = std::iter::once(first).chain(others).collect();
    made.iter().for_each(|limit| insert(store, &w, limit));
    let listed = |page: PageRequest| {
        let page = read(store, |tx| tx.limits(w.org, Some(w.customer.id), page));
        (page.items, page.total)
    };
    assert_eq!(listed(all()), (made.clone(), 4));
    let backward = all().in_direction(Direction::Backward);
    assert_eq!(listed(backward), (made.into_iter().rev().collect(), 4));
    assert_eq!(read(store, |tx| tx.limits(w.org, None, all())).total, 4);
}

pub fn a_watched_customer_has_watched_contracts(store: &dyn Store) {
    let w = world(store);
    let contract = w.contract.contract_ref;
    let is_watched = || {
        let (customer, of_customer) = write(store, |tx| tx.watched_customer(w.org, w.customer.id, Some(Lock::Shared)));
        assert_eq!(customer, w.customer);
        let of_contract = read(store, |tx| tx.contract(w.org, contract)).expect("a contract").is_watched;
        (of_customer, of_contract)
    };
    assert_eq!(is_watched(), (false, false));
    for state in [true, true, false] {
        write(store, |tx| tx.set_watched(w.org, w.customer.id, state));
        assert_eq!(is_watched(), (state, state));
    }
}

pub fn contracts_with_drafts_are_found_by_account(store: &dyn Store) {
    let w = world(store);
    let found = |key: AccountKey| read(store, |tx| tx.contracts_with_drafts(w.org, &BTreeSet::from([key.clone()])));
    assert_eq!(found(key(&w)), BTreeMap::new());
    w.open(store, w.head(1));
    let contract = w.contract.key(w.org);
    assert_eq!(found(key(&w)), BTreeMap::from([(contract, 1)]));
    assert_eq!(found(AccountKey { currency: fixtures::currency("USD"), ..key(&w) }), BTreeMap::new());
    let both = BTreeSet::from([key(&w), AccountKey { entity_ref: fixtures::entity_ref("another"), ..key(&w) }]);
    assert_eq!(read(store, |tx| tx.contracts_with_drafts(w.org, &both)), BTreeMap::from([(contract, 1)]));
}

pub fn all_accounts_of_customers_are_locked(store: &dyn Store) {
    let w = world(store);
    let locked = || write(store, |tx| tx.lock_accounts_of(w.org, &[w.customer.id]));
    assert_eq!(locked(), BTreeMap::new());
    let other = AccountKey { currency: fixtures::currency("USD"), ..key(&w) };
    write(store, |tx| tx.hold_accounts(w.org, &BTreeSet::from([key(&w), other.clone()])).map(drop));
    let accounts = locked();
    assert_eq!(accounts.keys().collect::<Vec<_>>(), [&key(&w), &other]);
    assert!(accounts.values().all(|unapplied| unapplied.minor() == 0));
}

pub fn another_organization_has_no_limits(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let made = limit(&w, &w.entity.entity_ref, "1", 1);
    insert(store, &w, &made);
    write(store, |tx| tx.hold_account(w.org, &key(&w)).map(drop));
    w.open(store, w.head(1));
    read(store, |tx| {
        assert_eq!(tx.limit(stranger.org, made.limit_ref)?, None);
        assert_eq!(tx.limits_of(stranger.org, &[w.customer.id])?, []);
        assert_eq!(tx.limits(stranger.org, Some(w.customer.id), all())?.total, 0);
        assert_eq!(tx.contracts_with_drafts(stranger.org, &BTreeSet::from([key(&w)]))?, BTreeMap::new());
        Ok(())
    });
    assert_eq!(write(store, |tx| tx.lock_accounts_of(stranger.org, &[w.customer.id])), BTreeMap::new());
    assert!(!write(store, |tx| tx.update_limit(stranger.org, &made)) && !write(store, |tx| tx.delete_limit(stranger.org, &made)));
}

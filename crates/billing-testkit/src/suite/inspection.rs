//! Queries of `verify`.

use std::collections::BTreeMap;

use billing_domain::contract::Contract;
use billing_domain::document::DocumentKind;
use billing_domain::ledger::recount::Recount;
use billing_domain::ports::Store;
use billing_domain::refs::{ContractRef, DocumentRef, ProductNo};
use billing_domain::usage::{UsageEvent, UsageKey, UsageTotal};
use billing_domain::verification::{Finding, RecordedVerification, Verification};

use super::corrections::{adjustment, void_issued};
use super::documents::two_products;
use super::{World, done, later, lock_usage, month, put_usage, read, settle, world, write};
use crate::FreshIds;
use crate::fixtures::{self, cents};

pub fn every_organization_is_seen(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    let seen = read(store, |tx| tx.all_organizations());
    for w in [&one, &other] {
        assert_eq!(seen.iter().filter(|id| **id == w.org).count(), 1);
    }
}

pub fn contracts_come_by_reference_after_the_last_one(store: &dyn Store) {
    let w = world(store);
    world(store);
    let elsewhere = two_products(store, &w);
    let mut contracts: Vec<Contract> = vec![w.contract.clone(), elsewhere.contract.clone()];
    contracts.extend((3..8).map(|number| w.another_contract(number)));
    write(store, |tx| contracts[2..].iter().rev().try_for_each(|contract| tx.insert_contract(w.org, contract, None)));
    contracts.sort_by_key(|contract| contract.contract_ref);
    let contracts: Vec<_> = contracts.iter().map(|contract| contract.key(w.org)).collect();
    let after = |last: Option<ContractRef>, limit| read(store, |tx| tx.contracts_after(w.org, last, limit));
    assert_eq!(after(None, 100), contracts);
    assert_eq!(after(None, 3), &contracts[..3]);
    assert_eq!(after(Some(contracts[2].contract), 3), &contracts[3..6]);
    assert_eq!(after(Some(contracts[5].contract), 3), &contracts[6..]);
    assert_eq!(after(Some(contracts[6].contract), 3), []);
    assert_eq!(after(None, 0), []);
}

fn plus(total: UsageTotal, event: &UsageEvent) -> UsageTotal {
    total.plus(event.counted()).expect("in range")
}

/// Creates events of several totals, one total with only deleted events, and the total of another contract.
fn used(store: &dyn Store, w: &World) -> BTreeMap<UsageKey, UsageTotal> {
    write(store, |tx| done(tx.insert_usage_product(w.org, &fixtures::usage_product("Zeta"))));
    let head = w.open(store, w.head(1));
    let zeta = fixtures::usage_product_ref("Zeta");
    let mut events = Vec::new();
    for n in 0..40_u16 {
        let product = if n % 3 == 0 { &zeta } else { &w.product.usage_product_ref };
        let text = format!("{n}.5");
        let mut event = fixtures::event(&FreshIds, &head, product, later(i64::from(n % 11)), fixtures::quantity(&text));
        event.placement.product_no = ProductNo(n % 2);
        event.placement.service_period = month(u32::from(n % 5) + 1);
        event.deleted = n % 5 == 4;
        events.push(event);
    }
    let elsewhere = two_products(store, w);
    let others = elsewhere.open(store, elsewhere.head(1));
    let not_ours = fixtures::event(&FreshIds, &others, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    write(store, |tx| {
        tx.insert_events(w.org, &events)?;
        tx.insert_events(w.org, std::slice::from_ref(&not_ours))
    });
    let mut counted = BTreeMap::new();
    for event in events.iter().filter(|event| !event.deleted) {
        let total = counted.entry(event.period_key()).or_insert(UsageTotal::ZERO);
        *total = plus(*total, event);
    }
    counted
}

pub fn the_totals_of_a_contract_are_counted_again(store: &dyn Store) {
    let w = world(store);
    let recounted = || read(store, |tx| tx.recount_contract(w.org, &w.contract));
    assert_eq!(recounted(), Recount::default());
    // The contract has no product 1, and does not meter Zeta.
    let zeta = fixtures::usage_product_ref("Zeta");
    let is_metered = |key: &UsageKey| key.product_no == ProductNo(0) && key.usage_product_ref != zeta;
    let (counted, not): (BTreeMap<_, _>, BTreeMap<_, _>) = used(store, &w).into_iter().partition(|(key, _)| is_metered(key));
    let found = recounted();
    assert_eq!(found.totals, counted, "only those with an event");
    assert_eq!(found.uncounted.map(|uncounted| uncounted.count), Some(not.values().map(|total| total.events).sum()));
}

pub fn the_totals_of_a_contract_are_those_that_are_kept(store: &dyn Store) {
    let w = world(store);
    let kept = || -> Vec<(UsageKey, UsageTotal)> {
        read(store, |tx| w.rows(tx)).usage.iter().map(|(key, total)| (key.clone(), *total)).collect()
    };
    assert_eq!(kept(), []);
    let totals: Vec<(UsageKey, UsageTotal)> = used(store, &w).into_iter().collect();
    assert_eq!(kept(), [], "what events say isn't asked");
    let zero = fixtures::usage_key(&w.contract, 9, "2026-01-01", &w.product.usage_product_ref);
    let of_another = w.another_contract(9);
    let another = fixtures::usage_key(&of_another, 0, "2026-01-01", &w.product.usage_product_ref);
    write(store, |tx| {
        tx.insert_contract(w.org, &of_another, None)?;
        let mut keys: Vec<UsageKey> = totals.iter().rev().map(|(key, _)| key.clone()).collect();
        keys.extend([zero.clone(), another.clone()]);
        lock_usage(tx, w.org, w.customer.id, &keys)?;
        put_usage(tx, w.org, w.customer.id, &totals)
    });
    let mut expected = totals;
    expected.push((zero.clone(), UsageTotal::ZERO));
    expected.sort_by(|a, b| a.0.cmp(&b.0));
    assert_eq!(kept(), expected, "by their keys");
}

pub fn events_whose_document_is_lost_are_counted(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let event = || fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let lost = || {
        let mut lost = event();
        lost.placement.document_ref = DocumentRef::from_uuid(uuid::Uuid::now_v7());
        lost
    };
    let count = || read(store, |tx| tx.events_without_document(w.contract.key(w.org)));
    write(store, |tx| tx.insert_events(w.org, &[event(), event()]));
    assert_eq!(count(), 0);
    let deleted = UsageEvent { deleted: true, ..lost() };
    write(store, |tx| tx.insert_events(w.org, &[event(), lost(), deleted.clone()]));
    assert_eq!(count(), 2);
    let another = w.another_contract(7);
    assert_eq!(read(store, |tx| tx.events_without_document(another.key(w.org))), 0);
}

pub fn series_without_a_gap_are_whole(store: &dyn Store) {
    let w = world(store);
    assert_eq!(read(store, |tx| tx.broken_series(w.org)), [""; 0]);
    let invoice = w.issue(store, w.head(1), cents(100));
    w.open(store, w.head(2));
    w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    let void = w.open(store, adjustment(&w, DocumentKind::Credit, &invoice, 1));
    w.void(store, &void);
    let elsewhere = two_products(store, &w);
    elsewhere.open(store, elsewhere.head(1));
    assert_eq!(read(store, |tx| tx.broken_series(w.org)), [""; 0]);
}

pub fn a_series_with_a_gap_is_named(store: &dyn Store) {
    let (w, whole) = (world(store), world(store));
    whole.open(store, whole.head(1));
    w.open(store, w.head(1));
    // A reserved number without a document leaves a gap.
    write(store, |tx| tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1));
    w.open(store, w.head(2));
    let broken = read(store, |tx| tx.broken_series(w.org));
    assert_eq!(broken.len(), 1, "{broken:?}");
    assert!(broken[0].contains(w.entity.entity_ref.as_str()), "{broken:?}");
    assert_eq!(read(store, |tx| tx.broken_series(whole.org)), [""; 0]);
}

pub fn what_nobody_touched_has_its_seals(store: &dyn Store) {
    let w = world(store);
    assert_eq!(read(store, |tx| tx.broken_seals(w.org)), [""; 0]);
    let invoice = w.issue(store, w.head(1), cents(100));
    let second = w.issue(store, w.head(2), cents(200));
    w.issue(store, adjustment(&w, DocumentKind::Credit, &invoice, 1), cents(5));
    let draft = w.open(store, w.head(3));
    w.void(store, &draft);
    w.open(store, w.head(4));
    assert!(void_issued(store, &w, &second));
    let settlement =
        billing_domain::document::Settlement { paid: cents(100), ..billing_domain::document::Settlement::none(fixtures::eur()) };
    write(store, |tx| settle(tx, w.org, &invoice, cents(100), billing_domain::document::LifecycleStatus::Issued, settlement));
    assert_eq!(read(store, |tx| tx.broken_seals(w.org)), [""; 0]);
}

pub fn the_last_verification_is_kept(store: &dyn Store) {
    let (w, other) = (world(store), world(store));
    let last = |w: &World| read(store, |tx| tx.last_verification(w.org));
    assert_eq!(last(&w), None);
    let finding = Finding { subject: "UB-INV-1".to_owned(), detail: "“total” isn't Σ of its lines".to_owned() };
    let seen = Verification { contracts: 1, documents: 2, events: u64::MAX, accounts: 3, findings: vec![finding] };
    let wrong = RecordedVerification { wrong: 7, ..RecordedVerification::of(later(1), later(2), seen) };
    write(store, |tx| tx.put_verification(w.org, &wrong));
    assert_eq!((last(&w), last(&other)), (Some(wrong), None));
    let clean = RecordedVerification::of(later(3), later(4), Verification::default());
    write(store, |tx| tx.put_verification(w.org, &clean));
    assert_eq!(last(&w), Some(clean));
}

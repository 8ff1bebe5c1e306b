//! Charges and their revisions.

use billing_domain::access::Actor;
use billing_domain::charge::Charge;
use billing_domain::contract::Contract;
use billing_domain::document::lines::BillWith;
use billing_domain::money::SignedPrice;
use billing_domain::page::Page;
use billing_domain::ports::{ChargeFilter, Insertion, Lock, Store, StoreError};
use billing_domain::refs::{ApiKeyRef, ChargeRef, ContractKey, CustomerId, ProductNo};
use billing_domain::text::Prose;
use uuid::Uuid;

use super::{World, all, done, later, page, read, reads_backward, transact_answer, undo, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, date};

pub(super) fn charge_of(contract: &Contract, name: &str) -> Charge {
    Charge {
        charge_ref: ChargeRef::parse(name).expect("a reference"),
        customer_id: contract.customer_id,
        contract_ref: contract.contract_ref,
        product_no: ProductNo(0),
        date: date("2026-01-10"),
        name: fixtures::line("Setup"),
        quantity: fixtures::quantity("1"),
        unit_price: SignedPrice::parse("500").expect("a price"),
        unit: None,
        currency: fixtures::eur(),
        bill_with: BillWith::Usage,
        discountable: false,
        goods: false,
        note: None,
        reason: None,
        recorded_at: later(1),
        revision: 1,
        revised_at: later(1),
        revised_by: Actor::Service,
        deleted: false,
    }
}

/// Creates a charge with all fields and the maximum number of digits.
fn full(contract: &Contract, name: &str) -> Charge {
    Charge {
        product_no: ProductNo(7),
        date: date("2026-03-31"),
        name: fixtures::line("Goodwill ✓ \"quoted\""),
        quantity: fixtures::quantity("999999999999999.123456789"),
        unit_price: SignedPrice::parse("-999999999.000000000100").expect("a price"),
        unit: Some(fixtures::line("h")),
        bill_with: BillWith::Fixed,
        discountable: true,
        goods: true,
        note: Some(Prose::parse("two\nlines").expect("a note")),
        reason: Some(Prose::parse("they waited").expect("a reason")),
        recorded_at: later(2),
        revised_at: later(3),
        revised_by: Actor::ApiKey(ApiKeyRef::from_uuid(Uuid::now_v7())),
        ..charge_of(contract, name)
    }
}

fn insert(store: &dyn Store, w: &World, charges: &[&Charge]) {
    write(store, |tx| {
        w.hold(tx)?;
        charges.iter().try_for_each(|charge| done(tx.insert_charge(w.org, charge)))
    });
}

fn stored(store: &dyn Store, w: &World, charge: &Charge) -> Charge {
    read(store, |tx| tx.charge(w.org, &charge.charge_ref)).expect("a charge")
}

fn revise(store: &dyn Store, w: &World, superseded: &Charge, revised: &Charge) -> Result<(), StoreError> {
    transact_answer(store, |tx| {
        w.hold(tx)?;
        tx.revise_charge(w.org, superseded, revised)
    })
}

pub fn a_charge_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let charge = full(&w.contract, &"x".repeat(64));
    insert(store, &w, &[&charge]);
    assert_eq!(format!("{:?}", stored(store, &w, &charge)), format!("{charge:?}"), "to the last digit");
}

pub fn a_charge_comes_back_without_optional_fields(store: &dyn Store) {
    let w = world(store);
    let charge = charge_of(&w.contract, "setup");
    insert(store, &w, &[&charge]);
    assert_eq!(stored(store, &w, &charge), charge);
    assert_eq!(read(store, |tx| tx.charge(w.org, &ChargeRef::parse("other").expect("a reference"))), None);
}

pub fn a_charges_reference_is_taken_once_in_its_organization(store: &dyn Store) {
    let w = world(store);
    let charge = charge_of(&w.contract, "setup");
    insert(store, &w, &[&charge]);
    let other = fixtures::customer(&FreshIds, "other");
    let contract = fixtures::contract(&FreshIds, &other, vec![fixtures::agreed(&w.pricing, "2026-01-01", "2026-12-31")]);
    let contract = Contract { number: 2, ..contract };
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        tx.insert_contract(w.org, &contract, None)
    });
    for again in [full(&w.contract, "setup"), charge_of(&contract, "setup")] {
        let answer = write(store, |tx| {
            tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
            tx.lock_contract(contract.key(w.org), Lock::Exclusive)?;
            tx.insert_charge(w.org, &again)
        });
        assert_eq!(answer, Insertion::Taken("charge_ref"));
    }
    assert_eq!(stored(store, &w, &charge), charge);
}

pub fn a_revision_takes_the_charges_place_and_the_one_before_is_kept(store: &dyn Store) {
    let w = world(store);
    let first = full(&w.contract, "goodwill");
    let second = Charge {
        date: date("2026-02-10"),
        name: fixtures::line("Less"),
        unit_price: SignedPrice::parse("-1.50").expect("a price"),
        note: None,
        revision: 2,
        revised_at: later(4),
        revised_by: Actor::Service,
        ..first.clone()
    };
    let third = Charge { deleted: true, revision: 3, revised_at: later(5), ..second.clone() };
    let untouched = charge_of(&w.contract, "setup");
    insert(store, &w, &[&first, &untouched]);
    undo(store, |tx| {
        w.hold(tx)?;
        tx.revise_charge(w.org, &first, &second)
    });
    assert_eq!(read(store, |tx| tx.superseded_charges(w.org, &[w.customer.id], std::slice::from_ref(&first.charge_ref))), []);
    revise(store, &w, &first, &second).expect("it is the first");
    assert_eq!(stored(store, &w, &first), second);
    revise(store, &w, &second, &third).expect("it is the second");
    assert_eq!(stored(store, &w, &first), third, "a deleted one is still there");
    let refs = [untouched.charge_ref.clone(), first.charge_ref.clone()];
    let kept = read(store, |tx| tx.superseded_charges(w.org, &[w.customer.id], &refs));
    assert_eq!(format!("{kept:?}"), format!("{:?}", [&first, &second]), "oldest first, to the last digit");
    assert_eq!(stored(store, &w, &untouched), untouched);
}

pub fn revising_a_superseded_charge_is_contended(store: &dyn Store) {
    let w = world(store);
    let first = charge_of(&w.contract, "setup");
    let next = |revision| Charge { revision, ..first.clone() };
    insert(store, &w, &[&first]);
    revise(store, &w, &first, &next(2)).expect("it is the first");
    for (superseded, revised) in [(&first, &next(2)), (&next(3), &next(4)), (&charge_of(&w.contract, "unknown"), &next(2))] {
        let answer = revise(store, &w, superseded, revised);
        assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
    }
    assert_eq!(stored(store, &w, &first), next(2));
    assert_eq!(
        read(store, |tx| tx.superseded_charges(w.org, &[w.customer.id], std::slice::from_ref(&first.charge_ref))),
        [first]
    );
}

pub fn a_contracts_book_has_its_charges_deleted_ones_too(store: &dyn Store) {
    let w = world(store);
    let other = w.another_contract(2);
    write(store, |tx| tx.insert_contract(w.org, &other, None));
    // A charge always has a document.
    w.open(store, w.head(1));
    w.open(store, w.head(2));
    let deleted = Charge { deleted: true, ..full(&w.contract, "b") };
    let (first, third) = (charge_of(&w.contract, "a"), full(&w.contract, "c"));
    insert(store, &w, &[&third, &deleted, &first]);
    write(store, |tx| {
        tx.lock_contract(other.key(w.org), Lock::Exclusive)?;
        done(tx.insert_charge(w.org, &charge_of(&other, "d")))
    });
    let charges = read(store, |tx| w.rows(tx)).charges;
    assert_eq!(format!("{charges:?}"), format!("{:?}", [&first, &deleted, &third]), "each once, to the last digit");
    let stranger = ContractKey { customer: CustomerId::from_uuid(Uuid::now_v7()), ..w.contract.key(w.org) };
    assert_eq!(read(store, |tx| tx.book_rows(stranger)).charges, []);
}

pub fn charges_come_by_creation_then_by_reference_in_pages(store: &dyn Store) {
    let w = world(store);
    let made = |name: &str, seconds| Charge { recorded_at: later(seconds), ..charge_of(&w.contract, name) };
    let [d, a, c, b] = [made("d", 1), made("a", 2), made("c", 2), made("b", 3)];
    let gone = Charge { deleted: true, ..made("e", 0) };
    insert(store, &w, &[&b, &c, &gone, &a, &d]);
    let list = |size, number| read(store, |tx| tx.charges(w.org, &ChargeFilter::default(), page(size, number)));
    assert_eq!(list(3, 0), Page { items: vec![d, a, c], total: 4 });
    assert_eq!(list(3, 1), Page { items: vec![b], total: 4 });
    assert_eq!(list(3, 2), Page { items: vec![], total: 4 });
    reads_backward(|page| read(store, |tx| tx.charges(w.org, &ChargeFilter::default(), page)));
}

pub fn each_field_of_a_filter_narrows_the_charges(store: &dyn Store) {
    let w = world(store);
    let other = w.another_contract(2);
    write(store, |tx| tx.insert_contract(w.org, &other, None));
    let on = |name: &str, day: &str| Charge { date: date(day), ..charge_of(&w.contract, name) };
    let (early, late, elsewhere) = (on("a", "2026-01-31"), on("b", "2026-02-01"), charge_of(&other, "c"));
    insert(store, &w, &[&early, &late]);
    write(store, |tx| {
        tx.lock_contract(other.key(w.org), Lock::Exclusive)?;
        done(tx.insert_charge(w.org, &elsewhere))
    });
    let list = |filter: ChargeFilter| {
        let found = read(store, |tx| tx.charges(w.org, &filter, all()));
        assert_eq!(found.items.len() as u64, found.total);
        found.items.into_iter().map(|charge| charge.charge_ref.to_string()).collect::<Vec<_>>().join(" ")
    };
    let none = ChargeFilter::default;
    assert_eq!(list(none()), "a b c");
    assert_eq!(list(ChargeFilter { contract_ref: Some(w.contract.contract_ref), ..none() }), "a b");
    assert_eq!(list(ChargeFilter { customer_id: Some(w.customer.id), ..none() }), "a b c");
    assert_eq!(list(ChargeFilter { customer_id: Some(CustomerId::from_uuid(Uuid::now_v7())), ..none() }), "");
    assert_eq!(list(ChargeFilter { from: Some(date("2026-02-01")), ..none() }), "b");
    assert_eq!(list(ChargeFilter { from: Some(date("2026-01-31")), ..none() }), "a b");
    assert_eq!(list(ChargeFilter { to: Some(date("2026-01-31")), ..none() }), "a c");
}

pub fn another_organization_has_charges_of_its_own(store: &dyn Store) {
    // The references of both worlds are equal.
    let (w, stranger) = (world(store), world(store));
    let charge = charge_of(&w.contract, "setup");
    w.open(store, w.head(1));
    insert(store, &w, &[&charge]);
    assert_eq!(read(store, |tx| tx.charge(stranger.org, &charge.charge_ref)), None);
    assert_eq!(read(store, |tx| tx.charges(stranger.org, &ChargeFilter::default(), all())), Page::empty());
    let answer = transact_answer(store, |tx| {
        w.hold(tx)?;
        tx.lock_contract(ContractKey { organization: stranger.org, ..w.contract.key(w.org) }, Lock::Exclusive)?;
        tx.revise_charge(stranger.org, &charge, &Charge { revision: 2, ..charge.clone() })
    });
    assert!(answer.is_err(), "{answer:?}");
    insert(store, &stranger, &[&charge_of(&stranger.contract, "setup")]);
    let next = Charge { revision: 2, ..charge.clone() };
    revise(store, &w, &charge, &next).expect("it is its own");
    assert_eq!(
        read(store, |tx| tx.superseded_charges(stranger.org, &[w.customer.id], std::slice::from_ref(&charge.charge_ref))),
        []
    );
    assert_eq!(stored(store, &w, &charge), next);
    assert_eq!(stored(store, &stranger, &charge).revision, 1);
    assert_eq!(read(store, |tx| tx.book_rows(ContractKey { organization: stranger.org, ..w.contract.key(w.org) })).charges, []);
}

//! Contracts.

use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, ProductTerms, Quantities, QuantityStep, SelectedCharge};
use billing_domain::contract::{Contract, ContractProduct, EndReason, Segment, SegmentTerms};
use billing_domain::party::NetTerms;
use billing_domain::ports::{DueContract, Lock, Store, StoreError, StoreResult, Tx};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, ProductNo, UsageProductRef};

use super::{World, done, later, long_ago, page, read, transact_answer, undo, world, write};
use crate::Singly as _;
use crate::fixtures::{self, agreed, agreed_with, date, price, quantity};
use crate::{FreshIds, suite::all};

/// Creates terms with all fields and every price model.
fn full_terms() -> ProductTerms {
    let rows = [(Some("100"), "0.10", "0"), (Some("1000.5"), "0.050", "5.00"), (None, "0.01", "0.00")];
    let charged = fixtures::with_charge(fixtures::per_unit("calls", "0.0025"), |charge| {
        charge.included_quantity = quantity("1000");
        charge.prepaid_quantity = Some(quantity("2000.50"));
        charge.minimum_amount = Some(price("1.50"));
        charge.maximum_amount = Some(price("99.999"));
    });
    let items = vec![
        fixtures::fixed("fixed", "100.00"),
        fixtures::once("once", "0"),
        charged,
        fixtures::graduated("graduated", &rows),
        fixtures::volume("volume", &rows),
        fixtures::package("package", "1000.000000001", "5.00"),
        fixtures::percentage("percentage", "1.400000", "0.250"),
        fixtures::fixed_at("seats", fixtures::usage_price(&fixtures::volume("volume", &rows))),
    ];
    let mut pricing = fixtures::pricing("full", items);
    pricing.content.minimum_fee = Some(price("12.50"));
    let mut terms = agreed_with(&pricing, "2024-02-29", "2027-01-30", |request| {
        request.entity_ref = Some(fixtures::entity_ref("main"));
        request.billing_cycle = BillingCycle::new(CycleUnit::Quarterly, 1200);
        request.issue_day = Some(date("2024-03-31"));
        request.payment_time = Some(PaymentTime::BeforeUse);
        request.tax = Some(fixtures::percent("19.000"));
        request.discount = Some(fixtures::percent("10.5"));
        request.net_terms = Some(NetTerms::Days(30));
        request.note = Some(fixtures::prose("Line 1\n\tLine 2 ✓"));
        request.payment = fixtures::full_payment();
    });
    for (i, item) in Arc::make_mut(&mut terms.line_items).iter_mut().enumerate() {
        use billing_domain::catalog::Aggregation::{Count, Latest, Max, Sum};
        match &mut item.charge {
            SelectedCharge::Usage(metered) => {
                metered.aggregation = [Sum, Count, Max, Latest][i % 4];
                metered.unit = (i % 2 == 0).then(|| fixtures::line("GB"));
            }
            SelectedCharge::Fixed { quantities, .. } if i != 0 => {
                let step = |from, text| QuantityStep { from: date(from), quantity: quantity(text) };
                let steps = vec![step("2024-01-01", "3.50"), step("2025-06-15", "0")];
                *quantities = Quantities::new(steps).expect("rising dates");
            }
            SelectedCharge::Fixed { .. } => {}
        }
    }
    terms
}

fn store_full_catalog(store: &dyn Store, w: &World) {
    write(store, |tx| {
        for reference in ["graduated", "volume", "package", "percentage"] {
            done(tx.insert_usage_product(w.org, &fixtures::usage_product(reference)))?;
        }
        done(tx.insert_pricing(w.org, &fixtures::pricing("full", vec![])))
    });
}

pub fn a_contract_comes_back_with_every_field_and_segment(store: &dyn Store) {
    let w = world(store);
    store_full_catalog(store, &w);
    let billed = |terms: ProductTerms| SegmentTerms::Billed(Box::new(terms));
    let mut changed = full_terms();
    changed.line_items = changed.line_items[..2].into();
    changed.payment_time = PaymentTime::DuringUse;
    changed.all_line_items = false;
    let segments = vec![
        Segment { version: 1, in_force_from: date("2024-02-29"), agreed: billed(full_terms()) },
        Segment { version: 2, in_force_from: date("2025-01-01"), agreed: billed(changed.clone()) },
        // A version has segments from several dates, and the next version has one from an earlier date.
        Segment { version: 2, in_force_from: date("2025-07-01"), agreed: billed(full_terms()) },
        Segment { version: 2, in_force_from: date("2026-03-01"), agreed: billed(changed) },
        Segment { version: 4, in_force_from: date("2026-01-01"), agreed: SegmentTerms::Ended(EndReason::Removed) },
    ];
    let ended = Segment { version: 5, in_force_from: date("2026-07-01"), agreed: SegmentTerms::Ended(EndReason::Cancelled) };
    let mut second = ContractProduct::new(ProductNo(1), agreed(&w.pricing, "2026-01-01", "2026-12-31"));
    second.segments.push(ended);
    // More than ten products reveal an order by text.
    let more = (2..13).map(|no| {
        let first = format!("{}-01-01", 2030 + no);
        let last = format!("{}-12-31", 2030 + no);
        ContractProduct::new(ProductNo(no), agreed(&w.pricing, &first, &last))
    });
    let contract = Contract {
        number: 2,
        po_number: Some(fixtures::line("PO-1")),
        metadata: fixtures::metadata(&[("crm", "0042"), ("a b", "{}")]),
        version: 5,
        created_at: later(1),
        updated_at: later(3),
        cancelled_at: Some(later(2)),
        products: [ContractProduct { no: ProductNo(0), segments }, second].into_iter().chain(more).collect(),
        ..w.another_contract(2)
    };
    write(store, |tx| tx.insert_contract(w.org, &contract, Some(later(3))));
    let stored = read(store, |tx| tx.contract(w.org, contract.contract_ref)).expect("a contract");
    assert_eq!(stored, contract);
    // Equal decimals may have different digits, so the debug output is compared.
    assert_eq!(format!("{stored:?}"), format!("{contract:?}"));
}

pub fn a_contract_comes_back_without_optional_fields(store: &dyn Store) {
    let w = world(store);
    let mut bare = agreed(&fixtures::pricing("api", vec![]), "2026-01-31", "2026-01-31");
    bare.schedule = billing_domain::contract::schedule::BillingSchedule::new(
        date("2026-01-31"),
        date("2026-01-31"),
        BillingCycle::new(CycleUnit::OneTime, 1).expect("a cycle"),
        None,
    )
    .expect("a schedule");
    // A schedule that was shortened after its start keeps its anchor.
    let mut clipped = agreed(&fixtures::pricing("other", vec![]), "2026-01-01", "2026-12-31");
    clipped.schedule = clipped.schedule.over(clipped.schedule.range().start(), date("2026-06-20"), true).expect("a schedule");
    assert_eq!(clipped.schedule.fixed_anchor(), Some(date("2027-01-01")));
    let contract = Contract { number: 2, ..fixtures::contract(&FreshIds, &w.customer, vec![bare, clipped]) };
    let without_products = Contract { number: 3, ..fixtures::contract(&FreshIds, &w.customer, vec![]) };
    write(store, |tx| {
        tx.insert_contract(w.org, &contract, None)?;
        tx.insert_contract(w.org, &without_products, None)
    });
    for contract in [&contract, &without_products, &w.contract] {
        assert_eq!(read(store, |tx| tx.contract(w.org, contract.contract_ref)).as_ref(), Some(contract));
    }
    let unknown = fixtures::contract(&FreshIds, &w.customer, vec![]);
    assert_eq!(read(store, |tx| tx.contract(w.org, unknown.contract_ref)), None);
}

pub fn a_customers_contracts_come_by_creation_in_pages(store: &dyn Store) {
    let w = world(store);
    let made = |number, seconds| Contract { created_at: later(seconds), ..w.another_contract(number) };
    let (a, b, c, older) = (made(2, 5), made(3, 5), made(4, 5), made(5, 1));
    let other_customer = fixtures::customer(&FreshIds, "other");
    let others = Contract { number: 6, ..fixtures::contract(&FreshIds, &other_customer, vec![]) };
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other_customer))?;
        [&c, &a, &older, &b, &others].into_iter().try_for_each(|contract| tx.insert_contract(w.org, contract, None))
    });
    let expected = [&w.contract, &older, &a, &b, &c].map(Clone::clone);
    let listed = read(store, |tx| tx.contracts_of_customer(w.org, w.customer.id, all()));
    assert_eq!((listed.items.as_slice(), listed.total), (expected.as_slice(), 5));
    let second = read(store, |tx| tx.contracts_of_customer(w.org, w.customer.id, page(2, 1)));
    assert_eq!((second.items.as_slice(), second.total), (&expected[2..4], 5));
    let beyond = read(store, |tx| tx.contracts_of_customer(w.org, w.customer.id, page(2, 3)));
    assert_eq!((beyond.items, beyond.total), (vec![], 5));
}

pub fn recent_contracts_of_the_customer_with_the_same_days_are_found(store: &dyn Store) {
    let w = world(store);
    let made = |number, seconds, first, last| Contract {
        number,
        created_at: later(seconds),
        ..fixtures::contract(&FreshIds, &w.customer, vec![agreed(&w.pricing, first, last)])
    };
    let (year, early) = (made(2, 100, "2026-01-01", "2026-12-31"), made(3, 50, "2026-01-01", "2026-12-31"));
    let (shorter, later_start) = (made(4, 100, "2026-01-01", "2026-11-30"), made(5, 100, "2026-01-02", "2026-12-31"));
    let cancelled = Contract { cancelled_at: Some(later(110)), ..made(6, 100, "2026-01-01", "2026-12-31") };
    let other_customer = fixtures::customer(&FreshIds, "other");
    let others = fixtures::contract(&FreshIds, &other_customer, vec![agreed(&w.pricing, "2026-01-01", "2026-12-31")]);
    let others = Contract { number: 7, created_at: later(100), ..others };
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other_customer))?;
        let all = [&year, &early, &shorter, &later_start, &cancelled, &others];
        all.into_iter().try_for_each(|contract| tx.insert_contract(w.org, contract, None))
    });
    let created = made(8, 120, "2026-01-01", "2026-12-31");
    let like = |since| read(store, |tx| tx.contracts_like(w.org, &created, later(since)));
    assert_eq!(like(50), [year.clone(), early]);
    assert_eq!(like(51), [year]);
    assert_eq!(like(101), []);
}

pub fn contracts_metering_looks_at_every_version_of_every_product(store: &dyn Store) {
    let w = world(store);
    let storage = fixtures::usage_product("storage");
    let fixed_only = agreed(&fixtures::pricing("api", vec![fixtures::fixed("base", "1")]), "2026-01-01", "2026-12-31");
    let metering = agreed(&fixtures::pricing("api", vec![fixtures::per_unit("storage", "1")]), "2027-01-01", "2027-12-31");
    let made = |number, seconds, terms: Vec<ProductTerms>| Contract {
        number,
        created_at: later(seconds),
        ..fixtures::contract(&FreshIds, &w.customer, terms)
    };
    let newer = made(2, 9, vec![fixed_only.clone(), metering.clone()]);
    // Only the first version meters the usage product.
    let mut by_an_old_version = made(3, 5, vec![metering.clone()]);
    let changed = SegmentTerms::Billed(Box::new(fixed_only.clone()));
    by_an_old_version.products[0].segments.push(Segment { version: 2, in_force_from: date("2027-06-01"), agreed: changed });
    by_an_old_version.version = 2;
    let without = made(4, 6, vec![fixed_only]);
    let other_customer = fixtures::customer(&FreshIds, "other");
    let others = Contract { number: 5, ..fixtures::contract(&FreshIds, &other_customer, vec![metering]) };
    write(store, |tx| {
        done(tx.insert_usage_product(w.org, &storage))?;
        done(tx.insert_customer(w.org, &other_customer))?;
        [&newer, &by_an_old_version, &without, &others]
            .into_iter()
            .try_for_each(|contract| tx.insert_contract(w.org, contract, None))
    });
    let found = read(store, |tx| tx.contracts_metering(w.org, &[(w.customer.id, storage.usage_product_ref.clone())], None));
    assert_eq!(found, [by_an_old_version.clone(), newer.clone()]);
    let found = read(store, |tx| tx.contracts_metering(w.org, &[(w.customer.id, w.product.usage_product_ref.clone())], None));
    assert_eq!(found, std::slice::from_ref(&w.contract));
    // The result has no duplicates, regardless of the requested pairs. A pair applies only to its own customer and product.
    let pairs = [
        (w.customer.id, storage.usage_product_ref.clone()),
        (other_customer.id, storage.usage_product_ref.clone()),
        (w.customer.id, storage.usage_product_ref.clone()),
        (other_customer.id, w.product.usage_product_ref.clone()),
    ];
    let found = write(store, |tx| tx.contracts_metering(w.org, &pairs, Some(Lock::Shared)));
    assert_eq!(found.len(), 3);
    assert!([&by_an_old_version, &newer, &others].iter().all(|contract| found.contains(contract)));
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &[], None)), []);
    let unknown = fixtures::usage_product_ref("unknown");
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &[(w.customer.id, unknown.clone())], None)), []);
}

pub fn contracts_metering_have_the_terms_that_stand_whatever_was_read_of_others(store: &dyn Store) {
    let w = world(store);
    let metered = [(w.customer.id, w.product.usage_product_ref.clone())];
    let key = w.contract.key(w.org);
    let ending = |on: &str| {
        let mut next = Contract { version: 2, ..w.contract.clone() };
        let ended = Segment { version: 2, in_force_from: date(on), agreed: SegmentTerms::Ended(EndReason::Cancelled) };
        next.products[0].segments.push(ended);
        next
    };
    let (undone, kept) = (ending("2026-03-01"), ending("2026-04-01"));
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &metered, None)), std::slice::from_ref(&w.contract));
    undo(store, |tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        tx.append_contract_version(w.org, &undone, later(1), Actor::Service)?;
        assert_eq!(tx.contracts_metering(w.org, &metered, Some(Lock::Exclusive))?, std::slice::from_ref(&undone));
        Ok(())
    });
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &metered, None)), std::slice::from_ref(&w.contract));
    write(store, |tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        tx.append_contract_version(w.org, &kept, later(2), Actor::Service)
    });
    assert_eq!(write(store, |tx| tx.contracts_metering(w.org, &metered, Some(Lock::Shared))), [kept]);
}

pub fn stamps_change_with_what_they_stand_for(store: &dyn Store) {
    let w = world(store);
    let key = w.contract.key(w.org);
    let pairs = [(w.customer.id, w.product.usage_product_ref.clone())];
    let stamps = || {
        let found = write(store, |tx| tx.lock_stamps(w.org, &pairs));
        assert_eq!(found.iter().map(|(contract, _)| *contract).collect::<Vec<_>>(), [key]);
        found[0].1
    };
    let mut before = stamps();
    write(store, |tx| tx.lock_contract(key, Lock::Shared).map(drop));
    write(store, |tx| tx.hold_contracts(&[(key, Lock::Shared)]));
    write(store, |tx| tx.agreement(key, Some(Lock::Shared)).map(drop));
    undo(store, |tx| tx.lock_contract(key, Lock::Exclusive).map(drop));
    assert_eq!(stamps(), before, "shared locks and rolled-back transactions change no stamp");
    type TakeLock = fn(&mut dyn Tx, ContractKey) -> StoreResult<()>;
    let locks: [TakeLock; 3] = [
        |tx, key| tx.lock_contract(key, Lock::Exclusive).map(drop),
        |tx, key| tx.hold_contracts(&[(key, Lock::Shared), (key, Lock::Exclusive)]),
        |tx, key| tx.agreement(key, Some(Lock::Exclusive)).map(drop),
    ];
    for (n, lock) in locks.into_iter().enumerate() {
        write(store, |tx| lock(tx, key));
        let after = stamps();
        assert_ne!(after.contract, before.contract, "{n}");
        assert_eq!((after.customer, after.catalog), (before.customer, before.catalog), "{n}");
        before = after;
    }
    write(store, |tx| tx.contracts_metering(w.org, &pairs, Some(Lock::Exclusive)).map(drop));
    assert_ne!(stamps().contract, before.contract);
    let before = stamps();
    write(store, |tx| tx.update_customer(w.org, &w.customer).map(drop));
    let after = stamps();
    assert_ne!(after.customer, before.customer);
    assert_eq!((after.contract, after.catalog), (before.contract, before.catalog));
    write(store, |tx| tx.update_usage_product(w.org, &w.product).map(drop));
    let product = stamps();
    write(store, |tx| tx.update_entity(w.org, &w.entity).map(drop));
    let entity = stamps();
    assert!(after.catalog != product.catalog && product.catalog != entity.catalog);
    assert_eq!((entity.contract, entity.customer), (after.contract, after.customer));
}

pub fn contracts_have_stamps_by_what_they_meter(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let product = &w.product.usage_product_ref;
    let (second, others) = (w.another_contract(2), fixtures::customer(&FreshIds, "other"));
    write(store, |tx| {
        done(tx.insert_customer(w.org, &others))?;
        tx.insert_contract(w.org, &second, None)
    });
    let stamped = |organization, pairs: &[(CustomerId, UsageProductRef)]| {
        let found = write(store, |tx| tx.lock_stamps(organization, pairs));
        found.into_iter().map(|(key, _)| key).collect::<Vec<ContractKey>>()
    };
    let own = (w.customer.id, product.clone());
    let mut both = [w.contract.key(w.org), second.key(w.org)];
    both.sort_by_key(|key| key.contract);
    // Each contract once, by reference, also if it meters several of the pairs.
    let unknown = (w.customer.id, fixtures::usage_product_ref("unknown"));
    let nothing = (others.id, product.clone());
    assert_eq!(stamped(w.org, &[own.clone(), unknown.clone(), nothing.clone(), own.clone()]), both);
    assert_eq!(stamped(w.org, &[unknown, nothing]), []);
    assert_eq!(stamped(w.org, &[]), []);
    assert_eq!(stamped(stranger.org, &[own]), []);
}

/// Stores contracts due at the given instants, in this order. Returns their due entries.
pub(super) fn store_due(
    store: &dyn Store,
    w: &World,
    first_number: u64,
    due: &[billing_domain::calendar::Timestamp],
) -> Vec<DueContract> {
    let mut made = Vec::new();
    for (number, due_at) in (first_number..).zip(due) {
        let contract = w.another_contract(number);
        made.push(due_contract(w, contract.contract_ref, *due_at));
        write(store, |tx| tx.insert_contract(w.org, &contract, Some(*due_at)));
    }
    made
}

fn due_contract(w: &World, contract_ref: ContractRef, due_at: billing_domain::calendar::Timestamp) -> DueContract {
    DueContract { key: ContractKey { organization: w.org, customer: w.customer.id, contract: contract_ref }, due_at }
}

pub fn due_contracts_come_longest_due_first_then_by_reference(store: &dyn Store) {
    let w = world(store);
    let made = store_due(store, &w, 2, &[later(20), later(10), later(20), later(30), later(31)]);
    let due = |seconds| read(store, |tx| tx.contracts_due(Some(w.org), later(seconds), None, 100));
    assert_eq!(due(9), []);
    assert_eq!(due(10), [made[1]]);
    assert_eq!(due(30), [made[1], made[0], made[2], made[3]]);
    let limited = read(store, |tx| tx.contracts_due(Some(w.org), later(30), None, 2));
    assert_eq!(limited, [made[1], made[0]]);
}

pub fn due_contracts_come_in_pages_after_the_last_one(store: &dyn Store) {
    let w = world(store);
    let made = store_due(store, &w, 2, &[later(10), later(20), later(20), later(20), later(30)]);
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let next = read(store, |tx| tx.contracts_due(Some(w.org), later(60), after, 2));
        assert!(next.len() <= 2);
        let Some(last) = next.last() else { break };
        after = Some(*last);
        seen.extend(next);
        assert!(seen.len() <= made.len(), "pages that never end");
    }
    assert_eq!(seen, made);
    // The next page starts after the previous one, although its last contract isn't due any more.
    write(store, |tx| tx.set_next_due(made[2].key, None));
    let rest = read(store, |tx| tx.contracts_due(Some(w.org), later(60), Some(made[2]), 10));
    assert_eq!(rest, made[3..]);
}

pub fn the_next_due_instant_can_be_moved_and_cleared(store: &dyn Store) {
    let w = world(store);
    let contract_ref = w.contract.contract_ref;
    let due = || read(store, |tx| tx.contracts_due(Some(w.org), later(100), None, 10));
    assert_eq!(due(), []);
    for at in [later(50), later(70).plus_seconds(1)] {
        write(store, |tx| tx.set_next_due(w.contract.key(w.org), Some(at)));
        assert_eq!(due(), [due_contract(&w, contract_ref, at)]);
    }
    write(store, |tx| tx.set_next_due(w.contract.key(w.org), Some(later(101))));
    assert_eq!(due(), []);
    write(store, |tx| tx.set_next_due(w.contract.key(w.org), None));
    assert_eq!(read(store, |tx| tx.contracts_due(Some(w.org), later(1_000_000), None, 10)), []);
}

pub fn contracts_that_ever_named_an_entity_are_looked_at_again(store: &dyn Store) {
    let (w, elsewhere) = (world(store), world(store));
    let of = |entity: &str| {
        agreed_with(&w.pricing, "2026-01-01", "2026-12-31", |request| request.entity_ref = Some(fixtures::entity_ref(entity)))
    };
    let mut contracts: Vec<Contract> = (2..)
        .zip([of("main"), of("main"), of("a_b"), of("a_b")])
        .map(|(number, terms)| Contract { number, ..fixtures::contract(&FreshIds, &w.customer, vec![terms]) })
        .collect();
    // Earlier versions and later products count, too.
    let changed = Segment { version: 2, in_force_from: date("2026-06-01"), agreed: SegmentTerms::Billed(Box::new(of("a_b"))) };
    contracts[0].products[0].segments.push(changed.clone());
    contracts[0].version = 2;
    contracts[2].products.push(ContractProduct::new(ProductNo(1), of("main")));
    let due = [Some(later(50)), None, Some(later(10)), Some(later(50))];
    write(store, |tx| {
        contracts.iter().zip(due).try_for_each(|(contract, due)| tx.insert_contract(w.org, contract, due))?;
        tx.set_next_due(elsewhere.contract.key(elsewhere.org), Some(later(50)))?;
        tx.advance_due_instants(w.org, &w.entity.entity_ref, later(20))
    });
    let seen = |w: &World| {
        let due = read(store, |tx| tx.contracts_due(Some(w.org), later(100), None, 10));
        due.into_iter().map(|due| (due.key.contract, due.due_at)).collect::<std::collections::BTreeMap<_, _>>()
    };
    let named =
        |expected: &[(&Contract, i64)]| expected.iter().map(|(contract, at)| (contract.contract_ref, later(*at))).collect();
    let [changed, never, other, without] = &contracts[..] else { unreachable!("four were made") };
    assert_eq!(seen(&w), named(&[(&w.contract, 20), (changed, 20), (never, 20), (other, 10), (without, 50)]));
    assert_eq!(seen(&elsewhere), named(&[(&elsewhere.contract, 50)]));
    write(store, |tx| tx.advance_due_instants(w.org, &fixtures::entity_ref("a_b"), later(5)));
    assert_eq!(seen(&w), named(&[(&w.contract, 20), (changed, 5), (never, 20), (other, 5), (without, 5)]));
}

pub fn due_contracts_of_all_organizations_come_in_one_order(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    // The instants are so old that no contracts of other tests are due between them.
    let start = long_ago();
    let first = store_due(store, &one, 2, &[start.plus_seconds(1)]);
    let second = store_due(store, &other, 2, &[start]);
    let third = store_due(store, &one, 3, &[start.plus_seconds(2)]);
    let mine = [second[0], first[0], third[0]];
    let now = start.plus_seconds(2);
    let mut seen = Vec::new();
    let mut after = None;
    loop {
        let next = read(store, |tx| tx.contracts_due(None, now, after, 2));
        let Some(last) = next.last() else { break };
        after = Some(*last);
        seen.extend(next.into_iter().filter(|due| mine.contains(due)));
    }
    assert_eq!(seen, mine);
    // Other tests store contracts at the same time, so the count is compared within one transaction.
    let (counted, listed) = read(store, |tx| Ok((tx.count_contracts_due(now)?, tx.contracts_due(None, now, None, 10_000)?)));
    assert!(mine.iter().all(|due| listed.contains(due)), "{listed:?}");
    assert_eq!(counted, listed.len() as u64);
    // Other tests must find no due contracts of this test.
    write(store, |tx| mine.iter().try_for_each(|due| tx.set_next_due(due.key, None)));
}

/// Creates the next version of a contract with a change of every field that a version can change.
fn amended(w: &World, contract: &Contract) -> Contract {
    let version = contract.version + 1;
    let mut next = Contract {
        version,
        po_number: Some(fixtures::line("PO-2")),
        metadata: fixtures::metadata(&[("crm", &version.to_string())]),
        updated_at: later(50 + i64::from(version)),
        ..contract.clone()
    };
    let mut changed = full_terms();
    changed.note = Some(fixtures::prose(&format!("version {version}")));
    let billed = |terms| SegmentTerms::Billed(Box::new(terms));
    // One segment starts on the date of the previous version, one earlier. Later versions take precedence.
    next.products[0].segments.push(Segment { version, in_force_from: date("2026-01-01"), agreed: billed(changed) });
    next.products.push(ContractProduct {
        no: ProductNo(1),
        segments: vec![Segment {
            version,
            in_force_from: date("2026-07-01"),
            agreed: billed(agreed(&w.pricing, "2026-07-01", "2026-12-31")),
        }],
    });
    next
}

fn append(store: &dyn Store, w: &World, contract: &Contract) -> StoreResult<()> {
    transact_answer(store, |tx| {
        tx.lock_contract(contract.key(w.org), Lock::Exclusive)?;
        tx.append_contract_version(w.org, contract, later(7), Actor::Service)
    })
}

pub fn a_version_adds_to_the_one_before(store: &dyn Store) {
    let w = world(store);
    store_full_catalog(store, &w);
    write(store, |tx| tx.set_next_due(w.contract.key(w.org), Some(later(1))));
    let second = amended(&w, &w.contract);
    append(store, &w, &second).expect("the next version");
    let mut third = Contract { version: 3, po_number: None, cancelled_at: Some(later(9)), ..second.clone() };
    for (product, from) in third.products.iter_mut().zip(["2026-01-01", "2026-03-01"]) {
        let agreed = SegmentTerms::Ended(EndReason::Cancelled);
        product.segments.push(Segment { version: 3, in_force_from: date(from), agreed });
    }
    append(store, &w, &third).expect("the next version");
    let stored = read(store, |tx| tx.contract(w.org, w.contract.contract_ref)).expect("a contract");
    assert_eq!(format!("{stored:?}"), format!("{third:?}"));
    assert_eq!(stored, third);
    let locked = write(store, |tx| tx.lock_contract(w.contract.key(w.org), Lock::Shared));
    assert_eq!(locked, Some(3));
    // The contract is found by the metered products of the second version, and its due time is unchanged.
    let graduated = fixtures::usage_product_ref("graduated");
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &[(w.customer.id, graduated.clone())], None)), [third]);
    let due = read(store, |tx| tx.contracts_due(Some(w.org), later(2), None, 10));
    assert_eq!(due.iter().map(|due| due.due_at).collect::<Vec<_>>(), [later(1)]);
}

pub fn a_version_that_does_not_follow_is_corrupt(store: &dyn Store) {
    let w = world(store);
    store_full_catalog(store, &w);
    let second = amended(&w, &w.contract);
    append(store, &w, &second).expect("the next version");
    for contract in [&second, &Contract { version: 4, ..second.clone() }, &amended(&w, &w.another_contract(9))] {
        let answer = append(store, &w, contract);
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    }
    assert_eq!(read(store, |tx| tx.contract(w.org, w.contract.contract_ref)), Some(second));
}

pub fn a_version_rolled_back_leaves_the_one_before(store: &dyn Store) {
    let w = world(store);
    store_full_catalog(store, &w);
    undo(store, |tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.append_contract_version(w.org, &amended(&w, &w.contract), later(7), Actor::Service)
    });
    assert_eq!(read(store, |tx| tx.contract(w.org, w.contract.contract_ref)), Some(w.contract.clone()));
    let graduated = fixtures::usage_product_ref("graduated");
    assert_eq!(read(store, |tx| tx.contracts_metering(w.org, &[(w.customer.id, graduated.clone())], None)), []);
}

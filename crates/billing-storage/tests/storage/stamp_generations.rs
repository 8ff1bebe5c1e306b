//! A generation of stamps ends with each change of a stamp, on its own connection and on others.

use billing_domain::contract::Contract;
use billing_domain::ports::{
    Access, Insertion, Lock, RollBack, StampGeneration, Stamps, Store, StoreError, StoreResult, Tx, attempt, transact,
};
use billing_domain::refs::{ContractKey, ContractRef};
use billing_domain::usage::UsageTotal;
use billing_testkit::fixtures;

use crate::rows::{World, world};
use crate::support::{open, postgres, sqlite, write};

fn generation(store: &dyn Store) -> Option<StampGeneration> {
    write(store, |tx| tx.stamp_generation())
}

fn stamps(store: &dyn Store, w: &World) -> Vec<(ContractKey, Stamps)> {
    write(store, |tx| tx.lock_stamps(w.organization, &[(w.customer.id, w.key.usage_product_ref.clone())]))
}

/// Returns another contract of the same customer.
fn another_contract(w: &World) -> Contract {
    Contract { contract_ref: ContractRef::from_uuid(uuid::Uuid::now_v7()), number: 2, ..w.contract.clone() }
}

type Change = fn(&mut dyn Tx, &World) -> StoreResult<()>;

/// Every way to change a stamp, or the contracts that have stamps.
const CHANGES: [(&str, Change); 10] = [
    ("lock_contract", |tx, w| tx.lock_contract(w.contract.key(w.organization), Lock::Exclusive).map(drop)),
    ("hold_contracts", |tx, w| tx.hold_contracts(&[(w.contract.key(w.organization), Lock::Exclusive)])),
    ("agreement", |tx, w| tx.agreement(w.contract.key(w.organization), Some(Lock::Exclusive)).map(drop)),
    ("contracts_metering", |tx, w| {
        let pair = (w.customer.id, w.key.usage_product_ref.clone());
        tx.contracts_metering(w.organization, &[pair], Some(Lock::Exclusive)).map(drop)
    }),
    ("insert_contract", |tx, w| tx.insert_contract(w.organization, &another_contract(w), None)),
    ("update_customer", |tx, w| tx.update_customer(w.organization, &w.customer).map(drop)),
    ("set_watched", |tx, w| {
        tx.set_watched(w.organization, w.customer.id, true)?;
        tx.set_watched(w.organization, w.customer.id, false)
    }),
    ("update_entity", |tx, w| tx.update_entity(w.organization, &w.entity).map(drop)),
    ("delete_entity", |tx, w| {
        let spare = fixtures::entity("spare");
        assert_eq!(tx.insert_entity(w.organization, &spare)?, Insertion::Done);
        tx.delete_entity(w.organization, &spare.entity_ref)
    }),
    ("update_usage_product", |tx, w| {
        tx.update_usage_product(w.organization, &fixtures::usage_product(w.key.usage_product_ref.as_str())).map(drop)
    }),
];

#[test]
fn a_generation_ends_with_each_change_of_a_stamp() {
    let test = sqlite();
    let w = world(&test);
    for (name, change) in CHANGES {
        let (before, stamps_before) = (generation(&test), stamps(&test, &w));
        assert_eq!((generation(&test), before.is_some()), (before, true), "{name}");
        let (first, own) = write(&test, |tx| {
            let first = tx.stamp_generation()?;
            change(tx, &w)?;
            Ok((first, tx.stamp_generation()?))
        });
        assert_eq!((first, own), (before, None), "{name}: a transaction that changes stamps has no generation afterwards");
        assert_ne!(stamps(&test, &w), stamps_before, "{name}");
        assert_ne!(generation(&test), before, "{name}");
    }
}

#[test]
fn stamps_that_a_transaction_changed_and_rolled_back_belong_to_no_generation() {
    let test = sqlite();
    let w = world(&test);
    let before = stamps(&test, &w);
    for (name, change) in CHANGES {
        let own = write(&test, |tx| {
            let part = attempt::<(), StoreError>(tx, |tx| change(tx, &w).and(Err(StoreError::Contended)));
            assert!(matches!(part, Err(StoreError::Contended)), "{name}: {part:?}");
            tx.stamp_generation()
        });
        assert_eq!(own, None, "{name}");
        let mut own = None;
        let undone = test.run(Access::Write, &mut |tx| {
            change(tx, &w).expect("a change");
            own = Some(tx.stamp_generation().expect("no failure"));
            Err(RollBack)
        });
        assert!(undone.is_ok() && own == Some(None), "{name}: {undone:?}, {own:?}");
        assert_eq!(stamps(&test, &w), before, "{name}");
    }
}

#[test]
fn a_generation_continues_while_only_usage_is_written() {
    let test = sqlite();
    let w = world(&test);
    let head = w.open(&test, 1);
    let before = generation(&test);
    assert!(before.is_some());
    write(&test, |tx| {
        tx.lock_contract(w.contract.key(w.organization), Lock::Shared)?;
        tx.insert_events_on_drafts(w.organization, &[w.event(&head)]).map(drop)
    });
    write(&test, |tx| tx.add_usage(w.organization, &[(w.customer.id, w.key.clone(), UsageTotal::ZERO)]).map(drop));
    let refused: StoreResult<()> = test.run(Access::Write, &mut |tx| {
        tx.next_contract_number(w.organization).expect("a number");
        Err(RollBack)
    });
    refused.expect("a roll-back is no error");
    assert_eq!(generation(&test), before);
}

#[test]
fn a_commit_of_another_connection_ends_the_generation() {
    let test = sqlite();
    let w = world(&test);
    let statements = ["UPDATE contracts SET stamp = randomblob(16)", "UPDATE customers SET stamp = randomblob(16)"];
    for statement in statements {
        let (before, stamps_before) = (generation(&test), stamps(&test, &w));
        test.beside().execute(statement).expect(statement);
        assert_ne!(generation(&test), before, "{statement}");
        assert_ne!(stamps(&test, &w), stamps_before, "{statement}");
    }
    let other = open(&test.url);
    let before = [generation(&test), generation(&other)];
    write(&other, |tx| tx.lock_contract(w.contract.key(w.organization), Lock::Exclusive).map(drop));
    let after = [generation(&test), generation(&other)];
    assert!(before[0] != after[0] && before[1] != after[1] && after[0] != after[1], "{before:?}, {after:?}");
}

#[test]
fn a_new_connection_begins_a_generation() {
    let test = sqlite();
    world(&test);
    let before = generation(&test);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        transact::<(), StoreError>(&test, Access::Write, |_| panic!("deliberate panic"))
    }));
    assert!(outcome.is_err());
    assert!(before.is_some() && generation(&test) != before);
}

#[test]
fn postgres_has_no_generations() {
    let test = postgres();
    world(&test);
    assert_eq!(generation(&test), None);
}

//! The billing clock of a sandbox.

use billing_domain::notification::{Notice, NotificationType, Subject};
use billing_domain::ports::{Access, Store, StoreError, transact};

use super::contracts::store_due;
use super::{later, long_ago, read, world, write};
use crate::Singly as _;

pub fn a_live_database_has_no_clock_and_a_sandbox_has_the_last_one(store: &dyn Store) {
    // Other tests use the same database, so nothing is committed.
    let seen = transact::<(), StoreError>(store, Access::Write, |tx| {
        assert_eq!(tx.sandbox_now()?, None);
        for now in [later(5), later(7)] {
            tx.put_sandbox_now(now)?;
            assert_eq!(tx.sandbox_now()?, Some(now));
        }
        Err(StoreError::Corrupt("rolled back".to_owned()))
    });
    assert!(seen.is_err());
    assert_eq!(read(store, |tx| tx.sandbox_now()), None);
}

pub fn the_next_due_instant_is_the_first_one_of_contracts_and_notices(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    // The instants are so old that nothing of other tests is due between them.
    let start = long_ago().plus_seconds(-1000);
    let due = store_due(store, &one, 2, &[start.plus_seconds(20)]);
    let subject = Subject::Contract(other.contract.contract_ref);
    let notice =
        Notice { customer_id: other.customer.id, subject, kind: NotificationType::ContractEnding, at: start.plus_seconds(10) };
    write(store, |tx| tx.put_notices(other.org, &[notice]));
    let next = |after: i64| read(store, |tx| tx.next_due_instant(start.plus_seconds(after)));
    assert_eq!([0, 9, 10, 19].map(next), [10, 10, 20, 20].map(|at| Some(start.plus_seconds(at))));
    assert_ne!(next(20), Some(start.plus_seconds(20)));
    // Other tests must find nothing due of this test.
    write(store, |tx| {
        tx.take_notice(other.org, &notice)?;
        due.iter().try_for_each(|due| tx.set_next_due(due.key, None))
    });
}

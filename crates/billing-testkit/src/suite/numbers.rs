//! Number series.

use std::sync::Mutex;

use billing_domain::document::DocumentKind;
use billing_domain::ports::{Access, Lock, RollBack, Store, StoreError, Tx};

use super::{done, read, undo, updated, world, write, write_contended};
use crate::Singly as _;
use crate::fixtures;

const THREADS: u64 = 4;
const ROUNDS: u64 = 25;

pub fn document_numbers_count_from_one_by_entity_and_kind(store: &dyn Store) {
    let w = world(store);
    let second = fixtures::entity("second");
    write(store, |tx| done(tx.insert_entity(w.org, &second)));
    let rows = [
        (&w.entity, DocumentKind::Invoice, 1),
        (&w.entity, DocumentKind::Invoice, 2),
        (&w.entity, DocumentKind::Credit, 1),
        (&w.entity, DocumentKind::Debit, 1),
        (&second, DocumentKind::Invoice, 1),
        (&w.entity, DocumentKind::Invoice, 3),
        (&second, DocumentKind::Invoice, 2),
    ];
    for (entity, kind, expected) in rows {
        assert_eq!(write(store, |tx| tx.take_document_numbers(w.org, &entity.entity_ref, kind, 1)), expected, "{kind:?}");
    }
    // Several numbers are reserved one by one in a transaction.
    let taken = write(store, |tx| {
        let mut next = || tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1);
        Ok([next()?, next()?, next()?])
    });
    assert_eq!(taken, [4, 5, 6]);
    // Several numbers are reserved in one call.
    let taken = write(store, |tx| {
        let mut next = |many| tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, many);
        Ok([next(3)?, next(1)?, next(2)?, next(1)?])
    });
    assert_eq!(taken, [7, 10, 11, 13]);
    let taken = write(store, |tx| {
        let contract = w.contract.key(w.org);
        tx.lock_contract(contract, Lock::Exclusive)?;
        Ok([tx.take_numbers_in_contract(contract, 2)?, tx.take_numbers_in_contract(contract, 1)?])
    });
    assert_eq!(taken, [1, 3]);
}

pub fn numbers_have_no_gaps_under_threads_and_roll_backs(store: &dyn Store) {
    let w = world(store);
    let committed = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for thread in 0..THREADS {
            let (committed, w) = (&committed, &w);
            threads.spawn(move || {
                for round in 0..ROUNDS {
                    // Every fifth reservation is rolled back and uses no number.
                    let undo = (thread + round) % 5 == 0;
                    let number = take_number(store, w, undo);
                    if !undo {
                        committed.lock().expect("no thread has panicked").push(number);
                    }
                }
            });
        }
    });
    let mut numbers = committed.into_inner().expect("no thread has panicked");
    numbers.sort_unstable();
    let expected: Vec<u64> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
    assert_eq!(numbers.len() as u64, THREADS * ROUNDS * 4 / 5);
}

fn take_number(store: &dyn Store, w: &super::World, undo: bool) -> u64 {
    let mut number = 0;
    loop {
        let ran = store.run(Access::Write, &mut |tx| {
            number = tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1).map_err(|_| RollBack)?;
            if undo { Err(RollBack) } else { Ok(()) }
        });
        match ran {
            Ok(()) => return number,
            Err(StoreError::Contended) => std::thread::yield_now(),
            Err(error) => panic!("{error}"),
        }
    }
}

pub fn an_entity_has_given_numbers_from_its_first_on(store: &dyn Store) {
    let (w, elsewhere) = (world(store), world(store));
    let second = fixtures::entity("second");
    write(store, |tx| done(tx.insert_entity(w.org, &second)));
    let given = || {
        let asked = [(w.org, &w.entity), (w.org, &second), (elsewhere.org, &elsewhere.entity)];
        read(store, |tx| {
            asked.iter().map(|(org, entity)| tx.has_given_numbers(*org, &entity.entity_ref)).collect::<Result<Vec<_>, _>>()
        })
    };
    assert_eq!(given(), [false; 3]);
    undo(store, |tx| tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Credit, 1));
    assert_eq!(given(), [false; 3]);
    write(store, |tx| tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Credit, 1));
    assert_eq!(given(), [true, false, false]);
}

pub fn a_prefix_and_its_first_number_never_pass_each_other(store: &dyn Store) {
    for _ in 0..8 {
        let w = world(store);
        let present = |tx: &mut dyn Tx| {
            let found = tx.entities_by_refs(w.org, std::slice::from_ref(&w.entity.entity_ref))?;
            Ok(found.into_iter().next().expect("an entity"))
        };
        let number = std::thread::scope(|threads| {
            let opened = threads.spawn(|| {
                let opened = write_contended(store, |tx| {
                    let mut head = w.head(1);
                    head.number.prefix = present(tx)?.profile.number_prefix;
                    w.open_in(tx, head)
                });
                opened.number
            });
            write_contended(store, |tx| {
                let mut entity = present(tx)?;
                tx.hold_entity(w.org, &entity)?;
                if !tx.has_given_numbers(w.org, &entity.entity_ref)? {
                    entity.profile.number_prefix = fixtures::entity("renamed").profile.number_prefix;
                    updated(tx.update_entity(w.org, &entity))?;
                }
                Ok(())
            });
            opened.join().expect("no thread has panicked")
        });
        assert_eq!(read(store, present).profile.number_prefix, number.prefix);
    }
}

pub fn contract_numbers_count_from_one_without_gaps_under_threads(store: &dyn Store) {
    let w = world(store);
    let taken = Mutex::new(Vec::new());
    std::thread::scope(|threads| {
        for _ in 0..THREADS {
            threads.spawn(|| {
                for _ in 0..ROUNDS {
                    let number = write_contended(store, |tx| tx.next_contract_number(w.org));
                    taken.lock().expect("no thread has panicked").push(number);
                }
            });
        }
    });
    let mut numbers = taken.into_inner().expect("no thread has panicked");
    numbers.sort_unstable();
    // The contract of the world has number 1.
    let expected: Vec<u64> = (2..=THREADS * ROUNDS + 1).collect();
    assert_eq!(numbers, expected);
}

pub fn numbers_in_a_contract_count_from_one(store: &dyn Store) {
    let w = world(store);
    let second = w.another_contract(2);
    write(store, |tx| tx.insert_contract(w.org, &second, None));
    for (contract, expected) in [(&w.contract, 1), (&w.contract, 2), (&second, 1), (&w.contract, 3), (&second, 2)] {
        let number = write(store, |tx| {
            tx.lock_contract(contract.key(w.org), Lock::Exclusive)?;
            tx.take_numbers_in_contract(contract.key(w.org), 1)
        });
        assert_eq!(number, expected);
    }
}

//! Atomicity of transactions, and conflicts between transactions.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use billing_domain::access::Actor;
use billing_domain::contract::Contract;
use billing_domain::document::DocumentKind;
use billing_domain::document::lines::{BaseAndAmount, SumKey};
use billing_domain::ports::{Access, FamilySum, Lock, RollBack, Store, StoreError, StoreResult, Tx, attempt, transact};
use billing_domain::refs::ContractRef;
use billing_domain::usage::UsageTotal;
use billing_storage::{Database, DatabaseOptions, DatabaseUrl};
use billing_testkit::{Singly as _, fixtures};

use crate::citus;
use crate::rows::{World, world};
use crate::support::{Beside, OPTIONS, TestDatabase, on_both, one_postgres, postgres, read, sqlite, write};

on_both!(
    two_threads_counting_lose_no_number_and_leave_no_gap,
    two_stores_on_one_database_count_together,
    an_error_the_work_swallows_undoes_everything,
    an_error_in_a_part_undoes_everything_and_the_connection_is_used_again,
    a_reader_can_not_write,
    a_panic_in_the_work_undoes_it_and_the_store_goes_on,
    what_needs_a_lock_is_refused_without_it,
    locks_are_taken_in_one_order,
);

fn numbers(stores: &[&dyn Store], test: &TestDatabase) {
    const ROUNDS: u64 = 25;
    let w = world(test);
    let start = Barrier::new(stores.len());
    let mut taken: Vec<u64> = std::thread::scope(|threads| {
        let started: Vec<_> = stores
            .iter()
            .map(|store| {
                threads.spawn(|| {
                    start.wait();
                    let mut taken = Vec::new();
                    for round in 0..ROUNDS {
                        let number = transact::<u64, StoreError>(*store, Access::Write, |tx| {
                            let number =
                                tx.take_document_numbers(w.organization, &w.entity.entity_ref, DocumentKind::Invoice, 1)?;
                            // Every fifth transaction rolls back and returns its number.
                            if round % 5 == 0 { Err(StoreError::Corrupt("not this one".to_owned())) } else { Ok(number) }
                        });
                        taken.extend(number.ok());
                    }
                    taken
                })
            })
            .collect();
        started.into_iter().flat_map(|thread| thread.join().expect("a thread")).collect()
    });
    taken.sort_unstable();
    let threads = u64::try_from(stores.len()).expect("a small number");
    assert_eq!(taken, (1..=threads * ROUNDS * 4 / 5).collect::<Vec<_>>());
}

fn two_threads_counting_lose_no_number_and_leave_no_gap(test: &TestDatabase) {
    numbers(&[test, test], test);
}

fn two_stores_on_one_database_count_together(test: &TestDatabase) {
    let other = crate::support::open(&test.url);
    numbers(&[test, &other], test);
}

fn an_error_the_work_swallows_undoes_everything(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    let event = w.event(&head);
    write(test, |tx| tx.insert_events(w.organization, std::slice::from_ref(&event)));
    let fresh = w.event(&head);
    let answer = test.run(Access::Write, &mut |tx| {
        assert!(tx.insert_events(w.organization, std::slice::from_ref(&fresh)).is_ok());
        // The insert of the same event fails, and the work ignores the error.
        assert!(tx.insert_events(w.organization, std::slice::from_ref(&event)).is_err());
        Ok(())
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(read(test, |tx| tx.event(w.organization, fresh.event_ref)).expect("read"), None);
}

fn an_error_in_a_part_undoes_everything_and_the_connection_is_used_again(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    let event = w.event(&head);
    write(test, |tx| tx.insert_events(w.organization, std::slice::from_ref(&event)));
    for _ in 0..20 {
        let fresh = w.event(&head);
        let answer = test.run(Access::Write, &mut |tx| {
            assert!(tx.insert_events(w.organization, std::slice::from_ref(&fresh)).is_ok());
            let part = attempt(tx, |tx| attempt(tx, |tx| tx.insert_events(w.organization, std::slice::from_ref(&event))));
            assert!(matches!(part, Err(StoreError::Corrupt(_))), "{part:?}");
            Ok(())
        });
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
        assert_eq!(read(test, |tx| tx.event(w.organization, fresh.event_ref)).expect("read"), None);
    }
    let fresh = w.event(&head);
    write(test, |tx| tx.insert_events(w.organization, std::slice::from_ref(&fresh)));
    let other = crate::support::open(&test.url);
    assert_eq!(read(&other, |tx| tx.event(w.organization, fresh.event_ref)).expect("read"), Some(fresh));
}

fn a_reader_can_not_write(test: &TestDatabase) {
    let w = world(test);
    let answer = read(test, |tx| tx.next_contract_number(w.organization));
    assert!(answer.is_err(), "{answer:?}");
    assert_eq!(write(test, |tx| tx.next_contract_number(w.organization)), 1);
}

fn a_panic_in_the_work_undoes_it_and_the_store_goes_on(test: &TestDatabase) {
    let w = world(test);
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        write(test, |tx| {
            tx.next_contract_number(w.organization)?;
            panic!("deliberate panic");
            #[allow(unreachable_code, reason = "the closure needs a return type")]
            Ok(())
        });
    }));
    assert!(outcome.is_err());
    assert_eq!(write(test, |tx| tx.next_contract_number(w.organization)), 1);
}

type Step<'a> = &'a dyn Fn(&mut dyn Tx) -> StoreResult<()>;

fn answer(test: &TestDatabase, step: Step<'_>) -> StoreResult<()> {
    transact(test, Access::Write, step)
}

/// Checks that writes without the required lock fail. Only debug builds check locks.
fn what_needs_a_lock_is_refused_without_it(test: &TestDatabase) {
    let w = world(test);
    let (head, key) = (w.head(1), w.contract.key(w.organization));
    let draft = w.open(test, 2);
    let sum = FamilySum { family: draft.document_ref, key: SumKey::Tax(fixtures::taxed("7")), sum: BaseAndAmount::default() };
    let stated = fixtures::draft_content(&draft, &w.contract, &w.customer, &w.entity, fixtures::cents(1));
    let next = Contract { version: 2, ..w.contract.clone() };
    let at = fixtures::at("2026-02-01T00:00:00Z");
    let entries: [Step<'_>; 6] = [
        &|tx| tx.open_document(w.organization, &head, head.document_ref),
        &|tx| tx.update_draft(w.organization, &draft, at).map(drop),
        &|tx| tx.void_draft(draft.key(w.organization), &stated, at).map(drop),
        &|tx| tx.add_family_sums(w.organization, w.customer.id, std::slice::from_ref(&sum)),
        &|tx| tx.take_numbers_in_contract(key, 1).map(drop),
        &|tx| tx.append_contract_version(w.organization, &next, at, Actor::Service),
    ];
    for entry in entries {
        assert!(matches!(answer(test, entry), Err(StoreError::Corrupt(_))));
        let shared: Step<'_> = &|tx| {
            tx.lock_contract(key, Lock::Shared)?;
            entry(tx)
        };
        assert!(matches!(answer(test, shared), Err(StoreError::Corrupt(_))));
    }
    let total = (w.customer.id, w.key.clone(), UsageTotal::ZERO);
    let put: Step<'_> = &|tx| tx.put_usage(w.organization, std::slice::from_ref(&total));
    assert!(matches!(answer(test, put), Err(StoreError::Corrupt(_))));
    answer(test, &|tx| {
        tx.lock_usage(w.organization, &[(w.customer.id, w.key.clone())])?;
        put(tx)
    })
    .expect("a locked total");
    answer(test, &|tx| {
        tx.lock_contract(key, Lock::Exclusive)?;
        entries[1..].iter().try_for_each(|entry| entry(tx))
    })
    .expect("a locked contract");
}

fn locks_are_taken_in_one_order(test: &TestDatabase) {
    let w = world(test);
    let key = w.contract.key(w.organization);
    let numbers: Step<'_> =
        &|tx| tx.take_document_numbers(w.organization, &w.entity.entity_ref, DocumentKind::Invoice, 1).map(drop);
    let total: Step<'_> = &|tx| tx.lock_usage(w.organization, &[(w.customer.id, w.key.clone())]).map(drop);
    let contract: Step<'_> = &|tx| tx.lock_contract(key, Lock::Exclusive).map(drop);
    for [first, second] in [[numbers, contract], [total, contract]] {
        let late = answer(test, &|tx| first(tx).and_then(|()| second(tx)));
        assert!(matches!(late, Err(StoreError::Corrupt(_))), "{late:?}");
        answer(test, &|tx| second(tx).and_then(|()| first(tx))).expect("in order");
    }
    // A contract that is already locked can be locked again at any time.
    answer(test, &|tx| [contract, numbers, contract].iter().try_for_each(|step| step(tx))).expect("in order");
}

/// Creates a second contract of the customer.
fn second_contract(w: &World, store: &dyn Store) -> Contract {
    let contract_ref = ContractRef::from_uuid(uuid::Uuid::now_v7());
    let second = Contract { contract_ref, number: 2, ..w.contract.clone() };
    write(store, |tx| tx.insert_contract(w.organization, &second, None));
    second
}

#[test]
fn a_deadlock_is_run_again_until_both_are_done() {
    let test = postgres();
    let w = world(&test);
    let second = second_contract(&w, &test);
    let contracts = [w.contract.key(w.organization), second.key(w.organization)];
    let (both_hold, runs) = (Barrier::new(2), AtomicU32::new(0));
    std::thread::scope(|threads| {
        for first in [0, 1] {
            let (test, both_hold, runs) = (&test, &both_hold, &runs);
            threads.spawn(move || {
                let mut attempts = 0;
                write(test, |tx| {
                    attempts += 1;
                    runs.fetch_add(1, Ordering::Relaxed);
                    tx.lock_contract(contracts[first], Lock::Exclusive)?;
                    if attempts == 1 {
                        both_hold.wait();
                    }
                    tx.lock_contract(contracts[1 - first], Lock::Exclusive)
                });
            });
        }
    });
    // PostgreSQL ends at least one of the two, and on a slow machine perhaps both.
    let runs = runs.into_inner();
    assert!(runs >= 3, "none of the two ran twice: {runs} runs");
}

/// Makes the server reject the first inserts with a deadlock error in another language. The sequence keeps its count after
/// a rollback.
fn refusing(test: &TestDatabase, times: u32) {
    test.beside()
        .execute(&format!(
            "CREATE SEQUENCE refused; \
             CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF nextval('refused') <= {times} THEN RAISE EXCEPTION 'Verklemmung entdeckt' USING ERRCODE = '40P01'; END IF; \
               RETURN NEW; END $$; \
             CREATE TRIGGER refuse BEFORE INSERT ON usage_events FOR EACH ROW EXECUTE FUNCTION refuse()"
        ))
        .expect("a trigger");
}

#[test]
fn a_deadlock_is_run_again_in_whatever_language_it_is_told() {
    let test = one_postgres();
    let w = world(&test);
    let head = w.open(&test, 1);
    refusing(&test, 3);
    let event = w.event(&head);
    let mut runs = 0;
    write(&test, |tx| {
        runs += 1;
        tx.insert_events(w.organization, std::slice::from_ref(&event))
    });
    assert_eq!(runs, 4);
    assert_eq!(read(&test, |tx| tx.event(w.organization, event.event_ref)).expect("read"), Some(event));
}

#[test]
fn an_error_that_does_not_pass_is_told_as_it_is() {
    let test = one_postgres();
    let w = world(&test);
    let head = w.open(&test, 1);
    refusing(&test, u32::MAX);
    let mut runs = 0;
    let answer = test.run(Access::Write, &mut |tx| {
        runs += 1;
        tx.insert_events(w.organization, &[w.event(&head)]).map_err(|_| RollBack)
    });
    let Err(StoreError::Unavailable(reason)) = answer else { panic!("{answer:?}") };
    assert!(reason.to_string().contains("Verklemmung entdeckt"), "{reason}");
    assert!((2..=8).contains(&runs), "{runs}");
}

#[test]
fn a_contended_store_gives_up_after_a_bounded_number_of_attempts() {
    let test = sqlite();
    let w = world(&test);
    let url = DatabaseUrl::parse(&test.url).expect("an address");
    let impatient = DatabaseOptions { wait: std::time::Duration::from_millis(20), ..DatabaseOptions::default() };
    let other = Database::open(&url, impatient).expect("an open database");
    let mut runs = 0;
    write(&test, |tx| {
        tx.next_contract_number(w.organization)?;
        // For the other store, another process seems to hold the write lock of the file.
        let answer = other.run(Access::Write, &mut |_| {
            runs += 1;
            Ok::<(), RollBack>(())
        });
        assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
        Ok(())
    });
    assert_eq!(runs, 0, "no work runs without the lock");
    other.run(Access::Write, &mut |_| Ok(())).expect("the lock is free again");
}

/// A function that locks a contract exclusively.
type Hold = fn(&mut dyn Tx, &World) -> Result<(), StoreError>;

/// The number of statements that wait for a lock in this database.
#[derive(diesel::QueryableByName)]
struct Waiting {
    #[diesel(sql_type = diesel::sql_types::BigInt)]
    count: i64,
}

/// Waits until this number of statements wait for a lock, or until `over` is not zero.
fn until_waiting(beside: &mut Beside, wanted: i64, over: &AtomicU32) {
    let Beside::Postgres(connection) = beside else { panic!("SQLite has no row locks") };
    let on_one = "SELECT count(*) AS count FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    // On a cluster, a transaction waits on the node of the customer.
    let waiting = diesel::sql_query(match citus::nodes() {
        Some(_) => format!("SELECT sum(result::bigint)::bigint AS count FROM run_command_on_all_nodes($n${on_one}$n$)"),
        None => on_one.to_owned(),
    });
    while over.load(Ordering::Relaxed) == 0 {
        let found: Waiting = diesel::RunQueryDsl::get_result(waiting.clone(), connection).expect("the server's activity");
        if found.count >= wanted {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

#[test]
fn who_shares_a_contract_does_not_pass_who_waits_for_it_alone() {
    let test = postgres();
    let w = world(&test);
    let pairs = [(w.customer.id, w.key.usage_product_ref.clone())];
    let share = |tx: &mut dyn Tx| -> Result<(), StoreError> {
        let found = tx.contracts_metering(w.organization, &pairs, Some(Lock::Shared))?;
        assert_eq!(found.len(), 1);
        Ok(())
    };
    let alone: [Hold; 3] = [
        |tx, w| tx.hold_contracts(&[(w.contract.key(w.organization), Lock::Exclusive)]),
        |tx, w| tx.lock_contract(w.contract.key(w.organization), Lock::Exclusive).map(drop),
        |tx, w| tx.agreement(w.contract.key(w.organization), Some(Lock::Exclusive)).map(drop),
    ];
    for alone in alone {
        let (order, passed) = (std::sync::Mutex::new(Vec::new()), AtomicU32::new(0));
        std::thread::scope(|threads| {
            write(&test, |tx| {
                share(tx)?;
                threads.spawn(|| {
                    write(&test, |tx| {
                        alone(tx, &w)?;
                        order.lock().expect("an order").push("alone");
                        Ok(())
                    });
                });
                until_waiting(&mut test.beside(), 1, &passed);
                threads.spawn(|| {
                    write(&test, |tx| {
                        share(tx)?;
                        order.lock().expect("an order").push("shared");
                        passed.fetch_add(1, Ordering::Relaxed);
                        Ok(())
                    });
                });
                until_waiting(&mut test.beside(), 2, &passed);
                Ok(())
            });
        });
        assert_eq!(order.into_inner().expect("an order"), ["alone", "shared"]);
    }
}

#[test]
fn a_contract_held_with_others_is_held_as_strongly_as_is_asked() {
    let test = postgres();
    let w = world(&test);
    let second = second_contract(&w, &test);
    let [first, second] = [w.contract.key(w.organization), second.key(w.organization)];
    let (order, never, is_shared) = (std::sync::Mutex::new(Vec::new()), AtomicU32::new(0), Barrier::new(2));
    let noted = |what| order.lock().expect("an order").push(what);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            write(&test, |tx| {
                tx.lock_contract(second, Lock::Shared)?;
                is_shared.wait();
                // The other transaction also shares this contract and did not wait. The waiting statement wants the first contract.
                until_waiting(&mut test.beside(), 1, &never);
                noted("shared");
                Ok(())
            });
        });
        is_shared.wait();
        write(&test, |tx| {
            tx.hold_contracts(&[(second, Lock::Shared), (first, Lock::Exclusive)])?;
            threads.spawn(|| {
                write(&test, |tx| tx.hold_contracts(&[(first, Lock::Shared)]));
                noted("after");
            });
            until_waiting(&mut test.beside(), 1, &never);
            std::thread::sleep(std::time::Duration::from_millis(50));
            noted("alone");
            Ok(())
        });
    });
    let order = order.into_inner().expect("an order");
    assert_eq!((order.len(), order.last()), (3, Some(&"after")), "{order:?}");
}

#[test]
fn a_turnstile_is_open_again_after_who_waited_behind_it_failed() {
    let test = postgres();
    let w = world(&test);
    let contract = w.contract.key(w.organization);
    let never = AtomicU32::new(0);
    std::thread::scope(|threads| {
        write(&test, |tx| {
            tx.lock_contract(contract, Lock::Shared)?;
            threads.spawn(|| {
                let mut runs = 0;
                write(&test, |tx| {
                    runs += 1;
                    if runs == 1 { tx.hold_contracts(&[(contract, Lock::Exclusive)]) } else { Ok(()) }
                });
                assert_eq!(runs, 2);
            });
            until_waiting(&mut test.beside(), 1, &never);
            let cancel = "DO $$ BEGIN PERFORM pg_cancel_backend(pid) FROM pg_stat_activity \
                          WHERE datname = current_database() AND wait_event_type = 'Lock'; END $$";
            match citus::nodes() {
                Some(_) => test.beside().execute(&format!("SELECT run_command_on_all_nodes($n${cancel}$n$)")),
                None => test.beside().execute(cancel),
            }
            .expect("a server");
            Ok(())
        });
    });
    let pairs = [(w.customer.id, w.key.usage_product_ref.clone())];
    for _ in 0..=OPTIONS.connections {
        write(&test, |tx| tx.contracts_metering(w.organization, &pairs, Some(Lock::Shared)));
    }
}

#[test]
fn who_holds_a_contract_does_not_wait_for_who_waits_for_it() {
    let test = postgres();
    let w = world(&test);
    let second = second_contract(&w, &test);
    let [first, second] = [w.contract.key(w.organization), second.key(w.organization)];
    let (runs, never, is_shared) = (AtomicU32::new(0), AtomicU32::new(0), Barrier::new(2));
    std::thread::scope(|threads| {
        threads.spawn(|| {
            write(&test, |tx| {
                tx.lock_contract(second, Lock::Shared)?;
                is_shared.wait();
                // One transaction waits for the first contract, whose holder waits for this contract.
                until_waiting(&mut test.beside(), 2, &never);
                Ok(())
            });
        });
        is_shared.wait();
        write(&test, |tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            tx.lock_contract(first, Lock::Exclusive)?;
            threads.spawn(|| {
                write(&test, |tx| {
                    runs.fetch_add(1, Ordering::Relaxed);
                    tx.lock_contract(first, Lock::Exclusive)
                });
            });
            until_waiting(&mut test.beside(), 1, &never);
            tx.lock_contract(second, Lock::Exclusive)
        });
    });
    assert_eq!(runs.into_inner(), 2, "each ran once");
}

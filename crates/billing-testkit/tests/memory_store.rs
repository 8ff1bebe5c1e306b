//! The contract suite of the ports on the in-memory store, and what that store does on top.

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentKind;
use billing_domain::document::lines::{Sum, SumKey};
use billing_domain::ports::{Access, FamilySum, Lock, Store, StoreError, StoreResult, Tx, transact};
use billing_domain::refs::{CustomerId, OrganizationId};
use billing_testkit::Singly as _;
use billing_testkit::{CountingIds, MemoryStore, fixtures};

mod as_it_is {
    billing_testkit::store_contract!(billing_testkit::MemoryStore::new());
}

mod running_everything_twice {
    fn store() -> billing_testkit::MemoryStore {
        let store = billing_testkit::MemoryStore::new();
        store.run_in_vain(1);
        store
    }

    billing_testkit::store_contract!(store());
}

#[test]
fn the_suites_every_function_is_a_test() {
    let macros = include_str!("../src/suite/mod.rs");
    let files = [
        include_str!("../src/suite/access.rs"),
        include_str!("../src/suite/accounts.rs"),
        include_str!("../src/suite/audit.rs"),
        include_str!("../src/suite/books.rs"),
        include_str!("../src/suite/catalog.rs"),
        include_str!("../src/suite/charges.rs"),
        include_str!("../src/suite/contracts.rs"),
        include_str!("../src/suite/corrections.rs"),
        include_str!("../src/suite/document_files.rs"),
        include_str!("../src/suite/documents.rs"),
        include_str!("../src/suite/event_keys.rs"),
        include_str!("../src/suite/filters.rs"),
        include_str!("../src/suite/formats.rs"),
        include_str!("../src/suite/imports.rs"),
        include_str!("../src/suite/inspection.rs"),
        include_str!("../src/suite/isolation.rs"),
        include_str!("../src/suite/keeping.rs"),
        include_str!("../src/suite/ledger.rs"),
        include_str!("../src/suite/lists.rs"),
        include_str!("../src/suite/locks.rs"),
        include_str!("../src/suite/numbers.rs"),
        include_str!("../src/suite/paper.rs"),
        include_str!("../src/suite/reading.rs"),
        include_str!("../src/suite/refused.rs"),
        include_str!("../src/suite/replay_log.rs"),
        include_str!("../src/suite/revisions.rs"),
        include_str!("../src/suite/runs.rs"),
        include_str!("../src/suite/transactions.rs"),
        include_str!("../src/suite/usage.rs"),
    ];
    let declared = macros.lines().filter(|line| line.starts_with("pub mod ")).count();
    assert_eq!(declared, files.len());
    let functions = files.iter().flat_map(|file| file.lines()).filter_map(|line| line.strip_prefix("pub fn "));
    let missing: Vec<&str> = functions
        .filter_map(|line| line.split('(').next())
        .filter(|name| !macros.lines().any(|line| line.trim() == *name))
        .collect();
    assert_eq!(missing, [""; 0]);
}

fn write<T>(store: &MemoryStore, work: impl FnMut(&mut dyn Tx) -> StoreResult<T>) -> StoreResult<T> {
    transact(store, Access::Write, work)
}

fn is_corrupt<T>(answer: StoreResult<T>) -> bool {
    matches!(answer, Err(StoreError::Corrupt(_)))
}

#[test]
fn work_run_in_vain_leaves_nothing_and_is_counted_once() {
    let store = MemoryStore::new();
    store.run_in_vain(2);
    let organization = fixtures::organization(&CountingIds::new());
    let mut runs = 0;
    let number = write(&store, |tx| {
        runs += 1;
        tx.insert_organization(&organization).map(|_| ())?;
        tx.next_contract_number(organization.id)
    });
    assert_eq!((number.expect("committed"), runs), (1, 3));
}

#[test]
fn an_unavailable_store_runs_nothing() {
    let store = MemoryStore::new();
    store.set_unavailable(true);
    assert!(matches!(store.ready(), Err(StoreError::Unavailable(_))));
    assert!(matches!(write(&store, |_| -> StoreResult<()> { panic!("it has run") }), Err(StoreError::Unavailable(_))));
    store.set_unavailable(false);
    assert!(write(&store, |tx| tx.count_organizations()).is_ok());
}

#[test]
fn a_panic_in_the_work_leaves_the_store_as_it_was() {
    let store = MemoryStore::new();
    let organization = fixtures::organization(&CountingIds::new());
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        write(&store, |tx| -> StoreResult<()> {
            tx.insert_organization(&organization).map(|_| ())?;
            panic!("in the middle")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(write(&store, |tx| tx.count_organizations()).expect("works"), 0);
}

#[test]
fn who_opened_a_transaction_to_read_can_neither_write_nor_hold() {
    let store = MemoryStore::new();
    let organization = fixtures::organization(&CountingIds::new());
    let written = transact::<_, StoreError>(&store, Access::Read, |tx| tx.insert_organization(&organization).map(|_| ()));
    assert!(is_corrupt(written));
    let held = transact::<_, StoreError>(&store, Access::Read, |tx| tx.next_contract_number(organization.id));
    assert!(is_corrupt(held));
    assert_eq!(write(&store, |tx| tx.count_organizations()).expect("works"), 0);
}

/// An organization's contract, stored, and an event's total in it.
struct Held {
    org: OrganizationId,
    customer: CustomerId,
    head: billing_domain::document::DocumentHead,
    said: billing_domain::document::DraftContent,
    frozen: billing_domain::document::IssuedDocument,
    key: billing_domain::usage::UsageKey,
    at: Timestamp,
}

fn stored_contract(store: &MemoryStore) -> Held {
    let ids = CountingIds::new();
    let (organization, entity, customer) =
        (fixtures::organization(&ids), fixtures::entity("main"), fixtures::customer(&ids, "acme"));
    let pricing = fixtures::pricing("api", vec![fixtures::per_unit("calls", "1")]);
    let contract = fixtures::contract(&ids, &customer, vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")]);
    write(store, |tx| tx.insert_contract(organization.id, &contract, None)).expect("stored");
    let period = fixtures::period("2026-01-01", "2026-01-31");
    let head = fixtures::document_head(&ids, &contract, &entity, period);
    Held {
        org: organization.id,
        customer: customer.id,
        said: fixtures::draft_content(&head, &contract, &customer, &entity, fixtures::cents(1)),
        frozen: fixtures::frozen(&head, &contract, &customer, &entity, fixtures::cents(1)),
        head,
        key: fixtures::usage_key(&contract, 0, "2026-01-01", &fixtures::usage_product_ref("calls")),
        at: fixtures::at("2026-02-01T00:00:00Z"),
    }
}

type Entry<'a> = dyn Fn(&mut dyn Tx) -> StoreResult<()> + 'a;

#[test]
fn what_must_be_held_is_refused_without_being_held() {
    let store = MemoryStore::new();
    let held = stored_contract(&store);
    let shared = |tx: &mut dyn Tx| tx.lock_contract(held.head.contract_key(held.org), Lock::Shared);
    assert!(is_corrupt(write(&store, |tx| tx.open_document(held.org, &held.head, held.head.document_ref))));
    assert!(is_corrupt(write(&store, |tx| {
        shared(tx)?;
        tx.open_document(held.org, &held.head, held.head.document_ref)
    })));
    write(&store, |tx| {
        tx.lock_contract(held.head.contract_key(held.org), Lock::Exclusive)?;
        tx.open_document(held.org, &held.head, held.head.document_ref)
    })
    .expect("held");
    // Every entry in a contract's book needs it.
    let (org, key) = (held.org, held.head.key(held.org));
    let sum = FamilySum { family: key.document, key: SumKey::Tax(fixtures::taxed("7")), sum: Sum::default() };
    let entries: [&Entry<'_>; 6] = [
        &|tx| tx.update_draft(org, &held.head).map(drop),
        &|tx| tx.put_ledger_lines(key, &[]),
        &|tx| tx.issue_document(key, &held.frozen).map(drop),
        &|tx| tx.void_draft(key, &held.said, held.at).map(drop),
        &|tx| tx.void_issued(key, held.at, fixtures::date("2026-02-12")).map(drop),
        &|tx| tx.add_family_sums(org, key.customer, std::slice::from_ref(&sum)),
    ];
    for entry in entries {
        assert!(is_corrupt(write(&store, |tx| entry(tx))));
        assert!(is_corrupt(write(&store, |tx| {
            shared(tx)?;
            entry(tx)
        })));
    }
    assert!(is_corrupt(write(&store, |tx| tx.take_numbers_in_contract(held.head.contract_key(held.org), 1))));
    let total = (held.customer, held.key.clone(), billing_domain::usage::UsageTotal::ZERO);
    assert!(is_corrupt(write(&store, |tx| tx.put_usage(held.org, std::slice::from_ref(&total)))));
    let forgiving = MemoryStore::without_lock_checks();
    assert!(write(&forgiving, |tx| tx.put_usage(held.org, std::slice::from_ref(&total))).is_ok());
    assert!(write(&forgiving, |tx| tx.open_document(held.org, &held.head, held.head.document_ref)).is_ok());
}

#[test]
fn a_contract_is_held_before_anything_else() {
    let store = MemoryStore::new();
    let held = stored_contract(&store);
    let late = |tx: &mut dyn Tx| tx.lock_contract(held.head.contract_key(held.org), Lock::Exclusive);
    assert!(is_corrupt(write(&store, |tx| {
        tx.take_document_numbers(held.org, &held.head.entity_ref, DocumentKind::Invoice, 1)?;
        late(tx)
    })));
    assert!(is_corrupt(write(&store, |tx| {
        tx.lock_usage(held.org, &[(held.customer, held.key.clone())])?;
        late(tx)
    })));
    // Holding it once more is nothing new.
    let in_order = write(&store, |tx| {
        late(tx)?;
        tx.take_document_numbers(held.org, &held.head.entity_ref, DocumentKind::Invoice, 1)?;
        late(tx)?;
        tx.open_document(held.org, &held.head, held.head.document_ref)?;
        tx.void_draft(held.head.key(held.org), &held.said, held.at)
    });
    assert!(matches!(in_order, Ok(true)));
}

//! Transactions: commit, rollback and visibility of uncommitted changes.

use std::sync::mpsc;
use std::time::Duration;

use billing_domain::document::DocumentKind;
use billing_domain::ports::{Access, Insertion, Lock, RollBack, Store, StoreError, Tx, attempt};
use uuid::Uuid;

use super::{all, done, key_of_token, later, lock_usage, put_usage, read, undo, updated, usage, world, write};
use crate::Singly as _;
use crate::{FreshIds, fixtures};

/// The time limit for a reader that must not wait.
const PATIENCE: Duration = Duration::from_secs(10);

pub fn a_store_is_ready(store: &dyn Store) {
    store.ready().expect("a store that can be reached");
}

pub fn a_committed_transaction_is_seen_by_the_next(store: &dyn Store) {
    let organization = fixtures::organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&organization)));
    assert_eq!(read(store, |tx| tx.organization(organization.id)), Some(organization.clone()));
    assert_eq!(write(store, |tx| tx.organization_by_name(&organization.name)), Some(organization));
}

pub fn a_transaction_sees_its_own_writes(store: &dyn Store) {
    let w = world(store);
    let (head, total) = write(store, |tx| {
        let head = w.open_in(tx, w.head(1))?;
        let event = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("2"));
        w.insert_events(tx, std::slice::from_ref(&event))?;
        assert_eq!(tx.event(w.org, event.event_ref)?, Some(event.clone()));
        assert!(w.rows(tx)?.with_events.contains(&head.document_ref));
        let key = fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref);
        let (key, zero) = lock_usage(tx, w.org, w.customer.id, &[key])?.remove(0);
        let total = zero.plus(event.counted()).expect("in range");
        put_usage(tx, w.org, w.customer.id, &[(key.clone(), total)])?;
        assert_eq!(usage(tx, w.org, w.customer.id, &[key])?[0].1, total);
        assert_eq!(tx.document(w.org, head.document_ref)?.map(|document| document.head), Some(head.clone()));
        Ok((head, total))
    });
    let key = fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref);
    assert_eq!(read(store, |tx| usage(tx, w.org, w.customer.id, std::slice::from_ref(&key))), [(key.clone(), total)]);
    assert_eq!(read(store, |tx| tx.document(w.org, head.document_ref)).map(|document| document.head), Some(head));
}

pub fn a_rolled_back_transaction_leaves_nothing(store: &dyn Store) {
    let w = world(store);
    let organization = fixtures::organization(&FreshIds);
    let entity = fixtures::entity("other");
    let customer = fixtures::customer(&FreshIds, "other");
    let contract = w.another_contract(2);
    let administrator = fixtures::administrator(&FreshIds, w.org);
    let key = fixtures::api_key(&FreshIds, w.org);
    let session = fixtures::session(&FreshIds, &administrator);
    let secret = fixtures::signing_secret(&FreshIds);
    let (token, other_key) = (Uuid::now_v7(), fixtures::api_key(&FreshIds, w.org));
    write(store, |tx| done(tx.insert_api_key(&other_key)));
    let usage_key = fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref);
    let (head, event) = undo(store, |tx| {
        done(tx.insert_organization(&organization))?;
        done(tx.insert_administrator(&administrator))?;
        done(tx.insert_api_key(&key))?;
        tx.insert_session(&session)?;
        done(tx.insert_signing_secret(&secret))?;
        tx.revoke_token(token, later(3600))?;
        done(tx.insert_entity(w.org, &entity))?;
        done(tx.insert_customer(w.org, &customer))?;
        tx.insert_contract(w.org, &contract, Some(later(0)))?;
        let head = w.open_in(tx, w.head(1))?;
        let event = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("2"));
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        lock_usage(tx, w.org, w.customer.id, std::slice::from_ref(&usage_key))?;
        Ok((head, event))
    });
    read(store, |tx| {
        assert_eq!(tx.organization(organization.id)?, None);
        assert_eq!(tx.administrator(administrator.admin_ref)?, None);
        assert_eq!(key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())?, None);
        assert_eq!(key_of_token(tx, w.org, other_key.api_key_ref, token)?.as_ref(), Some(&other_key));
        assert_eq!(tx.session(session.digest)?, None);
        assert!(!tx.signing_secrets(secret.purpose)?.contains(&secret));
        assert_eq!(tx.entities(w.org, all())?.total, 1);
        assert_eq!(tx.customers(w.org, all())?.total, 1);
        assert_eq!(tx.contract(w.org, contract.contract_ref)?, None);
        assert_eq!(tx.contracts_due(Some(w.org), later(1), None, 10)?, []);
        assert_eq!(tx.document(w.org, head.document_ref)?, None);
        assert_eq!(tx.event(w.org, event.event_ref)?, None);
        assert_eq!(usage(tx, w.org, w.customer.id, std::slice::from_ref(&usage_key))?, []);
        Ok(())
    });
}

pub fn a_rolled_back_update_and_delete_leave_everything(store: &dyn Store) {
    let w = world(store);
    let key = fixtures::api_key(&FreshIds, w.org);
    write(store, |tx| done(tx.insert_api_key(&key)));
    let head = w.open(store, w.head(1));
    undo(store, |tx| {
        let mut customer = w.customer.clone();
        customer.profile.name = fixtures::line("Renamed");
        updated(tx.update_customer(w.org, &customer))?;
        assert!(tx.delete_api_key(w.org, key.api_key_ref)?.is_some());
        tx.set_default_entity(w.org, &w.entity.entity_ref, later(1))?;
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.set_next_due(w.contract.key(w.org), Some(later(0)))?;
        assert!(tx.void_draft(head.key(w.org), &w.draft_content(&head), later(1))?);
        Ok(())
    });
    read(store, |tx| {
        assert_eq!(tx.customers_by_ids(w.org, &[w.customer.id])?, std::slice::from_ref(&w.customer));
        assert_eq!(key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())?.as_ref(), Some(&key));
        assert_eq!(tx.organization(w.org)?.as_ref(), Some(&w.organization));
        assert_eq!(tx.contracts_due(Some(w.org), later(1), None, 10)?, []);
        assert!(tx.document(w.org, head.document_ref)?.is_some_and(|document| document.is_draft()));
        Ok(())
    });
}

pub fn a_rolled_back_number_is_given_again(store: &dyn Store) {
    let w = world(store);
    let numbers = |tx: &mut dyn Tx| {
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        Ok((
            tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1)?,
            tx.next_contract_number(w.org)?,
            tx.take_numbers_in_contract(w.contract.key(w.org), 1)?,
        ))
    };
    // The contract of the world has number 1.
    assert_eq!(undo(store, numbers), (1, 2, 1));
    assert_eq!(undo(store, numbers), (1, 2, 1));
    assert_eq!(write(store, numbers), (1, 2, 1));
    assert_eq!(write(store, numbers), (2, 3, 2));
}

pub fn an_undone_part_takes_only_its_own_writes_with_it(store: &dyn Store) {
    let w = world(store);
    let product = |name: &str| fixtures::usage_product(name);
    let kept = |tx: &mut dyn Tx, name: &str| attempt(tx, |tx| done(tx.insert_usage_product(w.org, &product(name))));
    write(store, |tx| {
        done(tx.insert_usage_product(w.org, &product("before")))?;
        let mut runs = 0;
        let undone = attempt(tx, |tx| {
            runs += 1;
            done(tx.insert_usage_product(w.org, &product("undone")))?;
            kept(tx, "undone-part-of-a-part")?;
            assert_eq!(tx.next_contract_number(w.org)?, 2);
            Err::<(), _>(StoreError::Unavailable("as the test wants it".into()))
        });
        assert!(matches!(undone, Err(StoreError::Unavailable(_))));
        assert_eq!(runs, 1);
        assert_eq!(tx.usage_products_by_refs(w.org, &[product("undone").usage_product_ref])?, []);
        assert_eq!(tx.next_contract_number(w.org)?, 2);
        attempt(tx, |tx| {
            kept(tx, "kept-part-of-a-part")?;
            done(tx.insert_usage_product(w.org, &product("kept")))
        })?;
        done(tx.insert_usage_product(w.org, &product("after")))
    });
    let stored = read(store, |tx| tx.usage_products(w.org, all()));
    let mut names: Vec<&str> = stored.items.iter().map(|product| product.usage_product_ref.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["after", "before", "calls", "kept", "kept-part-of-a-part"]);
}

pub fn a_part_is_undone_with_its_transaction(store: &dyn Store) {
    let w = world(store);
    undo(store, |tx| attempt(tx, |tx| done(tx.insert_usage_product(w.org, &fixtures::usage_product("part")))));
    assert_eq!(read(store, |tx| tx.usage_products(w.org, all())).total, 1);
}

pub fn nothing_uncommitted_is_seen_and_a_reader_waits_for_no_writer(store: &dyn Store) {
    let w = world(store);
    let organization = fixtures::organization(&FreshIds);
    std::thread::scope(|threads| {
        write(store, |tx| {
            done(tx.insert_organization(&organization))?;
            tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
            let (sender, receiver) = mpsc::channel();
            let (id, world) = (organization.id, &w);
            threads.spawn(move || {
                let seen = read(store, |tx| Ok((tx.organization(id)?, tx.contract(world.org, world.contract.contract_ref)?)));
                sender.send(seen).ok();
            });
            let (uncommitted, held) = receiver.recv_timeout(PATIENCE).expect("a reader waits for no writer");
            assert_eq!(uncommitted, None);
            assert_eq!(held.as_ref(), Some(&w.contract));
            Ok(())
        });
    });
    assert_eq!(read(store, |tx| tx.organization(organization.id)), Some(organization));
}

pub fn a_reader_keeps_one_view_while_others_commit(store: &dyn Store) {
    let w = world(store);
    let mut renamed = w.customer.clone();
    renamed.profile.name = fixtures::line("Renamed");
    std::thread::scope(|threads| {
        read(store, |tx| {
            assert_eq!(tx.customers(w.org, all())?.items, std::slice::from_ref(&w.customer));
            let writer = threads.spawn(|| {
                write(store, |tx| {
                    updated(tx.update_customer(w.org, &renamed))?;
                    done(tx.insert_customer(w.org, &fixtures::customer(&FreshIds, "second")))
                });
            });
            writer.join().expect("a writer waits for no reader");
            assert_eq!(tx.customers(w.org, all())?.items, std::slice::from_ref(&w.customer));
            assert_eq!(tx.customers_by_ids(w.org, &[w.customer.id])?, std::slice::from_ref(&w.customer));
            Ok(())
        });
    });
    assert_eq!(read(store, |tx| tx.customers(w.org, all())).total, 2);
}

pub fn a_taken_row_does_not_end_the_transaction(store: &dyn Store) {
    let w = world(store);
    let before = fixtures::usage_product("before");
    let after = fixtures::usage_product("after");
    let mut twin = fixtures::usage_product("calls");
    twin.profile.name = fixtures::line("Twin");
    let committed = store.run(Access::Write, &mut |tx| {
        assert_eq!(tx.insert_usage_product(w.org, &before).expect("works"), Insertion::Done);
        assert_eq!(tx.insert_usage_product(w.org, &twin).expect("works"), Insertion::Taken("usage_product_ref"));
        assert_eq!(tx.insert_usage_product(w.org, &after).expect("works"), Insertion::Done);
        Ok::<(), RollBack>(())
    });
    committed.expect("the work is committed");
    let stored = read(store, |tx| tx.usage_products(w.org, all()));
    let names: Vec<&str> = stored.items.iter().map(|product| product.profile.name.as_str()).collect();
    assert_eq!(names, ["after", "before", "calls"]);
}

pub fn the_number_of_organizations_grows_with_each(store: &dyn Store) {
    let before = read(store, |tx| tx.count_organizations());
    write(store, |tx| done(tx.insert_organization(&fixtures::organization(&FreshIds))));
    write(store, |tx| done(tx.insert_organization(&fixtures::organization(&FreshIds))));
    // Other tests may create organizations in the same store.
    assert!(read(store, |tx| tx.count_organizations()) >= before + 2);
}

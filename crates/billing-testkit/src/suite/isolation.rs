//! Tenant isolation: every method that takes an organization finds nothing in the wrong organization.

use billing_domain::access::{Actor, ApiKey};
use billing_domain::contract::Contract;
use billing_domain::document::lines::{BaseAndAmount, SumKey};
use billing_domain::document::linking::{BillingSlot, SlotKind};
use billing_domain::document::{DocumentHead, DocumentKind, Lifecycle, LifecycleStatus, Settlement};
use billing_domain::ledger::BookRows;
use billing_domain::ledger::recount::Recount;
use billing_domain::page::Page;
use billing_domain::ports::{DocumentFilter, FamilySum, KeyUse, Lock, Store, StoreError, Update};
use billing_domain::refs::{ContractKey, CustomerId, DocumentKey, ProductNo};
use billing_domain::usage::UsageEvent;
use uuid::Uuid;

use super::corrections::{adjustment, void_issued};
use super::{
    World, all, done, key_of_token, later, lock_usage, month, put_usage, read, settle, transact_answer, updated, usage, world,
    write,
};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents};

/// Creates an organization with data and one without.
fn two(store: &dyn Store) -> (World, billing_domain::refs::OrganizationId) {
    let owner = world(store);
    let stranger = fixtures::organization(&FreshIds);
    write(store, |tx| done(tx.insert_organization(&stranger)));
    (owner, stranger.id)
}

pub fn another_organization_sees_no_keys(store: &dyn Store) {
    let (w, stranger) = two(store);
    let key = fixtures::api_key(&FreshIds, w.org);
    write(store, |tx| done(tx.insert_api_key(&key)));
    write(store, |tx| {
        assert_eq!(key_of_token(tx, stranger, key.api_key_ref, Uuid::nil())?, None);
        assert_eq!(tx.api_keys(stranger, all())?, Page::empty());
        let at = later(1);
        tx.touch_api_keys(&[KeyUse { organization: stranger, api_key_ref: key.api_key_ref, at }], at)?;
        assert_eq!(tx.hold_api_key(stranger, key.api_key_ref)?, None);
        tx.update_api_key(&ApiKey { organization: stranger, expires_at: Some(at), ..key.clone() })?;
        assert_eq!(tx.delete_api_key(stranger, key.api_key_ref)?, None);
        Ok(())
    });
    assert_eq!(read(store, |tx| key_of_token(tx, w.org, key.api_key_ref, Uuid::nil())), Some(key));
}

pub fn another_organization_sees_no_catalog(store: &dyn Store) {
    let (w, stranger) = two(store);
    read(store, |tx| {
        assert_eq!(tx.entities(stranger, all())?, Page::empty());
        assert_eq!(tx.entities_by_refs(stranger, std::slice::from_ref(&w.entity.entity_ref))?, []);
        assert_eq!(tx.customers(stranger, all())?, Page::empty());
        assert_eq!(tx.customers_by_refs(stranger, std::slice::from_ref(&w.customer.customer_ref))?, []);
        assert_eq!(tx.customers_by_ids(stranger, &[w.customer.id])?, []);
        assert_eq!(tx.customers_by_name(stranger, &w.customer.profile.name)?, []);
        assert_eq!(tx.usage_products(stranger, all())?, Page::empty());
        assert_eq!(tx.usage_products_by_refs(stranger, std::slice::from_ref(&w.product.usage_product_ref))?, []);
        assert_eq!(tx.usage_products_by_name(stranger, &w.product.profile.name)?, []);
        assert_eq!(tx.pricings(stranger, all())?, Page::empty());
        assert_eq!(tx.pricings_by_refs(stranger, std::slice::from_ref(&w.pricing.pricing_ref))?, []);
        Ok(())
    });
}

pub fn another_organization_changes_no_catalog(store: &dyn Store) {
    let (w, stranger) = two(store);
    let name = fixtures::line("Stolen");
    let (mut entity, mut customer, mut product, mut pricing) =
        (w.entity.clone(), w.customer.clone(), w.product.clone(), w.pricing.clone());
    entity.profile.name = name.clone();
    customer.profile.name = name.clone();
    product.profile.name = name.clone();
    pricing.content.name = name;
    write(store, |tx| {
        assert_eq!(tx.update_entity(stranger, &entity)?, Update::Unknown);
        assert_eq!(tx.update_customer(stranger, &customer)?, Update::Unknown);
        assert_eq!(tx.update_usage_product(stranger, &product)?, Update::Unknown);
        assert_eq!(tx.update_pricing(stranger, &pricing)?, Update::Unknown);
        Ok(())
    });
    read(store, |tx| {
        assert_eq!(tx.entities(w.org, all())?.items, std::slice::from_ref(&w.entity));
        assert_eq!(tx.customers(w.org, all())?.items, std::slice::from_ref(&w.customer));
        assert_eq!(tx.usage_products(w.org, all())?.items, std::slice::from_ref(&w.product));
        assert_eq!(tx.pricings(w.org, all())?.items, std::slice::from_ref(&w.pricing));
        Ok(())
    });
}

pub fn another_organization_may_use_the_same_references(store: &dyn Store) {
    // The references, names and number prefixes of both worlds are equal.
    let (one, other) = (world(store), world(store));
    for w in [&one, &other] {
        read(store, |tx| {
            let customers = tx.customers_by_name(w.org, &w.customer.profile.name)?;
            assert_eq!(customers, std::slice::from_ref(&w.customer));
            assert_eq!(tx.entities(w.org, all())?.total, 1);
            assert_eq!(tx.contracts_of_customer(w.org, w.customer.id, all())?.items, std::slice::from_ref(&w.contract));
            Ok(())
        });
    }
    assert_ne!(one.customer.id, other.customer.id);
}

pub fn another_organization_has_formats_of_its_own(store: &dyn Store) {
    let (w, stranger) = two(store);
    let format = fixtures::format("one");
    write(store, |tx| done(tx.insert_format(w.org, &format)));
    write(store, |tx| {
        assert_eq!(tx.format(stranger, &format.format.format_ref)?, None);
        assert_eq!(tx.format_by_name(stranger, &format.format.name)?, None);
        assert_eq!(tx.format_version(stranger, &format.format.format_ref, 1)?, None);
        assert_eq!(tx.formats(stranger, 0, 10)?, Page::empty());
        assert_eq!(tx.append_format_version(stranger, &fixtures::next_version(&format))?, Update::Unknown);
        // References and names are unique only within an organization.
        done(tx.insert_format(stranger, &format))?;
        updated(tx.append_format_version(stranger, &fixtures::next_version(&format)))
    });
    assert_eq!(read(store, |tx| tx.format(w.org, &format.format.format_ref)), Some(format));
}

pub fn another_organization_sees_no_contracts(store: &dyn Store) {
    let (w, stranger) = two(store);
    let contract = w.contract.contract_ref;
    write(store, |tx| tx.set_next_due(w.contract.key(w.org), Some(later(1))));
    write(store, |tx| {
        assert_eq!(tx.contract(stranger, contract)?, None);
        assert_eq!(tx.contracts_of_customer(stranger, w.customer.id, all())?, Page::empty());
        assert_eq!(tx.contracts_like(stranger, &w.contract, w.contract.created_at)?, []);
        assert_eq!(tx.contracts_metering(stranger, &[(w.customer.id, w.product.usage_product_ref.clone())], None)?, []);
        assert_eq!(tx.contracts_due(Some(stranger), later(2), None, 10)?, []);
        assert_eq!(tx.lock_contract(w.contract.key(stranger), Lock::Shared)?, None);
        assert_eq!(tx.lock_contract(w.contract.key(stranger), Lock::Exclusive)?, None);
        tx.set_next_due(w.contract.key(stranger), None)
    });
    let due = read(store, |tx| tx.contracts_due(Some(w.org), later(2), None, 10));
    assert_eq!(due.iter().map(|due| due.due_at).collect::<Vec<_>>(), [later(1)]);
}

pub fn another_organization_sees_no_usage(store: &dyn Store) {
    let (w, stranger) = two(store);
    let head = w.open(store, w.head(1));
    let event = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let key = fixtures::usage_key(&w.contract, 0, "2026-01-01", &w.product.usage_product_ref);
    write(store, |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        lock_usage(tx, w.org, w.customer.id, std::slice::from_ref(&key))
    });
    read(store, |tx| {
        assert_eq!(tx.event(stranger, event.event_ref)?, None);
        assert_eq!(tx.events_of_customers(stranger, &[w.customer.id], &[event.event_ref])?, []);
        assert_eq!(tx.book_rows(w.contract.key(stranger))?, BookRows::default());
        assert_eq!(usage(tx, stranger, w.customer.id, std::slice::from_ref(&key))?, []);
        Ok(())
    });
}

/// Returns the slot of the first product's invoice for January.
fn january() -> BillingSlot {
    BillingSlot { product_no: ProductNo(0), period_start: month(1).start(), kind: SlotKind::Period }
}

pub fn another_organization_sees_no_documents(store: &dyn Store) {
    let (w, stranger) = two(store);
    let head = w.open(store, w.head(1));
    let (customer, contract) = (w.customer.id, w.contract.contract_ref);
    write(store, |tx| {
        assert_eq!(tx.document(stranger, head.document_ref)?, None);
        assert_eq!(tx.documents(stranger, &DocumentFilter::default(), all())?, Page::empty());
        let filter = DocumentFilter { customer_id: Some(customer), contract_ref: Some(contract), ..DocumentFilter::default() };
        assert_eq!(tx.documents(stranger, &filter, all())?, Page::empty());
        assert_eq!(tx.documents_in_places(&[(w.contract.key(stranger), january())])?, []);
        assert_eq!(tx.agreement(w.contract.key(stranger), None)?, None);
        assert_eq!(tx.agreement_of(stranger, contract)?, None);
        assert_eq!((tx.contract_key(stranger, contract)?, tx.document_key(stranger, head.document_ref)?), (None, None));
        assert_eq!(tx.book_rows(w.contract.key(stranger))?, BookRows::default());
        assert_eq!(tx.book_documents_by_refs(stranger, &[w.customer.id], &[head.document_ref])?, []);
        assert!(!tx.issue_document(head.key(stranger), &w.frozen(&head, cents(1)))?);
        assert!(!tx.void_draft(head.key(stranger), &w.draft_content(&head), later(1))?);
        Ok(())
    });
    let drafts = read(store, |tx| tx.book_rows(w.contract.key(w.org))).documents;
    assert_eq!(drafts.into_iter().map(|document| document.head).collect::<Vec<_>>(), [head]);
}

pub fn a_reference_alone_tells_whose_it_is_and_another_customer_has_none_of_it(store: &dyn Store) {
    let w = world(store);
    let head = w.open(store, w.head(1));
    let first = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let second = UsageEvent { revision: 2, ..first.clone() };
    write(store, |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&first))?;
        tx.lock_contract(w.contract.key(w.org), Lock::Exclusive)?;
        tx.revise_events(w.org, &[(first.clone(), second.clone())])
    });
    let (own, other) = (w.customer.id, CustomerId::from_uuid(Uuid::now_v7()));
    let (document, contract, event) = (head.document_ref, w.contract.contract_ref, first.event_ref);
    read(store, |tx| {
        assert_eq!(tx.contract_key(w.org, contract)?, Some(w.contract.key(w.org)));
        assert_eq!(tx.document_key(w.org, document)?, Some(head.key(w.org)));
        assert_eq!(tx.agreement_of(w.org, contract)?, tx.agreement(w.contract.key(w.org), None)?);
        assert_eq!(tx.agreement(ContractKey { customer: other, ..w.contract.key(w.org) }, None)?, None);
        for (customers, found) in [(vec![], 0), (vec![other], 0), (vec![other, own], 1)] {
            assert_eq!(tx.documents_by_refs(w.org, &customers, &[document])?.len(), found);
            assert_eq!(tx.book_documents_by_refs(w.org, &customers, &[document])?.len(), found);
            assert_eq!(tx.contract_numbers(w.org, &customers, &[contract])?.len(), found);
            assert_eq!(tx.superseded_revisions(w.org, &customers, &[event])?.len(), found);
            assert_eq!(tx.events_of_customers(w.org, &customers, &[event])?.len(), found);
        }
        Ok(())
    });
}

pub fn another_organization_changes_no_events(store: &dyn Store) {
    let (w, stranger) = two(store);
    let (from, to) = (w.open(store, w.head(1)), w.open(store, w.head(2)));
    let first = fixtures::event(&FreshIds, &from, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let second = UsageEvent { revision: 2, ..first.clone() };
    let key = first.period_key();
    let customer = w.customer.id;
    write(store, |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&first))?;
        tx.revise_events(w.org, &[(first.clone(), second.clone())])?;
        let (key, zero) = lock_usage(tx, w.org, customer, std::slice::from_ref(&key))?.remove(0);
        let total = zero.plus(first.counted()).expect("in range");
        put_usage(tx, w.org, customer, &[(key, total)])
    });
    let third = UsageEvent { revision: 3, ..first.clone() };
    let answer = transact_answer(store, |tx| tx.revise_events(stranger, &[(second.clone(), third.clone())]));
    assert!(matches!(answer, Err(StoreError::Contended)), "{answer:?}");
    write(store, |tx| {
        assert_eq!(tx.superseded_revisions(stranger, &[w.customer.id], &[first.event_ref])?, []);
        assert_eq!(tx.recount_usage(stranger, &w.contract, &key, None)?, Recount::default());
        tx.move_events_of_period(from.key(stranger), to.document_ref, ProductNo(0), month(1).start())?;
        tx.move_events(from.key(stranger), to.document_ref)
    });
    assert_eq!(read(store, |tx| tx.event(w.org, first.event_ref)), Some(second));
}

pub fn another_organization_corrects_no_documents(store: &dyn Store) {
    let (w, stranger) = two(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    let debit = w.open(store, adjustment(&w, DocumentKind::Debit, &invoice, 1));
    let void = w.issue(store, w.head(2), cents(100));
    assert!(void_issued(store, &w, &void));
    let lines = w.frozen(&debit, cents(1)).content.ledger_lines();
    let (customer, contract) = (w.customer.id, w.contract.contract_ref);
    let sum = FamilySum {
        family: invoice.document_ref,
        key: SumKey::Tax(fixtures::taxed("19")),
        sum: BaseAndAmount { base: 100, amount: 19 },
    };
    write(store, |tx| {
        w.hold(tx)?;
        tx.add_family_sums(w.org, customer, std::slice::from_ref(&sum))?;
        tx.put_ledger_lines(debit.key(w.org), &lines)
    });
    write(store, |tx| {
        tx.lock_contract(w.contract.key(stranger), Lock::Exclusive)?;
        assert!(!tx.update_draft(stranger, &debit, later(1))?);
        assert!(!tx.void_issued(invoice.key(stranger), later(1), fixtures::date("2026-02-12"))?);
        assert_eq!(tx.documents_of_parents(stranger, &[(customer, invoice.document_ref)])?, []);
        assert_eq!(tx.ledger_lines(debit.key(stranger))?, []);
        assert_eq!(tx.book_rows(w.contract.key(stranger))?, BookRows::default());
        Ok(())
    });
    let settlement = Settlement::none(fixtures::eur());
    let next = Contract { version: 2, ..w.contract.clone() };
    let refused = [
        transact_answer(store, |tx| tx.put_ledger_lines(debit.key(stranger), &[])),
        transact_answer(store, |tx| settle(tx, stranger, &invoice, cents(100), LifecycleStatus::Issued, settlement)),
        transact_answer(store, |tx| {
            tx.lock_contract(w.contract.key(stranger), Lock::Exclusive)?;
            tx.append_contract_version(stranger, &next, later(1), Actor::Service)
        }),
    ];
    assert!(refused.iter().all(|answer| matches!(answer, Err(StoreError::Corrupt(_)))), "{refused:?}");
    assert_eq!(read(store, |tx| tx.ledger_lines(debit.key(w.org))), lines);
    assert_eq!(read(store, |tx| tx.contract(w.org, contract)), Some(w.contract.clone()));
    let stored = read(store, |tx| tx.document(w.org, invoice.document_ref)).expect("a document");
    assert!(matches!(stored.lifecycle, Lifecycle::Issued(_)));
}

pub fn another_organization_inspects_nothing(store: &dyn Store) {
    let (w, stranger) = two(store);
    let head = w.issue(store, w.head(1), cents(100));
    let event = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let customer = w.customer.id;
    write(store, |tx| {
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        lock_usage(tx, w.org, customer, &[event.period_key()])?;
        // The reserved number leaves a gap.
        tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1)
    });
    w.open(store, w.head(2));
    read(store, |tx| {
        assert_eq!(tx.contracts_after(stranger, None, 10)?, []);
        assert_eq!(tx.book_rows(w.contract.key(stranger))?, BookRows::default());
        assert_eq!(tx.recount_contract(stranger, &w.contract)?, Recount::default());
        assert_eq!(tx.broken_series(stranger)?, [""; 0]);
        assert_eq!(tx.broken_seals(stranger)?, [""; 0]);
        assert_eq!(tx.broken_files(stranger)?, [""; 0]);
        assert_eq!(tx.broken_series(w.org)?.len(), 1);
        Ok(())
    });
}

pub fn another_customer_corrects_nothing(store: &dyn Store) {
    let w = world(store);
    let other = fixtures::customer(&FreshIds, "other");
    write(store, |tx| done(tx.insert_customer(w.org, &other)));
    let (from, to) = (w.issue(store, w.head(1), cents(100)), w.open(store, w.head(2)));
    let debit = w.open(store, adjustment(&w, DocumentKind::Debit, &from, 1));
    let void = w.issue(store, w.head(3), cents(100));
    assert!(void_issued(store, &w, &void));
    let event = fixtures::event(&FreshIds, &from, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    let lines = w.frozen(&debit, cents(1)).content.ledger_lines();
    write(store, |tx| {
        w.hold(tx)?;
        tx.put_ledger_lines(debit.key(w.org), &lines)?;
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        lock_usage(tx, w.org, w.customer.id, &[event.period_key()])
    });
    let contract = ContractKey { customer: other.id, ..w.contract.key(w.org) };
    let document = |head: &DocumentHead| DocumentKey { customer: other.id, ..head.key(w.org) };
    let january = month(1).start();
    write(store, |tx| {
        assert!(!tx.void_issued(document(&from), later(1), fixtures::date("2026-02-12"))?);
        assert_eq!(tx.documents_of_parents(w.org, &[(other.id, from.document_ref)])?, []);
        assert_eq!(tx.ledger_lines(document(&debit))?, []);
        assert_eq!(tx.book_rows(contract)?, BookRows::default());
        let theirs = Contract { customer_id: other.id, ..w.contract.clone() };
        assert_eq!(tx.recount_usage(w.org, &theirs, &event.period_key(), None)?, Recount::default());
        assert_eq!(tx.recount_contract(w.org, &theirs)?, Recount::default());
        tx.move_events_of_period(document(&from), to.document_ref, ProductNo(0), january)?;
        tx.move_events(document(&from), to.document_ref)
    });
    let answer = transact_answer(store, |tx| {
        let from = DocumentHead { customer_id: other.id, ..from.clone() };
        settle(tx, w.org, &from, cents(100), LifecycleStatus::Issued, Settlement::none(fixtures::eur()))
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(read(store, |tx| tx.event(w.org, event.event_ref)), Some(event));
}

pub fn another_organization_has_its_own_numbers(store: &dyn Store) {
    let (one, other) = (world(store), world(store));
    for (w, document, contract) in [(&one, 1, 2), (&one, 2, 3), (&other, 1, 2), (&one, 3, 4), (&other, 2, 3)] {
        let taken = write(store, |tx| {
            let document = tx.take_document_numbers(w.org, &w.entity.entity_ref, DocumentKind::Invoice, 1)?;
            Ok((document, tx.next_contract_number(w.org)?))
        });
        assert_eq!(taken, (document, contract));
    }
}

pub fn another_customer_reaches_neither_contract_nor_document(store: &dyn Store) {
    let w = world(store);
    let other = fixtures::customer(&FreshIds, "other");
    let head = w.open(store, w.head(1));
    let event = fixtures::event(&FreshIds, &head, &w.product.usage_product_ref, later(1), fixtures::quantity("1"));
    write(store, |tx| {
        done(tx.insert_customer(w.org, &other))?;
        tx.insert_events(w.org, std::slice::from_ref(&event))?;
        tx.set_next_due(w.contract.key(w.org), Some(later(1)))
    });
    let contract = ContractKey { customer: other.id, ..w.contract.key(w.org) };
    let document = DocumentKey { customer: other.id, ..head.key(w.org) };
    write(store, |tx| {
        assert_eq!(tx.contracts_of_customer(w.org, other.id, all())?, Page::empty());
        assert_eq!(tx.contracts_metering(w.org, &[(other.id, w.product.usage_product_ref.clone())], None)?, []);
        assert_eq!(tx.lock_contract(contract, Lock::Shared)?, None);
        tx.set_next_due(contract, None)?;
        assert_eq!(tx.documents_in_places(&[(contract, january())])?, []);
        assert_eq!(tx.book_rows(contract)?, BookRows::default());
        assert!(!tx.issue_document(document, &w.frozen(&head, cents(1)))?);
        assert!(!tx.void_draft(document, &w.draft_content(&head), later(1))?);
        Ok(())
    });
    let due = read(store, |tx| tx.contracts_due(Some(w.org), later(2), None, 10));
    assert_eq!(due.iter().map(|due| due.due_at).collect::<Vec<_>>(), [later(1)]);
}

//! The programs of SQLite's statements for an event on an existing draft, the most frequent write.

use std::cell::OnceCell;
use std::collections::BTreeSet;

use billing_domain::access::TokenClaims;
use billing_domain::contract::Contract;
use billing_domain::document::DocumentHead;
use billing_domain::idempotency::IdempotencyKey;
use billing_domain::party::Customer;
use billing_domain::ports::{
    ApiKeys as _, Contracts as _, Customers as _, Entities as _, EventKeys as _, Insertion, Organizations as _,
    RunningTotals as _, UsageEvents as _,
};
use billing_domain::refs::{ApiKeyRef, CustomerId, OrganizationId, UsageProductRef};
use billing_domain::usage::{
    AnswerForm, CountedEvent, EventKeyRecord, FactsDigest, NewEventKeyRecord, UsageEvent, UsageKey, UsageTotal,
};
use billing_testkit::{FreshIds, fixtures};
use uuid::Uuid;

use crate::query_plans::plans_after;
use crate::tx::Transaction;

/// Parts of the statements that look up a list for the whole group. One temporary b-tree per group takes less time than one
/// statement per element.
const LISTS_OF_GROUPS: [&str; 3] = ["FROM `revoked_tokens`", "FROM `api_keys`", "FROM (`usage_event_keys`"];

/// An event of each customer, with what the usage writer asks and stores for it.
struct Group {
    organization: OrganizationId,
    tokens: Vec<TokenClaims>,
    pairs: Vec<(CustomerId, UsageProductRef)>,
    events: Vec<UsageEvent>,
    totals: Vec<(CustomerId, UsageKey, UsageTotal)>,
    keys: Vec<(CustomerId, NewEventKeyRecord)>,
}

/// Stores customers with one contract each, and returns an event of each.
fn insert_group(tx: &mut Transaction<'_>, customers: u64) -> Group {
    let organization = fixtures::organization(&FreshIds);
    assert_eq!(tx.insert_organization(&organization).expect("an organization"), Insertion::Done);
    assert_eq!(tx.insert_entity(organization.id, &fixtures::entity("main")).expect("an entity"), Insertion::Done);
    let (mut tokens, mut pairs, mut events) = (Vec::new(), Vec::new(), Vec::new());
    let (mut totals, mut keys) = (Vec::new(), Vec::new());
    for number in 1..=customers {
        let (customer, contract) = insert_contract(tx, organization.id, number);
        let head = head_of(&contract);
        let event = event_on(&head);
        tokens.push(token_of(organization.id));
        pairs.push((customer.id, event.usage_product_ref.clone()));
        totals.push((customer.id, event.period_key(), total_of(&event)));
        keys.push((customer.id, key_of(&event, &head)));
        events.push(event);
    }
    Group { organization: organization.id, tokens, pairs, events, totals, keys }
}

fn insert_contract(tx: &mut Transaction<'_>, organization: OrganizationId, number: u64) -> (Customer, Contract) {
    let customer = fixtures::customer(&FreshIds, &format!("customer-{number}"));
    assert_eq!(tx.insert_customer(organization, &customer).expect("a customer"), Insertion::Done);
    let pricing = fixtures::pricing("api", vec![fixtures::per_unit("calls", "0.01")]);
    let terms = vec![fixtures::agreed(&pricing, "2026-01-01", "2026-12-31")];
    let contract = Contract { number, ..fixtures::contract(&FreshIds, &customer, terms) };
    tx.insert_contract(organization, &contract, None).expect("a new contract");
    (customer, contract)
}

fn head_of(contract: &Contract) -> DocumentHead {
    let january = fixtures::period("2026-01-01", "2026-01-31");
    fixtures::document_head(&FreshIds, contract, &fixtures::entity("main"), january)
}

fn event_on(head: &DocumentHead) -> UsageEvent {
    let product = fixtures::usage_product("calls").usage_product_ref;
    fixtures::event(&FreshIds, head, &product, fixtures::at(fixtures::CREATED_AT), fixtures::quantity("1.5"))
}

fn token_of(organization: OrganizationId) -> TokenClaims {
    let at = fixtures::at(fixtures::CREATED_AT);
    let api_key_ref = ApiKeyRef::from_uuid(Uuid::now_v7());
    TokenClaims { api_key_ref, organization, token_id: Uuid::now_v7(), issued_at: at, expires_at: at }
}

fn total_of(event: &UsageEvent) -> UsageTotal {
    let counted = CountedEvent {
        event_ref: event.event_ref,
        occurred_at: event.occurred_at,
        service_date: event.service_date,
        quantity: event.quantity,
        is_distinct: None,
    };
    UsageTotal::ZERO.plus(counted).expect("a small sum")
}

fn key_of(event: &UsageEvent, head: &DocumentHead) -> NewEventKeyRecord {
    let key = IdempotencyKey::parse("key").expect("a key");
    let (answer, form) = ("{}".to_owned(), AnswerForm::Event);
    let kept = EventKeyRecord { key, facts: FactsDigest([0; 16]), event_ref: event.event_ref, answer, form };
    NewEventKeyRecord { kept, document_ref: head.document_ref, document_number: head.number.clone() }
}

#[test]
fn no_statement_of_an_event_on_a_draft_creates_a_temporary_tree() {
    for customers in [1, 3] {
        let group = OnceCell::new();
        let prepare = |tx: &mut Transaction<'_>| {
            let inserted = insert_group(tx, customers);
            tx.add_usage(inserted.organization, &inserted.totals).expect("the first events of their periods");
            assert!(group.set(inserted).is_ok());
        };
        let plans = plans_after(prepare, |tx| {
            let Group { organization, tokens, pairs, events, totals, keys } = group.get().expect("a group");
            tx.keys_of_tokens(tokens).expect("a look-up");
            assert_eq!(tx.lock_stamps(*organization, pairs).expect("locked contracts").len(), pairs.len());
            let asked: Vec<_> = keys.iter().map(|(customer, key)| (*customer, key.kept.key.clone())).collect();
            assert_eq!(tx.event_key_records(*organization, &asked).expect("a look-up"), []);
            let added = tx.add_usage(*organization, totals).expect("existing totals").expect("small sums");
            assert_eq!(added.len(), totals.len());
            // Looks up the drafts, which do not exist.
            assert!(!tx.insert_events_on_drafts(*organization, events).expect("a look-up"));
            tx.insert_events(*organization, events).expect("new events");
            tx.save_event_keys(*organization, keys).expect("new keys");
        });
        let with_tree = plans.iter().filter(|plan| plan.has_temporary_tree()).map(|plan| plan.statement.as_str());
        let is_list = |statement: &str| customers > 1 && LISTS_OF_GROUPS.iter().any(|part| statement.contains(part));
        let unexpected: BTreeSet<&str> = with_tree.filter(|statement| !is_list(statement)).collect();
        assert!(plans.len() >= 7 && unexpected.is_empty(), "{customers}: {unexpected:#?}");
    }
}

//! Lists for finance.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::audit::AuditedKind;
use billing_domain::catalog::UsageProduct;
use billing_domain::contract::{Contract, ContractState};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentHead, DocumentKind, DocumentState, IssuedDocument, LifecycleStatus, Purpose, Settlement};
use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::money::{Money, MoneySum};
use billing_domain::page::{Direction, ListSortKey, Page, PageRequest, UpdateFilter, UpdatePosition};
use billing_domain::party::Customer;
use billing_domain::ports::{
    BilledMonth, ContractFilter, ContractSortKey, CustomerFilter, CustomerSortKey, DocumentAmounts, DocumentFilter,
    DocumentOrder, DocumentSortKey, ListWindow, LocalDates, ObjectKey, PurposeKind, Store,
};
use billing_domain::refs::{ContractRef, DocumentRef, PricingRef};
use chrono::NaiveDate;

use super::corrections::{adjustment, void_issued};
use super::documents::two_products;
use super::{World, all, done, later, page, read, reads_backward, refs_of, settle, settle_at, world, write};
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, date};

const ORDERS: [DocumentSortKey; 4] =
    [DocumentSortKey::Created, DocumentSortKey::IssueDate, DocumentSortKey::DueDate, DocumentSortKey::Amount];

fn any() -> DocumentFilter {
    DocumentFilter::default()
}

fn listed(store: &dyn Store, w: &World, filter: &DocumentFilter) -> Vec<DocumentRef> {
    let part = ListWindow { after: None, skip: 0, limit: 1000 };
    refs_of(&read(store, |tx| tx.listed_documents(w.org, filter, DocumentOrder::default(), part)))
}

/// Opens a document with changes and issues it.
pub(super) fn issue(
    store: &dyn Store,
    w: &World,
    head: DocumentHead,
    minor: i64,
    change: impl Fn(IssuedDocument) -> IssuedDocument,
) -> DocumentHead {
    let head = w.open(store, head);
    let amount = Money::from_minor(minor, head.currency);
    let issued = change(w.frozen(&head, amount));
    assert!(write(store, |tx| {
        tx.lock_contract(head.contract_key(w.org), billing_domain::ports::Lock::Exclusive)?;
        tx.issue_document(head.key(w.org), &issued)
    }));
    head
}

pub(super) fn made(w: &World, n: u32, seconds: i64) -> DocumentHead {
    DocumentHead { created_at: later(seconds), ..w.head(n) }
}

fn credit(w: &World, n: u32, seconds: i64, parent: &DocumentHead) -> DocumentHead {
    let kind = DocumentKind::Credit;
    DocumentHead {
        kind,
        number: DocumentNumber { kind, ..w.head(n).number },
        purpose: Purpose::Adjustment,
        parent: Some(parent.document_ref),
        ..made(w, n, seconds)
    }
}

fn due(day: &'static str) -> impl Fn(IssuedDocument) -> IssuedDocument {
    move |issued| IssuedDocument { due_date: date(day), ..issued }
}

/// Creates documents in every state: issued documents, two of them with equal dates and amounts, a credit, a void document, and
/// drafts.
fn many(store: &dyn Store, w: &World) -> Vec<DocumentHead> {
    let yen = |head: DocumentHead| DocumentHead { currency: fixtures::currency("JPY"), ..head };
    let first = issue(store, w, made(w, 1, 9), 1000, due("2026-03-01"));
    let mut heads = vec![
        issue(store, w, made(w, 2, 8), 1000, due("2026-03-01")),
        issue(store, w, made(w, 3, 8), 70, due("2026-02-28")),
        issue(store, w, yen(made(w, 4, 7)), 500, due("2026-05-01")),
        issue(store, w, yen(made(w, 5, 7)), 20_000, due("2026-04-01")),
        issue(store, w, credit(w, 1, 6, &first), 300, due("2026-03-01")),
        w.open(store, made(w, 6, 1)),
        w.open(store, made(w, 7, 5)),
        w.open(store, made(w, 8, 5)),
    ];
    heads.push(first);
    let void = issue(store, w, made(w, 9, 4), 999, due("2026-03-01"));
    assert!(void_issued(store, w, &void));
    heads.push(void);
    let discarded = w.open(store, made(w, 10, 4));
    w.void(store, &discarded);
    heads.push(discarded);
    heads
}

pub fn documents_come_in_every_order_from_any_place(store: &dyn Store) {
    let w = world(store);
    let expected_of_all = many(store, &w).len();
    for by in ORDERS {
        for descending in [false, true] {
            let order = DocumentOrder { by, descending };
            let list = |part| read(store, |tx| tx.listed_documents(w.org, &any(), order, part));
            let whole = list(ListWindow { after: None, skip: 0, limit: 1000 });
            assert_eq!(whole.len(), expected_of_all, "{order:?}");
            let in_order = whole.windows(2).all(|two| order.compare(&order.position(&two[0]), &order.position(&two[1])).is_lt());
            assert!(in_order, "{order:?}: {:?}", whole.iter().map(|row| order.position(row)).collect::<Vec<_>>());
            for limit in [1, 3, 4] {
                // Pages are read by cursor and by page number.
                let (mut by_place, mut by_number, mut after) = (Vec::new(), Vec::new(), None);
                for number in 0.. {
                    let part = list(ListWindow { after, skip: 0, limit });
                    let Some(last) = part.last() else { break };
                    after = Some(order.position(last));
                    by_place.extend(refs_of(&part));
                    by_number.extend(refs_of(&list(page(limit, number).into())));
                }
                assert_eq!((&by_place, &by_number), (&refs_of(&whole), &refs_of(&whole)), "{order:?}, {limit} at a time");
            }
            let second = list(ListWindow { after: Some(order.position(&whole[2])), skip: 2, limit: 3 });
            assert_eq!(refs_of(&second), refs_of(&whole[5..8]), "{order:?}");
        }
    }
}

pub fn documents_are_ordered_by_what_issued_ones_have(store: &dyn Store) {
    let w = world(store);
    let heads = many(store, &w);
    let shown = |by, descending| {
        let part = ListWindow { after: None, skip: 0, limit: 5 };
        let found = read(store, |tx| tx.listed_documents(w.org, &any(), DocumentOrder { by, descending }, part));
        let place = |document: &billing_domain::document::Document| {
            heads.iter().position(|head| head.document_ref == document.head.document_ref).expect("one of them")
        };
        found.iter().map(place).collect::<Vec<_>>()
    };
    // 0 and 8 are equal. 8 was created first.
    assert_eq!(shown(DocumentSortKey::DueDate, true), [2, 3, 0, 8, 1]);
    assert_eq!(shown(DocumentSortKey::Amount, false), [1, 4, 9, 8, 0]);
    assert_eq!(shown(DocumentSortKey::Amount, true), [3, 2, 0, 8, 9]);
    assert_eq!(shown(DocumentSortKey::IssueDate, false)[..2], [8, 4]);
}

pub fn documents_are_found_by_what_finance_asks_for(store: &dyn Store) {
    let w = world(store);
    let heads = many(store, &w);
    let yen = Money::from_minor(20_000, heads[3].currency);
    write(store, |tx| {
        let paid = Settlement { paid: cents(70), ..Settlement::none(fixtures::eur()) };
        settle_at(tx, w.org, &heads[1], cents(70), LifecycleStatus::Issued, paid, later(10_000_000))?;
        settle(tx, w.org, &heads[3], yen, LifecycleStatus::Uncollectible, Settlement::none(yen.currency()))?;
        let used = Settlement { used: cents(300), ..Settlement::none(fixtures::eur()) };
        settle(tx, w.org, &heads[4], cents(300), LifecycleStatus::Issued, used)
    });
    let with_po = |issued: IssuedDocument| IssuedDocument { po_number: Some(fixtures::line("PO 1")), ..issued };
    let po = issue(store, &w, made(&w, 11, 3), 5, with_po);
    let of = |indexes: &[usize]| indexes.iter().map(|i| heads[*i].document_ref).collect::<Vec<_>>();
    let rows: Vec<(DocumentFilter, Vec<DocumentRef>)> = vec![
        (DocumentFilter { number: Some(heads[3].number.clone()), ..any() }, of(&[3])),
        (DocumentFilter { number: Some(heads[4].number.clone()), ..any() }, of(&[4])),
        (DocumentFilter { number: Some(DocumentNumber { sequence: 99, ..heads[3].number.clone() }), ..any() }, vec![]),
        (DocumentFilter { po_number: Some(fixtures::line("PO 1")), ..any() }, vec![po.document_ref]),
        (DocumentFilter { po_number: Some(fixtures::line("po 1")), ..any() }, vec![]),
        (DocumentFilter { purpose: Some(PurposeKind::Adjustment), ..any() }, of(&[4])),
        (DocumentFilter { purpose: Some(PurposeKind::Usage), ..any() }, vec![]),
        (DocumentFilter { currency: Some(fixtures::currency("JPY")), ..any() }, of(&[2, 3])),
        (DocumentFilter { currency: Some(fixtures::currency("USD")), ..any() }, vec![]),
        (DocumentFilter { due_from: Some(date("2026-04-01")), due_to: Some(date("2026-05-01")), ..any() }, of(&[2, 3])),
        (DocumentFilter { due_from: Some(date("2026-04-02")), due_to: Some(date("2026-06-01")), ..any() }, of(&[2])),
        (DocumentFilter { due_to: Some(date("2026-02-28")), ..any() }, of(&[1])),
        // Credits and void documents have no due date.
        (DocumentFilter { due_from: Some(date("2026-03-01")), due_to: Some(date("2026-03-01")), ..any() }, of(&[0, 8])),
        // The issue date follows the period, in the calendar of the entity.
        (DocumentFilter { issued_from: Some(date("2026-05-01")), issued_to: Some(date("2026-06-01")), ..any() }, of(&[2, 3])),
        (DocumentFilter { issued_to: Some(date("2026-02-01")), ..any() }, of(&[4, 8])),
        (DocumentFilter { has_amount_due: Some(true), due_to: Some(date("2026-03-01")), ..any() }, of(&[0, 8])),
        (DocumentFilter { has_amount_due: Some(false), issued_to: Some(date("2026-04-01")), ..any() }, of(&[4, 1])),
        (DocumentFilter { state: Some(DocumentState::Paid), ..any() }, of(&[1])),
        (DocumentFilter { state: Some(DocumentState::Uncollectible), ..any() }, of(&[3])),
        (DocumentFilter { state: Some(DocumentState::Settled), ..any() }, of(&[4])),
        (DocumentFilter { updated_since: Some(later(10_000_000)), issued_to: Some(date("2026-04-01")), ..any() }, of(&[1])),
    ];
    for (filter, mut expected) in rows {
        let mut found = listed(store, &w, &filter);
        found.sort();
        expected.sort();
        assert_eq!(found, expected, "{filter:?}");
        let sums = read(store, |tx| tx.document_sums(w.org, &filter));
        assert_eq!(sums.count, expected.len() as u64, "{filter:?}");
    }
}

pub fn a_change_of_a_document_is_found_by_its_instant(store: &dyn Store) {
    let w = world(store);
    let since = |at| listed(store, &w, &DocumentFilter { updated_since: Some(at), ..any() });
    let draft = w.open(store, made(&w, 1, 5));
    assert_eq!(since(later(5)), [draft.document_ref]);
    assert_eq!(since(later(6)), []);
    w.void(store, &draft);
    assert_eq!((since(later(60)), since(later(61))), (vec![draft.document_ref], vec![]));
    let at = later(100 * 86_400);
    let issued = issue(store, &w, made(&w, 2, 5), 10, |issued| IssuedDocument { issued_at: at, ..issued });
    assert_eq!((since(at), since(at.plus_seconds(1))), (vec![issued.document_ref], vec![]));
    let later_still = at.plus_seconds(7);
    let none = Settlement::none(fixtures::eur());
    write(store, |tx| settle_at(tx, w.org, &issued, cents(10), LifecycleStatus::Issued, none, later_still));
    assert_eq!((since(later_still), since(later_still.plus_seconds(1))), (vec![issued.document_ref], vec![]));
}

pub fn a_draft_has_the_purchase_order_number_of_its_contract(store: &dyn Store) {
    let w = world(store);
    let with_po = Contract { po_number: Some(fixtures::line("PO 7")), ..w.another_contract(2) };
    write(store, |tx| tx.insert_contract(w.org, &with_po, None));
    let head = fixtures::document_head(&FreshIds, &with_po, &w.entity, super::month(1));
    let head = w.open(store, head);
    let of = |po: &str| listed(store, &w, &DocumentFilter { po_number: Some(fixtures::line(po)), ..any() });
    assert_eq!((of("PO 7"), of("PO 8")), (vec![head.document_ref], vec![]));
    let next = Contract { version: 2, po_number: Some(fixtures::line("PO 8")), ..with_po };
    write(store, |tx| {
        tx.lock_contract(next.key(w.org), billing_domain::ports::Lock::Exclusive)?;
        tx.append_contract_version(w.org, &next, later(1), billing_domain::access::Actor::Service)
    });
    assert_eq!((of("PO 7"), of("PO 8")), (vec![], vec![head.document_ref]));
}

pub fn what_is_overdue_follows_from_each_entitys_day(store: &dyn Store) {
    let w = world(store);
    let mut east = fixtures::entity("east");
    east.profile.time_zone = "Asia/Tokyo".parse().expect("a zone");
    write(store, |tx| done(tx.insert_entity(w.org, &east)));
    let there = |n, seconds| {
        let head = fixtures::document_head(&FreshIds, &w.contract, &east, super::month(n));
        DocumentHead { created_at: later(seconds), ..head }
    };
    let here = issue(store, &w, made(&w, 1, 1), 10, due("2026-03-01"));
    let east_head = issue(store, &w, there(2, 2), 10, due("2026-03-01"));
    let paid = issue(store, &w, made(&w, 3, 3), 10, due("2026-03-01"));
    issue(store, &w, credit(&w, 1, 4, &here), 10, due("2026-03-01"));
    write(store, |tx| {
        let credited = Settlement { credits: cents(10), ..Settlement::none(fixtures::eur()) };
        settle(tx, w.org, &paid, cents(10), LifecycleStatus::Issued, credited)
    });
    let entities = [w.entity.clone(), east.clone()];
    let overdue = |wanted, at: &str| {
        let todays = LocalDates::at(fixtures::at(at), &entities);
        let filter = DocumentFilter { overdue: Some((wanted, todays)), ..any() };
        (listed(store, &w, &filter), read(store, |tx| tx.document_sums(w.org, &filter)).count)
    };
    assert_eq!(overdue(true, "2026-03-01T14:59:59Z"), (vec![], 0));
    assert_eq!(overdue(false, "2026-03-01T14:59:59Z").1, 4);
    // In Tokyo, it is already the next day.
    assert_eq!(overdue(true, "2026-03-01T15:00:00Z"), (vec![east_head.document_ref], 1));
    assert_eq!(overdue(false, "2026-03-01T15:00:00Z").1, 3);
    assert_eq!(overdue(true, "2026-03-03T00:00:00Z"), (vec![here.document_ref, east_head.document_ref], 2));
    let of_here = DocumentFilter {
        overdue: Some((true, LocalDates::at(fixtures::at("2026-03-03T00:00:00Z"), &entities))),
        entity_ref: Some(east.entity_ref),
        ..any()
    };
    assert_eq!(listed(store, &w, &of_here), [east_head.document_ref]);
}

pub fn documents_add_up_by_currency(store: &dyn Store) {
    let w = world(store);
    let sums = |filter: &DocumentFilter| read(store, |tx| tx.document_sums(w.org, filter));
    assert_eq!((sums(&any()).count, sums(&any()).amounts), (0, vec![]));
    let heads = many(store, &w);
    write(store, |tx| {
        let settlement = Settlement { paid: cents(400), ..Settlement::none(fixtures::eur()) };
        settle(tx, w.org, &heads[0], cents(1000), LifecycleStatus::Issued, settlement)?;
        let yen = Money::from_minor(20_000, heads[3].currency);
        settle(tx, w.org, &heads[3], yen, LifecycleStatus::Uncollectible, Settlement::none(yen.currency()))
    });
    let money = |minor, currency| MoneySum::from_minor(minor, fixtures::currency(currency)).expect("a sum");
    let of = |total, due, currency| DocumentAmounts { total: money(total, currency), due: money(due, currency) };
    let whole = sums(&any());
    assert_eq!(whole.count, heads.len() as u64);
    // Credits reduce the totals. Drafts and void documents don't count, and written-off amounts aren't due.
    assert_eq!(whole.amounts, [of(1000 + 1000 + 70 - 300, 600 + 1000 + 70, "EUR"), of(20_500, 500, "JPY")]);
    let credits = sums(&DocumentFilter { kind: Some(DocumentKind::Credit), ..any() });
    assert_eq!((credits.count, credits.amounts), (1, vec![of(-300, 0, "EUR")]));
    let drafts = sums(&DocumentFilter { state: Some(DocumentState::Draft), ..any() });
    assert_eq!((drafts.count, drafts.amounts), (3, vec![of(0, 0, "EUR")]));
    // Documents are issued on the first day after their period. Written-off documents count as billed. The void document stays in
    // October, the month of its issue, and is subtracted in the month of its void.
    let months = |filter: &DocumentFilter| {
        let found = read(store, |tx| tx.billed_months(w.org, filter));
        let reported = |month: &BilledMonth| {
            (month.first_day, month.documents, [month.invoiced, month.credited, month.voided, month.billed])
        };
        found.iter().map(reported).collect::<Vec<_>>()
    };
    let billed = |day, documents, invoiced, credited, voided, currency| {
        let sums = [invoiced, credited, voided, invoiced - credited - voided];
        (date(day), documents, sums.map(|sum| money(sum, currency)))
    };
    let expected = [
        billed("2026-02-01", 2, 1000, 300, 999, "EUR"),
        billed("2026-03-01", 1, 1000, 0, 0, "EUR"),
        billed("2026-04-01", 1, 70, 0, 0, "EUR"),
        billed("2026-05-01", 1, 500, 0, 0, "JPY"),
        billed("2026-06-01", 1, 20_000, 0, 0, "JPY"),
        billed("2026-10-01", 1, 999, 0, 0, "EUR"),
    ];
    assert_eq!(months(&any()), expected);
    let of_days = |from, to| DocumentFilter { issued_from: Some(date(from)), issued_to: Some(date(to)), ..any() };
    assert_eq!(months(&of_days("2026-03-01", "2026-03-31")), expected[1..2]);
    assert_eq!(months(&of_days("2026-10-01", "2026-10-01")), expected[5..]);
    // The void is selected by its own day.
    let void = billed("2026-02-01", 0, 0, 0, 999, "EUR");
    assert_eq!(months(&of_days("2026-02-12", "2026-02-12")), [void]);
    assert_eq!(months(&of_days("2026-02-13", "2026-02-28")), []);
    assert_eq!(months(&DocumentFilter { state: Some(DocumentState::Void), ..any() }), [void, expected[5]]);
    for month in [9, 10, 11] {
        w.issue(store, w.head(month), Money::from_minor(i64::MAX, fixtures::eur()));
    }
    let invoice = w.issue(store, w.head(12), cents(1));
    for number in 20..25 {
        w.issue(store, adjustment(&w, DocumentKind::Credit, &invoice, number), Money::from_minor(i64::MAX, fixtures::eur()));
    }
    let most = i128::from(i64::MAX);
    let large = of(1770 + 1 - 2 * most, 1670 + 1 + 3 * most, "EUR");
    assert_eq!(sums(&any()).amounts[0], large, "more than any single amount");
}

#[expect(clippy::too_many_lines, reason = "one story")]
pub fn contracts_are_found_without_a_customer(store: &dyn Store) {
    let w = world(store);
    let other = two_products(store, &w);
    let terms = |first: &str, last: &str| fixtures::agreed(&w.pricing, first, last);
    let made = |number, seconds, terms| Contract {
        number,
        created_at: later(seconds),
        ..fixtures::contract(&FreshIds, &w.customer, terms)
    };
    let past = Contract { po_number: Some(fixtures::line("PO")), ..made(3, 1, vec![terms("2025-01-01", "2025-12-31")]) };
    let future = made(4, 2, vec![terms("2027-01-01", "2027-12-31")]);
    let cancelled = Contract { cancelled_at: Some(later(9)), ..made(5, 3, vec![terms("2025-01-01", "2025-06-30")]) };
    let cancelling = Contract { cancelled_at: Some(later(9)), ..made(6, 4, vec![terms("2026-01-01", "2026-06-30")]) };
    let empty = made(7, 5, vec![]);
    for contract in [&past, &future, &cancelled, &cancelling, &empty] {
        write(store, |tx| tx.insert_contract(w.org, contract, None));
    }
    let find = |filter: &ContractFilter| -> Vec<ContractRef> {
        let found = read(store, |tx| tx.contracts(w.org, filter, ContractSortKey::Created, all()));
        assert_eq!(found.total, found.items.len() as u64);
        found.items.iter().map(|contract| contract.contract_ref).collect()
    };
    let any = ContractFilter::default;
    let of = |contracts: &[&Contract]| contracts.iter().map(|contract| contract.contract_ref).collect::<Vec<_>>();
    let (own, theirs) = (&w.contract, &other.contract);
    let entities = [w.entity.clone()];
    let todays = LocalDates::at(fixtures::at("2026-02-01T12:00:00Z"), &entities);
    let in_state = |state| find(&ContractFilter { state: Some((state, todays.clone())), ..any() });
    let mut whole = [own, theirs, &past, &future, &cancelled, &cancelling, &empty];
    whole.sort_by_key(|contract| (contract.created_at, contract.contract_ref));
    assert_eq!(find(&any()), of(&whole));
    assert_eq!(find(&ContractFilter { customer_id: Some(other.customer.id), ..any() }), of(&[theirs]));
    assert_eq!(find(&ContractFilter { number: Some(4), ..any() }), of(&[&future]));
    assert_eq!(find(&ContractFilter { number: Some(99), ..any() }), of(&[]));
    assert_eq!(find(&ContractFilter { po_number: Some(fixtures::line("PO")), ..any() }), of(&[&past]));
    assert_eq!(find(&ContractFilter { ends_before: Some(date("2026-01-01")), ..any() }), of(&[&past, &cancelled]));
    assert_eq!(find(&ContractFilter { ends_before: Some(date("2025-12-31")), ..any() }), of(&[&cancelled]));
    assert_eq!(in_state(ContractState::Pending), of(&[&future]));
    assert_eq!(in_state(ContractState::Completed), of(&[&past]));
    assert_eq!(in_state(ContractState::Cancelled), of(&[&cancelled]));
    assert_eq!(in_state(ContractState::Cancelling), of(&[&cancelling]));
    let mut active = [own, theirs, &empty];
    active.sort_by_key(|contract| (contract.created_at, contract.contract_ref));
    assert_eq!(in_state(ContractState::Active), of(&active));
    // Each contract is in exactly one state.
    let every = [
        ContractState::Pending,
        ContractState::Active,
        ContractState::Cancelling,
        ContractState::Cancelled,
        ContractState::Completed,
    ];
    for at in
        ["2024-12-31T12:00:00Z", "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2027-12-31T12:00:00Z", "2028-01-01T12:00:00Z"]
    {
        let todays = LocalDates::at(fixtures::at(at), &entities);
        for state in every {
            let found = find(&ContractFilter { state: Some((state, todays.clone())), ..any() });
            let expected = whole.iter().filter(|contract| contract.state_on(todays.of(contract.stating_entity())) == state);
            assert_eq!(found, expected.map(|contract| contract.contract_ref).collect::<Vec<_>>(), "{state:?} at {at}");
        }
    }
    // A contract is found by the pricing of any of its versions.
    let mut other_terms = terms("2029-01-01", "2029-12-31");
    other_terms.pricing.pricing_ref = PricingRef::parse("elsewhere").expect("a reference");
    let elsewhere = made(8, 6, vec![other_terms]);
    write(store, |tx| tx.insert_contract(w.org, &elsewhere, Some(later(100))));
    let issues_before = |end| find(&ContractFilter { issues_before: Some(end), ..any() });
    assert!(!issues_before(later(100)).contains(&elsewhere.contract_ref));
    assert!(issues_before(later(101)).contains(&elsewhere.contract_ref));
    assert!(!issues_before(later(101)).contains(&past.contract_ref), "it has nothing to issue any more");
    let by_pricing =
        |pricing: &str| find(&ContractFilter { pricing_ref: Some(PricingRef::parse(pricing).expect(pricing)), ..any() });
    assert_eq!(by_pricing("elsewhere"), of(&[&elsewhere]));
    assert_eq!(by_pricing("nowhere"), of(&[]));
    let of_fixture = find(&ContractFilter { pricing_ref: Some(w.pricing.pricing_ref.clone()), ..any() });
    assert!(of_fixture.contains(&past.contract_ref) && !of_fixture.contains(&elsewhere.contract_ref), "{of_fixture:?}");
    // The days of a later version count.
    let longer = Contract { version: 2, products: made(3, 1, vec![terms("2025-01-01", "2026-12-31")]).products, ..past.clone() };
    write(store, |tx| {
        tx.lock_contract(longer.key(w.org), billing_domain::ports::Lock::Exclusive)?;
        let mut longer = longer.clone();
        longer.products[0].segments[0].version = 2;
        tx.append_contract_version(w.org, &longer, later(1), billing_domain::access::Actor::Service)
    });
    assert_eq!(in_state(ContractState::Completed), of(&[]));
    let second = read(store, |tx| tx.contracts(w.org, &any(), ContractSortKey::Created, page(3, 1)));
    let mut refs = second.items.iter().map(|contract| contract.contract_ref);
    assert!(refs.by_ref().eq(of(&whole[3..6])) && second.total == 8);
    for by in [ContractSortKey::Created, ContractSortKey::LastDay] {
        reads_backward(|page| read(store, |tx| tx.contracts(w.org, &any(), by, page)));
    }
    let by_last_day =
        |filter: &ContractFilter, page| read(store, |tx| tx.contracts(w.org, filter, ContractSortKey::LastDay, page));
    let mut rows = by_last_day(&any(), all()).items;
    let last_days: Vec<Option<NaiveDate>> = rows.iter().map(Contract::effective_end_date).collect();
    assert_eq!(last_days.first(), Some(&Some(date("2025-06-30"))));
    assert_eq!(last_days.last(), Some(&None), "what never ends comes last");
    assert!(last_days.is_sorted_by_key(|last_day| (last_day.is_none(), *last_day)), "{last_days:?}");
    let refs: Vec<ContractRef> = rows.iter().map(|contract| contract.contract_ref).collect();
    rows.sort_by_key(|row| (row.effective_end_date().is_none(), row.effective_end_date(), row.contract_ref));
    assert!(rows.iter().map(|row| row.contract_ref).eq(refs.iter().copied()), "equals come by reference");
    assert!(by_last_day(&any(), page(3, 1)).items.iter().map(|row| row.contract_ref).eq(refs[3..6].iter().copied()));
    let narrowed = by_last_day(&ContractFilter { ends_before: Some(date("2026-12-31")), ..any() }, all()).items;
    assert!(narrowed.is_sorted_by_key(Contract::effective_end_date) && narrowed.len() > 1);
}

pub fn contracts_are_in_their_state_by_their_entitys_day(store: &dyn Store) {
    let w = world(store);
    let mut east = fixtures::entity("east");
    east.profile.time_zone = "Asia/Tokyo".parse().expect("a zone");
    write(store, |tx| done(tx.insert_entity(w.org, &east)));
    let mut terms = fixtures::agreed(&w.pricing, "2025-01-01", "2026-12-31");
    terms.entity_ref = east.entity_ref.clone();
    let there = Contract { number: 2, ..fixtures::contract(&FreshIds, &w.customer, vec![terms]) };
    write(store, |tx| tx.insert_contract(w.org, &there, None));
    let nowhere = Contract { number: 3, ..fixtures::contract(&FreshIds, &w.customer, vec![]) };
    write(store, |tx| tx.insert_contract(w.org, &nowhere, None));
    let entities = [w.entity.clone(), east];
    let in_state = |state, at: &str| {
        let filter =
            ContractFilter { state: Some((state, LocalDates::at(fixtures::at(at), &entities))), ..ContractFilter::default() };
        let mut found: Vec<u64> = read(store, |tx| tx.contracts(w.org, &filter, ContractSortKey::Created, all()))
            .items
            .iter()
            .map(|c| c.number)
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(in_state(ContractState::Completed, "2026-12-31T14:59:59Z"), []);
    assert_eq!(in_state(ContractState::Completed, "2026-12-31T15:00:00Z"), [2]);
    assert_eq!(in_state(ContractState::Active, "2026-12-31T15:00:00Z"), [1, 3]);
    assert_eq!(in_state(ContractState::Completed, "2027-01-02T00:00:00Z"), [1, 2]);
}

pub fn the_numbers_of_contracts_come_by_reference(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let unknown = w.another_contract(9).contract_ref;
    let refs = [w.contract.contract_ref, unknown, stranger.contract.contract_ref];
    assert_eq!(
        read(store, |tx| tx.contract_numbers(w.org, &[w.customer.id, stranger.customer.id], &refs)),
        [(w.contract.contract_ref, w.contract.number)]
    );
}

pub fn a_list_by_the_last_change_continues_after_a_position(store: &dyn Store) {
    let w = world(store);
    for (reference, seconds) in [("c", 3), ("b", 2), ("a", 3), ("d", 4), ("early", 1)] {
        let customer = Customer { updated_at: later(seconds), ..fixtures::customer(&FreshIds, reference) };
        let product = UsageProduct { updated_at: later(seconds), ..fixtures::usage_product(reference) };
        write(store, |tx| {
            done(tx.insert_customer(w.org, &customer))?;
            done(tx.insert_usage_product(w.org, &product))
        });
    }
    let since = UpdateFilter { since: Some(later(2)), after: None };
    let after = |seconds, key: &str| UpdateFilter {
        after: Some(UpdatePosition { updated_at: later(seconds), key: key.to_owned() }),
        ..since.clone()
    };
    let backward = all().in_direction(Direction::Backward);
    for (updates, asked, expected) in [
        (since.clone(), all(), "b a c d"),
        (since.clone(), backward, "d c a b"),
        (since.clone(), page(3, 1), "d"),
        (after(3, "a"), all(), "c d"),
        (after(3, "b"), page(1, 0), "c"),
        (after(3, "a"), backward, "b"),
        (after(4, "d"), all(), ""),
    ] {
        let filter = CustomerFilter { updates: updates.clone(), ..CustomerFilter::default() };
        let customers = read(store, |tx| tx.listed_customers(w.org, &filter, CustomerSortKey::Updated, asked));
        let products = read(store, |tx| tx.listed_usage_products(w.org, &updates, ListSortKey::Updated, asked));
        let of_customers: Vec<&str> = customers.items.iter().map(|customer| customer.customer_ref.as_str()).collect();
        let of_products: Vec<&str> = products.items.iter().map(|product| product.usage_product_ref.as_str()).collect();
        assert_eq!((of_customers.join(" "), of_products.join(" ")), (expected.to_owned(), expected.to_owned()), "{updates:?}");
        // After a position, the whole list is not counted.
        let total = if updates.after.is_some() { 0 } else { 4 };
        assert_eq!((customers.total, products.total), (total, total));
    }
}

pub fn metadata_finds_what_has_each_key_with_its_value(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let subject = MetadataSubject::Customer(w.customer.id);
    let put = |before: &Metadata, after: &Metadata| write(store, |tx| tx.put_metadata(w.org, subject, before, after));
    let found_by = |world: &World, wanted: &[(&str, &str)]| {
        let filter = CustomerFilter { metadata: fixtures::metadata(wanted), ..CustomerFilter::default() };
        read(store, |tx| tx.listed_customers(world.org, &filter, CustomerSortKey::Created, all())).total
    };
    let found = |wanted: &[(&str, &str)]| found_by(&w, wanted);
    let nothing = Metadata::default();
    let first = fixtures::metadata(&[("crm", "1"), ("tier", "a")]);
    let second = fixtures::metadata(&[("crm", "2"), ("tier", "a")]);
    put(&nothing, &first);
    put(&first, &first);
    assert_eq!([found(&[("crm", "1")]), found(&[("crm", "1"), ("tier", "a")])], [1, 1]);
    assert_eq!([found(&[("crm", "1"), ("tier", "b")]), found(&[("tier", "1")]), found(&[("CRM", "1")])], [0, 0, 0]);
    assert_eq!(found_by(&stranger, &[("crm", "1")]), 0);
    put(&first, &second);
    assert_eq!([found(&[("crm", "1")]), found(&[("crm", "2")]), found(&[("tier", "a")])], [0, 1, 1]);
    put(&second, &nothing);
    assert_eq!([found(&[("crm", "2")]), found(&[("tier", "a")])], [0, 0]);
}

pub fn customers_are_found_by_name_email_and_tax_number(store: &dyn Store) {
    let w = world(store);
    let made = |reference: &str, name: &str, email: Option<&str>, tax_id: Option<&str>, seconds| {
        let mut customer = fixtures::customer(&FreshIds, reference);
        customer.profile.name = fixtures::line(name);
        customer.profile.email = email.map(fixtures::line);
        customer.profile.tax_id = tax_id.map(fixtures::line);
        customer.created_at = later(seconds);
        write(store, |tx| done(tx.insert_customer(w.org, &customer)));
        customer
    };
    made("b", "Zebra Ltd", Some("Pay@Zebra.example"), Some("DE 1"), 2);
    made("a", "ZEBRA", Some("pay@zebra.example"), None, 3);
    made("c", "zeb_a%", None, Some("de 1"), 1);
    made("d", "Änderung", Some("x@y"), None, 4);
    let find = |filter: CustomerFilter| {
        let found = read(store, |tx| tx.listed_customers(w.org, &filter, CustomerSortKey::Created, all()));
        assert_eq!(found.total, found.items.len() as u64);
        found.items.iter().map(|customer| customer.customer_ref.to_string()).collect::<Vec<_>>()
    };
    let (name, email, tax_id) = (|text: &str| named(text), |text: &str| mailed(text), |text: &str| taxed(text));
    assert_eq!(find(name("zEB")), ["c", "b", "a"]);
    assert_eq!(find(name("zebra")), ["b", "a"]);
    assert_eq!(find(name("zeb_")), ["c"]);
    assert_eq!(find(name("zebra ltd.")), Vec::<String>::new());
    assert_eq!(find(name("ebra")), Vec::<String>::new(), "a name is found by how it begins");
    assert_eq!(find(name("Än")), ["d"]);
    assert_eq!(find(email("PAY@zebra.EXAMPLE")), ["b", "a"]);
    assert_eq!(find(email("pay@zebra")), Vec::<String>::new());
    assert_eq!(find(tax_id("DE 1")), ["b"]);
    assert_eq!(find(CustomerFilter { name: Some("zebra".into()), ..tax_id("DE 1") }), ["b"]);
    assert_eq!(find(CustomerFilter { name: Some("x".into()), ..tax_id("DE 1") }), Vec::<String>::new());
    assert_eq!(
        read(store, |tx| tx.listed_customers(w.org, &CustomerFilter::default(), CustomerSortKey::Created, page(2, 1))).total,
        5
    );
    let by_name =
        |filter: CustomerFilter, page| read(store, |tx| tx.listed_customers(w.org, &filter, CustomerSortKey::Name, page));
    let refs = |found: Page<Customer>| found.items.iter().map(|c| c.customer_ref.to_string()).collect::<Vec<_>>();
    let names = [("b", "zebra ltd"), ("a", "zebra"), ("c", "zeb_a%"), ("d", "Änderung")];
    let mut names = names.map(|(reference, name)| (name.to_owned(), reference.to_owned())).to_vec();
    names.push((w.customer.profile.name.as_str().to_ascii_lowercase(), w.customer.customer_ref.to_string()));
    names.sort();
    let by_their_names: Vec<String> = names.into_iter().map(|(_, reference)| reference).collect();
    assert_eq!(refs(by_name(CustomerFilter::default(), all())), by_their_names);
    assert_eq!(refs(by_name(CustomerFilter::default(), page(2, 1))), by_their_names[2..4]);
    assert_eq!(refs(by_name(named("zebra"), all())), ["a", "b"]);
    made("B", "zebra", None, None, 5);
    assert_eq!(refs(by_name(named("zebra"), page(2, 0))), ["B", "a"], "equals come by reference");
    for by in [CustomerSortKey::Created, CustomerSortKey::Name] {
        reads_backward(|page| read(store, |tx| tx.listed_customers(w.org, &CustomerFilter::default(), by, page)));
    }
    reads_backward(|page| read(store, |tx| tx.listed_customers(w.org, &named("ze"), CustomerSortKey::Created, page)));
}

fn named(text: &str) -> CustomerFilter {
    CustomerFilter { name: Some(text.to_owned()), ..CustomerFilter::default() }
}

fn mailed(text: &str) -> CustomerFilter {
    CustomerFilter { email: Some(text.to_owned()), ..CustomerFilter::default() }
}

fn taxed(text: &str) -> CustomerFilter {
    CustomerFilter { tax_id: Some(text.to_owned()), ..CustomerFilter::default() }
}

pub fn objects_of_each_kind_have_names(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let head = w.open(store, made(&w, 1, 1));
    let mut api_key = fixtures::api_key(&FreshIds, w.org);
    api_key.name = Some(fixtures::line("Metering gateway"));
    write(store, |tx| done(tx.insert_api_key(&api_key)));
    let number = head.number.to_string();
    let customer_name = w.customer.profile.name.clone();
    let expected = [
        (AuditedKind::ApiKey, api_key.api_key_ref.to_string(), "Metering gateway".to_owned(), false),
        (AuditedKind::Customer, w.customer.customer_ref.to_string(), customer_name.to_string(), true),
        (AuditedKind::Entity, w.entity.entity_ref.to_string(), w.entity.profile.name.to_string(), false),
        (AuditedKind::UsageProduct, w.product.usage_product_ref.to_string(), w.product.profile.name.to_string(), false),
        (AuditedKind::Pricing, w.pricing.pricing_ref.to_string(), w.pricing.content.name.to_string(), false),
        (AuditedKind::Contract, w.contract.contract_ref.to_string(), w.contract.number_text(), true),
        (AuditedKind::Document, head.document_ref.to_string(), number, true),
    ];
    let mut wanted: BTreeSet<ObjectKey> = expected.iter().map(|(kind, reference, ..)| (*kind, reference.clone())).collect();
    wanted.insert((AuditedKind::Document, "not an identifier".to_owned()));
    wanted.insert((AuditedKind::Customer, "unknown".to_owned()));
    let found = read(store, |tx| tx.object_names(w.org, &wanted));
    assert_eq!(found.len(), expected.len());
    for (kind, reference, name, has_customer) in expected {
        let of_object = &found[&(kind, reference)];
        assert_eq!(of_object.name, name);
        assert_eq!(of_object.customer_ref, has_customer.then(|| w.customer.customer_ref.clone()), "{kind:?}");
        assert_eq!(of_object.customer_name, has_customer.then(|| customer_name.clone()), "{kind:?}");
    }
    let by_id = |(kind, _): &ObjectKey| matches!(kind, AuditedKind::ApiKey | AuditedKind::Contract | AuditedKind::Document);
    let of_others: BTreeSet<ObjectKey> = wanted.into_iter().filter(by_id).collect();
    assert_eq!(read(store, |tx| tx.object_names(stranger.org, &of_others)), BTreeMap::new());
}

pub fn another_organization_lists_nothing(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let heads = many(store, &w);
    let order = DocumentOrder::default();
    read(store, |tx| {
        for filter in [
            any(),
            DocumentFilter { contract_ref: Some(w.contract.contract_ref), ..any() },
            DocumentFilter { customer_id: Some(w.customer.id), ..any() },
            DocumentFilter { number: Some(heads[0].number.clone()), ..any() },
        ] {
            assert_eq!(tx.listed_documents(stranger.org, &filter, order, all().into())?, [], "{filter:?}");
            assert_eq!(tx.document_sums(stranger.org, &filter)?.count, 0);
        }
        let of_customer = ContractFilter { customer_id: Some(w.customer.id), ..ContractFilter::default() };
        assert_eq!(tx.contracts(stranger.org, &of_customer, ContractSortKey::Created, all())?.total, 0);
        let contracts = tx.contracts(stranger.org, &ContractFilter::default(), ContractSortKey::Created, PageRequest::LARGEST)?;
        assert_eq!(contracts.items.iter().map(|c| c.contract_ref).collect::<Vec<_>>(), [stranger.contract.contract_ref]);
        let customers = tx.listed_customers(stranger.org, &CustomerFilter::default(), CustomerSortKey::Created, all())?;
        assert_eq!(customers.items, std::slice::from_ref(&stranger.customer));
        Ok(())
    });
}

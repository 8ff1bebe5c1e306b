//! Prepaid credit: grants, and what documents took of them.

use billing_domain::contract::Contract;
use billing_domain::credit::{CreditDraw, CreditGrant, CreditSale};
use billing_domain::document::lines::{BaseAndAmount, DiscountAndTax, SumKey};
use billing_domain::document::{DocumentHead, DocumentKind, DocumentState, LifecycleStatus, Settlement};
use billing_domain::money::Money;
use billing_domain::ports::{DrawFilter, FamilySum, GrantFilter, NewDraw, Store, StoreError, StoredDraw};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{CreditGrantRef, CustomerId, DocumentRef, ProductNo};
use billing_domain::tax::TaxTreatment;
use uuid::Uuid;

use super::accounts::{key, none, put, settled, write_off};
use super::corrections::{adjustment, void_issued};
use super::*;
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, date, percent, sum_of_cents, taxed};

/// Creates given credit of the customer's account.
fn given(w: &World, minor: i64, seconds: i64) -> CreditGrant {
    CreditGrant {
        grant_ref: CreditGrantRef::from_uuid(Uuid::now_v7()),
        account: key(w),
        amount: cents(minor),
        name: fixtures::line("Credit"),
        from: None,
        to: None,
        contract_ref: None,
        sale: None,
        drawn: cents(0),
        notifications: 1,
        created_at: later(seconds),
        updated_at: later(seconds),
    }
}

/// Creates credit that an issued invoice of the same net amount sold.
fn sold(w: &World, by: &DocumentHead, minor: i64, seconds: i64) -> CreditGrant {
    let sale = CreditSale {
        document_ref: by.document_ref,
        number: by.number.clone(),
        treatment: taxed("20"),
        net: cents(minor),
        state: DocumentState::Issued,
        family_net: cents(0),
    };
    CreditGrant { sale: Some(sale), ..given(w, minor, seconds) }
}

fn insert(store: &dyn Store, w: &World, grants: &[&CreditGrant]) {
    write(store, |tx| grants.iter().try_for_each(|grant| tx.insert_grant(w.org, grant)));
}

fn stored(store: &dyn Store, w: &World, grant: &CreditGrant) -> CreditGrant {
    read(store, |tx| tx.grant(w.org, grant.grant_ref)).expect("a grant")
}

fn refs(grants: &[CreditGrant]) -> Vec<CreditGrantRef> {
    grants.iter().map(|grant| grant.grant_ref).collect()
}

/// Stores another customer of the organization, with a contract.
fn neighbor(store: &dyn Store, w: &World) -> World {
    let customer = fixtures::customer(&FreshIds, "neighbor");
    let terms = fixtures::agreed(&w.pricing, "2026-01-01", "2026-12-31");
    let contract = Contract { number: 2, ..fixtures::contract(&FreshIds, &customer, vec![terms]) };
    write(store, |tx| {
        done(tx.insert_customer(w.org, &customer))?;
        tx.insert_contract(w.org, &contract, None)
    });
    World {
        organization: w.organization.clone(),
        org: w.org,
        entity: w.entity.clone(),
        customer,
        product: w.product.clone(),
        pricing: w.pricing.clone(),
        contract,
    }
}

pub fn given_credit_comes_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let plain = given(&w, i64::MAX, 1);
    let full = CreditGrant {
        from: Some(date("2026-01-01")),
        to: Some(date("2026-12-31")),
        contract_ref: Some(w.contract.contract_ref),
        ..given(&w, 1, 2)
    };
    assert!(!write(store, |tx| tx.update_grant(w.org, &plain)), "it does not exist");
    insert(store, &w, &[&plain, &full]);
    assert_eq!((stored(store, &w, &plain), stored(store, &w, &full)), (plain.clone(), full.clone()));
    let unknown = CreditGrantRef::from_uuid(Uuid::now_v7());
    assert_eq!(read(store, |tx| tx.grant(w.org, unknown)), None);
    let edited = CreditGrant {
        amount: cents(500),
        name: fixtures::line("Goodwill"),
        from: None,
        to: Some(date("2027-01-31")),
        updated_at: later(9),
        ..full.clone()
    };
    // An edit changes nothing else.
    let asked = CreditGrant { contract_ref: None, drawn: cents(7), created_at: later(5), ..edited.clone() };
    assert!(write(store, |tx| tx.update_grant(w.org, &asked)));
    assert_eq!((stored(store, &w, &full), stored(store, &w, &plain)), (edited, plain));
    undo(store, |tx| tx.update_grant(w.org, &full));
    assert_eq!(stored(store, &w, &full).name, fixtures::line("Goodwill"));
}

pub fn sold_credit_comes_back_with_the_invoice_that_sold_it(store: &dyn Store) {
    let w = world(store);
    let (one, other) = (w.issue(store, w.head(1), cents(100)), w.issue(store, w.head(2), cents(200)));
    let first = sold(&w, &one, 100, 1);
    let mut second = sold(&w, &other, 200, 2);
    if let Some(sale) = &mut second.sale {
        (sale.treatment, sale.net) = (fixtures::untaxed(), cents(199));
    }
    // A new grant has nothing drawn.
    insert(store, &w, &[&CreditGrant { drawn: cents(3), ..first.clone() }, &second]);
    assert_eq!((stored(store, &w, &first), stored(store, &w, &second)), (first, second.clone()));
    // An edit keeps the sale.
    let edited = CreditGrant { notifications: 2, updated_at: later(9), ..second.clone() };
    assert!(write(store, |tx| tx.update_grant(w.org, &edited)));
    assert_eq!(stored(store, &w, &second), edited);
}

pub fn an_invoice_sells_one_grant(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(100));
    insert(store, &w, &[&sold(&w, &invoice, 100, 1), &given(&w, 1, 1), &given(&w, 1, 1)]);
    let answer = transact_answer(store, |tx| tx.insert_grant(w.org, &sold(&w, &invoice, 100, 2)));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn a_grant_has_the_present_state_and_net_amount_of_its_sale(store: &dyn Store) {
    let w = world(store);
    let (invoice, other) = (w.issue(store, w.head(1), cents(1000)), w.issue(store, w.head(2), cents(1000)));
    let grants = [sold(&w, &invoice, 1000, 1), sold(&w, &other, 1000, 2)];
    insert(store, &w, &grants.each_ref());
    let seen = |grant: &CreditGrant| {
        let by_reference = stored(store, &w, grant);
        let listed = read(store, |tx| tx.grants(w.org, &GrantFilter::default(), all())).items;
        let of_customer = read(store, |tx| tx.grants_of(w.org, &[w.customer.id], &[], &[]));
        assert!(listed.contains(&by_reference) && of_customer.contains(&by_reference), "{by_reference:?}");
        by_reference.sale.map(|sale| (sale.state, sale.family_net.minor())).expect("a sale")
    };
    assert_eq!(seen(&grants[0]), (DocumentState::Issued, 0));
    let sum = |family, key, base, amount| FamilySum { family, key, sum: BaseAndAmount { base, amount } };
    let discount = SumKey::Discount(ProductNo(0), DiscountAndTax { discount: percent("10"), tax: taxed("20") });
    let add = |sums: &[FamilySum]| {
        write(store, |tx| {
            w.hold(tx)?;
            tx.add_family_sums(w.org, w.customer.id, sums)
        });
    };
    let (of_invoice, of_other) = (invoice.document_ref, other.document_ref);
    add(&[
        sum(of_invoice, SumKey::Tax(taxed("20")), 1000, 200),
        sum(of_invoice, SumKey::Tax(fixtures::untaxed()), 50, 0),
        sum(of_invoice, SumKey::Prepaid(taxed("20"), grants[1].grant_ref), 0, 7),
        sum(of_invoice, discount, 900, 90),
        sum(of_other, SumKey::Tax(taxed("20")), 1000, 200),
    ]);
    assert_eq!((seen(&grants[0]).1, seen(&grants[1]).1), (1057, 1000));
    // A credit note of 400.00.
    add(&[sum(of_invoice, SumKey::Tax(taxed("20")), -400, -80)]);
    assert_eq!(seen(&grants[0]).1, 657);
    let paid = |minor| Settlement { paid: cents(minor), paid_date: Some(date("2026-02-03")), ..none() };
    for (minor, status, state) in [
        (400, LifecycleStatus::Issued, DocumentState::PartiallyPaid),
        (400, LifecycleStatus::Uncollectible, DocumentState::Uncollectible),
        (1000, LifecycleStatus::Issued, DocumentState::Paid),
        (0, LifecycleStatus::Issued, DocumentState::Issued),
    ] {
        put(store, &w, &[settled(&invoice, 1000, status, paid(minor))]);
        assert_eq!((seen(&grants[0]).0, seen(&grants[1]).0), (state, DocumentState::Issued));
    }
    assert!(void_issued(store, &w, &invoice));
    assert_eq!((seen(&grants[0]).0, seen(&grants[1]).0), (DocumentState::Void, DocumentState::Issued));
}

pub fn grants_are_listed_by_creation(store: &dyn Store) {
    let w = world(store);
    let made = [given(&w, 3, 2), given(&w, 1, 1), given(&w, 2, 2)];
    insert(store, &w, &made.each_ref());
    let listed = |page| read(store, |tx| tx.grants(w.org, &GrantFilter::default(), page));
    let of_one_instant = if made[0].grant_ref < made[2].grant_ref { [&made[0], &made[2]] } else { [&made[2], &made[0]] };
    let expected = [&made[1], of_one_instant[0], of_one_instant[1]].map(Clone::clone);
    assert_eq!((listed(all()).items, listed(all()).total), (expected.to_vec(), 3));
    assert_eq!((listed(page(2, 1)).items, listed(page(2, 1)).total), (expected[2..].to_vec(), 3));
    reads_backward(listed);
}

pub fn each_field_of_a_filter_narrows_the_grants(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let (one, other) = (w.issue(store, w.head(1), cents(1)), w.issue(store, w.head(2), cents(1)));
    let francs = fixtures::currency("CHF");
    let of_account = |entity: &str, currency| {
        let (entity_ref, customer_id) = (fixtures::entity_ref(entity), w.customer.id);
        let amount = Money::from_minor(5, currency);
        let account = AccountKey { customer_id, entity_ref, currency };
        CreditGrant { account, amount, drawn: Money::zero(currency), ..given(&w, 5, 3) }
    };
    let grants = [
        sold(&w, &one, 1, 1),
        sold(&w, &other, 1, 2),
        of_account("another", fixtures::eur()),
        of_account("main", francs),
        given(&beside, 1, 5),
    ];
    insert(store, &w, &grants.each_ref());
    let listed = |filter: GrantFilter| {
        let page = read(store, |tx| tx.grants(w.org, &filter, all()));
        assert_eq!(page.total, page.items.len() as u64);
        let places = page.items.iter().map(|found| grants.iter().position(|grant| grant == found).expect("a grant"));
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        places
    };
    let any = GrantFilter::default;
    assert_eq!(listed(any()), [0, 1, 2, 3, 4]);
    assert_eq!(listed(GrantFilter { customer_id: Some(w.customer.id), ..any() }), [0, 1, 2, 3]);
    assert_eq!(listed(GrantFilter { entity_ref: Some(w.entity.entity_ref.clone()), ..any() }), [0, 1, 3, 4]);
    assert_eq!(listed(GrantFilter { currency: Some(francs), ..any() }), [3]);
    assert_eq!(listed(GrantFilter { source: Some(other.document_ref), ..any() }), [1]);
    let both = GrantFilter { customer_id: Some(w.customer.id), currency: Some(fixtures::eur()), ..any() };
    assert_eq!(listed(both), [0, 1, 2]);
    let of_beside = GrantFilter { customer_id: Some(beside.customer.id), source: Some(one.document_ref), ..any() };
    assert_eq!(listed(of_beside), [0; 0]);
}

pub fn grants_of_customers_are_those_with_something_left_named_or_sold(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let (one, other) = (w.issue(store, w.head(1), cents(10)), w.issue(store, w.head(2), cents(10)));
    let drawing = w.issue(store, w.head(3), cents(10));
    let grants = [
        given(&w, 10, 1),
        sold(&w, &one, 10, 2),
        given(&w, 10, 3),
        sold(&w, &other, 10, 4),
        given(&w, 10, 5),
        given(&beside, 10, 6),
    ];
    insert(store, &w, &grants.each_ref());
    // Nothing is left of the second, the third, the fourth and the fifth.
    let draws = [0, 1, 2, 3, 4].map(|place| (place, if place == 0 { 9 } else { 10 }));
    let draws: Vec<NewDraw> = draws.iter().map(|(place, minor)| draw(&w, &drawing, &grants[*place], *place, *minor)).collect();
    write(store, |tx| tx.add_draws(w.org, &draws, later(1)));
    let found = |customers: &[&World], named: &[usize], sales: &[&DocumentHead]| {
        let customers: Vec<CustomerId> = customers.iter().map(|w| w.customer.id).collect();
        let named: Vec<CreditGrantRef> = named.iter().map(|place| grants[*place].grant_ref).collect();
        let sales: Vec<DocumentRef> = sales.iter().map(|sale| sale.document_ref).collect();
        let found = read(store, |tx| tx.grants_of(w.org, &customers, &named, &sales));
        assert!(refs(&found).is_sorted());
        let places =
            found.iter().map(|found| grants.iter().position(|grant| grant.grant_ref == found.grant_ref).expect("a grant"));
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        places
    };
    assert_eq!(found(&[&w], &[], &[]), [0]);
    assert_eq!(found(&[&w], &[2], &[]), [0, 2]);
    assert_eq!(found(&[&w], &[2, 4], &[]), [0, 2, 4]);
    assert_eq!(found(&[&w], &[], &[&one]), [0, 1]);
    assert_eq!(found(&[&w], &[], &[&one, &other, &drawing]), [0, 1, 3]);
    assert_eq!(found(&[&w], &[0, 1, 1, 2], &[&one]), [0, 1, 2], "each once");
    assert_eq!(found(&[&w, &beside], &[], &[]), [0, 5]);
    assert_eq!(found(&[&w, &beside], &[4, 5], &[&other]), [0, 3, 4, 5]);
    assert_eq!(found(&[&beside], &[0, 2], &[&one]), [5], "of these customers only");
    assert_eq!(found(&[], &[2], &[&one]), [0; 0]);
}

pub fn what_sales_have_due_or_written_off_is_summed_up_by_account(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let due = |customers: &[&World]| {
        let customers: Vec<CustomerId> = customers.iter().map(|w| w.customer.id).collect();
        read(store, |tx| tx.due_of_sales(w.org, &customers))
    };
    let (unpaid, lost) = (w.issue(store, w.head(1), cents(1000)), w.issue(store, w.head(2), cents(500)));
    w.issue(store, w.head(3), cents(7));
    assert_eq!(due(&[&w]), [], "no sales");
    insert(store, &w, &[&sold(&w, &unpaid, 1000, 1), &sold(&w, &lost, 500, 2), &given(&w, 1, 3)]);
    assert_eq!(due(&[&w]), [(key(&w), sum_of_cents(1500))]);
    let uncollectible = settled(&lost, 500, LifecycleStatus::Uncollectible, none());
    put(store, &w, &[uncollectible, write_off(&lost, 500, "2026-03-01"), write_off(&lost, -100, "2026-03-02")]);
    assert_eq!(due(&[&w]), [(key(&w), sum_of_cents(1400))]);
    // A debit is in the family of its invoice. What credits have left is never due.
    w.issue(store, adjustment(&w, DocumentKind::Debit, &unpaid, 4), cents(30));
    w.issue(store, adjustment(&w, DocumentKind::Credit, &unpaid, 5), cents(9));
    assert_eq!(due(&[&w]), [(key(&w), sum_of_cents(1430))]);
    let of_beside = beside.issue(store, beside.head(1), cents(60));
    insert(store, &w, &[&sold(&beside, &of_beside, 60, 6)]);
    let mut expected = vec![(key(&w), sum_of_cents(1430)), (key(&beside), sum_of_cents(60))];
    expected.sort_by_key(|(account, _)| account.clone());
    assert_eq!(due(&[&w, &beside]), expected);
    let paid = Settlement { paid: cents(60), ..none() };
    put(store, &beside, &[settled(&of_beside, 60, LifecycleStatus::Issued, paid)]);
    assert_eq!(due(&[&beside]), []);
    assert_eq!(due(&[]), []);
}

fn draw(w: &World, document: &DocumentHead, grant: &CreditGrant, draw_no: usize, minor: i64) -> NewDraw {
    let draw = CreditDraw {
        document_ref: document.document_ref,
        grant_ref: grant.grant_ref,
        treatment: taxed("20"),
        amount: cents(minor),
    };
    NewDraw { customer_id: w.customer.id, draw_no: u32::try_from(draw_no).expect("a small number"), draw }
}

fn drawn(store: &dyn Store, w: &World, grant: &CreditGrant) -> i64 {
    let found = stored(store, w, grant);
    assert_eq!((found.updated_at, found.amount), (grant.updated_at, grant.amount), "no edit");
    found.drawn.minor()
}

pub fn draws_add_up_in_their_grants_and_a_void_takes_them_back(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let (invoice, credit) = (w.issue(store, w.head(1), cents(10)), w.issue(store, w.head(2), cents(10)));
    let of_beside = beside.issue(store, beside.head(1), cents(10));
    let (one, other, third) = (given(&w, 100, 1), given(&w, 100, 2), given(&beside, 100, 3));
    insert(store, &w, &[&one, &other, &third]);
    let amounts = || [drawn(store, &w, &one), drawn(store, &w, &other), drawn(store, &w, &third)];
    write(store, |tx| tx.add_draws(w.org, &[], later(1)));
    assert_eq!(amounts(), [0, 0, 0]);
    let mut taken = vec![
        draw(&w, &invoice, &one, 0, 40),
        draw(&w, &invoice, &other, 1, 5),
        draw(&w, &invoice, &one, 2, 2),
        draw(&beside, &of_beside, &third, 0, 99),
    ];
    taken[2].draw.treatment = fixtures::untaxed();
    write(store, |tx| tx.add_draws(w.org, &taken, later(1)));
    assert_eq!(amounts(), [42, 5, 99]);
    write(store, |tx| tx.add_draws(w.org, &[draw(&w, &credit, &one, 0, -12)], later(2)));
    assert_eq!(amounts(), [30, 5, 99]);
    let back: Vec<NewDraw> = (3..)
        .zip(&taken[..3])
        .map(|(draw_no, taken)| {
            let amount = cents(-taken.draw.amount.minor());
            NewDraw { draw_no, draw: CreditDraw { amount, ..taken.draw.clone() }, ..taken.clone() }
        })
        .collect();
    undo(store, |tx| tx.add_draws(w.org, &back[1..2], later(3)));
    assert_eq!(amounts(), [30, 5, 99]);
    // The credit note gives its return back first.
    write(store, |tx| tx.add_draws(w.org, &[draw(&w, &credit, &one, 1, 12)], later(3)));
    write(store, |tx| tx.add_draws(w.org, &back, later(4)));
    assert_eq!(amounts(), [0, 0, 99]);
    let filter = DrawFilter { document_ref: Some(invoice.document_ref), ..DrawFilter::default() };
    let listed = read(store, |tx| tx.draws(w.org, &filter, all()));
    let expected = [(&taken[..3], later(1)), (&back[..], later(4))];
    let expected = expected.into_iter().flat_map(|(draws, at)| draws.iter().map(move |new| (new.draw.clone(), at)));
    let listed = listed.items.into_iter().map(|stored| (stored.draw, stored.at));
    assert_eq!(listed.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

pub fn draws_that_cannot_be_are_corrupt(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let invoice = w.issue(store, w.head(1), cents(10));
    let grant = given(&w, 100, 1);
    insert(store, &w, &[&grant]);
    write(store, |tx| tx.add_draws(w.org, &[draw(&w, &invoice, &grant, 0, 10)], later(1)));
    let most = || draw(&w, &invoice, &grant, 2, i64::MAX);
    for (draws, why) in [
        (vec![draw(&w, &invoice, &grant, 1, 1), draw(&w, &invoice, &given(&w, 1, 1), 2, 1)], "no such grant"),
        (vec![draw(&beside, &invoice, &grant, 1, 1)], "a grant of another customer"),
        (vec![draw(&w, &w.head(5), &grant, 0, 1)], "no such document"),
        (vec![draw(&w, &invoice, &grant, 0, 1)], "a position that is taken"),
        (vec![draw(&w, &invoice, &grant, 1, -11)], "more returned than taken"),
        (vec![most(), NewDraw { draw_no: 3, ..most() }], "a sum out of range"),
    ] {
        let answer = transact_answer(store, |tx| tx.add_draws(w.org, &draws, later(2)));
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{why}: {answer:?}");
        assert_eq!(drawn(store, &w, &grant), 10, "{why}");
    }
    assert_eq!(read(store, |tx| tx.draws(w.org, &DrawFilter::default(), all())).total, 1);
}

pub fn draws_are_listed_by_time_document_and_position(store: &dyn Store) {
    let w = world(store);
    let beside = neighbor(store, &w);
    let mut documents = [w.issue(store, w.head(1), cents(10)), w.issue(store, w.head(2), cents(10))];
    documents.sort_by_key(|document| document.document_ref);
    let of_beside = beside.issue(store, beside.head(1), cents(10));
    let (one, other, third) = (given(&w, 100, 1), given(&w, 100, 2), given(&beside, 100, 3));
    insert(store, &w, &[&one, &other, &third]);
    let earliest = [draw(&beside, &of_beside, &third, 0, 7)];
    let first = [
        draw(&w, &documents[0], &one, 0, 10),
        draw(&w, &documents[0], &other, 1, 20),
        draw(&w, &documents[1], &one, 0, 30),
        draw(&w, &documents[1], &one, 1, 40),
    ];
    let mut second = [draw(&w, &documents[0], &one, 2, -1)];
    second[0].draw.treatment = TaxTreatment { rate: percent("19.5"), ..fixtures::untaxed() };
    write(store, |tx| {
        tx.add_draws(w.org, &first, later(2))?;
        tx.add_draws(w.org, &second, later(3))?;
        tx.add_draws(w.org, &earliest, later(1))
    });
    let numbers = [&documents[0], &documents[1], &of_beside].map(|head| (head.document_ref, head.number.clone()));
    let stored = |(new, at): (&NewDraw, _)| {
        let number = numbers.iter().find(|(document_ref, _)| *document_ref == new.draw.document_ref);
        let document_number = number.expect("a document").1.clone();
        let (customer_id, entity_ref) = (new.customer_id, documents[0].entity_ref.clone());
        StoredDraw { customer_id, entity_ref, draw: new.draw.clone(), document_number, at }
    };
    let made = [(&earliest[..], later(1)), (&first, later(2)), (&second, later(3))];
    let made = made.into_iter().flat_map(|(draws, at)| draws.iter().map(move |new| (new, at)));
    let made: Vec<StoredDraw> = made.map(stored).collect();
    let listed = |filter: &DrawFilter, page| read(store, |tx| tx.draws(w.org, filter, page));
    let any = DrawFilter::default;
    assert_eq!((listed(&any(), all()).items, listed(&any(), all()).total), (made.clone(), 6));
    assert_eq!((listed(&any(), page(4, 1)).items, listed(&any(), page(4, 1)).total), (made[4..].to_vec(), 6));
    reads_backward(|page| listed(&any(), page));
    let of_customer = DrawFilter { customer_id: Some(w.customer.id), ..any() };
    let of_grant = DrawFilter { grant_ref: Some(one.grant_ref), ..any() };
    let of_document = DrawFilter { document_ref: Some(documents[0].document_ref), ..any() };
    let of_both = DrawFilter { document_ref: of_document.document_ref, ..of_grant.clone() };
    let of_nobody = DrawFilter { customer_id: Some(beside.customer.id), ..of_grant.clone() };
    for (filter, places) in [
        (of_customer, &[1, 2, 3, 4, 5][..]),
        (of_grant, &[1, 3, 4, 5]),
        (of_document, &[1, 2, 5]),
        (of_both, &[1, 5]),
        (of_nobody, &[]),
    ] {
        let expected: Vec<StoredDraw> = places.iter().map(|place| made[*place].clone()).collect();
        let page = listed(&filter, all());
        assert_eq!((page.items, page.total), (expected, places.len() as u64), "{filter:?}");
    }
}

pub fn another_organization_has_no_credit(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let invoice = w.issue(store, w.head(1), cents(100));
    let grant = sold(&w, &invoice, 100, 1);
    insert(store, &w, &[&grant]);
    let taken = draw(&w, &invoice, &grant, 0, 10);
    write(store, |tx| tx.add_draws(w.org, std::slice::from_ref(&taken), later(1)));
    read(store, |tx| {
        assert_eq!(tx.grant(stranger.org, grant.grant_ref)?, None);
        let (named, sales, customers) = ([grant.grant_ref], [invoice.document_ref], [w.customer.id]);
        assert_eq!(tx.grants_of(stranger.org, &customers, &named, &sales)?, []);
        assert_eq!(tx.due_of_sales(stranger.org, &customers)?, []);
        for customer_id in [None, Some(w.customer.id)] {
            let filter = GrantFilter { customer_id, ..GrantFilter::default() };
            assert_eq!(tx.grants(stranger.org, &filter, all())?.total, 0);
            let filter = DrawFilter { customer_id, ..DrawFilter::default() };
            assert_eq!(tx.draws(stranger.org, &filter, all())?.total, 0);
        }
        Ok(())
    });
    let renamed = CreditGrant { name: fixtures::line("Mine"), ..grant.clone() };
    assert!(!write(store, |tx| tx.update_grant(stranger.org, &renamed)));
    let more = NewDraw { draw_no: 1, ..taken };
    let answer = transact_answer(store, |tx| tx.add_draws(stranger.org, std::slice::from_ref(&more), later(2)));
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    assert_eq!(stored(store, &w, &grant), CreditGrant { drawn: cents(10), ..grant });
}

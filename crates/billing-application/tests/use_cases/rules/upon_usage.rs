//! Reads of events that are due upon usage, and of their documents.

use billing_application::UseCase;
use billing_application::catalog::edit_customer;
use billing_application::usage::get_event;
use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::party::NetTerms;
use billing_domain::patch::{Changes, Patch};
use billing_testkit::fixtures::{self, default_tax, per_unit, requested, volume};

use crate::books::{Books, code, repriced};
use crate::support::{read, run};

#[test]
fn an_event_names_its_own_document_and_the_periods_invoice() {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.10")]);
    books.contract(vec![RequestedProduct {
        net_terms: Some(NetTerms::DueUponUsage),
        ..requested(&api, "2026-01-01", "2026-01-31")
    }]);
    let event = books.calls("2026-01-05T12:00:00Z", "150");
    let view =
        read(&books.bench.services, &books.bench.principal, UseCase::GetEvent, |cx| get_event(cx, event)).expect("an event");
    let (parent, number) = view.parent.expect("a parent");
    assert_eq!((parent, number.to_string()), (books.reference("UB-INV-1"), "UB-INV-1".to_owned()));
    assert_eq!(view.document_numbers.to_string(), "UB-INV-2");
}

/// The book does not load issued children. The second event lowers the price to zero, so the children sum to zero.
#[test]
fn children_that_sum_to_zero_are_issued() {
    let tiers = vec![volume("calls", &[(Some("10"), "1.00", "0"), (None, "0", "0")])];
    let books = Books::with("2026-01-05T12:00:00Z", |_| {}, |acme| acme.profile.taxes = default_tax("19"));
    let api = books.pricing("api", tiers);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    product.billing_cycle = BillingCycle::new(CycleUnit::Yearly, 1);
    let contract = books.contract(vec![product]);
    books.calls("2026-01-05T12:00:00Z", "10");
    books.calls("2026-01-05T12:00:00Z", "5");
    let since = EffectiveFrom::Day(fixtures::date("2026-01-01"));
    let monthly =
        ProductPatch { billing_cycle: Patch::Set(BillingCycle::default()), ..ProductPatch::of(api.pricing_ref.clone()) };
    assert_eq!(code(books.edit(contract, vec![monthly], since)), "not_retroactive");
    // The correction keeps the tax of the children, not the default that is in force now.
    let mut acme = fixtures::customer(&*books.bench.ids, "acme");
    acme.profile.taxes = default_tax("7");
    run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
        edit_customer(cx, &acme.customer_ref, &Changes::to(acme.profile.clone().into()))
    })
    .expect("a customer");
    books.reprice(&api, vec![per_unit("calls", "1.00")]);
    books.edit(contract, vec![repriced(&api)], since).expect("an edit");
    assert_eq!(
        books.only(&["UB-DBT-1"]),
        "UB-DBT-1 ISSUED, of UB-INV-1, issued 2026-01-05, due 2026-01-05\n  2026-01-01…2026-12-31 calls: 15.00\n  tax 19 % of 15.00: 2.85\n  total 17.85 EUR"
    );
}

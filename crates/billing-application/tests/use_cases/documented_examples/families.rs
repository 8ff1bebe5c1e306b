//! Section 5: discount, tax and sign of a document and its corrections.

use billing_application::UseCase;
use billing_application::catalog::{TaxPatch, WantedCustomer, edit_customer};
use billing_application::usage::Atomicity;
use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::Purpose;
use billing_domain::party::NetTerms;
use billing_domain::patch::{Changes, Patch};
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use crate::books::{Books, calls, repriced, same};
use crate::documented_examples::page::Page;
use crate::support::run;

pub(crate) fn example_5_9_tax_is_rounded_over_a_family(page: &mut Page) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    (product.net_terms, product.tax) = (Some(NetTerms::DueUponUsage), Some(fixtures::percent("19")));
    books.contract(vec![product]);
    let events: Vec<_> = (0..1000).map(|_| calls("2026-01-05T10:00:00Z", "1")).collect();
    assert!(books.slice(&events, Atomicity::PerEvent).iter().all(Result::is_ok));
    books.bill("2026-02-01T02:00:00Z");
    let documents = books.bench.documents();
    let children: Vec<_> = documents.iter().filter(|document| document.purpose == Purpose::Usage).collect();
    assert_eq!(children.len(), 1000);
    let row = |number: usize| {
        let content = &children[number - 1].content;
        format!("child {number}: {}, tax {}", content.sub_total.to_decimal(), content.total_tax.to_decimal())
    };
    page.shows(&(1..=8).map(row).collect::<Vec<_>>().join("\n"));
    let all = |amount: fn(&billing_domain::document::totals::DocumentContent) -> i64| -> String {
        let minor = documents.iter().map(|document| amount(&document.content)).sum();
        billing_domain::money::Money::from_minor(minor, fixtures::currency("EUR")).to_decimal().to_string()
    };
    page.says(&all(|content| content.sub_total.minor()));
    page.says(&all(|content| content.total_tax.minor()));
}

pub(crate) fn example_5_10_a_correction_has_the_rest_of_discount_and_tax(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    (product.discount, product.tax) = (Some(fixtures::percent("10")), Some(fixtures::percent("19")));
    books.contract(vec![product]);
    books.calls("2026-01-20T12:00:00Z", "5");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    books.calls("2026-01-25T12:00:00Z", "5");
    page.shows(&books.documents());
}

pub(crate) fn example_5_11_a_family_keeps_its_default_tax(page: &mut Page) {
    let books = Books::with("2026-01-20T12:00:00Z", |_| {}, |customer| customer.profile.taxes = fixtures::default_tax("19"));
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-20T12:00:00Z", "1000");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    let seven = TaxPatch { rate: Patch::Set(fixtures::percent("7")), ..TaxPatch::default() };
    let edit = Changes::of(move |customer: &mut WantedCustomer| customer.tax = seven.clone());
    run(&books.bench.services, &books.bench.principal, UseCase::EditCustomer, |cx| {
        edit_customer(cx, &fixtures::customer_ref("acme"), &edit)
    })
    .expect("a customer");
    books.calls("2026-01-25T12:00:00Z", "100");
    books.calls("2026-02-05T12:00:00Z", "100");
    page.shows(&books.only(&["UB-DBT-1", "UB-INV-2"]));
}

pub(crate) fn example_5_12_everything_stands_at_the_rates_in_force(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.tax = Some(fixtures::percent("19"));
    let contract = books.contract(vec![product]);
    books.calls("2026-01-20T12:00:00Z", "1000");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let patch = ProductPatch { tax: Patch::Set(fixtures::percent("7")), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::Day(fixtures::date("2026-01-01"))).expect("an edit");
    books.calls("2026-01-25T12:00:00Z", "500");
    page.shows(&books.documents());
}

pub(crate) fn example_5_13_an_invoice_is_never_below_zero(page: &mut Page) {
    let books = Books::at("2026-01-01T02:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "60.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::DuringUse);
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-05T12:00:00Z");
    books.reprice(&api, vec![fixed("fee", "20.00")]);
    books.edit(contract, vec![repriced(&api)], EffectiveFrom::NextPeriod).expect("an edit");
    books.charge(contract, "2026-01-31", "Goodwill", "-50.00").expect("a charge");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

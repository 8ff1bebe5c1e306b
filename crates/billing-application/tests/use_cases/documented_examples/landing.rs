//! Sections 4 and 8.

use billing_application::UseCase;
use billing_application::catalog::{TaxBasisPatch, WantedEntity, create_entity, edit_entity};
use billing_domain::catalog::UsagePrice;
use billing_domain::party::{NetTerms, NumberPrefix};
use billing_domain::patch::Changes;
use billing_domain::usage::Validations;
use billing_testkit::fixtures::{self, fixed, per_unit, requested, usage_item};

use crate::books::{Books, code};
use crate::documented_examples::page::Page;
use crate::support::run;

pub(crate) fn example_4_1_the_contract_that_began_last_takes_the_event(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let old = books.pricing("old", vec![per_unit("calls", "0.01")]);
    let new = books.pricing("new", vec![per_unit("calls", "0.02")]);
    books.contract(vec![requested(&old, "2026-01-01", "2026-12-31")]);
    books.contract(vec![requested(&new, "2026-02-01", "2026-12-31")]);
    books.calls("2026-02-10T12:00:00Z", "100");
    books.calls("2026-01-10T12:00:00Z", "100");
    page.shows(&books.documents());
}

pub(crate) fn example_4_2_validations_choose_and_refuse(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let dollars =
        books.pricing_with("us", vec![per_unit("calls", "0.02")], |content| content.currency = fixtures::currency("USD"));
    let euros = books.pricing("eu", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&dollars, "2026-01-01", "2026-12-31")]);
    books.contract(vec![requested(&euros, "2026-02-01", "2026-12-31")]);
    let asks = |currency| Some(Validations { currency: Some(fixtures::currency(currency)), entity_ref: None });
    books.report("2026-02-10T12:00:00Z", "100", asks("USD")).expect("an accepted event");
    page.says(&code(books.report("2026-02-10T12:00:00Z", "100", asks("GBP"))));
    page.shows(&books.documents());
}

pub(crate) fn example_4_3_the_service_date_decides(page: &mut Page) {
    let books = Books::with("2026-03-31T22:30:00Z", |entity| entity.profile.time_zone = fixtures::zone("Europe/Berlin"), |_| {});
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-03-31T22:30:00Z", "100");
    page.shows(&books.documents());
}

pub(crate) fn example_4_4_one_event_can_make_two_lines(page: &mut Page) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let package = UsagePrice::Package { package_size: fixtures::quantity("1000"), package_price: fixtures::price("5.00") };
    let api = books.pricing("api", vec![per_unit("calls", "0.01"), usage_item("support", "calls", package)]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-10T12:00:00Z", "1001");
    page.shows(&books.documents());
}

pub(crate) fn example_8_1_numbers_have_no_gaps(page: &mut Page) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let mut us = fixtures::entity("US");
    us.profile.net_terms = Some(NetTerms::Days(60));
    let wanted = WantedEntity { profile: us.profile, is_default: None, tax: TaxBasisPatch::default() };
    run(&books.bench.services, &books.bench.principal, UseCase::CreateEntity, |cx| {
        create_entity(cx, Some(us.entity_ref.clone()), wanted)
    })
    .expect("an entity");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    let support = books.pricing("support", vec![fixed("fee", "20.00")]);
    let mut by_us = requested(&support, "2026-01-01", "2026-12-31");
    by_us.entity_ref = Some(us.entity_ref);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31"), by_us]);
    books.calls("2026-01-10T12:00:00Z", "100");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    page.says(&code(books.report("2025-12-31T12:00:00Z", "100", None)));
    books.calls("2026-01-20T12:00:00Z", "100");
    books.calls("2026-02-10T12:00:00Z", "100");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_8_2_a_prefix_changes_before_its_first_number(page: &mut Page) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let prefixed = |prefix: &str| {
        let prefix = NumberPrefix::parse(prefix).expect("a prefix");
        let edit = Changes::of(move |wanted: &mut WantedEntity| wanted.profile.number_prefix = prefix.clone());
        run(&books.bench.services, &books.bench.principal, UseCase::EditEntity, |cx| {
            edit_entity(cx, &fixtures::entity_ref("main"), &edit)
        })
    };
    prefixed("ACME").expect("an entity without numbers");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.calls("2026-01-10T12:00:00Z", "100");
    page.shows(&books.documents());
    page.says(&code(prefixed("UB")));
}

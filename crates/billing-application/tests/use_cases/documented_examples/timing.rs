//! Sections 2 and 3.

use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{self, fixed, graduated, per_unit, requested, volume, with_charge};

use crate::books::{Books, THREE_TIERS, code, same};
use crate::documented_examples::page::Page;

pub(crate) fn example_2_1_after_use_everything_is_on_one_invoice(page: &mut Page) {
    let books = Books::at("2026-01-01T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::Days(30));
    books.contract(vec![product]);
    books.clock("2026-01-20T12:00:00Z");
    books.calls("2026-01-20T12:00:00Z", "1000");
    books.bill("2026-02-01T01:30:00Z");
    books.calls("2026-01-31T23:00:00Z", "500");
    page.shows(&books.documents());
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_2_during_use_usage_is_on_the_next_invoice(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-02-28");
    product.payment_time = Some(PaymentTime::DuringUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "1000");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.calls("2026-02-10T12:00:00Z", "2000");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_3_before_use_usage_is_on_a_debit(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let calls = with_charge(per_unit("calls", "0.01"), |charge| charge.prepaid_quantity = Some(fixtures::quantity("1000")));
    let api = books.pricing("api", vec![fixed("fee", "49.00"), calls]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-20T12:00:00Z");
    books.calls("2026-01-20T12:00:00Z", "1600");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_4_products_that_agree_share_an_invoice(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let product = |pricing: &str, item: &str, amount: &str, days| {
        let pricing = books.pricing(pricing, vec![fixed(item, amount)]);
        let mut product = requested(&pricing, "2026-01-01", "2026-01-31");
        product.net_terms = Some(NetTerms::Days(days));
        product
    };
    books.contract(vec![
        product("api", "api-fee", "49.00", 30),
        product("storage", "storage-fee", "5.00", 14),
        product("support", "support-fee", "20.00", 30),
    ]);
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_5_midnight_and_grace_are_the_entitys(page: &mut Page) {
    let books = Books::with("2026-01-01T00:00:00Z", |entity| entity.profile.time_zone = fixtures::zone("Europe/Berlin"), |_| {});
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    let (before, due) = ("2026-02-01T00:59:59Z", "2026-02-01T01:00:00Z");
    books.bill(before);
    assert_eq!(books.documents(), "");
    books.bill(due);
    page.says(before);
    page.says(due);
    page.shows(&books.documents());
}

pub(crate) fn example_2_6_an_empty_draft_is_void_and_a_total_of_zero_is_issued(page: &mut Page) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let event = books.calls("2026-01-10T12:00:00Z", "5");
    books.delete(event);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.calls("2026-02-10T12:00:00Z", "0");
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-04-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_7_payments_make_the_state(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "100.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.net_terms = Some(NetTerms::Days(14));
    books.contract(vec![product]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    books.pay("UB-INV-1", "40").expect("a payment");
    books.clock("2026-02-16T12:00:00Z");
    page.shows(&books.documents());
    page.says(&code(books.pay("UB-INV-1", "60.01")));
    books.clock("2026-02-20T12:00:00Z");
    books.pay("UB-INV-1", "60").expect("a payment");
    page.shows(&books.documents());
}

pub(crate) fn example_2_8_one_time_is_one_period(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let project = books.pricing("project", vec![fixed("migration", "500.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&project, "2026-01-15", "2026-03-20");
    product.billing_cycle = BillingCycle::new(CycleUnit::OneTime, 1);
    books.contract(vec![product]);
    books.clock("2026-02-10T12:00:00Z");
    books.calls("2026-02-10T12:00:00Z", "700");
    books.bill("2026-03-21T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_9_an_issue_date_is_never_set_back(page: &mut Page) {
    let books = Books::at("2026-03-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.bill("2026-03-10T12:01:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_2_10_usage_is_billed_at_the_rates_of_its_own_period(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    (product.payment_time, product.tax) = (Some(PaymentTime::DuringUse), Some(fixtures::percent("19")));
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-10T12:00:00Z");
    books.calls("2026-01-10T12:00:00Z", "1000");
    let patch = ProductPatch { tax: Patch::Set(fixtures::percent("7")), ..same(&api) };
    books.edit(contract, vec![patch], EffectiveFrom::NextPeriod).expect("an edit");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.only(&["UB-INV-2"]));
}

pub(crate) fn example_2_11_a_product_that_is_added_joins_the_draft(page: &mut Page) {
    let books = Books::at("2026-02-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "0.01")]);
    let support = books.pricing("support", vec![fixed("support-fee", "20.00")]);
    let contract = books.contract(vec![requested(&api, "2026-02-01", "2026-12-31")]);
    books.calls("2026-02-10T12:00:00Z", "1000");
    let added = ProductPatch {
        billing_start_date: Some(fixtures::date("2026-02-01")),
        billing_end_date: Some(fixtures::date("2026-12-31")),
        ..same(&support)
    };
    books.edit(contract, vec![same(&api), added], EffectiveFrom::NextPeriod).expect("an edit");
    page.shows(&books.documents());
}

pub(crate) fn example_3_1_each_event_is_an_invoice(page: &mut Page) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    books.calls("2026-01-05T10:00:00Z", "60");
    books.calls("2026-01-05T11:00:00Z", "60");
    page.shows(&books.documents());
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.only(&["UB-INV-1"]));
}

pub(crate) fn example_3_2_an_event_that_lowers_the_price_is_a_credit(page: &mut Page) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let tiers = &[(Some("100"), "1.00", "0"), (None, "0.50", "0")];
    let api = books.pricing("api", vec![fixed("fee", "49.00"), volume("calls", tiers)]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    books.calls("2026-01-05T10:00:00Z", "100");
    books.calls("2026-01-05T11:00:00Z", "20");
    page.shows(&books.documents());
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.only(&["UB-INV-1"]));
}

pub(crate) fn example_3_3_an_event_that_changes_nothing_has_no_document_of_its_own(page: &mut Page) {
    let books = Books::at("2026-01-05T12:00:00Z");
    let calls = with_charge(per_unit("calls", "0.10"), |charge| charge.included_quantity = fixtures::quantity("100"));
    let api = books.pricing("api", vec![fixed("fee", "49.00"), calls]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    let included = books.calls("2026-01-05T10:00:00Z", "60");
    assert_eq!(books.numbers_of(included), "UB-INV-1");
    books.calls("2026-01-05T11:00:00Z", "60");
    page.shows(&books.documents());
}

pub(crate) fn example_3_4_before_use_children_leave_the_debit_nothing(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.10")]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    (product.payment_time, product.net_terms) = (Some(PaymentTime::BeforeUse), Some(NetTerms::DueUponUsage));
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.clock("2026-01-05T12:00:00Z");
    books.calls("2026-01-05T10:00:00Z", "60");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

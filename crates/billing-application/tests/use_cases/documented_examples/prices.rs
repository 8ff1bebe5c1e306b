//! Section 6.

use billing_domain::catalog::{Aggregation, LineItem, LineItemPrice};
use billing_domain::codes::UnitCode;
use billing_domain::contract::terms::{MeteredCharge, PaymentTime};
use billing_domain::money::{DayShare, Money};
use billing_domain::ports::IdSource;
use billing_domain::rating::{Minimum, rate};
use billing_domain::refs::EventRef;
use billing_domain::usage::{CountedEvent, UsageTotal};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{fixed, graduated, once, package, per_unit, percentage, requested, volume, with_charge};

use crate::books::{Books, THREE_TIERS};
use crate::documented_examples::page::Page;

fn metered(item: &LineItem, aggregation: Aggregation) -> MeteredCharge {
    match &item.charge {
        LineItemPrice::Usage(charge) => {
            MeteredCharge { charge: charge.clone(), unit: None, unit_code: UnitCode::ONE, aggregation, unique_by: None }
        }
        LineItemPrice::Fixed { .. } => panic!("expected a usage line item"),
    }
}

/// Returns the total of events that occur one hour apart.
fn used(quantities: &[&str]) -> UsageTotal {
    let ids = CountingIds::new();
    let mut at = fixtures::at("2026-01-10T12:00:00Z");
    quantities.iter().fold(UsageTotal::ZERO, |total, quantity| {
        at = at.plus_seconds(3600);
        let event = CountedEvent {
            event_ref: EventRef::from_uuid(ids.new_id()),
            occurred_at: at,
            service_date: fixtures::date("2026-01-10"),
            quantity: fixtures::quantity(quantity),
            is_distinct: None,
        };
        total.plus(event).expect("in range")
    })
}

fn price_in(item: &LineItem, quantities: &[&str], share: DayShare, currency: &str) -> Money {
    let metered = metered(item, Aggregation::Sum);
    rate(&metered, &used(quantities), Minimum::Applies, share, fixtures::currency(currency)).expect("in range").amount
}

fn price(item: &LineItem, quantities: &[&str]) -> String {
    price_in(item, quantities, DayShare::WHOLE, "EUR").to_decimal().to_string()
}

pub(crate) fn example_6_1_the_price_models(page: &mut Page) {
    let rows = [
        format!("PER_UNIT 0.0025, 12345 calls: {}", price(&per_unit("calls", "0.0025"), &["12345"])),
        format!("GRADUATED, 1500 calls: {}", price(&graduated("calls", THREE_TIERS), &["1500"])),
        format!("VOLUME, 1500 calls: {}", price(&volume("calls", THREE_TIERS), &["1500"])),
        format!("VOLUME, 100 calls: {}", price(&volume("calls", THREE_TIERS), &["100"])),
        format!("PACKAGE of 1000 at 5.00, 1001 calls: {}", price(&package("calls", "1000", "5.00"), &["1001"])),
        format!(
            "PERCENTAGE 1.4 and 0.25 each, 100.00 and 49.99: {}",
            price(&percentage("calls", "1.4", "0.25"), &["100", "49.99"])
        ),
    ];
    page.shows(&rows.join("\n"));
}

pub(crate) fn example_6_2_the_aggregations(page: &mut Page) {
    let total = used(&["1", "7", "4"]);
    let rows =
        [("SUM", Aggregation::Sum), ("COUNT", Aggregation::Count), ("MAX", Aggregation::Max), ("LATEST", Aggregation::Latest)];
    let rows = rows.map(|(word, aggregation)| format!("{word}: {}", total.quantity(aggregation)));
    page.shows(&rows.join("\n"));
}

pub(crate) fn example_6_3_included_minimum_and_maximum(page: &mut Page) {
    let item = with_charge(per_unit("calls", "1.00"), |charge| {
        charge.included_quantity = fixtures::quantity("10");
        charge.minimum_amount = Some(fixtures::price("5.00"));
        charge.maximum_amount = Some(fixtures::price("20.00"));
    });
    let mut rows: Vec<String> =
        ["0", "12", "16", "1000"].iter().map(|used| format!("Q = {used}: {}", price(&item, &[used]))).collect();
    let share = DayShare { days: 17, of: 31 };
    for used in ["0", "16", "1000"] {
        rows.push(format!("Q = {used} in 17 of 31 days: {}", price_in(&item, &[used], share, "EUR").to_decimal()));
    }
    page.shows(&rows.join("\n"));
}

pub(crate) fn example_6_4_a_line_is_rounded_once(page: &mut Page) {
    let rows = [
        ("5 at 0.535", price_in(&per_unit("calls", "0.535"), &["5"], DayShare::WHOLE, "EUR")),
        ("three times 1 at 0.005", price_in(&per_unit("calls", "0.005"), &["1", "1", "1"], DayShare::WHOLE, "EUR")),
        ("1 at 0.5", price_in(&per_unit("calls", "0.5"), &["1"], DayShare::WHOLE, "JPY")),
        ("1 at 0.0125", price_in(&per_unit("calls", "0.0125"), &["1"], DayShare::WHOLE, "KWD")),
    ];
    page.shows(&rows.map(|(what, amount)| format!("{what}: {amount}")).join("\n"));
}

pub(crate) fn example_6_5_from_lines_to_the_total(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), graduated("calls", THREE_TIERS)]);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.discount = Some(fixtures::percent("10"));
    product.tax = Some(fixtures::percent("19"));
    books.contract(vec![product]);
    books.calls("2026-01-20T12:00:00Z", "1500");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_6_6_tax_is_rounded_once_per_rate(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let product = |reference: &str| {
        let pricing = books.pricing(reference, vec![fixed(reference, "10.02")]);
        let mut product = requested(&pricing, "2026-01-01", "2026-01-31");
        product.tax = Some(fixtures::percent("19"));
        product
    };
    books.contract(vec![product("a"), product("b"), product("c")]);
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_6_7_an_item_that_is_charged_once(page: &mut Page) {
    let books = Books::at("2026-01-15T12:00:00Z");
    let api = books.pricing("api", vec![once("set-up", "200.00"), fixed("fee", "31.00")]);
    books.contract(vec![requested(&api, "2026-01-15", "2026-02-28")]);
    books.bill("2026-02-01T02:00:00Z");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_6_8_before_use_the_minimum_fee_is_on_the_debit(page: &mut Page) {
    let books = Books::at("2026-01-01T00:00:00Z");
    let items = vec![fixed("fee", "49.00"), per_unit("calls", "0.01")];
    let least = Some(fixtures::price("100.00"));
    let api = books.pricing_with("api", items, |content| content.minimum_fee = least);
    let mut product = requested(&api, "2026-01-01", "2026-01-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    books.contract(vec![product]);
    books.bill("2026-01-01T02:00:00Z");
    books.bill("2026-02-01T02:00:00Z");
    page.shows(&books.documents());
}

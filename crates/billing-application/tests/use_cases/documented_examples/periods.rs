//! Section 1.

use billing_domain::contract::schedule::{BillingCycle, BillingSchedule, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::money::Money;
use billing_testkit::fixtures;

use crate::books::{Books, code};
use crate::documented_examples::page::Page;

/// Returns the periods and the price of a fixed item of 100.00 in each.
fn periods(first: &str, last: &str, unit: CycleUnit, issue_day: Option<&str>) -> String {
    let cycle = BillingCycle::new(unit, 1).expect("a cycle");
    let schedule = BillingSchedule::new(fixtures::date(first), fixtures::date(last), cycle, issue_day.map(fixtures::date));
    let hundred = fixtures::price("100");
    let schedule = schedule.expect("a schedule");
    let rows = schedule.periods().map(|period| {
        let share = period.share();
        let amount = Money::round_share(hundred.as_decimal(), share, fixtures::eur()).expect("an amount");
        format!("{}: {} of {} days, {}", period.span(), share.days, share.of, amount.to_decimal())
    });
    rows.collect::<Vec<_>>().join("\n")
}

pub(crate) fn example_1_1_without_an_issue_day_the_first_period_is_the_short_one(page: &mut Page) {
    page.shows(&periods("2026-01-15", "2026-04-30", CycleUnit::Monthly, None));
}

pub(crate) fn example_1_2_with_an_issue_day_the_last_period_is_the_short_one(page: &mut Page) {
    page.shows(&periods("2026-01-15", "2026-04-30", CycleUnit::Monthly, Some("2026-02-15")));
}

pub(crate) fn example_1_3_a_month_that_is_too_short_ends_a_period_on_its_last_day(page: &mut Page) {
    page.shows(&periods("2027-11-30", "2028-03-29", CycleUnit::Monthly, None));
    page.shows(&periods("2026-01-31", "2026-04-29", CycleUnit::Monthly, Some("2026-01-31")));
}

pub(crate) fn example_1_4_a_leap_day_makes_a_year_one_day_longer(page: &mut Page) {
    page.shows(&periods("2024-02-29", "2026-02-27", CycleUnit::Yearly, None));
}

pub(crate) fn example_1_5_the_first_invoice_waits_for_the_issue_day(page: &mut Page) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let pricing = books.pricing("support", vec![fixtures::fixed("fee", "100.00")]);
    let mut product = fixtures::requested(&pricing, "2026-01-15", "2026-03-14");
    product.payment_time = Some(PaymentTime::DuringUse);
    product.issue_day = Some(fixtures::date("2026-01-20"));
    books.contract(vec![product]);
    books.bill("2026-01-20T01:59:59Z");
    assert_eq!(books.documents(), "");
    books.bill("2026-01-20T02:00:00Z");
    books.bill("2026-02-20T02:00:00Z");
    books.bill("2026-03-15T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_1_6_more_than_24_documents_at_once_are_asked_for(page: &mut Page) {
    let books = Books::at("2026-03-10T12:00:00Z");
    let api = books.pricing("api", vec![fixtures::fixed("fee", "49.00")]);
    let product = || fixtures::requested(&api, "2024-01-01", "2026-12-31");
    page.says(&code(books.try_contract(vec![product()], false)));
    books.bill("2026-03-10T12:01:00Z");
    assert_eq!(books.documents(), "");
    books.try_contract(vec![product()], true).expect("a contract");
    books.bill("2026-03-10T12:02:00Z");
    page.says(&format!("{} documents", books.bench.documents().len()));
}

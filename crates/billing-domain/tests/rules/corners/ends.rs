//! Tests of last days, set by an edit, a removal or a cancel, and moved back (billing rules 1, 7).

use billing_domain::calendar::TimeZone;
use billing_domain::contract::amendment::EffectiveFrom;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_testkit::fixtures::{date, fixed, per_unit, pricing};

use super::book::{Book, Setup, code, element, from};

/// Bills a yearly fee of 1,200.00 as one period on the first day.
fn one_time() -> Book {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "1200")]), |product| {
        product.billing_cycle = BillingCycle::new(CycleUnit::OneTime, 1);
        product.payment_time = Some(PaymentTime::DuringUse);
    });
    let mut book = setup.create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-02-10");
    assert_eq!(book.owed(), "1200.00");
    book
}

fn ends(day: &'static str) -> billing_domain::contract::amendment::ProductPatch {
    element("plan", |plan| plan.billing_end_date = Some(date(day)))
}

/// Billing periods (billing rules 1.1): a `ONE_TIME` product that has begun cannot get a later end.
#[test]
fn a_one_time_product_that_has_begun_is_not_extended() {
    for since in [EffectiveFrom::NextPeriod, EffectiveFrom::CurrentPeriod, from("2027-01-01"), from("2028-01-01")] {
        let mut book = one_time();
        let refusal = book.edit(since, vec![ends("2028-12-31")]).expect_err("an extension");
        assert_eq!(code(&refusal), "not_retroactive", "{since:?}");
        assert_eq!(book.owed(), "1200.00");
    }
}

/// Billing periods (billing rules 1.1): each of the three ways bills 1,200.00 × 181 ÷ 365 = 595.07. Moving the end back
/// restores 1,200.00.
#[test]
fn an_earlier_end_of_a_one_time_product_is_prorated_and_moved_back() {
    let mut edited = one_time();
    edited.edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-06-30")]).expect("an edit");
    assert_eq!(edited.owed(), "595.07", "by edit");
    edited.go_to("2027-02-11").edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-12-31")]).expect("an edit");
    assert_eq!(edited.billed(), "1200.00", "moved back");

    let mut left_out = one_time();
    left_out.edit(from("2027-07-01"), Vec::new()).expect("an edit");
    assert_eq!(left_out.owed(), "595.07", "left out");

    let mut cancelled = one_time();
    cancelled.cancel_on("2027-06-30").expect("a cancel");
    assert_eq!(cancelled.owed(), "595.07", "by cancel");
    cancelled.go_to("2027-02-11").resume().expect("a resume");
    assert_eq!(cancelled.billed(), "1200.00", "resumed");
}

/// Bills a monthly fee of 100.00 after use until May and moves the clock to 15 June.
fn monthly() -> Book {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "100")]), |_| {});
    let mut book = setup.create("2027-01-01");
    book.run_on(["2027-02-01", "2027-03-01", "2027-04-01", "2027-05-01", "2027-06-01"]);
    book.go_to("2027-06-15");
    assert_eq!(book.owed(), "500.00");
    book
}

/// Billing periods and contracts (billing rules 1.3, 7): a last day of 20 June bills 100.00 × 20 ÷ 30 = 66.67 in each
/// of the three ways.
#[test]
fn a_last_day_has_one_amount_however_it_is_agreed() {
    type Way = (&'static str, fn(&mut Book));
    let ways: [Way; 5] = [
        ("cancel", |book| book.cancel_on("2027-06-20").expect("a cancel")),
        ("left out", |book| book.edit(from("2027-06-21"), Vec::new()).expect("an edit")),
        ("end, current period", |book| book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-06-20")]).expect("an edit")),
        ("end, from the period", |book| book.edit(from("2027-06-01"), vec![ends("2027-06-20")]).expect("an edit")),
        ("end, from the day after", |book| book.edit(from("2027-06-21"), vec![ends("2027-06-20")]).expect("an edit")),
    ];
    for (way, change) in ways {
        let mut book = monthly();
        change(&mut book);
        book.run("2027-07-01");
        assert_eq!(book.documents().last().map(String::as_str), Some("INV-6 66.67 ISSUED"), "{way}");
        assert_eq!(book.lines("INV-6"), ["fee 2027-06-01 66.67"], "{way}");
    }
}

/// Contracts (billing rules 7): an end before the next period is not moved to another day.
#[test]
fn an_end_before_the_next_period_alone_is_refused() {
    let mut book = monthly();
    let refusal = book.edit(EffectiveFrom::NextPeriod, vec![ends("2027-06-20")]).expect_err("an end in the current period");
    assert_eq!(code(&refusal), "ends_before_next_period");
    let refusal = book.edit(from("2027-07-01"), vec![ends("2027-06-20")]).expect_err("an end before the day");
    assert_eq!(code(&refusal), "ends_before_next_period");
    book.edit(EffectiveFrom::NextPeriod, vec![ends("2027-07-20")]).expect("an end after the current period");
    book.run_on(["2027-07-01", "2027-08-01"]);
    // 100.00 × 20 ÷ 31
    assert_eq!(book.documents()[5..], ["INV-6 100.00 ISSUED", "INV-7 64.52 ISSUED"]);
}

/// Billing periods (billing rules 1.3): the anchor of a product that has begun is fixed. February is 100.00 on one
/// invoice.
#[test]
fn an_end_moved_and_moved_back_moves_no_boundary() {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "100")]), |_| {});
    let mut book = setup.create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-25");
    book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2028-01-20")]).expect("an edit");
    book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-12-31")]).expect("an edit");
    book.run("2027-03-01");
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "INV-2 100.00 ISSUED"]);
    assert_eq!(book.lines("INV-2"), ["fee 2027-02-01 100.00"]);
}

/// Billing periods (billing rules 1.3): an extension continues the grid, and its last period is partial: 100.00 × 20 ÷
/// 31.
#[test]
fn an_extension_continues_the_grid() {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "100")]), |_| {});
    let mut book = setup.create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-25");
    book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2028-01-20")]).expect("an edit");
    book.run_on(["2027-03-01", "2028-01-01", "2028-01-21"]);
    assert_eq!(book.documents().len(), 13);
    assert_eq!(book.documents().last().map(String::as_str), Some("INV-13 64.52 ISSUED"));
    assert_eq!(book.owed(), "1264.52");
}

/// Contracts (billing rules 7): the service date of usage decides whether the usage is after the last day. The event of
/// 10 March in UTC has an earlier timestamp than the event of 9 March in Los Angeles.
#[test]
fn a_cancel_is_refused_for_usage_whose_service_date_is_after_the_last_day() {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-03-01");
    book.go_to("2027-03-12");
    let first = book.event("2027-03-10T03:00:00Z", "1");
    book.edit_entity("main", |main| main.time_zone = TimeZone::parse("America/Los_Angeles").expect("a zone"));
    book.event("2027-03-10T05:00:00Z", "1");
    let refusal = book.cancel_on("2027-03-09").expect_err("usage after the last day");
    assert_eq!(code(&refusal), "usage_already_reported");
    book.delete_event(first).expect("a deletion");
    book.cancel_on("2027-03-09").expect("the other event is on the last day");
}

/// Ends a monthly fee of 100.00 with usage today, on 25 February. 100.00 × 25 ÷ 28 = 89.29 is issued.
fn ended_today(end: fn(&mut Book)) -> Book {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-25");
    end(&mut book);
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "INV-2 89.29 ISSUED"]);
    book
}

/// Asserts that the rest of February, 10.71, waits for later usage. It is issued on the regular issue day of February's invoice.
fn assert_one_debit(mut book: Book) {
    assert_eq!(book.documents()[2..], ["DBT-1 10.71 DRAFT of INV-2"]);
    book.run("2027-02-26").go_to("2027-02-26").event("2027-02-26", "7");
    book.run("2027-02-27");
    assert_eq!(book.documents()[2..], ["DBT-1 17.71 DRAFT of INV-2"]);
    book.run("2027-03-01");
    assert_eq!(book.documents()[2..], ["DBT-1 17.71 ISSUED of INV-2"]);
    assert_eq!(book.owed(), "207.00");
}

/// Contracts (billing rules 7): with AFTER_USE, the rest of a resumed period is not paid in advance.
#[test]
fn a_resumed_period_is_billed_after_use() {
    let mut book = ended_today(|book| book.cancel_on("2027-02-25").expect("a cancel"));
    book.resume().expect("a resume");
    assert_one_debit(book);
}

/// Contracts (billing rules 7): the rest of a period is also billed after use after an edit of the end.
#[test]
fn a_period_whose_end_is_moved_back_is_billed_after_use() {
    let mut book = ended_today(|book| {
        book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-02-25")]).expect("an edit");
        // An event of quantity 0 opens the invoice.
        book.event("2027-02-20", "0");
        book.issue("INV-2").expect("an issue");
    });
    book.edit(EffectiveFrom::CurrentPeriod, vec![ends("2027-12-31")]).expect("an edit");
    assert_one_debit(book);
}

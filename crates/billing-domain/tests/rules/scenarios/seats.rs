//! Tests of seats and other counted fixed line items, in steps by date (billing rules 6, 7).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::simulate::{
    LineItemTerms, Simulation, StepBuilder, Terms, flat, graduated, item, per_unit, product, quantity_of, terms,
};

use super::{bill, in_short, overview, total};

/// Returns terms with seats at 30.00 for a year from April 2026, in these quantities.
fn seats_of(quantities: &[(&'static str, i32)]) -> Terms {
    terms("2026-04-01", "2027-03-31").pricing("p").fixed("seats", per_unit("30.00")).line_item(steps(quantities))
}

fn steps(quantities: &[(&'static str, i32)]) -> LineItemTerms {
    quantities.iter().fold(item("seats"), |seats, (from, quantity)| seats.quantity_from(*from, *quantity))
}

/// Returns a contract with ten seats, paid in advance. April is billed 300.00.
fn ten_in_advance() -> Simulation {
    Simulation::new().contract(seats_of(&[("2026-04-01", 10)]).payment_time(PaymentTime::BeforeUse))
}

/// Changes the number of seats from today on.
fn seats(step: StepBuilder, quantity: i32) -> Simulation {
    step.change_quantity(quantity_of("p", "seats", quantity))
}

#[test]
fn seats_in_two_steps_are_billed_by_their_days() {
    let story = Simulation::new().contract(seats_of(&[("2026-04-01", 10), ("2026-04-16", 12)]));
    let shown = bill(&story, "2026-04-01");
    // 30.00 × (10 × 15 + 12 × 15) ÷ 30.
    assert_eq!(in_short(&shown.preview_current().expect("a preview")), ["INVOICE 2026-04-01 330.00"]);
    assert_eq!(in_short(&shown.preview_next().expect("a preview")), ["INVOICE 2026-05-01 360.00"]);
    let billed = overview(&story, "2026-06-01");
    assert_eq!(billed, ["UB-INV-1 2026-04-01 330.00", "UB-INV-2 2026-05-01 360.00"], "one document per month");
}

#[test]
fn more_seats_in_an_issued_month_are_a_debit_at_once() {
    assert_eq!(overview(&ten_in_advance(), "2026-04-01"), ["UB-INV-1 2026-04-01 300.00"]);
    let story = seats(ten_in_advance().on("2026-04-16"), 12);
    let changed = bill(&story, "2026-04-16");
    assert_eq!(changed.contract().version, 2);
    let debit = changed.document("UB-DBT-1");
    assert_eq!((debit.total().to_string().as_str(), debit.parent().as_deref()), ("30.00 EUR", Some("UB-INV-1")));
    assert_eq!(debit.issue_date().map(|day| day.to_string()).as_deref(), Some("2026-04-16"));
    assert_eq!(in_short(&changed.preview_next().expect("a preview")), ["INVOICE 2026-05-01 360.00"]);
    let again = seats(story.on("2026-04-16"), 12);
    assert_eq!(overview(&again, "2026-04-16").len(), 2, "repeating the change has no effect");

    // 8 seats from that day instead of 12: 270.00 instead of 330.00.
    let fewer = bill(&seats(again.on("2026-04-16"), 8), "2026-04-16");
    assert_eq!(fewer.document("UB-CRD-1").total().to_string(), "60.00 EUR");
    assert_eq!(fewer.sums()[3], "270.00");
}

#[test]
fn fewer_seats_in_an_issued_month_are_a_credit_at_once() {
    let story = ten_in_advance().on("2026-04-20").change_quantity(quantity_of("p", "seats", 8).from("2026-04-16"));
    let changed = bill(&story, "2026-04-20");
    let credit = changed.document("UB-CRD-1");
    assert_eq!((credit.total().to_string().as_str(), credit.parent().as_deref()), ("30.00 EUR", Some("UB-INV-1")));
    assert_eq!(credit.issue_date().map(|day| day.to_string()).as_deref(), Some("2026-04-20"));
    assert_eq!(changed.sums()[3], "270.00");
}

#[test]
fn a_step_without_proration_begins_with_the_next_period() {
    let story = ten_in_advance().on("2026-04-16").change_quantity(quantity_of("p", "seats", 12).from_next_period());
    assert_eq!(overview(&story, "2026-04-16"), ["UB-INV-1 2026-04-01 300.00"]);
    assert_eq!(overview(&story, "2026-05-01"), ["UB-INV-1 2026-04-01 300.00", "UB-INV-2 2026-05-01 360.00"]);
}

#[test]
fn without_quantities_there_is_one() {
    let story = Simulation::new()
        .contract(seats_of(&[]))
        .on("2026-04-01")
        .change_quantity(quantity_of("p", "seats", 4).from("2026-04-21"));
    // 30.00 × (1 × 20 + 4 × 10) ÷ 30.
    let current = bill(&story, "2026-04-01").preview_current().expect("a preview");
    assert_eq!(in_short(&current), ["INVOICE 2026-04-01 60.00"]);
    let story = story.on("2026-04-01").change_quantity(quantity_of("p", "seats", 0).from("2026-05-01"));
    assert_eq!(overview(&story, "2026-06-01"), ["UB-INV-1 2026-04-01 60.00"], "May has no seats and no invoice");
}

#[test]
fn seats_in_tiers_are_priced_step_by_step() {
    let story = Simulation::new().contract(
        terms("2026-04-01", "2026-04-30")
            .fixed("seats", graduated([(Some("10"), "30.00"), (None, "20.00")]))
            .line_item(steps(&[("2026-04-01", 10), ("2026-04-16", 12)])),
    );
    // (300.00 × 15 + 340.00 × 15) ÷ 30.
    assert_eq!(overview(&story, "2026-05-01"), ["UB-INV-1 2026-04-01 320.00"]);
}

#[test]
fn an_edits_quantities_replace_the_steps_from_their_first_day() {
    let story = Simulation::new()
        .contract(seats_of(&[("2026-04-01", 10), ("2026-04-16", 12), ("2026-05-01", 20)]))
        .on("2026-04-01")
        .edit(|contract| contract.products([product("p").line_item(steps(&[("2026-04-21", 15)]))]));
    // 10 seats for 15 days, 12 for 5 and 15 for 10: 30.00 × 360 ÷ 30. May has 15 seats, not 20.
    assert_eq!(overview(&story, "2026-06-01"), ["UB-INV-1 2026-04-01 360.00", "UB-INV-2 2026-05-01 450.00"]);
}

#[test]
fn an_own_price_and_a_quantity_go_together() {
    let story = Simulation::new().contract(
        terms("2026-04-01", "2026-04-30").fixed("seats", "30.00").line_item(steps(&[("2026-04-01", 4)]).price(flat("25.00"))),
    );
    // The amount of a FLAT price is multiplied by the quantity.
    assert_eq!(overview(&story, "2026-05-01"), ["UB-INV-1 2026-04-01 100.00"]);
}

#[test]
fn a_quantity_that_cannot_be_is_refused() {
    for (change, code) in [
        (quantity_of("p", "seats", 5).from("2026-03-31"), "out_of_range"),
        (quantity_of("p", "none", 5), "unknown_line_item"),
        (quantity_of("none", "seats", 5), "unknown_product"),
    ] {
        let story = Simulation::new().contract(seats_of(&[("2026-04-01", 10)]));
        let story = story.on("2026-04-01").change_quantity(change).refused(code);
        assert_eq!(bill(&story, "2026-04-01").contract().version, 1);
    }
}

#[test]
fn seats_of_a_planned_step_wait_for_their_day() {
    let story = ten_in_advance().on("2026-04-01").change_quantity(quantity_of("p", "seats", 12).from("2026-05-16"));
    assert_eq!(overview(&story, "2026-04-01"), ["UB-INV-1 2026-04-01 300.00"], "May is not issued");
    // 30.00 × (10 × 15 + 12 × 16) ÷ 31 = 330.967…
    assert_eq!(overview(&story, "2026-05-01"), ["UB-INV-1 2026-04-01 300.00", "UB-INV-2 2026-05-01 330.97"]);
    assert_eq!(total(&story, "2026-05-01"), "630.97");
}

#[test]
fn seats_from_a_past_day_are_a_debit_of_each_month_and_first_use_up_the_minimum_fee() {
    let plan = terms("2026-01-15", "2026-12-31").pricing("team").fixed("seats", "31.00").minimum_fee("100.00");
    let story = Simulation::new().contract(plan.line_item(item("seats").quantity_from("2026-01-15", 2)));
    // 62.00 × 17 ÷ 31 is 34.00, and 100.00 × 17 ÷ 31 is 54.84.
    assert_eq!(bill(&story, "2026-02-01").document("UB-INV-1").amounts(), ["seats 34.00", "minimum fee 20.84"]);
    let story = story.on("2026-03-10").edit(|contract| {
        let seats = item("seats").quantity_from("2026-01-20", 10).quantity_from("2026-03-05", 0);
        contract.product("team", |team| team.line_item(seats))
    });
    let edited = bill(&story, "2026-04-01");
    assert_eq!(edited.document("UB-DBT-1").amounts(), ["seats 96.00", "minimum fee -20.84"]);
    assert_eq!(edited.document("UB-DBT-2").amounts(), ["seats 248.00", "minimum fee -38.00"]);
    assert_eq!(edited.document("UB-INV-3").amounts(), ["seats 40.00", "minimum fee 60.00"]);
}

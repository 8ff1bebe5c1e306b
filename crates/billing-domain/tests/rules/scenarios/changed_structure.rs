//! Tests of edits of payment time, cycle and entity, and of closing invoices (billing rules 2, 7).

use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime::{self, AfterUse, BeforeUse, DuringUse};
use billing_domain::document::DocumentKind;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Bill, Simulation, customer, entity, per_unit, terms};

use super::{bill, fee, overview, year};

/// Returns a contract with a fee of 28.00 a month and calls at 0.10.
fn monthly(payment_time: PaymentTime) -> Simulation {
    Simulation::new().contract(fee("p", "28.00").usage("calls", per_unit("0.10")).payment_time(payment_time))
}

/// Returns what the documents bill of a line item in the month from a day, in minor units. Credits count as negative.
fn billed(bill: &Bill, month: &str, line_item: &str) -> i64 {
    let documents = bill.documents().iter().flat_map(|document| document.lines().map(move |line| (document.kind(), line)));
    let lines = documents.filter(|(_, line)| line.name() == line_item && line.days().to_string().starts_with(&month[..7]));
    lines.map(|(kind, line)| if kind == DocumentKind::Credit { -line.amount().minor() } else { line.amount().minor() }).sum()
}

#[test]
fn a_payment_time_that_changes_with_the_next_period_bills_everything_once() {
    let times = [AfterUse, DuringUse, BeforeUse];
    for (from, to) in times.iter().flat_map(|from| times.map(|to| (*from, to))) {
        let story = monthly(from)
            .event("2026-01-10", "calls", 100)
            .on("2026-01-10")
            .edit(|contract| contract.product("p", |p| p.payment_time(to)))
            .event("2026-02-10", "calls", 10)
            .late_event("2026-01-10", "calls", 2, "2026-02-10");
        let edited = bill(&story, "2026-03-01");
        let amounts = ["2026-01-01", "2026-02-01"].map(|month| ["fee", "calls"].map(|item| billed(&edited, month, item)));
        assert_eq!(amounts, [[2800, 1020], [2800, 100]], "{from:?} {to:?}");
    }
}

#[test]
fn a_cycle_that_changes_with_the_next_period_has_a_partial_period_first() {
    let story = Simulation::new()
        .contract(fee("p", "30.00"))
        .on("2026-02-10")
        .edit(|contract| contract.product("p", |p| p.billing_cycle(CycleUnit::Quarterly, 1)));
    let expected = [
        "UB-INV-1 2026-01-01 30.00",
        "UB-INV-2 2026-02-01 30.00",
        // 30.00 × 31 ÷ 90.
        "UB-INV-3 2026-03-01 10.33",
        "UB-INV-4 2026-04-01 30.00",
        "UB-INV-5 2026-07-01 30.00",
        "UB-INV-6 2026-10-01 30.00",
    ];
    assert_eq!(overview(&story, "2027-01-01"), expected);
}

#[test]
fn usage_is_billed_by_the_entity_of_its_own_period() {
    let story = monthly(DuringUse)
        .entity(entity("other").prefix("US").time_zone("America/New_York"))
        .event("2026-01-10", "calls", 100)
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.entity("other")));
    let edited = bill(&story, "2026-02-01");
    assert_eq!(edited.document("UB-INV-1").amounts(), ["fee 28.00"]);
    assert_eq!(edited.document("UB-INV-2").amounts(), ["calls 10.00"]);
    assert_eq!(edited.document("US-INV-1").to_string(), "US-INV-1 ISSUED 2026-02-01…2026-02-28: 28.00 EUR");
}

#[test]
fn a_product_that_is_left_out_now_has_its_usage_on_a_closing_invoice() {
    let story = Simulation::new()
        .contract(fee("p", "31.00").usage("calls", per_unit("0.10")).payment_time(DuringUse))
        .contract(year("q").fixed("support", "62.00").payment_time(DuringUse))
        .event("2026-01-10", "calls", 100)
        .on("2026-01-10")
        .edit(|contract| contract.include_current_invoice().remove("p"));
    let expected =
        ["UB-CRD-1 2026-01-11 21.00", "UB-INV-1 2026-01-01 93.00", "UB-INV-2 2026-02-01 62.00", "UB-INV-3 2026-01-01 10.00"];
    assert_eq!(overview(&story, "2026-02-01"), expected);
}

#[test]
fn a_cancel_makes_the_next_invoice_a_closing_one_and_a_resume_takes_that_back() {
    let used = || monthly(DuringUse).event("2026-01-10", "calls", 100).on("2026-01-10");
    // 28.00 × 21 ÷ 31.
    let today = ["UB-CRD-1 2026-01-11 18.97", "UB-INV-1 2026-01-01 28.00", "UB-INV-2 2026-01-01 10.00"];
    assert_eq!(overview(&used().cancel_today(), "2026-01-10"), today);
    let story = used().cancel();
    let closing = ["UB-INV-1 2026-01-01 28.00", "UB-INV-2 2026-01-01 10.00 DRAFT"];
    assert_eq!(overview(&story, "2026-01-10"), closing);
    let resumed = ["UB-INV-1 2026-01-01 28.00", "UB-INV-2 2026-02-01 38.00"];
    assert_eq!(overview(&story.on("2026-01-12").resume(), "2026-02-01"), resumed);
}

#[test]
fn a_contract_cancelled_and_resumed_on_a_day_bills_its_month_once() {
    for payment_time in [AfterUse, DuringUse, BeforeUse] {
        let story = monthly(payment_time).event("2026-01-10", "calls", 100).on("2026-01-10").cancel_today();
        // 28.00 × 10 ÷ 31.
        assert_eq!(billed(&bill(&story, "2026-01-10"), "2026-01-01", "fee"), 903, "{payment_time:?}");
        let story = story.on("2026-01-10T13:00:00Z").resume().event("2026-01-20", "calls", 10);
        let resumed = bill(&story, "2026-03-01");
        let amounts = [("2026-01-01", "fee"), ("2026-01-01", "calls"), ("2026-02-01", "fee")];
        assert_eq!(amounts.map(|(month, item)| billed(&resumed, month, item)), [2800, 1100, 2800], "{payment_time:?}");
    }
}

/// Returns a contract whose first product has net terms of 30 days. The customer gets them for all products on the 20th.
fn net_terms_of_all(payment_time: PaymentTime, minimum_fee: &str) -> [Simulation; 2] {
    let january = |name: &str| terms("2026-01-01", "2026-01-31").pricing(name).payment_time(payment_time);
    let before = Simulation::new()
        .contract(january("api").usage("calls", per_unit("0.10")).net_terms(NetTerms::Days(30)))
        .contract(january("desk").fixed("seat", "0").minimum_fee(minimum_fee))
        .event("2026-01-10", "calls", 50);
    let after = before.clone().on("2026-01-20").edit_customer(customer().net_terms(NetTerms::Days(30)));
    [before, after]
}

#[test]
fn a_draft_takes_in_a_product_that_came_to_fit_it_as_the_preview_shows() {
    for payment_time in [AfterUse, DuringUse] {
        let [before, after] = net_terms_of_all(payment_time, "10.00");
        let shown = |story: &Simulation| {
            let documents = bill(story, "2026-01-20").preview_current().expect("a preview");
            let mut totals: Vec<String> = documents.iter().map(|document| document.total().to_string()).collect();
            totals.retain(|total| total != "0.00 EUR");
            totals
        };
        let separate = if payment_time == AfterUse { vec!["5.00 EUR", "10.00 EUR"] } else { vec!["5.00 EUR"] };
        assert_eq!(shown(&before), separate, "{payment_time:?}");
        assert_eq!(shown(&after), ["15.00 EUR"], "{payment_time:?}");
        assert_eq!(overview(&after, "2026-02-01"), ["UB-INV-1 2026-01-01 15.00"], "{payment_time:?}");
    }
}

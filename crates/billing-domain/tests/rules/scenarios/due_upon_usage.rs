//! Tests of the documents of single events and of their period's invoice (billing rules 3).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Bill, Prices, Simulation, graduated, per_unit, pricing, terms};

use super::{bill, overview};

/// Returns a contract for January, agreed on the 5th. Each event is due upon usage.
fn january(calls: Prices, payment_time: PaymentTime) -> Simulation {
    let terms = terms("2026-01-01", "2026-01-31").pricing("api").usage("calls", calls);
    Simulation::new().contract(terms.payment_time(payment_time).net_terms(NetTerms::DueUponUsage)).created("2026-01-05")
}

fn parents<const N: usize>(bill: &Bill, numbers: [&str; N]) -> [Option<String>; N] {
    numbers.map(|number| bill.document(number).parent())
}

#[test]
fn children_and_their_invoice_make_the_price_to_the_last_cent() {
    let mut story = january(graduated([(Some("3"), "0.333"), (None, "0.111")]), PaymentTime::AfterUse);
    for _ in 0..5 {
        story = story.event("2026-01-05", "calls", 1);
    }
    // 0.333 → 0.33, 0.666 → 0.67, 0.999 → 1.00, 1.110 → 1.11, 1.221 → 1.22.
    let expected = [
        "UB-INV-1 2026-01-01 0.00",
        "UB-INV-2 2026-01-01 0.33",
        "UB-INV-3 2026-01-01 0.34",
        "UB-INV-4 2026-01-01 0.33",
        "UB-INV-5 2026-01-01 0.11",
        "UB-INV-6 2026-01-01 0.11",
    ];
    assert_eq!(overview(&story, "2026-02-01"), expected);
}

#[test]
fn the_minimum_of_a_line_item_is_on_the_invoice_of_the_period() {
    let story = january(per_unit("0.10").at_least("5.00"), PaymentTime::AfterUse).event("2026-01-05", "calls", 30);
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 2.00", "UB-INV-2 2026-01-01 3.00"]);
}

#[test]
fn a_child_bills_what_is_used_beyond_the_prepaid_quantity() {
    let story = january(per_unit("0.10").prepaid(10), PaymentTime::BeforeUse).event("2026-01-05", "calls", 30);
    // No debit is left to open.
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 1.00", "UB-INV-2 2026-01-01 2.00"]);
}

#[test]
fn an_event_is_corrected_again_after_its_first_correction_is_issued() {
    let story = january(per_unit("0.10"), PaymentTime::AfterUse)
        .event("2026-01-05", "calls", 30)
        .named("event")
        .on("2026-01-05")
        .update_event("event", |event| event.quantity(10))
        .on("2026-01-06")
        .delete_event("event");
    let corrected = bill(&story, "2026-01-06");
    let expected = [
        "UB-CRD-1 2026-01-01 2.00",
        "UB-CRD-2 2026-01-01 1.00 DRAFT",
        "UB-INV-1 2026-01-01 0.00 DRAFT",
        "UB-INV-2 2026-01-01 3.00",
    ];
    assert_eq!(corrected.overview(), expected);
    assert_eq!(parents(&corrected, ["UB-CRD-1", "UB-CRD-2"]), [Some("UB-INV-2".to_owned()), Some("UB-INV-2".to_owned())]);
}

#[test]
fn an_edit_corrects_children_at_once_and_leaves_the_minimum_to_the_debit() {
    let story = january(per_unit("1.00"), PaymentTime::BeforeUse)
        .event("2026-01-05", "calls", 100)
        .named("event")
        .on("2026-01-06")
        .edit_pricing(pricing("api").usage("calls", per_unit("0.50").at_least("45.00")))
        .on("2026-01-06")
        .edit(|contract| contract.include_current_invoice().product("api", |api| api.reprice()));
    let edited = ["UB-CRD-1 2026-01-01 50.00", "UB-INV-1 2026-01-01 0.00", "UB-INV-2 2026-01-01 100.00"];
    assert_eq!(overview(&story, "2026-01-06"), edited);
    let story = story.on("2026-02-01").update_event("event", |event| event.quantity(80));
    let corrected = bill(&story, "2026-02-02");
    // 80 calls cost 40.00, and the minimum is 45.00.
    let expected = [
        "UB-CRD-1 2026-01-01 50.00",
        "UB-CRD-2 2026-01-01 10.00",
        "UB-DBT-1 2026-01-01 5.00",
        "UB-INV-1 2026-01-01 0.00",
        "UB-INV-2 2026-01-01 100.00",
    ];
    assert_eq!(corrected.overview(), expected);
    let invoices = ["UB-INV-1", "UB-INV-2", "UB-INV-1"].map(|number| Some(number.to_owned()));
    assert_eq!(parents(&corrected, ["UB-CRD-1", "UB-CRD-2", "UB-DBT-1"]), invoices);
}

#[test]
fn a_late_event_is_a_child_of_the_issued_invoice() {
    let story = january(per_unit("0.10"), PaymentTime::AfterUse)
        .event("2026-01-05", "calls", 30)
        .late_event("2026-01-31", "calls", 7, "2026-02-03")
        .named("late");
    let billed = bill(&story, "2026-02-03");
    let child = billed.document_of_event("late");
    assert_eq!(child.to_string(), "UB-INV-3 ISSUED 2026-01-01…2026-01-31: 0.70 EUR");
    assert_eq!(child.parent().as_deref(), Some("UB-INV-1"));
}

#[test]
fn a_child_keeps_its_invoice_when_a_cancel_removes_the_period_of_the_invoice() {
    let terms = terms("2026-02-01", "2026-12-31").fixed("fee", "28.00").usage("calls", per_unit("0.10"));
    let story = Simulation::new()
        .contract(terms.payment_time(PaymentTime::DuringUse).net_terms(NetTerms::DueUponUsage))
        .event("2026-02-10", "calls", 10)
        .on("2026-02-10")
        .cancel();
    let billed = bill(&story, "2026-03-01");
    let expected = ["UB-INV-1 2026-02-01 28.00", "UB-INV-2 2026-02-01 0.00", "UB-INV-3 2026-02-01 1.00"];
    assert_eq!(billed.overview(), expected);
    assert_eq!(parents(&billed, ["UB-INV-3"]), [Some("UB-INV-2".to_owned())]);
}

//! Tests of corrections of usage whose invoice is issued. Debits and credits bill the difference to the cent, while the
//! invoice stays unchanged (billing rules 5).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::simulate::{ProductEdit, Simulation, customer, item, per_unit, terms};

use super::{api_plan, bill, overview};

/// Returns the API plan for January at 19 %, with usage on the 20th. Its invoice is issued on 1 February.
fn january(quantity: i32) -> Simulation {
    Simulation::new()
        .customer(customer().tax(19))
        .contract(api_plan(terms("2026-01-01", "2026-01-31")))
        .event("2026-01-20", "calls", quantity)
        .named("first")
}

/// Reports usage of January on 10 February.
fn late(story: Simulation, quantity: i32) -> Simulation {
    story.late_event("2026-01-20", "calls", quantity, "2026-02-10")
}

/// Changes the quantity of an event on 10 February.
fn updated(story: Simulation, event: &str, quantity: i32) -> Simulation {
    story.on("2026-02-10").update_event(event, |event| event.quantity(quantity))
}

#[test]
fn late_usage_collects_on_one_debit_until_that_is_issued() {
    let issued = bill(&january(1500), "2026-02-10");
    // At 0.01 each in the third tier.
    let story = late(january(1500), 500).named("late");
    let collected = bill(&story, "2026-02-10");
    assert_eq!(collected.document_of_event("late").to_string(), "UB-DBT-1 DRAFT 2026-01-01…2026-01-31: 5.95 EUR");
    let story = late(story, 100);
    let collected = bill(&story, "2026-02-10");
    let debit = collected.document("UB-DBT-1");
    assert_eq!(debit.to_string(), "UB-DBT-1 DRAFT 2026-01-01…2026-01-31: 7.14 EUR");
    let line = debit.line("calls");
    assert_eq!((line.quantity().map(|quantity| quantity.to_string()).as_deref(), line.amount().minor()), (Some("600"), 600));

    let story = late(story.on("2026-02-10").issue("UB-DBT-1"), 10).named("later");
    let after = bill(&story, "2026-02-10");
    assert_eq!(after.document("UB-DBT-1").issue_date().map(|day| day.to_string()).as_deref(), Some("2026-02-10"));
    assert_eq!(after.document_of_event("later").number.to_string(), "UB-DBT-2", "an issued debit is final");
    let invoice = after.document("UB-INV-1");
    assert!(invoice.says_the_same_as(issued.document("UB-INV-1")));
    assert_eq!(invoice.amount_due().map(|due| due.minor()), Some(12971), "a debit has its own amount due");
}

#[test]
fn less_usage_is_credited_and_lowers_what_is_due() {
    let story = updated(january(1500), "first", 1000);
    let credited = bill(&story, "2026-02-10");
    let credit = credited.document_of_event("first");
    // 10.00 + 45.00 instead of 60.00, and 19 %.
    assert_eq!(
        (credit.number.to_string().as_str(), credit.totals()),
        ("UB-CRD-1", ["5.00", "0.00", "0.95", "5.95"].map(str::to_owned))
    );
    assert_eq!(credit.line("calls").quantity().map(|quantity| quantity.to_string()).as_deref(), Some("500"));
    let due = |story: &Simulation| bill(story, "2026-02-10").document("UB-INV-1").amount_due().map(|due| due.to_string());
    assert_eq!(due(&story).as_deref(), Some("129.71 EUR"), "a draft does not lower the amount due");

    let story = story.on("2026-02-10").issue("UB-CRD-1");
    assert_eq!(due(&story).as_deref(), Some("123.76 EUR"));

    // The event's latest change is on an issued credit, so the next correction is a debit of the invoice.
    let corrected = bill(&updated(story, "first", 1600), "2026-02-10");
    let debit = corrected.document_of_event("first");
    assert_eq!((debit.number.to_string().as_str(), debit.totals()[0].as_str()), ("UB-DBT-1", "6.00"));
    assert_eq!(debit.parent().as_deref(), Some("UB-INV-1"));
}

#[test]
fn more_and_less_collect_on_one_draft_each() {
    let story = january(1000).event("2026-01-20", "calls", 500).named("second");
    let story = updated(late(updated(late(story, 100), "first", 900), 50), "second", 300);
    let corrected = bill(&story, "2026-02-10");
    assert_eq!(corrected.documents().len(), 3);
    // The quantity is in the third tier, from 1600 down to 1350. Both documents have the invoice as parent.
    let shown = ["UB-DBT-1", "UB-CRD-1"].map(|number| corrected.document(number));
    assert_eq!(shown.map(|document| document.totals()[0].clone()), ["1.50", "3.00"]);
    assert_eq!(shown.map(|document| document.parent()), [Some("UB-INV-1".to_owned()), Some("UB-INV-1".to_owned())]);
}

#[test]
fn the_first_billing_run_of_a_later_day_issues_what_was_collected() {
    let story = late(january(1500), 500).on("2026-02-10").run();
    let drafts = ["UB-DBT-1 2026-01-01 5.95 DRAFT", "UB-INV-1 2026-01-01 129.71"];
    assert_eq!(overview(&story, "2026-02-10"), drafts);
    assert_eq!(overview(&story, "2026-02-11"), ["UB-DBT-1 2026-01-01 5.95", "UB-INV-1 2026-01-01 129.71"]);
}

#[test]
fn a_credit_that_came_to_have_the_wrong_sign_is_issued_as_a_debit() {
    // The change is on the draft credit, which is re-rated and would credit −5.00.
    let story = updated(updated(january(1500), "first", 1000), "first", 2000);
    assert_eq!(bill(&story, "2026-02-10").document_of_event("first").number.to_string(), "UB-CRD-1");
    let issued = bill(&story.on("2026-02-10").issue("UB-CRD-1"), "2026-02-10");
    let debit = issued.document_of_event("first");
    assert_eq!(debit.to_string(), "UB-DBT-1 ISSUED 2026-01-01…2026-01-31: 5.95 EUR", "the event moves to the debit");
    assert!(issued.document("UB-CRD-1").status.is_void(), "the credit keeps its number");
}

#[test]
fn an_event_that_moves_to_another_period_is_settled_in_both() {
    let story = Simulation::new()
        .customer(customer().tax(19))
        .contract(api_plan(terms("2026-01-01", "2026-03-31")))
        .event("2026-01-01", "calls", 100)
        .named("event");
    let issued = bill(&story, "2026-03-10");
    assert_eq!(issued.document("UB-INV-1").amounts(), ["platform-fee 49.00", "calls 10.00"]);
    assert_eq!(issued.document("UB-INV-2").amounts(), ["platform-fee 49.00", "calls 0.00"]);

    let story = story.on("2026-03-10").update_event("event", |event| event.at("2026-02-01"));
    let moved = bill(&story, "2026-03-10");
    let shown = ["UB-CRD-1", "UB-DBT-1"].map(|number| moved.document(number));
    assert_eq!(shown.map(|document| document.amounts()), [["calls 10.00"], ["calls 10.00"]]);
    assert_eq!(shown.map(|document| document.parent()), ["UB-INV-1", "UB-INV-2"].map(|number| Some(number.to_owned())));
    assert_eq!(moved.document_of_event("event").number.to_string(), "UB-DBT-1");

    // The event moves on to the current period, which is open. The debit loses its amount.
    let story = story.on("2026-03-10").update_event("event", |event| event.at("2026-03-01"));
    let moved = bill(&story, "2026-03-10");
    assert_eq!(moved.document("UB-DBT-1").amounts(), ["calls 0.00"]);
    assert_eq!(moved.document_of_event("event").amounts(), ["platform-fee 49.00", "calls 10.00"]);
    assert!(moved.document("UB-INV-2").says_the_same_as(issued.document("UB-INV-2")));
}

#[test]
fn a_deleted_event_stops_counting() {
    let story = Simulation::new()
        .customer(customer().tax(19))
        .contract(api_plan(terms("2026-01-01", "2026-01-31")))
        .event("2026-01-20", "calls", 700)
        .named("on a draft")
        .on("2026-01-20")
        .delete_event("on a draft")
        .event("2026-01-21", "calls", 1500)
        .named("on an invoice");
    let issued = bill(&story, "2026-02-10");
    assert_eq!(issued.document("UB-INV-1").line("calls").amount().to_string(), "60.00 EUR", "without the deleted event");
    let deleted = bill(&story.on("2026-02-10").delete_event("on an invoice"), "2026-02-10");
    let credit = deleted.document("UB-CRD-1");
    assert_eq!((credit.amounts(), credit.total().to_string()), (vec!["calls 60.00".to_owned()], "71.40 EUR".to_owned()));
}

#[test]
fn a_repeated_update_corrects_once() {
    let once = updated(january(1500), "first", 1000);
    let expected = bill(&once, "2026-02-10").documents().to_vec();
    assert_eq!(bill(&updated(once, "first", 1000), "2026-02-10").documents(), expected);
}

#[test]
fn late_usage_eats_the_true_up_to_the_minimum_fee_first() {
    let plan = terms("2026-01-01", "2026-01-31").fixed("base", "20.00").usage("calls", per_unit("1.00")).minimum_fee("100.00");
    let story = Simulation::new().customer(customer().tax(19)).contract(plan).event("2026-01-20", "calls", 30);
    assert_eq!(bill(&story, "2026-02-10").document("UB-INV-1").amounts(), ["base 20.00", "calls 30.00", "minimum fee 50.00"]);
    let story = late(story, 40);
    let mut amounts = bill(&story, "2026-02-10").document("UB-DBT-1").amounts();
    amounts.sort();
    assert_eq!(amounts, ["calls 40.00", "minimum fee -40.00"]);
    let totals = bill(&late(story, 20), "2026-02-10").document("UB-DBT-1").totals();
    assert_eq!(totals, ["10.00", "0.00", "1.90", "11.90"], "90.00 are trued up by 10.00; 110.00 are not");
}

#[test]
fn an_event_that_moves_within_its_period_corrects_nothing_and_stays_in_the_contract() {
    let moved = |when: &str| january(100).on("2026-02-10").update_event("first", |event| event.at(when));
    let expected = overview(&january(100), "2026-02-20");
    assert_eq!(overview(&moved("2026-01-17"), "2026-02-20"), expected);
    assert_eq!(overview(&moved("2025-12-31").refused("no_matching_contract"), "2026-02-20"), expected);
}

#[test]
fn a_draft_debit_takes_up_the_difference_of_an_edit_and_is_issued_with_it() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-12-31").pricing("p").fixed("fee", "28.00").usage("calls", per_unit("0.10")))
        .event("2026-01-10", "calls", 100)
        .late_event("2026-01-11", "calls", 50, "2026-02-10")
        .on("2026-02-10")
        .edit(|contract| {
            let dearer = |p: ProductEdit| p.line_item(item("fee").price("30.00")).line_item(item("calls"));
            contract.effective_from("2026-01-01").product("p", dearer)
        });
    assert_eq!(overview(&story, "2026-02-10"), ["UB-DBT-1 2026-01-01 7.00", "UB-INV-1 2026-01-01 38.00"]);
}

#[test]
fn a_void_needs_an_issued_document_without_payments_and_corrections() {
    let story = january(100).on("2026-02-10").pay("UB-INV-1", "0.01").on("2026-02-10").void("UB-INV-1").refused("document_paid");
    bill(&story, "2026-02-10");
    let story = january(100).on("2026-01-20").void("UB-INV-1").refused("not_issued");
    bill(&late(story, 1).on("2026-02-10").void("UB-INV-1").refused("document_has_dependents"), "2026-02-10");
    // The debit of the usage and its adjustment have the same parent, the invoice.
    let in_advance = api_plan(terms("2026-01-01", "2026-01-31")).payment_time(PaymentTime::BeforeUse);
    let billed = Simulation::new().contract(in_advance).event("2026-01-20", "calls", 100);
    bill(&billed.clone().on("2026-02-10").void("UB-INV-1").refused("document_has_dependents"), "2026-02-10");
    bill(&late(billed, 1).on("2026-02-10").void("UB-DBT-1").refused("document_has_dependents"), "2026-02-10");
}

#[test]
fn a_voided_invoice_of_zero_is_replaced_if_it_has_an_event() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").usage("calls", per_unit("0.10")))
        .event("2026-01-20", "calls", 0)
        .on("2026-02-01")
        .void("UB-INV-1");
    assert_eq!(overview(&story, "2026-02-02"), ["UB-INV-1 2026-01-01 0.00 VOID", "UB-INV-2 2026-01-01 0.00"]);
}

//! Tests of limits of contract requests: documents due at once, dates of edits, versions (billing rules 1.6, 7).

use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{ProductEdit, Simulation, StepBuilder, customer, entity, pricing, terms};

use super::{bill, fee, fee_of, overview, total};

/// Returns a contract with a fee of 100.00 from a day on, agreed on 15 January 2026.
fn since(first: &str) -> Simulation {
    Simulation::new().contract(terms(first, "2026-12-31").pricing("p").fixed("fee", "100.00")).created("2026-01-15")
}

/// Returns a contract from December 2023. 25 months are over.
fn of_25_months() -> Simulation {
    since("2023-12-01").allow_backdated()
}

/// Returns a contract for 2026 with a fee of 100.00, a discount of 10 % and a note.
fn discounted() -> Simulation {
    Simulation::new().contract(fee("p", "100.00").note("Thank you").discount(10))
}

#[track_caller]
fn too_many(refusal: &Refusal, count: &str, since: &str) {
    assert!(refusal.has_code("too_many_documents"), "{refusal:?}");
    let text = refusal.to_string();
    assert!(text.contains(count) && text.contains(since), "{count} since {since}: {text}");
}

#[track_caller]
fn refusal(simulation: &Simulation) -> Refusal {
    simulation.until("2026-01-15").expect_err("a refusal")
}

#[test]
fn a_create_that_makes_more_than_24_documents_due_says_how_many_and_since_when() {
    too_many(&refusal(&since("2023-12-01")), "25", "2023-12-01");
    assert_eq!(total(&since("2024-01-01"), "2026-01-15"), "2400.00");
    assert_eq!(total(&of_25_months(), "2026-01-15"), "2500.00");
}

#[test]
fn a_year_mistyped_as_0206_is_refused_even_if_it_may_be_backdated() {
    // The months of 1,820 years.
    for story in [since("0206-01-01"), since("0206-01-01").allow_backdated()] {
        too_many(&refusal(&story), "21840", "0206-01-01");
    }
}

#[test]
fn up_to_1200_documents_may_be_backdated() {
    // The months of 100 years, and one more month.
    too_many(&refusal(&since("1925-12-01").allow_backdated()), "1201", "1925-12-01");
    // A contract that is annulled before anything is issued costs nothing.
    let story = since("1926-01-01").allow_backdated().on("2026-01-15").cancel_on("1925-12-31");
    assert_eq!(overview(&story, "2026-01-15"), [""; 0]);
}

/// A day in the 26th month, January 2026, which is not over yet.
const LATER: &str = "2026-01-16";

#[test]
fn an_edit_that_makes_more_than_24_documents_due_is_refused() {
    let edit = |step: StepBuilder| step.edit(|contract| contract.effective_from("2023-12-01").product("p", fee_of("90.00")));
    let refused = edit(of_25_months().on(LATER)).until(LATER).expect_err("a refusal");
    too_many(&refused, "25", "2023-12-01");
    assert_eq!(total(&edit(of_25_months().on(LATER)).refused("too_many_documents"), LATER), "2500.00");
    assert_eq!(total(&edit(of_25_months().on(LATER).allow_backdated()), LATER), "2250.00", "25 credits of 10.00");
}

#[test]
fn a_cancel_that_makes_more_than_24_documents_due_is_refused() {
    let refused = of_25_months().on(LATER).cancel_on("2023-11-30").until(LATER).expect_err("a refusal");
    too_many(&refused, "25", "2023-12-01");
    let story = of_25_months().on(LATER).cancel_on("2023-11-30").refused("too_many_documents");
    assert_eq!(total(&story, LATER), "2500.00");
    assert_eq!(total(&story.on(LATER).allow_backdated().cancel_on("2023-11-30"), LATER), "0.00");
}

#[test]
fn what_was_due_anyway_does_not_count() {
    let story =
        of_25_months().on("2026-01-15").edit(|contract| contract.product("p", |p| p.discount(10))).on("2026-01-15").cancel();
    assert_eq!(bill(&story, "2026-01-15").contract().version, 3);
}

#[test]
fn a_date_within_a_period_is_refused_with_the_two_nearest() {
    for (date, nearest) in [
        ("2026-02-10", ["2026-02-01", "2026-03-01"]),
        ("2026-01-02", ["2026-01-01", "2026-02-01"]),
        ("2026-06-30", ["2026-06-01", "2026-07-01"]),
    ] {
        let story = discounted().on("2026-04-10").edit(|contract| contract.effective_from(date).product("p", |p| p.discount(20)));
        let refusal = story.until("2026-04-10").expect_err("a refusal");
        assert_eq!(refusal.codes(), ["not_a_period_start"]);
        assert!(nearest.iter().all(|day| refusal.to_string().contains(day)), "{nearest:?}: {refusal}");
    }
}

#[test]
fn a_date_before_the_contract_is_refused() {
    for date in ["2025-12-31", "2025-12-01"] {
        let story = discounted().on("2026-04-10").edit(|contract| contract.effective_from(date).product("p", |p| p.discount(20)));
        let refusal = story.until("2026-04-10").expect_err("a refusal");
        assert!(refusal.to_string().contains("effective_from"), "{refusal}");
    }
}

#[test]
fn what_structures_documents_cannot_change_where_they_are_issued() {
    let edits: [fn(ProductEdit) -> ProductEdit; 4] = [
        |p| p.payment_time(PaymentTime::BeforeUse),
        |p| p.entity("other"),
        |p| p.billing_cycle(CycleUnit::Quarterly, 1),
        |p| p.issue_day("2026-01-15"),
    ];
    let story = discounted().entity(entity("other").prefix("OT"));
    for edit in edits {
        let refused = story
            .clone()
            .on("2026-04-10")
            .edit(|contract| contract.effective_from("2026-01-01").product("p", edit))
            .refused("not_retroactive");
        assert_eq!(bill(&refused, "2026-04-10").contract().version, 1);
    }
    // Nothing is issued for April.
    let story = story.on("2026-04-10").edit(|contract| contract.effective_from("2026-04-01").product("p", |p| p.entity("other")));
    assert_eq!(overview(&story, "2026-05-01")[0], "OT-INV-1 2026-04-01 90.00");
}

#[test]
fn an_older_version_is_a_conflict() {
    let story = discounted()
        .on("2026-04-10")
        .edit(|contract| contract.version(1).po_number("PO-7"))
        .on("2026-04-10")
        .edit(|contract| contract.version(1).po_number("PO-8"))
        .refused("version_conflict");
    let po_number = |story: &Simulation| bill(story, "2026-04-10").contract().po_number.clone().map(|text| text.to_string());
    assert_eq!(po_number(&story).as_deref(), Some("PO-7"));
    let story = story.on("2026-04-10").edit(|contract| contract.version(2).po_number("PO-8"));
    assert_eq!((po_number(&story).as_deref(), bill(&story, "2026-04-10").contract().version), (Some("PO-8"), 3));
}

#[test]
fn a_default_tax_and_a_planned_rise_hold_after_an_edit_that_says_nothing() {
    let nothing = |story: Simulation| story.on("2026-04-10").edit(|contract| contract.product("p", |p| p));
    let story = discounted()
        .on("2026-04-10")
        .edit(|contract| contract.effective_from("2026-07-01").product("p", fee_of("120.00")))
        .on("2026-04-10")
        .edit_pricing(pricing("p").fixed("fee", "150.00").fixed("new", "5.00"))
        .on("2026-04-10")
        .edit_customer(customer().tax(7));
    // A discount of 10 %, the customer's tax of 7 % from April to July, and the price rise in July.
    let expected =
        ["UB-INV-4 2026-04-01 96.30", "UB-INV-5 2026-05-01 96.30", "UB-INV-6 2026-06-01 96.30", "UB-INV-7 2026-07-01 115.56"];
    assert_eq!(overview(&nothing(story), "2026-08-01")[3..], expected);
}

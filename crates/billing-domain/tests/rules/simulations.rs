//! Tests of the inputs and the refusals of a simulation.

use billing_domain::catalog::Aggregation;
use billing_domain::document::DocumentState;
use billing_domain::money::Percentage;
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{
    Bill, Simulation, customer, entity, flat, graduated, package, per_unit, percentage, terms, volume,
};

#[track_caller]
fn bill(simulation: &Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}: {refusal:?}"))
}

fn fee() -> Simulation {
    Simulation::new().contract(terms("2026-01-01", "2026-12-31").pricing("plan").fixed("fee", "100.00"))
}

#[test]
fn every_price_model_bills_what_the_rules_say() {
    let tiers = || [(Some("100"), "0.10", "0"), (Some("1000"), "0.05", "2"), (None, "0.01", "0")];
    let of_used = |prices: billing_domain::simulate::Prices| prices.of_usage("used");
    let plan = terms("2026-01-01", "2026-12-31")
        .fixed("flat", "9.99")
        .fixed("once", flat("100").once())
        .usage("graduated", of_used(graduated(tiers())))
        .usage("volume", of_used(volume(tiers())))
        .usage("package", of_used(package(1000, "5")))
        .usage("per-unit", of_used(per_unit("0.0025")))
        .usage("percentage", of_used(percentage("2.5", "0.30")))
        .usage("included", of_used(per_unit("0.0025").included(1000)))
        .usage("at-least", of_used(per_unit("0.0025").at_least("5.00")))
        .usage("at-most", of_used(per_unit("0.0025").at_most("3.00")));
    let story = ["1499", "0.5", "0.5"]
        .into_iter()
        .fold(Simulation::new().contract(plan), |story, quantity| story.event("2026-01-10", "used", quantity));
    let billed = bill(&story, "2026-01-10");
    let expected = [
        "flat 9.99",
        "once 100.00",
        // 10.00 + 45.00 + 2.00 + 5.00.
        "graduated 62.00",
        "volume 15.00",
        "package 10.00",
        // 1500 × 0.0025.
        "per-unit 3.75",
        // 2.5 % of 1500, and three events.
        "percentage 38.40",
        // 500 × 0.0025, half a cent rounded up.
        "included 1.25",
        "at-least 5.00",
        "at-most 3.00",
    ];
    assert_eq!(billed.document("UB-INV-1").amounts(), expected);
    assert_eq!(billed.document("UB-INV-1").total().to_string(), "248.39 EUR");
}

#[test]
fn quantities_become_one_as_the_usage_product_says() {
    let plan =
        [("sum", Aggregation::Sum), ("count", Aggregation::Count), ("max", Aggregation::Max), ("latest", Aggregation::Latest)]
            .into_iter()
            .fold(terms("2026-01-01", "2026-12-31"), |plan, (name, aggregation)| {
                plan.usage(name, per_unit("1").aggregated(aggregation))
            });
    let mut story = Simulation::new().contract(plan);
    // The third and the fourth event have the latest timestamp. The one that arrived last counts.
    for (quantity, minute) in [(7, "01"), (9, "02"), (5, "05"), (3, "05"), (8, "04")] {
        for usage in ["sum", "count", "max", "latest"] {
            story = story.late_event(format!("2026-01-10T10:{minute}:00Z"), usage, quantity, "2026-01-10");
        }
    }
    let amounts = bill(&story, "2026-01-10").document("UB-INV-1").amounts();
    assert_eq!(amounts, ["sum 32.00", "count 5.00", "max 9.00", "latest 3.00"]);
}

#[test]
fn typed_values_stand_beside_text() {
    let typed = fee().customer(customer().tax(Percentage::parse("19").expect("a rate")));
    let text = fee().customer(customer().tax("19"));
    assert_eq!(bill(&typed, "2026-02-01").overview(), bill(&text, "2026-02-01").overview());
}

#[test]
fn steps_happen_in_the_order_of_time() {
    let story = fee()
        .on("2026-03-10")
        .edit(|contract| contract.product("plan", |plan| plan.discount(50)))
        .on("2026-01-10")
        .edit(|contract| contract.product("plan", |plan| plan.discount(10)));
    let expected =
        ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 90.00", "UB-INV-3 2026-03-01 90.00", "UB-INV-4 2026-04-01 50.00"];
    assert_eq!(bill(&story, "2026-05-01").overview(), expected);
}

#[test]
fn what_cannot_be_read_or_found_is_refused() {
    let refusal = |story: Simulation| story.until("2026-02-01").expect_err("a refusal");
    for (refusal, field, code) in [
        (refusal(fee().on("2026-01-10").void("UB-INV-9")), "document", "unknown_reference"),
        (refusal(fee().on("2026-01-10").delete_event("none")), "event", "unknown_reference"),
        (refusal(fee().on("2026-01-10").delete_charge("none")), "charge", "unknown_reference"),
        (refusal(fee().on("2026-01-10").reverse("none")), "payment", "unknown_reference"),
        (refusal(fee().on("yesterday").run()), "on", "invalid_format"),
        (refusal(fee().event("2026-01-10", "calls", "many")), "quantity", "invalid_format"),
        (refusal(fee().contract(terms("2026-01-01", "soon"))), "billing_end_date", "invalid_format"),
        (refusal(fee().entity(entity("default").prefix("u b"))), "number_prefix", "invalid_format"),
    ] {
        let Refusal::Invalid(violations) = &refusal else { panic!("{refusal:?}") };
        let found: Vec<(String, &str)> = violations.iter().map(|violation| (violation.path.join("/"), violation.code)).collect();
        assert_eq!(found, [(field.to_owned(), code)]);
    }
}

#[test]
fn a_step_that_is_refused_otherwise_than_expected_is_refused() {
    let resumed = || fee().on("2026-01-10").resume();
    assert_eq!(resumed().until("2026-02-01").expect_err("a refusal").codes(), ["contract_over"]);
    assert_eq!(resumed().refused("product_over").until("2026-02-01").expect_err("a refusal").codes(), ["contract_over"]);
    assert!(resumed().refused("contract_over").until("2026-02-01").is_ok());
    let done = fee().on("2026-01-10").cancel().refused("contract_over");
    assert_eq!(done.until("2026-02-01").expect_err("a refusal").codes(), ["not_refused"]);
}

#[test]
fn money_comes_in_and_goes_out() {
    let issued = fee().on("2026-02-02").pay("UB-INV-1", "100.01").refused("above_amount_due");
    let paid = issued.on("2026-02-02").overpay("UB-INV-1", "130.00").named("first");
    let at = |story: &Simulation, day: &str| {
        let bill = bill(story, day);
        (bill.amount_due().to_string(), bill.unapplied().to_string())
    };
    assert_eq!(at(&paid, "2026-02-02"), ("0.00 EUR".to_owned(), "30.00 EUR".to_owned()));
    assert_eq!(bill(&paid, "2026-02-02").document("UB-INV-1").state(), Ok(DocumentState::Paid));
    // The balance pays the next issued document.
    assert_eq!(at(&paid, "2026-03-01"), ("70.00 EUR".to_owned(), "0.00 EUR".to_owned()));
    let moved = paid.clone().on("2026-03-02").unapply("first", "UB-INV-2").on("2026-03-02").apply("first", "UB-INV-2", "10.00");
    assert_eq!(at(&moved, "2026-03-02"), ("90.00 EUR".to_owned(), "20.00 EUR".to_owned()));
    let refunded = paid.clone().on("2026-02-02").refund("first", "30.00").named("back");
    assert_eq!(at(&refunded, "2026-03-01"), ("100.00 EUR".to_owned(), "0.00 EUR".to_owned()));
    let restored = refunded.on("2026-02-03").reverse("first").refused("payment_refunded").on("2026-02-03").reverse("back");
    assert_eq!(at(&restored, "2026-02-03"), ("0.00 EUR".to_owned(), "30.00 EUR".to_owned()));
    let bounced = restored.on("2026-02-03").reverse("first");
    assert_eq!(at(&bounced, "2026-02-03"), ("100.00 EUR".to_owned(), "0.00 EUR".to_owned()));

    let written_off = bounced.on("2026-02-04").write_off("UB-INV-1");
    assert_eq!(at(&written_off, "2026-02-04"), ("0.00 EUR".to_owned(), "0.00 EUR".to_owned()));
    assert_eq!(bill(&written_off, "2026-02-04").document("UB-INV-1").state(), Ok(DocumentState::Uncollectible));
    assert_eq!(bill(&written_off, "2026-02-04").document("UB-INV-1").written_off().map(|amount| amount.minor()), Ok(10000));
    let undone = written_off.on("2026-02-05").undo_write_off("UB-INV-1");
    assert_eq!(at(&undone, "2026-02-05"), ("100.00 EUR".to_owned(), "0.00 EUR".to_owned()));
}

#[test]
fn balance_that_is_kept_pays_nothing_by_itself() {
    let story = fee().customer(customer().keep_balance()).on("2026-02-02").overpay("UB-INV-1", "130.00");
    let billed = bill(&story, "2026-03-01");
    assert_eq!((billed.amount_due().minor(), billed.unapplied().minor()), (10000, 3000));
}

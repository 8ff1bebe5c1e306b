//! Tests of the calculations that explain each line's amount, and of what is due at the issue.

use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{
    Prices, SimulatedDocument, Simulation, charge, customer, flat, graduated, item, package, per_unit, percentage, terms, volume,
};

use super::{api_plan, bill, fee};

/// Returns the printed steps of a line.
#[track_caller]
fn steps(document: &SimulatedDocument, line: &str) -> Vec<String> {
    let line = document.line(line).details();
    line.check(document.kind()).expect("the factors give the amount");
    let calculation = line.calculation.as_ref().expect("a calculation");
    calculation.steps(line.amount.currency()).iter().map(|step| step.in_english("")).collect()
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}

/// Returns the amount and the steps of January's usage.
fn of_usage(price: Prices, quantity: i32) -> (String, Vec<String>) {
    let story = Simulation::new().contract(terms("2026-01-01", "2026-01-31").usage("calls", price)).event(
        "2026-01-20",
        "calls",
        quantity,
    );
    let billed = bill(&story, "2026-02-10");
    let invoice = billed.document("UB-INV-1");
    (invoice.line("calls").amount().to_decimal().to_string(), steps(invoice, "calls"))
}

#[test]
fn every_price_model_of_usage_prints_the_factors_of_its_amount() {
    let tiers = [(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")];
    let rows: [(Prices, i32, &str, &[&str]); 10] = [
        (per_unit("0.0025"), 12_345, "30.86", &["12,345 × 0.0025 = 30.8625"]),
        (
            per_unit("0.0006").included(10_000),
            273_677,
            "158.21",
            &["273,677, 10,000 included, 263,677 billed", "263,677 × 0.0006 = 158.2062"],
        ),
        (graduated(tiers), 1500, "60.00", &["100 × 0.10 = 10", "900 × 0.05 = 45", "500 × 0.01 = 5"]),
        (
            graduated([(Some("100000"), "0.002"), (None, "0.0012")]).included(10_000),
            216_834,
            "328.20",
            &["216,834, 10,000 included, 206,834 billed", "100,000 × 0.002 = 200", "106,834 × 0.0012 = 128.2008"],
        ),
        (volume(tiers), 1500, "15.00", &["1,500 × 0.01 = 15"]),
        (graduated([(Some("10"), "1", "5"), (None, "0.5", "7")]), 12, "23.00", &["10 × 1 + 5 = 15", "2 × 0.5 + 7 = 8"]),
        (package(1000, "35.00"), 2001, "105.00", &["3 × 1,000 at 35.00 = 105"]),
        (percentage("2.9", "0.30"), 1000, "29.30", &["2.9 % of 1,000 + 1 × 0.30 = 29.3"]),
        (per_unit("0.10").at_least("50"), 100, "50.00", &["100 × 0.10 = 10", "minimum 50: 50.00"]),
        (per_unit("1").at_most("50"), 60, "50.00", &["60 × 1 = 60", "maximum 50: 50.00"]),
    ];
    for (price, quantity, amount, expected) in rows {
        let (billed, steps) = of_usage(price, quantity);
        assert_eq!((billed.as_str(), steps.as_slice()), (amount, owned(expected).as_slice()), "{quantity}");
    }
}

#[test]
fn a_minimum_of_a_partial_period_prints_its_days() {
    let story = Simulation::new().contract(terms("2026-01-17", "2026-02-28").usage("calls", per_unit("1").at_least("31"))).event(
        "2026-01-20",
        "calls",
        1,
    );
    let invoice = bill(&story, "2026-02-10");
    let invoice = invoice.document("UB-INV-1");
    assert_eq!(steps(invoice, "calls"), ["1 × 1 = 1", "minimum 31, 15 of 31 days: 15.00"]);
}

#[test]
fn fixed_items_print_their_quantities_and_days() {
    let seats = |first: &'static str, price: Prices, quantities: &[(&'static str, i32)]| {
        let item = quantities.iter().fold(item("seats"), |item, (from, quantity)| item.quantity_from(*from, *quantity));
        let story = Simulation::new().contract(terms(first, "2026-10-31").fixed("seats", price).line_item(item));
        let billed = bill(&story, "2026-11-01");
        let invoice = billed.document("UB-INV-1");
        (invoice.line("seats").amount().to_decimal().to_string(), steps(invoice, "seats"))
    };
    let rows: [(_, _, &str, &[&str]); 7] = [
        (("2026-10-01", flat("12.00")), &[("2026-10-01", 5)][..], "60.00", &["5 × 12.00 = 60"]),
        (("2026-10-08", flat("31.00")), &[][..], "24.00", &["1 × 31.00 = 31", "24 of 31 days"]),
        (
            ("2026-10-11", per_unit("31.00")),
            &[("2026-10-11", 2), ("2026-10-15", 5), ("2026-10-21", 1)][..],
            "49.00",
            &[
                "2 × 31.00, 2026-10-11 to 2026-10-14, 4 of 31 days: 8.00",
                "5 × 31.00, 2026-10-15 to 2026-10-20, 6 of 31 days: 30.00",
                "1 × 31.00, 2026-10-21 to 2026-10-31, 11 of 31 days: 11.00",
            ],
        ),
        // The parts are rounded by themselves, if they add up to the amount: 13.548, 41.806 and 27.871.
        (
            ("2026-10-08", flat("12.00")),
            &[("2026-10-08", 5), ("2026-10-15", 12), ("2026-10-24", 9)][..],
            "83.23",
            &[
                "5 × 12.00, 2026-10-08 to 2026-10-14, 7 of 31 days: 13.55",
                "12 × 12.00, 2026-10-15 to 2026-10-23, 9 of 31 days: 41.81",
                "9 × 12.00, 2026-10-24 to 2026-10-31, 8 of 31 days: 27.87",
            ],
        ),
        // Else they are differences of rounded sums: 3.23, 12.90 and 16.45.
        (
            ("2026-10-01", flat("10.00")),
            &[("2026-10-01", 1), ("2026-10-11", 3), ("2026-10-21", 1)][..],
            "16.45",
            &[
                "1 × 10.00, 2026-10-01 to 2026-10-10, 10 of 31 days: 3.23",
                "3 × 10.00, 2026-10-11 to 2026-10-20, 10 of 31 days: 9.67",
                "1 × 10.00, 2026-10-21 to 2026-10-31, 11 of 31 days: 3.55",
            ],
        ),
        (
            ("2026-10-01", flat("10.00")),
            &[("2026-10-01", 1), ("2026-10-11", 2), ("2026-10-21", 1)][..],
            "13.23",
            &[
                "1 × 10.00, 2026-10-01 to 2026-10-10, 10 of 31 days: 3.23",
                "2 × 10.00, 2026-10-11 to 2026-10-20, 10 of 31 days: 6.45",
                "1 × 10.00, 2026-10-21 to 2026-10-31, 11 of 31 days: 3.55",
            ],
        ),
        (
            ("2026-10-01", package(10, "31.00")),
            &[("2026-10-01", 10), ("2026-10-16", 11)][..],
            "47.00",
            &[
                "10, 1 × 10 at 31.00 = 31, 2026-10-01 to 2026-10-15, 15 of 31 days: 15.00",
                "11, 2 × 10 at 31.00 = 62, 2026-10-16 to 2026-10-31, 16 of 31 days: 32.00",
            ],
        ),
    ];
    for ((first, price), quantities, amount, expected) in rows {
        let (billed, steps) = seats(first, price, quantities);
        assert_eq!((billed.as_str(), steps.as_slice()), (amount, owned(expected).as_slice()), "{quantities:?}");
    }
}

#[test]
fn the_line_of_a_minimum_fee_prints_what_counts_for_it() {
    let story = Simulation::new().contract(fee("plan", "49.00").minimum_fee("100.00"));
    let invoice = bill(&story, "2026-02-01");
    let invoice = invoice.document("UB-INV-1");
    assert_eq!(steps(invoice, "minimum fee"), ["minimum fee 100.00 − 49.00 billed = 51.00"]);
}

#[test]
fn a_debit_of_prepaid_usage_prints_what_was_billed_in_advance() {
    let calls = per_unit("0.0006").prepaid(1_000_000);
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").usage("calls", calls).payment_time(PaymentTime::BeforeUse))
        .event("2026-01-20", "calls", 273_677);
    let used = bill(&story, "2026-01-20");
    let in_advance = ["1,000,000 prepaid, 1,000,000 billed", "1,000,000 × 0.0006 = 600"];
    assert_eq!(steps(used.document("UB-INV-1"), "calls"), in_advance);
    let expected = [
        "273,677, 1,000,000 prepaid, 1,000,000 billed",
        "1,000,000 × 0.0006 = 600",
        "now 600.00, billed on UB-INV-1 600.00, difference 0.00",
    ];
    assert_eq!(steps(used.document("UB-DBT-1"), "calls"), expected);
    let issued = bill(&story, "2026-02-01");
    assert_eq!(steps(issued.document("UB-DBT-1"), "calls"), expected, "the issued debit prints what its draft does");
}

/// Returns the API plan for January with 1,500 calls. Its invoice is issued on 1 February.
fn january() -> Simulation {
    Simulation::new()
        .customer(customer().tax(19))
        .contract(api_plan(terms("2026-01-01", "2026-02-28")))
        .event("2026-01-20", "calls", 1500)
        .named("first")
}

#[test]
fn an_adjustment_prints_the_price_now_and_what_was_billed() {
    let late = bill(&january().late_event("2026-01-20", "calls", 500, "2026-02-10"), "2026-02-11");
    let debit =
        ["100 × 0.10 = 10", "900 × 0.05 = 45", "1,000 × 0.01 = 10", "now 65.00, billed on UB-INV-1 60.00, difference 5.00"];
    assert_eq!(steps(late.document("UB-DBT-1"), "calls"), debit);
    let previously = late.document("UB-DBT-1").line("calls").details().calculation.as_ref().and_then(|of| of.previously.clone());
    assert_eq!(previously.and_then(|previously| previously.quantity).map(|of| of.to_string()).as_deref(), Some("1500"));

    let less = bill(&january().on("2026-02-10").update_event("first", |event| event.quantity(1000)), "2026-02-11");
    let credit = ["100 × 0.10 = 10", "900 × 0.05 = 45", "now 55.00, billed on UB-INV-1 60.00, difference -5.00"];
    assert_eq!(steps(less.document("UB-CRD-1"), "calls"), credit);

    let deleted = bill(&january().on("2026-02-10").delete_event("first"), "2026-02-11");
    assert_eq!(steps(deleted.document("UB-CRD-1"), "calls"), ["now 0.00, billed on UB-INV-1 60.00, difference -60.00"]);
}

#[test]
fn a_change_of_the_tax_takes_everything_back_and_bills_it_anew() {
    let story = Simulation::new()
        .contract(fee("plan", "49.00").tax(19))
        .on("2026-02-10")
        .edit(|contract| contract.effective_from("2026-01-01").product("plan", |plan| plan.tax(7)));
    let edited = bill(&story, "2026-02-10");
    assert_eq!(steps(edited.document("UB-CRD-1"), "fee"), ["now 0.00, billed on UB-INV-1 49.00, difference -49.00"]);
    assert_eq!(steps(edited.document("UB-DBT-1"), "fee"), ["1 × 49.00 = 49"]);
}

#[test]
fn an_invoice_of_one_event_prints_the_step_of_the_price() {
    let story = Simulation::new()
        .contract(api_plan(terms("2026-01-01", "2026-02-28")).net_terms(NetTerms::DueUponUsage))
        .event("2026-01-10", "calls", 60)
        .event("2026-01-10", "calls", 60);
    let used = bill(&story, "2026-02-01");
    assert_eq!(steps(used.document("UB-INV-2"), "calls"), ["60 × 0.10 = 6"]);
    let second = ["100 × 0.10 = 10", "20 × 0.05 = 1", "now 11.00, billed on UB-INV-2 6.00, difference 5.00"];
    assert_eq!(steps(used.document("UB-INV-3"), "calls"), second);
    let parent = ["100 × 0.10 = 10", "20 × 0.05 = 1", "now 11.00, billed on UB-INV-2, UB-INV-3 11.00, difference 0.00"];
    assert_eq!(steps(used.document("UB-INV-1"), "calls"), parent);
}

#[test]
fn a_charge_prints_its_price_and_how_much_it_could_take() {
    let story = Simulation::new()
        .contract(fee("plan", "49.00").usage("calls", per_unit("0.04")))
        .event("2026-01-04", "calls", 1500)
        .named("calls")
        .on("2026-01-05")
        .charge(charge("hours", "2026-01-10", "0.015").quantity("2.5"))
        .on("2026-01-05")
        .charge(charge("back", "2026-01-04", "-80"));
    let drafted = bill(&story, "2026-01-05");
    let draft = drafted.document("UB-INV-1");
    assert_eq!(steps(draft, "charge:hours"), ["2.5 × 0.015 = 0.0375"]);
    assert_eq!(steps(draft, "charge:back"), ["1 × -80 = -80"]);
    let story = story.on("2026-01-06").update_event("calls", |event| event.quantity(0));
    let lowered = bill(&story, "2026-01-06");
    let steps = steps(lowered.document("UB-INV-1"), "charge:back");
    assert_eq!(steps, ["1 × -80 = -80", "minimum -49.04: -49.04"], "no period costs less than nothing");
}

#[test]
fn what_was_applied_at_the_issue_is_frozen() {
    let applied = |document: &SimulatedDocument| {
        let at_issue = document.at_issue().expect("an issued document");
        let applied: Vec<String> = at_issue
            .applied
            .iter()
            .map(|applied| format!("{} {}", applied.document_number.as_ref().expect("a document"), applied.amount))
            .collect();
        (applied, at_issue.due.to_string())
    };
    let story = january().on("2026-02-05").overpay("UB-INV-1", "229.71").named("paid");
    let paid = bill(&story, "2026-03-01");
    assert_eq!(applied(paid.document("UB-INV-1")), (vec![], "129.71 EUR".to_owned()), "the payment is later");
    // 49.00 and 19 %, from the surplus of 100.00.
    assert_eq!(applied(paid.document("UB-INV-2")), (vec!["UB-INV-1 58.31 EUR".to_owned()], "0.00 EUR".to_owned()));

    let story = january().on("2026-02-10").update_event("first", |event| event.quantity(1000));
    let credited = bill(&story, "2026-02-11");
    assert_eq!(applied(credited.document("UB-CRD-1")), (vec!["UB-INV-1 5.95 EUR".to_owned()], "0.00 EUR".to_owned()));
}

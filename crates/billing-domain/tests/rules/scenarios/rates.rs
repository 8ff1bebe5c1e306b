//! Tests of discount and tax of a document family, changes of rates, and documents due after an entity changes (billing
//! rules 2, 5, 7).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Simulation, Terms, customer, entity, per_unit, pricing, terms};

use super::{bill, fee, in_short, overview};

fn january(pricing: &str) -> Terms {
    terms("2026-01-01", "2026-01-31").pricing(pricing)
}

/// Returns a contract with a fee for January in advance at 19 %.
fn in_advance(amount: &str) -> Simulation {
    Simulation::new().contract(january("p").fixed("fee", amount).payment_time(PaymentTime::BeforeUse).tax(19))
}

/// Changes the tax from the start of the current period.
fn tax(story: Simulation, day: &str, percent: i32) -> Simulation {
    story.on(day).edit(|contract| contract.include_current_invoice().product("p", |p| p.tax(percent)))
}

fn sums(story: &Simulation, day: &str) -> [String; 4] {
    bill(story, day).sums()
}

#[test]
fn an_entity_that_moves_to_another_time_zone_loses_no_invoice() {
    let story =
        Simulation::new().contract(fee("p", "100.00")).on("2026-01-10").edit_entity(entity("default").time_zone("Europe/Berlin"));
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 100.00"]);
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

#[test]
fn a_shorter_grace_issues_what_it_makes_due() {
    let story = Simulation::new().entity(entity("default").grace_hours(720)).contract(fee("p", "100.00"));
    assert_eq!(overview(&story, "2026-02-10"), [""; 0], "not before 3 March");
    let story = story.on("2026-02-10").edit_entity(entity("default").grace_hours(2));
    assert_eq!(overview(&story, "2026-02-10"), ["UB-INV-1 2026-01-01 100.00"]);
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

/// Issues a number of children of one cent each with these terms, and their parent. Returns the sums.
#[track_caller]
fn children_of_a_cent(count: usize, terms: Terms) -> [String; 4] {
    let contract = Simulation::new().contract(terms.usage("calls", per_unit("0.01")).net_terms(NetTerms::DueUponUsage));
    let story = (0..count).fold(contract, |story, _| story.event("2026-01-05", "calls", 1));
    let billed = bill(&story, "2026-02-01");
    assert_eq!(billed.documents().len(), count + 1);
    billed.sums()
}

#[test]
fn a_discount_on_a_thousand_children_of_a_cent_is_that_of_their_sum() {
    assert_eq!(children_of_a_cent(1000, january("p").discount(50)), ["10.00", "5.00", "0.00", "5.00"]);
}

#[test]
fn a_discount_of_49_percent_on_a_hundred_children_of_a_cent_is_49_cents() {
    assert_eq!(children_of_a_cent(100, january("p").discount(49)), ["1.00", "0.49", "0.00", "0.51"]);
}

#[test]
fn a_tax_on_a_thousand_children_of_a_cent_is_that_of_their_sum() {
    assert_eq!(children_of_a_cent(1000, january("p").tax(19)), ["10.00", "0.00", "1.90", "11.90"]);
}

#[test]
fn the_tax_of_small_adjustments_is_that_of_their_sum() {
    let contract = Simulation::new().contract(january("p").usage("calls", per_unit("0.10")).tax(19));
    let story = contract.event("2026-01-05", "calls", 1);
    assert_eq!(sums(&story, "2026-02-01"), ["0.10", "0.00", "0.02", "0.12"]);
    let story = (1..=5).fold(story, |story, no| {
        story.late_event("2026-01-06", "calls", 1, "2026-02-01").on("2026-02-01").issue(&format!("UB-DBT-{no}"))
    });
    // 19 % of 0.60 is 0.114; six times 0.019, each rounded, would be 0.12.
    assert_eq!(overview(&story, "2026-02-01").len(), 6);
    assert_eq!(sums(&story, "2026-02-01"), ["0.60", "0.00", "0.11", "0.71"]);
}

#[test]
fn an_invoice_whose_tax_changed_twice_is_owed_at_the_last() {
    let story = tax(in_advance("31.00"), "2026-01-05", 7);
    // 31.00 at 7 % is 2.17.
    assert_eq!(sums(&story, "2026-01-05"), ["31.00", "0.00", "2.17", "33.17"]);
    assert_eq!(sums(&tax(story, "2026-01-05", 0), "2026-01-05"), ["31.00", "0.00", "0.00", "31.00"]);
}

#[test]
fn a_tax_that_changed_and_went_back_is_owed_as_if_nothing_was() {
    let story = tax(tax(in_advance("100.00"), "2026-01-05", 7), "2026-01-05", 19);
    assert_eq!(sums(&story, "2026-01-05"), ["100.00", "0.00", "19.00", "119.00"]);
}

#[test]
fn a_cancel_after_a_change_of_tax_gives_back_at_the_present_tax() {
    let story = tax(in_advance("31.00"), "2026-01-05", 7).on("2026-01-10").cancel_today();
    // Ten of 31 days.
    assert_eq!(sums(&story, "2026-01-10"), ["10.00", "0.00", "0.70", "10.70"]);
}

/// Returns terms with a fee of 31.00 and calls at 0.10 in January, paid in advance at 19 %.
fn fee_and_calls() -> Terms {
    january("p").fixed("fee", "31.00").usage("calls", per_unit("0.10")).payment_time(PaymentTime::BeforeUse).tax(19)
}

#[test]
fn late_usage_after_a_change_of_tax_stands_at_the_present_tax() {
    let story = Simulation::new().contract(fee_and_calls()).event("2026-01-05", "calls", 100);
    let story = tax(story, "2026-01-05", 7);
    // 31.00 and 10.00 at 7 %.
    assert_eq!(sums(&story, "2026-02-01"), ["41.00", "0.00", "2.87", "43.87"]);
    let story = story.late_event("2026-01-06", "calls", 100, "2026-02-01");
    assert_eq!(sums(&story, "2026-02-02"), ["51.00", "0.00", "3.57", "54.57"]);
}

#[test]
fn children_that_were_issued_before_a_change_of_tax_follow_it() {
    let contract = january("p").usage("calls", per_unit("0.10")).net_terms(NetTerms::DueUponUsage).tax(19);
    let story = Simulation::new().contract(contract).event("2026-01-05", "calls", 100);
    assert_eq!(sums(&story, "2026-01-05"), ["10.00", "0.00", "1.90", "11.90"]);
    assert_eq!(sums(&tax(story, "2026-01-10", 7), "2026-02-01"), ["10.00", "0.00", "0.70", "10.70"]);
}

#[test]
fn a_usage_debit_that_was_issued_before_its_invoice_follows_a_change_of_tax() {
    let story = Simulation::new()
        .contract(fee_and_calls())
        .without_runs()
        .event("2026-01-05", "calls", 100)
        .named("event")
        .on("2026-01-05")
        .issue("UB-DBT-1");
    assert_eq!(bill(&story, "2026-01-05").document_of_event("event").number.to_string(), "UB-DBT-1");
    let story = tax(story, "2026-01-05", 7).on("2026-01-05").run().on("2026-02-01").run();
    assert_eq!(sums(&story, "2026-02-01"), ["41.00", "0.00", "2.87", "43.87"]);
}

#[test]
fn a_changed_discount_is_taken_back_at_the_old_and_given_at_the_new() {
    let mut story = in_advance("100.00");
    for (percent, expected) in [
        (10, ["100.00", "10.00", "17.10", "107.10"]),
        (25, ["100.00", "25.00", "14.25", "89.25"]),
        (0, ["100.00", "0.00", "19.00", "119.00"]),
    ] {
        story = story.on("2026-01-05").edit(|contract| contract.include_current_invoice().product("p", |p| p.discount(percent)));
        assert_eq!(sums(&story, "2026-01-05"), expected, "{percent} %");
    }
}

#[test]
fn a_note_leaves_the_tax_of_an_issued_invoice_whatever_the_customers_default() {
    let story = Simulation::new()
        .customer(customer().tax(19))
        .contract(january("p").fixed("fee", "100.00").payment_time(PaymentTime::BeforeUse))
        .on("2026-01-01")
        .edit_customer(customer().tax(7))
        .on("2026-01-01")
        .edit(|contract| contract.include_current_invoice().product("p", |p| p.note("Thank you")));
    assert_eq!(overview(&story, "2026-01-01"), ["UB-INV-1 2026-01-01 119.00"]);
}

#[test]
fn a_family_keeps_the_default_tax_of_its_first_document() {
    let story = Simulation::new()
        .customer(customer().tax(19))
        .contract(january("p").usage("calls", per_unit("0.10")))
        .event("2026-01-05", "calls", 100)
        .on("2026-02-01")
        .edit_customer(customer().tax(7))
        .late_event("2026-01-06", "calls", 100, "2026-02-01");
    assert_eq!(overview(&story, "2026-02-02"), ["UB-DBT-1 2026-01-01 11.90", "UB-INV-1 2026-01-01 11.90"]);
}

#[test]
fn a_default_tax_is_that_of_the_issue_whether_usage_came_or_not() {
    let contract = january("p").fixed("fee", "100.00").usage("calls", per_unit("0.10"));
    let quiet = Simulation::new().customer(customer().tax(19)).contract(contract);
    let used = quiet.clone().event("2026-01-05", "calls", 100);
    for (story, expected) in [(quiet, ["100.00", "0.00", "7.00", "107.00"]), (used, ["110.00", "0.00", "7.70", "117.70"])] {
        assert_eq!(sums(&story.on("2026-01-05").edit_customer(customer().tax(7)), "2026-02-01"), expected);
    }
}

/// Returns a contract with a fee of 100.00 and calls at 0.10, billed during use at 19 %. January has 5,000 calls.
fn during_use() -> Simulation {
    let terms = terms("2026-01-01", "2026-02-28").pricing("p").fixed("fee", "100.00").usage("calls", per_unit("0.10"));
    let story = Simulation::new().contract(terms.payment_time(PaymentTime::DuringUse).tax(19));
    story.event("2026-01-05", "calls", 5000)
}

#[test]
fn during_use_bills_usage_at_the_rates_of_its_own_period() {
    let story = during_use().on("2026-01-20").edit(|contract| contract.product("p", |p| p.discount(50).tax(7)));
    let billed = bill(&story, "2026-02-01");
    // January's 500.00 at 19 %, and half of February's 100.00 at 7 %.
    let invoice = billed.document("UB-INV-2");
    assert_eq!(invoice.totals(), ["600.00", "50.00", "98.50", "648.50"]);
    assert_eq!([invoice.tax_at("7"), invoice.tax_at("19")].map(|tax| tax.base.to_string()), ["50.00 EUR", "500.00 EUR"]);
    let products = invoice.content.products.iter();
    let mut products: Vec<[String; 3]> =
        products.map(|of| [of.sub_total, of.discount, of.net].map(|amount| amount.to_decimal().to_string())).collect();
    products.sort();
    assert_eq!(products, [["100.00", "50.00", "50.00"], ["500.00", "0.00", "500.00"]]);
    let next = billed.preview_next().expect("a preview");
    assert_eq!(in_short(&next), ["INVOICE 2026-02-01 0.00"], "the closing invoice");
}

#[test]
fn during_use_owes_the_same_whatever_day_the_rates_were_agreed() {
    let story =
        during_use().on("2026-02-10").edit(|contract| contract.include_current_invoice().product("p", |p| p.discount(50).tax(7)));
    // 119.00 for January's fee, and 648.50 as after an edit in January.
    assert_eq!(sums(&story, "2026-03-01"), ["700.00", "50.00", "117.50", "767.50"]);
}

#[test]
fn no_invoice_is_below_zero_when_the_price_is_cut_after_its_children() {
    let contract = january("p").fixed("fee", "12.00").usage("calls", per_unit("1.00")).net_terms(NetTerms::DueUponUsage);
    let story = Simulation::new()
        .contract(contract)
        .event("2026-01-05", "calls", 100)
        .on("2026-01-10")
        .edit_pricing(pricing("p").fixed("fee", "12.00").usage("calls", per_unit("0.20")))
        .on("2026-01-10")
        .edit(|contract| contract.include_current_invoice().product("p", |p| p.reprice()));
    let billed = bill(&story, "2026-02-01");
    // 12.00 and 20.00 are owed. The child billed 100.00, and 80.00 are credited.
    assert_eq!(billed.sums()[3], "32.00");
    let expected = ["UB-CRD-1 2026-01-01 80.00", "UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 100.00"];
    assert_eq!(billed.overview(), expected);
}

#[test]
fn an_event_that_costs_nothing_makes_no_invoice_of_its_own() {
    let contract = january("p").fixed("fee", "12.00").usage("calls", per_unit("0.10").included(100));
    let mut story = Simulation::new().contract(contract.net_terms(NetTerms::DueUponUsage));
    for (name, number) in [("first", "UB-INV-1"), ("second", "UB-INV-1"), ("third", "UB-INV-2")] {
        story = story.event("2026-01-05", "calls", 50).named(name);
        let billed = bill(&story, "2026-01-05");
        assert_eq!(billed.document_of_event(name).number.to_string(), number, "the period's invoice, or 50 calls at 0.10");
    }
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 5.00"]);
}

#[test]
fn before_use_due_upon_usage_spends_no_debit_number() {
    let terms = terms("2026-01-01", "2026-02-28").pricing("p").fixed("fee", "12.00").usage("calls", per_unit("0.10"));
    let story = Simulation::new()
        .contract(terms.payment_time(PaymentTime::BeforeUse).net_terms(NetTerms::DueUponUsage))
        .event("2026-01-05", "calls", 100)
        .named("event");
    let billed = bill(&story, "2026-01-05");
    let child = billed.document_of_event("event");
    assert_eq!(child.to_string(), "UB-INV-2 ISSUED 2026-01-01…2026-01-31: 10.00 EUR");
    assert_eq!(child.parent().as_deref(), Some("UB-INV-1"));
    let expected = ["UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 10.00", "UB-INV-3 2026-02-01 12.00"];
    assert_eq!(overview(&story, "2026-03-01"), expected, "no debit exists, void or not");
}

#[test]
fn a_minimum_fee_paid_before_use_is_a_debit_in_current_and_next() {
    let terms = terms("2026-01-01", "2026-02-28").fixed("fee", "10.00").usage("calls", per_unit("0.10")).minimum_fee("50.00");
    let story = Simulation::new().contract(terms.payment_time(PaymentTime::BeforeUse)).created("2026-01-01");
    let shown = bill(&story, "2026-01-01T12:00:00Z");
    let current = in_short(&shown.preview_current().expect("a preview"));
    assert_eq!(current, ["DEBIT 2026-01-01 40.00", "INVOICE 2026-01-01 10.00"]);
    let next = in_short(&shown.preview_next().expect("a preview"));
    assert_eq!(next, ["DEBIT 2026-02-01 40.00", "INVOICE 2026-02-01 10.00"]);
    let expected = ["UB-DBT-1 2026-01-01 40.00", "UB-INV-1 2026-01-01 10.00", "UB-INV-2 2026-02-01 10.00"];
    assert_eq!(overview(&story, "2026-02-01"), expected, "the previewed documents are issued");
}

//! Tests of edits from a past day on, planned edits, and the documents that they create (billing rules 7).

use billing_domain::contract::ContractState;
use billing_domain::simulate::{Simulation, flat, item, per_unit, pricing, product, terms};

use super::{FIRSTS, all_year, bill, fee, fee_of, overview, total, year};

/// Returns a contract with p at 100.00 and q at 20.00 for 2026. An edit on 10 June removes p.
fn p_is_taken_out_in_june() -> Simulation {
    Simulation::new()
        .contract(fee("p", "100.00"))
        .contract(fee("q", "20.00"))
        .on("2026-06-10")
        .edit(|contract| contract.products([product("q")]))
}

#[test]
fn a_product_put_back_in_its_month_goes_on_as_if_nothing_was() {
    let story = p_is_taken_out_in_june();
    assert_eq!(total(&story, "2026-06-10"), "600.00", "five months");
    let story = story.on("2026-06-10").edit(|contract| contract.products([all_year("p"), all_year("q")]));
    assert_eq!(total(&story, "2026-06-10"), "600.00", "nothing is billed again");
    assert_eq!(total(&story, FIRSTS[6]), "840.00", "seven months of 120.00");
}

#[test]
fn a_product_put_back_after_its_end_needs_a_date_and_bills_nothing_again() {
    let story = p_is_taken_out_in_june()
        .on("2026-07-10")
        .edit(|contract| contract.products([all_year("p"), all_year("q")]))
        .refused("product_over")
        .on("2026-07-10")
        .edit(|contract| contract.effective_from("2026-08-01").products([all_year("p"), all_year("q")]));
    assert_eq!(total(&story, "2026-07-10"), "720.00");
    assert_eq!(total(&story, "2026-08-01"), "740.00", "July bills only q");
    assert_eq!(total(&story, "2026-09-01"), "860.00", "August bills both products");
}

#[test]
fn an_ended_product_that_is_extended_bills_no_gap_unasked() {
    let extended = || [all_year("p"), all_year("q")];
    let as_it_was = [product("p").billed("2026-01-01", "2026-01-31"), all_year("q")];
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").pricing("p").fixed("fee", "100.00"))
        .contract(fee("q", "20.00"))
        .on("2026-03-10")
        .edit(|contract| contract.products(extended()))
        .refused("product_over")
        .on("2026-03-10")
        .edit(|contract| contract.products(as_it_was))
        .on("2026-03-10")
        .edit(|contract| contract.effective_from("2026-04-01").products(extended()));
    assert_eq!(total(&story, "2026-03-10"), "140.00");
    assert_eq!(total(&story, "2026-04-01"), "160.00", "February and March of p are not billed");
    assert_eq!(total(&story, "2026-05-01"), "280.00");
}

#[test]
fn a_completed_contract_may_be_edited_to_go_on() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").pricing("p").fixed("fee", "100.00"))
        .on("2026-02-10")
        .edit(|contract| contract.effective_from("2026-02-01").products([all_year("p")]));
    assert_eq!(bill(&story, "2026-02-09").state(), ContractState::Completed);
    let edited = bill(&story, "2026-02-10");
    assert_eq!(edited.state(), ContractState::Active);
    assert_eq!(edited.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-12-31"));
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

#[test]
fn the_order_of_products_decides_nothing() {
    let contract = Simulation::new().contract(fee("p", "100.00").discount(10));
    let this = || all_year("p");
    let next = || product("p").billed("2027-01-01", "2027-12-31");
    for list in [[this(), next()], [next(), this()]] {
        let story = contract.clone().on("2026-11-10").edit(|contract| contract.products(list));
        // Twelve months of 90.00, and January 2027.
        assert_eq!(bill(&story, "2027-02-01").sums(), ["1300.00", "120.00", "0.00", "1180.00"]);
    }
}

/// Returns a contract with a fee of 1,000.00 instead of 100.00 at 19 %, issued for January and February.
fn a_wrong_fee() -> Simulation {
    Simulation::new().contract(fee("p", "1000.00").tax(19))
}

#[test]
fn a_wrong_fee_is_put_right_from_january_by_one_edit() {
    let before = bill(&a_wrong_fee(), "2026-03-10");
    assert_eq!(before.overview(), ["UB-INV-1 2026-01-01 1190.00", "UB-INV-2 2026-02-01 1190.00"]);
    let right = |story: Simulation| {
        story.on("2026-03-10").edit(|contract| contract.effective_from("2026-01-01").product("p", fee_of("100.00")))
    };
    let story = right(a_wrong_fee());

    // A credit of 900.00 and its 19 % for each month, issued at once.
    let edited = bill(&story, "2026-03-10");
    for (credit, parent, period) in
        [("UB-CRD-1", "UB-INV-1", "2026-01-01…2026-01-31"), ("UB-CRD-2", "UB-INV-2", "2026-02-01…2026-02-28")]
    {
        let credit = edited.document(credit);
        assert_eq!(credit.totals(), ["900.00", "0.00", "171.00", "1071.00"]);
        assert_eq!(credit.issue_date().map(|day| day.to_string()).as_deref(), Some("2026-03-10"));
        assert_eq!((credit.parent().as_deref(), credit.period.to_string().as_str()), (Some(parent), period));
    }
    assert_eq!(edited.documents().len(), 4);
    assert!(edited.document("UB-INV-1").says_the_same_as(before.document("UB-INV-1")));

    let again = right(story);
    assert_eq!(bill(&again, "2026-03-10").documents().len(), 4, "repeating the edit has no effect");
    // March costs 119.00.
    assert_eq!(bill(&again, "2026-04-01").sums(), ["300.00", "0.00", "57.00", "357.00"]);
}

#[test]
fn a_changed_tax_from_a_past_date_is_a_credit_and_a_debit_of_each_month() {
    let story = a_wrong_fee().on("2026-03-10").edit(|contract| contract.effective_from("2026-02-01").product("p", |p| p.tax(7)));
    let expected = [
        "UB-CRD-1 2026-02-01 1190.00",
        "UB-DBT-1 2026-02-01 1070.00",
        "UB-INV-1 2026-01-01 1190.00",
        "UB-INV-2 2026-02-01 1190.00",
    ];
    assert_eq!(overview(&story, "2026-03-10"), expected, "January keeps its 19 %");
}

#[test]
fn late_usage_after_an_edit_from_a_past_date_stands_at_its_rates() {
    let story = Simulation::new()
        .contract(year("p").usage("calls", per_unit("0.10")).tax(19))
        .event("2026-01-05", "calls", 100)
        .on("2026-02-10")
        .edit(|contract| contract.effective_from("2026-01-01").product("p", |p| p.tax(7).discount(50)));
    // 10.00 less 50 %, with a tax of 0.35 at 7 %.
    assert_eq!(bill(&story, "2026-02-10").sums(), ["10.00", "5.00", "0.35", "5.35"]);
    let story = story.late_event("2026-01-06", "calls", 100, "2026-02-10");
    assert_eq!(bill(&story, "2026-02-11").sums(), ["20.00", "10.00", "0.70", "10.70"]);
}

#[test]
fn an_edit_gives_what_lowers_on_a_credit_and_what_raises_on_a_debit() {
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .contract(fee("q", "20.00"))
        .on("2026-02-10")
        .edit(|contract| contract.effective_from("2026-01-01").product("p", fee_of("90.00")).product("q", fee_of("25.00")));
    let expected = ["UB-CRD-1 2026-01-01 10.00", "UB-DBT-1 2026-01-01 5.00", "UB-INV-1 2026-01-01 120.00"];
    assert_eq!(overview(&story, "2026-02-10"), expected);
}

#[test]
fn a_line_item_billed_once_is_billed_when_an_edit_adds_it() {
    let story = Simulation::new()
        .contract(fee("p", "10.00").fixed("setup", flat("50.00").once()).line_item(item("fee")))
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.line_item(item("fee")).line_item(item("setup"))));
    let expected = ["UB-INV-1 2026-01-01 10.00", "UB-INV-2 2026-02-01 60.00", "UB-INV-3 2026-03-01 10.00"];
    assert_eq!(overview(&story, FIRSTS[2]), expected, "billed only in February, the first month with the line item");
}

#[test]
fn a_start_that_has_not_come_may_move() {
    let story = Simulation::new()
        .contract(terms("2026-03-01", "2026-12-31").pricing("p").fixed("fee", "100.00"))
        .on("2026-01-10")
        .edit(|contract| contract.products([product("p").billed("2026-02-01", "2026-12-31")]));
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-02-01 100.00"]);
}

#[test]
fn a_start_of_what_has_not_billed_may_move_into_the_past() {
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .on("2026-01-10")
        .edit(|contract| contract.products([product("p").billed("2025-12-01", "2026-12-31")]));
    assert_eq!(overview(&story, "2026-01-10"), ["UB-INV-1 2025-12-01 100.00"]);
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2025-12-01 100.00", "UB-INV-2 2026-01-01 100.00"]);
}

#[test]
fn a_start_that_has_billed_stays() {
    for start in ["2025-12-01", "2026-02-01", "2026-03-01"] {
        let story = Simulation::new()
            .contract(fee("p", "100.00"))
            .on("2026-02-01")
            .edit(|contract| contract.products([product("p").billed(start, "2026-12-31")]))
            .refused("already_started");
        assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 100.00"]);
    }
}

#[test]
fn a_product_added_from_the_past_shares_the_open_invoice_whether_usage_came_or_not() {
    let contract = Simulation::new().contract(fee("p", "10.00").usage("calls", per_unit("0.10")));
    let adds_q = |story: Simulation| story.on("2026-01-10").edit(|contract| contract.add_product(fee("q", "20.00")));

    let used = adds_q(contract.clone().event("2026-01-05", "calls", 10));
    assert_eq!(overview(&used, "2026-01-10"), ["UB-INV-1 2026-01-01 31.00 DRAFT"]);
    let current = bill(&used, "2026-01-10").preview_current().expect("a preview");
    assert_eq!(super::in_short(&current), ["UB-INV-1 2026-01-01 31.00 DRAFT"]);
    assert_eq!(overview(&used, "2026-02-01"), ["UB-INV-1 2026-01-01 31.00"]);
    assert_eq!(overview(&adds_q(contract), "2026-02-01"), ["UB-INV-1 2026-01-01 30.00"]);
}

/// Returns a contract with a fee of 100.00. The fee in the pricing is 150.00 since 10 January.
fn dearer_in_the_catalog() -> Simulation {
    Simulation::new().contract(fee("p", "100.00")).on("2026-01-10").edit_pricing(pricing("p").fixed("fee", "150.00"))
}

#[test]
fn an_edit_that_names_a_product_keeps_the_prices_agreed() {
    let story = dearer_in_the_catalog()
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.note("Thank you")))
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.line_item(item("fee"))))
        .on("2026-01-10")
        .edit(|contract| contract.products([all_year("p").discount(10)]));
    assert_eq!(overview(&story, FIRSTS[1]), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 90.00"]);
}

#[test]
fn repricing_takes_the_present_prices() {
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .on("2026-01-10")
        .edit_pricing(pricing("p").fixed("fee", "150.00").fixed("support", "5.00"))
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.reprice()));
    // The contract selected all line items, so all are selected again.
    assert_eq!(overview(&story, FIRSTS[1]), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 155.00"]);
}

#[test]
fn an_override_holds_and_null_takes_the_pricings_value() {
    let story = Simulation::new()
        .contract(fee("p", "100.00").line_item(item("fee").price("80.00")))
        .on("2026-01-10")
        .edit_pricing(pricing("p").fixed("fee", "150.00"))
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.note("Thank you")))
        .on(FIRSTS[1])
        .edit(|contract| contract.product("p", |p| p.line_item(item("fee").listed_price())));
    assert_eq!(overview(&story, FIRSTS[1]), ["UB-INV-1 2026-01-01 80.00", "UB-INV-2 2026-02-01 80.00"]);
    assert_eq!(overview(&story, FIRSTS[3])[2..], ["UB-INV-3 2026-03-01 80.00", "UB-INV-4 2026-04-01 150.00"]);
}

#[test]
fn a_planned_price_rise_stays_in_april_when_a_note_is_edited() {
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .on("2026-01-10")
        .edit(|contract| contract.effective_from("2026-04-01").product("p", fee_of("120.00")))
        .on("2026-03-10")
        .edit(|contract| contract.include_current_invoice().product("p", |p| p.note("Thank you")));
    let billed = bill(&story, FIRSTS[3]);
    let expected =
        ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00", "UB-INV-3 2026-03-01 100.00", "UB-INV-4 2026-04-01 120.00"];
    assert_eq!(billed.overview(), expected);
    for number in ["UB-INV-3", "UB-INV-4"] {
        assert_eq!(billed.document(number).note(), Some("Thank you"), "{number}");
    }
}

#[test]
fn a_planned_change_of_tax_stays_when_a_note_is_edited_now() {
    let story = Simulation::new()
        .contract(fee("p", "100.00").tax(19))
        .on("2026-01-10")
        .edit(|contract| contract.product("p", |p| p.tax(7)))
        .on("2026-01-10")
        .edit(|contract| contract.include_current_invoice().product("p", |p| p.note("Thank you")));
    let billed = bill(&story, FIRSTS[1]);
    assert_eq!(billed.overview(), ["UB-INV-1 2026-01-01 119.00", "UB-INV-2 2026-02-01 107.00"]);
    assert_eq!(billed.document("UB-INV-1").note(), Some("Thank you"));
}

#[test]
fn an_edited_product_that_is_not_left_alone_is_ambiguous() {
    let next = || product("p").billed("2027-01-01", "2027-12-31");
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .contract(terms("2027-01-01", "2027-12-31").pricing("p"))
        .on("2026-01-01")
        .edit(|contract| contract.products([product("p").discount(10)]))
        .refused("ambiguous_product")
        .on("2026-01-01")
        .edit(|contract| contract.products([next(), all_year("p").discount(10)]));
    assert_eq!(bill(&story, "2026-01-01").contract().version, 2);
}

#[test]
fn a_pricing_is_billed_once_on_a_day() {
    let twice = terms("2026-06-01", "2027-05-31").pricing("p");
    let refusal = Simulation::new().contract(fee("p", "100.00")).contract(twice).until("2026-01-01").expect_err("a refusal");
    assert_eq!(refusal.codes(), ["duplicate_product"]);
    let story = Simulation::new()
        .contract(fee("p", "100.00"))
        .on("2026-01-01")
        .edit(|contract| contract.products([all_year("p"), product("p").billed("2026-06-01", "2027-05-31")]))
        .refused("duplicate_product");
    assert_eq!(bill(&story, "2026-01-01").contract().version, 1);
}

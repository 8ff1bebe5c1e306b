//! Tests of charges: one-off amounts and manual credit notes, on drafts and on issued documents (billing rules 9).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::refs::{ChargeRef, LineItemId};
use billing_domain::refusal::Refusal;
use billing_domain::simulate::{Simulation, Terms, charge, customer, default_tax, per_unit};
use billing_testkit::fixtures;

use super::{bill, fee, overview, total};

/// Returns a contract for 2026, agreed on 5 January: a fee of 49.00, calls at 0.04 each, and 1,500 calls on 4 January.
fn with(change: impl FnOnce(Terms) -> Terms) -> Simulation {
    Simulation::new().contract(change(fee("plan", "49.00").usage("calls", per_unit("0.04")))).created("2026-01-05").late_event(
        "2026-01-04",
        "calls",
        1500,
        "2026-01-05",
    )
}

fn plain() -> Simulation {
    with(|terms| terms)
}

#[test]
fn a_charge_is_on_its_periods_draft() {
    let story = plain()
        .on("2026-01-05")
        .charge(charge("setup", "2026-01-10", "200.001").quantity("2.5").pricing("plan").discountable().issued_at_once());
    let drafted = bill(&story, "2026-01-05");
    let amounts = ["fee 49.00", "calls 60.00", "charge:setup 500.00"];
    assert_eq!(drafted.document("UB-INV-1").amounts(), amounts);
    let current = drafted.preview_current().expect("a preview");
    assert_eq!(super::in_short(&current), ["UB-INV-1 2026-01-01 609.00 DRAFT"]);
    let issued = bill(&story, "2026-02-01");
    assert_eq!(issued.overview(), ["UB-INV-1 2026-01-01 609.00"]);
    assert_eq!(issued.document("UB-INV-1").amounts(), amounts);
    // A charge of a period without a document opens the document.
    let story = story.on("2026-02-01").charge(charge("free", "2026-04-10", "0"));
    assert_eq!(overview(&story, "2026-02-01")[1], "UB-INV-2 2026-04-01 49.00 DRAFT");
}

#[test]
fn a_charge_of_an_issued_period_waits_on_a_debit_or_is_issued_at_once() {
    let story = with(|terms| terms.tax(19)).on("2026-02-05").charge(charge("setup", "2026-01-10", "500"));
    let charged = bill(&story, "2026-02-05");
    let debit = charged.document("UB-DBT-1");
    assert_eq!(debit.to_string(), "UB-DBT-1 DRAFT 2026-01-01…2026-01-31: 595.00 EUR");
    assert_eq!((debit.parent().as_deref(), debit.amounts()), (Some("UB-INV-1"), vec!["charge:setup 500.00".to_owned()]));

    let story = story.on("2026-02-05").charge(charge("goodwill", "2026-01-31", "-20").issued_at_once());
    let credited = bill(&story, "2026-02-05");
    let expected = ["UB-CRD-1 2026-01-01 23.80", "UB-DBT-1 2026-01-01 595.00 DRAFT", "UB-INV-1 2026-01-01 129.71"];
    assert_eq!(credited.overview(), expected);
    assert_eq!(credited.document("UB-INV-1").amount_due().map(|due| due.to_string()).as_deref(), Some("105.91 EUR"));
    assert_eq!(credited.document("UB-CRD-1").unapplied().map(|left| left.minor()), Some(0));
    assert_eq!(overview(&story, "2026-02-06")[1], "UB-DBT-1 2026-01-01 595.00");
}

#[test]
fn a_credit_note_takes_no_more_than_its_period_bills() {
    // 109.00 less 50 %.
    let story = with(|terms| terms.discount(50));
    for (price, is_discountable) in [("-54.51", false), ("-109.02", true)] {
        let credit = charge("setup", "2026-01-31", price);
        let credit = if is_discountable { credit.discountable() } else { credit };
        let refused = story.clone().on("2026-02-05").charge(credit).refused("credit_above_billed");
        assert_eq!(overview(&refused, "2026-02-05").len(), 1);
    }
    let refusal = story.clone().on("2026-02-05").charge(charge("setup", "2026-01-31", "-120")).until("2026-02-05");
    assert!(refusal.expect_err("a refusal").to_string().contains("54.50 EUR"));
    let story = story
        .on("2026-02-05")
        .charge(charge("setup", "2026-01-31", "-54.50"))
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.unit_price("-54.51"))
        .refused("credit_above_billed")
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.quantity(2))
        .refused("credit_above_billed");
    assert_eq!(bill(&story, "2026-02-05").document("UB-CRD-1").total().to_string(), "54.50 EUR");
    let less = story.on("2026-02-05").edit_charge("setup", |charge| charge.unit_price("-10"));
    assert_eq!(bill(&less, "2026-02-05").document("UB-CRD-1").total().to_string(), "10.00 EUR", "a smaller credit");
}

#[test]
fn an_edit_settles_the_difference() {
    let story = plain()
        .on("2026-02-05")
        .charge(charge("setup", "2026-01-10", "500"))
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.unit_price("450"));
    // The open debit is updated.
    assert_eq!(bill(&story, "2026-02-05").document("UB-DBT-1").amounts(), ["charge:setup 450.00"]);
    let story = story.on("2026-02-06").edit_charge("setup", |charge| charge.unit_price("400").issued_at_once());
    let less = bill(&story, "2026-02-06");
    assert_eq!(less.document("UB-CRD-1").amounts(), ["charge:setup 50.00"]);
    assert_eq!(less.document("UB-CRD-1").unapplied().map(|left| left.minor()), Some(0));
    assert_eq!(less.sums(), ["509.00", "0.00", "0.00", "509.00"]);
}

#[test]
fn a_charge_that_moves_is_settled_in_both_periods() {
    let story = plain().on("2026-02-05").charge(charge("setup", "2026-02-10", "500"));
    let expected = ["UB-INV-1 2026-01-01 109.00", "UB-INV-2 2026-02-01 549.00 DRAFT"];
    assert_eq!(overview(&story, "2026-02-05"), expected);
    let story = story
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.date("2026-01-10").issued_at_once())
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.date("2026-02-28"))
        .on("2026-02-05")
        .edit_charge("setup", |charge| charge.date("2027-01-01"))
        .refused("no_matching_contract");
    let expected = [
        "UB-CRD-1 2026-01-01 500.00 DRAFT",
        "UB-DBT-1 2026-01-01 500.00",
        "UB-INV-1 2026-01-01 109.00",
        "UB-INV-2 2026-02-01 549.00 DRAFT",
    ];
    assert_eq!(overview(&story, "2026-02-05"), expected);
}

#[test]
fn a_deleted_charge_counts_no_more() {
    let story = plain().on("2026-01-05").charge(charge("setup", "2026-01-10", "500")).on("2026-01-05").delete_charge("setup");
    assert_eq!(bill(&story, "2026-01-05").document("UB-INV-1").amounts(), ["fee 49.00", "calls 60.00"]);
    // A credit reverses an issued charge.
    let story = story.on("2026-01-05").charge(charge("other", "2026-01-10", "500")).on("2026-02-01").delete_charge("other");
    assert_eq!(bill(&story, "2026-02-01").document("UB-CRD-1").amounts(), ["charge:other 500.00"]);
    assert_eq!(total(&story, "2026-02-02"), "109.00");
}

#[test]
fn charges_go_with_the_fixed_items_or_with_the_usage() {
    // The fixed items of January are issued, its usage is not.
    let story = with(|terms| terms.payment_time(PaymentTime::BeforeUse))
        .on("2026-01-06")
        .charge(charge("setup", "2026-01-10", "10").with_fixed_items())
        .on("2026-01-06")
        .charge(charge("usage", "2026-01-10", "5"))
        .on("2026-01-06")
        .charge(charge("next", "2026-02-10", "7").with_fixed_items());
    let expected =
        ["UB-DBT-1 2026-01-01 65.00", "UB-DBT-2 2026-01-01 10.00", "UB-INV-1 2026-01-01 49.00", "UB-INV-2 2026-02-01 56.00"];
    assert_eq!(overview(&story, "2026-02-01"), expected);
}

#[test]
fn discount_applies_to_charges_that_are_discountable() {
    let story = with(|terms| terms.discount(10).tax(19))
        .on("2026-01-05")
        .charge(charge("setup", "2026-01-10", "100"))
        .on("2026-01-05")
        .charge(charge("other", "2026-01-10", "100").discountable());
    let billed = bill(&story, "2026-02-01");
    let entries = billed.document("UB-INV-1").content.products.iter().map(|product| {
        let amounts = [product.sub_total, product.discount].map(|amount| amount.to_decimal().to_string());
        (product.rates.discount.as_decimal().normalize().to_string(), amounts)
    });
    let expected = [("10", ["209.00", "20.90"]), ("0", ["100.00", "0.00"])];
    assert_eq!(entries.collect::<Vec<_>>(), expected.map(|(rate, amounts)| (rate.to_owned(), amounts.map(str::to_owned))));
    // The same applies after a change of the rates: (209.00 − 5 % + 100.00) × 1.07.
    let story = story
        .on("2026-02-01")
        .edit(|contract| contract.effective_from("2026-01-01").product("plan", |plan| plan.discount(5).tax(7)));
    assert_eq!(bill(&story, "2026-02-01").sums(), ["309.00", "10.45", "20.90", "319.45"]);
    let story = story.on("2026-02-01").delete_charge("setup");
    assert_eq!(bill(&story, "2026-02-01").sums(), ["209.00", "10.45", "13.90", "212.45"]);
}

#[test]
fn a_charge_with_another_discount_keeps_the_tax_at_which_it_was_billed() {
    let story = Simulation::new()
        .customer(customer().tax(default_tax(19)))
        .contract(fee("plan", "49.00"))
        .on("2026-01-05")
        .charge(charge("setup", "2026-01-10", "1000").discountable())
        .on("2026-02-05")
        .edit_customer(customer().tax(default_tax(7).from_day("2026-01-01")))
        .on("2026-02-05")
        .edit(|contract| contract.effective_from("2026-01-01").product("plan", |plan| plan.discount(10)));
    let corrected = bill(&story, "2026-02-05");
    let debit = corrected.document("UB-DBT-1");
    assert_eq!(debit.amounts(), ["fee 49.00", "charge:setup 1000.00"]);
    assert_eq!(debit.totals(), ["1049.00", "104.90", "179.38", "1123.48"], "all at 19 %");
}

#[test]
fn a_void_invoices_charges_are_billed_again() {
    let story = plain().on("2026-01-05").charge(charge("setup", "2026-01-10", "500")).on("2026-02-01").void("UB-INV-1");
    assert_eq!(overview(&story, "2026-02-01T12:00:00Z"), ["UB-INV-1 2026-01-01 609.00 VOID"]);
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 609.00 VOID", "UB-INV-2 2026-01-01 609.00"]);
    // A debit of a charge is an adjustment, so the corrected document cannot be voided.
    let story = story
        .on("2026-02-01T13:00:00Z")
        .charge(charge("late", "2026-01-11", "1"))
        .on("2026-02-01T13:00:00Z")
        .void("UB-INV-2")
        .refused("document_has_dependents");
    assert_eq!(overview(&story, "2026-02-01").len(), 3);
}

#[test]
fn a_change_of_the_contract_leaves_no_charge_without_a_period() {
    let story = plain().on("2026-01-05").charge(charge("setup", "2026-06-10", "500"));
    let refusals = [
        story.clone().on("2026-01-05").cancel_on("2026-06-09"),
        story.clone().on("2026-01-05").cancel(),
        story.clone().on("2026-01-05").edit(|contract| contract.product("plan", |plan| plan.billed_until("2026-06-09"))),
    ];
    for refused in refusals {
        let refusal = refused.until("2026-01-05").expect_err("a refusal");
        assert_eq!(refusal.codes(), ["charge_already_recorded"]);
        assert!(refusal.to_string().contains("setup"), "{refusal}");
    }
    let story = story.on("2026-01-05").cancel_on("2026-06-10");
    assert!(bill(&story, "2026-01-05").document("UB-INV-2").amounts().contains(&"charge:setup 500.00".to_owned()));
}

#[test]
fn days_and_products_that_bill_no_charge_are_refused() {
    let both = Simulation::new()
        .contract(super::terms("2026-01-01", "2026-06-30").pricing("plan").fixed("fee", "49.00"))
        .contract(super::terms("2026-04-01", "2026-12-31").pricing("other").fixed("fee", "1"));
    for (story, charge, code) in [
        (plain(), charge("x", "2025-12-31", "1"), "no_matching_contract"),
        (plain(), charge("x", "2027-01-01", "1"), "no_matching_contract"),
        (plain(), charge("x", "2026-01-10", "1").pricing("other"), "unknown_product"),
        (both.clone(), charge("x", "2026-03-31", "1").pricing("other"), "no_matching_contract"),
        (both.clone(), charge("x", "2026-07-01", "1").pricing("plan"), "no_matching_contract"),
        (both.clone(), charge("x", "2026-04-10", "1"), "ambiguous_product"),
        (plain(), charge("x", "2026-01-10", "999999999").quantity("999999999999999"), "amount_out_of_range"),
    ] {
        bill(&story.on("2026-01-05").charge(charge).refused(code), "2026-01-05");
    }
    // If several products bill the day, the pricing selects the product.
    let story = both.on("2026-01-05").charge(charge("x", "2026-04-10", "1").pricing("other"));
    let billed = bill(&story, "2026-05-01");
    let of_charge = billed.documents().iter().find(|document| document.lines().any(|line| line.name() == "charge:x"));
    assert!(of_charge.is_some_and(|document| {
        document.content.products.iter().any(|product| product.pricing_ref.as_str() == "other" && product.lines.len() == 2)
    }));
}

/// Returns a contract for 2026 with only a fee of 49.00, agreed on 5 January.
fn with_fee(change: impl FnOnce(Terms) -> Terms) -> Simulation {
    Simulation::new().contract(change(fee("plan", "49.00"))).created("2026-01-05")
}

#[test]
fn an_amount_is_rounded_once_half_away_from_zero() {
    for (quantity, unit_price, amount) in [
        ("1", "500", "500.00"),
        ("2.5", "200.001", "500.00"),
        ("1", "0.005", "0.01"),
        ("1", "-0.005", "-0.01"),
        ("3", "0.333333333333", "1.00"),
        ("0", "-500", "0.00"),
        ("0.000000001", "4999999", "0.00"),
    ] {
        let story = with_fee(|plan| plan).on("2026-01-05").charge(charge("x", "2026-01-10", unit_price).quantity(quantity));
        let amounts = bill(&story, "2026-01-05").document("UB-INV-1").amounts();
        assert_eq!(amounts, ["fee 49.00".to_owned(), format!("charge:x {amount}")], "{quantity} × {unit_price}");
    }
}

#[test]
fn a_charges_line_item_has_its_reference_whole() {
    for name in ["a", &"x".repeat(64), "charge:twice"] {
        let id = LineItemId::of_charge(&ChargeRef::parse(name).expect(name));
        assert_eq!(LineItemId::parse(id.as_str()), Ok(id.clone()));
        assert!(id.is_of_charge());
    }
    assert!(LineItemId::parse(&"x".repeat(65)).is_err() && LineItemId::parse(&format!("charge:{}", "x".repeat(65))).is_err());
    let named =
        fixtures::pricing("plan", vec![fixtures::fixed("charge:x", "1")]).content.check(&[]).expect_err("a reserved name");
    assert_eq!(Refusal::from(named).codes(), ["reserved"]);
}

#[test]
fn a_charge_is_on_the_document_of_its_periods_usage_or_fixed_items() {
    use PaymentTime::{AfterUse, BeforeUse, DuringUse};
    for (payment_time, is_fixed, day, documents) in [
        (AfterUse, false, "2026-01-10", &["UB-INV-1 2026-01-01 59.00 DRAFT"][..]),
        (AfterUse, true, "2026-01-10", &["UB-INV-1 2026-01-01 59.00 DRAFT"]),
        (DuringUse, true, "2026-03-10", &["UB-INV-1 2026-03-01 59.00 DRAFT"]),
        (DuringUse, false, "2026-03-10", &["UB-INV-1 2026-04-01 59.00 DRAFT"]),
        (DuringUse, false, "2026-12-10", &["UB-INV-1 2026-12-01 10.00 DRAFT"]),
        (BeforeUse, true, "2026-03-10", &["UB-INV-1 2026-03-01 59.00 DRAFT"]),
        (BeforeUse, false, "2026-03-10", &["UB-DBT-1 2026-03-01 10.00 DRAFT", "UB-INV-1 2026-03-01 49.00 DRAFT"]),
    ] {
        let charge = charge("x", day, "10");
        let charge = if is_fixed { charge.with_fixed_items() } else { charge };
        let story = with_fee(|plan| plan.payment_time(payment_time)).without_runs().on("2026-01-05").charge(charge);
        assert_eq!(overview(&story, "2026-01-05"), documents, "{payment_time:?} {is_fixed}");
        if day == "2026-12-10" {
            let next = bill(&story, "2026-12-05").preview_next().expect("a preview");
            assert_eq!(super::in_short(&next), documents, "the closing invoice");
        }
    }
}

#[test]
fn a_credit_of_a_charge_that_gets_the_wrong_sign_is_issued_as_a_debit() {
    let priced = |story: Simulation, day: &str, unit_price: &str| {
        let price = unit_price.to_owned();
        story.on(day).edit_charge("x", |charge| charge.unit_price(price.as_str()))
    };
    let story = with_fee(|plan| plan).on("2026-02-01").charge(charge("x", "2026-01-10", "15"));
    let story = priced(priced(story, "2026-02-02", "12"), "2026-02-02", "20");
    let drafted = ["UB-CRD-1 2026-01-01 -5.00 DRAFT", "UB-DBT-1 2026-01-01 15.00", "UB-INV-1 2026-01-01 49.00"];
    assert_eq!(overview(&story, "2026-02-02"), drafted);
    let issued =
        ["UB-CRD-1 2026-01-01 -5.00 VOID", "UB-DBT-1 2026-01-01 15.00", "UB-DBT-2 2026-01-01 5.00", "UB-INV-1 2026-01-01 49.00"];
    assert_eq!(overview(&story, "2026-02-03"), issued);
}

#[test]
fn a_charge_of_zero_has_its_document_issued_and_a_deleted_one_has_not() {
    let story = Simulation::new()
        .contract(super::year("plan").usage("calls", per_unit("0.04")))
        .on("2026-01-05")
        .charge(charge("x", "2026-01-10", "0"))
        .on("2026-02-01")
        .charge(charge("late", "2026-01-11", "0"));
    let expected = ["UB-DBT-1 2026-01-01 0.00 DRAFT", "UB-INV-1 2026-01-01 0.00"];
    assert_eq!(overview(&story, "2026-02-01"), expected);
    let expected = ["UB-DBT-1 2026-01-01 0.00 VOID", "UB-INV-1 2026-01-01 0.00"];
    assert_eq!(overview(&story.on("2026-02-01").delete_charge("late"), "2026-02-02"), expected);
}

#[test]
fn a_minimum_fee_does_not_count_charges() {
    let story = with_fee(|plan| plan.minimum_fee("60")).on("2026-01-05").charge(charge("x", "2026-01-10", "100"));
    assert_eq!(overview(&story, "2026-01-05"), ["UB-INV-1 2026-01-01 160.00 DRAFT"]);
}

#[test]
fn a_credit_takes_no_more_than_is_billed_after_discount() {
    for (discount, is_discountable, unit_price, is_taken) in [
        ("0", false, "-49", true),
        ("0", false, "-49.01", false),
        ("0", true, "-49", true),
        ("50", false, "-24.50", true),
        ("50", false, "-24.51", false),
        ("50", true, "-49", true),
        ("50", true, "-49.02", false),
        ("100", false, "-0.01", false),
        ("100", true, "-49", true),
    ] {
        let credit = charge("x", "2026-01-10", unit_price);
        let credit = if is_discountable { credit.discountable() } else { credit };
        let story = with_fee(|plan| plan.discount(discount)).on("2026-01-05").charge(credit);
        let story = if is_taken { story } else { story.refused("credit_above_billed") };
        assert_eq!(overview(&story, "2026-01-05").len(), usize::from(is_taken), "{discount} % {is_discountable} {unit_price}");
    }
}

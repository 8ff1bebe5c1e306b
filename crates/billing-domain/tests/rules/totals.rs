//! Tests of lines and their totals (billing rules 1.5 and 6).

use std::collections::BTreeSet;

use billing_domain::catalog::{FixedPrice, LineItemPrice, Pricing, UsagePrice};
use billing_domain::contract::terms::PaymentTime::{self, AfterUse, BeforeUse, DuringUse};
use billing_domain::document::totals::DocumentContent;
use billing_domain::money::{Currency, DayShare, Money, Percentage, Price};
use billing_domain::simulate::{Bill, PriceList, Simulation, Terms, flat, graduated, per_unit, pricing, terms};
use billing_testkit::{fixtures, strategies};
use fixtures::{eur, price};
use proptest::prelude::*;
use rust_decimal::Decimal;

#[track_caller]
fn bill(simulation: &Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}: {refusal:?}"))
}

/// Returns the content of the first invoice, at the end of a day.
#[track_caller]
fn first_invoice(simulation: &Simulation, day: &str) -> DocumentContent {
    let content = bill(simulation, day).document("UB-INV-1").content.clone();
    assert!(content.adds_up());
    content
}

/// Returns the amounts of each document in the order of opening.
#[track_caller]
fn amounts(simulation: &Simulation, day: &str) -> Vec<Vec<String>> {
    bill(simulation, day).documents().iter().map(|document| document.amounts()).collect()
}

/// Returns a contract of two and a half months, from 15 January.
fn partial() -> Terms {
    terms("2026-01-15", "2026-03-31").pricing("plan")
}

#[test]
fn discount_comes_off_before_tax() {
    let rows = [
        // 12,345 × 0.0025 = 30.8625; 10 % of 30.86 = 3.086; 19 % of 27.77 = 5.2763.
        ("0.0025", "12345", "10", "19", ["30.86", "3.09", "5.28", "33.05"]),
        ("1", "100", "0", "0", ["100.00", "0.00", "0.00", "100.00"]),
        ("1", "100", "100", "19", ["100.00", "100.00", "0.00", "0.00"]),
        // Half a cent is rounded away from zero both times: 5 % of 0.10, and 50 % of 0.09.
        ("1", "0.1", "5", "50", ["0.10", "0.01", "0.05", "0.14"]),
        ("1", "33.33", "33.333333", "7.125", ["33.33", "11.11", "1.58", "23.80"]),
        ("1", "0", "10", "19", ["0.00", "0.00", "0.00", "0.00"]),
    ];
    for (unit_price, quantity, discount, tax, expected) in rows {
        let plan = terms("2026-01-01", "2026-01-31").usage("calls", per_unit(unit_price)).discount(discount).tax(tax);
        let story = Simulation::new().contract(plan).event("2026-01-10", "calls", quantity);
        assert_eq!(bill(&story, "2026-02-01").document("UB-INV-1").totals(), expected, "{quantity} × {unit_price}");
    }
}

#[test]
fn each_tax_rate_is_rounded_once_over_all_its_products() {
    // 10 % of each 0.05 alone would be 0.01. 10 % of 0.15 is 0.02.
    let products = [("a", "0.05", "10"), ("b", "10.00", "7"), ("c", "0.05", "10.0"), ("d", "0.05", "10"), ("e", "1.00", "0")];
    let story = products.into_iter().fold(Simulation::new(), |story, (name, amount, tax)| {
        story.contract(terms("2026-01-01", "2026-01-31").pricing(name).fixed("base", amount).tax(tax))
    });
    let content = first_invoice(&story, "2026-02-01");
    let taxes: Vec<String> = content
        .taxes
        .iter()
        .map(|tax| format!("{} % of {}: {}", tax.treatment.rate.as_decimal().normalize(), tax.base, tax.amount))
        .collect();
    assert_eq!(taxes, ["0 % of 1.00 EUR: 0.00 EUR", "7 % of 10.00 EUR: 0.70 EUR", "10 % of 0.15 EUR: 0.02 EUR"]);
    assert_eq!((content.sub_total.minor(), content.total_tax.minor(), content.total.minor()), (1115, 72, 1187));
    assert_eq!(content.products.iter().map(|product| product.product_no.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn products_of_one_name_have_their_numbers_in_their_headings() {
    let team = |workspace: &str| terms("2026-01-01", "2026-01-31").pricing("team").where_labels(&[("workspace", &[workspace])]);
    let other = terms("2026-01-01", "2026-01-31").pricing("other").fixed("base", "1");
    let prices = pricing("team").fixed("fee", "50.00").usage("calls", per_unit("0.10"));
    let headings = |story: &Simulation| {
        let content = first_invoice(story, "2026-02-01");
        content.products.iter().map(|product| content.heading(product)).collect::<Vec<_>>()
    };
    let story = Simulation::new().pricing(prices).contract(other).contract(team("w1"));
    assert_eq!(headings(&story), ["other", "team"]);
    assert_eq!(headings(&story.clone().contract(team("w2"))), ["other", "team (1)", "team (2)"]);
    assert_eq!(headings(&story.contract(team("w2").named("Team w2"))), ["other", "team", "Team w2"]);
}

#[test]
fn fixed_items_cost_the_days_of_a_partial_period() {
    let story = Simulation::new().contract(partial().fixed("base", "100").fixed("seat", "0.01"));
    // 100 × 17 ÷ 31 = 54.838…
    assert_eq!(amounts(&story, "2026-03-01"), [["base 54.84", "seat 0.01"], ["base 100.00", "seat 0.01"]]);
}

#[test]
fn usage_tiers_and_included_quantities_are_never_prorated() {
    let plan = partial()
        .usage("calls", per_unit("1").included(10))
        .usage("storage", graduated([(Some("10"), "1", "5"), (None, "2", "0")]));
    let story = Simulation::new().contract(plan).event("2026-01-20", "calls", 12).event("2026-01-20", "storage", 12);
    assert_eq!(amounts(&story, "2026-02-01"), [["calls 2.00", "storage 19.00"]]);
    let content = first_invoice(&story, "2026-02-01");
    let [calls, storage] = [0, 1].map(|line| content.products[0].lines[line].usage.clone().expect("a usage line"));
    assert_eq!((calls.quantity, calls.unit_price), (Decimal::from(12), Some(price("1"))));
    let tiers: Vec<Decimal> = storage.tiers.iter().map(|tier| tier.quantity.to_decimal().expect("few digits")).collect();
    assert_eq!(tiers, [Decimal::from(10), Decimal::from(2)]);
}

#[test]
fn minimum_amounts_are_prorated_and_maximum_amounts_are_not() {
    let idle = Simulation::new().contract(partial().usage("calls", per_unit("1").at_least("31").at_most("40")));
    assert_eq!(amounts(&idle, "2026-03-01"), [["calls 17.00"], ["calls 31.00"]]);
    assert_eq!(amounts(&idle.event("2026-01-20", "calls", 999), "2026-02-01"), [["calls 40.00"]]);
}

#[test]
fn once_items_are_billed_whole_in_the_first_period_alone() {
    for payment_time in [AfterUse, DuringUse, BeforeUse] {
        let plan = partial().fixed("setup", flat("100").once()).fixed("base", "31").payment_time(payment_time);
        let billed = amounts(&Simulation::new().contract(plan), "2026-03-01");
        assert_eq!(billed[..2], [vec!["setup 100.00", "base 17.00"], vec!["base 31.00"]], "{payment_time:?}");
    }
}

#[test]
fn a_minimum_fee_is_trued_up_by_a_line_of_its_own() {
    let rows: [(&str, &str, &[&str]); 5] = [
        ("2026-02-10", "0", &["base 10.00", "calls 0.00", "minimum fee 40.00"]),
        ("2026-02-10", "39.99", &["base 10.00", "calls 39.99", "minimum fee 0.01"]),
        ("2026-02-10", "40", &["base 10.00", "calls 40.00"]),
        ("2026-02-10", "1000", &["base 10.00", "calls 1000.00"]),
        // 50 × 17 ÷ 31 = 27.419…, 10 × 17 ÷ 31 = 5.483…
        ("2026-01-20", "1", &["base 5.48", "calls 1.00", "minimum fee 20.94"]),
    ];
    for (day, quantity, expected) in rows {
        let plan = partial().fixed("base", "10").usage("calls", per_unit("1")).minimum_fee("50.00").discount(10).tax(19);
        let story = Simulation::new().contract(plan).event(day, "calls", quantity);
        let billed = bill(&story, "2026-03-01");
        let invoice = billed.document(if day.starts_with("2026-01") { "UB-INV-1" } else { "UB-INV-2" });
        assert_eq!(invoice.amounts(), expected, "{quantity} in {day}");
        assert_eq!(invoice.content.products[0].minimum_fee, Some(price("50.00")));
    }
}

#[test]
fn a_minimum_fee_counts_lines_wherever_they_stand() {
    let all = |payment_time: PaymentTime| {
        let plan = terms("2026-01-01", "2026-02-28").fixed("base", "10").fixed("setup", flat("5").once());
        let plan = plan.usage("calls", per_unit("1")).minimum_fee("50").payment_time(payment_time);
        let story = Simulation::new().contract(plan).event("2026-01-10", "calls", 7).event("2026-02-10", "calls", 7);
        let mut all = amounts(&story, "2026-03-01");
        all.sort();
        all
    };
    // January: 10 + 7, February: 10 + 7. A fee that is charged once does not count.
    let during = [
        vec!["base 10.00", "calls 7.00", "minimum fee 33.00"],
        vec!["base 10.00", "setup 5.00"],
        vec!["calls 7.00", "minimum fee 33.00"],
    ];
    assert_eq!(all(DuringUse), during);
    let before = [
        vec!["base 10.00"],
        vec!["base 10.00", "setup 5.00"],
        vec!["calls 7.00", "minimum fee 33.00"],
        vec!["calls 7.00", "minimum fee 33.00"],
    ];
    assert_eq!(all(BeforeUse), before);
}

#[test]
fn the_last_periods_usage_is_billed_on_the_terms_it_was_used_under() {
    let old = terms("2026-01-01", "2026-12-31").pricing("plan").fixed("base", "10").usage("calls", per_unit("1"));
    let story = Simulation::new()
        .contract(old.minimum_fee("20").payment_time(DuringUse))
        .event("2026-01-10", "calls", 3)
        .on("2026-01-20")
        .edit_pricing(pricing("plan").fixed("other", "99").usage("calls", per_unit("1000")).minimum_fee("100"))
        .on("2026-01-20")
        .edit(|contract| contract.product("plan", |plan| plan.reprice()));
    let billed = bill(&story, "2026-02-01");
    assert_eq!(billed.document("UB-INV-2").amounts(), ["other 99.00", "calls 3.00", "minimum fee 7.00"]);
}

#[test]
fn amounts_have_their_currencys_digits() {
    let rows = [
        // 0.5 × 3 = 1.5 → 2; 10 % of 2 = 0.2 → 0; 19 % of 2 = 0.38 → 0.
        ("JPY", "0.5", "3", ["2", "0", "0", "2"]),
        ("JPY", "123", "45", ["5535", "554", "946", "5927"]),
        // 0.0025 × 1 = 0.0025 → 0.003.
        ("KWD", "0.0025", "1", ["0.003", "0.000", "0.001", "0.004"]),
        ("KWD", "1.2345", "10", ["12.345", "1.235", "2.111", "13.221"]),
        ("EUR", "1.2345", "10", ["12.35", "1.24", "2.11", "13.22"]),
    ];
    for (currency, unit_price, quantity, expected) in rows {
        let plan = terms("2026-01-01", "2026-01-31").currency(currency).usage("calls", per_unit(unit_price));
        let story = Simulation::new().contract(plan.discount(10).tax(19)).event("2026-01-10", "calls", quantity);
        let totals = bill(&story, "2026-02-01").document("UB-INV-1").totals();
        assert_eq!(totals, expected, "{quantity} × {unit_price} {currency}");
    }
}

/// The random prices of a product: usage items with their minimum amounts, a fixed item and sometimes a minimum fee.
type Prices = (Vec<(UsagePrice, Option<Price>)>, Price, Option<Price>);

/// Generates prices with a discount and a tax rate.
fn any_product() -> impl Strategy<Value = (Prices, Percentage, Percentage)> {
    let items = prop::collection::vec((strategies::usage_price(), proptest::option::of(strategies::small_price())), 0..4);
    let prices = (items, strategies::small_price(), proptest::option::of(strategies::small_price()));
    (prices, strategies::percentage(), strategies::percentage())
}

/// Returns the pricing of a product. Its usage products have its number in their references.
fn pricing_of(no: usize, (items, base, minimum_fee): &Prices, currency: Currency) -> Pricing {
    let mut fixed = fixtures::fixed("base", "0");
    if let LineItemPrice::Fixed { price, .. } = &mut fixed.charge {
        *price = FixedPrice::Flat { amount: *base };
    }
    let item = |(i, (price, minimum)): (usize, &(UsagePrice, Option<Price>))| {
        let item = fixtures::usage_item(&format!("item-{i}"), &format!("usage-{no}-{i}"), price.clone());
        fixtures::with_charge(item, |charge| charge.minimum_amount = *minimum)
    };
    let items = items.iter().enumerate().map(item).chain([fixed]).collect();
    let mut pricing = fixtures::pricing(&format!("pricing-{no}"), items);
    (pricing.content.currency, pricing.content.minimum_fee) = (currency, *minimum_fee);
    pricing
}

/// Returns a value above zero if `part` is further than half a minor unit from `rate` percent of `whole`.
fn off(part: Money, whole: Money, rate: Percentage) -> i128 {
    const ONE: i128 = 100_000_000;
    let millionths = (rate.as_decimal() * Decimal::from(1_000_000)).normalize().mantissa();
    ((i128::from(part.minor()) * ONE - i128::from(whole.minor()) * millionths) * 2).abs() - ONE
}

proptest! {
    /// M1: the total is Σ net + Σ tax of the lines. Every amount is rounded to the nearest minor unit.
    #[test]
    fn every_total_is_the_sum_of_what_it_totals(
        products in prop::collection::vec(any_product(), 1..4),
        currency in strategies::currency(),
        quantity in strategies::small_quantity(),
        day in 0usize..3,
    ) {
        let day = ["2026-01-20", "2026-02-10", "2026-04-10"][day];
        let mut story = Simulation::new();
        for (no, (prices, discount, tax)) in products.iter().enumerate() {
            let pricing = pricing_of(no, prices, currency);
            let request = fixtures::requested(&pricing, "2026-01-15", "2026-04-30");
            let usage_products = fixtures::products_of(&pricing);
            story = story.pricing(PriceList::of(pricing, usage_products)).contract(Terms::of(request).discount(*discount).tax(*tax));
            story = (0..prices.0.len()).fold(story, |story, i| story.event(day, format!("usage-{no}-{i}").as_str(), quantity));
        }
        let documents = bill(&story, day).preview_current().expect("a preview");
        // Nothing is billed if no item has usage or a price.
        let Some(document) = documents.first() else { return Ok(()) };
        let content = &document.content;
        prop_assert!(documents.len() == 1 && content.adds_up());

        let minor = |money: Money| i128::from(money.minor());
        let mut total = 0;
        for product in &content.products {
            let of_lines: i128 = product.lines.iter().map(|line| minor(line.amount)).sum();
            prop_assert_eq!(of_lines, minor(product.sub_total));
            prop_assert!(off(product.discount, product.sub_total, product.rates.discount) <= 0);
            total += of_lines - minor(product.discount);
        }
        for tax in &content.taxes {
            let base: i128 = content.products.iter().filter(|p| p.rates.tax == tax.treatment).map(|p| minor(p.net)).sum();
            prop_assert_eq!(base, minor(tax.base));
            prop_assert!(off(tax.amount, tax.base, tax.treatment.rate) <= 0);
            total += minor(tax.amount);
        }
        prop_assert_eq!(total, minor(content.total));
        prop_assert_eq!(content.taxes.len(), content.products.iter().map(|p| &p.rates.tax).collect::<BTreeSet<_>>().len());

        // A period never costs less than its minimum fee. January has 17 of 31 days.
        let share = if day.starts_with("2026-01") { DayShare { days: 17, of: 31 } } else { DayShare::WHOLE };
        for product in &content.products {
            let Some(fee) = product.minimum_fee else { continue };
            let fee = Money::round_share(fee.as_decimal(), share, currency).expect("in range");
            prop_assert!(product.sub_total.minor() >= fee.minor());
        }
    }

    #[test]
    fn what_is_one_minor_unit_off_does_not_add_up(amount in 1i64..1_000_000, which in 0usize..10) {
        let plan = terms("2026-01-01", "2026-01-31").fixed("base", "12.34").discount(10).tax(19);
        let mut wrong = first_invoice(&Simulation::new().contract(plan), "2026-02-01");
        let field = match which {
            0 => &mut wrong.total,
            1 => &mut wrong.sub_total,
            2 => &mut wrong.total_discount,
            3 => &mut wrong.total_tax,
            4 => &mut wrong.taxes[0].base,
            5 => &mut wrong.taxes[0].amount,
            6 => &mut wrong.products[0].sub_total,
            7 => &mut wrong.products[0].discount,
            8 => &mut wrong.products[0].net,
            _ => &mut wrong.products[0].lines[0].amount,
        };
        *field = Money::from_minor(field.minor() + amount, eur());
        prop_assert!(!wrong.adds_up());
    }
}

//! Tests of seats and other counted fixed items: agreed quantities over time and their prices (billing rules 6,
//! charges, discounts, quantities, terms 2).

use billing_domain::catalog::{FixedPrice, Pricing, UsagePrice};
use billing_domain::charge::Charges;
use billing_domain::contract::terms::{MAX_QUANTITY_STEPS, PaymentTime, Quantities, QuantityStep, RequestedLineItem};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::decimal::{AmountOutOfRange, DecimalError};
use billing_domain::document::lines::{BillWith, DocumentLine};
use billing_domain::document::totals::{UsageTotals, lines_of_period};
use billing_domain::quantity::Quantity;
use billing_domain::rating::rate_fixed;
use billing_domain::refs::ProductNo;
use billing_testkit::{CountingIds, fixtures};
use chrono::Datelike;
use fixtures::{agreed_with, date, eur, fixed, line_item_id, once, period, price, pricing, quantity, tiers};
use proptest::prelude::*;

/// Quantity steps: a `month-day` of 2026 and the quantity from that day on.
type Steps<'a> = &'a [(&'a str, &'a str)];

fn steps(rows: Steps<'_>) -> Vec<QuantityStep> {
    let step = |(from, many): &(&str, &str)| QuantityStep { from: date(&format!("2026-{from}")), quantity: quantity(many) };
    rows.iter().map(step).collect()
}

#[test]
fn values_are_read_by_the_standard_traits_too() {
    assert_eq!("12.5".parse(), Quantity::parse("12.5"));
    assert_eq!("-1".parse::<Quantity>().expect_err("below zero"), Quantity::parse("-1").expect_err("below zero"));
    assert_eq!(Quantity::from(u32::MAX), quantity("4294967295"));
    assert_eq!("0.10".parse(), Ok(price("0.10")));
    assert_eq!("EUR".parse(), Ok(eur()));
    assert_eq!("base".parse(), Ok(line_item_id("base")));
}

#[test]
fn a_reported_quantity_is_rounded_half_away_from_zero_to_9_digits() {
    let nines = "999999999999999";
    for (sent, taken) in [
        ("0.0000001453", "0.000000145"),
        ("0.30000000000000004", "0.3"),
        ("1e-10", "0"),
        ("5e-10", "0.000000001"),
        ("0.0000000005", "0.000000001"),
        ("0.00000000049999999999", "0"),
        ("0.9999999995", "1"),
        ("1.2345678985", "1.234567899"),
        ("12.50", "12.50"),
        ("1.000000000000", "1.000000000"),
        ("-0", "0"),
        ("-0.00000000000", "0"),
        ("1e-400", "0"),
        ("1e-99999999999", "0"),
        ("123456789012345678901234567890e-25", "12345.678901235"),
        (&format!("{nines}.9999999994"), &format!("{nines}.999999999")),
        ("0.1000000000000000055511151231257827021181583404541015625", "0.1"),
        ("1e14", "100000000000000"),
    ] {
        let quantity = Quantity::parse_reported(sent).unwrap_or_else(|error| panic!("{sent}: {error}"));
        assert_eq!(quantity.as_decimal().to_string(), taken, "{sent}");
        assert!(Quantity::parse(&quantity.as_decimal().to_string()) == Ok(quantity), "{sent}");
    }
    for (sent, error) in [
        ("-1e-400", DecimalError::Negative),
        ("-0.00000000001", DecimalError::Negative),
        ("-1", DecimalError::Negative),
        ("1e15", DecimalError::TooLarge { integer: 15 }),
        ("1e99999999999", DecimalError::TooLarge { integer: 15 }),
        (&format!("{nines}.9999999995"), DecimalError::TooLarge { integer: 15 }),
        (&format!("0.{}", "1".repeat(63)), DecimalError::TooLarge { integer: 15 }),
        ("1,5", DecimalError::NotANumber),
        ("+1", DecimalError::NotANumber),
        ("01", DecimalError::NotANumber),
        ("1e", DecimalError::NotANumber),
    ] {
        assert_eq!(Quantity::parse_reported(sent), Err(error), "{sent}");
    }
    assert!(Quantity::parse("0.0000001453").is_err(), "an agreed quantity is not rounded");
}

fn quantities(rows: Steps<'_>) -> Quantities {
    Quantities::new(steps(rows)).expect("rising dates")
}

fn shown(steps: &[QuantityStep]) -> Vec<String> {
    steps.iter().map(|step| format!("{} from {}", step.quantity.as_decimal(), step.from.format("%m-%d"))).collect()
}

#[test]
fn the_dates_of_steps_rise() {
    let rows: [(Steps<'_>, &[&str]); 5] = [
        (&[], &[]),
        (&[("01-01", "1"), ("01-02", "0")], &[]),
        (&[("01-01", "1"), ("01-01", "2")], &["1.from out_of_range"]),
        (&[("02-01", "1"), ("01-31", "2"), ("01-31", "3")], &["1.from out_of_range", "2.from out_of_range"]),
        (&[("01-01", "1"), ("03-01", "2"), ("02-01", "3"), ("04-01", "4")], &["2.from out_of_range"]),
    ];
    for (rows, expected) in rows {
        let found = Quantities::new(steps(rows)).err().unwrap_or_default();
        let found: Vec<String> = found.iter().map(|one| format!("{} {}", one.path.join("."), one.code)).collect();
        assert_eq!(found, expected, "{rows:?}");
    }
}

#[test]
fn a_line_item_has_at_most_a_thousand_steps() {
    let of = |count: usize| {
        let days = date("2026-01-01").iter_days().take(count);
        Quantities::new(days.map(|from| QuantityStep { from, quantity: Quantity::ONE }).collect())
    };
    assert!(of(MAX_QUANTITY_STEPS).is_ok());
    let found = of(MAX_QUANTITY_STEPS + 1).expect_err("too many");
    assert_eq!(found.iter().map(|one| (one.path.len(), one.code)).collect::<Vec<_>>(), [(0, "too_many")]);
}

#[test]
fn on_a_day_the_latest_step_that_has_begun_counts() {
    let rows: [(Steps<'_>, &str, &str); 7] = [
        (&[], "2026-04-15", "1"),
        (&[("04-16", "12")], "2026-04-15", "1"),
        (&[("04-16", "12")], "2026-04-16", "12"),
        (&[("04-01", "10"), ("04-16", "12")], "2026-04-15", "10"),
        (&[("04-01", "10"), ("04-16", "12")], "2027-01-01", "12"),
        (&[("04-01", "10"), ("04-16", "0")], "2026-04-16", "0"),
        (&[("04-01", "2.5")], "2026-04-01", "2.5"),
    ];
    for (rows, day, expected) in rows {
        assert_eq!(quantities(rows).on(date(day)), quantity(expected), "{rows:?} on {day}");
    }
}

#[test]
fn a_range_of_days_falls_into_parts_of_one_quantity() {
    let rows: [(Steps<'_>, &[(&str, u32)]); 8] = [
        (&[], &[("1", 30)]),
        (&[("03-01", "10")], &[("10", 30)]),
        (&[("04-01", "10")], &[("10", 30)]),
        (&[("05-01", "10")], &[("1", 30)]),
        (&[("04-30", "5")], &[("1", 29), ("5", 1)]),
        (&[("04-02", "0")], &[("1", 1), ("0", 29)]),
        (&[("04-01", "10"), ("04-16", "12")], &[("10", 15), ("12", 15)]),
        (&[("01-01", "3"), ("03-31", "4"), ("04-11", "5"), ("04-21", "6"), ("06-01", "7")], &[("4", 10), ("5", 10), ("6", 10)]),
    ];
    for (rows, expected) in rows {
        let expected: Vec<(Quantity, u32)> = expected.iter().map(|(many, days)| (quantity(many), *days)).collect();
        assert_eq!(quantities(rows).within(period("2026-04-01", "2026-04-30")), expected, "{rows:?}");
    }
}

#[test]
fn a_list_replaces_the_steps_from_its_first_day_on() {
    let present: Steps<'_> = &[("01-01", "1"), ("03-01", "3"), ("05-01", "5")];
    let rows: [(Steps<'_>, &[&str]); 6] = [
        (&[], &[]),
        (&[("05-01", "9")], &["1 from 01-01", "3 from 03-01", "9 from 05-01"]),
        (&[("03-02", "9")], &["1 from 01-01", "3 from 03-01", "9 from 03-02"]),
        (&[("03-01", "9"), ("12-01", "8")], &["1 from 01-01", "9 from 03-01", "8 from 12-01"]),
        (&[("01-01", "9")], &["9 from 01-01"]),
        (&[("06-01", "9")], &["1 from 01-01", "3 from 03-01", "5 from 05-01", "9 from 06-01"]),
    ];
    for (list, expected) in rows {
        assert_eq!(shown(quantities(present).replaced_by(&quantities(list)).as_slice()), expected, "{list:?}");
    }
    assert_eq!(quantities(&[]).replaced_by(&quantities(present)), quantities(present));
}

#[test]
fn one_step_is_put_in_by_its_day_in_the_place_of_one_on_that_day() {
    let present: Steps<'_> = &[("01-01", "1"), ("03-01", "3")];
    let rows: [((&str, &str), &[&str]); 4] = [
        (("02-01", "9"), &["1 from 01-01", "9 from 02-01", "3 from 03-01"]),
        (("03-01", "9"), &["1 from 01-01", "9 from 03-01"]),
        (("04-01", "9"), &["1 from 01-01", "3 from 03-01", "9 from 04-01"]),
        (("01-01", "0"), &["0 from 01-01", "3 from 03-01"]),
    ];
    for (step, expected) in rows {
        let with = quantities(present).with(steps(&[step])[0]);
        assert_eq!(shown(with.as_slice()), expected, "{step:?}");
        assert!(Quantities::new(with.as_slice().to_vec()).is_ok());
    }
}

#[test]
fn ten_seats_at_thirty_and_twelve_from_the_sixteenth_are_330() {
    let flat = FixedPrice::Flat { amount: price("30.00") };
    let of_april = quantities(&[("04-01", "10"), ("04-16", "12")]).within(period("2026-04-01", "2026-04-30"));
    assert_eq!(rate_fixed(&flat, &of_april, 30, eur()).expect("in range").to_string(), "330.00 EUR");
}

#[test]
fn an_agreed_quantity_is_priced_by_the_line_items_model_and_rounded_once() {
    let flat = |amount: &str| FixedPrice::Flat { amount: price(amount) };
    let up_to_ten = || tiers(&[(Some("10"), "30", "0"), (None, "20", "0")]);
    let metered = FixedPrice::Metered;
    let package = UsagePrice::Package { package_size: quantity("5"), package_price: price("100") };
    type Row<'a> = (&'a str, FixedPrice, &'a [(&'a str, u32)], &'a str);
    let rows: [Row<'_>; 11] = [
        ("flat", flat("30"), &[("10", 30)], "300.00"),
        ("of each unit", metered(UsagePrice::PerUnit { unit_price: price("30") }), &[("10", 15), ("12", 15)], "330.00"),
        ("graduated: 300 and 340", metered(UsagePrice::Graduated(up_to_ten())), &[("10", 15), ("12", 15)], "320.00"),
        ("volume: 300 and 240", metered(UsagePrice::Volume(up_to_ten())), &[("10", 15), ("12", 15)], "270.00"),
        ("packages: 200 and 300", metered(package), &[("10", 15), ("12", 15)], "250.00"),
        ("a part of the period", flat("30"), &[("10", 5), ("12", 15)], "230.00"),
        ("none", flat("30"), &[("0", 30)], "0.00"),
        ("none for a while", flat("30"), &[("0", 15), ("1", 15)], "15.00"),
        ("halves", flat("30"), &[("2.5", 30)], "75.00"),
        // Two half cents are one cent. Rounded separately, they would be two cents.
        ("rounded once", flat("0.01"), &[("1", 15), ("1", 15)], "0.01"),
        ("no days", flat("30"), &[], "0.00"),
    ];
    for (what, model, parts, expected) in rows {
        let parts: Vec<(Quantity, u32)> = parts.iter().map(|(many, days)| (quantity(many), *days)).collect();
        assert_eq!(rate_fixed(&model, &parts, 30, eur()).expect("in range").to_decimal().to_string(), expected, "{what}");
    }
}

#[test]
fn a_quantity_whose_price_cannot_be_held_is_an_error() {
    let flat = FixedPrice::Flat { amount: price("999999999") };
    assert_eq!(rate_fixed(&flat, &[(quantity("999999999999999"), 30)], 30, eur()), Err(AmountOutOfRange));
}

/// Returns the lines of the period that contains `day`, for a product from `first` to the end of the year.
fn lines(
    catalog: &Pricing,
    agreed: &[(&str, Steps<'_>)],
    payment_time: PaymentTime,
    first: &str,
    day: &str,
) -> Vec<DocumentLine> {
    let terms = agreed_with(catalog, first, "2026-12-31", |request| {
        let item = |(id, rows): &(&str, Steps<'_>)| RequestedLineItem {
            quantities: (!rows.is_empty()).then(|| quantities(rows)),
            ..RequestedLineItem::plain(line_item_id(id))
        };
        request.line_items = Some(agreed.iter().map(item).collect());
        request.payment_time = Some(payment_time);
    });
    let product = ContractProduct::new(ProductNo(0), terms);
    let period = product.period_at(date(day)).expect("covered");
    let ids = CountingIds::new();
    let contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), Vec::new());
    let contract = Contract { products: vec![product.clone()], ..contract };
    lines_of_period(&contract, &period, period.terms.line_items.iter(), (&UsageTotals::default(), &Charges::default()))
        .expect("in range")
}

#[test]
fn a_fixed_line_shows_each_step_of_its_period_and_bills_them_together() {
    let catalog = pricing("seats", vec![fixed("seat", "30.00")]);
    let ten_then_twelve: Steps<'_> = &[("01-01", "10"), ("04-16", "12")];
    type Row<'a> = (&'a str, Steps<'a>, &'a str, &'a str, &'a [&'a str], &'a str);
    let rows: [Row<'_>; 9] = [
        ("before the step", ten_then_twelve, "2026-01-01", "2026-03-20", &["10 from 03-01"], "300.00"),
        ("in its period", ten_then_twelve, "2026-01-01", "2026-04-20", &["10 from 04-01", "12 from 04-16"], "330.00"),
        ("after it", ten_then_twelve, "2026-01-01", "2026-05-20", &["12 from 05-01"], "360.00"),
        ("a partial period", ten_then_twelve, "2026-04-11", "2026-04-11", &["10 from 04-11", "12 from 04-16"], "230.00"),
        ("on the first day", &[("04-01", "12")], "2026-01-01", "2026-04-01", &["12 from 04-01"], "360.00"),
        ("one, not said", &[], "2026-01-01", "2026-04-01", &[], "30.00"),
        ("one, said", &[("01-01", "1")], "2026-01-01", "2026-04-01", &[], "30.00"),
        ("one at first", &[("04-16", "2")], "2026-01-01", "2026-04-01", &["1 from 04-01", "2 from 04-16"], "45.00"),
        ("none", &[("01-01", "0")], "2026-01-01", "2026-04-01", &["0 from 04-01"], "0.00"),
    ];
    for (what, agreed, first, day, expected, amount) in rows {
        for payment_time in [PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse] {
            let lines = lines(&catalog, &[("seat", agreed)], payment_time, first, day);
            let [line] = lines.as_slice() else { panic!("not exactly one line: {what}") };
            assert_eq!(
                (shown(&line.quantities), line.amount.to_decimal().to_string()),
                (shown_as(expected), amount.into()),
                "{what}"
            );
            assert_eq!(
                (line.bill_with, line.service_period.start(), line.usage.is_none()),
                (BillWith::Fixed, line.period_start, true)
            );
            assert_eq!(line.period_start.month(), date(day).month());
        }
    }
}

fn shown_as(expected: &[&str]) -> Vec<String> {
    expected.iter().map(|text| (*text).to_owned()).collect()
}

#[test]
fn a_once_item_bills_the_quantity_of_its_first_day() {
    let catalog = pricing("seats", vec![once("setup", "100"), fixed("seat", "30.00")]);
    let rows: [(Steps<'_>, &[&str], &str); 3] = [
        (&[("01-15", "3"), ("01-20", "5")], &["3 from 01-15"], "300.00"),
        (&[("01-20", "5")], &[], "100.00"),
        (&[("01-01", "0")], &["0 from 01-15"], "0.00"),
    ];
    for (agreed, expected, amount) in rows {
        let of = |day: &str| lines(&catalog, &[("setup", agreed), ("seat", &[])], PaymentTime::AfterUse, "2026-01-15", day);
        let first = &of("2026-01-20")[0];
        assert_eq!((shown(&first.quantities), first.amount.to_decimal().to_string()), (shown_as(expected), amount.into()));
        let later: Vec<DocumentLine> = of("2026-02-20");
        assert_eq!(later.iter().map(|line| line.name.as_str()).collect::<Vec<_>>(), ["seat"]);
    }
}

#[test]
fn a_minimum_fee_counts_agreed_quantities() {
    let mut catalog = pricing("seats", vec![fixed("seat", "30.00")]);
    catalog.content.minimum_fee = Some(price("340"));
    let lines =
        lines(&catalog, &[("seat", &[("04-01", "10"), ("04-16", "12")])], PaymentTime::AfterUse, "2026-01-01", "2026-04-01");
    let amounts: Vec<String> = lines.iter().map(|line| format!("{} {}", line.name, line.amount)).collect();
    assert_eq!(amounts, ["seat 330.00 EUR", "Minimum fee 10.00 EUR"]);
}

fn any_quantities() -> impl Strategy<Value = Quantities> {
    prop::collection::btree_map(0u32..120, 0u32..50, 0..6).prop_map(|rows| {
        let first = date("2026-01-01");
        let step = |(day, many): (u32, u32)| QuantityStep {
            from: billing_domain::calendar::plus_days(first, day),
            quantity: quantity(&many.to_string()),
        };
        Quantities::new(rows.into_iter().map(step).collect()).expect("rising dates")
    })
}

proptest! {
    #[test]
    fn the_parts_of_a_range_are_its_days_one_by_one(agreed in any_quantities(), first in 0u32..100, days in 1u32..60) {
        let start = billing_domain::calendar::plus_days(date("2026-01-01"), first);
        let range = billing_domain::calendar::Period::new(start, billing_domain::calendar::plus_days(start, days)).expect("days");
        let parts: Vec<Quantity> =
            agreed.within(range).into_iter().flat_map(|(many, days)| std::iter::repeat_n(many, days as usize)).collect();
        let by_day: Vec<Quantity> = start.iter_days().take(days as usize).map(|day| agreed.on(day)).collect();
        prop_assert_eq!(parts, by_day);
    }

    #[test]
    fn a_list_holds_from_its_first_day_and_what_was_before_it(present in any_quantities(), list in any_quantities(), day in 0u32..150) {
        let day = billing_domain::calendar::plus_days(date("2026-01-01"), day);
        let Some(first) = list.as_slice().first() else { return Ok(()) };
        let expected = if day < first.from { present.on(day) } else { list.on(day) };
        let after = present.replaced_by(&list);
        prop_assert_eq!(after.on(day), expected);
        prop_assert!(Quantities::new(after.as_slice().to_vec()).is_ok());
    }
}

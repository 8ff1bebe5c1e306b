//! Tests of lines and their totals (billing rules 1.5 and 6).

use billing_domain::calendar::plus_days;
use billing_domain::catalog::{Charge, FixedPrice, LineItem, Pricing};
use billing_domain::charge::Charges;
use billing_domain::contract::terms::{PaymentTime, ProductTerms};
use billing_domain::contract::{Contract, ContractProduct, ProductPeriod, Segment, SegmentTerms};
use billing_domain::document::DocumentKind;
use billing_domain::document::lines::{BillWith, DiscountAndTax, DocumentLine, FamilySums};
use billing_domain::document::linking::{ProductPart, part_for_usage, parts_of_period};
use billing_domain::document::totals::{DocumentContent, RatedLines, UsageTotals, lines_of_period, total_up, usage_keys};
use billing_domain::money::{AmountOutOfRange, Currency, Money, MoneyError, Percentage};
use billing_domain::refs::{ContractRef, EventRef, ProductNo};
use billing_domain::tax::TaxTreatment;
use billing_domain::usage::{CountedEvent, UsageTotal};
use billing_testkit::{CountingIds, fixtures, strategies};
use fixtures::{agreed, agreed_with, at, currency, date, eur, fixed, once, per_unit, percent, price, pricing, quantity, taxed};
use proptest::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

const CONTRACT: ContractRef = ContractRef::from_uuid(Uuid::from_u128(1));

fn product(no: u16, terms: ProductTerms) -> ContractProduct {
    ContractProduct::new(ProductNo(no), terms)
}

/// A product's part of a document, with its rates.
#[derive(Clone)]
struct RatedPart<'c> {
    part: ProductPart<'c>,
    rates: DiscountAndTax,
}

fn rated<'c>(part: ProductPart<'c>, discount: &str, tax: &str) -> RatedPart<'c> {
    RatedPart { part, rates: DiscountAndTax { discount: percent(discount), tax: taxed(tax) } }
}

/// Returns totals with one event of this quantity for each usage product of each part.
fn used(parts: &[RatedPart<'_>], amount: &str) -> UsageTotals {
    let event = CountedEvent {
        event_ref: EventRef::from_uuid(Uuid::from_u128(2)),
        occurred_at: at("2026-01-01T00:00:00Z"),
        service_date: date("2026-01-01"),
        quantity: quantity(amount),
    };
    let total = UsageTotal::ZERO.plus(event).expect("in range");
    let periods = parts.iter().flat_map(|rated| [rated.part.fixed, rated.part.usage]).flatten();
    UsageTotals::new(periods.flat_map(|period| usage_keys(CONTRACT, &period)).map(|key| (key, total)))
}

/// Returns a contract with only the product of a period.
fn contract_of(contract_ref: ContractRef, period: &ProductPeriod<'_>) -> Contract {
    let ids = CountingIds::new();
    let contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), Vec::new());
    Contract { contract_ref, products: vec![period.product.clone()], ..contract }
}

/// Returns the lines of a part. If one period provides fixed items and usage, all its lines are returned. Otherwise, the
/// fixed lines come from one period and the usage lines from the other.
fn lines_of_part(
    contract_ref: ContractRef,
    part: &ProductPart<'_>,
    usage: &UsageTotals,
) -> Result<Vec<DocumentLine>, MoneyError> {
    if let (Some(period), true) = (part.fixed, part.fixed == part.usage) {
        return lines_of_period(&contract_of(contract_ref, &period), &period, usage, &Charges::default());
    }
    let mut lines = Vec::new();
    for (period, with) in [(part.fixed, BillWith::Fixed), (part.usage, BillWith::Usage)] {
        let Some(period) = period else { continue };
        lines.extend(
            lines_of_period(&contract_of(contract_ref, &period), &period, usage, &Charges::default())?
                .into_iter()
                .filter(|line| line.bill_with == with),
        );
    }
    Ok(lines)
}

/// Returns an invoice of parts without earlier documents in its family.
fn bill(
    contract_ref: ContractRef,
    currency: Currency,
    parts: &[RatedPart<'_>],
    usage: &UsageTotals,
) -> Result<DocumentContent, MoneyError> {
    let lines = parts.iter().map(|RatedPart { part, rates }| {
        let lines = lines_of_part(contract_ref, part, usage)?;
        Ok(RatedLines { product_no: part.own.product_no, terms: part.own.terms, rates: rates.clone(), lines })
    });
    total_up(currency, DocumentKind::Invoice, lines.collect::<Result<_, MoneyError>>()?, &FamilySums::default())
}

fn billed(currency: Currency, parts: &[RatedPart<'_>], amount: &str) -> DocumentContent {
    bill(CONTRACT, currency, parts, &used(parts, amount)).expect("in range")
}

/// Formats lines as `item of the period's first day: amount`. The true-up has no item.
fn lines(content: &DocumentContent) -> Vec<String> {
    let line = |line: &DocumentLine| {
        let item = line.line_item_id.as_ref().map_or("-", |id| id.as_str());
        format!("{item} of {}: {}", line.service_period.start().format("%m-%d"), line.amount.to_decimal())
    };
    content.products.iter().flat_map(|product| &product.lines).map(line).collect()
}

/// Returns subtotal, discount, tax and total.
fn sums(content: &DocumentContent) -> [String; 4] {
    [content.sub_total, content.total_discount, content.total_tax, content.total].map(|money| money.to_decimal().to_string())
}

/// Returns the invoice of the period that contains a day.
fn invoice<'c>(product: &'c ContractProduct, day: &str) -> ProductPart<'c> {
    let own: ProductPeriod<'c> = product.period_at(date(day)).expect("covered");
    parts_of_period(own)[0]
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
    for (unit_price, amount, discount, tax, expected) in rows {
        let product = product(0, agreed(&pricing("api", vec![per_unit("calls", unit_price)]), "2026-01-01", "2026-12-31"));
        let content = billed(eur(), &[rated(invoice(&product, "2026-01-01"), discount, tax)], amount);
        assert_eq!(sums(&content), expected, "{amount} × {unit_price}");
        assert!(content.adds_up());
    }
}

#[test]
fn each_tax_rate_is_rounded_once_over_all_its_products() {
    let of =
        |no: u16, amount: &str| product(no, agreed(&pricing("api", vec![fixed("base", amount)]), "2026-01-01", "2026-12-31"));
    // 10 % of each 0.05 alone would be 0.01. 10 % of 0.15 is 0.02.
    let products = [of(0, "0.05"), of(1, "10.00"), of(2, "0.05"), of(3, "0.05"), of(4, "1.00")];
    let parts: Vec<RatedPart<'_>> = products
        .iter()
        .zip(["10", "7", "10.0", "10", "0"])
        .map(|(product, tax)| rated(invoice(product, "2026-01-01"), "0", tax))
        .collect();
    let content = billed(eur(), &parts, "0");
    let taxes: Vec<String> = content
        .taxes
        .iter()
        .map(|tax| format!("{} % of {}: {}", tax.treatment.rate.as_decimal().normalize(), tax.base, tax.amount))
        .collect();
    assert_eq!(taxes, ["0 % of 1.00 EUR: 0.00 EUR", "7 % of 10.00 EUR: 0.70 EUR", "10 % of 0.15 EUR: 0.02 EUR"]);
    assert_eq!(sums(&content), ["11.15", "0.00", "0.72", "11.87"]);
    assert_eq!(content.products.iter().map(|product| product.product_no.0).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn fixed_items_cost_the_days_of_a_partial_period() {
    let catalog = pricing("api", vec![fixed("base", "100"), fixed("seat", "0.01")]);
    let product = product(0, agreed(&catalog, "2026-01-15", "2026-04-30"));
    let rows = [
        // 100 × 17 ÷ 31 = 54.838…
        ("2026-01-20", ["base of 01-15: 54.84", "seat of 01-15: 0.01"]),
        ("2026-02-20", ["base of 02-01: 100.00", "seat of 02-01: 0.01"]),
    ];
    for (day, expected) in rows {
        assert_eq!(lines(&billed(eur(), &[rated(invoice(&product, day), "0", "0")], "0")), expected);
    }
}

#[test]
fn usage_tiers_and_included_quantities_are_never_prorated() {
    let included = fixtures::with_charge(per_unit("calls", "1"), |charge| charge.included_quantity = quantity("10"));
    let tiered = fixtures::graduated("storage", &[(Some("10"), "1", "5"), (None, "2", "0")]);
    let product = product(0, agreed(&pricing("api", vec![included, tiered]), "2026-01-15", "2026-04-30"));
    let partial = billed(eur(), &[rated(invoice(&product, "2026-01-20"), "0", "0")], "12");
    assert_eq!(lines(&partial), ["calls of 01-15: 2.00", "storage of 01-15: 19.00"]);
    let usage = partial.products[0].lines[0].usage.as_ref().expect("a usage line");
    assert_eq!((usage.quantity, usage.unit_price), (Decimal::from(12), Some(price("1"))));
    let tiers: Vec<Decimal> = partial.products[0].lines[1]
        .usage
        .iter()
        .flat_map(|usage| &usage.tiers)
        .map(|tier| tier.quantity.to_decimal().expect("few digits"))
        .collect();
    assert_eq!(tiers, [Decimal::from(10), Decimal::from(2)]);
}

#[test]
fn minimum_amounts_are_prorated_and_maximum_amounts_are_not() {
    let bounded = fixtures::with_charge(per_unit("calls", "1"), |charge| {
        charge.minimum_amount = Some(price("31"));
        charge.maximum_amount = Some(price("40"));
    });
    let product = product(0, agreed(&pricing("api", vec![bounded]), "2026-01-15", "2026-04-30"));
    for (day, amount, expected) in [("2026-01-20", "0", "17.00"), ("2026-03-20", "0", "31.00"), ("2026-01-20", "999", "40.00")] {
        assert_eq!(sums(&billed(eur(), &[rated(invoice(&product, day), "0", "0")], amount))[3], expected);
    }
}

#[test]
fn once_items_are_billed_whole_in_the_first_period_alone() {
    let catalog = pricing("api", vec![once("setup", "100"), fixed("base", "31")]);
    let billed_on = |payment_time: PaymentTime, day: &str| {
        let terms = agreed_with(&catalog, "2026-01-15", "2026-03-31", |request| request.payment_time = Some(payment_time));
        let product = product(0, terms);
        lines(&billed(eur(), &[rated(invoice(&product, day), "0", "0")], "0"))
    };
    for payment_time in [PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse] {
        assert_eq!(billed_on(payment_time, "2026-01-15"), ["setup of 01-15: 100.00", "base of 01-15: 17.00"]);
        assert_eq!(billed_on(payment_time, "2026-02-15"), ["base of 02-01: 31.00"]);
    }
}

#[test]
fn a_new_version_does_not_bill_once_items_again() {
    let catalog = pricing("api", vec![once("setup", "100")]);
    let terms = || SegmentTerms::Billed(Box::new(agreed(&catalog, "2026-01-01", "2026-03-31")));
    let segment = |version, from: &str| Segment { version, in_force_from: date(from), agreed: terms() };
    let product = ContractProduct { no: ProductNo(0), segments: vec![segment(1, "2026-01-01"), segment(2, "2026-02-01")] };
    let first = billed(eur(), &[rated(invoice(&product, "2026-01-15"), "0", "0")], "0");
    let second = billed(eur(), &[rated(invoice(&product, "2026-02-15"), "0", "0")], "0");
    assert_eq!((lines(&first), lines(&second)), (vec!["setup of 01-01: 100.00".to_owned()], vec![]));
}

fn with_fee(mut catalog: Pricing, fee: &str) -> Pricing {
    catalog.content.minimum_fee = Some(price(fee));
    catalog
}

#[test]
fn a_minimum_fee_is_trued_up_by_a_line_of_its_own() {
    let catalog = with_fee(pricing("api", vec![fixed("base", "10"), per_unit("calls", "1")]), "50.00");
    let product = product(0, agreed(&catalog, "2026-01-15", "2026-04-30"));
    let rows: [(&str, &str, &[&str]); 5] = [
        ("2026-02-10", "0", &["base of 02-01: 10.00", "calls of 02-01: 0.00", "- of 02-01: 40.00"]),
        ("2026-02-10", "39.99", &["base of 02-01: 10.00", "calls of 02-01: 39.99", "- of 02-01: 0.01"]),
        ("2026-02-10", "40", &["base of 02-01: 10.00", "calls of 02-01: 40.00"]),
        ("2026-02-10", "1000", &["base of 02-01: 10.00", "calls of 02-01: 1000.00"]),
        // 50 × 17 ÷ 31 = 27.419…, 10 × 17 ÷ 31 = 5.483…
        ("2026-01-20", "1", &["base of 01-15: 5.48", "calls of 01-15: 1.00", "- of 01-15: 20.94"]),
    ];
    for (day, amount, expected) in rows {
        let content = billed(eur(), &[rated(invoice(&product, day), "10", "19")], amount);
        assert_eq!(lines(&content), expected, "{amount} in {day}");
        assert!(content.adds_up());
        assert_eq!(content.products[0].minimum_fee, Some(price("50.00")));
    }
}

#[test]
fn a_minimum_fee_counts_lines_wherever_they_stand() {
    let catalog = with_fee(pricing("api", vec![fixed("base", "10"), once("setup", "5"), per_unit("calls", "1")]), "50");
    let timed = |payment_time| agreed_with(&catalog, "2026-01-01", "2026-02-28", |r| r.payment_time = Some(payment_time));
    let all = |payment_time| {
        let product = product(0, timed(payment_time));
        let bill_part = |part| lines(&billed(eur(), &[rated(part, "0", "0")], "7"));
        let documents: Vec<Vec<String>> = product.periods().flat_map(parts_of_period).map(bill_part).collect();
        documents
    };
    // January: 10 + 5 + 7, February: 10 + 7.
    let during = [
        vec!["base of 01-01: 10.00", "setup of 01-01: 5.00"],
        vec!["base of 02-01: 10.00", "calls of 01-01: 7.00", "- of 01-01: 33.00"],
        vec!["calls of 02-01: 7.00", "- of 02-01: 33.00"],
    ];
    assert_eq!(all(PaymentTime::DuringUse), during);
    let before = [
        vec!["base of 01-01: 10.00", "setup of 01-01: 5.00"],
        vec!["calls of 01-01: 7.00", "- of 01-01: 33.00"],
        vec!["base of 02-01: 10.00"],
        vec!["calls of 02-01: 7.00", "- of 02-01: 33.00"],
    ];
    assert_eq!(all(PaymentTime::BeforeUse), before);
}

#[test]
fn the_last_periods_usage_is_billed_on_the_terms_it_was_used_under() {
    let during = |items: Vec<LineItem>, fee: &str| {
        let catalog = with_fee(pricing("api", items), fee);
        agreed_with(&catalog, "2026-01-01", "2026-12-31", |r| r.payment_time = Some(PaymentTime::DuringUse))
    };
    let old = during(vec![fixed("base", "10"), per_unit("calls", "1")], "20");
    let new = during(vec![fixed("other", "99"), per_unit("calls", "1000")], "100");
    let segment = |version, from: &str, terms| Segment {
        version,
        in_force_from: date(from),
        agreed: SegmentTerms::Billed(Box::new(terms)),
    };
    let product =
        ContractProduct { no: ProductNo(0), segments: vec![segment(1, "2026-01-01", old), segment(2, "2026-02-01", new)] };
    let january = product.period_at(date("2026-01-01")).expect("covered");
    let content = billed(eur(), &[rated(part_for_usage(january), "0", "0")], "3");
    assert_eq!(lines(&content), ["other of 02-01: 99.00", "calls of 01-01: 3.00", "- of 01-01: 7.00"]);
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
    for (code, unit_price, amount, expected) in rows {
        let mut catalog = pricing("api", vec![per_unit("calls", unit_price)]);
        catalog.content.currency = currency(code);
        let product = product(0, agreed(&catalog, "2026-01-01", "2026-12-31"));
        let content = billed(currency(code), &[rated(invoice(&product, "2026-01-01"), "10", "19")], amount);
        assert_eq!(sums(&content), expected, "{amount} × {unit_price} {code}");
    }
}

#[test]
fn an_amount_that_cannot_be_held_is_an_error() {
    let product = product(0, agreed(&pricing("api", vec![per_unit("calls", "999999999")]), "2026-01-01", "2026-12-31"));
    let part = [rated(invoice(&product, "2026-01-01"), "0", "0")];
    // 10^15 × 10^9 exceeds 64 bits of cents. So does the sum of two amounts that each fit.
    assert_eq!(bill(CONTRACT, eur(), &part, &used(&part, "999999999999999")), Err(AmountOutOfRange.into()));
    let nearly = [part[0].clone(), part[0].clone()];
    assert!(bill(CONTRACT, eur(), &part, &used(&part, "90000000")).is_ok());
    assert_eq!(bill(CONTRACT, eur(), &nearly, &used(&nearly, "90000000")), Err(AmountOutOfRange.into()));
}

#[test]
fn usage_of_another_product_period_or_contract_is_not_billed() {
    let terms = || agreed(&pricing("api", vec![per_unit("calls", "1")]), "2026-01-01", "2026-12-31");
    let (first, second) = (product(0, terms()), product(1, terms()));
    let january = rated(invoice(&first, "2026-01-01"), "0", "0");
    let elsewhere = [rated(invoice(&second, "2026-01-01"), "0", "0"), rated(invoice(&first, "2026-02-01"), "0", "0")];
    let content = bill(CONTRACT, eur(), std::slice::from_ref(&january), &used(&elsewhere, "5")).expect("in range");
    assert_eq!(lines(&content), ["calls of 01-01: 0.00"]);
    let other_contract = ContractRef::from_uuid(Uuid::from_u128(9));
    let content = bill(other_contract, eur(), std::slice::from_ref(&january), &used(std::slice::from_ref(&january), "5"))
        .expect("in range");
    assert_eq!(lines(&content), ["calls of 01-01: 0.00"]);
}

#[test]
fn a_document_without_shares_is_zero() {
    let content = billed(eur(), &[], "0");
    assert_eq!((sums(&content), content.taxes.len()), (["0.00", "0.00", "0.00", "0.00"].map(str::to_owned), 0));
    assert!(content.adds_up());
}

/// Generates a pricing with any price models, a fixed item and sometimes a minimum fee, with a discount and a tax rate.
fn any_product() -> impl Strategy<Value = (Pricing, Percentage, Percentage)> {
    let items = prop::collection::vec((strategies::usage_price(), proptest::option::of(strategies::small_price())), 0..4);
    let fixed_amount = strategies::small_price();
    let fee = proptest::option::of(strategies::small_price());
    (items, fixed_amount, fee, strategies::percentage(), strategies::percentage()).prop_map(
        |(items, amount, fee, discount, tax)| {
            let mut base = fixed("base", "0");
            if let Charge::Fixed { price, .. } = &mut base.charge {
                *price = FixedPrice::Flat { amount };
            }
            let item = |(i, (price, minimum)): (usize, _)| {
                let item = fixtures::usage_item(&format!("item-{i}"), &format!("product-{i}"), price);
                fixtures::with_charge(item, |charge| charge.minimum_amount = minimum)
            };
            let items = items.into_iter().enumerate().map(item).chain([base]).collect();
            let mut catalog = pricing("api", items);
            catalog.content.minimum_fee = fee;
            (catalog, discount, tax)
        },
    )
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
        amount in strategies::small_quantity(),
        day in 14u32..120,
    ) {
        let contract: Vec<ContractProduct> = (0..).zip(&products).map(|(no, (catalog, _, _))| {
            let mut catalog = catalog.clone();
            catalog.content.currency = currency;
            product(no, agreed(&catalog, "2026-01-15", "2026-04-30"))
        }).collect();
        let day = plus_days(date("2026-01-01"), day).to_string();
        let parts: Vec<RatedPart<'_>> = contract.iter().zip(&products).map(|(product, (_, discount_rate, tax_rate))| RatedPart {
            part: invoice(product, &day),
            rates: DiscountAndTax { discount: *discount_rate, tax: TaxTreatment::at(*tax_rate) },
        }).collect();
        let content = billed(currency, &parts, &amount.as_decimal().to_string());
        prop_assert!(content.adds_up());

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
        prop_assert_eq!(content.taxes.len(), content.products.iter().map(|p| &p.rates.tax).collect::<std::collections::BTreeSet<_>>().len());

        // A period never costs less than its minimum fee.
        for (product, part) in content.products.iter().zip(&parts) {
            let Some(fee) = product.minimum_fee else { continue };
            let period = part.part.usage.expect("usage is billed after use").period;
            let fee = Money::round_share(fee.as_decimal(), period.share(), currency).expect("in range");
            prop_assert!(product.sub_total.minor() >= fee.minor());
        }
    }

    #[test]
    fn what_is_one_minor_unit_off_does_not_add_up(amount in 1i64..1_000_000, which in 0usize..10) {
        let product = product(0, agreed(&pricing("api", vec![fixed("base", "12.34")]), "2026-01-01", "2026-12-31"));
        let content = billed(eur(), &[rated(invoice(&product, "2026-01-01"), "10", "19")], "0");
        prop_assert!(content.adds_up());
        let mut wrong = content.clone();
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

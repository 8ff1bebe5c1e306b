//! Tests of discount and tax of a document family. Differences keep `Σ amount = round(rate × Σ base)` (billing rules 5).

use billing_domain::contract::terms::ProductTerms;
use billing_domain::decimal::AmountOutOfRange;
use billing_domain::document::DocumentKind;
use billing_domain::document::lines::{BaseAndAmount, BillWith, DiscountAndTax, DocumentLine, FamilySums, SumKey, sign};
use billing_domain::document::totals::{DocumentContent, RatedLines, total_up};
use billing_domain::money::{Money, Percentage};
use billing_domain::refs::ProductNo;
use billing_domain::tax::TaxTreatment;
use billing_testkit::{fixtures, strategies};
use fixtures::{agreed, cents, date, eur, fixed, line, line_item_id, percent, period, pricing, taxed};
use proptest::prelude::*;

fn discount(percent_of: &str) -> SumKey {
    SumKey::Discount(ProductNo(0), DiscountAndTax { discount: percent(percent_of), tax: taxed("19") })
}

fn tax(percent_of: &str) -> SumKey {
    SumKey::Tax(taxed(percent_of))
}

/// Adds a base repeatedly and returns the amount of each step.
fn walk(key: &SumKey, base: i64, steps: usize) -> Vec<i64> {
    let mut sums = FamilySums::default();
    let mut take = || {
        let amount = sums.step(key, base, eur()).expect("in range");
        sums.add(key.clone(), base, amount).expect("in range");
        amount
    };
    (0..steps).map(|_| take()).collect()
}

#[test]
fn a_thousand_small_steps_make_what_one_large_step_makes() {
    let rows = [
        (discount("50"), 1, 1000, 500),
        (discount("49"), 1, 1000, 490),
        (tax("19"), 1, 1000, 190),
        (tax("0"), 1, 1000, 0),
        (discount("100"), 1, 1000, 1000),
        (tax("33.333333"), 1, 1000, 333),
        (tax("19"), 3, 1000, 570),
        (discount("50"), -1, 1000, -500),
        (tax("19"), -1, 1000, -190),
        (tax("19"), 1000, 1, 190),
    ];
    for (key, base, steps, expected) in rows {
        let amounts = walk(&key, base, steps);
        assert_eq!(amounts.iter().sum::<i64>(), expected, "{steps} × {base} at {key:?}");
        let (least, most) = (amounts.iter().min().copied().unwrap_or(0), amounts.iter().max().copied().unwrap_or(0));
        assert!(most - least <= 1, "the steps differ by at most one: {least}…{most} at {key:?}");
    }
}

#[test]
fn a_document_alone_in_its_family_is_rounded_as_anyone_expects() {
    // Half a cent is rounded away from zero.
    let rows = [("50", 1, 1), ("49", 1, 0), ("19", 3, 1), ("19", 2, 0), ("10", -5, -1), ("10", -4, 0)];
    for (rate, base, expected) in rows {
        assert_eq!(FamilySums::default().step(&tax(rate), base, eur()), Ok(expected), "{rate} % of {base}");
    }
}

#[test]
fn what_is_taken_back_gives_back_what_was_taken() {
    let mut sums = FamilySums::default();
    let mut step = |base: i64| {
        let amount = sums.step(&tax("19"), base, eur()).expect("in range");
        sums.add(tax("19"), base, amount).expect("in range");
        amount
    };
    // The taxes on 0.01, 0.02, 0.03, 0.01 and 0.00.
    assert_eq!([step(1), step(1), step(1), step(-2), step(-1)], [0, 0, 1, -1, 0]);
    assert_eq!(sums.get(&tax("19")), BaseAndAmount::default());
}

#[test]
fn every_rate_and_product_has_a_sum_of_its_own() {
    let rates = |discount: &str, tax: &str| DiscountAndTax { discount: percent(discount), tax: taxed(tax) };
    let keys = [
        SumKey::Discount(ProductNo(0), rates("50", "19")),
        SumKey::Discount(ProductNo(1), rates("50", "19")),
        SumKey::Discount(ProductNo(0), rates("50", "7")),
        SumKey::Discount(ProductNo(0), rates("49", "19")),
        SumKey::Tax(taxed("50")),
    ];
    let mut sums = FamilySums::new([(keys[0].clone(), BaseAndAmount { base: 1, amount: 1 })]);
    let first: Vec<i64> = keys.iter().map(|key| sums.step(key, 1, eur()).expect("in range")).collect();
    assert_eq!(first, [0, 1, 1, 0, 1], "only the first key has an earlier sum");
    sums.add(keys[4].clone(), 1, 1).expect("in range");
    assert_eq!(sums.iter().count(), 2);
    assert!(!sums.is_empty() && FamilySums::default().is_empty());
}

#[test]
fn a_sum_that_cannot_be_held_is_an_error() {
    let mut sums = FamilySums::new([(tax("19"), BaseAndAmount { base: i64::MAX, amount: 0 })]);
    assert_eq!(sums.step(&tax("19"), 1, eur()), Err(AmountOutOfRange));
    assert_eq!(sums.add(tax("19"), 1, 0), Err(AmountOutOfRange));
    let far = FamilySums::new([(tax("100"), BaseAndAmount { base: 0, amount: i64::MIN })]);
    assert_eq!(far.step(&tax("100"), 1, eur()), Err(AmountOutOfRange));
}

fn terms() -> ProductTerms {
    agreed(&pricing("api", vec![fixed("base", "1")]), "2026-01-01", "2026-12-31")
}

/// Returns a document with one line that follows other documents of its family.
fn document(
    terms: &ProductTerms,
    kind: DocumentKind,
    amount: Money,
    rates: DiscountAndTax,
    before: &FamilySums,
) -> DocumentContent {
    let line = DocumentLine {
        line_item_id: Some(line_item_id("base")),
        name: line("base"),
        period_start: date("2026-01-01"),
        service_period: period("2026-01-01", "2026-01-31"),
        bill_with: BillWith::Fixed,
        usage: None,
        quantities: Vec::new(),
        unit_code: None,
        charge: None,
        has_default_tax: false,
        amount,
        calculation: None,
    };
    let lines = RatedLines { product_no: ProductNo(0), terms, rates, lines: vec![line] };
    let content = total_up(amount.currency(), kind, vec![lines], before).expect("in range");
    assert!(content.adds_up());
    content
}

#[test]
fn a_thousand_children_of_a_cent_are_taxed_as_ten() {
    let terms = terms();
    // The discount, the net amount and its tax.
    for (discount, expected) in [("0", [0, 1000, 190]), ("49", [490, 510, 97]), ("50", [500, 500, 95]), ("100", [1000, 0, 0])] {
        let rates = DiscountAndTax { discount: percent(discount), tax: taxed("19") };
        let mut sums = FamilySums::default();
        let mut found = [0; 3];
        for _ in 0..1000 {
            let child = document(&terms, DocumentKind::Invoice, cents(1), rates.clone(), &sums);
            child.add_to(&mut sums, DocumentKind::Invoice, 1).expect("in range");
            let parts = [child.total_discount, child.taxes[0].base, child.total_tax];
            found.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part.minor());
        }
        assert_eq!(found, expected, "{discount} %");
    }
}

fn rounded(rate: Percentage, base: i64) -> i64 {
    cents(base).percent(rate).expect("in range").minor()
}

proptest! {
    /// Billing rules 5, discount and tax: the sums are rounded over documents of any kind, in order.
    #[test]
    fn the_sums_of_a_family_are_rounded_once(
        documents in prop::collection::vec((0usize..3, 0i64..100_000), 1..30),
        discount in strategies::percentage(),
        tax in strategies::percentage(),
    ) {
        let terms = terms();
        let rates = DiscountAndTax { discount, tax: TaxTreatment::at(tax) };
        let kinds = [DocumentKind::Invoice, DocumentKind::Debit, DocumentKind::Credit];
        let mut sums = FamilySums::default();
        let (mut lines, mut discounts, mut nets, mut taxes) = (0, 0, 0, 0);
        let mut contents = Vec::new();
        for (kind, amount) in documents {
            let content = document(&terms, kinds[kind], cents(amount), rates.clone(), &sums);
            content.add_to(&mut sums, kinds[kind], 1).expect("in range");
            let sign = sign(kinds[kind]);
            lines += sign * content.sub_total.minor();
            discounts += sign * content.total_discount.minor();
            nets += sign * content.taxes[0].base.minor();
            taxes += sign * content.total_tax.minor();
            prop_assert_eq!(discounts, rounded(discount, lines));
            prop_assert_eq!(taxes, rounded(tax, nets));
            contents.push((kinds[kind], content));
        }
        prop_assert_eq!(sums.get(&SumKey::Discount(ProductNo(0), rates)), BaseAndAmount { base: lines, amount: discounts });
        prop_assert_eq!(sums.get(&SumKey::Tax(TaxTreatment::at(tax))), BaseAndAmount { base: nets, amount: taxes });
        // Removing all documents, in any order, leaves nothing.
        for (kind, content) in contents {
            content.add_to(&mut sums, kind, -1).expect("in range");
        }
        prop_assert!(sums.iter().all(|(_, sum)| sum == BaseAndAmount::default()));
    }
}

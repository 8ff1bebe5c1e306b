//! The printed rows of a line's calculation, with words in the document's language.

use billing_domain::calendar::Period;
use billing_domain::decimal::WideDecimal;
use billing_domain::document::calculation::{
    CalculatedTier, CalculationStep, MinimumFeeCalculation, PackageCalculation, PercentageCalculation, PreviouslyBilled,
    Proration, QuantityShare, UnissuedAmount,
};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money};
use billing_domain::party::legal::Language;
use billing_domain::ports::PrintError;
use billing_domain::units::unit_of;
use rust_decimal::Decimal;
use serde::Serialize;

use crate::figures::Figures;
use crate::texts::Text;
use crate::translations::{Translations, with, with_all};

type PrintResult<T> = Result<T, PrintError>;

/// A row of a calculation.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Detail {
    pub(crate) what: String,
    pub(crate) amount: Option<String>,
}

/// A renderer of calculations in one language and currency.
#[derive(Clone, Copy)]
pub(crate) struct CalculationRenderer<'f> {
    pub(crate) language: Language,
    pub(crate) words: &'static Translations,
    pub(crate) figures: &'f Figures,
    pub(crate) currency: Currency,
}

impl CalculationRenderer<'_> {
    /// Returns the rows of the steps. `unit` is the name of one unit of usage.
    pub(crate) fn rows(&self, steps: &[CalculationStep], unit: Option<&str>) -> PrintResult<Vec<Detail>> {
        let mut rows = Vec::new();
        for step in steps {
            self.push(&mut rows, step, unit)?;
        }
        Ok(rows)
    }

    /// Returns a quantity with the name of its unit.
    pub(crate) fn counted(&self, quantity: Decimal, unit: Option<&str>) -> PrintResult<String> {
        let number = self.figures.number(quantity)?;
        Ok(match unit {
            Some(unit) => format!("{number} {}", unit_of(self.language, quantity, unit)),
            None => number,
        })
    }

    fn push(&self, rows: &mut Vec<Detail>, step: &CalculationStep, unit: Option<&str>) -> PrintResult<()> {
        let number = |number: Decimal| self.figures.number(number);
        let row = match step {
            CalculationStep::Usage { used, included, prepaid, billed } => {
                let counted = used.map(|used| self.counted(used, unit)).transpose()?;
                let is_exceeded = used.is_some_and(|used| prepaid.is_some_and(|prepaid| used >= prepaid));
                let worded = |quantity: Option<Decimal>, word: &str| -> PrintResult<Option<String>> {
                    quantity.map(|quantity| Ok(with(word, &number(quantity)?))).transpose()
                };
                let included = worded(*included, self.words.included)?;
                let prepaid = worded(*prepaid, self.words.prepaid)?;
                let billed = worded(Some(*billed), self.words.billed)?;
                // The larger one of the used and the prepaid quantity is priced. A prepaid quantity that isn't larger is in
                // parentheses, because it is not a factor.
                let parts: Vec<String> = match (counted, prepaid) {
                    (Some(used), Some(prepaid)) if is_exceeded => {
                        [Some(format!("{used} ({prepaid})")), included, billed].into_iter().flatten().collect()
                    }
                    (used, prepaid) => [used, prepaid, included, billed].into_iter().flatten().collect(),
                };
                Detail { what: parts.join(", "), amount: None }
            }
            CalculationStep::UnitPrice { quantity, unit_price, amount } => {
                let what = format!("{} × {}", number(*quantity)?, self.price(*unit_price)?);
                Detail { what, amount: Some(self.price(*amount)?) }
            }
            CalculationStep::Tier(tier) => self.tier(tier)?,
            CalculationStep::Packages { packages, amount } => {
                Detail { what: self.packages(packages)?, amount: Some(self.price(*amount)?) }
            }
            CalculationStep::Percentage { percentage, amount } => {
                Detail { what: self.percentage(percentage)?, amount: Some(self.price(*amount)?) }
            }
            CalculationStep::Quantity { share, unit_price } => return self.push_share(rows, share, *unit_price),
            CalculationStep::Proration(proration) => Detail { what: self.days(*proration)?, amount: None },
            CalculationStep::Minimum { minimum, proration, amount } => {
                self.limit(self.words.minimum, *minimum, *proration, *amount)?
            }
            CalculationStep::Maximum { maximum, amount } => self.limit(self.words.maximum, *maximum, None, *amount)?,
            CalculationStep::MinimumFee { minimum_fee, proration, amount } => {
                Detail { what: self.minimum_fee(minimum_fee, *proration)?, amount: Some(self.figures.amount(*amount)?) }
            }
            CalculationStep::Difference { now, previously, unissued, difference } => {
                self.difference(*now, previously.as_ref(), unissued.as_ref(), *difference)?
            }
        };
        rows.push(row);
        Ok(())
    }

    /// Adds the row of a quantity that applies to a part of the period, and those of its tiers or packages.
    fn push_share(&self, rows: &mut Vec<Detail>, share: &QuantityShare, unit_price: Option<Decimal>) -> PrintResult<()> {
        let quantity = self.figures.number(share.quantity.as_decimal())?;
        let factors = match unit_price {
            Some(unit_price) => format!("{quantity} × {}", self.price(unit_price)?),
            None => quantity,
        };
        let period = match Period::inclusive(share.from, share.to) {
            Some(period) => self.figures.period(period)?,
            None => self.figures.date(share.from)?,
        };
        let days = self.days(Proration { days: share.days, of_days: share.of_days })?;
        let what = format!("{factors}, {period}, {days}");
        rows.push(Detail { what, amount: Some(self.figures.amount(share.amount)?) });
        for tier in &share.tiers {
            rows.push(self.tier(tier)?);
        }
        if let Some(packages) = &share.packages {
            rows.push(Detail { what: self.packages(packages)?, amount: None });
        }
        Ok(())
    }

    fn tier(&self, tier: &CalculatedTier) -> PrintResult<Detail> {
        let mut what = format!("{} × {}", self.figures.number(tier.quantity)?, self.price(tier.unit_price.as_decimal())?);
        let flat = tier.flat_amount.as_decimal();
        if !flat.is_zero() {
            what = format!("{what} + {}", self.price(flat)?);
        }
        Ok(Detail { what, amount: Some(self.price(tier.amount)?) })
    }

    fn packages(&self, packages: &PackageCalculation) -> PrintResult<String> {
        let PackageCalculation { count, size, price } = packages;
        let (count, size) = (self.figures.number(*count)?, self.figures.number(size.as_decimal())?);
        Ok(with_all(self.words.packages, &[&count, &size, &self.price(price.as_decimal())?]))
    }

    fn percentage(&self, percentage: &PercentageCalculation) -> PrintResult<String> {
        let PercentageCalculation { rate, base, fixed_amount, count } = percentage;
        let rate = format!("{}{}", self.figures.number(rate.as_decimal())?, self.words.percent);
        let what = with_all(self.words.percent_of, &[&rate, &self.price(*base)?]);
        let fixed_amount = fixed_amount.as_decimal();
        if fixed_amount.is_zero() {
            return Ok(what);
        }
        Ok(format!("{what} + {} × {}", self.figures.number(Decimal::from(*count))?, self.price(fixed_amount)?))
    }

    /// Returns the row of a minimum or a maximum. The amount that it gives is omitted if it is the limit itself.
    fn limit(&self, word: &str, limit: Decimal, proration: Option<Proration>, amount: Money) -> PrintResult<Detail> {
        let what = with(word, &self.price(limit)?);
        let what = match proration {
            Some(proration) => format!("{what}, {}", self.days(proration)?),
            None => what,
        };
        let differs = proration.is_some() || limit != amount.to_decimal();
        let amount = differs.then(|| self.figures.amount(amount)).transpose()?;
        Ok(Detail { what, amount })
    }

    /// Returns the minimum fee, what counts for it, and the lines that don't.
    fn minimum_fee(&self, minimum_fee: &MinimumFeeCalculation, proration: Option<Proration>) -> PrintResult<String> {
        let MinimumFeeCalculation { fee, billed, excluded } = minimum_fee;
        let mut parts = vec![with(self.words.minimum_fee_of, &self.price(fee.as_decimal())?)];
        parts.extend(proration.map(|proration| self.days(proration)).transpose()?);
        let counted = if excluded.is_empty() { self.words.billed } else { self.words.counted };
        parts.push(with(counted, &self.figures.amount(*billed)?));
        let mut lines = Vec::new();
        for line in excluded {
            lines.push(format!("{} {}", Text::new(line.name.as_str()).0, self.figures.amount(line.amount)?));
        }
        let counted = parts.join(", ");
        if lines.is_empty() {
            return Ok(counted);
        }
        Ok(format!("{counted}; {}", with(self.words.not_counted, &lines.join(", "))))
    }

    fn difference(
        &self,
        now: Money,
        previously: Option<&PreviouslyBilled>,
        unissued: Option<&UnissuedAmount>,
        difference: Money,
    ) -> PrintResult<Detail> {
        let joined = |numbers: &[DocumentNumber]| numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let mut parts = vec![with(self.words.now, &self.figures.amount(now)?)];
        if let Some(PreviouslyBilled { amount, documents, quantity: _ }) = previously {
            let amount = self.figures.amount(*amount)?;
            parts.push(if documents.is_empty() {
                with(self.words.billed_before, &amount)
            } else {
                with_all(self.words.billed_on, &[&joined(documents), &amount])
            });
        }
        if let Some(UnissuedAmount { amount, documents }) = unissued {
            let named = if documents.is_empty() { String::new() } else { format!(" ({})", joined(documents)) };
            parts.push(with_all(self.words.unissued, &[&named, &self.figures.amount(*amount)?]));
        }
        parts.push(with(self.words.difference, &self.figures.amount(difference)?));
        Ok(Detail { what: parts.join(", "), amount: None })
    }

    fn days(&self, proration: Proration) -> PrintResult<String> {
        let Proration { days, of_days } = proration;
        let (days, of_days) = (self.figures.number(Decimal::from(days))?, self.figures.number(Decimal::from(of_days))?);
        Ok(with_all(self.words.of_days, &[&days, &of_days]))
    }

    /// Formats an exact price or an unrounded amount.
    fn price(&self, price: impl Into<WideDecimal>) -> PrintResult<String> {
        self.figures.price(price, self.currency)
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::document::DocumentKind;
    use billing_domain::document::calculation::{ExcludedAmount, LineCalculation};
    use billing_domain::party::NumberPrefix;
    use billing_domain::party::legal::PaperSize;
    use billing_testkit::fixtures;
    use fixtures::{date, eur, percent, price, quantity};

    use super::*;

    fn dec(text: &str) -> Decimal {
        Decimal::from_str_exact(text).expect(text)
    }

    fn cents(minor: i64) -> Money {
        Money::from_minor(minor, eur())
    }

    /// Returns the rows of a calculation as text.
    fn rows(calculation: &LineCalculation, language: Language, unit: Option<&str>) -> Vec<String> {
        let figures = Figures::of(language, PaperSize::A4).expect("figures");
        let renderer = CalculationRenderer { language, words: Translations::of(language), figures: &figures, currency: eur() };
        let rows = renderer.rows(&calculation.steps(eur()), unit).expect("rows");
        let shown = |row: Detail| match row.amount {
            Some(amount) => format!("{} = {amount}", row.what),
            None => row.what,
        };
        rows.into_iter().map(shown).collect()
    }

    fn tier(units: &str, unit_price: &str, flat_amount: &str, amount: &str) -> CalculatedTier {
        CalculatedTier {
            from: Decimal::ZERO,
            up_to: None,
            quantity: dec(units).into(),
            unit_price: price(unit_price),
            flat_amount: price(flat_amount),
            amount: dec(amount).into(),
        }
    }

    #[test]
    fn usage_shows_what_is_included_and_the_price_of_the_rest() {
        let calculation = LineCalculation {
            usage_quantity: Some(dec("273677")),
            included_quantity: Some(dec("10000")),
            billable_quantity: Some(dec("263677")),
            unit_price: "0.0006".parse().ok(),
            ..LineCalculation::default()
        };
        let wanted = ["273,677 calls, 10,000 included, 263,677 billed", "263,677 × 0.0006 = 158.2062"];
        assert_eq!(rows(&calculation, Language::En, Some("call")), wanted);
        let wanted = ["273.677 Aufrufe, 10.000 enthalten, 263.677 berechnet", "263.677 × 0,0006 = 158,2062"];
        assert_eq!(rows(&calculation, Language::De, Some("Aufrufe")), wanted);
    }

    #[test]
    fn a_prepaid_quantity_is_a_factor_only_if_it_is_larger_than_the_usage() {
        let of = |used: &str, billed: &str| LineCalculation {
            usage_quantity: Some(dec(used)),
            included_quantity: Some(dec("10000")),
            prepaid_quantity: Some(dec("500000")),
            billable_quantity: Some(dec(billed)),
            unit_price: "0.0006".parse().ok(),
            ..LineCalculation::default()
        };
        let wanted = "673,677 calls (500,000 prepaid), 10,000 included, 663,677 billed";
        assert_eq!(rows(&of("673677", "663677"), Language::En, Some("call"))[0], wanted);
        let wanted = "64,000 calls, 500,000 prepaid, 10,000 included, 490,000 billed";
        assert_eq!(rows(&of("64000", "490000"), Language::En, Some("call"))[0], wanted);
    }

    #[test]
    fn each_way_to_price_has_its_row() {
        let tiered = LineCalculation {
            usage_quantity: Some(dec("150")),
            billable_quantity: Some(dec("150")),
            tiers: vec![tier("100", "0.10", "5", "15"), tier("50", "0.05", "0", "2.50")],
            maximum: Some(dec("12")),
            ..LineCalculation::default()
        };
        let wanted = ["100 × 0.10 + 5.00 = 15.00", "50 × 0.05 = 2.50", "maximum 12.00"];
        assert_eq!(rows(&tiered, Language::En, None), wanted);

        let packages = PackageCalculation { count: dec("3"), size: quantity("1000"), price: price("35") };
        let packed = LineCalculation {
            usage_quantity: Some(dec("2100")),
            billable_quantity: Some(dec("2100")),
            packages: Some(packages),
            ..LineCalculation::default()
        };
        assert_eq!(rows(&packed, Language::En, None), ["3 × 1,000 at 35.00 = 105.00"]);

        let percentage =
            PercentageCalculation { rate: percent("2.9"), base: dec("1000"), fixed_amount: price("0.30"), count: 12 };
        let commission = LineCalculation {
            usage_quantity: Some(dec("1000")),
            billable_quantity: Some(dec("1000")),
            percentage: Some(percentage),
            minimum: Some(dec("50")),
            proration: Some(Proration { days: 24, of_days: 30 }),
            ..LineCalculation::default()
        };
        let wanted = ["2.9% of 1,000.00 + 12 × 0.30 = 32.60", "minimum 50.00, 24 of 30 days = 40.00"];
        assert_eq!(rows(&commission, Language::En, None), wanted);
        assert_eq!(rows(&commission, Language::Ja, None)[0], "1,000.00の2.9% + 12 × 0.30 = 32.60");
    }

    #[test]
    fn quantities_and_partial_periods_show_their_days() {
        let share = |from: &str, to: &str, seats: &str, days, amount| QuantityShare {
            from: date(from),
            to: date(to),
            quantity: quantity(seats),
            days,
            of_days: 31,
            tiers: Vec::new(),
            packages: None,
            amount: cents(amount),
        };
        let seats = LineCalculation {
            unit_price: "12".parse().ok(),
            quantities: vec![share("2026-10-01", "2026-10-14", "5", 14, 2710), share("2026-10-15", "2026-10-31", "12", 17, 7897)],
            ..LineCalculation::default()
        };
        let wanted = [
            "5 × 12.00, 1 Oct 2026 – 14 Oct 2026, 14 of 31 days = 27.10",
            "12 × 12.00, 15 Oct 2026 – 31 Oct 2026, 17 of 31 days = 78.97",
        ];
        assert_eq!(rows(&seats, Language::En, None), wanted);

        let partial = LineCalculation {
            billable_quantity: Some(dec("1")),
            unit_price: "49".parse().ok(),
            proration: Some(Proration { days: 24, of_days: 30 }),
            ..LineCalculation::default()
        };
        assert_eq!(rows(&partial, Language::En, None), ["1 × 49.00 = 49.00", "24 of 30 days"]);

        let fee = MinimumFeeCalculation { fee: price("100"), billed: cents(8900), excluded: Vec::new() };
        let of = |fee: MinimumFeeCalculation| LineCalculation { minimum_fee: Some(fee), ..LineCalculation::default() };
        assert_eq!(rows(&of(fee.clone()), Language::En, None), ["minimum fee 100.00, 89.00 billed = 11.00"]);
        let excluded = |name, minor| ExcludedAmount { name: fixtures::line(name), amount: cents(minor) };
        let fee = MinimumFeeCalculation { excluded: vec![excluded("Set-up", 25_000), excluded("Help", -500)], ..fee };
        let wanted = ["minimum fee 100.00, counted 89.00; not counted: Set-up 250.00, Help -5.00 = 11.00"];
        assert_eq!(rows(&of(fee), Language::En, None), wanted);
    }

    #[test]
    fn a_difference_names_the_documents_that_bill_the_rest() {
        let number =
            DocumentNumber { prefix: NumberPrefix::parse("UB").expect("a prefix"), kind: DocumentKind::Invoice, sequence: 1 };
        let mut calculation = LineCalculation {
            usage_quantity: Some(dec("60")),
            billable_quantity: Some(dec("60")),
            unit_price: "1".parse().ok(),
            previously: Some(PreviouslyBilled {
                quantity: Some(dec("49")),
                amount: cents(4900),
                documents: vec![number.clone()],
            }),
            ..LineCalculation::default()
        };
        let wanted = ["60 × 1.00 = 60.00", "now 60.00, billed on UB-INV-1: 49.00, difference 11.00"];
        assert_eq!(rows(&calculation, Language::En, None), wanted);
        calculation.previously.as_mut().expect("a difference").documents.clear();
        assert_eq!(rows(&calculation, Language::En, None)[1], "now 60.00, billed before: 49.00, difference 11.00");
        calculation.unissued = Some(UnissuedAmount { amount: cents(1000), documents: vec![number.clone()] });
        let wanted = "now 60.00, billed before: 49.00, on documents not issued yet (UB-INV-1): 10.00, difference 1.00";
        assert_eq!(rows(&calculation, Language::En, None)[1], wanted);
        calculation.unissued = Some(UnissuedAmount { amount: cents(1000), documents: Vec::new() });
        calculation.previously = None;
        let wanted = "jetzt 60,00, auf noch nicht ausgestellten Belegen: 10,00, Differenz 50,00";
        assert_eq!(rows(&calculation, Language::De, None)[1], wanted);
    }
}

//! Why and how something is taxed (billing rules 10): categories, reasons not to tax, and tax in the seller's own currency.
//! Rates and amounts are [`document::totals`](crate::document::totals)'.

use chrono::NaiveDate;

use crate::codes::ExemptionCode;
use crate::decimal::exact_mul;
use crate::money::{AmountOutOfRange, Currency, Money, MoneyError, Percentage, Price};
use crate::text::OneLine;
use crate::violation::Violations;

/// What kind of tax something bears: UNTDID 5305, as far as services are billed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaxCategory {
    /// Standard rate, or any other above zero.
    S,
    /// Zero rated.
    Z,
    /// Exempt.
    E,
    /// Reverse charge: the payer accounts for the tax.
    Ae,
    /// Export, not taxed.
    G,
    /// Not subject to tax.
    O,
}

impl TaxCategory {
    /// Whether the law asks for a reason.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Self::E | Self::Ae | Self::G | Self::O)
    }
}

/// A tax category, and the reason where nothing is taxed.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaxTreatment {
    /// The category.
    pub category: Option<TaxCategory>,
    /// The reason, as a code.
    pub exemption_code: Option<ExemptionCode>,
    /// The reason, in words.
    pub exemption_reason: Option<OneLine>,
}

impl TaxTreatment {
    /// Checks what is stated together with a tax in percent.
    ///
    /// # Errors
    /// `tax_category_rate` for `S` with 0 and any other with more, `exemption_reason_required` for a category that needs one,
    /// `not_allowed` for a reason without such a category.
    pub fn check(&self, tax: Option<Percentage>) -> Result<(), Violations> {
        let mut found = Violations::none();
        let is_taxed = tax.map(|tax| tax != Percentage::ZERO);
        match (self.category, is_taxed) {
            (Some(TaxCategory::S), Some(false)) => {
                let detail = "must not be S where tax is 0: state Z, E, AE, G or O, or a tax above 0";
                found.add(&["tax_category"], "tax_category_rate", detail);
            }
            (Some(category), Some(true)) if category != TaxCategory::S => {
                let detail = "must be S or left out where tax is above 0: state a tax of 0 for any other category";
                found.add(&["tax_category"], "tax_category_rate", detail);
            }
            _ => {}
        }
        let has_reason = self.exemption_code.is_some() || self.exemption_reason.is_some();
        if self.category.is_some_and(TaxCategory::needs_reason) {
            if !has_reason {
                let detail = "must be given, or exemption_code, where tax_category is E, AE, G or O";
                found.add(&["exemption_reason"], "exemption_reason_required", detail);
            }
        } else if has_reason {
            let field = if self.exemption_code.is_some() { "exemption_code" } else { "exemption_reason" };
            found.add(&[field], "not_allowed", "must be left out unless tax_category is E, AE, G or O");
        }
        found.or(())
    }

    /// How something is treated that is taxed at a rate (billing rules 10): above 0 it is `S`; at 0 as the first says that states
    /// another category, and not known where none does.
    pub fn effective<'t>(rate: Percentage, stated: impl IntoIterator<Item = &'t Self>) -> Self {
        if rate != Percentage::ZERO {
            return Self { category: Some(TaxCategory::S), ..Self::default() };
        }
        let is_untaxed = |treatment: &&Self| treatment.category.is_some_and(|category| category != TaxCategory::S);
        stated.into_iter().find(is_untaxed).cloned().unwrap_or_default()
    }
}

/// Whether `O` is beside another category, which no document may have.
pub fn mixes_untaxable(categories: impl IntoIterator<Item = TaxCategory>) -> bool {
    let (mut untaxable, mut others) = (false, false);
    for category in categories {
        untaxable |= category == TaxCategory::O;
        others |= category != TaxCategory::O;
    }
    untaxable && others
}

/// What one of a currency was worth in another from a day on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeRate {
    /// The currency of documents.
    pub from: Currency,
    /// The currency that tax is accounted for in.
    pub to: Currency,
    /// The first day it holds.
    pub date: NaiveDate,
    /// One of `from` in `to`; above zero.
    pub rate: Price,
}

impl ExchangeRate {
    /// Checks what no single field shows.
    ///
    /// # Errors
    /// Every violation found.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        if self.from == self.to {
            found.add(&["to"], "out_of_range", "must be another currency than from");
        }
        if self.rate == Price::ZERO {
            found.add(&["rate"], "out_of_range", "must be greater than zero");
        }
        found.or(())
    }

    /// An amount of `from` in `to`, rounded once.
    ///
    /// # Errors
    /// [`AmountOutOfRange`] when it can't be held.
    pub fn convert(&self, amount: Money) -> Result<Money, AmountOutOfRange> {
        Money::round(exact_mul(amount.to_decimal(), self.rate.as_decimal())?, self.to)
    }
}

/// A document's taxes in the currency that the seller accounts for them in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxInCurrency {
    /// What was converted with.
    pub rate: ExchangeRate,
    /// Each of the document's taxes, in their order.
    pub amounts: Vec<Money>,
    /// Their sum.
    pub total: Money,
}

impl TaxInCurrency {
    /// Converts a document's taxes, each rounded once.
    ///
    /// # Errors
    /// [`MoneyError`] when an amount can't be held.
    pub fn of(taxes: impl IntoIterator<Item = Money>, rate: ExchangeRate) -> Result<Self, MoneyError> {
        let amounts = taxes.into_iter().map(|tax| rate.convert(tax)).collect::<Result<Vec<_>, _>>()?;
        let total = Money::sum(rate.to, amounts.iter().copied())?;
        Ok(Self { rate, amounts, total })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> Percentage {
        Percentage::parse(text).expect(text)
    }

    fn treatment(category: Option<TaxCategory>, code: Option<&str>, reason: Option<&str>) -> TaxTreatment {
        TaxTreatment {
            category,
            exemption_code: code.map(|code| ExemptionCode::parse(code).expect(code)),
            exemption_reason: reason.map(|reason| OneLine::parse(reason).expect(reason)),
        }
    }

    #[test]
    fn category_rate_and_reason_have_to_fit() {
        use TaxCategory::{Ae, E, G, O, S, Z};
        let code = Some("VATEX-EU-AE");
        // Category, code, reason and tax, and what is refused.
        type Row<'a> = (Option<TaxCategory>, Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
        let rows: &[Row<'_>] = &[
            (None, None, None, None, &[]),
            (None, None, None, Some("19"), &[]),
            (Some(S), None, None, Some("19"), &[]),
            (Some(S), None, None, None, &[]),
            (Some(S), None, None, Some("0"), &["tax_category_rate"]),
            (Some(Z), None, None, Some("0.000"), &[]),
            (Some(Z), None, None, Some("0.1"), &["tax_category_rate"]),
            (Some(Ae), code, None, Some("0"), &[]),
            (Some(Ae), code, None, Some("7"), &["tax_category_rate"]),
            (Some(E), None, Some("Medical"), None, &[]),
            (Some(G), None, None, Some("0"), &["exemption_reason_required"]),
            (Some(O), None, None, Some("1"), &["tax_category_rate", "exemption_reason_required"]),
            (Some(Z), code, None, Some("0"), &["not_allowed"]),
            (Some(S), None, Some("because"), Some("19"), &["not_allowed"]),
            (None, code, None, None, &["not_allowed"]),
        ];
        for (category, code, reason, tax, codes) in rows {
            let refused = treatment(*category, *code, *reason).check(tax.map(percent)).err().unwrap_or_default();
            let found: Vec<&str> = refused.iter().map(|violation| violation.code).collect();
            assert_eq!(found, *codes, "{category:?} {code:?} {reason:?} {tax:?}");
        }
    }

    #[test]
    fn above_zero_is_standard_and_at_zero_the_first_other_category_counts() {
        use TaxCategory::{Ae, E, S, Z};
        let reverse = treatment(Some(Ae), Some("VATEX-EU-AE"), None);
        let exempt = treatment(Some(E), None, Some("Medical"));
        let (standard, none) = (treatment(Some(S), None, None), TaxTreatment::default());
        assert_eq!(TaxTreatment::effective(percent("19"), [&reverse]), standard);
        assert_eq!(TaxTreatment::effective(percent("0"), [&none, &reverse, &exempt]), reverse);
        assert_eq!(TaxTreatment::effective(percent("0.0"), [&standard, &none, &exempt]), exempt);
        assert_eq!(TaxTreatment::effective(percent("0"), [&standard, &none]), none);
        assert_eq!(TaxTreatment::effective(percent("0"), [&treatment(Some(Z), None, None), &exempt]).category, Some(Z));
    }

    #[test]
    fn what_is_not_subject_to_tax_stands_alone() {
        use TaxCategory::{Ae, E, O, S};
        for (categories, mixed) in [(&[][..], false), (&[O], false), (&[O, O], false), (&[S, Ae, E], false), (&[S, O], true)] {
            assert_eq!(mixes_untaxable(categories.iter().copied()), mixed, "{categories:?}");
        }
    }

    #[test]
    fn taxes_are_converted_one_by_one_and_added_up() {
        let currency = |code: &str| Currency::from_code(code).expect(code);
        let rate = |from, to, rate| ExchangeRate {
            from: currency(from),
            to: currency(to),
            date: NaiveDate::default(),
            rate: Price::parse(rate).expect(rate),
        };
        let usd = |minor| Money::from_minor(minor, currency("USD"));
        let euros = TaxInCurrency::of([usd(1864), usd(0), usd(-105)], rate("USD", "EUR", "0.9")).expect("small amounts");
        assert_eq!(euros.amounts.iter().map(|amount| amount.minor()).collect::<Vec<_>>(), [1678, 0, -95]);
        assert_eq!(euros.total, Money::from_minor(1583, currency("EUR")));
        let yen = TaxInCurrency::of([usd(1864)], rate("USD", "JPY", "151.23")).expect("a small amount");
        assert_eq!(yen.total, Money::from_minor(2819, currency("JPY")));
        let refused =
            |rate: ExchangeRate| rate.check().err().unwrap_or_default().iter().map(|v| v.path.concat()).collect::<Vec<_>>();
        assert!(refused(rate("USD", "EUR", "0.9")).is_empty());
        assert_eq!(refused(rate("USD", "USD", "0")), ["to", "rate"]);
    }
}

//! Tax treatment (billing rules 10): tax categories, exemption reasons, and tax in the seller's tax currency.
//!
//! Rates and amounts are in [`document::totals`](crate::document::totals).

use chrono::NaiveDate;
use rust_decimal::Decimal;

use crate::codes::ExemptionCode;
use crate::decimal::WideDecimal;
use crate::money::{AmountOutOfRange, Currency, Money, MoneyError, Percentage, Price};
use crate::text::OneLine;
use crate::violation::Violations;

/// The tax category of an amount: the codes of UNTDID 5305 that apply to services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TaxCategory {
    /// Standard rate, or any other rate above zero.
    S,
    /// Zero rated.
    Z,
    /// Exempt.
    E,
    /// Reverse charge: the payer accounts for the tax.
    Ae,
    /// Export, tax not charged.
    G,
    /// Not subject to tax.
    O,
}

impl TaxCategory {
    /// Returns whether the law requires a reason for the category.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Self::E | Self::Ae | Self::G | Self::O)
    }

    /// Returns the code of UNTDID 5305.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::S => "S",
            Self::Z => "Z",
            Self::E => "E",
            Self::Ae => "AE",
            Self::G => "G",
            Self::O => "O",
        }
    }
}

/// A tax category, with the reason if no tax is charged.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaxBasis {
    /// The category.
    pub category: Option<TaxCategory>,
    /// The exemption reason as a code.
    pub exemption_code: Option<ExemptionCode>,
    /// The exemption reason in words.
    pub exemption_reason: Option<OneLine>,
}

/// The tax treatment of an amount as one value. Amounts with different treatments are never netted (billing rules 5).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaxTreatment {
    /// The rate in percent.
    pub rate: Percentage,
    /// The category, with the reason if no tax is charged.
    pub basis: TaxBasis,
}

/// The tax settings of a product, a customer or an entity. A missing part comes from the next of them (billing rules 7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StatedTax {
    /// The rate in percent.
    pub rate: Option<Percentage>,
    /// The category, with the reason if no tax is charged.
    pub basis: TaxBasis,
}

/// A default tax of a customer or an entity, in force from a day.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatedTax {
    /// The first day it is in force, or `None` if it has no start.
    pub from: Option<NaiveDate>,
    /// The tax settings.
    pub stated: StatedTax,
}

/// The default taxes of a customer or an entity, oldest first (billing rules 7).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DefaultTaxes(Vec<DatedTax>);

impl StatedTax {
    /// Returns whether no setting is present.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns whether no part is left to a default. This is the case for a rate above 0, or a rate of 0 with a category.
    pub fn is_complete(&self) -> bool {
        self.rate.is_some_and(|rate| rate != Percentage::ZERO || self.basis.is_untaxed())
    }

    /// Returns whether a treatment matches all present settings. Missing settings match any treatment, and a category matches
    /// any rate above 0.
    pub fn allows(&self, treatment: &TaxTreatment) -> bool {
        let is_rate = self.rate.is_none_or(|rate| rate == treatment.rate);
        is_rate && (treatment.rate != Percentage::ZERO || !self.basis.is_untaxed() || self.basis == treatment.basis)
    }
}

impl DefaultTaxes {
    /// Creates default taxes from stored values.
    pub fn new(mut taxes: Vec<DatedTax>) -> Self {
        taxes.sort_by_key(|tax| tax.from);
        Self(taxes)
    }

    /// Returns default taxes with one tax that has no start, or empty default taxes if `stated` is empty.
    pub fn always(stated: StatedTax) -> Self {
        Self(if stated.is_empty() { Vec::new() } else { vec![DatedTax { from: None, stated }] })
    }

    /// Checks rules that involve more than one field (billing rules 10).
    ///
    /// # Errors
    /// Returns all violations.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::none();
        for violations in self.0.iter().filter_map(|tax| tax.stated.basis.check(tax.stated.rate).err()) {
            found.extend_below(&[], violations);
        }
        found.or(())
    }

    /// Returns all default taxes, oldest first.
    pub fn as_slice(&self) -> &[DatedTax] {
        &self.0
    }

    /// Returns the tax in force on a day.
    pub fn on(&self, day: NaiveDate) -> StatedTax {
        let in_force = self.0.iter().rev().find(|tax| tax.from.is_none_or(|from| from <= day));
        in_force.map(|tax| tax.stated.clone()).unwrap_or_default()
    }

    /// Returns the default taxes with another tax in force from a day. The new tax replaces those from that day or later. Without a
    /// day, it is in force from today, or without a start if no tax was ever set (billing rules 7).
    ///
    /// So the tax of a day changes only by a start on or before that day.
    #[must_use]
    pub fn with(&self, stated: StatedTax, from: Option<NaiveDate>, today: NaiveDate) -> Self {
        if self.0.is_empty() {
            return if stated.is_empty() { Self::default() } else { Self(vec![DatedTax { from, stated }]) };
        }
        let from = from.unwrap_or(today);
        let is_before = |tax: &&DatedTax| tax.from.is_none_or(|other| other < from);
        let mut kept: Vec<DatedTax> = self.0.iter().filter(is_before).cloned().collect();
        // An empty tax is kept at the start, too: it says that a tax was set before.
        if kept.last().is_none_or(|last| last.stated != stated) {
            kept.push(DatedTax { from: Some(from), stated });
        }
        Self(kept)
    }
}

impl TaxTreatment {
    /// Returns the treatment for a rate: category `S` above 0, no category at 0.
    pub fn at(rate: Percentage) -> Self {
        let category = (rate != Percentage::ZERO).then_some(TaxCategory::S);
        Self { rate, basis: TaxBasis { category, ..TaxBasis::default() } }
    }

    /// Returns the treatment that the ledger compares. Above 0, the category is `S`. Documents issued before legal particulars
    /// existed may lack the category.
    #[must_use]
    pub fn normalized(&self) -> Self {
        if self.rate == Percentage::ZERO { self.clone() } else { Self::at(self.rate) }
    }

    /// Returns the treatment that results from settings in order of precedence (billing rules 7, 10). The first setting with a rate
    /// determines the rate. Above 0, the category is `S`. At 0, the first setting with a category other than `S` determines the
    /// category. If none has such a category, the treatment has no category.
    pub fn of<'s>(stated: impl IntoIterator<Item = &'s StatedTax> + Clone) -> Self {
        let rate = stated.clone().into_iter().find_map(|stated| stated.rate).unwrap_or(Percentage::ZERO);
        if rate != Percentage::ZERO {
            return Self::at(rate);
        }
        let basis = stated.into_iter().map(|stated| &stated.basis).find(|basis| basis.is_untaxed());
        Self { rate, basis: basis.cloned().unwrap_or_default() }
    }
}

impl TaxBasis {
    /// Returns whether the category is set and isn't `S`.
    pub fn is_untaxed(&self) -> bool {
        self.category.is_some_and(|category| category != TaxCategory::S)
    }

    /// Checks the category and reason together with a tax rate in percent.
    ///
    /// # Errors
    /// Returns `tax_category_rate` for `S` with 0 and for any other category with a rate above 0. Returns
    /// `exemption_reason_required` for a category that requires a missing reason. Returns `not_allowed` for a reason without such a
    /// category.
    pub fn check(&self, tax: Option<Percentage>) -> Result<(), Violations> {
        let mut found = Violations::none();
        let is_taxed = tax.map(|tax| tax != Percentage::ZERO);
        match (self.category, is_taxed) {
            (Some(TaxCategory::S), Some(false)) => {
                let detail = "must not be S where tax is 0: state Z, E, AE, G or O, or a tax above 0";
                found.add(&["tax_category"], "tax_category_rate", detail);
            }
            (Some(category), Some(true)) if category != TaxCategory::S => {
                let detail = "must be S or be omitted, because tax is above 0: set tax to 0 for another category";
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
            found.add(&[field], "not_allowed", "must be omitted, because tax_category is not E, AE, G or O");
        }
        found.or(())
    }
}

/// Returns whether the categories combine `O` with another category, which no document may do.
pub fn mixes_untaxable(categories: impl IntoIterator<Item = TaxCategory>) -> bool {
    let (mut untaxable, mut others) = (false, false);
    for category in categories {
        untaxable |= category == TaxCategory::O;
        others |= category != TaxCategory::O;
    }
    untaxable && others
}

/// The exchange rate of two currencies, in force from a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExchangeRate {
    /// The currency of documents.
    pub from: Currency,
    /// The currency in which the seller accounts for tax.
    pub to: Currency,
    /// The first day it is in force.
    pub date: NaiveDate,
    /// The value of one unit of `from` in `to`; above zero.
    pub rate: Price,
}

impl ExchangeRate {
    /// Checks rules that involve more than one field.
    ///
    /// # Errors
    /// Returns all violations.
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

    /// Converts an amount of `from` to `to` and rounds it once.
    ///
    /// # Errors
    /// Returns [`AmountOutOfRange`] if the result can't be represented.
    pub fn convert(&self, amount: Money) -> Result<Money, AmountOutOfRange> {
        Money::round(WideDecimal::from(amount).times(self.rate.as_decimal())?, self.to)
    }
}

/// The taxes of a document in the seller's tax currency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaxInCurrency {
    /// The exchange rate of the conversion.
    pub rate: ExchangeRate,
    /// The converted taxes of the document, in their order.
    pub amounts: Vec<Money>,
    /// The sum of the converted taxes.
    pub total: Money,
}

impl TaxInCurrency {
    /// Converts the taxes of a document and rounds each of them once.
    ///
    /// # Errors
    /// Returns a [`MoneyError`] if an amount can't be represented.
    pub fn of(taxes: impl IntoIterator<Item = Money>, rate: ExchangeRate) -> Result<Self, MoneyError> {
        let amounts = taxes.into_iter().map(|tax| rate.convert(tax)).collect::<Result<Vec<_>, _>>()?;
        let total = Money::sum(rate.to, amounts.iter().copied())?;
        Ok(Self { rate, amounts, total })
    }
}

/// The tax of an issued document and its conversion, from which the rate of a correction follows (billing rules 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConvertedTax {
    /// The exchange rate of the conversion.
    pub rate: ExchangeRate,
    /// The tax in the document's currency.
    pub tax: Money,
    /// The tax in the seller's tax currency.
    pub converted: Money,
}

/// The number of decimals of a rate that several documents give together.
const MEAN_RATE_DECIMALS: u32 = 12;

impl ConvertedTax {
    /// Returns the exchange rate for what corrects documents: the rate of a single one, else the converted tax of all divided by
    /// their tax, whatever their signs. Returns `None` without documents.
    pub fn rate_of(documents: &[Self]) -> Option<ExchangeRate> {
        let (first, others) = documents.split_first()?;
        if others.is_empty() {
            return Some(first.rate);
        }
        let sum = |of: fn(&Self) -> Money| {
            let mut amounts = documents.iter().map(|document| of(document).to_decimal().abs());
            amounts.try_fold(WideDecimal::ZERO, WideDecimal::plus)
        };
        let mean = || {
            let (converted, tax) = (sum(|document| document.converted)?, sum(|document| document.tax)?);
            converted.ratio(Decimal::ONE, tax, MEAN_RATE_DECIMALS)
        };
        // Documents without tax, or with less than the tax currency expresses, give no rate together.
        let mean = mean().ok().and_then(|mean| Price::parse(&mean.to_string()).ok()).filter(|mean| *mean > Price::ZERO);
        let date = documents.iter().map(|document| document.rate.date).max().unwrap_or(first.rate.date);
        Some(mean.map_or(first.rate, |rate| ExchangeRate { rate, date, ..first.rate }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn percent(text: &str) -> Percentage {
        Percentage::parse(text).expect(text)
    }

    fn treatment(category: Option<TaxCategory>, code: Option<&str>, reason: Option<&str>) -> TaxBasis {
        TaxBasis {
            category,
            exemption_code: code.map(|code| ExemptionCode::parse(code).expect(code)),
            exemption_reason: reason.map(|reason| OneLine::parse(reason).expect(reason)),
        }
    }

    #[test]
    fn category_rate_and_reason_have_to_fit() {
        use TaxCategory::{Ae, E, G, O, S, Z};
        let code = Some("VATEX-EU-AE");
        // Category, code, reason, tax and the expected violations.
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
        let (standard, none) = (treatment(Some(S), None, None), TaxBasis::default());
        let stated = |rate: Option<&str>, basis: &TaxBasis| StatedTax { rate: rate.map(percent), basis: basis.clone() };
        let basis = |stated: &[StatedTax]| TaxTreatment::of(stated).basis;
        assert_eq!(basis(&[stated(Some("19"), &reverse)]), standard);
        assert_eq!(basis(&[stated(Some("0"), &none), stated(Some("19"), &reverse), stated(None, &exempt)]), reverse);
        assert_eq!(basis(&[stated(None, &standard), stated(None, &none), stated(None, &exempt)]), exempt);
        assert_eq!(basis(&[stated(Some("0"), &standard), stated(None, &none)]), none);
        assert_eq!(basis(&[stated(None, &treatment(Some(Z), None, None)), stated(None, &exempt)]).category, Some(Z));
    }

    #[test]
    fn what_is_stated_in_part_allows_every_treatment_that_has_that_part() {
        use TaxCategory::{Ae, Z};
        let stated = |rate: Option<&str>, category| StatedTax { rate: rate.map(percent), basis: treatment(category, None, None) };
        let taxed = |rate: &str| TaxTreatment::at(percent(rate));
        let untaxed = |category| TaxTreatment { rate: percent("0"), basis: treatment(Some(category), None, None) };
        for (stated, is_complete, treatment, allows) in [
            (stated(None, None), false, taxed("19"), true),
            (stated(None, None), false, untaxed(Ae), true),
            (stated(Some("19"), None), true, taxed("19"), true),
            (stated(Some("19"), None), true, taxed("7"), false),
            (stated(Some("0"), None), false, untaxed(Ae), true),
            (stated(Some("0"), None), false, taxed("7"), false),
            (stated(Some("0"), Some(Z)), true, untaxed(Z), true),
            (stated(Some("0"), Some(Z)), true, untaxed(Ae), false),
            (stated(None, Some(Z)), false, taxed("7"), true),
            (stated(None, Some(Z)), false, untaxed(Ae), false),
        ] {
            assert_eq!((stated.is_complete(), stated.allows(&treatment)), (is_complete, allows), "{stated:?} {treatment:?}");
        }
    }

    #[test]
    fn a_default_tax_holds_from_its_day_and_replaces_later_ones() {
        let day = |text: &str| crate::calendar::parse_date(text).expect(text);
        let rate = |text: &str| StatedTax { rate: Some(percent(text)), ..StatedTax::default() };
        let on = |taxes: &DefaultTaxes, text: &str| taxes.on(day(text)).rate.map(|rate| rate.as_decimal().to_string());
        let today = day("2027-03-01");
        let first = DefaultTaxes::default().with(rate("19"), None, today);
        assert_eq!(first, DefaultTaxes::always(rate("19")), "none was in force: since the beginning");
        let second = first.with(rate("16"), None, today);
        assert_eq!((on(&second, "2027-02-28"), on(&second, "2027-03-01")), (Some("19".to_owned()), Some("16".to_owned())));
        let third = second.with(rate("7"), Some(day("2027-06-01")), today).with(rate("20"), Some(day("2027-02-01")), today);
        assert_eq!(third.as_slice().len(), 2, "what was set for later days is gone");
        assert_eq!(on(&third, "2027-12-31"), Some("20".to_owned()));
        assert_eq!(third.with(rate("20"), Some(day("2027-05-01")), today), third, "the same again is no change");
        assert_eq!(third.with(StatedTax::default(), None, today).on(today), StatedTax::default());
    }

    #[test]
    fn what_is_not_subject_to_tax_stands_alone() {
        use TaxCategory::{Ae, E, O, S};
        for (categories, mixed) in [(&[][..], false), (&[O], false), (&[O, O], false), (&[S, Ae, E], false), (&[S, O], true)] {
            assert_eq!(mixes_untaxable(categories.iter().copied()), mixed, "{categories:?}");
        }
    }

    #[test]
    fn several_documents_give_the_rate_of_all_their_tax() {
        let currency = |code: &str| Currency::from_code(code).expect(code);
        let (eur, pln) = (currency("EUR"), currency("PLN"));
        let document = |rate: &str, tax, converted, day: u32| ConvertedTax {
            rate: ExchangeRate {
                from: eur,
                to: pln,
                date: NaiveDate::from_ymd_opt(2027, 1, day).expect("a day"),
                rate: Price::parse(rate).expect(rate),
            },
            tax: Money::from_minor(tax, eur),
            converted: Money::from_minor(converted, pln),
        };
        let rate = |documents: &[ConvertedTax]| {
            ConvertedTax::rate_of(documents).map(|rate| (rate.rate.as_decimal().to_string(), rate.date.to_string()))
        };
        let given = |rate: &str, date: &str| Some((rate.to_owned(), date.to_owned()));
        assert_eq!(rate(&[]), None);
        assert_eq!(rate(&[document("4.3", 1900, 8170, 5)]), given("4.3", "2027-01-05"));
        let two = [document("4.3", 1900, 8170, 9), document("4.5", -100, -450, 5)];
        assert_eq!(rate(&two), given("4.310000000000", "2027-01-09"));
        assert_eq!(rate(&[document("4.3", 1, 4, 5), document("4.3", 2, 9, 5)]), given("4.333333333333", "2027-01-05"));
        let nothing = [document("4.3", 0, 0, 5), document("4.5", 0, 0, 6)];
        assert_eq!(rate(&nothing), given("4.3", "2027-01-05"), "no tax, no mean");
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

//! Taxes and sums of an e-invoice, and the limits of the standard (BG-23).

use rust_decimal::Decimal;

use super::EInvoiceError;
use super::business_terms::{TaxSubtotal, filled};
use crate::decimal::WideDecimal;
use crate::document::totals::{DocumentContent, Tax};
use crate::money::{Currency, Money, MoneyError, Percentage};
use crate::party::legal::EInvoiceProfile;
use crate::tax::{TaxCategory, TaxTreatment};

/// The most fractional digits of an amount (BR-DEC).
const AMOUNT_DIGITS: u32 = 2;
/// Currencies that documents may have and that the code list of the standard lacks (BR-CL-04).
const UNLISTED_CURRENCIES: [&str; 7] = ["BGN", "CUC", "HRK", "SLL", "STN", "XAD", "ZWL"];

/// Returns the category of a treatment. Above a rate of zero it is S.
pub(super) fn category_of(treatment: &TaxTreatment) -> TaxCategory {
    match treatment.basis.category {
        Some(category) if treatment.rate == Percentage::ZERO => category,
        _ => TaxCategory::S,
    }
}

/// Returns the categories of a document's taxes, without those at a rate of zero that have none.
pub(super) fn categories(content: &DocumentContent) -> Vec<TaxCategory> {
    let has_category = |tax: &&Tax| tax.treatment.rate != Percentage::ZERO || tax.treatment.basis.category.is_some();
    content.taxes.iter().filter(has_category).map(|tax| category_of(&tax.treatment)).collect()
}

/// Checks that amounts in the currencies can be written.
pub(super) fn require_expressible(currency: Currency, tax_currency: Option<Currency>) -> Result<(), EInvoiceError> {
    for currency in std::iter::once(currency).chain(tax_currency) {
        if currency.exponent() > AMOUNT_DIGITS {
            let digits = currency.exponent();
            let reason =
                format!("amounts in {currency} have {digits} decimals, and an e-invoice allows {AMOUNT_DIGITS} (BR-DEC)");
            return Err(EInvoiceError::unavailable(reason));
        }
        if UNLISTED_CURRENCIES.contains(&currency.code()) {
            let reason = format!("{currency} isn't in the standard's list of currencies (BR-CL-04)");
            return Err(EInvoiceError::unavailable(reason));
        }
    }
    Ok(())
}

/// Returns one entry for each category and rate. Exemption reasons of one category are joined, because the standard allows one
/// entry for each category (BR-E-01).
pub(super) fn tax_breakdown(profile: EInvoiceProfile, content: &DocumentContent) -> Result<Vec<TaxSubtotal>, EInvoiceError> {
    let mut entries: Vec<(Percentage, TaxSubtotal)> = Vec::new();
    for Tax { treatment, base, amount } in &content.taxes {
        let (category, rate) = (category_of(treatment), treatment.rate);
        let with_reason = category.needs_reason();
        let code = treatment.basis.exemption_code.filter(|_| with_reason);
        let reason = treatment.basis.exemption_reason.as_ref().filter(|_| with_reason).and_then(|reason| filled(reason.as_str()));
        let same = entries.iter_mut().find(|(of, entry)| (*of, entry.category) == (rate, category));
        let Some((_, entry)) = same else {
            let shown = (category != TaxCategory::O || profile == EInvoiceProfile::Xrechnung).then_some(rate);
            let entry =
                TaxSubtotal { base: *base, tax: *amount, category, rate: shown, exemption_reason: reason, exemption_code: code };
            entries.push((rate, entry));
            continue;
        };
        entry.base = entry.base.checked_add(*base)?;
        entry.tax = entry.tax.checked_add(*amount)?;
        if entry.exemption_code != code {
            // Two codes don't fit in one entry, so both become part of the reason.
            let words = [
                entry.exemption_reason.take(),
                entry.exemption_code.take().map(|code| code.to_string()),
                reason,
                code.map(|code| code.to_string()),
            ];
            entry.exemption_reason = joined(words);
        } else if entry.exemption_reason != reason {
            entry.exemption_reason = joined([entry.exemption_reason.take(), reason]);
        }
    }
    for (rate, entry) in &entries {
        let (tax, base) = (entry.tax, entry.base);
        let of_rate = || format!("the tax of {tax} at {} % on {base}", rate.as_decimal().normalize());
        if !is_near(base, *rate, tax)? {
            let reason =
                "differs from the rate by 1.00 or more, which BR-CO-17 refuses: a document's tax is rounded over its family";
            return Err(EInvoiceError::unavailable(format!("{} {reason}", of_rate())));
        }
        if rounds_to_zero(rate.as_decimal()) && !rounds_to_zero(tax.to_decimal()) {
            let reason = "is 0.50 or more, which BR-CO-17 refuses at a rate below 0.5 %, because the rule rounds the rate to 0 %";
            return Err(EInvoiceError::unavailable(format!("{} {reason}", of_rate())));
        }
    }
    Ok(entries.into_iter().map(|(_, entry)| entry).collect())
}

fn joined(words: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let mut distinct: Vec<String> = Vec::new();
    for word in words.into_iter().flatten() {
        if !distinct.contains(&word) {
            distinct.push(word);
        }
    }
    (!distinct.is_empty()).then(|| distinct.join("; "))
}

/// Returns whether a number is 0 in whole units, to which the rule BR-CO-17 rounds rates and taxes.
fn rounds_to_zero(number: Decimal) -> bool {
    number.abs() < Decimal::new(5, 1)
}

/// Returns whether a tax differs from its rate by less than 1.00, as the rules BR-CO-17 and BR-S-09 require.
fn is_near(base: Money, rate: Percentage, tax: Money) -> Result<bool, MoneyError> {
    let of = |amount: Money, factor: Decimal| WideDecimal::from(amount.to_decimal().abs()).times(factor);
    let (expected, billed) = (of(base, rate.as_decimal())?, of(tax, Decimal::ONE_HUNDRED)?);
    // Both are in hundredths. The rules round the expected tax to whole hundredths, so the limits lie half a hundredth lower.
    let limit = Decimal::new(995, 1);
    Ok(billed.plus(-limit)? <= expected && expected < billed.plus(limit)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tax_may_differ_from_its_rate_by_less_than_one() {
        let money = |minor, code: &str| Money::from_minor(minor, Currency::from_code(code).expect(code));
        let rate = |text: &str| Percentage::parse(text).expect(text);
        for (base, percent, tax, is_expected) in [
            (10_000, "19", 1900, true),
            (10_000, "19", 1999, true),
            (10_000, "19", 2000, false),
            (10_000, "19", 1801, true),
            (10_000, "19", 1800, false),
            (-10_000, "19", -1900, true),
            (1, "19", 0, true),
            (1_000_000, "0.4", 0, false),
            (1_000, "0.4", 4, true),
            (3_333, "0.25", 8, true),
            (1_000, "0.5", 5, true),
            (0, "0", 0, true),
        ] {
            let found = is_near(money(base, "EUR"), rate(percent), money(tax, "EUR"));
            assert_eq!(found, Ok(is_expected), "{base} {percent} {tax}");
        }
        assert_eq!(is_near(money(100, "JPY"), rate("10"), money(10, "JPY")), Ok(true));
        assert_eq!(is_near(money(100, "JPY"), rate("10"), money(11, "JPY")), Ok(false));
    }

    #[test]
    fn currencies_have_two_decimals_and_are_listed() {
        let currency = |code: &str| Currency::from_code(code).expect(code);
        assert_eq!(require_expressible(currency("EUR"), None), Ok(()));
        assert_eq!(require_expressible(currency("JPY"), Some(currency("EUR"))), Ok(()));
        for (code, tax) in [("KWD", None), ("EUR", Some("KWD")), ("STN", None)] {
            let found = require_expressible(currency(code), tax.map(currency));
            assert!(matches!(found, Err(EInvoiceError::Unavailable(_))), "{code} {tax:?}");
        }
    }
}

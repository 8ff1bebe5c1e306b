//! Localized numbers and dates.

use std::fmt;

use billing_domain::calendar::{Date, Period};
use billing_domain::decimal::WideDecimal;
use billing_domain::money::{Currency, Money, MoneySum};
use billing_domain::party::legal::{Language, PaperSize};
use billing_domain::ports::PrintError;
use chrono::Datelike as _;
use fixed_decimal::Decimal as FixedDecimal;
use icu_calendar::{Gregorian, Iso};
use icu_datetime::FixedCalendarDateTimeFormatter;
use icu_datetime::fieldsets::YMD;
use icu_datetime::options::YearStyle;
use icu_decimal::DecimalFormatter;
use icu_locale_core::{Locale, locale};

/// A formatter for one language.
pub(crate) struct Figures {
    decimals: DecimalFormatter,
    dates: FixedCalendarDateTimeFormatter<Gregorian, YMD>,
}

fn failed(error: impl fmt::Display) -> PrintError {
    PrintError::Failed(format!("a figure: {error}"))
}

/// Returns the locale of a language. For English it depends on the paper size: American on letter paper.
const fn locale_of(language: Language, size: PaperSize) -> Locale {
    match (language, size) {
        (Language::En, PaperSize::Letter) => locale!("en-US"),
        (Language::En, PaperSize::A4) => locale!("en-GB"),
        (Language::De, _) => locale!("de"),
        (Language::Fr, _) => locale!("fr"),
        (Language::Es, _) => locale!("es"),
        (Language::It, _) => locale!("it"),
        (Language::Nl, _) => locale!("nl"),
        (Language::Pt, _) => locale!("pt"),
        (Language::Pl, _) => locale!("pl"),
        (Language::Ja, _) => locale!("ja"),
        (Language::Sv, _) => locale!("sv"),
        (Language::Da, _) => locale!("da"),
        (Language::Nb, _) => locale!("nb"),
        (Language::Fi, _) => locale!("fi"),
        (Language::Cs, _) => locale!("cs"),
        (Language::Hu, _) => locale!("hu"),
        (Language::Ro, _) => locale!("ro"),
    }
}

impl Figures {
    /// Creates the formatter for a language and a paper size.
    pub(crate) fn of(language: Language, size: PaperSize) -> Result<Self, PrintError> {
        let locale = locale_of(language, size);
        Ok(Self {
            decimals: DecimalFormatter::try_new((&locale).into(), icu_decimal::options::DecimalFormatterOptions::default())
                .map_err(failed)?,
            dates: FixedCalendarDateTimeFormatter::try_new((&locale).into(), YMD::medium().with_year_style(YearStyle::Full))
                .map_err(failed)?,
        })
    }

    /// Formats a number with at least so many fractional digits, and without zeros after them.
    fn digits(&self, number: impl Into<WideDecimal>, fraction: u32) -> Result<String, PrintError> {
        let mut fixed = FixedDecimal::try_from_str(&number.into().to_string()).map_err(failed)?;
        fixed.absolute.trim_end();
        fixed.absolute.pad_end(-i16::try_from(fraction).map_err(failed)?);
        Ok(self.decimals.format(&fixed).to_string())
    }

    /// Formats an exact number without trailing zeros.
    pub(crate) fn number(&self, number: impl Into<WideDecimal>) -> Result<String, PrintError> {
        self.digits(number, 0)
    }

    /// Formats an exact price with at least the digits of its currency.
    pub(crate) fn price(&self, price: impl Into<WideDecimal>, currency: Currency) -> Result<String, PrintError> {
        self.digits(price, currency.exponent())
    }

    /// Formats an amount without its currency.
    pub(crate) fn amount(&self, amount: Money) -> Result<String, PrintError> {
        self.digits(amount, amount.currency().exponent())
    }

    /// Formats a sum of amounts without its currency.
    pub(crate) fn sum(&self, sum: MoneySum) -> Result<String, PrintError> {
        self.digits(sum.to_decimal(), sum.currency().exponent())
    }

    /// Formats an amount with its currency.
    pub(crate) fn money(&self, amount: Money) -> Result<String, PrintError> {
        Ok(format!("{}\u{a0}{}", self.amount(amount)?, amount.currency()))
    }

    pub(crate) fn date(&self, date: Date) -> Result<String, PrintError> {
        let (month, day) = (u8::try_from(date.month()).map_err(failed)?, u8::try_from(date.day()).map_err(failed)?);
        let date = icu_calendar::Date::<Iso>::try_new_iso(date.year(), month, day).map_err(failed)?;
        Ok(self.dates.format(&date.to_calendar(Gregorian)).to_string())
    }

    /// Formats the first and the last day of a period.
    pub(crate) fn period(&self, period: Period) -> Result<String, PrintError> {
        let (first, last) = (self.date(period.start())?, self.date(period.last_day())?);
        Ok(if first == last { first } else { format!("{first} – {last}") })
    }
}

//! Exchange rates for tax.

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::money::{Currency, Price};
use billing_domain::ports::StoredExchangeRate;
use billing_domain::tax::ExchangeRate;
use billing_domain::violation::Violations;
use serde_json::Value;

use super::declare::{Fieldset as _, answer, body, fields, ignore_response_fields};
use super::input;
use super::values::{CurrencyCode, DateText};
use super::wire::ExactNumber;

fields! {
    ExchangeRate {
        /// Currency of documents.
        from: Currency,
        /// Currency in which an entity accounts for tax.
        to: Currency,
        /// First day of the rate, which is in force until the next rate.
        date: Date,
        /// Value of one unit of `from` in `to`; positive.
        rate: Price,
    }
}

body! {
    /// An exchange rate from a date. An existing rate for the same currencies and date is replaced; issued documents
    /// retain their rate.
    ExchangeRateBody {
        @flat rate: ExchangeRate,
    }
    with {
        ignore_response_fields!(ExchangeRateJson);
    }
}

impl ExchangeRateBody {
    /// Reads a valid exchange rate.
    ///
    /// # Errors
    /// Returns all violations.
    pub fn read_rate(body: &Value) -> Result<ExchangeRate, Violations> {
        input::read(body, |fields| {
            let Self { rate } = Self::read_whole(fields)?;
            fields.agreed(rate.check())?;
            Some(rate)
        })
    }
}

fields! {
    answer ExchangeRate {
        /// Currency of documents.
        from: Currency,
        /// Currency in which an entity accounts for tax.
        to: Currency,
        /// First day of the rate.
        date: Date,
        /// Value of one unit of `from` in `to`.
        rate: Price,
    }
}

answer! {
    /// An exchange rate.
    ExchangeRateJson of StoredExchangeRate {
        @flat rate: ExchangeRate,
        /// Time of the last change.
        updated_at: Timestamp,
    }
}

answer! {
    /// An exchange rate in the audit log.
    AuditedExchangeRateJson of rate: ExchangeRate {
        /// Currency of documents.
        from: CurrencyCode = rate.from,
        /// Currency in which an entity accounts for tax.
        to: CurrencyCode = rate.to,
        /// First day of the rate.
        date: DateText = rate.date,
        /// Value of one unit of `from` in `to`.
        rate: ExactNumber = rate.rate,
    }
}

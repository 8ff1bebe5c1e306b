//! Exchange rates for tax.

use billing_domain::calendar::Date;
use billing_domain::money::{Currency, Price};
use billing_domain::tax::ExchangeRate;
use billing_domain::violation::Violations;
use serde_json::Value;

use super::declare::{Fieldset as _, answer, body, fields};
use super::input;

fields! {
    ExchangeRate {
        /// The currency of documents.
        from: Currency,
        /// The currency that an entity accounts for tax in.
        to: Currency,
        /// The first day it holds, up to the day before the next one's.
        date: Date,
        /// One of `from` in `to`; above zero.
        rate: Price,
    }
}

body! {
    /// What one of a currency is worth in another from a day on. One of the same currencies and day is replaced; issued documents
    /// keep theirs.
    ExchangeRateBody {
        @flat rate: ExchangeRate,
    }
}

impl ExchangeRateBody {
    /// Reads an exchange rate that can be one.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_rate(body: &Value) -> Result<ExchangeRate, Violations> {
        input::read(body, |fields| {
            let Self { rate } = Self::read_whole(fields)?;
            fields.agreed(rate.check())?;
            Some(rate)
        })
    }
}

answer! {
    /// An exchange rate.
    ExchangeRateJson of ExchangeRate {
        /// The currency of documents.
        from: Currency,
        /// The currency that an entity accounts for tax in.
        to: Currency,
        /// The first day it holds.
        date: Date,
        /// One of `from` in `to`.
        rate: Price,
    }
}

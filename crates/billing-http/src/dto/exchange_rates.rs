//! Exchange rates for tax.

use billing_domain::money::Price;
use billing_domain::tax::ExchangeRate;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Node};
use super::wire::{CurrencyCode, DateText, ExactNumber, PriceInput};

/// What one of a currency is worth in another from a day on. One of the same currencies and day is replaced; issued documents
/// keep theirs.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"from": "USD", "to": "EUR", "date": "2026-11-20", "rate": "0.9213"}))]
pub(crate) struct ExchangeRateBody {
    /// The currency of documents.
    from: CurrencyCode,
    /// The currency that an entity accounts for tax in.
    to: CurrencyCode,
    /// The first day it holds, up to the day before the next one's.
    date: DateText,
    /// One of `from` in `to`; above zero.
    rate: PriceInput,
}

impl ExchangeRateBody {
    /// Reads an exchange rate.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<ExchangeRate, Violations> {
        input::read(body, |fields| {
            fields.only(&["from", "to", "date", "rate"]);
            let from = fields.required("from", Node::currency);
            let to = fields.required("to", Node::currency);
            let date = fields.required("date", Node::date);
            let rate = fields.required("rate", |node| node.decimal(Price::parse));
            let rate = ExchangeRate { from: from?, to: to?, date: date?, rate: rate? };
            fields.agreed(rate.check())?;
            Some(rate)
        })
    }
}

/// An exchange rate.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExchangeRateJson {
    /// The currency of documents.
    from: CurrencyCode,
    /// The currency that an entity accounts for tax in.
    to: CurrencyCode,
    /// The first day it holds.
    date: DateText,
    /// One of `from` in `to`.
    rate: ExactNumber,
}

impl From<&ExchangeRate> for ExchangeRateJson {
    fn from(rate: &ExchangeRate) -> Self {
        Self {
            from: CurrencyCode::from(rate.from),
            to: CurrencyCode::from(rate.to),
            date: DateText::from(rate.date),
            rate: ExactNumber::from(rate.rate),
        }
    }
}

//! Document summaries.

use billing_domain::ports::BilledMonth;

use super::declare::answer;
use super::values::{CurrencyCode, DateText};
use super::wire::ExactNumber;

answer! {
    /// The documents issued and voided in a month in one currency.
    #[schema(example = json!({
        "issued_from": "2026-01-01",
        "issued_to": "2026-01-31",
        "currency": "EUR",
        "documents": 3,
        "invoiced": 1250.00,
        "credited": 50.00,
        "voided": 100.00,
        "billed": 1100.00
    }))]
    DocumentSummaryJson of month: BilledMonth {
        /// First day of the month.
        issued_from: DateText = month.first_day,
        /// Last day of the month.
        issued_to: DateText = month.last_day(),
        /// Currency of the amounts.
        currency: CurrencyCode = month.billed.currency(),
        /// Number of documents issued in the month, including those voided later.
        documents: u64 = month.documents,
        /// Sum of the totals of invoices and debits.
        invoiced: ExactNumber = month.invoiced,
        /// Sum of the totals of credits.
        credited: ExactNumber = month.credited,
        /// Sum of the totals of the documents voided in the month, whenever they were issued.
        voided: ExactNumber = month.voided,
        /// `invoiced` less `credited` and `voided`.
        billed: ExactNumber = month.billed,
    }
}

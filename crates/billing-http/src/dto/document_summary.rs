//! Document summaries.

use billing_domain::ports::BilledMonth;

use super::declare::answer;
use super::values::{CurrencyCode, DateText};
use super::wire::ExactNumber;

answer! {
    /// The documents issued in a month in one currency.
    #[schema(example = json!({
        "issued_from": "2026-01-01",
        "issued_to": "2026-01-31",
        "currency": "EUR",
        "documents": 3,
        "invoiced": 1250.00,
        "credited": 50.00,
        "billed": 1200.00
    }))]
    DocumentSummaryJson of month: BilledMonth {
        /// First day of the month.
        issued_from: DateText = month.first_day,
        /// Last day of the month.
        issued_to: DateText = month.last_day(),
        /// Currency of the amounts.
        currency: CurrencyCode = month.billed.currency(),
        /// Number of documents.
        #[schema(minimum = 1)]
        documents: u64 = month.documents,
        /// Sum of the totals of invoices and debits.
        invoiced: ExactNumber = month.invoiced,
        /// Sum of the totals of credits.
        credited: ExactNumber = month.credited,
        /// `invoiced` less `credited`.
        billed: ExactNumber = month.billed,
    }
}

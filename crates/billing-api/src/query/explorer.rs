//! Query parameters of the console's usage explorer.

use billing_domain::calendar::{Date, TimeZone};
use billing_domain::summary::Interval;

use super::AnyText;
use crate::dto::declare::params;

params! {
    /// Query parameters of the explorer.
    ExplorerParams {
        /// Customer.
        customer_ref: Option<AnyText>,
        /// Usage product.
        usage_product_ref: Option<AnyText>,
        /// Contract that counts the usage.
        contract_ref: Option<AnyText>,
        /// First day.
        from: Option<Date>,
        /// Last day.
        to: Option<Date>,
        /// Length of the intervals.
        interval: Option<Interval>,
        /// Time zone of the days.
        timezone: Option<TimeZone>,
    }
}

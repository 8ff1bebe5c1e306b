//! Limits of customers (billing rules 11).

mod manage;
mod watch;

use billing_domain::limit::{LimitValue, MetricKind};
use billing_domain::money::Currency;
use billing_domain::refs::{CustomerRef, EntityRef};

pub use manage::{create_limit, delete_limit, edit_limit, get_limit, limits_left, list_limits};
pub(crate) use watch::{BookAmounts, Watch};

/// A request to create a limit.
#[derive(Clone, Debug)]
pub struct LimitRequest {
    /// The number to watch.
    pub metric: MetricKind,
    /// The customer.
    pub customer_ref: CustomerRef,
    /// The entity that bills; the customer's or the default entity if `None`.
    pub entity_ref: Option<EntityRef>,
    /// The currency of the amounts.
    pub currency: Currency,
    /// The largest number up to which usage is accepted, as a decimal.
    pub max: String,
}

/// A limit with its number and its customer.
#[derive(Clone, Debug)]
pub struct LimitView {
    /// The limit and its number.
    pub number: LimitValue,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
}

/// What is left of the limits of a customer.
#[derive(Clone, Debug)]
pub struct CustomerLimits {
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The limits with their numbers.
    pub limits: Vec<LimitValue>,
}

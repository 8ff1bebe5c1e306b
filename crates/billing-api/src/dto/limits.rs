//! Limits of customers.

use billing_application::limits::{CustomerLimits, LimitRequest, LimitView};
use billing_domain::limit::{LimitMetric, LimitValue, MetricKind};
use billing_domain::money::Currency;
use billing_domain::refs::{CustomerRef, EntityRef};

use super::declare::{answer, body, fields};
use super::enums::LimitMetricWord;
use super::values::{AmountText, CurrencyCode, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

fields! {
    LimitRequest {
        /// Number that the limit watches. `OWED`: what the customer owes the entity in the currency, with the drafts, less the
        /// balance.
        metric: MetricKind,
        /// Customer reference.
        customer_ref: CustomerRef,
        /// Supplier entity. Default: the customer's entity, else the default entity.
        entity_ref: Option<EntityRef>,
        /// Currency of the amounts.
        currency: Currency,
        /// Largest number up to which usage is accepted; 0 means that the customer must have paid before.
        max: AmountText,
    }
}

body! {
    /// A limit to create.
    LimitBody {
        @flat request: LimitRequest,
    }
}

body! {
    /// Changes to a limit.
    LimitEditBody {
        /// Largest number up to which usage is accepted.
        max: AmountText,
    }
}

answer! {
    /// A limit with its number now.
    LimitJson of view: LimitView {
        let LimitValue { limit, value, left, above } = &view.number;
        let LimitMetric::Owed { entity_ref, currency } = &limit.metric;
        /// Reference.
        limit_ref: AssignedRef = limit.limit_ref,
        /// Number that the limit watches.
        metric: LimitMetricWord = limit.metric.kind(),
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Supplier entity.
        entity_ref: NamedRef = entity_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = *currency,
        /// Largest number up to which usage is accepted.
        max: ExactNumber = limit.max,
        /// Number now; below zero if the customer has more balance than is owed.
        value: ExactNumber = *value,
        /// What may still be used: `max` less `value`, at least 0.
        left: ExactNumber = *left,
        /// How far `value` is above `max`, at least 0.
        above: ExactNumber = *above,
        /// Time of creation.
        created_at: TimestampText = limit.created_at,
        /// Time of the last change.
        updated_at: TimestampText = limit.updated_at,
    }
}

answer! {
    /// A limit in the audit log.
    AuditedLimitJson of view: LimitView {
        let limit = &view.number.limit;
        let LimitMetric::Owed { entity_ref, currency } = &limit.metric;
        /// Number that the limit watches.
        metric: LimitMetricWord = limit.metric.kind(),
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Supplier entity.
        entity_ref: NamedRef = entity_ref,
        /// Currency of the amounts.
        currency: CurrencyCode = *currency,
        /// Largest number up to which usage is accepted.
        max: ExactNumber = limit.max,
    }
}

answer! {
    /// What is left of the limits of a customer.
    CustomerLimitsJson of view: CustomerLimits {
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Limits; empty for a customer without limits.
        left: Vec<LimitLeftJson> = &view.limits,
    }
}

answer! {
    /// What is left of a limit.
    LimitLeftJson of number: LimitValue {
        /// Reference of the limit.
        limit_ref: AssignedRef = number.limit.limit_ref,
        /// Number that the limit watches.
        metric: LimitMetricWord = number.limit.metric.kind(),
        /// Number now.
        value: ExactNumber = number.value,
        /// Largest number up to which usage is accepted.
        max: ExactNumber = number.limit.max,
        /// What may still be used: `max` less `value`, at least 0.
        left: ExactNumber = number.left,
    }
}

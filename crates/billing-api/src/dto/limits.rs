//! Limits of customers.

use billing_application::limits::{AccountCredit, CustomerLeft, CustomerLimits, LimitEdit, LimitRequest, LimitView};
use billing_domain::calendar::{Date, Period};
use billing_domain::limit::{LimitMetric, LimitValue, MAX_THRESHOLDS, MetricKind};
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef, LineItemId, PricingRef, ProductNo, UsageProductRef};

use super::credit_unit::AccountCreditUnitsJson;
use super::declare::{Listed, NotClearable, answer, body, fields};
use super::enums::LimitMetricWord;
use super::values::{AmountText, CurrencyCode, DateText, ThresholdText, TimestampText};
use super::wire::{AssignedRef, ExactNumber, NamedRef};

fields! {
    LimitRequest {
        /// Number that the limit watches. `OWED`: what the customer owes the entity in the currency, with the drafts, less the
        /// balance. `PREPAID`: the customer's free prepaid credit; its thresholds are reached from above. `SPEND`: the price of the product's service period, after the discount and before tax. `QUANTITY`: the
        /// quantity of the usage product in the service period.
        metric: MetricKind,
        /// Customer reference. `OWED` and `PREPAID` need it. Default: the customer of the contract.
        customer_ref: Option<CustomerRef>,
        /// Supplier entity. Only for `OWED` and `PREPAID`. Default: the customer's entity, else the default entity.
        entity_ref: Option<EntityRef>,
        /// Currency of the amounts. Only for `OWED` and `PREPAID`, which need it.
        currency: Option<Currency>,
        /// Contract. Only for `SPEND` and `QUANTITY`, which need it.
        contract_ref: Option<ContractRef>,
        /// Pricing of the contract product. Needed if several products of the contract are meant.
        pricing_ref as "product_pricing_ref": Option<PricingRef>,
        /// Number of the contract product. Needed if several products of the contract have the pricing.
        product_no: Option<ProductNo>,
        /// Usage product. Only for `QUANTITY`, which needs it.
        usage_product_ref: Option<UsageProductRef>,
        /// Line item that counts the usage. Only for `QUANTITY`. Default: all line items of the usage product together.
        line_item_id: Option<LineItemId>,
        /// Largest number up to which usage is accepted. For `OWED`, 0 means that the customer must have paid before. Not for
        /// `PREPAID`. Default: any number.
        max: Option<AmountText>,
        /// Numbers that notify when they are reached, at most 20. `max` notifies in any case.
        thresholds: Vec<ThresholdText> = Vec::new(),
    }
}

impl Listed for ThresholdText {
    const MAX: usize = MAX_THRESHOLDS;
}

body! {
    /// A limit to create. It needs `max`, `thresholds` or both.
    LimitBody {
        @flat request: LimitRequest,
    }
}

fields! {
    LimitEdit {
        /// Largest number up to which usage is accepted; null accepts any number.
        max: Patch<AmountText>,
        /// Numbers that notify when they are reached, instead of the present ones.
        thresholds: NotClearable<Vec<ThresholdText>>,
    }
}

body! {
    /// Changes to a limit. Omitted fields stay unchanged.
    LimitEditBody {
        @flat edit: LimitEdit,
    }
}

/// The parts of a metric, as far as it has them.
#[derive(Default)]
struct MetricParts<'m> {
    entity_ref: Option<&'m EntityRef>,
    contract_ref: Option<ContractRef>,
    product_no: Option<ProductNo>,
    usage_product_ref: Option<&'m UsageProductRef>,
    line_item_id: Option<&'m LineItemId>,
}

impl<'m> MetricParts<'m> {
    fn of(metric: &'m LimitMetric) -> Self {
        let product = metric.product();
        let (contract_ref, product_no) = (product.map(|(contract_ref, _)| contract_ref), product.map(|(_, no)| no));
        let of_product = Self { contract_ref, product_no, ..Self::default() };
        match metric {
            LimitMetric::Owed { entity_ref, .. } | LimitMetric::Prepaid { entity_ref, .. } => {
                Self { entity_ref: Some(entity_ref), ..of_product }
            }
            LimitMetric::Spend { .. } => of_product,
            LimitMetric::Quantity { usage_product_ref, line_item_id, .. } => {
                Self { usage_product_ref: Some(usage_product_ref), line_item_id: line_item_id.as_ref(), ..of_product }
            }
        }
    }
}

/// Returns the first and the last day of a service period.
fn days(window: Option<Period>) -> (Option<Date>, Option<Date>) {
    (window.map(|window| window.start()), window.map(|window| window.last_day()))
}

answer! {
    /// A limit with its number now.
    LimitJson of view: LimitView {
        let LimitValue { limit, window, value, held, left, above, .. } = &view.number;
        let parts = MetricParts::of(&limit.metric);
        let (window_start, window_end) = days(*window);
        /// Reference.
        limit_ref: AssignedRef = limit.limit_ref,
        /// Number that the limit watches.
        metric: LimitMetricWord = limit.metric.kind(),
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Supplier entity of the account, for `OWED` and `PREPAID`.
        entity_ref: Option<NamedRef> = parts.entity_ref,
        /// Currency of the amounts.
        currency: Option<CurrencyCode> = limit.metric.currency(),
        /// Contract whose service periods are counted.
        contract_ref: Option<AssignedRef> = parts.contract_ref,
        /// Number of the contract product.
        product_no: Option<u16> = parts.product_no.map(|no| no.0),
        /// Usage product whose quantity is counted.
        usage_product_ref: Option<NamedRef> = parts.usage_product_ref,
        /// Line item that counts the usage; null for all.
        line_item_id: Option<NamedRef> = parts.line_item_id,
        /// Largest number up to which usage is accepted; null for any number.
        max: Option<ExactNumber> = limit.levels.max,
        /// Numbers that notify when they are reached, in ascending order.
        thresholds: Vec<ExactNumber> = limit.levels.thresholds.iter().copied(),
        /// First day of the service period that is counted; null for the number of an account, and without a present period.
        window_start: Option<DateText> = window_start,
        /// Last day of the service period that is counted.
        window_end: Option<DateText> = window_end,
        /// Number now; an amount owed is below zero if the customer has more balance than is owed.
        value: ExactNumber = *value,
        /// What open holds would add to `value`.
        held: ExactNumber = *held,
        /// What may still be used: `max` less `value` and `held`, at least 0, for `OWED` with the free prepaid credit; null without
        /// `max`.
        left: Option<ExactNumber> = *left,
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
        let parts = MetricParts::of(&limit.metric);
        /// Number that the limit watches.
        metric: LimitMetricWord = limit.metric.kind(),
        /// Customer.
        customer_ref: NamedRef = &view.customer_ref,
        /// Supplier entity of the account, for `OWED` and `PREPAID`.
        entity_ref: Option<NamedRef> = parts.entity_ref,
        /// Currency of the amounts.
        currency: Option<CurrencyCode> = limit.metric.currency(),
        /// Contract whose service periods are counted.
        contract_ref: Option<AssignedRef> = parts.contract_ref,
        /// Number of the contract product.
        product_no: Option<u16> = parts.product_no.map(|no| no.0),
        /// Usage product whose quantity is counted.
        usage_product_ref: Option<NamedRef> = parts.usage_product_ref,
        /// Line item that counts the usage; null for all.
        line_item_id: Option<NamedRef> = parts.line_item_id,
        /// Largest number up to which usage is accepted; null for any number.
        max: Option<ExactNumber> = limit.levels.max,
        /// Numbers that notify when they are reached, in ascending order.
        thresholds: Vec<ExactNumber> = limit.levels.thresholds.iter().copied(),
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
    /// What is left of the limits and of the prepaid credit of a customer.
    CustomerLeftJson of view: CustomerLeft {
        /// Customer.
        customer_ref: NamedRef = &view.of_limits.customer_ref,
        /// Limits; empty for a customer without limits.
        left: Vec<LimitLeftJson> = &view.of_limits.limits,
        /// Prepaid credit, by entity and currency; empty for a customer without credit.
        credit: Vec<AccountCreditJson> = &view.credit,
    }
}

answer! {
    /// Prepaid credit of a customer with an entity in a currency, of the grants that cover usage of today.
    AccountCreditJson of view: AccountCredit {
        /// Supplier entity.
        entity_ref: NamedRef = &view.entity_ref,
        /// Currency.
        currency: CurrencyCode = view.currency,
        /// Credit that further documents can take.
        free: ExactNumber = view.credit.free,
        /// What open holds would take of `free`.
        held: ExactNumber = view.credit.held,
        /// The same in the entity's unit of credit, rounded towards zero to 2 decimals; null without such a unit.
        units: Option<AccountCreditUnitsJson> = view.units().as_ref(),
    }
}

answer! {
    /// What is left of a limit.
    LimitLeftJson of number: LimitValue {
        let (window_start, window_end) = days(number.window);
        /// Reference of the limit.
        limit_ref: AssignedRef = number.limit.limit_ref,
        /// Number that the limit watches.
        metric: LimitMetricWord = number.limit.metric.kind(),
        /// Number now.
        value: ExactNumber = number.value,
        /// What open holds would add to `value`.
        held: ExactNumber = number.held,
        /// Largest number up to which usage is accepted; null for any number.
        max: Option<ExactNumber> = number.limit.levels.max,
        /// What may still be used: `max` less `value` and `held`, at least 0, for `OWED` with the free prepaid credit; null without
        /// `max`.
        left: Option<ExactNumber> = number.left,
        /// First day of the service period that is counted; null for the number of an account, and without a present period.
        window_start: Option<DateText> = window_start,
        /// Last day of the service period that is counted.
        window_end: Option<DateText> = window_end,
    }
}

//! Limits of customers (billing rules 11).

mod manage;
mod metric;
mod tell;
mod watch;

use billing_domain::credit::unit::{CreditUnit, UnitAmounts};
use billing_domain::limit::{LimitCredit, LimitValue, MetricKind};
use billing_domain::money::Currency;
use billing_domain::patch::Patch;
use billing_domain::refs::{ContractRef, CustomerRef, EntityRef, LineItemId, PricingRef, ProductNo, UsageProductRef};

pub(crate) use manage::{begin_watch, require_few_drafts};
pub use manage::{create_limit, delete_limit, edit_limit, get_limit, limits_left, list_limits};
pub(crate) use tell::{tell_levels, tell_rejection};
pub(crate) use watch::{AddedNumbers, SettledEntries, Watch};

/// A request to create a limit. Each metric needs other fields.
#[derive(Clone, Debug)]
pub struct LimitRequest {
    /// The number to watch.
    pub metric: MetricKind,
    /// The customer; the customer of the contract if `None`.
    pub customer_ref: Option<CustomerRef>,
    /// The entity that bills, for an amount owed; the customer's or the default entity if `None`.
    pub entity_ref: Option<EntityRef>,
    /// The currency, for an amount owed.
    pub currency: Option<Currency>,
    /// The contract, for the number of a service period.
    pub contract_ref: Option<ContractRef>,
    /// The pricing of the contract product.
    pub pricing_ref: Option<PricingRef>,
    /// The contract product.
    pub product_no: Option<ProductNo>,
    /// The usage product, for a quantity.
    pub usage_product_ref: Option<UsageProductRef>,
    /// The line item, for a quantity; all line items of the usage product if `None`.
    pub line_item_id: Option<LineItemId>,
    /// The largest number up to which usage is accepted, as a decimal.
    pub max: Option<String>,
    /// The numbers that notify when they are reached, as decimals.
    pub thresholds: Vec<String>,
}

/// Changes to a limit.
#[derive(Clone, Debug)]
pub struct LimitEdit {
    /// The largest number up to which usage is accepted, as a decimal.
    pub max: Patch<String>,
    /// The numbers that notify when they are reached, as decimals; `None` keeps them.
    pub thresholds: Option<Vec<String>>,
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

/// What is left of the limits and of the prepaid credit of a customer.
#[derive(Clone, Debug)]
pub struct CustomerLeft {
    /// The limits.
    pub of_limits: CustomerLimits,
    /// The free prepaid credit that covers usage of today, by account.
    pub credit: Vec<AccountCredit>,
}

/// The free prepaid credit of an account.
#[derive(Clone, Debug)]
pub struct AccountCredit {
    /// The entity that bills.
    pub entity_ref: EntityRef,
    /// The currency.
    pub currency: Currency,
    /// What is free, and what open holds would take of it.
    pub credit: LimitCredit,
    /// The entity's unit of credit; `None` without one.
    pub unit: Option<CreditUnit>,
}

impl AccountCredit {
    /// Returns what is free and held in the entity's unit of credit, if it has one.
    pub fn units(&self) -> Option<UnitAmounts<2>> {
        self.unit.as_ref().map(|unit| unit.convert([self.credit.free, self.credit.held]))
    }
}

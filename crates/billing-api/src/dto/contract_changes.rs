//! Changes to contracts other than edits (cancel, resume, change quantities), and the responses of their dry runs.

use billing_application::contracts::ContractView;
use billing_application::dry_run::Effects;
use billing_domain::calendar::Date;
use billing_domain::contract::amendment::{CancelAt, QuantityChange};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{LineItemId, PricingRef, ProductNo};
use serde::Serialize;
use utoipa::ToSchema;

use super::contract_view::ContractJson;
use super::declare::{body, fields};
use super::effects::EffectsJson;
use super::input::Fields;

/// Field that extends a change to the current period.
const INCLUDE_CURRENT: &str = "include_current_invoice";

/// Options of an amendment.
#[derive(Clone, Copy, Debug, Default)]
pub struct AmendmentOptions {
    pub dry_run: bool,
    pub allow_backdated: bool,
}

fields! {
    AmendmentOptions {
        /// Whether to preview the affected documents and store nothing. Default: false.
        dry_run: bool = false,
        /// Whether the request may create up to 1,200 documents that are due immediately instead of 24. Default: false.
        allow_backdated: bool = false,
    }
}

body! {
    /// How to cancel a contract. The body may be omitted.
    ContractCancelBody {
        /// Whether the contract ends today instead of at the end of its current period. Excludes `last_day`. Default:
        /// false.
        include_current_invoice: bool = false,
        /// Last day billed, past or future. The day before the contract's first day annuls the contract.
        last_day: Option<Date>,
        @flat options: AmendmentOptions,
    }
    with {
        fn check(fields: Fields<'_>) {
            check_day(fields, "last_day");
        }
    }
}

impl ContractCancelBody {
    /// Returns the end that the cancellation requests.
    pub fn ends(&self) -> CancelAt {
        match (self.last_day, self.include_current_invoice) {
            (Some(day), _) => CancelAt::Day(day),
            (None, true) => CancelAt::Today,
            (None, false) => CancelAt::PeriodEnd,
        }
    }
}

body! {
    /// Options for resuming a cancelled contract. The body may be omitted.
    ContractResumeBody {
        @flat options: AmendmentOptions,
    }
}

fields! {
    QuantityChange {
        /// Pricing of the product.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// Number of the product; identifies the product if several have the pricing.
        product_no: Option<ProductNo>,
        /// First day of the product; identifies the product if several have the pricing.
        billing_start_date: Option<Date>,
        /// Line item.
        line_item_id: LineItemId,
        /// Quantity.
        quantity: Quantity,
        /// First day of the new quantity. Default: today.
        from: Option<Date>,
        /// Whether the quantity changes on `from` with proration; if false, it changes on the first day of the next
        /// period. Default: true.
        prorate: bool = true,
    }
}

body! {
    /// A quantity of a FIXED line item from a date.
    ContractQuantityBody {
        @flat change: QuantityChange,
        @flat options: AmendmentOptions,
    }
}

/// Rejects a change with both a date and a change to the current period.
pub(super) fn check_day(fields: Fields<'_>, day: &str) {
    if fields.is_true(INCLUDE_CURRENT) && fields.has(day) {
        let detail = format!("must be false or be omitted, because {day} is given");
        fields.refuse::<()>(INCLUDE_CURRENT, "conflicting_fields", detail);
    }
}

/// The result of an amendment.
pub enum AmendmentOutcome {
    /// The amended contract.
    Done(Box<ContractView>),
    /// With `dry_run`: the effects. Nothing is stored.
    DryRun(Box<Effects>),
}

/// A changed contract, or a preview of the change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub enum AmendedContractJson {
    /// The contract's newest version.
    Done(Box<ContractJson>),
    /// With `dry_run`: the affected documents. Nothing is stored.
    DryRun(Box<EffectsJson>),
}

impl From<&AmendmentOutcome> for AmendedContractJson {
    fn from(amended: &AmendmentOutcome) -> Self {
        match amended {
            AmendmentOutcome::Done(view) => Self::Done(Box::new(ContractJson::from(&**view))),
            AmendmentOutcome::DryRun(effects) => Self::DryRun(Box::new(EffectsJson::from(&**effects))),
        }
    }
}

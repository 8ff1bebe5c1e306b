//! What is done to a contract beside an edit: cancel, resume, agree on quantities; and what a dry run of any of them answers.

use billing_application::contracts::{AmendmentOptions, AmendmentOutcome};
use billing_domain::calendar::Date;
use billing_domain::contract::amendment::{CancelAt, QuantityChange};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{LineItemId, PricingRef};
use serde::Serialize;
use utoipa::ToSchema;

use super::contract_view::ContractJson;
use super::declare::{body, fields};
use super::effects::EffectsJson;
use super::input::Fields;

/// The field by which a change reaches into the current period.
const INCLUDE_CURRENT: &str = "include_current_invoice";

fields! {
    AmendmentOptions {
        /// Whether to answer the documents concerned and store nothing.
        dry_run: bool = false,
        /// Whether it may make up to 1,200 documents due at once; otherwise 24.
        allow_backdated: bool = false,
    }
}

body! {
    /// How a contract is to end.
    ContractCancelBody {
        /// Whether the contract ends today; otherwise its current period is billed to the end. Not with `last_day`.
        include_current_invoice: bool = false,
        /// The last day billed, past or future; the day before the contract's first one annuls it.
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
    /// The day that is billed last.
    pub(crate) fn ends(&self) -> CancelAt {
        match (self.last_day, self.include_current_invoice) {
            (Some(day), _) => CancelAt::Day(day),
            (None, true) => CancelAt::Today,
            (None, false) => CancelAt::PeriodEnd,
        }
    }
}

body! {
    /// How a cancel is to be taken back.
    ContractResumeBody {
        @flat options: AmendmentOptions,
    }
}

fields! {
    QuantityChange {
        /// The product's pricing.
        pricing_ref as "product_pricing_ref": PricingRef,
        /// The product's first day; tells which product is meant where several have the pricing.
        billing_start_date: Option<Date>,
        /// The line item.
        line_item_id: LineItemId,
        /// How many.
        quantity: Quantity,
        /// From when; today when left out.
        from: Option<Date>,
        /// Whether that day is kept, as it is when this is left out; otherwise the quantity holds from the next period's first day.
        prorate: bool = true,
    }
}

body! {
    /// How many of a FIXED line item are agreed on from a day.
    ContractQuantityBody {
        @flat change: QuantityChange,
        @flat options: AmendmentOptions,
    }
}

/// A change can't both name a day and reach into the current period.
pub(super) fn check_day(fields: Fields<'_>, day: &str) {
    if fields.is_true(INCLUDE_CURRENT) && fields.has(day) {
        let detail = format!("must be left out or false where {day} is given");
        fields.refuse::<()>(INCLUDE_CURRENT, "conflicting_fields", detail);
    }
}

/// A contract after a change, or what the change would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AmendedContractJson {
    /// The contract's newest version.
    Done(Box<ContractJson>),
    /// With `dry_run`: the documents concerned. Nothing is stored.
    DryRun(EffectsJson),
}

impl From<&AmendmentOutcome> for AmendedContractJson {
    fn from(amended: &AmendmentOutcome) -> Self {
        match amended {
            AmendmentOutcome::Done(view) => Self::Done(Box::new(ContractJson::from(&**view))),
            AmendmentOutcome::DryRun(effects) => Self::DryRun(EffectsJson::from(effects)),
        }
    }
}

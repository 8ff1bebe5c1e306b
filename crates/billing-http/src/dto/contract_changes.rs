//! What is done to a contract beside an edit: cancel, resume, agree on quantities; and what a dry run of any of them answers.

use billing_application::contracts::{Amended, AmendmentOptions, Effects};
use billing_domain::contract::amendment::{LastDay, QuantityChange};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{LineItemId, PricingRef};
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::contract_view::ContractJson;
use super::documents::DocumentJson;
use super::input::{self, Fields, Node};
use super::wire::{DateText, NamedRef, QuantityInput};

/// The field by which a change reaches into the current period.
pub(super) const INCLUDE_CURRENT: &str = "include_current_invoice";

/// How a contract is to end.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"include_current_invoice": false}))]
pub(crate) struct ContractCancelBody {
    /// Whether the contract ends today; otherwise its current period is billed to the end. Not with `last_day`.
    include_current_invoice: Option<bool>,
    /// The last day billed, past or future; the day before the contract's first one annuls it.
    last_day: Option<DateText>,
    /// Whether to answer the documents concerned and store nothing.
    dry_run: Option<bool>,
    /// Whether it may make up to 1,200 documents due at once; otherwise 24.
    allow_backdated: Option<bool>,
}

impl ContractCancelBody {
    /// Reads a cancel; without a body it is by the default.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: Option<&Value>) -> Result<(LastDay, AmendmentOptions), Violations> {
        input::read_optional(body, |fields| {
            fields.only(&[INCLUDE_CURRENT, "last_day", "dry_run", "allow_backdated"]);
            let options = options(fields);
            let last_day = fields.optional("last_day", Node::date);
            let last_day = match (last_day, include_current(fields, "last_day")) {
                (Some(day), _) => LastDay::Day(day),
                (None, true) => LastDay::Today,
                (None, false) => LastDay::PeriodEnd,
            };
            Some((last_day, options))
        })
    }
}

/// How a cancel is to be taken back.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"dry_run": true}))]
pub(crate) struct ContractResumeBody {
    /// Whether to answer the documents concerned and store nothing.
    dry_run: Option<bool>,
    /// Whether it may make up to 1,200 documents due at once; otherwise 24.
    allow_backdated: Option<bool>,
}

impl ContractResumeBody {
    /// Reads it; it may be left out.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: Option<&Value>) -> Result<AmendmentOptions, Violations> {
        input::read_optional(body, |fields| {
            fields.only(&["dry_run", "allow_backdated"]);
            Some(options(fields))
        })
    }
}

/// How many of a FIXED line item are agreed on from a day.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"product_pricing_ref": "api", "line_item_id": "seats", "quantity": 12, "from": "2026-02-15"}))]
pub(crate) struct ContractQuantityBody {
    /// The product's pricing.
    product_pricing_ref: NamedRef,
    /// The product's first day; tells which product is meant where several have the pricing.
    billing_start_date: Option<DateText>,
    /// The line item.
    line_item_id: NamedRef,
    /// How many.
    quantity: QuantityInput,
    /// From when; today when left out.
    from: Option<DateText>,
    /// Whether that day is kept; otherwise the quantity holds from the next period's first day.
    #[schema(default = true)]
    prorate: Option<bool>,
    /// Whether to answer the documents concerned and store nothing.
    dry_run: Option<bool>,
    /// Whether it may make up to 1,200 documents due at once; otherwise 24.
    allow_backdated: Option<bool>,
}

const QUANTITY_FIELDS: [&str; 8] =
    ["product_pricing_ref", "billing_start_date", "line_item_id", "quantity", "from", "prorate", "dry_run", "allow_backdated"];

impl ContractQuantityBody {
    /// Reads a change of a quantity.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read(body: &Value) -> Result<(QuantityChange, AmendmentOptions), Violations> {
        input::read(body, |fields| {
            fields.only(&QUANTITY_FIELDS);
            let pricing_ref = fields.required("product_pricing_ref", |node| node.parsed(PricingRef::parse));
            let billing_start_date = fields.optional("billing_start_date", Node::date);
            let line_item_id = fields.required("line_item_id", |node| node.parsed(LineItemId::parse));
            let quantity = fields.required("quantity", |node| node.decimal(Quantity::parse));
            let from = fields.optional("from", Node::date);
            let prorate = fields.defaulted("prorate", None, true, Node::boolean);
            let options = options(fields);
            let change = QuantityChange {
                pricing_ref: pricing_ref?,
                billing_start_date,
                line_item_id: line_item_id?,
                quantity: quantity?,
                from,
                prorate,
            };
            Some((change, options))
        })
    }
}

/// How a change is carried out.
pub(super) fn options(fields: Fields<'_>) -> AmendmentOptions {
    AmendmentOptions {
        dry_run: fields.defaulted("dry_run", None, false, Node::boolean),
        allow_backdated: fields.defaulted("allow_backdated", None, false, Node::boolean),
    }
}

/// Whether a change reaches into the current period; it can't together with the field that names a day.
pub(super) fn include_current(fields: Fields<'_>, day: &str) -> bool {
    let include = fields.defaulted(INCLUDE_CURRENT, None, false, Node::boolean);
    if include && fields.has(day) {
        let detail = format!("must be left out or false where {day} is given");
        fields.refuse::<()>(INCLUDE_CURRENT, "conflicting_fields", detail);
    }
    include
}

/// A contract after a change, or what the change would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum AmendedContractJson {
    /// The contract's newest version.
    Done(Box<ContractJson>),
    /// With `dry_run`: the documents concerned. Nothing is stored.
    DryRun(AmendmentEffectsJson),
}

/// What a change of a contract would do to documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AmendmentEffectsJson {
    /// Drafts that it would open.
    opened: Vec<DocumentJson>,
    /// Documents that it would issue.
    issued: Vec<DocumentJson>,
    /// Drafts that would say something else.
    recomputed: Vec<DocumentJson>,
    /// Documents that it would put out of force.
    voided: Vec<DocumentJson>,
    /// Always true.
    dry_run: bool,
}

impl From<&Amended> for AmendedContractJson {
    fn from(amended: &Amended) -> Self {
        match amended {
            Amended::Done(view) => Self::Done(Box::new(ContractJson::from(&**view))),
            Amended::DryRun(effects) => Self::DryRun(AmendmentEffectsJson::from(effects)),
        }
    }
}

impl From<&Effects> for AmendmentEffectsJson {
    fn from(effects: &Effects) -> Self {
        Self {
            opened: effects.opened.iter().map(DocumentJson::from).collect(),
            issued: effects.issued.iter().map(DocumentJson::from).collect(),
            recomputed: effects.recomputed.iter().map(DocumentJson::from).collect(),
            voided: effects.voided.iter().map(DocumentJson::from).collect(),
            dry_run: true,
        }
    }
}

//! Line items of a contract's product: which of the pricing's, in which quantities, at which own prices. Both ways.

use billing_domain::contract::terms::{
    MAX_QUANTITY_STEPS, Quantities, QuantityStep, RequestedLineItem, SelectedCharge, SelectedLineItem,
};
use billing_domain::money::Price;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::LineItemId;
use serde::Serialize;
use utoipa::ToSchema;

use super::input::{Fields, Node};
use super::prices::{self, PriceBody, PriceJson};
use super::wire::{DateText, ExactNumber, LineText, NamedRef, PriceInput, QuantityInput};

const FIELDS: [&str; 8] =
    ["line_item_id", "quantities", "name", "price", "included_quantity", "prepaid_quantity", "minimum_amount", "maximum_amount"];

/// A selected line item, and what of it is agreed on. What is left out is as it was agreed before, or else as the pricing
/// has it; null takes what the pricing has now.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContractLineItemBody {
    /// Line item of the pricing.
    line_item_id: NamedRef,
    /// How many, from when, by rising dates; FIXED only. 1 before the first. In an edit they take the place of those from
    /// their first date on.
    #[schema(max_items = 1000)]
    quantities: Option<Vec<QuantityStepBody>>,
    /// Shown on documents.
    name: Option<LineText>,
    /// What it costs: any model but PERCENTAGE for FIXED, any but FLAT for USAGE.
    price: Option<PriceBody>,
    /// Comes off a period's quantity first; USAGE only.
    included_quantity: Option<QuantityInput>,
    /// Billed in advance; USAGE only.
    prepaid_quantity: Option<QuantityInput>,
    /// The least a period's usage costs; USAGE only.
    minimum_amount: Option<PriceInput>,
    /// The most a period's usage costs; USAGE only.
    maximum_amount: Option<PriceInput>,
}

/// How many are agreed from a day on.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuantityStepBody {
    /// The first day.
    from: DateText,
    /// How many.
    quantity: QuantityInput,
}

/// Reads a selected line item.
pub(super) fn read(node: Node<'_>) -> Option<RequestedLineItem> {
    node.object(|fields| {
        fields.only(&FIELDS);
        let id = fields.required("line_item_id", |node| node.parsed(LineItemId::parse));
        let quantities = match fields.patch("quantities", quantities) {
            Patch::Keep => None,
            Patch::Clear => Some(Quantities::default()),
            Patch::Set(quantities) => Some(quantities),
        };
        let name = fields.patch("name", Node::line);
        let price = fields.patch("price", prices::read);
        let included_quantity = quantity(fields, "included_quantity");
        let prepaid_quantity = quantity(fields, "prepaid_quantity");
        let minimum_amount = amount(fields, "minimum_amount");
        let maximum_amount = amount(fields, "maximum_amount");
        Some(RequestedLineItem {
            id: id?,
            quantities,
            name,
            price,
            included_quantity,
            prepaid_quantity,
            minimum_amount,
            maximum_amount,
        })
    })
}

/// The same of a product that is agreed anew: there are no quantities to clear.
pub(super) fn read_new(node: Node<'_>) -> Option<RequestedLineItem> {
    let item = read(node)?;
    let quantities = item.quantities.filter(|quantities| !quantities.as_slice().is_empty());
    Some(RequestedLineItem { quantities, ..item })
}

fn quantities(node: Node<'_>) -> Option<Quantities> {
    let steps = node.list(MAX_QUANTITY_STEPS, |node| node.object(step))?;
    node.agreed(Quantities::new(steps))
}

fn step(fields: Fields<'_>) -> Option<QuantityStep> {
    fields.only(&["from", "quantity"]);
    let from = fields.required("from", Node::date);
    let quantity = fields.required("quantity", |node| node.decimal(Quantity::parse));
    Some(QuantityStep { from: from?, quantity: quantity? })
}

fn quantity(fields: Fields<'_>, name: &str) -> Patch<Quantity> {
    fields.patch(name, |node| node.decimal(Quantity::parse))
}

fn amount(fields: Fields<'_>, name: &str) -> Patch<Price> {
    fields.patch(name, |node| node.decimal(Price::parse))
}

/// A line item as it was agreed, with the fields that its kind has.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContractLineItemJson {
    /// Line item of the pricing.
    line_item_id: NamedRef,
    /// Shown on documents.
    name: LineText,
    /// What it costs.
    price: PriceJson,
    /// How many, from when, where it was agreed; FIXED only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    quantities: Vec<QuantityStepJson>,
    /// Comes off a period's quantity first; USAGE only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    included_quantity: Option<ExactNumber>,
    /// Billed in advance; USAGE only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    prepaid_quantity: Option<ExactNumber>,
    /// The least a period's usage costs; USAGE only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    minimum_amount: Option<ExactNumber>,
    /// The most a period's usage costs; USAGE only.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    maximum_amount: Option<ExactNumber>,
}

/// How many are agreed from a day on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuantityStepJson {
    /// The first day.
    from: DateText,
    /// How many.
    quantity: ExactNumber,
}

impl From<&SelectedLineItem> for ContractLineItemJson {
    fn from(item: &SelectedLineItem) -> Self {
        let (price, quantities, usage) = match &item.charge {
            SelectedCharge::Fixed { price, quantities, .. } => (PriceJson::from(price), quantities.as_slice(), None),
            SelectedCharge::Usage(metered) => (PriceJson::from(&metered.charge.price), [].as_slice(), Some(&metered.charge)),
        };
        Self {
            line_item_id: NamedRef::from(&item.id),
            name: LineText::from(&item.name),
            price,
            quantities: quantities.iter().map(QuantityStepJson::from).collect(),
            included_quantity: usage.map(|usage| ExactNumber::from(usage.included_quantity)),
            prepaid_quantity: usage.and_then(|usage| usage.prepaid_quantity).map(ExactNumber::from),
            minimum_amount: usage.and_then(|usage| usage.minimum_amount).map(ExactNumber::from),
            maximum_amount: usage.and_then(|usage| usage.maximum_amount).map(ExactNumber::from),
        }
    }
}

impl From<&QuantityStep> for QuantityStepJson {
    fn from(step: &QuantityStep) -> Self {
        Self { from: DateText::from(step.from), quantity: ExactNumber::from(step.quantity) }
    }
}

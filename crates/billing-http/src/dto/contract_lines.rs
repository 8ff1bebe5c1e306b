//! Line items of a contract's product: which of the pricing's, in which quantities, at which own prices. Both ways.

use billing_domain::calendar::Date;
use billing_domain::catalog::{MAX_LINE_ITEMS, PriceModel};
use billing_domain::contract::terms::{
    MAX_QUANTITY_STEPS, Quantities, QuantityStep, RequestedLineItem, SelectedCharge, SelectedLineItem,
};
use billing_domain::money::Price;
use billing_domain::patch::Patch;
use billing_domain::quantity::Quantity;
use billing_domain::refs::LineItemId;
use billing_domain::text::OneLine;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;

use super::declare::{Field, Listed, Wire, answer, object, wire};
use super::input::{Fields, Node};
use super::prices::PriceJson;
use super::schemas::{Presence, Schemas};
use super::wire::{DateText, ExactNumber, LineText, NamedRef};

object! {
    /// A selected line item, and what of it is agreed on. What is left out is as it was agreed before, or else as the pricing
    /// has it; null takes what the pricing has now.
    RequestedLineItem as "ContractLineItemBody" {
        /// Line item of the pricing.
        id as "line_item_id": LineItemId,
        /// How many, from when, by rising dates; FIXED only. 1 before the first. In an edit they take the place of those from
        /// their first date on.
        quantities: AgreedQuantities,
        /// Shown on documents.
        name: Patch<OneLine>,
        /// What it costs: any model but PERCENTAGE for FIXED, any but FLAT for USAGE.
        price: Patch<PriceModel>,
        /// Comes off a period's quantity first; USAGE only.
        included_quantity: Patch<Quantity>,
        /// Billed in advance; USAGE only.
        prepaid_quantity: Patch<Quantity>,
        /// The least a period's usage costs; USAGE only.
        minimum_amount: Patch<Price>,
        /// The most a period's usage costs; USAGE only.
        maximum_amount: Patch<Price>,
    }
}

impl Listed for RequestedLineItem {
    const MAX: usize = MAX_LINE_ITEMS;
}

/// Line items of a product that is agreed anew: there are no quantities to clear.
pub(super) struct NewLineItems;

wire! {
    NewLineItems of Vec<RequestedLineItem>: new_line_items, |schemas| <Vec<RequestedLineItem> as Wire>::schema(schemas);
}

fn new_line_items(node: Node<'_>) -> Option<Vec<RequestedLineItem>> {
    let without_clearing = |item: RequestedLineItem| {
        let quantities = item.quantities.filter(|quantities| !quantities.as_slice().is_empty());
        RequestedLineItem { quantities, ..item }
    };
    Some(<Vec<RequestedLineItem> as Wire>::read(node)?.into_iter().map(without_clearing).collect())
}

/// Quantities from days on; null clears them, left out they are `None`.
struct AgreedQuantities;

impl Field for AgreedQuantities {
    type Value = Option<Quantities>;
    const PRESENCE: Presence = Presence::Nullable;
    const PRESENCE_IN_EDIT: Presence = Presence::Nullable;

    fn read(fields: Fields<'_>, name: &str) -> Option<Self::Value> {
        let read = |node: Node<'_>| {
            let steps = <Vec<QuantityStep> as Wire>::read(node)?;
            node.agreed(Quantities::new(steps))
        };
        Some(match fields.patch(name, read)? {
            Patch::Keep => None,
            Patch::Clear => Some(Quantities::default()),
            Patch::Set(quantities) => Some(quantities),
        })
    }

    fn read_edit(fields: Fields<'_>, name: &str) -> Option<Option<Self::Value>> {
        Self::read(fields, name).map(Some)
    }

    fn schema(schemas: &mut Schemas) -> RefOr<Schema> {
        <Vec<QuantityStep> as Wire>::schema(schemas)
    }
}

object! {
    /// How many are agreed from a day on.
    QuantityStep as "QuantityStepBody" {
        /// The first day.
        from: Date,
        /// How many.
        quantity: Quantity,
    }
}

impl Listed for QuantityStep {
    const MAX: usize = MAX_QUANTITY_STEPS;
}

answer! {
    /// A line item as it was agreed, with the fields that its kind has.
    ContractLineItemJson of item: SelectedLineItem {
        let (price, quantities, usage) = match &item.charge {
            SelectedCharge::Fixed { price, quantities, .. } => (PriceJson::from(price), quantities.as_slice(), None),
            SelectedCharge::Usage(metered) => (PriceJson::from(&metered.charge.price), [].as_slice(), Some(&metered.charge)),
        };
        /// Line item of the pricing.
        line_item_id: NamedRef = &item.id,
        /// Shown on documents.
        name: LineText = &item.name,
        /// What it costs.
        price: PriceJson = price,
        /// How many, from when, where it was agreed; FIXED only.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        quantities: Vec<QuantityStepJson> = quantities,
        /// Comes off a period's quantity first; USAGE only.
        @omitted included_quantity: Option<ExactNumber> = usage.map(|usage| usage.included_quantity),
        /// Billed in advance; USAGE only.
        @omitted prepaid_quantity: Option<ExactNumber> = usage.and_then(|usage| usage.prepaid_quantity),
        /// The least a period's usage costs; USAGE only.
        @omitted minimum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.minimum_amount),
        /// The most a period's usage costs; USAGE only.
        @omitted maximum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.maximum_amount),
    }
}

answer! {
    /// How many are agreed from a day on.
    QuantityStepJson of step: QuantityStep {
        /// The first day.
        from: DateText = step.from,
        /// How many.
        quantity: ExactNumber = step.quantity,
    }
}

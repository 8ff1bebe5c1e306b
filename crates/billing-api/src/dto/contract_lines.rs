//! Line items of a contract product: selection, quantities and prices of its own, in requests and responses.

use billing_domain::calendar::Date;
use billing_domain::catalog::{MAX_LINE_ITEMS, PriceModel, Selector};
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

use super::declare::{Field, Listed, Wire, answer, ignore_response_fields, object, wire};
use super::enums::AggregationWord;
use super::input::{Fields, Node};
use super::labels::WhereJson;
use super::prices::PriceJson;
use super::schemas::{Presence, Schemas};
use super::values::{DateText, LabelKeyText, LineText};
use super::wire::{ExactNumber, NamedRef};

object! {
    /// A selected line item with its agreed terms. Omitted fields retain the agreed terms, or else use the pricing's.
    /// Null selects the pricing's current terms.
    RequestedLineItem as "ContractLineItemBody" {
        /// Identifier of the pricing's line item.
        id as "line_item_id": LineItemId,
        /// Quantities with their first days in ascending order; FIXED only. The quantity before the first day is 1. In an
        /// edit they replace the existing quantities from their first day on.
        quantities: AgreedQuantities,
        /// Name on documents.
        name: Patch<OneLine>,
        /// Price. FIXED line items accept any model except PERCENTAGE, USAGE line items any except FLAT.
        price: Patch<PriceModel>,
        /// Quantity subtracted from a period's usage before it is priced; USAGE only.
        included_quantity: Patch<Quantity>,
        /// Quantity billed in advance; USAGE only.
        prepaid_quantity: Patch<Quantity>,
        /// Minimum amount for a period's usage; USAGE only.
        minimum_amount: Patch<Price>,
        /// Maximum amount for a period's usage; USAGE only.
        maximum_amount: Patch<Price>,
    }
    with {
        ignore_response_fields!(ContractLineItemJson);
    }
}

impl Listed for RequestedLineItem {
    const MAX: usize = MAX_LINE_ITEMS;
}

/// Line items of a new product, which has no quantities to clear.
pub struct NewLineItems;

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

/// Quantities with first days; null clears them, and `None` means omitted.
pub struct AgreedQuantities;

impl Field for AgreedQuantities {
    type Form = Vec<QuantityStep>;
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
    /// A quantity with its first day.
    QuantityStep as "QuantityStepBody" {
        /// First day.
        from: Date,
        /// Quantity.
        quantity: Quantity,
    }
}

impl Listed for QuantityStep {
    const MAX: usize = MAX_QUANTITY_STEPS;
}

answer! {
    /// A line item as agreed, with the fields of its kind.
    ContractLineItemJson of item: SelectedLineItem {
        let (price, quantities, usage) = match &item.charge {
            SelectedCharge::Fixed { price, quantities, .. } => (PriceJson::from(price), quantities.as_slice(), None),
            SelectedCharge::Usage(metered) => (PriceJson::from(&metered.charge.price), [].as_slice(), Some(&metered.charge)),
        };
        /// Identifier of the pricing's line item.
        line_item_id: NamedRef = &item.id,
        /// Name on documents.
        name: LineText = &item.name,
        /// Price.
        price: PriceJson = price,
        /// Agreed quantities with their first days; FIXED only.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        quantities: Vec<QuantityStepJson> = quantities,
        /// Usage product whose events are priced; USAGE only.
        @omitted usage_product_ref: Option<NamedRef> = usage.map(|usage| &usage.usage_product_ref),
        /// Condition on the labels of events, if the line item has one. A contract cannot change it.
        @omitted condition as "where": Option<WhereJson> = usage.and_then(|usage| usage.selector.condition()),
        /// True if the line item counts the events that no `where` of its usage product counts; omitted otherwise.
        @omitted rest: Option<bool> = usage.and_then(|usage| (usage.selector == Selector::Rest).then_some(true)),
        /// Aggregation of a period's usage; USAGE only.
        @omitted aggregation: Option<AggregationWord> = item.metered().map(|metered| metered.aggregation),
        /// Label whose distinct values are counted; only with the aggregation UNIQUE.
        @omitted unique_by: Option<LabelKeyText> = item.metered().and_then(|metered| metered.unique_by.as_ref()),
        /// True for a good; omitted for a service.
        @omitted goods: Option<bool> = item.is_goods().then_some(true),
        /// Quantity subtracted from a period's usage before it is priced; USAGE only.
        @omitted included_quantity: Option<ExactNumber> = usage.map(|usage| usage.included_quantity),
        /// Quantity billed in advance; USAGE only.
        @omitted prepaid_quantity: Option<ExactNumber> = usage.and_then(|usage| usage.prepaid_quantity),
        /// Minimum amount for a period's usage; USAGE only.
        @omitted minimum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.minimum_amount),
        /// Maximum amount for a period's usage; USAGE only.
        @omitted maximum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.maximum_amount),
    }
}

answer! {
    /// A quantity with its first day.
    QuantityStepJson of step: QuantityStep {
        /// First day.
        from: DateText = step.from,
        /// Quantity.
        quantity: ExactNumber = step.quantity,
    }
}

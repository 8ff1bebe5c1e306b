//! Pricings and their line items.

use billing_application::catalog::PricingRate;
use billing_domain::catalog::{
    Aggregation, FixedPrice, LineItem, LineItemPrice, MAX_LINE_ITEMS, PriceModel, Pricing, PricingContent, Recurrence, Selector,
    UsageCharge,
};
use billing_domain::labels::Where;
use billing_domain::money::{Currency, Price};
use billing_domain::quantity::Quantity;
use billing_domain::rating::RatedItem;
use billing_domain::refs::{LineItemId, PricingRef, UsageProductRef};
use billing_domain::text::OneLine;

use super::calculations::DocumentTierJson;
use super::declare::{Fieldset as _, Listed, answer, body, edit, fields, ignore_response_fields, object, wire};
use super::enums::{AggregationWord, ChargeKind, ChargeKindWord, RecurrenceWord};
use super::input::Fields;
use super::labels::WhereJson;
use super::prices::PriceJson;
use super::values::{CurrencyCode, LineText, NewPricingRef, TimestampText};
use super::wire::{ExactNumber, NamedRef};

fields! {
    edit PricingContent {
        /// Name on documents.
        name: OneLine,
        /// Currency of all documents that bill the pricing.
        currency: Currency,
        /// Minimum amount per period, usage and fixed items together.
        minimum_fee: Option<Price>,
        /// Line items with distinct identifiers.
        line_items: Vec<LineItem> = Vec::new(),
    }
    with {
        ignore_response_fields!(PricingJson);
    }
}

body! {
    /// A pricing to create.
    PricingBody {
        /// Reference. Default: assigned by the service.
        product_pricing_ref: Option<NewPricingRef>,
        @flat content: PricingContent,
    }
    with {
        ignore_response_fields!(PricingJson);
    }
}

body! {
    /// A pricing that is not stored, and quantities to rate.
    PricingRateBody {
        @flat content: PricingContent,
        /// Up to 200 quantities.
        quantities: Vec<Quantity>,
    }
}

/// Maximum number of quantities of a request.
pub const MAX_QUANTITIES: usize = 200;

impl Listed for Quantity {
    const MAX: usize = MAX_QUANTITIES;
}

edit! {
    /// Changes to a pricing. Omitted fields stay unchanged; null clears a field. Line items are replaced as a whole.
    PricingEditBody of PricingContent named "product_pricing_ref": PricingRef
}

object! {
    /// A line item of a pricing.
    struct ItemFields as "LineItemBody" {
        /// Identifier, unique in the pricing.
        line_item_id: LineItemId,
        /// Name on documents. Default: the identifier.
        name: Option<OneLine>,
        /// FIXED: priced by the quantity agreed in the contract, 1 by default. USAGE: priced by usage events.
        kind: ChargeKind,
        /// When a FIXED line item is charged. Default: EACH_PERIOD.
        recurrence: Option<Recurrence>,
        /// Whether a FIXED line item is a good instead of a service. French documents state it. Default: false.
        goods: Option<bool>,
        /// Usage product whose events are priced; required for USAGE.
        usage_product_ref: Option<UsageProductRef>,
        /// Condition on the labels of events; USAGE only. The line item counts only events that meet it. Conditions of one
        /// usage product must not overlap.
        condition as "where": Option<Where>,
        /// Whether the line item counts the events that no other line item of the usage product with `where` counts; USAGE
        /// only. Excludes `where`. Default: false.
        rest: Option<bool>,
        /// Aggregation of a period's usage; USAGE only. Default: the usage product's. COUNT and UNIQUE have no
        /// unit.
        aggregation: Option<Aggregation>,
        /// Price. FIXED line items accept any model except PERCENTAGE, USAGE line items any except FLAT.
        price: PriceModel,
        /// Quantity subtracted from a period's usage before it is priced; USAGE only. Default: 0.
        included_quantity: Option<Quantity>,
        /// Quantity billed in advance; USAGE only.
        prepaid_quantity: Option<Quantity>,
        /// Minimum amount per period; USAGE only.
        minimum_amount: Option<Price>,
        /// Maximum amount per period; USAGE only.
        maximum_amount: Option<Price>,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.says("kind", "FIXED") {
                fields.none_of(&OF_USAGE, "must be omitted, because only line items of kind USAGE have it");
            } else if fields.says("kind", "USAGE") {
                fields.none_of(&["recurrence", "goods"], "must be omitted, because only line items of kind FIXED have it");
                if !fields.has("usage_product_ref") {
                    fields.refuse::<()>("usage_product_ref", "required", "must be given");
                }
                if fields.has("where") && fields.is_true("rest") {
                    let detail = "must be omitted, because rest counts the events that no where counts";
                    fields.refuse::<()>("where", "conflicting_fields", detail);
                }
            }
        }
    }
}

/// Fields that only usage-priced line items have.
const OF_USAGE: [&str; 8] = [
    "usage_product_ref",
    "where",
    "rest",
    "aggregation",
    "included_quantity",
    "prepaid_quantity",
    "minimum_amount",
    "maximum_amount",
];

wire! {
    LineItem: |node| node.object(line_item), |schemas| ItemFields::schema(schemas);
}

fn line_item(fields: Fields<'_>) -> Option<LineItem> {
    let item = ItemFields::read_whole(fields)?;
    // The default name is the identifier, whose own rule is stricter than that of a line.
    let name = match item.name.clone() {
        Some(name) => name,
        None => OneLine::parse(item.line_item_id.as_str()).ok()?,
    };
    let (id, kind) = (item.line_item_id.clone(), item.kind);
    if kind == ChargeKind::Usage && item.usage_product_ref.is_none() {
        return None;
    }
    let charge = match kind {
        ChargeKind::Fixed => item.fixed(),
        ChargeKind::Usage => item.usage(),
    };
    match charge {
        Some(charge) => Some(LineItem { id, name, charge }),
        None => fields.refuse("price", "not_allowed", kind.models()),
    }
}

impl Listed for LineItem {
    const MAX: usize = MAX_LINE_ITEMS;
}

impl ChargeKind {
    /// Describes the price models that a line item of this kind can have.
    const fn models(self) -> &'static str {
        match self {
            Self::Fixed => "must be of model FLAT, PER_UNIT, GRADUATED, VOLUME or PACKAGE, because the line item's kind is FIXED",
            Self::Usage => {
                "must be of model PER_UNIT, GRADUATED, VOLUME, PACKAGE or PERCENTAGE, because the line item's kind is USAGE"
            }
        }
    }
}

impl ItemFields {
    fn fixed(self) -> Option<LineItemPrice> {
        let price = FixedPrice::of(self.price)?;
        let (recurrence, goods) = (self.recurrence.unwrap_or_default(), self.goods.unwrap_or(false));
        Some(LineItemPrice::Fixed { price, recurrence, goods })
    }

    fn usage(self) -> Option<LineItemPrice> {
        let PriceModel::Metered(price) = self.price else { return None };
        Some(LineItemPrice::Usage(UsageCharge {
            usage_product_ref: self.usage_product_ref?,
            selector: match self.condition {
                Some(condition) => Selector::Where(condition),
                None if self.rest == Some(true) => Selector::Rest,
                None => Selector::Every,
            },
            aggregation: self.aggregation,
            price,
            included_quantity: self.included_quantity.unwrap_or(Quantity::ZERO),
            prepaid_quantity: self.prepaid_quantity,
            minimum_amount: self.minimum_amount,
            maximum_amount: self.maximum_amount,
        }))
    }
}

answer! {
    /// A pricing.
    PricingJson of pricing: Pricing {
        let content = &pricing.content;
        /// Reference.
        product_pricing_ref: NamedRef = &pricing.pricing_ref,
        /// Name on documents.
        name: LineText = &content.name,
        /// Currency of all documents that bill the pricing.
        currency: CurrencyCode = content.currency,
        /// Minimum amount per period, usage and fixed items together.
        minimum_fee: Option<ExactNumber> = content.minimum_fee,
        /// Line items.
        line_items: Vec<LineItemJson> = &content.line_items,
        /// Time of the last change.
        updated_at: TimestampText = pricing.updated_at,
    }
}

answer! {
    /// A line item of a pricing.
    LineItemJson of item: LineItem {
        let (kind, recurrence, is_goods, usage) = match &item.charge {
            LineItemPrice::Fixed { recurrence, goods, .. } => (ChargeKind::Fixed, Some(*recurrence), *goods, None),
            LineItemPrice::Usage(usage) => (ChargeKind::Usage, None, false, Some(usage)),
        };
        /// Identifier, unique in the pricing.
        line_item_id: NamedRef = &item.id,
        /// Name on documents.
        name: LineText = &item.name,
        /// FIXED: priced by the quantity agreed in the contract. USAGE: priced by usage events.
        kind: ChargeKindWord = kind,
        /// When a FIXED line item is charged; null for USAGE.
        recurrence: Option<RecurrenceWord> = recurrence,
        /// True for a good; omitted for a service.
        @omitted goods: Option<bool> = is_goods.then_some(true),
        /// Usage product whose events are priced; null for FIXED.
        usage_product_ref: Option<NamedRef> = usage.map(|usage| &usage.usage_product_ref),
        /// Condition on the labels of events, if the line item has one.
        @omitted condition as "where": Option<WhereJson> = usage.and_then(|usage| usage.selector.condition()),
        /// True if the line item counts the events that no `where` of its usage product counts; omitted otherwise.
        @omitted rest: Option<bool> = usage.and_then(|usage| (usage.selector == Selector::Rest).then_some(true)),
        /// Aggregation, if it is not that of the usage product.
        @omitted aggregation: Option<AggregationWord> = usage.and_then(|usage| usage.aggregation),
        /// Price.
        price: PriceJson = &item.charge,
        /// Quantity subtracted from a period's usage before it is priced; null for FIXED.
        included_quantity: Option<ExactNumber> = usage.map(|usage| usage.included_quantity),
        /// Quantity billed in advance.
        prepaid_quantity: Option<ExactNumber> = usage.and_then(|usage| usage.prepaid_quantity),
        /// Minimum amount per period.
        minimum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.minimum_amount),
        /// Maximum amount per period.
        maximum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.maximum_amount),
    }
}

answer! {
    /// The price of a quantity under a pricing.
    PricingRateJson of rate: PricingRate {
        /// Quantity.
        quantity: ExactNumber = rate.quantity,
        /// Prices of the usage-priced line items.
        line_items: Vec<RatedItemJson> = &rate.line_items,
    }
}

answer! {
    /// The price of a line item at a quantity.
    RatedItemJson of at: RatedItem {
        let rated = &at.rated;
        /// Identifier, unique in the pricing.
        line_item_id: NamedRef = &at.item.id,
        /// Name on documents.
        name: LineText = &at.item.name,
        /// Currency of the amount.
        currency: CurrencyCode = rated.amount.currency(),
        /// Price per unit; null if the model has no single unit price.
        unit_price: Option<ExactNumber> = rated.unit_price,
        /// Tiers reached by a tiered price.
        tiers: Vec<DocumentTierJson> = &rated.tiers,
        /// Amount for a whole period with this quantity, limited by minimum and maximum and rounded once.
        amount: ExactNumber = rated.amount,
    }
}

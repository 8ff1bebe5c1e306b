//! Pricings and their line items.

use billing_application::catalog::PricingRate;
use billing_domain::catalog::{
    Charge, FixedPrice, LineItem, MAX_LINE_ITEMS, PriceModel, Pricing, PricingContent, Recurrence, UsageCharge,
};
use billing_domain::money::{Currency, Price};
use billing_domain::quantity::Quantity;
use billing_domain::rating::RatedItem;
use billing_domain::refs::{LineItemId, PricingRef, UsageProductRef};
use billing_domain::text::OneLine;

use super::declare::{Fieldset as _, Listed, answer, body, edit, fields, object, wire};
use super::documents::DocumentTierJson;
use super::enums::{ChargeKind, ChargeKindWord, RecurrenceWord};
use super::input::Fields;
use super::prices::PriceJson;
use super::wire::{CurrencyCode, ExactNumber, LineText, NamedRef};

fields! {
    edit PricingContent {
        /// Name, shown on documents.
        name: OneLine,
        /// The currency of every document that bills it.
        currency: Currency,
        /// The least a period costs, usage and fixed items together.
        minimum_fee: Option<Price>,
        /// Line items with distinct identifiers.
        line_items: Vec<LineItem> = Vec::new(),
    }
}

body! {
    /// A pricing to make.
    PricingBody {
        /// Reference; assigned when left out.
        product_pricing_ref: Option<PricingRef>,
        @flat content: PricingContent,
    }
}

edit! {
    /// Changes to a pricing: fields left out are kept, null clears; line items are replaced as a whole.
    PricingEditBody of PricingContent named "product_pricing_ref": PricingRef
}

object! {
    /// One thing a pricing charges for.
    struct ItemFields as "LineItemBody" {
        /// Unique within its pricing.
        line_item_id: LineItemId,
        /// Shown on documents; the identifier when left out.
        name: Option<OneLine>,
        /// FIXED: priced by the quantity that a contract agrees on, 1 unless it says otherwise. USAGE: priced by events.
        kind: ChargeKind,
        /// When a FIXED line item is charged; EACH_PERIOD when left out.
        recurrence: Option<Recurrence>,
        /// The usage product whose events are priced; required for USAGE.
        usage_product_ref: Option<UsageProductRef>,
        /// What it costs: any model but PERCENTAGE for FIXED, any but FLAT for USAGE.
        price: PriceModel,
        /// Comes off a period's quantity first; USAGE only, 0 when left out.
        included_quantity: Option<Quantity>,
        /// Billed in advance; USAGE only.
        prepaid_quantity: Option<Quantity>,
        /// The least a period costs; USAGE only.
        minimum_amount: Option<Price>,
        /// The most a period costs; USAGE only.
        maximum_amount: Option<Price>,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.says("kind", "FIXED") {
                fields.none_of(&OF_USAGE, "must be left out, because only a line item of kind USAGE has it");
            } else if fields.says("kind", "USAGE") {
                fields.none_of(&["recurrence"], "must be left out, because only a line item of kind FIXED has it");
                if !fields.has("usage_product_ref") {
                    fields.refuse::<()>("usage_product_ref", "required", "must be given");
                }
            }
        }
    }
}

/// The fields that only a line item priced by events has.
const OF_USAGE: [&str; 5] = ["usage_product_ref", "included_quantity", "prepaid_quantity", "minimum_amount", "maximum_amount"];

wire! {
    LineItem: |node| node.object(line_item), |schemas| ItemFields::schema(schemas);
}

fn line_item(fields: Fields<'_>) -> Option<LineItem> {
    let item = ItemFields::read_whole(fields)?;
    // A name left out is the identifier, which is a line by its own, stricter rule.
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
    /// Which price models a line item of the kind can have.
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
    fn fixed(self) -> Option<Charge> {
        let price = FixedPrice::of(self.price)?;
        Some(Charge::Fixed { price, recurrence: self.recurrence.unwrap_or_default() })
    }

    fn usage(self) -> Option<Charge> {
        let PriceModel::Metered(price) = self.price else { return None };
        Some(Charge::Usage(UsageCharge {
            usage_product_ref: self.usage_product_ref?,
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
        /// Name, shown on documents.
        name: LineText = &content.name,
        /// The currency of every document that bills it.
        currency: CurrencyCode = content.currency,
        /// The least a period costs, usage and fixed items together.
        minimum_fee: Option<ExactNumber> = content.minimum_fee,
        /// Line items.
        line_items: Vec<LineItemJson> = &content.line_items,
    }
}

answer! {
    /// One thing a pricing charges for.
    LineItemJson of item: LineItem {
        let (kind, recurrence, usage) = match &item.charge {
            Charge::Fixed { recurrence, .. } => (ChargeKind::Fixed, Some(*recurrence), None),
            Charge::Usage(usage) => (ChargeKind::Usage, None, Some(usage)),
        };
        /// Unique within its pricing.
        line_item_id: NamedRef = &item.id,
        /// Shown on documents.
        name: LineText = &item.name,
        /// FIXED: priced by the quantity that a contract agrees on. USAGE: priced by events.
        kind: ChargeKindWord = kind,
        /// When a FIXED line item is charged; null for USAGE.
        recurrence: Option<RecurrenceWord> = recurrence,
        /// The usage product whose events are priced; null for FIXED.
        usage_product_ref: Option<NamedRef> = usage.map(|usage| &usage.usage_product_ref),
        /// What it costs.
        price: PriceJson = &item.charge,
        /// Comes off a period's quantity first; null for FIXED.
        included_quantity: Option<ExactNumber> = usage.map(|usage| usage.included_quantity),
        /// Billed in advance.
        prepaid_quantity: Option<ExactNumber> = usage.and_then(|usage| usage.prepaid_quantity),
        /// The least a period costs.
        minimum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.minimum_amount),
        /// The most a period costs.
        maximum_amount: Option<ExactNumber> = usage.and_then(|usage| usage.maximum_amount),
    }
}

answer! {
    /// What a quantity costs by a pricing.
    PricingRateJson of rate: PricingRate {
        /// How much.
        quantity: ExactNumber = rate.quantity,
        /// What each line item that is priced by usage makes of it.
        line_items: Vec<RatedItemJson> = &rate.line_items,
    }
}

answer! {
    /// What a line item costs at a quantity.
    RatedItemJson of at: RatedItem {
        let rated = &at.rated;
        /// Unique within its pricing.
        line_item_id: NamedRef = &at.item.id,
        /// Shown on documents.
        name: LineText = &at.item.name,
        /// The currency of the amount.
        currency: CurrencyCode = rated.amount.currency(),
        /// The price of one, where the model has a single one.
        unit_price: Option<ExactNumber> = rated.unit_price,
        /// The tiers reached, of a tiered price.
        tiers: Vec<DocumentTierJson> = &rated.tiers,
        /// What a whole period with this quantity costs, with minimum and maximum, rounded once.
        amount: ExactNumber = rated.amount,
    }
}

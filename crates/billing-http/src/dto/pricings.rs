//! Pricings and their line items.

use billing_domain::catalog::{
    Charge, FixedPrice, LineItem, MAX_LINE_ITEMS, PriceModel, Pricing, PricingContent, Recurrence, UsageCharge,
};
use billing_domain::money::Price;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{LineItemId, PricingRef, UsageProductRef};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::prices::{self, PriceBody, PriceJson};
use super::wire::{CurrencyCode, ExactNumber, LineText, NamedRef, PriceInput, QuantityInput, edit_of};
use super::words::{ChargeKind, ChargeKindWord, RecurrenceWord};

/// A pricing to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({
    "product_pricing_ref": "api",
    "name": "API access",
    "currency": "EUR",
    "minimum_fee": 25,
    "line_items": [
        {"line_item_id": "base", "name": "Base fee", "kind": "FIXED", "price": {"model": "FLAT", "amount": "20.00"}},
        {
            "line_item_id": "calls",
            "name": "API calls",
            "kind": "USAGE",
            "usage_product_ref": "api-calls",
            "price": {"model": "GRADUATED", "tiers": [{"up_to": 1000, "unit_price": 0.01}, {"unit_price": 0.0025}]},
            "included_quantity": 100
        }
    ]
}))]
pub(crate) struct PricingBody {
    /// Reference; assigned when left out.
    product_pricing_ref: Option<NamedRef>,
    /// Name, shown on documents.
    name: LineText,
    /// The currency of every document that bills it.
    currency: CurrencyCode,
    /// The least a period costs, usage and fixed items together.
    minimum_fee: Option<PriceInput>,
    /// Line items with distinct identifiers.
    #[schema(max_items = 200)]
    line_items: Option<Vec<LineItemBody>>,
}

/// One thing a pricing charges for.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LineItemBody {
    /// Unique within its pricing.
    line_item_id: NamedRef,
    /// Shown on documents; the identifier when left out.
    name: Option<LineText>,
    /// FIXED: priced by the quantity that a contract agrees on, 1 unless it says otherwise. USAGE: priced by events.
    kind: ChargeKindWord,
    /// When a FIXED line item is charged; EACH_PERIOD when left out.
    recurrence: Option<RecurrenceWord>,
    /// The usage product whose events are priced; required for USAGE.
    usage_product_ref: Option<NamedRef>,
    /// What it costs: any model but PERCENTAGE for FIXED, any but FLAT for USAGE.
    price: PriceBody,
    /// Comes off a period's quantity first; USAGE only, 0 when left out.
    included_quantity: Option<QuantityInput>,
    /// Billed in advance; USAGE only.
    prepaid_quantity: Option<QuantityInput>,
    /// The least a period costs; USAGE only.
    minimum_amount: Option<PriceInput>,
    /// The most a period costs; USAGE only.
    maximum_amount: Option<PriceInput>,
}

edit_of! {
    /// Changes to a pricing: fields left out are kept, null clears; line items are replaced as a whole.
    PricingEditBody of PricingBody
}

impl PricingBody {
    /// Reads a pricing to make, and its reference where one is given.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(Option<PricingRef>, PricingContent), Violations> {
        input::read(body, |fields| {
            let reference = fields.optional("product_pricing_ref", |node| node.parsed(PricingRef::parse));
            Some((reference, content(fields, None)?))
        })
    }

    /// Reads changes to the pricing with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(
        body: &Value,
        reference: &PricingRef,
        present: &PricingContent,
    ) -> Result<PricingContent, Violations> {
        input::read(body, |fields| {
            fields.unchanged("product_pricing_ref", reference.as_str());
            content(fields, Some(present))
        })
    }
}

fn content(fields: Fields<'_>, present: Option<&PricingContent>) -> Option<PricingContent> {
    let name = fields.required_or("name", present.map(|p| &p.name), Node::line);
    let currency = fields.required_or("currency", present.map(|p| &p.currency), Node::currency);
    let fee = present.and_then(|p| p.minimum_fee.as_ref());
    let minimum_fee = fields.optional_or("minimum_fee", fee, |node| node.decimal(Price::parse));
    let items = present.map(|p| &p.line_items);
    let line_items = fields.defaulted("line_items", items, Vec::new(), |node| node.list(MAX_LINE_ITEMS, line_item));
    Some(PricingContent { name: name?, currency: currency?, minimum_fee, line_items })
}

/// The fields that only a line item priced by events has.
const OF_USAGE: [&str; 5] = ["usage_product_ref", "included_quantity", "prepaid_quantity", "minimum_amount", "maximum_amount"];
const LINE_ITEM_FIELDS: [&str; 10] = [
    "line_item_id",
    "name",
    "kind",
    "recurrence",
    "usage_product_ref",
    "price",
    "included_quantity",
    "prepaid_quantity",
    "minimum_amount",
    "maximum_amount",
];

fn line_item(node: Node<'_>) -> Option<LineItem> {
    node.object(|fields| {
        fields.only(&LINE_ITEM_FIELDS);
        let id = fields.required("line_item_id", |node| node.parsed(LineItemId::parse));
        let name = fields.optional("name", Node::line);
        let charge = match fields.required("kind", Node::word::<ChargeKindWord>) {
            Some(ChargeKind::Fixed) => fixed(fields),
            Some(ChargeKind::Usage) => usage(fields),
            None => fields.required("price", prices::read).and(None),
        };
        let id = id?;
        // A name left out is the identifier, which is a line by its own, stricter rule.
        let name = match name {
            Some(name) => name,
            None => OneLine::parse(id.as_str()).ok()?,
        };
        Some(LineItem { id, name, charge: charge? })
    })
}

fn fixed(fields: Fields<'_>) -> Option<Charge> {
    fields.none_of(&OF_USAGE, "must be left out, because only a line item of kind USAGE has it");
    let recurrence = fields.defaulted("recurrence", None, Recurrence::default(), Node::word::<RecurrenceWord>);
    match FixedPrice::of(fields.required("price", prices::read)?) {
        Some(price) => Some(Charge::Fixed { price, recurrence }),
        None => {
            let detail = "must be of model FLAT, PER_UNIT, GRADUATED, VOLUME or PACKAGE, because the line item's kind is FIXED";
            fields.refuse("price", "not_allowed", detail)
        }
    }
}

fn usage(fields: Fields<'_>) -> Option<Charge> {
    fields.none_of(&["recurrence"], "must be left out, because only a line item of kind FIXED has it");
    let usage_product_ref = fields.required("usage_product_ref", |node| node.parsed(UsageProductRef::parse));
    let price = match fields.required("price", prices::read) {
        Some(PriceModel::Metered(price)) => Some(price),
        Some(PriceModel::Flat { .. }) => {
            let detail =
                "must be of model PER_UNIT, GRADUATED, VOLUME, PACKAGE or PERCENTAGE, because the line item's kind is USAGE";
            fields.refuse("price", "not_allowed", detail)
        }
        None => None,
    };
    let quantity = |name| fields.optional(name, |node| node.decimal(Quantity::parse));
    let amount = |name| fields.optional(name, |node| node.decimal(Price::parse));
    let included_quantity = quantity("included_quantity").unwrap_or(Quantity::ZERO);
    let prepaid_quantity = quantity("prepaid_quantity");
    let minimum_amount = amount("minimum_amount");
    let maximum_amount = amount("maximum_amount");
    Some(Charge::Usage(UsageCharge {
        usage_product_ref: usage_product_ref?,
        price: price?,
        included_quantity,
        prepaid_quantity,
        minimum_amount,
        maximum_amount,
    }))
}

/// A pricing.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PricingJson {
    /// Reference.
    product_pricing_ref: NamedRef,
    /// Name, shown on documents.
    name: LineText,
    /// The currency of every document that bills it.
    currency: CurrencyCode,
    /// The least a period costs, usage and fixed items together.
    minimum_fee: Option<ExactNumber>,
    /// Line items.
    line_items: Vec<LineItemJson>,
}

/// One thing a pricing charges for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LineItemJson {
    /// Unique within its pricing.
    line_item_id: NamedRef,
    /// Shown on documents.
    name: LineText,
    /// FIXED: priced by the quantity that a contract agrees on. USAGE: priced by events.
    kind: ChargeKindWord,
    /// When a FIXED line item is charged; null for USAGE.
    recurrence: Option<RecurrenceWord>,
    /// The usage product whose events are priced; null for FIXED.
    usage_product_ref: Option<NamedRef>,
    /// What it costs.
    price: PriceJson,
    /// Comes off a period's quantity first; null for FIXED.
    included_quantity: Option<ExactNumber>,
    /// Billed in advance.
    prepaid_quantity: Option<ExactNumber>,
    /// The least a period costs.
    minimum_amount: Option<ExactNumber>,
    /// The most a period costs.
    maximum_amount: Option<ExactNumber>,
}

impl From<&Pricing> for PricingJson {
    fn from(pricing: &Pricing) -> Self {
        let content = &pricing.content;
        Self {
            product_pricing_ref: NamedRef::from(&pricing.pricing_ref),
            name: LineText::from(&content.name),
            currency: CurrencyCode::from(content.currency),
            minimum_fee: content.minimum_fee.map(ExactNumber::from),
            line_items: content.line_items.iter().map(LineItemJson::from).collect(),
        }
    }
}

impl From<&LineItem> for LineItemJson {
    fn from(item: &LineItem) -> Self {
        let (kind, recurrence, usage) = match &item.charge {
            Charge::Fixed { recurrence, .. } => (ChargeKind::Fixed, Some(*recurrence), None),
            Charge::Usage(usage) => (ChargeKind::Usage, None, Some(usage)),
        };
        Self {
            line_item_id: NamedRef::from(&item.id),
            name: LineText::from(&item.name),
            kind: ChargeKindWord::from(kind),
            recurrence: recurrence.map(RecurrenceWord::from),
            usage_product_ref: usage.map(|usage| NamedRef::from(&usage.usage_product_ref)),
            price: PriceJson::from(&item.charge),
            included_quantity: usage.map(|usage| ExactNumber::from(usage.included_quantity)),
            prepaid_quantity: usage.and_then(|usage| usage.prepaid_quantity).map(ExactNumber::from),
            minimum_amount: usage.and_then(|usage| usage.minimum_amount).map(ExactNumber::from),
            maximum_amount: usage.and_then(|usage| usage.maximum_amount).map(ExactNumber::from),
        }
    }
}

//! Usage products.

use billing_domain::catalog::{Aggregation, UsageProduct, UsageProductProfile};
use billing_domain::codes::UnitCode;
use billing_domain::refs::UsageProductRef;
use billing_domain::violation::Violations;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::input::{self, Fields, Node};
use super::wire::{LineText, NamedRef, UnitCodeText, edit_of};
use super::words::AggregationWord;

/// A usage product to make.
#[expect(dead_code, reason = "describes a request in the OpenAPI document; `read_new` makes the request itself")]
#[derive(ToSchema)]
#[schema(example = json!({"usage_product_ref": "api-calls", "name": "API calls", "unit": "call", "aggregation": "SUM"}))]
pub(crate) struct UsageProductBody {
    /// Reference; assigned when left out.
    usage_product_ref: Option<NamedRef>,
    /// Name; usage may be reported under it.
    name: LineText,
    /// What one of it is called on a document.
    unit: Option<LineText>,
    /// What one of it is, for machines; C62 (one) when left out.
    unit_code: Option<UnitCodeText>,
    /// How the quantities of a period become one; SUM when left out.
    aggregation: Option<AggregationWord>,
}

edit_of! {
    /// Changes to a usage product: fields left out are kept, null clears or brings the default back.
    UsageProductEditBody of UsageProductBody
}

impl UsageProductBody {
    /// Reads a usage product to make, and its reference where one is given.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub(crate) fn read_new(body: &Value) -> Result<(Option<UsageProductRef>, UsageProductProfile), Violations> {
        input::read(body, |fields| {
            let reference = fields.optional("usage_product_ref", |node| node.parsed(UsageProductRef::parse));
            Some((reference, profile(fields, None)?))
        })
    }

    /// Reads changes to the usage product with this reference.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub(crate) fn read_edit(
        body: &Value,
        reference: &UsageProductRef,
        present: &UsageProductProfile,
    ) -> Result<UsageProductProfile, Violations> {
        input::read(body, |fields| {
            fields.unchanged("usage_product_ref", reference.as_str());
            profile(fields, Some(present))
        })
    }
}

fn profile(fields: Fields<'_>, present: Option<&UsageProductProfile>) -> Option<UsageProductProfile> {
    let name = fields.required_or("name", present.map(|p| &p.name), Node::line);
    let unit = fields.optional_or("unit", present.and_then(|p| p.unit.as_ref()), Node::line);
    let code = present.map(|p| &p.unit_code);
    let unit_code = fields.defaulted("unit_code", code, UnitCode::ONE, |node| node.parsed(UnitCode::parse));
    let aggregation = present.map(|p| &p.aggregation);
    let aggregation = fields.defaulted("aggregation", aggregation, Aggregation::default(), Node::word::<AggregationWord>);
    Some(UsageProductProfile { name: name?, unit, unit_code, aggregation })
}

/// A usage product.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageProductJson {
    /// Reference.
    usage_product_ref: NamedRef,
    /// Name.
    name: LineText,
    /// What one of it is called on a document.
    unit: Option<LineText>,
    /// What one of it is, for machines.
    unit_code: UnitCodeText,
    /// How the quantities of a period become one.
    aggregation: AggregationWord,
}

impl From<&UsageProduct> for UsageProductJson {
    fn from(product: &UsageProduct) -> Self {
        Self {
            usage_product_ref: NamedRef::from(&product.usage_product_ref),
            name: LineText::from(&product.profile.name),
            unit: product.profile.unit.as_ref().map(LineText::from),
            unit_code: UnitCodeText::from(product.profile.unit_code),
            aggregation: AggregationWord::from(product.profile.aggregation),
        }
    }
}

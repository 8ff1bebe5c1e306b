//! Query strings: pages and filters of lists. All violations are reported together.
//!
//! A malformed reference is treated as unknown: it matches nothing.

pub mod audit;
pub mod billing;
pub mod documents;
pub mod explorer;
pub mod imports;
pub mod lists;
pub mod notifications;
pub mod updates;
pub mod usage;
pub mod webhooks;

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use billing_domain::access::RequestId;
use billing_domain::audit::AuditActor;
use billing_domain::contract::Contract;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::labels::MAX_WHERE_VALUES;
use billing_domain::metadata::{Metadata, check_entry};
use billing_domain::notification::Subject;
use billing_domain::page::{MAX_PAGE_SIZE, Page, PageRequest};
use billing_domain::refs::{
    ContractRef, CreditGrantRef, CustomerRef, DocumentRef, EndpointRef, EntityRef, PricingRef, UsageProductRef,
};
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use http::header::{HeaderName, LINK};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{AdditionalProperties, ObjectBuilder, Schema, Type};

use crate::dto::declare::{Fieldset, Wire, wire};
use crate::dto::input::{Fields, Node, read_query};
use crate::dto::schemas::{FieldSchema, Presence, Schemas, integer, text};
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::stored_response::Success;

/// Default number of elements of a page.
pub const DEFAULT_PAGE_SIZE: u32 = 20;
/// Largest page number, which fits in a signed 32-bit integer.
const MAX_PAGE_NUMBER: u32 = i32::MAX.unsigned_abs();
/// Largest version number, which fits in a signed 32-bit integer.
const MAX_VERSION: u32 = i32::MAX.unsigned_abs();
const SIZE: &str = "pageSize";
const NUMBER: &str = "pageNumber";
const CURSOR: &str = "cursor";
pub const TOTAL: HeaderName = HeaderName::from_static("x-total-count");

/// The query string of a request and its path.
#[derive(Clone, Debug)]
pub struct Query {
    path: String,
    raw: String,
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Parses the query string of a path.
    ///
    /// # Errors
    /// Returns a problem for a malformed query string.
    pub fn of(path: &str, raw: &str) -> Result<Self, Problem> {
        let mut pairs = Vec::new();
        if !raw.is_empty() {
            let malformed = |_| Problem::malformed("malformed_query", "the query string is malformed");
            pairs = serde_urlencoded::from_str(raw).map_err(malformed)?;
        }
        Ok(Self { path: path.to_owned(), raw: raw.to_owned(), pairs })
    }

    /// Reads the parameters.
    ///
    /// # Errors
    /// Returns all violations.
    pub fn read<P: Fieldset>(&self) -> Result<P, Problem> {
        self.read_as(P::read_whole)
    }

    /// Rejects all parameters except these.
    ///
    /// # Errors
    /// Returns a violation for each other parameter.
    pub fn only(&self, known: &[&str]) -> Result<(), Problem> {
        self.read_as(|fields| {
            fields.only_beside(known, &[]);
            Some(())
        })
    }

    fn read_as<T>(&self, read: impl FnOnce(Fields<'_>) -> Option<T>) -> Result<T, Problem> {
        let (mut parameters, mut twice) = (Map::new(), Vec::new());
        for (name, value) in &self.pairs {
            let value = Value::from(value.as_str());
            match parameters.get_mut(name) {
                None => drop(parameters.insert(name.clone(), value)),
                Some(values) if LabelParams::key_of(name).is_some() => match values {
                    Value::Array(values) => values.push(value),
                    first => *first = Value::Array(vec![first.take(), value]),
                },
                Some(_) => twice.push(name.as_str()),
            }
        }
        twice.dedup();
        Ok(read_query(parameters, &twice, read)?)
    }

    /// Builds the response with a page of a list: a bare array, with totals and links in headers.
    pub fn answer<'t, T, J: From<&'t T> + Serialize>(&self, asked: PageRequest, page: &'t Page<T>) -> Success {
        let elements: Vec<J> = page.items.iter().map(J::from).collect();
        let answer = Success::json(written(&elements));
        answer.with(TOTAL, &page.total.to_string()).with(LINK, &self.links(asked, page.total))
    }

    fn links(&self, asked: PageRequest, total: u64) -> String {
        let (size, number) = (u64::from(asked.size()), u64::from(asked.number()));
        let last = last_page(total, size);
        let next = Some(number + 1).filter(|next| *next <= last).map(|next| format!("{NUMBER}={next}"));
        self.links_around(size, Some(number), next, Some(last))
    }

    /// Builds the RFC 8288 links to the first, previous, next and last page, as far as they exist and are known.
    fn links_around(&self, size: u64, number: Option<u64>, next: Option<String>, last: Option<u64>) -> String {
        let is_kept = |pair: &&str| !matches!(pair.split('=').next().unwrap_or_default(), "" | SIZE | NUMBER | CURSOR);
        let others: String = self.raw.split('&').filter(is_kept).flat_map(|pair| [pair, "&"]).collect();
        let previous = number.and_then(|number| number.checked_sub(1)).map(|previous| previous.min(last.unwrap_or(previous)));
        let page = |number: u64| format!("{NUMBER}={number}");
        let places = [("first", Some(page(0))), ("prev", previous.map(page)), ("next", next), ("last", last.map(page))];
        let link = |(relation, place): (&str, Option<String>)| {
            Some(format!(r#"<{}?{others}{SIZE}={size}&{}>; rel="{relation}""#, self.path, place?))
        };
        places.into_iter().filter_map(link).collect::<Vec<_>>().join(", ")
    }
}

fn last_page(total: u64, size: u64) -> u64 {
    total.saturating_sub(1) / size
}

/// Query parameters that select a page.
pub trait PageParams {
    /// Returns the page in the direction of the order.
    fn page(&self) -> PageRequest;
}

/// Implements [`PageParams`] for parameters with a page, and with an order after `ordered`.
macro_rules! paged {
    ($($params:ident),* $(,)?; ordered $($ordered:ident),* $(,)?) => {
        $(impl $crate::query::PageParams for $params {
            fn page(&self) -> billing_domain::page::PageRequest {
                self.page.0
            }
        })*
        $(impl $crate::query::PageParams for $ordered {
            fn page(&self) -> billing_domain::page::PageRequest {
                self.page.0.in_direction(self.order.direction())
            }
        })*
    };
}

pub(crate) use paged;

/// A page of a list with a default size. If the default is 0, size and number are required.
#[derive(Clone, Copy, Debug)]
pub struct Paged<const USUAL_SIZE: u32>(pub PageRequest);

impl<const USUAL_SIZE: u32> Fieldset for Paged<USUAL_SIZE> {
    fn names() -> &'static [&'static str] {
        &[SIZE, NUMBER]
    }

    fn read_fields(fields: Fields<'_>) -> Option<Self> {
        let usual = (USUAL_SIZE > 0).then_some(USUAL_SIZE);
        let size = whole(fields, SIZE, 1..=MAX_PAGE_SIZE, usual);
        let number = whole(fields, NUMBER, 0..=MAX_PAGE_NUMBER, usual.map(|_| 0));
        PageRequest::new(size?, number?).ok().map(Self)
    }

    fn described(_: &mut Schemas) -> Vec<FieldSchema> {
        let presence = if USUAL_SIZE == 0 { Presence::Required } else { Presence::Optional };
        let described = |name, meaning, least: u32, most: u32, usual: u32| {
            let number = integer(least, most);
            let number = if USUAL_SIZE == 0 { number } else { number.default(Some(usual.into())) };
            FieldSchema { name, meaning, presence, schema: number.into() }
        };
        vec![
            described(SIZE, "Number of elements per page.", 1, MAX_PAGE_SIZE, USUAL_SIZE),
            described(NUMBER, "Page number, starting at 0.", 0, MAX_PAGE_NUMBER, 0),
        ]
    }
}

/// The parameter by which lists are filtered by metadata, as OpenAPI names it.
pub const METADATA: &str = "metadata";

/// Filters by metadata: `metadata[key]=value`. Each of them must match.
#[derive(Clone, Debug, Default)]
pub struct MetadataParams(pub Metadata);

impl Fieldset for MetadataParams {
    fn names() -> &'static [&'static str] {
        &["metadata[key]"]
    }

    fn read_fields(fields: Fields<'_>) -> Option<Self> {
        let mut wanted = Vec::new();
        let mut is_valid = true;
        for (name, node) in fields.entries() {
            let Some(key) = name.strip_prefix("metadata[").and_then(|rest| rest.strip_suffix(']')) else { continue };
            match node.text().map(|value| (value, check_entry(key, value))) {
                Some((value, Ok(()))) => wanted.push((key.to_owned(), value.to_owned())),
                Some((_, Err(reason))) => {
                    node.taken::<(), _>(Err(reason));
                    is_valid = false;
                }
                None => is_valid = false,
            }
        }
        if !is_valid {
            return None;
        }
        fields
            .agreed(Metadata::new(wanted).map_err(|reason| Violations::one(&[METADATA], "too_many", reason.to_string())))
            .map(Self)
    }

    fn described(_: &mut Schemas) -> Vec<FieldSchema> {
        let meaning = "Filters by metadata: `metadata[key]=value`. Each of them must match.";
        let values = AdditionalProperties::from(Schema::from(text()));
        let schema = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(values));
        vec![FieldSchema { name: METADATA, meaning, presence: Presence::Optional, schema: schema.into() }]
    }
}

/// The parameter by which events are filtered by labels, as OpenAPI names it.
pub const REPORT_DATA: &str = "report_data";

/// The maximum number of label keys of a filter.
const MAX_LABEL_KEYS: usize = 5;

/// Filters by labels: `report_data[key]=value`. Each key must match; a key that is repeated matches one of its values.
#[derive(Clone, Debug, Default)]
pub struct LabelParams(pub BTreeMap<String, Vec<String>>);

impl LabelParams {
    /// Returns the label key of a parameter.
    fn key_of(name: &str) -> Option<&str> {
        name.strip_prefix("report_data[").and_then(|rest| rest.strip_suffix(']'))
    }

    /// Returns whether a query filters by labels.
    pub fn is_in(fields: Fields<'_>) -> bool {
        fields.entries().any(|(name, _)| Self::key_of(name).is_some())
    }
}

impl Fieldset for LabelParams {
    fn names() -> &'static [&'static str] {
        &["report_data[key]"]
    }

    fn read_fields(fields: Fields<'_>) -> Option<Self> {
        let mut wanted = BTreeMap::new();
        for (name, node) in fields.entries() {
            let Some(key) = Self::key_of(name) else { continue };
            let values = match node.as_text() {
                Some(value) => vec![value.to_owned()],
                None => node.list(MAX_WHERE_VALUES, |value| value.text().map(str::to_owned))?,
            };
            wanted.insert(key.to_owned(), values);
        }
        if wanted.len() > MAX_LABEL_KEYS {
            return fields.refuse(REPORT_DATA, "too_many", format!("must have at most {MAX_LABEL_KEYS} keys"));
        }
        Some(Self(wanted))
    }

    fn described(_: &mut Schemas) -> Vec<FieldSchema> {
        let meaning = "Filters by labels: `report_data[key]=value`, compared with the value as it was sent. Each of up to five \
                       keys must match; a repeated key matches one of its values. Needs `customer_ref`, `contract_ref` or \
                       `document_ref`.";
        let values = AdditionalProperties::from(Schema::from(text()));
        let schema = ObjectBuilder::new().schema_type(Type::Object).additional_properties(Some(values));
        vec![FieldSchema { name: REPORT_DATA, meaning, presence: Presence::Optional, schema: schema.into() }]
    }
}

/// Rejects a page number together with a cursor.
fn require_number_or_cursor(fields: Fields<'_>) {
    if fields.has(CURSOR) && fields.has(NUMBER) {
        fields.refuse::<()>(NUMBER, "invalid_value", "must be omitted, because cursor is given");
    }
}

fn whole(fields: Fields<'_>, name: &str, range: RangeInclusive<u32>, usual: Option<u32>) -> Option<u32> {
    let detail = format!("must be a whole number from {} to {}", range.start(), range.end());
    let read = |node: Node<'_>| digits(node, &range, &detail);
    match usual {
        Some(usual) => fields.optional(name, read).map(|number| number.unwrap_or(usual)),
        None if fields.has(name) => fields.required(name, read),
        None => fields.refuse(name, "required", detail.as_str()),
    }
}

/// Reads a whole number that consists of digits.
fn digits(node: Node<'_>, range: &RangeInclusive<u32>, detail: &str) -> Option<u32> {
    let text = node.text()?;
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    match text.parse().ok().filter(|number| digits && range.contains(number)) {
        Some(number) => Some(number),
        None => node.refuse(if digits || text.starts_with('-') { "out_of_range" } else { "invalid_format" }, detail),
    }
}

/// A version number.
pub struct Version;

/// Any text to search for. Text with control characters matches nothing, because stored text has none and some databases
/// reject them.
pub struct AnyText;

wire! {
    Version of u32: |node| digits(node, &(1..=MAX_VERSION), &format!("must be a whole number from 1 to {MAX_VERSION}")),
        |_| integer(1, MAX_VERSION);
    AnyText of String: any_text, |_| text();
}

fn any_text(node: Node<'_>) -> Option<String> {
    let text = node.text()?;
    if text.chars().any(char::is_control) {
        return node.refuse("invalid_format", "must not contain control characters");
    }
    Some(text.to_owned())
}

/// A reference or number to search for; `None` if it is malformed.
pub struct SearchRef<T>(std::marker::PhantomData<T>);

/// A type that can be searched for.
pub trait Findable: Clone + Send + Sync + 'static {
    /// An example value.
    const EXAMPLE: Option<&'static str> = None;

    /// Parses a value; `None` if nothing can have it.
    fn sought(text: &str) -> Option<Self>;
}

impl<T: Findable> Wire for SearchRef<T> {
    type Value = Option<T>;

    fn read(node: Node<'_>) -> Option<Option<T>> {
        node.text().map(T::sought)
    }

    fn schema(_: &mut Schemas) -> RefOr<Schema> {
        text().examples(T::EXAMPLE).into()
    }
}

macro_rules! findable {
    ($($type:ident $(like $example:literal)?: $sought:expr;)+) => {$(
        impl Findable for $type {
            $(const EXAMPLE: Option<&'static str> = Some($example);)?

            fn sought(text: &str) -> Option<Self> {
                let sought: fn(&str) -> Option<Self> = $sought;
                sought(text)
            }
        }
    )+};
}

/// The number of a contract.
#[derive(Clone, Copy, Debug)]
pub struct ContractNumber(pub u64);

findable! {
    CustomerRef: |text| CustomerRef::parse(text).ok();
    ContractRef: |text| ContractRef::parse(text).ok();
    CreditGrantRef: |text| CreditGrantRef::parse(text).ok();
    DocumentRef: |text| DocumentRef::parse(text).ok();
    EndpointRef: |text| EndpointRef::parse(text).ok();
    EntityRef: |text| EntityRef::parse(text).ok();
    PricingRef: |text| PricingRef::parse(text).ok();
    UsageProductRef: |text| UsageProductRef::parse(text).ok();
    OneLine: |text| OneLine::parse(text).ok();
    AuditActor like "scheduler": AuditActor::parse;
    RequestId: RequestId::parse;
    Subject like "document:0198c5f2-9a11-7c02-8d3e-5f0a1b2c3d4e": Subject::parse;
    DocumentNumber like "UB-INV-1": DocumentNumber::parse;
    ContractNumber like "C-1": |text| Contract::read_number(text).map(ContractNumber);
}

#[cfg(test)]
mod tests;

//! The OpenAPI document matches the bodies: every example is accepted and fits its schema, and every response fits its schema.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use billing_domain::access::Scope;
use billing_domain::catalog::{MAX_LINE_ITEMS, MAX_TIERS};
use billing_domain::contract::MAX_PRODUCTS;
use billing_domain::contract::schedule::MAX_CYCLE;
use billing_domain::contract::terms::MAX_QUANTITY_STEPS;
use billing_domain::party::MAX_GRACE_HOURS;
use billing_domain::report::NumbersAs;
use billing_domain::text::OneLine;
use billing_domain::violation::Violations;
use serde_json::Value;
use utoipa::ToSchema;

use super::super::billing::BillingRunBody;
use super::super::contract_changes::{ContractCancelBody, ContractQuantityBody, ContractResumeBody};
use super::super::contract_view::ContractJson;
use super::super::contracts::{ContractBody, ContractEditBody};
use super::super::customers::{CustomerBody, CustomerEditBody};
use super::super::declare::{Body, Listed};
use super::super::entities::{EntityBody, EntityEditBody, EntityJson};
use super::super::events::{EventBody, EventUpdateBody};
use super::super::formats::{FormatBody, FormatEditBody, FormatTestBody};
use super::super::formatted::{FormattedEventBody, FormattedUpdateBody};
use super::super::keys::KeyBody;
use super::super::log_in::LogInBody;
use super::super::pricings::{PricingBody, PricingEditBody};
use super::super::schemas::Schemas;
use super::super::usage_products::{UsageProductBody, UsageProductEditBody};
use super::{json, posted_back, refusals};
use crate::openapi::described;

const SCHEMAS: &str = "#/components/schemas/";

/// A schema with all referenced schemas.
pub(super) struct Described {
    root: Value,
    named: BTreeMap<String, Value>,
}

impl Described {
    pub(super) fn of<T: ToSchema>() -> Self {
        let mut named = Vec::new();
        T::schemas(&mut named);
        Self {
            root: posted_back(&T::schema()),
            named: named.into_iter().map(|(name, schema)| (name, posted_back(&schema))).collect(),
        }
    }

    pub(super) fn of_body<B: Body>() -> Self {
        let mut schemas = Schemas::default();
        let reference = reference_of::<B>(&mut schemas);
        let named: BTreeMap<String, Value> =
            schemas.into_all().into_iter().map(|(name, schema)| (name, posted_back(&schema))).collect();
        Self { root: named[reference.trim_start_matches(SCHEMAS)].clone(), named }
    }

    /// Returns the paths at which a value does not fit.
    pub(super) fn misfits(&self, value: &Value) -> Vec<String> {
        let mut found = Vec::new();
        self.fit(&self.root, value, "", &mut found);
        found
    }

    /// Implements the part of JSON Schema that the document uses.
    fn fit(&self, schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let name = name.rsplit('/').next().expect("a name");
            let referred = self.named.get(name).unwrap_or_else(|| panic!("{name} is not among the schemas"));
            return self.fit(referred, value, at, found);
        }
        let fits = |schema: &Value| {
            let mut inner = Vec::new();
            self.fit(schema, value, at, &mut inner);
            inner.is_empty()
        };
        if let Some(choices) = schema["oneOf"].as_array() {
            let fitting = choices.iter().filter(|choice| fits(choice)).count();
            if fitting != 1 {
                found.push(format!("{at} fits {fitting} of {} choices", choices.len()));
            }
        }
        for part in schema["allOf"].as_array().into_iter().flatten() {
            self.fit(part, value, at, found);
        }
        let of_type = |name: &Value| match name.as_str().expect("a type") {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "integer" => value.is_i64(),
            "number" => value.is_number(),
            other => panic!("type {other}"),
        };
        let typed = match &schema["type"] {
            Value::Null => true,
            Value::Array(names) => names.iter().any(of_type),
            name => of_type(name),
        };
        if !typed {
            found.push(format!("{at} is no {}", schema["type"]));
        }
        if !schema["const"].is_null() && schema["const"] != *value {
            found.push(format!("{at} is not {}", schema["const"]));
        }
        if schema["enum"].as_array().is_some_and(|words| !words.contains(value)) {
            found.push(format!("{at} is not one of {}", schema["enum"]));
        }
        if let Some(text) = value.as_str() {
            let (chars, limit) = (text.chars().count() as u64, |key: &str| schema[key].as_u64());
            if limit("minLength").is_some_and(|min| chars < min) || limit("maxLength").is_some_and(|max| chars > max) {
                found.push(format!("{at} has {chars} characters"));
            }
        }
        if let (Some(object), Some(properties)) = (value.as_object(), schema["properties"].as_object()) {
            for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                if !object.contains_key(name) {
                    found.push(format!("{at}/{name} is missing"));
                }
            }
            for (name, value) in object {
                match properties.get(name) {
                    Some(property) => self.fit(property, value, &format!("{at}/{name}"), found),
                    None => found.push(format!("{at}/{name} is not described")),
                }
            }
        }
        for (i, element) in value.as_array().into_iter().flatten().enumerate() {
            self.fit(&schema["items"], element, &format!("{at}/{i}"), found);
        }
    }
}

/// Requires a response to fit its schema, which must describe all of its fields.
pub(super) fn assert_fits<T: ToSchema + serde::Serialize>(answer: &T) {
    static NAMED: LazyLock<BTreeMap<String, Value>> =
        LazyLock::new(|| serde_json::from_value(DOCUMENT["components"]["schemas"].clone()).expect("schemas"));
    let name = T::name();
    let root = NAMED.get(name.strip_suffix("Json").unwrap_or(&name)).unwrap_or_else(|| panic!("{name} is not in the document"));
    let described = Described { root: root.clone(), named: NAMED.clone() };
    let value = posted_back(answer);
    assert_eq!(described.misfits(&value), [""; 0], "{value:#}");
}

/// The OpenAPI document, parsed once.
static DOCUMENT: LazyLock<Value> = LazyLock::new(|| described(NumbersAs::Number));

fn reference_of<B: Body>(schemas: &mut Schemas) -> String {
    posted_back(&B::schema(schemas))["$ref"].as_str().expect("a reference").to_owned()
}

/// Checks that the example of the operation with this body fits its schema and is accepted.
fn example_is_true<B: Body, T>(read: impl Fn(&Value) -> Result<T, Violations>) {
    let described = Described::of_body::<B>();
    let reference = reference_of::<B>(&mut Schemas::default());
    let operations = DOCUMENT["paths"].as_object().expect("paths").values();
    let mut bodies = operations.map(|methods| &methods["post"]["requestBody"]["content"]["application/json"]);
    let taken = bodies.find(|body| body["schema"]["$ref"] == *reference);
    let example = &taken.unwrap_or_else(|| panic!("no operation accepts {reference}"))["example"];
    assert_eq!(described.misfits(example), [""; 0], "{example}");
    assert_eq!(refusals(read(example)), [""; 0], "{example}");
}

#[test]
fn every_example_of_a_request_is_taken() {
    example_is_true::<EventBody, _>(EventBody::read_event);
    example_is_true::<FormatBody, _>(super::format);
    example_is_true::<FormatTestBody, _>(super::format_test);
    example_is_true::<FormattedEventBody, _>(super::formatted_event);
    example_is_true::<FormattedUpdateBody, _>(super::formatted_update);
    example_is_true::<ContractBody, _>(super::contract);
    example_is_true::<ContractEditBody, _>(super::contract_edit);
    example_is_true::<ContractCancelBody, _>(|body| super::cancel(Some(body)));
    example_is_true::<ContractResumeBody, _>(|body| super::resume(Some(body)));
    example_is_true::<ContractQuantityBody, _>(super::quantity_change);
    example_is_true::<CustomerBody, _>(super::customer);
    example_is_true::<EntityBody, _>(super::entity);
    example_is_true::<UsageProductBody, _>(super::usage_product);
    example_is_true::<PricingBody, _>(super::pricing);
    example_is_true::<KeyBody, _>(|body| super::key(Some(body)));
    example_is_true::<LogInBody, _>(LogInBody::read_log_in);
    example_is_true::<BillingRunBody, _>(|body| super::billing_run(Some(body)));
}

fn requires<B: Body>() -> Value {
    Described::of_body::<B>().root["required"].clone()
}

#[test]
fn an_edit_requires_nothing_that_a_create_does() {
    assert_eq!(requires::<CustomerBody>(), json(r#"["name"]"#));
    assert_eq!(requires::<EntityBody>(), json(r#"["name","number_prefix"]"#));
    assert_eq!(requires::<PricingBody>(), json(r#"["name","currency"]"#));
    assert_eq!(requires::<UsageProductBody>(), json(r#"["name"]"#));
    assert_eq!(requires::<FormatBody>(), json(r#"["format_name","mapping"]"#));
    let edits = [
        requires::<CustomerEditBody>(),
        requires::<EntityEditBody>(),
        requires::<PricingEditBody>(),
        requires::<UsageProductEditBody>(),
        requires::<FormatEditBody>(),
    ];
    assert!(edits.iter().all(Value::is_null), "{edits:?}");
}

#[test]
fn what_an_update_can_change_but_not_clear_is_not_described_as_nullable() {
    let (event, contract) = (Described::of_body::<EventUpdateBody>(), Described::of_body::<ContractEditBody>());
    let product = &contract.named["ContractProductEditBody"];
    let rows = [
        (&event.root, "timestamp"),
        (&event.root, "quantity"),
        (&contract.root, "customer_ref"),
        (product, "billing_start_date"),
        (product, "billing_end_date"),
    ];
    for (schema, name) in rows {
        assert!(schema["properties"][name]["$ref"].is_string(), "{name}: {schema}");
    }
    let nulls = json(r#"{"event_ref":"e","timestamp":null,"quantity":null}"#);
    assert_eq!(refusals(super::event_update(&nulls)), ["/timestamp required", "/quantity required"]);
}

#[test]
fn every_field_of_a_request_has_a_description_and_every_text_a_limit() {
    let all = [
        Described::of_body::<EventBody>(),
        Described::of_body::<FormatBody>(),
        Described::of_body::<FormatTestBody>(),
        Described::of_body::<FormattedEventBody>(),
        Described::of_body::<FormattedUpdateBody>(),
        Described::of_body::<ContractBody>(),
        Described::of_body::<ContractEditBody>(),
        Described::of_body::<ContractCancelBody>(),
        Described::of_body::<ContractResumeBody>(),
        Described::of_body::<ContractQuantityBody>(),
        Described::of_body::<CustomerBody>(),
        Described::of_body::<EntityBody>(),
        Described::of_body::<UsageProductBody>(),
        Described::of_body::<PricingBody>(),
        Described::of_body::<KeyBody>(),
        Described::of_body::<LogInBody>(),
        Described::of_body::<BillingRunBody>(),
    ];
    for described in &all {
        for schema in described.named.values().chain([&described.root]) {
            for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                // The description of a nullable reference is beside the reference.
                let description = [&property["description"], &property["oneOf"][0]["description"]];
                assert!(description.iter().any(|text| text.is_string()), "{name}: {property}");
            }
            let bounded = ["enum", "maxLength", "pattern", "format"].iter().any(|limit| !schema[*limit].is_null());
            assert!(schema["type"] != "string" || bounded, "{schema}");
        }
    }
}

#[test]
fn closed_objects_are_described_as_closed() {
    let named = |described: Described, name: &str| described.named.get(name).expect(name).clone();
    let closed = [
        named(Described::of_body::<EventBody>(), "ValidationsBody"),
        named(Described::of_body::<FormatBody>(), "Mapping"),
        named(Described::of_body::<FormatBody>(), "MappingValidations"),
        named(Described::of_body::<ContractBody>(), "BillingCycleBody"),
        named(Described::of_body::<ContractBody>(), "ContractLineItemBody"),
        named(Described::of_body::<ContractBody>(), "QuantityStepBody"),
        named(Described::of_body::<ContractBody>(), "BankTransfer"),
        named(Described::of_body::<ContractBody>(), "OnlinePayment"),
        named(Described::of_body::<ContractBody>(), "Crypto"),
        Described::of_body::<ContractCancelBody>().root,
        Described::of_body::<ContractResumeBody>().root,
        Described::of_body::<ContractQuantityBody>().root,
        named(Described::of_body::<PricingBody>(), "LineItemBody"),
        named(Described::of_body::<PricingBody>(), "TierBody"),
    ];
    for schema in closed {
        assert_eq!(schema["additionalProperties"], Value::Bool(false), "{schema}");
    }
    let price = named(Described::of_body::<PricingBody>(), "PriceBody");
    for model in price["oneOf"].as_array().expect("models") {
        assert_eq!(model["additionalProperties"], Value::Bool(false), "{model}");
    }
}

#[test]
fn the_limits_of_lists_and_numbers_are_the_domains() {
    let (contract, pricing, entity) =
        (Described::of_body::<ContractBody>(), Described::of_body::<PricingBody>(), Described::of_body::<EntityBody>());
    let price = &pricing.named["PriceBody"]["oneOf"];
    let tiers = price.as_array().into_iter().flatten().filter_map(|model| model["properties"]["tiers"]["maxItems"].as_u64());
    let rows = [
        (&contract.root["properties"]["products"]["maxItems"], MAX_PRODUCTS),
        (&contract.named["ContractProductBody"]["properties"]["line_items"]["maxItems"], MAX_LINE_ITEMS),
        (&contract.named["ContractLineItemBody"]["properties"]["quantities"]["maxItems"], MAX_QUANTITY_STEPS),
        (&contract.named["Crypto"]["properties"]["tokens"]["maxItems"], <OneLine as Listed>::MAX),
        (&pricing.root["properties"]["line_items"]["maxItems"], MAX_LINE_ITEMS),
        (&Described::of_body::<KeyBody>().root["properties"]["scopes"]["maxItems"], Scope::ALL.len()),
        (&Described::of::<EntityJson>().named["GraceHoursValue"]["maximum"], MAX_GRACE_HOURS.into()),
        (&entity.named["GraceHoursInput"]["oneOf"][0]["maximum"], MAX_GRACE_HOURS.into()),
        (&Described::of::<ContractJson>().named["BillingCycleJson"]["properties"]["cycle"]["maximum"], MAX_CYCLE.into()),
    ];
    for (described, limit) in rows {
        assert_eq!(*described, Value::from(limit));
    }
    assert_eq!(tiers.collect::<Vec<_>>(), [MAX_TIERS as u64; 2]);
}

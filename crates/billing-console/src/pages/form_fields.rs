//! Builds form fields with their values, and converts a submitted form to an API request body.

use crate::{Field, Group, InputKind, Item, List, was};
use billing_api::console::FormData;
use billing_domain::catalog::MAX_LINE_ITEMS;
use serde_json::{Map, Value};

use super::form_data::field;
use super::openapi_index::{BodyField, BodyFieldKind};
use billing_api::problem::{FieldProblem, Problem};

/// Maximum number of elements of a list in a form.
const MAX_ELEMENTS: usize = MAX_LINE_ITEMS;

/// Optional fields that identify an element of a list in an edit.
const IDENTIFYING: [&str; 2] = ["product_no", "billing_start_date"];

/// How an edit changes the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListEdits {
    /// An element keeps the fields that the request omits, so that the request has its identifying fields and its changes.
    Merged,
    /// The list is replaced, so that the request has all fields of every element.
    Replaced,
}

/// The source of initial field values.
#[derive(Clone, Copy)]
pub(super) enum InitialValues<'s> {
    /// No values.
    Nothing,
    /// A submitted form.
    Said(&'s FormData),
    /// The existing object.
    Present(&'s Value),
}

impl InitialValues<'_> {
    /// Returns the submitted value of a field.
    pub(super) fn submitted(self, name: &str) -> Option<String> {
        match self {
            Self::Said(submitted) => field(submitted, name).map(str::to_owned),
            Self::Nothing | Self::Present(_) => None,
        }
    }

    fn value(self, name: &str) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Said(submitted) => field(submitted, name).unwrap_or_default().to_owned(),
            Self::Present(present) => present.pointer(&format!("/{name}")).map(text).unwrap_or_default(),
        }
    }

    /// Returns the number of elements of a list. In an empty form, top-level lists start with one element.
    pub(super) fn length(self, name: &str) -> usize {
        match self {
            Self::Nothing => usize::from(!name.contains('/')),
            Self::Said(submitted) => {
                submitted.iter().filter_map(|(submitted, _)| place_in(name, submitted)).map(|place| place + 1).max().unwrap_or(0)
            }
            Self::Present(present) => present.pointer(&format!("/{name}")).and_then(Value::as_array).map_or(0, Vec::len),
        }
    }

    /// Returns the original index of an element of an existing list.
    fn was(self, element: &str, place: usize) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Said(submitted) => field(submitted, &was(element)).map(str::to_owned),
            Self::Present(_) => Some(place.to_string()),
        }
    }
}

/// Returns the index of the list element that a field belongs to.
fn place_in(list: &str, name: &str) -> Option<usize> {
    let (place, _) = name.strip_prefix(list)?.strip_prefix('/')?.split_once('/')?;
    place.parse().ok().filter(|place| *place < MAX_ELEMENTS)
}

/// Returns the full name of a nested field.
fn below(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { format!("{prefix}/{name}") }
}

/// Builds the form items with values and errors.
pub(super) fn items(shapes: &[BodyField], prefix: &str, source: InitialValues<'_>, errors: &[FieldProblem]) -> Vec<Item> {
    // The value that selects the variant, and with it the relevant fields.
    let word = shapes
        .iter()
        .map(|shape| source.value(&below(prefix, &shape.name)))
        .find(|submitted| !submitted.is_empty() && shapes.iter().any(|shape| shape.of_words.contains(submitted)));
    let item = |shape: &BodyField| {
        let waits = word.as_ref().is_some_and(|word| !shape.of_words.is_empty() && !shape.of_words.contains(word));
        let for_words = if shape.of_words.is_empty() { String::new() } else { format!(" For {}.", shape.of_words.join(", ")) };
        let (name, meaning) = (below(prefix, &shape.name), format!("{}{for_words}", shape.meaning));
        let (label, of_words) = (String::new(), shape.of_words.clone());
        match &shape.says {
            BodyFieldKind::One { kind, .. } => {
                let wrong = errors.iter().filter(|error| is_about(error, &name, kind)).map(|error| error.detail.clone());
                let wrong = wrong.collect();
                let (kind, required, value) = (kind.clone(), shape.required, source.value(&name));
                let switches = matches!(&kind, InputKind::Choice(words) if shapes.iter().any(|other| is_for(other, words)));
                Item::Field(Field { name, label, meaning, kind, required, value, wrong, of_words, switches, waits })
            }
            BodyFieldKind::Parts(parts) => {
                let mut items = items(parts, &name, source, errors);
                if !shape.required {
                    // Fields of an optional group are required only if the group is present.
                    items.iter_mut().filter(|item| !matches!(item, Item::List(_))).for_each(not_required);
                }
                Item::Group(Group { name, meaning, items, ..Group::default() })
            }
            BodyFieldKind::Several(parts) => {
                let element = |place: usize| {
                    let name = format!("{name}/{place}");
                    let items = items(parts, &name, source, errors);
                    Group { was: source.was(&name, place), name, items, ..Group::default() }
                };
                let elements = (0..source.length(&name)).map(element).collect();
                Item::List(List { name, label, meaning, elements, new_elements: Vec::new(), of_words, waits })
            }
        }
    };
    shapes.iter().map(item).collect()
}

/// Returns whether an error is about a field, or about an element of a field with several lines.
fn is_about(error: &FieldProblem, name: &str, kind: &InputKind) -> bool {
    let below = error.pointer.strip_prefix('/').and_then(|pointer| pointer.strip_prefix(name));
    below.is_some_and(|below| below.is_empty() || (*kind == InputKind::Lines && below.starts_with('/')))
}

/// Returns whether a field applies only to some of these words.
fn is_for(shape: &BodyField, words: &[String]) -> bool {
    shape.of_words.iter().any(|word| words.contains(word))
}

/// Lets the fields of an item be empty.
pub(super) fn not_required(item: &mut Item) {
    match item {
        Item::Field(field) => field.required = false,
        Item::Group(group) => group.items.iter_mut().for_each(not_required),
        Item::List(list) => list.elements.iter_mut().flat_map(|element| &mut element.items).for_each(not_required),
    }
}

/// Returns the errors that belong to no visible field.
pub(super) fn others(problem: &Problem, items: &[Item]) -> Vec<String> {
    if problem.errors().is_empty() {
        return vec![problem.detail().to_owned()];
    }
    let beside_none = problem.errors().iter().filter(|error| !has(items, error));
    beside_none.map(|error| format!("{}: {}", error.pointer.trim_start_matches('/'), error.detail)).collect()
}

fn has(items: &[Item], error: &FieldProblem) -> bool {
    items.iter().any(|item| match item {
        Item::Field(field) => is_about(error, &field.name, &field.kind),
        Item::Group(group) => has(&group.items, error),
        Item::List(list) => list.elements.iter().any(|element| has(&element.items, error)),
    })
}

/// Returns the form data after adding an element to a list (`+list`) or removing one (`-list/place`).
pub(super) fn resized(submitted: &FormData, wanted: &str) -> FormData {
    if let Some(list) = wanted.strip_prefix('+') {
        let place = InitialValues::Said(submitted).length(list);
        let grown = (place < MAX_ELEMENTS).then(|| (format!("{list}/{place}/"), String::new()));
        return submitted.iter().cloned().chain(grown).collect();
    }
    let taken = wanted.strip_prefix('-').and_then(|element| element.rsplit_once('/'));
    let Some((list, gone)) = taken.and_then(|(list, place)| Some((list, place.parse::<usize>().ok()?))) else {
        return submitted.clone();
    };
    let moved = |(name, value): &(String, String)| match place_in(list, name) {
        Some(place) if place == gone => None,
        Some(place) if place > gone => {
            let rest = &name[list.len() + 1 + place.to_string().len()..];
            Some((format!("{list}/{}{rest}", place - 1), value.clone()))
        }
        _ => Some((name.clone(), value.clone())),
    };
    submitted.iter().filter_map(moved).collect()
}

/// Builds the request body. For a new object, it contains the filled fields. For an existing object, it contains the
/// changed fields, with a changed group as a whole. If any element of a list changed, it contains every element, as the list's
/// [edits](ListEdits) require.
pub(super) fn body(
    shapes: &[BodyField],
    prefix: &str,
    submitted: &FormData,
    present: Option<&Value>,
    lists: ListEdits,
) -> Map<String, Value> {
    let mut body = Map::new();
    let Some(present) = present else { return whole(shapes, prefix, InitialValues::Said(submitted)) };
    for shape in shapes {
        let (name, before) = (below(prefix, &shape.name), InitialValues::Present(present));
        let one = std::slice::from_ref(shape);
        // Both sides as a form would submit them.
        let now = whole(one, prefix, InitialValues::Said(submitted));
        let was = whole(one, "", before);
        let is_identifying = shape.required || IDENTIFYING.contains(&shape.name.as_str());
        let tells = !prefix.is_empty() && is_identifying && now.contains_key(&shape.name);
        if now == was && !tells {
            continue;
        }
        let value = match &shape.says {
            BodyFieldKind::Several(parts) if lists == ListEdits::Merged => {
                elements(parts, &name, submitted, present.get(&shape.name))
            }
            BodyFieldKind::Several(parts) => replaced(parts, &name, submitted, now.get(&shape.name), present.get(&shape.name)),
            BodyFieldKind::One { kind: InputKind::Lines, .. } => {
                now.get(&shape.name).cloned().unwrap_or_else(|| Value::Array(Vec::new()))
            }
            BodyFieldKind::One { .. } | BodyFieldKind::Parts(_) => now.get(&shape.name).cloned().unwrap_or_default(),
        };
        body.insert(shape.name.clone(), value);
    }
    body
}

/// Returns the elements of a list that replaces another one. They keep their fields without an input, such as `where`.
fn replaced(parts: &[BodyField], list: &str, submitted: &FormData, now: Option<&Value>, present: Option<&Value>) -> Value {
    let element = |(place, now): (usize, &Value)| {
        let was = field(submitted, &was(&format!("{list}/{place}"))).and_then(|place| place.parse::<usize>().ok());
        let was = was.and_then(|place| present?.get(place)?.as_object());
        let kept = was.into_iter().flatten().filter(|(name, _)| parts.iter().all(|part| part.name != **name));
        Value::Object(
            now.as_object().into_iter().flatten().chain(kept).map(|(name, value)| (name.clone(), value.clone())).collect(),
        )
    };
    now.and_then(Value::as_array).map(|now| now.iter().enumerate().map(element).collect()).unwrap_or_default()
}

fn elements(parts: &[BodyField], list: &str, submitted: &FormData, present: Option<&Value>) -> Value {
    let element = |place: usize| {
        let name = format!("{list}/{place}");
        let was = field(submitted, &was(&name)).and_then(|place| place.parse::<usize>().ok());
        let was = was.and_then(|place| present?.get(place));
        Value::Object(body(parts, &name, submitted, was, ListEdits::Merged))
    };
    (0..InitialValues::Said(submitted).length(list)).map(element).collect()
}

/// Returns all filled fields.
fn whole(shapes: &[BodyField], prefix: &str, source: InitialValues<'_>) -> Map<String, Value> {
    let say = |shape: &BodyField| {
        let name = below(prefix, &shape.name);
        let value = match &shape.says {
            BodyFieldKind::One { kind, is_whole } => value(kind, *is_whole, &source.value(&name))?,
            BodyFieldKind::Parts(parts) => Value::Object(Some(whole(parts, &name, source)).filter(|parts| !parts.is_empty())?),
            BodyFieldKind::Several(parts) => {
                let length = Some(source.length(&name)).filter(|length| *length > 0)?;
                (0..length).map(|place| Value::Object(whole(parts, &format!("{name}/{place}"), source))).collect()
            }
        };
        Some((shape.name.clone(), value))
    };
    shapes.iter().filter_map(say).collect()
}

/// Converts a field's text to its JSON value.
fn value(kind: &InputKind, is_whole: bool, text: &str) -> Option<Value> {
    match (kind, text) {
        (_, "") => None,
        (InputKind::Lines, lines) => Some(lines.split_whitespace().map(Value::from).collect()),
        (InputKind::Flag, "true") => Some(Value::Bool(true)),
        (InputKind::Flag, "false") => Some(Value::Bool(false)),
        _ if is_whole => Some(whole_number(text)),
        _ => Some(Value::from(text)),
    }
}

/// Converts an integer to a JSON number; other text stays a string.
pub(super) fn whole_number(text: &str) -> Value {
    text.parse::<u64>().map_or_else(|_| Value::from(text), Value::from)
}

/// Returns the text of a value in its input. A list has one line for each element.
fn text(value: &Value) -> String {
    match value {
        Value::Array(elements) => elements.iter().map(text).collect::<Vec<_>>().join("\n"),
        _ => crate::JsonView::<Value>::of(value).to_text(),
    }
}

#[cfg(test)]
mod tests {
    use billing_api::operations::{CreateContract, CreatePricing, EditContract, EditCustomer, EditPricing};
    use serde_json::json;

    use super::super::openapi_index::shapes;
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn edited(operation: &'static billing_api::operation::OperationSpec, pairs: &[(&str, &str)], present: &Value) -> Value {
        let lists = if *operation == EditContract::SPEC { ListEdits::Merged } else { ListEdits::Replaced };
        Value::Object(body(shapes(operation), "", &submitted(pairs), Some(present), lists))
    }

    #[test]
    fn an_edit_sends_what_is_said_otherwise_and_clears_what_is_empty() {
        let id = &EditCustomer::SPEC;
        let present = json!({"name": "Acme", "email": "a@acme.example", "tax": 19, "apply_balance": true,
            "billing_address": {"city": "Dublin", "line1": "1 Main Street"}});
        let same = [("name", "Acme"), ("email", "a@acme.example"), ("tax", "19"), ("apply_balance", "true")];
        let address = [("billing_address/city", "Dublin"), ("billing_address/line1", "1 Main Street")];
        assert_eq!(edited(id, &[same.as_slice(), &address].concat(), &present), json!({}));
        let other =
            [("name", "Acme Ltd"), ("email", ""), ("tax", "7"), ("apply_balance", "false"), ("billing_address/city", "Cork")];
        let expected =
            json!({"name": "Acme Ltd", "email": null, "tax": "7", "apply_balance": false, "billing_address": {"city": "Cork"}});
        assert_eq!(edited(id, &other, &present), expected);
    }

    #[test]
    fn a_new_pricing_says_its_line_items_with_their_prices_and_tiers() {
        let pairs = [
            ("name", "API"),
            ("currency", "EUR"),
            ("line_items/0/line_item_id", "calls"),
            ("line_items/0/kind", "USAGE"),
            ("line_items/0/price/model", "GRADUATED"),
            ("line_items/0/price/tiers/0/up_to", "1000"),
            ("line_items/0/price/tiers/0/unit_price", "0.05"),
            ("line_items/0/price/tiers/1/unit_price", "0.04"),
            ("line_items/1/", ""),
        ];
        let made = Value::Object(body(shapes(&CreatePricing::SPEC), "", &submitted(&pairs), None, ListEdits::Replaced));
        let tiers = json!([{"up_to": "1000", "unit_price": "0.05"}, {"unit_price": "0.04"}]);
        let calls = json!({"line_item_id": "calls", "kind": "USAGE", "price": {"model": "GRADUATED", "tiers": tiers}});
        assert_eq!(made, json!({"name": "API", "currency": "EUR", "line_items": [calls, {}]}));
    }

    #[test]
    fn a_price_offers_every_model_and_says_which_field_is_for_which() {
        let all = items(shapes(&CreatePricing::SPEC), "", InitialValues::Nothing, &[]);
        let Some(Item::List(lines)) = all.iter().find(|item| matches!(item, Item::List(list) if list.name == "line_items"))
        else {
            panic!("no line items: {all:?}");
        };
        let Some(Item::Group(price)) = lines.elements[0].items.iter().find(|item| matches!(item, Item::Group(_))) else {
            panic!("no price: {lines:?}");
        };
        let field = |name: &str| {
            let found = price.items.iter().find_map(|item| match item {
                Item::Field(field) if field.name.ends_with(name) => Some(field),
                _ => None,
            });
            found.unwrap_or_else(|| panic!("no {name}: {price:?}"))
        };
        let InputKind::Choice(models) = &field("/model").kind else { panic!("{price:?}") };
        assert!(models.len() > 4 && field("/model").required, "{models:?}");
        assert!(field("/package_size").meaning.contains("For PACKAGE."), "{:?}", field("/package_size"));
    }

    #[test]
    fn what_is_for_another_model_than_the_chosen_one_waits() {
        let submitted = submitted(&[("line_items/0/price/model", "FLAT")]);
        let all = format!("{:?}", items(shapes(&CreatePricing::SPEC), "", InitialValues::Said(&submitted), &[]));
        let waits = |name: &str| {
            let (_, rest) = all.split_once(&format!("name: \"line_items/0/price/{name}\"")).expect(name);
            rest.split_once("waits: ").expect(name).1.starts_with("true")
        };
        assert_eq!(["amount", "model", "package_size", "tiers"].map(waits), [false, false, true, true], "{all}");
    }

    #[test]
    fn an_edit_of_a_pricing_sends_line_items_with_everything_that_stays() {
        let item = json!({"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "api-calls",
            "where": {"region": ["eu"]}, "included_quantity": 100, "recurrence": null,
            "price": {"model": "PER_UNIT", "unit_price": 0.05}});
        let present = json!({"name": "API", "currency": "EUR", "line_items": [item]});
        let pairs = |unit_price: &'static str| {
            [
                ("name", "API"),
                ("currency", "EUR"),
                ("line_items/0/@was", "0"),
                ("line_items/0/line_item_id", "calls"),
                ("line_items/0/name", "Calls"),
                ("line_items/0/kind", "USAGE"),
                ("line_items/0/usage_product_ref", "api-calls"),
                ("line_items/0/included_quantity", "100"),
                ("line_items/0/price/model", "PER_UNIT"),
                ("line_items/0/price/unit_price", unit_price),
            ]
        };
        assert_eq!(edited(&EditPricing::SPEC, &pairs("0.05"), &present), json!({}));
        let changed = json!({"line_item_id": "calls", "name": "Calls", "kind": "USAGE", "usage_product_ref": "api-calls",
            "where": {"region": ["eu"]}, "included_quantity": "100", "price": {"model": "PER_UNIT", "unit_price": "0.04"}});
        assert_eq!(edited(&EditPricing::SPEC, &pairs("0.04"), &present), json!({"line_items": [changed]}));
    }

    #[test]
    fn an_edit_of_a_contract_lists_its_products_and_says_what_is_otherwise() {
        let product = |no: &str| {
            json!({"product_pricing_ref": no, "billing_start_date": "2026-01-01", "discount": 5, "contract_product": 1,
                "line_items": [{"line_item_id": "fee", "kind": "FIXED", "name": "Fee"}]})
        };
        let present = json!({"version": 3, "products": [product("a"), product("b")]});
        let mut pairs = vec![("version", "3"), ("effective_from", "2026-03-01")];
        let fields = |place: &'static [&'static str; 4], product: &'static str, discount: &'static str| {
            vec![(place[0], product), (place[1], "2026-01-01"), (place[2], discount), (place[3], "fee")]
        };
        const FIRST: [&str; 4] = [
            "products/0/product_pricing_ref",
            "products/0/billing_start_date",
            "products/0/discount",
            "products/0/line_items/0/line_item_id",
        ];
        const SECOND: [&str; 4] = [
            "products/1/product_pricing_ref",
            "products/1/billing_start_date",
            "products/1/discount",
            "products/1/line_items/0/line_item_id",
        ];
        pairs.extend(fields(&FIRST, "a", "7"));
        pairs.extend(fields(&SECOND, "b", ""));
        pairs.extend([("products/0/@was", "0"), ("products/1/@was", "1"), ("products/1/product_no", "1")]);
        pairs.extend([("products/0/line_items/0/@was", "0"), ("products/0/line_items/0/name", "Fee")]);
        pairs.extend([("products/1/line_items/0/@was", "0"), ("products/1/line_items/0/name", "Basic fee")]);
        let first = json!({"product_pricing_ref": "a", "billing_start_date": "2026-01-01", "discount": "7"});
        let second = json!({"product_no": 1, "product_pricing_ref": "b", "billing_start_date": "2026-01-01", "discount": null,
            "line_items": [{"line_item_id": "fee", "name": "Basic fee"}]});
        let expected = json!({"effective_from": "2026-03-01", "products": [first, second]});
        assert_eq!(edited(&EditContract::SPEC, &pairs, &present), expected);
    }

    #[test]
    fn an_element_that_is_taken_away_lets_the_others_move_up() {
        let before = submitted(&[("a/0/x", "0"), ("a/1/x", "1"), ("a/2/x", "2"), ("a/2/b/1/y", "3"), ("aa/1/x", "4")]);
        let after = submitted(&[("a/0/x", "0"), ("a/1/x", "2"), ("a/1/b/1/y", "3"), ("aa/1/x", "4")]);
        assert_eq!(resized(&before, "-a/1"), after);
        assert_eq!(resized(&after, "+a").last(), Some(&("a/2/".to_owned(), String::new())));
        assert_eq!(resized(&after, "-a/many"), after);
        assert_eq!(InitialValues::Said(&submitted(&[("a/999999999/x", "1")])).length("a"), 0);
    }

    #[test]
    fn what_is_wrong_in_an_element_stands_beside_its_field() {
        let errors = [FieldProblem {
            pointer: "/products/0/discount".to_owned(),
            code: "x",
            detail: "too much".to_owned(),
            expected: None,
            actual: None,
        }];
        let pairs = submitted(&[("products/0/discount", "101")]);
        let all = items(shapes(&CreateContract::SPEC), "", InitialValues::Said(&pairs), &errors);
        assert!(has(&all, &errors[0]));
        let wrong = format!("{all:?}");
        assert!(wrong.contains("too much"), "{wrong}");
    }
}

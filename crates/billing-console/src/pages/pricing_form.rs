//! The line items in the short form of a pricing: fees, seats and meters, each with the fields of its price model.

use crate::{InputKind, Item, List};
use billing_api::console::FormData;
use billing_api::operations::GetUsageProduct;
use billing_api::problem::Problem;

use super::api_client::or_nothing;
use super::form_data::field;
use super::form_fields::{self, InitialValues, resized};
use super::openapi_index::BodyField;
use super::references;
use super::session_user::SessionUser;
use super::short_forms::{FieldRow, ShortField, add_values, removed};

/// The field with the line items.
pub(super) const LINE_ITEMS: &str = "line_items";
/// Number of tiers with which a tiered price begins.
const TIERS: usize = 2;

/// A price model of line items.
struct PriceForm {
    /// The word of the API.
    model: &'static str,
    /// Name and effect.
    label: &'static str,
    fields: &'static [FieldRow],
}

const TIER_LIST: FieldRow = ("price/tiers", "Tiers", "In ascending order. The last tier has no upper quantity.", false);

const PRICE_FORMS: &[PriceForm] = &[
    PriceForm {
        model: "FLAT",
        label: "The same amount in every period, multiplied by the quantity in the contract",
        fields: &[("price/amount", "Amount per period", "Amount of the fee, or of one seat, such as 20.", false)],
    },
    PriceForm {
        model: "PER_UNIT",
        label: "Price per unit",
        fields: &[("price/unit_price", "Unit price", "At 0.05 per call, 1,500 calls cost 75.00.", false)],
    },
    PriceForm { model: "GRADUATED", label: "Graduated tiers: each unit at the price of its own tier", fields: &[TIER_LIST] },
    PriceForm {
        model: "VOLUME",
        label: "Volume tiers: all units at the price of the tier that contains the quantity",
        fields: &[TIER_LIST],
    },
    PriceForm {
        model: "PACKAGE",
        label: "Packages: whole packages of units, full or partial",
        fields: &[
            ("price/package_size", "Units per package", "Such as 1000.", false),
            ("price/package_price", "Price of a package", "At 40 per 1,000 calls, 1,500 calls cost 80.00.", false),
        ],
    },
    PriceForm {
        model: "PERCENTAGE",
        label: "Percentage of the reported amounts",
        fields: &[
            ("price/rate", "Percentage", "Such as 1.5.", false),
            ("price/fixed_amount", "Fee per event", "Default: no fee.", false),
        ],
    },
];

/// The price models of usage.
fn usage_models() -> impl Iterator<Item = &'static PriceForm> {
    PRICE_FORMS.iter().filter(|form| form.model != "FLAT")
}

const NAME: FieldRow = ("name", "Name", "Name of the line on documents.", false);
const NAME_OF_METER: FieldRow = ("name", "Name", "Name of the line on documents. Default: that of the usage product.", false);
const RECURRENCE: FieldRow = ("recurrence", "Charged", "Default: in each period.", false);
const USAGE_PRODUCT: FieldRow = ("usage_product_ref", "Usage product", "Product whose usage is billed.", false);
const MODEL: FieldRow = ("price/model", "Price model", "", false);
const INCLUDED: FieldRow =
    ("included_quantity", "Included quantity", "Quantity without charge in every period. Default: 0.", false);
/// Fields of a meter that are visible on request.
const MORE_OF_METER: [FieldRow; 3] = [
    ("minimum_amount", "Minimum amount per period", "Default: none.", false),
    ("maximum_amount", "Maximum amount per period", "Default: none.", false),
    ("prepaid_quantity", "Prepaid quantity", "Quantity that is billed in advance.", false),
];
/// Fields that alone do not make a line item: a line item whose other fields are empty is not created.
const OF_EVERY_ITEM: [&str; 4] = ["kind", "price/model", "name", "recurrence"];

/// A kind of line item that the form adds.
struct NewItem {
    /// Word after the list in the value of the button.
    word: &'static str,
    label: &'static str,
    values: &'static [(&'static str, &'static str)],
}

const NEW_ITEMS: [NewItem; 3] = [
    NewItem { word: "fee", label: "Add fee", values: &[("kind", "FIXED"), ("price/model", "FLAT"), ("name", "Fee")] },
    NewItem { word: "seats", label: "Add seats", values: &[("kind", "FIXED"), ("price/model", "FLAT"), ("name", "Seats")] },
    NewItem { word: "meter", label: "Add meter", values: &[("kind", "USAGE"), ("price/model", "PER_UNIT")] },
];

/// Returns the full name of a field of a line item.
fn below(place: usize, name: &str) -> String {
    format!("{LINE_ITEMS}/{place}/{name}")
}

/// Returns the line items of a new pricing: a fee, seats and a meter. Those that stay empty are not created.
pub(super) fn defaults() -> FormData {
    NEW_ITEMS.iter().fold(FormData::new(), |values, item| added(&values, item))
}

fn added(submitted: &FormData, item: &NewItem) -> FormData {
    let place = length(submitted);
    let values = item.values.iter().map(|(name, value)| (below(place, name), (*value).to_owned()));
    submitted.iter().cloned().chain(values).collect()
}

fn length(submitted: &FormData) -> usize {
    InitialValues::Said(submitted).length(LINE_ITEMS)
}

/// Returns the form data after a button of a list was pressed. Other than in other lists, a new line item has a kind.
pub(super) fn changed(submitted: &FormData, wanted: &str) -> FormData {
    let word = wanted.strip_prefix('+').and_then(|wanted| wanted.strip_prefix(LINE_ITEMS)?.strip_prefix(':'));
    match word.and_then(|word| NEW_ITEMS.iter().find(|item| item.word == word)) {
        Some(item) => added(submitted, item),
        None => resized(submitted, wanted),
    }
}

/// Returns the values of the form from their source, with two empty tiers for each meter that has none.
pub(super) fn prepared(shapes: &[BodyField], source: InitialValues<'_>) -> FormData {
    let mut values = match source {
        InitialValues::Said(submitted) => submitted.clone(),
        InitialValues::Nothing | InitialValues::Present(_) => {
            let mut values = FormData::new();
            add_values(&form_fields::items(shapes, "", source, &[]), &mut values);
            values
        }
    };
    for place in 0..length(&values) {
        let tiers = below(place, "price/tiers");
        if is_usage(&values, place) && InitialValues::Said(&values).length(&tiers) == 0 {
            values.extend((0..TIERS).map(|tier| (format!("{tiers}/{tier}/"), String::new())));
        }
    }
    values
}

fn is_usage(submitted: &FormData, place: usize) -> bool {
    field(submitted, &below(place, "kind")) == Some("USAGE")
}

/// Returns the form data without empty new line items, and without the fields of other price models than the selected ones.
pub(super) fn normalized(submitted: &FormData) -> FormData {
    let mut values = submitted.clone();
    for place in (0..length(submitted)).rev() {
        let item = below(place, "");
        let has_content = |(name, value): &(String, String)| {
            let own = name.strip_prefix(&item).unwrap_or_default();
            !own.is_empty() && !value.trim().is_empty() && !OF_EVERY_ITEM.contains(&own)
        };
        if !values.iter().any(has_content) {
            values = resized(&values, &format!("-{LINE_ITEMS}/{place}"));
            continue;
        }
        let model = field(&values, &below(place, "price/model")).unwrap_or_default().to_owned();
        let fits = |name: &str| {
            let top = |row: &FieldRow| name == row.0 || name.strip_prefix(row.0).is_some_and(|rest| rest.starts_with('/'));
            let of = |form: &&PriceForm| form.fields.iter().any(top);
            PRICE_FORMS.iter().find(|form| form.model == model).is_none_or(|form| of(&form))
                || !PRICE_FORMS.iter().any(|form| of(&form))
        };
        values.retain(|(name, _)| name.strip_prefix(&item).is_none_or(fits));
        let tiers = below(place, "price/tiers");
        for tier in (0..InitialValues::Said(&values).length(&tiers)).rev() {
            let of_tier = format!("{tiers}/{tier}/");
            if !values.iter().any(|(name, value)| name.starts_with(&of_tier) && !value.trim().is_empty()) {
                values = resized(&values, &format!("-{tiers}/{tier}"));
            }
        }
    }
    values
}

/// Gives each line item a name and an identifier: by default the name of its usage product, and the identifier that is made from
/// the name.
///
/// # Errors
/// Returns the problem of a failed API call.
pub(super) async fn named(user: &SessionUser, submitted: &FormData) -> Result<FormData, Problem> {
    let mut values = submitted.clone();
    let set = |values: &mut FormData, name: String, value: String| {
        values.retain(|(other, _)| *other != name);
        values.push((name, value));
    };
    let ids = |values: &FormData| -> Vec<String> {
        let id = |place| field(values, &below(place, "line_item_id")).map(str::to_owned);
        (0..length(values)).filter_map(id).collect()
    };
    for place in 0..length(submitted) {
        let mut name = field(&values, &below(place, "name")).unwrap_or_default().to_owned();
        if let Some(product) = field(&values, &below(place, "usage_product_ref")).filter(|_| name.is_empty()) {
            let product = or_nothing(user.quietly().get::<GetUsageProduct>(product).await)?;
            name = product.view().profile().name().to_text();
            set(&mut values, below(place, "name"), name.clone());
        }
        if field(&values, &below(place, "line_item_id")).is_none() {
            let usual = if is_usage(&values, place) { "usage" } else { "fee" };
            let id = references::reference_of(&name).unwrap_or_else(|| usual.to_owned());
            let id = references::free(&id, &ids(&values));
            set(&mut values, below(place, "line_item_id"), id);
        }
    }
    Ok(values)
}

/// Arranges the line items: of each, the fields of its kind and its price model. The values of all other fields are added to
/// `hidden`.
pub(super) fn arranged(mut list: List, hidden: &mut FormData) -> List {
    list.new_elements = NEW_ITEMS.iter().map(|item| (format!(":{}", item.word), item.label)).collect();
    for (place, element) in list.elements.iter_mut().enumerate() {
        let mut values = FormData::new();
        add_values(&element.items, &mut values);
        let model = field(&values, &below(place, "price/model")).unwrap_or_default().to_owned();
        let is_usage = is_usage(&values, place);
        let mut take = |row: &FieldRow| {
            let field = ShortField::of(&below(place, ""), row);
            Some(field.applied_to(removed(&mut element.items, &below(place, row.0))?))
        };
        let mut items: Vec<Item> = Vec::new();
        if is_usage {
            items.extend(take(&USAGE_PRODUCT));
            items.extend(take(&MODEL).map(with_models));
            for form in usage_models() {
                items.extend(form.fields.iter().filter_map(&mut take).map(|item| of_models(item, &model)));
            }
            items.extend([NAME_OF_METER, INCLUDED].iter().filter_map(&mut take));
            let more = MORE_OF_METER.iter().filter_map(&mut take).collect();
            items.push(Item::Group(crate::Group { label: "More".to_owned(), items: more, ..crate::Group::default() }));
        } else {
            items.extend(take(&NAME));
            let fields = PRICE_FORMS.iter().find(|form| form.model == model).map_or(&[][..], |form| form.fields);
            items.extend(fields.iter().filter_map(&mut take));
            items.extend(take(&RECURRENCE));
        }
        let name = field(&values, &below(place, "name")).unwrap_or(if is_usage { "Meter" } else { "Fee" });
        element.label = name.to_owned();
        add_values(&element.items, hidden);
        element.items = items;
    }
    list
}

/// Lets the choice of the price model select the fields that apply.
fn with_models(item: Item) -> Item {
    match item {
        Item::Field(mut field) => {
            let models: Vec<(&str, &str)> = usage_models().map(|form| (form.model, form.label)).collect();
            (field.kind, field.switches, field.required) = (InputKind::named(&models), true, true);
            Item::Field(field)
        }
        other => other,
    }
}

/// Shows a field for the price models that have it.
fn of_models(mut item: Item, model: &str) -> Item {
    let own = |name: &str| name.splitn(3, '/').nth(2).unwrap_or_default().to_owned();
    let name = own(item.name());
    let models = usage_models().filter(|form| form.fields.iter().any(|(field, ..)| *field == name));
    let words: Vec<String> = models.map(|form| form.model.to_owned()).collect();
    let is_other = !words.iter().any(|word| word == model);
    // A field of another model is not required. The API checks those of the selected one.
    form_fields::not_required(&mut item);
    match &mut item {
        Item::Field(field) => (field.of_words, field.waits) = (words, is_other),
        Item::List(list) => (list.of_words, list.waits) = (words, is_other),
        Item::Group(_) => {}
    }
    item
}

#[cfg(test)]
mod tests {
    use billing_api::operations::{CreatePricing, EditPricing};
    use serde_json::{Value, json};

    use super::super::form_fields::{ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::super::short_forms::catalog_form;
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn with(values: &FormData, pairs: &[(&str, &str)]) -> FormData {
        let is_other = |(name, _): &&(String, String)| pairs.iter().all(|(other, _)| other != name);
        values.iter().filter(is_other).cloned().chain(submitted(pairs)).collect()
    }

    fn created(values: &FormData) -> Value {
        let completed = catalog_form("pricings").expect("a form").completed(&normalized(values), false);
        Value::Object(body(shapes(&CreatePricing::SPEC), "", &completed, None, ListEdits::Replaced))
    }

    fn lists(source: InitialValues<'_>) -> (Vec<crate::Group>, FormData) {
        let form = catalog_form("pricings").expect("a form");
        let arranged = form.arranged(items(shapes(&CreatePricing::SPEC), "", source, &[]));
        let list = arranged.fields.into_iter().find_map(|item| match item {
            Item::List(list) => Some(list.elements),
            _ => None,
        });
        (list.expect("line items"), arranged.hidden)
    }

    #[test]
    fn a_new_pricing_begins_with_a_fee_seats_and_a_meter_that_may_stay_empty() {
        let begun = prepared(&[], InitialValues::Said(&defaults()));
        let (elements, _) = lists(InitialValues::Said(&begun));
        assert_eq!(elements.iter().map(|element| element.label.as_str()).collect::<Vec<_>>(), ["Fee", "Seats", "Meter"]);
        let own = |item: &Item| item.name().splitn(3, '/').nth(2).unwrap_or_default().to_owned();
        let names = |place: usize| elements[place].items.iter().map(own).collect::<Vec<_>>();
        assert_eq!(names(0), ["name", "price/amount", "recurrence"]);
        assert_eq!(names(2)[..4], ["usage_product_ref", "price/model", "price/unit_price", "price/tiers"]);
        assert!(elements[2].items.iter().all(|item| !matches!(item, Item::Field(field) if field.required && field.waits)));
        assert_eq!(created(&begun), json!({}));
    }

    #[test]
    fn line_items_have_the_price_of_their_model_and_no_other() {
        let begun = prepared(&[], InitialValues::Said(&changed(&defaults(), "+line_items:meter")));
        let filled = with(
            &begun,
            &[
                ("name", "Team"),
                ("currency", "EUR"),
                ("line_items/1/price/amount", "20"),
                ("line_items/2/usage_product_ref", "calls"),
                ("line_items/2/price/unit_price", "0.05"),
                ("line_items/2/price/package_size", "1000"),
                ("line_items/3/usage_product_ref", "storage"),
                ("line_items/3/price/model", "GRADUATED"),
                ("line_items/3/price/unit_price", "7"),
                ("line_items/3/price/tiers/0/unit_price", "0.04"),
            ],
        );
        let seats = json!({"name": "Seats", "kind": "FIXED", "price": {"model": "FLAT", "amount": "20"}});
        let calls = json!({"usage_product_ref": "calls", "kind": "USAGE", "price": {"model": "PER_UNIT", "unit_price": "0.05"}});
        let price = json!({"model": "GRADUATED", "tiers": [{"unit_price": "0.04"}]});
        let storage = json!({"usage_product_ref": "storage", "kind": "USAGE", "price": price});
        assert_eq!(created(&filled), json!({"name": "Team", "currency": "EUR", "line_items": [seats, calls, storage]}));
    }

    #[test]
    fn an_edit_keeps_what_the_form_does_not_show_and_adds_line_items() {
        let item = json!({"line_item_id": "a", "name": "A", "kind": "USAGE", "usage_product_ref": "calls", "included_quantity": 7,
            "price": {"model": "PER_UNIT", "unit_price": 0.05}});
        let fee = json!({"line_item_id": "b", "name": "B", "kind": "FIXED", "recurrence": "ONCE", "goods": true,
            "price": {"model": "PACKAGE", "package_size": 10, "package_price": 4}});
        let present = json!({"name": "Plan", "currency": "EUR", "minimum_fee": null, "line_items": [item, fee]});
        let shapes = shapes(&EditPricing::SPEC);
        let values = prepared(shapes, InitialValues::Present(&present));
        let (elements, hidden) = lists(InitialValues::Said(&values));
        let mut sent = hidden;
        elements.iter().for_each(|element| add_values(&element.items, &mut sent));
        sent.extend(elements.iter().filter_map(|element| Some((crate::was(&element.name), element.was.clone()?))));
        sent.extend(submitted(&[("name", "Plan"), ("currency", "EUR")]));
        let edited = |sent: &FormData| {
            let completed = catalog_form("pricings").expect("a form").completed(&normalized(sent), true);
            Value::Object(body(shapes, "", &completed, Some(&present), ListEdits::Replaced))
        };
        assert_eq!(edited(&sent), json!({}), "{sent:?}");
        let added = with(&changed(&sent, "+line_items:seats"), &[("line_items/2/price/amount", "20")]);
        let after = edited(&added);
        assert_eq!(after["line_items"].as_array().map(Vec::len), Some(3), "{after}");
        assert_eq!((&after["line_items"][1]["goods"], &after["line_items"][2]["name"]), (&json!(true), &json!("Seats")));
    }
}

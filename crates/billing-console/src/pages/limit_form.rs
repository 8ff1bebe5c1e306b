//! The short form of a limit. The choice of a metric selects the fields that the limit needs.

use crate::Item;

use super::short_forms::{FieldRow, ShortForm};

/// The field with the choice.
pub(super) const METRIC: &str = "metric";

const FIELDS: &[FieldRow] = &[
    (
        METRIC,
        "Limit on",
        "The amount that the customer owes, the prepaid credit that is free, the price of a product's service period before tax, \
         or the quantity of usage in a service period.",
        true,
    ),
    ("entity_ref", "Entity", "Default: the entity that bills the customer.", false),
    ("currency", "Currency", "Three letters, such as EUR.", false),
    ("contract_ref", "Contract", "", false),
    ("usage_product_ref", "Usage product", "", false),
    (
        "max",
        "Max",
        "Largest number up to which usage is accepted. Empty: any number. An amount owed of 0: only usage that prepaid credit or \
         unapplied amounts pay.",
        false,
    ),
    (
        "thresholds",
        "Thresholds",
        "Numbers that notify when they are reached, one on each line. Prepaid credit reaches them from above.",
        false,
    ),
];
const MORE: &[FieldRow] = &[
    ("product_pricing_ref", "Pricing", "Required if several products of the contract are meant.", false),
    ("product_no", "Product number", "Required if several products of the contract have the pricing.", false),
    ("line_item_id", "Line item", "Counts the usage. Default: all line items of the usage product together.", false),
];
/// The fields that only some metrics have, with the API's words of these metrics.
const FIELDS_OF_METRICS: &[(&str, &[&str])] = &[
    ("entity_ref", &["OWED", "PREPAID"]),
    ("currency", &["OWED", "PREPAID"]),
    ("contract_ref", &["SPEND", "QUANTITY"]),
    ("usage_product_ref", &["QUANTITY"]),
    ("product_pricing_ref", &["SPEND", "QUANTITY"]),
    ("product_no", &["SPEND", "QUANTITY"]),
    ("line_item_id", &["QUANTITY"]),
    ("max", &["OWED", "SPEND", "QUANTITY"]),
];

/// Returns the form of a new limit.
pub(super) fn limit_form() -> ShortForm {
    ShortForm::of(FIELDS, MORE, &[])
}

/// Lets the choice of a metric select the fields that apply.
pub(super) fn adapt(fields: &mut [Item], more: &mut [Item]) {
    let metric = fields.iter().find_map(|item| match item {
        Item::Field(field) if field.name == METRIC => Some(field.value.clone()),
        _ => None,
    });
    for item in fields.iter_mut().chain(more) {
        let Item::Field(field) = item else { continue };
        field.switches = field.name == METRIC;
        if let Some((_, metrics)) = FIELDS_OF_METRICS.iter().find(|(name, _)| *name == field.name) {
            field.of_words = metrics.iter().map(|word| (*word).to_owned()).collect();
            field.waits = metric.as_ref().is_some_and(|metric| !metric.is_empty() && !field.of_words.contains(metric));
        }
    }
}

#[cfg(test)]
mod tests {
    use billing_api::console::FormData;
    use billing_api::operations::{CreateLimit, EditLimit};
    use serde_json::{Value, json};

    use super::super::form_fields::{InitialValues, ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::*;
    use crate::InputKind;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn the_form_has_all_fields_of_a_limit_and_the_metric_selects_among_them() {
        let chosen = submitted(&[(METRIC, "SPEND")]);
        let arranged = limit_form().arranged(items(shapes(&CreateLimit::SPEC), "", InitialValues::Said(&chosen), &[]));
        let all: Vec<&Item> = arranged.fields.iter().chain(&arranged.more).collect();
        let expected: Vec<&str> = FIELDS.iter().chain(MORE).map(|(name, ..)| *name).collect();
        assert_eq!(all.iter().map(|item| item.name()).collect::<Vec<_>>(), expected);
        // The customer is that of the page.
        let is_left = |name: &str| !expected.contains(&name) && name != "customer_ref";
        assert_eq!(shapes(&CreateLimit::SPEC).iter().filter(|shape| is_left(&shape.name)).count(), 0);
        let waits = |name: &str| all.iter().any(|item| matches!(item, Item::Field(field) if field.name == name && field.waits));
        let expected = [("entity_ref", true), ("contract_ref", false), ("usage_product_ref", true), ("max", false)];
        assert_eq!(expected.map(|(name, _)| (name, waits(name))), expected);
        let Item::Field(metric) = all[0] else { panic!("no field: {all:?}") };
        assert!(metric.switches && metric.required && matches!(&metric.kind, InputKind::Choice(words) if words.len() == 4));
        let of_metrics: Vec<&str> = FIELDS_OF_METRICS.iter().flat_map(|(_, metrics)| *metrics).copied().collect();
        let InputKind::Choice(words) = &metric.kind else { panic!("no choice: {metric:?}") };
        assert!(of_metrics.iter().all(|of| words.iter().any(|word| word == of)), "{words:?}");
    }

    #[test]
    fn thresholds_are_numbers_on_lines_of_their_own() {
        let filled = submitted(&[(METRIC, "OWED"), ("currency", "EUR"), ("max", "500"), ("thresholds", "400\r\n450.5\r\n")]);
        let completed = limit_form().completed(&filled, false);
        let made = Value::Object(body(shapes(&CreateLimit::SPEC), "", &completed, None, ListEdits::Replaced));
        assert_eq!(made, json!({"metric": "OWED", "currency": "EUR", "max": "500", "thresholds": ["400", "450.5"]}));
        let present = json!({"max": 500, "thresholds": [400, 450.5]});
        let edited = |max: &str, thresholds: &str| {
            let submitted = submitted(&[("max", max), ("thresholds", thresholds)]);
            Value::Object(body(shapes(&EditLimit::SPEC), "", &submitted, Some(&present), ListEdits::Replaced))
        };
        assert_eq!(edited("500", "400\r\n450.5"), json!({}));
        assert_eq!(edited("600", "400\n450.5"), json!({"max": "600"}));
        assert_eq!(edited("", "400"), json!({"max": null, "thresholds": ["400"]}));
        assert_eq!(edited("500", ""), json!({"thresholds": []}));
        let shown = items(shapes(&EditLimit::SPEC), "", InitialValues::Present(&present), &[]);
        let thresholds = shown.iter().find_map(|item| match item {
            Item::Field(field) if field.name == "thresholds" => Some(field.value.as_str()),
            _ => None,
        });
        assert_eq!(thresholds, Some("400\n450.5"));
    }
}

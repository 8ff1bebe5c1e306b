//! The choice of a customer's tax in the short form. It stands for several fields of the API.

use crate::{Field, InputKind, Item};
use billing_api::console::FormData;

use super::form_data::field;
use super::form_fields::InitialValues;

/// The field of the choice. No field of the API has this name.
pub(super) const TAX_CHOICE: &str = "@tax";
/// The tax of the entity applies.
const DOMESTIC: &str = "DOMESTIC";
/// The customer accounts for the tax.
const REVERSE_CHARGE: &str = "REVERSE_CHARGE";
/// The fields of the API apply.
const OTHER: &str = "OTHER";

/// The choices and their names.
const CHOICES: [(&str, &str); 3] =
    [(DOMESTIC, "Domestic, standard"), (REVERSE_CHARGE, "EU business with VAT number (reverse charge)"), (OTHER, "Other")];
/// The fields of the API that the choice stands for, with their values for reverse charge.
const FIELDS: [(&str, &str); 4] =
    [("tax", "0"), ("tax_category", "AE"), ("exemption_code", "VATEX-EU-AE"), ("exemption_reason", "")];
/// The tax categories and their names.
const CATEGORIES: [(&str, &str); 6] = [
    ("S", "Standard rate"),
    ("Z", "Zero rated"),
    ("E", "Exempt"),
    ("AE", "Reverse charge"),
    ("G", "Export"),
    ("O", "Not subject to tax"),
];

/// Adds the choice to the fields of a customer. A form begins with the choice that corresponds to the present fields.
pub(super) fn with_choice(mut items: Vec<Item>, source: InitialValues<'_>) -> Vec<Item> {
    let value = source.submitted(TAX_CHOICE).unwrap_or_else(|| choice_of(&items).to_owned());
    items.push(Item::Field(Field {
        name: TAX_CHOICE.to_owned(),
        label: String::new(),
        meaning: String::new(),
        kind: InputKind::named(&CHOICES),
        required: false,
        value,
        wrong: Vec::new(),
        of_words: Vec::new(),
        switches: true,
        waits: false,
    }));
    items
}

/// Lets the choice of a form select the fields that apply.
pub(super) fn adapt(items: &mut [Item]) {
    for item in items {
        let Item::Field(field) = item else { continue };
        match field.name.as_str() {
            TAX_CHOICE => field.switches = true,
            name if FIELDS.iter().any(|(of_choice, _)| *of_choice == name) => field.of_words = vec![OTHER.to_owned()],
            _ => {}
        }
        if field.name == "tax_category" {
            field.kind = InputKind::named(&CATEGORIES);
        }
    }
}

/// Returns the fields of the API for a submitted choice. Without scripts, a form submits the fields of the other choices, too.
pub(super) fn applied(submitted: &FormData, is_edit: bool) -> FormData {
    let values = match field(submitted, TAX_CHOICE) {
        Some(REVERSE_CHARGE) => FIELDS,
        // The fields of a new customer are empty unless somebody has filled them.
        Some(DOMESTIC) if is_edit => FIELDS.map(|(name, _)| (name, "")),
        _ => return submitted.clone(),
    };
    let others = submitted.iter().filter(|(name, _)| values.iter().all(|(field, _)| field != name));
    others.cloned().chain(values.map(|(name, value)| (name.to_owned(), value.to_owned()))).collect()
}

/// Returns the choice that corresponds to the present fields.
fn choice_of(items: &[Item]) -> &'static str {
    let value = |name: &str| {
        items.iter().find_map(|item| match item {
            Item::Field(field) if field.name == name => Some(field.value.as_str()),
            _ => None,
        })
    };
    let has = |values: [(&str, &str); 4]| values.iter().all(|(name, expected)| value(name).unwrap_or_default() == *expected);
    if has(FIELDS.map(|(name, _)| (name, ""))) {
        DOMESTIC
    } else if has(FIELDS) {
        REVERSE_CHARGE
    } else {
        OTHER
    }
}

#[cfg(test)]
mod tests {
    use billing_api::operations::{CreateCustomer, EditCustomer};
    use billing_domain::codes::ExemptionCode;
    use serde_json::{Value, json};

    use super::super::form_fields::{ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::super::short_forms::catalog_form;
    use super::*;

    const REVERSE: [(&str, &str); 3] = [("name", "Acme"), (TAX_CHOICE, REVERSE_CHARGE), ("vat_id", "FR12345678901")];

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn edited(pairs: &[(&str, &str)], present: &Value) -> Value {
        let completed = catalog_form("customers").expect("a form").completed(&submitted(pairs), true);
        let sent: Vec<_> =
            shapes(&EditCustomer::SPEC).iter().filter(|shape| field_is_in(&completed, &shape.name)).cloned().collect();
        Value::Object(body(&sent, "", &completed, Some(present), ListEdits::Replaced))
    }

    fn field_is_in(submitted: &FormData, name: &str) -> bool {
        submitted.iter().any(|(field, _)| field == name)
    }

    #[test]
    fn reverse_charge_takes_one_choice() {
        let completed = catalog_form("customers").expect("a form").completed(&submitted(&REVERSE), false);
        let made = Value::Object(body(shapes(&CreateCustomer::SPEC), "", &completed, None, ListEdits::Replaced));
        let expected = json!({"name": "Acme", "vat_id": "FR12345678901", "tax": "0", "tax_category": "AE",
            "exemption_code": "VATEX-EU-AE"});
        assert_eq!(made, expected);
        assert!(ExemptionCode::parse(FIELDS[2].1).is_ok());
    }

    #[test]
    fn a_domestic_customer_has_the_tax_of_the_entity() {
        let present = json!({"name": "Acme", "tax": 0, "tax_category": "AE", "exemption_code": "VATEX-EU-AE"});
        let cleared = edited(&[("name", "Acme"), (TAX_CHOICE, DOMESTIC), ("tax", "0")], &present);
        assert_eq!(cleared, json!({"tax": null, "tax_category": null, "exemption_code": null}));
        let unchanged = edited(&[("name", "Acme"), (TAX_CHOICE, REVERSE_CHARGE)], &present);
        assert_eq!(unchanged, json!({}));
        let typed = submitted(&[("name", "Acme"), (TAX_CHOICE, DOMESTIC), ("tax", "19")]);
        assert_eq!(field(&applied(&typed, false), "tax"), Some("19"), "somebody has filled the field");
    }

    #[test]
    fn a_form_begins_with_the_choice_of_the_present_fields() {
        for (present, choice) in [
            (json!({}), DOMESTIC),
            (json!({"tax": 0, "tax_category": "AE", "exemption_code": "VATEX-EU-AE"}), REVERSE_CHARGE),
            (json!({"tax": 19}), OTHER),
            (json!({"tax": 0, "tax_category": "O", "exemption_reason": "no tax"}), OTHER),
        ] {
            let source = InitialValues::Present(&present);
            let all = with_choice(items(shapes(&EditCustomer::SPEC), "", source, &[]), source);
            let form = catalog_form("customers").expect("a form").arranged(all).fields;
            let of = |name: &str| {
                form.iter().find_map(|item| match item {
                    Item::Field(field) if field.name == name => Some(field),
                    _ => None,
                })
            };
            let chosen = of(TAX_CHOICE).expect("the choice");
            assert!(chosen.value == choice && chosen.switches && chosen.label == "Tax", "{chosen:?}");
            assert_eq!(of("tax_category").map(|field| field.of_words.clone()), Some(vec![OTHER.to_owned()]));
        }
    }
}

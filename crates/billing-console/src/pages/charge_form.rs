//! The short form of a charge. The page of an invoice opens the form filled in with a credit.

use billing_api::console::FormData;

use super::form_data::field;
use super::short_forms::{FieldRow, ShortForm};

const FIELDS: &[FieldRow] = &[
    ("name", "What", "Description on documents, such as Set-up.", true),
    ("unit_price", "Amount", "Without tax, such as 250. An amount below zero is a credit, such as -20.", true),
    ("date", "Date", "Service date. The documents of its period bill the charge.", true),
    ("bill_with", "On which invoice", "Default: the invoice for the usage of the period.", false),
];
const MORE: &[FieldRow] = &[
    ("quantity", "Quantity", "The amount applies to each unit. Default: 1.", false),
    ("unit", "Unit", "Name of one unit on documents.", false),
    ("product_pricing_ref", "Pricing", "Required if several products of the contract bill the date.", false),
    ("product_no", "Product number", "Required if several products with the pricing bill the date.", false),
    ("discountable", "The discount of the product applies", "Default: no.", false),
    ("goods", "The charge is for a good", "French documents state it. Default: no.", false),
    ("issue", "Issue a resulting debit or credit at once", "Otherwise it waits as a draft.", false),
    ("note", "Note", "Not shown on documents.", false),
    ("reason", "Reason", "Shown in the audit log.", false),
];
/// The words of the API for the invoice of a charge, with their names.
pub(super) const INVOICES: &[(&str, &str)] =
    &[("USAGE", "Invoice for the usage of the period"), ("FIXED", "Invoice for the fees of the period")];

/// Returns the form of a charge on `today`, or of the credit whose fields are in the query of the page.
pub(super) fn charge_form(asked: &FormData, today: &str) -> ShortForm {
    let is_known = |name: &str| FIELDS.iter().chain(MORE).any(|(field, ..)| *field == name);
    let filled: FormData = asked.iter().filter(|(name, _)| is_known(name)).cloned().collect();
    let mut form = ShortForm::of(FIELDS, MORE, &[]);
    if field(&filled, "unit_price").is_some_and(|amount| amount.starts_with('-')) {
        let pairs: Vec<(&str, &str)> = filled.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        form.query = crate::query(&pairs);
        form.title = "Credit for an invoice";
        form.tells =
            "The customer gets this amount with its tax as a credit. The preview shows the credit and what the credit settles.";
        form.defaults = filled;
    } else {
        form.defaults = vec![("date".to_owned(), today.to_owned())];
    }
    form
}

#[cfg(test)]
mod tests {
    use billing_api::operations::RecordCharge;
    use serde_json::{Value, json};

    use super::super::form_fields::{InitialValues, ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::*;
    use crate::{InputKind, Item};

    #[test]
    fn a_charge_has_four_fields_and_begins_today() {
        let form = charge_form(&FormData::new(), "2026-02-05");
        let defaults = form.defaults();
        assert_eq!(defaults, [("date".to_owned(), "2026-02-05".to_owned())]);
        let arranged = form.arranged(items(shapes(&RecordCharge::SPEC), "", InitialValues::Said(&defaults), &[]));
        let names = |items: &[Item]| items.iter().map(|item| item.name().to_owned()).collect::<Vec<_>>();
        let rows = |rows: &[FieldRow]| rows.iter().map(|(name, ..)| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!((names(&arranged.fields), names(&arranged.more)), (rows(FIELDS), rows(MORE)));
        // The contract is that of the page, and the reference is assigned.
        let all: Vec<&str> = FIELDS.iter().chain(MORE).map(|(name, ..)| *name).chain(["contract_ref", "charge_ref"]).collect();
        let left: Vec<_> = shapes(&RecordCharge::SPEC).iter().filter(|shape| !all.contains(&shape.name.as_str())).collect();
        assert!(left.iter().all(|shape| shape.name == "dry_run"), "{left:?}");
        let Item::Field(invoice) = &arranged.fields[3] else { panic!("no field") };
        assert!(matches!(&invoice.kind, InputKind::Named(words) if words.len() == INVOICES.len()), "{invoice:?}");
    }

    #[test]
    fn a_credit_begins_with_the_fields_of_its_address_and_keeps_its_title() {
        let asked = [("name", "Credit for UB-INV-1"), ("unit_price", "-49"), ("issue", "true"), ("done", "x")];
        let asked: FormData = asked.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let form = charge_form(&asked, "2026-02-05");
        assert_eq!(
            (form.title, form.query.as_str()),
            ("Credit for an invoice", "name=Credit%20for%20UB-INV-1&unit_price=-49&issue=true")
        );
        let completed = form.completed(&form.defaults(), false);
        let made = Value::Object(body(shapes(&RecordCharge::SPEC), "", &completed, None, ListEdits::Replaced));
        assert_eq!(made, json!({"name": "Credit for UB-INV-1", "unit_price": "-49", "issue": true}));
    }
}

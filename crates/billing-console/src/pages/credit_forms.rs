//! The short forms of prepaid credit: credit that is given, and credit that is sold.

use super::short_forms::{FieldRow, ShortForm};

const GRANT_FIELDS: &[FieldRow] = &[
    ("name", "Name", "Name on documents, such as Welcome credit.", true),
    ("amount", "Amount", "Credit before tax, such as 100.", true),
    ("currency", "Currency", "Three letters, such as EUR.", true),
    ("from", "First day of service", "Default: any day.", false),
    ("to", "Last day of service", "The last day of a period. A period that it cuts is covered whole. Default: any day.", false),
    ("contract_ref", "Contract", "Default: all contracts of the customer with the entity and currency.", false),
];
const GRANT_MORE: &[FieldRow] = &[
    ("entity_ref", "Entity", "Default: the entity that bills the customer.", false),
    ("source_document_ref", "Invoice of the sale", "", false),
];
const SALE_FIELDS: &[FieldRow] = &[
    ("product_pricing_ref", "Pricing", "Its fixed line items are the price of the credit.", true),
    ("quantity", "Quantity", "Of each line item. Default: 1.", false),
    ("name", "Name", "Name of the credit on documents.", true),
    ("amount", "Amount", "Credit before tax. Default: what the invoice bills before tax.", false),
    ("to", "Last day of service", "The last day of a period. A period that it cuts is covered whole. Default: any day.", false),
    ("contract_ref", "Contract", "Default: all contracts of the customer with the entity and currency.", false),
    (
        "payment/amount",
        "Payment",
        "Amount with tax, if the invoice is paid already. The credit is usable when the invoice is paid.",
        false,
    ),
    ("payment/reference", "Payment reference", "Reference of the payer or the bank.", false),
];
const SALE_MORE: &[FieldRow] = &[
    ("payment/paid_date", "Payment date", "Default: today.", false),
    ("payment/method", "Payment method", "", false),
    ("net_terms", "Net terms", "Days until the invoice is due, or DUE_UPON_RECEIPT.", false),
    ("entity_ref", "Entity", "Default: the entity that bills the customer.", false),
];

/// Returns the form of credit that is given, or that an existing invoice sold.
pub(super) fn grant_form() -> ShortForm {
    ShortForm::of(GRANT_FIELDS, GRANT_MORE, &[])
}

/// Returns the form of credit that is sold.
pub(super) fn sale_form() -> ShortForm {
    ShortForm::of(SALE_FIELDS, SALE_MORE, &[])
}

#[cfg(test)]
mod tests {
    use billing_api::console::FormData;
    use billing_api::operation::OperationSpec;
    use billing_api::operations::{CreateGrant, EditGrant, SellCredit};
    use serde_json::{Value, json};

    use super::super::form_fields::{InitialValues, ListEdits, body, items};
    use super::super::openapi_index::shapes;
    use super::super::short_forms::{MAX_VISIBLE, top};
    use super::*;

    fn submitted(pairs: &[(&str, &str)]) -> FormData {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn made(form: &ShortForm, operation: &'static OperationSpec, pairs: &[(&str, &str)]) -> Value {
        let completed = form.completed(&submitted(pairs), false);
        Value::Object(body(shapes(operation), "", &completed, None, ListEdits::Replaced))
    }

    #[test]
    fn each_form_has_all_fields_of_its_operation() {
        for (form, operation, fields, more) in [
            (grant_form(), &CreateGrant::SPEC, GRANT_FIELDS, GRANT_MORE),
            (sale_form(), &SellCredit::SPEC, SALE_FIELDS, SALE_MORE),
        ] {
            let arranged = form.arranged(items(shapes(operation), "", InitialValues::Nothing, &[]));
            let shown: Vec<&str> = arranged.fields.iter().chain(&arranged.more).map(crate::Item::name).collect();
            let expected: Vec<&str> = fields.iter().chain(more).map(|(name, ..)| *name).collect();
            assert_eq!(shown, expected, "{operation:?}");
            assert!(fields.len() <= MAX_VISIBLE, "{operation:?}");
            // The customer is that of the page.
            let is_known =
                |name: &str| ["customer_ref", "dry_run"].contains(&name) || expected.iter().any(|own| top(own) == name);
            let left: Vec<_> = shapes(operation).iter().filter(|shape| !is_known(&shape.name)).collect();
            assert!(left.is_empty(), "{left:?}");
        }
    }

    #[test]
    fn a_sale_has_a_payment_only_if_an_amount_is_paid() {
        let sale = [("product_pricing_ref", "credit-100"), ("name", "Credit"), ("payment/amount", ""), ("to", "")];
        assert_eq!(made(&sale_form(), &SellCredit::SPEC, &sale), json!({"product_pricing_ref": "credit-100", "name": "Credit"}));
        let paid = [("name", "Credit"), ("payment/amount", "120.00"), ("payment/reference", "pi_1")];
        assert_eq!(
            made(&sale_form(), &SellCredit::SPEC, &paid),
            json!({"name": "Credit", "payment": {"amount": "120.00", "reference": "pi_1"}})
        );
        let given = [("name", "Welcome"), ("amount", "10"), ("currency", "EUR"), ("to", "2026-12-31")];
        assert_eq!(
            made(&grant_form(), &CreateGrant::SPEC, &given),
            json!({"name": "Welcome", "amount": "10", "currency": "EUR", "to": "2026-12-31"})
        );
    }

    #[test]
    fn an_edit_of_a_grant_sends_what_changed() {
        let present = json!({"name": "Welcome", "from": null, "to": "2026-12-31", "amount": 10});
        let edited = |pairs: &[(&str, &str)]| {
            Value::Object(body(shapes(&EditGrant::SPEC), "", &submitted(pairs), Some(&present), ListEdits::Replaced))
        };
        let same = [("name", "Welcome"), ("to", "2026-12-31"), ("amount", "10")];
        assert_eq!(edited(&same), json!({}));
        assert_eq!(edited(&[("name", "Welcome"), ("to", ""), ("amount", "12.5")]), json!({"to": null, "amount": "12.5"}));
    }
}

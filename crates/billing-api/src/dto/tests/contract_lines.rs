//! Selected line items of a contract's product.

use billing_domain::catalog::{PriceModel, UsagePrice};
use billing_domain::contract::terms::{Quantities, RequestedLineItem};
use billing_domain::patch::Patch;
use billing_testkit::fixtures;

use super::{json, refusals, steps};

fn body(items: &str) -> serde_json::Value {
    json(&format!(
        r#"{{"customer_ref":"acme","products":[{{"product_pricing_ref":"api","billing_start_date":"2026-01-01",
            "billing_end_date":"2026-12-31","line_items":{items}}}]}}"#
    ))
}

/// Reads a line item as in a create and as in an edit.
fn read(item: &str) -> (RequestedLineItem, RequestedLineItem) {
    let body = body(&format!("[{item}]"));
    let request = super::contract(&body).expect(item);
    let (_, edit, _) = super::contract_edit(&body).expect(item);
    let created = request.products[0].line_items.as_ref().expect("line items")[0].clone();
    let edited = match &edit.products.as_ref().expect("products")[0].line_items {
        Patch::Set(items) => items[0].clone(),
        other => panic!("{other:?}"),
    };
    (created, edited)
}

#[test]
fn a_line_item_says_what_of_it_is_agreed() {
    let item = r#"{"line_item_id":"calls","name":"Calls","price":{"model":"PER_UNIT","unit_price":"0.002"},
        "included_quantity":100,"prepaid_quantity":"50","minimum_amount":1,"maximum_amount":"9.50"}"#;
    let expected = RequestedLineItem {
        quantities: None,
        name: Patch::Set(fixtures::line("Calls")),
        price: Patch::Set(PriceModel::Metered(UsagePrice::PerUnit { unit_price: fixtures::price("0.002") })),
        included_quantity: Patch::Set(fixtures::quantity("100")),
        prepaid_quantity: Patch::Set(fixtures::quantity("50")),
        minimum_amount: Patch::Set(fixtures::price("1")),
        maximum_amount: Patch::Set(fixtures::price("9.50")),
        ..RequestedLineItem::plain(fixtures::line_item_id("calls"))
    };
    assert_eq!(read(item), (expected.clone(), expected));
    let (created, _) = read(r#"{"line_item_id":"fee","price":{"model":"FLAT","amount":"120"}}"#);
    assert_eq!(created.price, Patch::Set(PriceModel::Flat { amount: fixtures::price("120") }));
}

#[test]
fn null_takes_what_the_pricing_has_and_no_quantities() {
    let item = r#"{"line_item_id":"a","quantities":null,"name":null,"price":null,"included_quantity":null,"prepaid_quantity":null,
        "minimum_amount":null,"maximum_amount":null}"#;
    let expected = RequestedLineItem {
        quantities: Some(Quantities::default()),
        name: Patch::Clear,
        price: Patch::Clear,
        included_quantity: Patch::Clear,
        prepaid_quantity: Patch::Clear,
        minimum_amount: Patch::Clear,
        maximum_amount: Patch::Clear,
        ..RequestedLineItem::plain(fixtures::line_item_id("a"))
    };
    let (created, edited) = read(item);
    assert_eq!(edited, expected);
    // Nothing needs to be cleared, so a usage-priced line item is valid, too.
    assert_eq!(created, RequestedLineItem { quantities: None, ..expected });
}

#[test]
fn quantities_are_steps_by_rising_dates() {
    let (created, edited) = read(
        r#"{"line_item_id":"seats","quantities":[{"from":"2026-01-01","quantity":10},{"from":"2026-02-15","quantity":"12.5"}]}"#,
    );
    let expected = Quantities::new(steps(&[("2026-01-01", "10"), ("2026-02-15", "12.5")])).expect("steps");
    assert_eq!((created.quantities, edited.quantities), (Some(expected.clone()), Some(expected)));
}

#[test]
fn each_field_of_a_line_item_is_held_against_its_limits() {
    let many: Vec<String> = (0..1001).map(|i| format!(r#"{{"from":"{:04}-01-01","quantity":1}}"#, 1000 + i)).collect();
    let many = format!("[{}]", many.join(","));
    let rows: &[(&str, &str, &[&str])] = &[
        ("line_item_id", "null", &["line_item_id required"]),
        ("quantities", "5", &["quantities wrong_type"]),
        ("quantities", "[5]", &["quantities/0 wrong_type"]),
        ("quantities", r#"[{"from":"2026-01-01"}]"#, &["quantities/0/quantity required"]),
        (
            "quantities",
            r#"[{"form":"2026-01-01","quantity":-1}]"#,
            &["quantities/0/form unknown_field", "quantities/0/quantity out_of_range", "quantities/0/from required"],
        ),
        (
            "quantities",
            r#"[{"from":"2026-02-01","quantity":1},{"from":"2026-02-01","quantity":2}]"#,
            &["quantities/1/from out_of_range"],
        ),
        ("quantities", &many, &["quantities too_many"]),
        ("name", r#""""#, &["name too_short"]),
        ("price", r#"{"model":"PER_UNIT"}"#, &["price/unit_price required"]),
        ("price", r#"{"model":"PER_UNIT","unit_price":1,"per":2}"#, &["price/per unknown_field"]),
        ("price", r#"{"model":"VOLUME","tiers":[{"unit_price":1,"upto":null}]}"#, &["price/tiers/0/upto unknown_field"]),
        ("included_quantity", "-1", &["included_quantity out_of_range"]),
        ("prepaid_quantity", "true", &["prepaid_quantity wrong_type"]),
        ("minimum_amount", r#""x""#, &["minimum_amount invalid_format"]),
        ("maximum_amount", "1000000000", &["maximum_amount out_of_range"]),
        ("kind", r#""FIXED""#, &["kind unknown_field"]),
    ];
    for (field, value, expected) in rows {
        let items = body(&format!("[{}]", super::with(r#"{"line_item_id":"a"}"#, field, value)));
        let expected: Vec<String> = expected.iter().map(|row| format!("/products/0/line_items/0/{row}")).collect();
        assert_eq!(refusals(super::contract(&items)), expected, "{field}: {value}");
        assert_eq!(refusals(super::contract_edit(&items)), expected, "{field}: {value}");
    }
}

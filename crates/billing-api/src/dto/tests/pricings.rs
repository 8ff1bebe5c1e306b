//! Pricings, line items and price models.

use billing_domain::catalog::{FixedPrice, LineItem, LineItemPrice, Pricing, Recurrence};
use billing_testkit::fixtures;
use insta::assert_snapshot;
use serde_json::Value;

use super::super::pricings::PricingJson;
use super::{check, json, posted_back, presented, refusals};

const PRICING: &str = r#"{"product_pricing_ref":"api","name":"API","currency":"EUR"}"#;

/// Returns a pricing with one line item.
fn of_item(item: &str) -> Value {
    super::with(PRICING, "line_items", &format!("[{item}]"))
}

/// Returns a pricing with one usage line item and a price.
fn of_price(price: &str) -> Value {
    of_item(&format!(r#"{{"line_item_id":"a","kind":"USAGE","usage_product_ref":"calls","price":{price}}}"#))
}

fn item(body: &Value) -> LineItem {
    let (_, content) = super::pricing(body).unwrap_or_else(|refused| panic!("{refused}: {body}"));
    content.line_items.into_iter().next().expect("a line item")
}

/// Returns a pricing with all price models and all fields of a usage line item.
fn full_pricing() -> Pricing {
    let tiers: &[(Option<&str>, &str, &str)] = &[(Some("1000.5"), "0.10", "1"), (None, "0.000000000001", "0")];
    let mut pricing = fixtures::pricing(
        "api",
        vec![
            fixtures::fixed("base", "20.00"),
            fixtures::once("set-up", "99"),
            fixtures::with_charge(fixtures::per_unit("calls", "0.0025"), |charge| {
                charge.included_quantity = fixtures::quantity("100");
                charge.prepaid_quantity = Some(fixtures::quantity("0.5"));
                charge.minimum_amount = Some(fixtures::price("1.00"));
                charge.maximum_amount = Some(fixtures::price("999999999.999999999999"));
            }),
            fixtures::graduated("storage", tiers),
            fixtures::volume("traffic", tiers),
            fixtures::package("messages", "1000", "5.00"),
            fixtures::percentage("payments", "1.5", "0.25"),
        ],
    );
    pricing.content.minimum_fee = Some(fixtures::price("25.0"));
    pricing
}

#[test]
fn a_pricing_that_is_read_can_be_posted_back() {
    let pricing = full_pricing();
    let body = posted_back(&PricingJson::from(&pricing));
    assert_eq!(super::pricing(&body).expect("a pricing"), (Some(pricing.pricing_ref.clone()), pricing.content.clone()));
    let edit = |body: &Value| super::pricing_edit(body, &pricing.pricing_ref, &pricing.content).expect("an edit");
    assert_eq!(edit(&body), pricing.content);
    assert_eq!(edit(&json("{}")), pricing.content);
    let cleared = edit(&json(r#"{"minimum_fee":null,"line_items":null}"#));
    assert_eq!((cleared.minimum_fee, cleared.line_items), (None, Vec::new()));
}

#[test]
fn a_fixed_line_item_recurs_unless_told_otherwise() {
    let rows = [
        ("", Recurrence::EachPeriod, false),
        (r#","recurrence":null,"goods":null"#, Recurrence::EachPeriod, false),
        (r#","recurrence":"ONCE","goods":true"#, Recurrence::Once, true),
    ];
    for (more, recurrence, goods) in rows {
        let body =
            of_item(&format!(r#"{{"line_item_id":"base","kind":"FIXED","price":{{"model":"FLAT","amount":"20.00"}}{more}}}"#));
        let price = FixedPrice::Flat { amount: fixtures::price("20.00") };
        assert_eq!(item(&body).charge, LineItemPrice::Fixed { price, recurrence, goods }, "{more}");
    }
}

#[test]
fn a_fixed_line_item_takes_every_price_model_but_a_percentage() {
    let rows = [
        (r#"{"model":"FLAT","amount":1}"#, true),
        (r#"{"model":"PER_UNIT","unit_price":1}"#, true),
        (r#"{"model":"GRADUATED","tiers":[{"unit_price":1}]}"#, true),
        (r#"{"model":"VOLUME","tiers":[{"unit_price":1}]}"#, true),
        (r#"{"model":"PACKAGE","package_size":10,"package_price":1}"#, true),
        (r#"{"model":"PERCENTAGE","rate":1}"#, false),
    ];
    for (price, is_taken) in rows {
        let body = of_item(&format!(r#"{{"line_item_id":"seats","kind":"FIXED","price":{price}}}"#));
        let refused = refusals(super::pricing(&body));
        if !is_taken {
            assert_eq!(refused, ["/line_items/0/price not_allowed"], "{price}");
            continue;
        }
        assert_eq!(refused, [""; 0], "{price}");
        let (_, content) = super::pricing(&body).expect(price);
        let shown = posted_back(&PricingJson::from(&Pricing { content, ..fixtures::pricing("api", Vec::new()) }));
        assert_eq!(shown["line_items"][0]["price"]["model"], json(price)["model"], "{price}");
        assert_eq!(refusals(super::pricing(&shown)), [""; 0], "{price}: {shown}");
    }
}

#[test]
fn a_line_item_without_a_name_is_called_like_its_identifier() {
    let unnamed = of_price(r#"{"model":"PER_UNIT","unit_price":1}"#);
    assert_eq!(item(&unnamed).name, fixtures::line("a"));
}

#[test]
fn what_a_price_leaves_out_is_nought() {
    let graduated = of_price(r#"{"model":"GRADUATED","tiers":[{"up_to":10,"unit_price":"0.10"},{"up_to":null,"unit_price":0}]}"#);
    assert_eq!(item(&graduated).charge, fixtures::graduated("calls", &[(Some("10"), "0.10", "0"), (None, "0", "0")]).charge);
    let percentage = of_price(r#"{"model":"PERCENTAGE","rate":1.5}"#);
    assert_eq!(item(&percentage).charge, fixtures::percentage("calls", "1.5", "0").charge);
}

#[test]
fn each_price_model_takes_its_own_fields_only() {
    let too_many = format!(r#"{{"model":"VOLUME","tiers":[{}]}}"#, [r#"{"unit_price":1}"#; 101].join(","));
    let rows: &[(&str, &[&str])] = &[
        ("null", &[" required"]),
        ("5", &[" wrong_type"]),
        ("{}", &["/model required"]),
        (r#"{"model":1}"#, &["/model wrong_type"]),
        (r#"{"model":"flat"}"#, &["/model invalid_value"]),
        (r#"{"model":"FLAT","amount":1}"#, &[" not_allowed"]),
        (r#"{"model":"PER_UNIT"}"#, &["/unit_price required"]),
        (r#"{"model":"PER_UNIT","unit_price":-1}"#, &["/unit_price out_of_range"]),
        (r#"{"model":"PER_UNIT","unit_price":0.0000000000001}"#, &["/unit_price out_of_range"]),
        (r#"{"model":"PER_UNIT","price":1,"unit_price":"1,5"}"#, &["/price unknown_field", "/unit_price invalid_format"]),
        (r#"{"model":"PER_UNIT","unit_price":1,"tiers":null}"#, &["/tiers unknown_field"]),
        (r#"{"model":"PACKAGE","package_size":0}"#, &["/package_size out_of_range", "/package_price required"]),
        (r#"{"model":"PACKAGE","package_size":1,"package_price":1,"unit_price":1}"#, &["/unit_price unknown_field"]),
        (r#"{"model":"PERCENTAGE","rate":101,"fixed_amount":"x"}"#, &["/rate out_of_range", "/fixed_amount invalid_format"]),
        (r#"{"model":"GRADUATED"}"#, &["/tiers required"]),
        (r#"{"model":"GRADUATED","tiers":[]}"#, &["/tiers out_of_range"]),
        (
            r#"{"model":"VOLUME","tiers":[{"unit_price":1},{"upto":5,"unit_price":1}]}"#,
            &["/tiers/0/up_to required", "/tiers/1/upto unknown_field"],
        ),
        (r#"{"model":"VOLUME","tiers":[{"unit_price":1},{"unit_price":1}]}"#, &["/tiers/0/up_to required"]),
        (
            r#"{"model":"GRADUATED","tiers":[{"up_to":10,"unit_price":1},{"up_to":10,"unit_price":1},{"up_to":20,"unit_price":1}]}"#,
            &["/tiers/1/up_to out_of_range", "/tiers/2/up_to not_allowed"],
        ),
        (
            r#"{"model":"VOLUME","tiers":[{"up_to":0.0000000000001,"unit_price":1},{"up_to":1e9,"unit_price":1},{"unit_price":1}]}"#,
            &["/tiers/0/up_to out_of_range", "/tiers/1/up_to out_of_range"],
        ),
        (r#"{"model":"VOLUME","tiers":[7,{}]}"#, &["/tiers/0 wrong_type", "/tiers/1/unit_price required"]),
        (&too_many, &["/tiers too_many"]),
    ];
    for (price, expected) in rows {
        let expected: Vec<String> = expected.iter().map(|row| format!("/line_items/0/price{row}")).collect();
        assert_eq!(refusals(super::pricing(&of_price(price))), expected, "{price}");
    }
}

#[test]
fn each_kind_of_line_item_takes_its_own_fields_only() {
    let rows: &[(&str, &[&str])] = &[
        ("{}", &["/line_item_id required", "/kind required", "/price required"]),
        (
            r#"{"line_item_id":"a","kind":"METERED","price":{"model":"PER_UNIT","unit_price":"x"}}"#,
            &["/kind invalid_value", "/price/unit_price invalid_format"],
        ),
        (
            r#"{"line_item_id":"a","kind":"FIXED","price":{"model":"FLAT","amount":1},"usage_product_ref":"c","included_quantity":1,
                "prepaid_quantity":1,"minimum_amount":1,"maximum_amount":1}"#,
            &[
                "/usage_product_ref not_allowed",
                "/included_quantity not_allowed",
                "/prepaid_quantity not_allowed",
                "/minimum_amount not_allowed",
                "/maximum_amount not_allowed",
            ],
        ),
        (r#"{"line_item_id":"a","kind":"FIXED","price":{"model":"PERCENTAGE","rate":1}}"#, &["/price not_allowed"]),
        (
            r#"{"line_item_id":"a","kind":"FIXED","price":{"model":"FLAT"},"recurrence":"OFTEN"}"#,
            &["/price/amount required", "/recurrence invalid_value"],
        ),
        (
            r#"{"line_item_id":"a","kind":"USAGE","price":{"model":"PER_UNIT","unit_price":1},"recurrence":"ONCE","goods":true}"#,
            &["/recurrence not_allowed", "/goods not_allowed", "/usage_product_ref required"],
        ),
        (
            r#"{"line_item_id":"a","kind":"USAGE","usage_product_ref":"c","price":{"model":"PER_UNIT","unit_price":1},
                "included_quantity":-1,"prepaid_quantity":"x","minimum_amount":true,"maximum_amount":1000000000}"#,
            &[
                "/included_quantity out_of_range",
                "/prepaid_quantity invalid_format",
                "/minimum_amount wrong_type",
                "/maximum_amount out_of_range",
            ],
        ),
        (
            r#"{"line_item_id":"a b","kind":"FIXED","price":{"model":"FLAT","amount":1},"minimum_ammount":1}"#,
            &["/line_item_id invalid_format", "/minimum_ammount unknown_field"],
        ),
    ];
    for (item, expected) in rows {
        let expected: Vec<String> = expected.iter().map(|row| format!("/line_items/0{row}")).collect();
        assert_eq!(refusals(super::pricing(&of_item(item))), expected, "{item}");
    }
}

#[test]
fn everything_wrong_with_a_pricing_is_said_at_once() {
    check(
        super::pricing,
        &[
            ("{}", &["/name required", "/currency required"]),
            (
                r#"{"line_items":[{"kind":"FIXED"}],"currency":"EURO","minimum_fee":-1,"product_pricing_ref":""}"#,
                &[
                    "/line_items/0/line_item_id required",
                    "/line_items/0/price required",
                    "/currency invalid_format",
                    "/minimum_fee out_of_range",
                    "/product_pricing_ref invalid_format",
                    "/name required",
                ],
            ),
        ],
    );
    let pricing = full_pricing();
    let rows: &[(&str, &[&str])] = &[(
        r#"{"product_pricing_ref":"other","currency":null,"name":""}"#,
        &["/product_pricing_ref not_changeable", "/currency required", "/name too_short"],
    )];
    check(|body| super::pricing_edit(body, &pricing.pricing_ref, &pricing.content), rows);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn a_pricing_is_shown_with_the_digits_its_prices_have() {
    assert_snapshot!(presented(&PricingJson::from(&full_pricing())), @r#"
    {
      "product_pricing_ref": "api",
      "name": "api",
      "currency": "EUR",
      "minimum_fee": 25.0,
      "line_items": [
        {
          "line_item_id": "base",
          "name": "base",
          "kind": "FIXED",
          "recurrence": "EACH_PERIOD",
          "usage_product_ref": null,
          "price": {
            "model": "FLAT",
            "amount": 20.00
          },
          "included_quantity": null,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        },
        {
          "line_item_id": "set-up",
          "name": "set-up",
          "kind": "FIXED",
          "recurrence": "ONCE",
          "usage_product_ref": null,
          "price": {
            "model": "FLAT",
            "amount": 99
          },
          "included_quantity": null,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        },
        {
          "line_item_id": "calls",
          "name": "calls",
          "kind": "USAGE",
          "recurrence": null,
          "usage_product_ref": "calls",
          "price": {
            "model": "PER_UNIT",
            "unit_price": 0.0025
          },
          "included_quantity": 100,
          "prepaid_quantity": 0.5,
          "minimum_amount": 1.00,
          "maximum_amount": 999999999.999999999999
        },
        {
          "line_item_id": "storage",
          "name": "storage",
          "kind": "USAGE",
          "recurrence": null,
          "usage_product_ref": "storage",
          "price": {
            "model": "GRADUATED",
            "tiers": [
              {
                "up_to": 1000.5,
                "unit_price": 0.10,
                "flat_amount": 1
              },
              {
                "up_to": null,
                "unit_price": 0.000000000001,
                "flat_amount": 0
              }
            ]
          },
          "included_quantity": 0,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        },
        {
          "line_item_id": "traffic",
          "name": "traffic",
          "kind": "USAGE",
          "recurrence": null,
          "usage_product_ref": "traffic",
          "price": {
            "model": "VOLUME",
            "tiers": [
              {
                "up_to": 1000.5,
                "unit_price": 0.10,
                "flat_amount": 1
              },
              {
                "up_to": null,
                "unit_price": 0.000000000001,
                "flat_amount": 0
              }
            ]
          },
          "included_quantity": 0,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        },
        {
          "line_item_id": "messages",
          "name": "messages",
          "kind": "USAGE",
          "recurrence": null,
          "usage_product_ref": "messages",
          "price": {
            "model": "PACKAGE",
            "package_size": 1000,
            "package_price": 5.00
          },
          "included_quantity": 0,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        },
        {
          "line_item_id": "payments",
          "name": "payments",
          "kind": "USAGE",
          "recurrence": null,
          "usage_product_ref": "payments",
          "price": {
            "model": "PERCENTAGE",
            "rate": 1.5,
            "fixed_amount": 0.25
          },
          "included_quantity": 0,
          "prepaid_quantity": null,
          "minimum_amount": null,
          "maximum_amount": null
        }
      ],
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
}

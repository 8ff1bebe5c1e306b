//! Contracts to create and to edit.

use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedLineItem};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::refs::ProductNo;
use billing_domain::violation::Violations;
use billing_testkit::fixtures;
use serde_json::Value;

use super::{check, json, refusals};

const PRODUCT: &str = r#"{"product_pricing_ref":"api","billing_start_date":"2026-01-01","billing_end_date":"2026-12-31"}"#;

/// Returns a contract body whose only product has one additional field.
fn of_product(field: &str, value: &str) -> Value {
    let product = super::with(PRODUCT, field, value);
    json(&format!(r#"{{"customer_ref":"acme","products":[{product}]}}"#))
}

#[test]
fn a_contract_needs_a_customer_only() {
    for body in [r#"{"customer_ref":"acme"}"#, r#"{"customer_ref":"acme","po_number":null,"products":null}"#] {
        let request = super::contract(&json(body)).expect(body);
        assert!(request.products.is_empty());
        assert_eq!(request.po_number, None);
    }
}

#[test]
fn a_product_left_to_its_defaults_states_nothing() {
    let request = super::contract(&of_product("note", "null")).expect("a contract");
    let pricing = fixtures::pricing("api", Vec::new());
    assert_eq!(request.products, [fixtures::requested(&pricing, "2026-01-01", "2026-12-31")]);
}

#[test]
fn line_items_left_out_empty_and_listed_differ() {
    let plain = RequestedLineItem::plain(fixtures::line_item_id("a"));
    let rows = [("null", None), ("[]", Some(vec![])), (r#"[{"line_item_id":"a"}]"#, Some(vec![plain]))];
    for (given, expected) in rows {
        let request = super::contract(&of_product("line_items", given)).expect(given);
        assert_eq!(request.products[0].line_items, expected, "{given}");
    }
}

#[test]
fn net_terms_are_days_or_a_word() {
    let rows = [
        ("30", NetTerms::Days(30)),
        (r#""30""#, NetTerms::Days(30)),
        ("30.0", NetTerms::Days(30)),
        ("3650", NetTerms::Days(3650)),
        (r#""DUE_UPON_RECEIPT""#, NetTerms::DueUponReceipt),
        (r#""DUE_UPON_USAGE""#, NetTerms::DueUponUsage),
    ];
    for (given, expected) in rows {
        let request = super::contract(&of_product("net_terms", given)).expect(given);
        assert_eq!(request.products[0].net_terms, Some(expected), "{given}");
    }
}

#[test]
fn payment_times_have_three_words_and_an_alias() {
    let rows = [
        ("BEFORE_USE", PaymentTime::BeforeUse),
        ("BEFORE_PERIOD", PaymentTime::BeforeUse),
        ("DURING_USE", PaymentTime::DuringUse),
        ("AFTER_USE", PaymentTime::AfterUse),
    ];
    for (given, expected) in rows {
        let request = super::contract(&of_product("payment_time", &format!(r#""{given}""#))).expect(given);
        assert_eq!(request.products[0].payment_time, Some(expected), "{given}");
    }
}

#[test]
fn a_billing_cycle_is_unit_times_cycle() {
    let rows = [
        ("{}", (CycleUnit::Monthly, 1)),
        (r#"{"unit":"QUARTERLY"}"#, (CycleUnit::Quarterly, 1)),
        (r#"{"unit":"YEARLY","cycle":"2"}"#, (CycleUnit::Yearly, 2)),
        (r#"{"unit":"ONE_TIME","cycle":1}"#, (CycleUnit::OneTime, 1)),
        (r#"{"cycle":1200}"#, (CycleUnit::Monthly, 1200)),
    ];
    for (given, (unit, count)) in rows {
        let request = super::contract(&of_product("billing_cycle", given)).expect(given);
        assert_eq!(request.products[0].billing_cycle, BillingCycle::new(unit, count), "{given}");
    }
}

#[test]
fn each_field_of_a_product_is_held_against_its_limits() {
    let too_many = format!("[{}]", [r#"{"line_item_id":"a"}"#; 501].join(","));
    let rows: &[(&str, &str, &[&str])] = &[
        ("product_pricing_ref", "null", &["product_pricing_ref required"]),
        ("billing_start_date", r#""01.01.2026""#, &["billing_start_date invalid_format"]),
        ("billing_end_date", r#""2026-02-30""#, &["billing_end_date invalid_format"]),
        ("billing_end_date", r#""2026-12-31T00:00:00Z""#, &["billing_end_date invalid_format"]),
        ("line_items", "{}", &["line_items wrong_type"]),
        (
            "line_items",
            r#"["a",{},{"line_item_id":"a","quantity":2}]"#,
            &["line_items/0 wrong_type", "line_items/1/line_item_id required", "line_items/2/quantity unknown_field"],
        ),
        ("line_items", &too_many, &["line_items too_many"]),
        ("entity_ref", r#""""#, &["entity_ref invalid_format"]),
        ("billing_cycle", r#""MONTHLY""#, &["billing_cycle wrong_type"]),
        ("billing_cycle", r#"{"units":"YEARLY"}"#, &["billing_cycle/units unknown_field"]),
        (
            "billing_cycle",
            r#"{"unit":"WEEKLY","cycle":0}"#,
            &["billing_cycle/unit invalid_value", "billing_cycle/cycle out_of_range"],
        ),
        ("billing_cycle", r#"{"cycle":1.5}"#, &["billing_cycle/cycle out_of_range"]),
        ("billing_cycle", r#"{"cycle":1201}"#, &["billing_cycle/cycle out_of_range"]),
        ("billing_cycle", r#"{"cycle":"one"}"#, &["billing_cycle/cycle invalid_format"]),
        ("issue_day", "15", &["issue_day wrong_type"]),
        ("payment_time", r#""LATER""#, &["payment_time invalid_value"]),
        ("payment_time", r#""after_use""#, &["payment_time invalid_value"]),
        ("tax", "100.000001", &["tax out_of_range"]),
        ("tax", r#""19 %""#, &["tax invalid_format"]),
        ("discount", "-1", &["discount out_of_range"]),
        ("net_terms", "0", &["net_terms out_of_range"]),
        ("net_terms", "3651", &["net_terms out_of_range"]),
        ("net_terms", "-30", &["net_terms out_of_range"]),
        ("net_terms", "1.5", &["net_terms out_of_range"]),
        ("net_terms", r#""SOON""#, &["net_terms invalid_format"]),
        ("net_terms", "true", &["net_terms wrong_type"]),
        ("note", r#""line\nbreaks\tare fine""#, &[]),
        ("note", r#""\u0000""#, &["note invalid_format"]),
        ("billing_bank_transfer_details", r#""account""#, &["billing_bank_transfer_details wrong_type"]),
        (
            "billing_bank_transfer_details",
            r#"{"billing_account_id":7}"#,
            &["billing_bank_transfer_details/billing_account_id wrong_type"],
        ),
        (
            "billing_online_payment_details",
            r#"{"auto_charge":"yes"}"#,
            &["billing_online_payment_details/auto_charge wrong_type"],
        ),
        ("billing_crypto_details", r#"{"tokens":["USDC",1]}"#, &["billing_crypto_details/tokens/1 wrong_type"]),
        ("minimum_fee", "-1", &["minimum_fee out_of_range"]),
        ("reprice", "true", &["reprice unknown_field"]),
        ("misspelt", "1", &["misspelt unknown_field"]),
        ("effective_from", r#""what an answer adds is ignored""#, &[]),
        ("in_force", r#"{"what":"ever"}"#, &[]),
    ];
    for (field, value, expected) in rows {
        let expected: Vec<String> = expected.iter().map(|row| format!("/products/0/{row}")).collect();
        assert_eq!(refusals(super::contract(&of_product(field, value))), expected, "{field}: {value}");
    }
}

#[test]
fn everything_wrong_with_a_contract_is_said_at_once() {
    let too_many = format!(r#"{{"customer_ref":"acme","products":[{}]}}"#, [PRODUCT; 101].join(","));
    check(
        super::contract,
        &[
            (
                r#"{"po_number":"a\nb","products":[{"tax":"x"},7,{"product_pricing_ref":"p","billing_start_date":"2026-01-01","billing_end_date":"soon"}]}"#,
                &[
                    "/po_number invalid_format",
                    "/products/0/tax invalid_format",
                    "/products/0/product_pricing_ref required",
                    "/products/0/billing_start_date required",
                    "/products/0/billing_end_date required",
                    "/products/1 wrong_type",
                    "/products/2/billing_end_date invalid_format",
                    "/customer_ref required",
                ],
            ),
            (&too_many, &["/products too_many"]),
            (
                r#"{"customer_ref":"acme","customer":"acme","include_current_invoice":true,"allow_backdated":1}"#,
                &["/customer unknown_field", "/include_current_invoice unknown_field", "/allow_backdated wrong_type"],
            ),
        ],
    );
}

#[test]
fn a_misspelt_field_is_told_what_it_is_like() {
    let details = |violations: Violations| -> Vec<String> { violations.iter().map(|found| found.detail.clone()).collect() };
    let body = of_product("discout", "10");
    assert_eq!(details(super::contract(&body).expect_err("a misspelling")), ["is an unknown field; the nearest is discount"]);
    let items = of_product("line_items", r#"[{"line_item_id":"a","quantites":[],"price":{"model":"FLAT","ammount":1}}]"#);
    let expected =
        ["is an unknown field; the nearest is quantities", "is an unknown field; the nearest is amount", "must be given"];
    assert_eq!(details(super::contract(&items).expect_err("misspellings")), expected);
    let edit = json(r#"{"efective_from":"2026-01-01","colour":"red"}"#);
    let known = "effective_from, include_current_invoice, version, customer_ref, po_number, metadata, products, dry_run, \
                 allow_backdated";
    let expected = ["is an unknown field; the nearest is effective_from".to_owned(), format!("must be one of {known}")];
    assert_eq!(details(super::contract_edit(&edit).expect_err("misspellings")), expected);
}

#[test]
fn many_documents_at_once_are_allowed_by_name() {
    for (given, expected) in [("{}", false), (r#"{"allow_backdated":null}"#, false), (r#"{"allow_backdated":true}"#, true)] {
        let mut body = json(given);
        body["customer_ref"] = "acme".into();
        assert_eq!(super::contract(&body).expect(given).allow_backdated, expected, "{given}");
        assert_eq!(super::contract_edit(&body).expect(given).2.allow_backdated, expected, "{given}");
    }
}

#[test]
fn an_edit_holds_from_a_day_the_current_period_or_the_next() {
    let day = EffectiveFrom::Day(fixtures::date("2026-02-01"));
    let rows = [
        ("{}", EffectiveFrom::NextPeriod),
        (r#"{"effective_from":null,"include_current_invoice":null}"#, EffectiveFrom::NextPeriod),
        (r#"{"include_current_invoice":false}"#, EffectiveFrom::NextPeriod),
        (r#"{"include_current_invoice":true}"#, EffectiveFrom::CurrentPeriod),
        (r#"{"effective_from":"2026-02-01"}"#, day),
        (r#"{"effective_from":"2026-02-01","include_current_invoice":false}"#, day),
        (r#"{"effective_from":null,"include_current_invoice":true}"#, EffectiveFrom::CurrentPeriod),
    ];
    for (body, expected) in rows {
        let (_, edit, _) = super::contract_edit(&json(body)).expect(body);
        assert_eq!(edit.since, expected, "{body}");
    }
}

#[test]
fn each_field_of_an_edit_is_held_against_its_limits() {
    check(
        super::contract_edit,
        &[
            (
                r#"{"effective_from":"2026-02-01","include_current_invoice":true}"#,
                &["/include_current_invoice conflicting_fields"],
            ),
            (
                r#"{"effective_from":"soon","include_current_invoice":1}"#,
                &["/effective_from invalid_format", "/include_current_invoice wrong_type"],
            ),
            (r#"{"version":0}"#, &["/version out_of_range"]),
            (r#"{"version":1.5}"#, &["/version out_of_range"]),
            (r#"{"version":"first"}"#, &["/version invalid_format"]),
            (r#"{"version":"70000","dry_run":true}"#, &[]),
            (r#"{"dry_run":"yes"}"#, &["/dry_run wrong_type"]),
            (r#"{"customer_ref":null}"#, &["/customer_ref required"]),
            (r#"{"products":null}"#, &["/products required"]),
            (r#"{"products":[]}"#, &[]),
            (
                r#"{"products":[{"product_pricing_ref":"api","reprice":1,"minimum_fee":"x","billing_end_date":null}]}"#,
                &[
                    "/products/0/reprice wrong_type",
                    "/products/0/minimum_fee invalid_format",
                    "/products/0/billing_end_date required",
                ],
            ),
            (r#"{"last_day":"2026-02-01"}"#, &["/last_day unknown_field"]),
        ],
    );
    let refused = super::contract_edit(&json(r#"{"products":null}"#)).expect_err("no products");
    let detail = "must not be null: to end all products, cancel the contract; to keep all products, omit the field";
    assert_eq!(refused.iter().map(|found| found.detail.as_str()).collect::<Vec<_>>(), [detail]);
}

#[test]
fn an_edit_keeps_what_it_leaves_out_and_clears_what_is_null() {
    let read = |product: &str| {
        let body = json(&format!(r#"{{"version":3,"products":[{product}]}}"#));
        let (_, edit, _) = super::contract_edit(&body).expect(product);
        assert_eq!(edit.version, Some(3));
        edit.products.and_then(|products| products.into_iter().next()).expect("a product")
    };
    let plain = ProductPatch::of(fixtures::pricing_ref("api"));
    assert_eq!(read(r#"{"product_pricing_ref":"api"}"#), plain);
    let cleared = read(r#"{"product_pricing_ref":"api","minimum_fee":null,"line_items":null,"tax":null,"reprice":null}"#);
    let expected = ProductPatch { minimum_fee: Patch::Clear, line_items: Patch::Clear, tax: Patch::Clear, ..plain.clone() };
    assert_eq!(cleared, expected);
    let set = read(r#"{"product_pricing_ref":"api","minimum_fee":"25.50","reprice":true}"#);
    assert_eq!(set, ProductPatch { minimum_fee: Patch::Set(fixtures::price("25.50")), reprice: true, ..plain });
}

#[test]
fn an_element_of_an_edit_may_have_its_products_number_and_repeat_the_anchor() {
    let read = |product: &str| {
        let body = json(&format!(r#"{{"products":[{{"product_pricing_ref":"api",{product}}}]}}"#));
        super::contract_edit(&body).map(|(_, edit, _)| edit.products.and_then(|products| products.into_iter().next()))
    };
    let plain = ProductPatch::of(fixtures::pricing_ref("api"));
    let numbered = ProductPatch { product_no: Some(ProductNo(2)), ..plain.clone() };
    assert_eq!(read(r#""product_no":2,"billing_anchor":"2026-04-01""#).expect("an edit"), Some(numbered));
    assert_eq!(read(r#""billing_anchor":"2026-04-01""#).expect("an edit"), Some(plain));
    for (value, code) in [("-1", "out_of_range"), ("65536", "out_of_range"), ("1.5", "out_of_range"), ("true", "wrong_type")] {
        let refused = read(&format!(r#""product_no":{value}"#)).expect_err("a refusal");
        let found: Vec<String> = refused.iter().map(|one| format!("{} {}", one.path.join("/"), one.code)).collect();
        assert_eq!(found, [format!("products/0/product_no {code}")], "{value}");
    }
    // A new product has no number yet, so a number from a response is ignored.
    let with = |value: &str| super::contract(&of_product("product_no", value)).map(|_| ());
    with("7").expect("a contract");
}

//! Contracts.

use billing_application::contracts::{ContractRequest, ContractView};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::contract::{Agreed, Contract, ContractState, EndReason, Segment};
use billing_domain::party::NetTerms;
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;
use serde_json::Value;

use super::super::contracts::{ContractBody, ContractCreatedJson, ContractJson};
use super::{check, json, posted_back, presented, refusals, shown};

const PRODUCT: &str = r#"{"product_pricing_ref":"api","billing_start_date":"2026-01-01","billing_end_date":"2026-12-31"}"#;

/// A contract of one product, one field of which is set.
fn of_product(field: &str, value: &str) -> Value {
    let product = super::with(PRODUCT, field, value);
    json(&format!(r#"{{"customer_ref":"acme","products":[{product}]}}"#))
}

#[test]
fn a_contract_needs_a_customer_only() {
    for body in [r#"{"customer_ref":"acme"}"#, r#"{"customer_ref":"acme","po_number":null,"products":null}"#] {
        let request = ContractBody::read(&json(body)).expect(body);
        assert!(request.products.is_empty());
        assert_eq!(request.po_number, None);
    }
}

#[test]
fn a_product_left_to_its_defaults_states_nothing() {
    let request = ContractBody::read(&of_product("note", "null")).expect("a contract");
    let pricing = fixtures::pricing("api", Vec::new());
    assert_eq!(request.products, [fixtures::requested(&pricing, "2026-01-01", "2026-12-31")]);
}

#[test]
fn line_items_left_out_empty_and_listed_differ() {
    let rows = [("null", None), ("[]", Some(vec![])), (r#"[{"line_item_id":"a"}]"#, Some(vec![fixtures::line_item_id("a")]))];
    for (given, expected) in rows {
        let request = ContractBody::read(&of_product("line_items", given)).expect(given);
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
        let request = ContractBody::read(&of_product("net_terms", given)).expect(given);
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
        let request = ContractBody::read(&of_product("payment_time", &format!(r#""{given}""#))).expect(given);
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
        let request = ContractBody::read(&of_product("billing_cycle", given)).expect(given);
        assert_eq!(request.products[0].billing_cycle, BillingCycle::new(unit, count), "{given}");
    }
}

#[test]
fn each_field_of_a_product_is_held_against_its_limits() {
    let too_many = format!("[{}]", [r#"{"line_item_id":"a"}"#; 201].join(","));
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
        ("misspelt", "1", &[]),
    ];
    for (field, value, expected) in rows {
        let expected: Vec<String> = expected.iter().map(|row| format!("/products/0/{row}")).collect();
        assert_eq!(refusals(ContractBody::read(&of_product(field, value))), expected, "{field}: {value}");
    }
}

#[test]
fn everything_wrong_with_a_contract_is_said_at_once() {
    let too_many = format!(r#"{{"customer_ref":"acme","products":[{}]}}"#, [PRODUCT; 101].join(","));
    check(
        ContractBody::read,
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
        ],
    );
}

fn view(contract: Contract, state: ContractState) -> ContractView {
    ContractView { contract, state, today: fixtures::date("2026-01-20") }
}

/// Makes the contract that a request asks for, as the use case would.
fn made(request: ContractRequest) -> ContractView {
    let ids = CountingIds::new();
    let customer = fixtures::customer(&ids, request.customer_ref.as_str());
    let items = vec![fixtures::fixed("base", "20.00"), fixtures::per_unit("calls", "0.0025")];
    let pricing = fixtures::pricing("api", items);
    let terms = request.products.into_iter().map(|product| fixtures::terms_from(product, &pricing)).collect();
    let mut contract = fixtures::contract(&ids, &customer, terms);
    contract.po_number = request.po_number;
    view(contract, ContractState::Active)
}

const FULL: &str = r#"{"customer_ref":"acme","po_number":"PO 17","products":[
    {"product_pricing_ref":"api","billing_start_date":"2026-01-01","billing_end_date":"2026-03-31"},
    {"product_pricing_ref":"api","billing_start_date":"2026-04-15","billing_end_date":"2026-12-31",
     "line_items":[{"line_item_id":"calls"}],"entity_ref":"emea","billing_cycle":{"unit":"QUARTERLY","cycle":2},
     "issue_day":"2026-05-01","payment_time":"BEFORE_PERIOD","tax":"19.00","discount":2.5,"net_terms":"30","note":"Thank\nyou",
     "billing_bank_transfer_details":{"billing_account_id":"account-1"},
     "billing_online_payment_details":{"auto_charge":false,"payment_gateway_id":"g","payment_gateway_card_id":"c"},
     "billing_crypto_details":{"address":"0xabc","tokens":["USDC","BTC"]}}]}"#;

#[test]
fn a_contract_is_shown_with_what_was_agreed() {
    let view = made(ContractBody::read(&json(FULL)).expect("a contract"));
    assert_snapshot!(presented(&ContractJson::from(&view)), @r#"
    {
      "contract_ref": "019b76da-a802-7000-8000-000000000002",
      "customer_ref": "acme",
      "po_number": "PO 17",
      "products": [
        {
          "product_pricing_ref": "api",
          "billing_start_date": "2026-01-01",
          "billing_end_date": "2026-03-31",
          "line_items": [
            {
              "line_item_id": "base"
            },
            {
              "line_item_id": "calls"
            }
          ],
          "entity_ref": null,
          "billing_cycle": {
            "unit": "MONTHLY",
            "cycle": 1
          },
          "issue_day": null,
          "payment_time": "AFTER_USE",
          "tax": null,
          "discount": null,
          "net_terms": null,
          "note": null,
          "billing_bank_transfer_details": null,
          "billing_online_payment_details": null,
          "billing_crypto_details": null
        },
        {
          "product_pricing_ref": "api",
          "billing_start_date": "2026-04-15",
          "billing_end_date": "2026-12-31",
          "line_items": [
            {
              "line_item_id": "calls"
            }
          ],
          "entity_ref": "emea",
          "billing_cycle": {
            "unit": "QUARTERLY",
            "cycle": 2
          },
          "issue_day": "2026-05-01",
          "payment_time": "BEFORE_USE",
          "tax": 19.00,
          "discount": 2.5,
          "net_terms": 30,
          "note": "Thank\nyou",
          "billing_bank_transfer_details": {
            "billing_account_id": "account-1"
          },
          "billing_online_payment_details": {
            "auto_charge": false,
            "payment_gateway_id": "g",
            "payment_gateway_card_id": "c"
          },
          "billing_crypto_details": {
            "address": "0xabc",
            "tokens": [
              "USDC",
              "BTC"
            ]
          }
        }
      ],
      "state": "ACTIVE",
      "version": 1,
      "contract_number": "C-1",
      "effective_end_date": "2026-12-31",
      "cancelled_at": null
    }
    "#);
    assert_snapshot!(presented(&ContractCreatedJson::from(&view)), @r#"
    {
      "contract_ref": "019b76da-a802-7000-8000-000000000002"
    }
    "#);
}

#[test]
fn what_is_read_can_be_posted_back() {
    let asked = ContractBody::read(&json(FULL)).expect("a contract");
    let answered = ContractJson::from(&made(asked.clone()));
    let again = ContractBody::read(&posted_back(&answered)).expect("what was answered");
    // Only what the first request left open is stated now.
    let mut resolved = asked;
    resolved.products[0].line_items = Some(vec![fixtures::line_item_id("base"), fixtures::line_item_id("calls")]);
    resolved.products[0].billing_cycle = Some(BillingCycle::default());
    resolved.products[0].payment_time = Some(PaymentTime::AfterUse);
    assert_eq!(again.customer_ref, resolved.customer_ref);
    assert_eq!(again.po_number, resolved.po_number);
    assert_eq!(again.products, resolved.products);
    assert_eq!(shown(&ContractJson::from(&made(again))), shown(&answered));
}

#[test]
fn a_product_that_an_edit_removed_is_not_shown_but_one_that_was_cancelled_is() {
    for (reason, count) in [(EndReason::Removed, 1), (EndReason::Cancelled, 2)] {
        let mut view = made(ContractBody::read(&json(FULL)).expect("a contract"));
        let end = Segment { version: 2, in_force_from: fixtures::date("2026-02-01"), agreed: Agreed::Ended(reason) };
        view.contract.products[0].segments.push(end);
        let shown = posted_back(&ContractJson::from(&view));
        assert_eq!(shown["products"].as_array().map(Vec::len), Some(count), "{reason:?}");
    }
}

#[test]
fn a_cancelled_contract_says_since_when() {
    let ids = CountingIds::new();
    let mut contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), Vec::new());
    contract.cancelled_at = Some(fixtures::at("2026-01-20T10:00:00+02:00"));
    let shown = posted_back(&ContractJson::from(&view(contract, ContractState::Cancelled)));
    assert_eq!((&shown["state"], &shown["cancelled_at"]), (&Value::from("CANCELLED"), &Value::from("2026-01-20T08:00:00Z")));
    assert_eq!(shown["effective_end_date"], Value::Null);
}

//! Contracts in responses, and posted back.

use billing_application::contracts::{ContractRequest, ContractView};
use billing_domain::catalog::Pricing;
use billing_domain::contract::amendment::{AmendmentContext, edited};
use billing_domain::contract::resolve::Catalog;
use billing_domain::contract::schedule::BillingCycle;
use billing_domain::contract::terms::{PaymentTime, ProductTerms};
use billing_domain::contract::{Contract, ContractState, EndReason, Segment, SegmentTerms};
use billing_domain::patch::Patch;
use billing_domain::warning::Warning;
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;
use serde_json::Value;

use super::super::contract_view::{ContractCreatedJson, ContractJson};
use super::schemas::assert_fits;
use super::{json, posted_back, presented, shown};

const TODAY: &str = "2026-01-20";

fn view(contract: Contract, state: ContractState) -> ContractView {
    ContractView {
        contract,
        state,
        today: fixtures::date(TODAY),
        customer_name: Some(fixtures::line("Acme")),
        warnings: Vec::new(),
    }
}

fn pricing() -> Pricing {
    let items = vec![fixtures::fixed("base", "20.00"), fixtures::per_unit("calls", "0.0025")];
    let mut pricing = fixtures::pricing("api", items);
    pricing.content.minimum_fee = Some(fixtures::price("25"));
    pricing
}

/// Returns the catalog for edits of the contracts.
fn catalog() -> Catalog {
    let pricing = pricing();
    Catalog {
        usage_products: fixtures::products_of(&pricing),
        pricings: vec![pricing],
        entities: vec![fixtures::entity_ref("emea")],
        default_entity: Some(fixtures::entity_ref("main")),
    }
}

/// Creates the contract of a request like the use case.
fn made(request: ContractRequest) -> ContractView {
    let ids = CountingIds::new();
    let customer = fixtures::customer(&ids, request.customer_ref.as_str());
    let terms = request.products.into_iter().map(|product| fixtures::terms_from(product, &pricing())).collect();
    let mut contract = fixtures::contract(&ids, &customer, terms);
    contract.po_number = request.po_number;
    contract.metadata = request.metadata;
    view(contract, ContractState::Active)
}

const FULL: &str = r#"{"customer_ref":"acme","po_number":"PO 17","metadata":{"crm":"4711"},"products":[
    {"product_pricing_ref":"api","billing_start_date":"2026-01-01","billing_end_date":"2026-03-31"},
    {"product_pricing_ref":"api","billing_start_date":"2026-04-15","billing_end_date":"2026-12-31",
     "line_items":[
       {"line_item_id":"base","name":"Seats","quantities":[{"from":"2026-04-15","quantity":10},{"from":"2026-06-01","quantity":"12.5"}],
        "price":{"model":"GRADUATED","tiers":[{"up_to":5,"unit_price":"9.90"},{"unit_price":8}]}},
       {"line_item_id":"calls","name":"calls","price":{"model":"PACKAGE","package_size":1000,"package_price":"1.50"},"included_quantity":100,
        "prepaid_quantity":2000,"minimum_amount":5,"maximum_amount":"99.90"}],
     "minimum_fee":"30.00","entity_ref":"emea","billing_cycle":{"unit":"QUARTERLY","cycle":2},
     "issue_day":"2026-05-01","payment_time":"BEFORE_PERIOD","tax":"19.00","discount":2.5,"net_terms":"30","note":"Thank\nyou",
     "billing_bank_transfer_details":{"billing_account_id":"account-1"},
     "billing_online_payment_details":{"auto_charge":false,"payment_gateway_id":"g","payment_gateway_card_id":"c"},
     "billing_crypto_details":{"address":"0xabc","tokens":["USDC","BTC"]}}]}"#;

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn a_contract_is_shown_with_what_was_agreed() {
    let view = made(super::contract(&json(FULL)).expect("a contract"));
    assert_snapshot!(presented(&ContractJson::from(&view)), @r#"
    {
      "contract_ref": "019b76da-a802-7000-8000-000000000002",
      "customer_ref": "acme",
      "customer_name": "Acme",
      "po_number": "PO 17",
      "products": [
        {
          "product_no": 0,
          "product_pricing_ref": "api",
          "product_name": "api",
          "name": null,
          "currency": "EUR",
          "billing_start_date": "2026-01-01",
          "billing_end_date": "2026-03-31",
          "line_items": [
            {
              "line_item_id": "base",
              "name": "base",
              "price": {
                "model": "FLAT",
                "amount": 20.00
              }
            },
            {
              "line_item_id": "calls",
              "name": "calls",
              "price": {
                "model": "PER_UNIT",
                "unit_price": 0.0025
              },
              "usage_product_ref": "calls",
              "aggregation": "SUM",
              "included_quantity": 0
            }
          ],
          "minimum_fee": 25,
          "entity_ref": null,
          "billing_cycle": {
            "unit": "MONTHLY",
            "cycle": 1
          },
          "issue_day": null,
          "billing_anchor": "2026-04-01",
          "payment_time": "AFTER_USE",
          "tax": null,
          "discount": null,
          "net_terms": null,
          "note": null,
          "billing_bank_transfer_details": null,
          "billing_online_payment_details": null,
          "billing_crypto_details": null,
          "tax_category": null,
          "exemption_code": null,
          "exemption_reason": null,
          "buyer_reference": null
        },
        {
          "product_no": 1,
          "product_pricing_ref": "api",
          "product_name": "api",
          "name": null,
          "currency": "EUR",
          "billing_start_date": "2026-04-15",
          "billing_end_date": "2026-12-31",
          "line_items": [
            {
              "line_item_id": "base",
              "name": "Seats",
              "price": {
                "model": "GRADUATED",
                "tiers": [
                  {
                    "up_to": 5,
                    "unit_price": 9.90,
                    "flat_amount": 0
                  },
                  {
                    "up_to": null,
                    "unit_price": 8,
                    "flat_amount": 0
                  }
                ]
              },
              "quantities": [
                {
                  "from": "2026-04-15",
                  "quantity": 10
                },
                {
                  "from": "2026-06-01",
                  "quantity": 12.5
                }
              ]
            },
            {
              "line_item_id": "calls",
              "name": "calls",
              "price": {
                "model": "PACKAGE",
                "package_size": 1000,
                "package_price": 1.50
              },
              "usage_product_ref": "calls",
              "aggregation": "SUM",
              "included_quantity": 100,
              "prepaid_quantity": 2000,
              "minimum_amount": 5,
              "maximum_amount": 99.90
            }
          ],
          "minimum_fee": 30.00,
          "entity_ref": "emea",
          "billing_cycle": {
            "unit": "QUARTERLY",
            "cycle": 2
          },
          "issue_day": "2026-05-01",
          "billing_anchor": "2026-05-01",
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
          },
          "tax_category": null,
          "exemption_code": null,
          "exemption_reason": null,
          "buyer_reference": null
        }
      ],
      "state": "ACTIVE",
      "version": 1,
      "contract_number": "C-1",
      "effective_end_date": "2026-12-31",
      "cancelled_at": null,
      "metadata": {
        "crm": "4711"
      },
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
}

#[test]
fn a_created_contract_has_warnings_only_where_there_are_any() {
    let view = made(super::contract(&json(FULL)).expect("a contract"));
    let contract_ref = view.contract.contract_ref;
    let created = |warnings| ContractCreatedJson::from(&ContractView { warnings, ..view.clone() });
    assert_snapshot!(presented(&created(Vec::new())), @r#"
    {
      "contract_ref": "019b76da-a802-7000-8000-000000000002"
    }
    "#);
    let earlier = Warning::SameAs { contract_ref, contract_number: "C-1".to_owned() };
    assert_snapshot!(presented(&created(vec![earlier])), @r#"
    {
      "contract_ref": "019b76da-a802-7000-8000-000000000002",
      "warnings": [
        {
          "code": "same_as",
          "detail": "contract C-1 of the same customer bills the same products from the same first to the same last day, and is less than 5 minutes older: to annul a contract that was created by mistake, cancel it with the day before its first day as last_day",
          "contract_ref": "019b76da-a802-7000-8000-000000000002"
        }
      ]
    }
    "#);
}

#[test]
fn what_is_read_can_be_posted_back() {
    let asked = super::contract(&json(FULL)).expect("a contract");
    let answered = ContractJson::from(&made(asked.clone()));
    let again = super::contract(&posted_back(&answered)).expect("a response that can be posted");
    // Only the fields that the first request omitted are stated now.
    let mut resolved = asked;
    resolved.products[0].line_items = again.products[0].line_items.clone();
    resolved.products[0].minimum_fee = Patch::Set(fixtures::price("25"));
    resolved.products[0].billing_cycle = Some(BillingCycle::default());
    resolved.products[0].payment_time = Some(PaymentTime::AfterUse);
    assert_eq!(again.customer_ref, resolved.customer_ref);
    assert_eq!(again.po_number, resolved.po_number);
    assert_eq!(again.metadata, resolved.metadata);
    assert_eq!(again.products, resolved.products);
    assert_eq!(shown(&ContractJson::from(&made(again))), shown(&answered));
}

/// Edits a contract on the day of [`view`].
fn edit(contract: &Contract, body: &Value) -> Contract {
    let (_, edit, _) = super::contract_edit(body).expect("an edit");
    let today = |_: &ProductTerms| fixtures::date(TODAY);
    let now = AmendmentContext { today: &today, has_activity: &|_| true };
    edited(contract, &edit, &catalog(), &now).expect("an accepted edit").contract
}

#[test]
fn an_answer_posted_to_an_edit_as_it_is_changes_nothing() {
    let first = made(super::contract(&json(FULL)).expect("a contract"));
    let mut contract = first.contract;
    // New, then with a future version, then with a current version.
    for change in [
        r#"{}"#,
        r#"{"effective_from":"2026-02-01","products":[{"product_pricing_ref":"api","billing_start_date":"2026-01-01","discount":15},
            {"product_pricing_ref":"api","billing_start_date":"2026-04-15"}]}"#,
        r#"{"include_current_invoice":true,"products":[{"product_pricing_ref":"api","billing_start_date":"2026-01-01",
            "minimum_fee":null,"line_items":[{"line_item_id":"base","quantities":[{"from":"2026-01-10","quantity":3}]}]},
            {"product_pricing_ref":"api","billing_start_date":"2026-04-15"}]}"#,
    ] {
        contract = edit(&contract, &json(change));
        let mut answered = posted_back(&ContractJson::from(&view(contract.clone(), ContractState::Active)));
        assert_eq!(edit(&contract, &answered), contract, "{answered:#}");
        // Terms equal to the newest ones are no change either, if no version is given.
        answered.as_object_mut().expect("a contract").shift_remove("version");
        assert_eq!(edit(&contract, &answered), contract, "{answered:#}");
    }
    assert_eq!(contract.version, 3);
}

#[test]
fn a_product_shows_its_newest_terms_and_todays_where_they_are_others() {
    let contract = made(super::contract(&json(FULL)).expect("a contract")).contract;
    let change = |since: &str, more: &str| {
        json(&format!(
            r#"{{{since}"products":[{{"product_pricing_ref":"api","billing_start_date":"2026-01-01",{more}}},
                {{"product_pricing_ref":"api","billing_start_date":"2026-04-15"}}]}}"#
        ))
    };
    let shown = |contract: &Contract| {
        let json = ContractJson::from(&view(contract.clone(), ContractState::Active));
        assert_fits(&json);
        posted_back(&json)["products"][0].clone()
    };
    let plain = shown(&contract);
    assert_eq!((plain.get("effective_from"), plain.get("in_force")), (None, None));
    let later = shown(&edit(&contract, &change("", r#""discount":15,"line_items":[{"line_item_id":"calls"}]"#)));
    assert_eq!((&later["discount"], &later["effective_from"]), (&Value::from(15), &"2026-02-01".into()));
    assert_eq!(later["line_items"].as_array().map(Vec::len), Some(1));
    assert_eq!(later["in_force"], plain, "{later:#}");
    let now = shown(&edit(&contract, &change(r#""include_current_invoice":true,"#, r#""discount":15"#)));
    assert_eq!((&now["discount"], now.get("effective_from"), now.get("in_force")), (&Value::from(15), None, None));
}

#[test]
fn a_product_that_an_edit_removed_is_not_shown_but_one_that_was_cancelled_is() {
    for (reason, count) in [(EndReason::Removed, 1), (EndReason::Cancelled, 2)] {
        let mut view = made(super::contract(&json(FULL)).expect("a contract"));
        let end = Segment { version: 2, in_force_from: fixtures::date("2026-02-01"), agreed: SegmentTerms::Ended(reason) };
        view.contract.products[0].segments.push(end);
        let shown = posted_back(&ContractJson::from(&view));
        assert_eq!(shown["products"].as_array().map(Vec::len), Some(count), "{reason:?}");
        // A removed product still bills until its last day.
        let in_force = shown.get("in_force").map(|leaving| leaving[0]["product_no"].clone());
        assert_eq!(in_force, (count == 1).then(|| 0.into()), "{reason:?}");
    }
}

#[test]
fn an_open_end_has_no_anchor() {
    let open = r#"{"customer_ref":"acme","products":[{"product_pricing_ref":"api",
        "billing_start_date":"2026-01-01","billing_end_date":"9999-12-31"}]}"#;
    let answered = ContractJson::from(&made(super::contract(&json(open)).expect("a contract")));
    assert_fits(&answered);
    assert_eq!(posted_back(&answered)["products"][0]["billing_anchor"], Value::Null);
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

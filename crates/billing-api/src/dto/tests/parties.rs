//! Customers, supplier entities and usage products.

use billing_application::catalog::{TaxBasisPatch, WantedEntity};
use billing_domain::calendar::TimeZone;
use billing_domain::catalog::Aggregation;
use billing_domain::party::{Customer, Entity, NetTerms};
use billing_domain::tax::StatedTax;
use billing_testkit::{CountingIds, fixtures};
use insta::assert_snapshot;

use super::super::customers::{CustomerJson, CustomerNameJson};
use super::super::entities::{EntityJson, EntityNameJson};
use super::super::usage_products::UsageProductJson;
use super::{TODAY, check, check_field, json, posted_back, presented, refusals, shown_customer, shown_entity};

fn full_customer() -> Customer {
    let mut customer = fixtures::customer(&CountingIds::new(), "acme");
    customer.profile.legal_name = Some(fixtures::line("Acme GmbH"));
    customer.profile.email = Some(fixtures::line("billing@example.com"));
    customer.profile.tax_id = Some(fixtures::line("DE123456789"));
    customer.profile.billing_address = Some(fixtures::full_address());
    customer.profile.currency = Some(fixtures::currency("JPY"));
    customer.profile.taxes = fixtures::default_tax("7.70");
    customer.profile.entity_ref = Some(fixtures::entity_ref("emea"));
    customer.profile.net_terms = Some(NetTerms::Days(30));
    customer.profile.payment = fixtures::full_payment();
    customer
}

fn full_entity() -> Entity {
    let mut entity = fixtures::entity("emea");
    entity.profile.legal_name = Some(fixtures::line("Example EMEA GmbH"));
    entity.profile.time_zone = fixtures::zone("Europe/Berlin");
    entity.profile.currency = Some(fixtures::eur());
    entity.profile.address = Some(fixtures::full_address());
    entity.profile.tax_id = Some(fixtures::line("DE987654321"));
    entity.profile.net_terms = Some(NetTerms::DueUponUsage);
    entity.profile.grace_hours = 720;
    entity.profile.credit_unit = fixtures::credit_unit("EUR", "0.010");
    entity.profile.payment = fixtures::full_payment();
    entity
}

#[test]
fn each_field_of_a_customer_is_held_against_its_limits() {
    let long = format!(r#""{}""#, "x".repeat(4097));
    let rows: &[(&str, &str, &[&str])] = &[
        ("customer_ref", "null", &[]),
        ("customer_ref", r#""a/b""#, &["/customer_ref invalid_format"]),
        ("name", "null", &["/name required"]),
        ("name", r#""""#, &["/name too_short"]),
        ("name", &long, &["/name too_long"]),
        ("name", r#""a\nb""#, &["/name invalid_format"]),
        ("email", r#""billing@example.com""#, &[]),
        ("email", r#""nobody""#, &["/email invalid_format"]),
        (
            "billing_address",
            r#"{"line1":"a\nb","city":1,"zip_code":28195}"#,
            &["/billing_address/city wrong_type", "/billing_address/zip_code wrong_type"],
        ),
        ("currency", r#""XAU""#, &["/currency invalid_format"]),
        ("tax", r#""19""#, &[]),
        ("tax", "101", &["/tax out_of_range"]),
        ("entity_ref", "{}", &["/entity_ref wrong_type"]),
        ("net_terms", r#""LATER""#, &["/net_terms invalid_format"]),
        ("billing_crypto_details", r#"{"tokens":"BTC"}"#, &["/billing_crypto_details/tokens wrong_type"]),
        ("billing_crypto_details", r#"{"token":[]}"#, &["/billing_crypto_details/token unknown_field"]),
        ("billing_bank_transfer_details", r#"{"account_id":"a"}"#, &["/billing_bank_transfer_details/account_id unknown_field"]),
        (
            "billing_online_payment_details",
            r#"{"autocharge":true}"#,
            &["/billing_online_payment_details/autocharge unknown_field"],
        ),
    ];
    check_field(super::customer, r#"{"name":"Acme"}"#, rows);
}

#[test]
fn everything_wrong_with_a_customer_is_said_at_once() {
    check(
        super::customer,
        &[
            ("{}", &["/name required"]),
            ("[]", &["/ wrong_type"]),
            (
                r#"{"net_terms":0,"tax":"x","email":"","customer_ref":""}"#,
                &[
                    "/net_terms out_of_range",
                    "/tax invalid_format",
                    "/email too_short",
                    "/customer_ref invalid_format",
                    "/name required",
                ],
            ),
        ],
    );
}

#[test]
fn a_customer_that_is_read_can_be_posted_back() {
    let customer = full_customer();
    let read = super::customer(&posted_back(&CustomerJson::from(&shown_customer(&customer)))).expect("a customer");
    assert_eq!(read, (Some(customer.customer_ref.clone()), customer.profile.clone()));
    let edit = super::customer_edit(
        &posted_back(&CustomerJson::from(&shown_customer(&customer))),
        &customer.customer_ref,
        &customer.profile,
    );
    assert_eq!(edit.expect("an edit that changes nothing"), customer.profile);
}

#[test]
fn an_edit_keeps_what_is_left_out_and_clears_what_is_null() {
    let customer = full_customer();
    let edit = |body| super::customer_edit(&json(body), &customer.customer_ref, &customer.profile);
    assert_eq!(edit("{}").expect("no change"), customer.profile);

    let mut expected = customer.profile.clone();
    expected.name = fixtures::line("Acme 2");
    expected.email = None;
    expected.taxes = expected.taxes.with(StatedTax::default(), None, fixtures::date(TODAY));
    expected.payment.crypto = None;
    let changed = edit(r#"{"name":"Acme 2","email":null,"tax":null,"billing_crypto_details":null}"#);
    assert_eq!(changed.expect("an edit"), expected);

    // An object is replaced as a whole.
    let moved = edit(r#"{"billing_address":{"city":"Bremen"}}"#).expect("an edit").billing_address.expect("an address");
    assert_eq!((moved.line1, moved.city), (None, Some(fixtures::prose("Bremen"))));
}

#[test]
fn an_edit_clears_nothing_that_has_to_be_there_and_changes_no_reference() {
    let customer = full_customer();
    let rows: &[(&str, &[&str])] = &[
        (r#"{"customer_ref":"acme"}"#, &[]),
        (r#"{"customer_ref":"other"}"#, &["/customer_ref not_changeable"]),
        (r#"{"customer_ref":null}"#, &["/customer_ref not_changeable"]),
        (r#"{"customer_ref":7,"name":null,"tax":-1}"#, &["/customer_ref not_changeable", "/name required", "/tax out_of_range"]),
    ];
    check(|body| super::customer_edit(body, &customer.customer_ref, &customer.profile), rows);

    let entity = full_entity();
    let rows: &[(&str, &[&str])] =
        &[(r#"{"entity_ref":"other","number_prefix":null}"#, &["/entity_ref not_changeable", "/number_prefix required"])];
    check(|body| super::entity_edit(body, &entity.entity_ref, &entity.profile), rows);

    let product = fixtures::usage_product("calls");
    let rows: &[(&str, &[&str])] = &[(r#"{"usage_product_ref":"other"}"#, &["/usage_product_ref not_changeable"])];
    check(|body| super::usage_product_edit(body, &product.usage_product_ref, &product.profile), rows);
}

#[test]
fn each_field_of_an_entity_is_held_against_its_limits() {
    let rows: &[(&str, &str, &[&str])] = &[
        ("number_prefix", "null", &["/number_prefix required"]),
        ("number_prefix", r#""ub""#, &["/number_prefix invalid_format"]),
        ("number_prefix", r#""ABCDEFGHIJKLMNOPQ""#, &["/number_prefix invalid_format"]),
        ("timezone", r#""Europe/Berlin""#, &[]),
        ("timezone", r#""Mars/Olympus""#, &["/timezone invalid_format"]),
        ("grace_hours", "0", &[]),
        ("grace_hours", r#""720""#, &[]),
        ("grace_hours", "721", &["/grace_hours out_of_range"]),
        ("grace_hours", "-1", &["/grace_hours out_of_range"]),
        ("grace_hours", "0.5", &["/grace_hours out_of_range"]),
        ("grace_hours", "[]", &["/grace_hours wrong_type"]),
        ("credit_unit", r#"{}"#, &[]),
        ("credit_unit", r#"{"EUR":{"name":"credits","per_unit":"0.01"},"JPY":{"name":"yen","per_unit":1}}"#, &[]),
        ("credit_unit", "[]", &["/credit_unit wrong_type"]),
        ("credit_unit", r#"{"EUR":0.01}"#, &["/credit_unit/EUR wrong_type"]),
        ("credit_unit", r#"{"EUR":{"name":"credits","per_unit":0}}"#, &["/credit_unit/EUR/per_unit out_of_range"]),
        ("credit_unit", r#"{"EUR":{"name":"credits","per_unit":"-1"}}"#, &["/credit_unit/EUR/per_unit out_of_range"]),
        (
            "credit_unit",
            r#"{"EUR":{"name":"","price":1},"euro":{"name":"credits","per_unit":"a"}}"#,
            &[
                "/credit_unit/EUR/name too_short",
                "/credit_unit/EUR/price unknown_field",
                "/credit_unit/EUR/per_unit required",
                "/credit_unit/euro invalid_format",
                "/credit_unit/euro/per_unit invalid_format",
            ],
        ),
        ("default", r#""yes""#, &["/default wrong_type"]),
        ("address", r#""here""#, &["/address wrong_type"]),
    ];
    check_field(super::entity, r#"{"name":"Main","number_prefix":"UB"}"#, rows);
    check(super::entity, &[("{}", &["/name required", "/number_prefix required"])]);
}

#[test]
fn an_entity_has_defaults_that_null_brings_back() {
    let (reference, made) = super::entity(&json(r#"{"name":"Main","number_prefix":"UB"}"#)).expect("an entity");
    assert_eq!((reference, made.profile.time_zone, made.profile.grace_hours), (None, TimeZone::UTC, 2));
    assert_eq!(made.is_default, None);

    let entity = full_entity();
    let body = json(r#"{"timezone":null,"grace_hours":null}"#);
    let reset = super::entity_edit(&body, &entity.entity_ref, &entity.profile).expect("an edit");
    assert_eq!((reset.profile.time_zone, reset.profile.grace_hours), (TimeZone::UTC, 2));
    let kept = super::entity_edit(&json("{}"), &entity.entity_ref, &entity.profile).expect("an edit");
    assert_eq!(kept, WantedEntity { profile: entity.profile.clone(), is_default: None, tax: TaxBasisPatch::default() });
    let shown = shown_entity(&entity, true);
    let read = super::entity(&posted_back(&EntityJson::from(&shown))).expect("an entity");
    let wanted = WantedEntity { profile: entity.profile, is_default: Some(true), tax: TaxBasisPatch::default() };
    assert_eq!(read, (Some(entity.entity_ref), wanted));
}

#[test]
fn null_takes_the_default_from_an_entity_that_is_there_as_false_does() {
    let entity = full_entity();
    let rows = [(r#"{"default":true}"#, Some(true)), (r#"{"default":false}"#, Some(false)), (r#"{"default":null}"#, Some(false))];
    for (body, expected) in rows {
        let edited = super::entity_edit(&json(body), &entity.entity_ref, &entity.profile).expect("an edit");
        assert_eq!(edited.is_default, expected, "{body}");
    }
    let (_, made) = super::entity(&json(r#"{"name":"Main","number_prefix":"UB","default":null}"#)).expect("an entity");
    assert_eq!(made.is_default, None, "like an omitted field");
}

#[test]
fn a_usage_product_has_a_name_a_unit_and_an_aggregation() {
    let rows: &[(&str, &[&str])] = &[
        (r#"{"name":"Calls"}"#, &[]),
        (
            r#"{"unit":"","aggregation":"AVG","usage_product_ref":"a b"}"#,
            &["/unit too_short", "/aggregation invalid_value", "/usage_product_ref invalid_format", "/name required"],
        ),
    ];
    check(super::usage_product, rows);
    for (word, meaning) in
        [("SUM", Aggregation::Sum), ("COUNT", Aggregation::Count), ("MAX", Aggregation::Max), ("LATEST", Aggregation::Latest)]
    {
        let (_, profile) = super::usage_product(&json(&format!(r#"{{"name":"c","aggregation":"{word}"}}"#))).expect(word);
        assert_eq!(profile.aggregation, meaning);
    }
    let mut product = fixtures::usage_product("calls");
    product.profile.unit = Some(fixtures::line("call"));
    product.profile.aggregation = Aggregation::Max;
    let edit = |body| super::usage_product_edit(&json(body), &product.usage_product_ref, &product.profile).expect(body);
    assert_eq!(edit("{}"), product.profile);
    let reset = edit(r#"{"unit":null,"aggregation":null}"#);
    assert_eq!((reset.unit, reset.aggregation), (None, Aggregation::Sum));
    assert_eq!(refusals(super::usage_product(&posted_back(&UsageProductJson::from(&product)))), [""; 0]);
}

#[test]
fn customers_are_shown_whole_and_by_name() {
    assert_snapshot!(presented(&CustomerJson::from(&shown_customer(&full_customer()))), @r#"
    {
      "customer_ref": "acme",
      "name": "acme",
      "legal_name": "Acme GmbH",
      "email": "billing@example.com",
      "tax_id": "DE123456789",
      "billing_address": {
        "line1": "Am Markt 1\nHinterhaus",
        "line2": "c/o Müller",
        "city": "Zürich",
        "state": "ZH",
        "zip_code": "08001",
        "country": "Schweiz",
        "country_code": "CH"
      },
      "currency": "JPY",
      "entity_ref": "emea",
      "net_terms": 30,
      "billing_bank_transfer_details": {
        "billing_account_id": "account-1"
      },
      "billing_online_payment_details": {
        "auto_charge": false,
        "payment_gateway_id": "gateway-1",
        "payment_gateway_card_id": "card-1"
      },
      "billing_crypto_details": {
        "address": "0xabc",
        "tokens": [
          "USDC",
          "DAI"
        ]
      },
      "apply_balance": true,
      "vat_id": null,
      "registration": null,
      "electronic_address": null,
      "language": null,
      "buyer_reference": null,
      "e_invoice_profile": null,
      "metadata": {},
      "tax_treatments": [
        {
          "from": null,
          "tax": 7.70,
          "tax_category": null,
          "exemption_code": null,
          "exemption_reason": null
        }
      ],
      "tax": 7.70,
      "tax_category": null,
      "exemption_code": null,
      "exemption_reason": null,
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
    assert_snapshot!(presented(&CustomerNameJson::from(&shown_customer(&full_customer()))), @r#"
    {
      "customer_ref": "acme",
      "name": "acme"
    }
    "#);
}

#[test]
fn a_customer_with_a_name_only_is_shown_with_nulls() {
    assert_snapshot!(presented(&CustomerJson::from(&shown_customer(&fixtures::customer(&CountingIds::new(), "acme")))), @r#"
    {
      "customer_ref": "acme",
      "name": "acme",
      "legal_name": null,
      "email": null,
      "tax_id": null,
      "billing_address": null,
      "currency": null,
      "entity_ref": null,
      "net_terms": null,
      "billing_bank_transfer_details": null,
      "billing_online_payment_details": null,
      "billing_crypto_details": null,
      "apply_balance": true,
      "vat_id": null,
      "registration": null,
      "electronic_address": null,
      "language": null,
      "buyer_reference": null,
      "e_invoice_profile": null,
      "metadata": {},
      "tax_treatments": [],
      "tax": null,
      "tax_category": null,
      "exemption_code": null,
      "exemption_reason": null,
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
}

#[test]
#[expect(clippy::too_many_lines, reason = "one JSON object")]
fn entities_are_shown_whole_and_by_name() {
    let shown = shown_entity(&full_entity(), true);
    assert_snapshot!(presented(&EntityJson::from(&shown)), @r#"
    {
      "entity_ref": "emea",
      "name": "emea",
      "legal_name": "Example EMEA GmbH",
      "number_prefix": "EMEA",
      "timezone": "Europe/Berlin",
      "currency": "EUR",
      "address": {
        "line1": "Am Markt 1\nHinterhaus",
        "line2": "c/o Müller",
        "city": "Zürich",
        "state": "ZH",
        "zip_code": "08001",
        "country": "Schweiz",
        "country_code": "CH"
      },
      "tax_id": "DE987654321",
      "net_terms": "DUE_UPON_USAGE",
      "grace_hours": 720,
      "billing_bank_transfer_details": {
        "billing_account_id": "account-1"
      },
      "billing_online_payment_details": {
        "auto_charge": false,
        "payment_gateway_id": "gateway-1",
        "payment_gateway_card_id": "card-1"
      },
      "billing_crypto_details": {
        "address": "0xabc",
        "tokens": [
          "USDC",
          "DAI"
        ]
      },
      "vat_id": null,
      "registration": null,
      "electronic_address": null,
      "language": null,
      "tax_treatments": [],
      "paper": "LENIENT",
      "paper_size": null,
      "tax_label": null,
      "contact": null,
      "legal_notes": [],
      "tax_currency": null,
      "e_invoice": {
        "profile": "EN16931",
        "required": false
      },
      "logo": null,
      "accent_color": null,
      "footer": null,
      "credit_unit": {
        "EUR": {
          "name": "credits",
          "per_unit": 0.010
        }
      },
      "default": true,
      "tax_category": null,
      "exemption_code": null,
      "exemption_reason": null,
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
    assert_snapshot!(presented(&EntityNameJson::from(&shown)), @r#"
    {
      "entity_ref": "emea",
      "name": "emea"
    }
    "#);
}

#[test]
fn usage_products_are_shown_whole() {
    assert_snapshot!(presented(&UsageProductJson::from(&fixtures::usage_product("calls"))), @r#"
    {
      "usage_product_ref": "calls",
      "name": "calls",
      "unit": null,
      "unit_code": "C62",
      "aggregation": "SUM",
      "unique_by": null,
      "updated_at": "2026-01-01T00:00:00Z"
    }
    "#);
}

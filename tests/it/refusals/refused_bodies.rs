//! Bodies that must be rejected, with the expected error: one table for each kind of object.

use acceptance::catalog;
use acceptance::problem::{Refusal, invalid, refused, rule};
use acceptance::when::{self, Day};
use serde_json::{Value, json};

/// Returns a body with the member at a pointer replaced.
fn with(mut body: Value, pointer: &str, value: impl Into<Value>) -> Value {
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    let parent = body.pointer_mut(parent).expect("the parent exists").as_object_mut().expect("an object");
    parent.insert(name.to_owned(), value.into());
    body
}

/// Returns a body without one of its members.
fn without(mut body: Value, name: &str) -> Value {
    body.as_object_mut().expect("an object").remove(name).expect("a member");
    body
}

/// Returns a number as written.
fn number(text: &str) -> Value {
    Value::Number(text.parse().expect("a number literal"))
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
pub(crate) fn events() -> Vec<(Value, Refusal)> {
    let good = || catalog::event("acme", 1);
    let at = |pointer: &str, value: Value| with(good(), pointer, value);
    let mut rows = vec![
        (json!({}), invalid("/timestamp required, /customer_ref required, /usage_product_ref required, /quantity required")),
        (
            json!({"timestamp": null, "customer_ref": null, "usage_product_ref": null, "quantity": null}),
            invalid("/timestamp required, /customer_ref required, /usage_product_ref required, /quantity required"),
        ),
        (
            json!({"timestamp": 5, "customer_ref": {}, "usage_product_ref": [], "quantity": true, "additional_report_data": "x",
                "validations": 7}),
            invalid(
                "/timestamp wrong_type, /customer_ref wrong_type, /usage_product_ref wrong_type, /quantity wrong_type, \
                 /additional_report_data wrong_type, /validations wrong_type",
            ),
        ),
        (
            json!({"timestamp": "yesterday", "customer_ref": "a b", "usage_product_ref": "ü", "quantity": "-1",
                "validations": {"curency": "EUR", "a/b~c": 1, "entity_ref": ""}}),
            invalid(
                "/timestamp invalid_format, /customer_ref invalid_format, /usage_product_ref invalid_format, \
                 /quantity out_of_range, /validations/curency unknown_field, /validations/a~1b~0c unknown_field, \
                 /validations/entity_ref invalid_format",
            ),
        ),
        (at("/customer_ref", json!("x".repeat(65))), invalid("/customer_ref invalid_format")),
        (at("/customer_ref", json!("")), invalid("/customer_ref invalid_format")),
        (at("/customer_ref", json!("nobody")), invalid("/customer_ref unknown_reference")),
        (at("/customer_ref", json!("ACME")), invalid("/customer_ref unknown_reference")),
        (at("/usage_product_ref", json!("nothing")), invalid("/usage_product_ref unknown_reference")),
        (
            with(at("/customer_ref", json!("nobody")), "/usage_product_ref", "nothing"),
            invalid("/customer_ref unknown_reference, /usage_product_ref unknown_reference"),
        ),
        (with(without(good(), "customer_ref"), "/customer_name", "Nobody"), invalid("/customer_name unknown_reference")),
        (with(without(good(), "customer_ref"), "/customer_name", "a\u{0}b"), invalid("/customer_name invalid_format")),
        (with(without(good(), "customer_ref"), "/customer_name", "a\u{85}b"), invalid("/customer_name invalid_format")),
        (with(without(good(), "customer_ref"), "/customer_name", "é".repeat(2049)), invalid("/customer_name too_long")),
        (at("/usage_product_ref", json!("unsold")), refused(422, "no_matching_contract")),
        (at("/timestamp", json!(Day::today().plus_days(-11).noon())), refused(422, "no_matching_contract")),
        (at("/timestamp", json!(when::in_seconds(3600))), rule("timestamp_in_future", "/timestamp timestamp_in_future")),
        (at("/timestamp", json!("9999-12-31T23:59:59Z")), rule("timestamp_in_future", "/timestamp timestamp_in_future")),
        (
            at("/validations", json!({"currency": "USD"})),
            rule("validation_mismatch", "/validations/currency validation_mismatch"),
        ),
        (
            at("/validations", json!({"entity_ref": "other"})),
            rule("validation_mismatch", "/validations/entity_ref validation_mismatch"),
        ),
        (at("/validations", json!({"currency": "EURO"})), invalid("/validations/currency invalid_format")),
        (at("/validations", json!({"currency": "eur"})), invalid("/validations/currency invalid_format")),
        (at("/additional_report_data", json!([])), invalid("/additional_report_data wrong_type")),
        (at("/additional_report_data", json!("a")), invalid("/additional_report_data wrong_type")),
    ];
    for body in [json!([]), json!("event"), json!(1), json!(null), json!(true)] {
        rows.push((body, invalid(" wrong_type")));
    }
    for timestamp in [
        "2026-01-20T10:15:30",
        "2026-01-20",
        "2026-02-30T10:15:30Z",
        "2026-01-20T25:15:30Z",
        "2026-01-20T10:15:30+25:00",
        "1768904130",
        "",
    ] {
        rows.push((at("/timestamp", json!(timestamp)), invalid("/timestamp invalid_format")));
    }
    let forty_digits = "1234567890".repeat(4);
    for quantity in ["-1", "-0.0000000001", "1000000000000000", "999999999999999.9999999995", "1e15", "1e400", &forty_digits] {
        rows.push((at("/quantity", number(quantity)), invalid("/quantity out_of_range")));
        rows.push((at("/quantity", json!(quantity)), invalid("/quantity out_of_range")));
    }
    for quantity in ["", " 1", "1 ", "+1", "1_000", "1,5", "0x10", "01", "1.", ".5", "NaN", "Infinity", "١", "1e", "--1"] {
        rows.push((at("/quantity", json!(quantity)), invalid("/quantity invalid_format")));
    }
    rows
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
pub(crate) fn contracts() -> Vec<(Value, Refusal)> {
    let good = || catalog::contract("acme");
    let product = good()["products"][0].clone();
    let at = |name: &str, value: Value| with(good(), &format!("/products/0/{name}"), value);
    let (start, end) = (product["billing_start_date"].clone(), product["billing_end_date"].clone());
    let mut rows = vec![
        (json!([]), invalid(" wrong_type")),
        (json!({}), invalid("/customer_ref required")),
        (json!({"customer_ref": "acme", "products": {}}), invalid("/products wrong_type")),
        (json!({"customer_ref": "acme", "products": [7, null]}), invalid("/products/0 wrong_type, /products/1 wrong_type")),
        (
            json!({"customer_ref": "acme", "products": [{}]}),
            invalid(
                "/products/0/product_pricing_ref required, /products/0/billing_start_date required, \
                 /products/0/billing_end_date required",
            ),
        ),
        (
            json!({"customer_ref": "acme", "po_number": "a\nb", "products": [
                with(product.clone(), "/tax", 101),
                with(product.clone(), "/discount", -1),
            ]}),
            invalid("/po_number invalid_format, /products/0/tax out_of_range, /products/1/discount out_of_range"),
        ),
        (
            json!({"customer_ref": "nobody", "products": [
                with(with(product.clone(), "/product_pricing_ref", "nothing"), "/entity_ref", "none"),
            ]}),
            invalid(
                "/customer_ref unknown_reference, /products/0/product_pricing_ref unknown_reference, \
                 /products/0/entity_ref unknown_reference",
            ),
        ),
        (json!({"customer_ref": "acme", "products": vec![product.clone(); 101]}), invalid("/products too_many")),
        (
            json!({"customer_ref": "acme", "products": [product.clone(), product.clone()]}),
            rule("duplicate_product", "/products/1/product_pricing_ref duplicate_product"),
        ),
        (
            with(at("billing_start_date", end), "/products/0/billing_end_date", start),
            invalid("/products/0/billing_end_date out_of_range"),
        ),
        (at("issue_day", json!("2020-01-01")), invalid("/products/0/issue_day out_of_range")),
        (at("issue_day", json!("2200-01-01")), invalid("/products/0/issue_day out_of_range")),
        (
            at("line_items", json!([{"line_item_id": "other"}])),
            rule("unknown_line_item", "/products/0/line_items/0/line_item_id unknown_line_item"),
        ),
        (
            at("line_items", json!([{"line_item_id": "calls"}, {"line_item_id": "calls"}])),
            invalid("/products/0/line_items/1/line_item_id duplicate"),
        ),
        (
            at("line_items", json!([{"id": "calls"}])),
            invalid("/products/0/line_items/0/id unknown_field, /products/0/line_items/0/line_item_id required"),
        ),
        (at("line_items", json!(["calls"])), invalid("/products/0/line_items/0 wrong_type")),
        (
            at("billing_cycle", json!({"units": "MONTHLY", "cycle": 0})),
            invalid("/products/0/billing_cycle/units unknown_field, /products/0/billing_cycle/cycle out_of_range"),
        ),
        (
            at("billing_cycle", json!({"unit": "WEEKLY", "cycle": 1.5})),
            invalid("/products/0/billing_cycle/unit invalid_value, /products/0/billing_cycle/cycle out_of_range"),
        ),
        (at("billing_cycle", json!({"unit": "monthly"})), invalid("/products/0/billing_cycle/unit invalid_value")),
        (at("payment_time", json!("SOMETIME")), invalid("/products/0/payment_time invalid_value")),
        (at("net_terms", json!("SOON")), invalid("/products/0/net_terms invalid_format")),
        (at("note", json!("bell \u{7}")), invalid("/products/0/note invalid_format")),
        (
            with(
                with(
                    at("billing_bank_transfer_details", json!([])),
                    "/products/0/billing_online_payment_details",
                    json!({"auto_charge": "yes"}),
                ),
                "/products/0/billing_crypto_details",
                json!({"tokens": "BTC"}),
            ),
            invalid(
                "/products/0/billing_bank_transfer_details wrong_type, \
                 /products/0/billing_online_payment_details/auto_charge wrong_type, \
                 /products/0/billing_crypto_details/tokens wrong_type",
            ),
        ),
    ];
    for date in ["2026-02-30", "2026-1-1", "20260101", "2026-01-01T00:00:00Z", "01.02.2026", ""] {
        rows.push((at("billing_end_date", json!(date)), invalid("/products/0/billing_end_date invalid_format")));
    }
    for percentage in ["-1", "100.000001", "1e3", "0.0000001"] {
        rows.push((at("tax", number(percentage)), invalid("/products/0/tax out_of_range")));
        rows.push((at("discount", json!(percentage)), invalid("/products/0/discount out_of_range")));
    }
    for days in ["0", "3651", "-1", "1.5"] {
        rows.push((at("net_terms", number(days)), invalid("/products/0/net_terms out_of_range")));
    }
    rows
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
pub(crate) fn catalog() -> Vec<(&'static str, Value, Refusal)> {
    let taken = |errors| Refusal { status: 409, code: "already_exists", errors };
    let mut rows = vec![
        ("/api/customers/", json!({}), invalid("/name required")),
        ("/api/customers/", json!({"name": "", "customer_ref": "a b"}), invalid("/name too_short, /customer_ref invalid_format")),
        ("/api/customers/", json!({"name": "x".repeat(4097)}), invalid("/name too_long")),
        ("/api/customers/", json!({"name": "a\u{1b}[31m"}), invalid("/name invalid_format")),
        (
            "/api/customers/",
            json!({"name": 7, "email": "nobody", "tax": "19 %", "currency": "EURO", "net_terms": 0, "billing_address": [],
                "entity_ref": 5}),
            invalid(
                "/name wrong_type, /email invalid_format, /tax invalid_format, /currency invalid_format, \
                 /net_terms out_of_range, /billing_address wrong_type, /entity_ref wrong_type",
            ),
        ),
        ("/api/customers/", json!({"name": "New", "entity_ref": "nobody"}), invalid("/entity_ref unknown_reference")),
        ("/api/customers/", json!({"name": "New", "customer_ref": "acme"}), taken("/customer_ref already_exists")),
        ("/api/entities/", json!({}), invalid("/name required, /number_prefix required")),
        (
            "/api/entities/",
            json!({"name": "New", "number_prefix": "new", "timezone": "Mars/Base", "grace_hours": 721, "currency": "eur"}),
            invalid(
                "/number_prefix invalid_format, /timezone invalid_format, /grace_hours out_of_range, /currency invalid_format",
            ),
        ),
        ("/api/entities/", json!({"name": "New", "number_prefix": "A".repeat(17)}), invalid("/number_prefix invalid_format")),
        ("/api/entities/", json!({"name": "New", "number_prefix": "UB"}), taken("/number_prefix already_exists")),
        ("/api/usage/products/", json!({"unit": 5}), invalid("/name required, /unit wrong_type")),
        ("/api/usage/products/", json!({"name": "New", "aggregation": "AVERAGE"}), invalid("/aggregation invalid_value")),
        (
            "/api/usage/products/",
            json!({"name": "New", "usage_product_ref": "api-calls"}),
            taken("/usage_product_ref already_exists"),
        ),
        (
            "/api/usage/products/",
            json!({"name": "New", "unit_code": "call"}),
            rule("unknown_unit_code", "/unit_code unknown_unit_code"),
        ),
        ("/api/customers/", json!({"name": "New", "vat_id": "GR123456789"}), rule("invalid_vat_id", "/vat_id invalid_vat_id")),
        (
            "/api/customers/",
            json!({"name": "New", "billing_address": {"country_code": "UK"}}),
            rule("invalid_country_code", "/billing_address/country_code invalid_country_code"),
        ),
        (
            "/api/customers/",
            json!({"name": "New", "tax": 19, "tax_category": "AE", "exemption_code": "VATEX-EU-AE"}),
            rule("tax_category_rate", "/tax_category tax_category_rate"),
        ),
        (
            "/api/customers/",
            json!({"name": "New", "tax": 0, "tax_category": "E"}),
            rule("exemption_reason_required", "/exemption_reason exemption_reason_required"),
        ),
        (
            "/api/entities/",
            json!({"name": "New", "number_prefix": "NEW", "paper": "LAX", "paper_size": "A3", "logo": "R0lGODlh",
                "accent_color": "#ffffff", "contact": {"mail": "a"},
                "electronic_address": {"scheme": "XX", "value": "a"}, "legal_notes": [{"subject_code": "XXXX"}]}),
            invalid(
                "/paper invalid_value, /paper_size invalid_value, /logo invalid_format, /accent_color out_of_range, \
                 /contact/mail unknown_field, \
                 /electronic_address/scheme unknown_scheme, /legal_notes/0/subject_code unknown_subject_code, \
                 /legal_notes/0/text required",
            ),
        ),
        ("/api/bank_accounts/", json!({"billing_account_id": "a"}), invalid("/iban required")),
        ("/api/bank_accounts/", json!({"iban": "DE89370400440532013000"}), invalid("/billing_account_id required")),
        (
            "/api/bank_accounts/",
            json!({"billing_account_id": "a", "iban": "DE88370400440532013000"}),
            rule("invalid_iban", "/iban invalid_iban"),
        ),
        (
            "/api/bank_accounts/",
            json!({"billing_account_id": "a", "account_number": "1", "routing_number": "021000022", "bic": "X", "iba": "DE"}),
            invalid("/routing_number invalid_routing_number, /bic invalid_bic, /iba unknown_field"),
        ),
        (
            "/api/exchange_rates/",
            json!({"from": "EUR", "to": "EUR", "date": "2026-01-31", "rate": 0}),
            invalid("/to out_of_range, /rate out_of_range"),
        ),
        ("/api/exchange_rates/", json!({}), invalid("/from required, /to required, /date required, /rate required")),
        ("/api/pricings/", json!({}), invalid("/name required, /currency required")),
        ("/api/pricings/", json!({"name": "New", "currency": "EUR", "minimum_fee": -1}), invalid("/minimum_fee out_of_range")),
        ("/api/pricings/", catalog::plan("api-plan", "api-calls"), taken("/product_pricing_ref already_exists")),
        ("/api/pricings/", catalog::plan("new", "nothing"), invalid("/line_items/1/usage_product_ref unknown_reference")),
    ];
    rows.extend(pricings().into_iter().map(|(line_items, refusal)| {
        (
            "/api/pricings/",
            json!({"product_pricing_ref": "new", "name": "New", "currency": "EUR", "line_items": line_items}),
            refusal,
        )
    }));
    rows
}

/// Returns invalid line items of a pricing, with the expected error.
fn pricings() -> Vec<(Value, Refusal)> {
    let usage = |price: Value| {
        let item = json!({"line_item_id": "a", "name": "A", "kind": "USAGE", "usage_product_ref": "api-calls", "price": price});
        json!([item])
    };
    let fixed = |id: &str| json!({"line_item_id": id, "name": "A", "kind": "FIXED", "price": {"model": "FLAT", "amount": 1}});
    let tiers = |tiers: Value| usage(json!({"model": "GRADUATED", "tiers": tiers}));
    vec![
        (json!({}), invalid("/line_items wrong_type")),
        (json!([fixed("a"), fixed("a")]), invalid("/line_items/1/line_item_id duplicate")),
        (
            usage(json!({"model": "PER_UNIT", "unit_prize": 1})),
            invalid("/line_items/0/price/unit_prize unknown_field, /line_items/0/price/unit_price required"),
        ),
        (
            usage(json!({"model": "PER_UNIT", "unit_price": "0.0000000000001"})),
            invalid("/line_items/0/price/unit_price out_of_range"),
        ),
        (
            usage(json!({"model": "PER_UNIT", "unit_price": number("1000000000")})),
            invalid("/line_items/0/price/unit_price out_of_range"),
        ),
        (usage(json!({"model": "PER_UNIT", "unit_price": -1})), invalid("/line_items/0/price/unit_price out_of_range")),
        (usage(json!({"model": "AUCTION"})), invalid("/line_items/0/price/model invalid_value")),
        (
            tiers(json!([{"up_to": 10, "unit_price": 1, "flat": 1}, {"unit_price": 1}])),
            rule("unknown_field", "/line_items/0/price/tiers/0/flat unknown_field"),
        ),
        (
            tiers(json!([{"up_to": 10, "unit_price": 1}, {"up_to": 5, "unit_price": 1}, {"unit_price": 1}])),
            invalid("/line_items/0/price/tiers/1/up_to out_of_range"),
        ),
        (tiers(json!([])), invalid("/line_items/0/price/tiers out_of_range")),
        (tiers(json!([{"up_to": 10, "unit_price": 1}])), invalid("/line_items/0/price/tiers/0/up_to not_allowed")),
        (
            usage(json!({"model": "PACKAGE", "package_size": 0, "package_price": 5})),
            invalid("/line_items/0/price/package_size out_of_range"),
        ),
    ]
}

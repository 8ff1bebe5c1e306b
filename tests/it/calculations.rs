//! The factors of each line's amount and what was due at the issue, as the API shows them. The domain's
//! `scenarios::calculations` test the factors of every price.

use acceptance::scene::{Scene, product};
use acceptance::{Database, books, catalog, on_both_databases};
use serde_json::{Map, Value, json};

on_both_databases!(every_kind_of_line_shows_the_factors_of_its_amount, what_was_due_at_the_issue_never_changes);

/// The fields of a line that give its amount.
const FACTORS: [&str; 17] = [
    "usage_quantity",
    "included_quantity",
    "prepaid_quantity",
    "billable_quantity",
    "quantities",
    "unit_price",
    "tiers",
    "packages",
    "percentage",
    "proration",
    "minimum",
    "maximum",
    "minimum_fee",
    "billed_for_minimum_fee",
    "excluded_from_minimum_fee",
    "previously",
    "unissued",
];

/// Returns the factors that a line has.
fn factors(line: &Value) -> Value {
    let is_there = |value: &Value| !value.is_null() && *value != json!([]);
    let there = FACTORS.iter().filter(|name| is_there(&line[**name]));
    Value::from(there.map(|name| ((*name).to_owned(), line[*name].clone())).collect::<Map<_, _>>())
}

/// Returns the only line of a document with a line item; `None` for the line of the minimum fee.
#[track_caller]
fn line<'d>(document: &'d Value, line_item: Option<&str>) -> &'d Value {
    let products = document["products"].as_array().expect("products").iter();
    let mut lines = products.flat_map(|product| product["line_items"].as_array().expect("lines"));
    lines.find(|line| line["line_item_id"].as_str() == line_item).unwrap_or_else(|| panic!("no {line_item:?} in {document}"))
}

fn exactly(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

/// Returns a line item of calls with fields in addition to its price.
fn calls(line_item: &str, price: &Value, fields: &Value) -> Value {
    let item = catalog::with(catalog::calls(price), &json!({"line_item_id": line_item, "name": line_item}));
    catalog::with(item, fields)
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn every_kind_of_line_shows_the_factors_of_its_amount(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    let each = |unit_price: &str| json!({"model": "PER_UNIT", "unit_price": unit_price});
    let tiers = json!([{"up_to": 10000, "unit_price": "0.002"}, {"unit_price": "0.0012"}]);
    let seats = catalog::with(catalog::fixed("seats", "1"), &json!({"price": each("31.00")}));
    let none = json!({});
    scene.pricing(
        "plan",
        &[
            catalog::fixed("fee", "31.00"),
            seats,
            calls("included", &each("0.0025"), &json!({"included_quantity": 10000})),
            calls("tiers", &json!({"model": "GRADUATED", "tiers": tiers}), &none),
            calls("packages", &json!({"model": "PACKAGE", "package_size": 5000, "package_price": 35}), &none),
            calls("share", &json!({"model": "PERCENTAGE", "rate": "2.9", "fixed_amount": "0.30"}), &none),
            calls("least", &each("0.0001"), &json!({"minimum_amount": "50"})),
            calls("most", &each("1"), &json!({"maximum_amount": "50"})),
        ],
    );
    let quantities = json!([{"from": "2026-01-08", "quantity": 2}, {"from": "2026-01-20", "quantity": 5}]);
    let items = ["fee", "included", "tiers", "packages", "share", "least", "most"].map(|item| json!({"line_item_id": item}));
    let items: Vec<Value> = [json!({"line_item_id": "seats", "quantities": quantities})].into_iter().chain(items).collect();
    let fields = json!({"line_items": items, "minimum_fee": 1000});
    let contract_ref = scene.sell(&[catalog::with(product("plan", "2026-01-08", "2026-02-28"), &fields)]);
    scene.go_to("2026-01-10");
    scene.calls("2026-01-10", 12_000);

    let expected = [
        (Some("fee"), "24.00", r#"{"billable_quantity":1,"unit_price":31.00,"proration":{"days":24,"of_days":31}}"#),
        (
            Some("seats"),
            "84.00",
            r#"{"unit_price":31.00,"quantities":[
                {"from":"2026-01-08","to":"2026-01-19","quantity":2,"days":12,"of_days":31,"amount":24.00},
                {"from":"2026-01-20","to":"2026-01-31","quantity":5,"days":12,"of_days":31,"amount":60.00}]}"#,
        ),
        (
            Some("included"),
            "5.00",
            r#"{"usage_quantity":12000,"included_quantity":10000,"billable_quantity":2000,"unit_price":0.0025}"#,
        ),
        (
            Some("tiers"),
            "22.40",
            r#"{"usage_quantity":12000,"billable_quantity":12000,"tiers":[
                {"from":0,"up_to":10000,"unit_price":0.002,"flat_amount":0,"quantity":10000,"amount":20},
                {"from":10000,"up_to":null,"unit_price":0.0012,"flat_amount":0,"quantity":2000,"amount":2.4}]}"#,
        ),
        (
            Some("packages"),
            "105.00",
            r#"{"usage_quantity":12000,"billable_quantity":12000,"packages":{"count":3,"size":5000,"price":35}}"#,
        ),
        (
            Some("share"),
            "348.30",
            r#"{"usage_quantity":12000,"billable_quantity":12000,
                "percentage":{"rate":2.9,"base":12000,"fixed_amount":0.30,"count":1}}"#,
        ),
        (
            Some("least"),
            "38.71",
            r#"{"usage_quantity":12000,"billable_quantity":12000,"unit_price":0.0001,
                "proration":{"days":24,"of_days":31},"minimum":50}"#,
        ),
        (Some("most"), "50.00", r#"{"usage_quantity":12000,"billable_quantity":12000,"unit_price":1,"maximum":50}"#),
        (None, "96.78", r#"{"proration":{"days":24,"of_days":31},"minimum_fee":1000,"billed_for_minimum_fee":677.41}"#),
    ];
    let current = books::preview(&scene.client, "current", &contract_ref).swap_remove(0);
    assert_eq!(books::fields(&current, ["format", "applied_at_issue", "due_at_issue"]), ["4", "[]", "null"]);
    scene.run_on("2026-02-01");
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    for document in [&current, &invoice] {
        for (line_item, amount, is) in expected {
            let line = line(document, line_item);
            assert_eq!((line["amount"].to_string().as_str(), factors(line)), (amount, exactly(is)), "{line_item:?}");
        }
    }

    // Late usage lowers the line of the minimum fee by what it costs.
    scene.go_to("2026-02-05");
    scene.calls("2026-01-11", 1000);
    let debit = books::numbered(&scene.client, "UB-DBT-1");
    let included = line(&debit, Some("included"));
    assert_eq!(books::fields(included, ["quantity", "amount"]), ["1000", "2.50"]);
    let is = r#"{"usage_quantity":13000,"included_quantity":10000,"billable_quantity":3000,"unit_price":0.0025,
        "previously":{"quantity":12000,"amount":5.00,"documents":["UB-INV-1"]}}"#;
    assert_eq!(factors(included), exactly(is));
    let fee = line(&debit, None);
    let is = r#"{"proration":{"days":24,"of_days":31},"minimum_fee":1000,"billed_for_minimum_fee":710.41,
        "previously":{"amount":96.78,"documents":["UB-INV-1"]}}"#;
    assert_eq!((fee["amount"].to_string().as_str(), factors(fee)), ("-33.00", exactly(is)));
}

fn what_was_due_at_the_issue_never_changes(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    scene.fee("plan", "100.00");
    let contract_ref = scene.sell(&[product("plan", "2026-01-01", "2026-03-31")]);
    scene.run_on("2026-02-01");
    let at_issue = |scene: &Scene, number: &str| {
        let document = books::numbered(&scene.client, number);
        (document["applied_at_issue"].clone(), document["due_at_issue"].to_string())
    };
    assert_eq!(at_issue(&scene, "UB-INV-1"), (json!([]), "100.00".to_owned()));

    scene.go_to("2026-02-05");
    let charge = json!({"charge_ref": "back", "contract_ref": contract_ref, "date": "2026-01-31", "name": "Goodwill",
        "unit_price": -10, "issue": true});
    scene.client.post("/api/charges/", &charge).ok();
    let applied = |number: &str, amount: &str| exactly(&format!(r#"[{{"document_number":"{number}","amount":{amount}}}]"#));
    assert_eq!(at_issue(&scene, "UB-CRD-1"), (applied("UB-INV-1", "10.00"), "0.00".to_owned()));
    let credit = books::numbered(&scene.client, "UB-CRD-1");
    let back = line(&credit, Some("charge:back"));
    assert_eq!(
        (back["amount"].to_string().as_str(), factors(back)),
        ("10.00", exactly(r#"{"billable_quantity":1,"unit_price":10}"#))
    );
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    assert_eq!(books::fields(&invoice, ["amount_due", "due_at_issue"]), ["90.00", "100.00"]);

    // A payment of 150.00 has a surplus of 60.00, which goes to the next invoice when that is issued.
    let payment = json!({"amount": 150, "overpayment": true});
    books::pay(&scene.client, &invoice["document_ref"], &payment).ok();
    scene.run_on("2026-03-01");
    assert_eq!(at_issue(&scene, "UB-INV-2"), (applied("UB-INV-1", "60.00"), "40.00".to_owned()));
    let second = books::numbered(&scene.client, "UB-INV-2");
    let frozen = books::frozen(&second);
    books::pay(&scene.client, &second["document_ref"], &json!({"amount": 40})).ok();
    assert_eq!(books::frozen(&books::numbered(&scene.client, "UB-INV-2")), frozen);
    assert_eq!(at_issue(&scene, "UB-INV-1"), (json!([]), "100.00".to_owned()));
}

//! Charges in requests and responses. The domain's `scenarios::charging` test their amounts.

use acceptance::problem::{Table, invalid, refused, rule};
use acceptance::scene::{Scene, each, product};
use acceptance::{Answer, Database, books, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    a_charge_is_on_its_periods_draft_and_answers_its_number,
    a_charge_of_an_issued_period_waits_on_a_debit_or_is_issued_at_once,
    an_edit_settles_the_difference_and_keeps_the_history,
    a_deleted_charge_counts_no_more,
    a_draft_is_updated_with_its_charges,
    a_void_invoices_charges_are_billed_again,
    charges_are_listed_by_creation_in_pages,
    what_cant_be_charged_is_refused,
);

const PLAN: &str = "plan";
const SETUP: &str = "/api/charges/setup";

/// Creates a contract over a year from 1 January with a fee of 49.00 and calls at 0.04 each. Today is 5 January, and 1,500 calls
/// are reported on the 4th. `terms` are added to the product.
fn begin(database: &Database, terms: &Value) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-05");
    scene.pricing(PLAN, &[catalog::fixed("fee", "49.00"), each("0.04")]);
    let contract_ref = scene.sell(&[catalog::with(product(PLAN, "2026-01-01", "2026-12-31"), terms)]);
    scene.calls("2026-01-04", 1500);
    (scene, contract_ref)
}

/// Does the same as [`begin`] and issues January on 1 February. Today is 5 February.
fn january_issued(database: &Database, terms: &Value) -> (Scene, String) {
    let (scene, contract_ref) = begin(database, terms);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-05");
    (scene, contract_ref)
}

fn charge(contract_ref: &str, date: &str, unit_price: &str, fields: &Value) -> Value {
    let charge = json!({
        "charge_ref": "setup", "contract_ref": contract_ref, "date": date, "name": "Setup", "unit_price": unit_price
    });
    catalog::with(charge, fields)
}

fn try_record(scene: &Scene, body: &Value) -> Answer {
    scene.client.post("/api/charges/", body)
}

#[track_caller]
fn record(scene: &Scene, contract_ref: &str, date: &str, unit_price: &str) -> Value {
    try_record(scene, &charge(contract_ref, date, unit_price, &json!({}))).ok()
}

fn edit(scene: &Scene, fields: &Value) -> Answer {
    scene.client.post("/api/charges/edit/setup", fields)
}

fn numbers(charge: &Value) -> &str {
    charge["related_document_numbers"].as_str().unwrap_or("none")
}

fn amounts(scene: &Scene, number: &str) -> Vec<String> {
    books::amounts(&books::numbered(&scene.client, number))
}

fn a_draft_is_updated_with_its_charges(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    let updated_at =
        |scene: &Scene, number: &str| books::numbered(&scene.client, number)["updated_at"].as_str().expect("a time").to_owned();
    let mut last = updated_at(&scene, "UB-INV-1");
    let mut moves = |scene: &Scene, number: &str, what: &str| {
        let now = updated_at(scene, number);
        assert!(now > last, "{what}: {now}, {last}");
        last = now;
    };
    scene.go_to("2026-01-06");
    record(&scene, &contract_ref, "2026-01-10", "200");
    moves(&scene, "UB-INV-1", "a new charge");
    scene.go_to("2026-01-07");
    edit(&scene, &json!({"unit_price": "100"})).ok();
    moves(&scene, "UB-INV-1", "another price");
    scene.go_to("2026-01-08");
    edit(&scene, &json!({"date": "2026-02-10"})).ok();
    moves(&scene, "UB-INV-1", "a move to another period");
    scene.go_to("2026-01-09");
    assert_eq!(scene.client.delete("/api/charges/setup").status, 204);
    moves(&scene, "UB-INV-2", "a deletion");
    // The adjustment of an issued period collects charges, too.
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-05");
    for (reference, hour) in [("one", "13"), ("two", "14")] {
        scene.go_to_instant(&format!("2026-02-05T{hour}:00:00Z"));
        try_record(&scene, &charge(&contract_ref, "2026-01-10", "7", &json!({"charge_ref": reference}))).ok();
        moves(&scene, "UB-DBT-1", reference);
    }
}

fn a_charge_is_on_its_periods_draft_and_answers_its_number(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    let fields = json!({
        "quantity": 2.5, "unit": "h", "note": "two\nlines", "reason": "they asked", "product_pricing_ref": PLAN,
        "bill_with": "USAGE", "discountable": true, "goods": true, "issue": true,
    });
    let made = try_record(&scene, &charge(&contract_ref, "2026-01-10", "200.001", &fields)).ok();
    let draft = books::numbered(&scene.client, "UB-INV-1");
    let expected = json!({
        "charge_ref": "setup", "contract_ref": contract_ref, "contract_number": "C-1", "customer_ref": catalog::ACME,
        "customer_name": "Acme Ltd", "product_pricing_ref": PLAN, "product_no": 0, "date": "2026-01-10", "name": "Setup", "quantity": 2.5, "unit_price": 200.001, "unit": "h", "amount": made["amount"],
        "billed_amount": made["amount"],
        "currency": "EUR", "bill_with": "USAGE", "discountable": true, "goods": true, "note": "two\nlines", "reason": "they asked",
        "related_document_ref": draft["document_ref"], "related_document_numbers": "UB-INV-1", "document_state": "DRAFT",
        "created_at": "2026-01-05T12:00:00Z", "updated_at": "2026-01-05T12:00:00Z", "revision": 1,
        "history": [{
            "revision": 1, "changed_at": "2026-01-05T12:00:00Z", "changed_by": made["history"][0]["changed_by"],
            "changed_by_name": null, "action": "CREATED", "before": null,
            "after": {"date": "2026-01-10", "name": "Setup", "quantity": 2.5, "unit_price": 200.001, "note": "two\nlines"},
        }],
    });
    assert_eq!(made["amount"].to_string(), "500.00");
    let mut shown = made.clone();
    assert_eq!(shown["updated_at"], shown["created_at"]);
    for field in ["created_at", "updated_at"] {
        shown[field] = expected[field].clone();
    }
    shown["history"][0]["changed_at"] = expected["history"][0]["changed_at"].clone();
    assert_eq!(shown, expected);
    assert!(made["history"][0]["changed_by"].as_str().is_some_and(|by| by.starts_with("api_key:")), "{made}");
    assert_eq!(scene.client.get(SETUP).ok(), made);

    // The charge is a line item of its own with its calculation. Previews show it, too.
    assert_eq!(books::amounts(&draft), ["fee 49.00", "calls 60.00", "charge:setup 500.00"]);
    let line = &draft["products"][0]["line_items"][2];
    assert_eq!(
        books::fields(line, ["name", "quantity", "unit", "unit_price", "date", "service_period_start", "service_period_end"]),
        ["Setup", "2.5", "h", "200.001", "2026-01-10", "2026-01-01", "2026-01-31"]
    );
    assert_eq!(scene.preview("current", &contract_ref), ["UB-INV-1 2026-01-01 609.00 DRAFT"]);
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 609.00"]);
    assert_eq!(amounts(&scene, "UB-INV-1"), ["fee 49.00", "calls 60.00", "charge:setup 500.00"]);
    assert_eq!(scene.client.get(SETUP).ok()["document_state"], "ISSUED");

    // A charge in a period without a document opens the period's document. Even a charge of zero causes the document to be
    // issued.
    let other = json!({"charge_ref": "free"});
    let other = try_record(&scene, &charge(&contract_ref, "2026-04-10", "0", &other)).ok();
    assert_eq!(numbers(&other), "UB-INV-2");
    assert_eq!(scene.papers()[1], "UB-INV-2 2026-04-01 49.00 DRAFT");
}

fn a_charge_of_an_issued_period_waits_on_a_debit_or_is_issued_at_once(database: &Database) {
    let (scene, contract_ref) = january_issued(database, &json!({"tax": 19}));
    let made = record(&scene, &contract_ref, "2026-01-10", "500");
    assert_eq!((numbers(&made), &made["document_state"]), ("UB-DBT-1", &json!("DRAFT")));
    let debit = books::numbered(&scene.client, "UB-DBT-1");
    assert_eq!(books::shown(&debit), ["UB-DBT-1", "DEBIT", "ADJUSTMENT", "DRAFT", "595.00"]);
    assert_eq!(debit["parent_document_number"], "UB-INV-1");
    assert_eq!(books::amounts(&debit), ["charge:setup 500.00"]);
    assert_eq!(debit["products"][0]["line_items"][0]["name"], "Setup");

    let at_once = json!({"charge_ref": "goodwill", "issue": true});
    let credit = try_record(&scene, &charge(&contract_ref, "2026-01-31", "-20", &at_once)).ok();
    assert_eq!((numbers(&credit), &credit["document_state"]), ("UB-CRD-1", &json!("SETTLED")));
    assert_eq!(books::numbered(&scene.client, "UB-INV-1")["credits_amount"].to_string(), "23.80");
    assert_eq!(scene.papers(), ["UB-CRD-1 2026-01-01 23.80", "UB-DBT-1 2026-01-01 595.00 DRAFT", "UB-INV-1 2026-01-01 129.71"]);
    scene.run_on("2026-02-06");
    assert_eq!(books::numbered(&scene.client, "UB-DBT-1")["state"], "ISSUED");
}

fn an_edit_settles_the_difference_and_keeps_the_history(database: &Database) {
    let (scene, contract_ref) = january_issued(database, &json!({}));
    let first = record(&scene, &contract_ref, "2026-01-10", "500");
    // The open debit follows the edit. An edit without changes creates no revision.
    assert_eq!(edit(&scene, &json!({"unit_price": 450, "note": "less", "charge_ref": "setup"})).ok()["amount"], 450.00);
    assert_eq!(edit(&scene, &json!({"unit_price": "450.00"})).ok()["revision"], 2);
    assert_eq!(amounts(&scene, "UB-DBT-1"), ["charge:setup 450.00"]);
    scene.run_on("2026-02-06");
    let named = edit(&scene, &json!({"name": "Set-up", "note": null})).ok();
    assert_eq!((numbers(&named), &named["revision"]), ("UB-DBT-1", &json!(3)));
    assert_eq!(books::numbered(&scene.client, "UB-DBT-1")["products"][0]["line_items"][0]["name"], "Setup", "content is frozen");
    let less = edit(&scene, &json!({"unit_price": 400, "issue": true})).ok();
    assert_eq!((numbers(&less), &less["document_state"]), ("UB-DBT-1, UB-CRD-1", &json!("SETTLED")));
    assert_eq!(amounts(&scene, "UB-CRD-1"), ["charge:setup 50.00"]);
    assert_eq!(scene.sums(), ["509.00", "0.00", "0.00", "509.00"]);

    let history = less["history"].as_array().expect("a list");
    let reported: Vec<String> = history
        .iter()
        .map(|change| {
            let price = |side: &str| change[side]["unit_price"].to_string();
            let [action, note] = [change["action"].to_string(), change["after"]["note"].to_string()];
            format!("{} {action} {} {} {note}", change["revision"], price("before"), price("after"))
        })
        .collect();
    assert_eq!(
        reported,
        [
            "1 \"CREATED\" null 500 null",
            "2 \"UPDATED\" 500 450 \"less\"",
            "3 \"UPDATED\" 450 450 null",
            "4 \"UPDATED\" 450 400 null"
        ]
    );
    assert_eq!(less["created_at"], first["created_at"]);
    assert_eq!(scene.client.get(SETUP).ok(), less);
}

fn a_deleted_charge_counts_no_more(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    record(&scene, &contract_ref, "2026-01-10", "500");
    assert_eq!(scene.client.delete(SETUP).status, 204);
    let gone = refused(404, "charge_not_found");
    let mut table = Table::default();
    table.get(&scene.client, SETUP, gone);
    table.post(&scene.client, "/api/charges/edit/setup", &json!({"unit_price": 1}), gone);
    table.post(
        &scene.client,
        "/api/charges/",
        &charge(&contract_ref, "2026-01-10", "1", &json!({})),
        acceptance::problem::Refusal { status: 409, code: "already_exists", errors: "/charge_ref already_exists" },
    );
    table.finish();
    assert_eq!(scene.client.delete(SETUP).status, 404);
    assert_eq!(scene.client.get("/api/charges/filter").ok(), json!([]));
    assert_eq!(amounts(&scene, "UB-INV-1"), ["fee 49.00", "calls 60.00"]);

    // Deleting a charge on an issued document creates a credit for it.
    try_record(&scene, &charge(&contract_ref, "2026-01-10", "500", &json!({"charge_ref": "other"}))).ok();
    scene.run_on("2026-02-01");
    assert_eq!(scene.client.delete("/api/charges/other").status, 204);
    assert_eq!(amounts(&scene, "UB-CRD-1"), ["charge:other 500.00"]);
    scene.run_on("2026-02-02");
    assert_eq!(scene.sums()[0], "109.00");
}

fn a_void_invoices_charges_are_billed_again(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    record(&scene, &contract_ref, "2026-01-10", "500");
    scene.run_on("2026-02-01");
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    books::void(&scene.client, &invoice["document_ref"]).ok();
    let waits = scene.client.get(SETUP).ok();
    assert_eq!(books::fields(&waits, ["related_document_ref", "related_document_numbers", "document_state"]), ["null"; 3]);
    books::run(&scene.client);
    assert_eq!(numbers(&scene.client.get(SETUP).ok()), "UB-INV-2");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 609.00 VOID", "UB-INV-2 2026-01-01 609.00"]);
    // A debit for a charge is an adjustment, so the corrected invoice can't be voided.
    try_record(&scene, &charge(&contract_ref, "2026-01-11", "1", &json!({"charge_ref": "late"}))).ok();
    let replacement = books::numbered(&scene.client, "UB-INV-2");
    let refused = books::void(&scene.client, &replacement["document_ref"]);
    assert_eq!((refused.status, &refused.body["code"]), (409, &json!("document_has_dependents")), "{}", refused.text);
}

fn charges_are_listed_by_creation_in_pages(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    scene.fee("other", "1");
    let other = scene.sell(&[product("other", "2026-01-01", "2026-12-31")]);
    for (minute, contract, name, date) in
        [(1, &contract_ref, "b", "2026-01-31"), (2, &other, "c", "2026-02-01"), (3, &contract_ref, "a", "2026-02-02")]
    {
        scene.go_to_instant(&format!("2026-01-05T12:0{minute}:00Z"));
        try_record(&scene, &charge(contract, date, "1", &json!({"charge_ref": name}))).ok();
    }
    scene.go_to_instant("2026-01-05T12:04:00Z");
    let assigned = json!({"charge_ref": null});
    let assigned = try_record(&scene, &charge(&other, "2026-03-01", "1", &assigned)).ok();
    let list = |query: &str| {
        let found = scene.client.get(&format!("/api/charges/filter?{query}"));
        let total = found.header("X-Total-Count").to_owned();
        let found = found.ok();
        let names = found.as_array().expect("a list").iter().map(|charge| {
            assert_eq!(
                scene.client.get(&format!("/api/charges/{}", charge["charge_ref"].as_str().expect("a name"))).ok(),
                *charge
            );
            if charge["charge_ref"] == assigned["charge_ref"] { "…" } else { charge["charge_ref"].as_str().expect("a name") }
        });
        format!("{} of {total}", names.collect::<Vec<_>>().join(" "))
    };
    assert_eq!(list(""), "b c a … of 4");
    assert_eq!(list("pageSize=2&pageNumber=1"), "a … of 4");
    assert_eq!(list(&format!("contract_ref={contract_ref}")), "b a of 2");
    assert_eq!(list("customer_ref=acme&from=2026-02-01&to=2026-02-28"), "c a of 2");
    assert_eq!(list("customer_ref=nobody"), " of 0");
    assert_eq!(list("contract_ref=nonsense"), " of 0");
}

fn what_cant_be_charged_is_refused(database: &Database) {
    let (scene, contract_ref) = begin(database, &json!({}));
    scene.fee("other", "1");
    let both = scene.sell(&[product(PLAN, "2026-01-01", "2026-06-30"), product("other", "2026-04-01", "2026-12-31")]);
    let unknown = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
    let with = |fields: Value| charge(&contract_ref, "2026-01-10", "1", &fields);
    let of_both = |date: &str, pricing: &str| charge(&both, date, "1", &json!({"product_pricing_ref": pricing}));
    let no_match = rule("no_matching_contract", "/date no_matching_contract");
    let rows = [
        (json!({}), invalid("/contract_ref required, /date required, /name required, /unit_price required")),
        (with(json!({"unit_prise": 1})), rule("unknown_field", "/unit_prise unknown_field")),
        (with(json!({"charge_ref": "a b"})), invalid("/charge_ref invalid_format")),
        (with(json!({"contract_ref": "nonsense"})), invalid("/contract_ref invalid_format")),
        (with(json!({"contract_ref": unknown})), invalid("/contract_ref unknown_reference")),
        (with(json!({"date": "2026-02-30"})), invalid("/date invalid_format")),
        (with(json!({"name": ""})), invalid("/name too_short")),
        (with(json!({"quantity": -1})), invalid("/quantity out_of_range")),
        (with(json!({"unit_price": "1000000000"})), invalid("/unit_price out_of_range")),
        (with(json!({"unit_price": "-0.0000000000001"})), invalid("/unit_price out_of_range")),
        (with(json!({"unit_price": "much"})), invalid("/unit_price invalid_format")),
        (with(json!({"bill_with": "BOTH"})), invalid("/bill_with invalid_value")),
        (with(json!({"discountable": "yes", "issue": 1})), invalid("/discountable wrong_type, /issue wrong_type")),
        (with(json!({"quantity": "999999999999999", "unit_price": "999999999"})), refused(422, "amount_out_of_range")),
        (with(json!({"unit_price": "-109.01"})), rule("credit_above_billed", "/unit_price credit_above_billed")),
        (with(json!({"date": "2025-12-31"})), no_match),
        (with(json!({"date": "2027-01-01"})), no_match),
        (with(json!({"product_pricing_ref": "other"})), rule("unknown_product", "/product_pricing_ref unknown_product")),
        (of_both("2026-03-31", "other"), no_match),
        (of_both("2026-07-01", PLAN), no_match),
        (charge(&both, "2026-04-10", "1", &json!({})), invalid("/product_pricing_ref ambiguous_product")),
    ];
    let mut table = Table::default();
    for (body, refusal) in rows {
        table.post(&scene.client, "/api/charges/", &body, refusal);
    }
    for (body, refusal) in [
        (json!({"bill_with": "FIXED"}), rule("unknown_field", "/bill_with unknown_field")),
        (json!({"charge_ref": "other"}), invalid("/charge_ref not_changeable")),
        (json!({"name": null, "quantity": -1}), invalid("/name required, /quantity out_of_range")),
        (json!({"unit_price": 1}), refused(404, "charge_not_found")),
    ] {
        table.post(&scene.client, "/api/charges/edit/setup", &body, refusal);
    }
    table.finish();
    let reserved =
        json!({"product_pricing_ref": "x", "name": "x", "currency": "EUR", "line_items": [catalog::fixed("charge:x", "1")]});
    let reserved = scene.client.post("/api/pricings/", &reserved);
    assert_eq!((reserved.status, &reserved.body["errors"][0]["code"]), (422, &json!("reserved")), "{}", reserved.text);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 109.00 DRAFT"], "nothing is stored, and no number is used");
    // If several products bill the day, the pricing selects the product.
    assert_eq!(try_record(&scene, &of_both("2026-04-10", "other")).ok()["product_pricing_ref"], "other");
}

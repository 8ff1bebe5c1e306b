//! Seats and other fixed line items that are counted, in steps by date.

use acceptance::scene::{product, refused};
use acceptance::{Answer, Database, Scene, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    seats_in_two_steps_are_billed_by_their_days,
    more_seats_in_an_issued_month_are_a_debit_at_once,
    fewer_seats_in_an_issued_month_are_a_credit_at_once,
    a_step_without_proration_begins_with_the_next_period,
    without_quantities_there_is_one,
    seats_in_tiers_are_priced_step_by_step,
    an_edits_quantities_replace_the_steps_from_their_first_day,
    an_own_price_and_a_quantity_go_together,
    a_quantity_that_cannot_be_is_refused,
    seats_of_a_planned_step_wait_for_their_day,
);

/// On 1 April: seats at 30.00, in this quantity, over the year from April, with these terms.
fn seats(database: &Database, quantities: &Value, terms: &Value) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-04-01");
    scene.pricing("p", &[fixed(&json!({"model": "PER_UNIT", "unit_price": "30.00"}))]);
    let line_items = json!([{"line_item_id": "seats", "quantities": quantities}]);
    let product = catalog::with(product("p", "2026-04-01", "2027-03-31"), &json!({"line_items": line_items}));
    let contract_ref = scene.sell(&[catalog::with(product, terms)]);
    (scene, contract_ref)
}

fn fixed(price: &Value) -> Value {
    json!({"line_item_id": "seats", "name": "Seats", "kind": "FIXED", "price": price})
}

fn ten() -> Value {
    json!([{"from": "2026-04-01", "quantity": 10}])
}

fn before_use() -> Value {
    json!({"payment_time": "BEFORE_USE"})
}

/// Adds a step.
fn try_step(scene: &Scene, contract_ref: &str, fields: &Value) -> Answer {
    let step = catalog::with(json!({"product_pricing_ref": "p", "line_item_id": "seats"}), fields);
    scene.client.post(&format!("/api/contracts/quantities/{contract_ref}"), &step)
}

fn seats_in_two_steps_are_billed_by_their_days(database: &Database) {
    let quantities = json!([{"from": "2026-04-01", "quantity": 10}, {"from": "2026-04-16", "quantity": 12}]);
    let (mut scene, contract_ref) = seats(database, &quantities, &json!({}));
    // 30.00 × (10 × 15 + 12 × 15) ÷ 30.
    assert_eq!(scene.preview("current", &contract_ref), ["null 2026-04-01 330.00"]);
    assert_eq!(scene.preview("next", &contract_ref), ["null 2026-05-01 360.00"]);
    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 330.00", "UB-INV-2 2026-05-01 360.00"], "one document each");
    let read = scene.contract(&contract_ref)["products"][0]["line_items"][0]["quantities"].clone();
    let steps: Vec<[String; 2]> =
        read.as_array().expect("steps").iter().map(|step| books::fields(step, ["from", "quantity"])).collect();
    assert_eq!(steps, [["2026-04-01", "10"], ["2026-04-16", "12"]]);
}

fn more_seats_in_an_issued_month_are_a_debit_at_once(database: &Database) {
    let (mut scene, contract_ref) = seats(database, &ten(), &before_use());
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 300.00"]);
    scene.go_to("2026-04-16");

    // From today, when nothing is said.
    let answer = try_step(&scene, &contract_ref, &json!({"quantity": 12})).ok();

    assert_eq!(answer["version"].to_string(), "2");
    let debit = books::numbered(&scene.client, "UB-DBT-1");
    assert_eq!(
        books::fields(&debit, ["purpose", "total", "issue_date", "parent_document_number"]),
        ["ADJUSTMENT", "30.00", "2026-04-16", "UB-INV-1"]
    );
    assert_eq!(scene.preview("next", &contract_ref), ["null 2026-05-01 360.00"]);
    try_step(&scene, &contract_ref, &json!({"quantity": 12})).ok();
    assert_eq!(scene.papers().len(), 2, "the same again is no change");

    // 8 from that day instead of 12: 270.00 instead of 330.00.
    try_step(&scene, &contract_ref, &json!({"quantity": 8})).ok();
    assert_eq!(books::fields(&books::numbered(&scene.client, "UB-CRD-1"), ["total", "state"])[0], "60.00");
    assert_eq!(scene.sums()[3], "270.00");
}

fn fewer_seats_in_an_issued_month_are_a_credit_at_once(database: &Database) {
    let (mut scene, contract_ref) = seats(database, &ten(), &before_use());
    books::run(&scene.client);
    scene.go_to("2026-04-20");

    try_step(&scene, &contract_ref, &json!({"quantity": 8, "from": "2026-04-16"})).ok();

    let credit = books::numbered(&scene.client, "UB-CRD-1");
    assert_eq!(books::fields(&credit, ["total", "issue_date", "parent_document_number"]), ["30.00", "2026-04-20", "UB-INV-1"]);
    assert_eq!(scene.sums()[3], "270.00");
}

fn a_step_without_proration_begins_with_the_next_period(database: &Database) {
    let (mut scene, contract_ref) = seats(database, &ten(), &before_use());
    books::run(&scene.client);
    scene.go_to("2026-04-16");

    try_step(&scene, &contract_ref, &json!({"quantity": 12, "prorate": false})).ok();

    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 300.00"]);
    scene.run_on("2026-05-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 300.00", "UB-INV-2 2026-05-01 360.00"]);
}

fn without_quantities_there_is_one(database: &Database) {
    let (mut scene, contract_ref) = seats(database, &json!([]), &json!({}));
    try_step(&scene, &contract_ref, &json!({"quantity": 4, "from": "2026-04-21"})).ok();
    // 30.00 × (1 × 20 + 4 × 10) ÷ 30.
    assert_eq!(scene.preview("current", &contract_ref), ["null 2026-04-01 60.00"]);
    try_step(&scene, &contract_ref, &json!({"quantity": 0, "from": "2026-05-01"})).ok();
    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 60.00"], "no seats in May, no invoice");
}

fn seats_in_tiers_are_priced_step_by_step(database: &Database) {
    let mut scene = Scene::begin(database, "2026-04-01");
    let tiers = json!([{"up_to": 10, "unit_price": "30.00"}, {"unit_price": "20.00"}]);
    scene.pricing("p", &[fixed(&json!({"model": "GRADUATED", "tiers": tiers}))]);
    let quantities = json!([{"from": "2026-04-01", "quantity": 10}, {"from": "2026-04-16", "quantity": 12}]);
    let line_items = json!([{"line_item_id": "seats", "quantities": quantities}]);
    scene.sell(&[catalog::with(product("p", "2026-04-01", "2026-04-30"), &json!({"line_items": line_items}))]);
    scene.run_on("2026-05-01");
    // (300.00 × 15 + 340.00 × 15) ÷ 30.
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 320.00"]);
}

fn an_edits_quantities_replace_the_steps_from_their_first_day(database: &Database) {
    let quantities = json!([
        {"from": "2026-04-01", "quantity": 10}, {"from": "2026-04-16", "quantity": 12}, {"from": "2026-05-01", "quantity": 20},
    ]);
    let (mut scene, contract_ref) = seats(database, &quantities, &json!({}));

    let element = json!({"line_item_id": "seats", "quantities": [{"from": "2026-04-21", "quantity": 15}]});
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "line_items": [element]}]}));

    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    // 10 for 15 days, 12 for 5, 15 for 10: 30.00 × 360 ÷ 30. In May 15, not 20.
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 360.00", "UB-INV-2 2026-05-01 450.00"]);
}

fn an_own_price_and_a_quantity_go_together(database: &Database) {
    let mut scene = Scene::begin(database, "2026-04-01");
    scene.pricing("p", &[fixed(&json!({"model": "FLAT", "amount": "30.00"}))]);
    let element = json!({"line_item_id": "seats", "price": {"model": "FLAT", "amount": "25.00"},
        "quantities": [{"from": "2026-04-01", "quantity": 4}]});
    scene.sell(&[catalog::with(product("p", "2026-04-01", "2026-04-30"), &json!({"line_items": [element]}))]);
    scene.run_on("2026-05-01");
    // FLAT is its amount, times the quantity.
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 100.00"]);
}

fn a_quantity_that_cannot_be_is_refused(database: &Database) {
    let (scene, contract_ref) = seats(database, &ten(), &json!({}));
    for fields in [
        json!({"quantity": -1}),
        json!({}),
        json!({"quantity": 5, "from": "2026-03-31"}),
        json!({"quantity": 5, "line_item_id": "none"}),
        json!({"quantity": 5, "product_pricing_ref": "none"}),
        json!({"quantity": 5, "form": "2026-04-16"}),
    ] {
        let answer = try_step(&scene, &contract_ref, &fields);
        assert_eq!(answer.status, 422, "{fields}: {}", answer.text);
    }
    refused(&try_step(&scene, "none", &json!({"quantity": 5})), 404, "contract_not_found");
    assert_eq!(scene.contract(&contract_ref)["version"].to_string(), "1");
}

fn seats_of_a_planned_step_wait_for_their_day(database: &Database) {
    let (mut scene, contract_ref) = seats(database, &ten(), &before_use());
    books::run(&scene.client);
    try_step(&scene, &contract_ref, &json!({"quantity": 12, "from": "2026-05-16"})).ok();
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 300.00"], "May isn't issued");
    scene.run_on("2026-05-01");
    // 30.00 × (10 × 15 + 12 × 16) ÷ 31 = 330.967…
    assert_eq!(scene.papers(), ["UB-INV-1 2026-04-01 300.00", "UB-INV-2 2026-05-01 330.97"]);
}

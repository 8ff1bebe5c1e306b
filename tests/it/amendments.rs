//! Responses to requests that edit contracts. The domain's `scenarios::edits` test the effects of edits and cancels on documents.

use acceptance::when::Day;
use acceptance::{Client, Database, books, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(an_edit_holds_from_the_next_period, an_edit_that_would_leave_usage_without_a_place_is_refused,);

fn current(client: &Client, contract_ref: &str) -> Value {
    catalog::only(Value::Array(books::preview(client, "current", contract_ref)))
}

fn next(client: &Client, contract_ref: &str) -> Value {
    catalog::only(Value::Array(books::preview(client, "next", contract_ref)))
}

fn contract(client: &Client, contract_ref: &str) -> Value {
    client.get(&format!("/api/contracts/{contract_ref}")).ok()
}

#[track_caller]
fn conflicts(answer: &acceptance::Answer, code: &str) {
    assert_eq!((answer.status, answer.text_of("code").as_str()), (409, code), "{}", answer.text);
}

fn plan_with(fields: &Value) -> Value {
    catalog::with(json!({"product_pricing_ref": catalog::API_PLAN}), fields)
}

fn an_edit_holds_from_the_next_period(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    books::report(&client, &catalog::event("acme", 1500));
    let before = current(&client, &contract_ref);

    let edit = json!({"po_number": "PO-7", "products": [plan_with(&json!({"discount": 50, "tax": 7}))]});
    let edited = books::edit(&client, &contract_ref, &edit).ok();

    let period = Day::today().plus_days(-10).plus_months(1);
    assert_eq!(edited, contract(&client, &contract_ref));
    assert_eq!(books::fields(&edited, ["version", "po_number", "state"]), ["2", "PO-7", "ACTIVE"]);
    assert_eq!(books::fields(&edited["products"][0], ["discount", "tax", "effective_from"]), ["50", "7", &period.to_string()]);
    assert_eq!(books::totals(&current(&client, &contract_ref)), books::totals(&before));
    assert_eq!(books::totals(&next(&client, &contract_ref)), ["49.00", "24.50", "1.72", "26.22", "26.22"]);
    assert_eq!(next(&client, &contract_ref)["period_start"], json!(period.to_string()));

    // Omitted fields are unchanged; null clears a field.
    let edit = json!({"po_number": null, "products": [plan_with(&json!({"tax": null}))]});
    let edited = books::edit(&client, &contract_ref, &edit).ok();
    assert_eq!(books::fields(&edited["products"][0], ["discount", "tax"]), ["50", "null"]);
    assert_eq!(books::fields(&edited, ["version", "po_number"]), ["3", "null"]);
    assert_eq!(books::totals(&next(&client, &contract_ref))[2], "4.66", "the customer's tax of 19 % on 24.50");
}

fn an_edit_that_would_leave_usage_without_a_place_is_refused(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    books::report(&client, &catalog::event("acme", 1500));
    let before = (contract(&client, &contract_ref), catalog::documents(&client));

    let edit = plan_with(&json!({"line_items": [{"line_item_id": "platform-fee"}]}));
    let refused = books::edit(&client, &contract_ref, &json!({"include_current_invoice": true, "products": [edit]}));

    conflicts(&refused, "usage_already_reported");
    assert!(refused.text_of("detail").contains("api-calls"), "{}", refused.text);
    assert_eq!((contract(&client, &contract_ref), catalog::documents(&client)), before);
    for (edit, code, pointer) in [
        (json!({"customer_ref": "other"}), "validation_failed", "/customer_ref"),
        (
            json!({"products": [plan_with(&json!({"line_items": [{"line_item_id": "none"}]}))]}),
            "unknown_line_item",
            "/products/0/line_items/0/line_item_id",
        ),
        (json!({"products": [{"product_pricing_ref": "none"}]}), "validation_failed", "/products/0/billing_start_date"),
    ] {
        let refused = books::edit(&client, &contract_ref, &edit);
        assert_eq!((refused.status, refused.text_of("code").as_str()), (422, code), "{}", refused.text);
        assert_eq!(refused.body["errors"][0]["pointer"], pointer);
    }
    assert_eq!((contract(&client, &contract_ref), catalog::documents(&client)), before);
    books::edit(&client, &contract_ref, &json!({"products": [edit]})).ok();
    assert_eq!(books::amounts(&current(&client, &contract_ref)), ["platform-fee 49.00", "calls 60.00"]);
    assert_eq!(books::amounts(&next(&client, &contract_ref)), ["platform-fee 49.00"]);
}

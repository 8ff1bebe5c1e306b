//! Contracts that are edited and cancelled, from the next invoice on or with the current one.

use acceptance::when::Day;
use acceptance::{Client, Database, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    an_edit_holds_from_the_next_period,
    an_edit_with_the_current_invoice_recomputes_its_draft,
    an_edit_with_the_current_invoice_settles_an_issued_one_at_once,
    another_tax_rate_is_a_credit_at_the_old_and_a_debit_at_the_new,
    an_edit_that_would_leave_usage_without_a_place_is_refused,
    a_product_is_added_and_another_left_out,
    a_cancelled_contract_bills_its_current_period_to_the_end,
    a_contract_cancelled_now_bills_its_days_and_its_usage_at_once,
    what_was_billed_in_advance_for_days_after_the_cancel_is_credited,
    a_contract_that_has_not_begun_is_cancelled_without_documents,
);

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

/// A contract of two fixed items, 30.00 and 12.00, whose invoice is issued in advance.
fn sell_in_advance(client: &Client) -> (String, Value) {
    catalog::make_pricing(client, "both", &json!([catalog::fixed("a", "30.00"), catalog::fixed("b", "12.00")]));
    let product = catalog::with(catalog::months("both", 0, 1), &json!({"payment_time": "BEFORE_USE"}));
    let contract_ref = catalog::sell(client, &[product]);
    assert_eq!(books::run(client).len(), 1);
    (contract_ref, books::numbered(client, "UB-INV-1"))
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

    // What is left out is kept; null clears.
    let edit = json!({"po_number": null, "products": [plan_with(&json!({"tax": null}))]});
    let edited = books::edit(&client, &contract_ref, &edit).ok();
    assert_eq!(books::fields(&edited["products"][0], ["discount", "tax"]), ["50", "null"]);
    assert_eq!(books::fields(&edited, ["version", "po_number"]), ["3", "null"]);
    assert_eq!(books::totals(&next(&client, &contract_ref))[2], "4.66", "the customer's 19 % of 24.50");
}

fn an_edit_with_the_current_invoice_recomputes_its_draft(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let event = books::report(&client, &catalog::event("acme", 1500));

    let edit = json!({"include_current_invoice": true, "products": [plan_with(&json!({
        "discount": 10, "tax": 7, "note": "Thank you", "line_items": [{"line_item_id": "calls"}],
    }))]});
    books::edit(&client, &contract_ref, &edit).ok();

    let draft = current(&client, &contract_ref);
    assert_eq!((&draft["document_ref"], &draft["document_number"]), (&event["related_document_ref"], &json!("UB-INV-1")));
    assert_eq!(books::amounts(&draft), ["calls 60.00"]);
    assert_eq!(books::totals(&draft), ["60.00", "6.00", "3.78", "57.78", "57.78"]);
    assert_eq!(draft["note"], "Thank you");
    assert_eq!(catalog::documents(&client).len(), 1, "nothing is issued, so nothing is corrected");
}

fn an_edit_with_the_current_invoice_settles_an_issued_one_at_once(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let (contract_ref, invoice) = sell_in_advance(&client);
    let edit = |items: Value| {
        let product = json!({"product_pricing_ref": "both", "line_items": items});
        books::edit(&client, &contract_ref, &json!({"include_current_invoice": true, "products": [product]})).ok()
    };

    edit(json!([{"line_item_id": "a"}]));
    let credit = books::numbered(&client, "UB-CRD-1");
    assert_eq!(
        books::fields(&credit, ["purpose", "issue_date", "parent_document_number"]),
        ["ADJUSTMENT", &Day::today().to_string(), "UB-INV-1",]
    );
    assert_eq!((books::amounts(&credit), books::totals(&credit)[3].as_str()), (vec!["b 12.00".to_owned()], "14.28"));
    assert_eq!(books::fields(&books::numbered(&client, "UB-INV-1"), ["credits_amount", "amount_due"]), ["14.28", "35.70"]);

    edit(Value::Null);
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!(books::shown(&debit), ["UB-DBT-1", "DEBIT", "ADJUSTMENT", "ISSUED", "14.28"]);
    assert_eq!(books::amounts(&debit), ["b 12.00"]);
    edit(Value::Null);
    assert_eq!(catalog::documents(&client).len(), 3, "the same again corrects nothing");
    let after = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::related(&after), ["UB-CRD-1", "UB-DBT-1"]);
    assert_eq!(books::frozen(&after), books::frozen(&invoice), "to the byte");
}

fn another_tax_rate_is_a_credit_at_the_old_and_a_debit_at_the_new(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let (contract_ref, invoice) = sell_in_advance(&client);

    let product = json!({"product_pricing_ref": "both", "tax": 7});
    let edit = json!({"include_current_invoice": true, "products": [product]});
    books::edit(&client, &contract_ref, &edit).ok();

    let (credit, debit) = (books::numbered(&client, "UB-CRD-1"), books::numbered(&client, "UB-DBT-1"));
    assert_eq!(books::totals(&credit)[..4], ["42.00", "0.00", "7.98", "49.98"]);
    assert_eq!(books::totals(&debit)[..4], ["42.00", "0.00", "2.94", "44.94"]);
    assert_eq!(books::totals(&next(&client, &contract_ref))[3], "44.94");
    let after = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::fields(&after, ["state", "amount_due"]), ["PAID", "0.00"], "credited in full");
    assert_eq!(books::frozen(&after), books::frozen(&invoice), "to the byte");
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

fn a_product_is_added_and_another_left_out(database: &Database) {
    let (_server, client) = catalog::stage(database);
    for name in ["old", "new"] {
        catalog::make_pricing(&client, name, &json!([catalog::fixed(name, "10.00")]));
    }
    let contract_ref = catalog::sell(&client, &[catalog::months("old", 0, 2)]);

    books::edit(&client, &contract_ref, &json!({"products": [catalog::months("new", 0, 2)]})).ok();

    let names: Vec<Value> = contract(&client, &contract_ref)["products"]
        .as_array()
        .expect("products")
        .iter()
        .map(|product| product["product_pricing_ref"].clone())
        .collect();
    assert_eq!(names, ["new"]);
    let mut billed = books::preview(&client, "current", &contract_ref).iter().flat_map(books::amounts).collect::<Vec<_>>();
    billed.sort();
    assert_eq!(billed, ["new 10.00", "old 10.00"], "what is left out ends with its period");
    assert_eq!(books::amounts(&next(&client, &contract_ref)), ["new 10.00"]);
}

fn a_cancelled_contract_bills_its_current_period_to_the_end(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 2)]);

    let cancelled = books::cancel(&client, &contract_ref, false).ok();

    let last_day = Day::today().plus_days(-10).plus_months(1).plus_days(-1);
    assert_eq!(books::fields(&cancelled, ["state", "effective_end_date"]), ["CANCELLING", &last_day.to_string()]);
    assert_ne!(cancelled["cancelled_at"], Value::Null);
    books::report(&client, &catalog::event("acme", 1500));
    assert_eq!(books::amounts(&current(&client, &contract_ref)), ["platform-fee 49.00", "calls 60.00"]);
    assert_eq!(books::preview(&client, "next", &contract_ref), Vec::<Value>::new());
    conflicts(&books::cancel(&client, &contract_ref, false), "contract_over");
    conflicts(&books::edit(&client, &contract_ref, &json!({"po_number": "PO-8"})), "contract_over");

    // It may still be cancelled now.
    let cancelled = books::cancel(&client, &contract_ref, true).ok();
    assert_eq!(cancelled["effective_end_date"], json!(Day::today().to_string()));
    assert_eq!(books::numbered(&client, "UB-INV-1")["state"], "ISSUED");
    conflicts(&books::cancel(&client, &contract_ref, true), "contract_over");
}

/// An amount of cents for the eleven days of a month that began ten days ago.
fn for_eleven_days(cents: i64) -> i64 {
    let start = Day::today().plus_days(-10);
    let days = start.days_until(start.plus_months(1));
    (2 * cents * 11 + days) / (2 * days)
}

fn money(cents: i64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

fn a_contract_cancelled_now_bills_its_days_and_its_usage_at_once(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 2)]);
    books::report(&client, &catalog::event("acme", 1500));

    books::cancel(&client, &contract_ref, true).ok();

    let invoice = books::numbered(&client, "UB-INV-1");
    assert_eq!(
        books::fields(&invoice, ["state", "is_partial_period", "period_end"]),
        ["ISSUED", "true", &Day::today().to_string()]
    );
    assert_eq!(books::amounts(&invoice), [format!("platform-fee {}", money(for_eleven_days(4900))), "calls 60.00".to_owned()]);
    // Usage of the days it had is still taken, none of before it.
    let late = books::report(&client, &catalog::event_on("acme", Day::today().plus_days(-1), 500));
    assert_eq!(late["related_document_numbers"], "UB-DBT-1");
    let refused = client.post("/api/usage/event", &catalog::event_on("acme", Day::today().plus_days(-11), 1));
    assert_eq!(refused.text_of("code"), "no_matching_contract");
    assert_eq!(books::run(&client), Vec::<Value>::new());
}

fn what_was_billed_in_advance_for_days_after_the_cancel_is_credited(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let (contract_ref, invoice) = sell_in_advance(&client);

    books::cancel(&client, &contract_ref, true).ok();

    let credit = books::numbered(&client, "UB-CRD-1");
    assert_ne!(credit["state"], "DRAFT");
    let unused = |cents| money(cents - for_eleven_days(cents));
    assert_eq!(books::amounts(&credit), [format!("a {}", unused(3000)), format!("b {}", unused(1200))]);
    let after = books::numbered(&client, "UB-INV-1");
    assert_eq!(after["credits_amount"], credit["total"]);
    assert_eq!(books::frozen(&after), books::frozen(&invoice), "to the byte");
    assert_eq!(books::run(&client), Vec::<Value>::new());
    assert_eq!(catalog::documents(&client).len(), 2);
}

fn a_contract_that_has_not_begun_is_cancelled_without_documents(database: &Database) {
    let (_server, client) = catalog::stage(database);
    for now in [false, true] {
        let start = Day::today().plus_days(5);
        let product = catalog::with(
            catalog::months(catalog::API_PLAN, 0, 1),
            &json!({
                "billing_start_date": start.to_string(),
                "billing_end_date": start.plus_months(2).to_string(),
                "issue_day": null, "payment_time": "BEFORE_USE",
            }),
        );
        let contract_ref = catalog::sell(&client, &[product]);
        assert_eq!(contract(&client, &contract_ref)["state"], "PENDING");

        let cancelled = books::cancel(&client, &contract_ref, now).ok();

        assert_eq!(cancelled["state"], "CANCELLED");
        for which in ["current", "next"] {
            assert_eq!(books::preview(&client, which, &contract_ref), Vec::<Value>::new());
        }
        conflicts(&books::cancel(&client, &contract_ref, true), "contract_over");
    }
    assert_eq!(books::run(&client), Vec::<Value>::new());
    assert_eq!(catalog::documents(&client), Vec::<Value>::new());
}

//! What contracts show and leave behind: previews, cancels with a last day, resumes, void drafts.

use acceptance::scene::{each, product, refused};
use acceptance::{Database, Scene, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_gap_between_two_terms_shows_the_second_next,
    a_gap_in_one_product_shows_what_follows_next,
    before_the_start_the_first_period_is_next,
    current_shows_what_contains_today_and_nothing_else,
    a_void_draft_stays_as_it_was,
    a_credit_for_unused_days_names_those_days,
    a_last_day_in_the_past_ends_the_contract_there,
    a_last_day_ahead_bills_its_days_and_issues_nothing_early,
    a_last_day_before_the_first_annuls_the_contract,
    a_last_day_before_usage_is_refused,
    a_cancelled_contract_may_be_cancelled_earlier,
    a_cancel_after_the_next_invoice_credits_the_next_period_alone,
    a_cancel_now_after_the_next_invoice_bills_no_usage_again,
    a_cancel_after_the_next_invoice_and_more_usage_bills_that_alone,
    a_cancel_after_an_invoice_of_usage_alone_makes_no_document,
    a_cancel_after_an_invoice_of_a_minimum_fee_makes_no_document,
    a_cancel_now_after_the_current_invoice_credits_the_unused_days_alone,
    a_cancel_at_the_periods_end_after_the_current_invoice_makes_no_document,
    a_cancel_of_a_later_term_bills_nothing_of_it,
    a_cancel_and_its_dry_run_tell_the_same,
    an_entity_that_moves_to_another_time_zone_lets_its_contracts_be_cancelled,
    a_resume_within_the_last_day_gives_the_rest_back_as_a_debit,
    a_resume_of_a_cancel_at_the_periods_end_leaves_no_trace,
    a_resume_after_the_last_day_is_refused,
    a_replaced_invoice_bills_the_present_terms,
    an_invoice_voided_twice_over_bills_its_period_once,
);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

/// A fee of 31.00 a month in advance; January's is issued.
fn in_advance(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "31.00"), each("0.10")]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"payment_time": "BEFORE_USE"}))]);
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00"]);
    (scene, contract_ref)
}

fn a_gap_between_two_terms_shows_the_second_next(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let terms = [product("p", "2026-01-01", "2026-02-28"), product("p", "2026-04-01", "2026-05-31")];
    let contract_ref = scene.sell(&terms);
    for (day, current, next) in [
        ("2026-02-10", Some("2026-02-01"), Some("2026-04-01")),
        ("2026-03-10", None, Some("2026-04-01")),
        ("2026-04-10", Some("2026-04-01"), Some("2026-05-01")),
        ("2026-05-10", Some("2026-05-01"), None),
        ("2026-06-10", None, None),
    ] {
        scene.run_on(day);
        previews(&scene, &contract_ref, current, next);
    }
    assert_eq!(scene.papers().len(), 4);
}

/// Asserts which periods are current and next, by their first days; each is 100.00.
#[track_caller]
fn previews(scene: &Scene, contract_ref: &str, current: Option<&str>, next: Option<&str>) {
    for (which, start) in [("current", current), ("next", next)] {
        let expected: Vec<String> = start.iter().map(|start| format!("null {start} 100.00")).collect();
        assert_eq!(scene.preview(which, contract_ref), expected, "{which}, with {current:?} and {next:?}");
    }
}

fn a_gap_in_one_product_shows_what_follows_next(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[product("p", "2026-01-01", "2026-02-28")]);
    scene.run_on("2026-02-01");
    scene.run_on("2026-03-10");
    previews(&scene, &contract_ref, None, None);

    scene.edit(&contract_ref, &json!({"effective_from": "2026-04-01", "products": [product("p", "2026-01-01", "2026-05-31")]}));

    previews(&scene, &contract_ref, None, Some("2026-04-01"));
    scene.run_on("2026-04-10");
    previews(&scene, &contract_ref, Some("2026-04-01"), Some("2026-05-01"));
}

fn before_the_start_the_first_period_is_next(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[product("p", "2026-03-01", "2026-12-31")]);
    assert_eq!(scene.preview("current", &contract_ref), Vec::<String>::new());
    assert_eq!(scene.preview("next", &contract_ref), ["null 2026-03-01 100.00"]);
}

fn current_shows_what_contains_today_and_nothing_else(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    for (pricing, amount) in [("month", "100.00"), ("year", "1200.00"), ("short", "20.00")] {
        scene.fee(pricing, amount);
    }
    let yearly = with(year("year"), json!({"billing_cycle": {"unit": "YEARLY", "cycle": 1}}));
    let ended = scene.sell(&[yearly, product("month", "2026-01-01", "2026-01-31")]);
    // Its periods are counted back from 11 March: the last is 11 February to 10 March.
    let cut = scene.sell(&[year("month"), product("short", "2026-01-01", "2026-03-10")]);
    scene.run_on("2026-02-01");
    assert_eq!(scene.preview("current", &ended), ["null 2026-01-01 1200.00"]);
    scene.run_on("2026-03-01");
    assert_eq!(scene.preview("current", &cut), ["null 2026-02-11 20.00", "null 2026-03-01 100.00"]);

    scene.run_on("2026-03-20");

    assert_eq!(scene.preview("current", &ended), ["null 2026-01-01 1200.00"], "January's invoice isn't current");
    assert_eq!(scene.preview("current", &cut), ["null 2026-03-01 100.00"], "what ended on the 10th isn't, on the 20th");
}

fn a_void_draft_stays_as_it_was(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.10")]);
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    assert_eq!(books::delete(&scene.client, &event["event_ref"]).status, 204);
    scene.run_on("2026-02-01");
    let void = books::numbered(&scene.client, "UB-INV-1");
    assert_eq!(void["state"], "VOID");

    scene.edit_customer("acme", &json!({"name": "Acme & Sons", "legal_name": "Acme & Sons Ltd", "tax": 19}));
    scene.edit_entity(&scene.entity(), &json!({"name": "Another name", "legal_name": "Another name Inc"})).ok();
    let products = json!([{"product_pricing_ref": "p", "note": "Another note", "discount": 10, "tax": 7}]);
    scene.edit(&contract_ref, &json!({"po_number": "PO-7", "include_current_invoice": true, "products": products}));
    let late = scene.calls("2026-01-06", 10);
    assert_eq!(late["related_document_numbers"], "UB-INV-2");

    assert_eq!(books::frozen(&books::numbered(&scene.client, "UB-INV-1")), books::frozen(&void), "to the byte");
}

fn a_credit_for_unused_days_names_those_days(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-10");

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));

    let credit = books::numbered(&scene.client, "UB-CRD-1");
    let line = catalog::only(credit["products"][0]["line_items"].clone());
    assert_eq!(
        books::fields(&line, ["line_item_id", "service_period_start", "service_period_end", "amount"]),
        ["fee", "2026-01-11", "2026-01-31", "21.00"]
    );
    assert_eq!(scene.papers().len(), 2);
}

fn a_last_day_in_the_past_ends_the_contract_there(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-05");

    let cancelled = scene.cancel(&contract_ref, &json!({"last_day": "2026-01-10"}));

    assert_eq!(books::fields(&cancelled, ["state", "effective_end_date"]), ["CANCELLED", "2026-01-10"]);
    // Ten of January's 31 days are owed, nothing of February.
    assert_eq!(scene.sums()[3], "10.00");
    let mut credited: Vec<[String; 3]> = catalog::documents(&scene.client)
        .iter()
        .filter(|document| document["kind"] == "CREDIT")
        .map(|credit| books::fields(credit, ["parent_document_number", "total", "issue_date"]))
        .collect();
    credited.sort();
    assert_eq!(credited, [["UB-INV-1", "21.00", "2026-02-05"], ["UB-INV-2", "31.00", "2026-02-05"]]);
    scene.calls("2026-01-10", 100);
    refused(&scene.try_calls("2026-01-11", 100), 422, "no_matching_contract");
    scene.run_on("2026-02-06");
    assert_eq!(scene.sums()[3], "20.00", "usage of its days is still billed");
}

fn a_last_day_ahead_bills_its_days_and_issues_nothing_early(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "28.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");

    let cancelled = scene.cancel(&contract_ref, &json!({"last_day": "2026-02-14"}));

    assert_eq!(books::fields(&cancelled, ["state", "effective_end_date"]), ["CANCELLING", "2026-02-14"]);
    assert_eq!(scene.papers(), Vec::<String>::new());
    assert_eq!(scene.preview("next", &contract_ref), ["null 2026-02-01 14.00"]);
    scene.run_on("2026-02-14");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 28.00"]);
    scene.run_on("2026-02-15");
    // 14 of February's 28 days.
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 28.00", "UB-INV-2 2026-02-01 14.00"]);
    assert_eq!(scene.contract(&contract_ref)["state"], "CANCELLED");
}

fn a_last_day_before_the_first_annuls_the_contract(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-05");
    assert_eq!(scene.try_cancel(&contract_ref, &json!({"last_day": "2025-12-30"})).status, 422);

    scene.cancel(&contract_ref, &json!({"last_day": "2025-12-31"}));

    assert_eq!(scene.sums()[3], "0.00");
    assert_eq!(scene.papers().len(), 4, "a credit for each invoice");
    assert_eq!(scene.contract(&contract_ref)["state"], "CANCELLED");
    refused(&scene.try_calls("2026-01-10", 1), 422, "no_matching_contract");
}

fn a_last_day_before_usage_is_refused(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-10");
    scene.calls("2026-01-08", 10);
    let before = (scene.contract(&contract_ref), catalog::documents(&scene.client));

    refused(&scene.try_cancel(&contract_ref, &json!({"last_day": "2026-01-07"})), 409, "usage_already_reported");

    assert_eq!((scene.contract(&contract_ref), catalog::documents(&scene.client)), before);
    scene.cancel(&contract_ref, &json!({"last_day": "2026-01-08"}));
    // Eight of 31 days, and the usage.
    assert_eq!(scene.sums()[3], "9.00");
}

fn a_cancelled_contract_may_be_cancelled_earlier(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-10");
    scene.cancel(&contract_ref, &json!({"last_day": "2026-01-25"}));
    assert_eq!(scene.sums()[3], "25.00");

    scene.cancel(&contract_ref, &json!({"last_day": "2026-01-20"}));

    assert_eq!(scene.sums()[3], "20.00");
    for last_day in ["2026-01-20", "2026-01-25"] {
        let again = scene.try_cancel(&contract_ref, &json!({"last_day": last_day}));
        assert_eq!(again.status, 409, "{last_day}: {}", again.text);
    }
}

/// A fee of 100.00 during use. February's invoice, with 10.00 of January's usage, is issued by hand; it is 20 January.
fn next_invoice_is_issued(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"payment_time": "DURING_USE"}))]);
    books::run(&scene.client);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    assert_eq!(event["related_document_numbers"], "UB-INV-2", "February's");
    books::issue(&scene.client, &event["related_document_ref"]).ok();
    scene.go_to("2026-01-20");
    (scene, contract_ref)
}

fn a_cancel_after_the_next_invoice_credits_the_next_period_alone(database: &Database) {
    let (mut scene, contract_ref) = next_invoice_is_issued(database);

    scene.cancel(&contract_ref, &json!({}));

    let papers = ["UB-CRD-1 2026-02-01 100.00", "UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 110.00"];
    assert_eq!(scene.papers(), papers, "January's usage stays where it is billed");
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), papers, "and isn't billed again");
}

fn a_cancel_now_after_the_next_invoice_bills_no_usage_again(database: &Database) {
    let (mut scene, contract_ref) = next_invoice_is_issued(database);

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));
    scene.run_on("2026-02-01");

    // 20 of January's 31 days are 64.52, and 10.00 of usage.
    assert_eq!(scene.sums()[3], "74.52");
    let mut shown: Vec<[String; 3]> = catalog::documents(&scene.client)
        .iter()
        .map(|document| books::fields(document, ["kind", "total", "parent_document_number"]))
        .collect();
    shown.sort();
    assert_eq!(
        shown,
        [
            ["CREDIT", "100.00", "UB-INV-2"],
            ["CREDIT", "35.48", "UB-INV-1"],
            ["INVOICE", "100.00", "null"],
            ["INVOICE", "110.00", "null"]
        ],
        "no usage is credited and billed anew"
    );
}

fn a_cancel_after_the_next_invoice_and_more_usage_bills_that_alone(database: &Database) {
    let (mut scene, contract_ref) = next_invoice_is_issued(database);
    scene.calls("2026-01-19", 100);

    scene.cancel(&contract_ref, &json!({}));
    scene.run_on("2026-02-01");

    let mut totals: Vec<[String; 2]> =
        catalog::documents(&scene.client).iter().map(|document| books::fields(document, ["kind", "total"])).collect();
    totals.sort();
    assert_eq!(totals, [["CREDIT", "100.00"], ["DEBIT", "10.00"], ["INVOICE", "100.00"], ["INVOICE", "110.00"]]);
}

fn a_cancel_after_an_invoice_of_usage_alone_makes_no_document(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.10")]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"payment_time": "DURING_USE"}))]);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    books::issue(&scene.client, &event["related_document_ref"]).ok();
    scene.go_to("2026-01-20");

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));

    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-02-01 10.00"]);
}

fn a_cancel_after_an_invoice_of_a_minimum_fee_makes_no_document(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let plan = json!({"product_pricing_ref": "p", "name": "p", "currency": "EUR", "minimum_fee": "50.00",
        "line_items": [each("0.10")]});
    scene.client.post("/api/pricings/", &plan).ok();
    let contract_ref = scene.sell(&[with(year("p"), json!({"payment_time": "DURING_USE"}))]);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    books::issue(&scene.client, &event["related_document_ref"]).ok();
    assert_eq!(scene.papers(), ["UB-INV-1 2026-02-01 50.00"]);
    scene.go_to("2026-01-20");

    scene.cancel(&contract_ref, &json!({}));

    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-02-01 50.00"]);
}

/// A fee of 31.00 and 10.00 of usage, whose invoice is issued by hand in its period; it is 20 January.
fn current_invoice_is_issued(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "31.00"), each("0.10")]);
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    books::issue(&scene.client, &event["related_document_ref"]).ok();
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 41.00"]);
    scene.go_to("2026-01-20");
    (scene, contract_ref)
}

fn a_cancel_now_after_the_current_invoice_credits_the_unused_days_alone(database: &Database) {
    let (mut scene, contract_ref) = current_invoice_is_issued(database);

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));

    scene.run_on("2026-02-01");
    assert_eq!(books::amounts(&books::numbered(&scene.client, "UB-CRD-1")), ["fee 11.00"]);
    assert_eq!(scene.papers().len(), 2, "{:?}", scene.papers());
}

fn a_cancel_at_the_periods_end_after_the_current_invoice_makes_no_document(database: &Database) {
    let (mut scene, contract_ref) = current_invoice_is_issued(database);

    scene.cancel(&contract_ref, &json!({}));

    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 41.00"]);
}

fn a_cancel_of_a_later_term_bills_nothing_of_it(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "31.00");
    scene.fee("q", "20.00");
    let contract_ref = scene.sell(&[year("p"), product("q", "2026-02-01", "2026-12-31")]);
    scene.go_to("2026-01-10");
    scene.cancel(&contract_ref, &json!({}));
    scene.run_on("2026-02-01");
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00"], "q would start later, and never does");
}

fn a_cancel_and_its_dry_run_tell_the_same(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-10");
    let before = (scene.contract(&contract_ref), catalog::documents(&scene.client));

    let shown = scene.cancel(&contract_ref, &json!({"last_day": "2026-01-20", "dry_run": true}));

    assert_eq!((scene.contract(&contract_ref), catalog::documents(&scene.client)), before);
    assert_eq!(shown["dry_run"], true);
    let shown = catalog::only(shown["issued"].clone());
    assert_eq!(books::fields(&shown, ["kind", "total", "parent_document_number"]), ["CREDIT", "11.00", "UB-INV-1"]);
    scene.cancel(&contract_ref, &json!({"last_day": "2026-01-20"}));
    assert_eq!(books::amounts(&books::numbered(&scene.client, "UB-CRD-1")), books::amounts(&shown));
}

fn an_entity_that_moves_to_another_time_zone_lets_its_contracts_be_cancelled(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let entity = scene.entity();
    // Fourteen hours ahead: noon of the 31st is February there.
    scene.edit_entity(&entity, &json!({"timezone": "Pacific/Kiritimati"})).ok();
    scene.pricing("p", &[each("0.10")]);
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to_instant("2026-01-31T12:00:00Z");
    let mut event = acceptance::scene::calls("2026-01-31", 100);
    event["timestamp"] = json!("2026-01-31T11:00:00Z");
    let event = books::report(&scene.client, &event);
    assert_eq!(books::document(&scene.client, &event["related_document_ref"])["period_start"], "2026-02-01");
    scene.go_to("2026-02-10");
    scene.edit_entity(&entity, &json!({"timezone": "UTC"})).ok();

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));

    assert_eq!(scene.papers(), ["UB-INV-1 2026-02-01 10.00"], "its day was decided when it was taken");
}

fn a_resume_within_the_last_day_gives_the_rest_back_as_a_debit(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-10");
    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));
    assert_eq!(scene.sums()[3], "10.00");
    scene.go_to_instant("2026-01-10T23:00:00Z");

    let dry = scene.try_resume(&contract_ref, &json!({"dry_run": true})).ok();
    assert_eq!(books::fields(&catalog::only(dry["issued"].clone()), ["kind", "total"]), ["DEBIT", "21.00"]);
    let resumed = scene.try_resume(&contract_ref, &json!({})).ok();

    assert_eq!(books::fields(&resumed, ["state", "effective_end_date", "cancelled_at"]), ["ACTIVE", "2026-12-31", "null"]);
    let debit = books::numbered(&scene.client, "UB-DBT-1");
    assert_eq!(
        books::fields(&debit, ["purpose", "total", "issue_date", "parent_document_number"]),
        ["ADJUSTMENT", "21.00", "2026-01-10", "UB-INV-1"]
    );
    scene.run_on("2026-02-01");
    assert_eq!(scene.sums()[3], "62.00", "January and February");
}

fn a_resume_of_a_cancel_at_the_periods_end_leaves_no_trace(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");
    scene.cancel(&contract_ref, &json!({}));
    scene.go_to("2026-01-31");

    scene.try_resume(&contract_ref, &json!({})).ok();

    assert_eq!(scene.papers(), Vec::<String>::new());
    assert_eq!(scene.preview("next", &contract_ref), ["null 2026-02-01 100.00"]);
    scene.run_on("2026-02-01");
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

fn a_resume_after_the_last_day_is_refused(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    refused(&scene.try_resume("none", &json!({})), 404, "contract_not_found");
    scene.go_to("2026-01-10");
    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));
    let before = (scene.contract(&contract_ref)["version"].clone(), scene.papers());
    scene.go_to("2026-01-11");

    refused(&scene.try_resume(&contract_ref, &json!({})), 409, "contract_over");

    assert_eq!((scene.contract(&contract_ref)["version"].clone(), scene.papers()), before);
}

fn a_replaced_invoice_bills_the_present_terms(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database);
    scene.go_to("2026-01-05");
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    books::void(&scene.client, &invoice["document_ref"]).ok();
    let products = json!([{"product_pricing_ref": "p", "discount": 50}]);
    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": products}));

    books::run(&scene.client);

    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00 VOID", "UB-INV-2 2026-01-01 15.50"]);
    assert_eq!(books::numbered(&scene.client, "UB-INV-2")["replaces_document_ref"], invoice["document_ref"]);
}

fn an_invoice_voided_twice_over_bills_its_period_once(database: &Database) {
    let (scene, _) = in_advance(database);
    for number in ["UB-INV-1", "UB-INV-2"] {
        let invoice = books::numbered(&scene.client, number);
        books::void(&scene.client, &invoice["document_ref"]).ok();
        assert_eq!(books::run(&scene.client).len(), 1);
    }
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00 VOID", "UB-INV-2 2026-01-01 31.00 VOID", "UB-INV-3 2026-01-01 31.00"]);
}

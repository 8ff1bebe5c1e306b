//! What lies around an amount: discount and tax of a family of documents, changes of rates, what is due when an
//! entity changes. Each sum is worked out by hand.

use acceptance::scene::{each, product, refused};
use acceptance::{Database, Scene, books, catalog, on_both_databases, scene};
use serde_json::{Value, json};

on_both_databases!(
    an_entity_that_moves_to_another_time_zone_loses_no_invoice,
    a_shorter_grace_issues_what_it_makes_due,
    a_discount_on_a_thousand_children_of_a_cent_is_that_of_their_sum,
    a_discount_of_49_percent_on_a_hundred_children_of_a_cent_is_49_cents,
    a_tax_on_a_thousand_children_of_a_cent_is_that_of_their_sum,
    the_tax_of_small_adjustments_is_that_of_their_sum,
    an_invoice_whose_tax_changed_twice_is_owed_at_the_last,
    a_tax_that_changed_and_went_back_is_owed_as_if_nothing_was,
    a_cancel_after_a_change_of_tax_gives_back_at_the_present_tax,
    late_usage_after_a_change_of_tax_stands_at_the_present_tax,
    children_that_were_issued_before_a_change_of_tax_follow_it,
    a_usage_debit_that_was_issued_before_its_invoice_follows_a_change_of_tax,
    a_changed_discount_is_taken_back_at_the_old_and_given_at_the_new,
    a_note_leaves_the_tax_of_an_issued_invoice_whatever_the_customers_default,
    a_family_keeps_the_default_tax_of_its_first_document,
    a_default_tax_is_that_of_the_issue_whether_usage_came_or_not,
    a_prefix_that_has_given_a_number_stays_with_its_entity,
    a_prefix_without_a_number_may_change_and_be_taken_by_another,
    during_use_bills_usage_at_the_rates_of_its_own_period,
    during_use_owes_the_same_whatever_day_the_rates_were_agreed,
    no_invoice_is_below_zero_when_the_price_is_cut_after_its_children,
    an_event_that_costs_nothing_makes_no_invoice_of_its_own,
    before_use_due_upon_usage_spends_no_debit_number,
    a_minimum_fee_paid_before_use_is_a_debit_in_current_and_next,
);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

fn january(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-01-31")
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

/// Agrees on another tax, from the start of the current period.
#[track_caller]
fn tax(scene: &Scene, contract_ref: &str, percent: u32) {
    let products = json!([{"product_pricing_ref": "p", "tax": percent}]);
    scene.edit(contract_ref, &json!({"include_current_invoice": true, "products": products}));
}

/// A fee for January in advance at 19 %, issued on the first.
fn in_advance(database: &Database, amount: &str) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", amount);
    let contract_ref = scene.sell(&[with(january("p"), json!({"payment_time": "BEFORE_USE", "tax": 19}))]);
    assert_eq!(books::run(&scene.client).len(), 1);
    (scene, contract_ref)
}

fn an_entity_that_moves_to_another_time_zone_loses_no_invoice(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");
    scene.edit_entity(&scene.entity(), &json!({"timezone": "Europe/Berlin"})).ok();

    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00"]);
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

fn a_shorter_grace_issues_what_it_makes_due(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let entity = scene.entity();
    scene.edit_entity(&entity, &json!({"grace_hours": 720})).ok();
    scene.fee("p", "100.00");
    scene.sell(&[year("p")]);
    assert_eq!(scene.run_on("2026-02-10"), Vec::<Value>::new(), "not before 3 March");

    scene.edit_entity(&entity, &json!({"grace_hours": 2})).ok();

    books::run(&scene.client);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00"]);
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

/// So many children of a cent each with these terms, and their parent, all issued.
fn children_of_a_cent(database: &Database, count: u32, terms: &Value) -> [String; 4] {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.01")]);
    let due_upon_usage = with(january("p"), json!({"net_terms": "DUE_UPON_USAGE"}));
    scene.sell(&[catalog::with(due_upon_usage, terms)]);
    scene.go_to("2026-01-05");
    let events = vec![scene::calls("2026-01-05", 1); 100];
    for _ in 0..count / 100 {
        let answer = scene.client.post("/api/usage/event/batch", &json!({"events": events})).ok();
        let results = answer["results"].as_array().expect("results");
        assert!(results.iter().all(|result| result["event_ref"].is_string()), "{answer}");
    }
    scene.run_on("2026-02-01");
    assert_eq!(catalog::documents(&scene.client).len(), count as usize + 1);
    scene.sums()
}

fn a_discount_on_a_thousand_children_of_a_cent_is_that_of_their_sum(database: &Database) {
    assert_eq!(children_of_a_cent(database, 1000, &json!({"discount": 50})), ["10.00", "5.00", "0.00", "5.00"]);
}

fn a_discount_of_49_percent_on_a_hundred_children_of_a_cent_is_49_cents(database: &Database) {
    assert_eq!(children_of_a_cent(database, 100, &json!({"discount": 49})), ["1.00", "0.49", "0.00", "0.51"]);
}

fn a_tax_on_a_thousand_children_of_a_cent_is_that_of_their_sum(database: &Database) {
    assert_eq!(children_of_a_cent(database, 1000, &json!({"tax": 19})), ["10.00", "0.00", "1.90", "11.90"]);
}

fn the_tax_of_small_adjustments_is_that_of_their_sum(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.10")]);
    scene.sell(&[with(january("p"), json!({"tax": 19}))]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 1);
    scene.run_on("2026-02-01");
    assert_eq!(scene.sums(), ["0.10", "0.00", "0.02", "0.12"]);

    for _ in 0..5 {
        let late = scene.calls("2026-01-06", 1);
        books::issue(&scene.client, &late["related_document_ref"]).ok();
    }

    // 19 % of 0.60 is 0.114; six times 0.019, each rounded, would be 0.12.
    assert_eq!(scene.papers().len(), 6);
    assert_eq!(scene.sums(), ["0.60", "0.00", "0.11", "0.71"]);
}

fn an_invoice_whose_tax_changed_twice_is_owed_at_the_last(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database, "31.00");
    scene.go_to("2026-01-05");
    tax(&scene, &contract_ref, 7);
    // 31.00 at 7 % is 2.17.
    assert_eq!(scene.sums(), ["31.00", "0.00", "2.17", "33.17"]);
    tax(&scene, &contract_ref, 0);
    assert_eq!(scene.sums(), ["31.00", "0.00", "0.00", "31.00"]);
}

fn a_tax_that_changed_and_went_back_is_owed_as_if_nothing_was(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database, "100.00");
    scene.go_to("2026-01-05");
    tax(&scene, &contract_ref, 7);
    tax(&scene, &contract_ref, 19);
    assert_eq!(scene.sums(), ["100.00", "0.00", "19.00", "119.00"]);
}

fn a_cancel_after_a_change_of_tax_gives_back_at_the_present_tax(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database, "31.00");
    scene.go_to("2026-01-05");
    tax(&scene, &contract_ref, 7);
    scene.go_to("2026-01-10");

    scene.cancel(&contract_ref, &json!({"include_current_invoice": true}));

    // Ten of 31 days.
    assert_eq!(scene.sums(), ["10.00", "0.00", "0.70", "10.70"]);
}

fn late_usage_after_a_change_of_tax_stands_at_the_present_tax(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "31.00"), each("0.10")]);
    let contract_ref = scene.sell(&[with(january("p"), json!({"payment_time": "BEFORE_USE", "tax": 19}))]);
    books::run(&scene.client);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    tax(&scene, &contract_ref, 7);
    scene.run_on("2026-02-01");
    // 31.00 and 10.00 at 7 %.
    assert_eq!(scene.sums(), ["41.00", "0.00", "2.87", "43.87"]);

    scene.calls("2026-01-06", 100);
    scene.run_on("2026-02-02");

    assert_eq!(scene.sums(), ["51.00", "0.00", "3.57", "54.57"]);
}

fn children_that_were_issued_before_a_change_of_tax_follow_it(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.10")]);
    let contract_ref = scene.sell(&[with(january("p"), json!({"net_terms": "DUE_UPON_USAGE", "tax": 19}))]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    assert_eq!(scene.sums(), ["10.00", "0.00", "1.90", "11.90"]);
    scene.go_to("2026-01-10");

    tax(&scene, &contract_ref, 7);

    scene.run_on("2026-02-01");
    assert_eq!(scene.sums(), ["10.00", "0.00", "0.70", "10.70"]);
}

fn a_usage_debit_that_was_issued_before_its_invoice_follows_a_change_of_tax(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "31.00"), each("0.10")]);
    let contract_ref = scene.sell(&[with(january("p"), json!({"payment_time": "BEFORE_USE", "tax": 19}))]);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    assert_eq!(event["related_document_numbers"], "UB-DBT-1");
    books::issue(&scene.client, &event["related_document_ref"]).ok();

    tax(&scene, &contract_ref, 7);

    books::run(&scene.client);
    scene.run_on("2026-02-01");
    assert_eq!(scene.sums(), ["41.00", "0.00", "2.87", "43.87"]);
}

fn a_changed_discount_is_taken_back_at_the_old_and_given_at_the_new(database: &Database) {
    let (mut scene, contract_ref) = in_advance(database, "100.00");
    scene.go_to("2026-01-05");
    for (percent, sums) in [
        (10, ["100.00", "10.00", "17.10", "107.10"]),
        (25, ["100.00", "25.00", "14.25", "89.25"]),
        (0, ["100.00", "0.00", "19.00", "119.00"]),
    ] {
        let products = json!([{"product_pricing_ref": "p", "discount": percent}]);
        scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": products}));
        assert_eq!(scene.sums(), sums, "{percent} %");
    }
}

fn a_note_leaves_the_tax_of_an_issued_invoice_whatever_the_customers_default(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.edit_customer("acme", &json!({"tax": 19}));
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[with(january("p"), json!({"payment_time": "BEFORE_USE"}))]);
    books::run(&scene.client);
    scene.edit_customer("acme", &json!({"tax": 7}));

    let products = json!([{"product_pricing_ref": "p", "note": "Thank you"}]);
    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": products}));

    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 119.00"]);
}

fn a_family_keeps_the_default_tax_of_its_first_document(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.edit_customer("acme", &json!({"tax": 19}));
    scene.pricing("p", &[each("0.10")]);
    scene.sell(&[january("p")]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    scene.run_on("2026-02-01");
    scene.edit_customer("acme", &json!({"tax": 7}));

    scene.calls("2026-01-06", 100);
    scene.run_on("2026-02-02");

    assert_eq!(scene.papers(), ["UB-DBT-1 2026-01-01 11.90", "UB-INV-1 2026-01-01 11.90"]);
}

fn a_default_tax_is_that_of_the_issue_whether_usage_came_or_not(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.edit_customer("acme", &json!({"tax": 19}));
    scene.fee("p", "100.00");
    scene.pricing("p-and-calls", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    let quiet = scene.sell(&[january("p")]);
    let used = scene.sell(&[january("p-and-calls")]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    scene.edit_customer("acme", &json!({"tax": 7}));

    scene.run_on("2026-02-01");

    assert_eq!(scene.sums_of(&quiet), ["100.00", "0.00", "7.00", "107.00"]);
    assert_eq!(scene.sums_of(&used), ["110.00", "0.00", "7.70", "117.70"]);
}

/// An entity with this prefix, and a contract with it that bills January in advance.
fn sell_of_an_entity(scene: &Scene, entity: &str, prefix: &str) {
    let body = json!({"entity_ref": entity, "name": entity, "number_prefix": prefix});
    scene.client.post("/api/entities/", &body).ok();
    scene.sell(&[with(january("p"), json!({"entity_ref": entity, "payment_time": "BEFORE_USE"}))]);
}

fn a_prefix_that_has_given_a_number_stays_with_its_entity(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    sell_of_an_entity(&scene, "one", "AA");
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["AA-INV-1 2026-01-01 100.00"]);

    refused(&scene.edit_entity("one", &json!({"number_prefix": "A2"})), 409, "numbers_given");

    scene.edit_entity("one", &json!({"number_prefix": "AA", "name": "One"})).ok();
    let other = scene.client.post("/api/entities/", &json!({"entity_ref": "other", "name": "other", "number_prefix": "AA"}));
    assert_eq!(other.status, 409, "{}", other.text);
    sell_of_an_entity(&scene, "another", "AB");
    let other = scene.edit_entity("another", &json!({"number_prefix": "AA"}));
    assert_eq!(other.status, 409, "{}", other.text);
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["AA-INV-1 2026-01-01 100.00", "AB-INV-1 2026-01-01 100.00"], "AA-INV-1 once");
}

fn a_prefix_without_a_number_may_change_and_be_taken_by_another(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    sell_of_an_entity(&scene, "one", "AA");
    scene.edit_entity("one", &json!({"number_prefix": "A2"})).ok();
    sell_of_an_entity(&scene, "other", "AA");

    books::run(&scene.client);

    assert_eq!(scene.papers(), ["A2-INV-1 2026-01-01 100.00", "AA-INV-1 2026-01-01 100.00"]);
}

/// A fee of 100.00 and calls at 0.10 during use, of which 5,000 in January, at 19 %.
fn during_use(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    let during = with(product("p", "2026-01-01", "2026-02-28"), json!({"payment_time": "DURING_USE", "tax": 19}));
    let contract_ref = scene.sell(&[during]);
    books::run(&scene.client);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 5000);
    (scene, contract_ref)
}

fn during_use_bills_usage_at_the_rates_of_its_own_period(database: &Database) {
    let (mut scene, contract_ref) = during_use(database);
    scene.go_to("2026-01-20");
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "discount": 50, "tax": 7}]}));

    scene.run_on("2026-02-01");

    // January's 500.00 at 19 %, and the half of February's 100.00 at 7 %.
    let invoice = books::numbered(&scene.client, "UB-INV-2");
    assert_eq!(books::totals(&invoice)[..4], ["600.00", "50.00", "98.50", "648.50"]);
    let mut products: Vec<[String; 4]> = invoice["products"]
        .as_array()
        .expect("products")
        .iter()
        .map(|product| books::fields(product, ["sub_total", "discount", "net", "tax_rate"]))
        .collect();
    products.sort();
    assert_eq!(products, [["100.00", "50.00", "50.00", "7"], ["500.00", "0.00", "500.00", "19"]]);
    let next = scene.preview("next", &contract_ref);
    assert_eq!(next, ["null 2026-02-01 0.00"], "the closing invoice");
}

fn during_use_owes_the_same_whatever_day_the_rates_were_agreed(database: &Database) {
    let (mut scene, contract_ref) = during_use(database);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-10");
    let products = json!([{"product_pricing_ref": "p", "discount": 50, "tax": 7}]);

    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": products}));

    // 119.00 for January's fee and the 648.50 that an edit in January makes.
    scene.run_on("2026-03-01");
    assert_eq!(scene.sums(), ["700.00", "50.00", "117.50", "767.50"]);
}

fn no_invoice_is_below_zero_when_the_price_is_cut_after_its_children(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "12.00"), each("1.00")]);
    let contract_ref = scene.sell(&[with(january("p"), json!({"net_terms": "DUE_UPON_USAGE"}))]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    scene.go_to("2026-01-10");
    scene.edit_pricing("p", &json!({"line_items": [catalog::fixed("fee", "12.00"), each("0.20")]}));
    let products = json!([{"product_pricing_ref": "p", "reprice": true}]);
    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": products}));

    scene.run_on("2026-02-01");

    // 12.00 and 20.00 are owed; the child billed 100.00, of which 80.00 come back.
    assert_eq!(scene.sums()[3], "32.00");
    assert_eq!(scene.papers(), ["UB-CRD-1 2026-01-01 80.00", "UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 100.00"]);
}

fn an_event_that_costs_nothing_makes_no_invoice_of_its_own(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let included = with(each("0.10"), json!({"included_quantity": 100}));
    scene.pricing("p", &[catalog::fixed("fee", "12.00"), included]);
    scene.sell(&[with(january("p"), json!({"net_terms": "DUE_UPON_USAGE"}))]);
    scene.go_to("2026-01-05");

    for _ in 0..2 {
        let event = scene.calls("2026-01-05", 50);
        assert_eq!(event["related_document_numbers"], "UB-INV-1", "the period's");
        let event = books::event(&scene.client, &event["event_ref"]);
        assert_eq!(event.get("related_parent_document_ref").unwrap_or(&Value::Null), &Value::Null);
    }
    let event = scene.calls("2026-01-05", 50);
    assert_eq!(event["related_document_numbers"], "UB-INV-2", "50 at 0.10");

    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 5.00"]);
}

fn before_use_due_upon_usage_spends_no_debit_number(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "12.00"), each("0.10")]);
    let terms = json!({"payment_time": "BEFORE_USE", "net_terms": "DUE_UPON_USAGE"});
    scene.sell(&[with(product("p", "2026-01-01", "2026-02-28"), terms)]);
    books::run(&scene.client);
    scene.go_to("2026-01-05");
    let event = scene.calls("2026-01-05", 100);
    let child = books::document(&scene.client, &event["related_document_ref"]);
    assert_eq!(books::fields(&child, ["kind", "total", "parent_document_number"]), ["INVOICE", "10.00", "UB-INV-1"]);

    scene.run_on_each(&["2026-02-01", "2026-03-01"]);

    assert_eq!(
        scene.papers(),
        ["UB-INV-1 2026-01-01 12.00", "UB-INV-2 2026-01-01 10.00", "UB-INV-3 2026-02-01 12.00"],
        "and no debit, void or not"
    );
}

fn a_minimum_fee_paid_before_use_is_a_debit_in_current_and_next(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let plan = json!({"product_pricing_ref": "p", "name": "p", "currency": "EUR", "minimum_fee": "50.00",
        "line_items": [catalog::fixed("fee", "10.00"), each("0.10")]});
    scene.client.post("/api/pricings/", &plan).ok();
    let contract_ref = scene.sell(&[with(product("p", "2026-01-01", "2026-02-28"), json!({"payment_time": "BEFORE_USE"}))]);

    let in_short = |which: &str| -> Vec<[String; 4]> {
        let documents = books::preview(&scene.client, which, &contract_ref);
        let names = ["kind", "document_number", "period_start", "total"];
        let mut shown: Vec<_> = documents.iter().map(|document| books::fields(document, names)).collect();
        shown.sort();
        shown
    };
    assert_eq!(in_short("current"), [["DEBIT", "null", "2026-01-01", "40.00"], ["INVOICE", "null", "2026-01-01", "10.00"]]);
    assert_eq!(in_short("next"), [["DEBIT", "null", "2026-02-01", "40.00"], ["INVOICE", "null", "2026-02-01", "10.00"]]);

    scene.run_on_each(&["2026-01-02", "2026-02-01"]);
    assert_eq!(
        scene.papers(),
        ["UB-DBT-1 2026-01-01 40.00", "UB-INV-1 2026-01-01 10.00", "UB-INV-2 2026-02-01 10.00"],
        "what was shown is what is issued"
    );
}

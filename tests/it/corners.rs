//! Corner cases of the billing rules that once produced wrong bills, as far as a test needs a server.

use acceptance::clock::Clock;
use acceptance::scene::{each, product, refused};
use acceptance::{Database, Scene, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    the_current_period_lists_a_corrected_child_and_its_open_credit,
    the_current_period_lists_children_whose_invoice_is_the_next_ones,
    the_current_period_lists_each_child_once,
    events_above_the_limit_are_refused_and_break_no_list,
    documents_at_the_limit_are_listed_and_summed,
    a_missing_exchange_rate_refuses_no_change_and_is_reported,
    the_anchor_of_a_product_is_shown_and_stays,
    a_void_changes_no_earlier_balance,
    an_event_that_moves_by_a_second_stays_with_its_contract,
    a_cancel_is_refused_for_usage_by_its_service_date,
);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

/// Creates a contract with a monthly fee and calls at 1.00, due upon usage, on a day of 2027.
fn upon_usage(database: &Database, day: &str, fields: Value) -> (Scene, String) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.edit_entity(&scene.entity(), &json!({"grace_hours": 0})).ok();
    scene.pricing("p", &[catalog::fixed("fee", "10.00"), each("1.00")]);
    scene.go_to(day);
    let terms = with(json!({"net_terms": "DUE_UPON_USAGE"}), fields);
    let contract_ref = scene.sell(&[with(product("p", day, "2027-12-31"), terms)]);
    (scene, contract_ref)
}

fn update(scene: &Scene, event: &Value, quantity: u32) {
    books::update(&scene.client, &event["event_ref"], json!({"quantity": quantity})).ok();
}

fn delete(scene: &Scene, event: &Value) {
    let answer = books::delete(&scene.client, &event["event_ref"]);
    assert_eq!(answer.status, 204, "{}", answer.text);
}

/// Contracts (billing rules 7): 10.00 + 3.00 − 1.00.
fn the_current_period_lists_a_corrected_child_and_its_open_credit(database: &Database) {
    let (scene, contract_ref) = upon_usage(database, "2027-05-01", json!({}));
    scene.go_to("2027-05-10");
    let event = scene.calls("2027-05-10", 3);
    update(&scene, &event, 2);

    let expected = ["UB-CRD-1 2027-05-01 1.00 DRAFT", "UB-INV-1 2027-05-01 10.00 DRAFT", "UB-INV-2 2027-05-01 3.00"];
    assert_eq!(scene.preview("current", &contract_ref), expected);
    scene.run_on("2027-05-11");
    let expected = ["UB-CRD-1 2027-05-01 1.00", "UB-INV-1 2027-05-01 10.00 DRAFT", "UB-INV-2 2027-05-01 3.00"];
    assert_eq!(scene.preview("current", &contract_ref), expected);
}

/// Contracts (billing rules 7): the child is listed on its own, because its parent is February's invoice.
fn the_current_period_lists_children_whose_invoice_is_the_next_ones(database: &Database) {
    let (scene, contract_ref) = upon_usage(database, "2027-01-11", json!({"payment_time": "DURING_USE"}));
    scene.run_on("2027-01-23");
    let event = scene.calls("2027-01-23", 50);
    // 10.00 × 21 ÷ 31
    let first = "UB-INV-1 2027-01-11 6.77";
    assert_eq!(scene.preview("current", &contract_ref), [first, "UB-INV-3 2027-01-11 50.00"]);
    update(&scene, &event, 20);
    let expected = ["UB-CRD-1 2027-01-11 30.00 DRAFT", first, "UB-INV-3 2027-01-11 50.00"];
    assert_eq!(scene.preview("current", &contract_ref), expected);
    scene.run_on("2027-01-24");
    let expected = ["UB-CRD-1 2027-01-11 30.00", first, "UB-INV-3 2027-01-11 50.00"];
    assert_eq!(scene.preview("current", &contract_ref), expected);
    assert_eq!(scene.preview("next", &contract_ref), ["UB-INV-2 2027-02-01 10.00 DRAFT"]);

    // In February the list contains the parent, the child and the child's open credit.
    scene.run_on("2027-02-03");
    update(&scene, &event, 10);
    let shown = scene.preview("current", &contract_ref);
    let expected = ["UB-CRD-2 2027-01-11 10.00 DRAFT", "UB-INV-2 2027-02-01 10.00", "UB-INV-3 2027-01-11 50.00"];
    assert_eq!(shown, expected);
}

/// Contracts (billing rules 7): two children, one of them corrected.
fn the_current_period_lists_each_child_once(database: &Database) {
    let (scene, contract_ref) = upon_usage(database, "2027-05-01", json!({}));
    scene.go_to("2027-05-10");
    let event = scene.calls("2027-05-10", 3);
    scene.calls("2027-05-10", 5);
    let regular = "UB-INV-1 2027-05-01 10.00 DRAFT";
    let children = ["UB-INV-2 2027-05-01 3.00", "UB-INV-3 2027-05-01 5.00"];
    assert_eq!(scene.preview("current", &contract_ref), [regular, children[0], children[1]]);
    update(&scene, &event, 4);
    let expected = ["UB-DBT-1 2027-05-01 1.00 DRAFT", regular, children[0], children[1]];
    assert_eq!(scene.preview("current", &contract_ref), expected);
    let shown = books::preview(&scene.client, "current", &contract_ref);
    let child = shown.iter().find(|shown| shown["document_number"] == "UB-INV-2").expect("the child document");
    assert_eq!(books::related(child), ["UB-DBT-1"]);
}

/// Checks that all sums and lists of a customer's documents succeed.
fn assert_lists(scene: &Scene, due: &str) {
    scene.client.get("/api/documents/filter?pageSize=1000").ok();
    let balance = scene.client.get(&format!("/api/customers/balance/{}", catalog::ACME)).ok();
    let dues = balance.as_array().into_iter().flatten().map(|account| books::fields(account, ["due"])[0].clone());
    let dues: Vec<String> = dues.filter(|amount| amount != "0.00").collect();
    assert_eq!(dues, if due == "0.00" { Vec::new() } else { vec![due.to_owned()] });
    scene.client.get(&format!("/api/customers/statement/{}", catalog::ACME)).ok();
}

/// Rating (billing rules 6): each event returns 422, and all other requests of the organization still work.
fn events_above_the_limit_are_refused_and_break_no_list(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.pricing("p", &[each("20.00")]);
    scene.sell(&[with(product("p", "2027-01-01", "2027-12-31"), json!({"net_terms": "DUE_UPON_USAGE"}))]);
    for month in ["01", "02", "03", "04", "05"] {
        let day = format!("2027-{month}-10");
        scene.go_to(&day);
        let event = with(acceptance::scene::calls(&day, 1), json!({"quantity": 999_999_999_999_999_u64}));
        refused(&scene.client.post("/api/usage/event", &event), 422, "amount_out_of_range");
    }
    assert_lists(&scene, "0.00");
    binary::verify(database.url()).unwrap_or_else(|found| panic!("{found}"));
}

/// Rating (billing rules 6): 12 documents of 10^15 minor units and 100 % tax sum up to 2.4 × 10^14.
fn documents_at_the_limit_are_listed_and_summed(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.pricing("p", &[each("1.00")]);
    let terms = json!({"net_terms": "DUE_UPON_USAGE", "tax": 100});
    scene.sell(&[with(product("p", "2027-01-01", "2027-12-31"), terms)]);
    for month in 1..=12 {
        let day = format!("2027-{month:02}-10");
        scene.go_to(&day);
        let event = with(acceptance::scene::calls(&day, 1), json!({"quantity": 10_000_000_000_000_u64}));
        scene.client.post("/api/usage/event", &event).ok();
        let more = acceptance::scene::calls(&day, 1);
        refused(&scene.client.post("/api/usage/event", &more), 422, "amount_out_of_range");
    }
    assert_lists(&scene, "240000000000000.00");
}

/// Timing of documents (billing rules 2): no document is opened, but edits and cancels are accepted. `verify` reports
/// the waiting periods.
fn a_missing_exchange_rate_refuses_no_change_and_is_reported(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.edit_entity(&scene.entity(), &json!({"tax_currency": "PLN"})).ok();
    scene.pricing("p", &[catalog::fixed("fee", "10.00"), each("1.00")]);
    let contract_ref = scene.sell(&[product("p", "2027-01-01", "2027-12-31")]);
    scene.sell(&[with(product("p", "2027-04-01", "2027-12-31"), json!({"net_terms": "DUE_UPON_USAGE"}))]);
    scene.go_to("2027-04-02");
    let report = scene.client.post("/api/billing/run", &json!({})).ok();
    assert_eq!(report["issued"], json!([]));
    let failed = report["failed"].as_array().expect("a list");
    assert_eq!(failed.len(), 3, "January to March: {report}");
    assert!(failed.iter().all(|failed| failed.to_string().contains("exchange_rate_missing")), "{report}");
    assert_eq!(scene.papers(), [""; 0], "no document is opened");

    let clock = Clock::at("2027-04-02T12:00:00Z");
    let environment = clock.environment();
    let environment = environment.iter().map(|(name, value)| (*name, value.as_str()));
    let found = binary::verify_in(database.url(), environment).expect_err("an overdue document");
    assert!(found.contains("exchange_rate_missing") && found.contains("2027-01-01"), "{found}");

    let event = scene.calls("2027-04-02", 3);
    assert_eq!(scene.papers(), ["UB-INV-1 2027-04-01 10.00 DRAFT", "UB-INV-2 2027-04-01 3.00 DRAFT"]);
    delete(&scene, &event);
    scene.cancel(&contract_ref, &json!({"last_day": "2027-03-31"}));
    let rate = json!({"from": "EUR", "to": "PLN", "date": "2027-01-01", "rate": "4.3"});
    scene.client.post("/api/exchange_rates/", &rate).ok();
    books::run(&scene.client);
    assert_eq!(scene.sums_of(&contract_ref)[3], "30.00");
}

/// Billing periods (billing rules 1.3): `billing_anchor` is null before a product begins and never changes afterwards.
fn the_anchor_of_a_product_is_shown_and_stays(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "100.00")]);
    let contract_ref = scene.sell(&[product("p", "2027-01-01", "2027-12-31")]);
    scene.run_on("2027-02-01");
    let anchor = |scene: &Scene| scene.contract(&contract_ref)["products"][0]["billing_anchor"].clone();
    assert_eq!(anchor(&scene), "2028-01-01");
    scene.go_to("2027-02-25");
    for end in ["2028-01-20", "2027-12-31"] {
        let edit = json!({"include_current_invoice": true, "products": [product("p", "2027-01-01", end)]});
        scene.edit(&contract_ref, &edit);
        assert_eq!(anchor(&scene), "2028-01-01");
    }
    scene.run_on("2027-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2027-01-01 100.00", "UB-INV-2 2027-02-01 100.00"]);
}

/// Receivables (billing rules 9): a statement of February is the same before and after a void in March.
fn a_void_changes_no_earlier_balance(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "100.00")]);
    scene.sell(&[product("p", "2027-01-01", "2027-01-31")]);
    scene.run_on("2027-02-01");
    scene.go_to("2027-03-05");
    let of_february = |scene: &Scene| {
        let path = format!("/api/customers/statement/{}?from=2027-02-01&to=2027-02-28", catalog::ACME);
        scene.client.get(&path).ok()
    };
    let before = of_february(&scene);
    assert_eq!(books::fields(&catalog::only(before.clone()), ["closing_balance"]), ["100.00"]);
    books::void(&scene.client, &books::numbered(&scene.client, "UB-INV-1")["document_ref"]).ok();
    assert_eq!(of_february(&scene), before);
    let expected = ["2027-02-01 INVOICE UB-INV-1 100.00 100.00", "2027-03-05 VOID UB-INV-1 -100.00 0.00"];
    assert_eq!(books::statement(&scene.client, catalog::ACME), expected);
}

/// Corrections (billing rules 5): the second contract began later, so a new event of the same day would land there.
fn an_event_that_moves_by_a_second_stays_with_its_contract(database: &Database) {
    let scene = Scene::begin(database, "2027-01-01");
    scene.pricing("p", &[each("1.00")]);
    scene.pricing("q", &[each("2.00")]);
    let first = scene.sell(&[product("p", "2027-01-01", "2027-12-31")]);
    scene.go_to("2027-01-20");
    let event = scene.calls("2027-01-15", 10);
    let second = scene.sell(&[product("q", "2027-01-10", "2027-12-31")]);
    let move_to =
        |scene: &Scene, timestamp: &str| books::update(&scene.client, &event["event_ref"], json!({"timestamp": timestamp})).ok();
    move_to(&scene, "2027-01-15T06:00:01Z");
    assert_eq!([scene.sums_of(&first)[3].clone(), scene.sums_of(&second)[3].clone()], ["10.00", "0.00"]);

    scene.go_to("2027-02-20");
    move_to(&scene, "2027-02-10T06:00:00Z");
    assert_eq!([scene.sums_of(&first)[3].clone(), scene.sums_of(&second)[3].clone()], ["10.00", "0.00"]);

    // If its product has ended, the event is matched again.
    let ends = json!({"effective_from": "2027-03-01", "products": [product("p", "2027-01-01", "2027-02-28")]});
    scene.edit(&first, &ends);
    scene.go_to("2027-03-20");
    move_to(&scene, "2027-03-10T06:00:00Z");
    assert_eq!([scene.sums_of(&first)[3].clone(), scene.sums_of(&second)[3].clone()], ["0.00", "20.00"]);
}

/// Contracts (billing rules 7): the event of 10 March in UTC is earlier than that of 9 March in Los Angeles.
fn a_cancel_is_refused_for_usage_by_its_service_date(database: &Database) {
    let scene = Scene::begin(database, "2027-03-01");
    scene.pricing("p", &[each("1.00")]);
    let contract_ref = scene.sell(&[product("p", "2027-03-01", "2027-12-31")]);
    scene.go_to("2027-03-12");
    let report = |scene: &Scene, timestamp: &str| {
        let event = with(acceptance::scene::calls("2027-03-10", 1), json!({"timestamp": timestamp}));
        books::report(&scene.client, &event)
    };
    let first = report(&scene, "2027-03-10T03:00:00Z");
    scene.edit_entity(&scene.entity(), &json!({"timezone": "America/Los_Angeles"})).ok();
    let second = report(&scene, "2027-03-10T05:00:00Z");
    let last_day = json!({"last_day": "2027-03-09"});
    refused(&scene.try_cancel(&contract_ref, &last_day), 409, "usage_already_reported");

    // Events are counted again if only a recount can decide the request.
    let third = report(&scene, "2027-03-11T09:00:00Z");
    delete(&scene, &third);
    refused(&scene.try_cancel(&contract_ref, &last_day), 409, "usage_already_reported");
    update(&scene, &second, 2);
    refused(&scene.try_cancel(&contract_ref, &last_day), 409, "usage_already_reported");
    delete(&scene, &first);
    scene.cancel(&contract_ref, &last_day);
    assert_eq!(scene.sums_of(&contract_ref)[3], "2.00");
    binary::verify(database.url()).unwrap_or_else(|found| panic!("{found}"));
}

//! What requests about contracts may say: dates, versions, fields, and how much they may set off at once.

use acceptance::scene::{fee_of, product, refused};
use acceptance::{Answer, Database, Scene, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_create_that_makes_more_than_24_documents_due_says_how_many_and_since_when,
    a_year_mistyped_as_0206_is_refused_even_if_it_may_be_backdated,
    up_to_1200_documents_may_be_backdated,
    an_edit_that_makes_more_than_24_documents_due_is_refused,
    a_cancel_that_makes_more_than_24_documents_due_is_refused,
    what_was_due_anyway_does_not_count,
    a_date_within_a_period_is_refused_with_the_two_nearest,
    a_date_before_the_contract_is_refused,
    a_date_and_the_current_invoice_contradict_each_other,
    what_structures_documents_cannot_change_where_they_are_issued,
    an_older_version_is_a_conflict,
    what_is_read_and_posted_back_changes_nothing,
    what_is_read_and_posted_back_with_one_change_changes_that,
    an_unknown_field_is_refused_with_the_nearest_known_one,
    products_null_is_refused_and_the_contract_goes_on,
    the_default_entity_moves_and_contracts_stay_with_theirs,
);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

/// On 15 January with a fee of 100.00.
fn begin(database: &Database) -> Scene {
    let scene = Scene::begin(database, "2026-01-15");
    scene.fee("p", "100.00");
    scene
}

/// The same with a contract of the year, January to March issued, on 10 April.
fn in_april(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[with(year("p"), json!({"note": "Thank you", "discount": 10}))]);
    for day in ["2026-02-01", "2026-03-01", "2026-04-01"] {
        scene.run_on(day);
    }
    scene.go_to("2026-04-10");
    (scene, contract_ref)
}

#[track_caller]
fn too_many(answer: &Answer, count: &str, since: &str) {
    refused(answer, 422, "too_many_documents");
    let said = answer.text.replace(',', "");
    assert!(said.contains(count) && answer.text.contains(since), "{count} since {since}: {}", answer.text);
}

fn backdated() -> Value {
    json!({"allow_backdated": true})
}

/// 25 months are over: from December 2023.
fn sell_25_months(scene: &Scene) -> String {
    scene.try_sell(&[product("p", "2023-12-01", "2026-12-31")], &backdated()).text_of("contract_ref")
}

fn a_create_that_makes_more_than_24_documents_due_says_how_many_and_since_when(database: &Database) {
    let scene = begin(database);

    let of_25 = [product("p", "2023-12-01", "2026-12-31")];
    too_many(&scene.try_sell(&of_25, &json!({})), "25", "2023-12-01");
    too_many(&scene.try_sell(&of_25, &json!({"allow_backdated": false})), "25", "2023-12-01");

    let contracts = scene.client.get("/api/contracts/filter?customer_ref=acme&pageSize=10&pageNumber=0").ok();
    assert_eq!(contracts, json!([]));
    let of_24 = scene.try_sell(&[product("p", "2024-01-01", "2026-12-31")], &json!({})).text_of("contract_ref");
    let of_25 = scene.try_sell(&of_25, &backdated()).text_of("contract_ref");
    books::run(&scene.client);
    assert_eq!([scene.sums_of(&of_24), scene.sums_of(&of_25)].map(|sums| sums[3].clone()), ["2400.00", "2500.00"]);
}

fn a_year_mistyped_as_0206_is_refused_even_if_it_may_be_backdated(database: &Database) {
    let scene = begin(database);
    // 1,820 years of months.
    for fields in [json!({}), backdated()] {
        too_many(&scene.try_sell(&[product("p", "0206-01-01", "2026-12-31")], &fields), "21840", "0206-01-01");
    }
    assert_eq!(books::run(&scene.client), Vec::<Value>::new());
}

fn up_to_1200_documents_may_be_backdated(database: &Database) {
    let scene = begin(database);
    // A hundred years of months, and one more.
    too_many(&scene.try_sell(&[product("p", "1925-12-01", "2026-12-31")], &backdated()), "1201", "1925-12-01");
    let contract_ref = scene.try_sell(&[product("p", "1926-01-01", "2026-12-31")], &backdated()).text_of("contract_ref");

    // Annulled before anything is issued, it costs nothing.
    scene.cancel(&contract_ref, &json!({"last_day": "1925-12-31"}));
    assert_eq!(books::run(&scene.client), Vec::<Value>::new());
    assert_eq!(scene.papers(), Vec::<String>::new());
}

fn an_edit_that_makes_more_than_24_documents_due_is_refused(database: &Database) {
    let scene = begin(database);
    let contract_ref = sell_25_months(&scene);
    books::run(&scene.client);
    let products = json!([{"product_pricing_ref": "p", "line_items": [fee_of("90.00")]}]);
    let edit = json!({"effective_from": "2023-12-01", "products": products});

    too_many(&scene.try_edit(&contract_ref, &edit), "25", "2023-12-01");

    assert_eq!(scene.sums()[3], "2500.00");
    scene.edit(&contract_ref, &catalog::with(edit, &backdated()));
    assert_eq!(scene.sums()[3], "2250.00", "25 credits of 10.00");
}

fn a_cancel_that_makes_more_than_24_documents_due_is_refused(database: &Database) {
    let scene = begin(database);
    let contract_ref = sell_25_months(&scene);
    books::run(&scene.client);

    too_many(&scene.try_cancel(&contract_ref, &json!({"last_day": "2023-11-30"})), "25", "2023-12-01");

    assert_eq!(scene.sums()[3], "2500.00");
    scene.cancel(&contract_ref, &json!({"last_day": "2023-11-30", "allow_backdated": true}));
    assert_eq!(scene.sums()[3], "0.00");
}

fn what_was_due_anyway_does_not_count(database: &Database) {
    let scene = begin(database);
    let contract_ref = sell_25_months(&scene);
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "discount": 10}]}));
    scene.cancel(&contract_ref, &json!({}));
}

fn a_date_within_a_period_is_refused_with_the_two_nearest(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    let before = (scene.contract(&contract_ref), scene.papers());
    for (date, nearest) in [
        ("2026-02-10", ["2026-02-01", "2026-03-01"]),
        ("2026-01-02", ["2026-01-01", "2026-02-01"]),
        ("2026-06-30", ["2026-06-01", "2026-07-01"]),
    ] {
        let edit = json!({"effective_from": date, "products": [{"product_pricing_ref": "p", "discount": 20}]});
        let answer = scene.try_edit(&contract_ref, &edit);
        refused(&answer, 422, "not_a_period_start");
        assert!(nearest.iter().all(|day| answer.text.contains(day)), "{nearest:?}: {}", answer.text);
    }
    assert_eq!((scene.contract(&contract_ref), scene.papers()), before);
}

fn a_date_before_the_contract_is_refused(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    for date in ["2025-12-31", "2025-12-01", "yesterday"] {
        let edit = json!({"effective_from": date, "products": [{"product_pricing_ref": "p", "discount": 20}]});
        let answer = scene.try_edit(&contract_ref, &edit);
        assert_eq!((answer.status, answer.text.contains("effective_from")), (422, true), "{date}: {}", answer.text);
    }
    assert_eq!(scene.contract(&contract_ref)["version"].to_string(), "1");
}

fn a_date_and_the_current_invoice_contradict_each_other(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    let products = json!([{"product_pricing_ref": "p", "discount": 20}]);
    let edit = json!({"effective_from": "2026-04-01", "include_current_invoice": true, "products": products});
    refused(&scene.try_edit(&contract_ref, &edit), 422, "conflicting_fields");
    let cancel = json!({"last_day": "2026-04-20", "include_current_invoice": true});
    refused(&scene.try_cancel(&contract_ref, &cancel), 422, "conflicting_fields");
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "state"]), ["1", "ACTIVE"]);
}

fn what_structures_documents_cannot_change_where_they_are_issued(database: &Database) {
    let (mut scene, contract_ref) = in_april(database);
    scene.client.post("/api/entities/", &json!({"entity_ref": "other", "name": "other", "number_prefix": "OT"})).ok();
    let before = (scene.contract(&contract_ref), scene.papers());
    for fields in [
        json!({"payment_time": "BEFORE_USE"}),
        json!({"entity_ref": "other"}),
        json!({"billing_cycle": {"unit": "QUARTERLY", "cycle": 1}}),
        json!({"issue_day": "2026-01-15"}),
    ] {
        let products = json!([with(json!({"product_pricing_ref": "p"}), fields.clone())]);
        let answer = scene.try_edit(&contract_ref, &json!({"effective_from": "2026-01-01", "products": products}));
        assert!(answer.text.contains("not_retroactive"), "{fields}: {}", answer.text);
        refused(&answer, 422, "not_retroactive");
    }
    assert_eq!((scene.contract(&contract_ref), scene.papers()), before);

    // Nothing is issued of April.
    let products = json!([{"product_pricing_ref": "p", "entity_ref": "other"}]);
    scene.edit(&contract_ref, &json!({"effective_from": "2026-04-01", "products": products}));
    scene.run_on("2026-05-01");
    assert_eq!(scene.papers()[0], "OT-INV-1 2026-04-01 90.00");
}

fn an_older_version_is_a_conflict(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    let read = scene.contract(&contract_ref);
    scene.edit(&contract_ref, &json!({"version": 1, "po_number": "PO-7"}));

    let answer = scene.try_edit(&contract_ref, &catalog::with(read, &json!({"po_number": "PO-8"})));

    refused(&answer, 409, "version_conflict");
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "po_number"]), ["2", "PO-7"]);
    scene.edit(&contract_ref, &json!({"version": 2, "po_number": "PO-8"}));
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "po_number"]), ["3", "PO-8"]);
}

fn what_is_read_and_posted_back_changes_nothing(database: &Database) {
    let (mut scene, contract_ref) = in_april(database);
    let planned = json!([{"product_pricing_ref": "p", "line_items": [fee_of("120.00")]}]);
    scene.edit(&contract_ref, &json!({"effective_from": "2026-07-01", "products": planned}));
    scene.edit_pricing("p", &json!({"line_items": [catalog::fixed("fee", "150.00"), catalog::fixed("new", "5.00")]}));
    scene.edit_customer("acme", &json!({"tax": 7}));
    let (read, documents) = (scene.contract(&contract_ref), catalog::documents(&scene.client));
    let mut without_version = read.clone();
    without_version.as_object_mut().expect("an object").remove("version");

    for body in [read.clone(), without_version, json!({"products": read["products"]}), json!({"version": 2}), json!({})] {
        let answer = scene.edit(&contract_ref, &body);
        assert_eq!(answer, read, "{body}");
    }

    assert_eq!((scene.contract(&contract_ref), catalog::documents(&scene.client)), (read, documents));
    for day in ["2026-05-01", "2026-06-01", "2026-07-01", "2026-08-01"] {
        scene.run_on(day);
    }
    // 10 % off; the customer's 7 % on April to July; the rise in July.
    assert_eq!(
        scene.papers()[3..],
        ["UB-INV-4 2026-04-01 96.30", "UB-INV-5 2026-05-01 96.30", "UB-INV-6 2026-06-01 96.30", "UB-INV-7 2026-07-01 115.56"]
    );
}

fn what_is_read_and_posted_back_with_one_change_changes_that(database: &Database) {
    let (mut scene, contract_ref) = in_april(database);
    scene.edit_pricing("p", &json!({"line_items": [catalog::fixed("fee", "150.00")]}));
    let mut read = scene.contract(&contract_ref);
    read["products"][0]["discount"] = json!(20);

    let edited = scene.edit(&contract_ref, &read);

    assert_eq!(books::fields(&edited, ["version"]), ["2"]);
    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    assert_eq!(scene.papers()[3..], ["UB-INV-4 2026-04-01 90.00", "UB-INV-5 2026-05-01 80.00"]);
}

fn an_unknown_field_is_refused_with_the_nearest_known_one(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    let edit = format!("/api/contracts/edit/{contract_ref}");
    let cancel = format!("/api/contracts/cancel/{contract_ref}");
    let of_product = |fields: Value| json!({"products": [with(year("p"), fields)]});
    let create = with(of_product(json!({"discont": 10})), json!({"customer_ref": "acme"}));
    let line_item = json!({"line_items": [{"line_item_id": "fee", "prise": null}]});
    for (path, body, pointer, nearest) in [
        (edit.as_str(), json!({"po_numbr": "PO-7"}), "/po_numbr", "po_number"),
        (&edit, json!({"include_current_invoce": true}), "/include_current_invoce", "include_current_invoice"),
        (&edit, of_product(json!({"nett_terms": 30})), "/products/0/nett_terms", "net_terms"),
        (&edit, of_product(line_item), "/products/0/line_items/0/prise", "price"),
        (&cancel, json!({"last_dy": "2026-04-20"}), "/last_dy", "last_day"),
        ("/api/contracts/", create, "/products/0/discont", "discount"),
    ] {
        let answer = scene.client.post(path, &body);
        refused(&answer, 422, "unknown_field");
        let error = &answer.body["errors"][0];
        assert_eq!(error["pointer"], pointer, "{}", answer.text);
        assert!(error["detail"].as_str().is_some_and(|detail| detail.contains(nearest)), "{}", answer.text);
    }
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "state"]), ["1", "ACTIVE"]);
}

fn products_null_is_refused_and_the_contract_goes_on(database: &Database) {
    let (mut scene, contract_ref) = in_april(database);

    let answer = scene.try_edit(&contract_ref, &json!({"products": null}));

    assert_eq!((answer.status, answer.body["errors"][0]["pointer"].as_str()), (422, Some("/products")), "{}", answer.text);
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "effective_end_date"]), ["1", "2026-12-31"]);
    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    assert_eq!(scene.papers()[3..], ["UB-INV-4 2026-04-01 90.00", "UB-INV-5 2026-05-01 90.00"]);
}

fn the_default_entity_moves_and_contracts_stay_with_theirs(database: &Database) {
    let mut scene = begin(database);
    scene.sell(&[year("p")]);
    scene.client.post("/api/entities/", &json!({"entity_ref": "other", "name": "other", "number_prefix": "OT"})).ok();

    scene.edit_entity("other", &json!({"default": true})).ok();

    scene.sell(&[year("p")]);
    let entities = scene.client.get("/api/entities/filter").ok();
    let entities = entities.as_array().expect("a list");
    let defaults: Vec<&Value> = entities.iter().filter(|entity| entity["default"] == true).collect();
    assert_eq!((defaults.len(), &defaults[0]["entity_ref"]), (1, &json!("other")), "one is");
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["OT-INV-1 2026-01-01 100.00", "UB-INV-1 2026-01-01 100.00"]);
}

//! Requests about contracts: dates, versions, fields, dry runs, and limits on the effects of one request. The domain's
//! `scenarios` test the effects of edits and cancels on documents.

use std::time::{Duration, Instant};

use acceptance::scene::{each, fee_of, product, refused};
use acceptance::when::Day;
use acceptance::{Answer, Database, Scene, books, catalog, on_both_databases, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    more_than_24_documents_due_at_once_have_to_be_meant,
    a_date_that_is_none_is_refused,
    a_date_and_the_current_invoice_contradict_each_other,
    what_is_read_and_posted_back_changes_nothing,
    what_is_read_and_posted_back_with_one_change_changes_that,
    an_unknown_field_is_refused_with_the_nearest_known_one,
    products_null_is_refused_and_the_contract_goes_on,
    the_default_entity_moves_and_contracts_stay_with_theirs,
    a_dry_run_of_an_edit_shows_its_documents_and_stores_nothing,
    a_cancel_and_its_dry_run_tell_the_same,
    edits_of_a_contract_without_end_stay_cheap,
    a_contract_that_is_not_there_is_not_found,
    quantities_are_read_as_they_were_agreed,
    a_quantity_that_cannot_be_is_refused,
    a_tax_of_0_without_a_category_has_a_warning,
);

on_both_databases!(a_contract_that_is_created_twice_has_a_warning, contracts_created_at_once_warn_of_each_other);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

/// Starts on 15 January with a fee of 100.00.
fn begin(database: &Database) -> Scene {
    let scene = Scene::begin(database, "2026-01-15");
    scene.fee("p", "100.00");
    scene
}

/// Creates a contract over the year with a fee of 100.00 and issues January to March. Today is 10 April.
fn in_april(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-01");
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
    let stated = answer.text.replace(',', "");
    assert!(stated.contains(count) && answer.text.contains(since), "{count} since {since}: {}", answer.text);
}

fn backdated() -> Value {
    json!({"allow_backdated": true})
}

fn more_than_24_documents_due_at_once_have_to_be_meant(database: &Database) {
    let scene = begin(database);
    let of_25 = [product("p", "2023-12-01", "2026-12-31")];
    too_many(&scene.try_sell(&of_25, &json!({})), "25", "2023-12-01");
    too_many(&scene.try_sell(&of_25, &json!({"allow_backdated": false})), "25", "2023-12-01");
    let contracts = scene.client.get("/api/contracts/filter?customer_ref=acme&pageSize=10&pageNumber=0").ok();
    assert_eq!(contracts, json!([]));
    let contract_ref = scene.try_sell(&of_25, &backdated()).text_of("contract_ref");
    books::run(&scene.client);

    let products = json!([{"product_pricing_ref": "p", "line_items": [fee_of("90.00")]}]);
    let edit = json!({"effective_from": "2023-12-01", "products": products});
    too_many(&scene.try_edit(&contract_ref, &edit), "25", "2023-12-01");
    assert_eq!(scene.sums()[3], "2500.00");
    scene.edit(&contract_ref, &catalog::with(edit, &backdated()));
    assert_eq!(scene.sums()[3], "2250.00", "25 credits of 10.00");
    let cancel = json!({"last_day": "2023-11-30"});
    too_many(&scene.try_cancel(&contract_ref, &cancel), "25", "2023-12-01");
    scene.cancel(&contract_ref, &catalog::with(cancel, &backdated()));
    assert_eq!(scene.sums()[3], "0.00");
}

fn a_date_that_is_none_is_refused(database: &Database) {
    let (scene, contract_ref) = in_april(database);
    let edit = json!({"effective_from": "yesterday", "products": [{"product_pricing_ref": "p", "discount": 20}]});
    let answer = scene.try_edit(&contract_ref, &edit);
    assert_eq!((answer.status, answer.text.contains("effective_from")), (422, true), "{}", answer.text);
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

fn what_is_read_and_posted_back_changes_nothing(database: &Database) {
    let (scene, contract_ref) = in_april(database);
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
    // A discount of 10 %; the customer's tax of 7 % from April to July; the price increase in July.
    assert_eq!(
        scene.papers()[3..],
        ["UB-INV-4 2026-04-01 96.30", "UB-INV-5 2026-05-01 96.30", "UB-INV-6 2026-06-01 96.30", "UB-INV-7 2026-07-01 115.56"]
    );
}

fn what_is_read_and_posted_back_with_one_change_changes_that(database: &Database) {
    let (scene, contract_ref) = in_april(database);
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
    let (scene, contract_ref) = in_april(database);

    let answer = scene.try_edit(&contract_ref, &json!({"products": null}));

    assert_eq!((answer.status, answer.body["errors"][0]["pointer"].as_str()), (422, Some("/products")), "{}", answer.text);
    assert_eq!(books::fields(&scene.contract(&contract_ref), ["version", "effective_end_date"]), ["1", "2026-12-31"]);
    scene.run_on("2026-05-01");
    scene.run_on("2026-06-01");
    assert_eq!(scene.papers()[3..], ["UB-INV-4 2026-04-01 90.00", "UB-INV-5 2026-05-01 90.00"]);
}

fn the_default_entity_moves_and_contracts_stay_with_theirs(database: &Database) {
    let scene = begin(database);
    scene.sell(&[year("p")]);
    scene.client.post("/api/entities/", &json!({"entity_ref": "other", "name": "other", "number_prefix": "OT"})).ok();

    scene.edit_entity("other", &json!({"default": true})).ok();

    scene.sell(&[year("p")]);
    let entities = scene.client.get("/api/entities/filter").ok();
    let entities = entities.as_array().expect("a list");
    let defaults: Vec<&Value> = entities.iter().filter(|entity| entity["default"] == true).collect();
    assert_eq!((defaults.len(), &defaults[0]["entity_ref"]), (1, &json!("other")), "one entity is the default");
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["OT-INV-1 2026-01-01 100.00", "UB-INV-1 2026-01-01 100.00"]);
}

/// Issues January and February with a fee of 1,000.00 instead of 100.00. Today is 10 March.
fn a_wrong_fee(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "1000.00");
    let contract_ref = scene.sell(&[with(year("p"), json!({"tax": 19}))]);
    scene.run_on_each(&["2026-02-01", "2026-03-01"]);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 1190.00", "UB-INV-2 2026-02-01 1190.00"]);
    scene.go_to("2026-03-10");
    (scene, contract_ref)
}
fn the_right_fee() -> Value {
    let products = json!([{"product_pricing_ref": "p", "line_items": [fee_of("100.00")]}]);
    json!({"effective_from": "2026-01-01", "products": products})
}

fn a_dry_run_of_an_edit_shows_its_documents_and_stores_nothing(database: &Database) {
    let (scene, contract_ref) = a_wrong_fee(database);
    let before = (scene.contract(&contract_ref), catalog::documents(&scene.client));

    let shown = scene.edit(&contract_ref, &catalog::with(the_right_fee(), &json!({"dry_run": true})));

    assert_eq!(shown["dry_run"], true);
    let issued = shown["issued"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let mut credits: Vec<[String; 4]> = issued
        .iter()
        .map(|document| books::fields(document, ["kind", "period_start", "sub_total", "parent_document_number"]))
        .collect();
    credits.sort();
    assert_eq!(
        credits,
        [["CREDIT", "2026-01-01", "900.00", "UB-INV-1"], ["CREDIT", "2026-02-01", "900.00", "UB-INV-2"]],
        "{shown}"
    );
    assert_eq!(books::amounts(&issued[0]), ["fee 900.00"], "complete documents");
    assert_eq!(shown["voided"], json!([]));
    assert_eq!((scene.contract(&contract_ref), catalog::documents(&scene.client)), before);
}

fn edits_of_a_contract_without_end_stay_cheap(database: &Database) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    let endless = product("p", "2026-01-01", "9999-12-31");
    let contract_ref = scene.sell(&[with(endless, json!({"payment_time": "DURING_USE"}))]);
    // The edits are a month apart, so that each creates new terms.
    let mut took = Vec::new();
    for months in 0..40 {
        scene.run_on(&Day::new(2026, 1, 10).plus_months(months).to_string());
        let products = json!([{"product_pricing_ref": "p", "discount": months}]);
        let started = Instant::now();
        scene.edit(&contract_ref, &json!({"products": products}));
        took.push(started.elapsed());
    }

    let sum = |range: std::ops::Range<usize>| took[range].iter().sum::<Duration>();
    let (first, last) = (sum(0..8), sum(32..40));
    assert!(last < 3 * first + Duration::from_millis(500), "the first eight edits took {first:?}, the last eight {last:?}");
}

/// Creates a contract with a fee of 31.00 per month, billed in advance. January is issued.
fn in_advance(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "31.00"), each("0.10")]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"payment_time": "BEFORE_USE"}))]);
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00"]);
    (scene, contract_ref)
}

fn a_cancel_and_its_dry_run_tell_the_same(database: &Database) {
    let (scene, contract_ref) = in_advance(database);
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

fn a_contract_that_is_not_there_is_not_found(database: &Database) {
    let scene = begin(database);
    refused(&scene.try_resume("none", &json!({})), 404, "contract_not_found");
    refused(&try_step(&scene, "none", &json!({"quantity": 5})), 404, "contract_not_found");
}

/// Creates a contract over a year from April with seats at 30.00, in two steps.
fn seats(database: &Database) -> (Scene, String) {
    let scene = Scene::begin(database, "2026-04-01");
    let price = json!({"model": "PER_UNIT", "unit_price": "30.00"});
    scene.pricing("p", &[json!({"line_item_id": "seats", "name": "Seats", "kind": "FIXED", "price": price})]);
    let quantities = json!([{"from": "2026-04-01", "quantity": 10}, {"from": "2026-04-16", "quantity": 12}]);
    let line_items = json!([{"line_item_id": "seats", "quantities": quantities}]);
    let contract_ref = scene.sell(&[with(product("p", "2026-04-01", "2027-03-31"), json!({"line_items": line_items}))]);
    (scene, contract_ref)
}

fn try_step(scene: &Scene, contract_ref: &str, fields: &Value) -> Answer {
    let step = catalog::with(json!({"product_pricing_ref": "p", "line_item_id": "seats"}), fields);
    scene.client.post(&format!("/api/contracts/quantities/{contract_ref}"), &step)
}

fn quantities_are_read_as_they_were_agreed(database: &Database) {
    let (scene, contract_ref) = seats(database);
    let changed = try_step(&scene, &contract_ref, &json!({"quantity": 14, "from": "2026-05-16", "prorate": false})).ok();
    assert_eq!(changed["version"].to_string(), "2");
    let read = scene.contract(&contract_ref)["products"][0]["line_items"][0]["quantities"].clone();
    let steps: Vec<[String; 2]> =
        read.as_array().expect("steps").iter().map(|step| books::fields(step, ["from", "quantity"])).collect();
    assert_eq!(steps, [["2026-04-01", "10"], ["2026-04-16", "12"], ["2026-06-01", "14"]]);
}

fn a_quantity_that_cannot_be_is_refused(database: &Database) {
    let (scene, contract_ref) = seats(database);
    for fields in [json!({"quantity": -1}), json!({}), json!({"quantity": 5, "form": "2026-04-16"})] {
        let answer = try_step(&scene, &contract_ref, &fields);
        assert_eq!(answer.status, 422, "{fields}: {}", answer.text);
    }
    assert_eq!(scene.contract(&contract_ref)["version"].to_string(), "1");
}

fn a_contract_that_is_created_twice_has_a_warning(database: &Database) {
    let scene = begin(database);
    scene.fee("q", "5.00");
    scene.client.post("/api/customers/", &json!({"customer_ref": "globex", "name": "Globex"})).ok();
    let of = |customer_ref: &str, products: Value| json!({"customer_ref": customer_ref, "products": products});
    let both = of(catalog::ACME, json!([year("p"), product("q", "2026-02-01", "2026-06-30")]));
    let first = scene.client.post("/api/contracts/", &both).ok();
    assert!(first.get("warnings").is_none(), "{first}");
    // The same products in another order, with another discount, are the same contract.
    let again = with(product("q", "2026-02-01", "2026-06-30"), json!({"discount": 10}));
    let again = of(catalog::ACME, json!([again, year("p")]));
    let dry_run = scene.client.post("/api/dry_run", &json!({"path": "/api/contracts/", "body": again})).ok();
    let keyed = scene.client.with_header("Idempotency-Key", "twice");
    let second = keyed.post("/api/contracts/", &again).ok();
    let warning = &second["warnings"][0];
    assert_eq!((&warning["code"], &warning["contract_ref"]), (&json!("same_as"), &first["contract_ref"]));
    assert!(warning["detail"].as_str().is_some_and(|detail| detail.contains("contract C-1 ")), "{warning}");
    assert_eq!((&dry_run["warnings"], second["warnings"].as_array().map(Vec::len)), (&second["warnings"], Some(1)));
    assert_eq!(keyed.post("/api/contracts/", &again).ok(), second, "the warning belongs to the stored response");
    assert!(scene.contract(second["contract_ref"].as_str().expect("a reference")).get("warnings").is_none());
    for other in [
        of("globex", again["products"].clone()),
        of(catalog::ACME, json!([year("p")])),
        of(catalog::ACME, json!([year("p"), product("q", "2026-02-01", "2026-07-31")])),
    ] {
        let made = scene.client.post("/api/contracts/", &other).ok();
        assert!(made.get("warnings").is_none(), "{other}: {made}");
    }
    // The second contract is almost as old as the limit of five minutes, and then older.
    scene.go_to_instant("2026-01-15T12:04:00Z");
    assert_eq!(scene.client.post("/api/contracts/", &both).ok()["warnings"][0]["contract_ref"], second["contract_ref"]);
    scene.go_to_instant("2026-01-15T12:11:00Z");
    assert!(scene.client.post("/api/contracts/", &both).ok().get("warnings").is_none());
}

fn a_tax_of_0_without_a_category_has_a_warning(database: &Database) {
    let scene = begin(database);
    let warned = |path: &str, body: &Value| -> Vec<String> {
        let answer = scene.client.post(path, body).ok();
        let warnings = answer["warnings"].as_array().cloned().unwrap_or_default();
        warnings.iter().map(|warning| format!("{} {}", warning["code"], warning["pointer"])).collect()
    };
    let (of_customer, of_product) = (r#""no_tax_category" "/tax_category""#, r#""no_tax_category" null"#);
    let customer = |fields: Value| with(json!({"name": "Globex"}), fields);
    let exempt = json!({"tax": 0, "tax_category": "E", "exemption_reason": "exempt"});
    for (fields, expected) in [
        (json!({}), vec![]),
        (json!({"tax": 19}), vec![]),
        (exempt.clone(), vec![]),
        (json!({"customer_ref": "globex", "tax": 0}), vec![of_customer]),
    ] {
        assert_eq!(warned("/api/customers/", &customer(fields.clone())), expected, "{fields}");
    }
    let edit = "/api/customers/edit/globex";
    let read = scene.client.get("/api/customers/globex").ok();
    assert!(read.get("warnings").is_none(), "{read}");
    assert!(warned(edit, &read).is_empty(), "nothing changes");
    let twenty = json!({"path": edit, "body": {"tax": 20}});
    assert!(warned("/api/dry_run", &twenty).is_empty());
    assert!(warned(edit, &json!({"tax": 20})).is_empty());
    assert_eq!(warned("/api/dry_run", &json!({"path": edit, "body": {"tax": 0}})), [of_customer]);
    assert_eq!(warned(edit, &json!({"tax": 0})), [of_customer]);

    let of = |fields: Value| json!({"customer_ref": "globex", "products": [with(year("p"), fields)]});
    let made = scene.client.post("/api/contracts/", &of(json!({"tax": 0}))).ok();
    let detail = made["warnings"][0]["detail"].as_str().expect("a text");
    assert!(detail.starts_with("the tax of the product with the pricing p is 0 and has no category"), "{detail}");
    let edit = format!("/api/contracts/edit/{}", made["contract_ref"].as_str().expect("a reference"));
    assert!(warned(&edit, &of(json!({"tax": 0, "discount": 5}))).is_empty(), "the tax is as it was");
    assert!(warned(&edit, &of(exempt.clone())).is_empty());
    let again = json!({"tax": 0, "tax_category": null, "exemption_reason": null});
    assert_eq!(warned(&edit, &of(again)), [of_product]);
    // The category of the customer or of the entity applies to a product without one.
    scene.client.post(edit_of_entity(&scene).as_str(), &json!({"tax_category": "E", "exemption_reason": "exempt"})).ok();
    assert!(warned("/api/customers/", &customer(json!({"tax": 0}))).is_empty());
}

fn edit_of_entity(scene: &Scene) -> String {
    let entities = scene.client.get("/api/entities/filter").ok();
    format!("/api/entities/edit/{}", entities[0]["entity_ref"].as_str().expect("an entity"))
}

fn contracts_created_at_once_warn_of_each_other(database: &Database) {
    let scene = begin(database);
    let contract = json!({"customer_ref": catalog::ACME, "products": [year("p")]});
    let made: Vec<Value> = std::thread::scope(|scope| {
        let threads = [(); 6].map(|()| scope.spawn(|| scene.client.post("/api/contracts/", &contract).ok()));
        threads.into_iter().map(|thread| thread.join().expect("a contract")).collect()
    });
    let without = made.iter().filter(|made| made.get("warnings").is_none());
    assert_eq!(without.count(), 1, "{made:?}");
}

//! The time of the last change on everything that is listed, lists by it, and metadata.

use acceptance::scene::{Scene, each, product, refused};
use acceptance::{Client, Database, Request, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    every_list_continues_after_the_last_change_that_was_read,
    a_document_changes_with_its_lifecycle_and_its_money_but_not_with_its_usage,
    what_is_edited_changes_and_an_edit_of_nothing_does_not,
    a_contract_changes_with_each_version,
    metadata_is_kept_found_and_replaced_as_a_whole,
    metadata_has_limits,
);

/// Lists that can be ordered by the last change, with the field that identifies an element.
const LISTS: [(&str, &str); 16] = [
    ("/auth/keys/list", "api_key_ref"),
    ("/api/administrators/filter", "admin_ref"),
    ("/api/usage/event/filter", "event_ref"),
    ("/api/usage/imports/filter", "import_ref"),
    ("/api/usage/products/filter", "usage_product_ref"),
    ("/api/customers/filter", "customer_ref"),
    ("/api/entities/filter", "entity_ref"),
    ("/api/pricings/filter", "product_pricing_ref"),
    ("/api/bank_accounts/filter", "billing_account_id"),
    ("/api/exchange_rates/filter", "date"),
    ("/api/usage/formats/filter", "format_ref"),
    ("/api/contracts/search", "contract_ref"),
    ("/api/documents/filter", "document_ref"),
    ("/api/documents/payments/filter", "payment_ref"),
    ("/api/charges/filter", "charge_ref"),
    ("/api/billing/runs/filter", "run_ref"),
];

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn elements(client: &Client, path: &str) -> Vec<Value> {
    client.get(path).ok().as_array().expect("a list").clone()
}

/// Returns the time of the last change as a text whose order is that of the times.
fn changed(element: &Value) -> &str {
    text(&element["updated_at"]).trim_end_matches('Z')
}

/// Returns the day of the last change.
fn day_of(element: &Value) -> &str {
    changed(element).split('T').next().unwrap_or_default()
}

/// Creates two or more of everything that is listed, and changes some of it.
fn stage(database: &Database) -> (Scene, Client) {
    let scene = Scene::begin(database, "2026-01-15");
    scene.pricing("plan", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    scene.fee("other", "10.00");
    let contract = scene.sell(&[product("plan", "2026-01-01", "2026-12-31")]);
    scene.sell(&[product("other", "2026-01-01", "2026-12-31")]);
    let client = &scene.client;
    client.post("/api/usage/products/", &json!({"usage_product_ref": "storage", "name": "Storage"})).ok();
    client.post("/api/customers/", &json!({"customer_ref": "globex", "name": "Globex"})).ok();
    client.post("/api/entities/", &json!({"entity_ref": "second", "name": "Second", "number_prefix": "SE"})).ok();
    client.post("/api/bank_accounts/", &json!({"billing_account_id": "one", "iban": "DE89370400440532013000"})).ok();
    let dollars = json!({"billing_account_id": "two", "account_number": "1", "routing_number": "021000021"});
    client.post("/api/bank_accounts/", &dollars).ok();
    for date in ["2026-01-02", "2026-01-01"] {
        client.post("/api/exchange_rates/", &json!({"from": "USD", "to": "EUR", "date": date, "rate": "0.9"})).ok();
    }
    let mapping = json!({
        "timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "event.what", "quantity": "event.much",
    });
    for format in ["log", "cdn"] {
        client.post("/api/usage/formats/", &json!({"format_ref": format, "format_name": format, "mapping": mapping})).ok();
    }
    for name in ["first", "second"] {
        let charge = json!({
            "contract_ref": contract, "charge_ref": name, "name": name, "date": "2026-01-20", "unit_price": "1.00",
        });
        client.post("/api/charges/", &charge).ok();
        let body = json!([acceptance::scene::calls("2026-01-14", 1)]).to_string();
        client.send(&Request::post(&format!("/api/usage/import?name={name}"), body)).ok();
    }
    client.post("/api/charges/edit/first", &json!({"note": "as agreed"})).ok();
    let event = scene.calls("2026-01-14", 5);
    scene.calls("2026-01-14", 6);
    let invitation = json!({"email": "second@example.com", "role": "finance"});
    scene.admin().post("/api/administrators/", &invitation).ok();
    scene.admin().generate_key(&json!({"name": "second"}));
    scene.run_on_each(&["2026-02-02", "2026-03-02"]);
    let client = &scene.client;
    let invoice = books::numbered(client, "UB-INV-1")["document_ref"].clone();
    for amount in ["20.00", "1.00"] {
        books::pay(client, &invoice, &json!({"amount": amount})).ok();
    }
    // The element that was created first was changed last.
    books::update(client, &event["event_ref"], json!({"quantity": 7})).ok();
    scene.edit_customer("acme", &json!({"email": "pay@acme.example"}));
    scene.edit(&contract, &json!({"po_number": "PO-1"}));
    let admin = scene.admin();
    (scene, admin)
}

/// Reads a list by its links, one element at a time.
fn by_links(client: &Client, first: &str) -> Vec<Value> {
    let (mut path, mut all) = (format!("{first}&pageSize=1"), Vec::new());
    loop {
        let page = client.get(&path);
        assert_eq!(page.header("X-Total-Count").is_empty(), !all.is_empty(), "{path}: a page after a cursor counts nothing");
        let next = page.header("Link").split(", ").find(|link| link.ends_with("rel=\"next\"")).map(str::to_owned);
        all.extend(page.ok().as_array().expect("a list").clone());
        assert!(all.len() < 100, "{path}");
        let Some(next) = next else { return all };
        assert!(next.contains("cursor="), "{path}: {next}");
        path = next.trim_start_matches('<').split('>').next().expect("a path").to_owned();
    }
}

fn every_list_continues_after_the_last_change_that_was_read(database: &Database) {
    let (_scene, client) = stage(database);
    for (list, field) in LISTS {
        let by_update = format!("{list}?order=updated_at");
        // A billing run and the use of a key can change an element while the list is read.
        let (whole, _) = (0..3)
            .map(|_| (elements(&client, &format!("{by_update}&pageSize=1000")), by_links(&client, &by_update)))
            .find(|(whole, paged)| whole == paged)
            .unwrap_or_else(|| panic!("{list}: the pages are another list"));
        assert!(whole.len() > 1, "{list}: {whole:?}");
        assert!(whole.iter().all(|element| !changed(element).is_empty()), "{list}: {whole:?}");
        assert!(whole.is_sorted_by(|a, b| changed(a) <= changed(b)), "{list}: {whole:?}");

        let refs = |list: &[Value]| list.iter().map(|element| element[field].clone()).collect::<Vec<_>>();
        let mut backward = refs(&by_links(&client, &format!("{list}?order=-updated_at")));
        backward.reverse();
        assert_eq!(backward, refs(&whole), "{list}");
        let since = text(&whole[1]["updated_at"]);
        let found = elements(&client, &format!("{list}?updated_since={since}&pageSize=1000"));
        let expected = whole.iter().filter(|element| changed(element) >= changed(&whole[1])).count();
        assert_eq!(found.len(), expected, "{list}");
        let nothing = elements(&client, &format!("{list}?updated_since=2027-01-01T00:00:00Z&pageSize=20"));
        assert!(nothing.is_empty(), "{list}: {nothing:?}");

        let elsewhere = client.get(&format!("{list}?order=-updated_at&cursor=updated_at~1~x&pageSize=20"));
        assert_eq!(elsewhere.status, 422, "{list}: the cursor of another order");
    }
}

fn a_document_changes_with_its_lifecycle_and_its_money_but_not_with_its_usage(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    scene.pricing("plan", &[catalog::fixed("fee", "100.00"), each("0.10")]);
    scene.sell(&[product("plan", "2026-01-01", "2026-12-31")]);
    scene.calls("2026-01-04", 1);
    let invoice = books::numbered(&scene.client, "UB-INV-1")["document_ref"].clone();
    let changed_on = |scene: &Scene, expected: &str| {
        let document = books::document(&scene.client, &invoice);
        assert_eq!(day_of(&document), expected, "{document}");
    };
    changed_on(&scene, "2026-01-05");
    scene.go_to("2026-01-06");
    scene.calls("2026-01-06", 5);
    changed_on(&scene, "2026-01-05");
    scene.run_on("2026-02-02");
    changed_on(&scene, "2026-02-02");
    scene.go_to("2026-02-03");
    books::pay(&scene.client, &invoice, &json!({"amount": "10.00"})).ok();
    changed_on(&scene, "2026-02-03");
    let payment = books::payments(&scene.client, &invoice)[0].clone();
    assert_eq!(day_of(&payment), "2026-02-03");
    scene.go_to("2026-02-04");
    books::reverse(&scene.client, &payment["payment_ref"], &json!({})).ok();
    changed_on(&scene, "2026-02-04");
    let reversed = books::payments(&scene.client, &invoice)[0].clone();
    assert_eq!((day_of(&reversed), &reversed["recorded_at"]), ("2026-02-04", &payment["recorded_at"]));
    scene.go_to("2026-02-05");
    books::write_off(&scene.client, &invoice, &json!({})).ok();
    changed_on(&scene, "2026-02-05");
    scene.go_to("2026-02-06");
    books::write_off(&scene.client, &invoice, &json!({"undo": true})).ok();
    changed_on(&scene, "2026-02-06");
    scene.go_to("2026-02-07");
    books::void(&scene.client, &invoice).ok();
    changed_on(&scene, "2026-02-07");
    scene.go_to("2026-04-01");
    changed_on(&scene, "2026-02-07");
}

fn what_is_edited_changes_and_an_edit_of_nothing_does_not(database: &Database) {
    let (scene, _) = stage(database);
    scene.go_to("2026-03-10");
    let entity = elements(&scene.client, "/api/entities/filter?pageSize=20")[0]["entity_ref"].clone();
    let entity = text(&entity).to_owned();
    let places = [
        ("/api/customers", "acme", json!({"name": "Acme 2"})),
        ("/api/entities", &*entity, json!({"grace_hours": 5})),
        ("/api/usage/products", "storage", json!({"unit": "GB"})),
        ("/api/pricings", "other", json!({"name": "Another"})),
        ("/api/bank_accounts", "one", json!({"bank_name": "Bank"})),
    ];
    for (path, reference, change) in &places {
        let read = || scene.client.get(&format!("{path}/{reference}")).ok();
        let edit = |body: &Value| scene.client.post(&format!("{path}/edit/{reference}"), body).ok();
        let before = read();
        assert!(day_of(&before) < "2026-03-10", "{before}");
        edit(&json!({}));
        assert_eq!(read()["updated_at"], before["updated_at"], "{path}");
        edit(change);
        assert_eq!(day_of(&read()), "2026-03-10", "{path}");
    }
    // The entity that was the default is no longer it.
    scene.go_to("2026-03-11");
    scene.edit_entity("second", &json!({"default": true})).ok();
    for reference in ["second", &*entity] {
        assert_eq!(day_of(&scene.client.get(&format!("/api/entities/{reference}")).ok()), "2026-03-11", "{reference}");
    }
    let put = |rate: &str| {
        let body = json!({"from": "USD", "to": "EUR", "date": "2026-01-02", "rate": rate});
        day_of(&scene.client.post("/api/exchange_rates/", &body).ok()).to_owned()
    };
    assert_eq!([put("0.9"), put("0.91")], ["2026-01-15", "2026-03-11"]);
}

fn a_contract_changes_with_each_version(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    scene.fee("plan", "10.00");
    let contract = scene.sell(&[product("plan", "2026-01-01", "2026-12-31")]);
    let changed_on = |scene: &Scene| day_of(&scene.contract(&contract)).to_owned();
    assert_eq!(changed_on(&scene), "2026-01-05");
    scene.run_on("2026-02-02");
    assert_eq!(changed_on(&scene), "2026-01-05", "a document is no change of its contract");
    scene.edit(&contract, &json!({"po_number": "PO-1"}));
    assert_eq!(changed_on(&scene), "2026-02-02");
    scene.go_to("2026-02-03");
    scene.edit(&contract, &json!({"po_number": "PO-1"}));
    assert_eq!(changed_on(&scene), "2026-02-02");
    scene.cancel(&contract, &json!({}));
    assert_eq!(changed_on(&scene), "2026-02-03");
}

fn metadata_is_kept_found_and_replaced_as_a_whole(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    scene.fee("plan", "10.00");
    scene.edit_customer("acme", &json!({"metadata": {"crm": "0042", "région": "Île-de-France"}}));
    let metadata = json!({"metadata": {"deal": "7", "crm": "0042"}});
    let contract = scene.try_sell(&[product("plan", "2026-01-01", "2026-12-31")], &metadata).ok();
    let contract = text(&contract["contract_ref"]).to_owned();
    scene.run_on("2026-02-02");
    let invoice = books::numbered(&scene.client, "UB-INV-1")["document_ref"].clone();
    books::pay(&scene.client, &invoice, &json!({"amount": "4.00", "metadata": {"charge": "ch_1"}})).ok();
    books::pay(&scene.client, &invoice, &json!({"amount": "1.00"})).ok();
    let client = &scene.client;
    let payments = books::payments(client, &invoice);
    assert_eq!([&payments[0]["metadata"], &payments[1]["metadata"]], [&json!({"charge": "ch_1"}), &json!({})]);
    // Keys come in their own order.
    assert_eq!(scene.contract(&contract)["metadata"].to_string(), r#"{"crm":"0042","deal":"7"}"#);
    assert_eq!(client.get("/api/customers/acme").ok()["metadata"], json!({"crm": "0042", "région": "Île-de-France"}));

    let found = |path: &str| elements(client, path).len();
    for (query, customers, contracts, payments) in [
        ("metadata[crm]=0042", 1, 1, 0),
        ("metadata%5Bcrm%5D=0042", 1, 1, 0),
        ("metadata[crm]=42", 0, 0, 0),
        ("metadata[crm]=0042&metadata[deal]=7", 0, 1, 0),
        ("metadata[r%C3%A9gion]=%C3%8Ele-de-France", 1, 0, 0),
        ("metadata[charge]=ch_1", 0, 0, 1),
        ("metadata[charge]=ch_1&updated_since=2026-02-03T00:00:00Z", 0, 0, 0),
        ("metadata[charge]=", 0, 0, 0),
    ] {
        let counts = ["/api/customers/filter", "/api/contracts/search", "/api/documents/payments/filter"]
            .map(|list| found(&format!("{list}?{query}&pageSize=20")));
        assert_eq!(counts, [customers, contracts, payments], "{query}");
    }

    // A new value replaces all keys, null removes them, and an edit without metadata keeps them.
    scene.edit_customer("acme", &json!({"name": "Acme 2"}));
    assert_eq!(found("/api/customers/filter?metadata[crm]=0042"), 1);
    scene.edit_customer("acme", &json!({"metadata": {"crm": "43"}}));
    assert_eq!(client.get("/api/customers/acme").ok()["metadata"], json!({"crm": "43"}));
    assert_eq!([found("/api/customers/filter?metadata[crm]=0042"), found("/api/customers/filter?metadata[crm]=43")], [0, 1]);
    scene.edit_customer("acme", &json!({"metadata": null}));
    assert_eq!(client.get("/api/customers/acme").ok()["metadata"], json!({}));
    assert_eq!(found("/api/customers/filter?metadata[crm]=43"), 0);

    // A contract gets a version, and no document changes.
    let papers = scene.papers();
    let edited = scene.edit(&contract, &json!({"metadata": {"deal": "8"}}));
    assert_eq!((&edited["version"], &edited["metadata"]), (&json!(2), &json!({"deal": "8"})));
    assert_eq!([found("/api/contracts/search?metadata[crm]=0042"), found("/api/contracts/search?metadata[deal]=8")], [0, 1]);
    assert_eq!(scene.edit(&contract, &json!({"metadata": {"deal": "8"}}))["version"], 2, "an edit of nothing");
    assert_eq!(scene.edit(&contract, &json!({"metadata": null}))["metadata"], json!({}));
    assert_eq!(found("/api/contracts/search?metadata[deal]=8"), 0);
    assert_eq!(scene.papers(), papers);
}

fn metadata_has_limits(database: &Database) {
    let scene = Scene::begin(database, "2026-01-05");
    let many: serde_json::Map<String, Value> = (0..21).map(|n| (format!("k{n}"), json!("v"))).collect();
    let (long_key, long_value) = (json!({"k".repeat(65): "v"}), json!({"k": "v".repeat(257)}));
    for metadata in [json!(many), long_key, long_value, json!({"a[b": "v"}), json!({"n": 1})] {
        let answer = scene.client.post("/api/customers/", &json!({"customer_ref": "x", "name": "X", "metadata": metadata}));
        assert_eq!(answer.status, 422, "{metadata}");
    }
    let most: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("{n:02}{}", "ü".repeat(62)), json!("ß".repeat(256)))).collect();
    let body = json!({"customer_ref": "x", "name": "X", "metadata": most});
    assert_eq!(scene.client.post("/api/customers/", &body).ok()["metadata"], json!(most));
    refused(&scene.client.get("/api/customers/filter?metadata=x"), 422, "unknown_parameter");
    refused(&scene.client.get("/api/entities/filter?metadata[a]=x"), 422, "unknown_parameter");
}

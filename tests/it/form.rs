//! Malformed requests: unknown routes, wrong methods, bad JSON, sizes, types and versions. Also details without effect: trailing
//! slashes, unknown fields, and a credential on a route that doesn't exist.

use acceptance::problem::{Refusal, Table, invalid, refused};
use acceptance::{Client, Database, Request, Server, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(a_refused_form_leaves_nothing);

fn stage(database: &Database) -> (Server, Client) {
    let (server, client, _) = catalog::stage_with(database, &catalog::contract("acme"));
    (server, client)
}

fn event() -> Request<'static> {
    Request::post("/api/usage/event", catalog::event("acme", 1).to_string())
}

fn a_refused_form_leaves_nothing(database: &Database) {
    let (_server, client) = stage(database);
    let mut table = Table::default();
    let good = || catalog::event("acme", 1).to_string();
    let body = |bytes: Vec<u8>| Request::post("/api/usage/event", bytes);
    let nested = |levels: usize| good().replace('}', &format!(r#","deep":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels)));
    let twice = good().replace('}', r#","quantity":1}"#);
    let twice_below = good().replace('}', r#","additional_report_data":{"a":1,"\u0061":1}}"#);

    for text in [
        "",
        " ",
        "{",
        "{} {}",
        "[1",
        "{\"a\":1,}",
        "{'a':1}",
        "NaN",
        "nul",
        "\"\\ud800\"",
        "\"\\x\"",
        "{\"quantity\":01}",
        "\u{feff}{}",
    ] {
        table.row(&client, text, &body(text.into()), refused(400, "malformed_json"));
    }
    table.row(&client, "invalid UTF-8", &body(b"{\"a\":\"\xff\"}".to_vec()), refused(400, "malformed_json"));
    table.row(&client, "a raw NUL", &body(b"{\"a\":\"\x00\"}".to_vec()), refused(400, "malformed_json"));
    table.row(&client, &twice, &body(twice.clone().into()), refused(400, "duplicate_json_key"));
    table.row(&client, &twice_below, &body(twice_below.clone().into()), refused(400, "duplicate_json_key"));
    table.row(&client, "32 levels in the object", &body(nested(32).into()), refused(400, "json_too_deep"));
    table.row(&client, "100,000 levels", &body(nested(100_000).into()), refused(400, "json_too_deep"));
    let large = good().replace('}', &format!(r#","a":"{}"}}"#, "x".repeat(1 << 20)));
    table.row(&client, "more than 1 MiB", &body(large.into()), refused(413, "body_too_large"));

    for content_type in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/json; charset=latin1",
        "application/x-ndjson",
        "json",
        "",
    ] {
        let what = format!("Content-Type: {content_type}");
        table.row(&client, &what, &event().with("Content-Type", content_type), refused(415, "unsupported_media_type"));
    }
    table.row(&client, "no Content-Type", &event().without("Content-Type"), refused(415, "unsupported_media_type"));
    table.row(&client, "gzip", &event().with("Content-Encoding", "gzip"), refused(415, "unsupported_media_type"));
    for version in ["V1", "v0", "0", "", "V0, V1"] {
        table.row(&client, version, &event().with("Version", version), refused(400, "unsupported_version"));
    }
    table.finish();

    assert_eq!(catalog::documents(&client), Vec::<Value>::new());
    let deep = client.send(&body(nested(31).into()));
    assert_eq!((deep.status, deep.text_of("code").as_str()), (422, "unknown_field"), "31 levels in the object are accepted");
    let first = client.send(&event()).ok();
    assert_eq!(first["related_document_numbers"], "UB-INV-1", "no number was used before");
}

#[test]
fn an_unknown_path_is_not_found_for_any_caller() {
    let database = Database::sqlite();
    let (server, client) = stage(&database);
    let mut table = Table::default();
    for caller in [&client, &Client::admin(&server), &Client::anonymous(&server)] {
        for path in [
            "/nothing",
            "/docs/nothing",
            "/api",
            "/api/",
            "/api/nothing",
            "/auth/",
            "/api/usage/",
            "/api/contracts/a/b/c",
            "/api//contracts/filter",
            "/API/contracts/filter",
            "/health",
            "/%2e%2e/etc/passwd",
        ] {
            table.row(caller, "", &Request::get(path), refused(404, "route_not_found"));
            table.row(caller, "", &Request::post(path, "{}"), refused(404, "route_not_found"));
        }
    }
    table.finish();
}

#[test]
fn an_unsupported_method_is_refused_with_the_supported_ones_for_any_caller() {
    let database = Database::sqlite();
    let (server, client) = stage(&database);
    let mut table = Table::default();
    let rows = [
        ("PUT", "/api/usage/event", "POST"),
        ("GET", "/api/usage/event", "POST"),
        ("DELETE", "/api/contracts/filter", "GET"),
        ("POST", "/api/contracts/filter", "GET"),
        ("PATCH", "/api/customers/edit/acme", "POST"),
        ("GET", "/auth/login", "POST"),
        ("POST", "/auth/keys/list", "GET"),
        ("GET", "/auth/user/0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b", "DELETE"),
        ("POST", "/openapi.json", "GET"),
        ("POST", "/health/live", "GET"),
        ("POST", "/", "GET"),
        ("DELETE", "/docs", "GET"),
        ("PROPFIND", "/api/documents/filter", "GET"),
    ];
    for caller in [&client, &Client::anonymous(&server)] {
        for (method, path, takes) in rows {
            let request = Request { method, ..Request::get(path) };
            let answer = caller.send(&request);
            let allowed = answer.header("Allow").split(',').any(|allowed| allowed.trim() == takes);
            let outcome = refused(405, "method_not_allowed").check(&answer);
            table.note(
                "",
                &request,
                outcome.and(if allowed { Ok(()) } else { Err(format!("Allow: {}", answer.header("Allow"))) }),
            );
        }
    }
    table.finish();
}

#[test]
fn checks_run_in_their_order() {
    let database = Database::sqlite();
    let (server, client) = stage(&database);
    let anonymous = Client::anonymous(&server);
    let mut table = Table::default();
    let all_wrong = || Request::post("/api/usage/event", "{").with("Version", "V1");
    table.row(&anonymous, "credential before version", &all_wrong(), refused(401, "unauthenticated"));
    table.row(&client, "version before syntax", &all_wrong(), refused(400, "unsupported_version"));
    table.row(
        &client,
        "syntax before fields",
        &Request::post("/api/usage/event", r#"{"quantity": -1"#),
        refused(400, "malformed_json"),
    );
    let mut event = catalog::event("nobody", -1);
    table.post(&client, "/api/usage/event", &event, invalid("/quantity out_of_range"));
    event["quantity"] = json!(1);
    event["timestamp"] = json!("1999-01-01T00:00:00Z");
    table.post(&client, "/api/usage/event", &event, invalid("/customer_ref unknown_reference"));
    event["customer_ref"] = json!("acme");
    table.post(&client, "/api/usage/event", &event, refused(422, "no_matching_contract"));
    table.finish();
}

#[test]
fn an_unsupported_version_names_the_supported_ones() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    let answer = client.send(&event().with("Version", "V1"));
    assert_eq!(answer.body["supported"], json!(["V0"]));
}

#[test]
fn the_version_is_only_asked_for_where_there_are_versions() {
    let database = Database::sqlite();
    let (server, client) = stage(&database);
    let answer = client.without_header("Version").send(&event());
    assert_eq!((answer.status, answer.header("Version")), (200, "V0"), "{}", answer.text);
    for path in ["/health/live", "/health/ready", "/openapi.json"] {
        assert_eq!(Client::anonymous(&server).with_header("Version", "V9").get(path).status, 200, "{path}");
    }
    assert_eq!(Client::admin(&server).with_header("Version", "V9").get("/auth/keys/list").status, 200);
}

#[test]
fn a_trailing_slash_makes_no_difference() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    for path in ["/api/contracts", "/api/contracts/"] {
        assert_eq!(client.post(path, &catalog::contract("acme")).status, 200, "{path}");
    }
    for path in ["/api/usage/event", "/api/usage/event/"] {
        assert_eq!(client.post(path, &catalog::event("acme", 1)).status, 200, "{path}");
    }
    for (with, without) in [
        ("/api/customers/filter/?pageSize=5", "/api/customers/filter?pageSize=5"),
        ("/api/customers/acme/", "/api/customers/acme"),
        ("/api/customers/names/", "/api/customers/names"),
    ] {
        assert_eq!(client.get(with).ok(), client.get(without).ok(), "{with}");
    }
}

#[test]
fn unknown_fields_are_refused_with_the_nearest_and_what_our_own_answers_add_is_taken_back() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    let mut event = catalog::event("acme", 1);
    event["quantty"] = json!(1);
    let refused = client.post("/api/usage/event", &event);
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "unknown_field"));
    assert_eq!(refused.body["errors"][0]["pointer"], "/quantty");
    assert!(refused.body["errors"][0]["detail"].as_str().is_some_and(|detail| detail.ends_with("the nearest is quantity")));
    let mut contract = catalog::contract("acme");
    contract["contract_ref"] = json!("as an answer has it");
    contract["products"][0]["in_force"] = json!({"discount": 5});
    assert_eq!(client.post("/api/contracts/", &contract).status, 200);
    contract["products"][0]["color"] = json!("red");
    contract["include_current_invoice"] = json!(true);
    let refused = client.post("/api/contracts/", &contract);
    let errors = refused.body["errors"].as_array().expect("errors");
    let pointers: Vec<&Value> = errors.iter().map(|error| &error["pointer"]).collect();
    assert_eq!((refused.status, pointers), (422, vec![&json!("/products/0/color"), &json!("/include_current_invoice")]));
    for path in ["/api/customers/acme", "/api/entities/filter", "/api/usage/products/api-calls", "/api/pricings/filter"] {
        let answered = client.get(path).ok();
        let answered = answered.get(0).unwrap_or(&answered);
        let (name, collection) = match path.split('/').collect::<Vec<_>>()[2..] {
            ["usage", ..] => ("usage_product_ref", "/api/usage/products"),
            ["customers", ..] => ("customer_ref", "/api/customers"),
            ["entities", ..] => ("entity_ref", "/api/entities"),
            _ => ("product_pricing_ref", "/api/pricings"),
        };
        let reference = answered[name].as_str().expect("a reference");
        assert_eq!(client.post(&format!("{collection}/edit/{reference}"), answered).ok(), *answered, "{path}");
    }
}

/// If the typo were ignored, each request would do much more than intended: create a key with every scope, bill for good, or keep
/// a part of a batch.
#[test]
fn a_typo_does_not_open_what_it_meant_to_keep_shut() {
    let database = Database::sqlite();
    let (server, client) = stage(&database);
    let admin = Client::admin(&server);
    let keys = admin.get("/auth/keys/list").ok();
    for (path, body, pointer, nearest) in [
        ("/auth/keys/generate", json!({"scope": ["read"]}), "/scope", "scopes"),
        ("/api/billing/run", json!({"dryRun": true}), "/dryRun", "dry_run"),
        ("/api/usage/event/batch", json!({"events": [catalog::event("acme", 1)], "atomc": true}), "/atomc", "atomic"),
        ("/api/usage/event/batch?atomc=true", json!({"events": [catalog::event("acme", 1)]}), "/atomc", "atomic"),
    ] {
        let refused = if path.starts_with("/auth") { admin.post(path, &body) } else { client.post(path, &body) };
        let stated = refused.body["errors"][0]["detail"].as_str().unwrap_or_default();
        assert_eq!((refused.status, &refused.body["errors"][0]["pointer"]), (422, &json!(pointer)), "{path} {}", refused.text);
        assert!(stated.ends_with(&format!("the nearest is {nearest}")), "{path} {stated}");
    }
    let posted = client.post("/api/usage/event?atomic=true", &catalog::event("acme", 1));
    assert_eq!((posted.status, &posted.body["errors"][0]["pointer"]), (422, &json!("/atomic")), "{}", posted.text);
    assert_eq!(admin.get("/auth/keys/list").ok(), keys);
    assert_eq!(client.get("/api/usage/event/filter").ok(), json!([]));
}

#[test]
fn unknown_parameters_are_refused_wherever_they_stand() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    for (path, pointer) in [
        ("/api/usage/event/filter?pagesize=5", "/pagesize"),
        ("/api/documents/filter?state=DRAFT&sort=amount", "/sort"),
        ("/api/customers/acme?expand=all", "/expand"),
        ("/openapi.json?number=string", "/number"),
    ] {
        let refused = client.get(path);
        assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "unknown_parameter"), "{path}");
        assert_eq!(refused.body["errors"][0]["pointer"], pointer, "{path}");
    }
    assert_eq!(client.get("/health/ready?probe=1").status, 200, "probes may add parameters");
}

#[test]
fn an_event_may_name_its_key_in_its_body_as_in_a_batch() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    let mut event = catalog::event("acme", 1);
    event["idempotency_key"] = json!("host-7/81");
    let first = client.post("/api/usage/event", &event);
    let again = client.post("/api/usage/event", &event);
    assert_eq!((first.status, again.header("Idempotency-Replayed"), &again.body), (200, "true", &first.body));
    let by_header = client.with_header("Idempotency-Key", "host-7/81").post("/api/usage/event", &event);
    assert_eq!((by_header.header("Idempotency-Replayed"), &by_header.body), ("true", &first.body));
    let batch = client.post("/api/usage/event/batch", &json!({"events": [event]})).ok();
    assert_eq!(batch["results"][0], first.body);
    let two = client.with_header("Idempotency-Key", "host-7/82").post("/api/usage/event", &event);
    assert_eq!((two.status, two.text_of("code").as_str()), (422, "conflicting_fields"));
    event["quantity"] = json!(2);
    assert_eq!(client.post("/api/usage/event", &event).text_of("code"), "idempotency_key_reuse");
    assert_eq!(client.get("/api/usage/event/filter").ok().as_array().map(Vec::len), Some(1));
}

#[test]
fn report_data_and_validations_may_come_as_texts_with_their_json() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    let mut event = catalog::event("acme", 1);
    event["additional_report_data"] = json!(r#"{"region":"eu-1","requests":12.50}"#);
    event["validations"] = json!(r#"{"currency":"USD"}"#);
    let refused = client.post("/api/usage/event", &event);
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "validation_mismatch"));
    event["validations"] = json!(r#"{"currency":"EUR"}"#);
    let made = client.post("/api/usage/event", &event).ok();
    let read = client.get(&format!("/api/usage/event/{}", made["event_ref"].as_str().expect("a reference")));
    assert!(read.text.contains(r#""additional_report_data":{"region":"eu-1","requests":12.50}"#), "{}", read.text);
}

#[test]
fn every_answer_names_its_request_and_hides_the_inside() {
    let database = Database::sqlite();
    let (_server, client) = stage(&database);
    let theirs = client.with_header("X-Request-Id", "mine-42").get("/api/contracts/nothing");
    assert_eq!((theirs.text_of("request_id").as_str(), theirs.header("X-Request-Id")), ("mine-42", "mine-42"));
    assert_eq!(theirs.text_of("instance"), "/api/contracts/nothing");
    assert_eq!(theirs.header("X-Content-Type-Options"), "nosniff");
    let mut table = Table::default();
    for evil in ["'; DROP TABLE usage_events; --", "{{7*7}}", "<script>alert(1)</script>", "%s%n%x"] {
        let body =
            json!({"timestamp": acceptance::when::now(), "customer_ref": evil, "usage_product_ref": evil, "quantity": evil});
        let errors = "/customer_ref invalid_format, /usage_product_ref invalid_format, /quantity invalid_format";
        table.post(&client, "/api/usage/event", &body, Refusal { errors, ..invalid("") });
        let answer = client.post("/api/usage/event", &body);
        assert!(!answer.text.contains(evil), "the response doesn't repeat the input: {}", answer.text);
    }
    table.finish();
}

//! Webhooks: notifications arrive at endpoints, signed, at least once, and failed deliveries are repeated.

use std::collections::BTreeMap;

use acceptance::hooks::{Endpoint, Hook, HookAnswer, Receiver, kill_while_delivering, wait_until_all_are_accepted};
use acceptance::problem::{Table, invalid, refused, rule};
use acceptance::scene::{each, product};
use acceptance::server::ADMIN_PASSWORD;
use acceptance::{Client, Clock, Database, Request, Scene, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_notification_arrives_signed_with_the_body_that_the_feed_shows,
    a_refused_notification_arrives_again_with_the_same_name_and_body,
    during_a_rotation_requests_are_signed_with_both_secrets,
    an_endpoint_that_is_gone_is_disabled_and_gets_what_it_missed_on_request,
    an_overloaded_endpoint_is_left_alone_for_as_long_as_it_asks,
    a_test_goes_to_its_endpoint_only_and_changes_nothing,
    a_url_that_requests_may_not_go_to_is_refused,
    an_organization_has_16_endpoints,
    two_servers_deliver_each_notification_once_although_a_third_of_the_requests_fail,
    a_killed_server_loses_no_notification,
);

const ENDPOINTS: &str = "/api/webhooks/endpoints/";

/// The number of kills in a test run. `tests/all` kills more often.
const KILLS: usize = 20;

/// A scene at noon of 10 January with a pricing.
fn begin(database: &Database) -> Scene {
    priced(Scene::begin(database, "2026-01-10"))
}

/// Does the same as [`begin`]. Returns the machine's clock too, which shows the same instant.
fn begin_on_clock(database: &Database) -> (Scene, Clock) {
    let machine = Clock::at("2026-01-10T12:00:00Z");
    (priced(Scene::begin_on(database, "2026-01-10", &machine)), machine)
}

fn priced(scene: Scene) -> Scene {
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    scene
}

/// Creates a contract, which is a notification.
fn sell(scene: &Scene) {
    scene.sell(&[product("p", "2026-01-01", "2026-12-31")]);
}

fn kinds(hooks: &[Hook]) -> Vec<&str> {
    let mut kinds: Vec<&str> = hooks.iter().map(|hook| hook.body["type"].as_str().unwrap_or_default()).collect();
    kinds.sort_unstable();
    kinds
}

/// Returns the states of an endpoint's deliveries, sorted.
fn states(client: &Client, endpoint: &Endpoint) -> Vec<String> {
    let deliveries = endpoint.deliveries(client, "");
    let mut states: Vec<String> = deliveries.iter().map(|one| one["state"].as_str().unwrap_or_default().to_owned()).collect();
    states.sort();
    states
}

fn a_notification_arrives_signed_with_the_body_that_the_feed_shows(database: &Database) {
    let scene = begin(database);
    let (all, documents, others) = (Receiver::start(), Receiver::start(), Receiver::start());
    let endpoint = Endpoint::create(&scene.client, &all, &json!({"description": "Everything"}));
    let narrow = Endpoint::create(&scene.client, &documents, &json!({"event_types": ["document.*"]}));
    scene.client.post("/api/customers/", &json!({"customer_ref": "other", "name": "Other Ltd"})).ok();
    Endpoint::create(&scene.client, &others, &json!({"customer_refs": ["other"]}));
    sell(&scene);
    scene.calls("2026-01-09", 10);

    let hooks = all.wait_for(2);
    assert_eq!(kinds(&hooks), ["contract.changed", "document.opened"]);
    let reported: BTreeMap<String, Value> = books::feed(database, &scene.client, 0)
        .into_iter()
        .map(|notification| (notification["notification_ref"].as_str().unwrap_or_default().to_owned(), notification))
        .collect();
    for hook in &hooks {
        assert!(hook.is_signed_with(&endpoint.secret) && !hook.is_signed_with(&narrow.secret), "{hook:?}");
        assert_eq!(hook.header("content-type"), "application/json");
        assert!(hook.header("user-agent").starts_with("usage-billing-webhooks/"), "{hook:?}");
        let reported = &reported[hook.id()];
        for (name, value) in hook.body.as_object().expect("an object") {
            assert_eq!(reported[name], *value, "{name} of {reported}");
        }
    }
    let opened = documents.wait_for(1);
    assert_eq!(kinds(&opened), ["document.opened"]);
    assert!(opened[0].is_signed_with(&narrow.secret));
    let of_all = hooks.iter().find(|hook| hook.id() == opened[0].id()).expect("the same notification");
    assert_eq!(of_all.text, opened[0].text, "each endpoint receives the same bytes");

    endpoint.wait_for(&scene.client, "pending", &json!(0));
    let deliveries = endpoint.deliveries(&scene.client, "state=DELIVERED&type=document.opened");
    let [delivery] = deliveries.as_slice() else { panic!("one: {deliveries:?}") };
    let (subject, attempt) = (&opened[0].body["subject"], json!(1));
    assert_eq!((&delivery["subject"], &delivery["attempt"]), (subject, &attempt));
    assert_eq!(delivery["notification_ref"], opened[0].id());
    assert_eq!((&delivery["attempts"][0]["status"], &delivery["attempts"][0]["outcome"]), (&json!(204), &json!("DELIVERED")));
    let shown = endpoint.shown(&scene.client);
    assert_eq!((&shown["state"], &shown["failed"], &shown["secret"]), (&json!("ACTIVE"), &json!(0), &Value::Null));
    assert!(shown["last_delivered_at"].is_string(), "{shown}");
    assert_eq!((documents.hooks().len(), others.hooks().len()), (1, 0));
    narrow.wait_for(&scene.client, "pending", &json!(0));
    let metrics = scene.client.get("/metrics").text;
    assert!(metrics.contains("webhook_attempts_total{outcome=\"delivered\"} 3"), "{metrics}");

    assert_eq!(scene.client.delete(&endpoint.path("")).status, 204);
    let not_found = refused(404, "webhook_endpoint_not_found");
    assert_eq!(not_found.check(&scene.client.get(&endpoint.path(""))), Ok(()));
    assert_eq!(endpoint.deliveries(&scene.client, ""), [] as [Value; 0]);
}

fn a_refused_notification_arrives_again_with_the_same_name_and_body(database: &Database) {
    let (scene, machine) = begin_on_clock(database);
    let receiver = Receiver::answering(|_| HookAnswer { status: 500, head: String::new(), body: "broken\u{7}".to_owned() });
    let endpoint = Endpoint::create(&scene.client, &receiver, &json!({}));
    sell(&scene);
    endpoint.wait_for(&scene.client, "state", &json!("FAILING"));
    let deliveries = endpoint.deliveries(&scene.client, "");
    let [delivery] = deliveries.as_slice() else { panic!("one: {deliveries:?}") };
    assert_eq!((&delivery["state"], &delivery["attempt"]), (&json!("PENDING"), &json!(1)));
    let attempt = &delivery["attempts"][0];
    assert_eq!(books::fields(attempt, ["status", "outcome", "excerpt"]), ["500", "REJECTED", "broken"]);
    assert!(delivery["due_at"].is_string(), "{delivery}");

    receiver.answer_with(|_| HookAnswer::of(200));
    machine.set("2026-01-11T11:00:00Z");
    endpoint.wait_for(&scene.client, "state", &json!("ACTIVE"));
    let hooks = receiver.hooks();
    let [.., refused, accepted] = hooks.as_slice() else { panic!("two: {hooks:?}") };
    assert_eq!((refused.id(), &refused.text), (accepted.id(), &accepted.text));
    assert_ne!(refused.header("webhook-timestamp"), accepted.header("webhook-timestamp"));
    assert!(refused.is_signed_with(&endpoint.secret) && accepted.is_signed_with(&endpoint.secret));
    assert_eq!(states(&scene.client, &endpoint), ["DELIVERED"]);
}

fn during_a_rotation_requests_are_signed_with_both_secrets(database: &Database) {
    let (scene, machine) = begin_on_clock(database);
    let receiver = Receiver::start();
    let endpoint = Endpoint::create(&scene.client, &receiver, &json!({}));
    let rotated = scene.client.post(&endpoint.path("rotate/"), &json!({"overlap_hours": 1}));
    let newer = rotated.text_of("secret");
    assert_ne!(newer, endpoint.secret);
    let again = scene.client.post(&endpoint.path("rotate/"), &json!({}));
    assert_eq!(refused(409, "rotation_in_progress").check(&again), Ok(()));
    sell(&scene);
    let hooks = receiver.wait_for(1);
    assert!(hooks[0].is_signed_with(&newer) && hooks[0].is_signed_with(&endpoint.secret), "{hooks:?}");
    assert_eq!(hooks[0].header("webhook-signature").split(' ').count(), 2);

    machine.set("2026-01-10T13:30:00Z");
    sell(&scene);
    let hooks = receiver.wait_for(2);
    assert!(hooks[1].is_signed_with(&newer) && !hooks[1].is_signed_with(&endpoint.secret), "{hooks:?}");

    let now = scene.client.post(&endpoint.path("rotate/"), &json!({"overlap_hours": 0})).text_of("secret");
    sell(&scene);
    let hooks = receiver.wait_for(3);
    assert!(hooks[2].is_signed_with(&now) && !hooks[2].is_signed_with(&newer), "{hooks:?}");
}

fn an_endpoint_that_is_gone_is_disabled_and_gets_what_it_missed_on_request(database: &Database) {
    let scene = begin(database);
    let receiver = Receiver::answering(|_| HookAnswer::of(410));
    let endpoint = Endpoint::create(&scene.client, &receiver, &json!({}));
    sell(&scene);
    endpoint.wait_for(&scene.client, "state", &json!("DISABLED"));
    let shown = endpoint.shown(&scene.client);
    assert_eq!((&shown["enabled"], &shown["disabled_reason"]), (&json!(false), &json!("GONE")));
    let reported = books::notifications(&scene.client, "type=endpoint.disabled");
    assert_eq!(reported[0]["subject"], format!("endpoint:{}", endpoint.endpoint_ref));
    let entries = scene.client.get(&format!("/api/audit/filter?object_ref={}", endpoint.endpoint_ref)).ok();
    assert_eq!((&entries[0]["action"], &entries[1]["action"]), (&json!("DISABLE"), &json!("CREATE")));
    sell(&scene);
    books::feed(database, &scene.client, 0);
    assert_eq!((states(&scene.client, &endpoint), receiver.hooks().len()), (vec!["CANCELLED".to_owned()], 1));
    let replay = |body: Value| scene.client.post(&endpoint.path("replay/"), &body);
    assert_eq!(refused(409, "endpoint_disabled").check(&replay(json!({"after": 0}))), Ok(()));

    receiver.answer_with(|_| HookAnswer::of(204));
    let edited = scene.client.post(&endpoint.path("edit/"), &json!({"enabled": true})).ok();
    assert_eq!((&edited["state"], &edited["disabled_reason"]), (&json!("ACTIVE"), &Value::Null));
    assert_eq!(replay(json!({"after": 0})).ok(), json!({"scheduled": 2, "next": null}), "those without a delivery");
    let hooks = receiver.wait_for(3);
    assert_eq!(kinds(&hooks[1..]), ["contract.changed", "endpoint.disabled"]);
    assert_eq!(replay(json!({"after": 0, "only": "FAILED"})).ok()["scheduled"], json!(1), "the cancelled one");
    receiver.wait_for(4);
    endpoint.wait_for(&scene.client, "pending", &json!(0));
    assert_eq!(replay(json!({"after": 0})).ok()["scheduled"], json!(0));
    let first = json!({"notification_refs": [hooks[0].id()], "only": "ALL"});
    assert_eq!(replay(first).ok()["scheduled"], json!(1));
    let hooks = receiver.wait_for(5);
    assert_eq!((hooks[4].id(), &hooks[4].text), (hooks[0].id(), &hooks[0].text));
    let types = json!({"after": 0, "only": "ALL", "types": ["document.*"]});
    assert_eq!(replay(types).ok()["scheduled"], json!(0));
}

fn an_overloaded_endpoint_is_left_alone_for_as_long_as_it_asks(database: &Database) {
    let (scene, machine) = begin_on_clock(database);
    let receiver = Receiver::answering(|_| HookAnswer { status: 429, head: "Retry-After: 600".to_owned(), body: String::new() });
    let endpoint = Endpoint::create(&scene.client, &receiver, &json!({}));
    sell(&scene);
    endpoint.wait_for(&scene.client, "state", &json!("PAUSED"));
    assert!(endpoint.shown(&scene.client)["paused_until"].is_string());
    for _ in 0..3 {
        sell(&scene);
    }
    books::feed(database, &scene.client, 0);
    machine.set("2026-01-10T12:05:00Z");
    assert_eq!(endpoint.shown(&scene.client)["state"], json!("PAUSED"));
    assert_eq!(receiver.hooks().len(), 1, "a paused endpoint receives nothing");
    receiver.answer_with(|_| HookAnswer::of(204));
    machine.set("2026-01-10T12:30:00Z");
    receiver.wait_for(5);
    endpoint.wait_for(&scene.client, "pending", &json!(0));
    assert_eq!(states(&scene.client, &endpoint), ["DELIVERED"; 4]);
    assert_eq!(endpoint.shown(&scene.client)["state"], json!("ACTIVE"));
}

fn a_test_goes_to_its_endpoint_only_and_changes_nothing(database: &Database) {
    let scene = begin(database);
    let (tested, other) = (Receiver::answering(|_| HookAnswer::of(500)), Receiver::start());
    let endpoint = Endpoint::create(&scene.client, &tested, &json!({"enabled": false}));
    Endpoint::create(&scene.client, &other, &json!({}));
    let attempt = scene.client.post_nothing(&endpoint.path("test/")).ok();
    assert_eq!(books::fields(&attempt, ["status", "outcome"]), ["500", "REJECTED"]);
    let hooks = tested.hooks();
    assert_eq!(kinds(&hooks), ["webhook.test"]);
    assert!(hooks[0].is_signed_with(&endpoint.secret));
    let reported = books::notifications(&scene.client, "type=webhook.test");
    assert_eq!(reported[0]["notification_ref"], hooks[0].id());
    let shown = endpoint.shown(&scene.client);
    assert_eq!((&shown["state"], &shown["failing_since"]), (&json!("DISABLED"), &Value::Null));
    sell(&scene);
    assert_eq!(kinds(&other.wait_for(1)), ["contract.changed"]);
    assert_eq!(tested.hooks().len(), 1);

    // The answer is stored under the key of the request, so a repeat sends nothing.
    let path = endpoint.path("test/");
    let request = || Request::post(&path, "").without("Content-Type").with("Idempotency-Key", "once");
    let first = scene.client.send(&request());
    assert_eq!((scene.client.send(&request()).text, tested.hooks().len()), (first.text, 2));
}

fn a_url_that_requests_may_not_go_to_is_refused(database: &Database) {
    let environment = [
        ("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD),
        ("USAGE_BILLING_WEBHOOK_ALLOW_HTTP", "false"),
        ("USAGE_BILLING_WEBHOOK_ALLOW_NETWORKS", "192.0.2.0/24"),
    ];
    let server = Server::start_in(database, &[], &environment);
    let client = Client::new_key(&server);
    let made = client.post(ENDPOINTS, &json!({"url": "https://192.0.2.7/hooks"})).text_of("endpoint_ref");
    client.post(ENDPOINTS, &json!({"url": "https://example.com:8443/hooks?a=b"})).ok();
    let mut table = Table::default();
    let not_public = rule("address_not_public", "/url address_not_public");
    let invalid_url = rule("invalid_url", "/url invalid_url");
    let rows = [
        ("https://127.0.0.1/", not_public),
        ("https://localhost/", not_public),
        ("https://a.localhost/", not_public),
        ("https://10.0.0.1/", not_public),
        ("https://169.254.169.254/latest/meta-data", not_public),
        ("https://2130706433/", not_public),
        ("https://0x7f.1/", not_public),
        ("https://[::1]/", not_public),
        ("https://[::ffff:10.0.0.1]/", not_public),
        ("https://[fd00::1]/", not_public),
        ("http://example.com/", invalid_url),
        ("ftp://example.com/", invalid_url),
        ("example.com", invalid_url),
        ("https://", invalid_url),
        ("https://user:word@example.com/", invalid_url),
        ("https://example.com/#part", invalid_url),
        ("https://example.com:0/", invalid_url),
        ("https://b\u{fc}cher.example/", invalid_url),
    ];
    for (url, refusal) in rows {
        table.post(&client, ENDPOINTS, &json!({"url": url}), refusal);
        table.post(&client, &format!("{ENDPOINTS}edit/{made}"), &json!({"url": url}), refusal);
    }
    table.post(&client, ENDPOINTS, &json!({}), invalid("/url required"));
    let body = |field: &str, value: Value| catalog::with(json!({"url": "https://example.com/"}), &json!({field: value}));
    let unknown = rule("unknown_event_type", "/event_types/0 unknown_event_type");
    table.post(&client, ENDPOINTS, &body("event_types", json!(["invoice.*"])), unknown);
    table.post(&client, ENDPOINTS, &body("event_types", json!([])), invalid("/event_types out_of_range"));
    let nobody = invalid("/customer_refs/0 unknown_reference");
    table.post(&client, ENDPOINTS, &body("customer_refs", json!(["nobody"])), nobody);
    table.finish();
    assert_eq!(client.get("/api/webhooks/endpoints/filter").header("X-Total-Count"), "2", "a rejected request stored data");
}

fn an_organization_has_16_endpoints(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let body = json!({"url": "http://127.0.0.1:9/hooks", "enabled": false});
    let made: Vec<String> = (0..16).map(|_| client.post(ENDPOINTS, &body).text_of("endpoint_ref")).collect();
    assert_eq!(refused(422, "too_many_endpoints").check(&client.post(ENDPOINTS, &body)), Ok(()));
    assert_eq!(client.delete(&format!("{ENDPOINTS}{}", made[3])).status, 204);
    client.post(ENDPOINTS, &body).ok();
}

fn two_servers_deliver_each_notification_once_although_a_third_of_the_requests_fail(database: &Database) {
    let clock = Clock::at("2026-01-10T12:00:00Z");
    let begin = || Server::start_on_with(database, &clock, &["--token-lifetime-seconds", "86400"]);
    let first = begin();
    // A SQLite file is used by one server.
    let second = (!database.is_sqlite()).then(begin);
    let mut client = Client::new_key(&first);
    let clients = [client.clone(), client.at(second.as_ref().unwrap_or(&first))];
    let mut count = 0_u32;
    let receiver = Receiver::answering(move |_| {
        count += 1;
        HookAnswer::of(if count * 7 % 10 < 3 { 500 } else { 204 })
    });
    let endpoint = Endpoint::create(&client, &receiver, &json!({}));
    catalog::make(&client);
    let plan = json!([product(catalog::API_PLAN, "2026-01-01", "2026-12-31")]);
    for n in 0..60 {
        catalog::make_contract(&clients[n % 2], &json!({"customer_ref": catalog::ACME, "products": plan}));
    }
    let mut minutes = 0;
    wait_until_all_are_accepted(database, &mut client, &receiver, |_| {
        // A lease that a turned clock ends is not what this test is about.
        let leased = database.ask("SELECT count(*) FROM webhook_deliveries WHERE lease_by IS NOT NULL");
        if leased == ["0"] {
            minutes += 10;
            clock.set(&format!(
                "2026-01-{:02}T{:02}:{:02}:00Z",
                10 + (720 + minutes) / 1440,
                (720 + minutes) / 60 % 24,
                minutes % 60
            ));
        }
    });
    endpoint.wait_for(&client, "pending", &json!(0));
    let accepted = receiver.accepted();
    assert_eq!(accepted.len(), 60);
    assert!(accepted.values().all(|times| *times == 1), "{accepted:?}");
    assert!(receiver.hooks().iter().all(|hook| hook.is_signed_with(&endpoint.secret)));
    assert_eq!(states(&client, &endpoint), vec!["DELIVERED"; 60]);
}

fn a_killed_server_loses_no_notification(database: &Database) {
    kill_while_delivering(database, KILLS);
}

//! The audit log: each writing request records one entry in its own transaction; a rejected request records none.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::when::Day;
use acceptance::{Answer, Client, Database, Request, Server, binary, books, catalog, on_both_databases, tour};
use serde_json::{Value, json};

on_both_databases!(
    every_writing_operation_leaves_one_entry_and_a_refused_one_none,
    an_entry_tells_who_did_what_from_what_to_what,
    what_changes_nothing_and_what_is_repeated_leave_no_entry,
    log_ins_are_noted_and_a_flood_of_them_is_not,
    the_command_line_and_the_clock_are_told_apart,
    the_log_is_read_on_from_a_cursor_while_it_grows,
);

/// The action and object kind that each writing operation records, or the reason why it records nothing.
#[allow(clippy::type_complexity, reason = "the constant is a table")]
const LEFT: [(&str, Result<(&str, &str), &str>); 73] = [
    ("log_in", Ok(("LOG_IN", "API_KEY"))),
    ("log_out", Err("ends what was begun, and changes nothing")),
    ("generate_key", Ok(("CREATE", "API_KEY"))),
    ("rotate_key", Ok(("ROTATE", "API_KEY"))),
    ("delete_key", Ok(("DELETE", "API_KEY"))),
    ("end_session", Ok(("END_SESSIONS", "ADMINISTRATOR"))),
    ("end_other_sessions", Ok(("END_SESSIONS", "ADMINISTRATOR"))),
    ("change_password", Ok(("CHANGE_PASSWORD", "ADMINISTRATOR"))),
    ("confirm_identity", Err("changes nothing but what the session may do")),
    ("enroll_second_factor", Err("not in effect before it is confirmed")),
    ("confirm_second_factor", Ok(("ADD_SECOND_FACTOR", "ADMINISTRATOR"))),
    ("remove_second_factor", Ok(("REMOVE_SECOND_FACTOR", "ADMINISTRATOR"))),
    ("invite_administrator", Ok(("CREATE", "ADMINISTRATOR"))),
    ("edit_administrator", Ok(("EDIT", "ADMINISTRATOR"))),
    ("reset_administrator", Ok(("RESET_PASSWORD", "ADMINISTRATOR"))),
    ("record_event", Err(REVISIONS)),
    ("record_batch", Err(REVISIONS)),
    ("record_formatted_event", Err(REVISIONS)),
    ("update_formatted_event", Err(REVISIONS)),
    ("update_event", Err(REVISIONS)),
    ("delete_event", Err(REVISIONS)),
    ("import_usage", Ok(("IMPORT", "USAGE_FILE"))),
    ("undo_import", Ok(("UNDO_IMPORT", "USAGE_FILE"))),
    ("create_usage_product", Ok(("CREATE", "USAGE_PRODUCT"))),
    ("edit_usage_product", Ok(("EDIT", "USAGE_PRODUCT"))),
    ("create_customer", Ok(("CREATE", "CUSTOMER"))),
    ("edit_customer", Ok(("EDIT", "CUSTOMER"))),
    ("create_entity", Ok(("CREATE", "ENTITY"))),
    ("edit_entity", Ok(("EDIT", "ENTITY"))),
    ("delete_entity", Ok(("DELETE", "ENTITY"))),
    ("create_pricing", Ok(("CREATE", "PRICING"))),
    ("edit_pricing", Ok(("EDIT", "PRICING"))),
    ("rate_new_pricing", Err("a question, which stores nothing")),
    ("create_bank_account", Ok(("CREATE", "BANK_ACCOUNT"))),
    ("edit_bank_account", Ok(("EDIT", "BANK_ACCOUNT"))),
    ("put_exchange_rate", Ok(("CREATE", "EXCHANGE_RATE"))),
    ("create_usage_format", Ok(("CREATE", "FORMAT"))),
    ("edit_usage_format", Ok(("EDIT", "FORMAT"))),
    ("test_usage_format", Err("a question, which stores nothing")),
    ("create_contract", Ok(("CREATE", "CONTRACT"))),
    ("edit_contract", Ok(("EDIT", "CONTRACT"))),
    ("change_quantity", Ok(("CHANGE_QUANTITY", "CONTRACT"))),
    ("cancel_contract", Ok(("CANCEL", "CONTRACT"))),
    ("resume_contract", Ok(("RESUME", "CONTRACT"))),
    ("create_credit_grant", Ok(("CREATE", "CREDIT_GRANT"))),
    ("edit_credit_grant", Ok(("EDIT", "CREDIT_GRANT"))),
    ("sell_credit", Ok(("CREATE", "CREDIT_GRANT"))),
    ("create_limit", Ok(("CREATE", "LIMIT"))),
    ("edit_limit", Ok(("EDIT", "LIMIT"))),
    ("delete_limit", Ok(("DELETE", "LIMIT"))),
    ("create_hold", Err("like an event, which tells its changes itself")),
    ("release_hold", Err("like an event, which tells its changes itself")),
    ("record_charge", Ok(("CREATE", "CHARGE"))),
    ("edit_charge", Ok(("EDIT", "CHARGE"))),
    ("delete_charge", Ok(("DELETE", "CHARGE"))),
    ("dry_run", Err("a question, which stores nothing")),
    ("run_billing", Ok(("RUN", "BILLING_RUN"))),
    ("advance_clock", Err("what is issued on the way is recorded as in the runs of a live server")),
    ("issue_document", Ok(("ISSUE", "DOCUMENT"))),
    ("void_document", Ok(("VOID", "DOCUMENT"))),
    ("record_payment", Ok(("CREATE", "PAYMENT"))),
    ("record_deposit", Ok(("CREATE", "PAYMENT"))),
    ("reverse_payment", Ok(("REVERSE", "PAYMENT"))),
    ("refund", Ok(("CREATE", "PAYMENT"))),
    ("apply", Ok(("CREATE", "APPLICATION"))),
    ("unapply", Ok(("DELETE", "APPLICATION"))),
    ("write_off", Ok(("WRITE_OFF", "DOCUMENT"))),
    ("create_webhook_endpoint", Ok(("CREATE", "WEBHOOK_ENDPOINT"))),
    ("edit_webhook_endpoint", Ok(("EDIT", "WEBHOOK_ENDPOINT"))),
    ("delete_webhook_endpoint", Ok(("DELETE", "WEBHOOK_ENDPOINT"))),
    ("rotate_webhook_secret", Ok(("ROTATE", "WEBHOOK_ENDPOINT"))),
    ("test_webhook_endpoint", Err("changes nothing about the endpoint, and the feed has the test")),
    ("replay_webhook_deliveries", Ok(("REPLAY", "WEBHOOK_ENDPOINT"))),
];
const REVISIONS: &str = "an event's revisions tell its changes";

/// Operations that succeed for any caller and body: log-out, and operations without body and parameters.
const NEVER_REFUSED: [&str; 3] = ["log_out", "enroll_second_factor", "end_other_sessions"];

/// What a sale of credit records besides the grant.
const OF_A_SALE: [(&str, &str); 2] = [("CREATE", "CONTRACT"), ("CREATE", "PAYMENT")];

/// Returns the recorded actions without the use of a recovery code that confirmed one of them, and without the parts of a sale.
fn without_parts<'a>(operation: &str, done: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let is_part =
        |entry: &(&str, &str)| entry.0 == "USE_RECOVERY_CODE" || operation == "sell_credit" && OF_A_SALE.contains(entry);
    done.iter().copied().filter(|entry| !is_part(entry)).collect()
}

const UNKNOWN: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

fn entries(client: &Client, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("/api/audit/filter?pageSize=1000&{query}"));
    let total: usize = answer.header("x-total-count").parse().expect("a number");
    let entries = answer.ok().as_array().expect("a list").clone();
    assert_eq!(entries.len(), total);
    entries
}

fn request_id(answer: &Answer) -> String {
    answer.header("x-request-id").to_owned()
}

/// Returns the writing operations of the OpenAPI document: all methods but GET.
fn writing(client: &Client) -> BTreeMap<String, (String, String)> {
    let described = client.get("/openapi.json").ok();
    let mut all = BTreeMap::new();
    for (path, item) in described["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods").iter().filter(|(method, _)| *method != "get") {
            let name = operation["operationId"].as_str().expect("a name").to_owned();
            all.insert(name, (method.to_uppercase(), path.clone()));
        }
    }
    all
}

fn every_writing_operation_leaves_one_entry_and_a_refused_one_none(database: &Database) {
    let (server, _clock) = tour::begin(database, &[]);
    let taken = tour::take(&server);
    let admin = Client::admin(&server);
    let writing = writing(&admin);
    let left: BTreeMap<&str, _> = LEFT.into_iter().collect();
    assert_eq!(
        left.keys().copied().collect::<BTreeSet<_>>(),
        writing.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        "`LEFT` lists each writing operation"
    );

    // The first start of a sandbox made another key, which has a name.
    let keys = admin.get("/auth/keys/list").ok();
    let of_tour = keys.as_array().into_iter().flatten().find(|key| key["name"].is_null());
    let key = of_tour.and_then(|key| key["api_key_ref"].as_str()).expect("a key").to_owned();
    for exchange in &taken.exchanges {
        let found = entries(&admin, &format!("request_id={}", request_id(&exchange.answer)));
        let done: Vec<_> = found.iter().map(|entry| (text(&entry["action"]), text(&entry["object_kind"]))).collect();
        match left.get(exchange.operation) {
            Some(Ok(expected)) => assert_eq!(without_parts(exchange.operation, &done), [*expected], "{}", exchange.operation),
            Some(Err(_)) | None => assert!(done.is_empty(), "{} records {done:?}", exchange.operation),
        }
        let by_key = format!("api_key:{key}");
        let actors: Vec<&str> = found.iter().map(|entry| text(&entry["actor"])).collect();
        assert!(
            actors.iter().all(|actor| match left.get(exchange.operation) {
                _ if exchange.operation == "log_in" => actor.starts_with("api_key:"),
                Some(Ok((_, "API_KEY" | "ADMINISTRATOR"))) => actor.starts_with("admin:"),
                _ => *actor == by_key,
            }),
            "{}: {actors:?}",
            exchange.operation
        );
    }

    // The log contains no secret.
    let password = taken.exchanges.iter().find(|exchange| exchange.operation == "generate_key").expect("a key");
    let password = text(&password.answer.body["password"]);
    let all = Value::Array(entries(&admin, "")).to_string();
    assert!(!all.contains(password) && !all.contains(ADMIN_PASSWORD));

    let before = entries(&admin, "").len();
    for (operation, (method, path)) in &writing {
        let path = path.split('{').next().unwrap_or_default().to_owned() + if path.contains('{') { UNKNOWN } else { "" };
        if NEVER_REFUSED.contains(&operation.as_str()) {
            continue;
        }
        let is_admins = path.starts_with("/auth/") || path.starts_with("/api/administrators/");
        let client = if is_admins { &admin } else { &taken.client };
        // A request without a body names an unknown reference. All other requests also send an unknown field.
        let body = Some(json!({"nobody_has_this_field": true}).to_string().into_bytes()).filter(|_| method == "POST");
        let answer = client.send(&Request { method, path: &path, headers: vec![("content-type", "application/json")], body });
        assert!((400..500).contains(&answer.status), "{operation}: {}", answer.text);
        assert!(entries(&Client::admin(&server), &format!("request_id={}", request_id(&answer))).is_empty(), "{operation}");
    }
    let other: Vec<Value> = entries(&Client::admin(&server), "");
    let log_ins = other.iter().filter(|entry| entry["action"] == "LOG_IN" && entry["object_kind"] == "ADMINISTRATOR").count();
    assert!(other.len() <= before + log_ins, "{other:?}");
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("expected a string, not {value}"))
}

/// Returns an entry without its reference and creation time.
fn reported(entry: &Value) -> (&str, &str, &str, Value, Value) {
    (
        text(&entry["action"]),
        text(&entry["object_kind"]),
        text(&entry["object_ref"]),
        entry["before"].clone(),
        entry["after"].clone(),
    )
}

fn an_entry_tells_who_did_what_from_what_to_what(database: &Database) {
    let server = Server::start(database);
    let (admin, client) = (Client::admin(&server), Client::new_key(&server));
    let of =
        |client: &Client, kind: &str, reference: &str| entries(client, &format!("object_kind={kind}&object_ref={reference}"));
    let client_with_id = client.with_header("X-Request-Id", "their/id-1");
    client_with_id.post("/api/customers/", &json!({"customer_ref": "umbrella", "name": "Acme", "tax": "19.0"})).ok();
    admin.post("/api/customers/edit/umbrella", &json!({"name": "Acme Ltd", "tax": null, "email": "a@acme.example"})).ok();
    let found = of(&client, "CUSTOMER", "umbrella");
    let [edit, create] = found.as_slice() else { panic!("{found:?}") };
    let (action, _, _, before, after) = reported(create);
    assert_eq!((action, before, &after["name"]), ("CREATE", Value::Null, &json!("Acme")));
    assert!(after.get("email").is_none(), "null fields are omitted: {after}");
    assert_eq!((text(&create["request_id"]), text(&create["actor"]).split(':').next()), ("their/id-1", Some("api_key")));
    assert_eq!(
        reported(edit),
        (
            "EDIT",
            "CUSTOMER",
            "umbrella",
            json!({"name": "Acme", "tax": 19.0, "tax_treatments": []}),
            json!({"name": "Acme Ltd", "email": "a@acme.example", "tax_treatments": [{"from": Day::today().to_string()}]})
        )
    );
    assert!(text(&edit["actor"]).starts_with("admin:"));

    // The entry for a contract shows only the changed fields of its products.
    catalog::make(&client);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let product = json!({"product_pricing_ref": catalog::API_PLAN, "discount": 5});
    books::edit(&client, &contract_ref, &json!({"products": [product], "include_current_invoice": true})).ok();
    let found = of(&client, "CONTRACT", &contract_ref);
    let (action, _, _, before, after) = reported(&found[0]);
    assert_eq!((action, &before["version"], &after["version"]), ("EDIT", &json!(1), &json!(2)));
    // Each changed product is named.
    let products = after["products"].as_array().expect("products");
    assert_eq!(books::fields(&products[0], ["product_no", "discount"]), ["0", "5"]);
    assert_eq!((products.len(), products[0].as_object().map(serde_json::Map::len)), (1, Some(3)), "{products:?}");
    assert!(products[0]["product_name"].is_string(), "{products:?}");
    // The contract and its customer have names. Only administrators see the names of authors.
    let of_admin = of(&admin, "CONTRACT", &contract_ref);
    assert!(text(&of_admin[0]["object_name"]).starts_with("C-"), "{}", of_admin[0]);
    for name in ["customer_ref", "customer_name", "actor_name"] {
        assert!(of_admin[0][name].is_string(), "{name}: {}", of_admin[0]);
    }
    assert_eq!((found[0]["customer_name"].is_string(), &found[0]["actor_name"]), (true, &Value::Null));
    assert!(text(&of(&admin, "CUSTOMER", "umbrella")[0]["actor_name"]).contains('@'));

    // Replacing a rate is recorded as an edit.
    let rate = |rate: &str| json!({"from": "USD", "to": "EUR", "date": "2026-01-05", "rate": rate});
    for value in ["0.86", "0.87"] {
        client.post("/api/exchange_rates/", &rate(value)).ok();
    }
    let found = of(&client, "EXCHANGE_RATE", "USD/EUR/2026-01-05");
    let actions: Vec<&str> = found.iter().map(|entry| text(&entry["action"])).collect();
    assert_eq!((actions, &found[0]["after"]), (vec!["EDIT", "CREATE"], &json!({"rate": 0.87})));

    // A filter returns exactly the matching entries.
    let actor = text(&edit["actor"]);
    for (query, is_found) in [
        (format!("actor={actor}&action=EDIT"), true),
        (format!("actor={actor}&action=DELETE"), false),
        ("request_id=their/id-1".to_owned(), true),
        ("request_id=their/id-2".to_owned(), false),
        ("actor=nonsense".to_owned(), false),
        ("to=2020-01-01T00:00:00Z".to_owned(), false),
        ("from=2020-01-01T00:00:00Z&object_kind=CUSTOMER".to_owned(), true),
    ] {
        assert_eq!(!entries(&client, &query).is_empty(), is_found, "{query}");
    }
    let refused = client.get("/api/audit/filter?action=NOTHING&object_kind=THING&cursor=x&pageNumber=1&from=yesterday");
    assert_eq!(refused.status, 422);
    for pointer in ["/action", "/object_kind", "/from", "/pageNumber"] {
        assert!(refused.text.contains(pointer), "{}", refused.text);
    }
}

fn what_changes_nothing_and_what_is_repeated_leave_no_entry(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let count = || entries(&client, "").len();
    let before = count();
    let customer = client.get("/api/customers/acme").ok();
    client.post("/api/customers/edit/acme", &json!({"name": customer["name"]})).ok();
    let at = |action: &str| format!("/api/contracts/{action}/{contract_ref}");
    client.post(&at("cancel"), &json!({"dry_run": true})).ok();
    client.post("/api/billing/run", &json!({"dry_run": true})).ok();
    client.post("/api/billing/run", &json!({})).ok();
    books::report(&client, &catalog::event("acme", 1));
    assert_eq!(count(), before);

    let keyed = client.with_header("Idempotency-Key", "once");
    let customer = json!({"customer_ref": "twice", "name": "Twice"});
    for _ in 0..2 {
        keyed.post("/api/customers/", &customer).ok();
    }
    assert_eq!(count(), before + 1, "a repeat is not a change");
    assert_eq!(client.post("/api/customers/", &customer).status, 409);
    // An import records its result. Repeating the import records nothing.
    let event = catalog::with(catalog::event("acme", 2), &json!({"idempotency_key": "k"}));
    let import =
        || client.post("/api/usage/import?name=usage.json", &json!([event, {"quantity": 1, "idempotency_key": "bad"}])).ok();
    let [first, _] = [(); 2].map(|()| import());
    let found = entries(&client, "object_kind=USAGE_FILE");
    let reported: Vec<_> = found.iter().map(reported).collect();
    let after = json!({"import_ref": first["import_ref"], "recorded": 1, "updated": 0, "already_there": 0, "refused": 1, "skipped": 0, "documents": 1});
    assert_eq!(reported, [("IMPORT", "USAGE_FILE", "usage.json", Value::Null, after)]);
    assert_eq!(count(), before + 2);
}

/// Polls until the query returns at least `count` entries: no request waits until these entries are written.
fn eventually(client: &Client, query: &str, count: usize) -> Vec<Value> {
    let began = Instant::now();
    loop {
        let found = entries(client, query);
        if found.len() >= count || began.elapsed() > Duration::from_secs(20) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn log_ins_are_noted_and_a_flood_of_them_is_not(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let client = Client::key(&server, &key);
    let nobody = Client::anonymous(&server);
    let try_as = |body: Value| assert_eq!(nobody.post("/auth/login", &body).status, 401);
    // The attempts are few enough not to be throttled.
    for _ in 0..3 {
        try_as(json!({"api_key": key.api_key, "password": "not its password, by far"}));
        try_as(json!({"email": ADMIN_EMAIL, "password": "not the password of anyone"}));
        try_as(json!({"email": "stranger@example.com", "password": "not the password of anyone"}));
        Client::key(&server, &key);
    }
    let failed = eventually(&admin, "action=FAIL_LOG_IN", 2);
    let mut reported: Vec<_> = failed.iter().map(|entry| (text(&entry["actor"]), text(&entry["object_kind"]))).collect();
    reported.sort_unstable();
    assert_eq!(reported, [("nobody", "ADMINISTRATOR"), ("nobody", "API_KEY")]);
    let of_key = entries(&admin, &format!("action=LOG_IN&actor=api_key:{}", key.api_key_ref));
    assert_eq!(of_key.len(), 1, "repeated log-ins of software within a minute are recorded once");
    assert_eq!(entries(&admin, "action=LOG_IN&object_kind=ADMINISTRATOR").len(), 1);
    Client::admin(&server);
    assert_eq!(entries(&admin, "action=LOG_IN&object_kind=ADMINISTRATOR").len(), 2, "each log-in of a person is recorded");

    // Callers who can't list API keys see neither the entries of keys nor those of administrators.
    let seen = entries(&client, "");
    assert!(seen.iter().all(|entry| !["API_KEY", "ADMINISTRATOR"].contains(&text(&entry["object_kind"]))), "{seen:?}");
    assert!(entries(&client, "object_kind=API_KEY").is_empty());
    let reader = Client::key(&server, &admin.generate_key(&json!({"scopes": ["usage:write"]})));
    assert_eq!(reader.get("/api/audit/filter").status, 403);
}

fn the_command_line_and_the_clock_are_told_apart(database: &Database) {
    let server = Server::start(database);
    let (admin, client) = (Client::admin(&server), Client::new_key(&server));
    let made = entries(&admin, "actor=command_line");
    let reported: BTreeSet<_> = made.iter().map(|entry| (text(&entry["action"]), text(&entry["object_kind"]))).collect();
    assert_eq!(
        reported,
        BTreeSet::from([("CREATE", "ORGANIZATION"), ("CREATE", "ADMINISTRATOR")]),
        "the first start creates both"
    );

    let other = "other@example.com";
    binary::succeed(database, &["admin", "create", "--organization", "default", "--email", other]);
    binary::succeed(database, &["admin", "disable", "--email", other]);
    binary::succeed(database, &["admin", "disable", "--email", other]);
    binary::succeed(database, &["admin", "enable", "--email", other]);
    binary::succeed(database, &["admin", "reset-password", "--email", other, "--password", "another pass phrase"]);
    let of_administrators = entries(&admin, "actor=command_line&object_kind=ADMINISTRATOR");
    let actions: Vec<&str> = of_administrators.iter().map(|entry| text(&entry["action"])).collect();
    assert_eq!(actions, ["RESET_PASSWORD", "ENABLE", "DISABLE", "CREATE", "CREATE"]);
    let created = &of_administrators[3];
    let (admin_ref, at) = (&created["object_ref"], &created["after"]["created_at"]);
    assert_eq!(created["after"], json!({"admin_ref": admin_ref, "email": other, "role": "owner", "created_at": at}));
    assert!(of_administrators[2]["after"]["disabled_at"].is_string());
    assert!(of_administrators.iter().all(|entry| entry["request_id"].is_null()));

    catalog::make(&client);
    catalog::make_customer(&client, "past");
    catalog::make_contract(&client, &catalog::past_contract("past"));
    drop(server);
    // A server issues everything due when it starts.
    let server = Server::start_with(database, &["--run-every-seconds", "3600"]);
    let admin = Client::admin(&server);
    let found = eventually(&admin, "object_kind=BILLING_RUN", 1);
    let runs: Vec<_> = found.iter().map(|entry| (text(&entry["action"]), text(&entry["actor"]), &entry["after"])).collect();
    assert_eq!(runs, [("RUN", "scheduler", &json!({"issued": ["UB-INV-1"], "voided": []}))]);
}

fn the_log_is_read_on_from_a_cursor_while_it_grows(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    for n in 0..7 {
        catalog::make_customer(&client, &format!("customer-{n}"));
    }
    let list = "/api/audit/filter?action=CREATE&object_kind=CUSTOMER&pageSize=3";
    let (mut path, mut seen, mut pages) = (list.to_owned(), Vec::new(), 0);
    loop {
        let answer = client.get(&path);
        let total = answer.headers.get("x-total-count").map(|total| total.to_str().expect("a number").to_owned());
        assert_eq!(total, if pages == 0 { Some("7".to_owned()) } else { None }, "only the first page is counted");
        let next = answer.header("link").split(", ").find(|link| link.ends_with(r#"rel="next""#)).map(|link| {
            let (path, _) = link.trim_start_matches('<').split_once('>').expect("a link");
            path.to_owned()
        });
        seen.extend(answer.ok().as_array().expect("a list").iter().map(|entry| text(&entry["object_ref"]).to_owned()));
        catalog::make_customer(&client, &format!("late-{pages}"));
        pages += 1;
        match next {
            Some(next) => path = next,
            None => break,
        }
    }
    let expected: Vec<String> = (0..7).rev().map(|n| format!("customer-{n}")).collect();
    assert_eq!((seen, pages), (expected, 3));
    // Pages can also be requested by number.
    let second = client.get(&format!("{list}&pageNumber=1")).ok();
    assert_eq!(second.as_array().expect("a list").len(), 3);
    assert_eq!(text(&second[0]["object_ref"]), "customer-6");
    let counted = client.get(&format!("{list}&totals=false"));
    assert!(!counted.headers.contains_key("x-total-count"));
}

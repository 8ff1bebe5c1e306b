//! Creating, editing, reading and testing usage formats. `formatted.rs` tests the events reported with them.

use acceptance::problem::{Refusal, Table, invalid, refused, rule};
use acceptance::{Client, Database, Server, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    a_format_is_read_back_as_it_was_posted,
    each_edit_is_a_version_and_every_version_stays,
    the_default_format_is_there_and_belongs_to_nobody,
    formats_are_listed_page_by_page_after_the_default_one,
    a_bad_format_is_refused_and_leaves_nothing,
    a_test_says_what_a_format_makes_of_an_event_and_stores_nothing,
);

const LIST: &str = "/api/usage/formats/filter?pageSize=1000";

fn mapping() -> Value {
    json!({
        "timestamp": "event.at",
        "customer_ref": "event.who",
        "usage_product_ref": "\"api-calls\"",
        "quantity": "event.much",
    })
}

fn with(field: &str, value: &Value) -> Value {
    let mut mapping = mapping();
    mapping[field] = value.clone();
    mapping
}

fn make(client: &Client, format_ref: &str) -> Value {
    client.post("/api/usage/formats/", &json!({"format_ref": format_ref, "format_name": format_ref, "mapping": mapping()})).ok()
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|format| format["format_name"].as_str().expect("a name")).collect()
}

fn a_format_is_read_back_as_it_was_posted(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let body = json!({
        "format_ref": "log:1",
        "format_name": "Größe » 100 %",
        "mapping": {
            "timestamp": "date_time(\n\tevent.at,\r\n\t\"%d/%b/%Y %z\")",
            "customer_ref": "get(event, \"who\")",
            "customer_name": "event.name",
            "usage_product_name": "\"API\" + \" calls\"",
            "quantity": "event.much * 0.10",
            "additional_report_data": {"z": "event.z", "a \"quoted\" key": "1.50", "ü": "()"},
            "validations": {"currency": "\"EUR\"", "entity_ref": "get(event, \"entity\")"},
        },
    });
    let made = client.post("/api/usage/formats/", &body).ok();
    assert_eq!(made["version"], 1);
    assert!(made["changed_at"].is_string() && made["changed_by"].as_str().is_some_and(|by| by.starts_with("api_key:")), "{made}");
    for field in ["format_ref", "format_name", "mapping"] {
        // Compared as text, because the order of the columns matters.
        assert_eq!(made[field].to_string(), body[field].to_string(), "{field}");
    }
    assert_eq!(client.get("/api/usage/formats/log:1").ok(), made);
    let list = client.get(LIST).ok();
    assert_eq!(list[2], made);

    let copy = json!({"format_name": "Copy", "mapping": made["mapping"]});
    let copied = client.post("/api/usage/formats/", &copy).ok();
    assert_eq!(copied["mapping"].to_string(), made["mapping"].to_string());
    assert_eq!(copied["format_ref"].as_str().map(str::len), Some(36), "the reference is assigned: {copied}");
    for data in [json!("rest"), json!("event.labels"), json!("event[\"my labels\"]"), json!({})] {
        let name = data.to_string();
        let body = json!({"format_name": name, "mapping": with("additional_report_data", &data)});
        let made = client.post("/api/usage/formats/", &body).ok();
        assert_eq!(made["mapping"]["additional_report_data"], data);
    }
}

fn each_edit_is_a_version_and_every_version_stays(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let first = make(&Client::new_key(&server), "log");
    make(&admin, "other");
    let edit = |body: &Value| admin.post("/api/usage/formats/edit/log", body);

    let renamed = edit(&json!({"format_ref": "log", "format_name": "Log"})).ok();
    assert_eq!(
        (&renamed["version"], &renamed["format_name"], &renamed["mapping"]),
        (&json!(2), &json!("Log"), &first["mapping"])
    );
    assert!(renamed["changed_by"].as_str().is_some_and(|by| by.starts_with("admin:")), "{renamed}");
    let changed = edit(&json!({"mapping": with("quantity", &json!("event.much * 2"))})).ok();
    assert_eq!((&changed["version"], &changed["format_name"]), (&json!(3), &json!("Log")));
    let same = edit(&json!({"format_name": "Log", "mapping": changed["mapping"]})).ok();
    assert_eq!(same, changed, "an edit without changes creates no version");

    let mut table = Table::default();
    let path = "/api/usage/formats/edit/log";
    let taken = refused(409, "already_exists");
    let taken = |errors| Refusal { errors, ..taken };
    table.post(&admin, path, &json!({"format_name": "other"}), taken("/format_name already_exists"));
    table.post(&admin, path, &json!({"format_name": "Default Format"}), taken("/format_name already_exists"));
    table.post(&admin, path, &json!({"format_ref": "other"}), invalid("/format_ref not_changeable"));
    table.post(&admin, path, &json!({"format_name": null}), invalid("/format_name required"));
    table.post(
        &admin,
        path,
        &json!({"mapping": {"quantity": "1"}}),
        invalid("/mapping/timestamp required, /mapping/customer_ref required, /mapping/usage_product_ref required"),
    );
    let broken = json!({"mapping": with("quantity", &json!("event."))});
    table.post(&admin, path, &broken, rule("format_error", "/mapping/quantity format_error"));
    for version in ["0", "4294967296", "x"] {
        let code = if version == "x" { "/version invalid_format" } else { "/version out_of_range" };
        table.get(&admin, &format!("/api/usage/formats/log?version={version}"), invalid(code));
    }
    for path in ["log?version=4", "nothing", "default-format?version=2"] {
        table.get(&admin, &format!("/api/usage/formats/{path}"), refused(404, "usage_format_not_found"));
    }
    table.post(&admin, "/api/usage/formats/edit/nothing", &json!({}), refused(404, "usage_format_not_found"));
    table.finish();

    for (version, expected) in [(1, &first), (2, &renamed), (3, &changed)] {
        assert_eq!(admin.get(&format!("/api/usage/formats/log?version={version}")).ok(), *expected);
    }
    assert_eq!(admin.get("/api/usage/formats/log").ok(), changed);
    assert_eq!(names(&admin.get(LIST).ok()), ["Default Format", "CloudEvents", "Log", "other"]);
    assert_eq!(make(&admin, "log-2")["format_name"], "log-2");
}

fn the_default_format_is_there_and_belongs_to_nobody(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let built_in = client.get("/api/usage/formats/default-format").ok();
    assert_eq!((&built_in["format_name"], &built_in["version"]), (&json!("Default Format"), &json!(1)));
    assert_eq!(client.get("/api/usage/formats/default-format?version=1").ok(), built_in);
    assert_eq!(client.get(LIST).ok()[0], built_in);
    let taken = |errors| Refusal { errors, ..refused(409, "already_exists") };
    let mut table = Table::default();
    let path = "/api/usage/formats/";
    let by_ref = json!({"format_ref": "default-format", "format_name": "Mine", "mapping": mapping()});
    table.post(&client, path, &by_ref, taken("/format_ref already_exists"));
    let by_name = json!({"format_name": "Default Format", "mapping": mapping()});
    table.post(&client, path, &by_name, taken("/format_name already_exists"));
    for body in [json!({}), json!({"format_name": "Mine"}), json!({"mapping": mapping()})] {
        table.post(&client, "/api/usage/formats/edit/default-format", &body, refused(409, "format_built_in"));
    }
    table.finish();
    let copy = json!({"format_name": "default format", "mapping": built_in["mapping"]});
    let copied = client.post(path, &copy).ok();
    assert_eq!(copied["mapping"], built_in["mapping"], "names differ by case, and a returned format can be posted back");
}

fn formats_are_listed_page_by_page_after_the_default_one(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let made = ["b", "a", "d", "c"];
    for format in made {
        make(&client, format);
    }
    client.post("/api/usage/formats/edit/b", &json!({"mapping": with("quantity", &json!("1"))})).ok();
    let expected = ["Default Format", "CloudEvents", "b", "a", "d", "c"];
    let backward: Vec<&str> = expected.iter().rev().copied().collect();
    for (size, order) in (1..=7).flat_map(|size| [(size, "created"), (size, "-created")]) {
        let mut seen = Vec::new();
        for number in 0..=6 {
            let answer = client.get(&format!("/api/usage/formats/filter?pageSize={size}&pageNumber={number}&order={order}"));
            assert_eq!(answer.header("X-Total-Count"), "6");
            let page = answer.ok();
            assert!(page.as_array().is_some_and(|page| page.len() <= size), "{page}");
            seen.extend(names(&page).iter().map(|name| (*name).to_owned()));
        }
        assert_eq!(seen, if order == "created" { expected.as_slice() } else { &backward }, "pages of {size} by {order}");
    }
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn a_bad_format_is_refused_and_leaves_nothing(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let made = make(&client, "log");
    let before = client.get(LIST).ok();
    let mut table = Table::default();
    let path = "/api/usage/formats/";
    let named = |mapping: Value| json!({"format_name": "New", "mapping": mapping});
    let quantity = |text: &str| named(with("quantity", &json!(text)));
    let broken = rule("format_error", "/mapping/quantity format_error");

    table.post(
        &client,
        path,
        &json!({"format_ref": "log", "format_name": "x", "mapping": mapping()}),
        Refusal { errors: "/format_ref already_exists", ..refused(409, "already_exists") },
    );
    table.post(
        &client,
        path,
        &json!({"format_name": "log", "mapping": mapping()}),
        Refusal { errors: "/format_name already_exists", ..refused(409, "already_exists") },
    );
    table.post(&client, path, &named(with("quantty", &json!("1"))), rule("unknown_field", "/mapping/quantty unknown_field"));
    let misspelt = with("validations", &json!({"curency": "\"EUR\""}));
    table.post(&client, path, &named(misspelt), rule("unknown_field", "/mapping/validations/curency unknown_field"));
    table.post(&client, path, &quantity(&"x".repeat(2049)), invalid("/mapping/quantity invalid_format"));
    for text in [
        "event.",
        "evnt.much",
        "1 +",
        "let x = 1",
        "event.much = 5",
        "while true {}",
        "loop {}",
        "for i in 0..9 {}",
        "fn f() { f() } f()",
        "eval(\"1\")",
        "print(event)",
        "import \"x\" as y",
        "'a'",
        "`${event}`",
        "1 // two",
        "\"open",
        "12345678901234567890123456789012345678901",
        &"(".repeat(2048),
        &format!("{}1{}", "(".repeat(1000), ")".repeat(1000)),
        &format!("1{}", "+-".repeat(1000)),
        &format!("event{}", "[0]".repeat(600)),
    ] {
        table.post(&client, path, &quantity(text), broken);
    }
    let several = json!({
        "timestamp": "event.",
        "customer_ref": "evnt.a",
        "customer_name": "event.fine",
        "usage_product_name": "(",
        "quantity": "1 +",
        "additional_report_data": {"fine": "event.a", "a/b": "event."},
        "validations": {"currency": "'EUR'"},
    });
    table.post(
        &client,
        path,
        &named(several),
        rule(
            "format_error",
            "/mapping/timestamp format_error, /mapping/customer_ref format_error, /mapping/usage_product_name format_error, \
         /mapping/quantity format_error, /mapping/additional_report_data/a~1b format_error, \
         /mapping/validations/currency format_error",
        ),
    );
    table.finish();
    assert_eq!(client.get(LIST).ok(), before);
    assert_eq!(client.get("/api/usage/formats/log").ok(), made);
    let problem = client.post(path, &quantity("event.a\n +")).body;
    let detail = problem["errors"][0]["detail"].as_str().expect("a detail").to_owned();
    assert!(detail.starts_with("quantity = event.a\n +, line 2, column "), "{detail}");
    assert_eq!(problem["detail"], *detail);
}

fn a_test_says_what_a_format_makes_of_an_event_and_stores_nothing(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    make(&client, "log");
    let before = client.get(LIST).ok();
    let path = "/api/usage/formats/test";
    let event = json!({"at": "2024-06-01T12:00:00+02:00", "who": "nobody", "much": "7.5"});
    let mapped = json!({"mapped": {
        "timestamp": "2024-06-01T10:00:00Z", "customer_ref": "nobody", "usage_product_ref": "api-calls", "quantity": 7.5,
    }});
    for format in [json!({"format_name": "log"}), json!({"format_ref": "log"}), json!({"mapping": mapping()})] {
        let mut body = format.clone();
        body["event"] = event.clone();
        let answer = client.post(path, &body).ok();
        assert_eq!(answer.to_string(), mapped.to_string(), "{format}");
    }
    let mut table = Table::default();
    let unknown = |field| rule("unknown_format", field);
    table.post(&client, path, &json!({"format_name": "Log", "event": {}}), unknown("/format_name unknown_format"));
    table.post(
        &client,
        path,
        &json!({"format_ref": "x", "format_name": "log", "event": {}}),
        unknown("/format_ref unknown_format"),
    );
    table.post(&client, path, &json!({}), invalid("/event required, /format_name required"));
    let both = json!({"format_name": "log", "mapping": mapping(), "event": {}});
    table.post(&client, path, &both, invalid("/mapping not_allowed"));
    let missing = json!({"mapping": mapping(), "event": {"at": "2024-06-01T12:00:00Z", "who": "nobody"}});
    table.post(&client, path, &missing, rule("format_error", "/mapping/quantity format_error"));
    let missing = json!({"format_ref": "log", "event": {"at": "2024-06-01T12:00:00Z", "who": "nobody"}});
    table.post(&client, path, &missing, rule("format_error", "/event format_error"));
    let large = json!({"mapping": mapping(), "event": {"at": "x".repeat(64 << 10)}});
    table.post(&client, path, &large, rule("format_error", "/event format_error"));
    let broken = json!({"mapping": with("quantity", &json!("event.")), "event": event});
    table.post(&client, path, &broken, rule("format_error", "/mapping/quantity format_error"));
    table.finish();
    assert_eq!(client.get(LIST).ok(), before);
}

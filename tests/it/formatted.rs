//! Formatted mode: usage formats process free-form events, which appear on invoices. `formats.rs` tests the formats themselves.

use acceptance::problem::{Refusal, Table, invalid, refused, rule};
use acceptance::when::{self, Day};
use acceptance::{Answer, Client, Database, Request, Server, catalog, on_sqlite};
use serde_json::{Map, Value, json};

on_sqlite!(
    the_real_events_of_the_guide_reach_their_invoices,
    a_formatted_event_is_answered_with_all_its_fields,
    the_default_format_takes_the_default_shape,
    an_event_keeps_the_version_it_was_taken_with,
    a_formatted_update_processes_the_event_afresh,
    an_ordinary_update_leaves_the_submitted_event_in_the_history,
    what_cannot_be_changed_by_a_formatted_update_is_refused,
    an_event_due_upon_usage_names_its_parent,
    a_bad_event_is_refused_and_leaves_nothing,
);

const PAGE: &str = include_str!("../../docs/formats.md");
const REPORT: &str = "/api/usage/event/formatted";
const UPDATE: &str = "/api/usage/event/formatted/update";

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_else(|| panic!("{field} isn't a string in {value}"))
}

fn get_event(client: &Client, result: &Value) -> Value {
    client.get(&format!("/api/usage/event/{}", text(result, "event_ref"))).ok()
}

fn history(client: &Client, result: &Value) -> Vec<Value> {
    let history = client.get(&format!("/api/usage/event/history/{}", text(result, "event_ref"))).ok();
    history.as_array().expect("a list").clone()
}

/// Returns the format, the event and the mapped result of every real event in the guide.
fn examples() -> Vec<[Value; 3]> {
    let (_, real) = PAGE.split_once("## Real events").expect("the guide has real events");
    let blocks = real.split("```").skip(1).step_by(2).map(|block| {
        let (kind, text) = block.split_once('\n').expect("a block has lines");
        (kind, serde_json::from_str::<Value>(text).unwrap_or_else(|error| panic!("{error}: {text}")))
    });
    let blocks: Vec<(&str, Value)> = blocks.collect();
    let example = |three: &[(&str, Value)]| match three {
        [("json format", format), ("json event", event), ("json mapped", answer)] => {
            [format.clone(), event.clone(), answer["mapped"].clone()]
        }
        other => panic!("expected format, event and mapped, not {other:?}"),
    };
    blocks.chunks(3).map(example).collect()
}

fn the_real_events_of_the_guide_reach_their_invoices(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    client.post("/api/entities/", &json!({"entity_ref": "power", "name": "Power", "number_prefix": "POW"})).ok();
    // At 0.50 per unit: 0.7340032 GB, 1642.4 weighted tokens, 6 minutes, 2133.38 kWh.
    let amounts = ["0.37", "821.20", "3.00", "1066.69"];
    let examples = examples();
    assert_eq!(examples.len(), amounts.len());
    for ([format, event, mapped], amount) in examples.iter().zip(amounts) {
        let name = text(format, "format_name");
        let product = text(mapped, "usage_product_ref");
        client.post("/api/usage/products/", &json!({"usage_product_ref": product, "name": format!("Name of {product}")})).ok();
        let price = json!({"model": "PER_UNIT", "unit_price": "0.50"});
        let line =
            json!({"line_item_id": product, "name": product, "kind": "USAGE", "usage_product_ref": product, "price": price});
        catalog::make_pricing(&client, product, &json!([line]));
        let customer = mapped.get("customer_name").unwrap_or(&mapped["customer_ref"]);
        let customer = json!({"customer_ref": mapped["customer_ref"], "name": customer});
        let customer = client.post("/api/customers/", &customer).ok();
        let contract = json!({"customer_ref": customer["customer_ref"], "products": [{
            "product_pricing_ref": product,
            "billing_start_date": "2024-01-01",
            "billing_end_date": "2024-12-31",
            "billing_cycle": {"unit": "ONE_TIME", "cycle": 1},
            "entity_ref": mapped["validations"]["entity_ref"],
        }]});
        catalog::make_contract(&client, &contract);
        client.post("/api/usage/formats/", format).ok();

        let result = client.post(REPORT, &json!({"format_name": name, "event": event})).ok();
        for field in ["timestamp", "quantity", "usage_product_ref", "additional_report_data"] {
            assert_eq!(result[field].to_string(), mapped[field].to_string(), "{name}: {field}");
        }
        let names = [text(&result, "customer_ref"), text(&result, "customer_name"), text(&result, "usage_product_name")];
        assert_eq!(names, [text(&customer, "customer_ref"), text(&customer, "name"), &format!("Name of {product}")]);
        let stored = get_event(&client, &result);
        assert_eq!(stored, result);
        assert_eq!((text(&stored, "format_ref"), &stored["format_version"]), (text(format, "format_ref"), &json!(1)));
        assert_eq!(stored["event"].to_string(), event.to_string(), "{name}: the event as submitted");

        let invoice = client.get(&format!("/api/documents/{}", text(&result, "related_document_ref"))).ok();
        assert_eq!((&invoice["document_number"], &invoice["kind"]), (&result["related_document_numbers"], &json!("INVOICE")));
        let line = &invoice["products"][0]["line_items"][0];
        assert_eq!(
            [line["quantity"].to_string(), line["amount"].to_string()],
            [mapped["quantity"].to_string(), amount.to_owned()]
        );
    }
}

/// Starts a server with the API plan, a contract for acme, and a format.
fn stage(database: &Database) -> (Server, Client, String) {
    let (server, client, contract_ref) = catalog::stage_with(database, &catalog::contract("acme"));
    let mapping = json!({
        "timestamp": "rfc3339(event.at)",
        "customer_ref": "get(event, \"who\")",
        "customer_name": "event.called",
        "usage_product_ref": "get(event, \"what\")",
        "usage_product_name": "event.named",
        "quantity": "event.much",
        "additional_report_data": "rest",
        "validations": {"currency": "get(event, \"currency\")", "entity_ref": "get(event, \"entity\")"},
    });
    client.post("/api/usage/formats/", &json!({"format_ref": "log", "format_name": "Log", "mapping": mapping})).ok();
    (server, client, contract_ref)
}

fn free_form(quantity: impl Into<Value>) -> Value {
    json!({"at": when::now(), "who": "acme", "what": "api-calls", "much": quantity.into(), "z": "last", "a": 1})
}

fn report(client: &Client, event: &Value) -> Value {
    client.post(REPORT, &json!({"format_name": "Log", "event": event})).ok()
}

fn update(client: &Client, result: &Value, event: &Value) -> Answer {
    client.post(UPDATE, &json!({"event_ref": result["event_ref"], "event": event}))
}

fn without(mut event: Value, field: &str) -> Value {
    event.as_object_mut().expect("an object").remove(field).expect("the field exists");
    event
}

/// Returns the quantity of API calls on the current invoice.
fn invoiced(client: &Client, contract_ref: &str) -> String {
    catalog::current_invoice(client, contract_ref)["products"][0]["line_items"][1]["quantity"].to_string()
}

fn a_formatted_event_is_answered_with_all_its_fields(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    let event = catalog::with(free_form(1500), &json!({"nested": {"b": [1.5, null]}, "long": "ü"}));
    let result = report(&client, &event);
    let fields: Vec<&String> = result.as_object().expect("an object").keys().collect();
    assert_eq!(
        fields[..11],
        [
            "event_ref",
            "related_document_ref",
            "related_document_numbers",
            "timestamp",
            "customer_ref",
            "customer_name",
            "usage_product_ref",
            "usage_product_name",
            "quantity",
            "line_item_ids",
            "additional_report_data",
        ]
    );
    assert_eq!(fields[11..], ["document_state", "created_at", "updated_at", "revision", "format_ref", "format_version", "event"]);
    assert_eq!(
        [&result["related_document_numbers"], &result["customer_name"], &result["usage_product_name"], &result["timestamp"]],
        [&json!("UB-INV-1"), &json!("acme Ltd"), &json!("API calls"), &event["at"]]
    );
    let data = r#"{"z":"last","a":1,"nested":"{\"b\":[1.5,null]}","long":"ü"}"#;
    assert_eq!(result["additional_report_data"].to_string(), data);
    assert_eq!(invoiced(&client, &contract_ref), "1500");
    let by_name = json!({"at": when::now(), "called": "acme Ltd", "named": "API calls", "much": "0.5"});
    assert_eq!(text(&report(&client, &by_name), "customer_ref"), "acme");
    assert_eq!(invoiced(&client, &contract_ref), "1500.5");
    let only = &history(&client, &result)[0]["event"];
    assert_eq!((&only["format_ref"], &only["format_version"], &only["event"]), (&json!("log"), &json!(1), &event));

    // Keys keep their order, and numbers keep their digits.
    let raw = format!(
        r#"{{"z": 1.50,"at":"{}","who":"acme" , "what":"api-calls","much":12345678901234.000001,"n":1234567890123456789012345678901234567890}}"#,
        when::now()
    );
    let body = format!(r#"{{"format_ref":"log","format_name":"not looked at","event":{raw}}}"#);
    let exact = client.send(&Request::post(REPORT, body)).ok();
    let compact = raw.replace(" , ", ",").replace(": ", ":");
    assert_eq!(get_event(&client, &exact)["event"].to_string(), compact);
    assert_eq!(exact["quantity"].to_string(), "12345678901234.000001");
}

fn the_default_format_takes_the_default_shape(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    let mut event = catalog::event("acme", "1.50");
    event["additional_report_data"] = json!({"z": 1, "a": "x", "n": null});
    event["validations"] = json!({"currency": "EUR"});
    for format in [json!({"format_name": "Default Format"}), json!({"format_ref": "default-format"})] {
        let mut body = format;
        body["event"] = event.clone();
        let result = client.post(REPORT, &body).ok();
        let ordinary = client.post("/api/usage/event", &event).ok();
        let (formatted, ordinary) = (get_event(&client, &result), get_event(&client, &ordinary));
        let fields =
            ["timestamp", "quantity", "customer_ref", "usage_product_ref", "additional_report_data", "related_document_ref"];
        for field in fields {
            assert_eq!(formatted[field].to_string(), ordinary[field].to_string(), "{field}");
        }
        assert!(formatted["format_ref"] == "default-format" && ordinary.get("format_ref").is_none(), "{ordinary}");
    }
    let by_name =
        json!({"timestamp": when::now(), "customer_name": "acme Ltd", "usage_product_name": "API calls", "quantity": 1});
    client.post(REPORT, &json!({"format_name": "Default Format", "event": by_name})).ok();
    assert_eq!(invoiced(&client, &contract_ref), "7.00");
    event["validations"] = json!({"currency": "USD"});
    let refusal = rule("validation_mismatch", "/event validation_mismatch");
    let answer = client.post(REPORT, &json!({"format_name": "Default Format", "event": event}));
    refusal.check(&answer).expect("the format's validations count");
}

fn an_event_keeps_the_version_it_was_taken_with(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    let first = report(&client, &free_form(10));
    let before = get_event(&client, &first);
    let mut mapping = client.get("/api/usage/formats/log").ok()["mapping"].clone();
    mapping["quantity"] = json!("event.much * 100");
    client.post("/api/usage/formats/edit/log", &json!({"mapping": mapping, "format_name": "New log"})).ok();

    assert_eq!(get_event(&client, &first), before, "editing a format changes no event");
    assert_eq!(invoiced(&client, &contract_ref), "10");
    let refusal = rule("unknown_format", "/format_name unknown_format");
    refusal.check(&client.post(REPORT, &json!({"format_name": "Log", "event": free_form(1)}))).expect("the old name is unknown");
    let second = client.post(REPORT, &json!({"format_name": "New log", "event": free_form(1)})).ok();
    assert_eq!((&second["quantity"], &second["format_version"]), (&json!(100), &json!(2)));
    assert_eq!(invoiced(&client, &contract_ref), "110");
    let updated = update(&client, &first, &before["event"]).ok();
    assert_eq!((&updated["quantity"], &updated["format_version"]), (&json!(1000), &json!(2)), "the newest version is used");
    let versions: Vec<Value> = history(&client, &first).iter().map(|row| row["event"]["format_version"].clone()).collect();
    assert_eq!(versions, [1, 2]);
    assert_eq!(invoiced(&client, &contract_ref), "1100");
}

fn a_formatted_update_processes_the_event_afresh(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    let first = report(&client, &catalog::with(free_form(10), &json!({"currency": "EUR"})));
    let later = catalog::with(free_form(25), &json!({"at": Day::today().plus_days(-3).noon(), "who": "acme"}));
    let later = without(without(later, "z"), "a");
    let updated = update(&client, &first, &later).ok();
    assert_eq!([&updated["timestamp"], &updated["quantity"], &updated["revision"]], [&later["at"], &json!(25), &json!(2)]);
    assert_eq!(updated["additional_report_data"], json!({}), "the old report data is removed");
    assert_eq!(updated["event"], later);
    assert_eq!(get_event(&client, &first), updated);
    assert_eq!(invoiced(&client, &contract_ref), "25");

    assert_eq!(update(&client, &first, &later).ok(), updated, "a repeated update creates no revision");
    let by_default = json!({"timestamp": later["at"], "customer_ref": "acme", "usage_product_ref": "api-calls", "quantity": 3});
    let body = json!({"event_ref": first["event_ref"], "format_name": "Default Format", "event": by_default});
    let other = client.post(UPDATE, &body).ok();
    assert_eq!([&other["format_ref"], &other["quantity"], &other["revision"]], [&json!("default-format"), &json!(3), &json!(3)]);
    assert_eq!(other["additional_report_data"], Value::Null);
    let body = json!({"event_ref": first["event_ref"], "format_ref": "log", "event": later});
    assert_eq!(client.post(UPDATE, &body).ok()["quantity"], 25);

    // Only the validations of the new event apply, and they run again.
    let mismatch = rule("validation_mismatch", "/event validation_mismatch");
    mismatch.check(&update(&client, &first, &catalog::with(later.clone(), &json!({"currency": "USD"})))).expect("a mismatch");
    update(&client, &first, &catalog::with(later.clone(), &json!({"currency": "EUR"}))).ok();
    update(&client, &first, &later).ok();
    assert_eq!(invoiced(&client, &contract_ref), "25");
    assert_eq!(catalog::documents(&client).len(), 1);
}

fn an_ordinary_update_leaves_the_submitted_event_in_the_history(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    let event = free_form(10);
    let first = report(&client, &event);
    let ordinary =
        |body: Value| client.post("/api/usage/event/update", &catalog::with(body, &json!({"event_ref": first["event_ref"]})));
    let same = ordinary(json!({"quantity": 10})).ok();
    assert_eq!(same, get_event(&client, &first), "an update without changes keeps the event");
    assert_eq!(same["event"], event);

    let changed = ordinary(json!({"quantity": 11})).ok();
    for field in ["format_ref", "format_version", "event"] {
        assert!(changed.get(field).is_none(), "{field}: {changed}");
    }
    assert_eq!(changed["additional_report_data"], first["additional_report_data"]);
    let revisions = history(&client, &first);
    assert_eq!((&revisions[0]["event"]["event"], revisions[1]["event"].get("event")), (&event, None));

    let taken_up = update(&client, &first, &catalog::with(event.clone(), &json!({"much": 12}))).ok();
    assert_eq!([&taken_up["format_ref"], &taken_up["quantity"], &taken_up["revision"]], [&json!("log"), &json!(12), &json!(3)]);
    assert_eq!(invoiced(&client, &contract_ref), "12");
}

fn what_cannot_be_changed_by_a_formatted_update_is_refused(database: &Database) {
    let (_server, client, contract_ref) = stage(database);
    catalog::make_customer(&client, "other");
    let event = free_form(10);
    let formatted = report(&client, &event);
    let ordinary = client.post("/api/usage/event", &catalog::event("acme", 5)).ok();
    let deleted = report(&client, &event);
    assert_eq!(client.delete(&format!("/api/usage/event/{}", text(&deleted, "event_ref"))).status, 204);
    let before = get_event(&client, &formatted);

    let mut table = Table::default();
    let body = |result: &Value, event: Value| json!({"event_ref": result["event_ref"], "event": event});
    let changed = |fields: Value| body(&formatted, catalog::with(event.clone(), &fields));
    table.post(&client, UPDATE, &body(&ordinary, event.clone()), invalid("/format_name required"));
    table.post(&client, UPDATE, &body(&deleted, event.clone()), refused(404, "event_not_found"));
    let unknown = json!({"event_ref": "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b"});
    table.post(&client, UPDATE, &body(&unknown, event.clone()), refused(404, "event_not_found"));
    table.post(&client, UPDATE, &body(&json!({"event_ref": "x"}), event.clone()), refused(404, "event_not_found"));
    let not_changeable = Refusal { errors: "/event not_changeable", ..refused(422, "validation_failed") };
    for fields in
        [json!({"who": "other"}), json!({"who": "nobody"}), json!({"what": "other"}), json!({"who": null, "called": "other Ltd"})]
    {
        table.post(&client, UPDATE, &changed(fields), not_changeable);
    }
    let both = Refusal { errors: "/event not_changeable, /event not_changeable", ..not_changeable };
    table.post(&client, UPDATE, &changed(json!({"who": "other", "what": null, "named": "Others"})), both);
    let ahead = rule("timestamp_in_future", "/event timestamp_in_future");
    table.post(&client, UPDATE, &changed(json!({"at": when::in_seconds(3600)})), ahead);
    table.post(&client, UPDATE, &changed(json!({"at": "2020-01-01T00:00:00Z"})), refused(422, "no_matching_contract"));
    table.post(&client, UPDATE, &changed(json!({"much": -1})), rule("format_error", "/event format_error"));
    let mut other_format = changed(json!({}));
    other_format["format_name"] = json!("Nothing");
    table.post(&client, UPDATE, &other_format, rule("unknown_format", "/format_name unknown_format"));
    table.finish();

    assert_eq!(get_event(&client, &formatted), before);
    assert_eq!(invoiced(&client, &contract_ref), "15");
    let by_name = changed(json!({"who": null, "what": null, "called": "acme Ltd", "named": "API calls", "much": 11}));
    assert_eq!(client.post(UPDATE, &by_name).ok()["quantity"], 11, "the names identify the same objects");

    let named = json!({"event_ref": ordinary["event_ref"], "format_name": "Log", "event": event});
    let taken = client.post(UPDATE, &named).ok();
    assert_eq!(
        (&taken["event_ref"], &taken["event"]),
        (&ordinary["event_ref"], &event),
        "a format can process an event without a format"
    );
}

fn an_event_due_upon_usage_names_its_parent(database: &Database) {
    let (_server, client, _) = stage(database);
    catalog::make_customer(&client, "upon");
    let mut contract = catalog::contract("upon");
    contract["products"][0]["net_terms"] = json!("DUE_UPON_USAGE");
    catalog::make_contract(&client, &contract);
    let result = report(&client, &catalog::with(free_form(100), &json!({"who": "upon"})));
    let child = client.get(&format!("/api/documents/{}", text(&result, "related_document_ref"))).ok();
    assert_eq!((&child["purpose"], &child["total"].to_string()), (&json!("USAGE"), &"11.90".to_owned()));
    assert_eq!(result["related_parent_document_ref"], child["parent_document_ref"]);
    assert_eq!(result["related_parent_document_numbers"], child["parent_document_number"]);
    assert!(child["parent_document_number"].is_string(), "{child}");
}

fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(1), |inner, _| json!([inner]))
}

#[expect(clippy::too_many_lines, reason = "one table or story")]
fn a_bad_event_is_refused_and_leaves_nothing(database: &Database) {
    let (server, client, contract_ref) = stage(database);
    let mut table = Table::default();
    let at_event = rule("format_error", "/event format_error");
    let frame = |event: Value| json!({"format_name": "Log", "event": event});
    let changed = |fields: Value| frame(catalog::with(free_form(1), &fields));

    for field in ["at", "what", "much"] {
        table.post(&client, REPORT, &frame(without(free_form(1), field)), at_event);
    }
    for fields in [
        json!({"at": 5}),
        json!({"at": "yesterday"}),
        json!({"at": "2024-06-01T12:00:00"}),
        json!({"who": 5}),
        json!({"who": "a b"}),
        json!({"who": ""}),
        json!({"who": "x".repeat(65)}),
        json!({"what": ["api-calls"]}),
        json!({"much": "many"}),
        json!({"much": -1}),
        json!({"much": null}),
        json!({"much": {"a": 1}}),
        json!({"much": "1234567890".repeat(4)}),
        json!({"currency": "EURO"}),
        json!({"entity": 7}),
        json!({"huge": "x".repeat(17 << 10)}),
        json!({"many": vec![0; 2001]}),
    ] {
        table.post(&client, REPORT, &changed(fields), at_event);
    }
    let large: Map<String, Value> = (0..8).map(|i| (format!("key-{i}"), json!("x".repeat(9 << 10)))).collect();
    table.post(&client, REPORT, &changed(Value::Object(large)), at_event);
    let digits = format!(
        r#"{{"format_name":"Log","event":{{"at":"{}","who":"acme","what":"api-calls","much":{}}}}}"#,
        when::now(),
        "9".repeat(40)
    );
    table.row(&client, "40 digits", &Request::post(REPORT, digits), at_event);
    table.post(&client, REPORT, &changed(json!({"deep": nested(31)})), refused(400, "json_too_deep"));

    let unknown = Refusal { errors: "/event unknown_reference", ..refused(422, "validation_failed") };
    table.post(&client, REPORT, &changed(json!({"who": "nobody"})), unknown);
    table.post(&client, REPORT, &changed(json!({"who": null, "called": "Nobody"})), unknown);
    let two = Refusal { errors: "/event unknown_reference, /event unknown_reference", ..unknown };
    table.post(&client, REPORT, &changed(json!({"who": "nobody", "what": "nothing"})), two);
    let ahead = rule("timestamp_in_future", "/event timestamp_in_future");
    table.post(&client, REPORT, &changed(json!({"at": when::in_seconds(3600)})), ahead);
    table.post(&client, REPORT, &changed(json!({"at": "2020-01-01T00:00:00Z"})), refused(422, "no_matching_contract"));
    table.post(&client, REPORT, &changed(json!({"currency": "USD"})), rule("validation_mismatch", "/event validation_mismatch"));

    let required = |errors| Refusal { errors, ..refused(422, "validation_failed") };
    table.post(&client, REPORT, &json!({}), required("/format_name required, /event required"));
    table.post(&client, REPORT, &frame(json!("a line")), required("/event wrong_type"));
    table.post(&client, REPORT, &json!({"format_name": "Log", "event": null}), required("/event required"));
    table.post(&client, REPORT, &json!([]), required(" wrong_type"));
    let log = json!({"format_name": "log", "event": free_form(1)});
    table.post(&client, REPORT, &log, rule("unknown_format", "/format_name unknown_format"));
    let reference = json!({"format_ref": "Log", "format_name": "Log", "event": free_form(1)});
    table.post(&client, REPORT, &reference, rule("unknown_format", "/format_ref unknown_format"));

    // A malicious format is stopped after a while, and the server keeps working.
    let costly = format!("[{}][0]", vec!["split(event.z, \"x\").z"; 80].join(","));
    let columns: Map<String, Value> = (0..100).map(|i| (format!("k{i}"), json!(costly))).collect();
    let mapping = json!({
        "timestamp": "event.at", "customer_ref": "event.who", "usage_product_ref": "event.what", "quantity": "event.much",
        "additional_report_data": columns,
    });
    client.post("/api/usage/formats/", &json!({"format_name": "Costly", "mapping": mapping})).ok();
    let costly = json!({"format_name": "Costly", "event": catalog::with(free_form(1), &json!({"z": "yx".repeat(900)}))});
    table.post(&client, REPORT, &costly, at_event);
    table.finish();

    assert_eq!(catalog::documents(&client), Vec::<Value>::new(), "nothing is stored and no number is used");
    assert_eq!(report(&client, &free_form(1))["related_document_numbers"], "UB-INV-1");
    assert_eq!(invoiced(&client, &contract_ref), "1");
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
    let detail = client.post(REPORT, &changed(json!({"who": "nobody"}))).text_of("detail");
    assert_eq!(detail, "customer_ref from the usage format: must be the reference of an existing customer");
}

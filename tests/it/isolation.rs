//! Two organizations see nothing of each other: a reference of one organization, used by the other, returns exactly the same
//! response as an unknown reference. This holds in every place that accepts a reference.

use std::collections::BTreeSet;

use acceptance::{Answer, Client, Database, Request, Server, books, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(a_foreign_reference_is_answered_like_an_unknown_one, two_organizations_use_the_same_references_and_prefixes,);

const UNKNOWN_UUID: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
const UNKNOWN_NAME: &str = "names-nothing";
/// A URL at which no server listens.
const UNREACHABLE: &str = "http://127.0.0.1:9/hooks";

/// An entity, a customer, a usage product, a pricing, a contract and an event, all named with a prefix.
struct Things {
    api_key_ref: String,
    admin_ref: String,
    session_ref: String,
    contract_ref: String,
    event_ref: String,
    formatted_event_ref: String,
    document_ref: String,
    payment_ref: String,
    import_ref: String,
    run_ref: String,
    application_ref: String,
    limit_ref: String,
    grant_ref: String,
    notification_ref: String,
    endpoint_ref: String,
}

fn make_things(admin: &Client, server: &Server, name: &str) -> (Client, Things) {
    let key = admin.generate_key(&json!({}));
    let client = Client::key(server, &key);
    client
        .post(
            "/api/entities/",
            &json!({"entity_ref": format!("{name}-entity"), "name": name, "number_prefix": name.to_uppercase()}),
        )
        .ok();
    client.post("/api/customers/", &json!({"customer_ref": format!("{name}-customer"), "name": format!("{name} Ltd")})).ok();
    client
        .post("/api/usage/products/", &json!({"usage_product_ref": format!("{name}-product"), "name": format!("{name} calls")}))
        .ok();
    client.post("/api/pricings/", &catalog::plan(&format!("{name}-plan"), &format!("{name}-product"))).ok();
    let account = json!({"billing_account_id": format!("{name}-account"), "account_number": "1", "bank_name": name});
    client.post("/api/bank_accounts/", &account).ok();
    let format = json!({"format_ref": format!("{name}-format"), "format_name": format!("{name} log"), "mapping": mapping()});
    client.post("/api/usage/formats/", &format).ok();
    let contract_ref = catalog::make_contract(
        &client,
        &contract(&format!("{name}-customer"), &format!("{name}-plan"), &format!("{name}-entity")),
    );
    client.post("/api/charges/", &charge(&contract_ref, &format!("{name}-charge"))).ok();
    let result = client.post("/api/usage/event", &event(&format!("{name}-customer"), &format!("{name}-product"))).ok();
    let formatted = formatted(&format!("{name}-format"), &format!("{name}-customer"), &format!("{name}-product"));
    let formatted = client.post("/api/usage/event/formatted", &formatted).ok();
    let line = event(&format!("{name}-customer"), &format!("{name}-product"));
    let imported = client.post("/api/usage/import", &json!([catalog::with(line, &json!({"idempotency_key": "i"}))])).ok();
    let endpoint = client.post("/api/webhooks/endpoints/", &json!({"url": UNREACHABLE, "enabled": false}));
    let text = |field: &str| result[field].as_str().expect("a reference").to_owned();
    let application = paid(&client, name)["applications"][0].clone();
    let held = json!([{"usage_product_ref": format!("{name}-product"), "quantity": 1}]);
    let hold = json!({"hold_ref": format!("{name}-hold"), "customer_ref": format!("{name}-customer"), "usage": held});
    client.post("/api/usage/holds/", &hold).ok();
    let limit = client.post("/api/limits/", &limit(&format!("{name}-customer"), &format!("{name}-entity"))).ok();
    let grant = client.post("/api/credit_grants/", &grant(&format!("{name}-customer"), &format!("{name}-entity"))).ok();
    let own = admin.get("/auth/session").ok();
    let of_session = |field: &str| own[field].as_str().expect("a reference").to_owned();
    let things = Things {
        api_key_ref: key.api_key_ref,
        admin_ref: of_session("admin_ref"),
        session_ref: of_session("session_ref"),
        contract_ref,
        event_ref: text("event_ref"),
        formatted_event_ref: formatted["event_ref"].as_str().expect("a reference").to_owned(),
        document_ref: text("related_document_ref"),
        payment_ref: application["from_payment_ref"].as_str().expect("a reference").to_owned(),
        application_ref: application["application_ref"].as_str().expect("a reference").to_owned(),
        limit_ref: limit["limit_ref"].as_str().expect("a reference").to_owned(),
        grant_ref: grant["grant_ref"].as_str().expect("a reference").to_owned(),
        import_ref: imported["import_ref"].as_str().expect("a reference").to_owned(),
        run_ref: client.get("/api/billing/runs/filter").ok()[0]["run_ref"].as_str().expect("a run").to_owned(),
        notification_ref: books::notifications(&client, "pageSize=1")[0]["notification_ref"].as_str().expect("one").to_owned(),
        endpoint_ref: endpoint.text_of("endpoint_ref"),
    };
    (client, things)
}

/// Creates an invoice of another customer with a partial payment.
fn paid(client: &Client, name: &str) -> Value {
    let customer = format!("{name}-payer");
    client.post("/api/customers/", &json!({"customer_ref": customer, "name": customer})).ok();
    let past = catalog::past_contract(&customer)["products"][0].clone();
    let fields = json!({"product_pricing_ref": format!("{name}-plan"), "entity_ref": format!("{name}-entity")});
    catalog::make_contract(client, &json!({"customer_ref": customer, "products": [catalog::with(past, &fields)]}));
    let issued = catalog::only(Value::Array(books::run(client)));
    books::pay(client, &issued["document_ref"], &json!({"amount": 1})).ok()
}

fn contract(customer: &str, pricing: &str, entity: &str) -> Value {
    let mut contract = catalog::contract(customer);
    contract["products"][0]["product_pricing_ref"] = json!(pricing);
    contract["products"][0]["entity_ref"] = json!(entity);
    contract
}

fn event(customer: &str, product: &str) -> Value {
    json!({"timestamp": when::now(), "customer_ref": customer, "usage_product_ref": product, "quantity": 1})
}

fn limit(customer: &str, entity: &str) -> Value {
    json!({"metric": "OWED", "customer_ref": customer, "entity_ref": entity, "currency": "EUR", "max": 1_000_000})
}

fn grant(customer: &str, entity: &str) -> Value {
    json!({"customer_ref": customer, "entity_ref": entity, "currency": "EUR", "amount": 1, "name": "Credit"})
}

fn charge(contract_ref: &str, charge_ref: &str) -> Value {
    let today = when::Day::today().to_string();
    json!({"charge_ref": charge_ref, "contract_ref": contract_ref, "date": today, "name": charge_ref, "unit_price": 1})
}

/// Returns a mapping for the default shape.
fn mapping() -> Value {
    json!({
        "timestamp": "event.timestamp",
        "customer_ref": "event.customer_ref",
        "usage_product_ref": "event.usage_product_ref",
        "quantity": "event.quantity",
    })
}

fn formatted(format: &str, customer: &str, product: &str) -> Value {
    json!({"format_ref": format, "event": event(customer, product)})
}

/// A place that accepts a reference: the operation, a request with `{}` in that place, a foreign value and an unknown value.
struct Place<'a> {
    method: &'static str,
    path: String,
    body: Option<Value>,
    foreign: &'a str,
    unknown: &'static str,
}

/// Returns every place that accepts a reference. `theirs` belongs to the other organization. The rest of each body is our own, so
/// that only the reference is wrong.
#[expect(clippy::too_many_lines, reason = "one table or story")]
fn places<'a>(theirs: &'a Things, ours: &Things) -> Vec<Place<'a>> {
    let mut places = Vec::new();
    let mut add = |method, path: &str, body: Option<Value>, foreign, unknown| {
        places.push(Place { method, path: path.to_owned(), body, foreign, unknown });
    };
    let (customer, entity, product, pricing) = ("theirs-customer", "theirs-entity", "theirs-product", "theirs-plan");
    add("DELETE", "/auth/user/{}", None, &theirs.api_key_ref, UNKNOWN_UUID);
    add("POST", "/auth/keys/rotate/{}", None, &theirs.api_key_ref, UNKNOWN_UUID);
    add("DELETE", "/auth/sessions/{}", None, &theirs.session_ref, UNKNOWN_UUID);
    add("POST", "/api/administrators/edit/{}", Some(json!({"role": "read", "disabled": true})), &theirs.admin_ref, UNKNOWN_UUID);
    add("POST", "/api/administrators/reset/{}", None, &theirs.admin_ref, UNKNOWN_UUID);
    add("GET", "/api/usage/event/{}", None, &theirs.event_ref, UNKNOWN_UUID);
    add("GET", "/api/usage/event/history/{}", None, &theirs.event_ref, UNKNOWN_UUID);
    add("DELETE", "/api/usage/event/{}", None, &theirs.event_ref, UNKNOWN_UUID);
    let update = json!({"event_ref": "{}", "quantity": 7});
    add("POST", "/api/usage/event/update", Some(update), &theirs.event_ref, UNKNOWN_UUID);
    add("POST", "/api/contracts/edit/{}", Some(json!({"po_number": "Taken over"})), &theirs.contract_ref, UNKNOWN_UUID);
    add("POST", "/api/contracts/cancel/{}", Some(json!({"include_current_invoice": true})), &theirs.contract_ref, UNKNOWN_UUID);
    add("POST", "/api/contracts/resume/{}", None, &theirs.contract_ref, UNKNOWN_UUID);
    let seats = json!({"product_pricing_ref": "mine-plan", "line_item_id": "fee", "quantity": 2});
    add("POST", "/api/contracts/quantities/{}", Some(seats), &theirs.contract_ref, UNKNOWN_UUID);
    let amount = || Some(json!({"amount": 1}));
    let apply = Some(json!({"amount": 1, "document_ref": UNKNOWN_UUID}));
    for (action, body) in
        [("issue", None), ("void", None), ("payments", amount()), ("refund", amount()), ("apply", apply), ("write-off", None)]
    {
        add("POST", &format!("/api/documents/{action}/{{}}"), body, &theirs.document_ref, UNKNOWN_UUID);
    }
    add("GET", "/api/documents/payments/{}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/usage/imports/{}", None, &theirs.import_ref, UNKNOWN_UUID);
    add("POST", "/api/usage/imports/undo/{}", None, &theirs.import_ref, UNKNOWN_UUID);
    add("GET", "/api/billing/runs/{}", None, &theirs.run_ref, UNKNOWN_UUID);
    add("GET", "/api/notifications/{}", None, &theirs.notification_ref, UNKNOWN_UUID);
    add("GET", "/api/notifications/filter?customer_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/notifications/filter?subject=document:{}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/notifications/filter?subject=contract:{}", None, &theirs.contract_ref, UNKNOWN_UUID);
    for (path, body) in
        [("edit/", Some(json!({"enabled": true}))), ("rotate/", None), ("test/", None), ("replay/", Some(json!({"after": 0})))]
    {
        add("POST", &format!("/api/webhooks/endpoints/{path}{{}}"), body, &theirs.endpoint_ref, UNKNOWN_UUID);
    }
    for method in ["GET", "DELETE"] {
        add(method, "/api/webhooks/endpoints/{}", None, &theirs.endpoint_ref, UNKNOWN_UUID);
    }
    add("GET", "/api/webhooks/deliveries/filter?endpoint_ref={}", None, &theirs.endpoint_ref, UNKNOWN_UUID);
    add("GET", "/api/webhooks/deliveries/filter?subject=document:{}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("POST", "/api/webhooks/endpoints/", Some(json!({"url": UNREACHABLE, "customer_refs": ["{}"]})), customer, UNKNOWN_NAME);
    add("POST", "/api/documents/payments/reverse/{}", None, &theirs.payment_ref, UNKNOWN_UUID);
    add("POST", "/api/documents/refund/{}", amount(), &theirs.payment_ref, UNKNOWN_UUID);
    add("POST", "/api/documents/unapply/{}", None, &theirs.application_ref, UNKNOWN_UUID);
    let deposit = json!({"currency": "EUR", "amount": 1});
    add("POST", "/api/customers/payments/{}", Some(deposit), customer, UNKNOWN_NAME);
    add("GET", "/api/customers/amounts_due?customer_ref={}", None, customer, UNKNOWN_NAME);
    for path in ["balance", "e_invoice_check", "payments", "statement"] {
        add("GET", &format!("/api/customers/{path}/{{}}"), None, customer, UNKNOWN_NAME);
    }
    for path in ["/api/contracts/{}", "/api/contracts/invoices/current/{}", "/api/contracts/invoices/next/{}"] {
        add("GET", path, None, &theirs.contract_ref, UNKNOWN_UUID);
    }
    add("GET", "/api/documents/{}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/usage/formats/{}", None, "theirs-format", UNKNOWN_NAME);
    add("GET", "/api/bank_accounts/{}", None, "theirs-account", UNKNOWN_NAME);
    let edit = json!({"bank_name": "Taken over"});
    add("POST", "/api/bank_accounts/edit/{}", Some(edit), "theirs-account", UNKNOWN_NAME);
    let edit = json!({"format_name": "Taken over", "mapping": mapping()});
    add("POST", "/api/usage/formats/edit/{}", Some(edit), "theirs-format", UNKNOWN_NAME);
    for (field, foreign, unknown) in [("format_ref", "theirs-format", UNKNOWN_NAME), ("format_name", "theirs log", "unknown log")]
    {
        let tried = event("mine-customer", "mine-product");
        add("POST", "/api/usage/formats/test", Some(json!({field: "{}", "event": tried})), foreign, unknown);
        add("POST", "/api/usage/event/formatted", Some(json!({field: "{}", "event": tried})), foreign, unknown);
        let update = json!({"event_ref": ours.formatted_event_ref, field: "{}", "event": tried});
        add("POST", "/api/usage/event/formatted/update", Some(update), foreign, unknown);
    }
    let update = json!({"event_ref": "{}", "event": event("mine-customer", "mine-product")});
    add("POST", "/api/usage/event/formatted/update", Some(update), &theirs.formatted_event_ref, UNKNOWN_UUID);
    let named = |customer, product| Some(formatted("mine-format", customer, product));
    add("POST", "/api/usage/event/formatted", named("{}", "mine-product"), customer, UNKNOWN_NAME);
    add("POST", "/api/usage/event/formatted", named("mine-customer", "{}"), product, UNKNOWN_NAME);
    add("GET", "/api/documents/{}/pdf", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/documents/{}/xml", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/documents/{}/usage.csv", None, &theirs.document_ref, UNKNOWN_UUID);
    for path in ["/api/usage/event/filter?", "/api/usage/summary?interval=day&group_by=customer_ref&", "/api/usage/report?"] {
        add("GET", &format!("{path}customer_ref={{}}"), None, customer, UNKNOWN_NAME);
        add("GET", &format!("{path}usage_product_ref={{}}"), None, product, UNKNOWN_NAME);
        add("GET", &format!("{path}document_ref={{}}"), None, &theirs.document_ref, UNKNOWN_UUID);
        add("GET", &format!("{path}contract_ref={{}}"), None, &theirs.contract_ref, UNKNOWN_UUID);
    }
    for method in ["GET", "DELETE"] {
        add(method, "/api/limits/{}", None, &theirs.limit_ref, UNKNOWN_UUID);
    }
    let mine = |fields: &Value| catalog::with(grant("mine-customer", "mine-entity"), fields);
    let sale = |fields: &Value| {
        let sale = json!({"customer_ref": "mine-customer", "product_pricing_ref": "mine-plan", "name": "Credit"});
        catalog::with(sale, fields)
    };
    add("GET", "/api/credit_grants/{}", None, &theirs.grant_ref, UNKNOWN_UUID);
    add("POST", "/api/credit_grants/edit/{}", Some(json!({"name": "Mine"})), &theirs.grant_ref, UNKNOWN_UUID);
    for list in ["filter", "draws/filter"] {
        add("GET", &format!("/api/credit_grants/{list}?customer_ref={{}}"), None, customer, UNKNOWN_NAME);
    }
    add("GET", "/api/credit_grants/filter?entity_ref={}", None, entity, UNKNOWN_NAME);
    add("GET", "/api/credit_grants/filter?source_document_ref={}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/credit_grants/draws/filter?document_ref={}", None, &theirs.document_ref, UNKNOWN_UUID);
    add("GET", "/api/credit_grants/draws/filter?grant_ref={}", None, &theirs.grant_ref, UNKNOWN_UUID);
    add("POST", "/api/credit_grants/", Some(grant("{}", "mine-entity")), customer, UNKNOWN_NAME);
    add("POST", "/api/credit_grants/", Some(grant("mine-customer", "{}")), entity, UNKNOWN_NAME);
    add("POST", "/api/credit_grants/", Some(mine(&json!({"contract_ref": "{}"}))), &theirs.contract_ref, UNKNOWN_UUID);
    add("POST", "/api/credit_grants/", Some(mine(&json!({"source_document_ref": "{}"}))), &theirs.document_ref, UNKNOWN_UUID);
    add("POST", "/api/credit_grants/sell", Some(sale(&json!({"customer_ref": "{}"}))), customer, UNKNOWN_NAME);
    add("POST", "/api/credit_grants/sell", Some(sale(&json!({"product_pricing_ref": "{}"}))), pricing, UNKNOWN_NAME);
    add("POST", "/api/limits/edit/{}", Some(json!({"max": 1})), &theirs.limit_ref, UNKNOWN_UUID);
    add("POST", "/api/limits/", Some(limit("{}", "mine-entity")), customer, UNKNOWN_NAME);
    add("POST", "/api/limits/", Some(limit("mine-customer", "{}")), entity, UNKNOWN_NAME);
    for method in ["GET", "DELETE"] {
        add(method, "/api/usage/holds/{}?customer_ref=mine-customer", None, "theirs-hold", UNKNOWN_NAME);
        add(method, "/api/usage/holds/theirs-hold?customer_ref={}", None, customer, UNKNOWN_NAME);
    }
    add("GET", "/api/usage/holds/filter?customer_ref={}", None, customer, UNKNOWN_NAME);
    let held = json!([{"usage_product_ref": "mine-product", "quantity": 1}]);
    add("POST", "/api/usage/holds/", Some(json!({"hold_ref": "h", "customer_ref": "{}", "usage": held})), customer, UNKNOWN_NAME);
    let held = json!([{"usage_product_ref": "{}", "quantity": 1}]);
    let hold = json!({"hold_ref": "h", "customer_ref": "mine-customer", "usage": held});
    add("POST", "/api/usage/holds/", Some(hold), product, UNKNOWN_NAME);
    let spend = json!({"metric": "SPEND", "contract_ref": "{}", "max": 1});
    add("POST", "/api/limits/", Some(spend), &theirs.contract_ref, UNKNOWN_UUID);
    for path in ["filter", "left"] {
        add("GET", &format!("/api/limits/{path}?customer_ref={{}}"), None, customer, UNKNOWN_NAME);
    }
    add("GET", "/api/charges/{}", None, "theirs-charge", UNKNOWN_NAME);
    add("DELETE", "/api/charges/{}", None, "theirs-charge", UNKNOWN_NAME);
    add("DELETE", "/api/entities/{}", None, entity, UNKNOWN_NAME);
    add("POST", "/api/charges/edit/{}", Some(json!({"unit_price": 1})), "theirs-charge", UNKNOWN_NAME);
    add("POST", "/api/charges/", Some(charge("{}", "new-charge")), &theirs.contract_ref, UNKNOWN_UUID);
    add("GET", "/api/charges/filter?customer_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/charges/filter?contract_ref={}", None, &theirs.contract_ref, UNKNOWN_UUID);
    for (list, foreign) in [("customers", customer), ("entities", entity), ("usage/products", product), ("pricings", pricing)] {
        add("GET", &format!("/api/{list}/{{}}"), None, foreign, UNKNOWN_NAME);
        add("POST", &format!("/api/{list}/edit/{{}}"), Some(json!({"name": "Taken over"})), foreign, UNKNOWN_NAME);
    }
    add("GET", "/api/contracts/filter?customer_ref={}&pageSize=20&pageNumber=0", None, customer, UNKNOWN_NAME);
    add("GET", "/api/contracts/search?customer_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/contracts/search?product_pricing_ref={}", None, pricing, UNKNOWN_NAME);
    for query in ["", "?quantity=1"] {
        add("GET", &format!("/api/pricings/rates/{{}}{query}"), None, pricing, UNKNOWN_NAME);
    }
    add("GET", "/api/customers/filter?name={}", None, "theirs", UNKNOWN_NAME);
    add("GET", "/api/documents/filter?customer_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/audit/filter?object_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/audit/filter?object_kind=CONTRACT&object_ref={}", None, &theirs.contract_ref, UNKNOWN_UUID);
    add("GET", "/api/documents/filter?format=csv&customer_ref={}", None, customer, UNKNOWN_NAME);
    add("GET", "/api/documents/filter?document_number={}", None, "THEIRS-INV-1", UNKNOWN_NAME);
    for foreign in [customer, entity, product, pricing, "THEIRS-INV-1", "theirs%20log"] {
        add("GET", "/api/search?q={}", None, foreign, UNKNOWN_NAME);
    }
    for foreign in [&theirs.contract_ref, &theirs.document_ref, &theirs.event_ref, &theirs.payment_ref] {
        add("GET", "/api/search?q={}", None, foreign, UNKNOWN_UUID);
    }
    add("GET", "/api/documents/filter?contract_ref={}", None, &theirs.contract_ref, UNKNOWN_UUID);
    add("GET", "/api/documents/filter?entity_ref={}", None, entity, UNKNOWN_NAME);
    add("POST", "/api/customers/", Some(json!({"name": "New", "entity_ref": "{}"})), entity, UNKNOWN_NAME);
    add("POST", "/api/customers/edit/mine-customer", Some(json!({"entity_ref": "{}"})), entity, UNKNOWN_NAME);
    add("POST", "/api/pricings/", Some(catalog::plan("new-plan", "{}")), product, UNKNOWN_NAME);
    let mut rated = catalog::plan("new-plan", "{}");
    rated.as_object_mut().expect("an object").remove("product_pricing_ref");
    rated["quantities"] = json!([1]);
    add("POST", "/api/pricings/rates", Some(rated), product, UNKNOWN_NAME);
    let line_items = catalog::plan("mine-plan", "{}")["line_items"].clone();
    add("POST", "/api/pricings/edit/mine-plan", Some(json!({"line_items": line_items})), product, UNKNOWN_NAME);
    add("POST", "/api/contracts/", Some(contract("{}", "mine-plan", "mine-entity")), customer, UNKNOWN_NAME);
    add("POST", "/api/contracts/", Some(contract("mine-customer", "{}", "mine-entity")), pricing, UNKNOWN_NAME);
    add("POST", "/api/contracts/", Some(contract("mine-customer", "mine-plan", "{}")), entity, UNKNOWN_NAME);
    for (pricing, entity, foreign) in [("{}", "mine-entity", pricing), ("mine-plan", "{}", entity)] {
        let products = contract("mine-customer", pricing, entity)["products"].clone();
        let path = format!("/api/contracts/edit/{}", ours.contract_ref);
        add("POST", &path, Some(json!({"products": products})), foreign, UNKNOWN_NAME);
    }
    add(
        "POST",
        &format!("/api/contracts/edit/{}", ours.contract_ref),
        Some(json!({"customer_ref": "{}"})),
        customer,
        UNKNOWN_NAME,
    );
    for name in ["customer_ref", "usage_product_ref"] {
        let foreign = if name == "customer_ref" { customer } else { product };
        let update = json!({"event_ref": ours.event_ref, name: "{}"});
        add("POST", "/api/usage/event/update", Some(update), foreign, UNKNOWN_NAME);
    }
    add("POST", "/api/usage/event", Some(event("{}", "mine-product")), customer, UNKNOWN_NAME);
    add("POST", "/api/usage/event", Some(event("mine-customer", "{}")), product, UNKNOWN_NAME);
    let batch = json!({"events": [event("mine-customer", "mine-product"), event("{}", "mine-product")], "atomic": true});
    add("POST", "/api/usage/event/batch", Some(batch), customer, UNKNOWN_NAME);
    let file = json!([catalog::with(event("{}", "mine-product"), &json!({"idempotency_key": "k"}))]);
    add("POST", "/api/usage/import?dry_run=false", Some(file), customer, UNKNOWN_NAME);
    let file = json!([{"event_ref": "{}"}]);
    add("POST", "/api/usage/import?dry_run=false", Some(file), &theirs.event_ref, UNKNOWN_UUID);
    let mut by_name = event("x", "mine-product");
    by_name["customer_ref"] = Value::Null;
    by_name["customer_name"] = json!("{}");
    add("POST", "/api/usage/event", Some(by_name), "theirs Ltd", "unknown Ltd");
    let mut by_name = event("mine-customer", "x");
    by_name["usage_product_ref"] = Value::Null;
    by_name["usage_product_name"] = json!("{}");
    add("POST", "/api/usage/event", Some(by_name), "theirs calls", "unknown calls");
    let mut validated = event("mine-customer", "mine-product");
    validated["validations"] = json!({"entity_ref": "{}"});
    add("POST", "/api/usage/event", Some(validated), entity, UNKNOWN_NAME);
    places
}

/// Returns a response without the reference and the request id.
fn stated(client: &Client, place: &Place<'_>, reference: &str) -> (u16, String, String) {
    let path = place.path.replace("{}", reference);
    let body = place.body.as_ref().map(|body| body.to_string().replace("{}", reference));
    let request = match body {
        Some(body) => Request { method: place.method, ..Request::post(&path, body) },
        None => Request { method: place.method, ..Request::get(&path) },
    };
    let Answer { status, headers, mut body, .. } = client.send(&request);
    if let Some(object) = body.as_object_mut() {
        object.remove("request_id");
        // Each import has its own reference.
        object.remove("import_ref");
    }
    let mut shown: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
    // The server closes the connection if the body of a rejected request hasn't arrived by then.
    let differs = ["x-request-id", "date", "connection"];
    shown.retain(|header| !differs.iter().any(|name| header.starts_with(name)));
    shown.sort();
    let hide = |text: &str| text.replace(reference, "<reference>");
    // The length reveals the length of the reference, which the caller knows.
    shown.retain(|header| !header.starts_with("content-length"));
    (status, hide(&body.to_string()), hide(&shown.join("\n")))
}

fn a_foreign_reference_is_answered_like_an_unknown_one(database: &Database) {
    let server = Server::start(database);
    let their_admin = Client::admin(&server);
    let our_admin = Client::second_organization(database, &server);
    let (their_client, theirs) = make_things(&their_admin, &server, "theirs");
    let (our_client, ours) = make_things(&our_admin, &server, "mine");
    let before = everything(&their_client, &their_admin);
    let places = places(&theirs, &ours);

    for place in &places {
        for caller in [&our_client, &our_admin] {
            let (status, foreign, headers) = stated(caller, place, place.foreign);
            let what = format!("{} {}", place.method, place.path);
            assert_eq!((status, foreign, headers), stated(caller, place, place.unknown), "{what}");
            let found_nothing = status == 200 && place.path.contains('?');
            assert!(found_nothing || matches!(status, 403 | 404 | 422), "{what}: {status}");
        }
    }

    assert_eq!(everything(&their_client, &their_admin), before, "the other organization is unchanged");
    for (ours, theirs) in everything(&our_client, &our_admin).iter().zip(&before) {
        assert!(!ours.contains("theirs") && !theirs.contains("mine-"), "{ours}\n{theirs}");
    }
    covers_every_operation(&our_client, &places);
}

/// Checks that the places cover every operation of the OpenAPI document, so that a new operation without a place fails.
fn covers_every_operation(client: &Client, places: &[Place<'_>]) {
    let document = client.get("/openapi.json").ok();
    let paths = document["paths"].as_object().expect("paths");
    let with_reference = paths.iter().filter(|(path, _)| path.contains('{'));
    let operations: BTreeSet<String> = with_reference
        .flat_map(|(path, methods)| {
            let parts: Vec<&str> = path.split('/').map(|part| if part.starts_with('{') { "{}" } else { part }).collect();
            let methods =
                methods.as_object().expect("methods").keys().filter(|key| ["get", "post", "delete"].contains(&key.as_str()));
            methods.map(move |method| format!("{} {}", method.to_uppercase(), parts.join("/"))).collect::<Vec<_>>()
        })
        .collect();
    assert!(!operations.is_empty());
    let path = |place: &Place<'_>| place.path.split('?').next().unwrap_or_default().to_owned();
    let tried: BTreeSet<String> = places.iter().map(|place| format!("{} {}", place.method, path(place))).collect();
    let missing: Vec<&String> = operations.difference(&tried).collect();
    assert!(missing.is_empty(), "no place covers {missing:?}");
}

/// Returns every list of an organization.
fn everything(client: &Client, admin: &Client) -> Vec<String> {
    let lists = ["documents", "charges", "customers", "entities", "usage/products", "usage/formats", "pricings", "bank_accounts"]
        .map(|list| format!("/api/{list}/filter?pageSize=1000"));
    let names = [
        "/api/customers/names".to_owned(),
        "/api/entities/names".to_owned(),
        "/api/usage/event/filter?pageSize=1000".to_owned(),
        "/api/usage/imports/filter?pageSize=1000".to_owned(),
        "/api/billing/runs/filter?pageSize=1000".to_owned(),
        "/api/webhooks/endpoints/filter?pageSize=1000".to_owned(),
        "/api/usage/report?format=json".to_owned(),
        "/api/usage/summary?interval=month&group_by=customer_ref,usage_product_ref".to_owned(),
        "/api/documents/summary".to_owned(),
    ];
    let mut all: Vec<String> = lists.iter().chain(&names).map(|path| client.get(path).ok().to_string()).collect();
    let keys = admin.get("/auth/keys/list").ok();
    let key_refs: Vec<&Value> = keys.as_array().expect("a list").iter().map(|key| &key["api_key_ref"]).collect();
    all.push(json!(key_refs).to_string());
    all.push(admin.get("/api/administrators/filter").ok().to_string());
    all
}

fn two_organizations_use_the_same_references_and_prefixes(database: &Database) {
    let server = Server::start(database);
    let first = Client::admin(&server);
    let second = Client::second_organization(database, &server);
    let refused = second.post("/api/contracts/", &json!({"customer_ref": "acme", "products": []}));
    assert_eq!(refused.status, 422, "the first organization's objects are unknown");
    for (admin, quantity) in [(&first, 1500), (&second, 100)] {
        catalog::make(admin);
        let contract_ref = catalog::make_contract(admin, &catalog::contract("acme"));
        let result = admin.post("/api/usage/event", &catalog::event("acme", quantity)).ok();
        assert_eq!(result["related_document_numbers"], "UB-INV-1", "each organization has its own numbers");
        let invoice = catalog::current_invoice(admin, &contract_ref);
        assert_eq!(invoice["products"][0]["line_items"][1]["quantity"], json!(quantity));
        assert_eq!(catalog::documents(admin).len(), 1);
    }
}

//! The main workflow over HTTP: catalog, contract, usage and invoice, with lists and refusals.

use crate::common::{Reply, Server};
use actix_web::http::Method;
use billing_domain::report::NumbersAs;
use serde_json::{Value, json};

struct Caller {
    server: Server,
    bearer: String,
}

impl Caller {
    async fn new() -> Self {
        let server = Server::new();
        let bearer = server.bearer(&["usage:write", "contracts:write", "catalog:write", "documents:write", "read"]).await;
        Self { server, bearer }
    }

    async fn get(&self, path: &str) -> Reply {
        self.server.get(path, ("authorization", &self.bearer)).await
    }

    async fn post(&self, path: &str, body: &str) -> Reply {
        self.server.post(path, ("authorization", &self.bearer), body).await
    }

    /// Sends a request that must succeed and returns the response.
    async fn made(&self, path: &str, body: &str) -> Value {
        let reply = self.post(path, body).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    /// Creates a customer with a contract for calls at 0.0025 with 19% tax. Returns the reference of the contract.
    async fn contract(&self) -> String {
        let made = self.server.make_a_contract(&self.bearer).await;
        assert_eq!(made.as_object().map(|fields| fields.len()), Some(1), "{made}");
        made["contract_ref"].as_str().expect("a reference").to_owned()
    }
}

const EVENT: &str =
    r#"{"timestamp":"2026-01-20T10:00:00+01:00","customer_ref":"acme","usage_product_ref":"calls","quantity":12345}"#;

fn event_with(field: &str, value: Value) -> String {
    let mut event: Value = serde_json::from_str(EVENT).expect("JSON");
    event[field] = value;
    event.to_string()
}

#[actix_web::test]
async fn reported_usage_is_on_the_current_invoice_to_the_cent() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let result = caller.made("/api/usage/event", EVENT).await;
    assert_eq!(result["related_document_numbers"], "UB-INV-1");
    assert_eq!(result.as_object().map(|fields| fields.len()), Some(3), "{result}");

    let invoices = caller.get(&format!("/api/contracts/invoices/current/{contract_ref}")).await;
    assert_eq!(invoices.json()[0]["document_ref"], result["related_document_ref"]);
    // 12,345 × 0.0025 = 30.8625, and 19% of 30.86 is 5.8634. The response has the decimal places of the currency.
    for shown in [r#""sub_total":30.86"#, r#""total_tax":5.86"#, r#""total":36.72"#] {
        assert!(invoices.text.contains(shown), "{shown}: {}", invoices.text);
    }
    let event = caller.get(&format!("/api/usage/event/{}", result["event_ref"].as_str().expect("a reference"))).await.json();
    assert_eq!((&event["timestamp"], &event["document_state"]), (&json!("2026-01-20T09:00:00Z"), &json!("DRAFT")));
    let document = caller.get(&format!("/api/documents/{}", result["related_document_ref"].as_str().expect("a reference"))).await;
    assert_eq!(document.json(), invoices.json()[0]);
    assert_eq!(caller.get(&format!("/api/contracts/invoices/next/{contract_ref}")).await.json()[0]["period_start"], "2026-02-01");
    assert_eq!(caller.get(&format!("/api/contracts/{contract_ref}")).await.json()["state"], "ACTIVE");
}

#[actix_web::test]
async fn a_billing_run_issues_what_is_due() {
    let caller = Caller::new().await;
    caller.contract().await;
    caller.made("/api/usage/event", EVENT).await;
    caller.server.clock.advance(20 * 24 * 3600);
    let caller = Caller { bearer: caller.server.bearer(&["documents:write", "read"]).await, ..caller };
    let tried = caller.made("/api/billing/run", r#"{"dry_run":true}"#).await;
    assert_eq!((&tried["dry_run"], &tried["issued"][0]["document_number"]), (&json!(true), &json!("UB-INV-1")));
    let run = caller.server.send(Method::POST, "/api/billing/run", &[("authorization", &caller.bearer)], None).await.json();
    assert_eq!(
        (&run["dry_run"], &run["issued"][0]["document_number"], &run["failed"]),
        (&json!(false), &json!("UB-INV-1"), &json!([]))
    );
    let issued =
        caller.get("/api/documents/filter?state=ISSUED&kind=INVOICE&from=2026-01-01&to=2026-01-31&customer_ref=acme").await;
    assert_eq!((issued.json()[0]["issue_date"].as_str(), issued.header("x-total-count")), (Some("2026-02-09"), Some("1")));
    assert_eq!(caller.get("/api/documents/filter?state=DRAFT").await.json(), json!([]));
}

#[actix_web::test]
async fn refused_events_say_why_and_leave_nothing() {
    let caller = Caller::new().await;
    caller.contract().await;
    for (body, code, fields) in [
        (
            event_with("timestamp", json!("2026-01-20T12:06:00Z")),
            "timestamp_in_future",
            vec![("/timestamp", "timestamp_in_future")],
        ),
        (event_with("timestamp", json!("2025-06-01T00:00:00Z")), "no_matching_contract", vec![]),
        (
            event_with("validations", json!({"currency": "USD"})),
            "validation_mismatch",
            vec![("/validations/currency", "validation_mismatch")],
        ),
        (
            event_with("validations", json!({"entity_ref": "x"})),
            "validation_mismatch",
            vec![("/validations/entity_ref", "validation_mismatch")],
        ),
        (event_with("customer_ref", json!("nobody")), "validation_failed", vec![("/customer_ref", "unknown_reference")]),
        (event_with("quantity", json!("nonsense")), "validation_failed", vec![("/quantity", "invalid_format")]),
        (event_with("validations", json!({"curency": "EUR"})), "unknown_field", vec![("/validations/curency", "unknown_field")]),
        (
            "{}".to_owned(),
            "validation_failed",
            vec![
                ("/timestamp", "required"),
                ("/customer_ref", "required"),
                ("/usage_product_ref", "required"),
                ("/quantity", "required"),
            ],
        ),
    ] {
        let reply = caller.post("/api/usage/event", &body).await;
        assert_eq!(reply.problem(), (422, code.to_owned()), "{body}");
        let expected: Vec<(String, String)> =
            fields.iter().map(|(pointer, code)| ((*pointer).to_owned(), (*code).to_owned())).collect();
        assert_eq!(reply.fields(), expected, "{body}");
    }
    assert_eq!(caller.get("/api/documents/filter").await.json(), json!([]));
    assert_eq!(caller.made("/api/usage/event", EVENT).await["related_document_numbers"], "UB-INV-1", "no number is used");
}

#[actix_web::test]
async fn catalog_entries_are_made_once_and_edited_in_part() {
    let caller = Caller::new().await;
    for (path, reference, extra) in [
        ("/api/customers", "customer_ref", json!({})),
        ("/api/entities", "entity_ref", json!({"number_prefix": "AC"})),
        ("/api/usage/products", "usage_product_ref", json!({"unit": "call"})),
        ("/api/pricings", "product_pricing_ref", json!({"currency": "EUR"})),
    ] {
        let mut body = extra;
        body[reference] = "first".into();
        body["name"] = "First".into();
        caller.made(&format!("{path}/"), &body.to_string()).await;
        let again = caller.post(path, &body.to_string()).await;
        assert_eq!(again.problem(), (409, "already_exists".to_owned()), "{path}");
        assert_eq!(again.fields(), [(format!("/{reference}"), "already_exists".to_owned())]);

        let edited = caller.made(&format!("{path}/edit/first"), r#"{"name":"Renamed"}"#).await;
        assert_eq!(edited["name"], "Renamed", "{path}");
        assert_eq!(caller.get(&format!("{path}/first")).await.json(), edited);
        let moved = caller.post(&format!("{path}/edit/first"), &json!({reference: "second"}).to_string()).await;
        assert_eq!(moved.fields(), [(format!("/{reference}"), "not_changeable".to_owned())], "{path}");
        let unknown = caller.post(&format!("{path}/edit/nobody"), "{}").await;
        assert_eq!(unknown.problem().0, 404, "{path}");
        let listed = caller.get(&format!("{path}/filter")).await.json();
        assert!(listed.as_array().is_some_and(|all| all.contains(&edited)), "{path}: {listed}");
    }
    let names = caller.get("/api/customers/names").await.json();
    assert_eq!(names, json!([{"customer_ref": "first", "name": "Renamed"}]));
    assert_eq!(caller.get("/api/entities/names").await.header("x-total-count"), Some("2"));
}

#[actix_web::test]
async fn a_list_is_walked_by_its_links() {
    let caller = Caller::new().await;
    for n in 0..5 {
        caller.made("/api/customers/", &json!({"customer_ref": format!("c{n}"), "name": "C"}).to_string()).await;
    }
    let (mut next, mut seen) = (Some("/api/customers/names?pageSize=2".to_owned()), Vec::new());
    while let Some(path) = next {
        let reply = caller.get(&path).await;
        assert_eq!(reply.header("x-total-count"), Some("5"));
        seen.extend(
            reply.json().as_array().expect("a list").iter().map(|name| name["customer_ref"].as_str().expect("text").to_owned()),
        );
        let link =
            reply.header("link").expect("links").split(", ").find(|link| link.ends_with(r#"rel="next""#)).map(str::to_owned);
        next = link.and_then(|link| link.strip_prefix('<')?.split('>').next().map(str::to_owned));
    }
    assert_eq!(seen, ["c0", "c1", "c2", "c3", "c4"]);
}

#[actix_web::test]
async fn contracts_of_a_customer_are_listed_as_the_interface_asks() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let listed = caller.get("/api/contracts/filter?customer_ref=acme&pageSize=20&pageNumber=0").await.json();
    assert_eq!(listed[0]["contract_ref"], contract_ref.as_str());
    let calls = json!({"line_item_id": "calls", "name": "Calls", "price": {"model": "PER_UNIT", "unit_price": 0.0025},
        "usage_product_ref": "calls", "aggregation": "SUM", "included_quantity": 0});
    assert_eq!(listed[0]["products"][0]["line_items"], json!([calls]));
    assert_eq!(caller.get("/api/contracts/filter?customer_ref=nobody&pageSize=20&pageNumber=0").await.json(), json!([]));
    let incomplete = caller.get("/api/contracts/filter?customer_ref=acme&pageSize=0").await;
    let expected = [("/pageSize", "out_of_range"), ("/pageNumber", "required")];
    assert_eq!(incomplete.problem(), (422, "validation_failed".to_owned()));
    assert_eq!(incomplete.fields(), expected.map(|(pointer, code)| (pointer.to_owned(), code.to_owned())));
}

#[actix_web::test]
async fn another_organizations_references_are_unknown() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let result = caller.made("/api/usage/event", EVENT).await;
    let (services, line) = (&caller.server.services, billing_testkit::fixtures::line);
    billing_application::organizations::create_organization(services, &line("other")).expect("an organization");
    billing_application::administrators::create_administrator(
        services,
        &line("other"),
        &line("other@example.com"),
        billing_domain::access::Role::Owner,
        crate::common::PASSWORD,
    )
    .expect("an administrator");
    let session =
        caller.server.log_in(&json!({"email": "other@example.com", "password": crate::common::PASSWORD})).await.cookie();
    let text = |field: &str| result[field].as_str().expect("a reference").to_owned();
    for path in [
        format!("/api/contracts/{contract_ref}"),
        format!("/api/contracts/invoices/current/{contract_ref}"),
        format!("/api/usage/event/{}", text("event_ref")),
        format!("/api/documents/{}", text("related_document_ref")),
        "/api/customers/acme".to_owned(),
        "/api/pricings/api".to_owned(),
    ] {
        assert_eq!(caller.server.get(&path, ("cookie", &session)).await.problem().0, 404, "{path}");
    }
    for path in ["/api/documents/filter", "/api/customers/filter", "/auth/keys/list"] {
        assert_eq!(caller.server.get(path, ("cookie", &session)).await.json(), json!([]), "{path}");
    }
}

#[actix_web::test]
async fn the_description_of_the_interface_is_served_as_it_is_printed() {
    let server = Server::new();
    let served = server.send(Method::GET, "/openapi.json", &[], None).await;
    let printed = billing_api::openapi::described(NumbersAs::Number);
    assert_eq!((served.header("content-type"), served.json()), (Some("application/json"), printed));
}

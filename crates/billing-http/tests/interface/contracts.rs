//! Contracts over HTTP: requests and responses.
#![allow(missing_docs, reason = "tests")]

use crate::common::{Reply, Server, UNKNOWN};
use actix_web::http::Method;
use serde_json::{Value, json};

const ACTIONS: [&str; 4] = ["edit", "cancel", "resume", "quantities"];

struct Caller {
    server: Server,
    bearer: String,
}

impl Caller {
    async fn new() -> Self {
        let server = Server::new();
        let bearer = server.bearer(&["contracts:write", "catalog:write", "read"]).await;
        Self { server, bearer }
    }

    async fn get(&self, path: &str) -> Value {
        let reply = self.server.get(path, ("authorization", &self.bearer)).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.server.post(path, ("authorization", &self.bearer), &body.to_string()).await
    }

    async fn done(&self, path: &str, body: &Value) -> Value {
        let reply = self.post(path, body).await;
        assert_eq!(reply.status, 200, "{path}: {reply:?}");
        reply.json()
    }

    /// Creates a contract for ten seats at 10.00 a month and returns its reference.
    async fn contract(&self) -> String {
        self.done("/api/customers/", &json!({"customer_ref": "acme", "name": "Acme"})).await;
        let seats = json!({"line_item_id": "seats", "kind": "FIXED", "price": {"model": "PER_UNIT", "unit_price": 10}});
        let pricing = json!({"product_pricing_ref": "api", "name": "API", "currency": "EUR", "line_items": [seats]});
        self.done("/api/pricings/", &pricing).await;
        let made = self.done("/api/contracts/", &contract_from("2026-01-01")).await;
        made["contract_ref"].as_str().expect("a reference").to_owned()
    }
}

fn contract_from(start: &str) -> Value {
    json!({"customer_ref": "acme", "products": [{
        "product_pricing_ref": "api", "billing_start_date": start, "billing_end_date": "2026-12-31",
        "line_items": [{"line_item_id": "seats", "quantities": [{"from": start, "quantity": 10}]}],
    }]})
}

#[actix_web::test]
async fn a_contract_is_acted_on_with_the_scope_for_it() {
    let server = Server::new();
    let bearer = server.bearer(&["read", "documents:write"]).await;
    for action in ACTIONS {
        let path = format!("/api/contracts/{action}/{UNKNOWN}");
        let refused = server.post(&path, ("authorization", &bearer), "{}").await;
        assert_eq!(refused.problem(), (403, "insufficient_scope".to_owned()), "{action}");
        assert_eq!(server.send(Method::GET, &path, &[("authorization", &bearer)], None).await.problem().0, 405, "{action}");
    }
}

#[actix_web::test]
async fn a_reference_that_cannot_be_one_is_unknown_and_a_body_is_checked_before_the_contract_is_looked_for() {
    let caller = Caller::new().await;
    for action in ACTIONS {
        let nonsense = caller.post(&format!("/api/contracts/{action}/nonsense"), &json!({})).await;
        assert_eq!(nonsense.problem(), (404, "contract_not_found".to_owned()), "{action}");
        let refused = caller.post(&format!("/api/contracts/{action}/{UNKNOWN}"), &json!({"dryrun": true})).await;
        assert_eq!(refused.problem().0, 422, "{action}");
        assert_eq!(refused.fields()[0], ("/dryrun".to_owned(), "unknown_field".to_owned()), "{action}");
        assert_eq!(refused.json()["errors"][0]["detail"], "is an unknown field; the nearest is dry_run", "{action}");
    }
    for (action, day) in [("edit", "effective_from"), ("cancel", "last_day")] {
        let body = json!({"include_current_invoice": true, day: "2026-02-01"});
        let refused = caller.post(&format!("/api/contracts/{action}/{UNKNOWN}"), &body).await;
        assert_eq!(refused.problem(), (422, "conflicting_fields".to_owned()), "{action}");
    }
}

#[actix_web::test]
async fn what_is_read_of_a_contract_is_posted_back_and_changes_nothing() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let read = caller.get(&format!("/api/contracts/{contract_ref}")).await;
    assert_eq!(caller.done(&format!("/api/contracts/edit/{contract_ref}"), &read).await, read);
    assert_eq!(read["version"], 1);
    let change = json!({"product_pricing_ref": "api", "line_item_id": "seats", "quantity": 12});
    let changed = caller.done(&format!("/api/contracts/quantities/{contract_ref}"), &change).await;
    let quantities = json!([{"from": "2026-01-01", "quantity": 10}, {"from": "2026-01-20", "quantity": 12}]);
    assert_eq!((&changed["version"], &changed["products"][0]["line_items"][0]["quantities"]), (&json!(2), &quantities));
    assert_eq!(caller.done(&format!("/api/contracts/edit/{contract_ref}"), &changed).await, changed);
    let stale = caller.post(&format!("/api/contracts/edit/{contract_ref}"), &read).await;
    assert_eq!(stale.problem(), (409, "version_conflict".to_owned()));
    let current = caller.get(&format!("/api/contracts/invoices/current/{contract_ref}")).await;
    let line = &current[0]["products"][0]["line_items"][0];
    let shares = json!([
        {"from": "2026-01-01", "to": "2026-01-19", "quantity": 10, "days": 19, "of_days": 31, "amount": 61.29},
        {"from": "2026-01-20", "to": "2026-01-31", "quantity": 12, "days": 12, "of_days": 31, "amount": 46.45},
    ]);
    assert_eq!((&line["quantity"], &line["quantities"]), (&Value::Null, &shares), "{current}");
}

#[actix_web::test]
async fn a_dry_run_answers_documents_and_stores_nothing() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let read = caller.get(&format!("/api/contracts/{contract_ref}")).await;
    for (action, body) in [
        (
            "edit",
            json!({"dry_run": true, "include_current_invoice": true, "products": [{"product_pricing_ref": "api", "discount": 5}]}),
        ),
        ("cancel", json!({"dry_run": true, "include_current_invoice": true})),
        ("quantities", json!({"dry_run": true, "product_pricing_ref": "api", "line_item_id": "seats", "quantity": 12})),
    ] {
        let answered = caller.done(&format!("/api/contracts/{action}/{contract_ref}"), &body).await;
        assert_eq!(answered["dry_run"], true, "{action}");
        for part in ["opened", "issued", "recomputed", "voided"] {
            assert!(answered[part].is_array(), "{action}: {answered}");
        }
        assert_eq!(caller.get(&format!("/api/contracts/{contract_ref}")).await, read, "{action}");
    }
}

#[actix_web::test]
async fn a_cancel_is_taken_back_until_its_last_day_is_over() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let cancel = format!("/api/contracts/cancel/{contract_ref}");
    let cancelled = caller.done(&cancel, &json!({"last_day": "2026-02-10"})).await;
    assert_eq!((&cancelled["state"], &cancelled["effective_end_date"]), (&json!("CANCELLING"), &json!("2026-02-10")));
    let resume = format!("/api/contracts/resume/{contract_ref}");
    let resumed = caller.server.send(Method::POST, &resume, &[("authorization", &caller.bearer)], None).await;
    let resumed = resumed.json();
    assert_eq!((&resumed["state"], &resumed["effective_end_date"]), (&json!("ACTIVE"), &json!("2026-12-31")), "{resumed}");
}

#[actix_web::test]
async fn a_start_long_ago_is_taken_by_name_only() {
    let caller = Caller::new().await;
    caller.contract().await;
    let refused = caller.post("/api/contracts/", &contract_from("2020-01-01")).await;
    assert_eq!(refused.problem(), (422, "too_many_documents".to_owned()));
    let mut allowed = contract_from("2020-01-01");
    allowed["allow_backdated"] = true.into();
    caller.done("/api/contracts/", &allowed).await;
}

#[actix_web::test]
async fn a_dry_run_under_a_key_is_answered_again_and_stores_nothing_but_its_answer() {
    let caller = Caller::new().await;
    let contract_ref = caller.contract().await;
    let path = format!("/api/contracts/edit/{contract_ref}");
    let edit = json!({"dry_run": true, "products": [{"product_pricing_ref": "api", "discount": 5}]}).to_string();
    let headers = [("authorization", caller.bearer.as_str()), ("idempotency-key", "try")];
    let first = caller.server.send(Method::POST, &path, &headers, Some(&edit)).await;
    let again = caller.server.send(Method::POST, &path, &headers, Some(&edit)).await;
    assert_eq!((first.status.as_u16(), &first.text), (200, &again.text), "{first:?}");
    assert_eq!((first.header("idempotency-replayed"), again.header("idempotency-replayed")), (None, Some("true")));
    assert_eq!(caller.get(&format!("/api/contracts/{contract_ref}")).await["version"], 1);
}

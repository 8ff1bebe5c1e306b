//! Tests of webhook endpoints.

use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::http::Method;
use billing_domain::ports::{WebhookRequest, WebhookResponse, WebhookSender};
use billing_domain::webhook::AttemptOutcome;

use crate::common::{Reply, Server};

const ALL: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];
const ENDPOINTS: &str = "/api/webhooks/endpoints/";
const CUSTOMERS: &str = "/api/customers/";

/// An endpoint that answers when it is opened.
#[derive(Default)]
struct Gate {
    state: Mutex<GateState>,
    opened: Condvar,
}

#[derive(Default)]
struct GateState {
    requests: usize,
    is_open: bool,
}

impl Gate {
    fn locked(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the endpoint has got this many requests.
    async fn got(&self, requests: usize) {
        while self.locked().requests < requests {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn open(&self) {
        self.locked().is_open = true;
        self.opened.notify_all();
    }
}

impl WebhookSender for Gate {
    fn send(&self, _request: &WebhookRequest<'_>) -> WebhookResponse {
        let mut state = self.locked();
        state.requests += 1;
        while !state.is_open {
            state = self.opened.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        WebhookResponse {
            status: Some(204),
            outcome: AttemptOutcome::Delivered,
            retry_after_seconds: None,
            millis: 1,
            excerpt: None,
        }
    }
}

async fn create_endpoint(server: &Server, bearer: &str) -> String {
    let made = server.post(ENDPOINTS, ("authorization", bearer), r#"{"url":"https://example.com/"}"#).await;
    made.json()["endpoint_ref"].as_str().expect("a reference").to_owned()
}

async fn test(server: &Server, bearer: &str, endpoint_ref: &str, key: &str) -> Reply {
    let headers = [("authorization", bearer), ("idempotency-key", key)];
    server.send(Method::POST, &format!("{ENDPOINTS}test/{endpoint_ref}"), &headers, None).await
}

#[actix_web::test]
async fn a_test_that_waits_for_its_endpoint_holds_nothing_that_other_requests_need() {
    // With one writer, changes wait for their turn; otherwise they need a permit for a connection.
    for groups in [1, 2] {
        let gate = Arc::new(Gate::default());
        let server = Server::new().another_with_sender(Arc::clone(&gate) as _, |settings| {
            settings.groups_at_once = groups;
            settings.requests_at_once = 1;
            settings.turn_wait = Duration::from_millis(200);
        });
        let bearer = server.bearer(&ALL).await;
        let credential = ("authorization", bearer.as_str());
        let endpoint = create_endpoint(&server, &bearer).await;
        let mut waiting = pin!(test(&server, &bearer, &endpoint, "first"));
        tokio::select! {
            reply = waiting.as_mut() => panic!("the endpoint has not answered: {reply:?}"),
            () = gate.got(1) => {}
        }
        assert_eq!(server.get("/api/customers/filter", credential).await.status, 200);
        assert_eq!(server.post(CUSTOMERS, credential, r#"{"name":"Acme"}"#).await.status, 200);
        let second = test(&server, &bearer, &endpoint, "second").await;
        assert_eq!(second.problem(), (409, "webhook_test_in_progress".to_owned()));
        gate.open();
        let first = waiting.await;
        assert_eq!((first.status.as_u16(), first.json()["outcome"].as_str()), (200, Some("DELIVERED")));
        let again = test(&server, &bearer, &endpoint, "first").await;
        assert_eq!((again.text, again.headers.contains_key("idempotency-replayed")), (first.text, true));
        assert_eq!(test(&server, &bearer, &endpoint, "second").await.status, 200);
        assert_eq!(gate.locked().requests, 2, "the repeat sends nothing");
    }
}

#[actix_web::test]
async fn an_abandoned_test_is_in_progress_until_its_endpoint_has_answered() {
    let gate = Arc::new(Gate::default());
    let server =
        Server::new().another_with_sender(Arc::clone(&gate) as _, |settings| settings.turn_wait = Duration::from_millis(200));
    let bearer = server.bearer(&ALL).await;
    let endpoint = create_endpoint(&server, &bearer).await;
    tokio::select! {
        reply = test(&server, &bearer, &endpoint, "first") => panic!("the endpoint has not answered: {reply:?}"),
        () = gate.got(1) => {}
    }
    let second = test(&server, &bearer, &endpoint, "second").await;
    assert_eq!(second.problem(), (409, "webhook_test_in_progress".to_owned()), "its thread still waits");
    gate.open();
    while test(&server, &bearer, &endpoint, "second").await.status != 200 {}
}

//! Tests of webhook endpoints.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use actix_web::http::Method;
use billing_domain::ports::{MockWebhookSender, WebhookResponse};
use billing_domain::webhook::AttemptOutcome;

use crate::common::{Reply, Server};

const ALL: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];
const ENDPOINTS: &str = "/api/webhooks/endpoints/";
const CUSTOMERS: &str = "/api/customers/";

/// An endpoint that answers after the gate is dropped.
struct Endpoint {
    sender: Arc<MockWebhookSender>,
    requests: Arc<AtomicUsize>,
    gate: Sender<()>,
}

impl Endpoint {
    fn new() -> Self {
        let (requests, (gate, opened)) = (Arc::new(AtomicUsize::new(0)), channel::<()>());
        let (received, mut sender) = (Arc::clone(&requests), MockWebhookSender::new());
        sender.expect_send().returning(move |_| {
            received.fetch_add(1, Ordering::Relaxed);
            opened.recv().expect_err("a dropped gate");
            let outcome = AttemptOutcome::Delivered;
            WebhookResponse { status: Some(204), outcome, retry_after_seconds: None, millis: 1, excerpt: None }
        });
        Self { sender: Arc::new(sender), requests, gate }
    }
}

/// Returns when the endpoint has got a request.
async fn got_one(requests: &AtomicUsize) {
    while requests.load(Ordering::Relaxed) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
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
        let Endpoint { sender, requests, gate } = Endpoint::new();
        let server = Server::new().another_with_sender(sender, |settings| {
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
            () = got_one(&requests) => {}
        }
        assert_eq!(server.get("/api/customers/filter", credential).await.status, 200);
        assert_eq!(server.post(CUSTOMERS, credential, r#"{"name":"Acme"}"#).await.status, 200);
        let second = test(&server, &bearer, &endpoint, "second").await;
        assert_eq!(second.problem(), (409, "webhook_test_in_progress".to_owned()));
        drop(gate);
        let first = waiting.await;
        assert_eq!((first.status.as_u16(), first.json()["outcome"].as_str()), (200, Some("DELIVERED")));
        let again = test(&server, &bearer, &endpoint, "first").await;
        assert_eq!((again.text, again.headers.contains_key("idempotency-replayed")), (first.text, true));
        assert_eq!(test(&server, &bearer, &endpoint, "second").await.status, 200);
        assert_eq!(requests.load(Ordering::Relaxed), 2, "the repeat sends nothing");
    }
}

#[actix_web::test]
async fn an_abandoned_test_is_in_progress_until_its_endpoint_has_answered() {
    let Endpoint { sender, requests, gate } = Endpoint::new();
    let server = Server::new().another_with_sender(sender, |settings| settings.turn_wait = Duration::from_millis(200));
    let bearer = server.bearer(&ALL).await;
    let endpoint = create_endpoint(&server, &bearer).await;
    tokio::select! {
        reply = test(&server, &bearer, &endpoint, "first") => panic!("the endpoint has not answered: {reply:?}"),
        () = got_one(&requests) => {}
    }
    let second = test(&server, &bearer, &endpoint, "second").await;
    assert_eq!(second.problem(), (409, "webhook_test_in_progress".to_owned()), "its thread still waits");
    drop(gate);
    while test(&server, &bearer, &endpoint, "second").await.status != 200 {}
}

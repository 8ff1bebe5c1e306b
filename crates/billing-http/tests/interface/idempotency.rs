//! Requests with an `Idempotency-Key`, on SQLite in memory. The black-box tests cover both databases and all operations.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use crate::common::{Reply, Server};
use actix_web::http::Method;
use billing_api::operations::OPERATIONS;
use billing_application::idempotency::forget_old_answers;
use billing_domain::access::Permission;
use billing_domain::ports::{Access, RollBack, Store, StoreResult, Tx};
use billing_teststore::TestStore;
use serde_json::{Value, json};

const ALL: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];
const CUSTOMERS: &str = "/api/customers/";
const WEEK_SECONDS: i64 = 7 * 24 * 3600;

async fn post(server: &Server, credential: (&str, &str), path: &str, key: &str, body: &str) -> Reply {
    server.send(Method::POST, path, &[credential, ("idempotency-key", key)], Some(body)).await
}

/// Returns a server and the `Authorization` header of a key.
async fn started() -> (Server, String) {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    (server, bearer)
}

fn replayed(reply: &Reply) -> bool {
    reply.header("idempotency-replayed") == Some("true")
}

async fn customers(server: &Server, bearer: &str) -> usize {
    server.get("/api/customers/filter", ("authorization", bearer)).await.json().as_array().expect("a list").len()
}

#[actix_web::test]
async fn a_repeat_is_given_the_first_answer_to_the_byte() {
    let (server, bearer) = started().await;
    let credential = ("authorization", bearer.as_str());
    let first = post(&server, credential, CUSTOMERS, "k", r#"{"name":"Acme","tax":19}"#).await;
    assert_eq!((first.status.as_u16(), replayed(&first)), (200, false), "{first:?}");
    assert_eq!(first.header("idempotency-replayed"), None);
    let unkeyed = server.post(CUSTOMERS, credential, r#"{"name":"Acme","tax":19}"#).await;
    assert_eq!(first.header("content-type"), unkeyed.header("content-type"));
    for (path, body) in [
        (CUSTOMERS, r#"{"name":"Acme","tax":19}"#),
        (CUSTOMERS, " { \"tax\" : 19.0,\n\"name\" : \"\\u0041cme\" } "),
        ("/api/customers", r#"{"tax":1.9e1,"name":"Acme"}"#),
    ] {
        let again = post(&server, credential, path, "k", body).await;
        assert_eq!((again.status, &again.text), (first.status, &first.text));
        assert_eq!(again.header("content-type"), first.header("content-type"));
        assert!(replayed(&again));
        assert_ne!(again.header("x-request-id"), first.header("x-request-id"), "a replay has its own request ID");
    }
    assert_eq!(customers(&server, &bearer).await, 2);
}

#[actix_web::test]
async fn a_key_names_one_request_of_a_path() {
    let (server, bearer) = started().await;
    let credential = ("authorization", bearer.as_str());
    let first = post(&server, credential, CUSTOMERS, "k", r#"{"name":"Acme"}"#).await;
    for body in [r#"{"name":"Acme "}"#, r#"{"name":"Acme","tax":null}"#] {
        let reused = post(&server, credential, CUSTOMERS, "k", body).await;
        assert_eq!(reused.problem(), (422, "idempotency_key_reuse".to_owned()), "{body}");
    }
    let elsewhere = post(&server, credential, "/api/usage/products/", "k", r#"{"name":"Acme"}"#).await;
    assert_eq!((elsewhere.status.as_u16(), replayed(&elsewhere)), (200, false));
    let reference = first.json()["customer_ref"].as_str().expect("a reference").to_owned();
    for (path, is_repeat) in
        [(format!("/api/customers/edit/{reference}"), false), (format!("/api/customers/edit/{reference}/"), true)]
    {
        let edited = post(&server, credential, &path, "k", r#"{"name":"Acme"}"#).await;
        assert_eq!((edited.status.as_u16(), replayed(&edited)), (200, is_repeat), "{path}");
    }
    assert_eq!(customers(&server, &bearer).await, 1);
}

#[actix_web::test]
async fn a_refused_request_does_not_use_its_key_up() {
    let (server, bearer) = started().await;
    let credential = ("authorization", bearer.as_str());
    let taken = r#"{"name":"Acme","customer_ref":"acme"}"#;
    server.post(CUSTOMERS, credential, taken).await;
    for (body, status) in [("{", 400), (r#"{"name":7}"#, 422), (r#"{"name":"New","entity_ref":"nobody"}"#, 422), (taken, 409)] {
        for _ in 0..2 {
            let refused = post(&server, credential, CUSTOMERS, "k", body).await;
            assert_eq!((refused.status.as_u16(), replayed(&refused)), (status, false), "{body}");
        }
    }
    let mended = post(&server, credential, CUSTOMERS, "k", r#"{"name":"New"}"#).await;
    assert_eq!((mended.status.as_u16(), replayed(&mended)), (200, false));
    assert_eq!(customers(&server, &bearer).await, 2);
}

#[actix_web::test]
async fn a_key_has_1_to_255_characters_without_control_characters_and_comes_once() {
    let (server, bearer) = started().await;
    let session = server.session().await;
    let long = "k".repeat(256);
    for operation in OPERATIONS.iter().filter(|operation| operation.takes_idempotency_key()) {
        let path = operation.path.replace(['{', '}'], "");
        let is_persons = matches!(operation.need(), Some(Permission::Administrator | Permission::Owner));
        let credential = if is_persons { ("cookie", session.as_str()) } else { ("authorization", bearer.as_str()) };
        for keys in [vec![""], vec![long.as_str()], vec!["a\tb"], vec!["a", "a"], vec!["\u{85}"]] {
            let mut headers = vec![credential];
            headers.extend(keys.iter().map(|key| ("idempotency-key", *key)));
            let refused = server.send(Method::POST, &path, &headers, Some("{}")).await;
            assert_eq!(refused.problem(), (400, "invalid_idempotency_key".to_owned()), "{path} {keys:?}");
            assert!(refused.json()["detail"].as_str().is_some_and(|detail| detail.contains("Idempotency-Key")));
        }
    }
    for key in [&long[1..], "schlüssel 鍵", "\"quoted\""] {
        assert_eq!(post(&server, ("authorization", &bearer), CUSTOMERS, key, r#"{"name":"Acme"}"#).await.status, 200, "{key}");
    }
    let ignored = [("authorization", bearer.as_str()), ("idempotency-key", "")];
    assert_eq!(server.send(Method::GET, "/api/customers/filter", &ignored, None).await.status, 200);
}

#[actix_web::test]
async fn logging_in_and_out_under_a_key_is_logging_in_and_out() {
    let (server, bearer) = started().await;
    let key = server.key(&ALL).await;
    let body = json!({"api_key": key["api_key"], "password": key["password"]}).to_string();
    let tokens = [(); 2].map(|()| server.send(Method::POST, "/auth/login", &[("idempotency-key", "k")], Some(&body)));
    for token in tokens {
        let token = token.await;
        assert_eq!((token.status.as_u16(), replayed(&token)), (200, false));
    }
    for _ in 0..2 {
        let headers = [("authorization", bearer.as_str()), ("idempotency-key", "k")];
        assert_eq!(server.send(Method::POST, "/auth/logout", &headers, None).await.status, 204);
    }
    assert_eq!(server.get("/api/customers/filter", ("authorization", &bearer)).await.status, 401);
}

#[actix_web::test]
async fn an_answer_is_given_again_for_seven_days() {
    let server = Server::new();
    let key = server.key(&ALL).await;
    let body = r#"{"name":"Acme"}"#;
    let first = post(&server, ("authorization", &server.bearer_of(&key).await), CUSTOMERS, "k", body).await;
    server.clock.advance(WEEK_SECONDS);
    let again = post(&server, ("authorization", &server.bearer_of(&key).await), CUSTOMERS, "k", body).await;
    assert_eq!((replayed(&again), &again.text), (true, &first.text), "on the last second");
    server.clock.advance(1);
    let bearer = server.bearer_of(&key).await;
    let anew = post(&server, ("authorization", &bearer), CUSTOMERS, "k", r#"{"name":"Other"}"#).await;
    assert_eq!((anew.status.as_u16(), replayed(&anew)), (200, false));
    let again = post(&server, ("authorization", &bearer), CUSTOMERS, "k", r#"{"name":"Other"}"#).await;
    assert_eq!((replayed(&again), &again.text), (true, &anew.text), "the newer response replaces the older one");
    assert_eq!(customers(&server, &bearer).await, 2);
}

#[actix_web::test]
async fn answers_are_forgotten_once_they_are_no_longer_given_again() {
    let (server, bearer) = started().await;
    for n in 0..3 {
        let body = json!({"name": n.to_string()}).to_string();
        assert_eq!(post(&server, ("authorization", &bearer), CUSTOMERS, &n.to_string(), &body).await.status, 200);
        server.clock.advance(1);
    }
    let forgotten = || forget_old_answers(&server.services).expect("a working store");
    server.clock.advance(WEEK_SECONDS - 3);
    assert_eq!(forgotten(), 0);
    server.clock.advance(2);
    assert_eq!((forgotten(), forgotten()), (2, 0));
}

#[actix_web::test]
async fn a_generated_key_is_shown_again_to_its_session_alone() {
    let server = Server::new();
    let (own, other) = (server.session().await, server.session().await);
    let (path, body) = ("/auth/keys/generate", r#"{"name":"gateway"}"#);
    let first = post(&server, ("cookie", &own), path, "k", body).await;
    assert_eq!((first.status.as_u16(), replayed(&first)), (200, false));
    let again = post(&server, ("cookie", &own), path, "k", body).await;
    assert_eq!((replayed(&again), &again.text), (true, &first.text));
    let elsewhere = post(&server, ("cookie", &other), path, "k", body).await;
    assert_eq!(elsewhere.problem(), (409, "secret_shown_once".to_owned()));
    assert!(!elsewhere.text.contains(first.json()["password"].as_str().expect("a password")));
    let reused = post(&server, ("cookie", &own), path, "k", "{}").await;
    assert_eq!(reused.problem(), (422, "idempotency_key_reuse".to_owned()));
    let keys = server.get("/auth/keys/list", ("cookie", &own)).await.json();
    assert_eq!(keys.as_array().map(Vec::len), Some(1));
    let bearer = server.bearer_of(&again.json()).await;
    assert_eq!(server.get("/api/customers/filter", ("authorization", &bearer)).await.status, 200, "the created key works");
}

#[actix_web::test]
async fn a_webhook_secret_is_shown_again_to_the_key_or_session_that_made_it_alone() {
    let server = Server::new();
    let (key, other_key) = (server.key(&ALL).await, server.key(&ALL).await);
    let [own, later, other] = [&key, &key, &other_key].map(|key| server.bearer_of(key));
    let (own, later, other) = (own.await, later.await, other.await);
    let sessions = [server.session().await, server.session().await];
    let endpoints = "/api/webhooks/endpoints/";
    let made = post(&server, ("authorization", &own), endpoints, "made", r#"{"url":"https://example.com/hooks"}"#).await;
    let rotation = format!("{endpoints}rotate/{}", made.json()["endpoint_ref"].as_str().expect("a reference"));
    for (path, key, body) in
        [(endpoints, "k", r#"{"url":"https://example.com/hooks"}"#), (rotation.as_str(), "k", r#"{"overlap_hours":0}"#)]
    {
        let by_key = post(&server, ("authorization", &own), path, key, body).await;
        let secret = by_key.json()["secret"].as_str().expect("a secret").to_owned();
        for bearer in [&own, &later] {
            let again = post(&server, ("authorization", bearer), path, key, body).await;
            assert_eq!((replayed(&again), &again.text), (true, &by_key.text), "{path}");
        }
        let strangers = [("authorization", other.as_str()), ("cookie", &sessions[0])];
        for stranger in strangers {
            let elsewhere = post(&server, stranger, path, key, body).await;
            assert_eq!(elsewhere.problem(), (409, "secret_shown_once".to_owned()), "{path}");
            assert!(!elsewhere.text.contains(&secret), "{path}");
        }
        let by_session = post(&server, ("cookie", &sessions[0]), path, "of a session", body).await;
        let again = post(&server, ("cookie", &sessions[0]), path, "of a session", body).await;
        assert_eq!((replayed(&again), &again.text), (true, &by_session.text), "{path}");
        for stranger in [("authorization", own.as_str()), ("cookie", &sessions[1])] {
            let elsewhere = post(&server, stranger, path, "of a session", body).await;
            assert_eq!(elsewhere.problem(), (409, "secret_shown_once".to_owned()), "{path}");
        }
    }
}

#[actix_web::test]
async fn a_dry_run_under_a_key_is_answered_again_and_stores_nothing_else() {
    let (server, bearer) = started().await;
    let before = server.store.contents();
    let dry = r#"{"dry_run":true}"#;
    let first = post(&server, ("authorization", &bearer), "/api/billing/run", "k", dry).await;
    assert_eq!(first.json()["dry_run"], Value::Bool(true));
    let again = post(&server, ("authorization", &bearer), "/api/billing/run", "k", dry).await;
    assert_eq!((replayed(&again), &again.text), (true, &first.text));
    assert_ne!(server.store.contents(), before, "the response is stored");
    let other = post(&server, ("authorization", &bearer), "/api/billing/run", "k", "{}").await;
    assert_eq!(other.problem(), (422, "idempotency_key_reuse".to_owned()));
}

/// A store with slow writes that counts concurrent writes.
struct Slow {
    store: Arc<TestStore>,
    is_slow: AtomicBool,
    running: AtomicU32,
    most_running: AtomicU32,
}

impl Store for Slow {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        if access != Access::Write || !self.is_slow.load(Ordering::Relaxed) {
            return self.store.run(access, work);
        }
        let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
        self.most_running.fetch_max(running, Ordering::Relaxed);
        std::thread::sleep(Duration::from_millis(100));
        let outcome = self.store.run(access, work);
        self.running.fetch_sub(1, Ordering::Relaxed);
        outcome
    }

    fn ready(&self) -> StoreResult<()> {
        self.store.ready()
    }
}

fn slow() -> (Server, Arc<Slow>) {
    let store = Arc::new(TestStore::new());
    let slow = Arc::new(Slow {
        store: Arc::clone(&store),
        is_slow: AtomicBool::new(false),
        running: AtomicU32::new(0),
        most_running: AtomicU32::new(0),
    });
    (Server::on(Arc::clone(&slow) as _, store, "http://billing.test", |_| {}), slow)
}

#[actix_web::test]
async fn a_twin_waits_for_work_whose_client_has_gone() {
    let (server, store) = slow();
    let bearer = server.bearer(&ALL).await;
    let body = r#"{"name":"Acme"}"#;
    store.is_slow.store(true, Ordering::Relaxed);
    let credential = ("authorization", bearer.as_str());
    let at_work = async {
        while store.running.load(Ordering::Relaxed) == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::select! {
        _ = post(&server, credential, CUSTOMERS, "k", body) => panic!("the request ended too early"),
        () = at_work => {}
    }
    let twin = post(&server, credential, CUSTOMERS, "k", body).await;
    assert_eq!((twin.status.as_u16(), replayed(&twin)), (200, true));
    assert_eq!(store.most_running.load(Ordering::Relaxed), 1, "the duplicate waits before it takes a thread");
    assert_eq!(customers(&server, &bearer).await, 1);
}

//! Rules for all requests: problem documents for failures, versions, limits, request IDs and headers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use crate::common::{Reply, Server, UNKNOWN};
use actix_web::http::Method;
use actix_web::test::TestRequest;
use billing_api::operation::HttpMethod;
use billing_api::operations::OPERATIONS;
use billing_domain::access::Permission;
use billing_domain::ports::{Access, DatabaseReplaced, RollBack, Store, StoreError, StoreResult, Tx};
use billing_teststore::TestStore;
use serde_json::json;

const ALL: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];

#[actix_web::test]
async fn an_unknown_path_is_a_404_with_or_without_a_credential() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    for path in [
        "/api",
        "/api/",
        "/api/nonsense",
        "/api/contracts/renew/x",
        "/api//contracts",
        "/auth",
        "/API/contracts",
        "/api/contracts/x/y",
    ] {
        for method in [Method::GET, Method::POST, Method::PUT, Method::OPTIONS] {
            for headers in
                [vec![], vec![("authorization", bearer.as_str())], vec![("authorization", "Bearer x"), ("version", "V9")]]
            {
                let reply = server.send(method.clone(), path, &headers, None).await;
                assert_eq!(reply.problem(), (404, "route_not_found".to_owned()), "{method} {path}");
            }
        }
    }
}

#[actix_web::test]
async fn a_wrong_method_is_a_405_that_names_the_right_ones() {
    let server = Server::new();
    for (path, allowed) in [
        ("/auth/login", "POST"),
        ("/api/contracts", "POST"),
        ("/api/contracts/", "POST"),
        ("/api/contracts/filter", "GET, HEAD"),
        ("/api/customers/edit/x/", "POST"),
        ("/api/usage/event/x", "GET, HEAD, DELETE"),
        ("/auth/user/x", "DELETE"),
        ("/health/live", "GET, HEAD"),
    ] {
        for method in [Method::PUT, Method::PATCH, Method::OPTIONS] {
            let reply = server.send(method, path, &[("authorization", "Bearer x"), ("version", "V9")], None).await;
            assert_eq!(reply.problem(), (405, "method_not_allowed".to_owned()), "{path}");
            assert_eq!(reply.header("allow"), Some(allowed), "{path}");
        }
    }
}

#[actix_web::test]
async fn a_slash_at_the_end_makes_no_difference() {
    let server = Server::new();
    let session = server.session().await;
    for operation in OPERATIONS.iter().filter(|operation| operation.method == HttpMethod::GET) {
        let bare = operation.path.trim_end_matches('/').replace(['{', '}'], "");
        let (without, with) =
            (server.get(&bare, ("cookie", &session)).await, server.get(&format!("{bare}/"), ("cookie", &session)).await);
        assert_eq!(without.status, with.status, "{bare}");
        assert!(!without.text.contains("route_not_found"), "{bare}");
    }
}

#[actix_web::test]
async fn a_version_is_v0_or_left_out() {
    let server = Server::new();
    let (bearer, session) = (server.bearer(&ALL).await, server.session().await);
    for operation in OPERATIONS.iter().filter(|operation| operation.is_versioned()) {
        let path = operation.path.replace(['{', '}'], "");
        for (versions, refused) in [
            (vec![], false),
            (vec!["V0"], false),
            (vec!["V1"], true),
            (vec!["v0"], true),
            (vec![""], true),
            (vec!["V0", "V1"], true),
        ] {
            let is_persons = matches!(operation.need(), Some(Permission::Administrator | Permission::Owner));
            let mut headers = vec![if is_persons { ("cookie", session.as_str()) } else { ("authorization", bearer.as_str()) }];
            headers.extend(versions.iter().map(|version| ("version", *version)));
            let reply = server.send(operation.method.method(), &path, &headers, None).await;
            assert_eq!(reply.header("version"), Some("V0"), "{path}");
            assert_eq!(reply.text.contains("unsupported_version"), refused, "{path} {versions:?}");
            if refused {
                assert_eq!(reply.problem().0, 400);
                assert_eq!(reply.json()["supported"], json!(["V0"]));
            }
        }
        let nobody = server.send(operation.method.method(), &path, &[("version", "V1")], None).await;
        assert_eq!(nobody.problem().0, 401, "the credential is checked first");
    }
    let reply = server.send(Method::POST, "/auth/logout", &[("version", "V1")], None).await;
    assert_eq!((reply.status.as_u16(), reply.header("version")), (204, None));
}

#[actix_web::test]
async fn a_body_is_plain_json_of_a_limited_size() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    let post = |headers: Vec<(&'static str, &'static str)>, body: Vec<u8>| {
        let mut request = TestRequest::post().uri("/api/customers/").insert_header(("authorization", bearer.as_str()));
        for header in headers {
            request = request.append_header(header);
        }
        server.call(request.set_payload(body))
    };
    let json = ("content-type", "application/json");
    let customer = br#"{"customer_ref":"acme","name":"Acme"}"#.to_vec();
    let padded = |bytes: usize| [customer.clone(), vec![b' '; bytes - customer.len()]].concat();
    let deep = format!(r#"{{"name":{}1{}}}"#, "[".repeat(32), "]".repeat(32)).into_bytes();
    for (headers, body, status, code) in [
        (vec![], customer.clone(), 415, "unsupported_media_type"),
        (vec![("content-type", "text/plain")], customer.clone(), 415, "unsupported_media_type"),
        (vec![("content-type", "application/x-www-form-urlencoded")], customer.clone(), 415, "unsupported_media_type"),
        (vec![("content-type", "application/json; charset=latin1")], customer.clone(), 415, "unsupported_media_type"),
        (vec![json, ("content-encoding", "gzip")], customer.clone(), 415, "unsupported_media_type"),
        (vec![json], vec![], 400, "malformed_json"),
        (vec![json], b"{".to_vec(), 400, "malformed_json"),
        (vec![json], b"{\"name\":\"a\0\"}".to_vec(), 400, "malformed_json"),
        (vec![json], br#"{"name":"\ud800"}"#.to_vec(), 400, "malformed_json"),
        (vec![json], br#"{"name":"a","name":"a"}"#.to_vec(), 400, "duplicate_json_key"),
        (vec![json], deep, 400, "json_too_deep"),
        (vec![json], padded(1024 * 1024 + 1), 413, "body_too_large"),
        (vec![json], br#"{"name":"a\u0000"}"#.to_vec(), 422, "validation_failed"),
        (vec![json], br#"{"name":"a","tax":1e400}"#.to_vec(), 422, "validation_failed"),
        (vec![json], b"[]".to_vec(), 422, "validation_failed"),
    ] {
        let shown = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        assert_eq!(post(headers, body).await.problem(), (status, code.to_owned()), "{shown}");
    }
    for headers in [vec![json], vec![("content-type", "Application/JSON; charset=\"UTF-8\""), ("content-encoding", "identity")]] {
        let reply = post(headers, padded(1024 * 1024)).await;
        assert!(matches!(reply.status.as_u16(), 200 | 409), "{reply:?}");
    }
    let listed = server.get("/api/customers/filter", ("authorization", &bearer)).await;
    assert_eq!(listed.header("x-total-count"), Some("1"), "rejected requests store nothing");
}

#[actix_web::test]
async fn checks_run_from_the_credential_to_the_rules() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    let steps = [
        (vec![("version", "V9")], "{", "unauthenticated"),
        (vec![("authorization", bearer.as_str()), ("version", "V9")], "{", "unsupported_version"),
        (vec![("authorization", bearer.as_str())], "{", "malformed_json"),
        (vec![("authorization", bearer.as_str())], r#"{"customer_ref":"nobody","products":[{}]}"#, "validation_failed"),
    ];
    for (headers, body, code) in steps {
        assert_eq!(server.send(Method::POST, "/api/contracts/", &headers, Some(body)).await.problem().1, code);
    }
    let unknown =
        server.send(Method::POST, "/api/contracts/", &[("authorization", &bearer)], Some(r#"{"customer_ref":"nobody"}"#)).await;
    assert_eq!(unknown.fields(), [("/customer_ref".to_owned(), "unknown_reference".to_owned())]);
}

#[actix_web::test]
async fn a_reference_in_a_path_that_names_nothing_is_a_404_of_its_kind() {
    let server = Server::new();
    let session = server.session().await;
    for (path, code) in [
        ("/api/usage/event/", "event_not_found"),
        ("/api/contracts/", "contract_not_found"),
        ("/api/contracts/invoices/current/", "contract_not_found"),
        ("/api/contracts/invoices/next/", "contract_not_found"),
        ("/api/customers/", "customer_not_found"),
        ("/api/entities/", "entity_not_found"),
        ("/api/usage/products/", "usage_product_not_found"),
        ("/api/pricings/", "pricing_not_found"),
        ("/api/documents/", "document_not_found"),
    ] {
        for reference in [UNKNOWN, "nonsense", "%20", "%00", "%ff", "a%2Fb", &"x".repeat(300)] {
            let reply = server.get(&format!("{path}{reference}"), ("cookie", &session)).await;
            assert_eq!(reply.problem(), (404, code.to_owned()), "{path}{reference}");
        }
    }
}

#[actix_web::test]
async fn request_ids_are_taken_over_when_they_are_harmless() {
    let server = Server::new();
    for (given, taken) in [("abc-123_X.y:z", true), ("", false), ("a b", false), ("a\"b", false), (&*"x".repeat(129), false)] {
        let reply = server.send(Method::GET, "/health/live", &[("x-request-id", given)], None).await;
        let id = reply.header("x-request-id").expect("an id");
        assert_eq!(id == given, taken, "{given}: {id}");
        assert!(!id.is_empty());
    }
    let (one, two) =
        (server.send(Method::GET, "/nothing", &[], None).await, server.send(Method::GET, "/nothing", &[], None).await);
    assert_ne!(one.header("x-request-id"), two.header("x-request-id"));
}

#[actix_web::test]
async fn no_answer_lets_browsers_guess_types_or_other_origins_read() {
    let server = Server::new();
    for path in ["/health/live", "/openapi.json", "/nothing", "/api/customers/filter"] {
        let reply = server.send(Method::GET, path, &[("origin", "http://evil.test")], None).await;
        assert_eq!(reply.header("x-content-type-options"), Some("nosniff"), "{path}");
        assert!(reply.headers.iter().all(|(name, _)| !name.as_str().starts_with("access-control")), "{path}");
        assert_eq!(reply.header("strict-transport-security"), None, "only with HTTPS");
    }
}

/// Probes the readiness until the response is as expected. After a failed check, a probe requests the next check and does not wait for
/// it.
async fn probe_until(server: &Server, is_expected: impl Fn(&Reply) -> bool) {
    for _ in 0..1_000 {
        if is_expected(&server.send(Method::GET, "/health/ready", &[], None).await) {
            return;
        }
        actix_web::rt::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("the server stays as it was");
}

#[actix_web::test]
async fn a_service_that_stops_or_has_no_store_is_alive_and_not_ready() {
    let server = Server::new();
    let status = async |path: &str| server.send(Method::GET, path, &[], None).await;
    assert_eq!(status("/health/ready").await.status, 200);
    server.store.set_unavailable(true);
    assert_eq!(status("/health/ready").await.problem(), (503, "not_ready".to_owned()));
    assert_eq!(status("/health/live").await.status, 200);
    server.store.set_unavailable(false);
    probe_until(&server, |reply| reply.status == 200).await;
    server.state.stop_being_ready();
    assert_eq!(status("/health/ready").await.problem(), (503, "not_ready".to_owned()));
}

#[actix_web::test]
async fn readiness_is_answered_at_once_while_the_database_hangs() {
    let (server, store) = moody(PATIENCE);
    let probe = async || {
        let asked = Instant::now();
        let reply = server.send(Method::GET, "/health/ready", &[], None).await;
        // The limit is far above the promised 500 ms, and far below the time for which the store hangs.
        assert!(asked.elapsed() < Duration::from_secs(3), "{:?}", asked.elapsed());
        reply
    };
    assert_eq!(probe().await.status, 200);
    store.mood.store(HANGS, Ordering::Relaxed);
    let began = Instant::now();
    let refused = loop {
        let reply = probe().await;
        if reply.status != 200 {
            break reply;
        }
        assert!(began.elapsed() < PATIENCE, "a check that does not end is noticed");
    };
    assert_eq!(refused.problem(), (503, "not_ready".to_owned()));
    assert!(refused.text.contains("no check of it has ended in the last 3 seconds"), "{}", refused.text);
    assert_eq!(server.send(Method::GET, "/health/live", &[], None).await.status, 200);
    store.mood.store(FINE, Ordering::Relaxed);
    while probe().await.status != 200 {
        assert!(began.elapsed() < PATIENCE * 2, "the server is ready again");
    }
}

#[actix_web::test]
async fn a_replaced_database_is_the_reason_of_a_server_that_is_not_ready() {
    let (server, store) = moody(PATIENCE);
    let replaced = DatabaseReplaced.to_string();
    for (mood, detail) in [(REPLACED, replaced.as_str()), (NO_WRITES, "the service cannot use its database")] {
        store.mood.store(mood, Ordering::Relaxed);
        probe_until(&server, |refused| {
            assert_eq!(refused.problem(), (503, "not_ready".to_owned()));
            refused.json()["detail"] == detail
        })
        .await;
    }
}

/// A store with a failure mode that tests select.
struct Moody {
    store: Arc<TestStore>,
    mood: AtomicU8,
}

/// A timeout far longer than a request needs.
const PATIENCE: Duration = Duration::from_secs(30);

const FINE: u8 = 0;
const PANICS: u8 = 1;
const SLOW: u8 = 2;
const CONTENDED: u8 = 3;
const CORRUPT: u8 = 4;
const NO_WRITES: u8 = 5;
const HANGS: u8 = 6;
const REPLACED: u8 = 7;

impl Store for Moody {
    fn run(&self, access: Access, work: &mut dyn FnMut(&mut dyn Tx) -> Result<(), RollBack>) -> StoreResult<()> {
        match self.mood.load(Ordering::Relaxed) {
            PANICS => panic!("as the test wants it"),
            SLOW => std::thread::sleep(Duration::from_millis(400)),
            CONTENDED => return Err(StoreError::Contended),
            CORRUPT => return Err(StoreError::Corrupt("secret row".to_owned())),
            NO_WRITES if access == Access::Write => return Err(StoreError::Unavailable("secret host".into())),
            _ => {}
        }
        self.store.run(access, work)
    }

    fn ready(&self) -> StoreResult<()> {
        let began = Instant::now();
        while self.mood.load(Ordering::Relaxed) == HANGS && began.elapsed() < PATIENCE * 2 {
            std::thread::sleep(Duration::from_millis(10));
        }
        match self.mood.load(Ordering::Relaxed) {
            REPLACED => Err(StoreError::Unavailable(DatabaseReplaced.into())),
            NO_WRITES => Err(StoreError::Unavailable("secret host".into())),
            _ => self.store.ready(),
        }
    }
}

/// Returns a server with this request timeout.
fn moody(request_timeout: Duration) -> (Server, Arc<Moody>) {
    let store = Arc::new(TestStore::new());
    let moody = Arc::new(Moody { store: Arc::clone(&store), mood: AtomicU8::new(FINE) });
    let settings = |settings: &mut billing_http::HttpSettings| settings.request_timeout = request_timeout;
    (Server::on(Arc::clone(&moody) as _, store, "http://billing.test", settings), moody)
}

#[actix_web::test]
async fn failures_inside_are_answered_without_saying_what_is_inside() {
    for (mood, request_timeout, status, code) in [
        (PANICS, PATIENCE, 500, "internal_error"),
        (SLOW, Duration::from_millis(200), 503, "timed_out"),
        (CONTENDED, PATIENCE, 503, "contended"),
        (CORRUPT, PATIENCE, 500, "internal_error"),
    ] {
        let (server, store) = moody(request_timeout);
        let (bearer, session) = (server.bearer(&ALL).await, server.session().await);
        store.mood.store(mood, Ordering::Relaxed);
        for credential in [("authorization", bearer.as_str()), ("cookie", session.as_str())] {
            let reply = server.get("/api/customers/filter", credential).await;
            assert_eq!(reply.problem(), (status, code.to_owned()));
            assert_eq!((reply.header("version"), reply.header("x-content-type-options")), (Some("V0"), Some("nosniff")));
            assert!(!reply.text.contains("secret") && !reply.text.contains("test wants"), "{}", reply.text);
        }
    }
}

#[actix_web::test]
async fn a_session_that_cannot_be_stored_is_a_503_and_no_cookie() {
    let (server, store) = moody(PATIENCE);
    store.mood.store(NO_WRITES, Ordering::Relaxed);
    let reply = server.log_in(&json!({"email": crate::common::EMAIL, "password": crate::common::PASSWORD})).await;
    assert_eq!(reply.problem(), (503, "unavailable".to_owned()));
    assert_eq!((reply.header("set-cookie"), reply.header("cache-control")), (None, Some("no-store")));
}

/// Sends bytes to a real server, as far as possible. Returns the response and whether all bytes were sent.
async fn over_a_connection(server: &Server, bytes: Vec<u8>) -> String {
    connected(server, move |mut connection| {
        let whole = connection.write_all(&bytes).is_ok();
        let mut answer = Vec::new();
        let mut buffer = [0; 4096];
        while !answer.ends_with(b"}") {
            match connection.read(&mut buffer) {
                Ok(0) | Err(_) => break,
                Ok(length) => answer.extend_from_slice(&buffer[..length]),
            }
        }
        format!("sent whole: {whole}\n{}", String::from_utf8_lossy(&answer))
    })
    .await
}

/// Runs a client on a TCP connection to the app and returns the client's result.
pub(crate) async fn connected<T: Send + 'static>(server: &Server, client: impl FnOnce(TcpStream) -> T + Send + 'static) -> T {
    let state = server.state.clone();
    let bound =
        actix_web::HttpServer::new(move || billing_http::app(state.clone())).workers(1).bind("127.0.0.1:0").expect("a port");
    let address = bound.addrs()[0];
    let running = bound.run();
    let handle = running.handle();
    actix_web::rt::spawn(running);
    let client = move || {
        let connection = TcpStream::connect(address).expect("a connection");
        connection.set_read_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        connection.set_write_timeout(Some(Duration::from_secs(5))).expect("a time limit");
        client(connection)
    };
    let outcome = actix_web::web::block(client).await.expect("an outcome");
    handle.stop(false).await;
    outcome
}

#[actix_web::test]
async fn a_body_that_does_not_arrive_in_time_is_a_408() {
    let (server, _) = moody(Duration::from_millis(200));
    let bearer = server.bearer(&ALL).await;
    let head = format!(
        "POST /api/customers/ HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\n\
         Content-Type: application/json\r\nContent-Length: 50\r\n\r\n{{\"name\""
    );
    let answer = over_a_connection(&server, head.into_bytes()).await;
    assert!(answer.contains("HTTP/1.1 408") && answer.contains("request_timeout"), "{answer}");
}

#[actix_web::test]
async fn a_client_that_sends_too_much_still_gets_its_answer() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    let length = 3 * 1024 * 1024;
    for framing in [format!("Content-Length: {length}\r\n\r\n"), format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n")] {
        let head = format!(
            "POST /api/customers/ HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n{framing}"
        );
        let answer = over_a_connection(&server, [head.into_bytes(), vec![b' '; length]].concat()).await;
        assert!(answer.contains("HTTP/1.1 413") && answer.contains("body_too_large"), "{framing}: {answer}");
    }
}

#[actix_web::test]
async fn a_connection_whose_body_goes_on_ends_with_its_answer() {
    let server = Server::new();
    let bearer = server.bearer(&ALL).await;
    for (path, status) in [
        ("/api/usage/event", 401),
        ("/nothing", 404),
        ("/health/live", 405),
        ("/api/usage/event/update", 401),
        ("/console/log-out", 303),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{{\"\r\n");
        let (answer, is_over) = connected(&server, move |mut connection| {
            connection.write_all(head.as_bytes()).expect("an open connection");
            let mut answer = Vec::new();
            let is_over = connection.read_to_end(&mut answer).is_ok();
            (String::from_utf8_lossy(&answer).into_owned(), is_over)
        })
        .await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{path}: {answer}");
        assert!(is_over && answer.to_lowercase().contains("connection: close"), "{path}: {answer}");
    }
    // A completely read request keeps its connection open.
    let body = r#"{"name": "x"}"#;
    let head =
        format!("POST /api/customers/ HTTP/1.1\r\nHost: x\r\nAuthorization: {bearer}\r\nContent-Type: application/json\r\n");
    let once = format!("{head}Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let twice = connected(&server, move |mut connection| {
        let mut statuses = 0;
        for _ in 0..2 {
            connection.write_all(once.as_bytes()).expect("an open connection");
            let mut buffer = [0; 8192];
            let length = connection.read(&mut buffer).expect("a response");
            statuses += usize::from(buffer[..length].starts_with(b"HTTP/1.1 200"));
        }
        statuses
    })
    .await;
    assert_eq!(twice, 2);
}

#[actix_web::test]
async fn little_is_read_of_who_is_not_known_yet() {
    let server = Server::new();
    let email = "a".repeat(9 * 1024);
    for (path, kind, body) in [
        ("/auth/login", "application/json", format!(r#"{{"email": "{email}", "password": "x"}}"#)),
        ("/console/log-in", "application/x-www-form-urlencoded", format!("email={email}&password=x")),
        ("/console//log-in/", "application/x-www-form-urlencoded", format!("email={email}&password=x")),
    ] {
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n", body.len());
        let answer = over_a_connection(&server, [head, body].concat().into_bytes()).await;
        assert!(answer.contains("HTTP/1.1 413"), "{path}: {answer}");
    }
}

#[actix_web::test]
async fn a_failure_without_a_request_left_is_answered_on_the_connection() {
    let (server, store) = moody(Duration::from_millis(200));
    let session = server.session().await;
    store.mood.store(SLOW, Ordering::Relaxed);
    let head = format!("GET /api/customers/names HTTP/1.1\r\nHost: x\r\nCookie: {session}\r\nX-Request-Id: mine\r\n\r\n");
    let answer = over_a_connection(&server, head.into_bytes()).await;
    assert!(answer.contains("HTTP/1.1 503") && answer.contains("application/problem+json"), "{answer}");
    assert!(answer.contains("timed_out") && answer.contains(r#""request_id":"mine""#), "{answer}");
}

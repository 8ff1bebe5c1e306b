//! Access control: log-ins, tokens, sessions, scopes, and all operations with each kind of credential.

use crate::common::{EMAIL, PASSWORD, Server, UNKNOWN};
use actix_web::http::Method;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use billing_api::operations::{OPERATIONS, OperationSpec};
use billing_domain::access::{Permission, Scope};
use serde_json::{Value, json};

const BEARER: &str = "authorization";
const COOKIE: &str = "cookie";

fn path_of(operation: &OperationSpec) -> String {
    let segments = operation.path.split('/').map(|segment| if segment.starts_with('{') { UNKNOWN } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

/// Sends a request without a body. Returns the error code of the guard, or `let in` if the request passes the guard.
async fn try_out(server: &Server, operation: &OperationSpec, headers: &[(&str, &str)]) -> String {
    let reply = server.send(operation.method.method(), &path_of(operation), headers, None).await;
    if reply.status.is_success() || !matches!(reply.status.as_u16(), 401 | 403) { "let in".to_owned() } else { reply.problem().1 }
}

fn all() -> Vec<&'static str> {
    Scope::ALL.map(Scope::as_str).to_vec()
}

#[actix_web::test]
async fn every_operation_takes_the_credentials_its_line_in_the_table_says() {
    let server = Server::new();
    let (bearer, cookie) = (server.bearer(&all()).await, server.session().await);
    for operation in OPERATIONS.iter().filter(|operation| operation.id != "log_out" && operation.id != "log_in") {
        let nothing = try_out(&server, operation, &[]).await;
        let by_bearer = try_out(&server, operation, &[(BEARER, &bearer)]).await;
        let by_cookie = try_out(&server, operation, &[(COOKIE, &cookie)]).await;
        let expected = match operation.need() {
            None => ["let in", "let in", "let in"],
            Some(Permission::Administrator | Permission::Owner) => ["unauthenticated", "admin_session_required", "let in"],
            Some(Permission::Scope(_) | Permission::ScopeAndRead(_) | Permission::ScopeOrRole(..)) => {
                ["unauthenticated", "let in", "let in"]
            }
        };
        assert_eq!([nothing.as_str(), &by_bearer, &by_cookie], expected, "{}", operation.id);
    }
}

#[actix_web::test]
async fn a_key_gets_as_far_as_its_scopes_go() {
    let server = Server::new();
    for scope in Scope::ALL {
        let bearer = server.bearer(&[scope.as_str()]).await;
        for operation in OPERATIONS {
            let needed = operation.need().map(Permission::scopes).unwrap_or_default();
            if needed.is_empty() {
                continue;
            }
            let expected = if needed == [scope] { "let in" } else { "insufficient_scope" };
            assert_eq!(
                try_out(&server, operation, &[(BEARER, &bearer)]).await,
                expected,
                "{} with {}",
                operation.id,
                scope.as_str()
            );
        }
    }
}

#[actix_web::test]
async fn a_bad_credential_is_refused_everywhere_that_one_is_needed() {
    let server = Server::new();
    let key = server.key(&all()).await;
    let (good, cookie) = (server.bearer_of(&key).await, server.session().await);
    let cut = &good[..good.len() - 2];
    for operation in OPERATIONS.iter().filter(|operation| operation.need().is_some()) {
        for bad in ["Bearer nonsense", "Bearer", "Basic dXNlcg==", "", cut] {
            assert_eq!(try_out(&server, operation, &[(BEARER, bad)]).await, "unauthenticated", "{} {bad}", operation.id);
            // If the header is present, it is the credential, regardless of the cookie.
            assert_eq!(
                try_out(&server, operation, &[(BEARER, bad), (COOKIE, &cookie)]).await,
                "unauthenticated",
                "{}",
                operation.id
            );
        }
        assert_eq!(try_out(&server, operation, &[(BEARER, &good), (BEARER, &good)]).await, "unauthenticated", "{}", operation.id);
        assert_eq!(try_out(&server, operation, &[(COOKIE, "session=nonsense")]).await, "unauthenticated", "{}", operation.id);
    }
}

#[actix_web::test]
async fn a_refusal_for_want_of_a_credential_says_which_kind_is_taken() {
    let server = Server::new();
    let nothing = server.send(Method::GET, "/api/customers/filter", &[], None).await;
    assert_eq!((nothing.problem(), nothing.header("www-authenticate")), ((401, "unauthenticated".to_owned()), Some("Bearer")));
    let bad = server.get("/api/customers/filter", (BEARER, "Bearer x")).await;
    assert_eq!(bad.header("www-authenticate"), Some(r#"Bearer error="invalid_token""#));
    let reader = server.bearer(&["read"]).await;
    let short = server.post("/api/usage/event", (BEARER, &reader), "{}").await;
    assert_eq!(short.problem(), (403, "insufficient_scope".to_owned()));
    assert_eq!(short.header("www-authenticate"), Some(r#"Bearer error="insufficient_scope", scope="usage:write""#));
}

#[actix_web::test]
async fn tokens_end_with_time_with_log_out_and_with_their_key() {
    let server = Server::new();
    let key = server.key(&all()).await;
    let list = "/api/customers/filter";

    let expiring = server.bearer_of(&key).await;
    assert_eq!(server.get(list, (BEARER, &expiring)).await.status, 200);
    server.clock.advance(3600 + 31);
    assert_eq!(server.get(list, (BEARER, &expiring)).await.problem().0, 401);

    let (ended, kept) = (server.bearer_of(&key).await, server.bearer_of(&key).await);
    assert_eq!(server.send(Method::POST, "/auth/logout", &[(BEARER, &ended)], None).await.status, 204);
    assert_eq!(server.get(list, (BEARER, &ended)).await.problem().0, 401);
    assert_eq!(server.get(list, (BEARER, &kept)).await.status, 200);

    let session = server.session().await;
    let record = format!("/auth/user/{}", key["api_key_ref"].as_str().expect("a reference"));
    assert_eq!(server.send(Method::DELETE, &record, &[(COOKIE, &session)], None).await.status, 204);
    assert_eq!(server.get(list, (BEARER, &kept)).await.problem().0, 401);
    let again = server.send(Method::DELETE, &record, &[(COOKIE, &session)], None).await;
    assert_eq!(again.problem(), (404, "api_key_not_found".to_owned()));
}

/// Returns the `Authorization` header of a key with its password, or with another one.
fn basic_of(key: &Value, password: &str) -> String {
    let text = |name: &str| key[name].as_str().expect("text").to_owned();
    format!("Basic {}", STANDARD.encode(format!("{}:{password}", text("api_key"))))
}

#[actix_web::test]
async fn a_key_with_its_password_is_taken_wherever_a_token_is() {
    let server = Server::new();
    let cookie = server.session().await;
    for scopes in [all(), vec!["read"]] {
        let key = server.key(&scopes).await;
        let basic = basic_of(&key, key["password"].as_str().expect("a password"));
        let bearer = server.bearer_of(&key).await;
        for operation in OPERATIONS.iter().filter(|operation| operation.need().is_some()) {
            let by_token = try_out(&server, operation, &[(BEARER, &bearer), (COOKIE, &cookie)]).await;
            let by_key = try_out(&server, operation, &[(BEARER, &basic), (COOKIE, &cookie)]).await;
            assert_eq!(by_key, by_token, "{} with {scopes:?}", operation.id);
        }
    }
}

#[actix_web::test]
async fn a_key_with_its_password_ends_with_the_key_and_a_wrong_one_is_counted_as_a_log_in() {
    let server = Server::new().another(|settings| settings.log_in.attempts_per_address_per_minute = 5);
    let list = "/api/customers/filter";
    let key = server.key(&all()).await;
    let basic = basic_of(&key, key["password"].as_str().expect("a password"));
    for _ in 0..10 {
        assert_eq!(server.get(list, (BEARER, &basic)).await.status, 200);
    }
    let wrong = server.get(list, (BEARER, &basic_of(&key, "wrong"))).await;
    assert_eq!((wrong.problem(), wrong.header("www-authenticate")), ((401, "invalid_credentials".to_owned()), Some("Bearer")));
    let mut refused = Vec::new();
    for _ in 0..10 {
        refused.push(server.get(list, (BEARER, &basic_of(&key, "wrong"))).await.problem().0);
    }
    assert!(refused.contains(&429), "{refused:?}");
    assert_eq!(server.get(list, (BEARER, &basic)).await.status, 200, "the server remembers the right one");

    let foreign = [(BEARER, basic.as_str()), ("sec-fetch-site", "cross-site")];
    let foreign = server.send(Method::POST, "/api/customers/", &foreign, Some(r#"{"customer_ref":"a","name":"A"}"#)).await;
    assert_eq!(foreign.problem(), (403, "cross_site_request".to_owned()));

    let record = format!("/auth/user/{}", key["api_key_ref"].as_str().expect("a reference"));
    let session = server.another(|_| {}).session().await;
    assert_eq!(server.send(Method::DELETE, &record, &[(COOKIE, &session)], None).await.status, 204);
    assert_eq!(server.get(list, (BEARER, &basic)).await.problem().0, 401);
    let event = r#"{"timestamp":"2026-01-10T00:00:00Z","customer_ref":"nobody","usage_product_ref":"none","quantity":1}"#;
    assert_eq!(server.post("/api/usage/event", (BEARER, &basic), event).await.problem().0, 401);
}

#[actix_web::test]
async fn a_missing_scope_is_reported_before_all_other_problems_of_a_request() {
    let server = Server::new();
    let key = server.key(&all()).await;
    let (good, ended, reads) = (server.bearer_of(&key).await, server.bearer_of(&key).await, server.bearer(&["read"]).await);
    assert_eq!(server.send(Method::POST, "/auth/logout", &[(BEARER, &ended)], None).await.status, 204);
    let event = r#"{"timestamp":"2026-01-10T00:00:00Z","customer_ref":"nobody","usage_product_ref":"none","quantity":1}"#;
    let requests = [
        ("/api/usage/event", "{", "k", 400),
        ("/api/usage/event", "[]", "k", 422),
        ("/api/usage/event", r#"{"quantity":-1}"#, "k", 422),
        ("/api/usage/event?atomic=true", event, "k", 422),
        ("/api/usage/event", event, "", 400),
        ("/api/usage/event", event, "k", 422),
    ];
    for (path, body, idempotency_key, status) in requests {
        for (token, expected) in [(&good, status), (&ended, 401), (&reads, 403)] {
            let headers = [(BEARER, token.as_str()), ("idempotency-key", idempotency_key)];
            let reply = server.send(Method::POST, path, &headers, Some(body)).await;
            assert_eq!(reply.problem().0, expected, "{path} {body} {idempotency_key:?}: {}", reply.text);
        }
    }
}

#[actix_web::test]
async fn an_event_that_nobody_has_room_for_is_turned_away_at_once() {
    let server = Server::new();
    let bearer = server.bearer(&all()).await;
    server.state.finish();
    let event = r#"{"timestamp":"2026-01-10T00:00:00Z","customer_ref":"nobody","usage_product_ref":"none","quantity":1}"#;
    let reply = server.post("/api/usage/event", (BEARER, &bearer), event).await;
    assert_eq!(reply.problem(), (503, "overloaded".to_owned()));
    assert!(reply.header("retry-after").is_some());
}

#[actix_web::test]
async fn a_session_is_a_strict_cookie_and_a_row_that_ends() {
    let server = Server::new();
    let answered = server.log_in(&json!({"email": EMAIL.to_uppercase(), "password": PASSWORD})).await;
    assert_eq!(answered.json()["email"], EMAIL);
    assert_eq!(answered.json()["expires_at"], "2026-01-20T20:00:00Z");
    let cookie = answered.header("set-cookie").expect("a cookie");
    for attribute in ["session=", "; HttpOnly", "; SameSite=Lax", "; Path=/", "; Max-Age=28800"] {
        assert!(cookie.contains(attribute), "{attribute}: {cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");

    let list = "/auth/keys/list";
    let session = answered.cookie();
    assert_eq!(server.get(list, (COOKIE, &session)).await.status, 200);
    server.clock.advance(29 * 60);
    assert_eq!(server.get(list, (COOKIE, &session)).await.status, 200, "used within the idle time");
    server.clock.advance(31 * 60);
    assert_eq!(server.get(list, (COOKIE, &session)).await.problem().0, 401, "idle for too long");

    let session = server.session().await;
    let out = server.send(Method::POST, "/auth/logout", &[(COOKIE, &session)], None).await;
    assert_eq!(out.status, 204);
    assert!(out.header("set-cookie").is_some_and(|cookie| cookie.contains("Max-Age=0")), "{out:?}");
    assert_eq!(server.get(list, (COOKIE, &session)).await.problem().0, 401, "logged out");
}

#[actix_web::test]
async fn with_https_the_cookie_is_bound_to_the_host_and_the_browser_to_https() {
    let server = Server::with("https://billing.test", |_| {});
    let answered = server.log_in(&json!({"email": EMAIL, "password": PASSWORD})).await;
    let cookie = answered.header("set-cookie").expect("a cookie");
    assert!(cookie.starts_with("__Host-session=") && cookie.contains("; Secure"), "{cookie}");
    assert!(answered.header("strict-transport-security").is_some());
    assert_eq!(server.get("/auth/keys/list", (COOKIE, &answered.cookie())).await.status, 200);
}

#[actix_web::test]
async fn logging_in_again_makes_a_new_session_and_ends_the_one_before() {
    let server = Server::new();
    let first = server.session().await;
    let body = json!({"email": EMAIL, "password": PASSWORD}).to_string();
    let second = server.post("/auth/login", (COOKIE, &first), &body).await.cookie();
    assert_ne!(first, second);
    assert_eq!(server.get("/auth/keys/list", (COOKIE, &first)).await.problem().0, 401);
    assert_eq!(server.get("/auth/keys/list", (COOKIE, &second)).await.status, 200);
}

#[actix_web::test]
async fn logging_out_is_always_fine() {
    let server = Server::new();
    for headers in [vec![], vec![(BEARER, "Bearer nonsense")], vec![(BEARER, "nonsense")], vec![(COOKIE, "session=nonsense")]] {
        assert_eq!(server.send(Method::POST, "/auth/logout", &headers, None).await.status, 204, "{headers:?}");
    }
}

#[actix_web::test]
async fn a_foreign_page_cannot_use_the_cookie_to_change_anything() {
    let server = Server::new();
    let (cookie, bearer) = (server.session().await, server.bearer(&all()).await);
    for (name, value, own) in [
        ("origin", "http://billing.test", true),
        ("origin", "http://localhost:8080", true),
        ("origin", "http://evil.test", false),
        ("origin", "https://billing.test.evil.test", false),
        ("origin", "null", false),
        ("origin", "http://", false),
        ("sec-fetch-site", "same-origin", true),
        ("sec-fetch-site", "none", true),
        ("sec-fetch-site", "same-site", false),
        ("sec-fetch-site", "cross-site", false),
    ] {
        let expected = if own { "let in" } else { "cross_site_request" };
        for operation in
            OPERATIONS.iter().filter(|operation| operation.changes_state() && !operation.path.starts_with("/auth/log"))
        {
            let headers = [(COOKIE, cookie.as_str()), ("host", "localhost:8080"), (name, value)];
            assert_eq!(try_out(&server, operation, &headers).await, expected, "{} {name} {value}", operation.id);
        }
        assert_eq!(server.send(Method::GET, "/api/customers/names", &[(COOKIE, &cookie), (name, value)], None).await.status, 200);
        let by_bearer = server.send(Method::POST, "/api/billing/run", &[(BEARER, &bearer), (name, value)], None).await;
        assert_eq!(by_bearer.status, 200, "only the owner of a bearer token sends it");
    }
    let out = server.send(Method::POST, "/auth/logout", &[(COOKIE, &cookie), ("origin", "http://evil.test")], None).await;
    assert_eq!(out.problem(), (403, "cross_site_request".to_owned()));
    assert_eq!(server.get("/auth/keys/list", (COOKIE, &cookie)).await.status, 200);
}

#[actix_web::test]
async fn unknown_and_wrong_are_refused_alike() {
    let server = Server::new();
    let key = server.key(&all()).await;
    let refused = [
        json!({"email": EMAIL, "password": "not the password"}),
        json!({"email": "nobody@example.com", "password": PASSWORD}),
        json!({"api_key": key["api_key"], "password": "not the password"}),
        json!({"username": key["api_key"], "password": PASSWORD}),
        json!({"api_key": "AAAAAAAAAAAAAAAAAAAA", "password": key["password"]}),
    ];
    let mut seen = Vec::new();
    for body in refused {
        let reply = server.log_in(&body).await;
        assert_eq!(reply.problem(), (401, "invalid_credentials".to_owned()), "{body}");
        let mut problem = reply.json();
        problem["request_id"] = "".into();
        let mut headers: Vec<String> = reply.headers.iter().map(|(name, value)| format!("{name}: {value:?}")).collect();
        headers.retain(|header| !header.starts_with("x-request-id"));
        headers.sort();
        seen.push((problem, headers));
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?}");
}

#[actix_web::test]
async fn a_principal_that_is_guessed_at_is_slowed_down_and_not_locked_out() {
    let server =
        Server::with("http://billing.test", |settings| settings.log_in.slow_interval = std::time::Duration::from_millis(300));
    let wrong = json!({"email": EMAIL, "password": "not the password"});
    for _ in 0..10 {
        assert_eq!(server.log_in(&wrong).await.problem().0, 401);
    }
    assert_eq!(server.log_in(&wrong).await.problem().0, 401, "the first slowed attempt");
    let slowed = server.log_in(&wrong).await;
    assert_eq!((slowed.problem(), slowed.header("retry-after")), ((429, "too_many_log_ins".to_owned()), Some("1")));
    actix_web::rt::time::sleep(std::time::Duration::from_millis(350)).await;
    assert_eq!(server.log_in(&json!({"email": EMAIL, "password": PASSWORD})).await.status, 200);
}

#[actix_web::test]
async fn an_address_that_tries_too_often_has_to_wait_for_any_account() {
    let server = Server::with("http://billing.test", |settings| settings.log_in.attempts_per_address_per_minute = 2);
    let right = json!({"email": EMAIL, "password": PASSWORD});
    assert_eq!(server.log_in(&right).await.status, 200);
    assert_eq!(server.log_in(&right).await.status, 200);
    let refused = server.log_in(&right).await;
    assert_eq!(refused.problem(), (429, "too_many_log_ins".to_owned()));
    assert_eq!(refused.header("cache-control"), Some("no-store"));
}

#[actix_web::test]
async fn answers_with_secrets_are_not_to_be_kept() {
    let server = Server::new();
    let session = server.session().await;
    let generated = server.send(Method::POST, "/auth/keys/generate", &[(COOKIE, &session)], None).await;
    assert_eq!((generated.status.as_u16(), generated.header("cache-control")), (200, Some("no-store")));
    let listed = server.get("/auth/keys/list", (COOKIE, &session)).await;
    assert_eq!((listed.status.as_u16(), listed.header("cache-control")), (200, Some("no-store")));
    assert!(!listed.text.contains("password"), "{}", listed.text);
    assert_eq!(listed.header("x-total-count"), Some("1"));
    assert!(listed.header("link").is_some_and(|link| link.contains("pageSize=1000")), "{listed:?}");
}

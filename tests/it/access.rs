//! Credentials: where each kind is accepted, which permissions it has, and when it expires.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use acceptance::clock::Clock;
use acceptance::cluster::wait_until;
use acceptance::problem::{Table, refused};
use acceptance::{Client, Database, Key, Request, Server, binary, catalog, on_sqlite, when};
use serde_json::{Value, json};

on_sqlite!(
    every_operation_needs_a_credential_but_those_that_give_one_or_say_how_the_server_is,
    a_token_that_is_not_ours_is_refused,
    what_signs_tokens_is_rotated_while_servers_run,
    a_deleted_keys_token_is_refused_at_once_also_by_another_server,
    an_expired_key_works_no_more,
    a_log_out_ends_the_session_or_the_token,
    a_key_does_what_its_scopes_say_and_no_more,
);

const PUBLIC: [&str; 6] = ["/auth/login", "/auth/logout", "/health/live", "/health/ready", "/metrics", "/openapi.json"];
const UNKNOWN: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";

fn operations(client: &Client) -> Vec<(String, String)> {
    let document = client.get("/openapi.json").ok();
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, methods): (&String, &Value)| {
        let path = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN } else { part }).collect::<Vec<_>>().join("/");
        let methods = methods
            .as_object()
            .expect("methods")
            .keys()
            .filter(|key| ["get", "post", "put", "delete", "patch"].contains(&key.as_str()));
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

fn every_operation_needs_a_credential_but_those_that_give_one_or_say_how_the_server_is(database: &Database) {
    let server = Server::start(database);
    let anonymous = Client::anonymous(&server);
    let mut table = Table::default();
    for (method, path) in operations(&anonymous) {
        if PUBLIC.contains(&path.as_str()) {
            continue;
        }
        let request = Request { method: &method, ..Request::post(&path, "{}") };
        let request = if method == "POST" { request } else { Request { method: &method, ..Request::get(&path) } };
        for (name, value) in [
            ("X-Nothing", ""),
            ("Authorization", "Bearer "),
            ("Authorization", "Basic YQ=="),
            ("Cookie", "session=x"),
            ("Cookie", "session="),
        ] {
            table.row(
                &anonymous,
                &format!("{name}: {value}"),
                &request.clone().with(name, value),
                refused(401, "unauthenticated"),
            );
        }
    }
    table.finish();
    assert!(anonymous.get("/api/customers/filter").header("WWW-Authenticate").starts_with("Bearer"));
}

fn a_token_that_is_not_ours_is_refused(database: &Database) {
    // A server with another secret on the same database.
    let other = Server::start_with(database, &["--jwt-secrets", &"second secret ".repeat(4)]);
    let foreign = Client::new_key(&other).header("Authorization").trim_start_matches("Bearer ").to_owned();
    drop(other);
    let server = Server::start_with(database, &["--jwt-secrets", &"first secret ".repeat(4)]);
    let client = Client::new_key(&server);
    let token = client.header("Authorization").trim_start_matches("Bearer ").to_owned();
    let parts: Vec<&str> = token.split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("a JWT has three parts: {token}") };
    // {"alg":"none","typ":"JWT"}, the same with "NONE", and {"alg":"HS384","typ":"JWT"}.
    let (none, big_none, hs384) =
        ("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0", "eyJhbGciOiJOT05FIiwidHlwIjoiSldUIn0", "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9");
    let changed = |text: &str| {
        let first = if text.starts_with('A') { 'B' } else { 'A' };
        format!("{first}{}", &text[1..])
    };
    let bad = [
        foreign,
        "garbage".to_owned(),
        "..".to_owned(),
        format!("{header}.{claims}"),
        format!("{header}.{claims}."),
        format!("{none}.{claims}."),
        format!("{none}.{claims}.{signature}"),
        format!("{big_none}.{claims}."),
        format!("{hs384}.{claims}.{signature}"),
        format!("{header}.{}.{signature}", changed(claims)),
        format!("{header}.{claims}.{}", changed(signature)),
        format!("{token}.{signature}"),
        "x".repeat(10_000),
    ];
    let mut table = Table::default();
    for token in bad {
        let bearer = format!("Bearer {token}");
        table.row(
            &client,
            &bearer,
            &Request::get("/api/customers/filter").with("Authorization", &bearer),
            refused(401, "unauthenticated"),
        );
    }
    table.finish();
    assert_eq!(client.get("/api/customers/filter").status, 200, "the valid token is accepted");
    drop(server);
    let both = format!("{},{}", "newer secret ".repeat(4), "first secret ".repeat(4));
    let rotated = Server::start_with(database, &["--jwt-secrets", &both]);
    assert_eq!(client.at(&rotated).get("/api/customers/filter").status, 200, "the token works while its secret is active");
}

fn what_signs_tokens_is_rotated_while_servers_run(database: &Database) {
    let rotate = |more: &[&str]| binary::succeed(database, &[&["secret", "rotate", "--for", "tokens"], more].concat());
    let listed = || {
        let listed = binary::succeed(database, &["secret", "list"]);
        listed.lines().map(|line| line[..8].to_owned()).collect::<Vec<_>>()
    };
    let server = Server::start(database);
    let key = Client::admin(&server).generate_key(&json!({}));
    // The head of a token names the secret. Nothing else in it differs between tokens.
    let signing = |server: &Server| {
        let log_in = json!({"api_key": key.api_key, "password": key.password});
        let token = Client::anonymous(server).post("/auth/login", &log_in).ok();
        token.as_str().and_then(|token| token.split('.').next()).expect("a token").to_owned()
    };
    let lets = |client: &Client, server: &Server| client.at(server).get("/api/customers/filter").status == 200;
    let (client, first) = (Client::key(&server, &key), signing(&server));
    assert_eq!(listed(), ["bearer-1", "cookie-1"]);

    assert!(rotate(&[]).starts_with("Created bearer-2, which signs bearer tokens."));

    assert_eq!(
        (listed().join(" "), signing(&server)),
        ("bearer-1 bearer-2 cookie-1".to_owned(), first.clone()),
        "not every server knows the secret yet"
    );
    drop(server);
    let later = Clock::at(&when::in_seconds(180));
    let server = Server::start_on(database, &later);
    assert!(lets(&client, &server), "tokens of the previous secret still work");
    let (client, second) = (Client::key(&server, &key), signing(&server));
    assert!(second != first && lets(&client, &server));

    rotate(&["--end-present"]);

    assert_eq!(listed(), ["bearer-3", "cookie-1"]);
    wait_until("tokens of ended secrets stop working", || !lets(&client, &server));
    let client = Client::key(&server, &key);
    assert!(![first, second].contains(&signing(&server)) && lets(&client, &server));

    let admin = Client::admin(&server);
    let stated = binary::succeed(database, &["secret", "rotate", "--for", "cookies"]);
    assert!(stated.contains("Created cookie-2") && stated.contains("Restart all servers"), "{stated}");
    assert_eq!(admin.get("/auth/keys/list").status, 200);
    drop(server);
    let server = Server::start_on(database, &later);
    assert_eq!((admin.at(&server).get("/auth/keys/list").status, lets(&client, &server)), (401, true));
}

fn a_deleted_keys_token_is_refused_at_once_also_by_another_server(database: &Database) {
    // Only one server can use a SQLite file.
    let servers: Vec<Server> = (0..if database.is_sqlite() { 1 } else { 2 }).map(|_| Server::start(database)).collect();
    let admin = Client::admin(&servers[0]);
    let key = admin.generate_key(&json!({"name": "to be deleted"}));
    let client = Client::key(&servers[0], &key);
    for server in &servers {
        assert_eq!(client.at(server).get("/api/customers/filter").status, 200);
    }
    let path = format!("/auth/user/{}", key.api_key_ref);

    assert_eq!(admin.delete(&path).status, 204);

    let mut table = Table::default();
    for server in &servers {
        table.get(&client.at(server), "/api/customers/filter", refused(401, "unauthenticated"));
        let log_in = json!({"api_key": key.api_key, "password": key.password});
        table.post(&Client::anonymous(server), "/auth/login", &log_in, refused(401, "invalid_credentials"));
    }
    table.row(&admin, "again", &Request { method: "DELETE", ..Request::get(&path) }, refused(404, "api_key_not_found"));
    table.finish();
    assert_eq!(admin.get("/auth/keys/list").ok(), json!([]));
}

fn an_expired_key_works_no_more(database: &Database) {
    let server = Server::start(database);
    let key = Client::admin(&server).generate_key(&json!({"expires_at": when::in_seconds(4)}));
    let client = Client::key(&server, &key);
    assert_eq!(client.get("/api/customers/filter").status, 200);
    std::thread::sleep(Duration::from_secs(5));
    let mut table = Table::default();
    table.get(&client, "/api/customers/filter", refused(401, "unauthenticated"));
    let log_in = json!({"api_key": key.api_key, "password": key.password});
    table.post(&Client::anonymous(&server), "/auth/login", &log_in, refused(401, "invalid_credentials"));
    table.finish();
}

fn a_log_out_ends_the_session_or_the_token(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let (client, second) = (Client::key(&server, &key), Client::key(&server, &key));
    let path = "/api/customers/filter";
    for caller in [&client, &admin] {
        assert_eq!(caller.get(path).status, 200);
        assert_eq!(caller.post_nothing("/auth/logout").status, 204);
        let mut table = Table::default();
        table.get(caller, path, refused(401, "unauthenticated"));
        table.finish();
        assert_eq!(caller.post_nothing("/auth/logout").status, 204, "a log-out always returns 204");
    }
    assert_eq!(Client::anonymous(&server).post_nothing("/auth/logout").status, 204, "a log-out always returns 204");
    assert_eq!(second.get(path).status, 200, "another token of the same key still works");
    assert_eq!(Client::admin(&server).get(path).status, 200, "a new session works");
}

fn a_key_does_what_its_scopes_say_and_no_more(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    catalog::make(&admin);
    catalog::make_contract(&admin, &catalog::contract("acme"));
    let posts = [
        ("usage:write", "/api/usage/event", catalog::event("acme", 1)),
        ("contracts:write", "/api/contracts/", catalog::contract("acme")),
        ("catalog:write", "/api/customers/", json!({"name": "New"})),
        ("catalog:write", "/api/customers/edit/acme", json!({"name": "New"})),
        ("catalog:write", "/api/usage/products/", json!({"name": "New"})),
        (
            "usage:write",
            "/api/usage/event/formatted",
            json!({"format_name": "Default Format", "event": catalog::event("acme", 1)}),
        ),
        ("read", "/api/usage/formats/test", json!({"format_name": "Default Format", "event": catalog::event("acme", 1)})),
        ("read", "/api/pricings/rates", json!({"name": "New", "currency": "EUR", "line_items": [], "quantities": [1]})),
        ("documents:write", "/api/billing/run", json!({"dry_run": true})),
    ];
    let mut table = Table::default();
    for scope in ["read", "usage:write", "contracts:write", "catalog:write", "documents:write"] {
        let client = Client::key(&server, &admin.generate_key(&json!({"scopes": [scope], "name": scope})));
        for (needed, path, body) in &posts {
            if *needed == scope {
                assert_eq!(client.post(path, body).status, 200, "{scope}: {path}");
            } else {
                table.post(&client, path, body, refused(403, "insufficient_scope"));
            }
        }
        if scope == "read" {
            assert_eq!(client.get("/api/documents/filter").status, 200);
        } else {
            table.get(&client, "/api/documents/filter", refused(403, "insufficient_scope"));
        }
    }
    table.finish();
}

#[test]
fn keys_are_managed_by_an_administrators_session_alone() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let client = Client::key(&server, &key);
    let mut table = Table::default();
    let own = format!("/auth/user/{}", key.api_key_ref);
    let required = refused(403, "admin_session_required");
    table.post(&client, "/auth/keys/generate", &json!({}), required);
    table.get(&client, "/auth/keys/list", required);
    table.row(&client, "", &Request { method: "DELETE", ..Request::get(&own) }, required);
    table.finish();
    assert_eq!(catalog::only(admin.get("/auth/keys/list").ok())["api_key_ref"], *key.api_key_ref);
}

#[test]
fn a_cookie_is_not_taken_from_foreign_pages() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    let mut table = Table::default();
    for (name, value) in [
        ("Origin", "https://evil.example"),
        ("Origin", "null"),
        ("Origin", "http://127.0.0.1:1"),
        ("Sec-Fetch-Site", "cross-site"),
        ("Sec-Fetch-Site", "same-site"),
    ] {
        let request = Request::post("/auth/keys/generate", "{}").with(name, value);
        table.row(&admin, &format!("{name}: {value}"), &request, refused(403, "cross_site_request"));
        let request = Request::post("/api/customers/", r#"{"name": "Evil"}"#).with(name, value);
        table.row(&admin, &format!("{name}: {value}"), &request, refused(403, "cross_site_request"));
    }
    table.finish();
    assert_eq!(admin.get("/auth/keys/list").ok(), json!([]));
    assert_eq!(admin.get("/api/customers/filter").ok(), json!([]));
    let own = admin.with_header("Origin", server.base_url()).with_header("Sec-Fetch-Site", "same-origin");
    assert_eq!(own.post("/auth/keys/generate", &json!({})).status, 200);
    let client = Client::new_key(&server).with_header("Origin", "https://customer.example");
    assert_eq!(client.post("/api/customers/", &json!({"name": "New"})).status, 200, "a bearer token is not a cookie");
}

#[test]
fn a_session_cookie_is_hidden_from_scripts_and_secure_with_https() {
    let database = Database::sqlite();
    let log_in = json!({"email": acceptance::server::ADMIN_EMAIL, "password": acceptance::server::ADMIN_PASSWORD});
    let server = Server::start(&database);
    let answer = Client::anonymous(&server).post("/auth/login", &log_in);
    let cookie = answer.header("Set-Cookie").to_owned();
    for attribute in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.split("; ").any(|part| part == attribute), "{attribute} isn't in {cookie}");
    }
    assert!(!cookie.contains("Secure"), "{cookie}");
    assert!(answer.header("Cache-Control").contains("no-store"));
    let body = answer.clone().ok();
    assert_eq!(body["email"], acceptance::server::ADMIN_EMAIL);
    assert!(body["admin_ref"].is_string() && body["expires_at"].is_string(), "{body}");
    let again = Client::anonymous(&server).post("/auth/login", &log_in);
    assert_ne!(again.header("Set-Cookie"), cookie, "each log-in creates a session");

    drop(server);
    let server = Server::start_with(&database, &["--public-url", "https://billing.example.com"]);
    let answer = Client::anonymous(&server).post("/auth/login", &log_in);
    let cookie = answer.header("Set-Cookie");
    assert!(cookie.starts_with("__Host-session=") && cookie.split("; ").any(|part| part == "Secure"), "{cookie}");
}

#[test]
fn a_key_is_shown_once_and_listed_without_its_password() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let admin = Client::admin(&server);
    let answer = admin.post("/auth/keys/generate", &json!({"name": "first"}));
    assert!(answer.header("Cache-Control").contains("no-store"));
    let (api_key, password) = (answer.text_of("api_key"), answer.text_of("password"));
    assert!(api_key.len() == 20 && api_key.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit()), "{api_key}");
    assert!(password.len() == 43, "32 bytes as base64url: {password}");
    assert_eq!(admin.post_nothing("/auth/keys/generate").status, 200, "without a body");

    let list = admin.get("/auth/keys/list");
    assert!(!list.text.contains(&password) && !list.text.contains("password"), "{}", list.text);
    let first = list.body[0].clone();
    assert_eq!((first["api_key"].as_str(), first["name"].as_str()), (Some(&*api_key), Some("first")));
    assert_eq!(first["last_used_at"], Value::Null);
    let all = json!(["usage:write", "contracts:write", "catalog:write", "documents:write", "read"]);
    let sorted = |scopes: &Value| {
        let mut scopes: Vec<String> = scopes.as_array().expect("scopes").iter().map(Value::to_string).collect();
        scopes.sort();
        scopes
    };
    assert_eq!(sorted(&first["scopes"]), sorted(&all));

    let by_username = json!({"username": api_key, "password": password});
    let token = Client::anonymous(&server).post("/auth/login", &by_username);
    assert!(token.header("Cache-Control").contains("no-store"));
    assert!(token.ok().is_string(), "the schema of the specification calls it username");
    let key = Key { api_key_ref: String::new(), api_key, password };
    Client::key(&server, &key);
    assert!(admin.get("/auth/keys/list").ok()[0]["last_used_at"].is_string());
}

#[test]
fn no_secret_is_in_the_log_at_its_most_talkative_nor_in_the_database_file() {
    let database = Database::sqlite();
    let environment = [("USAGE_BILLING_ADMIN_PASSWORD", acceptance::server::ADMIN_PASSWORD), ("RUST_LOG", "trace")];
    let server = Server::start_in(&database, &[], &environment);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({}));
    let client = Client::key(&server, &key);
    let wrong = "a password that is wrong";
    Client::anonymous(&server).post("/auth/login", &json!({"email": "admin@example.com", "password": wrong}));
    Client::anonymous(&server).post("/auth/login", &json!({"api_key": key.api_key, "password": wrong, "email": "x"}));
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract("acme"));
    client.post("/api/usage/event", &catalog::event("acme", 1)).ok();
    client.with_header("Authorization", &format!("{}x", client.header("Authorization"))).get("/api/customers/filter");
    let token = client.header("Authorization").trim_start_matches("Bearer ").to_owned();
    let cookie = admin.header("Cookie").trim_start_matches("session=").to_owned();
    assert_eq!((admin.post_nothing("/auth/logout").status, client.post_nothing("/auth/logout").status), (204, 204));

    let log = server.stderr();
    assert!(log.contains("TRACE") && log.contains("/api/usage/event"), "the log contains traces");
    let path = database.url().trim_start_matches("sqlite://");
    let files = [path.to_owned(), format!("{path}-wal")].map(|file| std::fs::read(file).unwrap_or_default());
    let secrets = [acceptance::server::ADMIN_PASSWORD, &key.password, wrong, &token, &cookie];
    for (index, secret) in secrets.iter().enumerate() {
        assert!(secret.len() > 20 && !log.contains(secret), "secret {index} is in the log");
        let found = files.iter().any(|file| file.windows(secret.len()).any(|window| window == secret.as_bytes()));
        assert!(!found, "secret {index} is in the database file");
    }
}

/// Returns a client behind a trusted proxy that sends requests of an address.
fn behind_proxy(server: &Server, address: &str) -> Client {
    Client::anonymous(server).with_header("X-Forwarded-For", &format!("{address}:4711"))
}

#[test]
fn failures_from_elsewhere_do_not_slow_down_an_address_that_logged_in_before() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--login-failures", "3", "--trusted-proxies", "127.0.0.1"]);
    let right = json!({"email": acceptance::server::ADMIN_EMAIL, "password": acceptance::server::ADMIN_PASSWORD});
    let wrong = json!({"email": acceptance::server::ADMIN_EMAIL, "password": "not the password"});
    let home = behind_proxy(&server, "192.0.2.1");
    assert_eq!(home.post("/auth/login", &right).status, 200);
    for last in 1..=3 {
        assert_eq!(behind_proxy(&server, &format!("198.51.100.{last}")).post("/auth/login", &wrong).status, 401);
    }
    let elsewhere = behind_proxy(&server, "198.51.100.9");
    let statuses: Vec<u16> = (0..4).map(|_| elsewhere.post("/auth/login", &wrong).status).collect();
    assert!(statuses[0] == 401 && statuses.contains(&429), "an unknown address is slowed down: {statuses:?}");
    for _ in 0..5 {
        assert_eq!(home.post("/auth/login", &right).status, 200);
    }
    // The standard header names the same address.
    let standard = Client::anonymous(&server).with_header("Forwarded", "for=\"192.0.2.1:99\";proto=https");
    assert_eq!(standard.post("/auth/login", &right).status, 200);
}

#[test]
fn the_owner_gets_in_from_a_known_address_during_a_flood_of_wrong_log_ins() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--trusted-proxies", "127.0.0.1"]);
    let right = json!({"email": acceptance::server::ADMIN_EMAIL, "password": acceptance::server::ADMIN_PASSWORD});
    let wrong = json!({"email": acceptance::server::ADMIN_EMAIL, "password": "not the password"});
    assert_eq!(behind_proxy(&server, "192.0.2.1").post("/auth/login", &right).status, 200);
    // The address is known to every server of the database, also after a restart.
    drop(server);
    let server = Server::start_with(&database, &["--trusted-proxies", "127.0.0.1"]);
    let home = behind_proxy(&server, "192.0.2.1");
    let (is_over, full) = (AtomicBool::new(false), AtomicU32::new(0));
    // More than the queue for strangers holds: one running hash for two cores, and 32 waiting ones.
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get) / 2 + 48;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (server, wrong, is_over, full) = (&server, &wrong, &is_over, &full);
            scope.spawn(move || {
                let stranger = Client::anonymous(server);
                for n in 0_u32.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let address = format!("10.{}.{}.{}", thread % 256, n / 256 % 256, n % 256);
                    if stranger.with_header("X-Forwarded-For", &address).post("/auth/login", wrong).status == 503 {
                        full.fetch_add(1, Ordering::Relaxed);
                        std::thread::sleep(Duration::from_millis(500));
                    }
                }
            });
        }
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            wait_until("the queue for strangers is full", || full.load(Ordering::Relaxed) > 10);
            for _ in 0..3 {
                let began = Instant::now();
                assert_eq!(home.post("/auth/login", &right).status, 200);
                assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
            }
        }));
        // The threads end also if the owner did not get in.
        is_over.store(true, Ordering::Relaxed);
        if let Err(panic) = outcome {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn the_log_line_of_a_failed_log_in_names_the_account_if_it_exists() {
    let database = Database::sqlite();
    let server = Server::start(&database);
    let key = Client::admin(&server).generate_key(&json!({}));
    let anonymous = Client::anonymous(&server);
    for failing in [
        json!({"email": acceptance::server::ADMIN_EMAIL, "password": "not the password"}),
        json!({"api_key": key.api_key, "password": "not the password"}),
        json!({"email": "somebody.private@example.com", "password": "not the password"}),
    ] {
        assert_eq!(anonymous.post("/auth/login", &failing).status, 401);
    }
    let lines = || server.stderr().lines().filter(|line| line.contains("a log-in failed")).map(str::to_owned).collect::<Vec<_>>();
    wait_until("each failed log-in has a line", || lines().len() == 3);
    let lines = lines();
    for account in ["admin:", &format!("api_key:{}", key.api_key_ref), "unknown"] {
        assert_eq!(lines.iter().filter(|line| line.contains(account)).count(), 1, "{account}: {lines:?}");
    }
    assert!(lines.iter().all(|line| line.contains("127.0.0.1") && line.contains("invalid_credentials")), "{lines:?}");
    assert!(!server.stderr().contains("somebody.private"));
}

#[test]
fn a_proxy_that_is_not_listed_is_reported_once() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--logins-per-minute", "2"]);
    let forwarded = behind_proxy(&server, "192.0.2.1");
    let unknown = |i: usize| json!({"api_key": format!("NOBODY{i}"), "password": "wrong"});
    let statuses: Vec<u16> = (0..6).map(|i| forwarded.post("/auth/login", &unknown(i)).status).collect();
    assert!(statuses[2..].iter().filter(|status| **status == 429).count() >= 2, "{statuses:?}");
    let reports = || server.stderr().matches("--trusted-proxies").count();
    wait_until("the proxy is reported", || reports() > 0);
    assert_eq!(reports(), 1, "{}", server.stderr());
}

#[test]
fn guessing_is_slowed_down_and_never_locks_the_owner_out() {
    let database = Database::sqlite();
    let server = Server::start_with(&database, &["--login-failures", "3"]);
    let key = Client::admin(&server).generate_key(&json!({}));
    let anonymous = Client::anonymous(&server);
    let wrong = json!({"api_key": key.api_key, "password": "wrong"});
    let statuses: Vec<u16> = (0..6).map(|_| anonymous.post("/auth/login", &wrong).status).collect();
    assert_eq!(statuses[..3], [401, 401, 401]);
    assert!(statuses[3..].contains(&429), "{statuses:?}");

    let other = Client::admin(&server).generate_key(&json!({}));
    Client::key(&server, &other);
    let right = json!({"api_key": key.api_key, "password": key.password});
    let waited = (0..10).find_map(|_| {
        let answer = anonymous.post("/auth/login", &right);
        if answer.status == 429 {
            let seconds = answer.header("Retry-After").parse().expect("Retry-After in seconds");
            assert!((1..=60).contains(&seconds), "{seconds} s");
            std::thread::sleep(Duration::from_secs(seconds));
        }
        (answer.status == 200).then_some(())
    });
    assert_eq!(waited, Some(()), "the right password works after a short wait");

    drop(server);
    let server = Server::start_with(&database, &["--logins-per-minute", "5"]);
    let anonymous = Client::anonymous(&server);
    let unknown = |i: usize| json!({"api_key": format!("NOBODY{i}"), "password": "wrong"});
    let statuses: Vec<u16> = (0..8).map(|i| anonymous.post("/auth/login", &unknown(i)).status).collect();
    assert_eq!(statuses[..5], [401; 5]);
    assert!(statuses[5..].contains(&429), "{statuses:?}");
}

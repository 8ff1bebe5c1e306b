//! Administrators: the permissions of each role, invitations, changes, resets, second factors and sessions; and the rotation of
//! keys.

use std::time::{Duration, Instant};

use acceptance::codes::code_at;
use acceptance::problem::{Refusal, Table, refused, rule};
use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::{Answer, Client, Clock, Database, Request, Server, binary, catalog, on_sqlite};
use serde_json::{Value, json};

on_sqlite!(
    each_credential_gets_as_far_in_each_operation_as_the_table_says,
    somebody_is_invited_with_a_password_that_works_once,
    a_role_and_whether_one_may_log_in_change_with_the_next_request,
    the_last_owner_stays,
    who_can_not_log_in_is_helped_by_an_owner,
    a_second_factor_is_confirmed_asked_for_and_removed,
    a_code_is_taken_once_and_guessing_is_slowed_down,
    a_recovery_code_lets_in_once_in_the_place_of_a_code,
    a_hundred_wrong_codes_lock_the_device_until_a_recovery_code_or_an_owner_unlocks_it,
    a_removal_of_the_second_factor_counts_codes_as_well,
    a_password_is_changed_by_who_knows_it,
    a_session_needs_the_password_again_to_change_who_has_access,
    sessions_are_listed_and_ended,
    a_key_gives_way_to_its_successor,
    a_keys_last_use_is_that_of_its_tokens,
);

const UNKNOWN: &str = "0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b";
const PASSWORD: &str = "a pass phrase of one's own";
const ROLES: [&str; 4] = ["read", "finance", "operator", "owner"];
const SCOPES: [&str; 5] = ["usage:write", "contracts:write", "catalog:write", "documents:write", "read"];

/// Creates an administrator with a chosen password on the command line.
fn make(database: &Database, email: &str, role: &str) {
    let arguments = ["admin", "create", "--organization", "default", "--email", email, "--password", PASSWORD, "--role", role];
    binary::succeed(database, &arguments);
}

fn member(database: &Database, server: &Server, role: &str) -> Client {
    Client::of_role(database, server, role, PASSWORD)
}

fn log_in(server: &Server, body: &Value) -> Answer {
    Client::anonymous(server).post("/auth/login", body)
}

fn by_password(email: &str, password: &str) -> Value {
    json!({"email": email, "password": password})
}

/// Returns the client of a successful log-in.
fn client_of(server: &Server, answer: &Answer) -> Client {
    assert_eq!(answer.status, 200, "{}", answer.text);
    let cookie = answer.header("Set-Cookie").split(';').next().unwrap_or_default().to_owned();
    Client::anonymous(server).with_header("Cookie", &cookie)
}

fn reference_of(owner: &Client, email: &str) -> String {
    let all = owner.get("/api/administrators/filter").ok();
    let found = all.as_array().expect("a list").iter().find(|one| one["email"] == email).expect("a listed administrator").clone();
    found["admin_ref"].as_str().expect("a reference").to_owned()
}

#[track_caller]
fn check(answer: &Answer, status: u16, code: &'static str) {
    let outcome = refused(status, code).check(answer);
    assert!(outcome.is_ok(), "{outcome:?}");
}

#[track_caller]
fn check_rule(answer: &Answer, code: &'static str, errors: &'static str) {
    let outcome = rule(code, errors).check(answer);
    assert!(outcome.is_ok(), "{outcome:?}");
}

/// An operation, with the requirements in its line of the table.
struct Line {
    method: String,
    path: String,
    /// The scopes that a key needs; none if the operation accepts no key.
    scopes: Vec<String>,
    /// The lowest role that has the permission.
    role: String,
}

fn lines(client: &Client) -> Vec<Line> {
    let document = client.get("/openapi.json").ok();
    let mut all = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let takes = operation["security"].as_array().cloned().unwrap_or_default();
            let of = |kind: &str| -> Vec<String> {
                let named = takes.iter().filter_map(|one| one[kind].as_array()).flatten();
                named.filter_map(|name| name.as_str().map(str::to_owned)).collect()
            };
            let Some(role) = of("session").pop() else { continue };
            let filled = path.split('/').map(|part| if part.starts_with('{') { UNKNOWN } else { part }).collect::<Vec<_>>();
            all.push(Line { method: method.to_uppercase(), path: filled.join("/"), scopes: of("bearer"), role });
        }
    }
    all
}

fn each_credential_gets_as_far_in_each_operation_as_the_table_says(database: &Database) {
    let server = Server::start(database);
    let owner = Client::admin(&server);
    let nobody = Client::anonymous(&server);
    let people = ROLES.map(|role| (role, member(database, &server, role)));
    let keys = SCOPES.map(|scope| (scope, Client::key(&server, &owner.generate_key(&json!({"scopes": [scope]})))));
    let place = |role: &str| ROLES.iter().position(|known| *known == role).unwrap_or_else(|| panic!("{role} is not a role"));
    let lines = lines(&nobody);
    assert!(lines.len() > 70, "{}", lines.len());
    for (role, count) in [("finance", 10), ("operator", 20), ("owner", 8)] {
        assert!(lines.iter().filter(|line| line.role == role).count() >= count, "{role}");
    }
    let mut table = Table::default();
    for line in &lines {
        // Callers with permission are rejected because of this field or because of an unknown reference.
        let body = r#"{"nobody_has_this_field": true}"#;
        let request = match line.method.as_str() {
            "POST" => Request::post(&line.path, body),
            method => Request { method, ..Request::get(&line.path) },
        };
        let mut tried = |client: &Client, who: &str, expected: Option<(u16, &'static str)>| {
            let answer = client.send(&request);
            let outcome = match expected {
                Some((status, code)) => refused(status, code).check(&answer),
                None if matches!(answer.status, 401 | 403) => Err(format!("{who} is let in: {}", answer.text)),
                None => Ok(()),
            };
            table.note(who, &request, outcome);
        };
        tried(&nobody, "nobody", Some((401, "unauthenticated")));
        for (scope, key) in &keys {
            let expected = match line.scopes.as_slice() {
                [] => Some((403, "admin_session_required")),
                // A key with one scope lacks the other of two.
                needed => (needed != [*scope]).then_some((403, "insufficient_scope")),
            };
            tried(key, scope, expected);
        }
        for (role, person) in &people {
            tried(person, role, (place(role) < place(&line.role)).then_some((403, "insufficient_role")));
        }
    }
    table.finish();
    let reported = people[1].1.post("/auth/keys/generate", &json!({}));
    assert!(
        reported.text.contains("requires the role owner") && reported.text.contains("your role is finance"),
        "{}",
        reported.text
    );
    // Only owners see entries about objects that only owners manage.
    for (role, person) in &people {
        let log = person.get("/api/audit/filter?object_kind=API_KEY").ok();
        assert_eq!(log != json!([]), *role == "owner", "{role}");
    }
}

fn somebody_is_invited_with_a_password_that_works_once(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let owner = Client::admin(&server);
    let invitation = json!({"email": "New@Example.com", "role": "finance"});
    let answer = owner.post("/api/administrators/", &invitation);
    let (email, password) = (answer.text_of("email"), answer.text_of("password"));
    assert_eq!((email.as_str(), answer.body["role"].as_str()), ("new@example.com", Some("finance")));
    assert!(answer.text_of("one_time_until").starts_with("2026-11-13T12:00"), "{}", answer.text);
    let taken = Refusal { status: 409, code: "already_exists", errors: "/email already_exists" };
    taken.check(&owner.post("/api/administrators/", &invitation)).expect("the address is in use");
    let wrong = owner.post("/api/administrators/", &json!({"email": "nobody", "role": "king"}));
    assert!(wrong.status == 422 && wrong.text.contains("/email") && wrong.text.contains("/role"), "{}", wrong.text);

    check(&log_in(&server, &by_password(&email, &password)), 401, "new_password_required");
    check(&log_in(&server, &by_password(&email, "not the password")), 401, "invalid_credentials");
    let with = |new: &str| json!({"email": email, "password": password, "new_password": new});
    check_rule(&log_in(&server, &with("short")), "password_refused", "/new_password password_refused");
    check_rule(&log_in(&server, &with(&password)), "password_refused", "/new_password password_refused");
    let member = client_of(&server, &log_in(&server, &with(PASSWORD)));
    let own = member.get("/auth/session").ok();
    assert_eq!((&own["email"], &own["role"], &own["organization"]), (&json!(email), &json!("finance"), &json!("default")));
    check(&log_in(&server, &with(PASSWORD)), 401, "invalid_credentials");
    let own_password = json!({"email": email, "password": PASSWORD, "new_password": "another pass phrase"});
    assert_eq!(log_in(&server, &own_password).status, 422, "a log-in can't change a permanent password");
    assert_eq!(log_in(&server, &by_password(&email, PASSWORD)).status, 200);
    let listed = owner.get("/api/administrators/filter").ok();
    let row = listed.as_array().expect("a list").iter().find(|one| one["email"] == "new@example.com").expect("a row");
    assert_eq!(
        (&row["one_time_until"], &row["disabled_at"], &row["second_factor_since"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );

    // An invitation expires.
    let late = owner.post("/api/administrators/", &json!({"email": "late@example.com", "role": "read"}));
    let late = json!({"email": "late@example.com", "password": late.text_of("password"), "new_password": PASSWORD});
    clock.set("2026-11-13T12:01:00Z");
    check(&log_in(&server, &late), 401, "invalid_credentials");
    let log = Client::admin(&server).get("/api/audit/filter?object_kind=ADMINISTRATOR&pageSize=1000");
    assert!(!log.text.contains(&password) && log.text.contains("CHANGE_PASSWORD"), "{}", log.text);
}

fn a_role_and_whether_one_may_log_in_change_with_the_next_request(database: &Database) {
    let server = Server::start(database);
    let owner = Client::admin(&server);
    let member = member(database, &server, "read");
    let edit = format!("/api/administrators/edit/{}", reference_of(&owner, "read@example.com"));
    let product = json!({"name": "New"});
    check(&member.post("/api/usage/products/", &product), 403, "insufficient_role");
    let changed = owner.post(&edit, &json!({"role": "operator"})).ok();
    assert_eq!(changed["role"], "operator");
    assert_eq!(member.post("/api/usage/products/", &product).status, 200, "the open session has the new role");
    owner.post(&edit, &json!({"role": "finance", "disabled": false})).ok();
    check(&member.post("/api/usage/products/", &product), 403, "insufficient_role");
    let disabled = owner.post(&edit, &json!({"disabled": true})).ok();
    assert!(disabled["disabled_at"].is_string(), "{disabled}");
    check(&member.get("/api/customers/filter"), 401, "unauthenticated");
    check(&log_in(&server, &by_password("read@example.com", PASSWORD)), 401, "invalid_credentials");
    let again = owner.post(&edit, &json!({"disabled": true})).ok();
    assert_eq!(again["disabled_at"], disabled["disabled_at"], "the first time is kept");
    owner.post(&edit, &json!({"disabled": false})).ok();
    assert_eq!(log_in(&server, &by_password("read@example.com", PASSWORD)).status, 200);
    let found = owner.get("/api/audit/filter?object_kind=ADMINISTRATOR&pageSize=1000").ok();
    let of_admin = |entry: &&Value| entry["actor"].as_str().is_some_and(|actor| actor.starts_with("admin:"));
    let actions: Vec<&str> =
        found.as_array().expect("entries").iter().filter(of_admin).filter_map(|e| e["action"].as_str()).collect();
    let changes: Vec<&&str> = actions.iter().filter(|action| **action != "LOG_IN").collect();
    assert_eq!(changes, [&"ENABLE", &"DISABLE", &"EDIT", &"EDIT"]);
    let gone = format!("/api/administrators/edit/{UNKNOWN}");
    check(&owner.post(&gone, &json!({"role": "read"})), 404, "administrator_not_found");
}

fn the_last_owner_stays(database: &Database) {
    let server = Server::start(database);
    let owner = Client::admin(&server);
    let own = format!("/api/administrators/edit/{}", reference_of(&owner, ADMIN_EMAIL));
    for change in [json!({"role": "operator"}), json!({"disabled": true}), json!({"role": "read", "disabled": true})] {
        check(&owner.post(&own, &change), 409, "last_owner");
    }
    let second = member(database, &server, "owner");
    let other = format!("/api/administrators/edit/{}", reference_of(&owner, "owner@example.com"));
    owner.post(&other, &json!({"disabled": true})).ok();
    check(&owner.post(&own, &json!({"role": "read"})), 409, "last_owner");
    owner.post(&other, &json!({"disabled": false})).ok();
    check(&second.get("/auth/session"), 401, "unauthenticated");
    let second = client_of(&server, &log_in(&server, &by_password("owner@example.com", PASSWORD)));

    // Two owners change each other's role at the same time: one owner is left.
    let places = [(&owner, &other), (&second, &own)];
    std::thread::scope(|scope| {
        for (client, path) in places {
            let client = client.with_own_connections();
            scope.spawn(move || client.post(path, &json!({"role": "finance"})));
        }
    });
    let left = [&owner, &second].iter().filter(|client| client.get("/api/administrators/filter").status == 200).count();
    assert_eq!(left, 1);
}

fn who_can_not_log_in_is_helped_by_an_owner(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let owner = Client::admin(&server);
    let member = member(database, &server, "finance");
    let secret = enroll(&member);
    member.post("/auth/second-factor/confirm", &json!({"code": code_at(&secret, "2026-11-10T12:00:00Z")})).ok();
    let reset = format!("/api/administrators/reset/{}", reference_of(&owner, "finance@example.com"));
    check(&owner.post_nothing(&format!("/api/administrators/reset/{}", reference_of(&owner, ADMIN_EMAIL))), 409, "own_account");

    let password = owner.post_nothing(&reset).text_of("password");
    check(&member.get("/auth/session"), 401, "unauthenticated");
    check(&log_in(&server, &by_password("finance@example.com", PASSWORD)), 401, "invalid_credentials");
    let chosen = |password: &str| json!({"email": "finance@example.com", "password": password, "new_password": PASSWORD});
    check(&log_in(&server, &chosen(&password)), 401, "second_factor_required");
    // The device is lost, too.
    let password = owner.post(&reset, &json!({"remove_second_factor": true})).text_of("password");
    let member = client_of(&server, &log_in(&server, &chosen(&password)));
    assert_eq!(member.get("/auth/session").ok()["second_factor_since"], Value::Null);
    // A password that is set on the command line is permanent.
    let secret = enroll(&member);
    member.post("/auth/second-factor/confirm", &json!({"code": code_at(&secret, "2026-11-10T12:00:30Z")})).ok();
    let given = ["admin", "reset-password", "--email", "finance@example.com", "--password", "another pass phrase"];
    binary::succeed(database, &given);
    let by_given = by_password("finance@example.com", "another pass phrase");
    check(&log_in(&server, &by_given), 401, "second_factor_required");
    binary::succeed(database, &[&given[..], &["--remove-second-factor"]].concat());
    assert_eq!(log_in(&server, &by_given).status, 200);
    binary::succeed(database, &["admin", "role", "--email", "finance@example.com", "--role", "read"]);
    assert!(
        binary::succeed(database, &["admin", "list"]).lines().any(|line| line.contains("finance@") && line.contains("  read  "))
    );
}

fn enroll(client: &Client) -> String {
    let answer = client.post_nothing("/auth/second-factor/enroll");
    let (secret, uri) = (answer.text_of("secret"), answer.text_of("uri"));
    assert!(secret.len() == 32 && uri.starts_with("otpauth://totp/Usage%20Billing:") && uri.contains(&secret), "{uri}");
    assert!(answer.header("Cache-Control").contains("no-store"));
    secret
}

fn with_code(code: &str) -> Value {
    json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD, "code": code})
}

fn a_second_factor_is_confirmed_asked_for_and_removed(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let admin = Client::admin(&server);
    check(&admin.post("/auth/second-factor/confirm", &json!({"code": "123456"})), 409, "second_factor_not_enrolled");
    check(
        &admin.post("/auth/second-factor/remove", &json!({"password": ADMIN_PASSWORD, "code": "123456"})),
        409,
        "second_factor_off",
    );
    let first = enroll(&admin);
    let secret = enroll(&admin);
    assert_ne!(first, secret, "each enrollment has a new secret");
    let confirm = |code: &str| admin.post("/auth/second-factor/confirm", &json!({"code": code}));
    check_rule(&confirm(&code_at(&first, "2026-11-10T12:00:00Z")), "invalid_code", "/code invalid_code");
    check_rule(&confirm(&code_at(&secret, "2026-11-10T12:05:00Z")), "invalid_code", "/code invalid_code");
    assert_eq!(log_in(&server, &by_password(ADMIN_EMAIL, ADMIN_PASSWORD)).status, 200, "the second factor isn't active yet");
    let codes = confirm(&code_at(&secret, "2026-11-10T12:00:00Z"));
    assert!(codes.header("Cache-Control").contains("no-store"));
    assert_eq!(codes.ok()["recovery_codes"].as_array().map(Vec::len), Some(10));
    let own = admin.get("/auth/session").ok();
    assert!(own["second_factor_since"].is_string() && own["recovery_codes_left"] == 10, "{own}");
    check(&admin.post_nothing("/auth/second-factor/enroll"), 409, "second_factor_on");
    check(&confirm("123456"), 409, "second_factor_on");

    clock.set("2026-11-10T12:10:00Z");
    check(&log_in(&server, &by_password(ADMIN_EMAIL, ADMIN_PASSWORD)), 401, "second_factor_required");
    let wrong = json!({"email": ADMIN_EMAIL, "password": "not the password", "code": code_at(&secret, "2026-11-10T12:10:00Z")});
    check(&log_in(&server, &wrong), 401, "invalid_credentials");
    check(&log_in(&server, &with_code(&code_at(&secret, "2026-11-10T12:00:00Z"))), 401, "invalid_code");
    let session = client_of(&server, &log_in(&server, &with_code(&code_at(&secret, "2026-11-10T12:10:00Z"))));
    clock.set("2026-11-10T12:20:00Z");
    let code = code_at(&secret, "2026-11-10T12:20:00Z");
    let remove =
        |password: &str, code: &str| session.post("/auth/second-factor/remove", &json!({"password": password, "code": code}));
    check_rule(&remove("not the password", &code), "wrong_password", "/password wrong_password");
    check_rule(&remove(ADMIN_PASSWORD, "000000"), "invalid_code", "/code invalid_code");
    assert_eq!(remove(ADMIN_PASSWORD, &code).status, 204);
    assert_eq!(log_in(&server, &by_password(ADMIN_EMAIL, ADMIN_PASSWORD)).status, 200);
    let log = session.get("/api/audit/filter?object_kind=ADMINISTRATOR&pageSize=1000");
    for action in ["ADD_SECOND_FACTOR", "REMOVE_SECOND_FACTOR"] {
        assert_eq!(log.text.matches(action).count(), 1, "{action}: {}", log.text);
    }
    assert!(!log.text.contains(&secret));
}

/// Gives an owner a second factor whose codes are used up to an instant. Returns the secret and the recovery codes.
fn with_second_factor(server: &Server, instant: &str) -> (String, Vec<String>) {
    let admin = Client::admin(server);
    let secret = enroll(&admin);
    let codes = admin.post("/auth/second-factor/confirm", &json!({"code": code_at(&secret, instant)})).ok();
    let codes = codes["recovery_codes"].as_array().expect("codes").iter().map(|code| code.as_str().expect("a code").to_owned());
    (secret, codes.collect())
}

fn a_code_is_taken_once_and_guessing_is_slowed_down(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &["--login-failures", "4"]);
    let (secret, _) = with_second_factor(&server, "2026-11-10T12:00:00Z");
    check(&log_in(&server, &with_code(&code_at(&secret, "2026-11-10T12:00:00Z"))), 401, "invalid_code");
    clock.set("2026-11-10T12:01:00Z");
    let code = code_at(&secret, "2026-11-10T12:01:00Z");
    assert_eq!(log_in(&server, &with_code(&code)).status, 200);
    check(&log_in(&server, &with_code(&code)), 401, "invalid_code");
    check(&log_in(&server, &with_code(&code_at(&secret, "2026-11-10T12:00:30Z"))), 401, "invalid_code");
    clock.set("2026-11-10T12:02:00Z");
    let fresh = with_code(&code_at(&secret, "2026-11-10T12:02:00Z"));
    // Concurrent log-ins with the same code: only one of them succeeds.
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let tries: Vec<_> = (0..3).map(|_| scope.spawn(|| log_in(&server, &fresh).status)).collect();
        tries.into_iter().map(|one| one.join().expect("a response")).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");

    let statuses: Vec<u16> = (0..6).map(|_| log_in(&server, &with_code("000000")).status).collect();
    assert!(statuses.contains(&429) && !statuses.contains(&200), "{statuses:?}");
    clock.set("2026-11-10T12:05:00Z");
    let began = Instant::now();
    loop {
        let answer = log_in(&server, &with_code(&code_at(&secret, "2026-11-10T12:05:00Z")));
        if answer.status == 200 {
            break;
        }
        assert!(answer.status == 429 && began.elapsed() < Duration::from_secs(25), "{}", answer.text);
        std::thread::sleep(Duration::from_secs(1));
    }
}

fn a_recovery_code_lets_in_once_in_the_place_of_a_code(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let (secret, codes) = with_second_factor(&server, "2026-11-10T12:00:00Z");
    let unwritten = codes[0].replace('-', " ").to_lowercase();
    let session = client_of(&server, &log_in(&server, &with_code(&unwritten)));
    assert_eq!(session.get("/auth/session").ok()["recovery_codes_left"], 9);
    check(&log_in(&server, &with_code(&codes[0])), 401, "invalid_code");
    let log = session.get("/api/audit/filter?action=USE_RECOVERY_CODE").ok();
    assert_eq!(log.as_array().map(Vec::len), Some(1));
    let removed = session.post("/auth/second-factor/remove", &json!({"password": ADMIN_PASSWORD, "code": codes[1]}));
    assert_eq!(removed.status, 204, "{}", removed.text);
    if let Some(path) = database.url().strip_prefix("sqlite://") {
        let files = [path.to_owned(), format!("{path}-wal")].map(|file| std::fs::read(file).unwrap_or_default());
        for reported in codes.iter().map(|code| code.replace('-', "")).chain([secret]) {
            assert!(
                !files.iter().any(|file| file.windows(reported.len()).any(|part| part == reported.as_bytes())),
                "no secret is stored in plain text"
            );
        }
    }
}

/// Flags that allow any number of attempts.
const UNLIMITED: [&str; 4] = ["--login-failures", "10000", "--logins-per-minute", "1000000"];
/// Counts 98 of the 100 wrong codes that lock the devices of all administrators. Each attempt takes long on purpose.
const COUNT_98_CODES: &str = "UPDATE administrators SET failed_codes = 98";

fn a_hundred_wrong_codes_lock_the_device_until_a_recovery_code_or_an_owner_unlocks_it(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &UNLIMITED);
    let member = member(database, &server, "finance");
    let secret = enroll(&member);
    let codes = member.post("/auth/second-factor/confirm", &json!({"code": code_at(&secret, "2026-11-10T12:00:00Z")})).ok();
    let recovery = codes["recovery_codes"][0].as_str().expect("a code").to_owned();
    let credential = |password: &str, code: &str| json!({"email": "finance@example.com", "password": password, "code": code});
    let with = |password: &str, code: &str| log_in(&server, &credential(password, code));
    let fail = |times: usize| (0..times).for_each(|_| check(&with(PASSWORD, "000000"), 401, "invalid_code"));
    database.execute(COUNT_98_CODES);
    fail(1);
    // Without the password, codes are not checked and not counted. Wrong recovery codes are not counted either.
    for _ in 0..3 {
        check(&with("not the password", "000000"), 401, "invalid_credentials");
        check(&with(PASSWORD, "AAAA-BBBB-CCCC-DDDD"), 401, "invalid_code");
    }
    fail(1);
    clock.set("2026-11-10T12:10:00Z");
    let valid = code_at(&secret, "2026-11-10T12:10:00Z");
    let locked = with(PASSWORD, &valid);
    check(&locked, 401, "second_factor_locked");
    assert!(locked.text.contains("recovery code") && locked.text.contains("owner"), "{}", locked.text);
    check(&with("not the password", &valid), 401, "invalid_credentials");
    client_of(&server, &with(PASSWORD, &recovery));
    assert_eq!(with(PASSWORD, &valid).status, 200, "a recovery code unlocks the device");

    database.execute(COUNT_98_CODES);
    fail(2);
    clock.set("2026-11-10T12:20:00Z");
    let valid = code_at(&secret, "2026-11-10T12:20:00Z");
    check(&with(PASSWORD, &valid), 401, "second_factor_locked");
    let owner = Client::admin(&server);
    let reset = format!("/api/administrators/reset/{}", reference_of(&owner, "finance@example.com"));
    let one_time = owner.post_nothing(&reset).text_of("password");
    let mut chosen = credential(&one_time, &valid);
    chosen["new_password"] = json!(PASSWORD);
    assert_eq!(log_in(&server, &chosen).status, 200, "an owner's reset unlocks the device");

    let log = owner.get("/api/audit/filter?action=LOCK_SECOND_FACTOR").ok();
    let actors: Vec<&Value> = log.as_array().expect("a list").iter().map(|entry| &entry["actor"]).collect();
    assert_eq!(actors, ["nobody", "nobody"], "each lock is recorded once");
}

fn a_removal_of_the_second_factor_counts_codes_as_well(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &UNLIMITED);
    let (secret, codes) = with_second_factor(&server, "2026-11-10T12:00:00Z");
    let session = client_of(&server, &log_in(&server, &with_code(&codes[0])));
    let remove =
        |password: &str, code: &str| session.post("/auth/second-factor/remove", &json!({"password": password, "code": code}));
    database.execute(COUNT_98_CODES);
    (0..2).for_each(|_| check_rule(&remove(ADMIN_PASSWORD, "000000"), "invalid_code", "/code invalid_code"));
    clock.set("2026-11-10T12:04:00Z");
    let valid = code_at(&secret, "2026-11-10T12:04:00Z");
    check(&remove(ADMIN_PASSWORD, &valid), 409, "second_factor_locked");
    check(&log_in(&server, &with_code(&valid)), 401, "second_factor_locked");
    assert_eq!(remove(ADMIN_PASSWORD, &codes[1]).status, 204);
}

fn a_password_is_changed_by_who_knows_it(database: &Database) {
    let server = Server::start(database);
    let member = member(database, &server, "read");
    let other = client_of(&server, &log_in(&server, &by_password("read@example.com", PASSWORD)));
    let change = |present: &str, new: &str| member.post("/auth/password", &json!({"password": present, "new_password": new}));
    check_rule(&change("not the password", "another pass phrase"), "wrong_password", "/password wrong_password");
    for bad in ["short", "password1234", PASSWORD] {
        check_rule(&change(PASSWORD, bad), "password_refused", "/new_password password_refused");
    }
    assert_eq!(other.get("/auth/session").status, 200, "the session is still valid");
    assert_eq!(change(PASSWORD, "another pass phrase").status, 204);
    assert_eq!((member.get("/auth/session").status, other.get("/auth/session").status), (200, 401));
    check(&log_in(&server, &by_password("read@example.com", PASSWORD)), 401, "invalid_credentials");
    assert_eq!(log_in(&server, &by_password("read@example.com", "another pass phrase")).status, 200);
    let statuses: Vec<u16> = (0..14).map(|_| change("not the password", "yet another phrase").status).collect();
    assert!(statuses.contains(&429), "guesses in an open session are limited: {statuses:?}");
}

fn a_session_needs_the_password_again_to_change_who_has_access(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let (owner, other) = (Client::admin(&server), Client::admin(&server));
    make(database, "read@example.com", "read");
    let member = reference_of(&owner, "read@example.com");
    let key = owner.post("/auth/keys/generate", &json!({})).ok()["api_key_ref"].as_str().expect("a reference").to_owned();
    let online = json!({"billing_online_payment_details": {"payment_gateway_id": "other"}});
    let hook = |path: &str| json!({"url": format!("https://example.com/{path}")});
    let endpoint =
        owner.post("/api/webhooks/endpoints/", &hook("hook")).ok()["endpoint_ref"].as_str().expect("a reference").to_owned();
    let account = |id: &str| json!({"billing_account_id": id, "account_name": "Seller", "iban": "DE02120300000000202051"});
    owner.post("/api/bank_accounts/", &account("main")).ok();
    catalog::make(&owner);
    let contract = catalog::make_contract(&owner, &catalog::contract(catalog::ACME));
    let entity = catalog::only(owner.get("/api/entities/filter").ok())["entity_ref"].as_str().expect("a reference").to_owned();
    let edited = |details: &Value| {
        let product = owner.get(&format!("/api/contracts/{contract}")).ok()["products"][0].clone();
        json!({"products": [catalog::with(product, details)]})
    };
    let attempts = || {
        [
            owner.delete("/auth/sessions/others"),
            owner.post("/api/webhooks/endpoints/", &hook("other")),
            owner.post(&format!("/api/webhooks/endpoints/edit/{endpoint}"), &hook("other")),
            owner.post(&format!("/api/webhooks/endpoints/rotate/{endpoint}"), &json!({})),
            owner.post("/api/bank_accounts/", &account("other")),
            owner.post("/api/bank_accounts/edit/main", &json!({"account_name": "Thief"})),
            owner.post(&format!("/api/entities/edit/{entity}"), &online),
            owner.post("/api/customers/edit/acme", &online),
            owner.post("/api/customers/", &catalog::with(json!({"name": "Other"}), &online)),
            owner.post(&format!("/api/contracts/edit/{contract}"), &edited(&online)),
            owner.post("/auth/keys/generate", &json!({})),
            owner.post(&format!("/auth/keys/rotate/{key}"), &json!({})),
            owner.delete(&format!("/auth/user/{key}")),
            owner.post("/api/administrators/", &json!({"email": "new@example.com", "role": "owner"})),
            owner.post(&format!("/api/administrators/edit/{member}"), &json!({"role": "owner"})),
            owner.post(&format!("/api/administrators/reset/{member}"), &json!({})),
            owner.post("/auth/second-factor/enroll", &json!({})),
        ]
    };
    clock.set("2026-11-10T12:06:00Z");
    for refused in attempts() {
        check(&refused, 403, "confirmation_required");
    }
    owner.post("/api/customers/edit/acme", &json!({"name": "Acme Inc."})).ok();
    owner.post(&format!("/api/contracts/edit/{contract}"), &edited(&json!({"note": "thanks"}))).ok();
    let page = acceptance::console::submit(&owner, "/console/keys", "scopes=read");
    assert_eq!((page.status, page.header("Location")), (303, "/console/confirm?next=%2Fconsole%2Fkeys"));
    let confirm = |password: &str| owner.post("/auth/session/confirm", &json!({"password": password}));
    check_rule(&confirm("not the password"), "wrong_password", "/password wrong_password");
    check(&owner.post("/auth/keys/generate", &json!({})), 403, "confirmation_required");
    let log = owner.get("/api/audit/filter?action=FAIL_CONFIRMATION").ok();
    assert_eq!((log.as_array().map(Vec::len), &log[0]["object_kind"]), (Some(1), &json!("ADMINISTRATOR")), "{log}");
    assert_eq!(confirm(ADMIN_PASSWORD).status, 204);
    owner.post("/auth/keys/generate", &json!({})).ok();
    check(&other.post("/auth/keys/generate", &json!({})), 403, "confirmation_required");
    clock.set("2026-11-10T12:15:00Z");
    check(&owner.post("/auth/keys/generate", &json!({})), 403, "confirmation_required");
    assert_eq!(owner.get("/auth/keys/list").status, 200, "reading needs no password");
    let form = format!("password={}&next=%2Fconsole%2Fkeys", ADMIN_PASSWORD.replace(' ', "+"));
    let confirmed = acceptance::console::submit(&owner, "/console/confirm", &form);
    assert_eq!((confirmed.status, confirmed.header("Location")), (303, "/console/keys"));
    let made = acceptance::console::submit(&owner, "/console/keys", "scopes=read");
    assert_eq!(made.status, 200, "{}", made.text);
}

fn sessions_are_listed_and_ended(database: &Database) {
    let server = Server::start(database);
    make(database, "read@example.com", "read");
    let browser = |name: &str| {
        let client = Client::anonymous(&server).with_header("User-Agent", name);
        client_of(&server, &client.post("/auth/login", &by_password("read@example.com", PASSWORD)))
    };
    let (first, second, third) = (browser("First/1.0"), browser("Second/2.0"), browser("Third/3.0"));
    let listed = first.get("/auth/sessions/list").ok();
    let rows = listed.as_array().expect("a list");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["user_agent"].as_str()).collect();
    assert_eq!(names, ["Third/3.0", "Second/2.0", "First/1.0"]);
    let current: Vec<bool> = rows.iter().map(|row| row["is_current"] == true).collect();
    assert_eq!(current, [false, false, true]);
    let end = |row: usize| format!("/auth/sessions/{}", rows[row]["session_ref"].as_str().expect("a reference"));
    check(&Client::admin(&server).delete(&end(1)), 404, "session_not_found");
    assert_eq!(first.delete(&end(1)).status, 204);
    check(&first.delete(&end(1)), 404, "session_not_found");
    assert_eq!([&first, &second, &third].map(|client| client.get("/auth/session").status), [200, 401, 200]);
    for _ in 0..2 {
        assert_eq!(third.delete("/auth/sessions/others").status, 204);
    }
    assert_eq!([&first, &third].map(|client| client.get("/auth/session").status), [401, 200]);
    assert_eq!(third.get("/auth/sessions/list").ok().as_array().map(Vec::len), Some(1));
    let log = Client::admin(&server).get("/api/audit/filter?action=END_SESSIONS").ok();
    assert_eq!(log.as_array().map(Vec::len), Some(2), "a request that ends no session records nothing");
}

fn a_key_gives_way_to_its_successor(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &["--token-lifetime-seconds", "86400"]);
    let admin = Client::admin(&server);
    let key = admin.generate_key(&json!({"name": "gateway", "scopes": ["read"], "expires_at": "2027-02-08T12:00:00Z"}));
    let client = Client::key(&server, &key);
    let rotate = format!("/auth/keys/rotate/{}", key.api_key_ref);
    let wrong = admin.post(&rotate, &json!({"overlap_hours": 721, "expires_at": "yesterday"}));
    assert!(wrong.status == 422 && wrong.text.contains("/overlap_hours") && wrong.text.contains("/expires_at"), "{}", wrong.text);
    assert_eq!(admin.post(&rotate, &json!({"expires_at": "2026-11-10T11:00:00Z"})).status, 422);
    check(&admin.post_nothing(&format!("/auth/keys/rotate/{UNKNOWN}")), 404, "api_key_not_found");

    let keyed = admin.with_header("Idempotency-Key", "once");
    let rotated = keyed.post(&rotate, &json!({"overlap_hours": 2}));
    assert!(rotated.text_of("rotated_expires_at").starts_with("2026-11-10T14:00"), "{}", rotated.text);
    // The new key is valid for as long as the old key was.
    assert!(rotated.text_of("expires_at").starts_with("2027-02-08T1"), "{}", rotated.text);
    assert_eq!(
        keyed.post(&rotate, &json!({"overlap_hours": 2})).body,
        rotated.clone().ok(),
        "a repeated request rotates the key only once"
    );
    check(&admin.post(&rotate, &json!({})), 409, "key_rotated");
    let made = json!({"api_key": rotated.text_of("api_key"), "password": rotated.text_of("password")});
    let token = log_in(&server, &made).ok();
    let successor =
        Client::anonymous(&server).with_header("Authorization", &format!("Bearer {}", token.as_str().expect("a token")));
    let path = "/api/customers/filter";
    assert_eq!([&client, &successor].map(|client| client.get(path).status), [200, 200], "both keys work");
    check(&successor.post("/api/customers/", &json!({"name": "x"})), 403, "insufficient_scope");
    let listed = admin.get("/auth/keys/list").ok();
    let row = listed.as_array().expect("keys").iter().find(|row| row["api_key_ref"] == *key.api_key_ref).expect("a row");
    assert_eq!(row["successor_ref"], rotated.body["api_key_ref"]);

    clock.set("2026-11-10T14:00:30Z");
    check(&client.get(path), 401, "unauthenticated");
    assert_eq!(successor.get(path).status, 200);
    let admin = Client::admin(&server);
    let log = admin.get("/api/audit/filter?action=ROTATE").ok();
    assert_eq!(log[0]["object_ref"], *key.api_key_ref, "{log}");
    let expired = admin.generate_key(&json!({"expires_at": "2026-11-10T14:05:00Z"}));
    clock.set("2026-11-10T14:06:00Z");
    let admin = Client::admin(&server);
    check(&admin.post_nothing(&format!("/auth/keys/rotate/{}", expired.api_key_ref)), 409, "key_expired");

    // The command line rotates keys, too, according to its own clock.
    let other = admin.generate_key(&json!({"name": "meter"}));
    let stated = binary::succeed(database, &["key", "rotate", "--key", &other.api_key, "--overlap-hours", "720"]);
    let password =
        stated.lines().find_map(|line| line.strip_prefix("Password (shown only once): ")).expect("a password").to_owned();
    let listed = binary::succeed(database, &["key", "list"]);
    let row = listed
        .lines()
        .find(|line| stated.contains(line.split_whitespace().next().unwrap_or("?")) && !line.starts_with(&other.api_key));
    let successor = row.and_then(|line| line.split_whitespace().next()).expect("the successor is listed");
    assert_eq!(log_in(&server, &json!({"api_key": successor, "password": password})).status, 200, "{listed}");
    assert!(!listed.contains(&password) && listed.contains("meter"), "{listed}");
}

fn a_keys_last_use_is_that_of_its_tokens(database: &Database) {
    let clock = Clock::at("2026-11-10T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &["--token-lifetime-seconds", "86400"]);
    let key = Client::admin(&server).generate_key(&json!({}));
    let client = Client::key(&server, &key);
    // The token was issued long ago.
    clock.set("2026-11-10T15:00:00Z");
    let admin = Client::admin(&server);
    client.get("/api/customers/filter").ok();
    let began = Instant::now();
    loop {
        let used = admin.get("/auth/keys/list").ok()[0]["last_used_at"].as_str().expect("the last use").to_owned();
        if used.starts_with("2026-11-10T15:00") {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "{used}");
        std::thread::sleep(Duration::from_millis(100));
    }
    // A server writes the last use of keys when it exits.
    clock.set("2026-11-10T15:00:20Z");
    client.get("/api/customers/filter").ok();
    server.terminate();
    let mut server = server;
    assert!(server.wait_for_exit(Duration::from_secs(20)).is_some(), "the server exits");
    let again = Server::start_on(database, &clock);
    let used = Client::admin(&again).get("/auth/keys/list").ok()[0]["last_used_at"].as_str().expect("the last use").to_owned();
    assert!(used[..19] >= *"2026-11-10T15:00:20", "{used}");
}

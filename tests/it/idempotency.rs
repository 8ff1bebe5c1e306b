//! `Idempotency-Key` on every POST: one effect and one response, for every caller, any number of repeats and any changes in
//! between. The tests of the header alone are next to the handlers.

mod keyed_posts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use acceptance::problem::refused;
use acceptance::random::setting;
use acceptance::{Answer, Client, Database, Request, Server, binary, books, catalog, on_both_databases};
use keyed_posts::{Post, posts, respelled};
use serde_json::{Value, json};

on_both_databases!(
    every_post_is_carried_out_once_under_its_key,
    many_threads_with_one_key_have_one_effect_and_one_answer,
    a_request_refused_by_the_database_does_not_use_its_key_up,
    a_twin_that_has_waited_5_seconds_is_told_to_come_back,
    the_password_of_a_generated_key_is_nowhere_in_the_database,
    the_answer_to_an_event_is_made_again_to_the_byte_wherever_the_event_goes,
);

const KEY: &str = "8e03978e-40d5-43dd-bc93-6894a57f9324";
const PASSWORD: &str = "another long pass phrase";
/// These operations need no key and record none: repeating them has no second effect.
const NOT_KEPT: [&str; 11] = [
    "/auth/login",
    "/auth/logout",
    "/auth/password",
    "/auth/session/confirm",
    "/auth/second-factor/enroll",
    "/auth/second-factor/confirm",
    "/auth/second-factor/remove",
    "/api/clock/advance",
    "/api/dry_run",
    "/api/usage/formats/test",
    "/api/pricings/rates",
];
/// The number of concurrent duplicates of each request.
const TWINS: usize = 3;
const THREADS: usize = 64;
/// The number of keys in a test run; `KEYS` sets another number.
const KEYS: u64 = 20;

/// The software and the administrator of an organization.
struct Caller {
    client: Client,
    admin: Client,
}

impl Caller {
    fn of(admin: Client, server: &Server) -> Self {
        let client = Client::key(server, &admin.generate_key(&json!({})));
        Self { client, admin }
    }

    /// Returns the same caller for a restarted server.
    fn at(&self, server: &Server) -> Self {
        Self { client: self.client.at(server), admin: self.admin.at(server) }
    }

    fn post(&self, post: &Post, body: Option<String>) -> Answer {
        let client = if post.is_admins { &self.admin } else { &self.client };
        client.with_own_connections().send(&request(&post.path, KEY, body))
    }

    /// Returns the length of the list that the request adds to.
    fn count(&self, post: &Post) -> usize {
        let Some(list) = &post.adds_to else { return 0 };
        let client = if post.is_admins { &self.admin } else { &self.client };
        client.get(list).header("X-Total-Count").parse().expect("a count")
    }
}

fn request<'a>(path: &'a str, key: &'a str, body: Option<String>) -> Request<'a> {
    let request = match body {
        Some(body) => Request::post(path, body),
        None => Request::post(path, "").without("Content-Type"),
    };
    request.with("Idempotency-Key", key)
}

fn is_replayed(answer: &Answer) -> bool {
    answer.header("Idempotency-Replayed") == "true"
}

/// Returns the parts that all repeats have in common.
fn stated(answer: &Answer) -> (u16, &str, &str) {
    (answer.status, answer.header("Content-Type"), &answer.text)
}

/// Sends the same request several times at once. Returns the response that all of them have in common.
fn race(what: &str, count: usize, send: impl Fn() -> Answer + Sync) -> Answer {
    let barrier = Barrier::new(count);
    let answers: Vec<Answer> = thread::scope(|scope| {
        let twin = || {
            barrier.wait();
            send()
        };
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(twin)).collect();
        threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect()
    });
    let firsts: Vec<&Answer> = answers.iter().filter(|answer| !is_replayed(answer)).collect();
    assert_eq!(firsts.len(), 1, "{what}: {answers:?}");
    for answer in &answers {
        assert_eq!(stated(answer), stated(firsts[0]), "{what}");
    }
    firsts[0].clone()
}

/// Creates a second organization and returns its administrator.
fn second_organization(database: &Database, server: &Server) -> Client {
    binary::succeed(database, &["organization", "create", "second"]);
    let email = "admin@second.example";
    let arguments = ["admin", "create", "--email", email, "--organization", "second", "--password", PASSWORD];
    binary::succeed(database, &arguments);
    Client::log_in_admin(server, email, PASSWORD)
}

fn the_answer_to_an_event_is_made_again_to_the_byte_wherever_the_event_goes(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let event = catalog::event("acme", 1).to_string();
    let send = || client.send(&request("/api/usage/event", KEY, Some(event.clone())));
    let first = send();
    let taken = first.clone().ok();
    let (event_ref, document_ref) = (&taken["event_ref"], &taken["related_document_ref"]);
    // The database stores only the key and the event, not the response.
    let kept = "CREATE TABLE none_kept (answers INTEGER CHECK (answers = 0)); \
                INSERT INTO none_kept SELECT count(*) FROM usage_event_keys WHERE answer IS NOT NULL; DROP TABLE none_kept";
    database.execute(kept);
    let is_repeated = |after: &str| {
        let again = send();
        assert!(is_replayed(&again), "after {after}");
        assert_eq!(stated(&again), stated(&first), "after {after}");
    };
    is_repeated("it alone");
    books::issue(&client, document_ref).ok();
    books::void(&client, document_ref).ok();
    // The next event opens the document that bills the period again.
    books::report(&client, &catalog::event("acme", 1));
    assert_ne!(books::event(&client, event_ref)["related_document_ref"], *document_ref, "the event moved to another document");
    is_repeated("its document was voided");
    books::update(&client, event_ref, json!({"quantity": 2})).ok();
    is_repeated("an update");
    assert_eq!(books::delete(&client, event_ref).status, 204);
    is_repeated("its end");
    database.execute(kept);
}

fn every_post_is_carried_out_once_under_its_key(database: &Database) {
    let server = Server::start(database);
    let callers = [Caller::of(Client::admin(&server), &server), Caller::of(second_organization(database, &server), &server)];
    let posts = callers.each_ref().map(|caller| posts(&caller.client, &caller.admin));
    covers_every_post(&callers[0].client, &posts[0]);

    // Both organizations use the same key everywhere.
    let mut first_answers: Vec<BTreeMap<&str, Answer>> = Vec::new();
    for (caller, posts) in callers.iter().zip(&posts) {
        let in_flight = |post: &Post| (post.operation, carried_out_once(caller, post));
        first_answers.push(posts.iter().map(in_flight).collect());
    }

    server.kill_9();
    let server = Server::start(database);
    for ((caller, posts), firsts) in callers.iter().zip(&posts).zip(&first_answers) {
        let caller = caller.at(&server);
        for post in posts {
            is_answered_again(&caller, post, &firsts[post.operation]);
        }
    }
}

/// Checks that every POST in the OpenAPI document has a request here, so that a new POST without a request fails.
fn covers_every_post(client: &Client, posts: &[Post]) {
    let document = client.get("/openapi.json").ok();
    let paths = document["paths"].as_object().expect("paths");
    let of_document: BTreeSet<&str> =
        paths.iter().filter(|(_, methods)| methods["post"].is_object()).map(|(path, _)| path.as_str()).collect();
    let tried: BTreeSet<&str> = posts.iter().map(|post| post.operation).chain(NOT_KEPT).collect();
    assert_eq!(of_document, tried);
}

/// Sends concurrent duplicates and then repeats. Returns the first response.
fn carried_out_once(caller: &Caller, post: &Post) -> Answer {
    let count = caller.count(post);
    let body = || post.body.as_ref().map(Value::to_string);
    let first = race(post.operation, TWINS, || caller.post(post, body()));
    assert_eq!(first.status, 200, "{}: {}", post.operation, first.text);
    is_answered_again(caller, post, &first);
    assert_eq!(caller.count(post), count + usize::from(post.adds_to.is_some()), "{}", post.operation);
    first
}

fn is_answered_again(caller: &Caller, post: &Post, first: &Answer) {
    let spellings = [post.body.as_ref().map(Value::to_string), post.body.as_ref().map(respelled)];
    for body in spellings {
        let again = caller.post(post, body.clone());
        assert_eq!(stated(&again), stated(first), "{} {body:?}", post.operation);
        assert!(is_replayed(&again), "{} {body:?}", post.operation);
    }
    if let Some(other) = &post.other {
        let reused = caller.post(post, Some(other.to_string()));
        let checked = refused(422, "idempotency_key_reuse").check(&reused);
        assert_eq!(checked, Ok(()), "{}", post.operation);
    }
}

/// Sends two kinds of requests, with half of the threads at each client: a request whose response is stored, and an event that
/// stores its own key.
fn storm(clients: [&Client; 2]) {
    storm_of(clients, "/api/customers/", "/api/customers/filter", |n| json!({"name": format!("Customer {n}")}));
    catalog::make(clients[0]);
    catalog::make_contract(clients[0], &catalog::contract(catalog::ACME));
    storm_of(clients, "/api/usage/event", "/api/usage/event/filter", |_| catalog::event(catalog::ACME, 1));
}

fn storm_of(clients: [&Client; 2], path: &str, list: &str, body: impl Fn(u64) -> Value) {
    let count = || clients[0].get(list).header("X-Total-Count").parse::<u64>().expect("a count");
    let (before, keys) = (count(), setting("KEYS", KEYS));
    for n in 0..keys {
        let (key, body) = (format!("key-{n}"), body(n).to_string());
        let next = std::sync::atomic::AtomicUsize::new(0);
        let first = race(&key, THREADS, || {
            let thread = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            clients[thread % 2].with_own_connections().send(&request(path, &key, Some(body.clone())))
        });
        assert_eq!(first.status, 200, "{}", first.text);
    }
    assert_eq!(count(), before + keys);
}

fn many_threads_with_one_key_have_one_effect_and_one_answer(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    storm([&client, &client]);
}

#[test]
fn twins_at_two_servers_on_one_postgres_have_one_effect_and_one_answer() {
    let database = Database::postgres();
    let (one, other) = (Server::start(&database), Server::start(&database));
    let client = Client::new_key(&one);
    storm([&client, &client.at(&other)]);
}

fn a_request_refused_by_the_database_does_not_use_its_key_up(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    let post = |body: Value| client.send(&request("/api/customers/", KEY, Some(body.to_string())));
    client.post("/api/customers/", &json!({"customer_ref": "taken", "name": "First"})).ok();
    for _ in 0..2 {
        assert_eq!(refused(409, "already_exists").status, post(json!({"customer_ref": "taken", "name": "Second"})).status);
    }
    let mended = post(json!({"customer_ref": "free", "name": "Second"}));
    assert_eq!((mended.status, is_replayed(&mended)), (200, false), "{}", mended.text);
    assert!(is_replayed(&post(json!({"customer_ref": "free", "name": "Second"}))));
}

fn a_twin_that_has_waited_5_seconds_is_told_to_come_back(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    // On PostgreSQL, the duplicate may reach another server. SQLite has only one server.
    let elsewhere = (!database.is_sqlite()).then(|| Server::start(database));
    let clients = [Some(client.clone()), elsewhere.as_ref().map(|other| client.at(other))];
    let post = |client: &Client, key: &str| {
        let body = json!({"name": "Acme"}).to_string();
        client.with_own_connections().send(&request("/api/customers/", key, Some(body)))
    };
    let held = database.hold_writes("customers");
    thread::scope(|scope| {
        // On SQLite, this request waits for the file lock up to the limit, and the next request waits after it. Together they
        // wait longer than duplicates.
        let before = scope.spawn(|| post(&client, "another key"));
        thread::sleep(Duration::from_secs(2));
        let first = scope.spawn(|| post(&client, KEY));
        thread::sleep(Duration::from_millis(300));
        let twins: Vec<_> = clients
            .iter()
            .flatten()
            .map(|client| {
                scope.spawn(|| {
                    let began = Instant::now();
                    (post(client, KEY), began.elapsed())
                })
            })
            .collect();
        for twin in twins {
            let (twin, waited) = twin.join().expect("the thread doesn't panic");
            assert_eq!(refused(409, "request_in_progress").check(&twin), Ok(()));
            assert_eq!(twin.header("Retry-After"), "1");
            assert!(waited >= Duration::from_secs(5), "{waited:?}");
        }
        drop(held);
        let first = first.join().expect("the thread doesn't panic");
        assert_eq!((first.status, is_replayed(&first)), (200, false), "{}", first.text);
        for client in clients.iter().flatten() {
            let again = post(client, KEY);
            assert_eq!((stated(&again), is_replayed(&again)), (stated(&first), true));
        }
        before.join().expect("the thread doesn't panic");
    });
}

fn the_password_of_a_generated_key_is_nowhere_in_the_database(database: &Database) {
    let server = Server::start(database);
    let admin = Client::admin(&server);
    let answer = admin.send(&request("/auth/keys/generate", KEY, Some("{}".to_owned())));
    let again = admin.send(&request("/auth/keys/generate", KEY, Some("{}".to_owned())));
    assert_eq!((stated(&again), is_replayed(&again)), (stated(&answer), true));
    let (api_key, password) = (answer.text_of("api_key"), answer.text_of("password"));
    server.kill_9();
    let everything = dump(database);
    assert!(contains(&everything, &api_key), "the dump contains the key's name");
    assert!(!contains(&everything, &password));
    assert!(!contains(&everything, &hex(&password)));
}

/// Returns all bytes of a database.
fn dump(database: &Database) -> Vec<u8> {
    match database.url().strip_prefix("sqlite://") {
        Some(file) => {
            let files = [file.to_owned(), format!("{file}-wal")];
            // The write-ahead log is deleted with the last connection.
            let files = files.iter().filter(|file| Path::new(file).exists());
            files.flat_map(|file| std::fs::read(file).expect(file)).collect()
        }
        None => {
            let dumped = Command::new("pg_dump").args(["--dbname", database.url()]).output().expect("pg_dump starts");
            assert!(dumped.status.success(), "{}", String::from_utf8_lossy(&dumped.stderr));
            dumped.stdout
        }
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

/// Returns a text in the form in which PostgreSQL prints bytes.
fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

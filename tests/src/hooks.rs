//! A receiver of webhooks, which verifies signatures as Standard Webhooks 1.0.0 says. Slow tests also verify them with the official
//! libraries of other languages.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::{Client, Clock, Database, Server, books, catalog};

/// The time limit for requests that are expected. The limit is far longer than necessary.
const MAX_WAIT: Duration = Duration::from_secs(60);
/// The interval between two checks.
const POLL_EVERY: Duration = Duration::from_millis(10);

/// A received request.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The headers by their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body, unchanged.
    pub text: String,
    /// The body as JSON.
    pub body: Value,
    /// The status of the response.
    pub status: u16,
}

impl Hook {
    /// Returns the value of a header, or an empty string if the header is missing.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Returns the reference of the notification.
    pub fn id(&self) -> &str {
        self.header("webhook-id")
    }

    /// Returns whether one of the signatures is made with a secret.
    ///
    /// # Panics
    /// Panics if the text is not a secret.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
        let content = format!("{}.{}.{}", self.id(), self.header("webhook-timestamp"), self.text);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let expected = format!("v1,{}", STANDARD.encode(hmac::sign(&key, content.as_bytes())));
        self.header("webhook-signature").split(' ').any(|signature| signature == expected)
    }

    fn is_accepted(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// The response to a request.
#[derive(Clone, Debug)]
pub struct HookAnswer {
    /// The status.
    pub status: u16,
    /// Additional lines of the head, such as `Retry-After: 5`.
    pub head: String,
    /// The body.
    pub body: String,
}

impl HookAnswer {
    /// Creates a response without a body.
    pub const fn of(status: u16) -> Self {
        Self { status, head: String::new(), body: String::new() }
    }
}

type Answering = Box<dyn FnMut(&Hook) -> HookAnswer + Send>;

struct Shared {
    hooks: Mutex<Vec<Hook>>,
    answering: Mutex<Answering>,
    is_stopped: AtomicBool,
}

/// A receiver on a free port of the loopback interface.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Receiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Receiver").field("address", &self.address).finish_non_exhaustive()
    }
}

impl Receiver {
    /// Starts a receiver that accepts everything.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub fn start() -> Self {
        Self::answering(|_| HookAnswer::of(204))
    }

    /// Starts a receiver with a function that answers each request.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub fn answering(answering: impl FnMut(&Hook) -> HookAnswer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a local address");
        let shared = Arc::new(Shared {
            hooks: Mutex::default(),
            answering: Mutex::new(Box::new(answering)),
            is_stopped: AtomicBool::new(false),
        });
        let shared_with_threads = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if shared_with_threads.is_stopped.load(Ordering::Relaxed) {
                    return;
                }
                let shared = Arc::clone(&shared_with_threads);
                // A client that is killed breaks its connection off, which ends the thread.
                thread::spawn(move || while answer(&stream, &shared).is_some() {});
            }
        });
        Self { address, shared }
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Changes the responses from now on.
    pub fn answer_with(&self, answering: impl FnMut(&Hook) -> HookAnswer + Send + 'static) {
        *self.shared.answering.lock().unwrap_or_else(PoisonError::into_inner) = Box::new(answering);
    }

    /// Returns the requests until now, in the order of their responses.
    pub fn hooks(&self) -> Vec<Hook> {
        self.shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the requests until now once there are this many.
    ///
    /// # Panics
    /// Panics if fewer arrive within a minute.
    #[track_caller]
    pub fn wait_for(&self, count: usize) -> Vec<Hook> {
        let begun = Instant::now();
        loop {
            let hooks = self.hooks();
            if hooks.len() >= count {
                return hooks;
            }
            assert!(begun.elapsed() < MAX_WAIT, "only {} of {count} requests arrive: {hooks:?}", hooks.len());
            thread::sleep(POLL_EVERY);
        }
    }

    /// Returns the number of accepted requests of each notification.
    pub fn accepted(&self) -> BTreeMap<String, usize> {
        let mut accepted = BTreeMap::new();
        for hook in self.hooks().iter().filter(|hook| hook.is_accepted()) {
            *accepted.entry(hook.id().to_owned()).or_default() += 1;
        }
        accepted
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.is_stopped.store(true, Ordering::Relaxed);
        // The connection makes the thread look whether it is stopped.
        let _ = TcpStream::connect(self.address);
    }
}

/// A receiver that reads requests and answers none of them before it is dropped.
pub struct HangingReceiver {
    address: SocketAddr,
    requests: Arc<HangingRequests>,
}

#[derive(Default)]
struct HangingRequests {
    state: Mutex<HangingState>,
    changed: Condvar,
}

#[derive(Default)]
struct HangingState {
    count: usize,
    is_over: bool,
}

impl std::fmt::Debug for HangingReceiver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HangingReceiver").field("address", &self.address).finish_non_exhaustive()
    }
}

impl HangingReceiver {
    /// Starts a receiver.
    ///
    /// # Panics
    /// Panics if no port is free.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("a local address");
        let requests = Arc::<HangingRequests>::default();
        let of_thread = Arc::clone(&requests);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if of_thread.locked().is_over {
                    return;
                }
                let requests = Arc::clone(&of_thread);
                thread::spawn(move || requests.hold(&stream));
            }
        });
        Self { address, requests }
    }

    /// Returns the URL.
    pub fn url(&self) -> String {
        format!("http://{}/hooks", self.address)
    }

    /// Returns the number of requests until now.
    pub fn count(&self) -> usize {
        self.requests.locked().count
    }

    /// Waits until this many requests have arrived.
    ///
    /// # Panics
    /// Panics if fewer arrive within a minute.
    #[track_caller]
    pub fn wait_for(&self, count: usize) {
        let begun = Instant::now();
        while self.count() < count {
            assert!(begun.elapsed() < MAX_WAIT, "only {} of {count} requests arrive", self.count());
            thread::sleep(POLL_EVERY);
        }
    }
}

impl HangingRequests {
    fn locked(&self) -> std::sync::MutexGuard<'_, HangingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hold(&self, stream: &TcpStream) {
        if read(stream).is_none() {
            return;
        }
        let mut state = self.locked();
        state.count += 1;
        while !state.is_over {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for HangingReceiver {
    fn drop(&mut self) {
        self.requests.locked().is_over = true;
        self.requests.changed.notify_all();
        // The connection makes the accepting thread look whether it is over.
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads and answers a request. Returns `None` at the end of the connection.
fn answer(mut stream: &TcpStream, shared: &Shared) -> Option<()> {
    let mut hook = read(stream)?;
    let HookAnswer { status, head, body } = {
        let mut answering = shared.answering.lock().unwrap_or_else(PoisonError::into_inner);
        answering(&hook)
    };
    hook.status = status;
    // The request counts before its response arrives, so that a test that knows of the response finds the request.
    shared.hooks.lock().unwrap_or_else(PoisonError::into_inner).push(hook);
    let head = if head.is_empty() { head } else { format!("{head}\r\n") };
    let length = if status == 204 { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    write!(stream, "HTTP/1.1 {status} Status\r\n{head}{length}\r\n{body}").ok()
}

fn read(stream: &TcpStream) -> Option<Hook> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length")?.parse().ok()?;
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes).ok()?;
    let text = String::from_utf8(bytes).ok()?;
    let body = serde_json::from_str(&text).unwrap_or_default();
    Some(Hook { headers, text, body, status: 0 })
}

/// An endpoint of a test.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The reference.
    pub endpoint_ref: String,
    /// The secret.
    pub secret: String,
}

impl Endpoint {
    /// Creates an endpoint with further fields of the request.
    ///
    /// # Panics
    /// Panics if the server rejects the endpoint.
    #[track_caller]
    pub fn create(client: &Client, receiver: &Receiver, fields: &Value) -> Self {
        Self::create_at(client, &receiver.url(), fields)
    }

    /// Creates an endpoint at a URL with further fields of the request.
    ///
    /// # Panics
    /// Panics if the server rejects the endpoint.
    #[track_caller]
    pub fn create_at(client: &Client, url: &str, fields: &Value) -> Self {
        let body = catalog::with(json!({"url": url}), fields);
        let made = client.post("/api/webhooks/endpoints/", &body);
        Self { endpoint_ref: made.text_of("endpoint_ref"), secret: made.text_of("secret") }
    }

    /// Returns the path of an operation on the endpoint.
    pub fn path(&self, operation: &str) -> String {
        format!("/api/webhooks/endpoints/{operation}{}", self.endpoint_ref)
    }

    /// Returns the endpoint as the server shows it.
    #[track_caller]
    pub fn shown(&self, client: &Client) -> Value {
        client.get(&self.path("")).ok()
    }

    /// Returns the deliveries, with a further filter such as `state=FAILED`.
    ///
    /// # Panics
    /// Panics if the server rejects the filter.
    #[track_caller]
    pub fn deliveries(&self, client: &Client, filter: &str) -> Vec<Value> {
        let path = format!("/api/webhooks/deliveries/filter?endpoint_ref={}&pageSize=1000&{filter}", self.endpoint_ref);
        client.get(&path).ok().as_array().expect("a list").clone()
    }

    /// Waits until a field of the endpoint has a value.
    ///
    /// # Panics
    /// Panics if it doesn't have the value within a minute.
    #[track_caller]
    pub fn wait_for(&self, client: &Client, field: &str, value: &Value) {
        let begun = Instant::now();
        loop {
            let shown = self.shown(client);
            if shown[field] == *value {
                return;
            }
            assert!(begun.elapsed() < MAX_WAIT, "{field} is not {value}: {shown}");
            thread::sleep(POLL_EVERY);
        }
    }
}

/// Waits until every notification of the feed is accepted, while `advance` moves the clock.
///
/// # Panics
/// Panics if a notification isn't accepted within two minutes.
#[track_caller]
pub fn wait_until_all_are_accepted(
    database: &Database,
    client: &mut Client,
    receiver: &Receiver,
    mut advance: impl FnMut(&mut Client),
) {
    let begun = Instant::now();
    loop {
        let reported = books::feed(database, client, 0);
        let accepted = receiver.accepted();
        let missing: Vec<&Value> = reported
            .iter()
            .map(|notification| &notification["notification_ref"])
            .filter(|id| !accepted.contains_key(id.as_str().unwrap_or_default()))
            .collect();
        if missing.is_empty() {
            return;
        }
        assert!(begun.elapsed() < MAX_WAIT * 2, "of {} notifications, these are missing: {missing:?}", reported.len());
        advance(client);
        thread::sleep(Duration::from_millis(200));
    }
}

/// Kills a server while it delivers, in several rounds. Then every notification was accepted at least once with the same body,
/// and none more often than the number of kills explains.
///
/// # Panics
/// Panics if a notification is lost or its body changes.
pub fn kill_while_delivering(database: &Database, rounds: usize) {
    let begin = |round: usize| format!("2026-01-10T{:02}:{:02}:00Z", 12 + round / 60, round % 60);
    let clock = Clock::at(&begin(0));
    let receiver = Receiver::answering(|_| {
        thread::sleep(Duration::from_millis(5));
        HookAnswer::of(204)
    });
    let mut server = Server::start_on(database, &clock);
    let key = Client::admin(&server).generate_key(&json!({}));
    let mut client = Client::key(&server, &key);
    let endpoint = Endpoint::create(&client, &receiver, &json!({}));
    catalog::make_plan(&client);
    for round in 0..rounds {
        let before = receiver.hooks().len();
        // Each contract is a notification.
        for n in 0..10 {
            let customer = format!("customer-{round}-{n}");
            catalog::make_customer(&client, &customer);
            let product = json!({
                "product_pricing_ref": catalog::API_PLAN, "billing_start_date": "2026-01-01", "billing_end_date": "2026-12-31",
            });
            catalog::make_contract(&client, &json!({"customer_ref": customer, "products": [product]}));
        }
        receiver.wait_for(before + 3);
        server.kill_9();
        // The leases of the killed server are over.
        clock.set(&begin(round + 1));
        server = Server::start_on(database, &clock);
        client = Client::key(&server, &key);
    }
    wait_until_all_are_accepted(database, &mut client, &receiver, |_| ());
    let hooks = receiver.hooks();
    let mut bodies: BTreeMap<&str, &str> = BTreeMap::new();
    for hook in &hooks {
        assert!(hook.is_signed_with(&endpoint.secret), "{hook:?}");
        assert_eq!(*bodies.entry(hook.id()).or_insert(&hook.text), hook.text, "a repeat has the same body");
    }
    // A kill loses the results of at most the deliveries that were claimed.
    let repeated = hooks.len() - bodies.len();
    assert!(repeated <= rounds * 20, "{repeated} deliveries are repeated after {rounds} kills");
    endpoint.wait_for(&client, "pending", &json!(0));
    assert_eq!(endpoint.shown(&client)["failed"], json!(0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification_is_signed() {
        // The body and secret of the specification's test vector.
        let hook = Hook {
            headers: BTreeMap::from([
                ("webhook-id".to_owned(), "msg_p5jXN8AQM9LWM0D4loKWxJek".to_owned()),
                ("webhook-timestamp".to_owned(), "1614265330".to_owned()),
                ("webhook-signature".to_owned(), "v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".to_owned()),
            ]),
            text: r#"{"test": 2432232314}"#.to_owned(),
            body: Value::Null,
            status: 204,
        };
        assert!(hook.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
        assert!(!hook.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSx"));
        let long = Hook { text: "x".repeat(200), ..hook };
        assert!(!long.is_signed_with("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"));
    }
}

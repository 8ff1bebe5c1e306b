//! The load generator: HTTP/1.1 with persistent connections, on one thread.
//!
//! [`closed`] keeps a number of connections busy and finds the maximum rate of a server. [`open`] sends requests on a schedule,
//! independently of the server's progress, and measures each response time from the instant at which the request was due.
//! Otherwise a blocked server would look better because of the requests that were not sent meanwhile. Each response is read
//! completely, and its status is counted.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use futures_util::future::{join, join_all};
use hdrhistogram::Histogram;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc};
use tokio::time::sleep_until;

use crate::process::{CpuReading, CpuSeconds, Watched};
use crate::{Failure, Outcome, stop};

/// Duration of a load before its measurement begins. In this time connections are opened and caches are filled.
const WARM_UP: Duration = Duration::from_millis(300);
/// Time after the end of a schedule in which responses still count.
const GRACE: Duration = Duration::from_secs(2);
/// Number of consecutive broken connections after which a server counts as gone.
const MAX_BROKEN: u64 = 1000;
/// Interval at which a load checks whether it must stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Maximum recorded latency: ten minutes. Latencies are recorded in microseconds, with three significant digits.
const MAX_LATENCY_MICROS: u64 = 600_000_000;

/// A server, and the headers that identify the client.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: SocketAddr,
    /// Headers of each request.
    pub(crate) headers: Vec<(String, String)>,
}

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) body: String,
    /// The number of events, or other units, that a response to this request represents.
    pub(crate) worth: u64,
}

impl Outgoing {
    /// Creates a request with a JSON body.
    pub(crate) fn post(path: &str, body: String) -> Self {
        Self { method: Method::POST, path: path.to_owned(), key: None, body, worth: 1 }
    }

    /// Creates a request without a body.
    pub(crate) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), key: None, body: String::new(), worth: 1 }
    }
}

/// A sequence of requests. It returns `None` at its end.
pub(crate) type Requests<'r> = dyn FnMut() -> Option<Outgoing> + 'r;

/// The parameters of a load.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The servers. The connections are spread over them.
    pub(crate) targets: Vec<Target>,
    pub(crate) connections: usize,
    /// The measured time, or `None` to run until the end of the requests.
    pub(crate) seconds: Option<f64>,
    /// The expected status, or `None` for any 2xx status.
    pub(crate) status: Option<u16>,
    /// Whether the bodies of expected responses are stored.
    pub(crate) keep: bool,
    pub(crate) watched: Watched,
}

/// The result of a load.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Measured seconds.
    pub(crate) seconds: f64,
    /// The number of units that the expected responses in that time represent.
    pub(crate) worth: u64,
    /// Responses in that time by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Latencies of expected responses in microseconds.
    pub(crate) latency: Histogram<u64>,
    /// Latencies of all other responses in microseconds.
    pub(crate) latency_of_others: Histogram<u64>,
    /// Unexpected responses with a `Retry-After` header.
    pub(crate) with_retry_after: u64,
    /// Requests whose connection broke.
    pub(crate) broken: u64,
    /// Requests that were due and had no response at the end.
    pub(crate) unanswered: u64,
    /// Body of an unexpected response.
    pub(crate) refusal: Option<String>,
    /// Processor time in the measured seconds.
    pub(crate) cpu: CpuSeconds,
    /// Bodies of expected responses.
    pub(crate) kept: Vec<Bytes>,
}

impl Sample {
    fn new() -> Self {
        Self {
            seconds: 0.0,
            worth: 0,
            statuses: BTreeMap::new(),
            latency: histogram(),
            latency_of_others: histogram(),
            with_retry_after: 0,
            broken: 0,
            unanswered: 0,
            refusal: None,
            cpu: CpuSeconds::default(),
            kept: Vec::new(),
        }
    }

    /// Returns the number of events, or other units, per second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { as_f64(self.worth) / self.seconds } else { 0.0 }
    }

    /// Returns a quantile of the latency of expected responses, in milliseconds.
    pub(crate) fn millis(&self, quantile: f64) -> f64 {
        as_f64(self.latency.value_at_quantile(quantile)) / 1000.0
    }

    /// Returns the number of unexpected responses and of requests without a response.
    pub(crate) fn others(&self) -> u64 {
        self.latency_of_others.len() + self.broken
    }

    /// Returns a description of the unexpected responses, or `None` if every response was expected.
    pub(crate) fn complaint(&self) -> Option<String> {
        (self.others() > 0).then(|| {
            let refusal = self.refusal.as_deref().unwrap_or_default();
            format!("{:?} by status, {} connections broke; one said {refusal}", self.statuses, self.broken)
        })
    }
}

pub(crate) fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Keeps connections busy until the end of the time or of the requests.
///
/// # Errors
/// Returns [`Failure::Stopped`] after a signal. Also fails if no server responds.
pub(crate) fn closed(plan: &Plan, requests: &mut Requests<'_>) -> Outcome<Sample> {
    let runtime = runtime()?;
    runtime.block_on(async {
        let begins = Instant::now() + plan.seconds.map_or(Duration::ZERO, |_| WARM_UP);
        let shared = Shared::new(plan, requests, begins);
        let workers = join_all((0..plan.connections).map(|number| shared.keep_busy(number)));
        let (_, cpu) = join(workers, shared.look_at_processors()).await;
        shared.sample(cpu)
    })
}

/// Sends requests on a schedule, `rate` per second, and measures their times from the instants at which they were due.
///
/// # Errors
/// Returns [`Failure::Stopped`] after a signal. Also fails if no server responds.
pub(crate) fn open(plan: &Plan, rate: f64, grace: bool, requests: &mut Requests<'_>) -> Outcome<Sample> {
    let seconds = plan.seconds.ok_or_else(|| Failure::new("a schedule has an end"))?;
    let (due, schedule) = mpsc::unbounded_channel();
    let begins = Instant::now() + WARM_UP;
    let pace = std::thread::spawn(move || {
        let ends = begins + Duration::from_secs_f64(seconds);
        let mut sent = 0_u64;
        loop {
            let next = begins - WARM_UP + Duration::from_secs_f64(as_f64(sent) / rate);
            if next >= ends || stop::is_asked() {
                return;
            }
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
            if due.send(next).is_err() {
                return;
            }
            sent += 1;
        }
    });
    let runtime = runtime()?;
    let sample = runtime.block_on(async {
        let shared = Shared::new(plan, requests, begins);
        let schedule = Mutex::new(schedule);
        let workers = join_all((0..plan.connections).map(|number| shared.follow(number, &schedule)));
        let ends = shared.ends.unwrap_or(begins) + if grace { GRACE } else { Duration::ZERO };
        let until = tokio::time::timeout_at(ends.into(), workers);
        let (_, cpu) = join(until, shared.look_at_processors()).await;
        let mut left = 0;
        let mut schedule = schedule.into_inner();
        while schedule.try_recv().is_ok() {
            left += 1;
        }
        let mut sample = shared.sample(cpu)?;
        sample.unanswered = left + shared.under_way.get();
        Ok(sample)
    });
    // Requests in flight end with their connections.
    drop(runtime);
    pace.join().map_err(|_| Failure::new("the schedule's thread panicked"))?;
    sample
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// The shared state of the connections of one load.
struct Shared<'p, 'r> {
    plan: &'p Plan,
    requests: RefCell<&'p mut Requests<'r>>,
    begins: Instant,
    ends: Option<Instant>,
    last_answer: Cell<Instant>,
    ran_out: Cell<bool>,
    under_way: Cell<u64>,
    broken_in_a_row: Cell<u64>,
    gone: RefCell<Option<String>>,
    sample: RefCell<Sample>,
}

type Connection = Option<SendRequest<Full<Bytes>>>;

struct Answer {
    status: u16,
    retry_after: bool,
    body: Bytes,
}

impl<'p, 'r> Shared<'p, 'r> {
    fn new(plan: &'p Plan, requests: &'p mut Requests<'r>, begins: Instant) -> Self {
        Self {
            plan,
            requests: RefCell::new(requests),
            begins,
            ends: plan.seconds.map(|seconds| begins + Duration::from_secs_f64(seconds)),
            last_answer: Cell::new(begins),
            ran_out: Cell::new(false),
            under_way: Cell::new(0),
            broken_in_a_row: Cell::new(0),
            gone: RefCell::new(None),
            sample: RefCell::new(Sample::new()),
        }
    }

    fn is_over(&self) -> bool {
        self.ends.is_some_and(|ends| Instant::now() >= ends) || self.ran_out.get() || self.is_cut()
    }

    fn is_cut(&self) -> bool {
        stop::is_asked() || self.gone.borrow().is_some()
    }

    fn next(&self) -> Option<Outgoing> {
        let next = (self.requests.borrow_mut())();
        self.ran_out.set(next.is_none());
        next
    }

    async fn keep_busy(&self, number: usize) {
        let mut connection = None;
        while !self.is_over() {
            let Some(outgoing) = self.next() else { return };
            self.exchange(&mut connection, number, outgoing, Instant::now()).await;
        }
    }

    async fn follow(&self, number: usize, schedule: &Mutex<mpsc::UnboundedReceiver<Instant>>) {
        let mut connection = None;
        while !self.is_cut() {
            // One sender waits for the schedule, the others wait for their turn. A free sender takes the next request that is due.
            let due = schedule.lock().await.recv().await;
            let Some((due, outgoing)) = due.and_then(|due| Some((due, self.next()?))) else { return };
            self.exchange(&mut connection, number, outgoing, due).await;
        }
    }

    /// Sends a request and measures the time of its response from an instant.
    async fn exchange(&self, connection: &mut Connection, number: usize, outgoing: Outgoing, from: Instant) {
        let target = &self.plan.targets[number % self.plan.targets.len()];
        let worth = outgoing.worth;
        self.under_way.set(self.under_way.get() + 1);
        let answer = ask(connection, target, outgoing).await;
        self.under_way.set(self.under_way.get() - 1);
        match answer {
            Ok(answer) => self.count(answer, worth, from),
            Err(reason) => {
                *connection = None;
                self.sample.borrow_mut().broken += 1;
                self.broken_in_a_row.set(self.broken_in_a_row.get() + 1);
                if self.broken_in_a_row.get() >= MAX_BROKEN {
                    self.gone.replace(Some(format!("nobody answers at {}: {reason}", target.address)));
                }
            }
        }
    }

    fn count(&self, answer: Answer, worth: u64, from: Instant) {
        let now = Instant::now();
        self.broken_in_a_row.set(0);
        // Responses during the warm-up do not count. Responses after the end count only if their requests belong to the measured
        // time.
        if now < self.begins || (self.ends.is_some_and(|ends| now > ends) && from < self.begins) {
            return;
        }
        let in_time = self.ends.is_none_or(|ends| now <= ends);
        self.last_answer.set(now);
        let micros = u64::try_from(now.saturating_duration_since(from).as_micros()).unwrap_or(u64::MAX);
        let mut sample = self.sample.borrow_mut();
        *sample.statuses.entry(answer.status).or_default() += 1;
        if self.plan.status.map_or((200..300).contains(&answer.status), |status| status == answer.status) {
            sample.latency.saturating_record(micros);
            // The rate counts the responses within the measured time. The latency counts all requests that were due in that time.
            sample.worth += if in_time { worth } else { 0 };
            if self.plan.keep {
                sample.kept.push(answer.body);
            }
        } else {
            sample.latency_of_others.saturating_record(micros);
            sample.with_retry_after += u64::from(answer.retry_after);
            sample.refusal.get_or_insert_with(|| String::from_utf8_lossy(&answer.body).into_owned());
        }
    }

    /// Returns the processor time at the beginning of the measured time and at its end, if the end is known.
    async fn look_at_processors(&self) -> (CpuReading, Option<CpuReading>) {
        sleep_until(self.begins.into()).await;
        let first = self.plan.watched.cpu();
        let Some(ends) = self.ends else { return (first, None) };
        while !self.is_over() {
            sleep_until((Instant::now() + LOOK_EVERY).min(ends).into()).await;
        }
        (first, Some(self.plan.watched.cpu()))
    }

    fn sample(&self, (first, last): (CpuReading, Option<CpuReading>)) -> Outcome<Sample> {
        stop::check()?;
        if let Some(reason) = self.gone.take() {
            return Err(Failure::new(reason));
        }
        let mut sample = self.sample.replace(Sample::new());
        sample.cpu = first.until(&last.unwrap_or_else(|| self.plan.watched.cpu()));
        let ended = self.last_answer.get().saturating_duration_since(self.begins).as_secs_f64();
        // A load ends early when its requests run out.
        sample.seconds = self.plan.seconds.filter(|_| !self.ran_out.get()).unwrap_or(ended);
        Ok(sample)
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_MICROS, 3).expect("valid histogram bounds")
}

async fn ask(connection: &mut Connection, target: &Target, outgoing: Outgoing) -> Result<Answer, String> {
    let stated = |error: &dyn std::error::Error| error.to_string();
    if connection.as_ref().is_none_or(SendRequest::is_closed) {
        let stream = TcpStream::connect(target.address).await.map_err(|error| stated(&error))?;
        stream.set_nodelay(true).map_err(|error| stated(&error))?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| stated(&error))?;
        tokio::spawn(driver);
        *connection = Some(sender);
    }
    let sender = connection.as_mut().ok_or("no connection")?;
    let mut request = Request::builder().method(outgoing.method).uri(outgoing.path).header(header::HOST, "localhost");
    for (name, value) in &target.headers {
        request = request.header(name, value);
    }
    if let Some(key) = outgoing.key {
        request = request.header("Idempotency-Key", key);
    }
    if !outgoing.body.is_empty() {
        request = request.header(header::CONTENT_TYPE, "application/json");
    }
    let request = request.body(Full::new(Bytes::from(outgoing.body))).map_err(|error| stated(&error))?;
    sender.ready().await.map_err(|error| stated(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| stated(&error))?;
    let (status, retry_after) = (answer.status().as_u16(), answer.headers().contains_key(header::RETRY_AFTER));
    let body = answer.into_body().collect().await.map_err(|error| stated(&error))?.to_bytes();
    Ok(Answer { status, retry_after, body })
}

//! The load generator: HTTP/1.1 with connections that stay open, on one thread.
//!
//! [`closed`] keeps a number of connections busy and finds the most a server does. [`open`] sends by a schedule, whatever the
//! server does, and counts the time of an answer from when its request was due, so that a server that stands still isn't
//! flattered by requests that weren't sent meanwhile. Each answer is read whole and its status counted.

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

use crate::process::{CpuSeconds, Watched};
use crate::{Failure, Outcome, stop};

/// How long a load goes on before it is measured: connections are opened and caches filled.
const WARM_UP: Duration = Duration::from_millis(300);
/// How long answers may come after the end of a schedule.
const GRACE: Duration = Duration::from_secs(2);
/// How many connections in a row may break before a server counts as gone.
const MAX_BROKEN: u64 = 1000;
/// How often a load looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Latencies are kept to three digits, in microseconds, up to ten minutes.
const MAX_LATENCY_MICROS: u64 = 600_000_000;

/// Who is asked, and by whom.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Sent with each request.
    pub(crate) headers: Vec<(String, String)>,
}

/// A request to send.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) key: Option<String>,
    pub(crate) body: String,
    /// How many events, or other things, an answer of it stands for.
    pub(crate) worth: u64,
}

impl Outgoing {
    /// A body of JSON.
    pub(crate) fn post(path: &str, body: String) -> Self {
        Self { method: Method::POST, path: path.to_owned(), key: None, body, worth: 1 }
    }

    /// A request without a body.
    pub(crate) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.to_owned(), key: None, body: String::new(), worth: 1 }
    }
}

/// Which requests come one after the other; `None` when there are no more.
pub(crate) type Requests<'r> = dyn FnMut() -> Option<Outgoing> + 'r;

/// How a load is put on.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Connections are spread over them.
    pub(crate) targets: Vec<Target>,
    pub(crate) connections: usize,
    /// Measured time; without one, until there are no more requests.
    pub(crate) seconds: Option<f64>,
    /// The status that is wanted; any of 2xx when there is none.
    pub(crate) status: Option<u16>,
    /// Whether bodies of wanted answers are kept.
    pub(crate) keep: bool,
    pub(crate) watched: Watched,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Sample {
    /// Measured seconds.
    pub(crate) seconds: f64,
    /// What the wanted answers in that time stood for.
    pub(crate) worth: u64,
    /// Answers in that time by status.
    pub(crate) statuses: BTreeMap<u16, u64>,
    /// Microseconds of wanted answers.
    pub(crate) latency: Histogram<u64>,
    /// Microseconds of all others.
    pub(crate) latency_of_others: Histogram<u64>,
    /// Refusals that say when to come again.
    pub(crate) with_retry_after: u64,
    /// Requests whose connection broke.
    pub(crate) broken: u64,
    /// Requests that were due and had no answer at the end.
    pub(crate) unanswered: u64,
    /// Body of an answer that wasn't wanted.
    pub(crate) refusal: Option<String>,
    /// Processor time in the measured seconds.
    pub(crate) cpu: CpuSeconds,
    /// Bodies of wanted answers.
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

    /// Events, or whatever the answers stand for, in a second.
    pub(crate) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { as_f64(self.worth) / self.seconds } else { 0.0 }
    }

    /// Milliseconds within which a share of the wanted answers came.
    pub(crate) fn millis(&self, quantile: f64) -> f64 {
        as_f64(self.latency.value_at_quantile(quantile)) / 1000.0
    }

    /// Answers of other statuses than the wanted one, and requests without an answer.
    pub(crate) fn others(&self) -> u64 {
        self.latency_of_others.len() + self.broken
    }

    /// What to say when an answer wasn't the wanted one.
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

/// Keeps connections busy until the time is over or there are no more requests.
///
/// # Errors
/// [`Failure::Stopped`], or when nobody answers.
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

/// Sends requests by a schedule, `rate` a second, and counts their time from when they were due.
///
/// # Errors
/// [`Failure::Stopped`], or when nobody answers.
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
    // What is under way ends with its connections.
    drop(runtime);
    pace.join().map_err(|_| Failure::new("the schedule's thread panicked"))?;
    sample
}

fn runtime() -> Outcome<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().enable_all().build()?)
}

/// What the connections of one load have in common.
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
            // One waits for the schedule, the others for their turn: whoever is free takes what is due next.
            let due = schedule.lock().await.recv().await;
            let Some((due, outgoing)) = due.and_then(|due| Some((due, self.next()?))) else { return };
            self.exchange(&mut connection, number, outgoing, due).await;
        }
    }

    /// Sends a request and counts its answer from an instant on.
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
        // Of what comes after the end, only what was sent in the measured time says something.
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
            // A rate counts what was answered in its time, a latency whatever was due in it.
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

    /// Processor time from the beginning of the measured time to its end.
    async fn look_at_processors(&self) -> CpuSeconds {
        sleep_until(self.begins.into()).await;
        let first = self.plan.watched.cpu();
        let Some(ends) = self.ends else { return first };
        while !self.is_over() {
            sleep_until((Instant::now() + LOOK_EVERY).min(ends).into()).await;
        }
        first.until(self.plan.watched.cpu())
    }

    fn sample(&self, cpu: CpuSeconds) -> Outcome<Sample> {
        stop::check()?;
        if let Some(reason) = self.gone.take() {
            return Err(Failure::new(reason));
        }
        let mut sample = self.sample.replace(Sample::new());
        sample.cpu = if self.ends.is_some() { cpu } else { cpu.until(self.plan.watched.cpu()) };
        let ended = self.last_answer.get().saturating_duration_since(self.begins).as_secs_f64();
        // Requests that ran out end a load before its time.
        sample.seconds = self.plan.seconds.filter(|_| !self.ran_out.get()).unwrap_or(ended);
        Ok(sample)
    }
}

fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, MAX_LATENCY_MICROS, 3).expect("bounds that a histogram can have")
}

async fn ask(connection: &mut Connection, target: &Target, outgoing: Outgoing) -> Result<Answer, String> {
    let said = |error: &dyn std::error::Error| error.to_string();
    if connection.as_ref().is_none_or(SendRequest::is_closed) {
        let stream = TcpStream::connect(target.address).await.map_err(|error| said(&error))?;
        stream.set_nodelay(true).map_err(|error| said(&error))?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.map_err(|error| said(&error))?;
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
    let request = request.body(Full::new(Bytes::from(outgoing.body))).map_err(|error| said(&error))?;
    sender.ready().await.map_err(|error| said(&error))?;
    let answer = sender.send_request(request).await.map_err(|error| said(&error))?;
    let (status, retry_after) = (answer.status().as_u16(), answer.headers().contains_key(header::RETRY_AFTER));
    let body = answer.into_body().collect().await.map_err(|error| said(&error))?.to_bytes();
    Ok(Answer { status, retry_after, body })
}

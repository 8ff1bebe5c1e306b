//! A filled database, the servers that use it and their client.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use acceptance::hooks::{Endpoint, Receiver};
use acceptance::when::{Day, now};
use acceptance::{Client, Database, Key, Server, binary, catalog};
use serde_json::{Value, json};

use crate::ceiling::WORKERS;
use crate::figures::median;
use crate::load::{Outgoing, Plan, Requests, Sample, Target, closed, open};
use crate::process::{self, Watched};
use crate::rows::Labeled;
use crate::traffic::{customer, event};
use crate::{Failure, Outcome, stop};

/// Number of events in a batch that loads data and in a measured batch.
pub(crate) const BATCH: u64 = 1000;
/// Maximum number of events in a batch.
pub(crate) const LARGEST_BATCH: u64 = 10_000;
/// Connections that load data.
const LOADING: usize = 16;
/// Events of each customer before a measurement. The usage writer's cache has a customer from the second one on.
pub(crate) const SEEN: u32 = 3;
/// Maximum time of a server to exit after the signal.
const STOP_SECONDS: u64 = 30;
/// The time in which all notifications get their positions.
const NUMBERED: Duration = Duration::from_secs(3);
/// The lifetime of tokens. A run is shorter.
const TOKEN_SECONDS: &str = "86400";

/// The flags that permit webhooks to this program.
const WEBHOOK_FLAGS: [&str; 3] = ["--webhook-allow-http", "--webhook-allow-networks", "127.0.0.1"];

/// The receiver of all webhooks. It accepts them.
static RECEIVER: LazyLock<Receiver> = LazyLock::new(Receiver::start);

/// A database system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// Returns the name for the table.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::Postgres => "PostgreSQL",
        }
    }

    fn new_database(self) -> Database {
        match self {
            Self::Sqlite => Database::sqlite(),
            Self::Postgres => Database::postgres(),
        }
    }
}

/// The build of the measured server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// The binary next to this program.
    Current {
        /// The number of webhook endpoints, which receive every notification.
        endpoints: usize,
    },
    /// The binary that the current one is compared with.
    Base(PathBuf),
}

impl Build {
    /// Returns whether this is the binary that the current one is compared with.
    pub(crate) const fn is_base(&self) -> bool {
        matches!(self, Self::Base(_))
    }
}

/// A filled database that no server has open.
#[derive(Debug)]
pub(crate) struct Template {
    pub(crate) kind: Kind,
    pub(crate) build: Build,
    pub(crate) customers: u64,
    database: Database,
    key: Key,
    contracts: Vec<String>,
}

impl Template {
    /// Creates customers with one contract each. Every contract has one event in an ended period that is not issued, and one
    /// event in the current period. As many customers have each of the `labeled` prices.
    pub(crate) fn make(kind: Kind, build: &Build, customers: u64, labeled: &[Labeled]) -> Outcome<Self> {
        let database = kind.new_database();
        let server = start(&database, build);
        let key = Client::admin(&server).generate_key(&json!({}));
        let stage = Stage::at(kind, build, database, server, &key, customers);
        catalog::make_plan(&stage.client);
        let made = stage.all("/api/customers/", customers, |n| json!({"customer_ref": customer(n), "name": customer(n)}))?;
        debug_assert_eq!(made.len() as u64, customers);
        let products = json!([catalog::months(catalog::API_PLAN, 1, 1)]);
        let contract = |n| json!({"customer_ref": customer(n), "products": products});
        let made = stage.all("/api/contracts/", customers, contract)?;
        let contracts = made.iter().filter_map(|answer| answer["contract_ref"].as_str().map(ToOwned::to_owned)).collect();
        let over = Day::today().plus_days(-20).noon();
        stage.load(customers, |n| event(&over, n % customers))?;
        let now = acceptance::when::now();
        stage.load(customers, |n| event(&now, n % customers))?;
        if let Build::Current { endpoints } = build {
            // What happened before has a position by then, so that the endpoints receive only what is measured.
            if *endpoints > 0 {
                std::thread::sleep(NUMBERED);
            }
            for _ in 0..*endpoints {
                Endpoint::create(&stage.client, &RECEIVER, &json!({}));
            }
        }
        for prices in labeled {
            stage.make_labeled(*prices)?;
        }
        let database = stage.close()?;
        if kind == Kind::Postgres {
            // Autovacuum does the same sooner or later. Without this statement it can start in the middle of a round.
            database.execute("VACUUM ANALYZE");
        }
        Ok(Self { kind, build: build.clone(), customers, database, key, contracts })
    }

    /// Returns the contract of a customer.
    pub(crate) fn contract(&self, customer: u64) -> &str {
        usize::try_from(customer).ok().and_then(|place| self.contracts.get(place)).map_or("", String::as_str)
    }

    /// Returns a copy of the database that no server has open.
    pub(crate) fn copy(&self) -> Database {
        self.database.copied()
    }

    /// Starts a server on a copy of the database.
    pub(crate) fn serve(&self) -> Stage {
        self.serve_on(self.copy())
    }

    /// Starts a server on a database that was copied from this template.
    pub(crate) fn serve_on(&self, database: Database) -> Stage {
        let server = start(&database, &self.build);
        Stage::at(self.kind, &self.build, database, server, &self.key, self.customers)
    }
}

fn start(database: &Database, build: &Build) -> Server {
    // Password hashing has the default cost of the shipped server, not the cost of the tests.
    let workers = WORKERS.to_string();
    let flags = ["--token-lifetime-seconds", TOKEN_SECONDS, "--password-cost", "12", "--workers", &workers];
    let server = match build {
        Build::Current { .. } => Server::start_with(database, &[&flags[..], &WEBHOOK_FLAGS].concat()),
        Build::Base(binary) => Server::start_of(binary, database, &flags),
    };
    server.without_verification()
}

/// Servers on one database.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    pub(crate) build: Build,
    pub(crate) client: Client,
    pub(crate) customers: u64,
    // This field precedes the database, so that the servers exit before the database is removed.
    servers: Vec<Server>,
    database: Database,
    key: Key,
    postmaster: Option<u32>,
}

impl Stage {
    fn at(kind: Kind, build: &Build, database: Database, server: Server, key: &Key, customers: u64) -> Self {
        let client = Client::key(&server, key);
        let postmaster = (kind == Kind::Postgres).then(|| process::postmaster(database.url())).flatten();
        let servers = vec![server];
        Self { kind, build: build.clone(), client, customers, servers, database, key: key.clone(), postmaster }
    }

    /// Starts one more server.
    pub(crate) fn join(&mut self) {
        self.servers.push(start(&self.database, &self.build));
    }

    /// Returns the process id of the first server.
    pub(crate) fn process(&self) -> u32 {
        self.servers[0].id()
    }

    /// Returns a client that is logged in at the first server as an administrator.
    pub(crate) fn administrator(&self) -> Client {
        Client::admin(&self.servers[0])
    }

    pub(crate) const fn database(&self) -> &Database {
        &self.database
    }

    /// Stops the servers as an operating system does, and returns the database.
    pub(crate) fn close(mut self) -> Outcome<Database> {
        for server in &mut self.servers {
            server.terminate();
            if server.wait_for_exit(Duration::from_secs(STOP_SECONDS)).is_none() {
                return Err(Failure::new(format!("a server goes on {STOP_SECONDS} s after it was asked to end")));
            }
        }
        Ok(self.database)
    }

    /// Stops the servers and starts a new server on the same database.
    pub(crate) fn restart(self) -> Outcome<Self> {
        let (kind, build, key, customers) = (self.kind, self.build.clone(), self.key.clone(), self.customers);
        let database = self.close()?;
        let server = start(&database, &build);
        Ok(Self::at(kind, &build, database, server, &key, customers))
    }

    /// Returns the parameters of a load on the first server, or on all servers.
    pub(crate) fn plan(&self, connections: usize, seconds: Option<f64>, everywhere: bool) -> Plan {
        let servers = if everywhere { &self.servers[..] } else { &self.servers[..1] };
        let target = |server: &Server| Target {
            address: server.address().parse::<SocketAddr>().expect("the harness listens on an address"),
            headers: ["Authorization", "Version"].map(|name| (name.to_owned(), self.client.header(name).to_owned())).into(),
        };
        let watched = Watched { servers: servers.iter().map(Server::id).collect(), postmaster: self.postmaster };
        Plan { targets: servers.iter().map(target).collect(), connections, seconds, status: None, keep: false, watched }
    }

    /// Keeps the first server busy for some seconds.
    pub(crate) fn busy(&self, connections: usize, seconds: f64, requests: &mut Requests<'_>) -> Outcome<Sample> {
        closed(&self.plan(connections, Some(seconds), false), requests)
    }

    /// Sends requests on a schedule; see [`open`].
    pub(crate) fn paced(
        &self,
        connections: usize,
        seconds: f64,
        rate: f64,
        grace: bool,
        requests: &mut Requests<'_>,
    ) -> Outcome<Sample> {
        open(&self.plan(connections, Some(seconds), false), rate, grace, requests)
    }

    /// Creates customers with prices of their own, each with a contract, the limit if there is one, and an event for each price in the current period, so that
    /// a row measures the later events of its totals.
    fn make_labeled(&self, prices: Labeled) -> Outcome<()> {
        self.client.post("/api/usage/products/", &prices.usage_product()).ok();
        catalog::make_pricing(&self.client, prices.name(), &prices.line_items());
        let customer = |n| json!({"customer_ref": prices.customer(n), "name": prices.customer(n)});
        self.all("/api/customers/", self.customers, customer)?;
        let products = json!([catalog::months(prices.name(), 0, 1)]);
        let contract = |n| json!({"customer_ref": prices.customer(n), "products": products});
        self.all("/api/contracts/", self.customers, contract)?;
        if prices.grant(0).is_some() {
            self.all("/api/credit_grants/", self.customers, |n| prices.grant(n).unwrap_or_default())?;
        }
        if prices.limit(0).is_some() {
            self.all("/api/limits/", self.customers, |n| prices.limit(n).unwrap_or_default())?;
        }
        let now = acceptance::when::now();
        let totals = prices.totals();
        self.load(self.customers * totals, |n| prices.event(&now, n / totals, n % totals)).map(drop)
    }

    /// Sends `many` bodies and returns the responses. The server must accept every body.
    fn all(&self, path: &str, many: u64, body: impl Fn(u64) -> Value) -> Outcome<Vec<Value>> {
        let mut bodies = (0..many).map(|n| Outgoing::post(path, body(n).to_string()));
        self.all_of(&mut || bodies.next())
    }

    fn all_of(&self, requests: &mut Requests<'_>) -> Outcome<Vec<Value>> {
        let plan = Plan { keep: true, ..self.plan(LOADING, None, false) };
        let sample = closed(&plan, requests)?;
        if let Some(complaint) = sample.complaint() {
            return Err(Failure::new(format!("{}: loading failed: {complaint}", self.kind.name())));
        }
        let read = |body: &hyper::body::Bytes| serde_json::from_slice(body).map_err(|error| Failure::new(error.to_string()));
        sample.kept.iter().map(read).collect()
    }

    /// Reports `many` events in batches and returns their references.
    pub(crate) fn load(&self, many: u64, event: impl Fn(u64) -> String) -> Outcome<Vec<String>> {
        self.load_in(many, BATCH, event)
    }

    /// Reports `many` events with `batch` events per batch, and returns their references.
    pub(crate) fn load_in(&self, many: u64, batch: u64, event: impl Fn(u64) -> String) -> Outcome<Vec<String>> {
        let mut first = 0;
        let answers = self.all_of(&mut || {
            (first < many).then(|| {
                let events: Vec<String> = (first..many.min(first + batch)).map(&event).collect();
                first += batch;
                Outgoing::post("/api/usage/event/batch", format!("{{\"events\":[{}]}}", events.join(",")))
            })
        })?;
        let results = answers.iter().flat_map(|answer| answer["results"].as_array().into_iter().flatten());
        let reference = |result: &Value| {
            let reference = result["event_ref"].as_str().map(ToOwned::to_owned);
            reference.ok_or_else(|| Failure::new(format!("an event was refused: {result}")))
        };
        results.map(reference).collect()
    }

    /// Reports [`SEEN`] events of every customer. Otherwise a short measurement on many contracts measures how the usage writer's
    /// cache fills.
    pub(crate) fn fill_cache(&self) -> Outcome<()> {
        let at = now();
        (0..SEEN).try_for_each(|_| self.load(self.customers, |n| event(&at, n)).map(drop))
    }

    /// Issues everything that is due and returns the number of issued documents.
    pub(crate) fn issue(&self) -> Outcome<usize> {
        let (mut issued, mut after) = (0, Value::Null);
        loop {
            stop::check()?;
            let body = if after.is_null() { json!({}) } else { json!({"after": after}) };
            let report = self.client.post("/api/billing/run", &body).ok();
            if report["failed"] != json!([]) {
                return Err(Failure::new(format!("a billing run failed: {}", report["failed"])));
            }
            issued += report["issued"].as_array().map_or(0, Vec::len);
            after = report["next"].clone();
            if after.is_null() {
                return Ok(issued);
            }
        }
    }
}

/// Recomputes every invariant of a database.
///
/// # Errors
/// Returns the violated invariants.
pub(crate) fn verify(database: &Database, directory: &Path) -> Outcome<()> {
    let mut command: Command = binary::command(directory);
    command.env("USAGE_BILLING_DATABASE_URL", database.url()).arg("verify").stdin(Stdio::null());
    let output = command.output()?;
    if output.status.success() { Ok(()) } else { Err(Failure::new(String::from_utf8_lossy(&output.stdout).into_owned())) }
}

/// Number of requests for each page or list in a round.
const PAGE_TIMES: usize = 5;

/// Returns the median duration of some requests of a page or list, one after the other.
pub(crate) fn median_millis(client: &Client, path: &str) -> Outcome<f64> {
    let mut millis = Vec::new();
    for _ in 0..PAGE_TIMES {
        stop::check()?;
        let began = Instant::now();
        let status = client.get(path).status;
        millis.push(began.elapsed().as_secs_f64() * 1000.0);
        if status != 200 {
            return Err(Failure::new(format!("{path}: status {status}")));
        }
    }
    Ok(median(millis).unwrap_or_default())
}

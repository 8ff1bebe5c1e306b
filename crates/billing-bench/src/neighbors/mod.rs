//! The share of its rate that an organization keeps while another organization, or a client without credentials, attacks the
//! server.
//!
//! Every case starts a server of its own on the same database. The neighbor is the second organization: it sends single events on
//! 16 connections, first alone and then during the attack. Some cases then probe the server while the attack continues. All
//! programs run on this machine, so compare only figures of one row.

mod cases;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{iter, thread};

use acceptance::server::ADMIN_PASSWORD;
use acceptance::{Client, Database, Key, Request, Server, catalog};
use serde_json::json;

use self::cases::{CASES, LONG_TERM, MONTHS_OVER};
use crate::figures::short;
use crate::load::{Outgoing, Plan, Target, closed};
use crate::process::{self, Watched};
use crate::settings::Settings;
use crate::stage::{Kind, LARGEST_BATCH};
use crate::traffic::{self, Customers, HOT, Spread, customer};
use crate::{Failure, Outcome, stop};

/// Connections of the neighbor.
const CONNECTIONS: usize = 16;
/// Largest batches of the attacking organization. The report of their events exceeds all buffers of a connection.
const BATCHES: usize = 20;
/// Time from the start of an attack to the measurement.
const SETTLE: Duration = Duration::from_secs(2);
/// Maximum time of a server to exit after the signal.
const STOP_LIMIT: Duration = Duration::from_secs(30);
/// Passwords are hashed at the default cost of the shipped server, and tokens are valid longer than a run. Addresses of clients
/// come from a header. Webhooks go to this program.
const FLAGS: [&str; 9] = [
    "--token-lifetime-seconds",
    "86400",
    "--password-cost",
    "12",
    "--trusted-proxies",
    "127.0.0.1",
    "--webhook-allow-http",
    "--webhook-allow-networks",
    "127.0.0.1",
];
/// Starts the server with the limit of open files of most systems.
const LIMITED: [&str; 4] = ["sh", "-c", "ulimit -Sn 1024 && exec \"$@\"", "sh"];

/// An attack and its goals.
struct Case {
    /// The argument that selects the case.
    name: &'static str,
    attack: &'static str,
    /// The share of its rate that the neighbor must keep. 0 for an attack without a neighbor.
    least_share: f64,
    /// A further goal. The measurement decides whether it is met.
    goal: &'static str,
    measure: fn(&Site<'_>) -> Outcome<Finding>,
}

/// The result of a case, or a part of it.
struct Finding {
    /// Events per second of the neighbor before and during the attack.
    rates: Option<[f64; 2]>,
    is_met: bool,
    text: String,
}

impl Finding {
    fn new(is_met: bool, text: impl Into<String>) -> Self {
        Self { rates: None, is_met, text: text.into() }
    }
}

/// Measures the named cases, or all cases, on the databases of the settings. Returns one table.
///
/// # Errors
/// Returns [`Failure::Stopped`] after a signal. Also fails if a name is unknown.
pub(crate) fn measure(settings: &Settings, names: &[&str]) -> Outcome<String> {
    if let Some(unknown) = names.iter().find(|name| CASES.iter().all(|case| case.name != **name)) {
        let known = CASES.map(|case| case.name).join(" ");
        return Err(Failure::new(format!("{unknown} is not a case: take some of {known}")));
    }
    let (seconds, now, machine) = (settings.seconds, acceptance::when::now(), process::machine());
    let arguments = iter::once("neighbors").chain(names.iter().copied()).collect::<Vec<_>>().join(" ");
    let mut text = format!("`SECONDS_EACH={seconds} make bench ARGS=\"{arguments}\"`, {now}, {machine}.\n\n");
    text += "| attack | neighbor before | during | share | goal | met | remarks |\n|---|---|---|---|---|---|---|\n";
    for kind in &settings.kinds {
        eprintln!("bench: filling {}", kind.name());
        let organizations = Organizations::create(*kind);
        for case in CASES.iter().filter(|case| names.is_empty() || names.contains(&case.name)) {
            stop::check()?;
            eprintln!("bench: {}, {}", case.name, kind.name());
            let site = organizations.serve(seconds);
            let measured = (case.measure)(&site);
            stop_server(site.server);
            let finding = match measured {
                Err(Failure::Stopped) => return Err(Failure::Stopped),
                Err(failure) => Finding::new(false, format!("not measured: {failure}")),
                Ok(finding) => finding,
            };
            let line = case.line(*kind, &finding);
            eprint!("bench: {line}");
            text += &line;
        }
    }
    Ok(text)
}

impl Case {
    fn line(&self, kind: Kind, finding: &Finding) -> String {
        let share = finding.rates.map(|[before, during]| if before > 0.0 { during / before } else { 0.0 });
        let is_met = finding.is_met && share.is_none_or(|share| share >= self.least_share);
        let [before, during] = [0, 1].map(|place| finding.rates.map(|rates| format!("{}/s", short(rates[place]))));
        let share = share.map(|share| format!("{:.0} %", share * 100.0));
        let least = (self.least_share > 0.0).then(|| format!("share ≥ {:.0} %", self.least_share * 100.0));
        let goals: Vec<_> = least.into_iter().chain((!self.goal.is_empty()).then(|| self.goal.to_owned())).collect();
        let met = if is_met { "yes" } else { "no" }.to_owned();
        let mut line = format!("| {}, {} |", self.attack, kind.name());
        for column in [before, during, share, Some(goals.join(", ")), Some(met), Some(finding.text.clone())] {
            let _ = write!(line, " {} |", column.as_deref().unwrap_or("–").replace(['|', '\n'], " "));
        }
        line + "\n"
    }
}

/// A database with two organizations that no server has open.
struct Organizations {
    database: Database,
    /// A key of the first organization with all scopes, one that can only read, and a key of the second organization.
    keys: [Key; 3],
}

impl Organizations {
    fn create(kind: Kind) -> Self {
        let database = match kind {
            Kind::Sqlite => Database::sqlite(),
            Kind::Postgres => Database::postgres(),
        };
        let server = start(&database);
        let (first, second) = (Client::admin(&server), Client::second_organization(&database, &server));
        let reader = first.generate_key(&json!({"scopes": ["read"]}));
        let keys = [first.generate_key(&json!({})), reader, second.generate_key(&json!({}))];
        let [attacker, _, neighbor] = keys.each_ref().map(|key| Client::key(&server, key));
        for client in [&attacker, &neighbor] {
            catalog::make_plan(client);
            catalog::make_customer(client, &customer(HOT));
            catalog::make_contract(client, &catalog::contract(&customer(HOT)));
        }
        catalog::make_customer(&attacker, LONG_TERM);
        let products = json!([catalog::months(catalog::API_PLAN, MONTHS_OVER, 0)]);
        let contract = json!({"customer_ref": LONG_TERM, "allow_backdated": true, "products": products});
        catalog::make_contract(&attacker, &contract);
        for batch in iter::from_fn(traffic::batches(1, 1, LARGEST_BATCH)).take(BATCHES) {
            attacker.send(&Request::post(&batch.path, batch.body)).ok();
        }
        stop_server(server);
        Self { database, keys }
    }

    fn serve(&self, seconds: f64) -> Site<'_> {
        let server = start(&self.database);
        let [attacker, reader, neighbor] = self.keys.each_ref().map(|key| Client::key(&server, key));
        Site { seconds, server, database: &self.database, attacker, reader, neighbor }
    }
}

fn start(database: &Database) -> Server {
    let password = [("USAGE_BILLING_ADMIN_PASSWORD", ADMIN_PASSWORD)];
    Server::start_under(&LIMITED, database, &FLAGS, &password).without_verification()
}

/// Ends a server as an operating system does. A server that does not exit in time is killed.
fn stop_server(mut server: Server) {
    server.terminate();
    if server.wait_for_exit(STOP_LIMIT).is_none() {
        eprintln!("bench: the server did not exit {STOP_LIMIT:?} after the signal");
    }
}

/// A server and the clients of its two organizations.
struct Site<'o> {
    /// Seconds of a measurement.
    seconds: f64,
    server: Server,
    database: &'o Database,
    attacker: Client,
    /// The attacking organization with a key that can only read.
    reader: Client,
    neighbor: Client,
}

impl Site<'_> {
    fn address(&self) -> SocketAddr {
        self.server.address().parse().expect("the harness listens on an address")
    }

    fn plan(&self, client: &Client, connections: usize, seconds: Option<f64>) -> Plan {
        let headers = ["Authorization", "Version"].map(|name| (name.to_owned(), client.header(name).to_owned()));
        let targets = vec![Target { address: self.address(), headers: headers.into() }];
        Plan { targets, connections, seconds, status: None, keep: false, watched: Watched::default() }
    }

    /// Returns the rate of the neighbor's single events, and a description of the responses if some are no success.
    fn neighbor_rate(&self, seconds: f64) -> Outcome<(f64, String)> {
        match closed(&self.plan(&self.neighbor, CONNECTIONS, Some(seconds)), &mut single_events()) {
            Ok(sample) if sample.others() == 0 => Ok((sample.rate(), String::new())),
            Ok(sample) => Ok((sample.rate(), format!("neighbor: {}", by_status(&sample.statuses, sample.broken)))),
            Err(Failure::Failed(reason)) => Ok((0.0, reason)),
            Err(failure) => Err(failure),
        }
    }

    /// Measures the neighbor for some seconds before and during an attack, and probes the server while the attack continues.
    /// The attack runs on another thread and ends when its flag is set.
    fn under_attack(
        &self,
        seconds: f64,
        attack: impl FnOnce(&AtomicBool) -> Outcome<Finding> + Send,
        probe: impl FnOnce() -> Outcome<Finding>,
    ) -> Outcome<Finding> {
        let (before, _) = self.neighbor_rate(self.seconds)?;
        let (attacked, ((during, refused), probed)) = beside(attack, || {
            thread::sleep(SETTLE);
            Ok((self.neighbor_rate(seconds)?, probe()?))
        })?;
        let mut texts = vec![probed.text, attacked.text, refused];
        texts.retain(|text| !text.is_empty());
        Ok(Finding { rates: Some([before, during]), is_met: attacked.is_met && probed.is_met, text: texts.join("; ") })
    }

    /// Measures the neighbor while a client sends the same request again and again on its connections.
    fn under_requests(&self, client: &Client, connections: usize, outgoing: &Outgoing) -> Outcome<Finding> {
        let plan = self.plan(client, connections, None);
        self.under_attack(self.seconds, |is_over| send_until(&plan, outgoing, is_over), no_probe)
    }
}

fn no_probe() -> Outcome<Finding> {
    Ok(Finding::new(true, ""))
}

fn single_events() -> impl FnMut() -> Option<Outgoing> {
    traffic::singles(Customers::new(Spread::Hot, 1, 1))
}

/// Sends a request on every connection of a plan, again and again, until the flag is set.
fn send_until(plan: &Plan, outgoing: &Outgoing, is_over: &AtomicBool) -> Outcome<Finding> {
    let (mut statuses, mut broken, mut failure) = (BTreeMap::<u16, u64>::new(), 0, String::new());
    while !is_over.load(Ordering::SeqCst) {
        match closed(plan, &mut || (!is_over.load(Ordering::SeqCst)).then(|| outgoing.clone())) {
            Ok(sample) => {
                sample.statuses.into_iter().for_each(|(status, count)| *statuses.entry(status).or_default() += count);
                broken += sample.broken;
            }
            // A load ends if many connections in a row break. The attack continues.
            Err(Failure::Failed(reason)) => failure = format!(", {reason}"),
            Err(failure) => return Err(failure),
        }
    }
    Ok(Finding::new(true, format!("attack: {}{failure}", by_status(&statuses, broken))))
}

/// Describes responses, for example as `200 × 12, 503 × 3`.
fn by_status(statuses: &BTreeMap<u16, u64>, broken: u64) -> String {
    let counts = statuses.iter().map(|(status, count)| format!("{status} × {count}"));
    let counts: Vec<_> = counts.chain((broken > 0).then(|| format!("broken × {broken}"))).collect();
    if counts.is_empty() { "no responses".to_owned() } else { counts.join(", ") }
}

/// Sets a flag when it is dropped, also after a panic.
struct EndGuard<'f>(&'f AtomicBool);

impl Drop for EndGuard<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Runs work on another thread until other work ends, and returns both results. The flag of the first work is set then.
fn beside<B: Send, F>(
    background: impl FnOnce(&AtomicBool) -> Outcome<B> + Send,
    foreground: impl FnOnce() -> Outcome<F>,
) -> Outcome<(B, F)> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let background = scope.spawn(|| background(&is_over));
        let guard = EndGuard(&is_over);
        let result = foreground();
        drop(guard);
        let background = background.join().map_err(|_| Failure::new("a thread panicked"))?;
        Ok((background?, result?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_meets_its_goals_only_if_the_neighbor_keeps_its_share_and_the_probe_succeeds() {
        let case = CASES.into_iter().find(|case| case.name == "log-ins").expect("a case");
        for (during, is_met, expected) in [(900.0, true, "yes"), (790.0, true, "no"), (900.0, false, "no")] {
            let finding = Finding { rates: Some([1000.0, during]), ..Finding::new(is_met, "a | b") };
            let line = case.line(Kind::Sqlite, &finding);
            let end = format!("{:.0} % | share ≥ 80 %, {} | {expected} | a   b |\n", during / 10.0, case.goal);
            assert!(line.ends_with(&end), "{line}");
        }
    }
}

//! The attacks. Each of them talks to the loopback interface only and ends by itself.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{iter, thread};

use acceptance::hooks::{Endpoint, HangingReceiver, Receiver};
use acceptance::server::{ADMIN_EMAIL, ADMIN_PASSWORD};
use acceptance::when::{self, Day};
use acceptance::{Client, Request, books, catalog, logos};
use serde_json::{Value, json};

use super::{CONNECTIONS, Case, Finding, SETTLE, Site, beside, by_status, no_probe, send_until, single_events};
use crate::figures::short;
use crate::load::{Outgoing, Plan, Sample, Target, as_f64, closed, open};
use crate::process::{forget_peak, peak_mb, resident_mb};
use crate::traffic::{EVENTS, HOT, customer, event};
use crate::{Failure, Outcome, stop};

/// The customer whose contract began ten years ago.
pub(super) const LONG_TERM: &str = "long-term";
/// Past months of that contract.
pub(super) const MONTHS_OVER: i64 = 119;

const BATCH: &str = "/api/usage/event/batch";
const DRY_RUN: &str = "/api/dry_run";
const REPORT: &str = "/api/usage/report";
const LOG_IN: &str = "/auth/login";
const LIVE: &str = "GET /health/live HTTP/1.1\r\nHost: x\r\n";

/// Duration of the wrong log-ins, and their number per second.
const FLOOD_SECONDS: f64 = 20.0;
const FLOOD_RATE: f64 = 55.0;
/// Addresses of the wrong log-ins, one per connection. They are more than the log-ins.
const FLOOD_ADDRESSES: usize = 1200;
const LOG_IN_LIMIT: Duration = Duration::from_secs(10);
const SLOW_READERS: usize = 2;
const REPORTS: usize = 25;
const LISTS: usize = 20;
const LIST_LIMIT_MILLIS: f64 = 1000.0;
const STALLED: usize = 1000;
const LIVE_PROBES: usize = 30;
const READY_PROBES: usize = 20;
const READY_LIMIT_MILLIS: f64 = 500.0;
const IMPORTED_ROWS: usize = 100_000;
const MAX_IMPORTS: u64 = 20;
/// The largest statement that is printed.
const STATEMENT_ROWS: usize = 2000;
const FILES: usize = 10;
const FILE_LIMIT_MILLIS: f64 = 5000.0;
const PRINT_MB: f64 = 50.0;
/// Maximum time to connect, and to wait for data on a connection.
const CONNECTION_LIMIT: Duration = Duration::from_secs(5);
/// Interval of actions that repeat until the end of an attack.
const SECOND: Duration = Duration::from_secs(1);

/// Webhook endpoints of the attacker, each with a backlog of this many notifications.
const HUNG_ENDPOINTS: usize = 16;
const HUNG_BACKLOG: usize = 300;
const WEBHOOKS: usize = 20;
const WEBHOOK_LIMIT: Duration = Duration::from_secs(1);
/// Time after which a webhook counts as lost.
const WEBHOOK_PATIENCE: Duration = Duration::from_secs(60);

/// All cases.
pub(super) const CASES: [Case; 15] = [
    case("wrong-batches", "1 MB of wrong batches with a read key, 1 connection", "", wrong_batches),
    case("wrong-dry-runs", "dry runs of 90,000 members with a read key, 1 connection", "", wrong_dry_runs),
    case("wrong-events", "batches of 10,000 wrong events, 4 connections", "", wrong_events),
    case("dry-runs-4", "dry runs over ten years, 4 connections", "", |site| dry_runs(site, 4)),
    case("dry-runs-48", "dry runs over ten years, 48 connections", "", |site| dry_runs(site, 48)),
    Case { least_share: 0.8, ..case("log-ins", "55 wrong log-ins a second of many addresses", "owner in ≤ 10 s", log_ins) },
    case("reports", "2 slow readers of a large report", "no report refused", reports),
    case("lists", "lists of 1,000 rows, 32 connections", "one row ≤ 1 s", lists),
    case("stalled", "1,000 stalled connections", "no probe fails", stalled),
    case("import", "an import of 100,000 rows", "each row recorded", import),
    case("webhook-tests", "16 tests of a webhook endpoint that hangs", "no list refused", webhook_tests),
    case("hung-webhooks", "16 hung endpoints, 300 notifications each", "20 of 20 webhooks in ≤ 1 s", hung_webhooks),
    Case { least_share: 0.5, ..case("logo", "logos of 25 masks, 4 connections", "a PDF file ≤ 5 s, memory ≤ 50 MB", logo) },
    Case {
        least_share: 0.5,
        ..case("statement", "statements of 2,000 rows, 4 connections", "a PDF file ≤ 5 s, memory ≤ 50 MB", statement)
    },
    Case { least_share: 0.0, ..case("ready", "a database that accepts no writes", "ready ≤ 500 ms", ready) },
];

type Measure = fn(&Site<'_>) -> Outcome<Finding>;

/// Creates a case in which the neighbor must keep the usual share of its rate.
const fn case(name: &'static str, attack: &'static str, goal: &'static str, measure: Measure) -> Case {
    Case { name, attack, least_share: 0.3, goal, measure }
}

fn wrong_batches(site: &Site<'_>) -> Outcome<Finding> {
    let body = format!("{{\"events\":[{}1]}}", "1,".repeat(489_999));
    site.under_requests(&site.reader, 1, &Outgoing::post(BATCH, body))
}

fn wrong_dry_runs(site: &Site<'_>) -> Outcome<Finding> {
    let members: Vec<String> = (0..90_000).map(|number| format!("\"m{number:05}\":1")).collect();
    site.under_requests(&site.reader, 1, &Outgoing::post(DRY_RUN, format!("{{{}}}", members.join(","))))
}

fn wrong_events(site: &Site<'_>) -> Outcome<Finding> {
    let body = format!("{{\"events\":[{}{{\"x\":1}}]}}", "{\"x\":1},".repeat(9_999));
    let size = as_f64(site.attacker.send(&Request::post(BATCH, body.as_str())).bytes.len() as u64) / 1e6;
    let (plan, outgoing, process) = (site.plan(&site.attacker, 4, None), Outgoing::post(BATCH, body), site.server.id());
    let attack = |is_over: &AtomicBool| -> Outcome<Finding> {
        forget_peak(process)?;
        let before = resident_mb(process)?;
        let sent = send_until(&plan, &outgoing, is_over)?;
        let (size, growth) = (short(size), short(peak_mb(process)? - before));
        Ok(Finding::new(true, format!("{size} MB a response, memory grew by {growth} MB; {}", sent.text)))
    };
    site.under_attack(site.seconds, attack, no_probe)
}

fn dry_runs(site: &Site<'_>, connections: usize) -> Outcome<Finding> {
    // A day of the first month of the contract.
    let day = Day::today().plus_days(-10).plus_months(-MONTHS_OVER).plus_days(3);
    let body = json!({"path": EVENTS, "body": catalog::event_on(LONG_TERM, day, 1)});
    site.under_requests(&site.attacker, connections, &Outgoing::post(DRY_RUN, body.to_string()))
}

fn log_ins(site: &Site<'_>) -> Outcome<Finding> {
    let wrong = json!({"email": ADMIN_EMAIL, "password": "not the password"}).to_string();
    let owner = Client::anonymous(&site.server).with_header("X-Forwarded-For", "203.0.113.7");
    if !logs_in(&owner) {
        return Err(Failure::new("the owner cannot log in before the attack"));
    }
    let target = |number: usize| {
        let client = format!("198.18.{}.{}", number / 256, number % 256);
        Target { address: site.address(), headers: vec![("X-Forwarded-For".to_owned(), client)] }
    };
    let targets = (0..FLOOD_ADDRESSES).map(target).collect();
    let plan = Plan { targets, ..site.plan(&site.neighbor, FLOOD_ADDRESSES, Some(FLOOD_SECONDS)) };
    let attack = |_: &AtomicBool| -> Outcome<Finding> {
        let until = Instant::now() + Duration::from_secs_f64(FLOOD_SECONDS);
        let flood = |_: &AtomicBool| open(&plan, FLOOD_RATE, false, &mut || Some(Outgoing::post(LOG_IN, wrong.clone())));
        let (flood, tries) = beside(flood, || log_in_until(&owner, until))?;
        let responses = by_status(&flood.statuses, flood.broken);
        Ok(Finding::new(tries.is_met, format!("{}; attack: {responses}, {} unanswered", tries.text, flood.unanswered)))
    };
    // The attack continues until the measurement has ended.
    site.under_attack(FLOOD_SECONDS - 2.0 * SETTLE.as_secs_f64(), attack, no_probe)
}

fn logs_in(owner: &Client) -> bool {
    let right = json!({"email": ADMIN_EMAIL, "password": ADMIN_PASSWORD});
    owner.try_post(LOG_IN, &right).is_ok_and(|answer| answer.status == 200)
}

/// Logs in again and again. A log-in lasts from its first try to the response that accepts it.
fn log_in_until(owner: &Client, until: Instant) -> Outcome<Finding> {
    let (mut longest, mut tries, mut successes, mut first) = (Duration::ZERO, 0, 0, Instant::now());
    while Instant::now() < until {
        stop::check()?;
        let began = Instant::now();
        let is_in = logs_in(owner);
        tries += 1;
        longest = longest.max(first.elapsed());
        thread::sleep(SECOND.saturating_sub(began.elapsed()));
        if is_in {
            successes += 1;
            first = Instant::now();
        }
    }
    let text = format!("owner in after at most {} s, {successes} of {tries} tries", short(longest.as_secs_f64()));
    Ok(Finding::new(successes > 0 && longest <= LOG_IN_LIMIT, text))
}

fn reports(site: &Site<'_>) -> Outcome<Finding> {
    let (address, bearer) = (site.address(), site.attacker.header("Authorization"));
    let request = format!("GET {REPORT} HTTP/1.1\r\nHost: x\r\nVersion: V0\r\nAuthorization: {bearer}\r\n\r\n");
    let attack = |is_over: &AtomicBool| -> Outcome<Finding> {
        let mut readers = (0..SLOW_READERS).map(|_| connect(address)).collect::<Outcome<Vec<_>>>()?;
        readers.iter_mut().try_for_each(|stream| stream.write_all(request.as_bytes()))?;
        while !is_over.load(Ordering::SeqCst) {
            readers.retain_mut(|stream| stream.read(&mut [0; 1]).is_ok_and(|length| length > 0));
            thread::sleep(SECOND);
        }
        Ok(Finding::new(true, format!("{} of {SLOW_READERS} slow readers have data at the end", readers.len())))
    };
    site.under_attack(site.seconds, attack, || {
        let path = format!("{REPORT}?from={}", when::now());
        let sample = closed(&site.plan(&site.neighbor, 1, None), &mut times(REPORTS, Outgoing::get(&path)))?;
        let (refused, responses) = (sample.others(), by_status(&sample.statuses, sample.broken));
        Ok(Finding::new(refused == 0, format!("{refused} of {REPORTS} reports refused ({responses})")))
    })
}

fn lists(site: &Site<'_>) -> Outcome<Finding> {
    let [one, many] = [1, 1000].map(|rows| Outgoing::get(&format!("/api/usage/event/filter?pageSize={rows}")));
    let list = || -> Outcome<Finding> {
        let sample = closed(&site.plan(&site.neighbor, 1, None), &mut times(LISTS, one.clone()))?;
        let (median, max, refused) = (sample.millis(0.5), max_millis(&sample), sample.others());
        let text = format!("one row: median {} ms, max {} ms, {refused} of {LISTS} refused", short(median), short(max));
        Ok(Finding::new(refused == 0 && max <= LIST_LIMIT_MILLIS, text))
    };
    let (plan, before) = (site.plan(&site.attacker, 32, None), list()?);
    let during = site.under_attack(site.seconds, |is_over| send_until(&plan, &many, is_over), list)?;
    let text = format!("{}; before, {}", during.text, before.text);
    Ok(Finding { text, ..during })
}

/// Returns the longest response time, including that of unexpected responses.
fn max_millis(sample: &Sample) -> f64 {
    as_f64(sample.latency.max().max(sample.latency_of_others.max())) / 1000.0
}

/// Returns a request a number of times.
fn times(count: usize, outgoing: Outgoing) -> impl FnMut() -> Option<Outgoing> {
    let mut requests = iter::repeat_n(outgoing, count);
    move || requests.next()
}

fn stalled(site: &Site<'_>) -> Outcome<Finding> {
    let address = site.address();
    let attack = |is_over: &AtomicBool| -> Outcome<Finding> {
        // The second request has no end.
        let stall = || connect_live(address).filter(|mut stream| stream.write_all(LIVE.as_bytes()).is_ok());
        let attempts = iter::from_fn(|| if is_over.load(Ordering::SeqCst) { None } else { stall() });
        let connections: Vec<TcpStream> = attempts.take(STALLED).collect();
        while !is_over.load(Ordering::SeqCst) {
            thread::sleep(SECOND);
        }
        Ok(Finding::new(true, format!("{} of {STALLED} connections opened", connections.len())))
    };
    site.under_attack(site.seconds, attack, || {
        let failed = (0..LIVE_PROBES).filter(|_| connect_live(address).is_none()).count();
        Ok(Finding::new(failed == 0, format!("{failed} of {LIVE_PROBES} probes failed")))
    })
}

fn logo(site: &Site<'_>) -> Outcome<Finding> {
    let entities = site.attacker.get("/api/entities/names").ok();
    let entity = entities[0]["entity_ref"].as_str().ok_or_else(|| Failure::new("the attacker has no entity"))?;
    let body = json!({"logo": logos::masks(25)}).to_string();
    while_printing(site, &Outgoing::post(&format!("/api/entities/edit/{entity}"), body))
}

fn statement(site: &Site<'_>) -> Outcome<Finding> {
    let path = format!("/api/customers/statement/{}", customer(HOT));
    let draft = site.attacker.post(EVENTS, &event_now()).ok()["related_document_ref"].clone();
    books::issue(&site.attacker, &draft);
    let rows = || site.attacker.get(&format!("{path}?format=csv")).text.lines().count().saturating_sub(1);
    for _ in rows()..STATEMENT_ROWS {
        stop::check()?;
        books::pay(&site.attacker, &draft, &json!({"amount": "0.01"}));
    }
    let finding = while_printing(site, &Outgoing::get(&format!("{path}?format=pdf")))?;
    Ok(Finding { text: format!("{} rows; {}", rows(), finding.text), ..finding })
}

/// Returns an event of the customer with many events, now.
fn event_now() -> Value {
    json!({"timestamp": when::now(), "customer_ref": customer(HOT), "usage_product_ref": catalog::API_CALLS, "quantity": 100_000})
}

/// Measures the neighbor, its PDF files and the memory of the server while the attacker sends requests that print.
fn while_printing(site: &Site<'_>, outgoing: &Outgoing) -> Outcome<Finding> {
    let (plan, process) = (site.plan(&site.attacker, 4, None), site.server.id());
    let draft = site.neighbor.post(EVENTS, &event_now()).ok()["related_document_ref"].clone();
    let file = Outgoing::get(&format!("/api/documents/{}/pdf", draft.as_str().unwrap_or_default()));
    let attack = |is_over: &AtomicBool| -> Outcome<Finding> {
        forget_peak(process)?;
        let before = resident_mb(process)?;
        let sent = send_until(&plan, outgoing, is_over)?;
        let growth = peak_mb(process)? - before;
        Ok(Finding::new(growth <= PRINT_MB, format!("memory grew by {} MB; {}", short(growth), sent.text)))
    };
    site.under_attack(site.seconds, attack, || {
        let sample = closed(&site.plan(&site.neighbor, 1, None), &mut times(FILES, file.clone()))?;
        let (max, refused) = (max_millis(&sample), sample.others());
        let text = format!("PDF files of the neighbor: max {} ms, {refused} of {FILES} refused", short(max));
        Ok(Finding::new(refused == 0 && max <= FILE_LIMIT_MILLIS, text))
    })
}

fn connect(address: SocketAddr) -> Outcome<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, CONNECTION_LIMIT)?;
    stream.set_read_timeout(Some(CONNECTION_LIMIT))?;
    stream.set_write_timeout(Some(CONNECTION_LIMIT))?;
    Ok(stream)
}

/// Returns a connection on which the server has answered that it is live.
fn connect_live(address: SocketAddr) -> Option<TcpStream> {
    let (mut stream, mut buffer) = (connect(address).ok()?, [0; 4096]);
    stream.write_all(format!("{LIVE}\r\n").as_bytes()).ok()?;
    let length = stream.read(&mut buffer).ok()?;
    buffer[..length].starts_with(b"HTTP/1.1 200").then_some(stream)
}

/// The neighbor sends events until the import ends.
fn import(site: &Site<'_>) -> Outcome<Finding> {
    let row = format!("{},{},{},1\n", when::now(), customer(HOT), catalog::API_CALLS);
    let file = format!("timestamp,customer_ref,usage_product_ref,quantity\n{}", row.repeat(IMPORTED_ROWS));
    let (before, _) = site.neighbor_rate(site.seconds)?;
    let plan = site.plan(&site.neighbor, CONNECTIONS, None);
    let neighbor = |is_over: &AtomicBool| {
        let mut events = single_events();
        closed(&plan, &mut || if is_over.load(Ordering::SeqCst) { None } else { events() })
    };
    let (sample, imported) = beside(neighbor, || import_file(&site.attacker, &file))?;
    let text = format!("{}; neighbor: {}", imported.text, by_status(&sample.statuses, sample.broken));
    Ok(Finding { rates: Some([before, sample.rate()]), text, ..imported })
}

/// Imports a file, and continues at each line at which the import stopped. A 200 ends the import, as a program understands it.
fn import_file(client: &Client, file: &str) -> Outcome<Finding> {
    let (began, mut line, mut recorded, mut calls) = (Instant::now(), 1, 0, 0);
    let (mut is_complete, mut stops) = (false, String::new());
    while !is_complete && calls < MAX_IMPORTS {
        stop::check()?;
        calls += 1;
        let path = format!("/api/usage/import?name=neighbors.csv&from_line={line}");
        let answer = client.try_send(&Request::post(&path, file).with("Content-Type", "text/csv"));
        let answer = answer.map_err(|error| Failure::new(error.to_string()))?;
        is_complete = answer.status == 200;
        let result: &Value = if is_complete { &answer.body } else { &answer.body["import"] };
        recorded += result["recorded"].as_u64().unwrap_or_default();
        if let Some(stopped_at) = result["stopped"]["line"].as_u64() {
            line = stopped_at;
            stops += &format!(", {} at line {line}", answer.status);
        } else if !is_complete {
            stops += &format!(", {}", answer.status);
            thread::sleep(SECOND);
        }
    }
    let seconds = short(began.elapsed().as_secs_f64());
    let text = format!("{recorded} of {IMPORTED_ROWS} rows recorded in {calls} calls and {seconds} s{stops}");
    Ok(Finding::new(is_complete && recorded == IMPORTED_ROWS as u64, text))
}

fn webhook_tests(site: &Site<'_>) -> Outcome<Finding> {
    let hanging = HangingReceiver::start();
    let endpoint = Endpoint::create_at(&site.attacker, &hanging.url(), &json!({"enabled": false}));
    let (plan, outgoing) = (site.plan(&site.attacker, 16, None), Outgoing::post(&endpoint.path("test/"), String::new()));
    // A test in progress ends with its receiver.
    let attack = |is_over: &AtomicBool| {
        let finding = beside(
            |_| send_until(&plan, &outgoing, is_over),
            || {
                while !is_over.load(Ordering::SeqCst) {
                    thread::sleep(SECOND / 10);
                }
                drop(hanging);
                Ok(())
            },
        );
        finding.map(|(finding, ())| finding)
    };
    let finding = site.under_attack(site.seconds, attack, || {
        let sample = closed(&site.plan(&site.neighbor, 1, None), &mut times(LISTS, Outgoing::get("/api/customers/filter")))?;
        let (refused, responses) = (sample.others(), by_status(&sample.statuses, sample.broken));
        Ok(Finding::new(refused == 0, format!("{refused} of {LISTS} lists refused ({responses})")))
    });
    site.attacker.delete(&endpoint.path(""));
    finding
}

fn hung_webhooks(site: &Site<'_>) -> Outcome<Finding> {
    for number in 0..HUNG_BACKLOG {
        notify(&site.attacker, &format!("hung-{number}"));
    }
    thread::sleep(SECOND);
    let (hanging, receiver) = (HangingReceiver::start(), Receiver::start());
    let own = Endpoint::create(&site.neighbor, &receiver, &json!({}));
    let attack = |is_over: &AtomicBool| -> Outcome<Finding> {
        let create = |_| {
            let endpoint = Endpoint::create_at(&site.attacker, &hanging.url(), &json!({}));
            site.attacker.post(&endpoint.path("replay/"), &json!({"after": 0})).ok();
            endpoint
        };
        let endpoints: Vec<Endpoint> = (0..HUNG_ENDPOINTS).map(create).collect();
        while !is_over.load(Ordering::SeqCst) {
            thread::sleep(SECOND / 10);
        }
        let count = hanging.count();
        endpoints.iter().for_each(|endpoint| drop(site.attacker.delete(&endpoint.path(""))));
        Ok(Finding::new(count > 0, format!("{count} requests hang")))
    };
    let finding = site.under_attack(site.seconds, attack, || {
        let mut longest = Duration::ZERO;
        let mut in_time = 0;
        for number in 0..WEBHOOKS {
            stop::check()?;
            let (before, began) = (receiver.hooks().len(), Instant::now());
            notify(&site.neighbor, &format!("hooked-{number}"));
            while receiver.hooks().len() == before && began.elapsed() < WEBHOOK_PATIENCE {
                thread::sleep(SECOND / 100);
            }
            longest = longest.max(began.elapsed());
            in_time += usize::from(began.elapsed() <= WEBHOOK_LIMIT);
        }
        let text = format!("{in_time} of {WEBHOOKS} webhooks in time, the longest after {} s", short(longest.as_secs_f64()));
        Ok(Finding::new(in_time == WEBHOOKS, text))
    });
    site.neighbor.delete(&own.path(""));
    finding
}

/// Creates a customer with a contract, which is a notification.
fn notify(client: &Client, customer: &str) {
    catalog::make_customer(client, customer);
    catalog::make_contract(client, &catalog::contract(customer));
}

/// Another program holds the write lock, and events wait for it.
fn ready(site: &Site<'_>) -> Outcome<Finding> {
    let [waiting, probing] = [CONNECTIONS, 1].map(|connections| site.plan(&site.neighbor, connections, None));
    let outgoing = Outgoing::post(EVENTS, event(&when::now(), HOT));
    let held = site.database.hold_writes("usage_events");
    let probe = || {
        let mut probes = times(READY_PROBES, Outgoing::get("/health/ready"));
        let sample = closed(&probing, &mut || {
            thread::sleep(SECOND / 4);
            probes()
        });
        drop(held);
        sample
    };
    let (_, sample) = beside(|is_over| send_until(&waiting, &outgoing, is_over), probe)?;
    let (max, responses) = (max_millis(&sample), by_status(&sample.statuses, sample.broken));
    let text = format!("{READY_PROBES} probes: max {} ms ({responses})", short(max));
    Ok(Finding::new(sample.broken == 0 && max <= READY_LIMIT_MILLIS, text))
}

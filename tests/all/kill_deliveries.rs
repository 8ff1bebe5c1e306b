//! `kill -9` while files with `on_conflict=UPDATE` arrive: each sender sends a file again until it is answered, then corrected files.
//! In the end every record has the facts of the last file, once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use acceptance::random::Random;
use acceptance::when::Day;
use acceptance::{Client, Database, Request, Server, books, catalog};
use serde_json::{Value, json};

const SENDERS: u64 = 2;
/// The number of records of a sender. The first half is of an issued month, the other of the current one.
const RECORDS: u64 = 240;
/// The time after which a sender gives up, so that a failure ends the test.
const PATIENCE: u32 = 3_000;

#[test]
fn sqlite_has_the_last_facts_of_every_record_once_through_kill_9() {
    kill_and_restart(&Database::sqlite(), 6);
}

#[test]
fn postgres_has_the_last_facts_of_every_record_once_through_kill_9() {
    kill_and_restart(&Database::postgres(), 4);
}

/// Returns the quantity of a record in a version of its file. A third of the records changes with each version.
const fn quantity(sender: u64, record: u64, version: u64) -> u64 {
    let changes = (version + record) / 3;
    1 + sender + record % 7 + 10 * changes
}

fn file(sender: u64, version: u64) -> String {
    let today = Day::today();
    let row = |record: u64| {
        let day = today.plus_days(if record < RECORDS / 2 { -20 } else { -1 });
        format!("{sender}/{record},{},acme,api-calls,{}\n", day.noon(), quantity(sender, record, version))
    };
    let head = "idempotency_key,timestamp,customer_ref,usage_product_ref,quantity\n".to_owned();
    (0..RECORDS).fold(head, |file, record| file + &row(record))
}

/// Sends the versions of a file one after the other until `is_over`, each until it is answered. Returns the last version.
fn send(sender: u64, client: &Mutex<Client>, is_over: &AtomicBool) -> u64 {
    let mut version = 0;
    loop {
        let (path, body) = (format!("/api/usage/import?on_conflict=UPDATE&name=file-{sender}-{version}"), file(sender, version));
        let mut attempts = 0;
        loop {
            let now = client.lock().expect("a client").clone();
            match now.try_send(&Request::post(&path, body.clone()).with("Content-Type", "text/csv")) {
                Ok(answer) if answer.status == 200 => {
                    let count = |field: &str| answer.body[field].as_u64().unwrap_or_default();
                    let all = count("recorded") + count("updated") + count("already_there");
                    assert_eq!((all, count("refused")), (RECORDS, 0), "{}", answer.text);
                    break;
                }
                Ok(answer) => assert!(matches!(answer.status, 409 | 503), "{}", answer.text),
                Err(_) => {}
            }
            attempts += 1;
            assert!(attempts < PATIENCE, "version {version} is never answered");
            thread::sleep(Duration::from_millis(10));
        }
        if is_over.load(Ordering::SeqCst) {
            return version;
        }
        version += 1;
    }
}

fn kill_and_restart(database: &Database, rounds: u64) {
    let mut servers: Vec<Server> = (0..if database.is_sqlite() { 1 } else { 2 }).map(|_| Server::start(database)).collect();
    let client = Client::new_key(&servers[0]);
    catalog::make(&client);
    let price = json!({"model": "PER_UNIT", "unit_price": "0.10"});
    catalog::make_pricing(&client, "calls", &json!([catalog::calls(&price)]));
    catalog::sell(&client, &[catalog::months("calls", 1, 0)]);
    books::report(&client, &catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1000));
    books::run(&client);
    let invoice = books::frozen(&books::numbered(&client, "UB-INV-1"));
    // Each sender has a server of its own, if there are two.
    let clients: Vec<Mutex<Client>> = (0..SENDERS)
        .map(|sender| {
            Mutex::new(client.with_own_connections().at(&servers[usize::try_from(sender).expect("few") % servers.len()]))
        })
        .collect();
    let is_over = AtomicBool::new(false);
    let mut random = Random::new(rounds);
    let versions: Vec<u64> = thread::scope(|scope| {
        let senders: Vec<_> = (0..SENDERS)
            .zip(&clients)
            .map(|(sender, client)| {
                let is_over = &is_over;
                scope.spawn(move || send(sender, client, is_over))
            })
            .collect();
        for round in 0..rounds {
            thread::sleep(Duration::from_millis(random.below(400)));
            let place = usize::try_from(round).expect("few") % servers.len();
            servers.remove(place).without_verification().kill_9();
            servers.insert(place, Server::start(database));
            for (sender, client) in clients.iter().enumerate().filter(|(sender, _)| sender % servers.len() == place) {
                let mut client = client.lock().unwrap_or_else(|_| panic!("the client of sender {sender}"));
                *client = client.at(&servers[place]);
            }
        }
        is_over.store(true, Ordering::SeqCst);
        senders.into_iter().map(|sender| sender.join().expect("the sender doesn't panic")).collect()
    });
    let client = client.at(&servers[0]);
    let mut sum = 1000;
    for (sender, version) in (0..SENDERS).zip(&versions) {
        for record in 0..RECORDS {
            let path = format!("/api/usage/event/filter?customer_ref=acme&idempotency_key={sender}%2F{record}");
            let event: Value = catalog::only(client.get(&path).ok());
            assert_eq!(event["quantity"], json!(quantity(sender, record, *version)), "{sender}/{record}, version {version}");
            sum += quantity(sender, record, *version);
        }
    }
    let all = client.get("/api/usage/summary?customer_ref=acme&from=2000-01-01T00:00:00Z&to=2100-01-01T00:00:00Z").ok();
    assert_eq!((&all[0]["quantity"], &all[0]["events"]), (&json!(sum), &json!(1 + SENDERS * RECORDS)), "{all}");
    // What is billed is the price of this sum, over all documents.
    let cents = |document: &Value| -> i64 {
        let total: i64 = document["sub_total"].to_string().replace('.', "").parse().expect("an amount");
        if document["kind"] == "CREDIT" { -total } else { total }
    };
    let billed: i64 = catalog::documents(&client).iter().filter(|document| document["state"] != "VOID").map(cents).sum();
    assert_eq!(billed, i64::try_from(sum * 10).expect("a small sum"));
    assert_eq!(books::frozen(&books::numbered(&client, "UB-INV-1")), invoice, "the invoice is unchanged");
}

//! `kill -9` while usage of an issued invoice is corrected: every correction is stored entirely or not at all.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use acceptance::when::Day;
use acceptance::{Client, Database, Request, Server, books, catalog};
use serde_json::{Value, json};

const THREADS: usize = 4;
const CORRECTIONS: usize = 25;

#[test]
fn sqlite_keeps_corrections_whole_through_kill_9() {
    kill_and_restart(&Database::sqlite(), 3);
}

#[test]
fn postgres_keeps_corrections_whole_through_kill_9() {
    kill_and_restart(&Database::postgres(), 2);
}

/// An event as acknowledged to its thread. The quantity is `None` once the event is deleted.
struct Known {
    event_ref: Value,
    quantity: Option<u64>,
}

/// The events acknowledged to a thread, and the change whose response never came.
#[derive(Default)]
struct ThreadResult {
    events: Vec<Known>,
    in_doubt: Option<Known>,
}

fn kill_and_restart(database: &Database, rounds: usize) {
    let mut server = Server::start(database);
    let mut client = Client::new_key(&server);
    catalog::make(&client);
    let price = json!({"model": "PER_UNIT", "unit_price": "0.10"});
    catalog::make_pricing(&client, "calls", &json!([catalog::calls(&price)]));
    catalog::sell(&client, &[catalog::ended("calls")]);
    books::report(&client, &event(1000));
    books::run(&client);
    let invoice = books::frozen(&books::numbered(&client, "UB-INV-1"));
    let mut live: u64 = 1000;
    for round in 0..rounds {
        let done = AtomicUsize::new(0);
        let reported = thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS)
                .map(|_| {
                    let (client, done) = (client.with_own_connections(), &done);
                    scope.spawn(move || work(&client, done))
                })
                .collect();
            while done.load(Ordering::SeqCst) < CORRECTIONS && threads.iter().any(|thread| !thread.is_finished()) {
                thread::sleep(Duration::from_millis(1));
            }
            // The database is verified before the server starts again.
            server.kill_9();
            threads.into_iter().map(|thread| thread.join().expect("the thread doesn't panic")).collect::<Vec<_>>()
        });
        server = Server::start(database);
        client = client.at(&server);
        let unknown_report =
            reported.iter().filter(|reported| reported.in_doubt.as_ref().is_some_and(|known| known.event_ref.is_null())).count();
        live += reported.iter().map(|reported| stored(&client, reported)).sum::<u64>();
        let billed = billed(&client);
        let new = billed.checked_sub(live).expect("no acknowledged event is lost");
        assert!(
            new.is_multiple_of(7) && new / 7 <= u64::try_from(unknown_report).expect("a small count"),
            "round {round}: {billed} is billed for {live}"
        );
        live = billed;
        assert_eq!(books::frozen(&books::numbered(&client, "UB-INV-1")), invoice, "the invoice is unchanged");
    }
}

fn event(quantity: u64) -> Value {
    catalog::event_on("acme", Day::today().plus_days(-20), quantity)
}

/// Reports late events, changes each of them, deletes some, and issues drafts, until the server is gone.
fn work(client: &Client, done: &AtomicUsize) -> ThreadResult {
    let mut reported = ThreadResult::default();
    loop {
        let Ok(answer) = client.try_post("/api/usage/event", &event(7)) else {
            reported.in_doubt = Some(Known { event_ref: Value::Null, quantity: Some(7) });
            return reported;
        };
        let (event_ref, document_ref) = (answer.body["event_ref"].clone(), answer.text_of("related_document_ref"));
        reported.events.push(Known { event_ref: event_ref.clone(), quantity: Some(7) });
        let is_third = reported.events.len().is_multiple_of(3);
        let wanted = if is_third { None } else { Some(u64::try_from(reported.events.len()).expect("a small count")) };
        let path = format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"));
        let change = match wanted {
            None => client.try_send(&Request { method: "DELETE", ..Request::get(&path) }),
            Some(quantity) => client.try_post("/api/usage/event/update", &json!({"event_ref": event_ref, "quantity": quantity})),
        };
        match change {
            Ok(answer) => {
                assert!(matches!(answer.status, 200 | 204), "{}", answer.text);
                reported.events.last_mut().expect("the event just added").quantity = wanted;
            }
            Err(_) => {
                reported.in_doubt = Some(Known { event_ref, quantity: wanted });
                return reported;
            }
        }
        if reported.events.len().is_multiple_of(5) {
            let path = format!("/api/documents/issue/{document_ref}");
            match client.try_post(&path, &json!({})) {
                // Another thread may have been faster.
                Ok(answer) => assert!(matches!(answer.status, 200 | 409), "{}", answer.text),
                Err(_) => return reported,
            }
        }
        done.fetch_add(1, Ordering::SeqCst);
    }
}

/// Returns the live usage of a thread's events. Checks that each event is as acknowledged or as the change in doubt requested.
fn stored(client: &Client, reported: &ThreadResult) -> u64 {
    let quantity = |known: &Known| {
        let path = format!("/api/usage/event/{}", known.event_ref.as_str().expect("a reference"));
        let answer = client.get(&path);
        let found: Option<u64> =
            (answer.status == 200).then(|| answer.body["quantity"].to_string().parse().expect("a whole quantity"));
        let in_doubt = reported.in_doubt.as_ref().filter(|in_doubt| in_doubt.event_ref == known.event_ref);
        assert!(
            found == known.quantity || in_doubt.is_some_and(|in_doubt| in_doubt.quantity == found),
            "{}: {found:?} is stored, {:?} was acknowledged",
            known.event_ref,
            known.quantity
        );
        found.unwrap_or(0)
    };
    reported.events.iter().map(quantity).sum()
}

/// Returns the quantity that all documents bill together.
fn billed(client: &Client) -> u64 {
    let mut billed: i64 = 0;
    for document in catalog::documents(client).iter().filter(|document| document["state"] != "VOID") {
        let sign = if document["kind"] == "CREDIT" { -1 } else { 1 };
        for [_, _, quantity, amount] in books::lines(document) {
            let quantity: i64 = quantity.parse().expect("a whole quantity");
            let cents: i64 = amount.replace('.', "").parse().expect("an amount");
            assert_eq!(cents, 10 * quantity, "{document}");
            billed += sign * quantity;
        }
    }
    u64::try_from(billed).expect("a quantity that isn't negative")
}

//! `kill -9` while the clock of a sandbox is advanced: the repeated request ends as one that was never interrupted.

use std::thread;
use std::time::Duration;

use acceptance::scene::product;
use acceptance::{Client, Database, Server, books, catalog};
use serde_json::{Value, json};

const FROM: &str = "2026-01-15T00:00:00Z";
const TO: &str = "2027-02-10T00:00:00Z";
const CONTRACTS: usize = 12;

#[test]
fn sqlite_ends_a_killed_advance_as_an_undisturbed_one() {
    kill_and_repeat(&Database::sqlite(), &Database::sqlite(), 12);
}

#[test]
fn postgres_ends_a_killed_advance_as_an_undisturbed_one() {
    kill_and_repeat(&Database::postgres(), &Database::postgres(), 8);
}

fn start(database: &Database) -> (Server, Client) {
    let server = Server::start_with(database, &["--sandbox", "--now", FROM]);
    let client = Client::new_key(&server);
    client.post("/api/usage/products/", &json!({"usage_product_ref": catalog::API_CALLS, "name": "API calls"})).ok();
    client.post("/api/customers/", &json!({"customer_ref": catalog::ACME, "name": "Acme Ltd"})).ok();
    for contract in 1..=CONTRACTS {
        let pricing = format!("plan-{contract}");
        catalog::make_pricing(&client, &pricing, &json!([catalog::fixed("fee", &format!("{contract}.37"))]));
        catalog::sell(
            &client,
            &[catalog::with(
                product(&pricing, &format!("2026-01-{:02}", contract + 14), "2027-01-20"),
                &json!({"net_terms": contract}),
            )],
        );
    }
    (server, client)
}

/// Returns what the customer got: dates and total of each document, and the instants of the notifications by type and document.
fn outcome(database: &Database, client: &Client) -> (Vec<String>, Vec<String>) {
    let row =
        |document: &Value| books::fields(document, ["document_number", "total", "issue_date", "due_date", "state"]).join(" ");
    let mut documents: Vec<String> = catalog::documents(client).iter().map(row).collect();
    documents.sort();
    let notification = |one: &Value| {
        let number = one["data"]["document_number"].as_str().unwrap_or("-");
        format!("{} {number} {}", books::fields(one, ["type", "timestamp"]).join(" "), one["position"])
    };
    let notifications = books::feed(database, client, 0).iter().map(notification).collect();
    (documents, notifications)
}

fn advance(client: &Client) -> bool {
    match client.try_post("/api/clock/advance", &json!({"to": TO})) {
        Ok(answer) => answer.ok()["reached"] == true,
        Err(_) => false,
    }
}

fn kill_and_repeat(database: &Database, other: &Database, kills: u64) {
    let (server, undisturbed) = start(other);
    while !advance(&undisturbed) {}
    let expected = outcome(other, &undisturbed);
    drop(server);

    let (mut server, mut client) = start(database);
    for kill in 0..kills {
        thread::scope(|scope| {
            let advancing = scope.spawn(|| advance(&client));
            thread::sleep(Duration::from_millis(20 + 15 * kill));
            server.kill_9();
            drop(advancing.join());
        });
        server = Server::start_with(database, &["--sandbox"]);
        client = client.at(&server);
    }
    let interrupted_at = client.get("/api/clock").ok()["now"].clone();
    while !advance(&client) {}
    let got = outcome(database, &client);
    assert_eq!(got.0, expected.0, "the last kill was at {interrupted_at}");
    assert_eq!(got.1, expected.1, "the last kill was at {interrupted_at}");
}

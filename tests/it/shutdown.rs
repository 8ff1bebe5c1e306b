//! SIGTERM: the server finishes accepted requests and exits by itself.

use std::time::Duration;

use acceptance::load::Load;
use acceptance::{Client, Database, Server, catalog, on_both_databases};

on_both_databases!(a_server_told_to_stop_under_load_finishes_what_it_answered_and_ends);

/// The limit promised to operators, who write it into unit files and orchestrators.
const EXIT_WITHIN: Duration = Duration::from_secs(10);

fn a_server_told_to_stop_under_load_finishes_what_it_answered_and_ends(database: &Database) {
    let mut server = Server::start_with(database, &["--run-every-seconds", "1"]);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::make_contract(&client, &catalog::contract("acme"));
    let load = Load::start(&client, 4, |_, _| catalog::event("acme", 1));
    load.wait_for(40);

    server.terminate();

    let status = server.wait_for_exit(EXIT_WITHIN).expect("the server exits in time");
    assert_eq!(status.code(), Some(0), "{}", server.stderr());
    let reported = load.join();
    let restarted = Server::start(database);
    let client = client.at(&restarted);
    let mut acknowledged = 0;
    let mut in_doubt = 0;
    for reported in &reported {
        // Rejections are allowed, failures are not.
        assert!(reported.refused.iter().all(|(status, _)| *status == 503), "{:?}", reported.refused);
        for (_, result) in &reported.acknowledged {
            let event_ref = result["event_ref"].as_str().expect("a reference");
            assert_eq!(client.get(&format!("/api/usage/event/{event_ref}")).status, 200, "{event_ref}");
        }
        acknowledged += reported.acknowledged.len();
        in_doubt += usize::from(reported.in_doubt.is_some());
    }
    let invoice = catalog::current_invoice(&client, &contract_ref);
    let quantity: usize = invoice["products"][0]["line_items"][1]["quantity"].to_string().parse().expect("a whole quantity");
    assert!((acknowledged..=acknowledged + in_doubt).contains(&quantity), "{quantity} of {acknowledged} and at most {in_doubt}");
}

#[test]
fn after_a_clean_stop_the_file_alone_holds_everything() {
    // Repeated, because chance decides whether a thread of the process still has a connection.
    for round in 0..5 {
        let database = Database::sqlite();
        let mut server = Server::start(&database);
        let client = Client::new_key(&server);
        catalog::make(&client);
        catalog::make_contract(&client, &catalog::contract("acme"));
        let load = Load::start(&client, 4, |_, _| catalog::event("acme", 1));
        load.wait_for(20);
        server.terminate();
        let status = server.wait_for_exit(EXIT_WITHIN).expect("the server exits in time");
        assert_eq!(status.code(), Some(0), "{}", server.stderr());
        let reported = load.join();

        let copy = database.copied();

        let restarted = Server::start(&copy);
        let client = client.at(&restarted);
        for (_, result) in reported.iter().flat_map(|reported| &reported.acknowledged) {
            let event_ref = result["event_ref"].as_str().expect("a reference");
            assert_eq!(client.get(&format!("/api/usage/event/{event_ref}")).status, 200, "round {round}: {event_ref}");
        }
    }
}

#[test]
fn an_idle_server_told_to_stop_ends_at_once_with_connections_open() {
    let database = Database::sqlite();
    let mut server = Server::start(&database);
    let client = Client::admin(&server);
    assert_eq!(client.get("/api/customers/filter").status, 200, "the connection stays open");

    server.terminate();

    let status = server.wait_for_exit(EXIT_WITHIN).expect("the server exits in time");
    assert_eq!(status.code(), Some(0), "{}", server.stderr());
    assert!(!server.stderr().contains("panicked"), "{}", server.stderr());
}

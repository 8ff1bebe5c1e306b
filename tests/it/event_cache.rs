//! What the server keeps in memory for events is used only while it is current, on one server and on several.

mod lives;

use acceptance::when::Day;
use acceptance::{Client, Database, Server, books, catalog, on_both_databases};
use serde_json::Value;

on_both_databases!(no_usage_lands_on_a_document_that_was_issued_without_a_new_stamp);

/// The number of events after which a server has what it needs in its cache.
const UNTIL_CACHED: usize = 4;

/// Issues a document behind the server's back. The contract's lock is not taken, and its stamp does not change, as if the code
/// had forgotten it. The check of the insert then is the only safeguard.
fn no_usage_lands_on_a_document_that_was_issued_without_a_new_stamp(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let event = catalog::event(catalog::ACME, 1);
    for _ in 0..UNTIL_CACHED {
        books::report(&client, &event);
    }
    let on_the_invoice = || {
        database.ask(
            "SELECT count(*) FROM usage_events WHERE document_id IN (SELECT document_id FROM documents WHERE purpose = 'REGULAR')",
        )
    };
    assert_eq!(on_the_invoice(), [UNTIL_CACHED.to_string()]);
    database.execute("UPDATE documents SET lifecycle = 'ISSUED', issue_date = period_start, total_minor = 0");
    // The document has no frozen content, so the event may be refused. Otherwise it is on a debit.
    let answer = client.post("/api/usage/event", &event);
    assert_eq!(on_the_invoice(), [UNTIL_CACHED.to_string()], "{}", answer.text);
    // The server's stop checks the database with `verify`.
    database.execute("UPDATE documents SET lifecycle = 'DRAFT', issue_date = NULL, total_minor = NULL WHERE purpose = 'REGULAR'");
}

#[test]
fn two_servers_notice_what_the_other_one_changed() {
    let database = Database::postgres();
    let (one, other) = (Server::start(&database), Server::start(&database));
    let one = Client::new_key(&one);
    let other = one.at(&other);
    catalog::make(&one);
    catalog::make_contract(&one, &catalog::past_contract(catalog::ACME));
    let event = catalog::event_on(catalog::ACME, Day::today().plus_days(-20), 1);
    let document = |client: &Client| books::report(client, &event)["related_document_ref"].clone();
    let mut documents: Vec<Value> = Vec::new();
    for client in [&one, &other] {
        documents.extend((0..UNTIL_CACHED).map(|_| document(client)));
    }
    documents.dedup();
    let [draft] = documents.as_slice() else { panic!("one draft bills all events: {documents:?}") };
    // One server issues the draft, and both have it in their caches.
    books::run(&one);
    let corrections = [&other, &one, &other].map(document);
    assert!(corrections.iter().all(|correction| correction != draft), "{corrections:?}");
    assert_eq!(corrections[0], corrections[1], "one debit corrects the invoice");
}

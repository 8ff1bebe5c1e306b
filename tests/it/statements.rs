//! The number of statements that a request sends, according to PostgreSQL's log. Statements that begin and end a transaction
//! count, and so do statements that read the caller's token.

use std::collections::BTreeMap;

use acceptance::when::Day;
use acceptance::{Client, Database, Request, Server, books, catalog, when};
use serde_json::{Value, json};

/// The number of contracts that the events of a batch belong to: the most events that one batch accepts.
const CONTRACTS: usize = 1000;

/// The number of events in a group.
const GROUP: usize = 64;

/// The number of contracts whose documents a billing run issues in one transaction.
const BILLED_TOGETHER: usize = 50;

/// The number of events in a group of events that are too late for their invoices.
const LATE_GROUP: usize = 32;

/// Parts of the statements that a server sends beside those of requests: each second it checks whether its database is ready;
/// after a request it numbers notifications and looks for due deliveries; about once a minute it records when an API key was
/// last used; from time to time it reads its secrets again. A transaction with one of them is no request's.
const BESIDE_REQUESTS: [&str; 13] = [
    "FROM pg_settings",
    "to_regclass('pg_dist_partition')",
    "INSERT INTO notification_heads",
    "FROM \"restores\"",
    "FROM \"notifications\" WHERE (\"notifications\".\"position\" IS NULL)",
    "FROM notifications n WHERE n.organization_id",
    "UPDATE notifications SET position",
    "UPDATE \"notification_heads\"",
    "\"webhook_",
    "INTO webhook_",
    "FROM webhook_endpoints e WHERE e.enabled",
    "UPDATE \"api_keys\" SET \"last_used_at\"",
    "signing_secrets",
];

/// Returns the statements that the requests of some work send. The others are known by their transaction, because each
/// connection of the server serves requests and other work in turn.
fn sent(database: &Database, work: impl FnOnce()) -> Vec<String> {
    let logged = database.statements_during(work);
    let mut of_connections: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for statement in &logged {
        of_connections.entry(&statement.connection).or_default().push(&statement.text);
    }
    of_connections.into_values().flat_map(transactions).filter(is_of_a_request).flatten().map(ToOwned::to_owned).collect()
}

/// Returns the statements of a connection by transaction, without those of a transaction that began before the first statement.
fn transactions(statements: Vec<&str>) -> Vec<Vec<&str>> {
    let (begins, ends) =
        (|statement: &str| statement.starts_with("BEGIN"), |statement: &str| statement == "COMMIT" || statement == "ROLLBACK");
    let mut transactions: Vec<Vec<&str>> = Vec::new();
    let mut is_open = false;
    for statement in statements {
        if ends(statement) && !is_open {
            transactions.clear();
            continue;
        }
        match transactions.last_mut() {
            Some(open) if is_open => open.push(statement),
            _ => transactions.push(vec![statement]),
        }
        is_open = (is_open || begins(statement)) && !ends(statement);
    }
    transactions
}

fn is_of_a_request(transaction: &Vec<&str>) -> bool {
    let is_beside = |statement: &&str| BESIDE_REQUESTS.iter().any(|part| statement.contains(part));
    let has_only_begun = matches!(transaction[..], [only] if only.starts_with("BEGIN"));
    !has_only_begun && !transaction.iter().any(is_beside)
}

/// Returns the statements of the shortest of several requests, because the automatic billing run of every minute may interfere.
fn statements(database: &Database, mut request: impl FnMut()) -> Vec<String> {
    (0..3).map(|_| sent(database, &mut request)).min_by_key(Vec::len).expect("several runs")
}

#[test]
fn many_contracts_are_issued_and_corrected_with_as_few_statements_as_few() {
    let database = Database::one_postgres();
    database.log_statements();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    // The shortest of several runs. One of them may find nothing, because the automatic run of every minute came first.
    let mut issuing: Vec<Vec<String>> = Vec::new();
    let mut customers: Vec<String> = Vec::new();
    for round in 0..3 {
        let of_round: Vec<String> = (0..BILLED_TOGETHER).map(|n| format!("customer-{round}-{n}")).collect();
        for customer in &of_round {
            catalog::make_customer(&client, customer);
            catalog::make_contract(&client, &catalog::past_contract(customer));
        }
        let mut issued = 0;
        let sent = sent(&database, || {
            let report = client.post("/api/billing/run", &json!({})).ok();
            issued = report["issued"].as_array().map_or(0, Vec::len);
            assert_eq!(report["failed"], json!([]));
        });
        if issued == BILLED_TOGETHER {
            issuing.push(sent);
        }
        customers.extend(of_round);
    }
    let issuing = issuing.into_iter().min_by_key(Vec::len).expect("a run that issued all");
    let late = |customer: &String| catalog::event_on(customer, Day::today().plus_days(-20), 1);
    let events: Vec<Value> = customers.iter().take(LATE_GROUP).map(late).collect();
    let report = |events: &[Value]| {
        let answer = client.post("/api/usage/event/batch", &json!({"events": events})).ok();
        assert_eq!(answer["results"].as_array().map(Vec::len), Some(events.len()), "{answer}");
    };
    let opening = sent(&database, || report(&events));
    let adding = statements(&database, || report(&events));
    let alone = statements(&database, || report(&events[..1]));
    let sent = [
        // Eight of the statements update the run's own row: its start, its billed documents and its end. One stores the
        // notifications, one the notices of due dates, and one looks for notices whose instants have come. Three read the
        // names for the response.
        ("a billing run over many contracts", issuing, 46),
        ("events that open a debit on each of many contracts", opening, 37),
        ("events on an open debit on each of many contracts", adding, 28),
        ("an event on an open debit", alone, 26),
    ];
    for (request, sent, most) in sent {
        let count = sent.len();
        assert!(0 < count && count <= most, "{request} sends {count} of at most {most} statements:\n{}", sent.join("\n"));
    }
}

#[test]
fn requests_send_a_few_statements_however_much_is_there() {
    let database = Database::one_postgres();
    database.log_statements();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contract_ref = catalog::sell(&client, &[catalog::months(catalog::API_PLAN, 0, 1)]);
    let event = catalog::event("acme", 1);
    let event_ref = books::report(&client, &event)["event_ref"].clone();

    // The first two events after the start of a server, or after an edit, are read and remembered.
    let mut discount = 0;
    let mut edit = || {
        discount += 1;
        let product = json!({"product_pricing_ref": catalog::API_PLAN, "discount": discount});
        books::edit(&client, &contract_ref, &json!({"products": [product], "include_current_invoice": true})).ok();
    };
    let joining = (0..3).map(|_| {
        edit();
        let events = [(); 2].map(|()| sent(&database, || drop(books::report(&client, &event))));
        events.into_iter().max_by_key(Vec::len).expect("two events")
    });
    let joining = joining.min_by_key(Vec::len).expect("several rounds");
    let on_a_draft = statements(&database, || drop(books::report(&client, &event)));
    let server_without_cache = Server::start_with(&database, &["--event-cache", "0"]);
    let without = client.at(&server_without_cache);
    books::report(&without, &event);
    let uncached = statements(&database, || drop(books::report(&without, &event)));
    drop(server_without_cache);
    let mut quantity = 1;
    let update = statements(&database, || {
        quantity += 1;
        books::update(&client, &event_ref, json!({"quantity": quantity})).ok();
    });
    let edit = statements(&database, edit);
    let current = statements(&database, || drop(books::preview(&client, "current", &contract_ref)));
    // The first event of each contract has opened its draft.
    let customers: Vec<String> = (0..CONTRACTS).map(|n| format!("customer-{n}")).collect();
    for customer in &customers {
        catalog::make_customer(&client, customer);
        catalog::make_contract(&client, &catalog::contract(customer));
    }
    let events: Vec<Value> = customers.iter().map(|customer| catalog::event(customer, 1)).collect();
    let batch = || drop(client.post("/api/usage/event/batch", &json!({"events": events})).ok());
    batch();
    let many = statements(&database, batch);
    let mut key = 0;
    let keyed = statements(&database, || {
        let under_a_key = |mut event: Value| {
            key += 1;
            event["idempotency_key"] = json!(format!("key {key}"));
            event
        };
        let events: Vec<Value> = events[..GROUP].iter().cloned().map(under_a_key).collect();
        client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    });

    let sent = [
        ("an event on a draft in the cache", on_a_draft, 6),
        ("an event on a draft without a cache", uncached, 9),
        ("an event on a draft that joins the cache", joining, 10),
        ("an update", update, 16),
        // One stores the notification of the new version.
        ("an edit", edit, 22),
        ("the current invoice", current, 8),
        ("a batch with an event on each of many contracts in the cache", many, 8),
        ("a group of events with keys, each on its contract in the cache", keyed, 10),
    ];
    for (request, sent, most) in sent {
        let count = sent.len();
        assert!(0 < count && count <= most, "{request} sends {count} of at most {most} statements:\n{}", sent.join("\n"));
    }
}

#[test]
fn an_import_of_recorded_lines_only_reads_them_in_groups() {
    const LINES: usize = 3_000;
    let database = Database::one_postgres();
    database.log_statements();
    let server = Server::start(&database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    catalog::make_contract(&client, &catalog::contract(catalog::ACME));
    let now = when::now();
    let rows: String = (0..LINES).map(|_| format!("{now},acme,api-calls,1\n")).collect();
    let file = format!("timestamp,customer_ref,usage_product_ref,quantity\n{rows}");
    let import = || {
        let request = Request::post("/api/usage/import?name=a.csv", file.clone()).with("Content-Type", "text/csv");
        client.send(&request).ok()
    };
    assert_eq!(import()["recorded"], json!(LINES));
    let again = statements(&database, || assert_eq!(import()["already_there"], json!(LINES)));
    // Each of the three groups of lines is a transaction with one statement. The others belong to the import record.
    let most = 3 * 4 + 20;
    assert!(!again.is_empty() && again.len() <= most, "{} of at most {most} statements:\n{}", again.len(), again.join("\n"));
    let of_table = |table: &str| again.iter().filter(|statement| statement.contains(table)).count();
    assert_eq!((of_table("usage_event_keys"), of_table("usage_events")), (3, 0), "{}", again.join("\n"));
}

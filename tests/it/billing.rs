//! Billing runs: everything due becomes final exactly once, on request and automatically.

use std::time::{Duration, Instant};

use acceptance::when::{self, Day};
use acceptance::{Client, Clock, Database, Server, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_dry_run_shows_what_is_due_and_stores_nothing,
    a_period_that_is_over_is_issued_once,
    usage_dated_in_an_issued_period_goes_on_a_debit_of_its_invoice,
    every_period_of_the_past_is_issued_in_its_order,
    a_contract_whose_books_are_wrong_fails_alone,
    the_server_issues_what_is_due_by_itself,
    a_server_that_starts_with_a_wrong_clock_issues_nothing_until_the_clock_is_right,
    runs_are_told_afterwards_with_what_they_issued_and_what_failed,
);

/// Starts a server with a contract whose only period is over.
fn over(database: &Database) -> (Server, Client, String) {
    let mut contract = catalog::past_contract("acme");
    contract["products"][0]["net_terms"] = json!(14);
    contract["po_number"] = json!("PO-1");
    catalog::stage_with(database, &contract)
}

/// Creates a customer with a contract whose only period is over.
fn sell_past(client: &Client, n: usize) -> String {
    let customer = format!("customer-{n}");
    catalog::make_customer(client, &customer);
    catalog::make_contract(client, &catalog::past_contract(&customer))
}

fn run(client: &Client, dry_run: bool) -> Value {
    let report = client.post("/api/billing/run", &json!({"dry_run": dry_run})).ok();
    assert_eq!(report["dry_run"], dry_run);
    assert_eq!((&report["voided"], &report["failed"]), (&json!([]), &json!([])));
    report["issued"].clone()
}

fn past_event(quantity: u32) -> Value {
    let mut event = catalog::event("acme", quantity);
    event["timestamp"] = json!(Day::today().plus_days(-20).noon());
    event
}

fn a_dry_run_shows_what_is_due_and_stores_nothing(database: &Database) {
    let (_server, client, contract_ref) = over(database);

    for _ in 0..2 {
        let due = catalog::only(run(&client, true));
        assert_eq!((&due["document_ref"], &due["document_number"]), (&Value::Null, &Value::Null));
        assert_eq!((due["kind"].as_str(), due["currency"].as_str()), (Some("INVOICE"), Some("EUR")));
        // 49.00 plus 19 % tax.
        assert_eq!(due["total"].to_string(), "58.31");
        assert_eq!(catalog::documents(&client), Vec::<Value>::new());
    }

    let opened = client.post("/api/usage/event", &past_event(1500)).ok();
    assert_eq!(opened["related_document_numbers"], "UB-INV-1", "no number was used");
    let due = catalog::only(run(&client, true));
    assert_eq!(due["document_number"], "UB-INV-1");
    assert_eq!(due["document_ref"], opened["related_document_ref"]);
    let draft = catalog::only(Value::Array(catalog::documents(&client)));
    assert_eq!((draft["state"].as_str(), &draft["issue_date"]), (Some("DRAFT"), &Value::Null));
    assert_eq!(draft["contract_ref"], json!(contract_ref));
}

fn a_period_that_is_over_is_issued_once(database: &Database) {
    let (_server, client, contract_ref) = over(database);
    let event = client.post("/api/usage/event", &past_event(1500)).ok();
    let before = Day::today();

    let issued = catalog::only(run(&client, false));

    let after = Day::today();
    assert_eq!(issued["document_ref"], event["related_document_ref"]);
    assert_eq!(issued["document_number"], "UB-INV-1");
    let document_ref = issued["document_ref"].as_str().expect("a reference");
    let document = client.get(&format!("/api/documents/{document_ref}")).ok();
    assert_eq!((document["state"].as_str(), document["document_number"].as_str()), (Some("ISSUED"), Some("UB-INV-1")));
    // 49.00 + 60.00, plus 19 % tax.
    assert_eq!((document["total"].to_string(), issued["total"].to_string()), ("129.71".to_owned(), "129.71".to_owned()));
    let issue_date = Day::parse(document["issue_date"].as_str().expect("a date"));
    assert!((before..=after).contains(&issue_date), "issued on {issue_date}");
    assert_eq!(document["due_date"], issue_date.plus_days(14).to_string());
    assert_eq!((&document["overdue"], &document["paid_date"]), (&json!(false), &Value::Null));
    assert_eq!(document["po_number"], "PO-1");

    assert_eq!(run(&client, false), json!([]), "a second run issues nothing");
    assert_eq!(run(&client, true), json!([]));
    assert_eq!(client.get(&format!("/api/documents/{document_ref}")).ok(), document);
    assert_eq!(client.get(&format!("/api/contracts/{contract_ref}")).ok()["state"], "COMPLETED");
    for which in ["current", "next"] {
        assert_eq!(client.get(&format!("/api/contracts/invoices/{which}/{contract_ref}")).ok(), json!([]), "{which}: ended");
    }
}

fn usage_dated_in_an_issued_period_goes_on_a_debit_of_its_invoice(database: &Database) {
    let (server, client, _) = over(database);
    client.post("/api/usage/event", &past_event(1500)).ok();
    let invoice_ref = catalog::only(run(&client, false))["document_ref"].clone();
    let invoice = books::document(&client, &invoice_ref);

    let late = client.post("/api/usage/event", &past_event(100)).ok();

    assert_eq!(late["related_document_numbers"], "UB-DBT-1");
    let debit = books::document(&client, &late["related_document_ref"]);
    assert_eq!((&debit["kind"], &debit["state"], &debit["purpose"]), (&json!("DEBIT"), &json!("DRAFT"), &json!("ADJUSTMENT")));
    assert_eq!((&debit["parent_document_ref"], &debit["parent_document_number"]), (&invoice_ref, &json!("UB-INV-1")));
    // 100 more calls at 0.01, plus 19 % tax.
    assert_eq!(books::totals(&debit), ["1.00", "0.00", "0.19", "1.19", "1.19"]);
    assert_eq!(books::frozen(&books::document(&client, &invoice_ref)), books::frozen(&invoice), "unchanged to the byte");
    assert_eq!(run(&client, false), json!([]), "the debit stays open until tomorrow");
    let documents = catalog::documents(&client);
    server.kill_9();
    let server = Server::start(database);
    assert_eq!(catalog::documents(&client.at(&server)), documents, "unchanged to the byte");
}

fn a_contract_whose_books_are_wrong_fails_alone(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contracts: Vec<String> = (0..7).map(|n| sell_past(&client, n)).collect();
    database.execute("UPDATE customers SET net_terms = 'NONSENSE' WHERE customer_ref = 'customer-4'");

    let report = client.post("/api/billing/run", &json!({})).ok();

    assert_eq!(report["issued"].as_array().map(Vec::len), Some(6), "{report}");
    assert_eq!(catalog::only(report["failed"].clone())["contract_ref"], contracts[4]);
    assert_eq!(catalog::numbers(&catalog::documents(&client), "UB-INV"), [1, 2, 3, 4, 5, 6]);
    database.execute("UPDATE customers SET net_terms = NULL WHERE customer_ref = 'customer-4'");
    assert_eq!(run(&client, false).as_array().map(Vec::len), Some(1), "the contract is billed once it is valid");
}

fn runs_are_told_afterwards_with_what_they_issued_and_what_failed(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let contracts: Vec<String> = (0..3).map(|n| sell_past(&client, n)).collect();
    assert_eq!(client.get("/api/billing/runs/filter").ok(), json!([]));
    assert_eq!(client.post("/api/billing/run", &json!({"dry_run": true})).ok()["run_ref"], Value::Null);
    database.execute("UPDATE customers SET net_terms = 'NONSENSE' WHERE customer_ref = 'customer-1'");

    let report = client.post("/api/billing/run", &json!({})).ok();
    let run = client.get(&format!("/api/billing/runs/{}", report["run_ref"].as_str().expect("a reference"))).ok();
    assert_eq!(
        (&run["state"], &run["contracts"], &run["issued"], &run["failed"]),
        (&json!("FINISHED"), &json!(3), &json!(2), &json!(1))
    );
    let numbers: Vec<&Value> =
        run["documents"].as_array().expect("documents").iter().map(|one| &one["document_number"]).collect();
    let issued: Vec<&Value> = report["issued"].as_array().expect("documents").iter().map(|one| &one["document_number"]).collect();
    assert_eq!(numbers, issued);
    assert_eq!(run["failures"], report["failed"]);
    assert_eq!(catalog::only(run["failures"].clone())["contract_ref"], contracts[1]);
    let listed = client.get("/api/billing/runs/filter");
    assert_eq!(listed.header("x-total-count"), "1");
    let head = catalog::only(listed.ok());
    assert_eq!((&head["run_ref"], &head["documents"]), (&run["run_ref"], &Value::Null));
    assert!(head["actor"].as_str().is_some_and(|actor| actor.starts_with("api_key:")), "{head}");
    assert_eq!(client.get("/api/billing/runs/filter?to=2000-01-01T00:00:00Z").ok(), json!([]));
    let unknown = client.get(&format!("/api/billing/runs/{}", contracts[0]));
    assert_eq!((unknown.status, unknown.text_of("code").as_str()), (404, "billing_run_not_found"));

    // Runs that repeat the same failure don't accumulate in the list.
    let again = [(); 2].map(|()| client.post("/api/billing/run", &json!({})).ok());
    assert!(again.iter().all(|report| report["failed"].as_array().map(Vec::len) == Some(1)), "{again:?}");
    let listed = client.get("/api/billing/runs/filter").ok();
    let refs: Vec<&Value> = listed.as_array().expect("runs").iter().map(|run| &run["run_ref"]).collect();
    assert_eq!(refs, [&again[1]["run_ref"], &run["run_ref"]]);

    // The scheduler issues the document once the data is valid.
    database.execute("UPDATE customers SET net_terms = NULL WHERE customer_ref = 'customer-1'");
    drop(server);
    let server = Server::start_with(database, &["--run-every-seconds", "1"]);
    let client = client.at(&server);
    let started = Instant::now();
    let newest = loop {
        let newest = client.get("/api/billing/runs/filter").ok()[0].clone();
        if newest["actor"] == "scheduler" && newest["state"] == "FINISHED" || started.elapsed() > Duration::from_secs(30) {
            break newest;
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    assert_eq!((&newest["actor"], &newest["issued"], &newest["failed"]), (&json!("scheduler"), &json!(1), &json!(0)));
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(client.get("/api/billing/runs/filter").ok()[0], newest, "runs without effect are not listed");
    // A run in a single transaction is listed, too.
    let keyed = client.with_header("Idempotency-Key", "run-1").post("/api/billing/run", &json!({})).ok();
    let reported = client.get("/api/billing/runs/filter").ok()[0].clone();
    assert_eq!((&reported["run_ref"], &reported["state"]), (&keyed["run_ref"], &json!("FINISHED")));
}

fn every_period_of_the_past_is_issued_in_its_order(database: &Database) {
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    // Four whole months: three are over, and the fourth is the current one.
    let start = Day::today().plus_days(-10).plus_months(-3);
    let mut contract = catalog::contract("acme");
    contract["products"][0]["billing_start_date"] = json!(start.to_string());
    contract["products"][0]["issue_day"] = json!(start.to_string());
    let contract_ref = catalog::make_contract(&client, &contract);

    let issued = run(&client, false);

    let listed = catalog::documents(&client);
    let numbers = |list: &[Value]| -> Vec<Value> { list.iter().map(|document| document["document_number"].clone()).collect() };
    assert_eq!(numbers(issued.as_array().expect("a list")), ["UB-INV-1", "UB-INV-2", "UB-INV-3"]);
    assert_eq!(numbers(&listed), ["UB-INV-1", "UB-INV-2", "UB-INV-3"]);
    for (months, document) in (0..).zip(&listed) {
        assert_eq!(document["period_start"], start.plus_months(months).to_string());
        assert_eq!(document["period_end"], start.plus_months(months + 1).plus_days(-1).to_string());
        assert_eq!(document["number_in_contract"], json!(months + 1));
    }
    let current = catalog::current_invoice(&client, &contract_ref);
    assert_eq!(
        (&current["document_number"], current["period_start"].as_str()),
        (&Value::Null, Some(&*start.plus_months(3).to_string()))
    );
}

fn the_server_issues_what_is_due_by_itself(database: &Database) {
    let (server, client, _) = over(database);
    assert_eq!(catalog::documents(&client), Vec::<Value>::new(), "this server has no scheduler");
    drop(server);

    let server = Server::start_with(database, &["--run-every-seconds", "1"]);
    let client = client.at(&server);
    let started = Instant::now();
    while catalog::documents(&client).is_empty() && started.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(50));
    }

    let document = catalog::only(Value::Array(catalog::documents(&client)));
    assert_eq!((document["document_number"].as_str(), document["state"].as_str()), (Some("UB-INV-1"), Some("ISSUED")));
}

fn a_server_that_starts_with_a_wrong_clock_issues_nothing_until_the_clock_is_right(database: &Database) {
    let (server, client, _) = over(database);
    drop(server);
    let clock = Clock::at(&Day::today().plus_days(45).noon());
    let server = Server::start_on_with(database, &clock, &["--run-every-seconds", "1"]);
    let started = Instant::now();
    while !server.stderr().contains("more than a day ahead of the latest instant in the database") {
        assert!(started.elapsed() < Duration::from_secs(30), "no warning: {}", server.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
    // Several runs would have begun meanwhile.
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(database.ask("SELECT count(*) FROM issued_documents"), ["0"]);
    let admin = Client::admin(&server);
    let refused = admin.post("/api/billing/run", &json!({}));
    assert_eq!((refused.status, refused.text_of("code").as_str()), (409, "clock_not_trusted"));
    let previewed = admin.post("/api/billing/run", &json!({"dry_run": true})).ok();
    assert_eq!(previewed["issued"].as_array().map(Vec::len), Some(1), "dry runs go on: {previewed}");
    assert_eq!(database.ask("SELECT count(*) FROM issued_documents"), ["0"]);

    clock.set(&when::now());
    let client = client.at(&server);
    let corrected = Instant::now();
    while catalog::documents(&client).is_empty() {
        assert!(corrected.elapsed() < Duration::from_secs(30), "nothing is issued: {}", server.stderr());
        std::thread::sleep(Duration::from_millis(50));
    }
    let document = catalog::only(Value::Array(catalog::documents(&client)));
    assert_eq!((document["document_number"].as_str(), document["state"].as_str()), (Some("UB-INV-1"), Some("ISSUED")));
}

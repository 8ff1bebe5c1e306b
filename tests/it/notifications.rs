//! Notifications: each change has one, in one order. Events on drafts, dry runs and rejected requests have none.

use std::collections::BTreeMap;
use std::thread;

use acceptance::scene::{each, product, refused};
use acceptance::{Client, Clock, Database, Scene, Server, binary, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    what_happens_to_a_document_is_told_with_its_state,
    a_payment_tells_each_document_that_it_settles_once,
    an_event_on_an_open_draft_writes_nothing,
    a_rehearsal_and_a_refused_request_tell_nothing,
    each_version_of_a_contract_is_told_and_so_is_its_end,
    a_document_is_told_to_be_overdue_once_on_the_day_after_its_due_date,
    a_contract_that_is_not_billed_is_told_once_a_day_until_it_is,
    the_feed_is_narrowed_and_read_in_parts,
    many_at_once_leave_one_order_without_a_gap,
    old_notifications_are_forgotten_and_positions_go_on,
    a_restored_database_begins_another_epoch_and_no_client_misses_it,
);

/// Returns the type, the sequence and the state of notifications about documents, and of others the type and the sequence.
fn reported(notifications: &[Value]) -> Vec<String> {
    let one = |notification: &Value| {
        let [kind, sequence] = books::fields(notification, ["type", "sequence"]);
        let data = &notification["data"];
        match data["document_number"].as_str() {
            Some(number) => format!("{kind} {sequence} {number} {} {}", text(&data["state"]), data["amount_due"]),
            None => format!("{kind} {sequence}"),
        }
    };
    notifications.iter().map(one).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The feed as a client reads it, with the position of the last notification.
struct Reader<'d> {
    database: &'d Database,
    after: u64,
}

impl<'d> Reader<'d> {
    const fn new(database: &'d Database) -> Self {
        Self { database, after: 0 }
    }

    /// Returns the next notifications.
    fn read(&mut self, client: &Client) -> Vec<Value> {
        let next = books::feed(self.database, client, self.after);
        for notification in &next {
            assert_eq!(notification["position"], json!(self.after + 1));
            self.after += 1;
        }
        next
    }
}

fn begin(database: &Database) -> (Scene, Reader<'_>) {
    let scene = Scene::begin(database, "2026-01-10");
    scene.pricing("p", &[catalog::fixed("fee", "49.00"), each("1.00")]);
    (scene, Reader::new(database))
}

fn year() -> Value {
    catalog::with(product("p", "2026-01-01", "2026-12-31"), &json!({"net_terms": 30}))
}

fn what_happens_to_a_document_is_told_with_its_state(database: &Database) {
    let (scene, mut reader) = begin(database);
    let contract_ref = scene.sell(&[year()]);
    scene.calls("2026-01-09", 10);
    assert_eq!(reported(&reader.read(&scene.client)), ["contract.changed 1", "document.opened 1 UB-INV-1 DRAFT null"]);
    scene.run_on("2026-02-02");
    let issued = reader.read(&scene.client);
    assert_eq!(reported(&issued), ["document.issued 2 UB-INV-1 ISSUED 59.00"]);
    let invoice = books::numbered(&scene.client, "UB-INV-1");
    let [notification] = issued.as_slice() else { panic!("one: {issued:?}") };
    let entity = scene.entity();
    let data = json!({
        "document_ref": invoice["document_ref"], "document_number": "UB-INV-1", "kind": "INVOICE", "purpose": "REGULAR",
        "state": "ISSUED", "contract_ref": contract_ref, "customer_ref": "acme", "entity_ref": entity, "currency": "EUR",
        "period_start": "2026-01-01", "period_end": "2026-01-31", "total": invoice["total"],
        "amount_due": invoice["amount_due"], "issue_date": "2026-02-02", "due_date": "2026-03-04",
        "parent_document_ref": null, "unapplied_amount": null, "written_off_amount": invoice["written_off_amount"],
    });
    assert_eq!(notification["data"], data);
    assert_eq!(notification["subject"], format!("document:{}", text(&invoice["document_ref"])));
    let path = format!("/api/notifications/{}", text(&notification["notification_ref"]));
    assert_eq!(scene.client.get(&path).ok(), *notification);

    let (client, invoice) = (&scene.client, &invoice["document_ref"]);
    books::pay(client, invoice, &json!({"amount": "20.00"})).ok();
    books::pay(client, invoice, &json!({"amount": "39.00"})).ok();
    let paid = books::payments(client, invoice)[1]["payment_ref"].clone();
    books::reverse(client, &paid, &json!({})).ok();
    books::write_off(client, invoice, &json!({})).ok();
    books::write_off(client, invoice, &json!({"undo": true})).ok();
    let first = books::payments(client, invoice)[0]["payment_ref"].clone();
    books::reverse(client, &first, &json!({})).ok();
    books::void(client, invoice).ok();
    assert_eq!(
        reported(&reader.read(client)),
        [
            "document.settled 3 UB-INV-1 PARTIALLY_PAID 39.00",
            "document.settled 4 UB-INV-1 PAID 0.00",
            "document.settled 5 UB-INV-1 PARTIALLY_PAID 39.00",
            "document.settled 6 UB-INV-1 UNCOLLECTIBLE 0.00",
            "document.settled 7 UB-INV-1 PARTIALLY_PAID 39.00",
            "document.settled 8 UB-INV-1 ISSUED 59.00",
            "document.voided 9 UB-INV-1 VOID null",
        ]
    );
}

fn a_payment_tells_each_document_that_it_settles_once(database: &Database) {
    let (scene, mut reader) = begin(database);
    scene.sell(&[year()]);
    scene.run_on_each(&["2026-02-02", "2026-03-02"]);
    reader.read(&scene.client);
    let client = &scene.client;
    let invoice = books::numbered(client, "UB-INV-1")["document_ref"].clone();
    books::pay(client, &invoice, &json!({"amount": "60.00", "overpayment": true})).ok();
    let mut settled = reported(&reader.read(client));
    settled.sort();
    assert_eq!(settled, ["document.settled 3 UB-INV-1 PAID 0.00", "document.settled 3 UB-INV-2 PARTIALLY_PAID 38.00"]);
}

/// Returns the number of notifications and their count in the documents.
fn counts(database: &Database) -> Vec<String> {
    [
        "SELECT count(*) FROM notifications",
        "SELECT coalesce(sum(notification_count), 0) FROM documents",
        "SELECT coalesce(sum(notification_count), 0) FROM contracts",
        "SELECT count(*) FROM notices",
    ]
    .iter()
    .flat_map(|query| database.ask(query))
    .collect()
}

fn an_event_on_an_open_draft_writes_nothing(database: &Database) {
    let (scene, mut reader) = begin(database);
    scene.sell(&[year()]);
    let event = scene.calls("2026-01-09", 10)["event_ref"].clone();
    reader.read(&scene.client);
    let before = counts(database);
    for quantity in 1..10 {
        scene.calls("2026-01-08", quantity);
        books::update(&scene.client, &event, json!({"quantity": quantity})).ok();
    }
    books::delete(&scene.client, &event);
    assert_eq!(counts(database), before);
    assert_eq!(reader.read(&scene.client), Vec::<Value>::new());
}

fn a_rehearsal_and_a_refused_request_tell_nothing(database: &Database) {
    let (scene, mut reader) = begin(database);
    let contract_ref = scene.sell(&[year()]);
    scene.calls("2026-01-09", 10);
    scene.run_on("2026-02-02");
    scene.calls("2026-02-01", 10);
    reader.read(&scene.client);
    let before = counts(database);
    let invoice = books::numbered(&scene.client, "UB-INV-1")["document_ref"].clone();
    let late = acceptance::scene::calls("2026-01-20", 1);
    let contract = json!({"customer_ref": catalog::ACME, "products": [year()]});
    for (path, body) in [
        ("/api/usage/event".to_owned(), late),
        ("/api/contracts/".to_owned(), contract),
        (format!("/api/contracts/edit/{contract_ref}"), json!({"po_number": "PO-1"})),
        (format!("/api/documents/payments/{}", text(&invoice)), json!({"amount": 1})),
        (format!("/api/documents/void/{}", text(&invoice)), Value::Null),
    ] {
        let request = if body.is_null() { json!({"path": path}) } else { json!({"path": path, "body": body}) };
        scene.client.post("/api/dry_run", &request).ok();
    }
    scene.go_to("2026-03-02");
    scene.client.post("/api/billing/run", &json!({"dry_run": true})).ok();
    refused(&books::pay(&scene.client, &invoice, &json!({"amount": 1000})), 422, "above_amount_due");
    refused(&scene.try_edit(&contract_ref, &json!({"customer_ref": "somebody"})), 422, "not_changeable");
    assert_eq!(counts(database), before);
    assert_eq!(reader.read(&scene.client), Vec::<Value>::new());
}

fn each_version_of_a_contract_is_told_and_so_is_its_end(database: &Database) {
    let (scene, mut reader) = begin(database);
    let contract_ref = scene.sell(&[product("p", "2026-01-01", "2026-03-31")]);
    scene.edit(&contract_ref, &json!({"po_number": "PO-7"}));
    let notifications = reader.read(&scene.client);
    assert_eq!(reported(&notifications), ["contract.changed 1", "contract.changed 2"]);
    let facts = |notification: &Value| {
        books::fields(&notification["data"], ["contract_ref", "po_number", "version", "state", "effective_end_date"])
    };
    assert_eq!(facts(&notifications[1]), [contract_ref.as_str(), "PO-7", "2", "ACTIVE", "2026-03-31"]);
    assert_eq!(notifications[1]["data"]["products"], Value::Null);

    scene.run_on_each(&["2026-02-02", "2026-02-28"]);
    let is_ending = |notifications: Vec<Value>| -> Vec<String> {
        reported(&notifications).into_iter().filter(|reported| reported.starts_with("contract.")).collect()
    };
    assert_eq!(is_ending(reader.read(&scene.client)), Vec::<String>::new());
    // The 30th day before 31 March is 1 March.
    scene.run_on_each(&["2026-03-01", "2026-03-02"]);
    assert_eq!(is_ending(reader.read(&scene.client)), ["contract.ending 3"]);
    // A contract that is cancelled ends earlier, and so a run tells it at once, because it is less than 30 days away.
    scene.cancel(&contract_ref, &json!({"last_day": "2026-03-15"}));
    scene.run_on_each(&["2026-03-03", "2026-03-04"]);
    assert_eq!(is_ending(reader.read(&scene.client)), ["contract.changed 4", "contract.ending 5"]);
    scene.run_on("2026-04-02");
    assert_eq!(is_ending(reader.read(&scene.client)), Vec::<String>::new());
}

fn a_document_is_told_to_be_overdue_once_on_the_day_after_its_due_date(database: &Database) {
    let (scene, mut reader) = begin(database);
    scene.sell(&[year()]);
    scene.sell(&[year()]);
    scene.run_on("2026-02-02");
    let paid = books::numbered(&scene.client, "UB-INV-2")["document_ref"].clone();
    books::pay(&scene.client, &paid, &json!({"amount": "49.00"})).ok();
    let overdue = |reader: &mut Reader<'_>, client: &Client| -> Vec<String> {
        reported(&reader.read(client)).into_iter().filter(|reported| reported.starts_with("document.overdue")).collect()
    };
    // The invoices are due on 4 March.
    scene.run_on("2026-03-04");
    assert_eq!(overdue(&mut reader, &scene.client), Vec::<String>::new());
    scene.run_on("2026-03-05");
    assert_eq!(overdue(&mut reader, &scene.client), ["document.overdue 3 UB-INV-1 ISSUED 49.00"]);
    assert_eq!(books::numbered(&scene.client, "UB-INV-1")["overdue"], json!(true));
    scene.run_on("2026-03-06");
    assert_eq!(overdue(&mut reader, &scene.client), Vec::<String>::new());
}

fn a_contract_that_is_not_billed_is_told_once_a_day_until_it_is(database: &Database) {
    let (scene, mut reader) = begin(database);
    let contract_ref = scene.sell(&[year()]);
    let entity = scene.entity();
    scene.edit_entity(&entity, &json!({"paper": "STRICT"})).ok();
    reader.read(&scene.client);
    let fail_at = |scene: &Scene, instant: &str| {
        scene.go_to_instant(instant);
        let report = scene.client.post("/api/billing/run", &json!({})).ok();
        assert_eq!(report["failed"][0]["problem"]["code"], "paper_incomplete", "{report}");
    };
    fail_at(&scene, "2026-02-02T12:00:00Z");
    let failed = reader.read(&scene.client);
    assert_eq!(reported(&failed), ["billing.failed 2"]);
    let facts = books::fields(&failed[0]["data"], ["contract_ref", "contract_number", "customer_ref", "code"]);
    assert_eq!(facts, [contract_ref.as_str(), "C-1", "acme", "paper_incomplete"]);
    assert_eq!(failed[0]["subject"], format!("contract:{contract_ref}"));
    fail_at(&scene, "2026-02-03T11:59:00Z");
    assert_eq!(reported(&reader.read(&scene.client)), [""; 0]);
    fail_at(&scene, "2026-02-03T12:05:00Z");
    assert_eq!(reported(&reader.read(&scene.client)), ["billing.failed 3"]);
    scene.edit_entity(&entity, &json!({"paper": "LENIENT"})).ok();
    books::run(&scene.client);
    let kinds: Vec<String> = reader.read(&scene.client).iter().map(|one| text(&one["type"]).to_owned()).collect();
    assert_eq!(kinds, ["billing.recovered", "document.opened", "document.issued"]);
    scene.run_on("2026-03-02");
    let kinds: Vec<String> = reader.read(&scene.client).iter().map(|one| text(&one["type"]).to_owned()).collect();
    assert_eq!(kinds, ["document.opened", "document.issued"]);
}

fn the_feed_is_narrowed_and_read_in_parts(database: &Database) {
    let (scene, mut reader) = begin(database);
    let contract_ref = scene.sell(&[year()]);
    scene.calls("2026-01-09", 10);
    catalog::make_customer(&scene.client, "other");
    catalog::make_contract(&scene.client, &json!({"customer_ref": "other", "products": [year()]}));
    assert_eq!(reader.read(&scene.client).len(), 3);
    let client = &scene.client;
    let positions = |query: &str| -> Vec<u64> {
        let found = client.get(&format!("/api/notifications/filter?{query}")).ok();
        found.as_array().expect("a list").iter().filter_map(|one| one["position"].as_u64()).collect()
    };
    let document = text(&books::numbered(client, "UB-INV-1")["document_ref"]).to_owned();
    for (query, expected) in [
        (String::new(), vec![1, 2, 3]),
        ("after=1".to_owned(), vec![2, 3]),
        ("after=1&pageSize=1".to_owned(), vec![2]),
        ("after=3".to_owned(), vec![]),
        ("type=contract.changed".to_owned(), vec![1, 3]),
        (format!("subject=contract:{contract_ref}"), vec![1]),
        (format!("subject=document:{document}"), vec![2]),
        (format!("subject=document:{contract_ref}"), vec![]),
        ("subject=invoice:7".to_owned(), vec![]),
        ("customer_ref=other".to_owned(), vec![3]),
        ("customer_ref=nobody".to_owned(), vec![]),
        ("customer_ref=acme&type=document.opened".to_owned(), vec![2]),
    ] {
        assert_eq!(positions(&query), expected, "{query}");
    }
    for wrong in ["type=document.*", "after=-1", "after=x", "pageSize=1001", "pageNumber=1"] {
        assert_eq!(client.get(&format!("/api/notifications/filter?{wrong}")).status, 422, "{wrong}");
    }
    let unknown = client.get("/api/notifications/0198c5f2-7c3e-7b1a-9d55-0c2f6d1e8a4b");
    assert_eq!((unknown.status, unknown.text_of("code").as_str()), (404, "notification_not_found"));
}

/// The number of threads, and of contracts that each of them creates.
const THREADS: usize = 4;
const CONTRACTS: usize = 10;

fn many_at_once_leave_one_order_without_a_gap(database: &Database) {
    let first = Server::start(database);
    let client = Client::new_key(&first);
    catalog::make(&client);
    // Only one server can use a SQLite file.
    let second = (!database.is_sqlite()).then(|| Server::start(database));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let server = second.as_ref().filter(|_| thread % 2 == 1).unwrap_or(&first);
            let client = client.at(server).with_own_connections();
            scope.spawn(move || {
                for contract in 0..CONTRACTS {
                    let customer = format!("customer-{thread}-{contract}");
                    catalog::make_customer(&client, &customer);
                    catalog::make_contract(&client, &catalog::contract(&customer));
                    books::report(&client, &catalog::event(&customer, 1));
                }
            });
        }
        // A client that reads along misses nothing.
        let mut reader = Reader::new(database);
        let mut read = Vec::new();
        while read.len() < THREADS * CONTRACTS {
            read.extend(reader.read(&client));
        }
        read.extend(reader.read(&client));
        assert!(read.len() >= THREADS * CONTRACTS);
    });
    let all = books::feed(database, &client, 0);
    let mut sequences: BTreeMap<&str, u64> = BTreeMap::new();
    for (notification, position) in all.iter().zip(1_u64..) {
        let sequence = sequences.entry(text(&notification["subject"])).or_default();
        *sequence += 1;
        let found = (&notification["position"], &notification["sequence"]);
        assert_eq!(found, (&json!(position), &json!(*sequence)), "{notification}");
    }
    let of_type = |kind: &str| all.iter().filter(|notification| notification["type"] == kind).count();
    assert_eq!((of_type("contract.changed"), of_type("document.opened")), (THREADS * CONTRACTS, THREADS * CONTRACTS));
}

fn old_notifications_are_forgotten_and_positions_go_on(database: &Database) {
    let clock = Clock::at("2026-01-10T12:00:00Z");
    let server = Server::start_on(database, &clock);
    let client = Client::new_key(&server);
    catalog::make_customer(&client, catalog::ACME);
    catalog::make_pricing(&client, "p", &json!([catalog::fixed("fee", "49.00")]));
    catalog::sell(&client, &[year()]);
    assert_eq!(books::feed(database, &client, 0).len(), 1);
    drop(server);
    clock.set("2026-01-16T12:00:00Z");
    let server = Server::start_on_with(database, &clock, &["--notification-days", "7"]);
    let client = Client::new_key(&server);
    catalog::sell(&client, &[year()]);
    assert_eq!(books::feed(database, &client, 0).len(), 2);
    drop(server);
    clock.set("2026-01-17T12:01:00Z");
    let server = Server::start_on_with(database, &clock, &["--notification-days", "7"]);
    let client = Client::new_key(&server);
    let begun = std::time::Instant::now();
    while database.ask("SELECT count(*) FROM notifications") != ["1"] {
        assert!(begun.elapsed() < std::time::Duration::from_secs(30), "the first notification is still there");
        thread::sleep(std::time::Duration::from_millis(20));
    }
    catalog::sell(&client, &[year()]);
    let positions: Vec<Value> = books::feed(database, &client, 0).iter().map(|one| one["position"].clone()).collect();
    assert_eq!(positions, [json!(2), json!(3)]);
}

/// Stops a server, restores its database from a backup, and returns the restored database if it is another one.
fn restore(database: &Database, backup: &std::path::Path, server: Server) -> Option<Database> {
    let file = backup.to_str().expect("UTF-8");
    let restore = |restored: &Database, arguments: &[&str], server: Option<Server>| {
        let environment = [("USAGE_BILLING_DATABASE_URL", restored.url())];
        if let Some(server) = server {
            let refused = binary::run(arguments, &environment);
            assert_eq!(refused.code, Some(1), "{}{}", refused.stdout, refused.stderr);
            let reason = if restored.is_sqlite() { "another server uses this file" } else { "connected to the database" };
            assert!(refused.stderr.contains(reason), "{}", refused.stderr);
            drop(server);
        }
        let stated = binary::succeed(restored, arguments);
        assert!(stated.contains("Positions of notifications continue after "), "{stated}");
    };
    if database.is_sqlite() {
        restore(database, &["restore", file], Some(server));
        return None;
    }
    drop(server);
    let restored = Database::one_postgres();
    restored.restore(backup);
    let server = Server::start(&restored).without_verification();
    restore(&restored, &["restored"], Some(server));
    Some(restored)
}

fn a_restored_database_begins_another_epoch_and_no_client_misses_it(database: &Database) {
    if database.is_spread() {
        // A cluster is restored node by node.
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let backup = directory.path().join("backup");
    let server = Server::start(database);
    let client = Client::new_key(&server);
    catalog::make(&client);
    let sell = |client: &Client, customer: &str| {
        catalog::make_customer(client, customer);
        catalog::make_contract(client, &catalog::contract(customer))
    };
    let kept = sell(&client, "kept");
    let positions = |notifications: &[Value]| -> Vec<u64> {
        notifications.iter().map(|one| one["position"].as_u64().expect("a position")).collect()
    };
    assert_eq!(positions(&books::feed(database, &client, 0)), [1]);
    if database.is_sqlite() {
        binary::succeed(database, &["backup", backup.to_str().expect("UTF-8")]);
    } else {
        database.dump(&backup);
    }
    let lost = sell(&client, "lost");
    sell(&client, "lost-too");
    let last = *positions(&books::feed(database, &client, 0)).last().expect("a position");
    assert_eq!(last, 3);

    let other = restore(database, &backup, server);
    let restored = other.as_ref().unwrap_or(database);
    let server = Server::start(restored);
    let client = client.at(&server);
    assert_eq!(client.get(&format!("/api/contracts/{lost}")).status, 404);
    // The client of the lost time does not wait for the position after its last one.
    let list = |after: u64| client.get(&format!("/api/notifications/filter?after={after}"));
    let reported = list(last);
    assert_eq!((reported.status, reported.text_of("code").as_str()), (409, "feed_restarted"));
    let restart = reported.body.clone();
    let position = restart["position"].as_u64().expect("a position");
    let epoch = position / 1_000_000;
    assert!(epoch > 1_700_000_000 && position == epoch * 1_000_000, "{restart}");
    let since = restart["restored_to"].as_str().expect("an instant");
    let changed = client.get(&format!("/api/contracts/search?updated_since={since}")).ok();
    assert_eq!(changed[0]["contract_ref"], kept, "{changed}");
    assert_eq!(list(position + 1).status, 409, "no notification has this position yet");
    assert_eq!(list(position).ok(), json!([]));

    // A contract with the number of a lost one has another position and another epoch.
    sell(&client, "new");
    let next = books::feed(restored, &client, position);
    assert_eq!(positions(&next), [position + 1]);
    assert_eq!((&next[0]["epoch"], &next[0]["sequence"]), (&json!(epoch), &json!(1)));
    let body = restored.ask(&format!("SELECT body FROM notifications WHERE position = {}", position + 1)).concat();
    assert!(body.contains(&format!(r#""epoch":{epoch},"sequence":1"#)), "{body}");
    let all = books::feed(restored, &client, 0);
    assert_eq!(positions(&all), [1, position + 1]);
    assert_eq!(all[0]["epoch"], json!(0));
    for after in [1, 2, last, position - 1, position + 2] {
        refused(&list(after), 409, "feed_restarted");
    }
    assert_eq!(list(position + 1).ok(), json!([]));
}

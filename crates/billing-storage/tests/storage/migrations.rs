//! Migrations go up, down and up again, and servers that start together don't race.

use billing_domain::document::lines::{FamilySums, LedgerLine, Rates, Sum, SumKey};
use billing_domain::document::totals::{BilledProduct, Tax};
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument, Purpose};
use billing_domain::idempotency::{BodyDigest, IdempotencyKey, RequestKey};
use billing_domain::party::Organization;
use billing_domain::ports::{FamilySum, Insertion, Lock, Update};
use billing_domain::refs::OrganizationId;
use billing_domain::tax::{DefaultTaxes, StatedTax, TaxTreatment};
use billing_domain::usage::{KeptEvent, Placement, UsageEvent};
use billing_testkit::fixtures;

use crate::rows::{World, world};
use crate::support::{Beside, TestDatabase, empty_postgres, empty_sqlite, on_both, open, read, write};
use billing_testkit::Singly as _;

on_both!(
    numbers_given_twice_stay_and_are_named,
    every_contract_is_looked_at_once_after_the_upgrade,
    answers_are_given_again_after_the_upgrade_and_after_going_back,
    lines_of_issued_documents_are_frozen_after_the_upgrade_and_after_going_back,
    bytes_are_kept_by_the_upgrade_and_by_going_back,
    keys_of_events_answer_the_same_after_the_upgrade,
    tax_treatments_of_documents_that_exist_follow_from_what_was_frozen
);

fn names(folder: &str) -> Vec<String> {
    let folder = format!("{}/../../migrations/{folder}", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(folder).expect("the migrations");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("a migration").file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn up_down_up(test: &TestDatabase) {
    let database = &test.database;
    assert!(read(test, |tx| tx.count_organizations()).is_err(), "no tables yet");
    assert_eq!(database.pending_migrations().expect("pending"), names("sqlite"));
    assert_eq!(database.migrate().expect("up").len(), names("sqlite").len());
    assert_eq!(read(test, |tx| tx.count_organizations()).expect("a count"), 0);
    assert_eq!(database.pending_migrations().expect("pending"), Vec::<String>::new());
    assert_eq!(database.migrate().expect("up once more"), Vec::<String>::new());
    assert_eq!(database.revert_migrations().expect("down").len(), names("sqlite").len());
    assert_eq!(database.pending_migrations().expect("pending"), names("sqlite"));
    assert_eq!(database.migrate().expect("up again").len(), names("sqlite").len());
    assert_eq!(read(test, |tx| tx.count_organizations()).expect("a count"), 0);
}

#[test]
fn both_databases_have_the_same_migrations() {
    assert_eq!(names("sqlite"), names("postgres"));
}

#[test]
fn sqlite_goes_up_down_and_up() {
    up_down_up(&empty_sqlite());
}

#[test]
fn postgres_goes_up_down_and_up() {
    up_down_up(&empty_postgres());
}

fn together(test: &TestDatabase) {
    let servers: Vec<_> = (0..3).map(|_| open(&test.url)).collect();
    let done: usize = std::thread::scope(|threads| {
        let started: Vec<_> = servers.iter().map(|server| threads.spawn(|| server.migrate().expect("up").len())).collect();
        started.into_iter().map(|thread| thread.join().expect("a server")).sum()
    });
    assert_eq!(done, names("sqlite").len());
}

#[test]
fn servers_that_start_together_migrate_sqlite_once() {
    together(&empty_sqlite());
}

#[test]
fn servers_that_start_together_migrate_postgres_once() {
    together(&empty_postgres());
}

/// Takes a migration away again, whose tables hold data.
fn go_back_before(test: &TestDatabase, migration: &str) {
    let folder = if test.is_sqlite() { "sqlite" } else { "postgres" };
    let down = format!("{}/../../migrations/{folder}/{migration}/down.sql", env!("CARGO_MANIFEST_DIR"));
    let down = std::fs::read_to_string(down).expect("a migration");
    let version = migration.split('_').next().expect("a version");
    let forgotten = format!("DELETE FROM __diesel_schema_migrations WHERE version = '{version}'");
    test.beside().execute(&format!("{down}{forgotten}")).expect("down");
}

/// Takes the newest migrations away again, down to one, with what the tables hold.
fn go_back_through(test: &TestDatabase, oldest: &str) -> Vec<String> {
    let mut gone: Vec<String> = names("sqlite").into_iter().filter(|name| name.as_str() >= oldest).collect();
    gone.iter().rev().for_each(|name| go_back_before(test, name));
    for name in &mut gone {
        name.truncate(name.find('_').expect("a version"));
    }
    gone
}

/// How many rows of a table are such.
fn count(test: &TestDatabase, rows: &str) -> u32 {
    test.beside().text(&format!("SELECT CAST(count(*) AS TEXT) AS text FROM {rows}")).parse().expect(rows)
}

fn lines_of_issued_documents_are_frozen_after_the_upgrade_and_after_going_back(test: &TestDatabase) {
    let w = world(test);
    let (issued, draft) = (w.open(test, 1), w.open(test, 2));
    let line = w.frozen(&issued, 100).content.ledger_lines();
    write(test, |tx| {
        assert!(tx.issue_document(issued.key(w.organization), &w.frozen(&issued, 100))?);
        tx.put_ledger_lines(draft.key(w.organization), &line)
    });
    let change = |ordinal: u32| test.beside().execute(&format!("UPDATE document_lines SET ordinal = {ordinal}"));
    for _ in 0..2 {
        let gone = go_back_through(test, "00000000000015_frozen");
        change(1).expect_err("the lines are frozen without the column");
        assert_eq!(test.database.migrate().expect("up"), gone);
        change(1).expect_err("the lines are frozen");
        assert_eq!((count(test, "document_lines WHERE frozen"), count(test, "document_lines WHERE NOT frozen")), (1, 1));
        assert_eq!(read(test, |tx| tx.broken_seals(w.organization)).expect("seals are read"), [""; 0]);
        write(test, |tx| tx.put_ledger_lines(draft.key(w.organization), &line));
    }
}

fn bytes_are_kept_by_the_upgrade_and_by_going_back(test: &TestDatabase) {
    let w = world(test);
    let head = w.open(test, 1);
    let event = w.event(&head);
    write(test, |tx| {
        tx.insert_events(w.organization, std::slice::from_ref(&event))?;
        assert!(tx.issue_document(head.key(w.organization), &w.frozen(&head, 100))?);
        Ok(())
    });
    let mut beside = test.beside();
    beside.execute(r#"UPDATE usage_events SET report_data = '{"b": 1,  "a":2.50,"b":1}'"#).expect("data");
    let said = |beside: &mut Beside| {
        let text = |column: &str, table: &str| format!("(SELECT CAST({column} AS TEXT) FROM {table})");
        let both = format!("{} || {}", text("content", "issued_documents"), text("report_data", "usage_events"));
        beside.text(&format!("SELECT {both} AS text"))
    };
    let before = said(&mut beside);
    for _ in 0..2 {
        let gone = go_back_through(test, "00000000000016_bytes");
        assert_eq!(said(&mut beside), before);
        assert_eq!(test.database.migrate().expect("up"), gone);
        assert_eq!(said(&mut beside), before);
        assert_eq!(read(test, |tx| tx.broken_seals(w.organization)).expect("seals are read"), [""; 0]);
        let taken = Insertion::Taken("name");
        let again = read(test, |tx| tx.organization(w.organization)).expect("read").expect("an organization");
        let again = Organization { id: OrganizationId::from_uuid(uuid::Uuid::now_v7()), ..again };
        assert_eq!(write(test, |tx| tx.insert_organization(&again)), taken);
    }
}

fn keys_of_events_answer_the_same_after_the_upgrade(test: &TestDatabase) {
    let w = world(test);
    let (head, other) = (w.open(test, 1), w.open(test, 2));
    let events = [(); 4].map(|()| w.event(&head));
    write(test, |tx| {
        tx.insert_events(w.organization, &events)?;
        // The last one is revised, and not where it was put first.
        let placement = Placement { document_ref: other.document_ref, ..events[3].placement };
        tx.revise_events(w.organization, &[(events[3].clone(), UsageEvent { revision: 2, placement, ..events[3].clone() })])
    });
    let gone = go_back_through(test, "00000000000017_event_keys");
    let place = |event: &UsageEvent| {
        let (event, document, number) = (event.event_ref, head.document_ref, &head.number);
        format!(r#"{{"event_ref":"{event}","related_document_ref":"{document}","related_document_numbers":"{number}"}}"#)
    };
    let said = [place(&events[0]), place(&events[1]).replace(':', ": "), format!(r#"{{"x":"{}"}}"#, "ä"), place(&events[3])];
    let keys = ["plain", "ключ 'quoted'", "k", "moved"].map(|text| IdempotencyKey::parse(text).expect(text));
    let id = |id: uuid::Uuid| if test.is_sqlite() { format!("x'{}'", id.simple()) } else { format!("'{id}'") };
    let mut beside = test.beside();
    for ((event, answer), key) in events.iter().zip(&said).zip(&keys) {
        let (customer, event, key) =
            (id(event.customer_id.as_uuid()), id(event.event_ref.as_uuid()), key.as_str().replace('\'', "''"));
        let row = format!("{customer}, '{key}', {event}, {}, '{answer}'", bytes(test, &[7; 32]));
        let columns = "customer_id, idempotency_key, event_id, body_hash, answer";
        beside.execute(&format!("INSERT INTO usage_event_keys ({columns}) VALUES ({row})")).expect("a key of before");
    }
    assert_eq!(test.database.migrate().expect("up"), gone);
    assert_eq!(count(test, "usage_event_keys WHERE answer IS NULL"), 1, "only what is to be made again isn't kept");
    let mut expected: Vec<KeptEvent> = keys
        .iter()
        .zip(&events)
        .zip(said)
        .map(|((key, event), answer)| KeptEvent {
            key: key.clone(),
            body: BodyDigest([7; 16]),
            event_ref: event.event_ref,
            answer,
        })
        .collect();
    expected.sort_by(|a, b| a.key.cmp(&b.key));
    let keys = Vec::from_iter(keys.iter().map(|key| (w.customer.id, key.clone())));
    let found = read(test, |tx| tx.kept_events(w.organization, &keys)).expect("a look");
    assert_eq!(Vec::from_iter(found.into_iter().map(|(_, kept)| kept)), expected);
    // What is known of a key no more can't come back.
    let refused = test.database.revert_migrations().expect_err("there are keys");
    let why = std::error::Error::source(&refused).map(ToString::to_string).unwrap_or_default();
    assert!(why.contains("repeats of those events would count again"), "{why}");
    beside.execute("DELETE FROM usage_event_keys").expect("on purpose");
    assert_eq!(go_back_through(test, "00000000000017_event_keys"), gone);
    assert_eq!(test.database.migrate().expect("up again"), gone);
}

fn numbers_given_twice_stay_and_are_named(test: &TestDatabase) {
    let w = world(test);
    let heads = [1, 2, 3, 4].map(|month| w.open(test, month));
    go_back_before(test, "00000000000007_numbers");
    let mut beside = test.beside();
    beside.execute("UPDATE documents SET number_prefix = 'TWICE', sequence = 1 WHERE sequence <= 3").expect("doubled");

    assert_eq!(test.database.migrate().expect("up"), ["00000000000007"]);

    let broken = read(test, |tx| tx.broken_series(w.organization)).expect("a look");
    assert!(broken.contains(&"the number TWICE-INV-1 is on 3 documents".to_owned()), "{broken:?}");
    assert!(!broken.iter().any(|sentence| sentence.contains("MAIN-INV-4")), "{broken:?}");
    for head in &heads {
        assert!(read(test, |tx| tx.document(w.organization, head.document_ref)).expect("a look").is_some());
    }
    let fourth = "UPDATE documents SET number_prefix = 'TWICE', sequence = 1 WHERE sequence = 4";
    assert!(beside.execute(fourth).is_err(), "no number is given again");
    // The prefix is its first entity's.
    let mut second = fixtures::entity("second");
    second.profile.number_prefix = billing_domain::party::NumberPrefix::parse("TWICE").expect("a prefix");
    assert_eq!(write(test, |tx| tx.insert_entity(w.organization, &second)), Insertion::Taken("number_prefix"));
}

fn every_contract_is_looked_at_once_after_the_upgrade(test: &TestDatabase) {
    let worlds = [(); 3].map(|()| world(test));
    let created_at = worlds[0].contract.created_at;
    let due = [None, Some(created_at.plus_seconds(50)), Some(created_at.plus_seconds(-50))];
    go_back_before(test, "00000000000007_numbers");
    for (w, due) in worlds.iter().zip(due) {
        write(test, |tx| tx.set_next_due(w.contract.key(w.organization), due));
    }

    test.database.migrate().expect("up");

    let expected = [created_at, created_at, created_at.plus_seconds(-50)];
    for (w, expected) in worlds.iter().zip(expected) {
        let found = read(test, |tx| tx.contracts_due(Some(w.organization), created_at, None, 10)).expect("a look");
        assert_eq!(found.iter().map(|due| due.due_at).collect::<Vec<_>>(), [expected]);
    }
}

/// A value of bytes, in a statement.
fn bytes(test: &TestDatabase, bytes: &[u8]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    if test.is_sqlite() { format!("x'{hex}'") } else { format!("'\\x{hex}'") }
}

/// Key, status, headers and body as they were stored, and the bytes that they are.
type OldAnswer<'a> = (&'a str, u16, &'a str, &'a [u8], Vec<u8>);

fn answers_are_given_again_after_the_upgrade_and_after_going_back(test: &TestDatabase) {
    let w = world(test);
    go_back_before(test, "00000000000009_answers");
    let json = r#"[["content-type","application/json"]]"#;
    let ndjson = r#"[["content-type","application/x-ndjson"]]"#;
    let replayed = r#"[["content-type","application/json"],["idempotency-replayed","true"]]"#;
    let sealed: &[u8] = &[b'2', 0, 255, b'\n', b'\n', 128, 0];
    let with_head = |head: &str, body: &[u8]| [head.as_bytes(), body].concat();
    let answers: [OldAnswer<'_>; 6] = [
        ("json", 200, json, "{\"name\":\"ä\"}".as_bytes(), "{\"name\":\"ä\"}".into()),
        ("sealed", 200, json, sealed, sealed.to_vec()),
        ("lines", 200, ndjson, b"{}\n{}\n", with_head("200\ncontent-type: application/x-ndjson\n\n", b"{}\n{}\n")),
        ("bytes", 200, ndjson, sealed, with_head("200\ncontent-type: application/x-ndjson\n\n", sealed)),
        (
            "repeated event",
            200,
            replayed,
            b"{}",
            with_head("200\ncontent-type: application/json\nidempotency-replayed: true\n\n", b"{}"),
        ),
        ("empty", 204, "[]", b"", with_head("204\n\n", b"")),
    ];
    let created_at = w.contract.created_at;
    let (organization, at) = if test.is_sqlite() {
        (bytes(test, w.organization.as_uuid().as_bytes()), created_at.as_micros().to_string())
    } else {
        (format!("'{}'", w.organization), format!("'{created_at}'"))
    };
    let mut beside = test.beside();
    for (key, status, headers, body, _) in &answers {
        let (hash, body) = (bytes(test, &[7; 32]), bytes(test, body));
        let row = format!("{organization}, '/api/things', '{key}', {hash}, {status}, '{headers}', {body}, {at}");
        let columns = "organization_id, path, idempotency_key, body_hash, status, headers, body, kept_at";
        beside.execute(&format!("INSERT INTO replay_log ({columns}) VALUES ({row})")).expect("an answer of before");
    }
    for _ in 0..2 {
        assert_eq!(test.database.migrate().expect("up"), ["00000000000009"]);
        for (key, _, _, _, expected) in &answers {
            let request = RequestKey { path: "/api/things".to_owned(), key: IdempotencyKey::parse(key).expect(key) };
            let kept = read(test, |tx| tx.kept_request(w.organization, &request, created_at)).expect("a look").expect(key);
            assert_eq!(kept.answer.0, *expected, "{key}");
        }
        go_back_before(test, "00000000000009_answers");
    }
}

/// Issued with two products: one taxed, one not.
fn of_two_taxes(w: &World, head: &DocumentHead) -> IssuedDocument {
    let mut issued = w.frozen(head, 1000);
    let untaxed = TaxTreatment { rate: fixtures::percent("0"), basis: fixtures::reverse_charge() };
    let first = issued.content.products[0].clone();
    let taxed = Rates { discount: fixtures::percent("10.0"), tax: fixtures::taxed("19.00") };
    let product = |rates: Rates, discount: i64| BilledProduct {
        rates,
        discount: fixtures::cents(discount),
        net: fixtures::cents(1000 - discount),
        ..first.clone()
    };
    let untaxed = Rates { discount: fixtures::percent("0"), tax: untaxed };
    issued.content.taxes = vec![
        Tax { treatment: untaxed.tax.clone(), base: fixtures::cents(1000), amount: fixtures::cents(0) },
        Tax { treatment: taxed.tax.clone(), base: fixtures::cents(900), amount: fixtures::cents(171) },
    ];
    issued.content.products = vec![product(taxed, 100), product(untaxed, 0)];
    issued.content.sub_total = fixtures::cents(2000);
    issued.content.total_discount = fixtures::cents(100);
    issued.content.total_tax = fixtures::cents(171);
    issued.content.total = fixtures::cents(2071);
    issued
}

fn tax_treatments_of_documents_that_exist_follow_from_what_was_frozen(test: &TestDatabase) {
    let mut w = world(test);
    let stated = |rate: Option<&str>, basis| StatedTax { rate: rate.map(fixtures::percent), basis };
    w.customer.profile.taxes = DefaultTaxes::always(stated(Some("0.00"), fixtures::reverse_charge()));
    w.entity.profile.taxes = DefaultTaxes::always(stated(None, fixtures::reverse_charge()));
    w.entity.profile.legal = fixtures::full_legal("DE123456789");
    let invoice = w.open(test, 1);
    let issued = of_two_taxes(&w, &invoice);
    let mut credit = DocumentHead { kind: DocumentKind::Credit, purpose: Purpose::Adjustment, ..w.head(1) };
    (credit.number.kind, credit.parent, credit.number_in_contract) = (DocumentKind::Credit, Some(invoice.document_ref), 2);
    let open = vec![LedgerLine { amount: fixtures::cents(7), ..issued.content.ledger_lines()[1].clone() }];
    let mut sums = FamilySums::default();
    issued.content.add_to(&mut sums, invoice.kind, 1).expect("small amounts");
    write(test, |tx| {
        assert_eq!(tx.update_customer(w.organization, &w.customer)?, Update::Done);
        assert_eq!(tx.update_entity(w.organization, &w.entity)?, Update::Done);
        tx.lock_contract(w.contract.key(w.organization), Lock::Exclusive)?;
        assert!(tx.issue_document(invoice.key(w.organization), &issued)?);
        let of = |(key, sum): (&SumKey, Sum)| FamilySum { family: invoice.document_ref, key: key.clone(), sum };
        tx.add_family_sums(w.organization, w.customer.id, &sums.iter().map(of).collect::<Vec<_>>())?;
        tx.open_document(w.organization, &credit, invoice.document_ref)?;
        tx.put_ledger_lines(credit.key(w.organization), &open)
    });
    for _ in 0..2 {
        let gone = go_back_through(test, "00000000000029_tax_treatments");
        test.beside().execute("UPDATE document_lines SET tax_rate = '19'").expect_err("the lines are frozen");
        assert_eq!(test.database.migrate().expect("up"), gone);
        // The contract states no tax: the lines follow a default.
        let lines_of = |head: &DocumentHead| read(test, |tx| tx.ledger_lines(head.key(w.organization))).expect("lines");
        let with_default = |lines: Vec<LedgerLine>| {
            lines.into_iter().map(|line| LedgerLine { has_default_tax: true, ..line }).collect::<Vec<_>>()
        };
        assert_eq!(lines_of(&invoice), with_default(issued.content.ledger_lines()));
        assert_eq!(lines_of(&credit), with_default(open.clone()));
        let book = read(test, |tx| tx.book_rows(w.contract.key(w.organization))).expect("a book");
        assert_eq!(book.sums, [(invoice.document_ref, sums.clone())].into());
        assert_eq!(read(test, |tx| tx.broken_seals(w.organization)).expect("seals are read"), [""; 0]);
        let customers = read(test, |tx| tx.customers_by_ids(w.organization, &[w.customer.id])).expect("a customer");
        assert_eq!(customers, [w.customer.clone()]);
        let refs = [w.entity.entity_ref.clone()];
        assert_eq!(read(test, |tx| tx.entities_by_refs(w.organization, &refs)).expect("an entity"), [w.entity.clone()]);
        test.beside().execute("UPDATE document_lines SET tax_basis = ''").expect_err("the lines are frozen");
    }
    // Terms that state a tax of their own leave nothing to a default.
    go_back_through(test, "00000000000029_tax_treatments");
    let terms =
        if test.is_sqlite() { "json_set(terms, '$.tax', '19')" } else { "jsonb_set(terms::jsonb, '{tax}', '\"19\"')::json" };
    test.beside().execute(&format!("UPDATE contract_products SET terms = {terms}")).expect("terms");
    test.database.migrate().expect("up");
    assert_eq!(count(test, "document_lines WHERE has_default_tax"), 0);
}

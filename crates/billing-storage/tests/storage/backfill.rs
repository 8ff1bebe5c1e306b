//! A database with data from before there were books is brought up to date.

use std::fmt::Write as _;

use billing_domain::account::AccountRows;
use billing_domain::contract::ContractState;
use billing_domain::document::lines::{BillWith, Rates, Sum, SumKey};
use billing_domain::document::{BookDocument, Lifecycle};
use billing_domain::ledger::receive::{Account, check_account};
use billing_domain::money::Money;
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    ApplicationsOf, ContractFilter, ContractSortKey, DocumentFilter, DocumentOrder, DocumentsOf, FamilySum, PaymentsOf, Todays,
};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, DocumentRef, EventRef, OrganizationId, ProductNo};
use billing_testkit::fixtures::{at, date, percent, taxed, usage_product_ref};
use uuid::Uuid;

use crate::support::{TestDatabase, empty_postgres, empty_sqlite, read};
use billing_testkit::Singly as _;

/// The last migration before books that the data is for.
const BEFORE: &str = "00000000000006";

const ORGANIZATION: u128 = 1;
const CUSTOMER: u128 = 2;
const CONTRACT: u128 = 3;
const INVOICE: u128 = 10;
const DRAFT: u128 = 11;
const OPEN_CREDIT: u128 = 12;
const PREPAID: u128 = 13;
const CHILD: u128 = 14;
const CREDIT: u128 = 15;
const VOID: u128 = 16;
const DISCARDED: u128 = 17;
const EVENT: u128 = 20;
const LATE_EVENT: u128 = 21;

const PAYMENT: &str = r#"{"bank_transfer":null,"online":null,"crypto":null}"#;

/// The migrations of before, and their versions noted as diesel does.
fn migrate_to_before(test: &TestDatabase) {
    let folder =
        format!("{}/../../migrations/{}", env!("CARGO_MANIFEST_DIR"), if test.is_sqlite() { "sqlite" } else { "postgres" });
    let mut folders: Vec<_> = std::fs::read_dir(folder).expect("migrations").map(|entry| entry.expect("one").path()).collect();
    folders.sort();
    let mut sql = "CREATE TABLE __diesel_schema_migrations (version VARCHAR(50) PRIMARY KEY NOT NULL, \
                   run_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP);"
        .to_owned();
    for folder in folders {
        let name = folder.file_name().and_then(|name| name.to_str()).expect("a name").to_owned();
        let version = name.split('_').next().expect("a version");
        if version <= BEFORE {
            sql += &std::fs::read_to_string(folder.join("up.sql")).expect("a migration");
            write!(sql, "\nINSERT INTO __diesel_schema_migrations (version) VALUES ('{version}');\n").expect("text");
        }
    }
    test.beside().execute(&sql).expect("migrated");
}

/// `@7@` is an identifier, `#2026-01-01#` a day and `~2026-01-01T00:00:00Z~` an instant of the database's own.
fn in_dialect(test: &TestDatabase, sql: &str) -> String {
    let spelt = |mark: char, text: &str| match (mark, test.is_sqlite()) {
        ('@', true) => format!("x'{}'", id(text.parse().expect(text)).simple()),
        ('@', false) => format!("'{}'", id(text.parse().expect(text))),
        ('#', true) => (date(text) - chrono::NaiveDate::default()).num_days().to_string(),
        ('~', true) => billing_testkit::fixtures::at(text).as_micros().to_string(),
        _ => format!("'{text}'"),
    };
    let mut done = sql.to_owned();
    for mark in ['@', '#', '~'] {
        let parts: Vec<String> = done.split(mark).map(str::to_owned).collect();
        done = parts.into_iter().enumerate().map(|(i, part)| if i % 2 == 1 { spelt(mark, &part) } else { part }).collect();
    }
    done
}

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// Line item, usage product and quantity, amount in cents.
type OldLine = (Option<&'static str>, Option<(&'static str, &'static str)>, i64);

/// A document of before.
struct Old {
    id: u128,
    kind: &'static str,
    sequence: u32,
    /// The purpose, and its slot.
    purpose: (&'static str, Option<&'static str>),
    parent: Option<u128>,
    product_no: u16,
    /// Discount and tax in percent.
    rates: (&'static str, &'static str),
    lifecycle: &'static str,
    /// Sub total, discount and tax of what was issued, in euros.
    said: Option<(&'static str, &'static str, &'static str)>,
    lines: &'static [OldLine],
}

fn minor(text: &str) -> i64 {
    text.replace('.', "").parse().expect(text)
}

fn euros(minor: i64) -> String {
    format!("{}.{:02} EUR", minor / 100, minor % 100)
}

impl Old {
    /// What was frozen: format 1, with rates at the parts.
    fn content(&self, (sub_total, discount, tax): (&str, &str, &str)) -> String {
        let Self { kind, product_no, .. } = self;
        let purpose = match self.purpose {
            ("REGULAR", Some(slot)) => format!(r#"{{"REGULAR":"{slot}"}}"#),
            (other, _) => format!(r#""{other}""#),
        };
        let parent = self.parent.map_or("null".to_owned(), |parent| format!(r#""{}""#, id(parent)));
        let (discount_rate, tax_rate) = self.rates;
        let net = minor(sub_total) - minor(discount);
        let lines = self.lines.iter().map(|(item, usage, amount)| {
            let item = item.map_or("null".to_owned(), |item| format!(r#""{item}""#));
            let usage = usage.map_or("null".to_owned(), |(product, quantity)| {
                format!(r#"{{"usage_product_ref":"{product}","quantity":"{quantity}","unit":null,"unit_price":null,"tiers":[]}}"#)
            });
            let period = r#"{"first_day":"2026-01-01","last_day":"2026-01-31"}"#;
            format!(
                r#"{{"line_item_id":{item},"name":"N","service_period":{period},"usage":{usage},"amount":"{}"}}"#,
                euros(*amount)
            )
        });
        format!(
            r#"{{"format":1,"document":{{"document_ref":"{id}","number":{{"prefix":"MAIN","kind":"{kind}","sequence":{sequence}}},"kind":"{kind}","purpose":{purpose},"contract_ref":"{contract}","number_in_contract":{number},"customer_id":"{customer}","entity_ref":"main","currency":"EUR","period":{{"first_day":"2026-01-01","last_day":"2026-01-31"}},"is_partial_period":false,"parts":[{{"product_no":{product_no},"tax_rate":"{tax_rate}","discount_rate":"{discount_rate}"}}],"net_terms":"DUE_UPON_RECEIPT","payment":{PAYMENT},"parent":{parent},"replaces":null,"created_at":"2026-01-01T00:00:00Z"}},"issued":{{"issued_at":"2026-02-01T00:00:00Z","issue_date":"2026-02-01","due_date":"2026-02-01","parties":{{"customer_ref":"acme","customer_name":"acme","customer_legal_name":null,"entity_ref":"main","entity_name":"main","entity_legal_name":null}},"po_number":null,"note":null,"content":{{"products":[{{"product_no":{product_no},"pricing_ref":"api","name":"api","minimum_fee":null,"lines":[{lines}],"sub_total":"{sub_total} EUR","discount_rate":"{discount_rate}","discount":"{discount} EUR","net":"{net}","tax_rate":"{tax_rate}"}}],"taxes":[{{"rate":"{tax_rate}","base":"{net}","amount":"{tax} EUR"}}],"sub_total":"{sub_total} EUR","total_discount":"{discount} EUR","total_tax":"{tax} EUR","total":"{total}"}}}}}}"#,
            id = id(self.id),
            sequence = self.sequence,
            number = self.id,
            contract = id(CONTRACT),
            customer = id(CUSTOMER),
            lines = lines.collect::<Vec<_>>().join(","),
            net = euros(net),
            total = euros(net + minor(tax)),
        )
    }

    fn insert(&self) -> String {
        let Self { id, kind, sequence, product_no, lifecycle, .. } = self;
        let (purpose, slot) = self.purpose;
        let slot = slot.map_or("NULL".to_owned(), |slot| format!("'{slot}'"));
        let parent = self.parent.map_or("NULL".to_owned(), |parent| format!("@{parent}@"));
        let (discount_rate, tax_rate) = self.rates;
        let (issue_date, total) = match self.said {
            Some((sub_total, discount, tax)) => ("#2026-02-01#", (minor(sub_total) - minor(discount) + minor(tax)).to_string()),
            None => ("NULL", "NULL".to_owned()),
        };
        let active = *lifecycle != "VOID";
        let mut sql = format!(
            "INSERT INTO documents (document_id, customer_id, organization_id, contract_id, entity_ref, kind, number_prefix, sequence, \
             purpose, slot, number_in_contract, currency, period_start, period_end, is_partial_period, net_terms, payment, \
             parent_document_id, created_at, lifecycle, issue_date, due_date, total_minor, paid_minor, credits_minor) VALUES \
             (@{id}@, @2@, @1@, @3@, 'main', '{kind}', 'MAIN', {sequence}, '{purpose}', {slot}, {id}, 'EUR', #2026-01-01#, \
             #2026-02-01#, FALSE, 'DUE_UPON_RECEIPT', '{PAYMENT}', {parent}, %CREATED%, '{lifecycle}', {issue_date}, {issue_date}, \
             {total}, 0, 0);\n\
             INSERT INTO document_parts (document_id, customer_id, product_no, position, contract_id, period_start, slot, tax_rate, \
             discount_rate, active) VALUES (@{id}@, @2@, {product_no}, 0, @3@, #2026-01-01#, {slot}, '{tax_rate}', \
             '{discount_rate}', {active});\n"
        );
        for (ordinal, (item, usage, amount)) in self.lines.iter().enumerate() {
            let item = item.map_or("NULL".to_owned(), |item| format!("'{item}'"));
            let (product, quantity) =
                usage.map_or(("NULL".to_owned(), "NULL".to_owned()), |(p, q)| (format!("'{p}'"), format!("'{q}'")));
            writeln!(
                sql,
                "INSERT INTO document_lines (document_id, customer_id, ordinal, contract_id, product_no, line_item_id, \
                 usage_product_ref, service_period_start, service_period_end, quantity, amount_minor) VALUES (@{id}@, @2@, {ordinal}, \
                 @3@, {product_no}, {item}, {product}, #2026-01-01#, #2026-02-01#, {quantity}, {amount});"
            )
            .expect("text");
        }
        sql
    }

    /// The seal, last: it freezes the lines.
    fn seal(&self, test: &TestDatabase) -> String {
        let Some(said) = self.said else { return String::new() };
        let hash = if test.is_sqlite() { "x'00'" } else { r"'\x00'" };
        let row = in_dialect(
            test,
            &format!(
                "INSERT INTO issued_documents (document_id, customer_id, organization_id, entity_ref, kind, chain_position, \
                 previous_hash, content_hash, content, issued_at) VALUES (@{}@, @2@, @1@, 'main', '{}', {}, {hash}, {hash}, '%SAID%', \
                 %ISSUED%);\n",
                self.id, self.kind, self.sequence
            ),
        );
        let row = row.replace("%ISSUED%", &instant(test, "2026-02-01T00:00:00Z"));
        row.replace("%SAID%", &self.content(said))
    }
}

fn instant(test: &TestDatabase, text: &str) -> String {
    in_dialect(test, &format!("~{text}~"))
}

const USED: Option<(&str, &str)> = Some(("calls", "12.50"));

const DOCUMENTS: [Old; 8] = [
    Old {
        id: INVOICE,
        kind: "INVOICE",
        sequence: 1,
        purpose: ("REGULAR", Some("PERIOD")),
        parent: None,
        product_no: 0,
        rates: ("10.0", "19.00"),
        lifecycle: "ISSUED",
        said: Some(("10.00", "1.00", "1.71")),
        lines: &[(Some("base"), None, 700), (Some("calls"), USED, 200), (None, None, 100)],
    },
    Old {
        id: DRAFT,
        kind: "INVOICE",
        sequence: 2,
        purpose: ("REGULAR", Some("CLOSING")),
        parent: None,
        product_no: 0,
        rates: ("0", "19"),
        lifecycle: "DRAFT",
        said: None,
        lines: &[],
    },
    Old {
        id: PREPAID,
        kind: "INVOICE",
        sequence: 3,
        purpose: ("REGULAR", Some("PERIOD")),
        parent: None,
        product_no: 1,
        rates: ("0", "7"),
        lifecycle: "UNCOLLECTIBLE",
        said: Some(("5.00", "0.00", "0.35")),
        lines: &[(Some("prepaid"), Some(("calls", "100")), 500)],
    },
    Old {
        id: CHILD,
        kind: "INVOICE",
        sequence: 4,
        purpose: ("USAGE", None),
        parent: Some(INVOICE),
        product_no: 0,
        rates: ("10.0", "19.00"),
        lifecycle: "ISSUED",
        said: Some(("3.33", "0.33", "0.57")),
        lines: &[(Some("calls"), USED, 333)],
    },
    Old {
        id: CREDIT,
        kind: "CREDIT",
        sequence: 1,
        purpose: ("ADJUSTMENT", None),
        parent: Some(CHILD),
        product_no: 0,
        rates: ("10", "19"),
        lifecycle: "ISSUED",
        said: Some(("1.00", "0.10", "0.17")),
        lines: &[(Some("calls"), USED, 100)],
    },
    Old {
        id: OPEN_CREDIT,
        kind: "CREDIT",
        sequence: 2,
        purpose: ("ADJUSTMENT", None),
        parent: Some(CHILD),
        product_no: 0,
        rates: ("10", "19"),
        lifecycle: "DRAFT",
        said: None,
        lines: &[(Some("calls"), USED, 7), (Some("base"), None, 1)],
    },
    Old {
        id: VOID,
        kind: "INVOICE",
        sequence: 5,
        purpose: ("REGULAR", Some("PERIOD")),
        parent: None,
        product_no: 2,
        rates: ("0", "19"),
        lifecycle: "VOID",
        said: Some(("2.00", "0.00", "0.38")),
        lines: &[(Some("base"), None, 200)],
    },
    Old {
        id: DISCARDED,
        kind: "INVOICE",
        sequence: 6,
        purpose: ("REGULAR", Some("PERIOD")),
        parent: None,
        product_no: 2,
        rates: ("0", "19"),
        lifecycle: "VOID",
        said: None,
        lines: &[],
    },
];

/// Terms as they were kept: fixed items with an amount and nothing else.
fn terms(payment_time: &str) -> String {
    let item = r#"{"id":"base","name":"base","charge":{"FIXED":{"amount":"49.00","recurrence":"EACH_PERIOD"}}}"#;
    let pricing = r#"{"pricing_ref":"api","name":"api","currency":"EUR","minimum_fee":null}"#;
    let schedule = r#"{"first_day":"2026-01-01","last_day":"2026-12-31","unit":"MONTHLY","count":1,"issue_day":null}"#;
    format!(
        r#"{{"pricing":{pricing},"line_items":[{item}],"schedule":{schedule},"payment_time":"{payment_time}","stated_entity":null,"entity_ref":"main","tax":null,"discount":null,"net_terms":null,"note":null,"payment":{PAYMENT}}}"#
    )
}

/// An event that counts in January, on the draft.
fn event(id: u128, at: &str, revision: u32) -> String {
    let columns = "event_id, customer_id, contract_id, product_no, usage_product_ref, service_start, service_end, document_id, \
                   occurred_at, quantity, recorded_at, revision, revised_at, revised_by, deleted";
    let values = format!(
        "@{id}@, @2@, @3@, 0, 'calls', #2026-01-01#, #2026-02-01#, @{DRAFT}@, %{at}%, '2.5', %{at}%, @REVISION, %{at}%, 'service', FALSE"
    );
    let now = values.replace("@REVISION", &revision.to_string());
    let mut sql = format!("INSERT INTO usage_events ({columns}) VALUES ({now});\n");
    if revision > 1 {
        let before = values.replace("@REVISION", "1");
        writeln!(sql, "INSERT INTO usage_event_revisions ({columns}, billed) VALUES ({before}, FALSE);").expect("text");
    }
    sql
}

fn fill(test: &TestDatabase) {
    let mut sql = format!(
        "INSERT INTO organizations (organization_id, name, created_at) VALUES (@1@, 'org', %CREATED%);\n\
         INSERT INTO customers (customer_id, organization_id, customer_ref, name, payment, created_at) VALUES \
         (@2@, @1@, 'acme', 'acme', '{PAYMENT}', %CREATED%);\n\
         INSERT INTO contracts (contract_id, customer_id, organization_id, number, version, created_at, documents_opened) VALUES \
         (@3@, @2@, @1@, 1, 1, %CREATED%, 20);\n"
    );
    for (product_no, payment_time) in [(0, "AFTER_USE"), (1, "BEFORE_USE"), (2, "DURING_USE")] {
        writeln!(
            sql,
            "INSERT INTO contract_products (contract_id, customer_id, product_no, in_force_from, version, terms) VALUES \
             (@3@, @2@, {product_no}, #2026-01-01#, 1, '{}');",
            terms(payment_time)
        )
        .expect("text");
    }
    DOCUMENTS.iter().for_each(|document| sql += &document.insert());
    // As they were noted: credits on their parents, whatever is due there.
    sql += &format!(
        "INSERT INTO payments (payment_id, customer_id, document_id, amount_minor, paid_date, recorded_at, recorded_by) VALUES \
         (@30@, @2@, @{INVOICE}@, 400, #2026-02-03#, %CREATED%, 'service');\n\
         UPDATE documents SET paid_minor = 400 WHERE document_id = @{INVOICE}@;\n\
         UPDATE documents SET credits_minor = 107 WHERE document_id = @{CHILD}@;\n"
    );
    // Before, within and after the period, by UTC.
    sql += &event(EVENT, "2025-12-31T23:30:00Z", 2);
    sql += &event(LATE_EVENT, "2026-02-01T00:30:00Z", 1);
    sql += &event(LATE_EVENT + 1, "2026-01-15T23:59:59.999999Z", 1);
    for (product, latest) in
        [("'calls'", format!("%2026-02-01T00:30:00Z%, @{LATE_EVENT}@, '2.5'")), ("'none'", "NULL, NULL, NULL".to_owned())]
    {
        writeln!(
            sql,
            "INSERT INTO usage_totals (customer_id, contract_id, product_no, period_start, usage_product_ref, organization_id, sum, \
             events, max, latest_at, latest_event_id, latest_quantity) VALUES (@2@, @3@, 0, #2026-01-01#, {product}, @1@, '7.5', 3, \
             '2.5', {latest});"
        )
        .expect("text");
    }
    let mut sql = in_dialect(test, &sql).replace("%CREATED%", &instant(test, "2026-01-01T00:00:00Z"));
    for at in ["2025-12-31T23:30:00Z", "2026-02-01T00:30:00Z", "2026-01-15T23:59:59.999999Z"] {
        sql = sql.replace(&format!("%{at}%"), &instant(test, at));
    }
    DOCUMENTS.iter().for_each(|document| sql += &document.seal(test));
    test.beside().execute(&sql).expect("data of before");
}

fn document(n: u128) -> DocumentRef {
    DocumentRef::from_uuid(id(n))
}

const fn here() -> (OrganizationId, CustomerId, ContractRef) {
    (
        OrganizationId::from_uuid(Uuid::from_u128(ORGANIZATION)),
        CustomerId::from_uuid(Uuid::from_u128(CUSTOMER)),
        ContractRef::from_uuid(Uuid::from_u128(CONTRACT)),
    )
}

fn what_was_there_is_brought_up_to_date(test: &TestDatabase) {
    migrate_to_before(test);
    fill(test);
    assert!(!test.database.migrate().expect("up").is_empty());
    documents_have_families(test);
    lines_have_rates_and_what_they_are_billed_with(test);
    families_have_sums(test);
    usage_has_service_dates(test);
    lists_find_what_was_there(test);
    what_is_owed_adds_up(test);
    let (organization, _, contract_ref) = here();
    let contract = read(test, |tx| tx.contract(organization, contract_ref)).expect("read").expect("a contract");
    assert_eq!((contract.products.len(), contract.products[0].segments.len()), (3, 1));
    // The lines of issued documents are frozen again.
    let error = test.beside().execute("UPDATE document_lines SET amount_minor = 1").expect_err("frozen").to_string();
    assert!(error.contains("never change"), "{error}");
    let of_issued =
        DOCUMENTS.iter().filter(|document| document.said.is_some()).map(|document| document.lines.len()).sum::<usize>();
    let frozen = test.beside().text("SELECT CAST(count(*) AS TEXT) AS text FROM document_lines WHERE frozen");
    assert_eq!(frozen, of_issued.to_string());
    assert!(!test.database.revert_migrations().expect("down, with data").is_empty());
}

/// Payments settle their documents, credits their families; what is owed adds up.
fn what_is_owed_adds_up(test: &TestDatabase) {
    let (organization, customer, _) = here();
    let accounts = read(test, |tx| tx.accounts(organization, Some(customer))).expect("accounts");
    let [(key, unapplied)] = accounts.as_slice() else { panic!("one account: {accounts:?}") };
    assert_eq!(unapplied.minor(), 0);
    let mut account = Account::new(key.clone(), true, *unapplied);
    account.add(AccountRows {
        documents: read(test, |tx| tx.account_documents(organization, key, DocumentsOf::All)).expect("documents"),
        payments: read(test, |tx| tx.account_payments(organization, key, PaymentsOf::All)).expect("payments"),
        applications: read(test, |tx| tx.account_applications(organization, key, ApplicationsOf::All)).expect("applications"),
    });
    let written_off = read(test, |tx| tx.written_off(organization, customer)).expect("write-offs");
    assert_eq!(written_off.iter().map(|(_, amount)| amount.minor()).collect::<Vec<_>>(), [535]);
    assert_eq!(check_account(&account, written_off[0].1).expect("small amounts"), [""; 0]);
    let of = |wanted: u128| {
        let found = account.documents().find(|known| known.head.document_ref == document(wanted)).expect("a document");
        let owed = found.owed().expect("small amounts");
        let amount = |amount: Option<Money>| amount.map(Money::minor);
        (found.settlement.paid.minor(), found.settlement.credits.minor(), amount(owed.amount_due), amount(owed.unapplied))
    };
    assert_eq!(of(INVOICE), (400, 0, Some(671), None));
    assert_eq!(of(CHILD), (0, 107, Some(250), None));
    assert_eq!(of(CREDIT), (0, 0, None, Some(0)));
}

fn documents_have_families(test: &TestDatabase) {
    let (organization, customer, _) = here();
    let refs: Vec<DocumentRef> = DOCUMENTS.iter().map(|old| document(old.id)).collect();
    let known = read(test, |tx| tx.book_documents_by_refs(organization, &[customer], &refs)).expect("documents");
    let of = |known: &BookDocument| (known.head.document_ref, known.family);
    let mut shown: Vec<_> = known.iter().map(of).collect();
    shown.sort_by_key(|row| row.0);
    let expected = [
        (INVOICE, INVOICE),
        (DRAFT, DRAFT),
        (OPEN_CREDIT, INVOICE),
        (PREPAID, PREPAID),
        (CHILD, INVOICE),
        (CREDIT, INVOICE),
        (VOID, VOID),
        (DISCARDED, DISCARDED),
    ];
    assert_eq!(shown, expected.map(|(n, family)| (document(n), document(family))));
    // What was frozen before is read, and is what was issued.
    for old in &DOCUMENTS {
        let stored = read(test, |tx| tx.document(organization, document(old.id))).expect("read").expect("a document");
        assert_eq!(stored.head.parts, [ProductNo(old.product_no)]);
        assert_eq!(stored.lifecycle.issued().is_some(), old.said.is_some(), "{}", old.id);
    }
    let discarded = read(test, |tx| tx.document(organization, document(DISCARDED))).expect("read").expect("a document");
    assert_eq!(discarded.lifecycle, Lifecycle::Discarded(None));
}

fn lines_have_rates_and_what_they_are_billed_with(test: &TestDatabase) {
    let (organization, customer, contract_ref) = here();
    let mut found =
        read(test, |tx| tx.book_rows(ContractKey { organization, customer, contract: contract_ref })).expect("a book").lines;
    found.sort_by_key(|line| (line.document_ref, std::cmp::Reverse(line.line.amount.minor())));
    let shown: Vec<_> = found
        .iter()
        .map(|of| {
            assert_eq!(of.line.key.period_start, of.line.service_period.start());
            let Rates { discount, tax } = of.line.rates.clone();
            (of.document_ref, of.family, of.line.amount.minor(), of.line.key.bill_with, discount, tax)
        })
        .collect();
    let expected = [
        (INVOICE, INVOICE, 700, BillWith::Fixed, "10", "19"),
        (INVOICE, INVOICE, 200, BillWith::Usage, "10", "19"),
        (INVOICE, INVOICE, 100, BillWith::Usage, "10", "19"),
        (OPEN_CREDIT, INVOICE, 7, BillWith::Usage, "10", "19"),
        (OPEN_CREDIT, INVOICE, 1, BillWith::Fixed, "10", "19"),
        (PREPAID, PREPAID, 500, BillWith::Fixed, "0", "7"),
        (CHILD, INVOICE, 333, BillWith::Usage, "10", "19"),
        (CREDIT, INVOICE, 100, BillWith::Usage, "10", "19"),
    ];
    let expected = expected.map(|(n, family, amount, with, discount, tax)| {
        (document(n), document(family), amount, with, percent(discount), taxed(tax))
    });
    assert_eq!(shown, expected);
}

fn families_have_sums(test: &TestDatabase) {
    let (organization, customer, contract_ref) = here();
    let sums =
        read(test, |tx| tx.book_rows(ContractKey { organization, customer, contract: contract_ref })).expect("a book").sums;
    let found: Vec<FamilySum> = sums
        .iter()
        .flat_map(|(family, sums)| sums.iter().map(|(key, sum)| FamilySum { family: *family, key: key.clone(), sum }))
        .collect();
    let rates = |discount: &str, tax: &str| Rates { discount: percent(discount), tax: taxed(tax) };
    let of = |family, key, base, amount| FamilySum { family: document(family), key, sum: Sum { base, amount } };
    let expected = [
        of(INVOICE, SumKey::Discount(ProductNo(0), rates("10", "19")), 1000 + 333 - 100, 100 + 33 - 10),
        of(INVOICE, SumKey::Tax(taxed("19")), 900 + 300 - 90, 171 + 57 - 17),
        of(PREPAID, SumKey::Discount(ProductNo(1), rates("0", "7")), 500, 0),
        of(PREPAID, SumKey::Tax(taxed("7")), 500, 35),
    ];
    assert_eq!(found, expected);
}

fn lists_find_what_was_there(test: &TestDatabase) {
    let (organization, _, contract_ref) = here();
    let documents = |filter: &DocumentFilter| {
        let found =
            read(test, |tx| tx.listed_documents(organization, filter, DocumentOrder::default(), PageRequest::LARGEST.into()));
        let mut refs: Vec<_> = found.expect("documents").iter().map(|found| found.head.document_ref).collect();
        refs.sort();
        refs
    };
    let owed = documents(&DocumentFilter { has_amount_due: Some(true), ..DocumentFilter::default() });
    assert_eq!(owed, [INVOICE, CHILD].map(document), "neither credit nor void nor given up on");
    let issued_at = Some(at("2026-02-01T00:00:00Z"));
    let updated = documents(&DocumentFilter { updated_since: issued_at, ..DocumentFilter::default() });
    assert_eq!(updated, [INVOICE, PREPAID, CHILD, CREDIT, VOID].map(document), "those that were issued");
    let contracts = |filter: ContractFilter| {
        let found = read(test, |tx| tx.contracts(organization, &filter, ContractSortKey::Created, PageRequest::LARGEST))
            .expect("contracts");
        found.items.iter().map(|contract| contract.contract_ref).collect::<Vec<_>>()
    };
    let ends_before = |day| contracts(ContractFilter { ends_before: Some(date(day)), ..ContractFilter::default() });
    assert_eq!((ends_before("2026-12-31"), ends_before("2027-01-01")), (vec![], vec![contract_ref]));
    let in_state = |state, instant: &str| {
        contracts(ContractFilter { state: Some((state, Todays::at(at(instant), &[]))), ..ContractFilter::default() })
    };
    assert_eq!(in_state(ContractState::Pending, "2025-12-31T12:00:00Z"), [contract_ref]);
    assert_eq!(in_state(ContractState::Active, "2026-01-01T12:00:00Z"), [contract_ref]);
}

fn usage_has_service_dates(test: &TestDatabase) {
    let (organization, customer, contract_ref) = here();
    let event_ref = |n| EventRef::from_uuid(id(n));
    for (n, expected) in [(EVENT, "2026-01-01"), (LATE_EVENT, "2026-01-31"), (LATE_EVENT + 1, "2026-01-15")] {
        let event = read(test, |tx| tx.event(organization, event_ref(n))).expect("read").expect("an event");
        assert_eq!(event.service_date, date(expected));
    }
    let earlier = read(test, |tx| tx.superseded_revisions(organization, &[customer], &[event_ref(EVENT)])).expect("revisions");
    assert_eq!(earlier.iter().map(|event| event.service_date).collect::<Vec<_>>(), [date("2026-01-01")]);
    let totals =
        read(test, |tx| tx.book_rows(ContractKey { organization, customer, contract: contract_ref })).expect("a book").usage;
    let shown: Vec<_> = totals
        .iter()
        .map(|(key, total)| (key.usage_product_ref.clone(), total.latest.map(|latest| (latest.event_ref, latest.service_date))))
        .collect();
    let latest = (event_ref(LATE_EVENT), date("2026-01-31"));
    assert_eq!(shown, [(usage_product_ref("calls"), Some(latest)), (usage_product_ref("none"), None)]);
}

#[test]
fn sqlite_is_brought_up_to_date() {
    what_was_there_is_brought_up_to_date(&empty_sqlite());
}

#[test]
fn postgres_is_brought_up_to_date() {
    what_was_there_is_brought_up_to_date(&empty_postgres());
}

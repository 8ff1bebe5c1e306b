//! Every statement names its customer, so that customers can be distributed over nodes. A reference in a path may query all nodes
//! once, and every later statement queries one node. The test reads the plans that PostgreSQL logs for the statements of every
//! operation.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use acceptance::database::Planned;
use acceptance::{Client, Database, binary, books, catalog, on_both_databases, tour};
use serde_json::{Value, json};

/// Distributed tables with their distribution column, if it isn't the customer's.
const BY_ANOTHER_COLUMN: [(&str, &str); 14] = [
    ("search_words", "organization_id"),
    ("number_series", "entity_ref"),
    ("replay_log", "idempotency_key"),
    ("audit_log", "beside"),
    ("sessions", "digest"),
    ("customer_refs", "customer_ref"),
    ("refused_usage", "customer_ref"),
    ("usage_imports", "import_id"),
    ("usage_import_events", "import_id"),
    ("billing_runs", "run_id"),
    ("notification_heads", "organization_id"),
    ("webhook_endpoints", "endpoint_id"),
    ("webhook_secrets", "endpoint_id"),
    ("webhook_deliveries", "endpoint_id"),
];

/// Statements that query all nodes on purpose: a part of their text, with the reason.
const EVERYWHERE: [(&str, &str); 68] = [
    ("FROM (VALUES ($1)) k CROSS JOIN contracts t", NAMES),
    ("FROM (VALUES ($1)) k CROSS JOIN documents t", NAMES),
    (r#"FROM "contracts" WHERE (("contracts"."contract_id" = $1) AND ("contracts"."organization_id" = $2))"#, A_REFERENCE),
    (r#"FROM "documents" WHERE (("documents"."document_id" = $1) AND ("documents"."organization_id" = $2))"#, A_REFERENCE),
    (r#"FROM "charges" WHERE (("charges"."organization_id" = $1) AND ("charges"."charge_ref" = $2))"#, A_REFERENCE),
    (
        r#"FROM "credit_grants" WHERE (("credit_grants"."grant_id" = $1) AND ("credit_grants"."organization_id" = $2))"#,
        A_REFERENCE,
    ),
    (r#"FROM "credit_grants" WHERE ("credit_grants"."organization_id" = $1)"#, A_LIST),
    (r#"FROM "limits" WHERE (("limits"."limit_id" = $1) AND ("limits"."organization_id" = $2))"#, A_REFERENCE),
    (r#"FROM "limits" WHERE ("limits"."organization_id" = $1)"#, A_LIST),
    (r#"FROM "payments" WHERE (("payments"."payment_id" = $1) AND ("payments"."organization_id" = $2))"#, A_REFERENCE),
    (r#"FROM "applications" WHERE ((("applications"."application_id" = $1)"#, A_REFERENCE),
    (
        r#""usage_events"."customer_id")) WHERE "usage_events"."event_id" = ANY($1)"#,
        "a file names events by their references alone",
    ),
    ("SELECT contract_id, customer_id FROM contracts WHERE organization_id = $1", A_LIST),
    ("SELECT count(*) FROM contracts WHERE organization_id = $1", A_LIST),
    ("SELECT document_id, customer_id FROM documents WHERE organization_id = $1", A_LIST),
    ("SELECT currency, count(*), ", A_LIST),
    (r#"FROM "charges" WHERE (("charges"."organization_id" = $1) AND ("charges"."deleted" = $2))"#, A_LIST),
    ("SELECT CAST(coalesce(sum(events), 0) AS BIGINT) FROM usage_totals", A_LIST),
    ("SELECT e.event_id, e.customer_id FROM (", A_LIST),
    ("SELECT e.event_id, e.report_data FROM (", A_REPORT),
    ("SELECT e.event_id, e.occurred_at, ", A_REPORT),
    ("FROM charges t WHERE t.organization_id = $1", A_SEARCH),
    ("FROM contracts t WHERE t.organization_id = $1", A_SEARCH),
    ("FROM documents t WHERE t.organization_id = $1", A_SEARCH),
    ("FROM payments t WHERE t.organization_id = $1", A_SEARCH),
    (
        r#"COUNT(*) FROM "contracts" WHERE (("contracts"."next_due_at" IS NOT NULL)"#,
        "a metric counts late contracts of all customers",
    ),
    (r#"WHERE ((("contracts"."next_due_at" IS NOT NULL)"#, "the billing run looks for contracts of all customers"),
    (r#"WHERE (((("contracts"."next_due_at" IS NOT NULL)"#, "the billing run looks for contracts of all customers"),
    ("FROM audit_log WHERE organization_id = $1", THE_LOG),
    (r#"FROM "refused_usage" WHERE ("refused_usage"."organization_id" = $1)"#, A_LIST),
    (r#"FROM "refused_usage" WHERE ("refused_usage"."day" < $1)"#, FORGOTTEN),
    (r#""usage_imports"."organization_id" = $1)"#, A_HISTORY),
    (r#"FROM "usage_imports" WHERE ("usage_imports"."begun_at" < $1)"#, FORGOTTEN),
    (r#""billing_runs"."organization_id" = $1)"#, A_HISTORY),
    (r#"FROM "billing_runs" WHERE ("billing_runs"."begun_at" < $1)"#, FORGOTTEN),
    ("AS TEXT) LIKE $2", "the contracts that name an entity are all customers'"),
    (r#"("accounts"."entity_ref" = $2)"#, "the accounts with an entity are all customers'"),
    (r#""contracts"."contract_id" > $2)) ORDER BY "contracts"."contract_id" LIMIT"#, VERIFY),
    (r#"FROM "accounts" WHERE ("accounts"."organization_id" = $1) ORDER BY"#, VERIFY),
    (r#""documents_opened", count("documents"."document_id")"#, VERIFY),
    (r#"FROM "documents" WHERE ("documents"."organization_id" = $1) GROUP BY"#, VERIFY),
    (r#"SELECT DISTINCT "issued_documents"."entity_ref""#, VERIFY),
    (r#"("issued_documents"."chain_position" >= $4)"#, VERIFY),
    (r#"("issued_documents"."document_id" IS NULL)"#, VERIFY),
    (r#"ORDER BY "document_files"."document_id""#, VERIFY),
    (r#"("number_series"."kind" != $2)"#, VERIFY),
    ("FROM notifications WHERE organization_id = $1", A_FEED),
    (r#"FROM "notifications" WHERE ("notifications"."position" IS NULL)"#, A_FEED),
    ("FROM notifications n WHERE n.organization_id = $1", A_FEED),
    (r#"max("notifications"."position")"#, A_FEED),
    (r#"("webhook_endpoints"."enabled" = $2)"#, A_FEED),
    (r#""notifications"."kind", "notifications"."position" FROM "notifications""#, A_FEED),
    (r#"FROM "webhook_endpoints" WHERE ("webhook_endpoints"."organization_id" = $1) ORDER BY"#, A_LIST),
    ("FROM webhook_endpoints e WHERE e.enabled", "deliveries are due at the endpoints of all organizations"),
    ("SELECT count(*), min(created_at) FROM webhook_deliveries", "a metric counts the deliveries to all endpoints"),
    (r#"SELECT "contracts"."next_due_at" FROM "contracts""#, "the clock of a sandbox stops at what is due of all customers"),
    (r#"SELECT "notices"."at" FROM "notices" WHERE ("notices"."at" > $1)"#, "the clock of a sandbox stops at all notices"),
    (
        r#"FROM "contracts" WHERE (("contracts"."next_due_at" IS NOT NULL) AND ("contracts"."next_due_at" <= $1)) ORDER"#,
        "the clock of a sandbox stops at what is due of all customers",
    ),
    (r#"("notices"."at" <= $1)"#, "the billing run looks for notices of all customers"),
    (r#"SELECT "notifications"."created_at" FROM "notifications""#, VERIFY),
    ("FROM issued_documents d WHERE d.organization_id = $1", VERIFY),
    (r#"SELECT "notifications"."position", "notifications"."created_at""#, FORGOTTEN),
    (r#"("notifications"."position" <= $2)"#, FORGOTTEN),
    (r#"("webhook_deliveries"."position" <= $2)"#, FORGOTTEN),
    (r#"DELETE FROM "sessions" WHERE ("sessions"."created_at" < $1)"#, FORGOTTEN),
    (r#"DELETE FROM "sessions" WHERE (("sessions"."admin_id" = $1) AND ("sessions"."digest" != $2))"#, THEIR_SESSIONS),
    (r#"DELETE FROM "sessions" WHERE (("sessions"."admin_id" = $1) AND ("sessions"."session_id" = $2))"#, THEIR_SESSIONS),
    (r#"FROM "sessions" WHERE ("sessions"."admin_id" = $1) ORDER BY"#, THEIR_SESSIONS),
];
const A_REFERENCE: &str = "a path names it by its reference alone, once";
const THE_LOG: &str = "the log is the whole organization's, and an entry lies where its own reference says";
const A_HISTORY: &str = "the history is the whole organization's, and a row lies where its own reference says";
const THEIR_SESSIONS: &str = "a session lies where its cookie says, and an administrator has few";
/// These deletions run when they are due, which may not happen during the test.
const FORGOTTEN: &str = "what is too old is forgotten of all customers";
const A_LIST: &str = "a list of all customers'";
const A_REPORT: &str = "a report on all customers";
const A_FEED: &str = "the feed is the whole organization's";
const NAMES: &str = "the names of the objects on a page, which may be any customer's";
const A_SEARCH: &str = "what is searched for may be any customer's";
const VERIFY: &str = "everything is verified";

/// Returns the distribution column of a table.
fn distribution(table: &str) -> &'static str {
    BY_ANOTHER_COLUMN.iter().find(|(other, _)| *other == table).map_or("customer_id", |(_, column)| column)
}

#[test]
fn statements_name_the_customer_they_are_about() {
    let database = Database::one_postgres();
    // The tables must exist before their statements are planned.
    binary::succeed(&database, &["migrate"]);
    database.log_plans();
    carry_everything_out(&database);

    let spread: BTreeSet<String> = database
        .ask("SELECT table_name FROM information_schema.columns WHERE column_name = 'customer_id' AND table_name <> 'customers'")
        .into_iter()
        .chain(BY_ANOTHER_COLUMN.iter().map(|(table, _)| (*table).to_owned()))
        .collect();
    let (mut everywhere, mut met, mut seen) = (BTreeMap::new(), BTreeSet::new(), 0);
    for Planned { statement, plan } in database.logged_plans() {
        let nowhere = unnamed(&plan, &spread);
        seen += 1;
        if nowhere.is_empty() {
            continue;
        }
        match EVERYWHERE.iter().find(|(part, _)| statement.contains(part)) {
            Some((part, _)) => drop(met.insert(*part)),
            None => drop(everywhere.insert(statement, nowhere)),
        }
    }
    assert!(seen > 1000, "only {seen} plans");
    let reported: Vec<String> = everywhere.iter().map(|(statement, tables)| format!("{tables:?}: {statement}")).collect();
    assert!(reported.is_empty(), "{} statements query every node:\n{}", reported.len(), reported.join("\n"));
    let expected = EVERYWHERE.iter().filter(|(_, why)| *why != FORGOTTEN).map(|(part, _)| *part);
    let in_vain: Vec<&str> = expected.filter(|part| !met.contains(part)).collect();
    assert!(in_vain.is_empty(), "no statement with these texts queries every node: {in_vain:?}");
}

on_both_databases!(a_database_without_the_extension_is_not_spread);

fn a_database_without_the_extension_is_not_spread(database: &Database) {
    if database.is_spread() {
        return;
    }
    let why =
        if database.is_sqlite() { "A SQLite file is on one machine" } else { "The database does not have the extension Citus" };
    for _ in 0..2 {
        let stated = binary::succeed(database, &["migrate", "--distribute"]);
        assert!(stated.ends_with(&format!("{why}: nothing to distribute.\n")), "{stated}");
    }
}

/// Runs on the cluster that the environment names.
#[test]
fn everything_is_carried_out_on_a_cluster() {
    let database = Database::postgres();
    if !database.is_spread() {
        // Written to standard error directly, because the harness hides the output of passing tests.
        writeln!(std::io::stderr(), "SKIPPED: no Citus cluster is named, so nothing was tried on one").expect("standard error");
        return;
    }
    assert_eq!(
        binary::succeed(&database, &["migrate", "--distribute"]),
        "The schema is up to date.\nAll tables are distributed.\n"
    );
    carry_everything_out(&database);
}

/// Runs every operation and `verify`.
fn carry_everything_out(database: &Database) {
    let (server, _clock) = tour::begin(database, &[]);
    let client = tour::take(&server).client;
    beside_the_tour(&client);
    // Everything due is issued, because `verify` reports overdue documents.
    client.post("/api/billing/run", &json!({})).ok();
    drop(server);
    binary::succeed(database, &["verify"]);
}

/// Runs cases that the tour doesn't need: many events at once of several contracts and customers, repeats under their keys,
/// events that move, and documents that are voided before they are issued.
fn beside_the_tour(client: &Client) {
    // A position that is not in the feed.
    assert_eq!(client.get("/api/notifications/filter?after=1000000000").status, 409);
    let customers = ["one", "two", "three"];
    for customer in customers {
        catalog::make_customer(client, customer);
        let product = json!({"product_pricing_ref": "api-plan", "billing_start_date": "2026-11-01", "billing_end_date": "2027-10-31", "entity_ref": "seller"});
        client.post("/api/contracts/", &json!({"customer_ref": customer, "products": [product]})).ok();
    }
    let event = |customer: &str, day: u32, key: &str| {
        json!({
            "timestamp": format!("2026-11-{day:02}T06:00:00Z"), "customer_ref": customer, "usage_product_ref": "api-calls",
            "quantity": 1, "idempotency_key": key,
        })
    };
    let events: Vec<Value> = customers.iter().map(|customer| event(customer, 5, "first")).collect();
    for _ in 0..2 {
        client.post("/api/usage/event/batch", &json!({"events": events})).ok();
    }
    let event_ref = books::report(client, &event("one", 6, "second"))["event_ref"].clone();
    books::update(client, &event_ref, json!({"timestamp": "2026-11-07T06:00:00Z"})).ok();
    let copy = json!([catalog::with(event("one", 7, "second"), &json!({"event_ref": event_ref}))]);
    client.post("/api/usage/import?name=copies.json", &copy).ok();
    client.get(&format!("/api/usage/event/{}", event_ref.as_str().expect("a reference"))).ok();
    client.get("/api/documents/filter?pageSize=1000").ok();
    client.get("/api/usage/event/filter?pageSize=1000").ok();
    client.get("/api/charges/filter?pageSize=1000").ok();
    client.get("/api/usage/refused/filter").ok();
    client.get("/api/usage/imports/filter").ok();
    client.get("/api/billing/runs/filter").ok();
    client.get("/api/contracts/search?pageSize=1000").ok();
    client.post("/api/entities/edit/seller", &json!({"grace_hours": 4})).ok();
}

/// Returns the tables of a plan whose rows are searched on all nodes.
fn unnamed(plan: &Value, spread: &BTreeSet<String>) -> BTreeSet<String> {
    let (mut scans, mut equal) = (BTreeMap::new(), Vec::new());
    walk(plan, &mut scans, &mut equal);
    let is_column = |side: &str| {
        side.split_once('.').is_some_and(|(alias, _)| scans.keys().any(|scan: &String| scan == alias.trim_matches('"')))
    };
    let is_named = |column: String| {
        let mut reached = BTreeSet::from([column]);
        loop {
            let further: BTreeSet<String> = equal
                .iter()
                .flat_map(|(a, b)| [(a, b), (b, a)])
                .filter(|(a, b)| reached.contains(*a) && !reached.contains(*b))
                .map(|(_, b): (&String, &String)| b.clone())
                .collect();
            if further.iter().any(|side| !is_column(side)) {
                return true;
            }
            if further.is_empty() {
                return false;
            }
            reached.extend(further);
        }
    };
    let spread = scans.iter().filter(|(_, table)| spread.contains(*table));
    spread
        .filter(|(alias, table)| !is_named(format!("{alias}.{}", distribution(table))))
        .map(|(_, table)| table.clone())
        .collect()
}

/// Collects the tables that a plan reads, by alias, and the columns and values that it requires to be equal.
fn walk(node: &Value, scans: &mut BTreeMap<String, String>, equal: &mut Vec<(String, String)>) {
    if let (Some(alias), Some(table), Some(kind)) =
        (node["Alias"].as_str(), node["Relation Name"].as_str(), node["Node Type"].as_str())
        && kind != "ModifyTable"
    {
        scans.insert(alias.to_owned(), table.to_owned());
    }
    for (key, value) in node.as_object().into_iter().flatten() {
        if let Some(condition) = value.as_str().filter(|_| key.ends_with("Cond") || key.ends_with("Filter")) {
            equalities(condition, equal);
        }
    }
    node["Plans"].as_array().into_iter().flatten().for_each(|below| walk(below, scans, equal));
}

/// Collects the equalities that must all hold for a condition to hold.
fn equalities(condition: &str, equal: &mut Vec<(String, String)>) {
    let condition = bare(condition);
    let parts = split(condition, " AND ");
    if parts.len() > 1 {
        parts.into_iter().for_each(|part| equalities(part, equal));
    } else if split(condition, " OR ").len() == 1
        && let [left, right] = split(condition, " = ")[..]
    {
        equal.push((side(left), side(right)));
    }
}

/// Returns a side of an equality: a column without its cast, or another expression.
fn side(text: &str) -> String {
    let text = text.strip_prefix("ANY ").unwrap_or(text);
    let text = bare(split(text, "::")[0]);
    text.replace('"', "")
}

/// Returns a text without parentheses around all of it.
fn bare(text: &str) -> &str {
    let text = text.trim();
    let inner = text.strip_prefix('(').and_then(|inner| inner.strip_suffix(')'));
    match inner.filter(|inner| is_balanced(inner)) {
        Some(inner) => bare(inner),
        None => text,
    }
}

fn is_balanced(text: &str) -> bool {
    let mut depth = 0;
    text.chars().all(|character| {
        depth += match character {
            '(' => 1,
            ')' => -1,
            _ => 0,
        };
        depth >= 0
    })
}

/// Splits a text at a separator outside of parentheses.
fn split<'t>(text: &'t str, separator: &str) -> Vec<&'t str> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ if depth == 0 && at >= begin && text[at..].starts_with(separator) => {
                parts.push(&text[begin..at]);
                begin = at + separator.len();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

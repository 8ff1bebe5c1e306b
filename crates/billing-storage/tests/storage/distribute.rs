//! Distribution of a database over nodes, without Citus. Functions and a table with the names of Citus record the calls and
//! reject what Citus rejects.

use std::collections::BTreeSet;

use billing_domain::ports::{Store, StoreError};
use billing_storage::Distribution;
use billing_testkit::suite;

use crate::rows::world;
use crate::support::{TestDatabase, open, postgres, sqlite};
use billing_testkit::Singly as _;

/// The stand-in for Citus. Both of its functions reject a table with a foreign key. A distributed table needs the distribution
/// column in every unique index.
const EXTENSION: &str = "
CREATE TABLE pg_dist_partition (logicalrelid REGCLASS NOT NULL, told TEXT NOT NULL);
CREATE FUNCTION hand_over(handed REGCLASS, by_column TEXT, beside TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    met TEXT;
BEGIN
    IF current_setting('citus.enable_unsafe_triggers') <> 'on' OR current_setting('citus.multi_shard_modify_mode') <> 'sequential' THEN
        RAISE EXCEPTION 'not set';
    END IF;
    SELECT conname INTO met FROM pg_constraint WHERE contype = 'f' AND handed IN (conrelid, confrelid) LIMIT 1;
    IF found THEN
        RAISE EXCEPTION '% has the foreign key %', handed, met;
    END IF;
    SELECT i.indexrelid::regclass::text INTO met FROM pg_index i
        WHERE by_column IS NOT NULL AND i.indrelid = handed AND i.indisunique AND NOT EXISTS (
            SELECT 1 FROM pg_attribute a WHERE a.attrelid = handed AND a.attnum = ANY (i.indkey) AND a.attname = by_column
        ) LIMIT 1;
    IF found THEN
        RAISE EXCEPTION '% has the unique index % without %', handed, met, by_column;
    END IF;
    INSERT INTO pg_dist_partition VALUES (handed, concat_ws(' ', handed, by_column, beside));
END $$;
CREATE FUNCTION create_reference_table(handed REGCLASS) RETURNS VOID LANGUAGE sql AS 'SELECT hand_over(handed, NULL, NULL)';
CREATE FUNCTION create_distributed_table(handed REGCLASS, by_column TEXT, colocate_with TEXT) RETURNS VOID LANGUAGE sql
    AS 'SELECT hand_over(handed, by_column, colocate_with)';
";

/// Returns a database with the extension and with a customer's contract and documents.
fn with_extension() -> TestDatabase {
    let test = postgres();
    let w = world(&test);
    let issued = w.open(&test, 1);
    w.open(&test, 2);
    crate::support::write(&test, |tx| tx.issue_document(issued.key(w.organization), &w.frozen(&issued, 100)));
    test.beside().execute(EXTENSION).expect("the extension");
    test
}

/// Returns the constraints, indexes and triggers of all tables, one per line.
fn schema(test: &TestDatabase) -> BTreeSet<String> {
    let lines = test.beside().text(
        "SELECT string_agg(line, E'\\n') AS text FROM (\
             SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS line \
             FROM pg_constraint WHERE connamespace = 'public'::regnamespace \
             UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
             UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal\
         ) AS lines",
    );
    lines.lines().map(ToOwned::to_owned).collect()
}

fn told(test: &TestDatabase) -> BTreeSet<String> {
    test.beside()
        .text("SELECT coalesce(string_agg(told, ','), '') AS text FROM pg_dist_partition")
        .split(',')
        .map(ToOwned::to_owned)
        .collect()
}

fn spread(test: &TestDatabase) -> Vec<String> {
    match test.database.distribute().expect("a distributed database") {
        Distribution::Done(tables) => tables,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_is_spread_without_the_extension() {
    assert_eq!(sqlite().database.distribute().expect("no work"), Distribution::File);
    let test = postgres();
    let before = schema(&test);
    assert_eq!(test.database.distribute().expect("no work"), Distribution::WithoutExtension);
    assert_eq!(schema(&test), before);
}

#[test]
fn every_table_is_spread_once_and_every_key_is_there_again() {
    let test = with_extension();
    let before = schema(&test);
    let handed = spread(&test);
    assert_eq!(spread(&test), [""; 0], "the second run has nothing to do");

    let all = test.beside().text(
        "SELECT string_agg(tablename, ',') AS text FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'pg_dist_partition'",
    );
    assert_eq!(handed.iter().map(String::as_str).collect::<BTreeSet<_>>(), all.split(',').collect());
    let of_customers = test.beside().text(
        "SELECT string_agg(table_name || ' customer_id ' || CASE table_name WHEN 'contracts' THEN 'none' ELSE 'contracts' END, ',') \
         AS text FROM information_schema.columns WHERE column_name = 'customer_id' \
         AND table_name NOT IN ('customers', 'webhook_deliveries')",
    );
    let mut expected: BTreeSet<String> = of_customers.split(',').map(ToOwned::to_owned).collect();
    let by_themselves = [
        "number_series entity_ref none",
        "replay_log idempotency_key none",
        "audit_log audit_id none",
        "refused_usage customer_ref none",
        "usage_imports import_id none",
        "usage_import_events import_id none",
        "billing_runs run_id none",
        "notification_heads organization_id none",
        "webhook_endpoints endpoint_id none",
        "webhook_secrets endpoint_id none",
        "webhook_deliveries endpoint_id none",
    ];
    expected.extend(by_themselves.map(str::to_owned));
    let (spread, copied): (BTreeSet<String>, BTreeSet<String>) = told(&test).into_iter().partition(|told| told.contains(' '));
    assert_eq!(spread, expected);
    assert_eq!(spread.len() + copied.len(), handed.len());

    // The differences are unique indexes, which no single node can check.
    let after = schema(&test);
    let gone: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    let came: Vec<&str> =
        after.difference(&before).map(String::as_str).filter(|line| !line.contains("pg_dist_partition")).collect();
    assert_eq!(
        gone,
        [
            "CREATE UNIQUE INDEX charges_organization_id_charge_ref_key ON public.charges USING btree (organization_id, charge_ref)",
            "CREATE UNIQUE INDEX documents_numbers ON public.documents USING btree (organization_id, number_prefix, kind, sequence, \
             number_copy)",
            "charges charges_organization_id_charge_ref_key UNIQUE (organization_id, charge_ref)",
        ]
    );
    assert_eq!(
        came,
        [
            "CREATE INDEX charges_organization_id_charge_ref_key ON public.charges USING btree (organization_id, charge_ref)",
            "CREATE INDEX documents_numbers ON public.documents USING btree (organization_id, number_prefix, kind, sequence, \
             number_copy)",
        ]
    );
}

#[test]
fn a_table_that_came_later_is_spread_alone() {
    let test = with_extension();
    spread(&test);
    let before = schema(&test);
    test.beside().execute("DELETE FROM pg_dist_partition WHERE logicalrelid = 'write_offs'::regclass").expect("a new table");
    assert_eq!(spread(&test), ["write_offs"]);
    assert_eq!(schema(&test), before);
}

#[test]
fn a_table_that_is_refused_leaves_all_as_it_was() {
    let test = with_extension();
    let before = schema(&test);
    test.beside().execute("CREATE UNIQUE INDEX refused ON usage_event_keys (event_id)").expect("an index");
    let refused = test.database.distribute().expect_err("a unique index that one node cannot check");
    assert!(reason(&refused).contains("usage_event_keys has the unique index refused"), "{refused:?}");
    test.beside().execute("DROP INDEX refused").expect("a dropped index");
    assert_eq!((schema(&test), told(&test)), (before, BTreeSet::from([String::new()])));
}

fn reason(error: &StoreError) -> String {
    std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string)
}

#[test]
fn ready_says_what_is_missing() {
    let test = with_extension();
    let refused = |test: &TestDatabase| reason(&open(&test.url).ready().expect_err("an unready store"));
    let unspread = refused(&test);
    assert!(
        unspread.contains("usage_event_keys") && unspread.ends_with("run `usage-billing migrate --distribute`"),
        "{unspread}"
    );
    spread(&test);
    let unset = refused(&test);
    assert!(unset.starts_with("citus.enable_unsafe_triggers is off"), "{unset}");
    let name = test.beside().text("SELECT current_database()::text AS text");
    test.beside().execute(&format!("ALTER DATABASE {name} SET citus.enable_unsafe_triggers = on")).expect("a setting");
    open(&test.url).ready().expect("a ready store");
}

/// Checks that locks per customer also fulfill the contract of the ports in a distributed database.
#[test]
fn a_database_that_is_spread_keeps_the_ports_duties() {
    let duties: [fn(&dyn Store); 10] = [
        suite::contracts::contracts_metering_looks_at_every_version_of_every_product,
        suite::contracts::contracts_that_ever_named_an_entity_are_looked_at_again,
        suite::locks::held_totals_lose_no_update,
        suite::locks::totals_held_in_any_order_end_in_no_deadlock,
        suite::usage::totals_that_are_not_there_are_made_as_zero,
        suite::usage::totals_are_answered_in_the_order_of_their_keys,
        suite::usage::totals_of_many_customers_are_held_and_replaced_at_once,
        suite::isolation::another_organization_sees_no_contracts,
        suite::isolation::another_organization_sees_no_usage,
        suite::isolation::a_reference_alone_tells_whose_it_is_and_another_customer_has_none_of_it,
    ];
    let test = postgres();
    test.beside().execute(EXTENSION).expect("the extension");
    spread(&test);
    // New connections detect the distribution.
    let found = open(&test.url);
    duties.iter().for_each(|duty| duty(&found));
}

//! Distribution of a database over the nodes of a cluster.

use std::collections::BTreeSet;
use std::io::Write as _;

use billing_domain::ports::IdSource as _;
use billing_domain::refs::CustomerId;
use billing_storage::Distribution;
use billing_testkit::{FreshIds, Singly as _};

use crate::citus;
use crate::rows::world;
use crate::support::{TestDatabase, empty_spread, one_postgres, postgres, sqlite};

fn is_skipped() -> bool {
    if citus::nodes().is_some() {
        return false;
    }
    // Written to standard error directly, because the harness hides the output of passing tests.
    writeln!(std::io::stderr(), "SKIPPED: no Citus cluster is named, so nothing was distributed").expect("standard error");
    true
}

/// Returns the constraints, indexes and triggers of all tables, one per line.
fn schema(test: &TestDatabase) -> BTreeSet<String> {
    let lines = test.beside().text(
        "SELECT string_agg(line, E'\\n') AS text FROM (\
             SELECT conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) AS line \
             FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND conparentid = 0 \
             UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' \
             UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE NOT tgisinternal AND tgname NOT LIKE 'truncate_trigger%'\
         ) AS lines",
    );
    lines.lines().filter(|line| !names_a_shard(line)).map(ToOwned::to_owned).collect()
}

/// Returns whether a line is about a shard, whose name ends with its number.
fn names_a_shard(line: &str) -> bool {
    let is_number = |text: &str| text.len() >= 6 && text.bytes().all(|byte| byte.is_ascii_digit());
    line.split([' ', '(', '.']).any(|word| word.rsplit_once('_').is_some_and(|(_, end)| is_number(end)))
}

#[test]
fn nothing_is_spread_without_the_extension() {
    assert_eq!(sqlite().database.distribute(8).expect("no work"), Distribution::File);
    let test = one_postgres();
    let before = schema(&test);
    assert_eq!(test.database.distribute(8).expect("no work"), Distribution::WithoutExtension);
    assert_eq!(schema(&test), before);
}

#[test]
fn every_table_is_spread_once_with_its_rows_and_every_key_is_there_again() {
    if is_skipped() {
        return;
    }
    let test = empty_spread();
    test.database.migrate().expect("the tables");
    let w = world(&test);
    let issued = w.open(&test, 1);
    w.open(&test, 2);
    crate::support::write(&test, |tx| tx.issue_document(issued.key(w.organization), &w.frozen(&issued, 100)));
    let before = schema(&test);
    let Distribution::Done(handed) = test.database.distribute(8).expect("distributed tables") else { panic!("not distributed") };
    assert_eq!(test.database.distribute(8).expect("no work"), Distribution::Done(Vec::new()), "the second run has nothing to do");

    let all = test.beside().text("SELECT string_agg(tablename, ',') AS text FROM pg_tables WHERE schemaname = 'public'");
    assert_eq!(handed.iter().map(String::as_str).collect::<BTreeSet<_>>(), all.split(',').collect());
    let of_customers = "SELECT string_agg(table_name || ' customer_id 1', ',' ORDER BY table_name) AS text FROM information_schema.columns \
         WHERE column_name = 'customer_id' AND table_schema = 'public' \
         AND table_name NOT IN ('customer_refs', 'webhook_deliveries')";
    let spread = "SELECT string_agg(c.relname || ' ' || column_to_column_name(logicalrelid, partkey) || ' ' || \
         (colocationid = (SELECT colocationid FROM pg_dist_partition WHERE logicalrelid = 'customers'::regclass))::int, ',' \
         ORDER BY c.relname) AS text FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid \
         WHERE partmethod = 'h' AND column_to_column_name(logicalrelid, partkey) = 'customer_id'";
    assert_eq!(test.beside().text(spread), test.beside().text(of_customers));
    let shards = "SELECT count(*)::text AS text FROM pg_dist_shard WHERE logicalrelid = 'customers'::regclass";
    assert_eq!(test.beside().text(shards), "8");
    let local = "SELECT pg_relation_size('documents')::text AS text";
    assert_eq!(test.beside().text(local), "0", "no copy is left on the coordinator");
    assert_eq!(test.beside().text("SELECT count(*)::text AS text FROM documents"), "2");

    // The differences are unique indexes, which no single node can check.
    let after = schema(&test);
    let gone: Vec<&str> = before.difference(&after).map(String::as_str).collect();
    let came: Vec<&str> = after.difference(&before).map(String::as_str).collect();
    assert_eq!(
        gone,
        [
            "CREATE UNIQUE INDEX charges_organization_id_charge_ref_key ON public.charges USING btree (organization_id, charge_ref)",
            "CREATE UNIQUE INDEX customers_organization_id_customer_ref_key ON public.customers USING btree (organization_id, \
             customer_ref)",
            "CREATE UNIQUE INDEX documents_numbers ON public.documents USING btree (organization_id, number_prefix, kind, sequence, \
             number_copy)",
            "CREATE UNIQUE INDEX sessions_by_id ON public.sessions USING btree (session_id)",
            "charges charges_organization_id_charge_ref_key UNIQUE (organization_id, charge_ref)",
            "customers customers_organization_id_customer_ref_key UNIQUE (organization_id, customer_ref)",
        ]
    );
    assert_eq!(
        came,
        [
            "CREATE INDEX charges_organization_id_charge_ref_key ON public.charges USING btree (organization_id, charge_ref)",
            "CREATE INDEX customers_organization_id_customer_ref_key ON public.customers USING btree (organization_id, customer_ref)",
            "CREATE INDEX documents_numbers ON public.documents USING btree (organization_id, number_prefix, kind, sequence, \
             number_copy)",
            "CREATE INDEX sessions_by_id ON public.sessions USING btree (session_id)",
        ]
    );
    // Issued documents still never change.
    let refused = test.beside().execute("UPDATE issued_documents SET content = 'x'").expect_err("a trigger");
    assert!(refused.to_string().contains("never changes"), "{refused}");
}

#[test]
fn the_hash_of_customers_is_that_of_the_server() {
    let test = postgres();
    for _ in 0..200 {
        let id = CustomerId::from_uuid(FreshIds.new_id());
        let hash = test.beside().text(&format!("SELECT uuid_hash('{}')::text AS text", id.as_uuid()));
        assert_eq!(billing_storage::customer_hash(id).to_string(), hash, "{id}");
    }
}

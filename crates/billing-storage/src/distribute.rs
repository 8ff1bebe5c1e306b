//! Distribution of a PostgreSQL database over the nodes of a cluster, with the extension Citus ([decision
//! 0039](../../../docs/decisions/0039-customers-are-spread-by-a-command.md)).
//!
//! All rows of a customer are on one node, found by `customer_id`. Tables without customers are small and copied to
//! every node, except for the tables that every request writes.

use std::collections::BTreeSet;

use diesel::connection::SimpleConnection as _;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::QueryResult;
use diesel::sql_types::{Bool, Text};

/// Tables with a copy on every node. The migrations table is one of them, because servers may connect to any node.
const COPIED: [&str; 17] = [
    "__diesel_schema_migrations",
    "organizations",
    "administrators",
    "api_keys",
    "sessions",
    "revoked_tokens",
    "signing_secrets",
    "entities",
    "customers",
    "usage_products",
    "pricings",
    "usage_formats",
    "usage_format_versions",
    "search_words",
    "bank_accounts",
    "exchange_rates",
    "logos",
];

/// The customers' tables. Each is colocated with the first one by customer.
const OF_CUSTOMERS: [&str; 23] = [
    "contracts",
    "contract_versions",
    "contract_products",
    "contract_usage_products",
    "documents",
    "document_parts",
    "document_lines",
    "issued_documents",
    "document_files",
    "family_sums",
    "accounts",
    "payments",
    "applications",
    "write_offs",
    "metadata",
    "charges",
    "charge_revisions",
    "usage_totals",
    "usage_events",
    "usage_event_revisions",
    "usage_event_keys",
    "notifications",
    "notices",
];

/// Tables without customers that are written too often to have copies, each with its distribution column.
const BY_THEMSELVES: [(&str, &str); 11] = [
    ("number_series", "entity_ref"),
    ("replay_log", "idempotency_key"),
    ("audit_log", "audit_id"),
    ("refused_usage", "customer_ref"),
    ("usage_imports", "import_id"),
    ("usage_import_events", "import_id"),
    ("billing_runs", "run_id"),
    ("notification_heads", "organization_id"),
    ("webhook_endpoints", "endpoint_id"),
    ("webhook_secrets", "endpoint_id"),
    ("webhook_deliveries", "endpoint_id"),
];

/// Unique indexes without a customer, which no single node can enforce. A plain index replaces each one for lookups.
/// Uniqueness is also enforced where values are assigned: numbers by their series, references by the use case.
const NOT_UNIQUE: [(&str, &str, &str); 2] = [
    (
        "documents",
        "DROP INDEX documents_numbers",
        "CREATE INDEX documents_numbers ON documents (organization_id, number_prefix, kind, sequence, number_copy)",
    ),
    (
        "charges",
        "ALTER TABLE charges DROP CONSTRAINT charges_organization_id_charge_ref_key",
        "CREATE INDEX charges_organization_id_charge_ref_key ON charges (organization_id, charge_ref)",
    ),
];

/// The result of distributing a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// The database is a SQLite file on one machine.
    File,
    /// The server does not have the extension, or the extension is not created in the database.
    WithoutExtension,
    /// The tables that were distributed or copied now; empty when all were before.
    Done(Vec<String>),
}

#[derive(QueryableByName)]
struct FlagRow {
    #[diesel(sql_type = Bool)]
    told: bool,
}

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct ForeignKey {
    #[diesel(sql_type = Text)]
    of_table: String,
    #[diesel(sql_type = Text)]
    to_table: String,
    #[diesel(sql_type = Text)]
    name: String,
    #[diesel(sql_type = Text)]
    definition: String,
}

/// Returns whether the extension is created in the database: it records distributed tables in a table of its own.
pub(crate) fn has_extension(connection: &mut PgConnection) -> QueryResult<bool> {
    let told: FlagRow =
        diesel::sql_query("SELECT to_regclass('pg_dist_partition') IS NOT NULL AS told").get_result(connection)?;
    Ok(told.told)
}

/// Returns our tables that are not yet distributed or copied, in the required order.
fn missing(connection: &mut PgConnection) -> QueryResult<Vec<&'static str>> {
    let known: Vec<Named> =
        diesel::sql_query("SELECT c.relname::text AS name FROM pg_dist_partition p JOIN pg_class c ON c.oid = p.logicalrelid")
            .load(connection)?;
    let known: BTreeSet<String> = known.into_iter().map(|table| table.name).collect();
    Ok(tables().filter(|table| !known.contains(*table)).collect())
}

fn tables() -> impl Iterator<Item = &'static str> {
    COPIED.into_iter().chain(OF_CUSTOMERS).chain(BY_THEMSELVES.map(|(table, _)| table))
}

/// Returns the statement that distributes or copies a table.
fn statement_for(table: &str) -> String {
    let first = OF_CUSTOMERS[0];
    if COPIED.contains(&table) {
        format!("SELECT create_reference_table('{table}')")
    } else if let Some((_, column)) = BY_THEMSELVES.iter().find(|(other, _)| *other == table) {
        format!("SELECT create_distributed_table('{table}', '{column}', colocate_with => 'none')")
    } else if table == first {
        format!("SELECT create_distributed_table('{table}', 'customer_id', colocate_with => 'none')")
    } else {
        format!("SELECT create_distributed_table('{table}', 'customer_id', colocate_with => '{first}')")
    }
}

/// Distributes the tables of a migrated database, in the open transaction. It drops foreign keys before and creates
/// them after, because a key cannot connect a distributed table with a table that is not yet distributed.
pub(crate) fn distribute(connection: &mut PgConnection) -> QueryResult<Distribution> {
    if !has_extension(connection)? {
        return Ok(Distribution::WithoutExtension);
    }
    let missing = missing(connection)?;
    if missing.is_empty() {
        return Ok(Distribution::Done(Vec::new()));
    }
    // The sequential mode uses one connection per node, so that each node also has one transaction. Triggers are safe
    // because they read nothing but their row.
    connection
        .batch_execute("SET LOCAL citus.multi_shard_modify_mode = 'sequential'; SET LOCAL citus.enable_unsafe_triggers = on")?;
    let keys: Vec<ForeignKey> = diesel::sql_query(
        "SELECT f.relname::text AS of_table, t.relname::text AS to_table, c.conname::text AS name, \
         pg_get_constraintdef(c.oid) AS definition \
         FROM pg_constraint c JOIN pg_class f ON f.oid = c.conrelid JOIN pg_class t ON t.oid = c.confrelid \
         WHERE c.contype = 'f' AND c.connamespace = current_schema()::regnamespace ORDER BY f.relname, c.conname",
    )
    .load(connection)?;
    let touched = |key: &&ForeignKey| missing.contains(&key.of_table.as_str()) || missing.contains(&key.to_table.as_str());
    for ForeignKey { of_table, name, .. } in keys.iter().filter(touched) {
        connection.batch_execute(&format!("ALTER TABLE {of_table} DROP CONSTRAINT \"{name}\""))?;
    }
    let replaced = || NOT_UNIQUE.iter().filter(|(table, ..)| missing.contains(table));
    for (_, unique, _) in replaced() {
        connection.batch_execute(unique)?;
    }
    for table in &missing {
        connection.batch_execute(&statement_for(table))?;
    }
    for (.., looked_up) in replaced() {
        connection.batch_execute(looked_up)?;
    }
    for ForeignKey { of_table, name, definition, .. } in keys.iter().filter(touched) {
        connection.batch_execute(&format!("ALTER TABLE {of_table} ADD CONSTRAINT \"{name}\" {definition}"))?;
    }
    Ok(Distribution::Done(missing.into_iter().map(ToOwned::to_owned).collect()))
}

/// Returns what a database with the extension lacks to be served, with the remedy. Returns `None` without the
/// extension.
pub(crate) fn lacks(connection: &mut PgConnection) -> QueryResult<Option<String>> {
    if !has_extension(connection)? {
        return Ok(None);
    }
    let missing = missing(connection)?;
    if !missing.is_empty() {
        let tables = missing.join(", ");
        return Ok(Some(format!(
            "the database has the extension Citus, and these tables are not distributed: {tables}: run `usage-billing migrate --distribute`"
        )));
    }
    let allowed: FlagRow =
        diesel::sql_query("SELECT coalesce(current_setting('citus.enable_unsafe_triggers', true), 'off') = 'on' AS told")
            .get_result(connection)?;
    Ok((!allowed.told).then(|| {
        "citus.enable_unsafe_triggers is off, which the triggers that keep issued documents need: turn it on for the database's \
         role, on every node"
            .to_owned()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_is_handed_over_as_what_it_is() {
        for (table, statement) in [
            ("customers", "SELECT create_reference_table('customers')"),
            ("contracts", "SELECT create_distributed_table('contracts', 'customer_id', colocate_with => 'none')"),
            ("usage_events", "SELECT create_distributed_table('usage_events', 'customer_id', colocate_with => 'contracts')"),
            ("number_series", "SELECT create_distributed_table('number_series', 'entity_ref', colocate_with => 'none')"),
        ] {
            assert_eq!(statement_for(table), statement);
        }
        assert_eq!(tables().collect::<BTreeSet<_>>().len(), tables().count(), "each once");
    }
}

//! Distribution of a PostgreSQL database over the nodes of a cluster, with the extension Citus ([decision
//! 0039](../../../docs/decisions/0039-a-command-distributes-customers-over-a-citus-cluster.md)).
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
const COPIED: [&str; 16] = [
    "__diesel_schema_migrations",
    "organizations",
    "administrators",
    "api_keys",
    "revoked_tokens",
    "signing_secrets",
    "entities",
    "usage_products",
    "pricings",
    "usage_formats",
    "usage_format_versions",
    "bank_accounts",
    "exchange_rates",
    "logos",
    "restores",
    "sandbox",
];

/// The table whose shards determine those of all other tables of customers.
const CUSTOMERS: &str = "customers";

/// The tables of customers, each with its column of customers. A customer's rows of all these tables are in one shard.
const OF_CUSTOMERS: [(&str, &str); 29] = [
    (CUSTOMERS, "customer_id"),
    ("contracts", "customer_id"),
    ("contract_versions", "customer_id"),
    ("contract_products", "customer_id"),
    ("contract_usage_products", "customer_id"),
    ("documents", "customer_id"),
    ("document_parts", "customer_id"),
    ("document_lines", "customer_id"),
    ("issued_documents", "customer_id"),
    ("document_files", "customer_id"),
    ("family_sums", "customer_id"),
    ("accounts", "customer_id"),
    ("payments", "customer_id"),
    ("applications", "customer_id"),
    ("limits", "customer_id"),
    ("usage_holds", "customer_id"),
    ("credit_grants", "customer_id"),
    ("credit_draws", "customer_id"),
    ("write_offs", "customer_id"),
    ("metadata", "customer_id"),
    ("charges", "customer_id"),
    ("charge_revisions", "customer_id"),
    ("usage_totals", "customer_id"),
    ("usage_events", "customer_id"),
    ("usage_event_revisions", "customer_id"),
    ("usage_event_keys", "customer_id"),
    ("notifications", "customer_id"),
    ("notices", "customer_id"),
    ("audit_log", "beside"),
];

/// Tables without customers that are written too often to have copies, each with its distribution column.
const BY_THEMSELVES: [(&str, &str); 13] = [
    ("customer_refs", "customer_ref"),
    ("number_series", "entity_ref"),
    ("replay_log", "idempotency_key"),
    ("sessions", "digest"),
    ("search_words", "organization_id"),
    ("refused_usage", "customer_ref"),
    ("usage_imports", "import_id"),
    ("usage_import_events", "import_id"),
    ("billing_runs", "run_id"),
    ("notification_heads", "organization_id"),
    ("webhook_endpoints", "endpoint_id"),
    ("webhook_secrets", "endpoint_id"),
    ("webhook_deliveries", "endpoint_id"),
];

/// The table whose shards determine those of its secrets and deliveries.
const ENDPOINTS: &str = "webhook_endpoints";

/// Unique indexes without the distribution column, which no single node can enforce. A plain index replaces each one for
/// lookups. Uniqueness is also enforced where values are assigned: references of customers by their directory, numbers by
/// their series, references of charges by the use case. Identifiers of sessions are random.
const NOT_UNIQUE: [(&str, &str, &str); 4] = [
    (
        "customers",
        "ALTER TABLE customers DROP CONSTRAINT customers_organization_id_customer_ref_key",
        "CREATE INDEX customers_organization_id_customer_ref_key ON customers (organization_id, customer_ref)",
    ),
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
    ("sessions", "DROP INDEX sessions_by_id", "CREATE INDEX sessions_by_id ON sessions (session_id)"),
];

/// The result of distributing a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// The database is a SQLite file on one machine.
    File,
    /// The server does not have the extension, or the extension is not created in the database.
    WithoutExtension,
    /// The cluster cannot take the tables yet, for this reason.
    Refused(String),
    /// The tables that were distributed or copied now; empty when all were before.
    Done(Vec<String>),
}

#[derive(QueryableByName)]
struct FlagRow {
    #[diesel(sql_type = Bool)]
    is_true: bool,
}

#[derive(QueryableByName)]
struct Named {
    #[diesel(sql_type = Text)]
    name: String,
}

#[derive(QueryableByName)]
struct NodeRow {
    #[diesel(sql_type = Bool)]
    takes_customers: bool,
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
    let flag: FlagRow =
        diesel::sql_query("SELECT to_regclass('pg_dist_partition') IS NOT NULL AS is_true").get_result(connection)?;
    Ok(flag.is_true)
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
    COPIED.into_iter().chain(OF_CUSTOMERS.into_iter().chain(BY_THEMSELVES).map(|(table, _)| table))
}

/// Returns the statement that distributes or copies a table.
fn statement_for(table: &str) -> String {
    let column_in = |tables: &[(&str, &'static str)]| tables.iter().find(|(other, _)| *other == table).map(|(_, column)| *column);
    if let Some(column) = column_in(&BY_THEMSELVES) {
        let with = if table != ENDPOINTS && *column == *"endpoint_id" { ENDPOINTS } else { "none" };
        format!("SELECT create_distributed_table('{table}', '{column}', colocate_with => '{with}')")
    } else if let Some(column) = column_in(&OF_CUSTOMERS) {
        let with = if table == CUSTOMERS { "none" } else { CUSTOMERS };
        format!("SELECT create_distributed_table('{table}', '{column}', colocate_with => '{with}')")
    } else {
        format!("SELECT create_reference_table('{table}')")
    }
}

/// Returns why the cluster cannot take tables now, with the remedy.
fn refusal(connection: &mut PgConnection) -> QueryResult<Option<String>> {
    let is_coordinator: FlagRow =
        diesel::sql_query("SELECT groupid = 0 AS is_true FROM pg_dist_local_group").get_result(connection)?;
    if !is_coordinator.is_true {
        return Ok(Some("this node is a worker: run the command with the URL of the coordinator".to_owned()));
    }
    let nodes: Vec<NodeRow> = diesel::sql_query(
        "SELECT groupid <> 0 AND shouldhaveshards AS takes_customers \
         FROM pg_dist_node WHERE noderole = 'primary' AND isactive ORDER BY groupid",
    )
    .load(connection)?;
    if !nodes.iter().any(|node| node.takes_customers) {
        let reason = "the cluster has no workers: add each one on the coordinator with `SELECT citus_add_node('HOST', PORT)`";
        return Ok(Some(reason.to_owned()));
    }
    let has_coordinator: FlagRow =
        diesel::sql_query("SELECT EXISTS (SELECT 1 FROM pg_dist_node WHERE groupid = 0) AS is_true").get_result(connection)?;
    if !has_coordinator.is_true {
        let reason = "the workers do not know the coordinator: name it with `SELECT citus_set_coordinator_host('HOST', PORT)`";
        return Ok(Some(reason.to_owned()));
    }
    let away: Vec<Named> = diesel::sql_query(
        "SELECT nodename || ':' || nodeport AS name FROM pg_dist_node WHERE noderole = 'primary' AND isactive \
         AND NOT citus_check_connection_to_node(nodename, nodeport) ORDER BY 1",
    )
    .load(connection)?;
    if away.is_empty() {
        return Ok(None);
    }
    let away = away.into_iter().map(|node| node.name).collect::<Vec<_>>().join(", ");
    Ok(Some(format!(
        "these nodes do not answer: {away}: start them, or remove them with `SELECT citus_remove_node('HOST', PORT)`"
    )))
}

/// Triggers that prevent that tables are emptied. The local rows of distributed tables are removed in this way.
const KEPT: [&str; 4] = ["issued_documents", "document_files", "logos", "audit_log"];

/// Distributes the tables of a migrated database, in the open transaction. It drops foreign keys before and creates
/// them after, because a key cannot connect a distributed table with a table that is not yet distributed.
pub(crate) fn distribute(connection: &mut PgConnection, shards: u32) -> QueryResult<Distribution> {
    if !has_extension(connection)? {
        return Ok(Distribution::WithoutExtension);
    }
    let missing = missing(connection)?;
    if missing.is_empty() {
        return Ok(Distribution::Done(Vec::new()));
    }
    if let Some(reason) = refusal(connection)? {
        return Ok(Distribution::Refused(reason));
    }
    // The sequential mode uses one connection per node, so that each node also has one transaction. Triggers are safe
    // because they read nothing but their row.
    connection.batch_execute(&format!(
        "SET LOCAL citus.multi_shard_modify_mode = 'sequential'; SET LOCAL citus.enable_unsafe_triggers = on; \
         SET LOCAL citus.shard_count = {shards}"
    ))?;
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
    let kept = || KEPT.iter().filter(|table| missing.contains(table));
    for table in kept() {
        connection.batch_execute(&format!("DROP TRIGGER {table}_kept ON {table}"))?;
    }
    for table in &missing {
        connection.batch_execute(&statement_for(table))?;
        // The rows are on the nodes now. Copies of them on the coordinator would only take space.
        connection.batch_execute(&format!("SELECT truncate_local_data_after_distributing_table('{table}')"))?;
    }
    for table in kept() {
        connection.batch_execute(&format!(
            "CREATE TRIGGER {table}_kept BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION refuse_change()"
        ))?;
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
        diesel::sql_query("SELECT coalesce(current_setting('citus.enable_unsafe_triggers', true), 'off') = 'on' AS is_true")
            .get_result(connection)?;
    Ok((!allowed.is_true).then(|| {
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
            ("entities", "SELECT create_reference_table('entities')"),
            ("customers", "SELECT create_distributed_table('customers', 'customer_id', colocate_with => 'none')"),
            ("usage_events", "SELECT create_distributed_table('usage_events', 'customer_id', colocate_with => 'customers')"),
            ("audit_log", "SELECT create_distributed_table('audit_log', 'beside', colocate_with => 'customers')"),
            ("number_series", "SELECT create_distributed_table('number_series', 'entity_ref', colocate_with => 'none')"),
        ] {
            assert_eq!(statement_for(table), statement);
        }
        assert_eq!(tables().collect::<BTreeSet<_>>().len(), tables().count(), "each once");
    }
}

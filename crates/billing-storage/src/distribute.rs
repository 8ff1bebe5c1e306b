//! Spreading a PostgreSQL database over the nodes of a cluster, by the extension Citus
//! ([decision 0039](../../../docs/decisions/0039-customers-are-spread-by-a-command.md)).
//!
//! A customer's rows lie together on one node, found by `customer_id`. What belongs to no customer is small and lies on every node,
//! but for what is written by every request.

use std::collections::BTreeSet;

use diesel::connection::SimpleConnection as _;
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::result::QueryResult;
use diesel::sql_types::{Bool, Text};

/// Tables of which every node has a copy. That of the migrations is one of them, because servers may be connected to any node.
const COPIED: [&str; 15] = [
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
    "bank_accounts",
    "exchange_rates",
];

/// The customer's tables. The others lie where the first has the same customer.
const OF_CUSTOMERS: [&str; 20] = [
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
    "charges",
    "charge_revisions",
    "usage_totals",
    "usage_events",
    "usage_event_revisions",
    "usage_event_keys",
];

/// Tables of no customer that are written too often to have copies, each by itself, and what tells the node.
const BY_THEMSELVES: [(&str, &str); 7] = [
    ("number_series", "entity_ref"),
    ("replay_log", "idempotency_key"),
    ("audit_log", "audit_id"),
    ("refused_usage", "customer_ref"),
    ("usage_imports", "import_id"),
    ("usage_import_events", "import_id"),
    ("billing_runs", "run_id"),
];

/// Indexes that make unique what has no customer, which no node can tell alone. In their place there is one that is only looked
/// up in. What they hold is held by what gives the value, too: numbers by their series, references by the use case.
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

/// What spreading a database came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Distribution {
    /// A file is on one machine.
    File,
    /// The server hasn't the extension, or the database wasn't given it.
    WithoutExtension,
    /// The tables that were spread or copied now; none when all were before.
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

/// Whether a database was given the extension: it keeps what it has spread in a table of its own.
pub(crate) fn has_extension(connection: &mut PgConnection) -> QueryResult<bool> {
    let told: FlagRow =
        diesel::sql_query("SELECT to_regclass('pg_dist_partition') IS NOT NULL AS told").get_result(connection)?;
    Ok(told.told)
}

/// Our tables that aren't spread or copied yet, in the order in which they are to be.
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

/// What hands a table to the extension.
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

/// Spreads the tables of a migrated database, in the transaction that is open. Foreign keys are dropped before and made again
/// after: a key can't begin at a table that is spread and end at one that isn't yet, nor the other way round.
pub(crate) fn distribute(connection: &mut PgConnection) -> QueryResult<Distribution> {
    if !has_extension(connection)? {
        return Ok(Distribution::WithoutExtension);
    }
    let missing = missing(connection)?;
    if missing.is_empty() {
        return Ok(Distribution::Done(Vec::new()));
    }
    // One connection to each node, so that all of it is one transaction there, too; and triggers, which look at nothing but
    // their row.
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

/// What a database with the extension lacks to be served, with the remedy; nothing of one without it.
pub(crate) fn lacks(connection: &mut PgConnection) -> QueryResult<Option<String>> {
    if !has_extension(connection)? {
        return Ok(None);
    }
    let missing = missing(connection)?;
    if !missing.is_empty() {
        let tables = missing.join(", ");
        return Ok(Some(format!(
            "Citus is there, and these tables aren't spread: {tables}; run `usage-billing migrate --distribute`"
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

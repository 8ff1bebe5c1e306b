//! Distributed databases on the Citus cluster that the environment names.

use diesel::connection::{Connection as _, SimpleConnection as _};
use diesel::pg::PgConnection;

use crate::support::{migrations_hash, open, with_database};

/// The variable with the URL of a database on the coordinator. The database has the extension and knows all nodes.
const CLUSTER: &str = "USAGE_BILLING_TEST_CITUS_URL";
/// The key of the lock under which a template is made.
const LOCK: i64 = 0x6369_7475_735f_7374;
/// The number of shards of the databases of tests.
const SHARDS: u32 = 8;

#[derive(diesel::QueryableByName)]
struct Name {
    #[diesel(sql_type = diesel::sql_types::Text)]
    name: String,
}

fn names(url: &str, query: &str) -> Vec<String> {
    let mut connection = PgConnection::establish(url).expect(url);
    let rows: Vec<Name> = diesel::RunQueryDsl::load(diesel::sql_query(query), &mut connection).expect(query);
    rows.into_iter().map(|row| row.name).collect()
}

pub(crate) fn execute(url: &str, sql: &str) {
    let mut connection = PgConnection::establish(url).expect(url);
    connection.batch_execute(sql).expect(sql);
}

/// Returns the URLs of an administration database on every node, the coordinator's first. `None` without a cluster.
pub(crate) fn nodes() -> Option<Vec<String>> {
    let url = std::env::var(CLUSTER).ok()?;
    let query = "SELECT nodename || ':' || nodeport AS name FROM pg_dist_node \
                 WHERE noderole = 'primary' AND isactive AND groupid <> 0 ORDER BY groupid";
    let (start, rest) = url.split_once("://").expect("a URL");
    let (address, database) = rest.split_once('/').expect("a database");
    let user = address.rsplit_once('@').map_or(String::new(), |(user, _)| format!("{user}@"));
    let workers = names(&url, query).into_iter().map(|worker| format!("{start}://{user}{worker}/{database}"));
    Some(std::iter::once(url.clone()).chain(workers).collect())
}

/// Creates the extension in a database of all nodes, and makes the nodes known to each other.
pub(crate) fn join(nodes: &[String], name: &str) {
    for node in nodes {
        execute(&with_database(node, name), "CREATE EXTENSION citus");
    }
    let coordinator = with_database(&nodes[0], name);
    for (place, node) in nodes.iter().enumerate() {
        let (_, rest) = node.split_once("://").expect("a URL");
        let (address, _) = rest.split_once('/').expect("a database");
        let address = address.rsplit_once('@').map_or(address, |(_, address)| address);
        let (host, port) = address.split_once(':').unwrap_or((address, "5432"));
        let function = if place == 0 { "citus_set_coordinator_host" } else { "citus_add_node" };
        execute(&coordinator, &format!("SELECT {function}('{host}', {port})"));
    }
}

/// Returns the name of a distributed database without rows, which exists on all nodes and which nobody uses. The metadata of
/// Citus are tables of the database, so a copy on every node is a distributed database of its own.
pub(crate) fn template(nodes: &[String]) -> String {
    let program = std::env::current_exe().and_then(std::fs::metadata).expect("this program");
    let name = format!("storage_spread_{:x}_{}", migrations_hash(), program.len());
    let mut first = PgConnection::establish(&nodes[0]).expect("the coordinator");
    first.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).expect("the lock");
    let is_there = format!("SELECT datname::text AS name FROM pg_database WHERE datname = '{name}' AND NOT datallowconn");
    if names(&nodes[0], &is_there).is_empty() {
        for node in nodes {
            execute(node, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            execute(node, &format!("CREATE DATABASE {name}"));
        }
        join(nodes, &name);
        let database = open(&with_database(&nodes[0], &name));
        database.migrate().expect("the created tables");
        database.distribute(SHARDS).expect("distributed tables");
        drop(database);
        for node in nodes {
            execute(node, &format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"));
            execute(node, &format!("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"));
        }
    }
    name
}

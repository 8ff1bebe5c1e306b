//! Distributed databases on the Citus cluster that the environment names.
//!
//! Distributing the tables takes seconds, so it is done once for each build of the binary. Tests get copies: the metadata of
//! Citus are tables of the database, so a copy on every node is a distributed database of its own.

use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use diesel::connection::SimpleConnection as _;
use diesel::{Connection as _, PgConnection};

use crate::binary;
use crate::database::{Database, on_server};

/// The variable with the URL of a database on the coordinator. The database has the extension and knows all nodes.
pub(crate) const CLUSTER: &str = "USAGE_BILLING_TEST_CITUS_URL";
/// The number of shards of the databases of tests. Fewer shards take less time.
const SHARDS: &str = "8";
/// The key of the lock under which a template is made.
const LOCK: i64 = 0x6369_7475_735f_7470;

/// Returns the URLs of an administration database on every node, the coordinator's first. `None` without a cluster.
pub(crate) fn nodes() -> Option<&'static [String]> {
    static NODES: OnceLock<Option<Vec<String>>> = OnceLock::new();
    NODES.get_or_init(|| std::env::var(CLUSTER).ok().map(|url| nodes_of(&url))).as_deref()
}

fn nodes_of(url: &str) -> Vec<String> {
    let workers = Database::there(url).ask(
        "SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND groupid <> 0 ORDER BY groupid",
    );
    assert!(!workers.is_empty(), "{CLUSTER} names a database that knows no workers");
    let (start, rest) = url.split_once("://").expect("a URL");
    let (address, database) = rest.split_once('/').expect("a database");
    let user = address.rsplit_once('@').map_or(String::new(), |(user, _)| format!("{user}@"));
    let of_worker = |worker: String| format!("{start}://{user}{worker}/{database}");
    std::iter::once(url.to_owned()).chain(workers.into_iter().map(of_worker)).collect()
}

/// Returns the name of a distributed database without rows, which exists on all nodes and which nobody uses.
pub(crate) fn template(nodes: &[String]) -> &'static str {
    static TEMPLATE: OnceLock<String> = OnceLock::new();
    TEMPLATE.get_or_init(|| make_template(nodes))
}

fn make_template(nodes: &[String]) -> String {
    let file = std::fs::metadata(binary::path()).expect("the binary");
    let built = file.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok()).expect("an instant").as_millis();
    let name = format!("template_{built}_{}", file.len());
    let mut first = PgConnection::establish(&nodes[0]).expect("the coordinator");
    first.batch_execute(&format!("SELECT pg_advisory_lock({LOCK})")).expect("the lock");
    let is_there = format!("SELECT datname FROM pg_database WHERE datname = '{name}' AND NOT datallowconn");
    if Database::there(&nodes[0]).ask(&is_there).is_empty() {
        for node in nodes {
            execute(node, &format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"));
            execute(node, &format!("CREATE DATABASE {name}"));
            execute(&on_server(node, &name), "CREATE EXTENSION citus");
        }
        let coordinator = on_server(&nodes[0], &name);
        for (place, node) in nodes.iter().enumerate() {
            let (host, port) = address(node);
            let function = if place == 0 { "citus_set_coordinator_host" } else { "citus_add_node" };
            execute(&coordinator, &format!("SELECT {function}('{host}', {port})"));
        }
        let distributed = Database::there(&coordinator);
        binary::succeed(&distributed, &["migrate", "--distribute", "--shards", SHARDS]);
        close(nodes, &name);
    }
    first.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK})")).expect("the lock");
    name
}

/// Ends all connections to a database on all nodes, and permits no others, so that it can be copied.
pub(crate) fn close(nodes: &[String], name: &str) {
    for node in nodes {
        execute(node, &format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false"));
        execute(node, &format!("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE datname = '{name}'"));
    }
}

/// Permits connections again.
pub(crate) fn open(nodes: &[String], name: &str) {
    for node in nodes {
        execute(node, &format!("ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true"));
    }
}

fn execute(url: &str, sql: &str) {
    let mut connection = PgConnection::establish(url).unwrap_or_else(|error| panic!("{url}: {error}"));
    connection.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// Returns the host and the port of a URL.
fn address(url: &str) -> (&str, &str) {
    let (_, rest) = url.split_once("://").expect("a URL");
    let (address, _) = rest.split_once('/').expect("a database");
    let address = address.rsplit_once('@').map_or(address, |(_, address)| address);
    address.split_once(':').unwrap_or((address, "5432"))
}

//! The nodes of a [distributed](crate::nodes::distribute) database, with a pool of connections to each. Work on a customer runs on the node
//! of the customer's shard, where its statements and its commit are local.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use billing_domain::ports::{NodeState, NodeUnavailable, PoolUse};
use billing_domain::refs::{CustomerRef, OrganizationId};
use diesel::pg::PgConnection;
use diesel::prelude::*;
use diesel::sql_types::{Array, Bool, Integer, Text};
use uuid::Uuid;

use crate::connect::{PgManager, PgPool, Pooled, check_settings, pool};
use crate::failure::StatementError;
use crate::nodes::distribute::lacks;
use crate::nodes::shards::ShardRanges;
use crate::sql_types::Id;
use crate::url::{DatabaseUrl, NodeAddress};

/// The time after which the placement of shards is read again.
const READ_AGAIN: Duration = Duration::from_secs(60);
/// The time that work waits for a connection to a node. Requests to a node that is away end within a second.
const NODE_WAIT: Duration = Duration::from_millis(800);
/// The time for which no connection to a node that is away is attempted.
const AWAY: Duration = Duration::from_secs(1);
/// The minimum number of connections to a node.
const FEWEST_CONNECTIONS: u32 = 2;
/// The maximum number of customers whose identifiers are kept in memory.
const KNOWN_CUSTOMERS: usize = 100_000;

/// The options for connections to nodes.
pub(crate) struct NodesOptions {
    /// The maximum number of connections to all nodes.
    pub(crate) connections: u32,
    /// The time that a transaction waits for a free connection to a node that is there.
    pub(crate) wait: Duration,
    /// The nodes that are reached under another address than their name.
    pub(crate) addresses: Vec<NodeAddress>,
}

/// The nodes of a distributed database.
pub(crate) struct Cluster {
    url: DatabaseUrl,
    options: NodesOptions,
    /// The node of the URL. Work that belongs to no customer runs there, or on another node while it is away.
    home: Arc<Node>,
    placement: RwLock<Arc<Placement>>,
    /// Held by the only thread that reads the placement.
    reading: Mutex<()>,
    directory: Mutex<HashMap<(Uuid, CustomerRef), Uuid>>,
}

/// Which node has which shard.
pub(crate) struct Placement {
    ranges: Arc<ShardRanges>,
    /// The index of each shard's node.
    node_of: Vec<usize>,
    nodes: Vec<Arc<Node>>,
    read_at: Instant,
}

/// A node with shards of customers.
pub(crate) struct Node {
    name: String,
    pool: PgPool,
    /// Why and until when the node is away.
    away: Mutex<Option<(Instant, String)>>,
}

#[derive(QueryableByName)]
struct NodeRow {
    #[diesel(sql_type = Text)]
    host: String,
    #[diesel(sql_type = Integer)]
    port: i32,
    /// Whether the node can execute queries itself.
    #[diesel(sql_type = Bool)]
    is_synced: bool,
}

/// A shard of the customers, with its node.
#[derive(QueryableByName)]
struct ShardRow {
    #[diesel(sql_type = Integer)]
    first_hash: i32,
    #[diesel(embed)]
    node: NodeRow,
}

#[derive(QueryableByName)]
struct DirectoryRow {
    #[diesel(sql_type = Text)]
    customer_ref: String,
    #[diesel(sql_type = Id)]
    customer_id: crate::row::Cell<Uuid>,
}

/// Ignores poisoning, because no code panics while it has these locks.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads the shards of the customers, by ascending hash.
fn shards(connection: &mut PgConnection) -> QueryResult<Vec<ShardRow>> {
    diesel::sql_query(
        "SELECT s.shardminvalue::integer AS first_hash, n.nodename::text AS host, n.nodeport AS port, \
         n.hasmetadata AND n.metadatasynced AS is_synced \
         FROM pg_dist_shard s JOIN pg_class c ON c.oid = s.logicalrelid \
         JOIN pg_dist_placement p ON p.shardid = s.shardid \
         JOIN pg_dist_node n ON n.groupid = p.groupid AND n.noderole = 'primary' \
         WHERE c.relname = 'customers' AND c.relnamespace = current_schema()::regnamespace ORDER BY 1",
    )
    .load(connection)
}

/// Returns the names of the nodes with shards, each once and in ascending order.
fn names(shards: &[ShardRow]) -> Vec<String> {
    let mut names: Vec<String> = shards.iter().map(|shard| shard.node.name()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

impl NodesOptions {
    /// Returns a pool with a node's share of the connections.
    fn pool(&self, url: DatabaseUrl, shards: &[ShardRow]) -> PgPool {
        // The node of the URL has a pool even if it has no shards.
        let pools = u32::try_from(names(shards).len() + 1).unwrap_or(u32::MAX);
        pool(PgManager::new(url), (self.connections / pools).max(FEWEST_CONNECTIONS), NODE_WAIT)
    }
}

impl Cluster {
    /// Reads the nodes of a database. Returns `None` if its tables are not distributed.
    pub(crate) fn load(url: &DatabaseUrl, options: NodesOptions, connection: &mut PgConnection) -> QueryResult<Option<Self>> {
        let shards = shards(connection)?;
        if shards.is_empty() {
            return Ok(None);
        }
        let home: Option<NodeRow> = diesel::sql_query(
            "SELECT nodename::text AS host, nodeport AS port, hasmetadata AND metadatasynced AS is_synced FROM pg_dist_node \
             WHERE noderole = 'primary' AND groupid = (SELECT groupid FROM pg_dist_local_group)",
        )
        .get_result(connection)
        .optional()?;
        let home = Node {
            name: home.map_or_else(|| "of the database URL".to_owned(), |row| row.name()),
            pool: options.pool(url.clone(), &shards),
            away: Mutex::default(),
        };
        let cluster = Self {
            url: url.clone(),
            options,
            home: Arc::new(home),
            placement: RwLock::new(Arc::new(Placement::none())),
            reading: Mutex::default(),
            directory: Mutex::default(),
        };
        cluster.place(&shards);
        Ok(Some(cluster))
    }

    fn placement(&self) -> Arc<Placement> {
        Arc::clone(&self.placement.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the placement. A node that was known keeps its connections.
    fn place(&self, shards: &[ShardRow]) {
        let before = self.placement();
        let names = names(shards);
        let open = |name: &String| {
            let known = before.nodes.iter().chain([&self.home]).find(|node| node.name == *name);
            known.map(Arc::clone).unwrap_or_else(|| {
                let node = shards.iter().map(|shard| &shard.node).find(|node| node.name() == *name && node.is_synced);
                let url = node.map_or_else(|| self.url.clone(), |node| self.url_of(node));
                Arc::new(Node { name: name.clone(), pool: self.options.pool(url, shards), away: Mutex::default() })
            })
        };
        let index_of = |shard: &ShardRow| names.binary_search(&shard.node.name()).unwrap_or_default();
        let placement = Placement {
            ranges: Arc::new(ShardRanges::new(shards.iter().map(|shard| shard.first_hash).collect())),
            node_of: shards.iter().map(index_of).collect(),
            nodes: names.iter().map(open).collect(),
            read_at: Instant::now(),
        };
        *self.placement.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(placement);
    }

    /// Reads the placement again if it is old. A failure leaves the old one, which is only slower.
    pub(crate) fn refresh(&self) {
        if self.placement().read_at.elapsed() < READ_AGAIN {
            return;
        }
        let Ok(_reading) = self.reading.try_lock() else { return };
        let read = self.reachable().pool.get().map_err(|error| error.to_string());
        let read = read.and_then(|mut link| shards(&mut link.connection).map_err(|error| error.to_string()));
        match read {
            Ok(shards) => self.place(&shards),
            Err(error) => {
                tracing::warn!(error, "the placement of customers could not be read");
                self.postpone();
            }
        }
    }

    /// Returns the address of a node.
    fn url_of(&self, node: &NodeRow) -> DatabaseUrl {
        let name = node.name();
        let other = self.options.addresses.iter().find(|address| address.node() == name);
        let (host, port) = other.map_or((node.host.as_str(), node.port), |address| (address.host(), address.port()));
        self.url.at(host, port)
    }

    /// Returns the connections to the node of the URL.
    pub(crate) fn home(&self) -> &PgPool {
        &self.home.pool
    }

    /// Returns the node of the URL, or while it is away another one.
    fn reachable(&self) -> Arc<Node> {
        let placement = self.placement();
        let mut nodes = [&self.home].into_iter().chain(&placement.nodes);
        Arc::clone(nodes.find(|node| node.problem().is_none()).unwrap_or(&self.home))
    }

    /// Makes an attempt that any node can execute. A node without a connection is tried again while its connections are in use, and
    /// otherwise replaced by another one.
    pub(crate) fn on_any_node(
        &self,
        attempt: &mut dyn FnMut(&PgPool) -> Result<(), StatementError>,
    ) -> Result<(), StatementError> {
        let began = Instant::now();
        loop {
            let node = self.reachable();
            let was_away = node.problem().is_some();
            let done = attempt(&node.pool);
            let is_repeatable = matches!(done, Err(StatementError::NoConnection(_))) && !was_away;
            let noted = node.noted(done);
            if !is_repeatable || began.elapsed() >= self.options.wait {
                return noted;
            }
        }
    }

    /// Keeps the present placement for some more time.
    fn postpone(&self) {
        let mut placement = self.placement.write().unwrap_or_else(PoisonError::into_inner);
        let Placement { ranges, node_of, nodes, .. } = &**placement;
        let (ranges, node_of, nodes) = (Arc::clone(ranges), node_of.clone(), nodes.clone());
        *placement = Arc::new(Placement { ranges, node_of, nodes, read_at: Instant::now() });
    }

    pub(crate) fn shard_count(&self) -> usize {
        self.placement().ranges.len()
    }

    pub(crate) fn node_of(&self, shard: usize) -> usize {
        self.placement().node_of.get(shard).copied().unwrap_or_default()
    }

    /// Returns the node of a shard.
    pub(crate) fn node(&self, shard: usize) -> Option<Arc<Node>> {
        let placement = self.placement();
        placement.nodes.get(*placement.node_of.get(shard)?).map(Arc::clone)
    }

    /// Returns the state of each node that has customers, and of the node of the URL.
    pub(crate) fn states(&self) -> Vec<NodeState> {
        let placement = self.placement();
        let state = |(index, node): (usize, &Arc<Node>)| NodeState {
            name: node.name.clone(),
            shards: placement.node_of.iter().filter(|of| **of == index).count(),
            problem: node.problem(),
        };
        self.all(&placement).into_iter().enumerate().map(state).collect()
    }

    /// Asks each node whether it serves its customers, all at the same time, and returns the states.
    pub(crate) fn checked_states(&self) -> Vec<NodeState> {
        let placement = self.placement();
        std::thread::scope(|scope| {
            for node in self.all(&placement) {
                scope.spawn(|| node.check());
            }
        });
        self.states()
    }

    /// Returns the connections to each node with customers, and to the node of the URL.
    pub(crate) fn pools(&self) -> Vec<PgPool> {
        self.all(&self.placement()).into_iter().map(|node| node.pool.clone()).collect()
    }

    /// Returns the nodes with customers, and the node of the URL if it has none.
    fn all<'a>(&'a self, placement: &'a Placement) -> Vec<&'a Arc<Node>> {
        let mut all: Vec<&Arc<Node>> = placement.nodes.iter().collect();
        if all.iter().all(|node| node.name != self.home.name) {
            all.push(&self.home);
        }
        all
    }

    /// Returns the use of the connections to each node.
    pub(crate) fn pool_use(&self) -> Vec<PoolUse> {
        self.all(&self.placement()).into_iter().map(|node| node.pool.usage(&node.name)).collect()
    }

    /// Returns the shard of a customer that was looked up before.
    pub(crate) fn known_shard(&self, organization: OrganizationId, customer: &CustomerRef) -> Option<usize> {
        let key = (organization.as_uuid(), customer.clone());
        let id = locked(&self.directory).get(&key).copied()?;
        Some(self.placement().ranges.shard_of(id))
    }

    /// Looks customers up and remembers them: an identifier never changes.
    pub(crate) fn look_up(
        &self,
        connection: &mut PgConnection,
        organization: OrganizationId,
        customers: &[CustomerRef],
    ) -> QueryResult<()> {
        let refs: Vec<&str> = customers.iter().map(CustomerRef::as_str).collect();
        let rows: Vec<DirectoryRow> = diesel::sql_query(
            "SELECT customer_ref, customer_id FROM customer_refs WHERE organization_id = $1 AND customer_ref = ANY($2)",
        )
        .bind::<Id, _>(organization.as_uuid())
        .bind::<Array<Text>, _>(refs)
        .load(connection)?;
        let mut directory = locked(&self.directory);
        if directory.len() + rows.len() > KNOWN_CUSTOMERS {
            directory.clear();
        }
        for DirectoryRow { customer_ref, customer_id } in rows {
            if let (Ok(customer), Ok(id)) =
                (CustomerRef::parse(&customer_ref), crate::row::Row::new("customer_refs", "").cell("customer_id", customer_id))
            {
                directory.insert((organization.as_uuid(), customer), id);
            }
        }
        Ok(())
    }
}

impl Placement {
    fn none() -> Self {
        Self { ranges: Arc::default(), node_of: Vec::new(), nodes: Vec::new(), read_at: Instant::now() }
    }
}

impl NodeRow {
    fn name(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

impl Node {
    /// Returns the pool of connections.
    pub(crate) const fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Returns why the node is away, if it is.
    fn problem(&self) -> Option<String> {
        let away = locked(&self.away).clone();
        away.filter(|(until, _)| *until > Instant::now()).map(|(_, reason)| reason)
    }

    /// Fails if the node was away a moment ago. After a while, one caller may try again, while the others still fail.
    pub(crate) fn require(&self) -> Result<(), StatementError> {
        let mut away = locked(&self.away);
        let Some((until, reason)) = &mut *away else { return Ok(()) };
        if *until <= Instant::now() {
            *until = Instant::now() + AWAY;
            return Ok(());
        }
        let reason = reason.clone();
        drop(away);
        Err(self.unavailable(reason))
    }

    /// Remembers from the outcome of work whether the node is away.
    pub(crate) fn noted<T>(&self, done: Result<T, StatementError>) -> Result<T, StatementError> {
        match done {
            Ok(done) => {
                *locked(&self.away) = None;
                Ok(done)
            }
            Err(failure) => Err(self.failed(failure)),
        }
    }

    /// Turns a failure to get a connection into one of this node.
    fn failed(&self, failure: StatementError) -> StatementError {
        match failure {
            // While others use connections, there may just be too few of them.
            StatementError::NoConnection(reason) if self.pool.usage("").in_use == 0 => {
                *locked(&self.away) = Some((Instant::now() + AWAY, reason.clone()));
                self.unavailable(reason)
            }
            StatementError::Unavailable { reason, lost: true } => self.unavailable(reason),
            failure => failure,
        }
    }

    fn unavailable(&self, reason: String) -> StatementError {
        StatementError::NodeUnavailable(NodeUnavailable { name: self.name.clone(), reason })
    }

    /// Asks the node whether it serves its customers.
    fn check(&self) {
        let link = self.pool.get();
        if link.is_err() && self.pool.usage("").in_use > 0 {
            // The node is busy, not away.
            return;
        }
        let checked = link.map_err(|error| error.to_string()).and_then(|mut link: Pooled<PgManager>| {
            let connection = &mut link.connection;
            let checked = check_settings(connection).map_err(|error| error.to_string());
            let checked = checked.and_then(|()| match lacks(connection) {
                Ok(None) => Ok(()),
                Ok(Some(lack)) => Err(lack),
                Err(error) => Err(error.to_string()),
            });
            link.lost |= checked.is_err();
            checked
        });
        *locked(&self.away) = checked.err().map(|reason| (Instant::now() + AWAY, reason));
    }
}

//! Open connections. The limit of open files limits their number, and stalled connections are closed.
//!
//! The HTTP library limits the time of the first head on a connection only. After the first bytes of a later head it also stops
//! the timer of the keep-alive time. Without a further limit, such a connection stays open for as long as the client wants.
//!
//! A client that opens such connections again and again would still take all places. When most places are in use, each new
//! connection closes one that has no request in progress, of the address that has most of them.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::net::{IpAddr, Shutdown};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use billing_http::{ConnectionActivity, Network, subscriber_address};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use socket2::{SockRef, Socket};

/// The maximum number of connections to the address for metrics.
pub(crate) const MAX_METRICS_CONNECTIONS: usize = 64;

/// The interval of the search for stalled connections.
const SEARCH_EVERY: Duration = Duration::from_secs(1);

/// The number of file descriptors of a connection: one of the HTTP library and one of [`OpenConnection`].
const FILES_PER_CONNECTION: u64 = 2;
/// The number of file descriptors of a database connection. On SQLite, these are the database, its log, the index of the log and
/// a temporary file.
const FILES_PER_DATABASE_CONNECTION: u64 = 4;
/// The number of file descriptors for everything else: connections for metrics, temporary files, standard streams, event queues.
const OTHER_FILES: u64 = 256;
/// Even with a low limit of open files, each worker accepts some connections.
const MIN_CONNECTIONS_PER_WORKER: usize = 16;
/// A connection with an incomplete head needs up to 128 KiB, so memory is a limit too.
const MAX_CONNECTIONS_PER_WORKER: usize = 10_000;
/// Below this limit of open files, a warning is logged.
const LOW_FILE_LIMIT: u64 = 4096;

/// The share of the places above which a new connection closes another one, in tenths.
const CROWDED_TENTHS: usize = 9;

/// The open connections of an address on which the server listens. Clones share them.
#[derive(Clone)]
pub(crate) struct Connections(Arc<Registry>);

struct Registry {
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, OpenConnection>>,
    /// With more open connections, a new one closes another one.
    crowd: usize,
    trusted_proxies: Vec<Network>,
}

/// The client of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Peer {
    /// The address as rate limits count it.
    address: IpAddr,
    /// Whether it is a trusted proxy. Its connections belong to many clients, and an idle one to none yet.
    is_proxy: bool,
}

struct OpenConnection {
    peer: Peer,
    /// A duplicate of the library's descriptor. When the library closes its own, the system may give the same number to another
    /// file, which must not be shut down.
    socket: Socket,
    activity: ConnectionActivity,
}

/// Removes a connection from the registry when the library drops the data of the connection.
struct Registration {
    registry: Arc<Registry>,
    id: u64,
}

impl Connections {
    /// Creates the registry of an address that accepts this number of connections.
    pub(crate) fn new(places: usize, trusted_proxies: Vec<Network>) -> Self {
        let crowd = places.saturating_mul(CROWDED_TENTHS) / 10;
        Self(Arc::new(Registry { next_id: AtomicU64::new(0), open: Mutex::default(), crowd, trusted_proxies }))
    }

    /// Registers a connection that was accepted, and adds its activity to its data.
    pub(crate) fn register(&self, stream: &dyn Any, data: &mut Extensions) {
        let Some(stream) = stream.downcast_ref::<TcpStream>() else {
            tracing::error!("a connection is not watched, because it is not a TCP connection");
            return;
        };
        // Without an address, the client has already closed the connection.
        let Ok(peer) = stream.peer_addr() else { return };
        let stream = SockRef::from(stream);
        match stream.try_clone() {
            Ok(socket) => self.watch(socket, peer.ip(), data),
            Err(error) => {
                tracing::warn!(%error, "a connection is closed, because it cannot be watched; raise the limit of open files");
                // If this fails, the client has already closed the connection.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn watch(&self, socket: Socket, address: IpAddr, data: &mut Extensions) {
        let activity = ConnectionActivity::of_new_connection();
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        let is_proxy = self.0.trusted_proxies.iter().any(|network| network.contains(address));
        let peer = Peer { address: subscriber_address(address), is_proxy };
        let mut open = self.0.open();
        if open.len() >= self.0.crowd {
            close_for_another(&mut open);
        }
        open.insert(id, OpenConnection { peer, socket, activity: activity.clone() });
        drop(open);
        data.insert(activity);
        data.insert(Registration { registry: Arc::clone(&self.0), id });
    }

    /// Closes connections without a request in progress for longer than the limit, repeatedly and without end.
    pub(crate) async fn close_stalled(self, limit: Duration) {
        loop {
            tokio::time::sleep(SEARCH_EVERY).await;
            let closed = self.close_idle_longer_than(limit);
            if closed > 0 {
                tracing::info!(closed, "closed connections that sent no complete request head in time");
            }
        }
    }

    /// Closes connections without a request in progress for longer than the limit, and returns their number.
    fn close_idle_longer_than(&self, limit: Duration) -> usize {
        let mut open = self.0.open();
        let before = open.len();
        open.retain(|_, connection| {
            let is_stalled = connection.activity.idle_time().is_some_and(|idle| idle > limit);
            if is_stalled {
                connection.close();
            }
            !is_stalled
        });
        before - open.len()
    }
}

impl OpenConnection {
    /// Closes the connection. The library reads its end and drops it.
    fn close(&self) {
        // If this fails, the connection has already ended.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

/// A connection without a request in progress.
#[derive(Clone, Copy)]
struct IdleConnection {
    id: u64,
    peer: Peer,
    /// The time since the last request, or since the connection was opened.
    idle: Duration,
}

/// Returns the connection that makes room for a new one: of the address with most idle connections, the one that is idle for the
/// longest time. Those of trusted proxies come last.
fn connection_to_close(idle: &[IdleConnection]) -> Option<u64> {
    let mut count: HashMap<Peer, usize> = HashMap::new();
    for connection in idle {
        *count.entry(connection.peer).or_default() += 1;
    }
    let rank = |one: &&IdleConnection| (one.peer.is_proxy, Reverse(count[&one.peer]), Reverse(one.idle), one.id);
    idle.iter().min_by_key(rank).map(|connection| connection.id)
}

/// Closes a connection without a request in progress, if there is one.
fn close_for_another(open: &mut HashMap<u64, OpenConnection>) {
    let idle = |(id, connection): (&u64, &OpenConnection)| {
        Some(IdleConnection { id: *id, peer: connection.peer, idle: connection.activity.idle_time()? })
    };
    let idle: Vec<IdleConnection> = open.iter().filter_map(idle).collect();
    if let Some(closed) = connection_to_close(&idle).and_then(|id| open.remove(&id)) {
        tracing::debug!(address = %closed.peer.address, "closed an idle connection, because most places are in use");
        closed.close();
    }
}

impl Registry {
    /// Locks the map. Nothing panics while the lock is held, so a poisoned lock has consistent content.
    fn open(&self) -> MutexGuard<'_, HashMap<u64, OpenConnection>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.registry.open().remove(&self.id);
    }
}

/// Raises the limit of open files to its maximum. Returns the maximum number of connections of each worker within that limit.
pub(crate) fn max_connections_per_worker(database_connections: u32, workers: u16) -> usize {
    let files = raised_file_limit();
    let connections = connections_per_worker(files, database_connections, workers);
    if files < LOW_FILE_LIMIT {
        tracing::warn!(
            "the limit of open files is {files}, so the server accepts at most {} connections at the same time; raise the limit \
             to 65536, with `ulimit -n`, `LimitNOFILE=` of a systemd unit or `--ulimit nofile=` of a container",
            connections * usize::from(workers)
        );
    }
    connections
}

/// Raises the soft limit of open files to the hard limit and returns the limit that then applies.
fn raised_file_limit() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // A sandbox may forbid the system call, so it is made only if it changes the limit.
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "cannot raise the limit of open files to its maximum");
    }
    // No value means that there is no limit.
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

fn connections_per_worker(files: u64, database_connections: u32, workers: u16) -> usize {
    let reserved = OTHER_FILES + FILES_PER_DATABASE_CONNECTION * u64::from(database_connections);
    let connections = files.saturating_sub(reserved) / FILES_PER_CONNECTION / u64::from(workers.max(1));
    usize::try_from(connections).unwrap_or(usize::MAX).clamp(MIN_CONNECTIONS_PER_WORKER, MAX_CONNECTIONS_PER_WORKER)
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net;

    use super::*;

    const HOME: IpAddr = IpAddr::V4(net::Ipv4Addr::LOCALHOST);

    /// Connections of several clients, as the library holds them.
    struct Crowd {
        connections: Connections,
        clients: Vec<(net::TcpStream, Extensions)>,
    }

    impl Crowd {
        /// Creates an address with ten places.
        fn new() -> Self {
            Self { connections: Connections::new(10, Vec::new()), clients: Vec::new() }
        }

        /// Opens a connection from an address, and waits so that the next one is younger.
        fn open(&mut self, address: &str) {
            let (client, server) = connection();
            let mut data = Extensions::new();
            self.connections.watch(Socket::from(server), address.parse().expect("an address"), &mut data);
            self.clients.push((client, data));
            std::thread::sleep(Duration::from_millis(2));
        }

        /// Returns the numbers of the closed connections.
        fn closed(&mut self) -> Vec<usize> {
            let clients = self.clients.iter_mut().enumerate();
            clients.filter_map(|(index, (client, _))| is_closed(client).then_some(index)).collect()
        }
    }

    #[test]
    fn the_oldest_idle_connection_of_the_address_with_most_makes_room() {
        let mut crowd = Crowd::new();
        crowd.open("192.0.2.1");
        for _ in 0..4 {
            // These are one subscriber.
            crowd.open("2001:db8::1");
            crowd.open("2001:db8::2");
        }
        assert_eq!(crowd.closed(), [] as [usize; 0], "nine of ten places are in use");
        crowd.open("192.0.2.2");
        assert_eq!(crowd.closed(), [1], "the oldest of the subscriber, not the oldest of all");
        for _ in 0..3 {
            crowd.open("2001:db8::3");
        }
        assert_eq!(crowd.closed(), [1, 2, 3, 4]);
        // A connection that ends by itself makes room, too.
        crowd.clients.remove(0);
        crowd.open("192.0.2.3");
        assert_eq!(crowd.closed(), [0, 1, 2, 3], "the same as before, after the first one is gone");
    }

    #[test]
    fn the_connections_of_trusted_proxies_make_room_last() {
        let connection = |id, last: u8, is_proxy, seconds| IdleConnection {
            id,
            peer: Peer { address: IpAddr::from([192, 0, 2, last]), is_proxy },
            idle: Duration::from_secs(seconds),
        };
        let proxies = [connection(0, 9, true, 90), connection(1, 9, true, 80), connection(2, 9, true, 99)];
        let many = [connection(3, 1, false, 5), connection(4, 1, false, 6), connection(5, 1, false, 4)];
        let few = [connection(6, 2, false, 70)];
        for (idle, expected) in [
            ([&proxies[..], &many[..], &few[..]].concat(), Some(4)),
            ([&proxies[..], &few[..]].concat(), Some(6)),
            (proxies.to_vec(), Some(2)),
            (Vec::new(), None),
        ] {
            assert_eq!(connection_to_close(&idle), expected);
        }
    }

    /// Returns both ends of a connection.
    fn connection() -> (net::TcpStream, net::TcpStream) {
        let listener = net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let client = net::TcpStream::connect(listener.local_addr().expect("an address")).expect("a connection");
        client.set_read_timeout(Some(Duration::from_millis(50))).expect("a timeout");
        (client, listener.accept().expect("a connection").0)
    }

    fn is_closed(client: &mut net::TcpStream) -> bool {
        client.read(&mut [0; 1]).is_ok_and(|length| length == 0)
    }

    #[test]
    fn connections_are_limited_by_open_files() {
        for (files, database_connections, workers, expected) in [
            (1024, 16, 1, 352),
            (1024, 16, 2, 176),
            (4096, 16, 1, 1888),
            (65_536, 16, 1, 10_000),
            (65_536, 500, 8, 3955),
            (u64::MAX, 16, 1, 10_000),
            (256, 16, 1, 16),
            (1024, 500, 4, 16),
        ] {
            let found = connections_per_worker(files, database_connections, workers);
            assert_eq!(found, expected, "{files} files, {database_connections} database connections, {workers} workers");
        }
    }

    #[test]
    fn an_idle_connection_is_closed_after_its_limit_only() {
        let connections = Connections::new(100, Vec::new());
        let (mut client, server) = connection();
        let mut data = Extensions::new();
        connections.watch(Socket::from(server.try_clone().expect("a descriptor")), HOME, &mut data);
        assert_eq!(connections.close_idle_longer_than(Duration::from_secs(3600)), 0);
        assert!(!is_closed(&mut client));
        std::thread::sleep(Duration::from_millis(5));
        assert_eq!(connections.close_idle_longer_than(Duration::ZERO), 1);
        // The descriptor of the server is still open, as it is in the HTTP library.
        assert!(is_closed(&mut client));
        assert_eq!(connections.close_idle_longer_than(Duration::ZERO), 0, "a connection is closed once");
        drop((data, server));
    }

    #[test]
    fn a_connection_that_ended_is_not_registered_any_more() {
        let connections = Connections::new(100, Vec::new());
        let (mut client, server) = connection();
        let mut data = Extensions::new();
        connections.watch(Socket::from(server), HOME, &mut data);
        assert!(data.contains::<ConnectionActivity>());
        assert_eq!(connections.0.open().len(), 1);
        drop(data);
        assert_eq!(connections.0.open().len(), 0);
        assert!(is_closed(&mut client), "the registry was the last owner of a descriptor");
    }
}

//! Open connections. The limit of open files limits their number, and stalled connections are closed.
//!
//! The HTTP library limits the time of the first head on a connection only. After the first bytes of a later head it also stops
//! the timer of the keep-alive time. Without a further limit, such a connection stays open for as long as the client wants.

use std::any::Any;
use std::collections::HashMap;
use std::net::Shutdown;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix_web::dev::Extensions;
use actix_web::rt::net::TcpStream;
use billing_http::ConnectionActivity;
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

/// The open connections of the server. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct Connections(Arc<Registry>);

#[derive(Default)]
struct Registry {
    next_id: AtomicU64,
    open: Mutex<HashMap<u64, OpenConnection>>,
}

struct OpenConnection {
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
    /// Registers a connection that was accepted, and adds its activity to its data.
    pub(crate) fn register(&self, stream: &dyn Any, data: &mut Extensions) {
        let Some(stream) = stream.downcast_ref::<TcpStream>() else {
            tracing::error!("a connection is not watched, because it is not a TCP connection");
            return;
        };
        let stream = SockRef::from(stream);
        match stream.try_clone() {
            Ok(socket) => self.watch(socket, data),
            Err(error) => {
                tracing::warn!(%error, "a connection is closed, because it cannot be watched; raise the limit of open files");
                // If this fails, the client has already closed the connection.
                let _ = stream.shutdown(Shutdown::Both);
            }
        }
    }

    fn watch(&self, socket: Socket, data: &mut Extensions) {
        let activity = ConnectionActivity::of_new_connection();
        let id = self.0.next_id.fetch_add(1, Ordering::Relaxed);
        self.0.open().insert(id, OpenConnection { socket, activity: activity.clone() });
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
                // The library reads the end of the connection and drops it. If this fails, the connection has already ended.
                let _ = connection.socket.shutdown(Shutdown::Both);
            }
            !is_stalled
        });
        before - open.len()
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
        let connections = Connections::default();
        let (mut client, server) = connection();
        let mut data = Extensions::new();
        connections.watch(Socket::from(server.try_clone().expect("a descriptor")), &mut data);
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
        let connections = Connections::default();
        let (mut client, server) = connection();
        let mut data = Extensions::new();
        connections.watch(Socket::from(server), &mut data);
        assert!(data.contains::<ConnectionActivity>());
        assert_eq!(connections.0.open().len(), 1);
        drop(data);
        assert_eq!(connections.0.open().len(), 0);
        assert!(is_closed(&mut client), "the registry was the last owner of a descriptor");
    }
}

//! Listening sockets.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// The maximum number of connections that wait to be accepted. Clients retry further ones.
const BACKLOG: i32 = 1024;
/// The time without acknowledged data after which the system ends a connection. It closes connections of clients that
/// read nothing or disappear.
#[cfg(target_os = "linux")]
const NOTHING_TAKEN: Duration = Duration::from_secs(30);

/// Listens on an address. Its connections end when sent data stays unacknowledged.
///
/// # Errors
/// Returns the errors of the operating system, most often for an address in use.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A restarted server need not wait until the system forgets its previous connections.
    socket.set_reuse_address(true)?;
    // Accepted connections inherit the option from the listening socket.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(NOTHING_TAKEN))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

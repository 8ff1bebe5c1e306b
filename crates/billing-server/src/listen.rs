//! Addresses that are listened on.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

/// Connections that wait to be taken up; more are tried again by their own side.
const BACKLOG: i32 = 1024;
/// How long nothing of what was sent is taken until the system ends a connection: who reads nothing, or went away without a word,
/// keeps none.
const NOTHING_TAKEN: Duration = Duration::from_secs(30);

/// Listens on an address. Its connections end when nothing is taken of what is sent on them.
///
/// # Errors
/// Those of the system, of an address in use above all.
pub(crate) fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // A server that is started again needn't wait until its former connections are forgotten.
    socket.set_reuse_address(true)?;
    // Connections have it from the socket that took them up.
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(NOTHING_TAKEN))?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

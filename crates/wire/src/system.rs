//! Differences between systems: acknowledgements without delay, which only Linux offers, and listening sockets.

use std::{io, net::SocketAddr};

use tokio::net::{TcpSocket, TcpStream};

/// Acknowledges at once what is read next. Other systems delay as they do.
#[cfg(target_os = "linux")]
pub(crate) fn acknowledge_at_once(stream: &TcpStream) -> io::Result<()> {
    stream.set_quickack(true)
}

/// Acknowledges at once what is read next. Other systems delay as they do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn acknowledge_at_once(_stream: &TcpStream) -> io::Result<()> {
    Ok(())
}

/// Prepares a socket that will listen at this address. With `SO_REUSEADDR`, a server that restarts need not wait
/// until the connections of its predecessor are gone.
#[cfg(unix)]
pub(crate) fn prepare(socket: &TcpSocket, _address: SocketAddr) -> io::Result<()> {
    socket.set_reuseaddr(true)
}

/// Prepares a socket that will listen at this address. A socket for IPv6 takes IPv4 as well, as on other systems. It
/// gets no `SO_REUSEADDR`: a server that restarts on Windows does not need the option, and with it two servers could
/// listen on one port.
#[cfg(windows)]
pub(crate) fn prepare(socket: &TcpSocket, address: SocketAddr) -> io::Result<()> {
    if address.is_ipv6() { socket2::SockRef::from(socket).set_only_v6(false) } else { Ok(()) }
}

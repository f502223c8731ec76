//! Listening for connections.

use std::{io, net::SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::system;

/// More waiting connections than any system allows. Each system uses its own maximum instead (Linux:
/// `net.core.somaxconn`).
const MOST: u32 = i32::MAX as u32;

/// Listens at an address. As many connections may wait to be accepted as the system allows, so that all
/// clients can reconnect at once after a restart.
///
/// # Errors
/// When the address is taken or is not this machine's.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    system::prepare(&socket, address)?;
    socket.bind(address)?;
    socket.listen(MOST)
}

#[cfg(test)]
mod tests {
    use std::{net::TcpStream, time::Duration};

    use super::*;

    /// More than the 128 that are usual, and fewer than open files are allowed.
    const CLIENTS: usize = 400;

    #[tokio::test]
    async fn many_clients_may_wait_to_be_accepted() {
        let allowed = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
        let clients = CLIENTS.min(allowed.trim().parse().unwrap());
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = listen(address.parse().unwrap()) else {
                assert!(address.starts_with('['), "IPv4 is everywhere");
                continue;
            };
            let address = listener.local_addr().unwrap();
            // One that finds no place is tried again by the system a second later.
            let within = Duration::from_millis(900);
            let mut connected = Vec::with_capacity(clients);
            for number in 0..clients {
                let client = TcpStream::connect_timeout(&address, within);
                connected.push(client.unwrap_or_else(|error| panic!("client {number}: {error}")));
            }
        }
    }
}

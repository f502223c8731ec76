//! The facts about a request that a server states when it passes the request on to a room's home. The home believes
//! them, because only its fellows can state them.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use base::{ClientAddress, RoomId};
use http::Extensions;
use serde::{Deserialize, Serialize};

/// The facts about a request beside the request itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedOn {
    /// The id of the room.
    pub room: String,
    /// Where the client is, for everything that is counted by address.
    pub client: IpAddr,
    /// Whether a proxy passed the request on.
    pub by_proxy: bool,
    /// Whether a web page of another origin made a browser send it.
    pub foreign_page: bool,
    /// The far end of the client's connection. It is `0.0.0.0` for a program on the stating server's own machine,
    /// which is not local to the home.
    pub peer: IpAddr,
    /// Whether the client reached the stating server over TLS.
    pub tls: bool,
}

impl PassedOn {
    /// The facts about a request of `client` about a room, over a connection from `peer`.
    pub(super) fn new(room: &RoomId, client: ClientAddress, peer: IpAddr, tls: bool) -> Self {
        let (peer, nobody) = (peer.to_canonical(), IpAddr::from(Ipv4Addr::UNSPECIFIED));
        Self {
            room: room.as_str().to_owned(),
            client: client.ip(),
            by_proxy: client.is_by_proxy(),
            foreign_page: client.is_of_foreign_page(),
            peer: if peer.is_loopback() { nobody } else { peer },
            tls,
        }
    }

    /// The client's address, as the server that it reached counts it.
    pub(super) fn address(&self) -> ClientAddress {
        let address = ClientAddress::new(self.client);
        let address = if self.by_proxy { address.by_proxy() } else { address };
        if self.foreign_page { address.of_foreign_page() } else { address }
    }

    /// For a request that was passed on, whether the client reached the other server over TLS; `None` for any other.
    pub(in crate::room) fn tells_of_tls(extensions: &Extensions) -> Option<bool> {
        extensions.get::<Arc<Self>>().map(|passed_on| passed_on.tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_counts_at_the_home_as_at_the_server_that_it_reached() {
        let there: IpAddr = "192.0.2.7".parse().unwrap();
        for client in [
            ClientAddress::new(there),
            ClientAddress::new(there).by_proxy(),
            ClientAddress::new(there).of_foreign_page(),
            ClientAddress::new(there).by_proxy().of_foreign_page(),
        ] {
            let passed_on = PassedOn::new(&"r".into(), client, there, true);
            assert_eq!((passed_on.address(), passed_on.peer), (client, there));
        }
    }

    #[test]
    fn a_program_of_another_servers_machine_is_none_of_this_one() {
        for own in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let own = own.parse().unwrap();
            let passed_on = PassedOn::new(&"r".into(), ClientAddress::new(own), own, true);
            assert!(passed_on.peer.is_unspecified(), "{own}");
        }
    }
}

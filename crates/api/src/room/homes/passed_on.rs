//! What the server that a client reached says of a request to the room's home, which believes it: only servers that
//! act as one can say it.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use base::{ClientAddress, RoomId};
use http::{Extensions, request::Parts};
use rooms::KnownRoom;
use serde::{Deserialize, Serialize};

use crate::state::{Api, Client, Peer};

/// What is said of a request beside the request itself.
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
    /// The far end of the client's connection. A program of that server's machine is none of the home's: it is nobody.
    pub peer: IpAddr,
    /// Whether the server was reached over TLS.
    pub tls: bool,
}

impl PassedOn {
    pub(super) fn of(api: &Api, parts: &Parts, room: &KnownRoom) -> Self {
        let client = Client::of(&parts.extensions);
        let peer = Peer::of(&parts.extensions).to_canonical();
        let nobody = IpAddr::from(Ipv4Addr::UNSPECIFIED);
        Self {
            room: room.id().as_str().to_owned(),
            client: client.ip(),
            by_proxy: client.is_by_proxy(),
            foreign_page: client.is_of_foreign_page(),
            peer: if peer.is_loopback() { nobody } else { peer },
            tls: api.rooms().tls,
        }
    }

    /// Puts it where handlers look for it.
    pub(super) fn put(self, extensions: &mut Extensions) {
        extensions.insert(Client { address: self.address(), peer: self.peer });
        extensions.insert(Arc::new(self));
    }

    pub(super) fn room(&self) -> RoomId {
        RoomId::from(self.room.as_str())
    }

    fn address(&self) -> ClientAddress {
        let address = ClientAddress::new(self.client);
        let address = if self.by_proxy { address.by_proxy() } else { address };
        if self.foreign_page { address.of_foreign_page() } else { address }
    }

    /// Whether the server that a request came to was reached over TLS, if the request was passed on.
    pub(in crate::room) fn tells_of_tls(extensions: &Extensions) -> Option<bool> {
        extensions.get::<Arc<Self>>().map(|passed_on| passed_on.tls)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_counts_at_the_home_as_at_the_server_that_it_reached() {
        let here: IpAddr = "192.0.2.7".parse().unwrap();
        for address in [
            ClientAddress::new(here),
            ClientAddress::new(here).by_proxy(),
            ClientAddress::new(here).of_foreign_page(),
            ClientAddress::new(here).by_proxy().of_foreign_page(),
        ] {
            let passed_on = PassedOn {
                room: "r".to_owned(),
                client: address.ip(),
                by_proxy: address.is_by_proxy(),
                foreign_page: address.is_of_foreign_page(),
                peer: here,
                tls: true,
            };
            let mut extensions = Extensions::new();
            passed_on.put(&mut extensions);
            assert_eq!(Client::of(&extensions), address);
            assert_eq!(Peer::of(&extensions), here);
            assert_eq!(PassedOn::tells_of_tls(&extensions), Some(true));
        }
        assert_eq!(PassedOn::tells_of_tls(&Extensions::new()), None);
    }
}

//! The addresses of a workspace, and the token for each.

use std::collections::VecDeque;

use base::{Secret, redact_url};
use url::Url;
use wire::server_url;

use crate::{
    connection::{SOCKET, without_socket},
    error::ClientError,
    server::leads_here,
};

/// The address of a server's workspace, and the token that it gets.
#[derive(Debug, Clone)]
pub struct Address {
    pub(super) url: Url,
    pub(super) token: Option<Secret>,
    /// The server's own URL, without secrets.
    pub(super) shown: String,
}

impl Address {
    /// The workspace of the server at `server`, an `http`, `https`, `ws` or `wss` URL. Does not
    /// connect yet.
    ///
    /// # Errors
    /// [`ClientError::NotAServer`] when the URL cannot be used.
    pub fn new(server: &str, token: Option<&Secret>) -> Result<Self, ClientError> {
        let server = server.trim();
        let bad = |reason| ClientError::NotAServer { url: redact_url(server), reason };
        let url = server_url(server).ok_or_else(|| bad("it is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https" | "ws" | "wss") || !url.has_host() {
            return Err(bad("it must begin with http://, https://, ws:// or wss://"));
        }
        let mut url = without_socket(url).map_err(bad)?;
        let shown = redact_url(url.as_str().trim_end_matches('/'));
        url.set_path(&format!("{}{SOCKET}", url.path().trim_end_matches('/')));
        Ok(Self { url, token: token.cloned(), shown })
    }

    /// The server's URL, without secrets.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Whether a token is sent there.
    pub fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Whether it leads to this machine: to `localhost` or a loopback address.
    pub fn is_on_this_machine(&self) -> bool {
        leads_here(&self.url)
    }
}

/// The servers of one workspace, in the order in which they are tried: one, or several members of a
/// cluster.
#[derive(Debug, Clone)]
pub struct Addresses {
    first: Address,
    others: VecDeque<Address>,
}

impl Addresses {
    /// These servers, in this order.
    pub fn new(first: Address, others: impl IntoIterator<Item = Address>) -> Self {
        Self { first, others: others.into_iter().collect() }
    }

    /// The server that is tried first.
    pub fn first(&self) -> &Address {
        &self.first
    }

    /// All, in order.
    pub fn iter(&self) -> impl Iterator<Item = &Address> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Tries this server first from now on, then those after it, then those before it. Nothing changes
    /// if it is not one of them.
    pub(super) fn begin_with(&mut self, shown: &str) {
        let at = self.iter().position(|address| address.shown == shown);
        for _ in 0..at.unwrap_or(0) {
            if let Some(next) = self.others.pop_front() {
                self.others.push_back(std::mem::replace(&mut self.first, next));
            }
        }
    }
}

impl From<&Address> for Addresses {
    fn from(address: &Address) -> Self {
        Self::new(address.clone(), [])
    }
}

impl From<&Addresses> for Addresses {
    fn from(addresses: &Addresses) -> Self {
        addresses.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_lies_beneath_the_servers_path() {
        let cases = [
            ("http://h:1", "http://h:1/ws", "http://h:1"),
            ("https://h/warren/", "https://h/warren/ws", "https://h/warren"),
            (" ws://h:1/ws ", "ws://h:1/ws", "ws://h:1"),
            ("wss://h/a/ws/", "wss://h/a/ws", "wss://h/a"),
            ("h:1/v1", "http://h:1/ws", "http://h:1"),
        ];
        for (server, socket, shown) in cases {
            let address = Address::new(server, None).unwrap();
            assert_eq!((address.url.as_str(), address.shown()), (socket, shown));
        }
    }

    #[test]
    fn an_address_of_this_machine_is_recognised() {
        let is_here = |server| Address::new(server, None).unwrap().is_on_this_machine();
        assert!(
            is_here("ws://127.0.0.1:1") && is_here("https://[::1]") && is_here("ws://localhost")
        );
        assert!(!is_here("ws://10.0.0.1") && !is_here("wss://localhost.example"));
    }

    #[test]
    fn a_bad_address_is_refused_without_showing_its_password() {
        for server in ["", "/v1", "ftp://h", "http://", "http://u:pw@h", "http://h/?a=1"] {
            let error = Address::new(server, None).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn servers_are_tried_from_the_present_one_on() {
        let [a, b, c] =
            ["http://a", "http://b", "http://c"].map(|it| Address::new(it, None).unwrap());
        let mut all = Addresses::new(a, [b, c]);
        let order = |all: &Addresses| all.iter().map(|it| it.shown.clone()).collect::<Vec<_>>();
        for (first, expected) in [
            ("http://b", ["http://b", "http://c", "http://a"]),
            ("http://a", ["http://a", "http://b", "http://c"]),
            ("http://c", ["http://c", "http://a", "http://b"]),
            ("http://d", ["http://c", "http://a", "http://b"]),
        ] {
            all.begin_with(first);
            assert_eq!(order(&all), expected);
        }
    }
}

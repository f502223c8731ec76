//! How others reach a room: an address that they can use, and a command line to send them.

use std::{
    net::{IpAddr, UdpSocket},
    time::Duration,
};

use client::{Warren, room::RoomSummary};
use tokio::time::timeout;
use url::{Host, Url};

/// How long this machine's server may take to answer at its network address.
const KNOCK: Duration = Duration::from_secs(1);

/// An invitation to a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invitation {
    pub(super) url: String,
    /// The command line to send.
    pub(super) line: String,
    /// Whether only this machine can reach the room.
    pub(super) only_here: bool,
}

impl Invitation {
    pub(super) async fn new(warren: &Warren, room: &RoomSummary) -> Self {
        let own = warren.url();
        let others = if is_loopback(&own) { on_the_network(&own).await } else { Some(own.clone()) };
        Self::at(&others.clone().unwrap_or(own), room, others.is_none())
    }

    fn at(server: &str, room: &RoomSummary, only_here: bool) -> Self {
        let code = room.room.spoken_code.as_deref().unwrap_or(&room.room.code);
        Self {
            url: format!("{server}/rooms/{code}"),
            line: format!("warren room join {code} --server {server}"),
            only_here,
        }
    }

    /// The base URL for OpenAI's clients.
    pub(super) fn base_url(&self) -> String {
        format!("{}/v1", self.url)
    }
}

/// Whether a URL leads to this machine only.
pub(super) fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    url.is_some_and(|url| match url.host() {
        Some(Host::Ipv4(v4)) => v4.is_loopback(),
        Some(Host::Ipv6(v6)) => v6.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    })
}

/// The same server under this machine's network address, if it listens there.
async fn on_the_network(own: &str) -> Option<String> {
    let mut url = Url::parse(own).ok()?;
    url.set_host(Some(&shown(network_address()?))).ok()?;
    let url = url.as_str().trim_end_matches('/').to_owned();
    let warren = Warren::new(&url, None).ok()?;
    let answer = timeout(KNOCK, warren.rooms_health()).await;
    matches!(answer, Ok(Ok(_))).then_some(url)
}

fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
}

/// This machine's network address: the source address that the kernel would choose. Nothing is sent.
fn network_address() -> Option<IpAddr> {
    // Addresses for documentation (RFC 5737, RFC 3849) follow the default route, and nobody has them.
    let routes = [("0.0.0.0:0", "192.0.2.1:9"), ("[::]:0", "[2001:db8::1]:9")];
    let from = |(own, other): (&str, &str)| {
        let socket = UdpSocket::bind(own).ok()?;
        socket.connect(other).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    let mut found = routes.into_iter().filter_map(from);
    found.find(|address| !address.is_loopback() && !address.is_unspecified())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_urls_are_recognised() {
        for url in ["http://127.0.0.1:1", "http://127.8.8.8", "http://[::1]:1", "http://localhost"]
        {
            assert!(is_loopback(url), "{url}");
        }
        for url in ["http://192.0.2.1", "http://example.org", "http://localhost.example.org", "x"] {
            assert!(!is_loopback(url), "{url}");
        }
    }

    #[test]
    fn an_invitation_names_the_spoken_code() {
        let json = serde_json::json!({"id": "r", "code": "ABC123", "spokenCode": "swift-eagle-42",
            "name": "n", "hostId": "h", "createdAt": 1, "participantCount": 0});
        let mut room: RoomSummary = serde_json::from_value(json).unwrap();
        let invitation = Invitation::at("http://192.0.2.7:9178", &room, false);
        let line = "warren room join swift-eagle-42 --server http://192.0.2.7:9178";
        assert_eq!(invitation.line, line);
        assert_eq!(invitation.base_url(), "http://192.0.2.7:9178/rooms/swift-eagle-42/v1");
        room.room.spoken_code = None;
        let stock = Invitation::at("http://h", &room, false);
        assert_eq!(stock.url, "http://h/rooms/ABC123");
    }
}

//! The way in which others reach a room: an address that they can use, and a command line to send them.

use std::{net::IpAddr, time::Duration};

use client::{Warren, room::RoomSummary};
use tokio::time::timeout;
use url::{Host, Url};

/// The longest time in which this machine's server has to answer at its network address.
const KNOCK: Duration = Duration::from_secs(1);

/// An invitation to a room.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Invitation {
    pub(super) url: String,
    /// The server's address.
    pub(super) server: String,
    /// The URL with the short code, for a small QR code.
    pub(super) short_url: String,
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

    pub(super) fn at(server: &str, room: &RoomSummary, only_here: bool) -> Self {
        let code = room.room.spoken_code.as_deref().unwrap_or(&room.room.code);
        Self {
            url: format!("{server}/rooms/{code}"),
            server: server.to_owned(),
            short_url: format!("{server}/rooms/{}", room.room.code),
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
pub(crate) fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    url.is_some_and(|url| match url.host() {
        Some(Host::Ipv4(v4)) => v4.is_loopback(),
        Some(Host::Ipv6(v6)) => v6.to_canonical().is_loopback(),
        Some(Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        None => false,
    })
}

/// The same server under the first of this machine's network addresses at which it listens.
pub(crate) async fn on_the_network(own: &str) -> Option<String> {
    let knocks = others(own, hardware::preferred_addresses()).map(|url| tokio::spawn(knock(url)));
    // All attempts run at once; the first address in order wins.
    for knock in knocks.collect::<Vec<_>>() {
        if let Ok(Some(url)) = knock.await {
            return Some(url);
        }
    }
    None
}

/// The URL, if a server answers there.
async fn knock(url: String) -> Option<String> {
    let warren = Warren::new(&url, None).ok()?;
    let answer = timeout(KNOCK, warren.rooms_health()).await;
    matches!(answer, Ok(Ok(_))).then_some(url)
}

/// The URLs of a server at these addresses.
fn others(own: &str, addresses: Vec<IpAddr>) -> impl Iterator<Item = String> {
    let own = Url::parse(own).ok();
    addresses.into_iter().filter_map(move |address| {
        let mut url = own.clone()?;
        url.set_host(Some(&shown(address))).ok()?;
        Some(url.as_str().trim_end_matches('/').to_owned())
    })
}

fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(v4) => v4.to_string(),
        IpAddr::V6(v6) => format!("[{v6}]"),
    }
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
    fn a_server_is_looked_for_at_all_addresses_of_this_machine() {
        let all = ["192.0.2.7", "fd00::7"].map(|address| address.parse().unwrap());
        let urls: Vec<_> = others("http://127.0.0.1:9178", all.to_vec()).collect();
        assert_eq!(urls, ["http://192.0.2.7:9178", "http://[fd00::7]:9178"]);
        let own = hardware::preferred_addresses();
        assert!(hardware::addresses().iter().all(|address| own.contains(address)));
        assert!(own.iter().all(|address| !address.is_loopback()), "{own:?}");
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

//! How a command names a room, by one of its codes or its URL, and opens it, by its password.

use std::str::FromStr;

use base::{Fingerprint, Secret};
use clap::Args;
use client::room::limits::MAX_CODE;
use url::Url;

/// A room's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RoomName {
    /// The server's base URL, if the room is named by a URL.
    pub(crate) server: Option<String>,
    /// The fingerprint of that server's certificate, if that is how it is known.
    pub(crate) pin: Option<Fingerprint>,
    pub(crate) code: String,
}

/// Text that names no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a room is named by its code, such as swift-eagle-42 or its six characters, or by its URL, such \
     as http://HOST:9178/rooms/swift-eagle-42"
)]
pub(crate) struct NotARoomName;

impl FromStr for RoomName {
    type Err = NotARoomName;

    fn from_str(text: &str) -> Result<Self, NotARoomName> {
        let text = text.trim();
        if !text.contains("://") {
            return Ok(Self { server: None, pin: None, code: code(text)? });
        }
        let mut url = Url::parse(text).map_err(|_| NotARoomName)?;
        let path = url.path().to_owned();
        let (prefix, rest) = path.rsplit_once("/rooms/").ok_or(NotARoomName)?;
        let code = code(rest.split('/').next().unwrap_or_default())?;
        url.set_query(None);
        url.set_fragment(None);
        // The same room is managed at `/v1/rooms/CODE`.
        url.set_path(prefix.strip_suffix("/v1").unwrap_or(prefix));
        let server = Some(url.as_str().trim_end_matches('/').to_owned());
        Ok(Self { server, pin: None, code })
    }
}

fn code(text: &str) -> Result<String, NotARoomName> {
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fit = !text.is_empty() && text.len() <= MAX_CODE && text.chars().all(is_code);
    fit.then(|| text.to_owned()).ok_or(NotARoomName)
}

/// The password of a room
#[derive(Args)]
pub(super) struct Password {
    /// The room's password, if it has one
    #[arg(long, env = "WARREN_ROOM_PASSWORD", value_name = "PASSWORD", hide_env_values = true)]
    password: Option<Secret>,
}

impl Password {
    pub(super) const fn of(password: Option<Secret>) -> Self {
        Self { password }
    }

    pub(super) fn get(&self) -> Option<&Secret> {
        self.password.as_ref().filter(|password| !password.expose().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_named_by_a_code_or_a_url() {
        let at = |text: &str| {
            let room: RoomName = text.parse().unwrap();
            (room.server, room.code)
        };
        assert_eq!(at(" swift-eagle-42 "), (None, "swift-eagle-42".to_owned()));
        let (server, code) = (Some("http://h:1".to_owned()), "A_B-9C".to_owned());
        for url in ["/rooms/A_B-9C", "/rooms/A_B-9C/v1", "/v1/rooms/A_B-9C?password=x#y"] {
            assert_eq!(at(&format!("http://h:1{url}")), (server.clone(), code.clone()), "{url}");
        }
        let below = Some("https://h/warren".to_owned());
        assert_eq!(at("https://h/warren/rooms/A_B-9C"), (below, code));
    }

    #[test]
    fn other_text_is_refused() {
        let long = "x".repeat(MAX_CODE + 1);
        for text in ["", "a b", "a/b", "http://h", "http://h/rooms/", "http://h/rooms/a%2Fb", &long]
        {
            assert_eq!(text.parse::<RoomName>(), Err(NotARoomName), "{text}");
        }
    }
}

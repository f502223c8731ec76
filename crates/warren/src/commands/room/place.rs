//! A room as people name it: by one of its codes, or by its URL.

use std::str::FromStr;

use client::room::limits::MAX_CODE;
use url::Url;

/// A room as people name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The server's base URL, where the room was named by its URL.
    pub(super) server: Option<String>,
    /// Its code.
    pub(super) code: String,
}

/// Text that names no room.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "a room is named by its code, such as swift-eagle-42 or its six characters, or by its URL, such \
     as http://HOST:9178/rooms/swift-eagle-42"
)]
pub(super) struct NotAPlace;

impl FromStr for Place {
    type Err = NotAPlace;

    fn from_str(text: &str) -> Result<Self, NotAPlace> {
        let text = text.trim();
        if !text.contains("://") {
            return Ok(Self { server: None, code: code(text)? });
        }
        let mut url = Url::parse(text).map_err(|_| NotAPlace)?;
        let path = url.path().to_owned();
        let (prefix, rest) = path.rsplit_once("/rooms/").ok_or(NotAPlace)?;
        let code = code(rest.split('/').next().unwrap_or_default())?;
        url.set_query(None);
        url.set_fragment(None);
        // The same room is managed at `/v1/rooms/CODE`.
        url.set_path(prefix.strip_suffix("/v1").unwrap_or(prefix));
        Ok(Self { server: Some(url.as_str().trim_end_matches('/').to_owned()), code })
    }
}

fn code(text: &str) -> Result<String, NotAPlace> {
    let is_code = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let fit = !text.is_empty() && text.len() <= MAX_CODE && text.chars().all(is_code);
    fit.then(|| text.to_owned()).ok_or(NotAPlace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_is_named_by_a_code_or_by_its_url() {
        let at = |text: &str| {
            let place: Place = text.parse().unwrap();
            (place.server, place.code)
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
    fn what_names_no_room_is_refused() {
        let long = "x".repeat(MAX_CODE + 1);
        for text in ["", "a b", "a/b", "http://h", "http://h/rooms/", "http://h/rooms/a%2Fb", &long]
        {
            assert_eq!(text.parse::<Place>(), Err(NotAPlace), "{text}");
        }
    }
}

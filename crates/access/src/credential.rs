//! Tokens stored as hashes, and the places of credentials in requests.

use base::Secret;
use http::{HeaderMap, HeaderValue, header};
use rand::RngExt;
use sha2::{Digest, Sha256};
use store::KeyDigest;
use subtle::ConstantTimeEq;

/// The beginning of every key.
pub(crate) const PREFIX: &str = "wk_";

/// The beginning of every session of the page.
pub(crate) const PAGE_PREFIX: &str = "wb_";

/// The headers that Anthropic's and Google's clients use.
const API_KEYS: [&str; 2] = ["x-api-key", "x-goog-api-key"];

/// A token, stored as its SHA-256 and compared in constant time.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// The token with this text.
    pub fn new(secret: &Secret) -> Self {
        Self(Sha256::digest(secret.expose().as_bytes()).into())
    }

    pub(crate) fn digest(&self) -> KeyDigest {
        KeyDigest(self.0)
    }

    /// Whether this text is the token.
    pub fn matches(&self, presented: &str) -> bool {
        let presented: [u8; 32] = Sha256::digest(presented.as_bytes()).into();
        self.0.ct_eq(&presented).into()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// The SHA-256 of a key's text.
pub(crate) fn digest(text: &str) -> KeyDigest {
    KeyDigest(Sha256::digest(text.as_bytes()).into())
}

/// A new token: `prefix`, then 256 random bits in hex.
pub fn new_token(prefix: &str) -> Secret {
    let bits: [u8; 32] = rand::rng().random();
    Secret::from(format!("{prefix}{}", hex::encode(bits)))
}

/// Whether a text begins like a key or like a session of the page. The dummy values that clients send where no
/// key is needed do not begin so.
pub fn has_key_form(text: &str) -> bool {
    text.starts_with(PREFIX) || has_session_form(text)
}

/// Whether a text has the form of a session of the page.
pub fn has_session_form(text: &str) -> bool {
    text.starts_with(PAGE_PREFIX)
}

/// The credential that a request carries: the text after `Bearer` in `Authorization`, or the value of `x-api-key`
/// (Anthropic's clients) or of `x-goog-api-key` (Google's). A text with the form of a key is taken before any other,
/// from each of these headers and with or without `Bearer`: so a key's limits hold even if it is in the wrong header.
pub fn presented(headers: &HeaderMap) -> Option<&str> {
    let places = [header::AUTHORIZATION.as_str(), API_KEYS[0], API_KEYS[1]];
    if let Some(key) = places.iter().flat_map(|name| headers.get_all(*name)).find_map(key) {
        return Some(key);
    }
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| std::str::from_utf8(strip_bearer(value.as_bytes())?).ok());
    let api_key = || API_KEYS.iter().find_map(|name| headers.get(*name)?.to_str().ok());
    bearer.or_else(api_key).map(str::trim).filter(|credential| !credential.is_empty())
}

/// The text with the form of a key in a header's value, with or without a scheme before it. A key that
/// is not valid UTF-8 is returned as the bare prefix, which is not a valid key.
fn key(value: &HeaderValue) -> Option<&str> {
    let mut bytes = value.as_bytes().trim_ascii();
    while let Some(rest) = strip_bearer(bytes) {
        bytes = rest.trim_ascii_start();
    }
    let is_key = bytes.starts_with(PREFIX.as_bytes()) || bytes.starts_with(PAGE_PREFIX.as_bytes());
    is_key.then(|| std::str::from_utf8(bytes).unwrap_or(PREFIX))
}

fn strip_bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(http::HeaderName::from_static(name), value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_token_matches_itself_only() {
        let token = Token::new(&"s3cret".into());
        assert!(token.matches("s3cret"));
        assert!(!token.matches("s3cret ") && !token.matches(""));
    }

    #[test]
    fn new_tokens_have_256_bits_and_differ() {
        let (one, other) = (new_token("wk_"), new_token("wk_"));
        assert_eq!(one.expose().len(), 3 + 64);
        assert_ne!(one, other);
    }

    #[test]
    fn credentials_are_found_where_clients_put_them() {
        assert_eq!(presented(&headers("authorization", "Bearer abc")), Some("abc"));
        assert_eq!(presented(&headers("authorization", "bearer  abc ")), Some("abc"));
        assert_eq!(presented(&headers("x-api-key", "abc")), Some("abc"));
        assert_eq!(presented(&headers("x-goog-api-key", "abc")), Some("abc"));
        assert_eq!(presented(&headers("authorization", "Basic abc")), None);
        assert_eq!(presented(&headers("authorization", "Bearer ")), None);
        assert_eq!(presented(&HeaderMap::new()), None);
    }

    #[test]
    fn a_key_is_found_in_the_wrong_place_and_beside_a_dummy() {
        assert_eq!(presented(&headers("authorization", "wk_a")), Some("wk_a"));
        assert_eq!(presented(&headers("authorization", "Bearer bearer  wk_a ")), Some("wk_a"));
        assert_eq!(presented(&headers("x-api-key", "Bearer wk_a")), Some("wk_a"));
        assert_eq!(presented(&headers("x-goog-api-key", "wk_a")), Some("wk_a"));
        let mut both = headers("authorization", "Bearer sk-dummy");
        both.append("x-api-key", "other".parse().unwrap());
        assert_eq!(presented(&both), Some("sk-dummy"));
        both.append("x-api-key", "wk_a".parse().unwrap());
        assert_eq!(presented(&both), Some("wk_a"));
        assert_eq!(presented(&headers("x-api-key", "wb_a")), Some("wb_a"), "a session, too");
    }

    #[test]
    fn a_key_that_is_not_utf8_is_an_invalid_key() {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", HeaderValue::from_bytes(b"Bearer wk_a\xe9").unwrap());
        assert_eq!(presented(&headers), Some("wk_"));
        headers.insert("authorization", HeaderValue::from_bytes(b"Bearer a\xe9").unwrap());
        assert_eq!(presented(&headers), None);
    }
}

//! Tokens kept as hashes, and where requests carry them.

use base::Secret;
use http::{HeaderMap, header};
use rand::RngExt;
use sha2::{Digest, Sha256};
use store::KeyDigest;
use subtle::ConstantTimeEq;

/// What the text of every key begins with.
pub(crate) const PREFIX: &str = "wk_";

/// A token that somebody must present, kept as its SHA-256 and compared in constant time.
#[derive(Clone)]
pub struct Token([u8; 32]);

impl Token {
    /// The token with this text.
    pub fn new(secret: &Secret) -> Self {
        Self(Sha256::digest(secret.expose().as_bytes()).into())
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
    let hex: String = bits.iter().map(|byte| format!("{byte:02x}")).collect();
    Secret::from(format!("{prefix}{hex}"))
}

/// Whether a text looks like a key that [`new_token`] made: nobody invents such a dummy.
pub fn has_key_form(text: &str) -> bool {
    let hex = text.strip_prefix(PREFIX).unwrap_or_default();
    hex.len() == 64 && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The credential that a request carries, as `Authorization: Bearer`, or as `x-api-key`, which
/// Anthropic's clients send.
pub fn presented(headers: &HeaderMap) -> Option<&str> {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(strip_bearer);
    let api_key = || headers.get("x-api-key").and_then(|value| value.to_str().ok());
    bearer.or_else(api_key).map(str::trim).filter(|credential| !credential.is_empty())
}

fn strip_bearer(value: &str) -> Option<&str> {
    let (scheme, rest) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case("bearer ").then_some(rest)
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
        assert_eq!(presented(&headers("authorization", "Basic abc")), None);
        assert_eq!(presented(&headers("authorization", "Bearer ")), None);
        assert_eq!(presented(&HeaderMap::new()), None);
    }
}

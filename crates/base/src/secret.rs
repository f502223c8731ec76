//! Text that must not be seen.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// A token or password. It shows itself only to who calls [`Secret::expose`].
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for comparing or sending. Never log what this returns.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text.into())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

/// Query parameters whose values are secrets.
const SECRET_PARAMETERS: [&str; 6] =
    ["token", "worker_secret", "secret", "key", "api_key", "password"];

/// A path and query, or a URL, as it may be logged: the values of secret query parameters and a
/// `user:password@` before the host are replaced by `…`.
pub fn redact_url(url: &str) -> String {
    let (head, query) = match url.split_once('?') {
        Some((head, query)) => (head, Some(query)),
        None => (url, None),
    };
    let head = redact_user_info(head);
    match query {
        None => head,
        Some(query) => {
            let parts: Vec<_> = query.split('&').map(redact_parameter).collect();
            format!("{head}?{}", parts.join("&"))
        }
    }
}

fn redact_user_info(head: &str) -> String {
    let Some((scheme, rest)) = head.split_once("://") else { return head.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) => format!("{scheme}://…@{}", &rest[at + 1..]),
        None => head.to_owned(),
    }
}

fn redact_parameter(parameter: &str) -> String {
    match parameter.split_once('=') {
        Some((name, _)) if SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str()) => {
            format!("{name}=…")
        }
        _ => parameter.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_show_itself() {
        let secret = Secret::from("hunter2");
        assert_eq!(format!("{secret} {secret:?}"), "[redacted] [redacted]");
    }

    #[test]
    fn urls_lose_their_secrets_and_nothing_else() {
        let cases = [
            ("/ws?token=abc&model=m", "/ws?token=…&model=m"),
            ("wss://user:pw@host/x?Worker_Secret=s", "wss://…@host/x?Worker_Secret=…"),
            ("http://host/a@b?c=d", "http://host/a@b?c=d"),
            ("/plain", "/plain"),
        ];
        for (url, shown) in cases {
            assert_eq!(redact_url(url), shown);
        }
    }
}

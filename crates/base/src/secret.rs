//! Text that must not be seen.

use std::{fmt, str::FromStr};

use serde::Deserialize;

/// A token or password, without white space around it: files and environments end with a line break
/// that nobody can present. It shows itself only through [`Secret::expose`].
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for comparing or sending. Never log what this returns.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The secret, if it can be presented.
    ///
    /// # Errors
    /// [`NoSecret`] when it is empty, or holds a line break or another control character.
    pub fn usable(self) -> Result<Self, NoSecret> {
        match &*self.0 {
            "" => Err(NoSecret::Empty),
            text if text.contains(char::is_control) => Err(NoSecret::LineBreak),
            _ => Ok(self),
        }
    }
}

/// Why a text cannot be a secret. The text itself is not given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSecret {
    /// Nothing but white space.
    #[error("is empty")]
    Empty,
    /// Several lines, or a control character.
    #[error("has a line break or a control character within: it must be one line")]
    LineBreak,
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.trim().to_owned())
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
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
    fn white_space_around_a_secret_is_dropped_however_it_comes() {
        for text in ["tok\n", "tok\r\n", " tok", "\ttok \n\n", "tok"] {
            assert_eq!(Secret::from(text).expose(), "tok");
            assert_eq!(Secret::from(text.to_owned()).expose(), "tok");
            assert_eq!(text.parse::<Secret>().unwrap().expose(), "tok");
            let json = serde_json::to_string(text).unwrap();
            assert_eq!(serde_json::from_str::<Secret>(&json).unwrap().expose(), "tok");
        }
        assert_eq!(Secret::from("two words").usable().unwrap().expose(), "two words");
        assert_eq!(Secret::from(" \n").usable(), Err(NoSecret::Empty));
        for within in ["a\nb", "a\r\nb", "a\0b"] {
            assert_eq!(Secret::from(within).usable(), Err(NoSecret::LineBreak));
        }
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

//! Which server: by the id of its start, and by its name.

use std::{fmt, str::FromStr, sync::Arc};

/// One start of a server: 128 random bits. A server that starts again is another one to its fellows.
/// Shown as 32 hex digits. Where the fleet needs an order of its servers, it is that of their ids.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerId(u128);

/// The name that a server keeps over its starts.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ServerName(Arc<str>);

/// A text that is not the id of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a server's id is 32 hex digits")]
pub struct NotAServerId;

impl ServerId {
    /// An id made of the caller's random bits.
    pub const fn from_random(bits: u128) -> Self {
        Self(bits)
    }

    /// Its bits.
    pub const fn bits(self) -> u128 {
        self.0
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ServerId {
    type Err = NotAServerId;

    fn from_str(text: &str) -> Result<Self, NotAServerId> {
        let plain = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u128::from_str_radix(text, 16).map_err(|_| NotAServerId)?;
        plain.then_some(Self(bits)).ok_or(NotAServerId)
    }
}

impl ServerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for ServerName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_reads_back_what_it_shows_and_refuses_the_rest() {
        let id = ServerId::from_random(0x1f);
        assert_eq!(id.to_string(), "0000000000000000000000000000001f");
        assert_eq!(id.to_string().parse(), Ok(id));
        for text in
            ["", "1f", "+000000000000000000000000000001f", "g000000000000000000000000000001f"]
        {
            assert_eq!(text.parse::<ServerId>(), Err(NotAServerId), "{text}");
        }
    }
}

//! Joining in one line: the code of an invitation, and the messages by which it is used.
//!
//! - [`Invitation`], its [`Purpose`] and the [`Place`] of its server: the content of a code
//! - `code`: an invitation as text, and back
//! - [`proof`]: how a server proves that it is the right one, before it is sent a secret
//! - [`messages`]: what a joining machine and a server say to each other over HTTP

mod code;
pub mod messages;
pub mod proof;
#[cfg(test)]
mod tests;

use std::{fmt, net::IpAddr, str::FromStr};

use base::{Fingerprint, Secret};
use sha2::{Digest, Sha256};

pub use self::code::{BadCode, PREFIX};

/// The most addresses in a code: with more its QR code would not fit on a terminal.
pub const MAX_ADDRESSES: usize = 3;

/// The longest URL, room code and password in a code, in bytes.
pub const MAX_TEXT: usize = 100;

/// The content of an invitation's code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    /// The server, wherever it is.
    pub server: ServerId,
    /// Where it was when the code was made.
    pub place: Place,
    /// The purpose of the code.
    pub purpose: Purpose,
}

/// Where a server is, and how it is recognised there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The port at all addresses.
    pub port: u16,
    /// Its addresses, the best first; at most [`MAX_ADDRESSES`].
    pub addresses: Vec<IpAddr>,
    /// The fingerprint of its certificate; `None`: connections to it are not encrypted.
    pub fingerprint: Option<Fingerprint>,
    /// An `https://` URL by which others reach it.
    pub url: Option<String>,
}

/// The purpose of an invitation.
#[derive(Clone, PartialEq, Eq)]
pub enum Purpose {
    /// One machine becomes a worker.
    Worker(InvitationSecret),
    /// A guest of a room.
    Room {
        /// The room's code.
        code: String,
        /// Its password, if it has one.
        password: Option<Secret>,
    },
}

/// A server, by 64 random bits of its data directory. It is public, and proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ServerId([u8; ServerId::BYTES]);

/// The secret of an invitation: 128 random bits.
#[derive(Clone, PartialEq, Eq)]
pub struct InvitationSecret([u8; InvitationSecret::BYTES]);

/// A text that is no id of a server, or no secret of an invitation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it has not the right number of hexadecimal digits")]
pub struct NotHex;

impl Place {
    /// The URLs by which the server may be reached, the best first.
    pub fn urls(&self) -> Vec<String> {
        let scheme = if self.fingerprint.is_some() { "https" } else { "http" };
        let numbers = self.addresses.iter().map(|address| match address {
            IpAddr::V4(v4) => format!("{scheme}://{v4}:{}", self.port),
            IpAddr::V6(v6) => format!("{scheme}://[{v6}]:{}", self.port),
        });
        self.url.iter().cloned().chain(numbers).collect()
    }
}

impl ServerId {
    /// How many bytes it has.
    pub const BYTES: usize = 8;

    /// The id with these bytes.
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }
}

impl InvitationSecret {
    /// How many bytes it has.
    pub const BYTES: usize = 16;

    /// The secret with these bytes.
    pub const fn new(bytes: [u8; Self::BYTES]) -> Self {
        Self(bytes)
    }

    /// As it is sent to the server, and as its SHA-256 is kept there.
    pub fn text(&self) -> Secret {
        Secret::from(hex::encode(self.0))
    }

    /// The id of its invitation. It is a part of a digest, so it says nothing about the secret.
    pub fn id(&self) -> String {
        let digest = Sha256::new().chain_update(b"warren invitation id").chain_update(self.0);
        format!("i-{}", hex::encode(&digest.finalize()[..8]))
    }
}

impl fmt::Display for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ServerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ServerId {
    type Err = NotHex;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; Self::BYTES];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotHex)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for ServerId {
    type Error = NotHex;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<ServerId> for String {
    fn from(id: ServerId) -> Self {
        id.to_string()
    }
}

/// Hides the secret.
impl fmt::Debug for InvitationSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InvitationSecret")
    }
}

/// Shows everything but the secrets.
impl fmt::Debug for Purpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Worker(_) => "worker",
            Self::Room { .. } => "room",
        })
    }
}

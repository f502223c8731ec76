//! Why a server did not answer as it should, told so that somebody can mend it.

use std::time::Duration;

/// Why a server did not answer as it should. The URL in it holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be used.
    #[error("{url} is no address of a server: {reason}")]
    NotAServer {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The token cannot be sent in a header.
    #[error("the token holds characters that no header may hold")]
    BadToken,
    /// TLS cannot be used on this machine.
    #[error("TLS cannot be used here: {0}")]
    NoTls(String),
    /// No connection came about, or it broke.
    #[error("could not reach the server {url}: {reason}; does it run, and is this its address?")]
    Unreachable {
        /// The URL.
        url: String,
        /// Why.
        reason: String,
    },
    /// It took too long.
    #[error("the server {url} did not answer within {} s", .after.as_secs())]
    Late {
        /// The URL.
        url: String,
        /// How long it had.
        after: Duration,
    },
    /// It says no.
    #[error("{words} (HTTP {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        words: String,
    },
    /// What was asked for is not there.
    #[error("{words}")]
    NotFound {
        /// The server's own words.
        words: String,
    },
    /// The workspace takes the token for nothing.
    #[error(
        "the workspace of {url} does not let this client in: {words}. Show it a token with --token \
         or WARREN_TOKEN; on the server's machine `warren key create --name NAME --scope \
         workspace:write` makes one"
    )]
    NotAdmitted {
        /// The URL.
        url: String,
        /// The server's own words.
        words: String,
    },
    /// The workspace says no.
    #[error("{words}")]
    Declined {
        /// The server's own words.
        words: String,
    },
    /// Something else than a server of rooms is there.
    #[error("{url} answers, but not as a server of rooms does: is it a Warren or a gambi hub?")]
    NoRooms {
        /// The URL.
        url: String,
    },
    /// The answer is not what this client knows.
    #[error("the server {url} answered something else than was asked for: {reason}")]
    Strange {
        /// The URL.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl ClientError {
    /// Whether the server was never heard.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Late { .. })
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

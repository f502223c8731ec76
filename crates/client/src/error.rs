//! Why a request failed, in words that help to fix it.

use std::time::Duration;

/// Why a request failed. The URL in it holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The URL cannot be used.
    #[error("{url} is no address of a server: {reason}")]
    NotAServer {
        /// The URL.
        url: String,
        /// The fault of the address.
        reason: &'static str,
    },
    /// The token cannot be sent in a header.
    #[error(
        "the token is empty, or holds characters that no header may hold, such as a line break within"
    )]
    BadToken,
    /// TLS cannot be used on this machine.
    #[error("TLS cannot be used here: {0}")]
    NoTls(String),
    /// The connection could not be made, or it broke.
    #[error("could not reach the server {url}: {reason}; does it run, and is this its address?")]
    Unreachable {
        /// The URL.
        url: String,
        /// The cause.
        reason: String,
    },
    /// No server is named, and none runs on this machine.
    #[error("no server runs here: start one with `warren up`, or name another one with --server")]
    NoServerHere,
    /// Another program answers at the URL.
    #[error("what answers at {url} is no Warren ({reason}): are the address and its port right?")]
    NoWarren {
        /// The URL.
        url: String,
        /// The sign that it is another program.
        reason: String,
    },
    /// The answer came too late.
    #[error("the server {url} did not answer within {} s", .after.as_secs())]
    Late {
        /// The URL.
        url: String,
        /// The time that the server had.
        after: Duration,
    },
    /// The server refused the request.
    #[error("{words} (HTTP {status})")]
    Refused {
        /// The HTTP status.
        status: u16,
        /// The server's own words.
        words: String,
    },
    /// The object that the request names does not exist.
    #[error("{words}")]
    NotFound {
        /// The server's own words.
        words: String,
    },
    /// The workspace does not accept the token.
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
    /// The workspace refused the request.
    #[error("{words}")]
    Declined {
        /// The server's own words.
        words: String,
    },
    /// The server at the URL is not a server of rooms.
    #[error("{url} answers, but not as a server of rooms does: is it a Warren or a gambi hub?")]
    NoRooms {
        /// The URL.
        url: String,
    },
    /// The server did not show that it is the one that is meant, and was sent no secret.
    #[error(
        "{url} did not show that it is the server that is meant, so it was sent no secret: {reason}"
    )]
    NotTheServer {
        /// The URL.
        url: String,
        /// Why it counts as another server.
        reason: String,
    },
    /// The answer has a form that this client does not know.
    #[error("the server {url} answered something else than was asked for: {reason}")]
    Strange {
        /// The URL.
        url: String,
        /// The fault of the answer.
        reason: String,
    },
}

impl ClientError {
    /// Whether the server could not be reached, was lost, or answered too late.
    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::NoServerHere | Self::Late { .. })
    }

    /// Whether another attempt to connect may succeed.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Refused { status, .. } => matches!(status, 408 | 425 | 429 | 500..),
            error => error.is_unreachable(),
        }
    }

    /// Whether the object that the request names does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }
}

//! Failures between a hub and this machine.

use std::time::Duration;

use models::ArrivalError;

/// Why a hub was not asked, or did not give what was asked for.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// The text is not an address.
    #[error("{url} is no address of a hub (HF_ENDPOINT): {reason}")]
    Address {
        /// As it was given.
        url: String,
        /// In words.
        reason: String,
    },
    /// The token cannot be sent.
    #[error("the hub's token (HF_TOKEN) has characters that no token has")]
    Token,
    /// No answer.
    #[error("{host} does not answer: {reason}")]
    Unreachable {
        /// The host that was asked.
        host: String,
        /// In words, with advice.
        reason: String,
    },
    /// It says that nobody may have it without its maker's consent, or its owner's.
    #[error("{}", closed(page, *has_token))]
    Closed {
        /// The page of the repository.
        page: String,
        /// Whether a token was sent.
        has_token: bool,
    },
    /// No such repository, or one that is not for everybody.
    #[error(
        "{page} is not there: check the name; if it is a private one, set HF_TOKEN to a token that may read it"
    )]
    NoRepo {
        /// The page of the repository.
        page: String,
    },
    /// No such revision.
    #[error(
        "{page} has no revision {revision}: see its branches and tags, or leave --revision out"
    )]
    NoRevision {
        /// The page of the repository.
        page: String,
        /// As it was asked for.
        revision: String,
    },
    /// Too many requests.
    #[error("{host} takes no more requests from here now (429){}", later(*after))]
    Busy {
        /// The host that refuses.
        host: String,
        /// When to ask again.
        after: Option<Duration>,
    },
    /// Another refusal.
    #[error("{host} answers {status}{}", of(what))]
    Status {
        /// The host that refuses.
        host: String,
        /// The HTTP status.
        status: u16,
        /// Of what, if of a file.
        what: String,
    },
    /// A redirect that is not followed.
    #[error("{host} sends to another place that is not gone to: {reason}")]
    Redirect {
        /// The host that redirects.
        host: String,
        /// In words.
        reason: &'static str,
    },
    /// An answer that cannot be.
    #[error("{host} does not answer as a hub: {reason}")]
    Strange {
        /// The host that answered.
        host: String,
        /// In words.
        reason: String,
    },
    /// A file broke off, or came too slowly.
    #[error("{file} stops coming after {arrived} of {size} bytes: {reason}")]
    Cut {
        /// Which file.
        file: String,
        /// Bytes.
        arrived: u64,
        /// Bytes.
        size: u64,
        /// In words.
        reason: String,
    },
    /// The hub's file is not the one that it listed.
    #[error("{file} has changed on the hub since it was listed: ask again")]
    Changed {
        /// Which file.
        file: String,
    },
    /// It came damaged twice.
    #[error(
        "{file} came damaged twice: its hash is not the one that the hub lists. Try another network, or another hub (HF_ENDPOINT)"
    )]
    Damaged {
        /// Which file.
        file: String,
    },
    /// The repository has no file of that form.
    #[error(
        "{page} has no GGUF files: look for a repository of the same model whose name ends with -GGUF"
    )]
    NoModels {
        /// The page of the repository.
        page: String,
    },
    /// None of that name.
    #[error("{repo} has no {wanted}; it has {}", near.join(", "))]
    NoQuantization {
        /// The repository.
        repo: String,
        /// As it was asked for.
        wanted: String,
        /// The names that it has, the nearest first.
        near: Vec<String>,
    },
    /// The disk, or what is there already.
    #[error(transparent)]
    Arrival(#[from] ArrivalError),
}

impl HubError {
    /// Whether another try may help.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Busy { .. } | Self::Cut { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 500..=599),
            _ => false,
        }
    }
}

fn closed(page: &str, has_token: bool) -> String {
    let token = match has_token {
        true => "The token that was sent (HF_TOKEN) is not enough",
        false => "No token was sent: set HF_TOKEN",
    };
    format!(
        "{page} is not open to everybody: accept the licence at {page}, if it asks for that, and use a token of that account. {token}"
    )
}

fn later(after: Option<Duration>) -> String {
    match after {
        Some(after) => format!(": ask again in {} s", after.as_secs()),
        None => ": ask again later, or set HF_TOKEN".to_owned(),
    }
}

fn of(what: &str) -> String {
    if what.is_empty() { String::new() } else { format!(" when asked for {what}") }
}

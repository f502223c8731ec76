//! Why a member does not start, or cannot be changed.

use store::StoreError;

use crate::{driver::WriteError, facts::FactsError};

/// Why a member does not start, or cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The stored facts cannot be used.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The store failed.
    #[error("cannot store the cluster's settings")]
    Store(#[from] StoreError),
    /// The replica refused the write, or has ended.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A text is not an address.
    #[error("{0}")]
    Address(String),
    /// The text matches no member, or several.
    #[error("{0}")]
    Unknown(String),
    /// A task panicked or was cancelled.
    #[error("it failed: the server's log says more")]
    Failed,
}

//! Why a member does not start, or cannot be changed.

use store::StoreError;

use crate::{driver::WriteError, facts::FactsError};

/// Why a member does not start, or cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The stored facts cannot be used.
    #[error(transparent)]
    Facts(#[from] FactsError),
    /// The store does not take it.
    #[error("cannot store the cluster's settings")]
    Store(#[from] StoreError),
    /// The replica does not take it.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// A text is not an address.
    #[error("{0}")]
    Address(String),
    /// No member is meant, or several are.
    #[error("{0}")]
    Unknown(String),
    /// A task ended badly.
    #[error("it failed: the server's log says more")]
    Failed,
}

//! Who may do what.
//!
//! - [`credential`]: tokens kept as hashes, and where requests carry them
//! - [`local`]: which requests come from this machine's own user
//! - [`consumer`]: whether a request may use models, and whom it is counted for

pub mod consumer;
pub mod credential;
pub mod local;

pub use consumer::{ConsumerRules, Denied};
pub use credential::{Token, new_token, presented};
pub use local::LocalRules;

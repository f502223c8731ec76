//! Small things every crate shares.
//!
//! Pure: no socket, no clock, no randomness of its own. Random numbers and instants come in as
//! arguments.
//!
//! - [`id`]: jobs, providers, scopes, models and keys as types of their own
//! - [`endpoint`]: the shapes of requests
//! - [`backoff`]: the next delay of a retry, as a value
//! - [`secret`]: text that never shows itself, and URLs without their tokens

pub mod backoff;
pub mod endpoint;
pub mod id;
pub mod secret;

pub use backoff::Backoff;
pub use endpoint::{Endpoint, Endpoints};
pub use id::{JobId, KeyId, ModelName, ProviderId, Scope};
pub use secret::{Secret, redact_url};

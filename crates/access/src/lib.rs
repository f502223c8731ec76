//! Who may do what, and how much.
//!
//! - [`credential`]: tokens kept as hashes, and where requests carry them
//! - [`keys`]: keys, found by their text, created, rotated and revoked
//! - [`limits`]: the limits of a key
//! - [`local`]: which requests come from this machine's own user
//! - [`consumer`]: whether a request may use models, and the key that it is counted for
//! - [`lender`]: whether somebody may lend models
//! - [`workspace`]: whether somebody may use the workspace
//! - [`lockout`]: addresses with too many wrong credentials
//! - [`moment`]: wall-clock and monotonic time together

pub mod consumer;
pub mod credential;
pub mod keys;
pub mod lender;
pub mod limits;
pub mod local;
pub mod lockout;
pub mod moment;
pub mod workspace;

pub use consumer::{Admitted, ConsumerRules, Denied};
pub use credential::{Token, has_key_form, new_token, presented};
pub use keys::{Key, KeyError, Keys, NewKey};
pub use lender::{Lender, LenderRules};
pub use limits::{Gauge, OverLimit, Standing};
pub use local::{LocalRules, is_forwarded};
pub use lockout::{LockOut, LockOutSettings, party};
pub use moment::Moment;
pub use workspace::{NotAdmitted, WorkspaceClient, WorkspaceRules};

//! Who may do what, and how much.
//!
//! - [`credential`]: tokens kept as hashes, and where requests carry them
//! - [`keys`]: the keys there are, found by their text, made, rotated and revoked
//! - [`limits`]: how much may be done with a key
//! - [`local`]: which requests come from this machine's own user
//! - [`consumer`]: whether a request may use models, and whom it is counted for
//! - [`lender`]: whether somebody may lend models
//! - [`workspace`]: whether somebody may use the workspace
//! - [`lockout`]: who has presented wrong credentials too often
//! - [`moment`]: what time it is, for a wall and for a stopwatch

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

//! Permissions and limits.
//!
//! - [`credential`]: tokens stored as hashes, and the places of credentials in requests
//! - [`keys`]: keys, found by their text, created, rotated and revoked
//! - [`invitations`]: by which machines join
//! - [`limits`]: the limits of a key
//! - [`prices`]: what tokens cost
//! - [`local`]: recognises requests from this machine's own user; [`foreign`]: what keeps a request from that
//! - [`consumer`]: permission to use models, and the key that a request counts for
//! - [`lender`]: permission to lend models
//! - [`workspace`]: permission to use the workspace
//! - [`lockout`]: addresses with too many wrong credentials
//! - [`own_page`]: whether a request comes from the server's own web page; [`page_sessions`]: its sessions
//! - [`proxies`]: proxies whose word on their clients' addresses is taken
//! - [`moment`]: wall-clock and monotonic time together

pub mod consumer;
pub mod credential;
pub mod foreign;
pub mod invitations;
pub mod keys;
pub mod lender;
pub mod limits;
pub mod local;
pub mod lockout;
pub mod moment;
pub mod own_page;
pub mod page_sessions;
pub mod prices;
pub mod proxies;
pub mod workspace;

pub use consumer::{Admitted, ConsumerRules, Denied};
pub use credential::{Token, has_key_form, has_session_form, new_token, presented};
pub use foreign::Foreign;
pub use invitations::{InvitationError, InvitationState, Invitations, NewInvitation, NotJoined};
pub use keys::{Key, KeyError, Keys, NewKey};
pub use lender::{Lender, LenderRules};
pub use limits::{Desk, Gauge, OverLimit, Standing, UnsentUse};
pub use local::{LocalRules, is_forwarded};
pub use lockout::{LockOut, LockOutSettings};
pub use moment::Moment;
pub use own_page::is_from_own_page;
pub use page_sessions::{Holder, NewPageSession, PageSession, PageSessions, TooManyCodes};
pub use prices::{Charge, ModelPrices, Price, Prices, Tokens};
pub use proxies::{Network, TrustedProxies};
pub use workspace::{NotAdmitted, WorkspaceClient, WorkspaceRules};

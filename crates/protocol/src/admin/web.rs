//! Sessions of the web page, and the login codes by which browsers get them.

use base::KeyScope;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The path of login codes.
pub const CODE: &str = "/web/code";

/// The path of the sessions, for administrators.
pub const SESSIONS: &str = "/admin/web/sessions";

/// Answer of `GET` and `POST /web/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedIn {
    /// Whose session it is: the name of a key, or `owner`.
    pub name: String,
    /// Its rights, in the scopes of keys.
    pub scopes: Vec<KeyScope>,
    /// When it ends.
    pub expires: Timestamp,
}

/// Answer of `POST /web/code`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoginCode {
    /// The code, which is good once.
    pub code: String,
    /// When it expires.
    pub expires: Timestamp,
}

/// A session of the page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSessionJson {
    /// Its id.
    pub id: String,
    /// Whom it stands for: the id of a key, or `owner`.
    pub holder: String,
    /// The name of the key, or `owner`.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// When it was last used.
    pub last_used_at: Option<Timestamp>,
    /// The browser's description of itself.
    pub browser: String,
    /// Whether the request for this list came by it.
    pub current: bool,
}

/// Answer of `GET /admin/web/sessions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSessionList {
    /// Every session, the oldest first.
    pub sessions: Vec<PageSessionJson>,
}

//! Administration over HTTP: the JSON of `/admin/…` and of `/health`.
//!
//! The server writes it and the client reads it, so that the two cannot drift apart. Times are
//! RFC 3339 in UTC.
//!
//! - this module: keys and the audit log
//! - [`status`]: the server's present state: its health, workers and queues
//! - [`config`]: its settings, and where each is from
//! - [`requests`]: the requests that ended last, and those that have not ended
//! - [`series`]: its last minutes as a series of points
//! - [`usage`]: usage reports
//! - [`stop`]: a server is asked to end
//! - [`logs`]: the newest lines of its log
//! - [`invitations`]: invitations of machines
//! - [`mesh`]: this machine among its peers
//! - [`web`]: sessions of the web page
//! - [`time`]: times as people write them

pub mod config;
pub mod invitations;
pub mod logs;
pub mod mesh;
pub mod requests;
pub mod series;
pub mod status;
pub mod stop;
pub mod time;
pub mod usage;
pub mod web;

use base::{KeyLimits, KeyScope};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A key without its text, which is shown only when the key is created or rotated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyJson {
    /// Its id, which stays the same when it is rotated.
    pub id: String,
    /// Its name, given by its owner.
    pub name: String,
    /// The first characters of its text, which identify the key for people.
    pub prefix: String,
    /// Its scopes.
    pub scopes: Vec<KeyScope>,
    /// The models it may be used for, with `*` at the end for all that begin so. Empty: every one.
    pub models: Vec<String>,
    /// How much may be done with it.
    pub limits: KeyLimits,
    /// The only room whose participants it reaches: the room's six-character code, or its id when
    /// it was closed.
    pub room: Option<String>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
    /// When it was last used, to the minute or so.
    pub last_used_at: Option<Timestamp>,
    /// Its text, when it has just been made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Answer of `GET /admin/keys`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyList {
    /// Every key, the revoked included, the oldest first.
    pub keys: Vec<KeyJson>,
}

/// Body of `POST /admin/keys`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CreateKey {
    /// Its name.
    pub name: String,
    /// Its scopes; `None`: inference only.
    pub scopes: Option<Vec<KeyScope>>,
    /// The models it may be used for; `None` or empty: every one.
    pub models: Option<Vec<String>>,
    /// How much may be done with it.
    pub limits: Option<KeyLimits>,
    /// The only room whose participants it reaches: one of its codes; `None`: it is for the server.
    pub room: Option<String>,
    /// When it stops working.
    pub expires_at: Option<Timestamp>,
}

/// One administrative action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditJson {
    /// When it was done.
    pub at: Timestamp,
    /// The actor: a key's id, `admin-token`, or `command-line` on a stopped server. Of a session of the page its holder,
    /// then the session in brackets.
    pub who: String,
    /// The action, such as `key.create`.
    pub action: String,
    /// The object of the action: the id of a key or a worker.
    pub target: String,
    /// `done`, or why it was not.
    pub outcome: String,
}

/// Answer of `GET /admin/audit`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditList {
    /// The newest first.
    pub entries: Vec<AuditJson>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_its_text_only_when_it_has_it() {
        let json = r#"{"id":"k-1","name":"n","prefix":"wk_12345","scopes":["inference","admin"],
            "models":[],"limits":{"rpm":5,"tpm":null,"concurrent":null,
            "budget":{"tokens":9,"per":"month"}},"room":null,"created_at":"2026-11-20T16:00:00Z",
            "expires_at":null,"revoked_at":null,"last_used_at":null}"#;
        let key: KeyJson = serde_json::from_str(json).unwrap();
        let shown = serde_json::to_value(&key).unwrap();
        assert_eq!(shown, serde_json::from_str::<serde_json::Value>(json).unwrap());
        let fresh = KeyJson { key: Some("wk_abc".to_owned()), ..key };
        assert_eq!(serde_json::to_value(&fresh).unwrap()["key"], "wk_abc");
    }

    #[test]
    fn a_mistyped_limit_is_refused_by_name() {
        let error = serde_json::from_str::<CreateKey>(r#"{"limits":{"rmp":5}}"#).unwrap_err();
        assert!(error.to_string().contains("rmp"), "{error}");
        let error = serde_json::from_str::<CreateKey>(r#"{"rpm":5}"#).unwrap_err();
        assert!(error.to_string().contains("rpm"), "{error}");
        let least: CreateKey = serde_json::from_str(r#"{"name":"a"}"#).unwrap();
        assert_eq!(least, CreateKey { name: "a".to_owned(), ..CreateKey::default() });
    }
}

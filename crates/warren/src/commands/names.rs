//! The names of keys and peers, for tables: their ids are long, and say nothing to people.

use std::collections::HashMap;

use client::{Warren, admin::KeyJson};

use super::table::plain;

/// The prefix of a peer's id beside names of other kinds.
const PEER: &str = "peer:";

/// The length of a peer's id, in digits.
const DIGITS: usize = 64;

/// The digits that tell one id from the others.
const SHORT: usize = 8;

/// Names by their ids.
#[derive(Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// The names that the server knows. Anything else is shown by its id.
    pub(crate) async fn of(warren: &Warren) -> Self {
        let (keys, peers) = tokio::join!(warren.keys(), warren.mesh_peers());
        let mut names = Self::of_keys(&keys.unwrap_or_default());
        let peers = peers.map(|peers| peers.peers).unwrap_or_default();
        let named = peers.into_iter().filter(|peer| !peer.name.is_empty());
        names.0.extend(named.map(|peer| (format!("{PEER}{}", peer.id), peer.name)));
        names
    }

    /// The names of these keys. Keys with a common name keep their ids.
    pub(crate) fn of_keys(keys: &[KeyJson]) -> Self {
        let mut names: HashMap<&str, u32> = HashMap::new();
        keys.iter().for_each(|key| *names.entry(&key.name).or_default() += 1);
        let once = keys.iter().filter(|key| !key.name.is_empty() && names[key.name.as_str()] == 1);
        Self(once.map(|key| (key.id.clone(), key.name.clone())).collect())
    }

    /// The name of a key or a peer; anything else is a name already.
    pub(crate) fn shown(&self, id: &str) -> String {
        match self.0.get(id) {
            Some(name) => plain(name),
            None => plain(&shortened(id)),
        }
    }
}

fn shortened(id: &str) -> String {
    let (kind, rest) = match id.strip_prefix(PEER) {
        Some(rest) => (PEER, rest),
        None => ("", id),
    };
    let is_id =
        rest.len() >= DIGITS && rest.chars().rev().take(DIGITS).all(|c| c.is_ascii_hexdigit());
    if is_id {
        format!("{kind}{}", rest.chars().take(SHORT).collect::<String>())
    } else {
        id.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str, name: &str) -> KeyJson {
        let json = serde_json::json!({
            "id": id, "name": name, "prefix": "wk_1", "scopes": ["inference"], "models": [],
            "limits": {}, "created_at": "2026-11-20T16:00:00Z", "expires_at": null,
            "revoked_at": null, "last_used_at": null,
        });
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn ids_become_names_and_those_of_unknown_peers_short() {
        let peer = format!("peer:{}", "ab".repeat(32));
        let mut names = Names::of_keys(&[key("k-1", "anna"), key("k-2", "b"), key("k-3", "b")]);
        assert_eq!(names.shown("k-1"), "anna");
        assert_eq!((names.shown("k-2").as_str(), names.shown("local").as_str()), ("k-2", "local"));
        assert_eq!(names.shown(&peer), "peer:abababab");
        assert_eq!(names.shown("gpu-box"), "gpu-box");
        assert_eq!(names.shown(""), "-");
        names.0.insert(peer.clone(), "den".to_owned());
        assert_eq!(names.shown(&peer), "den");
    }
}

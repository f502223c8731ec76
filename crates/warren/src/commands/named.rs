//! Finds a key by its id, name, prefix or text.

use anyhow::anyhow;
use client::admin::KeyJson;
use daemon::offline::KeyError;

use crate::exit::usage;

/// The key of this id, name, prefix or text. Of several keys with the same name, the one that is not revoked.
///
/// # Errors
/// When no key matches, or several do.
pub(crate) fn named<'a>(keys: &'a [KeyJson], meant: &str) -> anyhow::Result<&'a KeyJson> {
    let is_meant = |key: &&KeyJson| {
        key.id == meant || key.name == meant || (is_text(meant) && meant.starts_with(&key.prefix))
    };
    let all: Vec<&KeyJson> = keys.iter().filter(is_meant).collect();
    let by_id = all.iter().filter(|key| key.id == meant).copied();
    let live = all.iter().filter(|key| key.revoked_at.is_none()).copied();
    let [by_id, live]: [Vec<&KeyJson>; 2] = [by_id.collect(), live.collect()];
    match (&by_id[..], &live[..], &all[..]) {
        ([key], ..) | (_, [key], _) | (.., [key]) => Ok(key),
        (.., []) => Err(KeyError::NotFound(shown(meant).into()).into()),
        _ => Err(usage(several(meant, &all))),
    }
}

fn several(meant: &str, keys: &[&KeyJson]) -> anyhow::Error {
    let ids: Vec<&str> = keys.iter().map(|key| key.id.as_str()).collect();
    anyhow!("{} may be any of {}: give an id", shown(meant), ids.join(", "))
}

/// Whether this is a key's text or its beginning.
fn is_text(meant: &str) -> bool {
    meant.starts_with("wk_")
}

/// The name for an error message. Of a key's text only the prefix is shown.
fn shown(meant: &str) -> String {
    if is_text(meant) { meant.chars().take(11).collect() } else { meant.to_owned() }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    fn key(id: &str, name: &str, prefix: &str, revoked: bool) -> KeyJson {
        KeyJson {
            id: id.to_owned(),
            name: name.to_owned(),
            prefix: prefix.to_owned(),
            scopes: Vec::new(),
            models: Vec::new(),
            limits: base::KeyLimits::default(),
            room: None,
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: None,
            revoked_at: revoked.then_some(Timestamp::UNIX_EPOCH),
            last_used_at: None,
            key: None,
        }
    }

    #[test]
    fn a_key_is_found_by_its_id_name_or_text() {
        let keys = [
            key("k-1", "laptop", "wk_11111111", true),
            key("k-2", "laptop", "wk_22222222", false),
            key("k-3", "ci", "wk_33333333", false),
            key("k-4", "ci", "wk_44444444", false),
            key("k-5", "k-1", "wk_55555555", false),
        ];
        let meant = |meant: &str| named(&keys, meant).map(|key| key.id.as_str());
        assert_eq!(meant("k-1").unwrap(), "k-1", "an id before a name");
        assert_eq!(meant("laptop").unwrap(), "k-2", "the one that works");
        assert_eq!(meant("wk_33333333").unwrap(), "k-3");
        assert_eq!(meant("wk_4444444499").unwrap(), "k-4", "the whole text");
        assert!(meant("ci").unwrap_err().chain().any(|e| e.to_string().contains("k-3, k-4")));
        assert!(meant("lap").unwrap_err().is::<KeyError>());
        let unknown = meant("wk_0123456789abcdef").unwrap_err().to_string();
        assert!(unknown.contains("wk_01234567") && !unknown.contains("wk_012345678"), "{unknown}");
    }

    #[test]
    fn a_revoked_key_is_found_when_it_is_the_only_one() {
        let keys = [key("k-1", "laptop", "wk_11111111", true)];
        assert_eq!(named(&keys, "laptop").unwrap().id, "k-1");
        assert!(named(&[], "").is_err());
    }
}

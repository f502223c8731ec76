//! Whether a request may use models, and whom it is counted for.

use std::net::IpAddr;

use base::KeyId;
use http::{HeaderMap, Uri};

use crate::{credential::Token, credential::presented, local::LocalRules};

/// Who may use models.
#[derive(Debug, Clone, Default)]
pub struct ConsumerRules {
    /// The keys there are.
    pub keys: Vec<(KeyId, Token)>,
    /// Whether local requests need a key, too.
    pub require_key: bool,
    /// Whether everybody may, from anywhere, without a key.
    pub open: bool,
    /// What is local.
    pub local: LocalRules,
}

/// Why a request may not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It carries no key, and needs one.
    #[error("an API key is required: send it as `Authorization: Bearer KEY` or `x-api-key: KEY`")]
    KeyMissing,
    /// Its key is not known here.
    #[error("the API key is not valid")]
    KeyUnknown,
}

impl ConsumerRules {
    /// Whom a request is counted for.
    ///
    /// A key that is not known does no harm to a local request that needs none: clients insist on
    /// sending one.
    ///
    /// # Errors
    /// [`Denied`] when it needs a key and has no valid one.
    pub fn admit(&self, peer: IpAddr, uri: &Uri, headers: &HeaderMap) -> Result<KeyId, Denied> {
        let credential = presented(headers);
        if let Some(key) = credential.and_then(|credential| self.key(credential)) {
            return Ok(key);
        }
        if self.open {
            return Ok(KeyId::from("open"));
        }
        if !self.require_key && self.local.is_local(peer, uri, headers) {
            return Ok(KeyId::local());
        }
        Err(credential.map_or(Denied::KeyMissing, |_| Denied::KeyUnknown))
    }

    /// Whether a request carries a valid key, needed or not.
    pub fn has_key(&self, headers: &HeaderMap) -> bool {
        presented(headers).is_some_and(|credential| self.key(credential).is_some())
    }

    /// The key that has this text. Every key is compared, so that time tells nothing.
    fn key(&self, credential: &str) -> Option<KeyId> {
        let matching = |found: Option<KeyId>, (id, token): &(KeyId, Token)| {
            if token.matches(credential) { Some(id.clone()) } else { found }
        };
        self.keys.iter().fold(None, matching)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(rules: &ConsumerRules, peer: [u8; 4], key: Option<&str>) -> Result<KeyId, Denied> {
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost".parse().unwrap());
        if let Some(key) = key {
            headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        rules.admit(peer.into(), &Uri::from_static("/v1/models"), &headers)
    }

    fn rules() -> ConsumerRules {
        let keys = vec![(KeyId::from("client"), Token::new(&"good".into()))];
        ConsumerRules { keys, ..ConsumerRules::default() }
    }

    const HERE: [u8; 4] = [127, 0, 0, 1];
    const THERE: [u8; 4] = [10, 0, 0, 7];

    #[test]
    fn local_requests_need_no_key_until_they_do() {
        let mut rules = rules();
        assert_eq!(admit(&rules, HERE, None), Ok(KeyId::local()));
        assert_eq!(admit(&rules, HERE, Some("sk-dummy")), Ok(KeyId::local()));
        rules.require_key = true;
        assert_eq!(admit(&rules, HERE, None), Err(Denied::KeyMissing));
        assert_eq!(admit(&rules, HERE, Some("sk-dummy")), Err(Denied::KeyUnknown));
    }

    #[test]
    fn other_machines_need_a_key_unless_open() {
        let mut rules = rules();
        assert_eq!(admit(&rules, THERE, None), Err(Denied::KeyMissing));
        assert_eq!(admit(&rules, THERE, Some("bad")), Err(Denied::KeyUnknown));
        assert_eq!(admit(&rules, THERE, Some("good")), Ok(KeyId::from("client")));
        rules.open = true;
        assert_eq!(admit(&rules, THERE, None), Ok(KeyId::from("open")));
        let carrying = |key: &str| [("x-api-key".parse().unwrap(), key.parse().unwrap())];
        assert!(rules.has_key(&carrying("good").into_iter().collect()));
        assert!(!rules.has_key(&carrying("bad").into_iter().collect()));
    }
}

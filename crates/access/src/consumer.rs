//! Whether a request may use models, and the key that it is counted for.

use std::{net::IpAddr, sync::Arc};

use base::{KeyId, KeyScope, PageSessionId};
use http::{HeaderMap, Uri};

use crate::{
    credential::{has_key_form, presented},
    foreign::Foreign,
    keys::{Key, Keys},
    local::LocalRules,
    moment::Moment,
};

/// The rules for the use of models.
#[derive(Debug, Clone, Default)]
pub struct ConsumerRules {
    /// The keys of the server.
    pub keys: Keys,
    /// Whether local requests need a key, too.
    pub require_key: bool,
    /// Whether every client may use models, from anywhere and without a key.
    pub open: bool,
    /// The rules for local requests.
    pub local: LocalRules,
}

/// A consumer that was admitted.
#[derive(Debug, Clone)]
pub struct Admitted {
    /// The id that it is counted for.
    pub id: KeyId,
    /// The key, with its models and limits; `None` if no key is needed.
    pub key: Option<Arc<Key>>,
    /// The session of the page that stood for the key, or for the server's owner.
    pub page_session: Option<PageSessionId>,
}

/// Why a request was denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    /// It needs a key and has none.
    #[error(
        "an API key is required: send it as `Authorization: Bearer KEY`, `x-api-key: KEY` or `x-goog-api-key: KEY`"
    )]
    KeyMissing,
    /// Its key is unknown.
    #[error("the API key is not valid")]
    KeyUnknown,
    /// Its key was revoked.
    #[error("the API key was revoked")]
    KeyRevoked,
    /// Its key has expired.
    #[error("the API key has expired")]
    KeyExpired,
    /// Its key lacks the scope that is needed.
    #[error("the API key may not be used for this: it has no scope `{0}`")]
    Scope(KeyScope),
    /// It needs a key only because of the page that sent it or the host that it names: otherwise it would be local.
    #[error("{0}")]
    Foreign(Box<Foreign>),
}

impl Admitted {
    /// A consumer that needs no key, and is counted for this id.
    pub const fn without_key(id: KeyId) -> Self {
        Self { id, key: None, page_session: None }
    }
}

impl ConsumerRules {
    /// Admits a request, or denies it.
    ///
    /// If no key is needed, a text that is not a key of this server does no harm: many clients
    /// insist on sending one. But a former key, or a text that begins as keys do, is refused:
    /// its sender believes that it works.
    ///
    /// # Errors
    /// [`Denied`] when it needs a key and has no valid one, or has one without the scope for models.
    pub fn admit(
        &self,
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
        now: Moment,
    ) -> Result<Admitted, Denied> {
        let credential = presented(headers);
        if let Some(credential) = credential
            && let Some(key) = self.keys.present(credential, KeyScope::Inference, now)?
        {
            let page_session = self.keys.page_session_of(credential, now);
            return Ok(Admitted { id: key.id().clone(), key: Some(key), page_session });
        }
        if let Some(text) = credential.filter(|text| self.keys.is_owners_session(text, now)) {
            let page_session = self.keys.page_session_of(text, now);
            return Ok(Admitted { page_session, ..Admitted::without_key(KeyId::local()) });
        }
        self.check_key(headers, now)?;
        if self.open {
            return Ok(Admitted::without_key(KeyId::from("open")));
        }
        if !self.require_key && self.local.is_local(peer, uri, headers) {
            return Ok(Admitted::without_key(KeyId::local()));
        }
        let foreign = Foreign::of_local(&self.local, peer, uri, headers);
        if let Some(foreign) = foreign.filter(|_| !self.require_key) {
            return Err(Denied::Foreign(foreign.into()));
        }
        Err(credential.map_or(Denied::KeyMissing, |_| Denied::KeyUnknown))
    }

    /// Whether a request is local and needs no key. A request with a key that does not work does not
    /// count as local: its sender means to use that key.
    pub fn is_local(&self, peer: IpAddr, uri: &Uri, headers: &HeaderMap, now: Moment) -> bool {
        self.local.is_local(peer, uri, headers) && self.check_key(headers, now).is_ok()
    }

    /// Checks the key of a request, of any scope. A request without a key passes.
    ///
    /// # Errors
    /// [`Denied`] when a text with the form of a key does not work now.
    pub fn check_key(&self, headers: &HeaderMap, now: Moment) -> Result<(), Denied> {
        let key = presented(headers).filter(|text| has_key_form(text));
        key.map_or(Ok(()), |key| self.keys.check(key, now))
    }

    /// Whether a request has a valid key of any scope that is not bound to a room, or a session of the page.
    pub fn has_key(&self, headers: &HeaderMap, now: Moment) -> bool {
        presented(headers).is_some_and(|credential| {
            self.keys.is_valid(credential, now) || self.keys.is_owners_session(credential, now)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::NewKey;

    fn admit(rules: &ConsumerRules, peer: [u8; 4], key: Option<&str>) -> Result<KeyId, Denied> {
        let now = Moment::now();
        let mut headers = HeaderMap::new();
        headers.insert("host", "localhost".parse().unwrap());
        if let Some(key) = key {
            headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
        }
        let uri = Uri::from_static("/v1/models");
        rules.admit(peer.into(), &uri, &headers, now).map(|admitted| admitted.id)
    }

    fn rules() -> ConsumerRules {
        let (keys, scopes) = (Keys::default(), [KeyScope::Inference]);
        keys.add_ready_made("client".into(), &"good".into(), &scopes, Moment::now());
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
        assert!(rules.has_key(&carrying("good").into_iter().collect(), Moment::now()));
        assert!(!rules.has_key(&carrying("bad").into_iter().collect(), Moment::now()));
    }

    /// Otherwise a local client would go on without a key after its own was revoked, and without its
    /// limits.
    #[test]
    fn a_key_that_no_longer_works_is_refused_where_none_is_needed() {
        let rules = rules();
        let (now, name) = (Moment::now(), "n".to_owned());
        let new = NewKey { name, scopes: vec![KeyScope::Inference], ..NewKey::default() };
        let (record, old) = rules.keys.create(new, now).unwrap();
        let (_, text) = rules.keys.rotate(&record.id).unwrap();
        assert_eq!(admit(&rules, HERE, Some(old.expose())), Err(Denied::KeyUnknown), "rotated");
        assert_eq!(admit(&rules, HERE, Some(text.expose())), Ok(record.id.clone()));
        rules.keys.revoke(&record.id, now).unwrap();
        assert_eq!(admit(&rules, HERE, Some(text.expose())), Err(Denied::KeyRevoked));
    }

    #[test]
    fn a_mistyped_key_is_refused_where_none_is_needed() {
        let mut rules = rules();
        let (now, name) = (Moment::now(), "n".to_owned());
        let new = NewKey { name, scopes: vec![KeyScope::Inference], ..NewKey::default() };
        let (record, text) = rules.keys.create(new, now).unwrap();
        let text = text.expose();
        let wrong = [&text[..text.len() - 1], &format!("{text}0"), &record.prefix, "wk_"];
        for open in [false, true] {
            rules.open = open;
            for key in wrong {
                assert_eq!(admit(&rules, HERE, Some(key)), Err(Denied::KeyUnknown), "{key}");
            }
            assert_eq!(admit(&rules, HERE, Some(text)), Ok(record.id.clone()));
        }
        let uri = Uri::from_static("http://localhost/metrics");
        let is_local = |key: &str| {
            let key = [("x-api-key".parse().unwrap(), key.parse().unwrap())];
            rules.is_local(HERE.into(), &uri, &key.into_iter().collect(), now)
        };
        assert!(is_local(text) && is_local("sk-dummy"));
        assert!(wrong.iter().all(|key| !is_local(key)));
    }

    #[test]
    fn a_key_for_something_else_is_refused_and_says_so() {
        let rules = rules();
        let (now, name) = (Moment::now(), "n".to_owned());
        let new = NewKey { name, scopes: vec![KeyScope::Worker], ..NewKey::default() };
        let (_, text) = rules.keys.create(new, now).unwrap();
        let denied = admit(&rules, THERE, Some(text.expose())).unwrap_err();
        assert_eq!(denied, Denied::Scope(KeyScope::Inference));
        assert!(denied.to_string().contains("inference"), "{denied}");
    }
}

//! Permission to lend models: relay workers and model nodes.

use std::{sync::Arc, time::Duration};

use base::{KeyScope, Live};
use tokio::time::sleep;

use crate::{
    consumer::Denied,
    credential::Token,
    keys::{Key, Keys},
    moment::Moment,
};

/// How often a key counts as used while its lender is connected.
const SEEN: Duration = Duration::from_secs(30);

/// The rules for lending models: a lender presents the secret, or a key of scope `worker`.
#[derive(Debug, Clone)]
pub struct LenderRules {
    /// The worker secret or the node token, if there is one. Lenders that were admitted stay when it changes.
    pub secret: Live<Option<Token>>,
    /// The keys of the server.
    pub keys: Keys,
}

/// A lender that was admitted.
#[derive(Debug, Clone)]
pub struct Lender(Option<Arc<Key>>);

impl LenderRules {
    /// Admits a lender by the text that it presents.
    ///
    /// # Errors
    /// [`Denied`] when it is neither the secret nor a key that may be used for this now.
    pub fn admit(&self, presented: &str, now: Moment) -> Result<Lender, Denied> {
        if self.secret.get().as_ref().as_ref().is_some_and(|secret| secret.matches(presented)) {
            return Ok(Lender(None));
        }
        let key = self.keys.present(presented, KeyScope::Worker, now)?;
        key.map(|key| Lender(Some(key))).ok_or(Denied::KeyUnknown)
    }
}

impl Lender {
    /// A lender inside this process, which needs no secret.
    pub const fn own() -> Self {
        Self(None)
    }

    /// The key that it presented, if it was not the secret.
    pub fn key(&self) -> Option<&Arc<Key>> {
        self.0.as_ref()
    }

    /// Waits until its key is revoked, rotated or expired; until then the key counts as used. Without a key it
    /// never returns.
    pub async fn ended(&self) {
        match &self.0 {
            Some(key) => loop {
                tokio::select! {
                    () = key.ended() => return,
                    () = sleep(SEEN) => key.used(Moment::now()),
                }
            },
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::NewKey;

    fn key(keys: &Keys, scope: KeyScope) -> (base::KeyId, String) {
        let new = NewKey { name: "n".to_owned(), scopes: vec![scope], ..NewKey::default() };
        let (record, text) = keys.create(new, Moment::now()).unwrap();
        (record.id, text.expose().to_owned())
    }

    #[tokio::test]
    async fn the_secret_and_keys_for_it_may_lend() {
        let keys = Keys::default();
        let rules =
            LenderRules { secret: Live::new(Some(Token::new(&"s".into()))), keys: keys.clone() };
        let (_, worker) = key(&keys, KeyScope::Worker);
        let (_, inference) = key(&keys, KeyScope::Inference);
        let admit =
            |text: &str| rules.admit(text, Moment::now()).map(|lender| lender.key().is_some());
        assert_eq!(admit("s"), Ok(false));
        assert_eq!(admit(&worker), Ok(true));
        assert_eq!(admit(&inference), Err(Denied::Scope(KeyScope::Worker)));
        assert_eq!(admit(""), Err(Denied::KeyUnknown));
        let nobody = LenderRules { secret: Live::default(), keys };
        assert_eq!(nobody.admit("", Moment::now()).unwrap_err(), Denied::KeyUnknown);
    }

    #[tokio::test]
    async fn a_revoked_key_ends_its_lender() {
        let keys = Keys::default();
        let rules = LenderRules { secret: Live::default(), keys: keys.clone() };
        let (id, text) = key(&keys, KeyScope::Worker);
        let lender = rules.admit(&text, Moment::now()).unwrap();
        let waiting = tokio::spawn(async move { lender.ended().await });
        keys.revoke(&id, Moment::now()).unwrap();
        waiting.await.unwrap();
        assert_eq!(rules.admit(&text, Moment::now()).unwrap_err(), Denied::KeyRevoked);
    }
}

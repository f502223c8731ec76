//! Permission to use the workspace, and the role it grants.

use std::sync::Arc;

use base::KeyScope;

use crate::{
    consumer::Denied,
    credential::Token,
    keys::{Key, Keys},
    moment::Moment,
    page_sessions::PageSession,
};

/// The scopes of the workspace, the highest first: each includes those after it.
const SCOPES: [KeyScope; 3] =
    [KeyScope::WorkspaceAdmin, KeyScope::WorkspaceWrite, KeyScope::WorkspaceRead];

/// The rules for the workspace: it is open to holders of one of two tokens, or of a key with a
/// scope of the workspace. Loopback is no exception: a machine has other users.
#[derive(Debug, Clone)]
pub struct WorkspaceRules {
    /// The token of the workspace's administrators, if there is one.
    pub token: Option<Token>,
    /// The token of the server's administrator, who can create any key.
    pub administrator: Option<Token>,
    /// The keys of the server.
    pub keys: Keys,
}

/// A client that was admitted.
#[derive(Debug, Clone)]
pub struct WorkspaceClient {
    /// Its highest scope of the workspace.
    pub scope: KeyScope,
    by: Credential,
    /// The session of the page that stood for the credential.
    session: Option<Arc<PageSession>>,
}

/// The credential that a client was admitted with.
#[derive(Debug, Clone)]
enum Credential {
    /// A token of this name.
    Token(&'static str),
    Key(Arc<Key>),
}

/// Why a client is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAdmitted {
    /// The server has no token of the workspace, and no valid key with a scope of it.
    #[error(
        "this server has no key of the workspace yet: make one on its machine with \
         `warren key create --scope workspace:write`"
    )]
    NoKeys,
    /// The credential is neither a token nor a key.
    #[error(
        "the token is not valid; `warren key create --scope workspace:write` makes one that is"
    )]
    Unknown,
    /// The key may not be used for this now.
    #[error(transparent)]
    Key(Denied),
}

impl WorkspaceRules {
    /// Admits a client by the text that it presents.
    ///
    /// # Errors
    /// [`NotAdmitted`] when it is neither a token nor a key that may be used for this now.
    pub fn admit(&self, presented: &str, now: Moment) -> Result<WorkspaceClient, NotAdmitted> {
        // Found before the credential, so that a session that ends meanwhile ends its client, too.
        let session = self.keys.page_sessions().find(presented, now);
        let (scope, by) = self.credential(presented, now)?;
        Ok(WorkspaceClient { scope, by, session })
    }

    /// The highest scope that this text has, and the credential that it is.
    fn credential(
        &self,
        presented: &str,
        now: Moment,
    ) -> Result<(KeyScope, Credential), NotAdmitted> {
        let tokens = [(&self.token, "workspace-token"), (&self.administrator, "admin-token")];
        for (token, name) in tokens {
            if token.as_ref().is_some_and(|token| token.matches(presented)) {
                return Ok((KeyScope::WorkspaceAdmin, Credential::Token(name)));
            }
        }
        if self.administrator.is_some() && self.keys.is_owners_session(presented, now) {
            return Ok((KeyScope::WorkspaceAdmin, Credential::Token("admin-token")));
        }
        for scope in SCOPES {
            match self.keys.present(presented, scope, now) {
                Ok(Some(key)) => return Ok((scope, Credential::Key(key))),
                Ok(None) => return Err(self.unknown(now)),
                Err(Denied::Scope(_)) => {}
                Err(denied) => return Err(NotAdmitted::Key(denied)),
            }
        }
        Err(NotAdmitted::Key(Denied::Scope(KeyScope::WorkspaceRead)))
    }

    fn unknown(&self, now: Moment) -> NotAdmitted {
        let keys = self.keys.list();
        let is_good = |expires: Option<u64>| expires.is_none_or(|at| at > now.seconds());
        let mut good = keys.iter().filter(|key| key.revoked.is_none() && is_good(key.expires));
        let is_for_it = good.any(|key| SCOPES.iter().any(|scope| key.scopes.contains(scope)));
        match self.token.is_some() || is_for_it {
            true => NotAdmitted::Unknown,
            false => NotAdmitted::NoKeys,
        }
    }
}

impl WorkspaceClient {
    /// Its name in the audit log: its key's id, `workspace-token` or `admin-token`.
    pub fn name(&self) -> String {
        match &self.by {
            Credential::Token(name) => (*name).to_owned(),
            Credential::Key(key) => key.id().to_string(),
        }
    }

    /// Waits until its key is revoked, rotated or expired, or its session of the page has ended. With a token alone it
    /// never returns.
    pub async fn ended(&self) {
        tokio::select! {
            () = self.by.ended() => {}
            () = ended(self.session.as_deref()) => {}
        }
    }
}

impl Credential {
    async fn ended(&self) {
        match self {
            Self::Key(key) => key.ended().await,
            Self::Token(_) => std::future::pending().await,
        }
    }
}

/// Waits until the page session ends. Without a page session it waits for ever.
async fn ended(session: Option<&PageSession>) {
    match session {
        Some(session) => session.ended().await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::keys::NewKey;

    fn key(keys: &Keys, scopes: &[KeyScope]) -> (base::KeyId, String) {
        let new = NewKey { name: "n".to_owned(), scopes: scopes.to_vec(), ..NewKey::default() };
        let (record, text) = keys.create(new, Moment::now()).unwrap();
        (record.id, text.expose().to_owned())
    }

    fn rules(token: Option<&str>) -> WorkspaceRules {
        let token = token.map(|token| Token::new(&token.into()));
        WorkspaceRules { token, administrator: None, keys: Keys::default() }
    }

    fn admit(rules: &WorkspaceRules, text: &str) -> Result<KeyScope, NotAdmitted> {
        rules.admit(text, Moment::now()).map(|client| client.scope)
    }

    #[tokio::test]
    async fn the_token_is_an_administrators_and_each_key_is_what_its_scope_says() {
        let rules = rules(Some("token"));
        let admitted = rules.admit("token", Moment::now()).unwrap();
        assert_eq!(admitted.scope, KeyScope::WorkspaceAdmin);
        assert_eq!(admitted.name(), "workspace-token");
        for scope in SCOPES {
            let (id, text) = key(&rules.keys, &[scope]);
            let admitted = rules.admit(&text, Moment::now()).unwrap();
            assert_eq!((admitted.scope, admitted.name()), (scope, id.to_string()));
        }
        let (_, both) = key(&rules.keys, &[KeyScope::WorkspaceRead, KeyScope::WorkspaceWrite]);
        assert_eq!(admit(&rules, &both), Ok(KeyScope::WorkspaceWrite));
        for wrong in ["", "token ", "Token"] {
            assert_eq!(admit(&rules, wrong), Err(NotAdmitted::Unknown));
        }
    }

    #[test]
    fn the_admin_token_is_admitted_and_others_are_told_how_to_make_a_key() {
        let administrator = Some(Token::new(&"admin".into()));
        let rules = WorkspaceRules { administrator, ..rules(None) };
        let admitted = rules.admit("admin", Moment::now()).unwrap();
        assert_eq!(admitted.scope, KeyScope::WorkspaceAdmin);
        assert_eq!(admitted.name(), "admin-token");
        assert_eq!(admit(&rules, "other"), Err(NotAdmitted::NoKeys));
    }

    #[test]
    fn a_page_session_of_the_owner_is_admitted_as_the_owner_is() {
        let rules =
            WorkspaceRules { administrator: Some(Token::new(&"admin".into())), ..rules(None) };
        let store = std::sync::Arc::new(store::VolatileStore::default());
        let sessions = crate::PageSessions::open(store, Token::new(&"admin".into())).unwrap();
        rules.keys.set_page_sessions(sessions.clone());
        let (owner, now) = (sessions.owner().unwrap(), Moment::now());
        let text = sessions.create(&owner, "", None, now).unwrap().text;
        assert_eq!(admit(&rules, text.expose()), Ok(KeyScope::WorkspaceAdmin));
    }

    #[test]
    fn keys_for_other_things_are_not_for_this_one() {
        let rules = rules(Some("token"));
        let others = [KeyScope::Inference, KeyScope::Admin, KeyScope::Worker, KeyScope::Metrics];
        let (_, text) = key(&rules.keys, &others);
        let refused = admit(&rules, &text).unwrap_err();
        assert_eq!(refused, NotAdmitted::Key(Denied::Scope(KeyScope::WorkspaceRead)));
        rules.keys.add_ready_made(
            base::KeyId::from("client-token"),
            &"client".into(),
            &[KeyScope::Inference],
            Moment::now(),
        );
        assert_eq!(admit(&rules, "client"), Err(NotAdmitted::Unknown));
    }

    #[test]
    fn the_refusal_tells_how_to_make_a_key_while_there_is_none() {
        let rules = rules(None);
        key(&rules.keys, &[KeyScope::Inference]);
        let refused = admit(&rules, "anything").unwrap_err();
        assert_eq!(refused, NotAdmitted::NoKeys);
        assert!(refused.to_string().contains("warren key create --scope workspace:write"));
        let (id, text) = key(&rules.keys, &[KeyScope::WorkspaceRead]);
        assert_eq!(admit(&rules, "anything"), Err(NotAdmitted::Unknown));
        rules.keys.revoke(&id, Moment::now()).unwrap();
        assert_eq!(admit(&rules, "anything"), Err(NotAdmitted::NoKeys));
        assert_eq!(admit(&rules, &text), Err(NotAdmitted::Key(Denied::KeyRevoked)));
    }

    /// Which of these clients have to go.
    async fn ended_of(clients: &[WorkspaceClient]) -> Vec<bool> {
        let mut ended = Vec::new();
        for client in clients {
            ended.push(tokio::time::timeout(Duration::ZERO, client.ended()).await.is_ok());
        }
        ended
    }

    #[tokio::test]
    async fn a_page_session_that_is_revoked_or_expires_ends_its_client_and_no_other() {
        let rules = rules(None);
        let now = Moment::now();
        let (_, text) = key(&rules.keys, &[KeyScope::WorkspaceRead]);
        let (sessions, holder) =
            (rules.keys.page_sessions(), rules.keys.holder(&text, now).unwrap());
        let soon = Some(now.seconds() + 60);
        let begin = |expires| sessions.create(&holder, "", expires, now).unwrap();
        let [first, second, third] = [None, soon, None].map(begin);
        let clients =
            [&first, &second, &third].map(|it| rules.admit(it.text.expose(), now).unwrap());
        let by_key = rules.admit(&text, now).unwrap();
        sessions.revoke(first.session.id().as_str()).unwrap();
        assert_eq!(ended_of(&clients).await, [true, false, false]);
        let later = now.after(Duration::from_secs(61));
        assert_eq!(sessions.end_expired(later).len(), 1);
        assert_eq!(sessions.end_expired(later), [], "that is no news any more");
        assert_eq!(ended_of(&clients).await, [true, true, false]);
        assert_eq!(ended_of(&[by_key]).await, [false]);
    }

    #[tokio::test]
    async fn a_revoked_key_ends_its_client() {
        let rules = rules(None);
        let (id, text) = key(&rules.keys, &[KeyScope::WorkspaceRead]);
        let client = rules.admit(&text, Moment::now()).unwrap();
        let waiting = tokio::spawn(async move { client.ended().await });
        rules.keys.revoke(&id, Moment::now()).unwrap();
        waiting.await.unwrap();
    }
}

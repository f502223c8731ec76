//! Sessions of the page in the place of keys: a session's text works where its holder's key does.

use std::sync::Arc;

use base::PageSessionId;

use super::{Key, Keys};
use crate::{
    consumer::Denied,
    moment::Moment,
    page_sessions::{Holder, PageSessions},
};

impl Keys {
    /// Sets the sessions of the page. Called once.
    pub fn set_page_sessions(&self, sessions: PageSessions) {
        let _set_before = self.0.sessions.set(sessions);
    }

    /// The sessions of the page; none until they are set.
    pub fn page_sessions(&self) -> &PageSessions {
        self.0.sessions.get_or_init(PageSessions::default)
    }

    /// Whether this is the text of a session that stands for the server's owner and for no key. If so, the session
    /// counts as used.
    pub fn is_owners_session(&self, text: &str, now: Moment) -> bool {
        let session = self.page_sessions().find(text, now).filter(|it| it.holder().key().is_none());
        session.inspect(|session| session.used(now)).is_some()
    }

    /// The id of the session with this text; `None` for the text of a key, and for any other.
    pub fn page_session_of(&self, text: &str, now: Moment) -> Option<PageSessionId> {
        self.page_sessions().find(text, now).map(|session| session.id().clone())
    }

    /// The holder of a credential: the administrator's token, a key of any scope, or a session of the page.
    ///
    /// # Errors
    /// [`Denied`] when the text is no credential of this server, or one that no longer works.
    pub fn holder(&self, text: &str, now: Moment) -> Result<Holder, Denied> {
        if let Some(session) = self.page_sessions().find(text, now) {
            return self.key_of(&session.holder(), now).map(|_| session.holder());
        }
        if let Some(owner) = self.page_sessions().owner_by(text) {
            return Ok(owner);
        }
        self.valid(text, now).map(|key| Holder::of_key(&key))
    }

    /// The key of a holder, if it still has the text that the holder stands for; `None` for the server's owner.
    ///
    /// # Errors
    /// [`Denied`] when the key was rotated or revoked, has expired or is forgotten.
    pub fn key_of(&self, holder: &Holder, now: Moment) -> Result<Option<Arc<Key>>, Denied> {
        if holder.key().is_none() {
            let is_current = self.page_sessions().owner().as_ref() == Some(holder);
            return if is_current { Ok(None) } else { Err(Denied::KeyUnknown) };
        }
        let key = self.held_by(holder).ok_or(Denied::KeyUnknown)?;
        key.check_valid(now)?;
        Ok(Some(key))
    }

    /// Waits until what this text stands for ends: a key, or a session of the page and its holder's key. A text that is
    /// neither, such as the administrator's token, never ends.
    pub fn end_of(&self, text: &str, now: Moment) -> impl Future<Output = ()> + Send + use<> {
        let (session, key) = (self.page_sessions().find(text, now), self.find(text, now));
        async move {
            let of_session = async {
                match &session {
                    Some(session) => session.ended().await,
                    None => std::future::pending().await,
                }
            };
            let of_key = async {
                match &key {
                    Some(key) => key.ended().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = of_session => {}
                () = of_key => {}
            }
        }
    }

    /// The key that a session stands for, whether or not it works now.
    pub(super) fn of_session(&self, text: &str, now: Moment) -> Option<Arc<Key>> {
        let session = self.page_sessions().find(text, now)?;
        let key = self.held_by(&session.holder())?;
        session.used(now);
        Some(key)
    }

    fn held_by(&self, holder: &Holder) -> Option<Arc<Key>> {
        self.get(holder.key()?).filter(|key| *key.digest() == holder.digest())
    }
}

//! Whether a request may be passed on to a room's home: its client must not have tried too many codes here, as at the
//! home itself. Otherwise the code of a room at another server could be guessed here without end.

use std::sync::Arc;

use tokio::task::spawn_blocking;

use super::{Caller, Rooms, entering::may_try, known::KnownRoom};
use crate::{attempts::Knowledge, error::EntryError, token};

impl Rooms {
    /// Counts a request for a room at another server, as [`Rooms::find`] does for one here.
    ///
    /// # Errors
    /// [`EntryError::TooMany`] after too many wrong codes from the caller's address, unless the caller knows the room or
    /// holds a token of it.
    pub async fn may_pass(
        &self,
        room: &Arc<KnownRoom>,
        caller: Caller<'_>,
    ) -> Result<(), EntryError> {
        let now = self.0.house.clock.now();
        let wait = self.attempts().wait_for(room.id(), Knowledge::Code, caller.from, now);
        // The token is looked at only where it matters: it costs a question to the store.
        if wait.is_some() && !self.holds_token(room, caller.token).await {
            may_try(wait)?;
        }
        self.attempts().right(room.id(), Knowledge::Code, caller.from, now);
        Ok(())
    }

    /// Whether a text is the token of the room's host or of a participant. Only the latter asks the store.
    async fn holds_token(&self, room: &Arc<KnownRoom>, shown: Option<&str>) -> bool {
        let Some(shown) = shown else { return false };
        if room.is_host(Some(shown)) {
            return true;
        }
        // A text of another form is no token of a participant, and the store need not be asked.
        if !shown.starts_with(token::SESSION) {
            return false;
        }
        let (rooms, room, digest) = (self.clone(), Arc::clone(room), token::digest(shown));
        let look = move || rooms.0.house.store.load_participants_of(room.id());
        let Ok(Ok(participants)) = spawn_blocking(look).await else { return false };
        participants.iter().any(|one| token::are_equal(&one.session, &digest))
    }

    /// Checks the password of a room at another server, for a caller that may try as many as it likes.
    ///
    /// # Errors
    /// [`EntryError`].
    pub async fn verify_elsewhere(
        &self,
        room: &KnownRoom,
        shown: Option<&str>,
    ) -> Result<(), EntryError> {
        let Some(phc) = room.password() else { return Ok(()) };
        let shown = shown.filter(|shown| !shown.is_empty()).ok_or(EntryError::PasswordMissing)?;
        let busy = || EntryError::TooMany { retry_after: super::entering::VERIFYING };
        let turn = self.0.verifier.turn().await.ok_or_else(busy)?;
        match turn.verify(shown, phc.into()).await.ok_or_else(busy)? {
            true => Ok(()),
            false => Err(EntryError::PasswordWrong),
        }
    }
}

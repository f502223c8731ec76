//! Entry into a room: codes, passwords, keys.

use std::{net::IpAddr, sync::Arc, time::Duration};

use base::ClientAddress;

use super::Rooms;
use crate::{
    attempts::Knowledge,
    error::EntryError,
    password::PasswordCheck,
    room::{Room, TokenHolder},
};

/// The suggested wait when too many passwords wait for verification.
pub(super) const VERIFYING: Duration = Duration::from_secs(1);

/// A client that wants to enter a room.
#[derive(Debug, Clone, Copy)]
pub struct Caller<'a> {
    /// Its address.
    pub from: ClientAddress,
    /// The token that it shows: the host's, a participant's, or none.
    pub token: Option<&'a str>,
}

impl From<ClientAddress> for Caller<'_> {
    fn from(from: ClientAddress) -> Self {
        Self { from, token: None }
    }
}

impl From<IpAddr> for Caller<'_> {
    fn from(ip: IpAddr) -> Self {
        ClientAddress::new(ip).into()
    }
}

impl Rooms {
    /// The room of a code, of either kind and in any case.
    ///
    /// # Errors
    /// [`EntryError::Unknown`]; after ten of these within a minute from the caller's address,
    /// [`EntryError::TooMany`], unless the caller holds a token of the room.
    pub fn find<'a>(
        &self,
        code: &str,
        caller: impl Into<Caller<'a>>,
    ) -> Result<Arc<Room>, EntryError> {
        let (caller, now) = (caller.into(), self.0.house.clock.now());
        let Some(room) = self.0.room_of(code) else {
            // One lock for the question and the count: requests at once could else all try before any is counted.
            let mut attempts = self.attempts();
            may_try(attempts.wait(caller.from, now))?;
            attempts.wrong(caller.from, now);
            return Err(EntryError::Unknown);
        };
        // A right code is refused too while an address must wait: else it would learn which guess was right.
        may_try(self.wait_for(&room, Knowledge::Code, caller, now))?;
        self.attempts().right(room.id(), Knowledge::Code, caller.from, now);
        Ok(room)
    }

    /// Notes that a client knows the code of a room, as it has just made it.
    pub fn knows_code(&self, room: &Room, from: ClientAddress) {
        let now = self.0.house.clock.now();
        self.attempts().right(room.id(), Knowledge::Code, from, now);
    }

    /// The time until a caller may use a room. Wrong codes of others at its address do not keep out a caller
    /// with a token. The host, who sets the password, may also try it as often as it likes.
    fn wait_for(
        &self,
        room: &Room,
        at_least: Knowledge,
        caller: Caller<'_>,
        now: u64,
    ) -> Option<Duration> {
        let wait = self.attempts().wait_for(room.id(), at_least, caller.from, now)?;
        match room.token_holder(caller.token) {
            Some(TokenHolder::Host) => None,
            Some(TokenHolder::Participant) if at_least == Knowledge::Code => None,
            Some(TokenHolder::Participant) => self.attempts().wait_of_holder(caller.from, now),
            None => Some(wait),
        }
    }

    /// The room of a code, for a client that sends this password. A wrong password counts like an
    /// unknown code.
    ///
    /// # Errors
    /// [`EntryError`].
    pub async fn enter<'a>(
        &self,
        code: &str,
        password: Option<&str>,
        caller: impl Into<Caller<'a>>,
    ) -> Result<Arc<Room>, EntryError> {
        let caller = caller.into();
        let room = match self.0.room_of(code).filter(|room| room.has_password()) {
            None => return self.find(code, caller),
            Some(room) => room,
        };
        let Some(shown) = password.filter(|shown| !shown.is_empty()) else {
            self.find(code, caller)?;
            return Err(EntryError::PasswordMissing);
        };
        match self.try_known(&room, shown, caller)? {
            Some(_) => Ok(room),
            None => self.verify(room, shown, caller).await,
        }
    }

    /// Checks a password as far as possible without verifying it; `None` when it must be verified.
    fn try_known(
        &self,
        room: &Room,
        shown: &str,
        caller: Caller<'_>,
    ) -> Result<Option<()>, EntryError> {
        let (from, now) = (caller.from, self.0.house.clock.now());
        // Before the lock of the attempts: no other lock is taken under it.
        let known = room.known(shown).map_or(PasswordCheck::Right, |(known, _)| known);
        may_try(self.wait_for(room, Knowledge::Password, caller, now))?;
        let mut attempts = self.attempts();
        match known {
            PasswordCheck::Unverified => Ok(None),
            PasswordCheck::Right => {
                attempts.right(room.id(), Knowledge::Password, from, now);
                Ok(Some(()))
            }
            PasswordCheck::Wrong => {
                attempts.wrong(from, now);
                Err(EntryError::PasswordWrong)
            }
        }
    }

    async fn verify(
        &self,
        room: Arc<Room>,
        shown: &str,
        caller: Caller<'_>,
    ) -> Result<Arc<Room>, EntryError> {
        let from = caller.from;
        let busy = EntryError::TooMany { retry_after: VERIFYING };
        // Verifying takes 20 ms of a core, so it has turns: wrong passwords must not take the machine.
        let turn = self.0.verifier.turn().await.ok_or_else(|| busy.clone())?;
        // Meanwhile another request may have shown the right password, or this address wrong ones.
        if self.try_known(&room, shown, caller)?.is_some() {
            return Ok(room);
        }
        // The host may have removed the password meanwhile.
        let Some((_, phc)) = room.known(shown) else { return Ok(room) };
        let is_right = turn.verify(shown, Arc::clone(&phc)).await.ok_or(busy)?;
        let now = self.0.house.clock.now();
        if !is_right {
            self.attempts().wrong(from, now);
            return Err(EntryError::PasswordWrong);
        }
        room.remember(shown, &phc);
        self.attempts().right(room.id(), Knowledge::Password, from, now);
        Ok(room)
    }
}

pub(super) fn may_try(wait: Option<Duration>) -> Result<(), EntryError> {
    match wait {
        None => Ok(()),
        Some(retry_after) => Err(EntryError::TooMany { retry_after }),
    }
}

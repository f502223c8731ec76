//! Entry into a room: codes, passwords, keys.

use std::{net::IpAddr, sync::Arc, time::Duration};

use super::Rooms;
use crate::{attempts::Knows, error::Refused, password::PasswordCheck, room::Room};

/// The suggested wait when too many passwords wait for verification.
const VERIFYING: Duration = Duration::from_secs(1);

impl Rooms {
    /// The room of a code, of either kind and in any case, for a client at this address.
    ///
    /// # Errors
    /// [`Refused::Unknown`]; after ten of these within a minute, [`Refused::TooMany`].
    pub fn find(&self, code: &str, from: IpAddr) -> Result<Arc<Room>, Refused> {
        let (room, now) = (self.0.room_of(code), self.0.house.clock.now());
        let mut attempts = self.attempts();
        match room {
            Some(room) => {
                may_try(attempts.wait_for(room.id(), Knows::Code, from, now))?;
                attempts.right(room.id(), Knows::Code, from, now);
                Ok(room)
            }
            None => {
                may_try(attempts.wait(from, now))?;
                attempts.wrong(from, now);
                Err(Refused::Unknown)
            }
        }
    }

    /// The room of a code, for a client that sends this password. A wrong password counts like an
    /// unknown code.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn enter(
        &self,
        code: &str,
        password: Option<&str>,
        from: IpAddr,
    ) -> Result<Arc<Room>, Refused> {
        let room = match self.0.room_of(code).filter(|room| room.has_password()) {
            None => return self.find(code, from),
            Some(room) => room,
        };
        let Some(shown) = password.filter(|shown| !shown.is_empty()) else {
            self.find(code, from)?;
            return Err(Refused::PasswordMissing);
        };
        match self.try_known(&room, shown, from)? {
            Some(_) => Ok(room),
            None => self.verify(room, shown, from).await,
        }
    }

    /// Checks a password as far as possible without verifying it; `None` when it must be verified.
    fn try_known(&self, room: &Room, shown: &str, from: IpAddr) -> Result<Option<()>, Refused> {
        let now = self.0.house.clock.now();
        let known = room.known(shown).map_or(PasswordCheck::Right, |(known, _)| known);
        let mut attempts = self.attempts();
        may_try(attempts.wait_for(room.id(), Knows::Password, from, now))?;
        match known {
            PasswordCheck::Not => Ok(None),
            PasswordCheck::Right => {
                attempts.right(room.id(), Knows::Password, from, now);
                Ok(Some(()))
            }
            PasswordCheck::Wrong => {
                attempts.wrong(from, now);
                Err(Refused::PasswordWrong)
            }
        }
    }

    async fn verify(
        &self,
        room: Arc<Room>,
        shown: &str,
        from: IpAddr,
    ) -> Result<Arc<Room>, Refused> {
        let busy = Refused::TooMany { retry_after: VERIFYING };
        let turn = self.0.verifier.turn().await.ok_or_else(|| busy.clone())?;
        // Meanwhile another request may have shown the right password, or this address wrong ones.
        if self.try_known(&room, shown, from)?.is_some() {
            return Ok(room);
        }
        let Some((_, phc)) = room.known(shown) else { return Ok(room) };
        let is_right = turn.verify(shown, Arc::clone(&phc)).await.ok_or(busy)?;
        let now = self.0.house.clock.now();
        if !is_right {
            self.attempts().wrong(from, now);
            return Err(Refused::PasswordWrong);
        }
        room.remember(shown, &phc);
        self.attempts().right(room.id(), Knows::Password, from, now);
        Ok(room)
    }
}

fn may_try(wait: Option<Duration>) -> Result<(), Refused> {
    match wait {
        None => Ok(()),
        Some(retry_after) => Err(Refused::TooMany { retry_after }),
    }
}

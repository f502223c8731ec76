//! The password of a room.
//!
//! A password is stored as its argon2id hash. A verified password is remembered in memory as a
//! salted SHA-256, so that a request costs a hash and not 20 ms.

use std::{sync::Arc, time::Duration};

use argon2::{
    Argon2,
    password_hash::{Error, PasswordHash, PasswordHasher, PasswordVerifier, SaltString},
};
use base::Secret;
use protocol::room::limits::{self, MAX_PASSWORD};
use rand::RngExt;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use tokio::sync::Semaphore;

use crate::error::RoomError;

/// The most verifications at a time, in all rooms together: each takes a core and 19 MiB for 20 ms.
const AT_A_TIME: usize = 4;

/// The longest wait for a verification.
const TURN: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub(crate) struct Password {
    phc: Arc<str>,
    salt: [u8; 16],
    /// The salted SHA-256 of the password, once it was shown.
    verified: Option<[u8; 32]>,
}

/// The result of comparing a text with remembered passwords, without the slow check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasswordCheck {
    Right,
    Wrong,
    /// It must be verified: the password was not shown since the start.
    Unverified,
}

impl Password {
    /// Hashes a new password, which takes 20 ms of a core.
    pub(crate) fn new(text: &Secret) -> Result<Self, RoomError> {
        let text = text.expose();
        if text.is_empty() {
            return Err(RoomError::Invalid("`password` must not be empty".to_owned()));
        }
        limits::password(text)
            .map_err(|unfit| RoomError::Invalid(format!("`password` {unfit}")))?;
        let phc = hash(text).map_err(|error| {
            RoomError::Invalid(format!("the password could not be hashed: {error}"))
        })?;
        let mut password = Self::stored(&phc);
        password.remember(text);
        Ok(password)
    }

    /// A stored password, in PHC form.
    pub(crate) fn stored(phc: &str) -> Self {
        Self { phc: phc.into(), salt: rand::rng().random(), verified: None }
    }

    /// The hash, in PHC form.
    pub(crate) fn phc(&self) -> &Arc<str> {
        &self.phc
    }

    /// Compares a text with the remembered password. Once the password is remembered, every other
    /// text is known to be wrong.
    pub(crate) fn known(&self, text: &str) -> PasswordCheck {
        match &self.verified {
            None => PasswordCheck::Unverified,
            Some(verified) if self.salted(text).ct_eq(verified).into() => PasswordCheck::Right,
            Some(_) => PasswordCheck::Wrong,
        }
    }

    /// Remembers a text that was verified to be the password.
    pub(crate) fn remember(&mut self, text: &str) {
        self.verified = Some(self.salted(text));
    }

    fn salted(&self, text: &str) -> [u8; 32] {
        Sha256::new().chain_update(self.salt).chain_update(text).finalize().into()
    }
}

fn hash(text: &str) -> Result<String, Error> {
    let salt = SaltString::encode_b64(&rand::rng().random::<[u8; 16]>())?;
    Ok(Argon2::default().hash_password(text.as_bytes(), &salt)?.to_string())
}

/// Verifies a text, which takes 20 ms of a core.
fn is_password(text: &str, phc: &str) -> bool {
    let Ok(hash) = PasswordHash::new(phc) else { return false };
    Argon2::default().verify_password(text.as_bytes(), &hash).is_ok()
}

/// Verifies passwords, a few at a time, so that wrong ones cannot take the whole machine.
pub(crate) struct Verifier(Semaphore);

/// A permit to verify one password.
pub(crate) struct Turn<'a>(#[expect(dead_code, reason = "held")] tokio::sync::SemaphorePermit<'a>);

impl Verifier {
    pub(crate) const fn new() -> Self {
        Self(Semaphore::const_new(AT_A_TIME))
    }

    /// Waits for a permit; `None` when that takes too long.
    pub(crate) async fn turn(&self) -> Option<Turn<'_>> {
        let permit = tokio::time::timeout(TURN, self.0.acquire()).await;
        permit.ok()?.ok().map(Turn)
    }
}

impl Turn<'_> {
    /// Whether a text is the password of this hash; `None` when that could not be determined.
    pub(crate) async fn verify(self, text: &str, phc: Arc<str>) -> Option<bool> {
        // No password is longer, and hashing a long text would cost more than refusing it.
        if text.len() > MAX_PASSWORD {
            return Some(false);
        }
        let text = text.to_owned();
        tokio::task::spawn_blocking(move || is_password(&text, &phc)).await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_kept_as_an_argon2id_hash() {
        let password = Password::new(&"swordfish".into()).unwrap();
        assert!(password.phc().starts_with("$argon2id$v=19$"), "{}", password.phc());
        assert!(is_password("swordfish", password.phc()));
        assert!(!is_password("Swordfish", password.phc()));
        assert!(!is_password("", "no hash at all"));
    }

    #[test]
    fn a_password_that_was_shown_is_known_and_so_are_wrong_ones() {
        let password = Password::new(&"swordfish".into()).unwrap();
        assert_eq!(password.known("swordfish"), PasswordCheck::Right);
        assert_eq!(password.known("sword"), PasswordCheck::Wrong);
        let mut stored = Password::stored(password.phc());
        assert_eq!(stored.known("swordfish"), PasswordCheck::Unverified);
        stored.remember("swordfish");
        assert_eq!(stored.known("swordfish"), PasswordCheck::Right);
    }

    #[test]
    fn passwords_have_a_length() {
        for text in [String::new(), "x".repeat(MAX_PASSWORD + 1)] {
            assert!(matches!(Password::new(&text.into()), Err(RoomError::Invalid(_))));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn verifications_at_a_time_are_bounded_and_so_is_the_wait() {
        let verifier = Verifier::new();
        let mut turns = Vec::new();
        for _ in 0..AT_A_TIME {
            turns.push(verifier.turn().await.unwrap());
        }
        assert!(verifier.turn().await.is_none());
        drop(turns.pop());
        assert!(verifier.turn().await.is_some());
    }
}

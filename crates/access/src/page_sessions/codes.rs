//! Login codes: each signs one browser in, once and within ten minutes. They are kept in memory, as hashes.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use base::Secret;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use rand::RngExt;
use store::KeyDigest;
use subtle::ConstantTimeEq;

use super::Holder;
use crate::{credential::digest, moment::Moment};

/// How long a code is good for.
pub const GOOD_FOR: Duration = Duration::from_secs(10 * 60);

/// The most codes that are open at once, and the most of one holder, so that no holder uses up all.
const MOST: usize = 100;
const MOST_OF_ONE: usize = 10;

/// The open login codes of a server.
#[derive(Default)]
pub struct LoginCodes(Mutex<Vec<Open>>);

struct Open {
    digest: KeyDigest,
    holder: Holder,
    until: Instant,
}

/// There are too many open codes: one has to be used, or to expire, first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are too many open login codes: use one of them, or wait ten minutes")]
pub struct TooManyCodes;

impl LoginCodes {
    /// Makes a code for a session of this holder. Its text is returned only here.
    ///
    /// # Errors
    /// [`TooManyCodes`].
    pub fn create(&self, holder: Holder, now: Moment) -> Result<Secret, TooManyCodes> {
        let mut open = self.open(now);
        let own = open.iter().filter(|code| code.holder == holder).count();
        if own >= MOST_OF_ONE || open.len() >= MOST {
            return Err(TooManyCodes);
        }
        let bits: [u8; 16] = rand::rng().random();
        let text = URL_SAFE_NO_PAD.encode(bits);
        open.push(Open { digest: digest(&text), holder, until: now.steady + GOOD_FOR });
        Ok(text.into())
    }

    /// Uses a code up; `None` if it is unknown, used or too old.
    pub fn take(&self, text: &str, now: Moment) -> Option<Holder> {
        let (mut open, presented) = (self.open(now), digest(text));
        let at = open.iter().position(|code| code.digest.0.ct_eq(&presented.0).into())?;
        Some(open.swap_remove(at).holder)
    }

    /// The codes that are not too old. The others are removed.
    fn open(&self, now: Moment) -> MutexGuard<'_, Vec<Open>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|code| now.steady < code.until);
        open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(number: u8) -> Holder {
        Holder { key: Some(format!("k-{number}").as_str().into()), digest: KeyDigest([number; 32]) }
    }

    #[test]
    fn a_code_is_good_once_and_for_ten_minutes() {
        let (codes, now) = (LoginCodes::default(), Moment::now());
        let [first, second] = [1, 2].map(|number| codes.create(holder(number), now).unwrap());
        assert_eq!(first.expose().len(), 22);
        assert_eq!(codes.take("wrong", now), None);
        assert_eq!(codes.take(first.expose(), now), Some(holder(1)));
        assert_eq!(codes.take(first.expose(), now), None);
        assert_eq!(codes.take(second.expose(), now.after(GOOD_FOR)), None);
    }

    #[test]
    fn open_codes_are_bounded_for_each_holder_and_in_all() {
        let (codes, now) = (LoginCodes::default(), Moment::now());
        for number in 0..10 {
            (0..MOST_OF_ONE).for_each(|_| drop(codes.create(holder(number), now).unwrap()));
            assert_eq!(codes.create(holder(number), now), Err(TooManyCodes));
        }
        assert_eq!(codes.create(holder(10), now), Err(TooManyCodes), "a hundred are open");
        assert!(codes.create(holder(10), now.after(GOOD_FOR)).is_ok());
    }
}

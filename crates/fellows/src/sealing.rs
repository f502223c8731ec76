//! Messages between servers, sealed: only servers of the group can read or write them.
//!
//! A client that reaches the NATS server may publish to every subject. So each message and each record is sealed with a
//! key that follows from the administrator's token, which all servers of a group share, the group's name, and the
//! id of the sender's start. The sender counts what it seals, so no two messages have one nonce, and a message
//! that comes again is refused.

use std::{
    collections::HashMap,
    sync::atomic::{AtomicU64, Ordering},
};

use base::Secret;
use bytes::Bytes;
use fleet::ServerId;
use ring::{
    aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey},
    hmac,
};

/// The version of everything that servers say to each other. Servers of two versions do not work together.
pub(crate) const VERSION: u8 = 1;

/// The bytes before what is sealed: the version, the sender and its count.
const HEAD: usize = 1 + 16 + 8;

/// The bytes that a seal adds.
pub(crate) const OVERHEAD: usize = HEAD + 16;

/// The senders whose counts are kept, gone ones included.
const MOST_SENDERS: usize = 1024;

/// How far a message may come behind a later one of its sender, in messages.
const WINDOW: u64 = 1024;

/// The key of a group.
#[derive(Clone)]
pub(crate) struct GroupKey([u8; 32]);

/// Seals what one start of a server sends.
pub(crate) struct Sealer {
    key: LessSafeKey,
    me: ServerId,
    sealed: AtomicU64,
}

/// Opens what others have sealed.
pub(crate) struct Opener {
    group: GroupKey,
    senders: HashMap<ServerId, Sender>,
}

/// Why something is not opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotOpened {
    #[error("it is of another version of the protocol between servers: {0}")]
    Version(u8),
    #[error("it is sealed with another administrator's token, or is no message of a server")]
    Seal,
    #[error("it has come before")]
    Again,
}

struct Sender {
    key: LessSafeKey,
    seen: Seen,
}

impl GroupKey {
    pub(crate) fn new(token: &Secret, group: &str) -> Self {
        Self(mac(token.expose().as_bytes(), &[b"warren fleet 1", group.as_bytes()]))
    }

    fn of(&self, server: ServerId) -> Option<LessSafeKey> {
        let key = mac(&self.0, &[&server.bits().to_be_bytes()]);
        UnboundKey::new(&AES_256_GCM, &key).ok().map(LessSafeKey::new)
    }
}

impl Sealer {
    /// `None` only if the cipher takes no keys of its own length.
    pub(crate) fn new(group: &GroupKey, me: ServerId) -> Option<Self> {
        Some(Self { key: group.of(me)?, me, sealed: AtomicU64::new(0) })
    }

    /// Seals these parts, one after the other, for the subject or key `place`.
    pub(crate) fn seal(&self, place: &str, parts: &[&[u8]]) -> Bytes {
        let count = self.sealed.fetch_add(1, Ordering::Relaxed);
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let mut sealed = Vec::with_capacity(len + OVERHEAD);
        sealed.push(VERSION);
        sealed.extend_from_slice(&self.me.bits().to_be_bytes());
        sealed.extend_from_slice(&count.to_be_bytes());
        parts.iter().for_each(|part| sealed.extend_from_slice(part));
        let (head, body) = sealed.split_at_mut(HEAD);
        let aad = Aad::from([head, place.as_bytes()].concat());
        match self.key.seal_in_place_separate_tag(nonce(count), aad, body) {
            Ok(tag) => sealed.extend_from_slice(tag.as_ref()),
            // Only what is longer than any message is not sealed: then nobody can open it.
            Err(_) => sealed.truncate(HEAD),
        }
        sealed.into()
    }
}

impl Opener {
    pub(crate) fn new(group: GroupKey) -> Self {
        Self { group, senders: HashMap::new() }
    }

    /// The sender, and what it sealed for `place`.
    pub(crate) fn open(
        &mut self,
        place: &str,
        sealed: &[u8],
    ) -> Result<(ServerId, Bytes), NotOpened> {
        let Some((head, body)) = sealed.split_at_checked(HEAD) else { return Err(NotOpened::Seal) };
        if head[0] != VERSION {
            return Err(NotOpened::Version(head[0]));
        }
        let sender = ServerId::from_random(u128::from_be_bytes(array(&head[1..17])));
        let count = u64::from_be_bytes(array(&head[17..]));
        let aad = Aad::from([head, place.as_bytes()].concat());
        let mut opened = body.to_vec();
        let known = self.senders.get_mut(&sender);
        let fresh = if known.is_none() { self.group.of(sender) } else { None };
        let key =
            known.as_ref().map(|known| &known.key).or(fresh.as_ref()).ok_or(NotOpened::Seal)?;
        let plain = key.open_in_place(nonce(count), aad, &mut opened);
        let len = plain.map_err(|_| NotOpened::Seal)?.len();
        opened.truncate(len);
        match (known, fresh) {
            (Some(known), _) => known.seen.take(count).then_some(()).ok_or(NotOpened::Again)?,
            (None, Some(key)) => self.meet(sender, key, count),
            (None, None) => return Err(NotOpened::Seal),
        }
        Ok((sender, opened.into()))
    }

    /// Notes a sender whose first message is good. Only servers of the group fill this.
    fn meet(&mut self, sender: ServerId, key: LessSafeKey, count: u64) {
        if self.senders.len() >= MOST_SENDERS {
            // One of them: a server that speaks again is met again.
            let one = self.senders.keys().next().copied();
            one.map(|one| self.senders.remove(&one));
        }
        let mut seen = Seen::default();
        seen.take(count);
        self.senders.insert(sender, Sender { key, seen });
    }
}

/// The counts of a sender that have come.
#[derive(Debug)]
struct Seen {
    /// All counts below this are too old, or it is the next that is expected.
    next: u64,
    /// Of the last [`WINDOW`] counts below `next`, by their remainder: whether they have come.
    came: [u64; (WINDOW / 64) as usize],
}

impl Default for Seen {
    fn default() -> Self {
        Self { next: 0, came: [0; (WINDOW / 64) as usize] }
    }
}

impl Seen {
    /// Notes a count. Returns whether it is new.
    fn take(&mut self, count: u64) -> bool {
        if count == u64::MAX || count.saturating_add(WINDOW) < self.next {
            return false;
        }
        if count >= self.next {
            let first = self.next.max((count + 1).saturating_sub(WINDOW));
            (first..=count).for_each(|skipped| self.mark(skipped, false));
            self.next = count + 1;
        } else if self.has(count) {
            return false;
        }
        self.mark(count, true);
        true
    }

    fn has(&self, count: u64) -> bool {
        let at = count % WINDOW;
        self.came[(at / 64) as usize] >> (at % 64) & 1 == 1
    }

    fn mark(&mut self, count: u64, came: bool) {
        let at = count % WINDOW;
        let (word, bit) = (&mut self.came[(at / 64) as usize], 1 << (at % 64));
        if came { *word |= bit } else { *word &= !bit }
    }
}

fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    for part in parts {
        // With its length: two lists of parts never give one text.
        context.update(&(part.len() as u64).to_be_bytes());
        context.update(part);
    }
    array(context.sign().as_ref())
}

/// A sender has a key of its own, so its count alone makes its nonces differ.
fn nonce(count: u64) -> Nonce {
    let mut nonce = [0; 12];
    nonce[4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(nonce)
}

/// The first bytes; the caller has checked that there are as many.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(token: &str, group: &str) -> GroupKey {
        GroupKey::new(&Secret::from(token.to_owned()), group)
    }

    fn sealer(of: &GroupKey, id: u128) -> Sealer {
        Sealer::new(of, ServerId::from_random(id)).unwrap()
    }

    #[test]
    fn servers_of_a_group_read_each_other_and_nobody_else_does() {
        let own = key("wa_token", "lab");
        let sealed = sealer(&own, 7).seal("to.9", &[b"a", b"bc"]);
        let mut opener = Opener::new(own);
        assert_eq!(opener.open("to.8", &sealed), Err(NotOpened::Seal), "it is for another one");
        let opened = opener.open("to.9", &sealed).unwrap();
        assert_eq!(opened, (ServerId::from_random(7), Bytes::from_static(b"abc")));
        for other in [key("wa_other", "lab"), key("wa_token", "field")] {
            assert_eq!(Opener::new(other).open("to.9", &sealed), Err(NotOpened::Seal));
        }
        assert!(!sealed.windows(3).any(|bytes| bytes == b"abc"));
    }

    #[test]
    fn a_message_that_was_changed_or_comes_again_is_refused() {
        let own = key("t", "g");
        let sealed = sealer(&own, 7).seal("p", &[b"hello"]);
        let mut opener = Opener::new(own);
        for at in 1..sealed.len() {
            let mut changed = sealed.to_vec();
            changed[at] ^= 1;
            assert_eq!(opener.open("p", &changed), Err(NotOpened::Seal), "byte {at}");
        }
        for cut in [0, 1, HEAD, sealed.len() - 1] {
            assert!(opener.open("p", &sealed[..cut]).is_err(), "{cut}");
        }
        assert!(opener.open("p", &sealed).is_ok());
        assert_eq!(opener.open("p", &sealed), Err(NotOpened::Again));
        let mut newer = sealed.to_vec();
        newer[0] = 2;
        assert_eq!(opener.open("p", &newer), Err(NotOpened::Version(2)));
    }

    #[test]
    fn only_so_many_senders_are_kept() {
        let own = key("t", "g");
        let mut opener = Opener::new(own.clone());
        for id in 0..MOST_SENDERS as u128 + 9 {
            opener.open("p", &sealer(&own, id).seal("p", &[])).unwrap();
        }
        assert_eq!(opener.senders.len(), MOST_SENDERS);
    }

    proptest! {
        /// Each count is taken once, and late ones as long as the window reaches.
        #[test]
        fn each_count_is_taken_once(counts in proptest::collection::vec(0_u64..4_000, 1..300)) {
            let (mut seen, mut came) = (Seen::default(), std::collections::HashSet::new());
            let mut newest = 0;
            for count in counts {
                let is_old = count + WINDOW < newest;
                prop_assert_eq!(seen.take(count), !is_old && came.insert(count), "{}", count);
                newest = newest.max(count + 1);
            }
        }
    }
}

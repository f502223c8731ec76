//! The invitations of this member: which may be used, and by which machine. Plain data; the time is
//! passed in.

use std::{collections::BTreeMap, time::Duration};

use base::NodeId;
use seal::{INVITE_ID, PeerSecret};
use serde::{Deserialize, Serialize};

/// How long an invitation is valid.
pub(crate) const VALID: Duration = Duration::from_secs(3600);
/// The most invitations that are open at a time.
pub(crate) const OPEN: usize = 16;
/// How long an invitation is remembered after its end, so that a late guest is told the reason.
const REMEMBERED: Duration = Duration::from_secs(24 * 3600);
/// The most invitations that are remembered, open or not.
const MOST: usize = 256;

/// The name of an invitation, which does not show its secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct InviteId(u64);

impl InviteId {
    pub(crate) fn of(secret: &PeerSecret) -> Option<Self> {
        secret.invite_id().map(|id: [u8; INVITE_ID]| Self(u64::from_be_bytes(id)))
    }

    pub(crate) fn read(text: &str) -> Option<Self> {
        let digits = text.len() == 2 * INVITE_ID && text.bytes().all(|b| b.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok().map(Self))?
    }
}

impl std::fmt::Display for InviteId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// One invitation, as it is stored.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Invite {
    secret: [u8; 16],
    /// When it ends, in milliseconds since 1970.
    pub(crate) until_ms: u64,
    /// The machine that used it.
    pub(crate) used_by: Option<NodeId>,
}

/// Why an invitation is not accepted or not made, in words for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error("the invitation is unknown here: it was withdrawn, or is too old; ask for another one")]
    Unknown,
    #[error("the invitation is already used by another machine: ask for another one")]
    Used,
    #[error("the machine was taken out after it had used this invitation: ask for another one")]
    TakenOut,
    #[error("the invitation has expired: each is good for an hour; ask for another one")]
    Expired,
    #[error(
        "{OPEN} invitations are open already: withdraw one with `warren cluster invites --revoke ID`"
    )]
    Full,
}

/// All invitations of this member.
#[derive(Default)]
pub(crate) struct Book(BTreeMap<InviteId, Invite>);

impl Book {
    /// Takes in an invitation that was stored.
    pub(crate) fn restore(&mut self, invite: Invite) {
        if let Some(id) = InviteId::of(&invite.shared_secret()) {
            self.0.insert(id, invite);
        }
    }

    /// Adds a new invitation, and drops old ones. Also returns the ids of the dropped ones.
    pub(crate) fn open(
        &mut self,
        secret: [u8; 16],
        now_ms: u64,
    ) -> Result<(InviteId, Invite, Vec<InviteId>), NotTaken> {
        if self.open_ones(now_ms).count() >= OPEN {
            return Err(NotTaken::Full);
        }
        let until_ms = now_ms.saturating_add(base::millis(VALID));
        let invite = Invite { secret, until_ms, used_by: None };
        let id = InviteId::of(&invite.shared_secret()).ok_or(NotTaken::Unknown)?;
        let dropped = self.drop_old(now_ms);
        self.0.insert(id, invite.clone());
        Ok((id, invite, dropped))
    }

    /// The invitations that may be used, by id.
    pub(crate) fn open_ones(&self, now_ms: u64) -> impl Iterator<Item = (InviteId, &Invite)> {
        let open = self.0.iter();
        let open = open.filter(move |(_, it)| it.used_by.is_none() && now_ms < it.until_ms);
        open.map(|(id, invite)| (*id, invite))
    }

    pub(crate) fn secret(&self, id: InviteId) -> Result<PeerSecret, NotTaken> {
        self.0.get(&id).map(Invite::shared_secret).ok_or(NotTaken::Unknown)
    }

    pub(crate) fn is_used(&self, id: InviteId) -> bool {
        self.0.get(&id).is_some_and(|invite| invite.used_by.is_some())
    }

    /// Withdraws an invitation. Returns whether it existed.
    pub(crate) fn withdraw(&mut self, id: InviteId) -> bool {
        self.0.remove(&id).is_some()
    }

    /// The invitation, marked as used by this key. The same key may use it again while it is valid,
    /// since the answer to it may have been lost.
    pub(crate) fn used(&self, id: InviteId, key: NodeId, now_ms: u64) -> Result<Invite, NotTaken> {
        let invite = self.0.get(&id).ok_or(NotTaken::Unknown)?;
        match invite.used_by {
            Some(other) if other != key => Err(NotTaken::Used),
            _ if now_ms >= invite.until_ms => Err(NotTaken::Expired),
            _ => Ok(Invite { used_by: Some(key), ..invite.clone() }),
        }
    }

    /// Keeps what [`Book::used`] returned, once it is stored.
    pub(crate) fn keep(&mut self, id: InviteId, invite: Invite) {
        self.0.insert(id, invite);
    }

    #[cfg(test)]
    pub(crate) fn age(&mut self, by: Duration) {
        self.0.values_mut().for_each(|invite| invite.until_ms -= base::millis(by));
    }

    fn drop_old(&mut self, now_ms: u64) -> Vec<InviteId> {
        let remembered = base::millis(REMEMBERED);
        let is_old = |it: &Invite| now_ms >= it.until_ms.saturating_add(remembered);
        let old = self.0.iter().filter(|(_, invite)| is_old(invite));
        let mut dropped: Vec<InviteId> = old.map(|(id, _)| *id).collect();
        let over = (self.0.len() - dropped.len()).saturating_sub(MOST - 1);
        let mut ended: Vec<(u64, InviteId)> = self
            .0
            .iter()
            .filter(|(id, it)| {
                !dropped.contains(id) && (it.used_by.is_some() || now_ms >= it.until_ms)
            })
            .map(|(id, it)| (it.until_ms, *id))
            .collect();
        ended.sort_unstable();
        dropped.extend(ended.into_iter().take(over).map(|(_, id)| id));
        self.0.retain(|id, _| !dropped.contains(id));
        dropped
    }
}

impl Invite {
    fn shared_secret(&self) -> PeerSecret {
        PeerSecret::invite(&self.secret)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn key(number: u8) -> NodeId {
        NodeId::new([number; 32])
    }

    #[test]
    fn an_invitation_is_good_once_for_an_hour_and_for_one_machine() {
        let mut book = Book::default();
        let (id, _, _) = book.open([1; 16], 0).unwrap();
        assert_eq!(book.used(id, key(1), HOUR).err(), Some(NotTaken::Expired));
        let used = book.used(id, key(1), 0).unwrap();
        book.keep(id, used);
        assert!(book.used(id, key(1), HOUR - 1).is_ok(), "its answer may have been lost");
        assert_eq!(book.used(id, key(2), 0).err(), Some(NotTaken::Used));
        assert_eq!(book.used(id, key(1), HOUR).err(), Some(NotTaken::Expired));
        assert!(book.withdraw(id));
        assert_eq!(book.used(id, key(1), 0).err(), Some(NotTaken::Unknown));
    }

    #[test]
    fn open_and_remembered_invitations_are_bounded() {
        let mut book = Book::default();
        for number in 0..OPEN {
            book.open([number as u8; 16], 0).unwrap();
        }
        assert_eq!(book.open([99; 16], 0).err(), Some(NotTaken::Full));
        for number in 0..400u16 {
            let mut secret = [7; 16];
            secret[..2].copy_from_slice(&number.to_be_bytes());
            let (id, _, _) = book.open(secret, HOUR).unwrap();
            let used = book.used(id, key(1), HOUR).unwrap();
            book.keep(id, used);
        }
        assert_eq!(book.0.len(), MOST);
        let (_, _, dropped) = book.open([98; 16], 30 * HOUR).unwrap();
        assert_eq!((dropped.len(), book.0.len()), (MOST, 1));
    }

    #[test]
    fn an_id_is_read_as_it_is_shown() {
        let id = InviteId::of(&PeerSecret::invite(&[3; 16])).unwrap();
        assert_eq!(InviteId::read(&id.to_string()), Some(id));
        for wrong in ["", "12", "+123456789abcdef", "zz23456789abcdef", "0123456789abcdef0"] {
            assert_eq!(InviteId::read(wrong), None, "{wrong}");
        }
    }
}

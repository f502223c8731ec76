//! The secrets by which members of a workspace's cluster link: the cluster's token, or the secret of
//! an invitation.
//!
//! A handshake needs one of them at both ends, besides each end's key. It is bound to the kind of
//! secret, so that neither stands for the other.

use std::fmt;

use base::{NodeId, Secret};
use sha2::{Digest, Sha256};

use crate::{
    Identity, Initiator, PasscodeKey, Responder, SealError, passcode::SALT_LENGTH, prologue,
};

/// How long the id of an invitation is, in bytes.
pub const INVITE_ID: usize = 8;

const SALT: &[u8; SALT_LENGTH] = b"warren.peer.token.salt";

/// A secret that two members share before they are linked.
#[derive(Clone)]
pub struct PeerSecret {
    key: PasscodeKey,
    invite: Option<[u8; INVITE_ID]>,
}

impl PeerSecret {
    /// The cluster's token. Takes a tenth of a second and 64 MiB, see [`PasscodeKey::derive`]: once
    /// at start, and not on a runtime's thread.
    pub fn cluster(token: &Secret) -> Self {
        Self { key: PasscodeKey::stretched(token, SALT), invite: None }
    }

    /// The secret of an invitation, 16 random bytes.
    pub fn invite(secret: &[u8; 16]) -> Self {
        let key = PasscodeKey::hashed(secret);
        let mut id = [0; INVITE_ID];
        id.copy_from_slice(&Sha256::digest(key.as_bytes())[..INVITE_ID]);
        Self { key, invite: Some(id) }
    }

    /// The id by which an invitation is named in the open: it does not show the secret. None for the
    /// cluster's token.
    pub fn invite_id(&self) -> Option<[u8; INVITE_ID]> {
        self.invite
    }

    /// Begins a handshake with a member; only that member can answer.
    ///
    /// # Errors
    /// [`SealError::NotAKey`] when the peer's key cannot be one.
    pub fn initiator(&self, identity: &Identity, peer: &NodeId) -> Result<Initiator, SealError> {
        let prologue = prologue::peer(&identity.node_id(), peer, &self.label());
        Initiator::new(identity, peer, Some(&self.key), &prologue)
    }

    /// Awaits a handshake of the end that says it has this key; [`Responder::read`] expects the same.
    ///
    /// # Errors
    /// As [`Responder::new`].
    pub fn responder(&self, identity: &Identity, peer: &NodeId) -> Result<Responder, SealError> {
        let prologue = prologue::peer(peer, &identity.node_id(), &self.label());
        Responder::new(identity, Some(&self.key), &prologue)
    }

    fn label(&self) -> Vec<u8> {
        match &self.invite {
            None => b"cluster".to_vec(),
            Some(id) => [b"invite", &id[..]].concat(),
        }
    }
}

impl fmt::Debug for PeerSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

#[cfg(test)]
mod tests;

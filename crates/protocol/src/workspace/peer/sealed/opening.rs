//! The first bytes of a link's dialling end: its key and the shared secret that it uses, then the
//! first message of the handshake. The answer is the second message alone.
//!
//! One byte for the version, 1; the label of the secret: 0 for the cluster's, or 1 and the 8 bytes of
//! an invitation's id; the key in 32 bytes; the message. The handshake itself proves label and key.

use base::NodeId;
use bytes::{Buf, Bytes};

/// The longest message of a handshake, in bytes.
const HANDSHAKE_MAX: usize = 65_535;

const VERSION: u8 = 1;

/// The first bytes of the dialling end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opening {
    /// The secret that it uses.
    pub label: PskLabel,
    /// Its public key, which the handshake proves.
    pub key: NodeId,
    /// The first message of the handshake.
    pub handshake: Bytes,
}

/// Which secret both ends of a handshake have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PskLabel {
    /// The cluster's.
    Cluster,
    /// That of the invitation with this id.
    Invite([u8; 8]),
}

/// Bytes that open no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadOpening {
    /// They end too early.
    #[error("the first message is cut off")]
    CutOff,
    /// Another version, or other bytes.
    #[error("the first message begins with {0}, which is an unknown version")]
    UnknownVersion(u8),
    /// A secret of an unknown kind.
    #[error("the first message names a secret of the unknown kind {0}")]
    UnknownLabel(u8),
    /// The handshake is longer than it may be.
    #[error("the first message is longer than a handshake may be")]
    TooLong,
}

impl PskLabel {
    fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Cluster => vec![0],
            Self::Invite(id) => [&[1], &id[..]].concat(),
        }
    }

    fn read(bytes: &mut Bytes) -> Result<Self, BadOpening> {
        match bytes.try_get_u8().map_err(|_| BadOpening::CutOff)? {
            0 => Ok(Self::Cluster),
            1 => take(bytes).map(Self::Invite),
            unknown => Err(BadOpening::UnknownLabel(unknown)),
        }
    }
}

impl Opening {
    /// Its bytes.
    pub fn encode(&self) -> Bytes {
        let label = self.label.to_bytes();
        [&[VERSION], &label[..], self.key.as_bytes(), &self.handshake].concat().into()
    }

    /// Reads the first bytes of a dialling end; the handshake's message shares their memory.
    ///
    /// # Errors
    /// [`BadOpening`].
    pub fn decode(mut bytes: Bytes) -> Result<Self, BadOpening> {
        match bytes.try_get_u8().map_err(|_| BadOpening::CutOff)? {
            VERSION => {}
            unknown => return Err(BadOpening::UnknownVersion(unknown)),
        }
        let label = PskLabel::read(&mut bytes)?;
        let key = NodeId::new(take(&mut bytes)?);
        match bytes.len() > HANDSHAKE_MAX {
            true => Err(BadOpening::TooLong),
            false => Ok(Self { label, key, handshake: bytes }),
        }
    }
}

fn take<const N: usize>(bytes: &mut Bytes) -> Result<[u8; N], BadOpening> {
    let mut taken = [0; N];
    bytes.try_copy_to_slice(&mut taken).map_err(|_| BadOpening::CutOff)?;
    Ok(taken)
}

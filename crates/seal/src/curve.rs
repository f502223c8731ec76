//! From the curve of signatures to the curve of secrets.

use base::NodeId;
use curve25519_dalek::{
    edwards::{CompressedEdwardsY, EdwardsPoint},
    montgomery::MontgomeryPoint,
    traits::{Identity, IsIdentity},
};

use crate::SealError;

/// The X25519 public key of a node: its Ed25519 public key converted.
///
/// An id and its mirror image, which differs in the highest bit, have the same X25519 key. The
/// owner of one also owns the other, and no other node does. An honest node answers only to its own
/// id, because the prologue of a handshake names the ids.
///
/// # Errors
/// [`SealError::NotAKey`] for an id that no honest node has: not on the curve, of small or mixed
/// order, or not in its only canonical encoding.
pub(crate) fn static_public(id: &NodeId) -> Result<[u8; 32], SealError> {
    let written = CompressedEdwardsY(*id.as_bytes());
    let point = written.decompress().filter(is_honest).ok_or(SealError::NotAKey(*id))?;
    match point.compress() == written {
        true => Ok(point.to_montgomery().to_bytes()),
        false => Err(SealError::NotAKey(*id)),
    }
}

fn is_honest(point: &EdwardsPoint) -> bool {
    !point.is_identity() && point.is_torsion_free()
}

/// Whether the first 32 bytes of a handshake message, the sender's ephemeral key, give a shared
/// secret that everyone knows.
pub(crate) fn begins_with_a_known_secret(message: &[u8]) -> bool {
    let Some(key) = message.first_chunk::<32>() else { return true };
    // A clamped scalar is a multiple of the cofactor: it sends points of small order, and no other,
    // to the identity.
    MontgomeryPoint(*key).mul_clamped([0; 32]) == MontgomeryPoint::identity()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> NodeId {
        text.parse().unwrap()
    }

    #[test]
    fn a_key_is_converted_in_the_usual_way() {
        let id = id("d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737");
        let public = hex::encode(static_public(&id).unwrap());
        assert!(public.starts_with("7a46e129fd80"), "{public}");
    }

    #[test]
    fn keys_that_nobody_owns_are_refused() {
        let identity = format!("01{}", "00".repeat(31));
        let order_four = "00".repeat(32);
        let order_two = format!("ec{}7f", "ff".repeat(30));
        let order_eight = "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a";
        let off_the_curve = format!("02{}", "00".repeat(31));
        let not_canonical = format!("ee{}7f", "ff".repeat(30));
        for text in
            [&identity, &order_four, &order_two, order_eight, &off_the_curve, &not_canonical]
        {
            assert_eq!(static_public(&id(text)), Err(SealError::NotAKey(id(text))), "{text}");
        }
    }

    #[test]
    fn a_key_with_a_part_of_small_order_is_refused() {
        let honest = curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
        let mixed = honest + curve25519_dalek::constants::EIGHT_TORSION[1];
        assert!(static_public(&NodeId::new(honest.compress().to_bytes())).is_ok());
        let mixed = NodeId::new(mixed.compress().to_bytes());
        assert_eq!(static_public(&mixed), Err(SealError::NotAKey(mixed)));
    }

    #[test]
    fn keys_of_small_order_are_seen_at_the_head_of_a_message() {
        for order in curve25519_dalek::constants::EIGHT_TORSION {
            let key = order.to_montgomery().to_bytes();
            assert!(begins_with_a_known_secret(&[&key[..], &[9; 64]].concat()));
        }
        assert!(begins_with_a_known_secret(&[9; 31]));
        assert!(!begins_with_a_known_secret(&[9; 32]));
    }
}

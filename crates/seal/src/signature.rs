//! A node's signatures for relays, and their verification.

use base::NodeId;
use ed25519_dalek::{Signature, VerifyingKey};

use crate::Identity;

/// The Ed25519 signature over a text, as 128 lower-case hex digits.
pub fn sign_hex(identity: &Identity, text: &str) -> String {
    hex::encode(identity.sign(text.as_bytes()))
}

/// Whether `signature` (128 hex digits of either case) is the node's over the text. Strict: ids and
/// signatures that would be good for more than one text are not good.
pub fn verify_hex(id: &NodeId, text: &str, signature: &str) -> bool {
    let mut bytes = [0; Signature::BYTE_SIZE];
    let key = VerifyingKey::from_bytes(id.as_bytes());
    let (Ok(key), Ok(())) = (key, hex::decode_to_slice(signature, &mut bytes)) else {
        return false;
    };
    key.verify_strict(text.as_bytes(), &Signature::from_bytes(&bytes)).is_ok()
}

/// The text that stock peers sign to register at a relay: their own id. It never changes, so anyone
/// who has seen the signature once can register as them.
pub fn register_text(id: &NodeId) -> String {
    id.to_string()
}

/// The text that a Warren signs to register at a relay: the relay's nonce, and the host that it
/// dialled, so that another relay cannot use the signature.
pub fn challenge_text(nonce: &str, relay_host: &str, id: &NodeId) -> String {
    format!("warren-register:{nonce}:{relay_host}:{id}")
}

/// The signed text of an `offer` or `answer`.
pub fn offer_text(from: &str, to: &str, session: &str) -> String {
    format!("{from}:{to}:{session}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> Identity {
        Identity::from_seed([0x11; 32])
    }

    #[test]
    fn the_register_signature_is_the_one_of_stock_peers() {
        let identity = identity();
        let signature = sign_hex(&identity, &register_text(&identity.node_id()));
        assert!(signature.starts_with("b4f0655ba1a8cb4f"), "{signature}");
        assert!(verify_hex(&identity.node_id(), &identity.node_id().to_string(), &signature));
    }

    #[test]
    fn a_signature_is_good_for_its_node_and_its_text_only() {
        let (identity, other) = (identity(), Identity::from_seed([0x22; 32]));
        let signature = sign_hex(&identity, "text");
        assert!(verify_hex(&identity.node_id(), "text", &signature));
        assert!(verify_hex(&identity.node_id(), "text", &signature.to_uppercase()));
        assert!(!verify_hex(&identity.node_id(), "texts", &signature));
        assert!(!verify_hex(&other.node_id(), "text", &signature));
        assert!(!verify_hex(&identity.node_id(), "text", &format!("00{}", &signature[2..])));
    }

    #[test]
    fn malformed_signatures_and_keys_do_not_verify() {
        let id = identity().node_id();
        for text in ["", "00", &"0".repeat(128), &"g".repeat(128), &"0".repeat(130)] {
            assert!(!verify_hex(&id, "text", text), "{text}");
        }
        // The identity point: with it, and a zero signature, every text would be good.
        let mut weak = [0; 32];
        weak[0] = 1;
        let signature = format!("01{}", "0".repeat(126));
        assert!(!verify_hex(&NodeId::new(weak), "text", &signature));
    }

    #[test]
    fn texts_are_what_the_protocol_says() {
        let id = NodeId::new([0xab; 32]);
        assert_eq!(register_text(&id), "ab".repeat(32));
        let expected = format!("warren-register:n1:relay.example:{id}");
        assert_eq!(challenge_text("n1", "relay.example", &id), expected);
        assert_eq!(offer_text("a", "b", "S"), "a:b:S");
    }
}

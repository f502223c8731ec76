//! The identity of a node.

use ed25519_dalek::{Signer, SigningKey};

/// An Ed25519 key, as nodes keep one.
#[derive(Debug)]
pub(super) struct MeshKey(SigningKey);

impl MeshKey {
    pub(super) fn new(seed: [u8; 32]) -> Self {
        Self(SigningKey::from_bytes(&seed))
    }

    /// The node's id: its public key in hex digits.
    pub(super) fn id(&self) -> String {
        hex::encode(self.0.verifying_key().as_bytes())
    }

    pub(super) fn sign(&self, text: &str) -> String {
        hex::encode(self.0.sign(text.as_bytes()).to_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_signs_as_real_nodes_do() {
        let key = MeshKey::new([0x11; 32]);
        assert_eq!(key.id(), "d04ab232742bb4ab3a1368bd4615e4e6d0224ab71a016baf8520a332c9778737");
        assert!(key.sign(&key.id()).starts_with("b4f0655ba1a8cb4f"));
    }
}

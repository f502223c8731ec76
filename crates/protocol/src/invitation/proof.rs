//! How a server without TLS proves that it is the right one, before it is sent a secret.
//!
//! The machine sends a random number and the address that it dialled. The server answers with an HMAC-SHA256 of
//! both, keyed by the SHA-256 of the secret, which it keeps. An impostor who only knows the server's id cannot
//! answer. Passing the question on to the server does not help: the server answers only for its own addresses, and
//! the machine checks the answer against the address that it dialled.

use base::Secret;
use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// The random number of a question, in bytes.
pub const NONCE: usize = 16;

/// The proof for a question, by the SHA-256 of the secret's text. `address` is `HOST:PORT`.
pub fn make(digest: &[u8; 32], nonce: &[u8; NONCE], address: &str) -> [u8; 32] {
    mac(digest, nonce, address).finalize().into_bytes().into()
}

/// Whether this proves that the server knows the secret, and is at the address. Compared in constant time.
pub fn is_valid(secret: &Secret, nonce: &[u8; NONCE], address: &str, proof: &[u8]) -> bool {
    let digest: [u8; 32] = Sha256::digest(secret.expose().as_bytes()).into();
    mac(&digest, nonce, address).verify_slice(proof).is_ok()
}

fn mac(digest: &[u8; 32], nonce: &[u8; NONCE], address: &str) -> Hmac<Sha256> {
    // HMAC takes a key of any length. This one is shorter than a block, so it is padded.
    let mut block = [0; 64];
    block[..32].copy_from_slice(digest);
    let mut mac = <Hmac<Sha256> as Mac>::new(&block.into());
    mac.update(b"warren server proof 1\n");
    mac.update(nonce);
    mac.update(address.as_bytes());
    mac
}

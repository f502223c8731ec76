//! The identity of a node of the mesh or of a workspace's cluster, and messages that only two nodes can
//! read.
//!
//! Only cryptography: no socket, task or clock. A connection's bytes go in and come out.
//!
//! - [`identity`]: a node's secret key, and its id
//! - [`signature`]: a node's signatures for relays, and their verification
//! - [`passcode`]: the shared secret of a mesh's nodes
//! - [`peer`]: the secrets by which members of a workspace's cluster link
//! - [`prologue`]: the data that a handshake is bound to
//! - [`handshake`]: two messages of Noise (IK, or IKpsk2 with a passcode)
//! - [`sealed`]: the link after the handshake, as its two directions
//! - [`sealer`]: seals payloads into records that only the other end can open
//! - [`opener`]: opens records into payloads
//! - [`error`]: why something was refused
//!
//! The Noise static key of a node is its Ed25519 key converted to X25519, so that it follows from
//! the node's id and a handshake proves that id.

pub mod error;
pub mod handshake;
pub mod identity;
pub mod opener;
pub mod passcode;
pub mod peer;
pub mod prologue;
pub mod sealed;
pub mod sealer;
pub mod signature;

mod curve;

pub use error::SealError;
pub use handshake::{Initiator, MAX_HANDSHAKE_PAYLOAD, Responder};
pub use identity::{Identity, IdentityError};
pub use opener::Opener;
pub use passcode::{PasscodeKey, hashes_equal, stock_hash};
pub use peer::{INVITE_ID, PeerSecret};
pub use sealed::{MAX_COUNTED_PIECE, MAX_PAYLOAD, MAX_RECORD, Sealed};
pub use sealer::Sealer;
pub use signature::{challenge_text, offer_text, register_text, sign_hex, verify_hex};

//! The messages between a joining machine and a server over HTTP.

use serde::{Deserialize, Serialize};

/// Where an invitation is used.
pub const JOIN: &str = "/v1/join";

/// Where a server proves which one it is.
pub const PROOF: &str = "/v1/join/proof";

/// The use of an invitation. It is good once.
#[derive(Serialize, Deserialize)]
pub struct JoinRequest {
    /// The [text](super::InvitationSecret::text) of its secret.
    pub secret: String,
    /// The machine's name.
    pub machine: String,
}

/// The answer to a machine that has joined: all that it needs from then on.
#[derive(Serialize, Deserialize)]
pub struct JoinAnswer {
    /// Its key, of scope `worker`.
    pub key: String,
    /// The id of the key.
    pub key_id: String,
    /// The name that the key has.
    pub name: String,
    /// The name of the server's machine.
    pub server_name: String,
}

/// Asks a server to prove which server it is.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProofRequest {
    /// The id of the key or the invitation whose secret the proof is made with.
    pub of: String,
    /// A random number, as hexadecimal digits.
    pub nonce: String,
    /// The address that was dialled, `HOST:PORT`.
    pub address: String,
}

/// The answer: a [proof](super::proof), as hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProofAnswer {
    /// The proof.
    pub proof: String,
}

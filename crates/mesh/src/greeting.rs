//! The hello inside a handshake's messages, where only the other end can read it.

use base::NodeId;
use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, decode, encode},
};
use seal::{MAX_HANDSHAKE_PAYLOAD, SealError};

/// A hello as the payload of a handshake's message. It has as many models as fit; the first
/// heartbeat lists them all.
pub(crate) fn write(mut hello: Hello, message: fn(Box<Hello>) -> ClusterMessage) -> Vec<u8> {
    loop {
        let payload = encode(&message(Box::new(hello.clone())), Dialect::Flat);
        let models = hello.loaded_models.len().max(hello.device_info.loaded_models.len());
        if payload.len() <= MAX_HANDSHAKE_PAYLOAD || models == 0 {
            return payload;
        }
        // The list is halved each time, so a few rounds are enough for any number of models.
        hello.loaded_models.truncate(models / 2);
        hello.device_info.loaded_models.truncate(models / 2);
    }
}

/// The hello in a handshake's message from `peer`.
///
/// # Errors
/// [`SealError::Malformed`] if it is missing, or is another node's hello.
pub(crate) fn read(payload: &[u8], peer: &NodeId) -> Result<Hello, SealError> {
    let none = SealError::Malformed("a handshake without a hello");
    let Ok(decoded) = decode(payload) else { return Err(none) };
    let (ClusterMessage::Hello(hello) | ClusterMessage::HelloAck(hello)) = decoded.message else {
        return Err(none);
    };
    match &hello.warren {
        Some(warren) if warren.node_id == *peer => Ok(*hello),
        _ => Err(SealError::Malformed("a handshake with somebody else's hello")),
    }
}

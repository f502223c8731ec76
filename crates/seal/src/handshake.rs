//! Two messages of Noise: `Noise_IK_25519_ChaChaPoly_BLAKE2s`, or with a passcode
//! `Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s`.
//!
//! Both ends must choose the same form: the first message does not show which one it has.

use std::fmt;

use base::NodeId;
use snow::{Builder, HandshakeState};
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::{Identity, PasscodeKey, SealError, Sealed, curve};

/// The longest payload of a handshake's message, in bytes.
pub const MAX_HANDSHAKE_PAYLOAD: usize = MAX_MESSAGE - FIRST_OVERHEAD;

/// The end that opens a link.
pub struct Initiator {
    noise: HandshakeState,
    peer: NodeId,
    with_passcode: bool,
}

impl Initiator {
    /// Begins a handshake with a node; only that node can answer. `psk` is the
    /// mesh's passcode, for the form with one. See [`crate::prologue`] for `prologue`.
    ///
    /// # Errors
    /// [`SealError::NotAKey`] when the peer's id cannot be one.
    pub fn new(
        identity: &Identity,
        peer: &NodeId,
        psk: Option<&PasscodeKey>,
        prologue: &[u8],
    ) -> Result<Self, SealError> {
        let public = curve::static_public(peer)?;
        let private = identity.static_private();
        let noise = begin(&private, psk, prologue)?.remote_public_key(&public)?;
        Ok(Self { noise: noise.build_initiator()?, peer: *peer, with_passcode: psk.is_some() })
    }

    /// Writes the first message. Only the peer can read its payload; but a thief of the peer's key
    /// can read it later, and anyone who records the message can send it again.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] over [`MAX_HANDSHAKE_PAYLOAD`], [`SealError::OutOfTurn`] the second
    /// time.
    pub fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, SealError> {
        write(&mut self.noise, payload)
    }

    /// Reads the peer's answer. Gives the link, and the payload of the answer: from here on the other
    /// end is known to be the peer, and to have the passcode.
    ///
    /// # Errors
    /// [`SealError::WrongPasscode`] when it does not open, in the form with a passcode;
    /// [`SealError::Unauthentic`] in the other one. [`SealError::Malformed`],
    /// [`SealError::OutOfTurn`].
    pub fn finish(mut self, message: &[u8]) -> Result<(Sealed, Vec<u8>), SealError> {
        let payload = read(&mut self.noise, message).map_err(|error| match error {
            SealError::Unauthentic if self.with_passcode => SealError::WrongPasscode(self.peer),
            error => error,
        })?;
        Ok((sealed(self.noise)?, payload))
    }
}

/// The end that answers.
pub struct Responder {
    noise: HandshakeState,
    is_them: bool,
}

impl Responder {
    /// Awaits a handshake. `psk` is the mesh's passcode, for the form with one.
    ///
    /// # Errors
    /// None that an identity could cause.
    pub fn new(
        identity: &Identity,
        psk: Option<&PasscodeKey>,
        prologue: &[u8],
    ) -> Result<Self, SealError> {
        let private = identity.static_private();
        let noise = begin(&private, psk, prologue)?.build_responder()?;
        Ok(Self { noise, is_them: false })
    }

    /// Reads the first message, which must come from `expects`. Returns its payload. That node
    /// wrote it for this node and this prologue, but possibly earlier: see [`Sealed`].
    ///
    /// # Errors
    /// [`SealError::Unauthentic`] when it does not open: it has another prologue, was meant for
    /// another node, was made in the form with (or without) a passcode, or was changed.
    /// [`SealError::NotThem`] when another node wrote it, [`SealError::NotAKey`] when the expected
    /// id cannot be a key. [`SealError::Malformed`], [`SealError::OutOfTurn`].
    pub fn read(&mut self, message: &[u8], expects: &NodeId) -> Result<Vec<u8>, SealError> {
        let expected = curve::static_public(expects)?;
        let payload = read(&mut self.noise, message)?;
        let theirs = self.noise.get_remote_static().unwrap_or_default();
        self.is_them = theirs.ct_eq(&expected).into();
        if self.is_them { Ok(payload) } else { Err(SealError::NotThem) }
    }

    /// The answer, and the link.
    ///
    /// # Errors
    /// [`SealError::TooLarge`] over [`MAX_HANDSHAKE_PAYLOAD`], [`SealError::OutOfTurn`] unless
    /// [`Responder::read`] was content.
    pub fn finish(mut self, payload: &[u8]) -> Result<(Vec<u8>, Sealed), SealError> {
        if !self.is_them {
            return Err(SealError::OutOfTurn);
        }
        let message = write(&mut self.noise, payload)?;
        Ok((message, sealed(self.noise)?))
    }
}

impl fmt::Debug for Initiator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Initiator(to {})", self.peer)
    }
}

impl fmt::Debug for Responder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Responder")
    }
}

fn begin<'a>(
    private: &'a [u8; 32],
    psk: Option<&'a PasscodeKey>,
    prologue: &'a [u8],
) -> Result<Builder<'a>, SealError> {
    let pattern = if psk.is_some() { WITH_PASSCODE } else { WITHOUT };
    let noise = Builder::new(pattern.parse()?).local_private_key(private)?.prologue(prologue)?;
    match psk {
        Some(psk) => Ok(noise.psk(2, psk.as_bytes())?),
        None => Ok(noise),
    }
}

fn write(noise: &mut HandshakeState, payload: &[u8]) -> Result<Vec<u8>, SealError> {
    if payload.len() > MAX_HANDSHAKE_PAYLOAD {
        let what = "the payload of a handshake";
        return Err(SealError::TooLarge { what, limit: MAX_HANDSHAKE_PAYLOAD });
    }
    let mut message = vec![0; payload.len() + FIRST_OVERHEAD];
    let length = noise.write_message(payload, &mut message)?;
    message.truncate(length);
    Ok(message)
}

fn read(noise: &mut HandshakeState, message: &[u8]) -> Result<Vec<u8>, SealError> {
    if noise.is_my_turn() {
        return Err(SealError::OutOfTurn);
    }
    if curve::begins_with_a_known_secret(message) {
        return Err(SealError::Malformed("a handshake that everybody could read"));
    }
    let mut payload = vec![0; message.len().min(MAX_MESSAGE)];
    let length = noise.read_message(message, &mut payload)?;
    payload.truncate(length);
    Ok(payload)
}

fn sealed(mut noise: HandshakeState) -> Result<Sealed, SealError> {
    let (by_initiator, by_responder) = noise.dangerously_get_raw_split();
    let (by_initiator, by_responder) = (Zeroizing::new(by_initiator), Zeroizing::new(by_responder));
    match noise.is_initiator() {
        true => Sealed::new(&by_initiator, &by_responder),
        false => Sealed::new(&by_responder, &by_initiator),
    }
}

const WITHOUT: &str = "Noise_IK_25519_ChaChaPoly_BLAKE2s";
const WITH_PASSCODE: &str = "Noise_IKpsk2_25519_ChaChaPoly_BLAKE2s";
/// The longest message of Noise, in bytes.
const MAX_MESSAGE: usize = 65_535;
/// The bytes that the first message adds to its payload: a key, a sealed key and a tag. The answer
/// adds fewer.
const FIRST_OVERHEAD: usize = 32 + 48 + 16;

#[cfg(test)]
mod tests;

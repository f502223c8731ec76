//! Links of members: those with the same secret, and all others.

use std::sync::LazyLock;

use super::*;
use crate::Sealed;

/// Deriving it is slow.
static TOKEN: LazyLock<PeerSecret> = LazyLock::new(|| PeerSecret::cluster(&Secret::from("swift")));

fn ends() -> (Identity, Identity) {
    (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]))
}

/// A whole handshake, each end with a secret; `harm` may change the first message and the answer.
fn shake(
    dials: &PeerSecret,
    answers: &PeerSecret,
    harm: impl Fn(usize, &mut Vec<u8>),
) -> Result<(Sealed, Sealed), SealError> {
    let (one, other) = ends();
    let mut initiator = dials.initiator(&one, &other.node_id())?;
    let mut responder = answers.responder(&other, &one.node_id())?;
    let mut first = initiator.write(b"")?;
    harm(0, &mut first);
    responder.read(&first, &one.node_id())?;
    let (mut second, answered) = responder.finish(b"")?;
    harm(1, &mut second);
    let (sealed, _) = initiator.finish(&second)?;
    Ok((sealed, answered))
}

fn untouched(_: usize, _: &mut Vec<u8>) {}

#[test]
fn members_with_one_secret_get_a_link() {
    for secret in [&*TOKEN, &PeerSecret::invite(&[5; 16])] {
        let (one, other) = shake(secret, secret, untouched).unwrap();
        let ((mut to_other, _), (_, mut from_one)) = (one.split(), other.split());
        let record = to_other.counted(b"hello").unwrap();
        assert!(!from_one.is_proven());
        assert_eq!(from_one.counted(&record).unwrap().unwrap(), "hello");
        assert!(from_one.is_proven());
    }
}

#[test]
fn another_secret_gets_no_link() {
    let (_, other) = ends();
    let wrong = PeerSecret::cluster(&Secret::from("slow"));
    let refused = SealError::WrongPasscode(other.node_id());
    assert_eq!(shake(&wrong, &TOKEN, untouched).unwrap_err(), refused);
    // Its id is in the prologue: another invitation's first message does not open.
    let (one, another) = (PeerSecret::invite(&[5; 16]), PeerSecret::invite(&[6; 16]));
    assert_eq!(shake(&one, &another, untouched).unwrap_err(), SealError::Unauthentic);
    assert_eq!(shake(&one, &TOKEN, untouched).unwrap_err(), SealError::Unauthentic);
    assert_eq!(shake(&TOKEN, &one, untouched).unwrap_err(), SealError::Unauthentic);
    let same_id = PeerSecret { key: PasscodeKey::hashed(&[7; 16]), invite: one.invite };
    assert_eq!(shake(&same_id, &one, untouched).unwrap_err(), refused);
}

#[test]
fn another_key_gets_no_link() {
    let (one, other) = ends();
    let thief = Identity::from_seed([3; 32]);
    let mut initiator = TOKEN.initiator(&thief, &other.node_id()).unwrap();
    let first = initiator.write(b"").unwrap();
    // As the member that it says it is, and as itself where somebody else is expected.
    let mut responder = TOKEN.responder(&other, &one.node_id()).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::Unauthentic));
    let mut responder = TOKEN.responder(&other, &thief.node_id()).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::NotThem));
    // A member that was not dialled cannot answer.
    let mut initiator = TOKEN.initiator(&one, &other.node_id()).unwrap();
    let first = initiator.write(b"").unwrap();
    let mut responder = TOKEN.responder(&thief, &one.node_id()).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::Unauthentic));
    let nobody = NodeId::new([0; 32]);
    assert_eq!(TOKEN.initiator(&one, &nobody).unwrap_err(), SealError::NotAKey(nobody));
}

#[test]
fn a_first_message_sent_again_proves_nothing() {
    let (one, other) = ends();
    let mut initiator = TOKEN.initiator(&one, &other.node_id()).unwrap();
    let first = initiator.write(b"").unwrap();
    let answer = || {
        let mut responder = TOKEN.responder(&other, &one.node_id()).unwrap();
        responder.read(&first, &one.node_id()).unwrap();
        responder.finish(b"").unwrap()
    };
    let ((second, link), (_, replayed)) = (answer(), answer());
    let (mut sealer, _) = initiator.finish(&second).unwrap().0.split();
    let record = sealer.counted(b"hello").unwrap();
    let (mut opener, mut replayed) = (link.split().1, replayed.split().1);
    assert_eq!(opener.counted(&record).unwrap().unwrap(), "hello");
    assert_eq!(replayed.counted(&record), Err(SealError::Unauthentic));
    assert!(opener.is_proven() && !replayed.is_proven());
    // The same record again is no second one.
    assert!(matches!(opener.counted(&record), Err(SealError::Replayed { .. })));
}

#[test]
fn a_message_that_was_changed_anywhere_does_not_open() {
    let (_, other) = ends();
    let invite = PeerSecret::invite(&[5; 16]);
    for at in 0..96 {
        let flip = |message: usize| {
            shake(&invite, &invite, move |which, bytes| {
                if which == message {
                    let at = at % bytes.len();
                    bytes[at] ^= 1;
                }
            })
        };
        assert_eq!(flip(0).unwrap_err(), SealError::Unauthentic, "{at}");
        assert_eq!(flip(1).unwrap_err(), SealError::WrongPasscode(other.node_id()), "{at}");
    }
    let longer = shake(&invite, &invite, |_, bytes| bytes.push(0));
    assert_eq!(longer.unwrap_err(), SealError::Unauthentic);
}

#[test]
fn an_invitation_has_an_id_that_follows_from_its_secret() {
    let invite = PeerSecret::invite(&[0; 16]);
    // The first bytes of SHA-256 of SHA-256 of 16 zeros.
    let id = invite.invite_id().map(hex::encode);
    assert_eq!(id.as_deref(), Some("81fc492561da5683"));
    assert_eq!(TOKEN.invite_id(), None);
    assert_eq!(format!("{invite:?}"), "[redacted]");
}

#[test]
fn a_cluster_token_and_a_passcode_of_the_same_text_are_two_secrets() {
    let passcode = PasscodeKey::derive(&Secret::from("swift"));
    assert_ne!(passcode.as_bytes(), TOKEN.key.as_bytes());
}

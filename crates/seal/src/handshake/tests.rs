//! Handshakes that succeed, and those that do not.

use base::Secret;

use super::*;
use crate::prologue;

fn ends() -> (Identity, Identity) {
    (Identity::from_seed([1; 32]), Identity::from_seed([2; 32]))
}

fn psk(text: &str) -> PasscodeKey {
    PasscodeKey::derive(&Secret::from(text))
}

/// A whole handshake: the initiator's answer, once the responder was content.
fn shake(
    initiator_psk: Option<&PasscodeKey>,
    responder_psk: Option<&PasscodeKey>,
) -> Result<(Sealed, Sealed), SealError> {
    let (one, other) = ends();
    let prologue = prologue::lan(&one.node_id(), &other.node_id());
    let mut initiator = Initiator::new(&one, &other.node_id(), initiator_psk, &prologue)?;
    let mut responder = Responder::new(&other, responder_psk, &prologue)?;
    let first = initiator.write(b"hello")?;
    assert_eq!(responder.read(&first, &one.node_id())?, b"hello");
    let (second, answered) = responder.finish(b"helloAck")?;
    let (sealed, payload) = initiator.finish(&second)?;
    assert_eq!(payload, b"helloAck");
    Ok((sealed, answered))
}

fn talk(one: Sealed, other: Sealed) {
    let (mut from_one, mut to_one) = one.split();
    let (mut from_other, mut to_other) = other.split();
    let there = to_other.counted(&from_one.counted(b"there").unwrap());
    assert_eq!(there.unwrap().unwrap(), "there");
    let back = to_one.counted(&from_other.counted(b"back").unwrap());
    assert_eq!(back.unwrap().unwrap(), "back");
}

#[test]
fn two_nodes_get_a_link_in_both_directions_with_and_without_a_passcode() {
    let (one, other) = shake(None, None).unwrap();
    talk(one, other);
    let psk = psk("swift eagle");
    let (one, other) = shake(Some(&psk), Some(&psk)).unwrap();
    talk(one, other);
}

#[test]
fn another_passcode_is_told_from_none() {
    let (_, other) = ends();
    let (right, wrong) = (psk("swift eagle"), psk("slow eagle"));
    let refused = shake(Some(&wrong), Some(&right)).unwrap_err();
    assert_eq!(refused, SealError::WrongPasscode(other.node_id()));
    // The forms are two protocols: the first message already does not open.
    assert_eq!(shake(None, Some(&right)).unwrap_err(), SealError::Unauthentic);
    assert_eq!(shake(Some(&right), None).unwrap_err(), SealError::Unauthentic);
}

#[test]
fn only_the_node_that_was_dialled_can_answer() {
    let (one, other) = ends();
    let thief = Identity::from_seed([3; 32]);
    let prologue = prologue::lan(&one.node_id(), &other.node_id());
    let mut initiator = Initiator::new(&one, &other.node_id(), None, &prologue).unwrap();
    let first = initiator.write(b"").unwrap();
    let mut responder = Responder::new(&thief, None, &prologue).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::Unauthentic));
    assert_eq!(responder.finish(b"").unwrap_err(), SealError::OutOfTurn);
    assert_eq!(initiator.finish(&[9; 48]).unwrap_err(), SealError::Unauthentic);
}

#[test]
fn dialling_under_another_id_gets_no_answer() {
    let (one, other) = ends();
    let thief = Identity::from_seed([3; 32]);
    let prologue = prologue::lan(&one.node_id(), &other.node_id());
    let mut initiator = Initiator::new(&thief, &other.node_id(), None, &prologue).unwrap();
    let first = initiator.write(b"").unwrap();
    let mut responder = Responder::new(&other, None, &prologue).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::NotThem));
    assert_eq!(responder.finish(b"").unwrap_err(), SealError::OutOfTurn);
}

#[test]
fn a_node_does_not_answer_to_the_mirror_image_of_its_id() {
    let (one, other) = ends();
    let mut mirrored = *other.node_id().as_bytes();
    mirrored[31] ^= 0x80;
    let mirrored = NodeId::new(mirrored);
    let dialled = prologue::lan(&one.node_id(), &mirrored);
    let mut initiator = Initiator::new(&one, &mirrored, None, &dialled).unwrap();
    let first = initiator.write(b"").unwrap();
    let own = prologue::lan(&one.node_id(), &other.node_id());
    let mut responder = Responder::new(&other, None, &own).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::Unauthentic));
}

#[test]
fn a_message_is_worth_nothing_under_another_prologue() {
    let (one, other) = ends();
    let (id, peer) = (one.node_id(), other.node_id());
    let bound = prologue::relay(&id, &peer, "0b");
    for prologue in [
        prologue::lan(&id, &peer),
        prologue::relay(&peer, &id, "0b"),
        prologue::relay(&id, &peer, "0c"),
    ] {
        let mut initiator = Initiator::new(&one, &peer, None, &bound).unwrap();
        let first = initiator.write(b"").unwrap();
        let mut responder = Responder::new(&other, None, &prologue).unwrap();
        assert_eq!(responder.read(&first, &id), Err(SealError::Unauthentic));
    }
}

#[test]
fn replaying_the_first_message_gives_no_usable_link() {
    let (one, other) = ends();
    let prologue = prologue::lan(&one.node_id(), &other.node_id());
    let mut initiator = Initiator::new(&one, &other.node_id(), None, &prologue).unwrap();
    let first = initiator.write(b"").unwrap();
    let answers = [0, 1].map(|_| {
        let mut responder = Responder::new(&other, None, &prologue).unwrap();
        responder.read(&first, &one.node_id()).unwrap();
        responder.finish(b"").unwrap()
    });
    let [(second, _), (_, replayed)] = answers;
    let (mut sealer, _) = initiator.finish(&second).unwrap().0.split();
    let (_, mut opener) = replayed.split();
    let record = sealer.counted(b"").unwrap();
    assert_eq!(opener.counted(&record), Err(SealError::Unauthentic));
    assert!(!opener.is_proven());
}

#[test]
fn payloads_have_a_limit_that_can_be_reached() {
    let (one, other) = ends();
    let longest = vec![7; MAX_HANDSHAKE_PAYLOAD];
    let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
    let mut responder = Responder::new(&other, None, b"").unwrap();
    let too_long = initiator.write(&[&longest[..], b"7"].concat());
    assert!(matches!(too_long, Err(SealError::TooLarge { .. })));
    let first = initiator.write(&longest).unwrap();
    assert_eq!(first.len(), 65_535);
    assert_eq!(responder.read(&first, &one.node_id()).unwrap(), longest);
    let (second, _) = responder.finish(&longest).unwrap();
    assert_eq!(initiator.finish(&second).unwrap().1, longest);
}

#[test]
fn messages_of_lengths_that_none_has_are_refused() {
    let (one, other) = ends();
    for length in [0, 31, 32, 79, 95, 65_536, 1 << 20] {
        let mut responder = Responder::new(&other, None, b"").unwrap();
        let refused = responder.read(&vec![9; length], &one.node_id());
        assert!(
            matches!(refused, Err(SealError::Malformed(_) | SealError::Unauthentic)),
            "{length}: {refused:?}"
        );
        let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
        initiator.write(b"").unwrap();
        assert!(initiator.finish(&vec![9; length]).is_err(), "{length}");
    }
}

#[test]
fn keys_of_small_order_are_refused_in_messages_and_as_ids() {
    let (one, other) = ends();
    let mut initiator = Initiator::new(&one, &other.node_id(), None, b"").unwrap();
    let mut first = initiator.write(b"").unwrap();
    first[..32].fill(0);
    let mut responder = Responder::new(&other, None, b"").unwrap();
    assert!(matches!(responder.read(&first, &one.node_id()), Err(SealError::Malformed(_))));
    assert!(matches!(initiator.finish(&[0; 48]), Err(SealError::Malformed(_))));
    let nobody = NodeId::new([0; 32]);
    let refused = Initiator::new(&one, &nobody, None, b"").unwrap_err();
    assert_eq!(refused, SealError::NotAKey(nobody));
    assert_eq!(responder.read(&first, &nobody), Err(SealError::NotAKey(nobody)));
}

#[test]
fn steps_in_another_order_are_refused() {
    let (one, other) = ends();
    let initiator = || Initiator::new(&one, &other.node_id(), None, b"").unwrap();
    assert_eq!(initiator().finish(&[9; 48]).unwrap_err(), SealError::OutOfTurn);
    let mut twice = initiator();
    let first = twice.write(b"").unwrap();
    assert_eq!(twice.write(b""), Err(SealError::OutOfTurn));
    let mut responder = Responder::new(&other, None, b"").unwrap();
    responder.read(&first, &one.node_id()).unwrap();
    assert_eq!(responder.read(&first, &one.node_id()), Err(SealError::OutOfTurn));
    let early = Responder::new(&other, None, b"").unwrap();
    assert_eq!(early.finish(b"").unwrap_err(), SealError::OutOfTurn);
}

/// Anybody's Noise understands ours: a handshake and a record with the library alone.
#[test]
fn it_is_standard_noise() {
    let (one, other) = ends();
    let public = curve::static_public(&other.node_id()).unwrap();
    let mut theirs = Builder::new("Noise_IK_25519_ChaChaPoly_BLAKE2s".parse().unwrap())
        .local_private_key(&*one.static_private())
        .unwrap()
        .remote_public_key(&public)
        .unwrap()
        .prologue(b"p")
        .unwrap()
        .build_initiator()
        .unwrap();
    let (mut message, mut buffer) = ([0; 256], [0; 256]);
    let length = theirs.write_message(b"hi", &mut message).unwrap();
    let mut ours = Responder::new(&other, None, b"p").unwrap();
    assert_eq!(ours.read(&message[..length], &one.node_id()).unwrap(), b"hi");
    let (second, sealed) = ours.finish(b"ho").unwrap();
    theirs.read_message(&second, &mut buffer).unwrap();
    let theirs = theirs.into_stateless_transport_mode().unwrap();
    let (mut sealer, mut opener) = sealed.split();
    let record = sealer.counted(b"there").unwrap();
    let length = theirs.read_message(0, &record[8..], &mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"\0there");
    let length = theirs.write_message(0, b"\0back", &mut message).unwrap();
    assert_eq!(opener.record(&message[..length]).unwrap().unwrap(), "back");
}

//! Frames, fragments and openings, byte for byte and with any bytes.

use base::NodeId;
use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use crate::workspace::{
    limits::{CARRIED_MAX, CARRIERS_MAX, FRAGMENT_MAX, REPLICA_MAX, SEALED_MESSAGE_MAX},
    peer::sealed::{
        BadLong, BadOpening, BadSealedFrame as Bad, Carried, CreditOf, Fragment, Opening, PskLabel,
        SealedFrame as F, Whole, fragments,
    },
};

fn fragment(channel: u32, bytes: &'static [u8]) -> Fragment {
    Fragment { channel, is_text: false, more: false, bytes: Bytes::from_static(bytes) }
}

fn zeros(length: usize) -> Bytes {
    Bytes::from(vec![0; length])
}

#[test]
fn frames_byte_for_byte() {
    let carried = Carried { hops: 3, to: "bb".into(), from: "a".into(), bytes: zeros(1) };
    let text = Fragment { is_text: true, more: true, ..fragment(1, b"{") };
    let frames: [(F, &[u8]); 7] = [
        (F::Message("{}".into()), b"\0\0\0\0\0{}"),
        (F::Stream(fragment(0x0102, b"\x01x")), b"\x01\x02\x01\0\0\0\x01x"),
        (F::Long(text), b"\x02\x01\0\0\0\x03{"),
        (F::Replica(zeros(2)), b"\x03\0\0\0\0\0\0"),
        (
            F::Credit { channel: 5, of: CreditOf::Stream, bytes: 258 },
            b"\x04\x05\0\0\0\x01\x02\x01\0\0",
        ),
        (F::Credit { channel: 5, of: CreditOf::Long, bytes: 1 }, b"\x04\x05\0\0\0\x02\x01\0\0\0"),
        (F::Carried(carried), b"\x05\0\0\0\0\x03\x02bb\x01a\0"),
    ];
    for (frame, wire) in frames {
        assert_eq!(frame.clone().encode(), wire);
        assert_eq!(F::decode(Bytes::from_static(wire)), Ok(frame));
    }
}

#[test]
fn every_frame_has_a_length() {
    let carried = |length| {
        F::Carried(Carried {
            hops: CARRIERS_MAX,
            to: "b".repeat(128),
            from: "a".into(),
            bytes: zeros(length),
        })
    };
    let part = |length| Fragment { bytes: zeros(length), ..fragment(1, b"") };
    let kinds: [(&dyn Fn(usize) -> F, usize); 5] = [
        (&|length| F::Message("x".repeat(length)), SEALED_MESSAGE_MAX),
        (&|length| F::Stream(part(length)), FRAGMENT_MAX),
        (&|length| F::Long(part(length)), FRAGMENT_MAX),
        (&|length| F::Replica(zeros(length)), REPLICA_MAX),
        (&carried, CARRIED_MAX),
    ];
    for (frame, max) in kinds {
        assert_eq!(F::decode(frame(max).encode()), Ok(frame(max)));
        assert_eq!(F::decode(frame(max + 1).encode()), Err(Bad::TooLong(max)));
    }
}

#[test]
fn wrong_frames_have_names() {
    let read = |wire: &'static [u8]| F::decode(Bytes::from_static(wire)).unwrap_err();
    assert_eq!(read(b""), Bad::CutOff);
    assert_eq!(read(b"\x00\0\0\0"), Bad::CutOff);
    assert_eq!(read(b"\x06\0\0\0\0"), Bad::UnknownKind(6));
    assert_eq!(read(b"\x00\0\0\0\0\xff"), Bad::Wrong);
    assert_eq!(read(b"\x01\0\0\0\0"), Bad::CutOff);
    assert_eq!(read(b"\x01\0\0\0\0\x04"), Bad::Wrong);
    assert_eq!(read(b"\x04\0\0\0\0\x03\0\0\0\0"), Bad::Wrong);
    assert_eq!(read(b"\x04\0\0\0\0\x01\0\0\0\0\0"), Bad::Wrong);
    assert_eq!(read(b"\x04\0\0\0\0\x01\0\0\0"), Bad::CutOff);
    assert_eq!(read(b"\x05\0\0\0\0\x05\x01b\x01a"), Bad::Wrong);
    assert_eq!(read(b"\x05\0\0\0\0\x01\x00\x01a"), Bad::Wrong);
    assert_eq!(read(b"\x05\0\0\0\0\x01\x01\x1b\x01a"), Bad::Wrong);
    assert_eq!(read(b"\x05\0\0\0\0\x01\x01b\x02a"), Bad::CutOff);
}

#[test]
fn a_whole_has_a_length_and_one_kind() {
    let part = |is_text: bool, more: bool, bytes: &'static [u8]| Fragment {
        is_text,
        more,
        ..fragment(1, bytes)
    };
    let mut whole = Whole::new(4);
    assert_eq!(whole.push(part(true, true, b"\xc3")), Ok(None));
    assert_eq!(whole.held(), 1);
    assert_eq!(whole.push(part(true, false, b"\xa9")), Ok(Some((true, "é".into()))));
    assert_eq!(whole.push(part(false, true, b"ab")), Ok(None));
    assert_eq!(whole.push(part(false, true, b"abc")), Err(BadLong::TooLong(4)));
    assert_eq!(whole.push(part(true, true, b"a")), Err(BadLong::Mixed));
    let mut other = Whole::new(4);
    assert_eq!(other.push(part(true, false, b"\xc3")), Err(BadLong::NotUtf8));
}

#[test]
fn an_opening_byte_for_byte() {
    let (key, handshake) = (NodeId::new([7; 32]), Bytes::from_static(b"noise"));
    let cluster = Opening { label: PskLabel::Cluster, key, handshake: handshake.clone() };
    assert_eq!(cluster.encode(), [b"\x01\x00", &[7; 32][..], b"noise"].concat());
    let invite = Opening { label: PskLabel::Invite([2; 8]), key, handshake };
    assert_eq!(invite.encode(), [b"\x01\x01", &[2; 8][..], &[7; 32], b"noise"].concat());
    let read = |wire: &'static [u8]| Opening::decode(Bytes::from_static(wire)).unwrap_err();
    assert_eq!(read(b""), BadOpening::CutOff);
    assert_eq!(read(b"{\"type\":\"peer_hello\"}"), BadOpening::UnknownVersion(b'{'));
    assert_eq!(read(b"\x01\x02"), BadOpening::UnknownLabel(2));
    assert_eq!(read(b"\x01\x01\x02"), BadOpening::CutOff);
    assert_eq!(read(b"\x01\x00\x02"), BadOpening::CutOff);
    let long = Opening { handshake: zeros(65_536), ..cluster };
    assert_eq!(Opening::decode(long.encode()), Err(BadOpening::TooLong));
}

fn frames() -> impl Strategy<Value = F> {
    let bytes = || vec(any::<u8>(), 0..64).prop_map(Bytes::from);
    let part = || {
        (any::<u32>(), any::<bool>(), any::<bool>(), bytes())
            .prop_map(|(channel, is_text, more, bytes)| Fragment { channel, is_text, more, bytes })
    };
    let of = prop_oneof![Just(CreditOf::Stream), Just(CreditOf::Long)];
    prop_oneof![
        any::<String>().prop_map(F::Message),
        part().prop_map(F::Stream),
        part().prop_map(F::Long),
        bytes().prop_map(F::Replica),
        (any::<u32>(), of, any::<u32>()).prop_map(|(channel, of, bytes)| F::Credit {
            channel,
            of,
            bytes
        }),
        (0..=CARRIERS_MAX, "[a-zé]{1,40}", "[a-zé]{1,40}", bytes())
            .prop_map(|(hops, to, from, bytes)| F::Carried(Carried { hops, to, from, bytes })),
    ]
}

proptest! {
    #[test]
    fn a_frame_is_read_as_it_was_written(frame in frames()) {
        prop_assert_eq!(F::decode(frame.clone().encode()), Ok(frame));
    }

    #[test]
    fn bytes_that_are_read_are_written_the_same(kind in 0..7_u8, bytes: Vec<u8>) {
        let wire = Bytes::from([&[kind], &bytes[..]].concat());
        if let Ok(F::Message(text)) = F::decode(wire.clone()) {
            prop_assert_eq!(text.as_bytes(), &wire[5..]);
        }
        if let Ok(opening) = Opening::decode(wire.clone()) {
            prop_assert_eq!(opening.encode(), wire);
        }
    }

    #[test]
    fn a_whole_is_as_it_was_before_it_was_cut(length in 0..200_000_usize, is_text: bool) {
        let content = Bytes::from(vec![b'x'; length]);
        let parts: Vec<_> = fragments(3, is_text, content.clone()).collect();
        prop_assert_eq!(parts.len(), length.div_ceil(FRAGMENT_MAX).max(1));
        let mut whole = Whole::new(length);
        let mut read = Vec::new();
        for part in parts {
            read.extend(whole.push(part).unwrap());
        }
        prop_assert_eq!(read, vec![(is_text, content)]);
        prop_assert_eq!(whole.held(), 0);
    }
}

//! Records that are opened, those that are refused, and what a refusal leaves behind.

use super::*;
use crate::{MAX_COUNTED_PIECE, Sealer, sealed::tests::link};

fn ordered(sealer: &mut Sealer, more: bool, plaintext: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    sealer.record(more, plaintext, &mut out).unwrap();
    out.split_off(4)
}

fn opened(payload: &'static [u8]) -> Result<Option<Bytes>, SealError> {
    Ok(Some(Bytes::from_static(payload)))
}

#[test]
fn a_payload_is_given_whole_and_nothing_before() {
    let (mut sealer, mut opener) = link();
    assert!(!opener.is_proven());
    assert_eq!(opener.record(&ordered(&mut sealer, true, b"one ")), Ok(None));
    assert!(opener.is_proven());
    assert_eq!(opener.record(&ordered(&mut sealer, true, b"two ")), Ok(None));
    assert_eq!(opener.record(&ordered(&mut sealer, false, b"three")), opened(b"one two three"));
    assert_eq!(opener.record(&ordered(&mut sealer, false, b"")), opened(b""));
    assert_eq!(opener.record(&ordered(&mut sealer, true, b"end")), Ok(None));
    assert_eq!(opener.record(&ordered(&mut sealer, false, b"")), opened(b"end"));
}

#[test]
fn an_ordered_link_ends_with_the_first_record_that_is_refused() {
    let (mut sealer, mut opener) = link();
    let records = [b"0", b"1"].map(|text| ordered(&mut sealer, false, text));
    assert_eq!(opener.record(&records[1]), Err(SealError::Unauthentic));
    assert_eq!(opener.record(&records[0]), Err(SealError::Broken));
    assert_eq!((opener.refused(), opener.is_proven()), (1, false));
}

#[test]
fn a_counted_link_survives_what_is_refused() {
    let (mut sealer, mut opener) = link();
    let records = [b"0", b"1", b"2"].map(|text| sealer.counted(text).unwrap());
    assert_eq!(opener.counted(&records[0]), opened(b"0"));
    let replayed = SealError::Replayed { counter: 0, expected: 1 };
    assert_eq!(opener.counted(&records[0]), Err(replayed));
    let renumbered = [&2_u64.to_le_bytes(), &records[1][8..]].concat();
    assert_eq!(opener.counted(&renumbered), Err(SealError::Unauthentic));
    assert_eq!(opener.counted(&records[1]), opened(b"1"));
    assert_eq!(opener.counted(&records[2]), opened(b"2"));
    assert_eq!((opener.refused(), opener.lost()), (2, 0));
}

#[test]
fn an_overtaken_record_comes_too_late() {
    let (mut sealer, mut opener) = link();
    let records = [b"0", b"1", b"2"].map(|text| sealer.counted(text).unwrap());
    assert_eq!(opener.counted(&records[2]), opened(b"2"));
    let late = SealError::Replayed { counter: 1, expected: 3 };
    assert_eq!(opener.counted(&records[1]), Err(late));
    assert_eq!((opener.refused(), opener.lost()), (1, 2));
}

#[test]
fn a_forgery_between_two_pieces_does_not_harm_the_payload() {
    let (mut sealer, mut opener) = link();
    let payload = vec![7; 2 * MAX_COUNTED_PIECE];
    let pieces = sealer.counted_pieces(&payload).unwrap();
    assert_eq!(opener.counted(&pieces[0]), Ok(None));
    let mut forged = pieces[1].clone();
    forged[100] ^= 1;
    assert_eq!(opener.counted(&forged), Err(SealError::Unauthentic));
    assert!(opener.counted(&pieces[0]).is_err());
    assert_eq!(opener.counted(&pieces[1]), Ok(Some(payload.into())));
}

#[test]
fn a_payload_that_lost_a_piece_is_gone_and_the_next_one_is_not() {
    for lost in 0..3 {
        let (mut sealer, mut opener) = link();
        let mut pieces = sealer.counted_pieces(&vec![7; 3 * MAX_COUNTED_PIECE]).unwrap();
        pieces.remove(lost);
        let answers: Vec<_> = pieces.iter().map(|piece| opener.counted(piece)).collect();
        assert!(answers.iter().all(|answer| !matches!(answer, Ok(Some(_)))), "{answers:?}");
        let next = sealer.counted(b"next").unwrap();
        assert_eq!(opener.counted(&next), opened(b"next"), "without {lost}");
        assert_eq!(opener.lost(), 1);
    }
}

#[test]
fn two_halves_of_two_payloads_are_no_payload() {
    let (mut sealer, mut opener) = link();
    let mut pieces = [1, 2].map(|byte| {
        let pieces = sealer.counted_pieces(&vec![byte; MAX_COUNTED_PIECE + 5]).unwrap();
        <[Vec<u8>; 2]>::try_from(pieces).unwrap()
    });
    let [[head, _], [_, tail]] = &mut pieces;
    assert_eq!(opener.counted(head), Ok(None));
    assert_eq!(opener.counted(tail), Err(SealError::Incomplete));
    let whole = vec![3; MAX_COUNTED_PIECE + 5];
    let pieces = sealer.counted_pieces(&whole).unwrap();
    assert_eq!(opener.counted(&pieces[0]), Ok(None));
    assert_eq!(opener.counted(&pieces[1]), Ok(Some(whole.into())));
}

#[test]
fn a_payload_of_16_mib_arrives_and_one_byte_more_does_not() {
    let (mut sealer, mut opener) = link();
    let piece = vec![7; 65_518];
    for more in [0, 1] {
        let mut rest = MAX_PAYLOAD;
        while rest > piece.len() {
            let record = ordered(&mut sealer, true, &piece);
            assert_eq!(opener.record(&record), Ok(None));
            rest -= piece.len();
        }
        let last = opener.record(&ordered(&mut sealer, false, &vec![7; rest + more]));
        match more {
            0 => assert_eq!(last.unwrap().unwrap().len(), MAX_PAYLOAD),
            _ => assert!(matches!(last, Err(SealError::TooLarge { .. }))),
        }
    }
    assert_eq!(opener.gathered.capacity(), 0);
}

#[test]
fn a_counted_payload_over_16_mib_is_dropped_and_the_next_one_arrives() {
    let (mut sealer, mut opener) = link();
    let mut bad_piece = |kind: u8| {
        let mut record = sealer.next_number().to_vec();
        sealer.seal_kind(kind, &vec![7; MAX_COUNTED_PIECE], &mut record);
        record
    };
    let mut answers = vec![opener.counted(&bad_piece(part::MORE))];
    while answers.last() == Some(&Ok(None)) {
        answers.push(opener.counted(&bad_piece(part::MORE | part::CONTINUES)));
        assert!(opener.gathered.capacity() <= 2 * MAX_PAYLOAD + MAX_RECORD);
    }
    assert!(matches!(answers.last(), Some(Err(SealError::TooLarge { .. }))));
    assert_eq!(answers.len(), MAX_PAYLOAD / MAX_COUNTED_PIECE + 1);
    let late = bad_piece(part::CONTINUES);
    assert_eq!(opener.counted(&late), Err(SealError::Incomplete));
    let next = sealer.counted(b"next").unwrap();
    assert_eq!(opener.counted(&next), opened(b"next"));
}

#[test]
fn records_that_no_sealer_makes_are_refused() {
    let kinds: [(u8, &[u8]); 3] = [(4, b"x"), (0xff, b"x"), (part::MORE, b"")];
    for (kind, plaintext) in kinds {
        let (mut sealer, mut opener) = link();
        let mut record = sealer.next_number().to_vec();
        sealer.seal_kind(kind, plaintext, &mut record);
        assert!(matches!(opener.counted(&record), Err(SealError::Malformed(_))));
        let (mut sealer, mut opener) = link();
        let mut record = Vec::new();
        sealer.seal_kind(kind, plaintext, &mut record);
        assert!(matches!(opener.record(&record), Err(SealError::Malformed(_))));
    }
    let (mut sealer, mut opener) = link();
    let mut record = Vec::new();
    sealer.seal_kind(part::CONTINUES, b"x", &mut record);
    assert!(matches!(opener.record(&record), Err(SealError::Malformed(_))));
}

#[test]
fn lengths_that_no_record_has_are_refused() {
    for length in [0, 1, 16, MAX_RECORD + 1] {
        let (_, mut opener) = link();
        let numbered = vec![0; 8 + length];
        assert!(matches!(opener.record(&numbered[8..]), Err(SealError::Malformed(_))));
        assert!(matches!(opener.counted(&numbered), Err(SealError::Malformed(_))));
        assert!(matches!(opener.counted(&[0; 7]), Err(SealError::Malformed(_))));
    }
}

#[test]
fn numbers_that_nobody_reaches_are_refused() {
    let (_, mut opener) = link();
    for number in [LAST_COUNTER, u64::MAX] {
        let record = [&number.to_le_bytes()[..], &[0; 32]].concat();
        assert!(matches!(opener.counted(&record), Err(SealError::Malformed(_))));
    }
    opener.next = LAST_COUNTER;
    assert_eq!(opener.record(&[0; 32]), Err(SealError::Exhausted));
}

#[test]
fn forgeries_cannot_be_tried_for_ever() {
    let (mut sealer, mut opener) = link();
    opener.refused = MAX_REFUSED;
    let record = sealer.counted(b"good").unwrap();
    assert_eq!(opener.counted(&record), Err(SealError::Exhausted));
}

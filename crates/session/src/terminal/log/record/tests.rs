//! Written records are read again; of a torn segment, the sound beginning is read.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use super::{super::MAX_CHUNK, *};

fn chunk(seq: u64, text: &str) -> Chunk {
    Chunk { seq, text: Bytes::copy_from_slice(text.as_bytes()) }
}

fn segment(first: u64, chunks: &[Chunk]) -> BytesMut {
    let mut segment = BytesMut::from(&header(first)[..]);
    chunks.iter().for_each(|chunk| encode(chunk, &mut segment));
    segment
}

fn drain(reader: &mut Reader) -> Vec<Chunk> {
    std::iter::from_fn(|| reader.next_chunk()).collect()
}

fn read(segment: &[u8]) -> (Vec<Chunk>, Reader) {
    let mut reader = Reader::new();
    reader.push(segment);
    (drain(&mut reader), reader)
}

#[test]
fn the_form_is_this_one() {
    let segment = segment(7, &[chunk(7, "hé")]);
    let expected: &[u8] = b"warren-s\0\0\0\x01\0\0\0\0\0\0\0\x07\
        \0\0\0\x03\xff\x49\x8c\x0c\0\0\0\0\0\0\0\x07h\xc3\xa9";
    assert_eq!(segment, expected);
}

#[test]
fn numbers_may_leave_a_gap_and_never_go_back() {
    let gap = [chunk(5, "a"), chunk(6, "b"), chunk(1 << 40, "c")];
    let (chunks, reader) = read(&segment(5, &gap));
    assert_eq!((chunks, reader.first_seq(), reader.fault()), (gap.to_vec(), Some(5), None));
    for wrong in [[chunk(5, "a"), chunk(5, "b")], [chunk(6, "a"), chunk(5, "b")]] {
        let (chunks, reader) = read(&segment(5, &wrong));
        assert_eq!(chunks, wrong[..1]);
        assert_eq!(reader.fault(), Some(Fault::Record { at: HEADER as u64 + 17 }));
        assert_eq!(reader.sound_bytes(), HEADER as u64 + 17);
    }
    assert!(read(&segment(5, &[chunk(4, "a")])).0.is_empty());
}

#[test]
fn another_file_and_another_version_are_told_apart() {
    assert_eq!(read(b"#!/bin/sh").1.fault(), Some(Fault::Magic));
    let mut newer = segment(1, &[chunk(1, "a")]);
    newer[11] = 2;
    assert_eq!(read(&newer).1.fault(), Some(Fault::Version(2)));
    assert_eq!(read(b"warr").1.fault(), None);
    assert_eq!(read(b"").1.sound_bytes(), 0);
}

#[test]
fn zeros_too_long_a_text_and_text_that_is_none_are_damage() {
    let sound = segment(1, &[chunk(1, "a")]);
    let at = sound.len() as u64;
    let zeros = [&sound[..], &[0; 64]].concat();
    let long = [&sound[..], &(MAX_CHUNK as u32 + 1).to_be_bytes(), &[0; 12]].concat();
    let mut no_text = sound.clone();
    encode(&Chunk { seq: 2, text: Bytes::from_static(b"\xff") }, &mut no_text);
    for damaged in [&zeros[..], &long, &no_text] {
        let (chunks, mut reader) = read(damaged);
        assert_eq!(chunks, [chunk(1, "a")]);
        assert_eq!((reader.fault(), reader.sound_bytes()), (Some(Fault::Record { at }), at));
        reader.push(&sound);
        assert_eq!(reader.next_chunk(), None);
    }
}

#[test]
fn the_largest_chunk_is_read_as_written() {
    let largest = Chunk { seq: 1, text: Bytes::from(vec![b'x'; MAX_CHUNK]) };
    assert_eq!(read(&segment(1, std::slice::from_ref(&largest))).0, [largest]);
}

fn chunks() -> impl Strategy<Value = Vec<Chunk>> {
    vec((1_u64..5, "\\PC{1,20}"), 0..20).prop_map(|steps| {
        let mut seq = 0;
        let numbered = steps.into_iter().map(|(step, text)| {
            seq += step;
            chunk(seq, &text)
        });
        numbered.collect()
    })
}

proptest! {
    #[test]
    fn read_in_any_pieces_it_is_what_was_written(chunks in chunks(), piece in 1_usize..100) {
        let segment = segment(1, &chunks);
        let mut reader = Reader::new();
        let mut got = Vec::new();
        for bytes in segment.chunks(piece) {
            reader.push(bytes);
            got.extend(drain(&mut reader));
        }
        prop_assert_eq!(got, chunks);
        prop_assert_eq!(reader.sound_bytes(), segment.len() as u64);
        prop_assert_eq!(reader.fault(), None);
    }

    /// The segment is cut anywhere and followed by garbage: the whole records before the cut are
    /// read, and records can be appended at the end of the sound bytes.
    #[test]
    fn a_torn_tail_loses_only_itself(
        chunks in chunks(),
        cut in any::<prop::sample::Index>(),
        garbage in vec(any::<u8>(), 0..60),
    ) {
        let whole = segment(1, &chunks);
        let cut = cut.index(whole.len() + 1);
        let (got, reader) = read(&[&whole[..cut], &garbage[..]].concat());
        let sound = reader.sound_bytes() as usize;
        let survived = got.len().min(chunks.len());
        prop_assert_eq!(&got[..survived], &chunks[..survived]);
        let certain = read(&whole[..cut]).0.len();
        prop_assert!(survived >= certain);
        if sound <= cut && sound >= HEADER {
            let mut mended = BytesMut::from(&whole[..sound]);
            chunks[certain..].iter().for_each(|chunk| encode(chunk, &mut mended));
            prop_assert_eq!(mended, whole);
        }
    }

    #[test]
    fn a_changed_bit_is_found(
        chunks in chunks(),
        at in any::<prop::sample::Index>(),
        bit in 0_u8..8,
    ) {
        let mut segment = segment(1, &chunks);
        let at = at.index(segment.len());
        segment[at] ^= 1_u8 << bit;
        let (got, reader) = read(&segment);
        let before = got.iter().zip(&chunks).take_while(|(one, other)| one == other).count();
        prop_assert_eq!(before, got.len());
        prop_assert!(at >= HEADER || reader.fault().is_some() || (12..HEADER).contains(&at));
        prop_assert!(at < HEADER || reader.sound_bytes() <= at as u64);
    }

    #[test]
    fn of_garbage_nothing_is_read_that_was_not_written(
        garbage in vec(any::<u8>(), 0..500),
        piece in 1_usize..100,
    ) {
        let file = [&header(0)[..], &garbage].concat();
        let mut reader = Reader::new();
        let mut sound = BytesMut::from(&header(0)[..]);
        for bytes in file.chunks(piece) {
            reader.push(bytes);
            drain(&mut reader).iter().for_each(|chunk| encode(chunk, &mut sound));
        }
        prop_assert!(reader.first_seq().is_some());
        prop_assert_eq!(&file[..reader.sound_bytes() as usize], &sound[..]);
        let garbage = read(&garbage);
        prop_assert!(garbage.0.is_empty());
        prop_assert_eq!(garbage.1.sound_bytes(), 0);
    }
}

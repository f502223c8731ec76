//! Journals over the deaths of their daemons.

use std::{fs::File, sync::Arc};

use bytes::BytesMut;
use proptest::prelude::*;

use super::{layout::TERMINAL_RING, *};

fn journal() -> (File, Arc<Journal>) {
    let file = create(TERMINAL_RING).unwrap();
    let journal = Journal::open(file.try_clone().unwrap().into()).unwrap();
    (file, journal)
}

/// The next daemon's journal.
fn reopened(file: &File) -> Arc<Journal> {
    Journal::open(file.try_clone().unwrap().into()).unwrap()
}

fn read(reader: &mut JournalReader, bytes: &[u8]) -> Vec<u8> {
    let mut into = BytesMut::new();
    let read = |piece: &mut [u8]| {
        piece[..bytes.len()].copy_from_slice(bytes);
        Ok(bytes.len())
    };
    reader.read(&mut into, read).unwrap();
    into.to_vec()
}

fn left(journal: &Arc<Journal>) -> Vec<u8> {
    let mut reader = JournalReader::new(Arc::clone(journal)).unwrap();
    reader.left(usize::MAX).to_vec()
}

#[test]
fn what_was_read_and_not_taken_is_left_for_the_next_daemon() {
    let (file, journal) = journal();
    let mut reader = JournalReader::new(Arc::clone(&journal)).unwrap();
    assert_eq!(read(&mut reader, b"taken, "), b"taken, ");
    read(&mut reader, b"left");
    journal.note(7, 9, b"one").unwrap();
    assert_eq!(left(&reopened(&file)), b"left");
    assert_eq!(
        reopened(&file).notes().unwrap(),
        [Note { taken: 7, mark: 9, text: b"one".to_vec() }]
    );
}

#[test]
fn a_read_counts_though_the_daemon_was_killed_before_it_noted_it() {
    let (file, journal) = journal();
    let mut reader = JournalReader::new(Arc::clone(&journal)).unwrap();
    read(&mut reader, b"noted ");
    // The kernel has filled the piece, and the daemon is dead before `read` returns to it.
    let killed = |piece: &mut [u8]| {
        piece[..5].copy_from_slice(b"a\0b\0c");
        Err(io::ErrorKind::Other.into())
    };
    assert!(reader.read(&mut BytesMut::new(), killed).is_err());
    let mut held = HeldOutput::begin(&file).unwrap();
    held.append(b" held").unwrap();
    assert_eq!(left(&reopened(&file)), b"noted a\0b\0c held");
}

#[test]
fn a_second_daemon_that_is_killed_in_the_takeover_leaves_the_same() {
    let (file, journal) = journal();
    drop(JournalReader::new(journal).unwrap());
    let mut held = HeldOutput::begin(&file).unwrap();
    held.append(b"one ").unwrap();
    assert_eq!(left(&reopened(&file)), b"one ");
    let mut held = HeldOutput::begin(&file).unwrap();
    held.append(b"two").unwrap();
    let journal = reopened(&file);
    assert_eq!(left(&journal), b"one two");
    journal.note(4, 9, b"").unwrap();
    assert_eq!(left(&reopened(&file)), b"two");
}

#[test]
fn a_dropped_note_is_gone_and_still_tells_how_much_was_taken() {
    let (file, journal) = journal();
    let mut reader = JournalReader::new(Arc::clone(&journal)).unwrap();
    read(&mut reader, b"abc");
    let first = journal.note(1, 9, b"first").unwrap();
    let second = journal.note(2, 9, b"second").unwrap();
    journal.drop_notes(first).unwrap();
    assert_eq!(reopened(&file).notes().unwrap().len(), 1);
    journal.drop_notes(second).unwrap();
    assert_eq!(reopened(&file).notes().unwrap(), []);
    assert_eq!(left(&reopened(&file)), b"c");
}

#[test]
fn notes_that_nobody_drops_stay_within_their_bound() {
    let (file, journal) = journal();
    let long = vec![7; 64 * 1024];
    for _ in 0..3 * MOST_NOTES / long.len() as u64 {
        journal.note(0, 9, &long).unwrap();
        assert!(journal.get(Word::NotesEnd) - journal.get(Word::NotesFrom) <= MOST_NOTES);
    }
    let notes = reopened(&file).notes().unwrap();
    assert!(!notes.is_empty() && notes.iter().all(|note| note.text == long));
}

#[test]
fn a_state_is_the_newest_that_was_kept_whole_and_one_that_is_too_long_is_none() {
    let (file, journal) = journal();
    assert_eq!(journal.state().unwrap(), None);
    for state in [&b"one"[..], b"two", b"three"] {
        assert!(journal.keep_state(state).unwrap());
        assert_eq!(reopened(&file).state().unwrap().as_deref(), Some(state));
    }
    assert!(!journal.keep_state(&vec![0; MOST_STATE + 1]).unwrap());
    assert_eq!(reopened(&file).state().unwrap(), None);
}

#[test]
fn a_write_that_was_cut_off_is_known_as_such() {
    let (file, journal) = journal();
    assert_eq!(journal.written(), Some(0));
    journal.writes(10);
    assert_eq!(reopened(&file).written(), None);
    journal.wrote(4);
    assert_eq!(reopened(&file).written(), Some(4));
}

proptest! {
    /// Reads, notes, deaths of the daemon and output that the supervisor holds, in any order: every
    /// byte is taken once.
    #[test]
    fn every_byte_is_taken_once(
        steps in prop::collection::vec((0_u8..5, prop::collection::vec(0_u8..255, 1..4000)), 1..200),
    ) {
        let file = create(TERMINAL_RING).unwrap();
        let (mut written, mut taken) = (Vec::new(), Vec::new());
        let mut journal = reopened(&file);
        let mut reader = JournalReader::new(Arc::clone(&journal)).unwrap();
        let mut held: Option<HeldOutput> = None;
        for (step, bytes) in steps {
            match (step, &mut held) {
                (0, None) => held = Some(HeldOutput::begin(&file).unwrap()),
                (0, Some(_)) => {
                    held = None;
                    journal = reopened(&file);
                    reader = JournalReader::new(Arc::clone(&journal)).unwrap();
                }
                (_, Some(held)) if held.room() >= bytes.len() => {
                    held.append(&bytes).unwrap();
                    written.extend(bytes);
                }
                (_, Some(_)) => {}
                (kind, None) => {
                    let left = reader.left(10_000);
                    let got = match left.is_empty() {
                        true => {
                            // A piece at the end of the ring is shorter than what there is to read.
                            let mut into = BytesMut::new();
                            reader.read(&mut into, |piece| {
                                let length = piece.len().min(bytes.len());
                                piece[..length].copy_from_slice(&bytes[..length]);
                                written.extend(&bytes[..length]);
                                Ok(length)
                            }).unwrap();
                            into.to_vec()
                        }
                        false => left.to_vec(),
                    };
                    // Sometimes the daemon dies right after a read.
                    match kind {
                        1 => held = Some(HeldOutput::begin(&file).unwrap()),
                        _ => {
                            taken.extend(got);
                            journal.note(taken.len() as u64, 9, b"").unwrap();
                        }
                    }
                }
            }
        }
        taken.extend(left(&reopened(&file)));
        prop_assert!(taken == written, "{} of {}", taken.len(), written.len());
    }
}

//! Which chunks a log keeps, and under which numbers.

use proptest::{collection::vec, prelude::*};

use super::*;

fn text(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn seqs(chunks: Chunks<'_>) -> Vec<u64> {
    chunks.map(|chunk| chunk.seq).collect()
}

#[test]
fn numbers_begin_at_one_and_rise_by_one() {
    let mut log = Log::default();
    assert_eq!((log.first_seq(), log.last_seq()), (1, 0));
    assert_eq!(log.append(text("a")), 1);
    assert_eq!(log.append(text("b")), 2);
    assert_eq!(log.append(Bytes::new()), 2);
    assert_eq!(seqs(log.all()), [1, 2]);
    assert_eq!(seqs(log.after(1).unwrap()), [2]);
    assert_eq!(log.after(2).unwrap().len(), 0);
}

#[test]
fn output_that_never_existed_is_gone() {
    let mut log = Log::default();
    assert!(log.after(0).is_ok());
    assert_eq!(log.after(1).unwrap_err(), OutputGone { after: 1, first: 1, last: 0 });
    log.append(text("a"));
    assert!(log.after(1).is_ok());
    assert!(log.after(u64::MAX).is_err());
    assert_eq!(log.bytes_after(u64::MAX), 0);
}

#[test]
fn the_oldest_are_dropped_at_the_bound_and_the_newest_is_always_kept() {
    let mut log = Log::new(10 * (OVERHEAD + 6));
    for _ in 0..1000 {
        log.append(text("sixsix"));
    }
    assert_eq!(seqs(log.all()), (991..=1000).collect::<Vec<_>>());
    assert!(log.size() <= 10 * (OVERHEAD + 6));
    assert!(log.after(990).is_ok());
    assert_eq!(log.after(989).unwrap_err(), OutputGone { after: 989, first: 991, last: 1000 });
    log.append(Bytes::from(vec![b'x'; 100_000]));
    assert_eq!(seqs(log.all()), [1001]);
}

#[test]
fn chunks_of_one_byte_count_for_what_they_cost() {
    let mut log = Log::new(1024 * 1024);
    for _ in 0..100_000 {
        log.append(text("x"));
    }
    assert!(log.all().len() <= 1024 * 1024 / OVERHEAD);
}

#[test]
fn a_small_chunk_does_not_keep_the_buffer_alive_that_it_came_in() {
    let buffer = Bytes::from(vec![b'x'; 64 * 1024]);
    let mut log = Log::default();
    log.append(buffer.slice(0..10));
    assert!(buffer.is_unique());
    log.append(buffer.slice(0..SMALL));
    assert!(!buffer.is_unique());
}

#[test]
fn a_large_chunk_is_not_copied_for_its_readers() {
    let buffer = Bytes::from(vec![b'x'; SMALL]);
    let mut log = Log::default();
    log.append(buffer.clone());
    let [one, other] = [(); 2].map(|()| log.all().next().unwrap().text);
    assert_eq!((one.as_ptr(), other.as_ptr()), (buffer.as_ptr(), buffer.as_ptr()));
}

#[test]
fn numbers_go_on_after_a_restart_and_never_go_back() {
    let mut log = Log::default();
    log.resume_at(0);
    assert_eq!(log.append(text("a")), 1);
    log.resume_at(41 + RESTART_GAP);
    assert_eq!((log.last_seq(), log.size()), (40 + RESTART_GAP, 0));
    assert_eq!(log.append(text("b")), 41 + RESTART_GAP);
    assert!(log.after(1).is_err());
    assert!(log.after(40).is_err());
    log.resume_at(3);
    assert_eq!(log.append(text("c")), 42 + RESTART_GAP);
    assert_eq!(log.bytes_after(41 + RESTART_GAP), 1);
    log.resume_at(u64::MAX);
    assert_eq!(log.append(text("d")), MAX_SEQ);
    assert_eq!(log.append(text("e")), MAX_SEQ + 1);
}

#[test]
fn text_longer_than_a_chunk_becomes_several_without_cutting_a_character() {
    let long = "é".repeat(MAX_CHUNK + 1) + "a" + &"€".repeat(MAX_CHUNK);
    let mut log = Log::new(8 * MAX_CHUNK);
    let last = log.append(text(&long));
    assert_eq!(last, log.all().len() as u64);
    let pieces: Vec<_> = log.all().map(|chunk| chunk.text).collect();
    assert!(pieces.iter().all(|piece| piece.len() <= MAX_CHUNK));
    let pieces: Vec<_> = pieces.iter().map(|piece| std::str::from_utf8(piece).unwrap()).collect();
    assert_eq!(pieces.concat(), long);
}

proptest! {
    /// Compares a log with a list of everything that was appended.
    #[test]
    fn it_is_the_end_of_all_that_was_appended(
        lengths in vec(1_usize..20_000, 1..30),
        bound in 1_usize..200_000,
        limit in 0_u64..100_000,
    ) {
        let mut log = Log::new(bound);
        let all: Vec<_> = (0_u8..).zip(lengths).map(|(byte, length)| vec![byte; length]).collect();
        for text in &all {
            log.append(Bytes::copy_from_slice(text));
        }
        let (first, last) = (log.first_seq(), log.last_seq());
        prop_assert_eq!(last, all.len() as u64);
        prop_assert!(log.size() <= bound || first == last);
        for seq in 0..=last + 1 {
            let is_held = seq + 1 >= first && seq <= last;
            prop_assert_eq!(log.after(seq).is_ok(), is_held);
            let Ok(chunks) = log.after(seq) else { continue };
            let expected = &all[seq as usize..];
            prop_assert_eq!(log.bytes_after(seq), expected.iter().map(Vec::len).sum::<usize>() as u64);
            prop_assert_eq!(chunks.len(), expected.len());
            prop_assert!(chunks.clone().map(|chunk| chunk.text).eq(expected));
            prop_assert!(chunks.clone().rev().map(|chunk| chunk.seq).eq((seq + 1..=last).rev()));
            let some = chunks.up_to(limit);
            let bytes: usize = some.clone().map(|chunk| chunk.text.len()).sum();
            prop_assert!(bytes as u64 <= limit || some.len() == 1);
            let next = expected.get(some.len()).map_or(u64::MAX / 2, |text| text.len() as u64);
            prop_assert!(bytes as u64 + next > limit);
            prop_assert!(!some.is_empty_when(expected.len()));
        }
    }
}

impl Chunks<'_> {
    /// Whether no chunk came although some were expected.
    fn is_empty_when(&self, expected: usize) -> bool {
        expected > 0 && self.len() == 0
    }
}

//! Output that was written is found again, whatever happened in between.

use bytes::Bytes;
use session::terminal::log::history::MAX_HISTORY;
use tempfile::TempDir;

use super::*;

const SMALL: Retention = Retention { total: 1000, segment: 200 };

fn chunk(seq: u64, length: usize) -> Chunk {
    Chunk { seq, text: Bytes::from(vec![b'a' + (seq % 26) as u8; length]) }
}

fn segments(dir: &TempDir) -> Segments {
    Segments::new(dir.path().join("session"), SMALL)
}

fn seqs(segments: &mut Segments) -> Vec<u64> {
    let mut gather = Gather::new(u64::MAX, MAX_HISTORY);
    segments.gather(&mut gather).unwrap();
    gather.finish().chunks.iter().map(|chunk| chunk.seq).collect()
}

#[test]
fn a_history_is_empty_before_the_first_output() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = segments(&dir);
    assert_eq!((segments.last_seq().unwrap(), segments.modified()), (None, None));
    assert!(seqs(&mut segments).is_empty());
    segments.remove().unwrap();
}

#[test]
fn the_next_life_finds_written_output_and_appends_to_it() {
    let dir = tempfile::tempdir().unwrap();
    segments(&dir).append(&[chunk(1, 50), chunk(2, 50)]).unwrap();
    let mut next = segments(&dir);
    assert_eq!(next.last_seq().unwrap(), Some(2));
    next.append(&[chunk(100, 50)]).unwrap();
    assert_eq!(seqs(&mut segments(&dir)), [1, 2, 100]);
}

#[test]
fn the_oldest_go_and_the_bound_holds() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = segments(&dir);
    for seq in 1..=100 {
        segments.append(&[chunk(seq, 50)]).unwrap();
    }
    let files = list(&segments.dir).unwrap();
    assert!(files.iter().map(|(_, size)| size).sum::<u64>() <= SMALL.total + SMALL.segment);
    let seqs = seqs(&mut segments);
    assert!(seqs.len() >= 8 && seqs.ends_with(&[99, 100]), "{seqs:?}");
}

#[test]
fn many_chunks_at_once_are_divided_among_segments() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = segments(&dir);
    let chunks: Vec<_> = (1..=10).map(|seq| chunk(seq, 50)).collect();
    segments.append(&chunks).unwrap();
    assert!(list(&segments.dir).unwrap().iter().all(|(_, size)| *size <= SMALL.segment + 66));
    assert_eq!(seqs(&mut segments).last(), Some(&10));
}

#[test]
fn an_interrupted_write_is_completed_later_without_duplicates() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = segments(&dir);
    let chunks: Vec<_> = (1..=4).map(|seq| chunk(seq, 50)).collect();
    // The second segment cannot be made, as on a disk that is full.
    let second = segments.path(2);
    fs::create_dir_all(&second).unwrap();
    segments.found = Some(Vec::new());
    segments.append(&chunks).unwrap_err();
    fs::remove_dir(&second).unwrap();
    segments.append(&chunks).unwrap();
    assert_eq!(seqs(&mut segments), [1, 2, 3, 4]);
}

#[test]
fn a_torn_end_is_cut_off_and_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let mut one = segments(&dir);
    one.append(&[chunk(1, 50), chunk(2, 50)]).unwrap();
    let file = one.path(1);
    let torn = fs::read(&file).unwrap();
    fs::write(&file, &torn[..torn.len() - 10]).unwrap();
    let mut next = segments(&dir);
    assert_eq!(next.last_seq().unwrap(), Some(1));
    next.append(&[chunk(9, 50)]).unwrap();
    assert_eq!(seqs(&mut segments(&dir)), [1, 9]);
}

#[test]
fn a_file_that_is_no_segment_or_none_yet_does_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    segments(&dir).append(&[chunk(1, 50)]).unwrap();
    let path = dir.path().join("session");
    fs::write(path.join("notes.txt"), "x").unwrap();
    fs::write(path.join("0002.log"), "warr").unwrap();
    let mut next = segments(&dir);
    assert_eq!(seqs(&mut next), [1]);
    next.append(&[chunk(2, 50)]).unwrap();
    assert_eq!(seqs(&mut next), [1, 2]);
}

#[test]
fn all_of_it_can_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let mut segments = segments(&dir);
    segments.append(&[chunk(1, 50)]).unwrap();
    segments.remove().unwrap();
    assert!(!segments.dir.exists());
    segments.append(&[chunk(2, 50)]).unwrap();
    assert_eq!(seqs(&mut segments), [2]);
}

//! Output before a number: from the log as far as it reaches, beyond that from disk.

use super::Chunk;

/// The most bytes that one answer has, whatever was asked for. A single chunk may be as large.
pub const MAX_HISTORY: usize = 4 * 1024 * 1024;

/// A stretch of a session's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// Its chunks, the oldest first.
    pub chunks: Vec<Chunk>,
    /// Whether older ones are kept.
    pub more: bool,
}

impl History {
    /// The numbers of its first and its last chunk, if it has any.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.chunks.first()?.seq, self.chunks.last()?.seq))
    }

    /// All its text.
    pub fn text(&self) -> String {
        let texts = self.chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.text));
        texts.collect()
    }
}

/// Gathers the newest chunks before a number, as many as fit.
///
/// It is given batches, the newest first: the log, then segments of the disk, for as long as it
/// wants them. Batches may overlap, and numbers may be missing between them.
#[derive(Debug)]
pub struct Gather {
    /// Wanted are chunks with smaller numbers than this.
    before: u64,
    /// How many bytes more.
    room: usize,
    /// The newest first.
    chunks: Vec<Chunk>,
    more: bool,
}

impl Gather {
    /// Wants chunks with numbers smaller than this, and no more bytes than this, nor than
    /// [`MAX_HISTORY`]; but one chunk, at least.
    pub fn new(before_seq: u64, max_bytes: usize) -> Self {
        let room = max_bytes.min(MAX_HISTORY);
        Self { before: before_seq, room, chunks: Vec::new(), more: false }
    }

    /// Takes what is wanted of a batch whose chunks are in order, and says whether an older batch is
    /// wanted, too.
    pub fn add(&mut self, batch: impl DoubleEndedIterator<Item = Chunk>) -> bool {
        for chunk in batch.rev() {
            if self.more {
                break;
            }
            if chunk.seq < self.before {
                self.take(chunk);
            }
        }
        !self.more
    }

    /// The gathered chunks.
    pub fn finish(mut self) -> History {
        self.chunks.reverse();
        History { chunks: self.chunks, more: self.more }
    }

    fn take(&mut self, chunk: Chunk) {
        if chunk.text.len() > self.room && !self.chunks.is_empty() {
            self.more = true;
            return;
        }
        self.room = self.room.saturating_sub(chunk.text.len());
        self.before = chunk.seq;
        self.chunks.push(chunk);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use proptest::{collection::vec, prelude::*};

    use super::*;

    fn chunk(seq: u64, length: usize) -> Chunk {
        Chunk { seq, text: Bytes::from(vec![b'a' + (seq % 26) as u8; length]) }
    }

    fn chunks(seqs: impl IntoIterator<Item = u64>) -> std::vec::IntoIter<Chunk> {
        seqs.into_iter().map(|seq| chunk(seq, 10)).collect::<Vec<_>>().into_iter()
    }

    fn seqs(history: &History) -> Vec<u64> {
        history.chunks.iter().map(|chunk| chunk.seq).collect()
    }

    #[test]
    fn the_newest_that_fit_come_in_order_and_older_ones_are_told_of() {
        let mut gather = Gather::new(9, 30);
        assert!(!gather.add(chunks(1..=10)));
        let history = gather.finish();
        assert_eq!((seqs(&history), history.more), (vec![6, 7, 8], true));
        assert_eq!(history.range(), Some((6, 8)));
        assert_eq!(history.text().len(), 30);
    }

    #[test]
    fn batches_that_overlap_or_leave_a_gap_repeat_nothing() {
        let mut gather = Gather::new(u64::MAX, 1000);
        assert!(gather.add(chunks(100..=102)));
        assert!(gather.add(chunks(4..=101)));
        let history = gather.finish();
        assert_eq!(seqs(&history), (4..=102).collect::<Vec<_>>());
        assert!(!history.more);
        let mut gather = Gather::new(u64::MAX, 1000);
        assert!(gather.add(chunks([50])) && gather.add(chunks([3, 4])));
        assert_eq!(seqs(&gather.finish()), [3, 4, 50]);
    }

    #[test]
    fn a_chunk_that_is_larger_than_asked_for_comes_alone() {
        let mut gather = Gather::new(3, 0);
        gather.add(chunks(1..=2));
        let history = gather.finish();
        assert_eq!((seqs(&history), history.more), (vec![2], true));
    }

    #[test]
    fn no_answer_is_larger_than_the_bound() {
        let mut gather = Gather::new(u64::MAX, usize::MAX);
        let megabytes = (1..=10).map(|seq| chunk(seq, 1024 * 1024)).collect::<Vec<_>>();
        assert!(!gather.add(megabytes.into_iter()));
        assert_eq!(seqs(&gather.finish()), [7, 8, 9, 10]);
    }

    #[test]
    fn before_the_first_there_is_nothing() {
        let mut gather = Gather::new(1, 100);
        assert!(gather.add(chunks(1..=5)));
        let history = gather.finish();
        assert_eq!((history.range(), history.more), (None, false));
        assert_eq!(history.text(), "");
    }

    proptest! {
        /// Who asks again and again with the first number of what came gets everything, once.
        #[test]
        fn paging_back_gives_everything_once(
            lengths in vec(1_usize..50, 0..40),
            cut in 0_usize..40,
            overlap in 0_usize..5,
            max_bytes in 0_usize..200,
        ) {
            let all: Vec<_> = (1..).zip(lengths).map(|(seq, length)| chunk(seq, length)).collect();
            let cut = cut.min(all.len());
            let (old, new) = (&all[..cut], &all[cut.saturating_sub(overlap)..]);
            let (mut before, mut got) = (u64::MAX, Vec::new());
            loop {
                let mut gather = Gather::new(before, max_bytes);
                if gather.add(new.iter().cloned()) {
                    gather.add(old.iter().cloned());
                }
                let history = gather.finish();
                prop_assert!(history.text().len() <= max_bytes || history.chunks.len() == 1);
                let Some((first, _)) = history.range() else { break };
                prop_assert_eq!(history.more, first > 1);
                before = first;
                got.splice(0..0, history.chunks);
            }
            prop_assert_eq!(got, all);
        }
    }
}

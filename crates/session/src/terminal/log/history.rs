//! The output before a number: from the log as far back as it reaches, and before that from the
//! disk.

use super::Chunk;

/// The most bytes in one answer, whatever the caller requests.
pub const MAX_HISTORY: usize = 4 * 1024 * 1024;

/// A stretch of a session's output.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    /// The chunks, oldest first.
    pub chunks: Vec<Chunk>,
    /// Whether older chunks are kept.
    pub more: bool,
}

impl History {
    /// The numbers of the first and the last chunk; `None` if there is no chunk.
    pub fn range(&self) -> Option<(u64, u64)> {
        Some((self.chunks.first()?.seq, self.chunks.last()?.seq))
    }

    /// The text of all chunks.
    pub fn text(&self) -> String {
        let texts = self.chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.text));
        texts.collect()
    }
}

/// Gathers the newest chunks before a number, as many as fit.
///
/// The caller adds batches, the newest first, until [`Gather::add`] returns false: the log, then
/// segments from the disk. Batches may overlap, and numbers may be missing between them.
#[derive(Debug)]
pub struct Gather {
    /// Only chunks with smaller numbers than this are taken.
    before: u64,
    /// The number of bytes that still fit.
    room: usize,
    /// The newest first.
    chunks: Vec<Chunk>,
    more: bool,
}

impl Gather {
    /// Gathers chunks with numbers smaller than `before_seq`, up to `max_bytes` and [`MAX_HISTORY`]
    /// in total. The newest of them is taken even if it alone has more than `max_bytes`.
    pub fn new(before_seq: u64, max_bytes: usize) -> Self {
        let room = max_bytes.min(MAX_HISTORY);
        Self { before: before_seq, room, chunks: Vec::new(), more: false }
    }

    /// Takes the chunks of a batch that fit; the batch is in order of the numbers. Returns whether
    /// an older batch is needed.
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
        // Batches may overlap: a chunk is not taken again from the next batch.
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
        /// A client that always requests the output before its first number gets everything, once.
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

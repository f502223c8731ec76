//! Messages beside a session's output, each with its place in it: an agent's events and questions,
//! and the usage of its turns.

use std::collections::VecDeque;

use protocol::workspace::{PermissionId, ServerMessage};

/// The most asides that are kept. The oldest are dropped first.
const MOST: usize = 4096;
/// The most bytes of asides that are kept, encoded.
const MOST_BYTES: usize = 2 * 1024 * 1024;

/// The newest asides of one session, in order.
#[derive(Default)]
pub(crate) struct Asides {
    newest: VecDeque<Aside>,
    /// How many asides were dropped, which is also the number of the first that is kept.
    dropped: u64,
    bytes: usize,
}

struct Aside {
    /// The number of the output that the aside follows.
    seq: u64,
    size: usize,
    message: ServerMessage,
}

impl Asides {
    /// Adds an aside after all output up to this number.
    pub(crate) fn push(&mut self, seq: u64, message: ServerMessage) {
        let size = message.encode().len();
        self.newest.push_back(Aside { seq, size, message });
        self.bytes += size;
        while self.newest.len() > MOST || (self.bytes > MOST_BYTES && self.newest.len() > 1) {
            self.drop_oldest();
        }
    }

    /// The number that the next aside gets.
    pub(crate) fn end(&self) -> u64 {
        self.dropped + self.newest.len() as u64
    }

    /// The number of the first aside after the output of this number.
    pub(crate) fn first_after(&self, seq: u64) -> u64 {
        self.dropped + self.newest.partition_point(|aside| aside.seq <= seq) as u64
    }

    /// The asides from the number `from` on that follow output up to `seq`, and the number of the
    /// next.
    pub(crate) fn up_to(&self, from: u64, seq: u64) -> (Vec<ServerMessage>, u64) {
        let end = self.first_after(seq).max(from);
        let range = self.index(from)..self.index(end);
        (self.newest.range(range).map(|aside| aside.message.clone()).collect(), end)
    }

    /// Whether one of the asides from the number `from` on is this question.
    pub(crate) fn has_question(&self, from: u64, request_id: PermissionId) -> bool {
        self.newest.range(self.index(from)..).any(|aside| match &aside.message {
            ServerMessage::PermissionRequest(question) => question.request_id == request_id,
            _ => false,
        })
    }

    /// Drops all asides. Their numbers are not used again.
    pub(crate) fn clear(&mut self) {
        *self = Self { dropped: self.end(), ..Self::default() };
    }

    fn index(&self, number: u64) -> usize {
        let index = usize::try_from(number.saturating_sub(self.dropped)).unwrap_or(usize::MAX);
        index.min(self.newest.len())
    }

    fn drop_oldest(&mut self) {
        if let Some(oldest) = self.newest.pop_front() {
            self.dropped += 1;
            self.bytes -= oldest.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::client::ErrorMessage;

    use super::*;

    fn message(text: &str) -> ServerMessage {
        ServerMessage::Error(ErrorMessage { message: text.to_owned() })
    }

    #[test]
    fn each_comes_after_its_output_and_once() {
        let mut asides = Asides::default();
        for (seq, text) in [(1, "a"), (1, "b"), (3, "c")] {
            asides.push(seq, message(text));
        }
        assert_eq!(asides.up_to(0, 0), (vec![], 0));
        assert_eq!(asides.up_to(0, 2), (vec![message("a"), message("b")], 2));
        assert_eq!(asides.up_to(2, 9), (vec![message("c")], 3));
        assert_eq!(asides.up_to(3, 9), (vec![], 3));
        assert_eq!((asides.first_after(1), asides.first_after(3), asides.end()), (2, 3, 3));
    }

    #[test]
    fn the_oldest_go_at_either_bound_and_numbers_stay() {
        let mut asides = Asides::default();
        (0..=MOST as u64).for_each(|seq| asides.push(seq, message("x")));
        assert_eq!((asides.newest.len(), asides.dropped), (MOST, 1));
        assert_eq!(asides.up_to(0, 1), (vec![message("x")], 2));
        asides.push(MOST as u64 + 1, message(&"x".repeat(MOST_BYTES)));
        assert_eq!(asides.newest.len(), 1);
        assert_eq!(asides.end(), MOST as u64 + 2);
        asides.clear();
        assert_eq!((asides.end(), asides.up_to(0, u64::MAX).0.len()), (MOST as u64 + 2, 0));
    }
}

//! Events are known by their number, which their participant has for a name.

/// The text before the number.
const BEFORE: &[u8] = b"\"nickname\":\"event-";

const DIGITS: usize = 6;

const LENGTH: usize = BEFORE.len() + DIGITS;

/// The nickname that marks the event of this number.
pub(super) fn nickname(number: u32) -> String {
    format!("event-{number:0DIGITS$}")
}

/// Finds the numbers of events in a stream that arrives in pieces of any size.
#[derive(Debug, Default)]
pub(super) struct Marks {
    /// The end of the bytes so far: too short to hold a mark.
    rest: Vec<u8>,
}

impl Marks {
    /// Takes the next piece; tells the numbers found.
    pub(super) fn feed(&mut self, piece: &[u8], mut found: impl FnMut(u32)) {
        self.rest.extend_from_slice(piece);
        let mut from = 0;
        while let Some(at) = memchr::memmem::find(&self.rest[from..], BEFORE) {
            let end = from + at + LENGTH;
            let Some(digits) = self.rest.get(end - DIGITS..end) else { break };
            if let Some(number) = std::str::from_utf8(digits).ok().and_then(|at| at.parse().ok()) {
                found(number);
            }
            from = end;
        }
        let kept = from.max(self.rest.len().saturating_sub(LENGTH - 1));
        self.rest.drain(..kept);
        // Only the end of a long piece is copied: there are many streams.
        self.rest.shrink_to(LENGTH);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_however_the_stream_is_cut() {
        let event = |number| format!("data: {{\"nickname\":\"{}\",\"x\":1}}\n\n", nickname(number));
        let stream: String = (40..60).map(event).collect();
        for piece in 1..80 {
            let (mut marks, mut numbers) = (Marks::default(), Vec::new());
            stream.as_bytes().chunks(piece).for_each(|at| marks.feed(at, |n| numbers.push(n)));
            assert_eq!(numbers, (40..60).collect::<Vec<_>>(), "in pieces of {piece}");
        }
    }

    #[test]
    fn other_names_are_no_events() {
        let mut marks = Marks::default();
        for other in ["\"nickname\":\"Ann\"", "\"nickname\":\"event-none..\"", ": ping\n\n"] {
            marks.feed(other.as_bytes(), |number| panic!("{number} in {other}"));
        }
    }
}

//! Removes the chunk that carries only usage from a stream of Chat Completions or Completions, for
//! a client that did not ask for it. Every other byte passes unchanged.

use std::sync::LazyLock;

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;
use serde::{Deserialize, de::IgnoredAny};

use crate::sse::{Boundary, line::event_len};

/// The longest event that may be held back, in bytes. The chunk that is looked for is far shorter.
pub const MAX_HELD: usize = 64 * 1024;

static CHOICES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"choices\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"finish_reason\""));

/// The most of a cut finish reason that is looked at again, in bytes.
const OVERLAP: usize = 32;

/// Filters one stream, split into pieces in any way.
///
/// A piece of whole events without the chunk passes without a copy. Half an event passes too, until
/// some choice has finished: from then on the usage is due, and half an event is held back until
/// its rest arrives.
#[derive(Debug, Default)]
pub struct UsageFilter {
    /// The position of the stream's end so far, including the held part.
    boundary: Boundary,
    finished: bool,
    /// The last bytes of a piece that ended within an event, while nothing has finished.
    cut: Vec<u8>,
    /// The beginning of an event.
    held: BytesMut,
}

impl UsageFilter {
    /// The part of the stream that may pass after this piece.
    pub fn feed(&mut self, piece: Bytes) -> Bytes {
        let from_start = self.boundary.at_event_start();
        self.boundary.feed(&piece);
        self.look_for_finish(&piece);
        let whole = self.boundary.at_event_start();
        if self.held.is_empty() && (whole || !self.finished) {
            let suspect = from_start && has_no_choices(&piece);
            return if suspect { without_usage(piece).joined() } else { piece };
        }
        self.held.extend_from_slice(&piece);
        let filtered = without_usage(self.held.split().freeze());
        if filtered.rest.len() > MAX_HELD {
            return filtered.joined();
        }
        self.held.extend_from_slice(&filtered.rest);
        filtered.pass
    }

    /// The rest at the end of the stream.
    pub fn end(&mut self) -> Bytes {
        let rest = self.held.split().freeze();
        if has_no_choices(&rest) && tells_only_usage(&rest) { Bytes::new() } else { rest }
    }

    fn look_for_finish(&mut self, piece: &[u8]) {
        if self.finished {
            return;
        }
        if !self.cut.is_empty() {
            self.cut.extend_from_slice(&piece[..piece.len().min(OVERLAP)]);
        }
        self.finished = tells_finish(&self.cut) || tells_finish(piece);
        if self.boundary.at_event_start() {
            self.cut.clear();
        } else if piece.len() >= OVERLAP {
            self.cut.clear();
            self.cut.extend_from_slice(&piece[piece.len() - OVERLAP..]);
        } else if self.cut.is_empty() {
            self.cut.extend_from_slice(piece);
        } else {
            self.cut.drain(..self.cut.len().saturating_sub(OVERLAP));
        }
    }
}

/// Whether some choice's finish reason is a word.
fn tells_finish(piece: &[u8]) -> bool {
    FINISH.find_iter(piece).any(|at| {
        let rest = piece[at + FINISH.needle().len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"\""))
    })
}

/// Whether some chunk has an empty list of choices.
fn has_no_choices(piece: &[u8]) -> bool {
    CHOICES.find_iter(piece).any(|at| {
        let rest = piece[at + CHOICES.needle().len()..].trim_ascii_start();
        let list = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        let items = list.and_then(|list| list.strip_prefix(b"["));
        items.is_some_and(|items| items.trim_ascii_start().starts_with(b"]"))
    })
}

struct Filtered {
    /// The whole events that carry more than usage.
    pass: Bytes,
    /// The event that is not complete.
    rest: Bytes,
}

impl Filtered {
    fn joined(self) -> Bytes {
        if self.rest.is_empty() { self.pass } else { [self.pass, self.rest].concat().into() }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "what is returned shares its memory")]
fn without_usage(stream: Bytes) -> Filtered {
    let (mut kept, mut at) = (Vec::new(), 0);
    while let Some(len) = event_len(&stream[at..]) {
        if !tells_only_usage(&stream[at..at + len]) {
            kept.push(at..at + len);
        }
        at += len;
    }
    let rest = stream.slice(at..);
    let kept_len: usize = kept.iter().map(ExactSizeIterator::len).sum();
    if kept_len == at {
        return Filtered { pass: stream.slice(..at), rest };
    }
    let mut pass = BytesMut::with_capacity(kept_len);
    kept.into_iter().for_each(|event| pass.extend_from_slice(&stream[event]));
    Filtered { pass: pass.freeze(), rest }
}

/// Whether an event is a chunk without choices and with usage.
fn tells_only_usage(event: &[u8]) -> bool {
    let mut lines = event.split(|byte| matches!(byte, b'\n' | b'\r'));
    let data = lines.find_map(|line| line.strip_prefix(b"data:"));
    let chunk = data.and_then(|data| serde_json::from_slice::<Chunk>(data).ok());
    chunk.is_some_and(|chunk| chunk.choices.is_empty() && chunk.usage.is_some())
}

#[derive(Deserialize)]
struct Chunk {
    choices: Vec<IgnoredAny>,
    usage: Option<serde_json::Map<String, serde_json::Value>>,
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const USAGE: &str = "data: {\"id\":\"c\",\"choices\": [ ],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    fn filter(pieces: &[&str]) -> Vec<String> {
        let mut filter = UsageFilter::default();
        let mut out: Vec<Bytes> = pieces
            .iter()
            .map(|piece| filter.feed(Bytes::copy_from_slice(piece.as_bytes())))
            .collect();
        out.push(filter.end());
        out.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }

    #[test]
    fn the_usage_chunk_goes_and_everything_else_stays() {
        assert_eq!(filter(&[WORD, STOP, USAGE, DONE]), [WORD, STOP, "", DONE, ""]);
        let all = [WORD, STOP, USAGE, DONE].concat();
        assert_eq!(filter(&[&all]), [[WORD, STOP, DONE].concat(), String::new()]);
        let crlf = USAGE.replace('\n', "\r\n");
        assert_eq!(filter(&[STOP, &crlf, DONE]), [STOP, "", DONE, ""]);
    }

    #[test]
    fn a_whole_piece_passes_without_a_copy() {
        let mut filter = UsageFilter::default();
        for event in [WORD, "data: {\"ha", "lf\":1}\n\n", STOP, DONE] {
            let piece = Bytes::from_static(event.as_bytes());
            assert_eq!(filter.feed(piece.clone()).as_ptr(), piece.as_ptr());
        }
    }

    #[test]
    fn similar_text_stays() {
        let alike = [
            "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n",
            "data: {\"choices\":[],\"usage\":null}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"choices\\\":[],\\\"usage\\\":{}\"}}],\"usage\":{}}\n\n",
            "data: \"choices\":[]\n\n",
            ": \"choices\":[]\n\n",
        ];
        for event in alike {
            assert_eq!(filter(&[STOP, event]), [STOP, event, ""], "{event}");
        }
    }

    #[test]
    fn half_an_event_is_held_back_only_when_usage_is_due_and_within_bounds() {
        let (half, rest) = USAGE.split_at(30);
        assert_eq!(filter(&[WORD, half, rest]), [WORD, half, rest, ""]);
        assert_eq!(filter(&[STOP, half, rest]), [STOP, "", "", ""]);
        let (half, rest) = WORD.split_at(30);
        assert_eq!(filter(&[STOP, half, rest]), [STOP, "", WORD, ""]);
        assert_eq!(filter(&[STOP, half]), [STOP, "", half]);
        assert_eq!(filter(&[STOP, USAGE.trim_end()]), [STOP, "", ""]);
        let endless = "x".repeat(MAX_HELD / 2 + 1);
        let passed = filter(&[STOP, &endless, &endless, &endless]);
        assert_eq!(passed[1..], [String::new(), endless.repeat(2), String::new(), endless]);
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing_once_a_choice_has_finished(
            events in vec(prop_oneof![Just(WORD), Just(USAGE), Just(DONE), Just(": hi\n\n")], 0..5),
            cuts in vec(0usize..400, 0..6),
        ) {
            let stream = events.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let mut pieces = vec![STOP];
            pieces.extend(cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]));
            let expected = events.iter().filter(|event| **event != USAGE).copied().collect::<String>();
            prop_assert_eq!(filter(&pieces).concat(), format!("{STOP}{expected}"));
        }

        #[test]
        fn a_finish_is_seen_however_it_is_split(cuts in vec(0usize..70, 0..8)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(STOP.len())).collect();
            cuts.extend([0, STOP.len()]);
            cuts.sort_unstable();
            let (half, rest) = USAGE.split_at(30);
            let mut pieces: Vec<&str> = cuts.windows(2).map(|cut| &STOP[cut[0]..cut[1]]).collect();
            pieces.extend([half, rest]);
            prop_assert_eq!(filter(&pieces).concat(), STOP);
        }
    }
}

//! The generated text of an answer, counted as it passes.

use super::silent::silent;

/// The longest key of interest, in bytes.
const LONGEST_KEY: usize = 17;

/// Counts the generated text in an answer of any API, JSON or events, split into chunks in any way.
///
/// In a stream, each event with text, reasoning or tool arguments counts as one token: backends
/// send a token at a time. In an answer in one piece, four bytes of such text count as one. The
/// answer's first byte that is not white space shows which of the two it is. Events that repeat
/// earlier content (those that end an item in Responses) do not count.
#[derive(Debug, Clone, Default)]
pub struct GeneratedCounter {
    kind: Kind,
    position: Position,
    /// The last string that ended, up to its bound: a key, if a colon follows.
    last: Word,
    /// The content that was read since the last string.
    gap: Gap,
    line: Line,
    events: u64,
    bytes: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Plain,
    Stream,
}

#[derive(Debug, Clone, Copy, Default)]
enum Position {
    #[default]
    Outside,
    /// In a string, generated text or not, with its length so far.
    Inside { is_text: bool, len: u64 },
    /// As `Inside`, after a backslash.
    Escaped { is_text: bool, len: u64 },
    /// In a line whose rest does not matter.
    Skipping,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Gap {
    /// Only white space, or nothing.
    #[default]
    Nothing,
    /// One colon, and white space: the next string is the value of the last one.
    Colon,
    Other,
}

/// The state of the current line.
#[derive(Debug, Clone, Copy, Default)]
struct Line {
    has_delta: bool,
    has_choices: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct Word {
    bytes: [u8; LONGEST_KEY],
    /// The whole length. If it is over the bound, the word is no key of interest.
    len: usize,
}

impl GeneratedCounter {
    /// Takes the next bytes of the answer.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut rest = chunk;
        // A search is made only if at most this many bytes are left. So each line is searched once,
        // and none whose end is not here.
        let mut searched = chunk.len();
        while let Some(&first) = rest.first() {
            if rest.len() <= searched && self.may_skip() {
                let line = memchr::memchr(b'\n', rest).map(|end| &rest[..end]);
                searched = line.map_or(0, |line| rest.len() - line.len() - 1);
                rest = &rest[line.map_or(0, silent)..];
                continue;
            }
            let taken = self.step(first, rest);
            rest = &rest[taken..];
        }
    }

    /// The tokens counted so far.
    pub fn tokens(&self) -> u64 {
        match self.kind {
            Kind::Stream => self.events,
            Kind::Unknown | Kind::Plain => self.bytes.div_ceil(4),
        }
    }

    /// Whether there was any generated text so far.
    pub fn has_text(&self) -> bool {
        self.bytes > 0
    }

    /// Whether an answer with these bytes next is one piece of JSON, and no stream.
    pub(super) fn is_plain_with(&self, next: &[u8]) -> bool {
        let first = next.iter().copied().find(|byte| kind_of(*byte).is_some());
        match self.kind {
            Kind::Unknown => first.and_then(kind_of) == Some(Kind::Plain),
            kind => kind == Kind::Plain,
        }
    }

    /// Whether the part of the line that is [`silent`] can be skipped from here.
    fn may_skip(&self) -> bool {
        let Line { has_delta, has_choices } = self.line;
        let is_outside = matches!(self.position, Position::Outside) && self.gap == Gap::Other;
        self.kind == Kind::Stream && is_outside && !has_delta && !has_choices
    }

    /// Reads on; `first` is the first byte of `rest`. Returns how many bytes were read.
    fn step(&mut self, first: u8, rest: &[u8]) -> usize {
        match self.position {
            Position::Outside => {
                self.outside(first);
                1
            }
            Position::Inside { is_text, len } => self.inside(rest, is_text, len),
            Position::Escaped { is_text, len } => {
                self.last.push(&rest[..1]);
                self.position = Position::Inside { is_text, len: len + 1 };
                1
            }
            Position::Skipping => {
                let end = memchr::memchr2(b'\n', b'\r', rest);
                if end.is_some() {
                    self.position = Position::Outside;
                }
                end.unwrap_or(rest.len())
            }
        }
    }

    fn outside(&mut self, byte: u8) {
        if self.kind == Kind::Unknown {
            let Some(kind) = kind_of(byte) else { return };
            self.kind = kind;
        }
        match byte {
            b'"' => self.open(),
            b'\n' | b'\r' => self.end_line(),
            b' ' | b'\t' => {}
            b':' if self.gap == Gap::Nothing => self.key_ends(),
            _ => self.gap = Gap::Other,
        }
    }

    fn open(&mut self) {
        let is_text = self.gap == Gap::Colon && self.holds_text();
        self.position = Position::Inside { is_text, len: 0 };
        self.last = Word::default();
        self.gap = Gap::Nothing;
    }

    /// Reads on in a string. Returns how many bytes were read.
    fn inside(&mut self, rest: &[u8], is_text: bool, len: u64) -> usize {
        let Some(at) = memchr::memchr3(b'"', b'\\', b'\n', rest) else {
            self.last.push(rest);
            self.position = Position::Inside { is_text, len: len + rest.len() as u64 };
            return rest.len();
        };
        self.last.push(&rest[..at]);
        let len = len + at as u64;
        match rest[at] {
            b'\\' => {
                self.last.push(b"\\");
                self.position = Position::Escaped { is_text, len };
            }
            b'"' => self.close(is_text, len),
            // Not JSON: a line of another kind.
            _ => self.end_line(),
        }
        at + 1
    }

    fn close(&mut self, is_text: bool, len: u64) {
        self.position = Position::Outside;
        if !is_text || len == 0 {
            return;
        }
        self.bytes += len;
        if self.kind == Kind::Stream {
            self.events += 1;
            self.position = Position::Skipping;
        }
    }

    fn key_ends(&mut self) {
        self.gap = Gap::Colon;
        match self.last.get() {
            b"delta" => self.line.has_delta = true,
            // The second name is Gemini's.
            b"choices" | b"candidates" => self.line.has_choices = true,
            _ => {}
        }
    }

    fn end_line(&mut self) {
        self.position = Position::Outside;
        if self.kind == Kind::Stream {
            self.line = Line::default();
            self.gap = Gap::Other;
        }
    }

    /// Whether the value of the last key is generated text.
    fn holds_text(&self) -> bool {
        let of_stream = self.kind == Kind::Stream;
        let Line { has_delta, has_choices } = self.line;
        match self.last.get() {
            // In Responses, `delta` is the text itself.
            b"delta" => of_stream,
            // In a stream, `text` is in a delta in Messages, and in choices in Completions.
            b"text" => !of_stream || has_delta || has_choices,
            b"content" | b"reasoning_content" | b"reasoning" | b"refusal" | b"arguments"
            | b"partial_json" | b"thinking" => !of_stream || has_delta,
            _ => false,
        }
    }
}

/// The kind of an answer that begins with this byte; `None` if only a later byte shows it.
fn kind_of(first: u8) -> Option<Kind> {
    match first {
        b'{' | b'[' => Some(Kind::Plain),
        b' ' | b'\t' | b'\n' | b'\r' | 0xef | 0xbb | 0xbf => None,
        _ => Some(Kind::Stream),
    }
}

impl Word {
    fn push(&mut self, piece: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..) {
            let len = room.len().min(piece.len());
            room[..len].copy_from_slice(&piece[..len]);
        }
        self.len += piece.len();
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// The reference: reads every byte and skips nothing.
    fn read(counter: &mut GeneratedCounter, mut rest: &[u8]) {
        while let Some(&first) = rest.first() {
            rest = &rest[counter.step(first, rest)..];
        }
    }

    fn count(answer: &str) -> u64 {
        let mut counter = GeneratedCounter::default();
        counter.feed(answer.as_bytes());
        let mut bytewise = GeneratedCounter::default();
        answer.bytes().for_each(|byte| bytewise.feed(&[byte]));
        let mut reference = GeneratedCounter::default();
        read(&mut reference, answer.as_bytes());
        let counts = [counter.tokens(), bytewise.tokens()];
        assert_eq!(counts, [reference.tokens(); 2], "{answer}");
        counter.tokens()
    }

    fn event(data: &str) -> String {
        format!("event: x\ndata: {data}\n\n")
    }

    #[test]
    fn events_with_text_of_the_model_count_one_each() {
        let carrying = [
            r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":"a \" b"}}]}"#,
            r#"{"choices": [{"delta": {"content": null, "reasoning_content": "hm"}}]}"#,
            r#"{"choices":[{"delta":{"reasoning":"hm"}}]}"#,
            r#"{"choices":[{"delta":{"refusal":"no"}}]}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"a"}}]}}]}"#,
            r#"{"id":"c","object":"text_completion","choices":[{"text":"a","index":0}]}"#,
            r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"a"}}"#,
            r#"{"type":"x","delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
            r#"{"type":"response.output_text.delta","item_id":"i","delta":"a"}"#,
            r#"{"type":"response.function_call_arguments.delta","delta":"{"}"#,
            r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"index":0}]}"#,
        ];
        for data in carrying {
            assert_eq!(count(&event(data)), 1, "{data}");
            assert_eq!(count(&event(data).replace('\n', "\r\n").repeat(3)), 3, "{data}");
        }
    }

    #[test]
    fn events_without_it_count_nothing() {
        let bare = [
            r#"{"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
            r#"{"choices":[],"usage":{"completion_tokens":7}}"#,
            r#"{"choices":[{"delta":{"tool_calls":[{"id":"1","function":{"name":"f","arguments":""}}]}}]}"#,
            r#"{"type":"message_start","message":{"content":[],"model":"m"}}"#,
            r#"{"type":"content_block_start","content_block":{"type":"text","text":""}}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
            r#"{"type":"content_block_delta","delta":{"type":"signature_delta","signature":"x"}}"#,
            r#"{"type":"response.output_text.done","text":"all of it"}"#,
            r#"{"type":"response.completed","response":{"output":[{"content":[{"text":"all"}]}]}}"#,
            r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#,
            r#"{"error":{"message":"\"delta\":\"x\""}}"#,
            "[DONE]",
        ];
        for data in bare {
            assert_eq!(count(&event(data)), 0, "{data}");
        }
        assert_eq!(count(": {\"delta\":1}\n\n"), 0);
    }

    #[test]
    fn an_answer_in_one_piece_counts_by_the_length_of_its_text() {
        let text = "x".repeat(40);
        let answers = [
            format!(r#"{{"choices":[{{"message":{{"role":"assistant","content":"{text}"}}}}]}}"#),
            format!("{{\n \"choices\" : [\n {{ \"text\" :\n \"{text}\" }} ] }}"),
            format!(r#" {{"content":[{{"type":"text","text":"{text}"}}],"id":"m"}}"#),
            format!(r#"{{"output":[{{"content":[{{"type":"output_text","text":"{text}"}}]}}]}}"#),
            format!(
                r#"{{"choices":[{{"message":{{"content":null,"tool_calls":[{{"function":{{"arguments":"{text}"}}}}]}}}}]}}"#
            ),
        ];
        for answer in answers {
            assert_eq!(count(&answer), 10, "{answer}");
        }
        assert_eq!(count(r#"{"error":{"message":"no"}}"#), 0);
        assert_eq!(count(""), 0);
    }

    fn piece() -> impl Strategy<Value = String> {
        const PIECES: [&str; 16] = [
            "\"delta\":",
            "\"delta\" :",
            "\"delta\",",
            "\"choices\":",
            "\"candidates\":[",
            "\"text\":\"a\"",
            "{\"content\":\"a\"}",
            "\"x\":\"delta\"",
            "\"a\\\"delta\":",
            "\n\ndata: ",
            "\n\ndata: {",
            "\r\n",
            "\r",
            "\\\n",
            "\"text\":",
            "\"\\\\\"",
        ];
        let known = proptest::sample::select(&PIECES[..]).prop_map(str::to_owned);
        prop_oneof![4 => known, 1 => "[\"\\\\:{}a, \n\r]{0,4}"]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        /// In pieces of any size as the reference counts it.
        #[test]
        fn splitting_changes_nothing(
            pieces in vec(piece(), 0..24),
            cuts in vec(0usize..120, 0..4),
            stream: bool,
        ) {
            let answer = if stream { "data: " } else { "" }.to_owned() + &pieces.concat();
            let told = count(&answer);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(answer.len())).collect();
            cuts.extend([0, answer.len()]);
            cuts.sort_unstable();
            let mut counter = GeneratedCounter::default();
            cuts.windows(2).for_each(|cut| counter.feed(&answer.as_bytes()[cut[0]..cut[1]]));
            prop_assert_eq!(counter.tokens(), told);
        }
    }
}

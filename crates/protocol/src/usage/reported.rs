//! The token counts that an answer reports.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Usage;
use crate::json::JsonReader;

/// Finds the `usage` objects in an answer, JSON or events alike, split into chunks in any way.
///
/// It looks for the key `"usage"` (`"usageMetadata"` in Gemini's answers) and an object of at most [`MAX_OBJECT`]
/// bytes after it, and skips everything else with one substring search per chunk. Each later count replaces the
/// earlier one of the same kind.
#[derive(Debug, Clone, Default)]
pub struct UsageScanner {
    usage: Usage,
    /// The parts in which Messages reports a prompt's tokens. Their sum is the prompt's count.
    parts: [Option<u64>; 3],
    search: Search,
    /// The object so far.
    object: Object,
    /// The last byte before the current one.
    previous: u8,
}

/// The longest usage object that is read, in bytes; a longer one is ignored.
pub const MAX_OBJECT: usize = 4096;

/// The beginning of the key under either name, and the rest of Gemini's.
const KEY: &[u8] = b"\"usage";
const GEMINIS: &[u8] = b"Metadata\"";

static KEY_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(KEY));

#[derive(Debug, Clone, Copy)]
enum Search {
    /// Looking for the key, of which this many bytes were found.
    Key(usize),
    /// After the beginning of the key: this many bytes of Gemini's were found.
    Geminis(usize),
    /// After the key, before the colon.
    Colon,
    /// After the colon, before the object.
    Object,
    /// In the object.
    Inside,
}

impl Default for Search {
    fn default() -> Self {
        Self::Key(0)
    }
}

#[derive(Debug, Clone, Default)]
struct Object {
    /// Its bytes from earlier chunks.
    text: Vec<u8>,
    depth: u32,
    in_string: bool,
    escaped: bool,
}

impl UsageScanner {
    /// A scanner before the first byte of an answer.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes of the answer.
    pub fn feed(&mut self, chunk: &[u8]) {
        let mut at = 0;
        while at < chunk.len() {
            at = match self.search {
                Search::Key(0) => self.skip_to_key(chunk, at),
                Search::Object if chunk[at] == b'{' => {
                    self.search = Search::Inside;
                    at
                }
                Search::Inside => self.read_object(chunk, at),
                _ => {
                    self.step(chunk[at]);
                    at + 1
                }
            };
        }
    }

    /// The counts so far.
    pub fn usage(&self) -> Usage {
        self.usage
    }

    /// Skips to the end of the next key, or to the beginning of one that the chunk's end cuts.
    fn skip_to_key(&mut self, chunk: &[u8], from: usize) -> usize {
        let rest = &chunk[from..];
        let found = KEY_FINDER.find(rest);
        let at = found.unwrap_or_else(|| rest.len() - cut_key(rest));
        if at > 0 {
            self.previous = rest[at - 1];
        }
        if at < rest.len() {
            // `step` checks for a backslash before the key.
            self.step(rest[at]);
            return from + at + 1;
        }
        chunk.len()
    }

    /// Reads on in the object; returns up to where.
    fn read_object(&mut self, chunk: &[u8], from: usize) -> usize {
        let room = MAX_OBJECT - self.object.text.len();
        let rest = &chunk[from..chunk.len().min(from + room)];
        let end = rest.iter().position(|&byte| self.object.ends_with(byte));
        let here = &rest[..end.map_or(rest.len(), |last| last + 1)];
        self.previous = here.last().copied().unwrap_or(self.previous);
        // Most objects arrive whole, and are read without a copy.
        let is_here = self.object.text.is_empty() && end.is_some();
        if !is_here {
            self.object.text.extend_from_slice(here);
        }
        if end.is_some() || self.object.text.len() >= MAX_OBJECT {
            let Object { text, .. } = std::mem::take(&mut self.object);
            self.search = Search::default();
            if end.is_some() {
                self.take(if is_here { here } else { &text });
            }
        }
        from + here.len()
    }

    fn step(&mut self, byte: u8) {
        self.search = match self.search {
            Search::Key(matched) => self.match_key(matched, byte),
            Search::Geminis(matched) => self.match_geminis(matched, byte),
            Search::Colon if byte == b':' => Search::Object,
            Search::Colon | Search::Object if byte.is_ascii_whitespace() => self.search,
            Search::Colon | Search::Object | Search::Inside => self.match_key(0, byte),
        };
        self.previous = byte;
    }

    fn match_key(&self, matched: usize, byte: u8) -> Search {
        match (matched, byte) {
            // An escaped quote is inside some string.
            (0, b'"') if self.previous == b'\\' => Search::Key(0),
            _ if byte == KEY[matched] && matched + 1 == KEY.len() => Search::Geminis(0),
            _ if byte == KEY[matched] => Search::Key(matched + 1),
            (_, b'"') => Search::Key(1),
            _ => Search::Key(0),
        }
    }

    fn match_geminis(&self, matched: usize, byte: u8) -> Search {
        match (matched, byte) {
            (0, b'"') => Search::Colon,
            _ if byte == GEMINIS[matched] && matched + 1 == GEMINIS.len() => Search::Colon,
            _ if byte == GEMINIS[matched] => Search::Geminis(matched + 1),
            _ => self.match_key(0, byte),
        }
    }

    pub(super) fn take(&mut self, object: &[u8]) {
        let mut json = JsonReader::default();
        let Ok(counts) = json.whole::<Counts<'_>>(object) else { return };
        let prompt = counts.prompt_tokens.and_then(count).or_else(|| self.sum(&counts));
        let prompt = prompt.or_else(|| counts.prompt_token_count.and_then(count));
        let completion = counts.completion_tokens.or(counts.output_tokens).and_then(count);
        let completion = completion.or_else(|| counts.geminis_completion());
        // Rerankers, which generate nothing, may report only the total.
        let prompt =
            prompt.or_else(|| counts.total_tokens.filter(|_| completion.is_none()).and_then(count));
        self.usage.prompt_tokens = prompt.or(self.usage.prompt_tokens);
        self.usage.completion_tokens = completion.or(self.usage.completion_tokens);
        let cached = counts.cached();
        self.usage.cached_tokens = cached.or(self.usage.cached_tokens);
    }
}

impl UsageScanner {
    /// The prompt's tokens in Messages, which reports the tokens from and for a cache apart from the
    /// others.
    fn sum(&mut self, counts: &Counts<'_>) -> Option<u64> {
        let told = [
            counts.input_tokens,
            counts.cache_creation_input_tokens,
            counts.cache_read_input_tokens,
        ];
        let told = told.map(|raw| raw.and_then(count));
        for (part, new) in self.parts.iter_mut().zip(told) {
            *part = new.or(*part);
        }
        let any = told.iter().any(Option::is_some);
        any.then(|| self.parts.iter().flatten().fold(0, |sum: u64, part| sum.saturating_add(*part)))
    }
}

impl Object {
    /// Takes its next byte. Returns whether that is its last one.
    fn ends_with(&mut self, byte: u8) -> bool {
        if self.in_string {
            let ends = byte == b'"' && !self.escaped;
            self.in_string = !ends;
            self.escaped = byte == b'\\' && !self.escaped;
            return false;
        }
        match byte {
            b'"' => self.in_string = true,
            b'{' => self.depth += 1,
            b'}' => self.depth -= 1,
            _ => {}
        }
        self.depth == 0
    }
}

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Counts<'a> {
    prompt_tokens_details: Option<&'a RawValue>,
    input_tokens_details: Option<&'a RawValue>,
    prompt_cache_hit_tokens: Option<&'a RawValue>,
    prompt_tokens: Option<&'a RawValue>,
    input_tokens: Option<&'a RawValue>,
    cache_creation_input_tokens: Option<&'a RawValue>,
    cache_read_input_tokens: Option<&'a RawValue>,
    completion_tokens: Option<&'a RawValue>,
    output_tokens: Option<&'a RawValue>,
    total_tokens: Option<&'a RawValue>,
    #[serde(rename = "promptTokenCount")]
    prompt_token_count: Option<&'a RawValue>,
    #[serde(rename = "candidatesTokenCount")]
    candidates_token_count: Option<&'a RawValue>,
    #[serde(rename = "thoughtsTokenCount")]
    thoughts_token_count: Option<&'a RawValue>,
    #[serde(rename = "cachedContentTokenCount")]
    cached_content_token_count: Option<&'a RawValue>,
}

/// An OpenAI server's details about a prompt.
#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct Details<'a> {
    cached_tokens: Option<&'a RawValue>,
}

impl Counts<'_> {
    /// The tokens that came from a cache, in the fields of OpenAI, DeepSeek, Anthropic or Gemini.
    fn cached(&self) -> Option<u64> {
        let details = self.prompt_tokens_details.or(self.input_tokens_details);
        let details = details.and_then(|raw| serde_json::from_str::<Details<'_>>(raw.get()).ok());
        let told = details.and_then(|details| details.cached_tokens);
        let told = told.or(self.prompt_cache_hit_tokens).or(self.cache_read_input_tokens);
        told.or(self.cached_content_token_count).and_then(count)
    }

    /// The answer's tokens in Gemini's fields, which report the thoughts apart from the rest.
    fn geminis_completion(&self) -> Option<u64> {
        let told = [self.candidates_token_count, self.thoughts_token_count];
        let told = told.map(|raw| raw.and_then(count));
        let any = told.iter().any(Option::is_some);
        any.then(|| told.into_iter().flatten().fold(0, u64::saturating_add))
    }
}

fn count(raw: &RawValue) -> Option<u64> {
    raw.get().parse().ok()
}

/// How many bytes at the end of `rest` are the beginning of a key.
fn cut_key(rest: &[u8]) -> usize {
    (1..KEY.len()).rev().find(|&length| rest.ends_with(&KEY[..length])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::{super::reference, *};

    fn scan(answer: &str) -> (Option<u64>, Option<u64>) {
        let mut scanner = UsageScanner::new();
        scanner.feed(answer.as_bytes());
        let mut bytewise = UsageScanner::new();
        answer.bytes().for_each(|byte| bytewise.feed(&[byte]));
        assert_eq!(scanner.usage(), bytewise.usage(), "{answer}");
        assert_eq!(scanner.usage(), reference::usage(answer.as_bytes()), "{answer}");
        (scanner.usage().prompt_tokens, scanner.usage().completion_tokens)
    }

    #[test]
    fn reads_the_shapes_of_all_apis() {
        let cases = [
            (
                r#"{"choices":[],"usage":{"prompt_tokens":42,"completion_tokens":128,"total_tokens":170}}"#,
                (Some(42), Some(128)),
            ),
            (r#"{"usage" : { "input_tokens" : 3,"output_tokens": 4 } }"#, (Some(3), Some(4))),
            (
                r#"{"usage":{"prompt_tokens_details":{"cached_tokens":9},"prompt_tokens":1}}"#,
                (Some(1), None),
            ),
            (r#"{"usage":{"prompt_tokens":0,"completion_tokens":0}}"#, (Some(0), Some(0))),
            (r#"{"usage":{"total_tokens":56}}"#, (Some(56), None)),
            (r#"{"usage":{"total_tokens":56,"completion_tokens":6}}"#, (None, Some(6))),
            (r#"{"usage":null}"#, (None, None)),
            (
                r#"{"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":3,"thoughtsTokenCount":2,"totalTokenCount":10}}"#,
                (Some(5), Some(5)),
            ),
            (r#"{"usageMetadata" : {"promptTokenCount":5}}"#, (Some(5), None)),
            (
                r#"{"usageMetadat":{"promptTokenCount":5},"usageX":{"prompt_tokens":1}}"#,
                (None, None),
            ),
            (r#"{"x":"usage","usage":{"prompt_tokens":4}}"#, (Some(4), None)),
            (r#"{"usageM"usage":{"prompt_tokens":4}}"#, (Some(4), None)),
            (r#"{"usage":{"prompt_tokens":null,"completion_tokens":7}}"#, (None, Some(7))),
            (r#"{"usage":{"prompt_tokens":-1,"completion_tokens":1e3}}"#, (None, None)),
            (r#"{"usage":{"service":"a}\"{","prompt_tokens":5}}"#, (Some(5), None)),
        ];
        for (answer, expected) in cases {
            assert_eq!(scan(answer), expected, "{answer}");
        }
    }

    #[test]
    fn later_counts_replace_earlier_ones_each_for_itself() {
        let stream = concat!(
            "event: message_start\ndata: {\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n",
            "data: {\"usage\":null}\n\n",
            "event: message_delta\ndata: {\"usage\":{\"output_tokens\":15}}\n\n",
        );
        assert_eq!(scan(stream), (Some(25), Some(15)));
    }

    #[test]
    fn tokens_of_a_cache_are_part_of_the_prompt_and_repeated_keys_are_read() {
        let stream = concat!(
            "data: {\"usage\":{\"input_tokens\":5,\"cache_creation_input_tokens\":100,\"cache_read_input_tokens\":3,\"output_tokens\":1}}\n\n",
            "data: {\"usage\":{\"output_tokens\":15}}\n\n",
        );
        assert_eq!(scan(stream), (Some(108), Some(15)));
        let litellm = r#"{"usage":{"prompt_tokens":108,"cache_creation_input_tokens":100,"output_tokens":1}}"#;
        assert_eq!(scan(litellm), (Some(108), Some(1)));
        let twice = r#"{"usage":{"prompt_tokens":1,"prompt_tokens":2,"x":NaN}}"#;
        assert_eq!(scan(twice), (Some(2), None));
    }

    #[test]
    fn tokens_of_a_cache_are_told_in_the_words_of_each_api() {
        for usage in [
            r#"{"prompt_tokens":9,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":4}}"#,
            r#"{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":1}"#,
            r#"{"prompt_tokens":9,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":5}"#,
            r#"{"input_tokens":5,"cache_read_input_tokens":4}"#,
        ] {
            let mut scanner = UsageScanner::new();
            scanner.feed(format!("{{\"usage\":{usage}}}").as_bytes());
            let told = scanner.usage();
            assert_eq!((told.prompt_tokens, told.cached_tokens), (Some(9), Some(4)), "{usage}");
        }
    }

    #[test]
    fn text_about_usage_is_not_usage() {
        let cases = [
            r#"{"content":"\"usage\":{\"prompt_tokens\":5}"}"#,
            r#"{"content":"\"usage":{"prompt_tokens":5}}"#,
            r#"["usage",{"prompt_tokens":5}]"#,
            r#"{"usages":{"prompt_tokens":5}}"#,
            r#"{"usage":[{"prompt_tokens":5}]}"#,
            r#"{"usage":{"prompt_tokens":5,"#,
        ];
        for answer in cases {
            assert_eq!(scan(answer), (None, None), "{answer}");
        }
    }

    #[test]
    fn an_object_may_reach_its_bound_and_not_pass_it() {
        let object = |length: usize| {
            let plain = r#"{"prompt_tokens":5,"x":""}"#;
            plain.replace("\"\"", &format!("\"{}\"", "y".repeat(length - plain.len())))
        };
        assert_eq!(scan(&format!("\"usage\":{}", object(MAX_OBJECT))), (Some(5), None));
        let over =
            format!("\"usage\":{} \"usage\":{{\"output_tokens\":6}}", object(MAX_OBJECT + 1));
        assert_eq!(scan(&over), (None, Some(6)));
        let mut scanner = UsageScanner::new();
        scanner.feed(b"\"usage\":{");
        scanner.feed(&[b'{'; 100_000]);
        assert!(matches!(scanner.search, Search::Key(0)));
    }

    fn piece() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("\"usage\"".to_owned()),
            Just("\"usage\":{\"prompt_tokens\":7}".to_owned()),
            Just("\"usage\":{\"output_tokens\":8,\"x\":\"}\\\"\"}".to_owned()),
            Just(
                "\"usage\" : {\"input_tokens\":9,\"input_tokens_details\":{\"cached_tokens\":2}}"
                    .to_owned()
            ),
            Just("\"usageMetadata\":{\"promptTokenCount\":3}".to_owned()),
            Just("\"usage\":null".to_owned()),
            Just("\"usage\":{\"prompt_tokens\":".to_owned()),
            "[\"\\\\:{}a, \n]{0,4}",
            "\"?usa?ge?\"?:?",
        ]
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(pieces in vec(piece(), 0..12), cuts in vec(0usize..80, 0..4)) {
            let answer = pieces.concat();
            let (prompt, completion) = scan(&answer);
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(answer.len())).collect();
            cuts.extend([0, answer.len()]);
            cuts.sort_unstable();
            let mut scanner = UsageScanner::new();
            cuts.windows(2).for_each(|cut| scanner.feed(&answer.as_bytes()[cut[0]..cut[1]]));
            let told = (scanner.usage().prompt_tokens, scanner.usage().completion_tokens);
            prop_assert_eq!(told, (prompt, completion));
        }
    }
}

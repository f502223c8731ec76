//! Request bodies and the answers to them. Load generator and backend make both from the same
//! code, so that every byte of an answer can be checked.
//!
//! The wanted answer of the backend is written at the beginning of the prompt, where any proxy and any
//! translation lets it pass: `bench=ID,SIZE,BYTES,CHUNKS,BURST,GAP;`.

use std::ops::Range;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub(crate) const MODEL: &str = "bench";

/// How far into a body the backend looks for what is asked.
pub(crate) const HEAD: usize = 1024;

pub(crate) const DONE: &[u8] = b"data: {\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\
\"created\":0,\"model\":\"bench\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
data: [DONE]\n\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Api {
    /// OpenAI's Chat Completions: the one that the backend speaks.
    Chat,
    Messages,
    Responses,
    Gemini,
    /// Ollama's chat.
    Ollama,
}

impl Api {
    pub(crate) fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Messages => "/v1/messages",
            Self::Responses => "/v1/responses",
            Self::Gemini => "/v1beta/models/bench:streamGenerateContent?alt=sse",
            Self::Ollama => "/api/chat",
        }
    }

    /// The text around a prompt, and the text between it and the beginning.
    fn around(self, stream: bool) -> (String, &'static str) {
        let head = format!("{{\"model\":\"{MODEL}\",\"stream\":{stream},");
        match self {
            Self::Chat | Self::Ollama => {
                (head + "\"messages\":[{\"role\":\"user\",\"content\":\"", "\"}]}")
            }
            Self::Messages => (
                head + "\"max_tokens\":99999,\"messages\":[{\"role\":\"user\",\"content\":\"",
                "\"}]}",
            ),
            Self::Responses => (head + "\"input\":\"", "\"}"),
            Self::Gemini => (head + "\"contents\":[{\"parts\":[{\"text\":\"", "\"}]}]}"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BenchRequest {
    /// Aborts are noted under this number; 0 is not noted.
    pub(crate) id: u64,
    pub(crate) answer: Answer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Plain {
        bytes: usize,
    },
    /// A stream of events, each written on its own, and `[DONE]`.
    Stream {
        chunks: u32,
        /// How many of them come at once.
        burst: u32,
        /// Milliseconds before each of the others.
        gap_ms: u64,
    },
}

impl Answer {
    /// A stream whose chunks follow each other without a pause.
    pub(crate) fn back_to_back(chunks: u32) -> Self {
        Self::Stream { chunks, burst: chunks, gap_ms: 0 }
    }

    pub(crate) fn expected(self) -> Bytes {
        match self {
            Self::Plain { bytes } => plain(bytes),
            Self::Stream { chunks, .. } => {
                let mut all: Vec<u8> = (0..chunks).flat_map(|i| chunk(i).into_bytes()).collect();
                all.extend_from_slice(DONE);
                all.into()
            }
        }
    }
}

impl BenchRequest {
    /// A chat request of exactly `size` bytes (or the least possible, when `size` is smaller).
    pub(crate) fn body(&self, size: usize) -> Bytes {
        self.body_for(Api::Chat, size, size)
    }

    /// A request for another API. Its translation may be shorter, so that its size is not checked.
    pub(crate) fn foreign_body(&self, api: Api, size: usize) -> Bytes {
        self.body_for(api, size, 0)
    }

    fn body_for(&self, api: Api, size: usize, least: usize) -> Bytes {
        let (bytes, chunks, burst, gap_ms) = match self.answer {
            Answer::Plain { bytes } => (bytes, 0, 0, 0),
            Answer::Stream { chunks, burst, gap_ms } => (0, chunks, burst, gap_ms),
        };
        let (mut head, tail) = api.around(chunks > 0);
        head += &format!("bench={},{least},{bytes},{chunks},{burst},{gap_ms};", self.id);
        let mut body = Vec::with_capacity(size.max(head.len() + tail.len()));
        body.extend_from_slice(head.as_bytes());
        fill(&mut body, size.saturating_sub(head.len() + tail.len()));
        body.extend_from_slice(tail.as_bytes());
        body.into()
    }

    /// Reads the beginning of a body: the request, and the least length of the whole body.
    pub(crate) fn parse(head: &[u8]) -> Option<(Self, usize)> {
        let text = &head[field(head)?];
        let mut numbers = std::str::from_utf8(text).ok()?.split(',').map(str::parse::<u64>);
        let mut next = || numbers.next()?.ok();
        let (id, size, bytes) = (next()?, next()?, next()?);
        let (chunks, burst, gap_ms) = (next()?, next()?, next()?);
        let answer = match u32::try_from(chunks).ok()? {
            0 => Answer::Plain { bytes: usize::try_from(bytes).ok()? },
            chunks => Answer::Stream { chunks, burst: u32::try_from(burst).ok()?, gap_ms },
        };
        Some((Self { id, answer }, usize::try_from(size).ok()?))
    }
}

/// The `index`th event of a stream, of the shape and size usual for one token. All have the same
/// length up to the index 9999.
pub(crate) fn chunk(index: u32) -> String {
    format!(
        "data: {{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion.chunk\",\"created\":0,\
         \"model\":\"{MODEL}\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\" w{index:04}\"}},\
         \"finish_reason\":null}}]}}\n\n"
    )
}

/// A whole chat answer of `bytes` bytes (or the least possible).
pub(crate) fn plain(bytes: usize) -> Bytes {
    let head = format!(
        "{{\"id\":\"chatcmpl-bench\",\"object\":\"chat.completion\",\"created\":0,\"model\":\
         \"{MODEL}\",\"choices\":[{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\""
    );
    let tail = "\"},\"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":1,\
                \"completion_tokens\":1,\"total_tokens\":2}}";
    let mut body = head.into_bytes();
    let filler = bytes.saturating_sub(body.len() + tail.len());
    fill(&mut body, filler);
    body.extend_from_slice(tail.as_bytes());
    body.into()
}

/// Counts the events (`data:` lines) of a stream that arrives in pieces of any size; comments and
/// empty lines are not events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    line: usize,
    event: bool,
    pub(crate) count: u64,
}

impl Events {
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        for &byte in piece {
            if byte == b'\n' {
                self.count += u64::from(self.event);
                (self.line, self.event) = (0, false);
            } else {
                self.event |= self.line == 0 && byte == b'd';
                self.line += 1;
            }
        }
    }
}

/// Finds the words of a stream, each in a string of its own, however the stream is cut and whatever
/// events carry them. A word out of order is not counted.
#[derive(Debug, Default)]
pub(crate) struct Words {
    /// The end of the bytes so far: too short to hold a word.
    rest: Vec<u8>,
    pub(crate) count: u32,
}

impl Words {
    pub(crate) fn feed(&mut self, piece: &[u8]) {
        self.rest.extend_from_slice(piece);
        let mut from = 0;
        while let Some(next) = memchr::memmem::find(&self.rest[from..], word(self.count).as_bytes())
        {
            from += next + WORD;
            self.count += 1;
        }
        let kept = from.max(self.rest.len().saturating_sub(WORD - 1));
        self.rest.drain(..kept);
    }
}

/// The length of a word as it stands in an event, up to the index 9999.
const WORD: usize = 8;

fn word(index: u32) -> String {
    format!("\" w{index:04}\"")
}

/// Appends `bytes` bytes of text in JSON form, with the escapes that prompts usually have.
fn fill(body: &mut Vec<u8>, bytes: usize) {
    const PHRASE: &[u8] = br#"The quick brown fox said: \"Jump over the lazy dog!\" \u00fcber.\n"#;
    for _ in 0..bytes / PHRASE.len() {
        body.extend_from_slice(PHRASE);
    }
    body.resize(body.len() + bytes % PHRASE.len(), b'x');
}

fn field(head: &[u8]) -> Option<Range<usize>> {
    const KEY: &[u8] = b"bench=";
    let start = head.windows(KEY.len()).position(|at| at == KEY)? + KEY.len();
    let length = head[start..].iter().position(|&byte| byte == b';')?;
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_json_of_the_exact_size_and_says_what_it_asks() {
        for answer in [Answer::Plain { bytes: 1024 }, Answer::back_to_back(64)] {
            for size in [1024, 100 * 1024] {
                let ask = BenchRequest { id: 7, answer };
                let body = ask.body(size);
                assert_eq!(body.len(), size);
                let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
                assert_eq!(json["model"], MODEL);
                assert_eq!(json["stream"], answer == Answer::back_to_back(64));
                assert_eq!(BenchRequest::parse(&body[..HEAD]), Some((ask, size)));
            }
        }
    }

    #[test]
    fn the_other_apis_say_the_same() {
        let ask = BenchRequest { id: 7, answer: Answer::back_to_back(64) };
        for api in [Api::Messages, Api::Responses, Api::Gemini, Api::Ollama] {
            let body = ask.foreign_body(api, 2000);
            let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((body.len(), &json["stream"]), (2000, &serde_json::json!(true)));
            assert_eq!(BenchRequest::parse(&body[..HEAD]), Some((ask, 0)));
        }
    }

    #[test]
    fn words_are_found_in_order_however_they_are_cut() {
        let stream = Answer::back_to_back(20).expected();
        for piece in 1..40 {
            let mut words = Words::default();
            stream.chunks(piece).for_each(|bytes| words.feed(bytes));
            words.feed(br#"{"text":" w0000 w0001"}"#);
            assert_eq!(words.count, 20);
        }
        let mut words = Words::default();
        words.feed(br#"" w0001"" w0000"" w0002""#);
        assert_eq!(words.count, 1);
    }

    #[test]
    fn a_head_without_an_ask_is_none() {
        for head in ["", "{}", "bench=", "bench=1,2;", "bench=a,b,c,d,e,f;"] {
            assert_eq!(BenchRequest::parse(head.as_bytes()), None, "{head}");
        }
    }

    #[test]
    fn a_plain_answer_is_json_of_the_exact_size() {
        let answer = Answer::Plain { bytes: 4096 }.expected();
        assert_eq!(answer.len(), 4096);
        serde_json::from_slice::<serde_json::Value>(&answer).unwrap();
    }

    #[test]
    fn events_are_counted_however_they_are_cut() {
        let stream = Answer::back_to_back(5).expected();
        for piece in 1..40 {
            let mut events = Events::default();
            stream.chunks(piece).for_each(|bytes| events.feed(bytes));
            events.feed(b": ping\n\n");
            assert_eq!(events.count, 7);
        }
    }
}

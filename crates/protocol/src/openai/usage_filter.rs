//! Removes usage, and nothing else, from a stream of Chat Completions or Completions whose client did
//! not ask for it.

use std::{borrow::Cow, fmt, sync::LazyLock};

use bytes::{Bytes, BytesMut};
use memchr::memmem::Finder;
use serde::{
    Deserialize,
    de::{Deserializer, MapAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    json::{
        self,
        lenient::{List, Text},
    },
    sse::{Boundary, line::event_len},
};

/// The longest event that may be held back, in bytes. The chunks that are looked for are far shorter.
pub const MAX_HELD: usize = 64 * 1024;

/// The fields that every chunk has. They need not be saved when a chunk is dropped.
const OF_EVERY_CHUNK: [&str; 9] = [
    "id",
    "object",
    "created",
    "model",
    "choices",
    "usage",
    "system_fingerprint",
    "service_tier",
    "obfuscation",
];

static USAGE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"usage\""));
static FINISH: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"finish_reason\""));

/// Filters one stream, split into pieces in any way.
///
/// - A chunk that has only usage is dropped.
/// - Another chunk with usage loses only its usage.
/// - Other fields of a chunk without choices (llama.cpp's `timings`) move to the chunk before it, the one
///   with the finish reason. A backend that is not asked for usage sends them there.
///
/// So a chunk with a finish reason is held back until the next chunk, and half an event until it is
/// complete (the client could not read half an event anyway). A piece of other whole events passes
/// without a copy.
#[derive(Debug, Default)]
pub struct UsageFilter {
    /// Where the stream so far ends.
    boundary: Boundary,
    /// The beginning of an event.
    half: BytesMut,
    /// Whether that event is too long to be held back, and its rest passes unchanged.
    passes: bool,
    /// The last event, if it has a finish reason.
    finish: Option<Event>,
}

/// An event that may be changed.
#[derive(Debug)]
struct Event {
    bytes: Bytes,
    /// Where its JSON is.
    data: std::ops::Range<usize>,
}

impl UsageFilter {
    /// The part of the stream that may pass after this piece.
    pub fn feed(&mut self, piece: Bytes) -> Bytes {
        self.boundary.feed(&piece);
        let is_between = self.half.is_empty() && self.finish.is_none() && !self.passes;
        if is_between && self.boundary.at_event_start() && !may_change(&piece) {
            return piece;
        }
        self.half.extend_from_slice(&piece);
        let mut out = BytesMut::with_capacity(self.half.len());
        while let Some(len) = event_len(&self.half) {
            let event = self.half.split_to(len).freeze();
            match std::mem::take(&mut self.passes) {
                true => out.extend_from_slice(&event),
                false => self.event(&event, &mut out),
            }
        }
        if self.half.len() > MAX_HELD || self.passes {
            self.release(&mut out);
            out.extend_from_slice(&self.half.split());
            self.passes = true;
        }
        out.freeze()
    }

    /// The rest at the end of the stream.
    pub fn end(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        let half = self.half.split().freeze();
        if !half.is_empty() {
            self.event(&half, &mut out);
        }
        self.release(&mut out);
        out.freeze()
    }

    /// The rest of a stream that breaks off: whole events only.
    pub fn broken_off(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.release(&mut out);
        out.freeze()
    }

    fn event(&mut self, event: &Bytes, out: &mut BytesMut) {
        let Some(mut event) = Event::of(event) else {
            // A comment may be sent before the chunk that is held back.
            return out.extend_from_slice(event);
        };
        let members = may_change(&event.bytes).then(|| event.members()).flatten();
        let Some(members) = members else {
            self.release(out);
            return out.extend_from_slice(&event.bytes);
        };
        let (has_choices, finishes) = members.choices();
        if !members.tells_usage() {
            return self.pass(event, finishes, out);
        }
        if has_choices {
            event = event.with_data(&members.without_usage());
            return self.pass(event, finishes, out);
        }
        match self.finish.take() {
            Some(finish) => out.extend_from_slice(&finish.with_more_of(&members).bytes),
            None if members.tells_more() => {
                out.extend_from_slice(&event.with_data(&members.without_usage()).bytes);
            }
            None => {}
        }
    }

    fn pass(&mut self, event: Event, finishes: bool, out: &mut BytesMut) {
        self.release(out);
        if finishes {
            self.finish = Some(event);
        } else {
            out.extend_from_slice(&event.bytes);
        }
    }

    fn release(&mut self, out: &mut BytesMut) {
        if let Some(event) = self.finish.take() {
            out.extend_from_slice(&event.bytes);
        }
    }
}

/// Whether some event has usage or a finish reason.
fn may_change(piece: &[u8]) -> bool {
    has_value(piece, &USAGE, b"{") || has_value(piece, &FINISH, b"\"")
}

/// Whether this key occurs with a value that begins like this.
fn has_value(piece: &[u8], key: &Finder<'_>, begins: &[u8]) -> bool {
    key.find_iter(piece).any(|at| {
        let rest = piece[at + key.needle().len()..].trim_ascii_start();
        rest.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(begins))
    })
}

impl Event {
    /// The event, if it has one line of data.
    fn of(bytes: &Bytes) -> Option<Self> {
        let mut at = 0;
        let lines = bytes.split(|byte| matches!(byte, b'\n' | b'\r')).map(|line| {
            let start = at;
            at += line.len() + 1;
            start..start + line.len()
        });
        let mut data = lines.filter(|line| bytes[line.clone()].starts_with(b"data:"));
        let (only, second) = (data.next()?, data.next());
        second.is_none().then(|| Self { bytes: bytes.clone(), data: only.start + 5..only.end })
    }

    fn json(&self) -> &[u8] {
        &self.bytes[self.data.clone()]
    }

    fn members(&self) -> Option<Members<'static>> {
        let members = serde_json::from_slice::<Members<'_>>(self.json()).map(Members::into_owned);
        members.ok().or_else(|| {
            let text = json::mended(self.json())?;
            serde_json::from_str::<Members<'_>>(&text).map(Members::into_owned).ok()
        })
    }

    /// The event with other data.
    fn with_data(&self, json: &str) -> Self {
        let (before, after) = (&self.bytes[..self.data.start], &self.bytes[self.data.end..]);
        let bytes = [before, b" ", json.as_bytes(), after].concat();
        let data = before.len()..before.len() + 1 + json.len();
        Self { bytes: bytes.into(), data }
    }

    /// Adds to the event the members that it lacks and the other one has, except usage.
    fn with_more_of(self, other: &Members<'_>) -> Self {
        let Some(mut members) = self.members() else { return self };
        let lacks = |name: &str| members.0.iter().all(|(other, _)| other != name);
        let more: Vec<Member<'_>> = other.more().filter(|(name, _)| lacks(name)).cloned().collect();
        if more.is_empty() {
            return self;
        }
        members.0.extend(more.into_iter().map(into_owned));
        self.with_data(&members.without_usage())
    }
}

type Member<'a> = (Cow<'a, str>, Cow<'a, str>);

/// The members of an object: names, and values as JSON. A name may come twice.
struct Members<'a>(Vec<Member<'a>>);

impl<'a> Members<'a> {
    fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().rev().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    fn tells_usage(&self) -> bool {
        self.get("usage").is_some_and(|usage| usage.starts_with('{'))
    }

    /// Whether there are choices, and whether one of them has a finish reason.
    fn choices(&self) -> (bool, bool) {
        let choices: List<Choice<'_>> =
            self.get("choices").and_then(|it| serde_json::from_str(it).ok()).unwrap_or_default();
        let finishes = choices.0.iter().any(|choice| !choice.finish_reason.is_empty());
        (!choices.0.is_empty(), finishes)
    }

    /// The members that not every chunk has.
    fn more(&self) -> impl Iterator<Item = &Member<'a>> {
        let is_more =
            |(name, value): &&Member<'_>| !OF_EVERY_CHUNK.contains(&&**name) && value != "null";
        self.0.iter().filter(is_more)
    }

    fn tells_more(&self) -> bool {
        self.more().next().is_some()
    }

    fn without_usage(&self) -> String {
        let mut text = String::from("{");
        for (name, value) in self.0.iter().filter(|(name, _)| name != "usage") {
            let comma = if text.len() > 1 { "," } else { "" };
            text.push_str(comma);
            text = json::write_into(text, name);
            text.push(':');
            text.push_str(value);
        }
        text + "}"
    }

    fn into_owned(self) -> Members<'static> {
        Members(self.0.into_iter().map(into_owned).collect())
    }
}

fn into_owned((name, value): Member<'_>) -> Member<'static> {
    (name.into_owned().into(), value.into_owned().into())
}

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((name.into(), value.get().into()));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    const USAGE: &str = "data: {\"id\":\"c\",\"choices\": [ ],\"usage\":{\"prompt_tokens\":1}}\n\n";
    const WORD: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":null}],\"usage\":null}\n\n";
    const STOP: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";
    const TIMED: &str = "data: {\"id\":\"c\",\"choices\":[],\"usage\":{\"a\":{}},\"timings\":{\"n\": 1.50},\"x\":null}\n\n";

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
        let stopped = STOP.to_owned();
        assert_eq!(filter(&[WORD, STOP, USAGE, DONE]), [WORD, "", &stopped, DONE, ""]);
        let all = [WORD, STOP, USAGE, DONE].concat();
        assert_eq!(filter(&[&all]), [[WORD, STOP, DONE].concat(), String::new()]);
        let crlf = USAGE.replace('\n', "\r\n");
        assert_eq!(filter(&[STOP, &crlf, DONE]), ["", STOP, DONE, ""]);
        assert_eq!(filter(&[STOP, DONE]), ["", &(stopped + DONE), ""]);
    }

    #[test]
    fn what_else_is_in_the_usage_chunk_moves_to_the_chunk_before_it() {
        let timed = "data: {\"choices\":[{\"delta\":{},\"finish_reason\" : \"stop\"}],\"timings\":{\"n\": 1.50}}\n\n";
        assert_eq!(filter(&[WORD, STOP, TIMED, DONE]).concat(), [WORD, timed, DONE].concat());
        let own = STOP.replace("]}", "],\"timings\":2}");
        assert_eq!(filter(&[&own, TIMED]).concat(), own, "it has its own");
        let alone = "data: {\"id\":\"c\",\"choices\":[],\"timings\":{\"n\": 1.50},\"x\":null}\n\n";
        assert_eq!(filter(&[WORD, TIMED, DONE]).concat(), [WORD, alone, DONE].concat());
        let named = format!("event: x\n{TIMED}");
        assert_eq!(filter(&[&named]).concat(), format!("event: x\n{alone}"));
    }

    #[test]
    fn usage_beside_choices_goes_alone() {
        let with = |usage: &str| {
            format!(
                "data: {{\"id\":\"c\",\"choices\":[{{\"delta\":{{\"content\":\"a\"}}}}]{usage},\"vendor\":[1]}}\n\n"
            )
        };
        assert_eq!(filter(&[&with(",\"usage\":{\"prompt_tokens\":1}")]).concat(), with(""));
        assert_eq!(
            filter(&[&with(",\"usage\":null,\"usage\":{\"prompt_tokens\":1}")]).concat(),
            with("")
        );
        let finishing = STOP.replace("]}", "],\"usage\":{}}");
        let bare = STOP;
        assert_eq!(filter(&[&finishing, DONE]).concat(), bare.to_owned() + DONE);
        let odd = with(",\"usage\":{\"x\":NaN}");
        assert_eq!(filter(&[&odd]).concat(), with(""));
        assert_eq!(
            filter(&["data: {\"choices\":null,\"usage\":{}}\n\n", "data: {\"usage\":{}}\n\n"])
                .concat(),
            ""
        );
    }

    #[test]
    fn a_whole_piece_passes_without_a_copy() {
        let mut filter = UsageFilter::default();
        for event in [WORD, "data: {\"whole\":1}\n\n", ": hi\n\n", DONE] {
            let piece = Bytes::from_static(event.as_bytes());
            assert_eq!(filter.feed(piece.clone()).as_ptr(), piece.as_ptr());
        }
    }

    #[test]
    fn similar_text_stays() {
        let alike = [
            "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n",
            "data: {\"choices\":[],\"usage\":null}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"\\\"choices\\\":[],\\\"usage\\\":{}\"}}]}\n\n",
            "data: \"usage\":{}\n\n",
            "data: {\"usage\":{}\ndata: }\n\n",
            ": \"choices\":[],\"usage\":{}\n\n",
        ];
        for event in alike {
            assert_eq!(filter(&[WORD, event]).concat(), [WORD, event].concat(), "{event}");
            assert_eq!(filter(&[event]).concat(), event, "{event}");
        }
    }

    #[test]
    fn half_an_event_is_held_back_within_bounds() {
        let (half, rest) = USAGE.split_at(30);
        assert_eq!(filter(&[WORD, half, rest]), [WORD, "", "", ""]);
        let (half, rest) = WORD.split_at(30);
        assert_eq!(filter(&[half, rest]), ["", WORD, ""]);
        assert_eq!(filter(&[STOP, half]), ["", "", &[STOP, half].concat()]);
        assert_eq!(filter(&[STOP, USAGE.trim_end()]), ["", "", STOP]);
        let endless = "x".repeat(MAX_HELD / 2 + 1);
        let passed = filter(&[STOP, &endless, &endless, &endless, "\n\n", USAGE]);
        assert_eq!(passed[2], STOP.to_owned() + &endless.repeat(2));
        assert_eq!(passed[3..], [endless, "\n\n".to_owned(), String::new(), String::new()]);
    }

    #[test]
    fn of_a_broken_stream_whole_events_pass() {
        let mut filter = UsageFilter::default();
        filter.feed(Bytes::from_static(STOP.as_bytes()));
        filter.feed(Bytes::from_static(b"data: {\"ha"));
        assert_eq!(filter.broken_off(), STOP);
    }

    proptest! {
        #[test]
        fn splitting_changes_nothing(
            events in vec(prop_oneof![Just(WORD), Just(STOP), Just(USAGE), Just(TIMED), Just(DONE), Just(": hi\n\n")], 0..6),
            cuts in vec(0usize..400, 0..6),
        ) {
            let stream = events.concat();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(stream.len())).collect();
            cuts.extend([0, stream.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&str> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
            let whole = filter(&[&stream]).concat();
            prop_assert_eq!(&filter(&pieces).concat(), &whole);
            let leaks = whole.contains("prompt_tokens") || whole.contains("\"usage\":{");
            prop_assert!(!leaks, "{}", whole);
            prop_assert_eq!(whole.matches("timings").count(), events.iter().filter(|it| **it == TIMED).count());
            prop_assert_eq!(whole.matches("\"content\":\"a\"").count(), events.iter().filter(|it| **it == WORD).count());
        }
    }
}

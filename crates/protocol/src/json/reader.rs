//! JSON of other people's servers, read as the clients of these servers read it.
//!
//! Strict reading comes first and costs nothing more. Where it fails, the text is mended and read again:
//! of a repeated key the last value counts, whatever it is; half a surrogate pair and cut UTF-8 become
//! U+FFFD; control characters may stand in strings; `NaN` and `Infinity` are `null`.

use std::{
    collections::{HashMap, hash_map::Entry},
    ops::Range,
};

use serde::Deserialize;

/// The longest text that is mended, in bytes. Mending takes several times the text's memory.
pub const MAX_MENDED: usize = 4 * 1024 * 1024;

/// The deepest nesting that is mended. Strict reading goes no deeper either.
const MAX_DEPTH: usize = 127;

/// The most cut characters that wait for their rest.
const MAX_CUTS: usize = 8;

/// Reads the JSON of one answer: all of it, or chunk by chunk.
///
/// A character that two chunks share (half a surrogate pair in each, or some of its bytes) is joined, if
/// both parts are in the field of the same name.
#[derive(Debug, Default)]
pub struct JsonReader {
    mended: String,
    /// The beginnings of characters whose rest may come with the next chunk.
    cuts: Vec<Cut>,
}

impl JsonReader {
    /// Reads one chunk of an answer.
    ///
    /// # Errors
    /// The strict reader's, when mending does not help.
    pub fn chunk<'a, T: Deserialize<'a>>(
        &'a mut self,
        json: &'a [u8],
    ) -> Result<T, serde_json::Error> {
        let strict = serde_json::from_slice(json);
        match strict {
            Ok(value) if self.cuts.is_empty() => Ok(value),
            strict => {
                let cuts = std::mem::take(&mut self.cuts);
                let Some((mended, cuts)) = mend(json, cuts, true) else { return strict };
                (self.mended, self.cuts) = (mended, cuts);
                serde_json::from_str(&self.mended)
            }
        }
    }

    /// Reads an answer that is one value.
    ///
    /// # Errors
    /// As [`JsonReader::chunk`].
    pub fn whole<'a, T: Deserialize<'a>>(
        &'a mut self,
        json: &'a [u8],
    ) -> Result<T, serde_json::Error> {
        match serde_json::from_slice(json) {
            Ok(value) => Ok(value),
            strict => {
                let Some(text) = mended(json) else { return strict };
                self.mended = text;
                serde_json::from_str(&self.mended)
            }
        }
    }
}

/// A request's text as strict JSON, for readers that refuse it as it is; `None` where it cannot be mended,
/// or is longer than [`MAX_MENDED`]. Clients' own writers make such texts, and stock servers read them.
pub fn mended(json: &[u8]) -> Option<String> {
    mend(json, Vec::new(), false).map(|(mended, _)| mended)
}

/// The beginning of a character at the end of a string.
#[derive(Debug)]
struct Cut {
    /// The names of the fields around the string.
    path: String,
    half: Half,
}

#[derive(Debug, Clone, Copy)]
enum Half {
    /// The first of two surrogates.
    Surrogate(u16),
    /// The first bytes of a character in UTF-8.
    Bytes { bytes: [u8; 3], len: usize },
}

/// The text as strict JSON, and the characters that are cut at its strings' ends; `None` where it cannot
/// be mended. `joins`: such a character may continue in a later text, else it is replaced.
fn mend(json: &[u8], cuts: Vec<Cut>, joins: bool) -> Option<(String, Vec<Cut>)> {
    if json.len() > MAX_MENDED {
        return None;
    }
    let (out, path) = (String::with_capacity(json.len()), String::new());
    let (before, next) = (cuts, Vec::new());
    let mut mender = Mender { json, at: 0, out, replaced: Vec::new(), path, before, next, joins };
    mender.value(MAX_DEPTH)?;
    mender.blanks();
    if mender.at < json.len() {
        return None;
    }
    mender.next.append(&mut mender.before);
    mender.next.truncate(MAX_CUTS);
    let cuts = std::mem::take(&mut mender.next);
    Some((mender.without_replaced(), cuts))
}

struct Mender<'a> {
    json: &'a [u8],
    at: usize,
    out: String,
    /// Where members of objects are in `out` whose keys come again later.
    replaced: Vec<Range<usize>>,
    /// The names of the fields around the value.
    path: String,
    /// The cut characters of the text before.
    before: Vec<Cut>,
    /// Those of this text.
    next: Vec<Cut>,
    joins: bool,
}

impl Mender<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        self.blanks();
        let depth = depth.checked_sub(1)?;
        match self.peek()? {
            b'{' => self.object(depth),
            b'[' => self.list(depth),
            b'"' => {
                self.step();
                self.out.push('"');
                self.join_cut();
                self.string(self.joins)
            }
            _ => self.word(),
        }
    }

    fn list(&mut self, depth: usize) -> Option<()> {
        self.step();
        self.out.push('[');
        self.blanks();
        while self.peek()? != b']' {
            self.value(depth)?;
            self.separator(b']')?;
        }
        self.close(']');
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.step();
        self.out.push('{');
        self.blanks();
        let mut members = HashMap::new();
        let within = self.path.len();
        while self.peek()? != b'}' {
            let start = self.out.len();
            let key = self.key()?;
            self.value(depth)?;
            self.path.truncate(within);
            self.separator(b'}')?;
            let member = start..self.out.len();
            match members.entry(key) {
                Entry::Occupied(mut before) => self.replaced.push(before.insert(member)),
                Entry::Vacant(place) => drop(place.insert(member)),
            }
        }
        self.close('}');
        Some(())
    }

    /// Reads a key up to its colon, and returns it.
    fn key(&mut self) -> Option<String> {
        let start = self.out.len();
        self.take(b'"')?;
        self.out.push('"');
        self.string(false)?;
        self.blanks();
        self.take(b':')?;
        let key: String = serde_json::from_str(&self.out[start..]).ok()?;
        self.out.push(':');
        self.path.push('/');
        self.path.push_str(&key);
        Some(key)
    }

    /// A comma follows each member here; [`Mender::close`] takes the last one away.
    fn separator(&mut self, end: u8) -> Option<()> {
        self.blanks();
        match self.peek()? {
            b',' => self.step(),
            byte if byte == end => {}
            _ => return None,
        }
        self.blanks();
        self.out.push(',');
        Some(())
    }

    fn close(&mut self, end: char) {
        self.step();
        if self.out.ends_with(',') {
            self.out.pop();
        }
        self.out.push(end);
    }

    /// A number, `true`, `false`, `null`, or what is no JSON and counts as `null`.
    fn word(&mut self) -> Option<()> {
        let rest = &self.json[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\t' | b'\n' | b'\r');
        let len = rest.iter().position(ends).unwrap_or(rest.len());
        let word = str::from_utf8(&rest[..len]).ok()?;
        self.at += len;
        let is_number = || {
            let read: Result<f64, _> = serde_json::from_str(word);
            read.is_ok().then_some(word).or_else(|| word.parse::<f64>().ok().map(|_| "null"))
        };
        self.out.push_str(match word {
            "true" | "false" | "null" => word,
            _ => is_number()?,
        });
        Some(())
    }

    /// Copies a string from behind its first quote to its last. `cuts`: a character that the end cuts
    /// is kept for later.
    fn string(&mut self, cuts: bool) -> Option<()> {
        loop {
            let rest = &self.json[self.at..];
            let special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
            let len = rest.iter().position(special)?;
            self.at += len;
            self.text(&rest[..len], cuts && rest[len] == b'"');
            self.step();
            match rest[len] {
                b'"' => break,
                b'\\' => self.escape(cuts)?,
                control => {
                    let control = char::from(control);
                    super::push_escaped(&mut self.out, control.encode_utf8(&mut [0]));
                }
            }
        }
        self.out.push('"');
        Some(())
    }

    fn text(&mut self, text: &[u8], at_end: bool) {
        for chunk in text.utf8_chunks() {
            self.out.push_str(chunk.valid());
            let bad = chunk.invalid();
            let is_last = bad.as_ptr_range().end == text.as_ptr_range().end;
            let is_begun = str::from_utf8(bad).is_err_and(|error| error.error_len().is_none());
            match bad {
                [] => {}
                _ if at_end && is_last && is_begun => self.cut(Half::of_bytes(bad)),
                _ => self.out.push(char::REPLACEMENT_CHARACTER),
            }
        }
    }

    /// What follows a backslash.
    fn escape(&mut self, cuts: bool) -> Option<()> {
        let byte = self.peek()?;
        self.step();
        match byte {
            b'u' => self.unicode(cuts),
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => {
                self.out.push('\\');
                self.out.push(char::from(byte));
                Some(())
            }
            _ => None,
        }
    }

    fn unicode(&mut self, cuts: bool) -> Option<()> {
        let code = self.hex()?;
        let begins_pair = matches!(code, 0xd800..0xdc00);
        if begins_pair && cuts && self.peek() == Some(b'"') {
            self.cut(Half::Surrogate(code));
            return Some(());
        }
        let second = if begins_pair { self.second_surrogate() } else { None };
        let character = char::decode_utf16([code].into_iter().chain(second)).next()?;
        let character = character.unwrap_or(char::REPLACEMENT_CHARACTER);
        super::push_escaped(&mut self.out, character.encode_utf8(&mut [0; 4]));
        Some(())
    }

    /// Takes the second half of a surrogate pair, if it comes next.
    fn second_surrogate(&mut self) -> Option<u16> {
        let start = self.at;
        let rest = self.json.get(start..)?.strip_prefix(b"\\u")?;
        self.at = self.json.len() - rest.len();
        let code = self.hex().filter(|code| matches!(code, 0xdc00..0xe000));
        if code.is_none() {
            self.at = start;
        }
        code
    }

    fn hex(&mut self) -> Option<u16> {
        let digits = self.json.get(self.at..self.at + 4)?;
        self.at += 4;
        let digits = str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
        u16::from_str_radix(digits, 16).ok()
    }

    fn cut(&mut self, half: Half) {
        self.next.push(Cut { path: self.path.clone(), half });
    }

    /// Completes the character that the text before cut in this field. An empty string may lie between
    /// the two parts.
    fn join_cut(&mut self) {
        let cut = self.before.iter().position(|cut| cut.path == self.path);
        let Some(cut) = cut.filter(|_| self.peek() != Some(b'"')) else { return };
        let joined = match self.before.remove(cut).half {
            Half::Surrogate(first) => self.rest_of_pair(first),
            Half::Bytes { bytes, len } => self.rest_of_bytes(&bytes[..len]),
        };
        self.out.push(joined.unwrap_or(char::REPLACEMENT_CHARACTER));
    }

    fn rest_of_pair(&mut self, first: u16) -> Option<char> {
        let second = self.second_surrogate()?;
        char::decode_utf16([first, second]).next()?.ok()
    }

    fn rest_of_bytes(&mut self, first: &[u8]) -> Option<char> {
        let rest = &self.json[self.at..];
        let len = rest.iter().take(3).take_while(|byte| matches!(byte, 0x80..0xc0)).count();
        let whole = [first, &rest[..len]].concat();
        let text = whole.utf8_chunks().next()?.valid();
        let character = text.chars().next()?;
        self.at += character.len_utf8() - first.len();
        Some(character)
    }

    fn without_replaced(mut self) -> String {
        if self.replaced.is_empty() {
            return self.out;
        }
        self.replaced.sort_unstable_by_key(|range| range.start);
        let (mut kept, mut from) = (String::with_capacity(self.out.len()), 0);
        // One may lie within another: it begins later and ends earlier.
        for Range { start, end } in self.replaced {
            if start >= from {
                kept.push_str(&self.out[from..start]);
            }
            from = from.max(end);
        }
        kept.push_str(&self.out[from..]);
        kept
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.step();
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.step())
    }

    fn peek(&self) -> Option<u8> {
        self.json.get(self.at).copied()
    }

    fn step(&mut self) {
        self.at += 1;
    }
}

impl Half {
    /// At most three bytes: with four a character is complete.
    fn of_bytes(begun: &[u8]) -> Self {
        let mut bytes = [0; 3];
        let len = begun.len().min(bytes.len());
        bytes[..len].copy_from_slice(&begun[..len]);
        Self::Bytes { bytes, len }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn whole(text: &[u8]) -> Option<Value> {
        // As a reader of known fields does it: a repeated key is an error to it.
        let (mended, _) = mend(text, Vec::new(), false)?;
        Some(serde_json::from_str(&mended).unwrap_or_else(|error| panic!("{error} in {mended}")))
    }

    #[derive(Debug, Deserialize)]
    struct Delta {
        content: Option<String>,
        reasoning: Option<String>,
    }

    /// The contents of these chunks.
    fn contents(chunks: &[&[u8]]) -> String {
        let mut reader = JsonReader::default();
        chunks
            .iter()
            .map(|chunk| reader.chunk::<Delta>(chunk).unwrap().content.unwrap_or_default())
            .collect()
    }

    #[test]
    fn the_last_of_repeated_keys_counts() {
        let mut reader = JsonReader::default();
        let read: Delta = reader
            .whole(br#"{"reasoning":"hm", "content" :"a","x":[{"y":1,"y":2}],"reasoning":null,"content":"b"}"#)
            .unwrap();
        assert_eq!((read.content.as_deref(), read.reasoning), (Some("b"), None));
        let nested = br#"{"a":{"b":1,"b":2},"c":[],"a":{"b":3,"\u0062":4}, "c":{}}"#;
        let mended = mend(nested, Vec::new(), false).unwrap().0;
        assert_eq!(mended, r#"{"a":{"\u0062":4},"c":{}}"#.replace("\\u0062", "b"));
    }

    #[test]
    fn what_strict_readers_refuse_is_read() {
        let cases: [(&[u8], Value); 8] = [
            (b"[NaN, Infinity,-Infinity, 1e999]", json!([null, null, null, null])),
            (b" {\"a\":\"b\tc\nd\x01\"} ", json!({"a": "b\tc\nd\u{1}"})),
            (
                br#"["\ud83c you","\udf89","\ud83cx\ud83c\udf89","\ud83c\u0041"]"#,
                json!(["\u{fffd} you", "\u{fffd}", "\u{fffd}x🎉", "\u{fffd}A"]),
            ),
            (br#"["\ud83c"]"#, json!(["\u{fffd}"])),
            (b"[\"a\xf0\x9f\", \"\xff\xe2\x82b\"]", json!(["a\u{fffd}", "\u{fffd}\u{fffd}b"])),
            (
                br#"[1.50,-0,12345678901234567890123,true,"\"\\\/\b\f\n\r\t\u00e9"]"#,
                serde_json::from_str(
                    r#"[1.50,-0,12345678901234567890123,true,"\"\\\/\b\f\n\r\t\u00e9"]"#,
                )
                .unwrap(),
            ),
            (b"{}", json!({})),
            (b"[[],{}]", json!([[], {}])),
        ];
        for (text, value) in cases {
            assert_eq!(whole(text), Some(value), "{}", String::from_utf8_lossy(text));
        }
    }

    #[test]
    fn what_nobody_reads_is_refused() {
        for text in [
            "",
            "{",
            "{oops",
            "[1",
            "[1 2]",
            "{\"a\"}",
            "{'a':1}",
            "[\"\\x\"]",
            "[\"\\u12\"]",
            "1 2",
            "[undefined]",
            "\"a",
        ] {
            assert!(mend(text.as_bytes(), Vec::new(), false).is_none(), "{text}");
        }
        let deep = "[".repeat(MAX_DEPTH + 1) + &"]".repeat(MAX_DEPTH + 1);
        assert!(whole(deep.as_bytes()).is_none());
        assert!(whole(&deep.as_bytes()[1..deep.len() - 1]).is_some());
        let long = format!("[NaN{}]", " ".repeat(MAX_MENDED));
        assert!(JsonReader::default().whole::<Value>(long.as_bytes()).is_err());
        assert!(JsonReader::default().whole::<Value>(&long.as_bytes()[..MAX_MENDED]).is_err());
        assert!(whole(format!("[NaN{}]", " ".repeat(MAX_MENDED - 5)).as_bytes()).is_some());
    }

    #[test]
    fn a_character_that_two_chunks_share_is_joined() {
        let surrogates: [&[u8]; 4] = [
            br#"{"content":"a\ud83c"}"#,
            br#"{"content":""}"#,
            b"{}",
            br#"{"content":"\udf89 b"}"#,
        ];
        assert_eq!(contents(&surrogates), "a🎉 b");
        for cut in 1..4 {
            let (first, rest) = "🎉".as_bytes().split_at(cut);
            let chunks = [
                [&b"{\"content\":\"a"[..], first, b"\"}"].concat(),
                [&b"{\"content\":\""[..], rest, b"b\"}"].concat(),
            ];
            assert_eq!(contents(&[&chunks[0], &chunks[1]]), "a🎉b", "{cut}");
        }
        assert_eq!(
            contents(&[br#"{"content":"a\ud83c"}"#, br#"{"content":"b"}"#, br#"{"content":"c"}"#]),
            "a\u{fffd}bc"
        );
        assert_eq!(contents(&[br#"{"content":"a\ud83c"}"#, br#"{"reasoning":"x"}"#]), "a");
        let other = br#"{"reasoning":"\udf89","content":"b"}"#;
        let mut reader = JsonReader::default();
        reader.chunk::<Delta>(br#"{"content":"a\ud83c"}"#).unwrap();
        let read: Delta = reader.chunk(other).unwrap();
        assert_eq!(
            (read.reasoning.as_deref(), read.content.as_deref()),
            (Some("\u{fffd}"), Some("\u{fffd}b"))
        );
    }

    #[test]
    fn few_characters_wait_for_their_rest() {
        let mut reader = JsonReader::default();
        let many = format!("[{}\"\\ud83c\"]", "\"\\ud83c\",".repeat(100));
        reader.chunk::<Vec<String>>(many.as_bytes()).unwrap();
        assert_eq!(reader.cuts.len(), MAX_CUTS);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn good_json_stays_what_it_is(value in json_value()) {
            let text = value.to_string();
            let read: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(whole(text.as_bytes()), Some(read));
        }

        #[test]
        fn whatever_is_mended_is_json(bytes: Vec<u8>) {
            whole(&bytes);
        }

        #[test]
        fn whatever_looks_like_json_is_json_once_mended(text in "[\\[\\]{}\",:\\\\udDcC8 \u{e9}a1NaN-]{0,40}") {
            whole(text.as_bytes());
        }

        #[test]
        fn text_is_the_same_wherever_its_surrogates_and_bytes_are_cut(text: String, at in 0usize..200) {
            let bytes = text.escape_debug().to_string().replace(['\\', '"'], "");
            let bytes = bytes.as_bytes();
            let (first, rest) = bytes.split_at(at.min(bytes.len()));
            let chunk = |part: &[u8]| [b"{\"content\":\"", part, b"\"}"].concat();
            prop_assert_eq!(contents(&[&chunk(first), &chunk(rest)]).into_bytes(), bytes);
            let units: Vec<u16> = text.encode_utf16().take(200).collect();
            let escaped = |units: &[u16]| units.iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            let (first, rest) = units.split_at(at.min(units.len()));
            let chunks = [chunk(escaped(first).as_bytes()), chunk(escaped(rest).as_bytes())];
            prop_assert_eq!(contents(&[&chunks[0], &chunks[1]]), String::from_utf16(&units).unwrap());
        }
    }
}

//! JSON from other servers, read as leniently as their own clients read it.
//!
//! Strict reading comes first and costs nothing more. Where it fails, the text is [repaired](super::repair)
//! and read again; of a repeated key the last value counts, whatever it is.

use serde::Deserialize;

use super::{
    ordered::Ordered,
    repair::{Bounds, Repair, Seam},
};

/// The longest text that is mended, in bytes. Mending takes several times the text's memory.
pub const MAX_MENDED: usize = 4 * 1024 * 1024;

/// Reads the JSON of one answer: all of it, or chunk by chunk.
///
/// A character that two chunks share (half a surrogate pair in each, or some of its bytes) is joined, if
/// both parts are in the field of the same name.
#[derive(Debug, Clone, Default)]
pub struct JsonReader {
    mended: String,
    /// The beginnings of characters whose rest may come with the next chunk.
    seams: Vec<Seam>,
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
        if strict.is_ok() && self.seams.is_empty() {
            return strict;
        }
        let repair = Repair::joining(std::mem::take(&mut self.seams));
        let Some((mended, seams)) = mend(json, repair) else { return strict };
        (self.mended, self.seams) = (mended, seams);
        serde_json::from_str(&self.mended)
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

/// Mends the text of a request that strict readers refuse; `None` where it cannot be mended, or is longer
/// than [`MAX_MENDED`]. Some clients write such text, and stock servers read it.
pub fn mended(json: &[u8]) -> Option<String> {
    mend(json, Repair::new(Bounds::WHOLE)).map(|(mended, _)| mended)
}

/// The text as strict JSON without repeated keys, and its seams; `None` where it cannot be mended without
/// a loss or a guess.
fn mend(json: &[u8], mut repair: Repair) -> Option<(String, Vec<Seam>)> {
    if json.len() > MAX_MENDED {
        return None;
    }
    repair.push(json);
    let repaired = repair.finish().filter(|it| !it.is_cut && !it.has_bad_escapes)?;
    let value: Ordered = serde_json::from_str(&repaired.text).ok()?;
    Some((super::write(&value), repaired.seams))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::{super::repair::MAX_SEAMS, *};

    fn whole(text: &[u8]) -> Option<Value> {
        let mended = mended(text)?;
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
        assert_eq!(mended(nested).unwrap(), r#"{"a":{"b":4},"c":{}}"#);
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
            assert_eq!(mended(text.as_bytes()), None, "{text}");
        }
        let depth = Bounds::WHOLE.depth + 1;
        let deep = "[".repeat(depth) + &"]".repeat(depth);
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
        assert_eq!(reader.seams.len(), MAX_SEAMS);
    }

    fn json_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            // The last digit of a longer fraction may change.
            any::<i32>().prop_map(|number| Value::from(f64::from(number) / 16.0)),
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

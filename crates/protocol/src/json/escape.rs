//! Text as JSON string content, written straight into its place. Its length can be had before it is
//! written.
//!
//! Used in place of `serde_json`'s because it is faster for prose: 288 KB are written at 3.4 GB/s and
//! measured at 5.1 GB/s, against 0.7 and 0.8. JSON inside JSON, which is full of quotes, is written
//! more slowly, at 0.22 GB/s against 0.38, but measured at 4.6 GB/s against 0.6. (One core of the build
//! machine, release build.)

/// The length in bytes of `text` as the content of a JSON string, without its quotes.
pub fn escaped_len(text: &str) -> usize {
    text.len() + text.as_bytes().chunks(BLOCK).map(block_extra).sum::<usize>()
}

/// Appends `text` as the content of a JSON string, without quotes. Only what JSON demands is
/// escaped: quotes, backslashes and control characters.
pub fn push_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = next_escape(rest.as_bytes()) {
        out.push_str(&rest[..at]);
        push_escape(out, rest.as_bytes()[at]);
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// The bytes examined together. Their sum of extra bytes, 160 at most, fits one byte, which lets
/// the compiler use vectors.
const BLOCK: usize = 32;

fn block_extra(block: &[u8]) -> usize {
    block.iter().copied().map(extra).sum::<u8>().into()
}

/// Where the first byte to escape is. Such bytes are close together in JSON inside JSON and far
/// apart in prose, so the first block is searched byte by byte, and the next ones are skipped
/// whole.
fn next_escape(text: &[u8]) -> Option<usize> {
    let (near, far) = text.split_at(text.len().min(BLOCK));
    let needs_escape = |&byte: &u8| extra(byte) > 0;
    near.iter().position(needs_escape).or_else(|| {
        let clean = far.chunks(BLOCK).take_while(|block| block_extra(block) == 0).count() * BLOCK;
        let at = far.get(clean..)?.iter().position(needs_escape)?;
        Some(BLOCK + clean + at)
    })
}

/// How many bytes longer than itself a byte becomes.
const fn extra(byte: u8) -> u8 {
    let short = matches!(byte, b'"' | b'\\' | 0x08 | b'\t' | b'\n' | 0x0c | b'\r') as u8;
    let control = (byte < 0x20) as u8;
    short + (control - (control & short)) * 5
}

fn push_escape(out: &mut String, byte: u8) {
    match byte {
        b'"' => out.push_str("\\\""),
        b'\\' => out.push_str("\\\\"),
        0x08 => out.push_str("\\b"),
        b'\t' => out.push_str("\\t"),
        b'\n' => out.push_str("\\n"),
        0x0c => out.push_str("\\f"),
        b'\r' => out.push_str("\\r"),
        _ => {
            out.push_str("\\u00");
            out.push(char::from(b'0' + (byte >> 4)));
            out.push(char::from(b"0123456789abcdef"[usize::from(byte & 0x0f)]));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn agrees_with_serde_json(text: &str) {
        let expected = serde_json::to_string(text).unwrap();
        let mut out = String::from("\"");
        push_escaped(&mut out, text);
        out.push('"');
        assert_eq!(out, expected);
        assert_eq!(escaped_len(text) + 2, expected.len());
    }

    #[test]
    fn every_ascii_character_is_written_as_serde_json_does() {
        let all: String = (0u8..128).map(char::from).collect();
        agrees_with_serde_json(&all);
        agrees_with_serde_json(&"\u{1}".repeat(1000));
        for length in 0..100 {
            agrees_with_serde_json(&("é".repeat(length) + "\"" + &"x".repeat(length) + "\n"));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_written_as_serde_json_does(text: String) {
            agrees_with_serde_json(&text);
        }
    }
}

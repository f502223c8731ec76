//! How many tokens a prompt has, estimated from its bytes.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::usage::IMAGE_TOKENS;

/// Bytes of JSON that make a token, by rule of thumb.
const BYTES_PER_TOKEN: usize = 4;

/// Encoded files follow one of these: a data URL in OpenAI's shapes, a source in Anthropic's.
static FILES: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b";base64,"), Finder::new(b"\"data\"")]);

/// Strings shorter than this are text, in bytes.
const SHORTEST_FILE: usize = 256;

/// An estimate of the tokens of a prompt, given as raw bytes of the body: one token for each four
/// bytes. Each encoded file in it, usually a picture, counts as [`IMAGE_TOKENS`].
pub fn prompt_tokens(prompt: &[u8]) -> u64 {
    let files = FILES.iter().flat_map(|finder| {
        finder.find_iter(prompt).map(|at| rest_of_string(&prompt[at + finder.needle().len()..]))
    });
    let (count, bytes) = files
        .filter(|len| *len >= SHORTEST_FILE)
        .fold((0, 0), |(count, bytes), len| (count + 1, bytes + len));
    let text = prompt.len().saturating_sub(bytes).div_ceil(BYTES_PER_TOKEN);
    text as u64 + count * IMAGE_TOKENS
}

/// The length of the rest of a string, or of the string that follows `: "`.
fn rest_of_string(rest: &[u8]) -> usize {
    let value = rest.trim_ascii_start();
    let value = value.strip_prefix(b":").map_or(value, <[u8]>::trim_ascii_start);
    let value = value.strip_prefix(b"\"").unwrap_or(value);
    memchr::memchr(b'"', value).unwrap_or(value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_counts_by_its_length() {
        assert_eq!(prompt_tokens(b""), 0);
        assert_eq!(prompt_tokens(b"\"12345678\""), 3);
        assert_eq!(prompt_tokens(&[b'x'; 4000]), 1000);
    }

    #[test]
    fn files_count_the_same_whatever_their_size() {
        for size in [1_000, 1_000_000] {
            let file = "A".repeat(size);
            let url = format!(r#"[{{"image_url":{{"url":"data:image/png;base64,{file}"}}}}]"#);
            let source = format!(r#"[{{"source":{{"type":"base64","data" : "{file}"}}}}]"#);
            for prompt in [url, source] {
                let tokens = prompt_tokens(prompt.as_bytes());
                assert!((IMAGE_TOKENS..IMAGE_TOKENS + 20).contains(&tokens), "{size}: {tokens}");
            }
        }
        assert_eq!(prompt_tokens(br#"[{"data":"short"}]"#), 5);
    }
}

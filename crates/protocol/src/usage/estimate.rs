//! How many tokens a prompt or a text has, estimated without any model's vocabulary.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// How many tokens a picture counts as, whatever its size.
pub const IMAGE_TOKENS: u64 = 1600;

/// An estimate of a text's tokens: one for four ASCII characters, and two for three other
/// characters, which fits the usual vocabularies for prose. For English and code it is right within
/// about a fifth; it is no model's exact count.
pub fn estimate_tokens(text: &str) -> u64 {
    let mut tally = Tally::default();
    tally.add(text);
    tally.tokens()
}

/// The same estimate for a text in pieces, however it is cut.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    ascii: u64,
    wide: u64,
}

impl Tally {
    /// The next piece.
    pub fn add(&mut self, text: &str) {
        self.ascii += text.bytes().filter(u8::is_ascii).count() as u64;
        self.wide += text.chars().filter(|character| !character.is_ascii()).count() as u64;
    }

    /// Counts the next piece, given only its number of ASCII characters.
    pub fn add_ascii(&mut self, characters: u64) {
        self.ascii += characters;
    }

    /// How many tokens the pieces have together.
    pub fn tokens(self) -> u64 {
        self.ascii.div_ceil(4) + self.wide * 2 / 3
    }
}

/// How many bytes of JSON count as a token, by rule of thumb.
const BYTES_PER_TOKEN: usize = 4;

/// The text before an encoded file: a data URL in OpenAI's APIs, the key of a source in Anthropic's.
static FILES: LazyLock<[Finder<'static>; 2]> =
    LazyLock::new(|| [Finder::new(b";base64,"), Finder::new(b"\"data\"")]);

/// The length from which such a string counts as a file, in bytes. Shorter ones are text.
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
    fn four_letters_or_one_and_a_half_signs_are_a_token() {
        assert_eq!(estimate_tokens(""), 0);
        assert_eq!(estimate_tokens("a"), 1);
        assert_eq!(estimate_tokens("Hello, world"), 3);
        assert_eq!(estimate_tokens("你好世界你好"), 4);
    }

    #[test]
    fn more_text_is_never_fewer_tokens() {
        let text = "A sentence with ä, 好 and an emoji 🙂 in it.";
        let counts: Vec<u64> = (0..=text.len())
            .filter(|&end| text.is_char_boundary(end))
            .map(|end| estimate_tokens(&text[..end]))
            .collect();
        assert!(counts.is_sorted());
    }

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

//! How many tokens a text has, estimated without any model's vocabulary.

/// The token count of a picture of any size.
pub const IMAGE_TOKENS: u64 = 1600;

/// How many tokens a text may have: a token for four ASCII characters, and one for each other
/// character but a third of the letters beyond ASCII, as vocabularies have it for prose. Within
/// about a fifth for English and code; no model's exact count.
pub fn estimate_tokens(text: &str) -> u64 {
    let mut tally = Tally::default();
    tally.add(text);
    tally.tokens()
}

/// The same estimate of a text that comes in pieces, however it is cut.
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
}

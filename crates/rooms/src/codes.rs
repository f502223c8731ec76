//! Codes that people can say and type.
//!
//! Every room has two codes: a spoken one, such as `swift-eagle-42`, and one of six characters, the
//! form that stock clients know. Neither is a strong secret: `attempts` stops guessing.

use rand::{Rng, RngExt};

use words::{ADJECTIVES, ANIMALS};

mod words;

/// The characters of short codes that are generated here, without those that are easily confused.
const SHORT: &[u8; 32] = b"23456789ABCDEFGHJKLMNPQRSTUVWXYZ";

/// The length of a short code.
const SHORT_LENGTH: usize = 6;

/// The longest text, in bytes, that can be a code.
const LONGEST: usize = 64;

/// A code in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Code {
    /// Six characters, in upper case.
    Short(String),
    /// Words and a number with dashes between them, in lower case.
    Spoken(String),
}

impl Code {
    /// Its text.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Short(text) | Self::Spoken(text) => text,
        }
    }
}

/// A code to say aloud: `adjective-animal-NN`.
pub fn spoken(rng: &mut impl Rng) -> String {
    let adjective = ADJECTIVES[rng.random_range(..ADJECTIVES.len())];
    let animal = ANIMALS[rng.random_range(..ANIMALS.len())];
    let number = rng.random_range(10..=99);
    format!("{adjective}-{animal}-{number}")
}

/// A code of six characters.
pub fn short(rng: &mut impl Rng) -> String {
    let character = |_| char::from(SHORT[rng.random_range(..SHORT.len())]);
    (0..SHORT_LENGTH).map(character).collect()
}

/// The code in a typed text, in any case and with any spaces or dashes. `None` when the text cannot
/// be a code.
pub fn normalise(text: &str) -> Option<Code> {
    if text.len() > LONGEST {
        return None;
    }
    let typed = text.trim().chars().map(plain).collect::<String>();
    let short = typed.split_whitespace().collect::<String>();
    if short.len() == SHORT_LENGTH {
        return short.bytes().all(is_short).then(|| Code::Short(short.to_ascii_uppercase()));
    }
    let parts = typed.split(|c: char| c == '-' || c == '_' || c.is_whitespace());
    let spoken = parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-");
    let plain = spoken.bytes().all(|byte| byte == b'-' || byte.is_ascii_alphanumeric());
    (plain && !spoken.is_empty()).then(|| Code::Spoken(spoken.to_ascii_lowercase()))
}

/// Replaces the typographic dashes of some keyboards with the plain one.
fn plain(typed: char) -> char {
    match typed {
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        other => other,
    }
}

/// Whether a byte can be part of a short code. Stock servers also use dashes and underscores.
fn is_short(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    fn spoken_code(text: &str) -> Option<Code> {
        Some(Code::Spoken(text.to_owned()))
    }

    fn short_code(text: &str) -> Option<Code> {
        Some(Code::Short(text.to_owned()))
    }

    #[test]
    fn codes_that_are_made_are_found_as_they_are_and_however_they_are_typed() {
        let mut rng = StdRng::seed_from_u64(4);
        for _ in 0..1000 {
            let (spoken, short) = (spoken(&mut rng), short(&mut rng));
            assert_eq!(normalise(&spoken), spoken_code(&spoken));
            assert_eq!(normalise(&format!(" {} ", spoken.to_uppercase())), spoken_code(&spoken));
            assert_eq!(normalise(&spoken.replace('-', " ")), spoken_code(&spoken));
            assert_eq!(normalise(&short), short_code(&short));
            assert_eq!(normalise(&format!("\t{}\n", short.to_lowercase())), short_code(&short));
        }
    }

    #[test]
    fn spoken_codes_are_an_adjective_an_animal_and_two_digits() {
        let mut rng = StdRng::seed_from_u64(1);
        for _ in 0..1000 {
            let code = spoken(&mut rng);
            let parts = code.split('-').collect::<Vec<_>>();
            let [adjective, animal, number] = parts[..] else { panic!("{code}") };
            assert!(ADJECTIVES.contains(&adjective) && ANIMALS.contains(&animal), "{code}");
            assert!((10..=99).contains(&number.parse::<u8>().unwrap()), "{code}");
        }
    }

    #[test]
    fn short_codes_are_six_characters_that_are_not_taken_for_each_other() {
        let mut rng = StdRng::seed_from_u64(2);
        let codes = (0..1000).map(|_| short(&mut rng)).collect::<Vec<_>>();
        assert!(codes.iter().all(|code| code.len() == 6));
        let used = codes.iter().flat_map(|code| code.chars()).collect::<HashSet<_>>();
        assert_eq!(used, SHORT.iter().copied().map(char::from).collect());
    }

    #[test]
    fn of_ten_thousand_codes_next_to_none_is_like_another() {
        let mut rng = StdRng::seed_from_u64(3);
        let mut distinct = |make: fn(&mut StdRng) -> String| {
            (0..10_000).map(|_| make(&mut rng)).collect::<HashSet<_>>().len()
        };
        assert!(distinct(spoken) > 9_980);
        assert!(distinct(short) > 9_990);
    }

    #[test]
    fn codes_of_stock_servers_keep_their_dashes_and_underscores() {
        assert_eq!(normalise("a_b-c1"), short_code("A_B-C1"));
        assert_eq!(normalise("------"), short_code("------"));
    }

    #[test]
    fn other_dashes_and_doubled_ones_are_forgiven() {
        assert_eq!(normalise("Swift\u{2013}Eagle — 42"), spoken_code("swift-eagle-42"));
        assert_eq!(normalise("swift_eagle__42"), spoken_code("swift-eagle-42"));
        assert_eq!(normalise("4v9 sxc"), short_code("4V9SXC"));
    }

    #[test]
    fn a_text_that_cannot_be_a_code_is_refused() {
        let long = "a-".repeat(64);
        for text in ["", " ", "---", "ü-eagle-42", "swift/eagle", "abc\0ef", "swift.", &long] {
            assert_eq!(normalise(text), None, "{text:?}");
        }
    }
}

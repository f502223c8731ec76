//! What is typed: keys for the session, and the one that detaches.

use std::str::FromStr;

/// The key that detaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetachKey(Option<u8>);

impl FromStr for DetachKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if lower == "none" {
            return Ok(Self(None));
        }
        let name = lower.strip_prefix("ctrl-").or_else(|| lower.strip_prefix('^'));
        match name.map(str::as_bytes) {
            // Enter, tab and escape are the same bytes; a user without these could hardly type.
            Some(b"m" | b"j" | b"i" | b"[") => Err(format!("{text} is needed for typing")),
            Some(&[key @ (b'a'..=b'z' | b']' | b'\\' | b'^' | b'_' | b'@')]) => {
                Ok(Self(Some(key.to_ascii_uppercase() & 0x1f)))
            }
            _ => Err("expected ctrl- and a letter or one of ] \\ ^ _ @, such as ctrl-], or none"
                .to_owned()),
        }
    }
}

impl DetachKey {
    /// The keys before the one that detaches, and whether that was among them.
    pub(super) fn split<'a>(&self, typed: &'a [u8]) -> (&'a [u8], bool) {
        let spellings = self.0.map(spellings).into_iter().flatten();
        let found = spellings.filter_map(|spelling| find(typed, &spelling)).min();
        found.map_or((typed, false), |at| (&typed[..at], true))
    }
}

/// A control key as terminals send it: as its byte, or where a program asked for that, as a sequence
/// of its character and modifiers.
fn spellings(key: u8) -> [Vec<u8>; 3] {
    let character = (key | 0x40).to_ascii_lowercase();
    [
        vec![key],
        format!("\u{1b}[{character};5u").into_bytes(),
        format!("\u{1b}[27;5;{character}~").into_bytes(),
    ]
}

fn find(typed: &[u8], wanted: &[u8]) -> Option<usize> {
    typed.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> DetachKey {
        text.parse().unwrap()
    }

    #[test]
    fn keys_are_named_as_people_name_them() {
        for (text, byte) in
            [("ctrl-]", 0x1d), ("Ctrl-B", 2), ("^q", 0x11), ("ctrl-\\", 0x1c), ("ctrl-@", 0)]
        {
            assert_eq!(key(text), DetachKey(Some(byte)), "{text}");
        }
        assert_eq!(key("none"), DetachKey(None));
        for text in ["", "x", "ctrl-", "ctrl-ab", "ctrl-m", "ctrl-[", "ctrl-é", "alt-x"] {
            assert!(text.parse::<DetachKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn input_before_the_detach_key_goes_to_the_session() {
        let split = |typed: &'static [u8]| key("ctrl-]").split(typed);
        assert_eq!(split(b"ls\r"), (&b"ls\r"[..], false));
        assert_eq!(split(b"ls\x1dmore"), (&b"ls"[..], true));
        assert_eq!(split(b"a\x1b[93;5ub"), (&b"a"[..], true));
        assert_eq!(split(b"\x1b[27;5;93~"), (&b""[..], true));
        assert_eq!(key("none").split(b"\x1d"), (&b"\x1d"[..], false));
        assert_eq!(key("ctrl-b").split(b"\x1b[98;5u"), (&b""[..], true));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_where_nobody_detaches(typed: Vec<u8>) {
            let (keys, detaches) = key("ctrl-]").split(&typed);
            prop_assert!(typed.starts_with(keys));
            prop_assert_eq!(detaches, keys.len() < typed.len());
            prop_assert!(!keys.contains(&0x1d));
        }
    }
}

//! Whether a terminal is at rest: between characters and control sequences, so that something else may
//! be written there.

/// The terminal's state after the bytes that it has read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Rest {
    /// At rest.
    #[default]
    Ground,
    Escape,
    /// After an escape and what goes between it and its last character.
    Between,
    Control,
    /// In text for the terminal itself, such as a title; `bell`: a bell may end it.
    Text {
        bell: bool,
    },
    /// After an escape in such text.
    TextEscape {
        bell: bool,
    },
}

impl Rest {
    /// Takes the next bytes that the terminal reads.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((first, more)) = rest.split_first() {
            if *self == Self::Ground {
                // Nothing but an escape matters here, and most bytes are text.
                match rest.iter().position(|byte| *byte == 0x1b) {
                    None => return,
                    Some(at) => (rest, *self) = (&rest[at + 1..], Self::Escape),
                }
                continue;
            }
            *self = self.after(*first);
            rest = more;
        }
    }

    pub(super) fn is_ground(self) -> bool {
        self == Self::Ground
    }

    fn after(self, byte: u8) -> Self {
        match (self, byte) {
            (_, 0x18 | 0x1a) => Self::Ground,
            (Self::Text { bell: true }, 0x07) => Self::Ground,
            (Self::Text { bell }, 0x1b) => Self::TextEscape { bell },
            (Self::Text { .. }, _) => self,
            (Self::TextEscape { .. }, b'\\') => Self::Ground,
            (_, 0x1b) => Self::Escape,
            (Self::Escape | Self::TextEscape { .. }, b'[') => Self::Control,
            (Self::Escape | Self::TextEscape { .. }, b']') => Self::Text { bell: true },
            (Self::Escape | Self::TextEscape { .. }, b'P' | b'X' | b'^' | b'_') => {
                Self::Text { bell: false }
            }
            (Self::Escape | Self::TextEscape { .. } | Self::Between, 0x20..=0x2f) => Self::Between,
            (Self::Escape | Self::TextEscape { .. } | Self::Between, 0x30..=0x7e)
            | (Self::Control, 0x40..=0x7e) => Self::Ground,
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn after(bytes: &[u8]) -> Rest {
        let mut rest = Rest::default();
        rest.read(bytes);
        rest
    }

    #[test]
    fn sequences_are_at_rest_when_they_are_whole() {
        for whole in [
            "",
            "text é\r\n\u{7}",
            "\u{1b}[1;31m",
            "\u{1b}7",
            "\u{1b}(B",
            "\u{1b}]0;title\u{7}",
            "\u{1b}]0;title\u{1b}\\",
            "\u{1b}Pq#1\u{7}\u{1b}\\",
            "\u{1b}[?1049h\u{1b}[2J",
            "\u{1b}[12\u{18}",
            "\u{1b}]0;cut\u{1b}[m",
        ] {
            assert!(after(whole.as_bytes()).is_ground(), "{whole:?}");
        }
        for half in
            ["\u{1b}", "\u{1b}[1;", "\u{1b}(", "\u{1b}]0;t", "\u{1b}Pq\u{7}", "\u{1b}]\u{1b}"]
        {
            assert!(!after(half.as_bytes()).is_ground(), "{half:?}");
        }
    }

    proptest! {
        #[test]
        fn it_does_not_matter_where_bytes_are_cut(
            bytes in prop::collection::vec(prop::sample::select(&b"\x1b[]P\\\x07m;1 (B\x18a"[..]), 0..40),
            cut: prop::sample::Index,
        ) {
            let cut = cut.index(bytes.len() + 1);
            let mut parts = after(&bytes[..cut]);
            parts.read(&bytes[cut..]);
            prop_assert_eq!(parts, after(&bytes));
        }
    }
}

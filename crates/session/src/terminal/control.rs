//! A control sequence, taken apart.

/// A whole sequence that begins with `CSI`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Control<'a> {
    /// The character before the numbers, if any.
    pub(super) marker: Option<char>,
    /// The numbers, as written.
    pub(super) numbers: &'a str,
    /// The characters between the numbers and the last character.
    pub(super) between: &'a str,
    pub(super) last: char,
}

impl<'a> Control<'a> {
    pub(super) fn read(sequence: &'a str) -> Option<Self> {
        let body = sequence.strip_prefix("\x1b[")?;
        let last = body.chars().next_back()?;
        let body = &body[..body.len() - last.len_utf8()];
        let marker = body.chars().next().filter(|first| matches!(first, '<'..='?'));
        let body = &body[marker.map_or(0, char::len_utf8)..];
        let numbers = body.trim_end_matches(|character| matches!(character, ' '..='/'));
        Some(Self { marker, numbers, between: &body[numbers.len()..], last })
    }

    /// The first number; 0 if there is none.
    pub(super) fn number(&self) -> u16 {
        match self.numbers.split([';', ':']).next() {
            None | Some("") => 0,
            // A number that is too large counts as the largest.
            Some(first) => first.parse().unwrap_or(u16::MAX),
        }
    }
}

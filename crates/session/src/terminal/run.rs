//! Runs of bytes of one kind, read eight at a time: a flood of coloured words has a control sequence every
//! few bytes, where a call of a general search costs more than it finds.

/// A word with this byte in each of its eight places.
const fn each(byte: u8) -> u64 {
    u64::from_ne_bytes([byte; 8])
}

const ESC: u8 = 0x1b;
/// The words in which an escape is looked for before the general search is called.
const NEAR: usize = 3;

/// The position of the first `ESC`.
#[inline]
pub(super) fn escape(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    for _ in 0..NEAR {
        let Some((word, after)) = rest.split_first_chunk() else { break };
        // `zero` has a zero byte where the text has an escape. The subtraction borrows only from later bytes, so
        // the first mark is right.
        let zero = u64::from_le_bytes(*word) ^ each(ESC);
        let found = zero.wrapping_sub(each(1)) & !zero & each(0x80);
        if found != 0 {
            return Some(text.len() - rest.len() + first(found));
        }
        rest = after;
    }
    memchr::memchr(ESC, rest).map(|at| text.len() - rest.len() + at)
}

/// The length of the run of parameters and intermediate characters (` ` to `?`) at the beginning.
#[inline]
pub(super) fn parameters(text: &[u8]) -> usize {
    run(text, |word| (word & each(0xe0)) ^ each(0x20))
}

/// The length of the run of digits, colons and semicolons (`0` to `;`) at the beginning.
#[inline]
pub(super) fn numbers(text: &[u8]) -> usize {
    // Of the sixteen characters `0` to `?`, those from `<` on are no numbers: they have both bit 2 and bit 3.
    run(text, |word| (word & each(0xf0)) ^ each(0x30) | word & (word << 1) & each(0x08))
}

/// The length of the run of printable ASCII characters (` ` to `~`) at the beginning.
#[inline]
pub(super) fn printable(text: &[u8]) -> usize {
    run(text, |word| {
        let below = !(word | each(0x80)).wrapping_sub(each(0x20));
        let delete = (word & each(0x7f)).wrapping_add(each(1));
        (below | delete | word) & each(0x80)
    })
}

/// The length of the run at the beginning in which `others` marks no byte. `others` marks a byte by setting
/// any of its bits. Only the first mark counts: `others` may mark any byte after it.
#[inline]
fn run(text: &[u8], others: impl Fn(u64) -> u64) -> usize {
    let mut rest = text;
    while let Some((word, after)) = rest.split_first_chunk() {
        let found = others(u64::from_le_bytes(*word));
        if found != 0 {
            return text.len() - rest.len() + first(found);
        }
        rest = after;
    }
    let is_other = |byte: &u8| others(u64::from(*byte)) & 0xff != 0;
    text.len() - rest.len() + rest.iter().position(is_other).unwrap_or(rest.len())
}

/// The position of the first marked byte.
#[inline]
const fn first(found: u64) -> usize {
    found.trailing_zeros() as usize / 8
}

#[cfg(test)]
mod tests {
    use proptest::{collection::vec, prelude::*};

    use super::*;

    /// Bytes that are mostly of one run, of any length.
    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let near = prop::sample::select(b" /09:;<?@m~\x1b\x1a\x1c\x1f\x7f\x80\x9b\xff".as_slice());
        vec(prop_oneof![8 => Just(b'1'), 2 => near, 1 => any::<u8>()], 0..70)
    }

    proptest! {
        #[test]
        fn a_run_ends_at_the_first_byte_of_another_kind(text in bytes()) {
            let until = |is_other: fn(&u8) -> bool| {
                text.iter().position(is_other).unwrap_or(text.len())
            };
            prop_assert_eq!(parameters(&text), until(|byte| !matches!(byte, b' '..=b'?')));
            prop_assert_eq!(numbers(&text), until(|byte| !matches!(byte, b'0'..=b';')));
            prop_assert_eq!(printable(&text), until(|byte| !matches!(byte, b' '..=b'~')));
            prop_assert_eq!(escape(&text), text.iter().position(|byte| *byte == ESC));
        }
    }

    #[test]
    fn each_byte_is_told_apart_in_each_place() {
        for at in 0..8 {
            for byte in 0..=255 {
                let mut text = [b'1'; 8];
                text[at] = byte;
                let is_in = |range: std::ops::RangeInclusive<u8>| {
                    if range.contains(&byte) { 8 } else { at }
                };
                assert_eq!(parameters(&text), is_in(b' '..=b'?'), "{byte} at {at}");
                assert_eq!(numbers(&text), is_in(b'0'..=b';'), "{byte} at {at}");
                assert_eq!(printable(&text), is_in(b' '..=b'~'), "{byte} at {at}");
                assert_eq!(escape(&text), (byte == ESC).then_some(at), "{byte} at {at}");
            }
        }
    }
}

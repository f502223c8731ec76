//! Text that nobody will see: a flood scrolls most of itself away within one call.
//!
//! A *stretch* is text with nothing in it but characters, simple controls and sequences that change
//! the pen. In a stretch the cursor never goes up. So when the margins are at the edges, and every
//! row that will be visible at its end was made by a line feed that scrolled, then what came before
//! those line feeds matters only for the pen. The first line feeds may only move the cursor to the
//! bottom, so it takes up to `rows` - 1 of these, and then `rows` more to push everything out.

use memchr::{Memchr, memchr, memchr2, memrchr};

const ESC: u8 = 0x1b;
/// A sequence of the pen that is longer is not taken for one: the scanner bounds it.
const LONGEST_PEN: usize = 256;
/// Less than this is not worth leaving out.
const LEAST: usize = 256;
/// The engine reads no more parameters than this, and drops a sequence that has more.
const MOST_PARAMETERS: usize = 30;

/// How long the stretch is that `text` begins with.
pub(super) fn stretch(text: &[u8]) -> usize {
    let mut end = 0;
    while let Some(found) = memchr(ESC, &text[end..]) {
        match pen(&text[end + found..]) {
            Some(len) => end += found + len,
            None => return end + found,
        }
    }
    text.len()
}

/// Where in `stretch` that begins which can still be seen after `rows` line feeds have pushed out
/// what was before it; none, if that is not worth it or a character set changes in between.
///
/// It is always the beginning of a line: there the column is known.
pub(super) fn visible(stretch: &[u8], rows: usize) -> Option<usize> {
    let mut at = stretch.len();
    let mut feeds = 0;
    loop {
        at = memrchr(b'\n', &stretch[..at])?;
        if at < LEAST {
            return None;
        }
        if feeds >= rows && stretch[at - 1] == b'\r' {
            break;
        }
        feeds += 1;
    }
    memchr2(0x0e, 0x0f, &stretch[..at]).is_none().then_some(at + 1)
}

/// The sequences of a stretch that still matter for the pen at its end: those after the last reset.
pub(super) fn pens(stretch: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = last_reset(stretch);
    let rest = &stretch[start..];
    Memchr::new(ESC, rest).filter_map(move |at| pen(&rest[at..]).map(|len| &rest[at..at + len]))
}

/// The character that a stretch ends with, if it takes a cell, whatever marks are put on it;
/// `before` is that of what was before the stretch.
pub(super) fn last_printed(stretch: &str, before: Option<char>) -> Option<char> {
    let bare = stretch.trim_end_matches(super::feed::is_mark);
    let Some(last) = bare.chars().next_back() else { return before };
    if last == 'm' && ends_in_pen(bare.as_bytes()) {
        return None;
    }
    super::feed::takes_cell(last).then_some(last)
}

/// The length of the sequence for the pen that `text` begins with: `CSI`, numbers, `m`.
fn pen(text: &[u8]) -> Option<usize> {
    let body = text.strip_prefix(b"\x1b[")?;
    let len = body.iter().take(LONGEST_PEN).position(|byte| !matches!(byte, b'0'..=b';'))?;
    (body[len] == b'm').then_some(len + 3)
}

fn ends_in_pen(stretch: &[u8]) -> bool {
    memrchr(ESC, stretch).is_some_and(|at| pen(&stretch[at..]) == Some(stretch.len() - at))
}

/// Where the last sequence begins that makes the pen plain before anything else.
fn last_reset(stretch: &[u8]) -> usize {
    let mut end = stretch.len();
    while let Some(at) = memrchr(ESC, &stretch[..end]) {
        if pen(&stretch[at..]).is_some_and(|len| resets(&stretch[at + 2..at + len - 1])) {
            return at;
        }
        end = at;
    }
    0
}

fn resets(numbers: &[u8]) -> bool {
    let separators = numbers.iter().filter(|byte| matches!(byte, b';' | b':')).count();
    matches!(numbers, [] | [b'0'] | [b'0', b';', ..]) && separators < MOST_PARAMETERS
}

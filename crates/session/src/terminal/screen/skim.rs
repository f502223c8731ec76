//! Skips text that nobody will see: most of a flood scrolls away within one call.
//!
//! A *stretch* is text that holds only characters, simple controls and sequences that change the
//! pen. Within a stretch the cursor never moves up. Suppose the margins are at the edges, and every
//! row that is visible at the end of the stretch was made by a line feed that scrolled. Then the
//! text before those line feeds matters only for the pen. The first line feeds, up to `rows` - 1,
//! may only move the cursor to the bottom; `rows` more then push everything out.

use memchr::{Memchr, memchr2, memrchr};

use crate::terminal::run;

const ESC: u8 = 0x1b;
/// The longest pen sequence that is recognised here, in bytes. The scanner handles longer ones, within
/// its bound.
const LONGEST_PEN: usize = 256;
/// Skipping fewer bytes than this is not worth the work.
const LEAST: usize = 256;

/// The length of the stretch at the beginning of `text`.
pub(super) fn stretch(text: &[u8]) -> usize {
    let mut end = 0;
    while let Some(found) = run::escape(&text[end..]) {
        match pen(&text[end + found..]) {
            Some(len) => end += found + len,
            None => return end + found,
        }
    }
    text.len()
}

/// The length of the run of printable ASCII characters at the beginning of a stretch.
pub(super) fn ascii_run(stretch: &[u8]) -> usize {
    run::printable(stretch)
}

/// The length of the part before the next run of printable ASCII or the next pen: controls and other
/// characters.
pub(super) fn others(stretch: &[u8]) -> usize {
    let mut end = 0;
    while let Some(byte) = stretch.get(end).filter(|byte| !is_printable(byte)) {
        // Every sequence of a stretch is a pen.
        if *byte == ESC {
            break;
        }
        end += 1;
    }
    end
}

/// The numbers of the pen that a stretch begins with, and the length of its sequence.
pub(super) fn leading_pen(stretch: &[u8]) -> Option<(&[u8], usize)> {
    let len = pen(stretch)?;
    Some((&stretch[2..len - 1], len))
}

fn is_printable(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~')
}

/// The position in `stretch` from which text can still be seen, after `rows` line feeds have pushed
/// out everything before it. `None` if skipping is not worth the work, or the character set changes
/// before that position.
///
/// The position is always the beginning of a line after a carriage return, since the column is
/// known there.
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
    // SO and SI choose the character set of all text after them, so they may not be skipped.
    memchr2(0x0e, 0x0f, &stretch[..at]).is_none().then_some(at + 1)
}

/// The numbers of the pens of a stretch that decide the pen at its end: those from the last reset on.
pub(super) fn pens(stretch: &[u8]) -> impl Iterator<Item = &[u8]> {
    let start = last_reset(stretch);
    let rest = &stretch[start..];
    Memchr::new(ESC, rest)
        .filter_map(move |at| leading_pen(&rest[at..]).map(|(numbers, _)| numbers))
}

/// The character that a stretch ends with, without its combining marks; `None` if that character
/// takes no cell. For a stretch of only marks, the result is `before`, the character before the
/// stretch.
pub(super) fn last_printed(stretch: &str, before: Option<char>) -> Option<char> {
    let bare = stretch.trim_end_matches(super::feed::is_mark);
    let Some(last) = bare.chars().next_back() else { return before };
    if last == 'm' && ends_in_pen(bare.as_bytes()) {
        return None;
    }
    super::feed::takes_cell(last).then_some(last)
}

/// The length of the pen sequence that `text` begins with: `CSI`, numbers, `m`. `None` if it begins
/// otherwise.
fn pen(text: &[u8]) -> Option<usize> {
    let body = text.strip_prefix(b"\x1b[")?;
    let body = &body[..body.len().min(LONGEST_PEN)];
    let len = run::numbers(body);
    (body.get(len) == Some(&b'm')).then_some(len + 3)
}

fn ends_in_pen(stretch: &[u8]) -> bool {
    memrchr(ESC, stretch).is_some_and(|at| pen(&stretch[at..]) == Some(stretch.len() - at))
}

/// The position of the last sequence that begins by resetting the pen; 0 if there is none.
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
    matches!(numbers, [] | [b'0'] | [b'0', b';', ..])
}

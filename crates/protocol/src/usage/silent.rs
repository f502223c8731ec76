//! The beginning of a stream's line that certainly has no generated text. It is found by search and
//! skipped.
//!
//! Text counts only after one of three keys. A line without any of them, or the part before the first one,
//! need not be read. Where a search could be wrong, nothing is skipped, and the reader decides.

use std::sync::LazyLock;

use memchr::{memchr, memchr_iter, memchr2, memmem::Finder};

static DELTA: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"delta\""));
static CHOICES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"choices\""));
static CANDIDATES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"candidates\""));
static TEXT: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"text\""));

/// How many bytes of a line can be skipped, if it is read from its beginning or from a place outside of
/// strings, and none of the three keys came before. The line is given without the `\n` that ends it, which is
/// counted where the whole line is skipped.
pub(super) fn silent(line: &[u8]) -> usize {
    if memchr(b'"', line).is_none() {
        return whole(line);
    }
    match first_key(line) {
        Key::None => whole(line),
        Key::At(at) if is_outside(&line[..at]) => at,
        Key::At(_) | Key::Unclear => 0,
    }
}

/// The first of the three keys.
enum Key {
    None,
    At(usize),
    Unclear,
}

fn first_key(line: &[u8]) -> Key {
    let Some(delta) = DELTA.find(line) else {
        let others = [&CHOICES, &CANDIDATES].map(|finder| finder.find(line));
        return others.into_iter().flatten().min().map_or(Key::None, Key::At);
    };
    // `choices` may come before `delta`: that matters only if `text` comes between them. A `delta`
    // without a colon may be a value.
    let is_key = line.get(delta + DELTA.needle().len()) == Some(&b':');
    let is_first = is_key && TEXT.find(&line[..delta]).is_none();
    if is_first { Key::At(delta) } else { Key::Unclear }
}

/// Whether the end of these bytes is outside of strings. Also `false` where counting quotes is not enough
/// to tell.
fn is_outside(before: &[u8]) -> bool {
    memchr2(b'\\', b'\r', before).is_none() && memchr_iter(b'"', before).count().is_multiple_of(2)
}

/// The length of the whole line with its end; 0 if it ends with a backslash, which may be in a string that
/// goes on.
fn whole(line: &[u8]) -> usize {
    if line.last() == Some(&b'\\') { 0 } else { line.len() + 1 }
}

//! The beginning of a stream's line that surely has no generated text: it is skipped by search, not read.
//!
//! Text counts only behind one of three keys. Where none of them is, or before the first of them, a line need
//! not be read. Where a search could err, nothing is skipped: the reader decides.

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
    // Behind `choices` alone only `text` counts. A `delta` without its colon may be a value.
    let is_key = line.get(delta + DELTA.needle().len()) == Some(&b':');
    let is_first = is_key && TEXT.find(&line[..delta]).is_none();
    if is_first { Key::At(delta) } else { Key::Unclear }
}

/// Whether what follows these bytes is in no string. `false` also where that would take more than counting
/// quotes.
fn is_outside(before: &[u8]) -> bool {
    memchr2(b'\\', b'\r', before).is_none() && memchr_iter(b'"', before).count().is_multiple_of(2)
}

/// The whole line and its end; nothing where a backslash before that end may be of a string, which goes on.
fn whole(line: &[u8]) -> usize {
    if line.last() == Some(&b'\\') { 0 } else { line.len() + 1 }
}

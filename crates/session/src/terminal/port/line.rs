//! The ports that one line names.

use std::net::{Ipv4Addr, Ipv6Addr};

/// A line that holds one of these says that something listens.
const LISTENING: [&str; 9] =
    ["listen", "serv", "start", "running", "ready", "bound", "bind", "available", "up on"];
/// After one of these words a port may come without a colon.
const WORDS: [&str; 2] = ["port", "listening on"];
/// A line that holds one of these says that a port is not listened on, or that something else
/// listens on it.
const FAILING: [&str; 6] =
    ["in use", "already", "eaddrinuse", "econnrefused", "refused", "unavailable"];

/// The ports that a line in lower case names as listened on, in order. Unless the line has `ended`,
/// a port counts only if something follows it, since digits may be missing.
pub(super) fn ports(line: &str, ended: bool) -> Vec<u16> {
    let candidates: Vec<_> =
        numbers(line).filter_map(|digits| PortCandidate::at(line, digits)).collect();
    if candidates.is_empty() {
        return Vec::new();
    }
    let mood = Mood::of(line);
    let meant = candidates.into_iter().filter(|candidate| candidate.is_meant(line, mood));
    meant.filter_map(|candidate| number(&line[candidate.digits..], ended)).collect()
}

/// The position of digits that may be a port.
#[derive(Debug, Clone, Copy)]
struct PortCandidate {
    digits: usize,
    /// The position of the word before the digits, if it is one of [`WORDS`].
    word: Option<usize>,
}

/// The meaning of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// Something listens.
    Listening,
    /// A port is not listened on, or something else listens on it.
    Failing,
    /// Neither.
    Other,
}

impl Mood {
    fn of(line: &str) -> Self {
        let says = |words: &[&str]| words.iter().any(|word| line.contains(word));
        match says(&FAILING) {
            true => Self::Failing,
            false if says(&LISTENING) => Self::Listening,
            false => Self::Other,
        }
    }
}

impl PortCandidate {
    fn at(line: &str, digits: usize) -> Option<Self> {
        let word = word_before(&line[..digits]);
        (word.is_some() || line[..digits].ends_with(':')).then_some(Self { digits, word })
    }

    /// Whether the digits are a port: in `http://host:PORT`; in `host:PORT`, where the host is this
    /// machine and the line does not say that listening failed; in a bare `:PORT` or `port PORT`,
    /// if the line says that something listens.
    fn is_meant(self, line: &str, mood: Mood) -> bool {
        let named = self.word.is_some_and(|word| is_word_start(line, word));
        let host = line[..self.digits].strip_suffix(':');
        named && mood == Mood::Listening || host.is_some_and(|before| is_host(before, mood))
    }
}

/// The positions at which numbers begin.
fn numbers(line: &str) -> impl Iterator<Item = usize> {
    let digits = line.bytes().map(|byte| byte.is_ascii_digit());
    let mut before = false;
    digits.enumerate().filter_map(move |(at, is_digit)| {
        let goes_on = std::mem::replace(&mut before, is_digit);
        (is_digit && !goes_on).then_some(at)
    })
}

/// The position of the word of [`WORDS`] before a number: `port 1`, `port: 1`, `port(s) 1`.
fn word_before(before: &str) -> Option<usize> {
    let word = before.trim_end_matches([' ', ':', '=', '#']);
    if !(1..=3).contains(&(before.len() - word.len())) {
        return None;
    }
    let single = ["(s)", "s"].iter().find_map(|plural| word.strip_suffix(plural)).unwrap_or(word);
    WORDS.iter().find_map(|it| single.strip_suffix(it)).map(str::len)
}

/// The port at the beginning of this rest of a line.
fn number(rest: &str, ended: bool) -> Option<u16> {
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, behind) = rest.split_at(digits);
    let is_whole = match behind.as_bytes() {
        [] | [b'.' | b':'] => ended,
        // `1.5` and `12:30:45` are not ports.
        [b'.', next, ..] => !next.is_ascii_digit(),
        [b':', next, ..] => *next == b' ',
        [next, ..] => !next.is_ascii_alphanumeric() && *next != b'_',
    };
    digits.parse().ok().filter(|port| is_whole && *port > 0)
}

/// Whether the text before a colon makes the digits after the colon a port.
fn is_host(before: &str, mood: Mood) -> bool {
    let of_host = |letter: char| letter.is_ascii_alphanumeric() || ".-[]:*%".contains(letter);
    let prefix = before.trim_end_matches(of_host);
    let host = &before[prefix.len()..];
    let in_url = prefix.ends_with("http://") || prefix.ends_with("https://");
    match host {
        _ if in_url => !host.is_empty() && host.starts_with('[') == host.ends_with(']'),
        "" => mood == Mood::Listening && !prefix.ends_with('/'),
        _ => mood != Mood::Failing && is_of_machine(host),
    }
}

/// Whether a name or an address may be one of this machine's.
fn is_of_machine(host: &str) -> bool {
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let inner = inner.map(|host| host.split('%').next().unwrap_or_default());
    match inner {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => {
            matches!(host, "localhost" | "*" | "::" | "::1")
                || host.ends_with(".localhost")
                || host.parse::<Ipv4Addr>().is_ok()
        }
    }
}

fn is_word_start(line: &str, at: usize) -> bool {
    !line[..at].ends_with(|letter: char| letter.is_ascii_alphanumeric())
}

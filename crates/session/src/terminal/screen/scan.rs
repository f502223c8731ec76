//! Where a control sequence ends.
//!
//! A sequence that is not all there is held, up to a bound. What the engine has no use for (device
//! control strings, clipboards, whatever is too long) is read to its end and dropped; while that
//! lasts, the held text is one that makes another terminal drop what follows too.

use std::borrow::Cow;

/// The most bytes that a sequence has.
const LONGEST: usize = 4096;

/// What begins a sequence that every terminal ignores, however it goes on.
const INERT_ESCAPE: &str = "\x1b((((";
const INERT_CONTROL: &str = "\x1b[0<";
const INERT_COMMAND: &str = "\x1b]9999;";
const INERT_STRING: &str = "\x1bX";
/// What begins a command to the clipboard.
const CLIPBOARD: &str = "\x1b]52;";
/// What begins a sequence that is dropped.
const UNWANTED: [&str; 4] = [INERT_ESCAPE, INERT_CONTROL, INERT_COMMAND, CLIPBOARD];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ScanState {
    #[default]
    Rest,
    Escape,
    Intermediate,
    /// `CSI`
    Control,
    /// `OSC`
    Command,
    /// After an `ESC` in an `OSC`: its end, if a `\` follows.
    CommandEscape,
    /// `DCS`, `SOS`, `PM`, `APC`
    Ignored,
    IgnoredEscape,
}

enum Step {
    More,
    End,
    /// The sequence is to be forgotten.
    Cancel,
    /// A new sequence begins with this byte, in the middle of another.
    Restart,
    /// The `ESC` before this byte ended a string, and begins a new sequence.
    Cut,
}

/// Reads control sequences.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: ScanState,
    /// How long the sequence is so far.
    len: usize,
    /// What of it came in earlier calls, unless it is void.
    held: String,
    /// Too long, or unwanted.
    void: bool,
}

impl Scanner {
    /// Whether no sequence is begun.
    pub(super) fn at_rest(&self) -> bool {
        self.state == ScanState::Rest
    }

    /// Reads on; at rest, `text` begins with `ESC`. Returns how many bytes were read, and a
    /// sequence that ended, if the engine is to have it.
    pub(super) fn read<'a>(&mut self, text: &'a str) -> (usize, Option<Cow<'a, str>>) {
        for (at, byte) in text.bytes().enumerate() {
            match self.step(byte) {
                Step::More => {}
                Step::End => return (at + 1, self.end(&text[..=at], "", ScanState::Rest)),
                Step::Cancel => {
                    self.void = true;
                    return (at + 1, self.end("", "", ScanState::Rest));
                }
                Step::Restart => {
                    let broken = self.end(&text[..at], "\x18", ScanState::Escape);
                    return (at + 1, broken);
                }
                Step::Cut => return (at, self.end(&text[..at], "\x07", ScanState::Escape)),
            }
        }
        self.hold(text);
        (text.len(), None)
    }

    /// What brings another scanner to the same place.
    pub(super) fn tail(&self) -> Cow<'_, str> {
        let inert = match self.state {
            ScanState::Ignored => INERT_STRING,
            ScanState::IgnoredEscape => "\x1bX\x1b",
            _ if !self.void => return Cow::Borrowed(&self.held),
            ScanState::Rest => "",
            ScanState::Escape | ScanState::Intermediate => INERT_ESCAPE,
            ScanState::Control => INERT_CONTROL,
            ScanState::Command => INERT_COMMAND,
            ScanState::CommandEscape => "\x1b]9999;\x1b",
        };
        Cow::Borrowed(inert)
    }

    fn step(&mut self, byte: u8) -> Step {
        use ScanState::{
            Command, CommandEscape, Control, Escape, Ignored, IgnoredEscape, Intermediate,
        };
        self.len += 1;
        let next = match (self.state, byte) {
            (ScanState::Rest, _) => Escape,
            (Command, 0x07) | (CommandEscape | IgnoredEscape, b'\\') => return Step::End,
            (CommandEscape | IgnoredEscape, _) => return Step::Cut,
            (_, 0x18 | 0x1a) => return Step::Cancel,
            (Command, 0x1b) => CommandEscape,
            (Ignored, 0x1b) => IgnoredEscape,
            (_, 0x1b) => return Step::Restart,
            (Escape, b'[') => Control,
            (Escape, b']') => Command,
            (Escape, b'P' | b'X' | b'^' | b'_') => Ignored,
            (Escape, 0x20..=0x2f) => Intermediate,
            (Escape | Intermediate, 0x30..=0x7e) | (Control, 0x40..=0x7e) => return Step::End,
            (state, _) => state,
        };
        self.state = next;
        self.bound();
        Step::More
    }

    fn bound(&mut self) {
        if self.len > LONGEST && !self.void {
            self.void = true;
            if self.state == ScanState::Escape {
                self.state = ScanState::Intermediate;
            }
        }
    }

    /// Ends the sequence with `part`, made whole by `close`; a next one may have begun.
    fn end<'a>(&mut self, part: &'a str, close: &str, next: ScanState) -> Option<Cow<'a, str>> {
        let unwanted =
            self.void || matches!(self.state, ScanState::Ignored | ScanState::IgnoredEscape);
        let held = std::mem::take(&mut self.held);
        self.void = false;
        self.state = next;
        if next == ScanState::Escape {
            self.held.push('\x1b');
        }
        self.len = self.held.len();
        if unwanted { None } else { whole(held, part, close).filter(|whole| wanted(whole)) }
    }

    fn hold(&mut self, part: &str) {
        if matches!(self.state, ScanState::Ignored | ScanState::IgnoredEscape) {
            self.held.clear();
        } else if !self.void {
            self.held.push_str(part);
            self.void = !wanted(&self.held);
        }
        if self.void {
            self.held = String::new();
        }
    }
}

fn whole<'a>(mut held: String, part: &'a str, close: &str) -> Option<Cow<'a, str>> {
    if held.is_empty() && close.is_empty() {
        return Some(Cow::Borrowed(part));
    }
    held.push_str(part);
    if close == "\x07" && held.ends_with('\x1b') {
        held.pop();
    }
    held.push_str(close);
    Some(Cow::Owned(held))
}

fn wanted(sequence: &str) -> bool {
    !UNWANTED.iter().any(|start| sequence.starts_with(start))
}

//! Finds the end of a control sequence.
//!
//! The beginning of an incomplete sequence is held, up to a bound. A sequence that the engine does not
//! need (a device control string, a clipboard command, an overlong sequence) is read to its end and
//! dropped. While the scanner is within such a sequence, a snapshot ends with the beginning of another
//! sequence that every terminal drops, so that the viewer's terminal drops the rest, too.

use std::borrow::Cow;

/// The longest sequence that is held, in bytes. A program may begin one and never end it.
const LONGEST: usize = 4096;

/// The beginnings of sequences that every terminal ignores, whatever follows, one for each form.
const INERT_ESCAPE: &str = "\x1b((((";
const INERT_CONTROL: &str = "\x1b[0<";
const INERT_COMMAND: &str = "\x1b]9999;";
const INERT_STRING: &str = "\x1bX";
/// The beginning of a command to the clipboard.
const CLIPBOARD: &str = "\x1b]52;";
/// The beginnings of sequences that are dropped.
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
    /// After an `ESC` in an `OSC`, which ends the command if a `\` follows.
    CommandEscape,
    /// `DCS`, `SOS`, `PM`, `APC`
    Ignored,
    IgnoredEscape,
}

enum Step {
    More,
    End,
    /// The sequence is cancelled, and must be dropped.
    Cancel,
    /// A new sequence begins with this byte, in the middle of another.
    Restart,
    /// The `ESC` before this byte ended the string and began a new sequence.
    Cut,
}

/// Reads control sequences.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    state: ScanState,
    /// The length of the sequence so far, in bytes.
    len: usize,
    /// The part of the sequence that came in earlier calls. Empty if the sequence will be dropped.
    held: String,
    /// Whether the sequence is too long or not wanted, so that it will be dropped.
    void: bool,
}

impl Scanner {
    /// Whether the scanner is between sequences.
    pub(super) fn at_rest(&self) -> bool {
        self.state == ScanState::Rest
    }

    /// Reads on. At rest, `text` must begin with `ESC`. Returns the number of bytes read, and the
    /// sequence that ended with them if the engine needs it.
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
                // The byte itself belongs to the new sequence.
                Step::Cut => return (at, self.end(&text[..at], "\x07", ScanState::Escape)),
            }
        }
        self.hold(text);
        (text.len(), None)
    }

    /// The text that brings the scanner of another terminal into the same state.
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

    /// Ends the sequence with its last part and the text `close`, which completes it. The scanner goes on
    /// in the state `next`. Returns the sequence if the engine needs it.
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
        // The escape began the next sequence, and the bell ends this one.
        held.pop();
    }
    held.push_str(close);
    Some(Cow::Owned(held))
}

fn wanted(sequence: &str) -> bool {
    !UNWANTED.iter().any(|start| sequence.starts_with(start))
}

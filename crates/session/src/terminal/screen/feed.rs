//! Takes bytes, decodes them, and cuts the text into stretches and whole control sequences.
//!
//! The engine reads only whole sequences. So between two calls it is never in the middle of one.

use std::borrow::Cow;

use alacritty_terminal::vte::ansi::Handler as _;
use simdutf8::compat::from_utf8;

use super::{Screen, skim, width};

impl Screen {
    /// Reads the output of the terminal's program: any bytes, cut anywhere. Invalid UTF-8 becomes
    /// U+FFFD, as it does in the text that clients are sent.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut rest = self.end_character(bytes);
        loop {
            let error = match from_utf8(rest) {
                Ok(text) => return self.feed_text(text),
                Err(error) => error,
            };
            let (good, bad) = rest.split_at(error.valid_up_to());
            self.feed_text(&String::from_utf8_lossy(good));
            let Some(len) = error.error_len() else {
                // The character goes on in the next call.
                self.carry = bad.to_vec();
                return;
            };
            self.feed_text("\u{fffd}");
            rest = bad.get(len..).unwrap_or_default();
        }
    }

    /// Ends the character that an earlier call began. Returns the remaining bytes.
    fn end_character<'a>(&mut self, mut bytes: &'a [u8]) -> &'a [u8] {
        while let (false, Some((&byte, rest))) = (self.carry.is_empty(), bytes.split_first()) {
            self.carry.push(byte);
            match std::str::from_utf8(&self.carry) {
                Ok(character) => {
                    let character = character.to_owned();
                    self.carry.clear();
                    self.feed_text(&character);
                }
                Err(error) if error.error_len().is_some() => {
                    self.carry.clear();
                    self.feed_text("\u{fffd}");
                    return bytes;
                }
                Err(_) => {}
            }
            bytes = rest;
        }
        bytes
    }

    fn feed_text(&mut self, text: &str) {
        let text = with_escapes(text);
        let mut text = &*text;
        while !text.is_empty() {
            if self.scanner.at_rest() {
                text = self.feed_stretch(text);
            }
            let (read, sequence) = self.scanner.read(text);
            text = &text[read..];
            match sequence {
                Some(sequence) => self.apply(&sequence),
                // The scanner dropped a sequence: after it, there is no character to repeat.
                None if read > 0 && self.scanner.at_rest() => self.printed = None,
                None => {}
            }
        }
    }

    /// Feeds the text up to the first control sequence that does not change the pen. Returns the
    /// rest.
    fn feed_stretch<'a>(&mut self, text: &'a str) -> &'a str {
        let (stretch, rest) = text.split_at(skim::stretch(text.as_bytes()));
        if !stretch.is_empty() {
            let visible = if self.skimming { self.skip(stretch) } else { stretch };
            self.read_stretch(visible.as_bytes());
            self.printed = skim::last_printed(stretch, self.printed);
        }
        rest
    }

    /// Reads a stretch: prints its runs of ASCII, changes the pen, and passes the rest to the engine's
    /// parser.
    fn read_stretch(&mut self, mut stretch: &[u8]) {
        while !stretch.is_empty() {
            if let Some((numbers, len)) = skim::leading_pen(stretch) {
                self.emulator.set_pen(numbers);
                stretch = &stretch[len..];
                continue;
            }
            let (run, rest) = stretch.split_at(skim::ascii_run(stretch));
            self.emulator.print_run(run);
            let (other, rest) = rest.split_at(skim::others(rest));
            self.processor.advance(&mut self.emulator, other);
            stretch = rest;
        }
    }

    /// Skips the part of a stretch that has left the screen at the stretch's end, but applies its
    /// changes of the pen. Returns the part that is left to read.
    fn skip<'a>(&mut self, stretch: &'a str) -> &'a str {
        let Some(rows) = self.emulator.rows_to_flush() else { return stretch };
        let Some(start) = skim::visible(stretch.as_bytes(), rows) else { return stretch };
        let (scrolled_off, visible) = stretch.split_at(start);
        for numbers in skim::pens(scrolled_off.as_bytes()) {
            self.emulator.set_pen(numbers);
        }
        self.emulator.carriage_return();
        visible
    }

    fn apply(&mut self, sequence: &str) {
        let printed = self.printed.take();
        if sequence.ends_with('\x18') {
            // The sequence was cut off, and the engine's parser drops it.
            return self.processor.advance(&mut self.emulator, sequence.as_bytes());
        }
        let sequence = self.without_controls(sequence);
        match (repetition(&sequence), printed) {
            (Some(times), Some(character)) => self.repeat(character, times),
            (Some(_), None) => {}
            (None, _) if self.emulator.obey(&sequence) => {}
            (None, _) => self.processor.advance(&mut self.emulator, sequence.as_bytes()),
        }
    }

    /// Obeys the control characters within a control sequence, as terminals do before they read on.
    /// Returns the sequence without them.
    fn without_controls<'a>(&mut self, sequence: &'a str) -> Cow<'a, str> {
        let is_control = |character: char| character.is_ascii_control();
        if !sequence.starts_with("\x1b[") || !sequence[1..].contains(is_control) {
            return Cow::Borrowed(sequence);
        }
        for control in sequence[1..].bytes().filter(u8::is_ascii_control) {
            self.processor.advance(&mut self.emulator, &[control]);
        }
        let rest = sequence[1..].chars().filter(|character| !character.is_ascii_control());
        Cow::Owned(std::iter::once('\x1b').chain(rest).collect())
    }

    /// Prints a character again, no more often than it takes to fill the screen.
    fn repeat(&mut self, character: char, times: u16) {
        let cols = u32::from(self.size().cols);
        let cells = cols * u32::from(self.size().rows);
        let times = u32::from(times);
        // More repetitions would only scroll the same character. The remainder puts the cursor into the right column.
        let enough = if times > cells { cells + times % cols } else { times };
        for _ in 0..enough {
            self.emulator.input(character);
        }
    }
}

/// The number of repetitions that `sequence` requests, if it is REP. The engine never gets a REP:
/// it would repeat the last character even if other sequences came after it.
fn repetition(sequence: &str) -> Option<u16> {
    let numbers = sequence.strip_prefix("\x1b[")?.strip_suffix('b')?;
    if numbers.bytes().any(|byte| matches!(byte, b' '..=b'/' | b'<'..=b'?')) {
        return None;
    }
    let first = numbers.split([';', ':']).next().unwrap_or_default();
    let digits = first.bytes().filter(u8::is_ascii_digit).map(|digit| u16::from(digit - b'0'));
    let times = digits.fold(0u16, |n, digit| n.saturating_mul(10).saturating_add(digit));
    Some(times.max(1))
}

/// The text with control characters of eight bits written as their escape sequences.
fn with_escapes(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let is_second = |at| bytes.get(at + 1).is_some_and(|byte| matches!(byte, 0x80..=0x9f));
    if !memchr::memchr_iter(0xc2, bytes).any(is_second) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match u8::try_from(character) {
            Ok(byte @ 0x80..=0x9f) => escaped.extend(['\x1b', char::from(byte - 0x40)]),
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

pub(super) fn takes_cell(character: char) -> bool {
    width::of(character).is_some_and(|width| width > 0)
}

/// Whether a character is a combining mark, which takes no cell of its own.
pub(super) fn is_mark(character: char) -> bool {
    width::of(character) == Some(0)
}

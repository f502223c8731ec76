//! The modes that a session may leave behind in this terminal, and the sequences that take them away again.

use std::collections::BTreeSet;

use protocol::workspace::modes::{self, MODES};

/// The longest sequence of modes that is read, in bytes.
const LONGEST: usize = 256;

/// Cuts an open sequence off, leaves the alternate page in each of its forms, and resets what is no private
/// mode: margins, colours, character sets, insert and line feed modes, the keypad and other keys.
const FIRST: &str = "\x18\x1b[?1049l\x1b[?47l\x1b[!p\x1b[?6l\x1b[?69l\x1b[r\x1b[m\x1b[0\"q\x1b(B\x0f\x1b[4;20l\x1b>\
    \x1b[=0;1u\x1b[>4m";
/// Resets the cursor's look, links, the palette and the tab stops.
const LAST: &str =
    "\x1b[0 q\x1b]8;;\x1b\\\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\x1b]112\x1b\\\x1b[?5W";

/// The modes that are on and that people may have chosen in their terminal's settings. They are only
/// switched off if they came from the session.
#[derive(Debug, Default)]
pub(super) struct SessionModes {
    on: BTreeSet<u16>,
    /// The sequence that has begun: empty between sequences.
    begun: Vec<u8>,
}

impl SessionModes {
    /// Reads output for this terminal, in pieces that may end anywhere.
    pub(super) fn read(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((first, more)) = rest.split_first() {
            if self.begun.is_empty() && *first != 0x1b {
                // Most bytes are outside of a sequence.
                let Some(at) = rest.iter().position(|byte| *byte == 0x1b) else { return };
                rest = &rest[at..];
                continue;
            }
            self.step(*first);
            rest = more;
        }
    }

    /// The bytes that put this terminal into the state after a reset, whatever state it is in. Lines that
    /// have scrolled away stay.
    pub(super) fn reset(&self) -> String {
        let free = |is_on| MODES.iter().filter(move |mode| mode.is_free && mode.is_on == is_on);
        let mut off: Vec<u16> = free(false).map(|mode| mode.number).collect();
        off.extend(&self.on);
        let on: Vec<u16> = free(true).map(|mode| mode.number).collect();
        // Some terminals read no more than sixteen numbers of a sequence.
        let off = off.chunks(15).map(|part| format!("\x1b[?{}l", joined(part)));
        format!("{FIRST}{}\x1b[?{}h{LAST}", off.collect::<String>(), joined(&on))
    }

    fn step(&mut self, byte: u8) {
        let goes_on = match (self.begun.as_slice(), byte) {
            ([], 0x1b) | ([0x1b], b'[') | ([0x1b, b'['], b'?') => true,
            ([0x1b, b'[', b'?', ..], b'0'..=b';') => self.begun.len() < LONGEST,
            ([0x1b, b'[', b'?', numbers @ ..], b'h' | b'l') => {
                let numbers = String::from_utf8_lossy(numbers).into_owned();
                self.switch(&numbers, byte == b'h');
                false
            }
            _ => false,
        };
        match goes_on {
            true => self.begun.push(byte),
            false => self.begun.clear(),
        }
        if !goes_on && byte == 0x1b {
            self.begun.push(byte);
        }
    }

    fn switch(&mut self, numbers: &str, on: bool) {
        let numbers = numbers.split(';').filter_map(|number| number.parse().ok());
        for number in numbers.filter(|number| modes::of(*number).is_some_and(|mode| !mode.is_free))
        {
            match on {
                true => self.on.insert(number),
                false => self.on.remove(&number),
            };
        }
    }
}

fn joined(numbers: &[u16]) -> String {
    let texts: Vec<String> = numbers.iter().map(u16::to_string).collect();
    texts.join(";")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset_after(pieces: &[&str]) -> String {
        let mut modes = SessionModes::default();
        pieces.iter().for_each(|piece| modes.read(piece.as_bytes()));
        modes.reset()
    }

    /// The numbers in the sequence of `reset` that ends so.
    fn numbers(reset: &str, end: char) -> BTreeSet<u16> {
        let sequences = reset.split("\x1b[?").filter_map(|rest| rest.split_once(end));
        let lists = sequences.map(|(list, _)| list).filter(|list| !list.contains('\x1b'));
        lists
            .flat_map(|list| list.split(';').filter_map(|number| number.parse().ok()))
            .take(99)
            .collect()
    }

    #[test]
    fn every_mode_is_as_in_a_reset_terminal_after_it_passed_through() {
        let all = MODES.map(|mode| mode.number.to_string()).join(";");
        let reset = reset_after(&[&format!("\x1b[?{all}h")]);
        let off = numbers(&reset, 'l');
        for mode in MODES.iter().filter(|mode| !mode.is_on) {
            let keypad = mode.number == 66 && reset.contains("\x1b>");
            assert!(off.contains(&mode.number) || keypad, "{}", mode.number);
        }
        assert_eq!(numbers(&reset, 'h'), BTreeSet::from([7, 25]));
    }

    #[test]
    fn what_people_chose_in_their_terminal_stays_unless_the_session_changed_it() {
        let has = |pieces: &[&str]| numbers(&reset_after(pieces), 'l').contains(&1007);
        assert!(!has(&[]));
        assert!(has(&["a\x1b[?1007h"]));
        assert!(has(&["\x1b[?25;10", "07", "h"]));
        assert!(has(&["\x1b\x1b[?1007h"]));
        assert!(!has(&["\x1b[?1007h\x1b[?1007l"]));
        assert!(!has(&["\x1b[1007h", "?1007h", "\x1b[?1007\x18h"]));
        let endless = format!("\x1b[?{}", "1".repeat(100_000));
        let mut modes = SessionModes::default();
        modes.read(endless.as_bytes());
        assert!(modes.begun.len() <= LONGEST);
    }
}

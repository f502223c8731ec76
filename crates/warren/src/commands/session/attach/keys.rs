//! The typed keys: those for the session, and the one that detaches.

use std::str::FromStr;

/// The marks around a pasted text.
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// The longest sequence of a key, in bytes.
const LONGEST: usize = 64;
/// Modifiers as bits of a key's second number, which is one more than their sum.
const SHIFT: u32 = 1;
const CONTROL: u32 = 4;
const LOCKS: u32 = 64 | 128;
/// The kind of event of a key's release.
const RELEASE: u32 = 3;

/// The key that detaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DetachKey(Option<u8>);

impl FromStr for DetachKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        if lower == "none" {
            return Ok(Self(None));
        }
        let name = lower.strip_prefix("ctrl-").or_else(|| lower.strip_prefix('^'));
        match name.map(str::as_bytes) {
            // Enter, tab and escape send the same bytes, and nobody can type without these keys.
            Some(b"m" | b"j" | b"i" | b"[") => Err(format!("{text} is needed for typing")),
            Some(&[key @ (b'a'..=b'z' | b']' | b'\\' | b'^' | b'_' | b'@')]) => {
                Ok(Self(Some(key.to_ascii_uppercase() & 0x1f)))
            }
            _ => Err("expected ctrl- and a letter or one of ] \\ ^ _ @, such as ctrl-], or none"
                .to_owned()),
        }
    }
}

impl DetachKey {
    /// Its name for people; `None` if there is none.
    pub(super) fn name(self) -> Option<String> {
        self.0.map(|key| format!("Ctrl-{}", char::from(key | 0x40)))
    }

    /// Whether this sequence is the key: with Ctrl pressed and perhaps a lock key on, pressed or
    /// repeated.
    fn is_sequence(self, sequence: &[u8]) -> bool {
        let character = self.0.map(|key| u32::from((key | 0x40).to_ascii_lowercase()));
        let pressed = std::str::from_utf8(sequence).ok().and_then(KeyPress::read);
        character.zip(pressed).is_some_and(|(character, pressed)| pressed.is_control(character))
    }
}

/// A key as a sequence describes it.
struct KeyPress {
    key: u32,
    /// The character that the key gives with Shift, if reported.
    shifted: Option<u32>,
    /// The character that the key's place gives in the layout of the United States, if reported.
    base: Option<u32>,
    modifiers: u32,
}

impl KeyPress {
    /// Reads `CSI key:shifted:base ; modifiers:event u` of the kitty protocol, or `CSI 27 ; modifiers ;
    /// key ~` of xterm. `None` if it is no such sequence, or the key was released.
    fn read(sequence: &str) -> Option<Self> {
        let body = sequence.strip_prefix("\u{1b}[")?;
        let (numbers, is_kitty) = match body.strip_suffix('u') {
            Some(numbers) => (numbers, true),
            None => (body.strip_suffix('~')?.strip_prefix("27;")?, false),
        };
        let mut fields = numbers.split(';');
        let (first, second) = (fields.next()?, fields.next()?);
        let (key, modifiers) = if is_kitty { (first, second) } else { (second, first) };
        let mut forms = key.split(':').map(|form| form.parse::<u32>().ok());
        let mut modifiers = modifiers.split(':').map(|number| number.parse::<u32>().ok());
        let (key, shifted, base) = (forms.next()??, forms.next().flatten(), forms.next().flatten());
        let pressed = modifiers.next()??.checked_sub(1)?;
        let event = modifiers.next().flatten();
        (event != Some(RELEASE)).then_some(Self { key, shifted, base, modifiers: pressed & !LOCKS })
    }

    /// Whether this is Ctrl and a character. Where the layout has another alphabet, the key's place
    /// counts.
    fn is_control(&self, character: u32) -> bool {
        let is_foreign = self.key > u32::from(u8::MAX);
        let is_plain = self.key == character || (is_foreign && self.base == Some(character));
        (self.modifiers == CONTROL && is_plain)
            || (self.modifiers == CONTROL | SHIFT && self.shifted == Some(character))
    }
}

/// Reads typed bytes, in pieces that may end anywhere. Within a paste nothing detaches.
pub(super) struct TypedKeys {
    detach: DetachKey,
    /// The sequence that has begun: empty between sequences.
    begun: Vec<u8>,
    /// The bytes of `begun` that the session has already.
    passed: usize,
    in_paste: bool,
}

impl TypedKeys {
    pub(super) const fn new(detach: DetachKey) -> Self {
        Self { detach, begun: Vec::new(), passed: 0, in_paste: false }
    }

    /// The keys for the session, and whether the one that detaches came after them. The beginning of a
    /// sequence that may be that key waits for its end: no other key begins like that.
    pub(super) fn take(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut keys = Vec::with_capacity(self.begun.len() + typed.len());
        for &byte in typed {
            if self.read(byte, &mut keys) {
                return (keys, true);
            }
        }
        if !self.may_detach() {
            self.pass(&mut keys);
        }
        (keys, false)
    }

    /// Reads a byte. Returns whether it ends the key that detaches.
    fn read(&mut self, byte: u8, keys: &mut Vec<u8>) -> bool {
        if byte == 0x1b || !self.goes_on(byte) {
            self.end(keys);
        }
        if self.begun.is_empty() && byte != 0x1b {
            if !self.in_paste && self.detach.0 == Some(byte) {
                return true;
            }
            keys.push(byte);
            return false;
        }
        self.begun.push(byte);
        self.begun.len() > 2 && matches!(byte, 0x40..=0x7e) && self.complete(keys)
    }

    /// Whether a byte may belong to the sequence that has begun.
    fn goes_on(&self, byte: u8) -> bool {
        match self.begun.len() {
            0 => true,
            1 => byte == b'[',
            length => length < LONGEST && matches!(byte, b' '..=b'~'),
        }
    }

    /// Ends a complete sequence. Returns whether it is the key that detaches.
    fn complete(&mut self, keys: &mut Vec<u8>) -> bool {
        let detaches = !self.in_paste && self.detach.is_sequence(&self.begun);
        match &*self.begun {
            PASTE_BEGINS => self.in_paste = true,
            PASTE_ENDS => self.in_paste = false,
            _ => {}
        }
        if detaches {
            self.begun.clear();
        } else {
            self.end(keys);
        }
        detaches
    }

    fn end(&mut self, keys: &mut Vec<u8>) {
        self.pass(keys);
        self.begun.clear();
        self.passed = 0;
    }

    fn pass(&mut self, keys: &mut Vec<u8>) {
        keys.extend_from_slice(&self.begun[self.passed..]);
        self.passed = self.begun.len();
    }

    /// Whether the sequence that has begun may become the key that detaches, and is not one that people
    /// type by hand: Escape, or Alt and a bracket.
    fn may_detach(&self) -> bool {
        let DetachKey(Some(_)) = self.detach else { return false };
        self.begun.len() > 2 && self.passed == 0 && !self.in_paste
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> DetachKey {
        text.parse().unwrap()
    }

    /// The session's input from these reads, and whether they detach.
    fn typed(detach: &str, reads: &[&str]) -> (String, bool) {
        let mut typed = TypedKeys::new(key(detach));
        let mut all = Vec::new();
        for read in reads {
            let (keys, detaches) = typed.take(read.as_bytes());
            all.extend(keys);
            if detaches {
                return (String::from_utf8(all).unwrap(), true);
            }
        }
        (String::from_utf8(all).unwrap(), false)
    }

    #[test]
    fn keys_are_named_as_people_name_them() {
        for (text, byte) in
            [("ctrl-]", 0x1d), ("Ctrl-B", 2), ("^q", 0x11), ("ctrl-\\", 0x1c), ("ctrl-@", 0)]
        {
            assert_eq!(key(text), DetachKey(Some(byte)), "{text}");
        }
        assert_eq!(key("none"), DetachKey(None));
        for text in ["", "x", "ctrl-", "ctrl-ab", "ctrl-m", "ctrl-[", "ctrl-é", "alt-x"] {
            assert!(text.parse::<DetachKey>().is_err(), "{text}");
        }
    }

    #[test]
    fn input_before_the_detach_key_goes_to_the_session() {
        let split = |text| typed("ctrl-]", &[text]);
        assert_eq!(split("ls\r"), ("ls\r".to_owned(), false));
        assert_eq!(split("ls\x1dmore"), ("ls".to_owned(), true));
        assert_eq!(split("a\x1b[93;5ub"), ("a".to_owned(), true));
        assert_eq!(typed("none", &["\x1d"]), ("\x1d".to_owned(), false));
    }

    /// The forms of the kitty protocol and of xterm: modifiers are bits, lock keys do not count.
    #[test]
    fn the_detach_key_is_known_in_every_form() {
        let forms = [
            "\x1b[93;5u",
            "\x1b[93;69u",
            "\x1b[93;133u",
            "\x1b[93;197u",
            "\x1b[93;5:1u",
            "\x1b[93;5:2u",
            "\x1b[93::93;5u",
            "\x1b[93:125;5:1u",
            "\x1b[93;5;29u",
            "\x1b[27;5;93~",
            "\x1b[27;133;93~",
            "\x1b[1098:1066:93;5u",
        ];
        for form in forms {
            assert_eq!(typed("ctrl-]", &["a", form, "b"]), ("a".to_owned(), true), "{form:?}");
        }
        assert_eq!(typed("ctrl-b", &["\x1b[98;5u"]), (String::new(), true));
        assert_eq!(typed("ctrl-^", &["\x1b[54:94;6u"]), (String::new(), true));
        let others = [
            "\x1b[93u",
            "\x1b[93;1u",
            "\x1b[93;6u",
            "\x1b[93;7u",
            "\x1b[93;5:3u",
            "\x1b[94;5u",
            "\x1b[43::93;5u",
            "\x1b[27;1;93~",
            "\x1b[93;5~",
            "\x1b]93;5u",
        ];
        for other in others {
            assert_eq!(typed("ctrl-]", &[other]), (other.to_owned(), false), "{other:?}");
        }
    }

    #[test]
    fn the_detach_key_is_known_wherever_its_reads_are_cut() {
        let whole = "\x1b[93;5:1u";
        for cut in 1..whole.len() {
            let (keys, detaches) = typed("ctrl-]", &[&whole[..cut], &whole[cut..]]);
            // What might have been typed by hand was passed on at once.
            assert!(detaches && keys == whole[..if cut > 2 { 0 } else { cut }], "{cut}: {keys:?}");
        }
    }

    #[test]
    fn escape_and_the_keys_of_one_read_do_not_wait() {
        for text in ["\x1b", "\x1b[", "\x1bO", "\x1b[A", "\x1b[1;5C", "\x1b[200~", "\x1b\x1b"] {
            assert_eq!(typed("ctrl-]", &[text]), (text.to_owned(), false), "{text:?}");
        }
    }

    #[test]
    fn within_a_paste_nothing_detaches() {
        let paste = ["\x1b[20", "0~a\x1d\x1b[93;5ub\x1b[9", "3;5u\x1b[201", "~"];
        assert_eq!(typed("ctrl-]", &paste), (paste.concat(), false));
        let reads = [paste.concat(), "c\x1d".to_owned()];
        let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
        assert_eq!(typed("ctrl-]", &reads), (paste.concat() + "c", true));
    }

    #[test]
    fn a_sequence_without_an_end_is_not_kept() {
        let endless = format!("\x1b[{}", "1".repeat(100_000));
        let (keys, detaches) = typed("ctrl-]", &[&endless]);
        assert!(!detaches && endless.len() - keys.len() <= LONGEST);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_where_nobody_detaches(reads: Vec<Vec<u8>>) {
            let mut keys = TypedKeys::new(key("ctrl-]"));
            let (mut all, mut detached) = (Vec::new(), false);
            for read in &reads {
                let (passed, detaches) = keys.take(read);
                all.extend(passed);
                detached |= detaches;
                if detached {
                    break;
                }
            }
            all.extend_from_slice(&keys.begun[keys.passed..]);
            let typed = reads.concat();
            prop_assert!(typed.starts_with(&all));
            prop_assert!(detached || all.len() == typed.len());
        }
    }
}

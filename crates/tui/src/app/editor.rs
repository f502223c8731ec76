//! A text that the user types.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use unicode_segmentation::UnicodeSegmentation;

use crate::text;

/// A text that the user types, with a cursor and a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Editor {
    text: String,
    /// The cursor's place in bytes, between two characters.
    at: usize,
    most: usize,
}

impl Editor {
    /// An empty text of at most `most` bytes.
    pub const fn new(most: usize) -> Self {
        Self { text: String::new(), at: 0, most }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text before the cursor.
    pub fn before(&self) -> &str {
        &self.text[..self.at]
    }

    /// Types a text at the cursor, as far as there is room.
    pub fn insert(&mut self, typed: &str) {
        for grapheme in text::block(typed).graphemes(true) {
            // A part of a grapheme would be another character, or none.
            if self.text.len() + grapheme.len() > self.most {
                return;
            }
            self.text.insert_str(self.at, grapheme);
            self.at += grapheme.len();
        }
    }

    /// Handles a key. Returns whether it has an effect on a text.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Char('u') if ctrl => self.clear(),
            KeyCode::Char('w') if ctrl => self.remove_word(),
            KeyCode::Char('a') if ctrl => self.at = 0,
            KeyCode::Char('e') if ctrl => self.at = self.text.len(),
            // Left to the screen, for its commands.
            KeyCode::Char(_) if ctrl => return false,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.remove(self.left(), self.at),
            KeyCode::Delete => self.remove(self.at, self.right()),
            KeyCode::Left => self.at = self.left(),
            KeyCode::Right => self.at = self.right(),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = self.text.len(),
            _ => return false,
        }
        true
    }

    /// Removes the whole text.
    pub fn clear(&mut self) {
        self.text.clear();
        self.at = 0;
    }

    fn left(&self) -> usize {
        let last = self.before().graphemes(true).next_back();
        self.at - last.map_or(0, str::len)
    }

    fn right(&self) -> usize {
        let next = self.text[self.at..].graphemes(true).next();
        self.at + next.map_or(0, str::len)
    }

    fn remove_word(&mut self) {
        let trimmed = self.before().trim_end();
        let from = trimmed
            .rfind(char::is_whitespace)
            .map_or(0, |at| at + trimmed[at..].chars().next().map_or(0, char::len_utf8));
        self.remove(from, self.at);
    }

    fn remove(&mut self, from: usize, to: usize) {
        self.text.replace_range(from..to, "");
        self.at = from;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[KeyCode]) -> Editor {
        let mut editor = Editor::new(16);
        for key in keys {
            editor.key(KeyEvent::from(*key));
        }
        editor
    }

    #[test]
    fn characters_go_in_and_out_at_the_cursor() {
        use KeyCode::{Backspace, Char, Delete, End, Home, Left};
        let editor = typed(&[Char('日'), Char('b'), Left, Char('x'), Home, Delete, End, Backspace]);
        assert_eq!((editor.text(), editor.before()), ("x", "x"));
        assert_eq!(typed(&[Backspace, Delete, Left]).text(), "");
    }

    #[test]
    fn a_word_goes_at_once() {
        let mut editor = Editor::new(32);
        editor.insert("one über two  ");
        let ctrl_w = KeyEvent::new(KeyCode::Char('w'), KeyModifiers::CONTROL);
        editor.key(ctrl_w);
        assert_eq!(editor.text(), "one über ");
        editor.key(ctrl_w);
        editor.key(ctrl_w);
        editor.key(ctrl_w);
        assert_eq!(editor.text(), "");
    }

    #[test]
    fn a_text_is_bounded_and_holds_nothing_that_steers() {
        let mut editor = Editor::new(5);
        editor.insert("a\u{1b}日日");
        assert_eq!(editor.text(), "a\u{fffd}");
        editor.insert("0123456789");
        assert_eq!(editor.text(), "a\u{fffd}0");
    }
}

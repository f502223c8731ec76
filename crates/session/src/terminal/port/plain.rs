//! Output without its escape sequences, line by line.

/// The most bytes of a line that are kept.
const MOST: usize = 1024;
/// The number of bytes that stay when a longer line is cut.
const TAIL: usize = 256;

/// The line that is being printed, as ASCII in lower case. Other characters become spaces.
#[derive(Debug, Default)]
pub(super) struct Plain {
    line: String,
    state: EscapeState,
}

/// The state of the line after some text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// The line has ended.
    Line,
    /// The line has not ended, but no more of it can be kept.
    Full,
    /// The line goes on.
    Not,
}

/// The position of the output in an escape sequence.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Within `ESC [ … letter`.
    Control,
    /// Within a string for the terminal itself, such as a title or a link, up to BEL or `ESC \`.
    TerminalString,
}

impl Plain {
    /// The line so far.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Reads text up to the point where the line must be read, or to the text's end. Returns the
    /// state of the line and the remaining text.
    pub(super) fn push<'a>(&mut self, mut text: &'a str) -> (LineEnd, &'a str) {
        loop {
            text = self.run(text);
            if self.line.len() >= MOST {
                return (LineEnd::Full, text);
            }
            let mut characters = text.chars();
            let Some(character) = characters.next() else { return (LineEnd::Not, text) };
            text = characters.as_str();
            if self.character(character) {
                return (LineEnd::Line, text);
            }
        }
    }

    /// Makes room for the next text. [`LineEnd::Not`] needs none.
    pub(super) fn make_room(&mut self, ended: LineEnd) {
        match ended {
            LineEnd::Line => self.line.clear(),
            LineEnd::Full => drop(self.line.drain(..MOST - TAIL)),
            LineEnd::Not => {}
        }
    }

    /// Takes the printable characters at the beginning of the text, as many as there is room for.
    fn run<'a>(&mut self, text: &'a str) -> &'a str {
        if self.state != EscapeState::Text {
            return text;
        }
        let is_printed = |byte: &u8| matches!(byte, b' '..=b'~');
        let most = text.len().min(MOST - self.line.len());
        let (run, rest) = text.split_at(text.bytes().take(most).take_while(is_printed).count());
        let begin = self.line.len();
        self.line.push_str(run);
        self.line[begin..].make_ascii_lowercase();
        rest
    }

    /// Takes a character that is not simply printed. Returns whether the line ends with it.
    fn character(&mut self, character: char) -> bool {
        let ends = matches!(character, '\n' | '\r');
        self.state = match (self.state, character) {
            // A line's end ends any sequence: a sequence that never ends would hide all later
            // output.
            _ if ends => EscapeState::Text,
            (_, '\x1b') => EscapeState::Escape,
            (EscapeState::Text, _) => self.space(),
            (EscapeState::Escape, '[') => EscapeState::Control,
            (EscapeState::Escape, ']' | 'P' | '_' | '^' | 'X') => EscapeState::TerminalString,
            // As in `ESC ( B`, which programs send to reset colours: one more letter follows.
            (EscapeState::Escape, ' '..='/') => EscapeState::Escape,
            // A colour changes nothing in the line. All other sequences move the cursor or erase,
            // and become a space.
            (EscapeState::Control, 'm')
            | (EscapeState::Escape, _)
            | (EscapeState::TerminalString, '\x07') => EscapeState::Text,
            (EscapeState::Control, '@'..='~') => self.space(),
            (EscapeState::Control | EscapeState::TerminalString, _) => self.state,
        };
        ends
    }

    fn space(&mut self) -> EscapeState {
        self.line.push(' ');
        EscapeState::Text
    }
}

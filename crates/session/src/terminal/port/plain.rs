//! Output without its escape sequences, line by line.

/// How long a line is kept, in bytes.
const MOST: usize = 1024;
/// How much of a longer line is kept to go on with.
const TAIL: usize = 256;

/// The line that is being printed, as ASCII in small letters: other characters are spaces
/// in it.
#[derive(Debug, Default)]
pub(super) struct Plain {
    line: String,
    state: EscapeState,
}

/// How far the line has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineEnd {
    /// It is at its end.
    Line,
    /// It is not, but as much as is kept of one.
    Full,
    /// It goes on.
    Not,
}

/// Where in an escape sequence the output is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum EscapeState {
    #[default]
    Text,
    /// After ESC.
    Escape,
    /// Within `ESC [ … letter`.
    Control,
    /// Within a text for the terminal itself: a title, a link, up to BEL or `ESC \`.
    Told,
}

impl Plain {
    /// The line as far as it has come.
    pub(super) fn line(&self) -> &str {
        &self.line
    }

    /// Reads on, up to where the line is to be read, or to the end; and what is left.
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

    /// Makes room for what comes next. [`LineEnd::Not`] needs none.
    pub(super) fn make_room(&mut self, ended: LineEnd) {
        match ended {
            LineEnd::Line => self.line.clear(),
            LineEnd::Full => drop(self.line.drain(..MOST - TAIL)),
            LineEnd::Not => {}
        }
    }

    /// Takes what is printed at the beginning, as much as there is room for.
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

    /// Takes one that is not simply printed; whether the line ends with it.
    fn character(&mut self, character: char) -> bool {
        let ends = matches!(character, '\n' | '\r');
        self.state = match (self.state, character) {
            // No sequence has more than a line: one that never ends would hide everything.
            _ if ends => EscapeState::Text,
            (_, '\x1b') => EscapeState::Escape,
            (EscapeState::Text, _) => self.space(),
            (EscapeState::Escape, '[') => EscapeState::Control,
            (EscapeState::Escape, ']' | 'P' | '_' | '^' | 'X') => EscapeState::Told,
            // As in `ESC ( B`, which resets with colours: one more letter follows.
            (EscapeState::Escape, ' '..='/') => EscapeState::Escape,
            // A colour changes nothing; whatever else moves the cursor, or erases.
            (EscapeState::Control, 'm')
            | (EscapeState::Escape, _)
            | (EscapeState::Told, '\x07') => EscapeState::Text,
            (EscapeState::Control, '@'..='~') => self.space(),
            (EscapeState::Control | EscapeState::Told, _) => self.state,
        };
        ends
    }

    fn space(&mut self) -> EscapeState {
        self.line.push(' ');
        EscapeState::Text
    }
}

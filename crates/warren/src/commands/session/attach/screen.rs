//! What comes of a terminal's session, as bytes for this terminal.

use base::plain;
use client::workspace::{Ending, SessionView};

use super::rest::Rest;

/// Makes this terminal one that was just reset, whatever state it is in, without clearing what
/// scrolled away: an open sequence is cut off; the alternate screen, margins, colours, modes of mouse,
/// paste, focus and keyboard, hyperlinks and palette are as at first.
pub(super) const RESET: &str = "\x18\x1b[?1049l\x1b[?47l\x1b[!p\x1b[?6l\x1b[?69l\x1b[r\x1b[m\x1b(B\x0f\x1b[?7h\
    \x1b[?1;5;9;45;1000;1001;1002;1003;1004;1005;1006;1015;1016;2004;2026l\x1b[4;20l\x1b>\
    \x1b[=0;1u\x1b[>4m\x1b[?25h\x1b[0 q\x1b]8;;\x1b\\\x1b]104\x1b\\\x1b]110\x1b\\\x1b]111\x1b\\\
    \x1b]112\x1b\\\x1b[?5W";

/// Remembers the title and sets another; brings it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// What of a session goes to this terminal.
pub(super) struct Painter {
    rest: Rest,
    /// How high the terminal is.
    rows: u16,
    has_painted: bool,
    has_title: bool,
    /// What is to be said when the terminal is given back.
    pub(super) last_words: Option<String>,
    pub(super) ended: Option<Ending>,
}

impl Painter {
    pub(super) fn new(rows: u16) -> Self {
        Self {
            rest: Rest::default(),
            rows,
            has_painted: false,
            has_title: false,
            last_words: None,
            ended: None,
        }
    }

    /// Adds what something brings to `out`.
    pub(super) fn take(&mut self, seen: SessionView, out: &mut Vec<u8>) {
        match seen {
            SessionView::Output(data) => {
                if !self.has_painted {
                    // For a session shown from its beginning, this is when there was nothing on its
                    // screen.
                    self.paint("", out);
                }
                self.rest.read(&data);
                out.extend_from_slice(&data);
            }
            SessionView::Screen(snapshot) => self.paint(&snapshot.data, out),
            SessionView::Lost(_) => self.say("the connection is lost, another is tried for", out),
            SessionView::Back => self.say_no_more(out),
            SessionView::Refused(words) => {
                self.say(&words, out);
                self.last_words = Some(plain::lines(&words));
            }
            SessionView::Ended(ending) => self.ended = Some(ending),
            SessionView::Notice(notice) => self.last_words = Some(plain::lines(&notice.message)),
            // What is for agents, and what the program itself paints when it hears of it.
            SessionView::Event(_)
            | SessionView::Asked(_)
            | SessionView::Resolved(_)
            | SessionView::Used(_)
            | SessionView::Taken { .. }
            | SessionView::Size(_)
            | SessionView::Status(_) => {}
        }
    }

    /// What puts this terminal back as it was, the cursor below what was painted.
    pub(super) fn leave(&mut self) -> Vec<u8> {
        let mut out = RESET.as_bytes().to_vec();
        self.rest = Rest::default();
        self.say_no_more(&mut out);
        if self.has_painted {
            out.extend_from_slice(b"\x1b[9999;1H\r\n");
        }
        out
    }

    fn paint(&mut self, snapshot: &str, out: &mut Vec<u8>) {
        if !self.has_painted {
            // What was on the screen before scrolls away, and is there afterwards.
            out.extend(std::iter::repeat_n(b'\n', self.rows.into()));
        }
        self.has_painted = true;
        out.extend_from_slice(RESET.as_bytes());
        out.extend_from_slice(b"\x1b[H\x1b[2J");
        out.extend_from_slice(snapshot.as_bytes());
        self.rest = Rest::default();
        self.rest.read(snapshot.as_bytes());
    }

    /// Says something in the title. Not in the midst of a sequence: that would garble both.
    fn say(&mut self, words: &str, out: &mut Vec<u8>) {
        if !self.rest.is_ground() {
            return;
        }
        if !std::mem::replace(&mut self.has_title, true) {
            out.extend_from_slice(PUSH_TITLE.as_bytes());
        }
        let line: String = plain::line(words).chars().take(200).collect();
        out.extend_from_slice(format!("\x1b]2;warren: {line}\x1b\\").as_bytes());
    }

    fn say_no_more(&mut self, out: &mut Vec<u8>) {
        if self.rest.is_ground() && std::mem::take(&mut self.has_title) {
            out.extend_from_slice(POP_TITLE.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU16;

    use protocol::workspace::{SessionId, SessionSnapshot};

    use super::*;

    fn screen(data: &str) -> SessionView {
        SessionView::Screen(SessionSnapshot {
            session_id: SessionId::from_random(1),
            seq: 1,
            cols: 20,
            rows: 5,
            data: data.to_owned(),
        })
    }

    fn output(text: &str) -> SessionView {
        SessionView::Output(text.to_owned().into())
    }

    /// What a terminal shows after all that.
    fn shown(painter: &mut Painter, seen: Vec<SessionView>) -> vt100::Parser {
        let [rows, cols] = [5, 20].map(|size| NonZeroU16::new(size).unwrap());
        let mut terminal = vt100::Parser::new(rows, cols, 100);
        terminal.process(b"before\r\n");
        let mut out = Vec::new();
        seen.into_iter().for_each(|seen| painter.take(seen, &mut out));
        terminal.process(&out);
        terminal
    }

    #[test]
    fn the_first_screen_does_not_eat_what_was_there() {
        let mut painter = Painter::new(5);
        let mut terminal = shown(&mut painter, vec![screen("hello"), output(" world")]);
        assert_eq!(terminal.screen().contents(), "hello world");
        terminal.screen_mut().set_scrollback(100);
        assert!(terminal.screen().contents().starts_with("before"));
    }

    #[test]
    fn output_from_the_beginning_on_has_an_empty_screen_and_eats_nothing() {
        let mut painter = Painter::new(5);
        let lines: String = (0..9).map(|number| format!("{number}\r\n")).collect();
        let mut terminal =
            shown(&mut painter, vec![output("\x1b[1;1Hat home\r\n"), output(&lines)]);
        assert_eq!(terminal.screen().contents(), "5\n6\n7\n8");
        terminal.screen_mut().set_scrollback(100);
        assert!(terminal.screen().contents().starts_with("before"));
        terminal.screen_mut().set_scrollback(6);
        assert!(terminal.screen().contents().starts_with("at home\n0\n1"));
    }

    #[test]
    fn a_later_screen_takes_the_place_of_all_that_was_shown() {
        let mut painter = Painter::new(5);
        let dirty = "\x1b[?1049h\x1b[2;3r\x1b[?6h\x1b[31mvim\x1b[?2004h\x1b[?1000h\x1b]0;cut off";
        let terminal = shown(&mut painter, vec![screen(""), output(dirty), screen("again")]);
        let screen = terminal.screen();
        assert_eq!(screen.contents(), "again");
        assert_eq!(screen.cursor_position(), (0, 5));
        assert!(!screen.alternate_screen() && !screen.bracketed_paste());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(screen.cell(0, 0).unwrap().fgcolor(), vt100::Color::Default);
    }

    #[test]
    fn the_terminal_is_given_back_as_it_was() {
        let mut painter = Painter::new(5);
        let dirty =
            "\x1b[?1049h\x1b[?25l\x1b[?1h\x1b=\x1b[?1003h\x1b[?1006h\x1b[?2004h\x1b[7m\x1b[1;2";
        let mut terminal = shown(&mut painter, vec![screen("main"), output(dirty)]);
        terminal.process(&painter.leave());
        let screen = terminal.screen();
        assert!(!screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste());
        assert!(!screen.application_cursor() && !screen.application_keypad());
        assert_eq!(screen.mouse_protocol_mode(), vt100::MouseProtocolMode::None);
        assert_eq!(screen.cursor_position(), (4, 0));
    }

    #[test]
    fn a_loss_is_told_in_the_title_and_never_in_the_midst_of_a_sequence() {
        let lost = || SessionView::Lost("why".to_owned());
        let told = |seen: Vec<SessionView>| {
            let (mut painter, mut out) = (Painter::new(5), Vec::new());
            // Nothing is painted before the first output, or once the terminal is given back.
            painter.has_painted = true;
            seen.into_iter().for_each(|seen| painter.take(seen, &mut out));
            painter.has_painted = false;
            (String::from_utf8(out).unwrap(), painter)
        };
        let (text, _) = told(vec![output("a"), lost(), SessionView::Back, output("b")]);
        assert!(text.starts_with(&format!("a{PUSH_TITLE}\x1b]2;warren: the connection")));
        assert!(text.ends_with(&format!("\x1b\\{POP_TITLE}b")));
        let (text, _) = told(vec![output("\x1b[3"), lost(), SessionView::Back, output("1m")]);
        assert_eq!(text, "\x1b[31m");
        let (_, mut painter) = told(vec![lost()]);
        assert!(String::from_utf8(painter.leave()).unwrap().ends_with(POP_TITLE));
    }

    #[test]
    fn a_refusal_cannot_write_to_the_terminal() {
        let (mut painter, mut out) = (Painter::new(5), Vec::new());
        painter.take(SessionView::Refused("no\x1b]0;x\x07\u{9b}2J\u{2066}".to_owned()), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("warren: no\u{fffd}]0;x\u{fffd}\u{fffd}2J\u{fffd}\x1b\\"),
            "{text:?}"
        );
        assert!(!painter.last_words.unwrap().contains('\x1b'));
    }
}

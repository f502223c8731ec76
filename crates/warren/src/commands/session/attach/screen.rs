//! The output of a terminal's session, as bytes for this terminal.

use base::plain;
use client::workspace::{Ending, SessionView};

use super::{modes::SessionModes, rest::Rest};

/// Cuts an open sequence off.
const CANCEL: &[u8] = b"\x18";
/// Moves to the beginning of the last line, and clears it, without colours; moves back.
const TO_LAST_LINE: &str = "\x1b7\x1b[?6l\x1b[9999;1H\x1b(B\x0f\x1b[m\x1b[2K";
const BACK: &str = "\x1b8";

/// Stores the terminal's title; brings it back.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

/// The words while there is no connection.
const LOST: &str = "connection lost, connecting again";

/// Turns a session's output into bytes for this terminal.
pub(super) struct Painter {
    rest: Rest,
    modes: SessionModes,
    /// Whether the sequence that is being read was cut off here; its end must not be shown.
    is_cut: bool,
    /// The width and the height of the terminal.
    size: (u16, u16),
    has_painted: bool,
    /// Whether the last line says that the connection is lost.
    has_line: bool,
    has_title: bool,
    /// The hint for the last line of the first screen.
    hint: Option<String>,
    has_hint: bool,
    /// The words to print when the terminal is given back.
    pub(super) last_words: Option<String>,
    pub(super) ended: Option<Ending>,
}

impl Painter {
    pub(super) fn new(size: (u16, u16)) -> Self {
        Self {
            rest: Rest::default(),
            modes: SessionModes::default(),
            is_cut: false,
            size,
            has_painted: false,
            has_line: false,
            has_title: false,
            hint: None,
            has_hint: false,
            last_words: None,
            ended: None,
        }
    }

    /// Shows a hint in the last line of the first screen.
    pub(super) fn with_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// Notes that the hint has been read. Returns whether it is on the screen, which must then be painted
    /// again.
    pub(super) fn end_hint(&mut self) -> bool {
        std::mem::take(&mut self.has_hint)
    }

    /// Notes the terminal's new size.
    pub(super) fn resized(&mut self, size: (u16, u16)) {
        self.size = size;
    }

    /// Adds the bytes for a view to `out`.
    pub(super) fn take(&mut self, seen: SessionView, out: &mut Vec<u8>) {
        match seen {
            SessionView::Output(data) => {
                if !self.has_painted {
                    // A session that is shown from its beginning starts with an empty screen.
                    self.paint("", out);
                }
                let data = self.after_cut(&data);
                self.rest.read(data);
                self.modes.read(data);
                out.extend_from_slice(data);
            }
            SessionView::Screen(snapshot) => self.paint(&snapshot.data, out),
            SessionView::Lost(_) => self.lost(out),
            SessionView::Back => self.end_loss(out),
            SessionView::Refused(words) => {
                self.say(&words, out);
                self.last_words = Some(plain::lines(&words));
            }
            SessionView::Ended(ending) => self.ended = Some(ending),
            SessionView::Notice(notice) => self.last_words = Some(plain::lines(&notice.message)),
            // Events are for agents, and the program paints the rest itself.
            SessionView::Event(_)
            | SessionView::Turns(_)
            | SessionView::Permission(_)
            | SessionView::Resolved(_)
            | SessionView::Used(_)
            | SessionView::Taken { .. }
            | SessionView::Size(_)
            | SessionView::Status(_) => {}
        }
    }

    /// Rings the bell, because typed keys were not accepted.
    pub(super) fn ring(&self, out: &mut Vec<u8>) {
        if self.is_between_sequences() {
            out.push(0x07);
        }
    }

    /// The bytes that put this terminal back as it was, the cursor below what was painted.
    pub(super) fn leave(&mut self) -> Vec<u8> {
        let mut out = self.modes.reset().into_bytes();
        (self.rest, self.is_cut) = (Rest::default(), false);
        self.say_no_more(&mut out);
        if self.has_painted {
            out.extend_from_slice(b"\x1b[9999;1H\r\n");
        }
        out
    }

    fn paint(&mut self, snapshot: &str, out: &mut Vec<u8>) {
        if !self.has_painted {
            // The former screen scrolls away, so that it is still there afterwards.
            out.extend(std::iter::repeat_n(b'\n', self.size.1.into()));
        }
        self.has_painted = true;
        out.extend_from_slice(std::mem::take(&mut self.modes).reset().as_bytes());
        out.extend_from_slice(b"\x1b[H\x1b[2J");
        out.extend_from_slice(snapshot.as_bytes());
        (self.rest, self.is_cut, self.has_line) = (Rest::default(), false, false);
        self.rest.read(snapshot.as_bytes());
        self.modes.read(snapshot.as_bytes());
        self.has_hint = self.hint.is_some();
        if let Some(hint) = self.hint.take() {
            self.last_line("\x1b[2m", &hint, out);
        }
    }

    /// Shows the loss at once, in the last line and in the title. A sequence whose end has not come is cut off. All
    /// that this spoils is painted again when the connection is back.
    fn lost(&mut self, out: &mut Vec<u8>) {
        if !self.has_painted {
            self.paint("", out);
        }
        if !self.is_between_sequences() {
            self.is_cut = true;
            out.extend_from_slice(CANCEL);
        }
        self.say(LOST, out);
        self.has_line = true;
        self.last_line("\x1b[7m", &format!(" {LOST} "), out);
    }

    /// Writes into the last line. The last column stays free: a character there could wrap, and scroll the
    /// whole screen.
    fn last_line(&self, style: &str, words: &str, out: &mut Vec<u8>) {
        let fits = usize::from(self.size.0).saturating_sub(1);
        let line: String = words.chars().take(fits).collect();
        out.extend_from_slice(format!("{TO_LAST_LINE}{style}{line}{BACK}").as_bytes());
    }

    /// Removes the line of the loss: it must not scroll into the kept output.
    fn end_loss(&mut self, out: &mut Vec<u8>) {
        self.say_no_more(out);
        if std::mem::take(&mut self.has_line) {
            out.extend_from_slice(format!("{TO_LAST_LINE}{BACK}").as_bytes());
        }
    }

    /// The output without the end of a sequence that was cut off.
    fn after_cut<'a>(&mut self, data: &'a [u8]) -> &'a [u8] {
        let mut rest = data;
        while self.is_cut
            && let Some((first, more)) = rest.split_first()
        {
            self.rest.read(std::slice::from_ref(first));
            self.is_cut = !self.rest.is_ground();
            rest = more;
        }
        rest
    }

    fn is_between_sequences(&self) -> bool {
        self.rest.is_ground() || self.is_cut
    }

    /// Shows words in the title. Not in the middle of a sequence: that would garble both.
    fn say(&mut self, words: &str, out: &mut Vec<u8>) {
        if !self.is_between_sequences() {
            return;
        }
        if !std::mem::replace(&mut self.has_title, true) {
            out.extend_from_slice(PUSH_TITLE.as_bytes());
        }
        let line: String = plain::line(words).chars().take(200).collect();
        out.extend_from_slice(format!("\x1b]2;warren: {line}\x1b\\").as_bytes());
    }

    fn say_no_more(&mut self, out: &mut Vec<u8>) {
        if self.is_between_sequences() && std::mem::take(&mut self.has_title) {
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

    /// The terminal's screen after all that.
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
        let mut painter = Painter::new((20, 5));
        let mut terminal = shown(&mut painter, vec![screen("hello"), output(" world")]);
        assert_eq!(terminal.screen().contents(), "hello world");
        terminal.screen_mut().set_scrollback(100);
        assert!(terminal.screen().contents().starts_with("before"));
    }

    #[test]
    fn output_from_the_beginning_on_has_an_empty_screen_and_eats_nothing() {
        let mut painter = Painter::new((20, 5));
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
    fn a_hint_stands_in_the_last_line_of_the_first_screen_until_the_next() {
        let mut painter = Painter::new((20, 5)).with_hint(Some("Ctrl-] detaches, and".to_owned()));
        let terminal = shown(&mut painter, vec![output("$ "), output("x")]);
        assert_eq!(terminal.screen().contents(), "$ x\n\n\n\nCtrl-] detaches, an");
        assert_eq!([painter.end_hint(), painter.end_hint()], [true, false]);
        let terminal = shown(&mut painter, vec![screen("$ x")]);
        assert_eq!(terminal.screen().contents(), "$ x");
    }

    #[test]
    fn a_later_screen_takes_the_place_of_all_that_was_shown() {
        let mut painter = Painter::new((20, 5));
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
        let mut painter = Painter::new((20, 5));
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

    fn lost() -> SessionView {
        SessionView::Lost("why".to_owned())
    }

    #[test]
    fn a_loss_is_said_at_once_in_the_last_line_and_in_the_title() {
        let (mut painter, mut out) = (Painter::new((20, 5)), Vec::new());
        painter.has_painted = true;
        for seen in [output("a"), lost()] {
            painter.take(seen, &mut out);
        }
        let text = String::from_utf8(std::mem::take(&mut out)).unwrap();
        assert!(
            text.starts_with(&format!("a{PUSH_TITLE}\x1b]2;warren: connection lost")),
            "{text:?}"
        );
        assert!(text.contains("\x1b[9999;1H"), "{text:?}");
        painter.take(SessionView::Back, &mut out);
        painter.take(output("b"), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with(POP_TITLE) && text.ends_with("\x1b8b"), "{text:?}");
        painter.take(lost(), &mut Vec::new());
        assert!(String::from_utf8(painter.leave()).unwrap().contains(POP_TITLE));
    }

    #[test]
    fn the_line_leaves_the_cursor_and_its_colour_and_is_gone_when_the_connection_end_loss() {
        let before = || vec![screen("one\r\ntwo"), output("\r\n\x1b[31mr")];
        let with = |more: Vec<SessionView>| {
            let seen = before().into_iter().chain(more).collect();
            shown(&mut Painter::new((20, 5)), seen)
        };
        let terminal = with(vec![lost()]);
        assert_eq!(terminal.screen().contents(), "one\ntwo\nr\n\n connection lost, c");
        assert_eq!(terminal.screen().cursor_position(), (2, 1));
        let terminal = with(vec![lost(), SessionView::Back, output("ed")]);
        assert_eq!(terminal.screen().contents(), "one\ntwo\nred");
        assert_eq!(terminal.screen().cell(2, 2).unwrap().fgcolor(), vt100::Color::Idx(1));
    }

    #[test]
    fn a_loss_before_anything_was_shown_eats_nothing() {
        let mut terminal = shown(&mut Painter::new((20, 5)), vec![lost()]);
        assert!(terminal.screen().contents().ends_with("connection lost, c"));
        terminal.screen_mut().set_scrollback(100);
        assert!(terminal.screen().contents().starts_with("before"));
    }

    #[test]
    fn a_loss_in_the_midst_of_a_sequence_cuts_it_off_with_its_end() {
        for (begin, end) in [
            ("\x1b[3", "1m"),
            ("\x1b]0;ti", "tle\x07"),
            ("\x1b]8;;http", "://x\x1b\\"),
            ("\x1b", "[2J"),
            ("\x1bPq#1", ";2;3\x1b\\"),
        ] {
            for cut in 0..=end.len() {
                let (first, second) = end.split_at(cut);
                let seen =
                    vec![screen("kept"), output(begin), lost(), SessionView::Back, output(first)];
                let seen = seen.into_iter().chain([output(second), output("!")]).collect();
                let terminal = shown(&mut Painter::new((20, 5)), seen);
                assert_eq!(terminal.screen().contents(), "kept!", "{begin:?} {cut}");
            }
        }
    }

    #[test]
    fn a_refusal_cannot_write_to_the_terminal() {
        let (mut painter, mut out) = (Painter::new((20, 5)), Vec::new());
        painter.take(SessionView::Refused("no\x1b]0;x\x07\u{9b}2J\u{2066}".to_owned()), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("warren: no\u{fffd}]0;x\u{fffd}\u{fffd}2J\u{fffd}\x1b\\"),
            "{text:?}"
        );
        assert!(!painter.last_words.unwrap().contains('\x1b'));
    }
}

//! A sequence that is passed on has the same effect as in the engine alone. These tests fail if a
//! method of the engine's trait is missing.

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::term::{Config, TermMode};
use alacritty_terminal::vte::ansi::{Handler as _, NamedPrivateMode, PrivateMode, Processor};

use super::super::emulator::Immediate;
use super::super::{Screen, Size};
use super::state::Page;

/// Text for a screen of 20 by 6 cells, with something in each row.
const BEFORE: &str =
    "\x1b[44mone\x1b[m two\r\nthree\tfour\r\n\x1b[1mfive\r\nsix\r\nseven\r\neight\x1b[3;4H";

/// Sequences for each method of the trait that changes the screen. Sequences that this crate handles
/// differently from the engine are left out.
const SEQUENCES: [&str; 72] = [
    "x",
    "漢",
    "e\u{301}",
    "\x1b[5;2Hx",
    "\x1b[2dx",
    "\x1b[9Gx",
    "\x1b[2@",
    "\x1b[2Ax",
    "\x1b[2Bx",
    "\x1b[3Cx",
    "\x1b[2Dx",
    "\x1b[2Ex",
    "\x1b[2Fx",
    "\x08x",
    "\rx",
    "\nx",
    "\x1bDx",
    "\x1bEx",
    "\x1bMx",
    "\x1b[6;1H\nx",
    "\x1b[1;1H\x1bMx",
    "\x1b[2S",
    "\x1b[2T",
    "\x1b[2L\r",
    "\x1b[2M\r",
    "\x1b[2X",
    "\x1b[2P",
    "\x1b[2Ix",
    "\x1b[1Zx",
    "\x1b7\x1b[Hx\x1b8y",
    "\x1b[s\x1b[Hx\x1b[uy",
    "\x1b[K",
    "\x1b[1K",
    "\x1b[2K",
    "\x1b[J",
    "\x1b[1J",
    "\x1b[2J",
    "\x1b[3J",
    "\x1b[g\x1b[Z",
    "\x1b[H\x1bH\x1b[3g\x1b[1;19H\x1b[Zx",
    "\x1bc",
    "\x1b[31mx",
    "\x1b[7;4:3mx",
    "\x1b[4hx",
    "\x1b[4h\x1b[4lx",
    "\x1b[20h",
    "\x1b[?7h",
    "\x1b[?7l\x1b[3;20Hxyz",
    "\x1b[?25l",
    "\x1b[?1h",
    "\x1b[?1000h",
    "\x1b[?1003h\x1b[?1003l",
    "\x1b[?1006h",
    "\x1b[?1049hx",
    "\x1b[?1049hx\x1b[?1049ly",
    "\x1b[2;4r\x1b[4;1H\nx",
    "\x1b[2;4r\x1b[?6h\x1b[2;2Hx",
    "\x1b=",
    "\x1b=\x1b>",
    "\x1b(0qx",
    "\x1b)0\x0eqx\x0fq",
    "\x1b]4;3;#010203\x07",
    "\x1b]10;#010203\x07\x1b]110\x07",
    "\x1b[3 q",
    "\x1b]50;CursorShape=1\x07",
    "\x1b]8;id=a;http://b\x07x\x1b]8;;\x07y",
    "\x1b[?2004h",
    "\x1b[?1004h",
    "\x1b[?2026hx\x1b[?2026l",
    "\x1b[3;18Habcdef",
    "x\x1b[3b",
    "\x1b[38;5;9;48;2;1;2;3m\x1b[2J",
];

struct Bare {
    term: Term<VoidListener>,
    processor: Processor<Immediate>,
}

impl Bare {
    fn fed(text: &str) -> Self {
        let config = Config { scrolling_history: 0, ..Config::default() };
        let term = Term::new(config, &Size::new(20, 6), VoidListener);
        let mut bare = Self { term, processor: Processor::new() };
        bare.processor.advance(&mut bare.term, text.as_bytes());
        for mode in [NamedPrivateMode::AlternateScroll, NamedPrivateMode::UrgencyHints] {
            bare.term.unset_private_mode(PrivateMode::Named(mode));
        }
        bare
    }
}

#[test]
fn every_sequence_does_to_the_engine_what_it_does_without_this_crate() {
    for sequence in SEQUENCES {
        let before = BEFORE.replace('\t', "    ");
        let bare = Bare::fed(&format!("{before}{sequence}"));
        let mut screen = Screen::new(Size::new(20, 6));
        screen.feed(before.as_bytes());
        let untouched = (Page::of(screen.emulator.grid()), whole(&screen));
        screen.feed(sequence.as_bytes());
        let emulator = &screen.emulator;
        assert_eq!(Page::of(bare.term.grid()), Page::of(emulator.grid()), "{sequence:?}");
        let mode = bare.term.mode().difference(TermMode::ALT_SCREEN);
        assert_eq!(mode, *emulator.term().mode(), "{sequence:?}");
        assert_eq!(bare.term.cursor_style(), emulator.term().cursor_style(), "{sequence:?}");
        for colour in [3, 256] {
            let colours = (bare.term.colors()[colour], emulator.term().colors()[colour]);
            assert_eq!(colours.0, colours.1, "{sequence:?}");
        }
        let changed = untouched != (Page::of(emulator.grid()), whole(&screen));
        let idle = ["\x1b[3J", "\x1b[?7h", "\x1b=\x1b>", "\x1b]10;#010203\x07\x1b]110\x07"];
        let idle = idle.contains(&sequence) || sequence == "\x1b[?1003h\x1b[?1003l";
        assert!(changed || idle, "{sequence:?} did nothing");
    }
}

#[test]
fn a_run_of_characters_is_printed_like_its_characters_one_by_one() {
    let run = "abcdefghijklmnopqrstuvwxyz `_~0123456789";
    for before in ["", "\x1b[1;41m", "\x1b(0", "\x1b[4h", "\x1b[?7l", "\x1b[6;15H", "\x1b[3;20Hx"] {
        let before = BEFORE.replace('\t', "    ") + before;
        let mut bare = Bare::fed(&before);
        run.chars().for_each(|character| bare.term.input(character));
        let screen = super::fed(20, 6, &format!("{before}{run}"));
        assert_eq!(Page::of(bare.term.grid()), Page::of(screen.emulator.grid()), "{before:?}");
    }
}

fn whole(screen: &Screen) -> String {
    let term = screen.emulator.term();
    let colours = (term.colors()[3], term.colors()[256]);
    format!("{:?}{:?}{colours:?}", term.mode(), term.cursor_style())
}

/// Cases in which the engine differs from the terminals that people attach with: the input, and the
/// rows of a screen of 8 by 5 cells afterwards, joined by blanks.
const MENDED: [(&str, &str); 10] = [
    ("a\r\nb\x1b[1;3H\x1b[Lx", "x a b"),
    ("a\r\nb\x1b[1;3H\x1b[Mx", "x"),
    ("\x1b[2;3r\x1b[3;1H\x1b[9Aa\x1b[9Bb\x1b[5;1H\x1b[9Bc", " a b  c"),
    ("\x1b[2;3r\x1b[2;4H\x1b[9Ea\x1b[9Fb", " b a"),
    ("12345678\x1b[@9", "12345679"),
    ("12345678\x1b[J9", "12345678 9"),
    ("a\r\nbc\x1b7\x1b[4Hd\x1b[?1049l!", "a bc!  d"),
    ("\x1b[20hab\nc\x1bDd", "ab c d"),
    ("\x1b]2;t\x18a", "a"),
    ("\x1b[2;3r\x1b[?6hab\x1b#8x", "xEEEEEEE EEEEEEEE EEEEEEEE EEEEEEEE EEEEEEEE"),
];

#[test]
fn deviations_of_the_engine_follow_other_terminals() {
    for (text, rows) in MENDED {
        let shown = super::fed(8, 5, text).text();
        let shown: Vec<&str> = shown.split('\n').map(str::trim).collect();
        assert_eq!(shown.join(" "), rows, "{text:?}");
    }
    assert_eq!(super::fed(8, 5, "\x1b]2;t\x18").title(), None);
    assert!(super::fed(8, 5, "\x1b[1;21mx").snapshot().starts_with("\x1b[1;4:2mx"));
}

#[test]
fn of_the_ways_to_report_the_mouse_one_is_in_force() {
    let modes = |text: &str| super::fed(8, 5, text).snapshot();
    assert_eq!(modes("\x1b[?1000h\x1b[?1003h\x1b[?9h"), "\x1b[?9h\x1b[H");
    assert_eq!(modes("\x1b[?9h\x1b[?1002h\x1b[?1006h\x1b[?1016h"), "\x1b[?1002h\x1b[?1016h\x1b[H");
    assert_eq!(modes("\x1b[?1002h\x1b[?1003l"), "\x1b[H");
}

#[test]
fn the_alternate_page_that_is_asked_for_again_saves_the_cursor() {
    let mut screen = super::fed(8, 5, "\x1b[?1049h\x1b[2;3H\x1b[?1049h\x1b[H\x1b8x");
    assert_eq!(screen.text(), "\n  x");
    super::assert_repaints(&mut screen);
}

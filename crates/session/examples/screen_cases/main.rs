//! Cases for comparing this crate's screens with a terminal from another project.
//!
//! `cargo run -p session --example screen_cases -- SEED COUNT`
//!
//! Prints one case on each line, as JSON: the output of a program (`past`), a snapshot taken after it, and
//! the program's later output (`rest`). A terminal that has read `past` and one that has read `snapshot`
//! must show the same, and must still do so after both have read `rest`. First come a few written cases,
//! then recordings of real programs, each cut in many places, then `COUNT` random streams of lines, and
//! as many of each other kind. With `-` instead of the two numbers, cases without a snapshot are read
//! from the standard input, and printed with one.
//!
//! - `agreed`: the part of the random streams on which terminals agree, and the reasons why not on the rest
//! - `streams`: the random streams of this crate's own tests
#![allow(clippy::print_stdout, reason = "the cases are printed")]
#![allow(clippy::expect_used, reason = "a tool that stops at the first surprise")]

mod agreed;
#[path = "../../src/terminal/screen/tests/streams.rs"]
#[allow(dead_code, reason = "the tests of the crate use all of it")]
mod streams;

use std::io::{self, BufRead as _, Write as _};

use agreed::Kind;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use serde::{Deserialize, Serialize};
use session::terminal::screen::{Screen, Size};

const RECORDINGS: [(&str, &[u8]); 5] = [
    ("vim", include_bytes!("recordings/vim.vt")),
    ("tmux", include_bytes!("recordings/tmux.vt")),
    ("less", include_bytes!("recordings/less.vt")),
    ("curses", include_bytes!("recordings/curses.vt")),
    ("shell", include_bytes!("recordings/shell.vt")),
];

/// Cases with pieces that the random streams leave out, since terminals read them differently next to some
/// other pieces: name, `past` and `rest`.
const TOLD: [(&str, &str, &str); 6] = [
    (
        "origin mode",
        "\x1b[2;4r\x1b[?6hone\r\n\x1b[44mtwo\x1b[3;5H",
        "three\r\nfour\x1b[1;1Htop\x1b[?6l\x1b[rend",
    ),
    ("tab stops", "\x1b[3g\x1b[5G\x1bH\x1b[10G\x1bH\r", "\ta\tb\tc"),
    ("tab stops of the alternate page", "\x1b[?1049h\x1b[3g\x1b[5G\x1bH\r", "\ta\tb"),
    ("a reset", "\x1b[2;3r\x1b[?1049h\x1b[?6;1;1002;1006;2004h\x1b[4htext\x1bcnew", " and more"),
    ("a page of E", "\x1b#8\x1b[3;3H", "\x1b[K"),
    ("a soft reset", "\x1b[2;3r\x1b[4h\x1b[?25l\x1b[31mred\x1b[!p", "plain\x1b[6H\n"),
];

/// The number of places in which each recording is cut.
const CUTS: usize = 40;

/// The size that the recordings were made with.
const RECORDED: Size = Size { cols: 80, rows: 24 };

#[derive(Debug, Serialize, Deserialize)]
struct Case {
    name: String,
    cols: u16,
    rows: u16,
    /// Whether the output is lines only, none of which is written twice.
    #[serde(default)]
    flows: bool,
    past: String,
    #[serde(default)]
    snapshot: String,
    rest: String,
}

impl Case {
    fn new(name: String, size: Size, past: &str, rest: &str) -> Self {
        let Size { cols, rows } = size;
        let (past, rest) = (past.to_owned(), rest.to_owned());
        Self { name, cols, rows, flows: false, past, snapshot: String::new(), rest }
    }

    /// A case of a text that is cut at a random place.
    fn cut(name: &str, size: Size, text: &str, runner: &mut TestRunner) -> Self {
        let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
        let places: Vec<usize> = ends.collect();
        let at = places[any(0..places.len(), runner)];
        let (past, rest) = text.split_at(at);
        Self::new(format!("{name}, cut at {at}"), size, past, rest)
    }

    fn print(mut self) -> io::Result<()> {
        let mut screen = Screen::new(Size::new(self.cols, self.rows));
        screen.feed(self.past.as_bytes());
        self.snapshot = screen.snapshot();
        let line = serde_json::to_string(&self)?;
        writeln!(io::stdout().lock(), "{line}")
    }
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments == ["-"] {
        return io::stdin().lock().lines().try_for_each(|line| {
            let case: Case = serde_json::from_str(&line?)?;
            case.print()
        });
    }
    let mut numbers = arguments.iter().map(|number| number.parse().expect("SEED and COUNT"));
    let (seed, count) = (numbers.next().unwrap_or(1), numbers.next().unwrap_or(200));
    let mut runner = runner(seed);
    for (name, past, rest) in TOLD {
        Case::new(name.to_owned(), Size::new(20, 6), past, rest).print()?;
    }
    for (name, bytes) in RECORDINGS {
        let text = String::from_utf8_lossy(bytes);
        (0..CUTS).try_for_each(|_| Case::cut(name, RECORDED, &text, &mut runner).print())?;
    }
    (0..count).try_for_each(|n| {
        flow(&format!("seed {seed}, flow {n}"), &mut runner).print()?;
        let kinds = Kind::ALL.into_iter();
        kinds
            .map(|kind| random(&format!("seed {seed}, {kind:?} {n}"), kind, &mut runner))
            .try_for_each(Case::print)
    })
}

fn runner(seed: u64) -> TestRunner {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &bytes))
}

fn any<T>(strategy: impl Strategy<Value = T>, runner: &mut TestRunner) -> T {
    strategy.new_tree(runner).expect("no strategy here rejects for ever").current()
}

/// Lines with colours, longer and shorter than a row.
fn flow(name: &str, runner: &mut TestRunner) -> Case {
    let bytes = any(streams::text_and_pens(60), runner);
    let text = agreed::flow(&String::from_utf8_lossy(&bytes));
    Case { flows: true, ..Case::cut(name, size(runner), &text, runner) }
}

fn random(name: &str, kind: Kind, runner: &mut TestRunner) -> Case {
    let text = kind.agreed(&any(vec(streams::piece(), 0..150), runner));
    Case::cut(name, size(runner), &text, runner)
}

/// A random size of two rows at least: with a single row, xterm.js has no margins, and does not move the cursor
/// home when a program sets them.
fn size(runner: &mut TestRunner) -> Size {
    let Size { cols, rows } = any(streams::sizes(), runner);
    Size::new(cols, rows.max(2))
}

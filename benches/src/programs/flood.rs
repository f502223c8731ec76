//! Writes a given amount of text: plain, coloured, or the whole screen again and again.

use std::{
    fs::File,
    io::{self, Read, Write},
    os::fd::AsFd,
    time::{Duration, Instant},
};

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::{OVER, READY};

/// The least size of a page, in bytes. It is written again and again.
const PAGE: usize = 1 << 20;

const PIECE: usize = 64 << 10;

const BEAT: Duration = Duration::from_millis(5);

const COLUMNS: usize = 80;
const ROWS: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Plain,
    /// The same, each word in a colour of its own.
    Colour,
    Repaint,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Plain, Self::Colour, Self::Repaint];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Colour => "colour",
            Self::Repaint => "repaint",
        }
    }

    pub(crate) fn page(self) -> Vec<u8> {
        let mut words = Words(1);
        let mut page = Vec::with_capacity(PAGE + PAGE / 8);
        while page.len() < PAGE {
            match self {
                Self::Plain => page.extend(words.line(None).into_bytes()),
                Self::Colour => page.extend(words.line(Some(38)).into_bytes()),
                Self::Repaint => page.extend(words.screen().into_bytes()),
            }
        }
        page
    }
}

/// The bytes that a flood of `megabytes` megabytes writes: whole pages.
pub(crate) fn written(kind: Kind, megabytes: u64) -> u64 {
    let page = kind.page().len() as u64;
    page * pages(page, megabytes)
}

fn pages(page: u64, megabytes: u64) -> u64 {
    (megabytes * 1_000_000).div_ceil(page)
}

/// Waits for a line, writes `megabytes` megabytes, at most `pace` of them a second, and waits for another line.
pub(crate) fn run(kind: Kind, megabytes: u64, pace: Option<f64>) -> Result<()> {
    // Not through the standard output's buffer, which looks for the ends of lines.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let page = kind.page();
    out.write_all(READY.as_bytes())?;
    line()?;
    let mut pace = Pace::new(pace);
    for _ in 0..pages(page.len() as u64, megabytes) {
        for piece in page.chunks(pace.piece()) {
            out.write_all(piece)?;
            pace.wrote(piece.len());
        }
    }
    write!(out, "\x1b[0m\n{OVER}")?;
    line()
}

fn line() -> Result<()> {
    for byte in io::stdin().lock().bytes() {
        if byte? == b'\n' {
            break;
        }
    }
    Ok(())
}

struct Pace {
    /// Bytes in a second; `None`: as fast as can be.
    rate: Option<f64>,
    begun: Instant,
    written: usize,
}

impl Pace {
    fn new(megabytes: Option<f64>) -> Self {
        Self { rate: megabytes.map(|rate| rate * 1e6), begun: Instant::now(), written: 0 }
    }

    fn piece(&self) -> usize {
        self.rate.map_or(PIECE, |rate| ((rate * BEAT.as_secs_f64()) as usize).max(1))
    }

    #[expect(clippy::disallowed_methods, reason = "there is no runtime in this program")]
    fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
        std::thread::sleep(self.due().saturating_sub(self.begun.elapsed()));
    }

    /// When the bytes so far should have been written, counted from the beginning.
    fn due(&self) -> Duration {
        self.rate.map_or(Duration::ZERO, |rate| Duration::from_secs_f64(self.written as f64 / rate))
    }
}

/// Words that are the same in each run.
struct Words(u64);

impl Words {
    fn next(&mut self, most: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % most
    }

    fn word(&mut self) -> String {
        let length = 2 + self.next(9);
        (0..length).map(|_| char::from(b'a' + self.next(26) as u8)).collect()
    }

    /// A line of a terminal's width, its words in colours of this kind, if any: 38 of the letters, 48
    /// behind them.
    fn line(&mut self, colours: Option<u8>) -> String {
        let mut line = self.row(colours);
        if colours.is_some() {
            line += "\x1b[0m";
        }
        line + "\n"
    }

    fn row(&mut self, colours: Option<u8>) -> String {
        let (mut row, mut left) = (String::new(), COLUMNS);
        while left > 0 {
            let word = self.word() + " ";
            let word = &word[..word.len().min(left)];
            left -= word.len();
            if let Some(kind) = colours {
                row += &format!("\x1b[{kind};5;{}m", 16 + self.next(216));
            }
            row += word;
        }
        row
    }

    fn screen(&mut self) -> String {
        let mut screen = "\x1b[?2026h\x1b[H".to_owned();
        for row in 1..=ROWS {
            screen += &format!("\x1b[{row};1H{}", self.row(Some(48)));
        }
        screen + "\x1b[0m\x1b[?2026l"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text of a page without control sequences.
    fn text(page: &[u8]) -> String {
        let page = String::from_utf8(page.to_vec()).unwrap();
        let mut parts = page.split('\x1b');
        let first = parts.next().unwrap().to_owned();
        let is_end = |c: char| c.is_ascii_alphabetic();
        parts.fold(first, |text, part| text + part.split_once(is_end).unwrap().1)
    }

    #[test]
    fn lines_are_as_wide_as_a_terminal() {
        for kind in [Kind::Plain, Kind::Colour] {
            let text = text(&kind.page());
            assert!(text.lines().all(|line| line.len() == COLUMNS), "{kind:?}");
            assert!(text.lines().count() > 1000, "{kind:?}");
        }
    }

    #[test]
    fn a_repaint_is_whole_screens() {
        let page = Kind::Repaint.page();
        assert_eq!(text(&page).len() % (COLUMNS * ROWS), 0);
        assert!(page.starts_with(b"\x1b[?2026h") && page.ends_with(b"\x1b[?2026l"));
    }

    #[test]
    fn the_words_of_programs_are_in_no_page() {
        for kind in Kind::ALL {
            let text = text(&kind.page());
            assert!(!text.contains(READY) && !text.contains(OVER));
            let over = written(kind, 3) - 3_000_000;
            assert!(over < kind.page().len() as u64, "{over}");
        }
    }

    #[test]
    fn a_paced_flood_takes_its_time() {
        let mut pace = Pace::new(Some(1.0));
        assert_eq!(pace.piece(), 5_000);
        pace.written = 30_000;
        assert_eq!(pace.due(), Duration::from_millis(30));
        let unpaced = Pace { written: 30_000, ..Pace::new(None) };
        assert_eq!((unpaced.piece(), unpaced.due()), (PIECE, Duration::ZERO));
    }
}

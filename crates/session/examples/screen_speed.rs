//! Measures how fast a screen reads, how large its snapshots are, and how long they take.
//!
//! `cargo run --release -p session --example screen_speed`
//!
//! First come streams of three kinds, then full screens as programs draw them, in three sizes.
//!
//! Where the system reports it, the thread's processor time is measured, since other programs may be busy.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use session::terminal::screen::{Screen, Size};

const LEN: usize = 32 << 20;

fn main() {
    let streams = [("plain", plain()), ("colour", colour()), ("repaint", repaint())];
    println!("stream   piece   skimming MB/s   all MB/s   snapshot bytes   microseconds");
    for (name, bytes) in &streams {
        for piece in [64 << 10, 4 << 10] {
            let (skimming, mut screen) = read(bytes, piece, true);
            let (all, _) = read(bytes, piece, false);
            let (len, micros) = snapshot(&mut screen);
            println!("{name:8} {piece:5}   {skimming:13.0}   {all:8.0}   {len:14}   {micros:12.1}");
        }
    }
    println!("\nscreen    columns x rows   snapshot bytes   microseconds");
    for (name, draw) in SCREENS {
        for (cols, rows) in [(80, 24), (120, 40), (200, 50)] {
            let mut screen = Screen::new(Size::new(cols, rows));
            screen.feed(draw(cols.into(), rows.into()).as_bytes());
            let (len, micros) = snapshot(&mut screen);
            println!("{name:8}   {cols:5} x {rows:3}   {len:14}   {micros:12.1}");
        }
    }
}

/// Draws a full screen of this many columns and rows.
type Draw = fn(usize, usize) -> String;

const SCREENS: [(&str, Draw); 4] =
    [("agent", agent), ("editor", editor), ("monitor", monitor), ("picture", picture)];

/// A conversation: paragraphs, a diff in colours, a box to type into.
fn agent(cols: usize, rows: usize) -> String {
    let mut text = String::from("\x1b[H");
    for row in 0..rows - 4 {
        let words = "The parser reads a whole sequence or nothing, so the engine is at rest. ";
        let width = cols * (40 + row * 37 % 45) / 100;
        let line: String = words.chars().cycle().skip(row * 11).take(width).collect();
        let _ = match row % 8 {
            0 => write!(text, "\x1b[38;2;215;119;87m● \x1b[0m\x1b[1m{line}\x1b[0m\r\n"),
            3 => write!(text, "  {row:4} \x1b[38;2;255;255;255;48;2;122;41;54m- {line}\x1b[0m\r\n"),
            4 => write!(text, "  {row:4} \x1b[38;2;255;255;255;48;2;34;92;43m+ {line}\x1b[0m\r\n"),
            7 => write!(text, "\r\n"),
            _ => write!(text, "  {line}\r\n"),
        };
    }
    let edge = "─".repeat(cols - 2);
    let blank = " ".repeat(cols - 4);
    let _ = write!(
        text,
        "\x1b[2m╭{edge}╮\r\n│\x1b[22m > {blank}\x1b[2D\x1b[2m│\r\n╰{edge}╯\x1b[0m\r\n"
    );
    text + "  \x1b[38;2;153;153;153m? for shortcuts\x1b[0m"
}

/// Source text with colours of 24 bits on a background, line numbers and a status line.
fn editor(cols: usize, rows: usize) -> String {
    let mut text = String::from("\x1b[38;2;204;204;204;48;2;30;30;30m\x1b[2J\x1b[H");
    let words =
        ["pub fn", " read", "(&mut self, ", "bytes", ": &[", "u8", "]) -> ", "Result", "<()> {"];
    for row in 0..rows - 1 {
        let _ = write!(
            text,
            "\x1b[38;2;110;118;129m{row:4} \x1b[38;2;204;204;204m{}",
            " ".repeat(row % 5 * 4)
        );
        let mut width = 5 + row % 5 * 4;
        for (n, word) in words.iter().cycle().take(row * 7 % 14).enumerate() {
            width += word.len();
            if width < cols {
                let _ = write!(
                    text,
                    "\x1b[38;2;{};{};{}m{word}",
                    90 + n % 3 * 60,
                    200 - n % 4 * 30,
                    170
                );
            }
        }
        text.push_str("\r\n");
    }
    let _ = write!(text, "\x1b[30;48;2;0;122;204m{:cols$}", " main  src/lib.rs  utf-8  12:7");
    text
}

/// Bars and columns of numbers, in many of the 256 colours.
fn monitor(cols: usize, rows: usize) -> String {
    let mut text = String::from("\x1b[H");
    for row in 0..rows / 3 {
        let _ = write!(text, "\x1b[{};1H\x1b[1m{row:3}\x1b[0m[", row + 1);
        for column in 0..(cols - 10) * (row * 31 % 90 + 10) / 100 {
            let _ = write!(text, "\x1b[38;5;{}m|", 46 + column * 4 / cols * 36);
        }
        let _ = write!(text, "\x1b[{}G\x1b[38;5;244m{:2}%\x1b[0m]", cols - 5, row * 31 % 90 + 10);
    }
    for row in rows / 3..rows {
        let name = ["systemd", "bash", "cargo test --workspace", "node server.js"][row % 4];
        let _ = write!(
            text,
            "\x1b[{};1H\x1b[36m{:6}\x1b[0m user  20   0 \x1b[32m{:5}M\x1b[0m {:4} S \x1b[31m{:4}\x1b[0m {name}",
            row + 1,
            row * 371,
            row * 13,
            row * 7,
            row % 9
        );
    }
    text
}

/// Half blocks, each with two colours of its own: about as much as a screen can hold.
fn picture(cols: usize, rows: usize) -> String {
    let mut text = String::from("\x1b[H");
    for row in 0..rows {
        for column in 0..cols {
            let (red, green) = (column * 255 / cols, row * 255 / rows);
            let _ =
                write!(text, "\x1b[38;2;{red};{green};{};48;2;{red};{};99m▀", 255 - red, green / 2);
        }
    }
    text
}

struct Clock(Instant, Option<Duration>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), on_processor())
    }

    fn elapsed(&self) -> Duration {
        let used = on_processor().zip(self.1).and_then(|(now, start)| now.checked_sub(start));
        used.filter(|used| !used.is_zero()).unwrap_or_else(|| self.0.elapsed())
    }
}

/// The processor time of this thread; `None` if the system does not report it.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// The speed in megabytes per second, and the screen that has read all of `bytes`.
fn read(bytes: &[u8], piece: usize, skimming: bool) -> (f64, Screen) {
    let mut screen = Screen::new(Size::new(80, 24));
    screen.set_skimming(skimming);
    let clock = Clock::start();
    for piece in bytes.chunks(piece) {
        screen.feed(piece);
    }
    let megabytes = f64::from(u32::try_from(bytes.len()).unwrap_or(u32::MAX)) / 1e6;
    (megabytes / clock.elapsed().as_secs_f64(), screen)
}

fn snapshot(screen: &mut Screen) -> (usize, f64) {
    const TIMES: u32 = 200;
    let clock = Clock::start();
    let len = (0..TIMES).map(|_| screen.snapshot().len()).max().unwrap_or_default();
    (len, clock.elapsed().as_secs_f64() * 1e6 / f64::from(TIMES))
}

fn plain() -> Vec<u8> {
    let mut text = String::with_capacity(LEN + 100);
    for n in 0.. {
        if text.len() >= LEN {
            break;
        }
        let _ = write!(
            text,
            "{n:08} the quick brown fox jumps over the lazy dog and then runs away again \r\n"
        );
    }
    text.into_bytes()
}

fn colour() -> Vec<u8> {
    let mut text = String::with_capacity(LEN + 200);
    for n in 0.. {
        if text.len() >= LEN {
            break;
        }
        for (i, word) in
            ["error", "in", "module", "screen", "of", "crate", "session"].iter().enumerate()
        {
            let _ = write!(text, "\x1b[{};{}m{word}\x1b[0m ", i % 2, 31 + (n + i) % 7);
        }
        text.push_str("\r\n");
    }
    text.into_bytes()
}

fn repaint() -> Vec<u8> {
    let mut text = String::with_capacity(LEN + 8000);
    for n in 0.. {
        if text.len() >= LEN {
            break;
        }
        text.push_str("\x1b[?2026h\x1b[H");
        for row in 1..=24 {
            let _ = write!(
                text,
                "\x1b[{row};1H\x1b[38;5;{}m{row:2} \x1b[1mframe {n:08}\x1b[22m of a program that repaints everything\x1b[0m\x1b[K",
                (n + row) % 256
            );
        }
        text.push_str("\x1b[?2026l");
    }
    text.into_bytes()
}

//! How fast a screen reads, and how large and how quick a snapshot of it is.
//!
//! `cargo run --release -p session --example screen_speed`
//!
//! Time is that of the processor where the system tells it: others may be busy too.
#![allow(clippy::print_stdout, reason = "a measurement is printed")]

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use session::screen::{Screen, Size};

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
}

struct Clock(Instant, Option<Duration>);

impl Clock {
    fn start() -> Self {
        Self(Instant::now(), on_processor())
    }

    fn elapsed(&self) -> Duration {
        let own = on_processor().zip(self.1).and_then(|(now, start)| now.checked_sub(start));
        own.filter(|own| !own.is_zero()).unwrap_or_else(|| self.0.elapsed())
    }
}

/// How long this thread has run.
fn on_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok().map(Duration::from_nanos)
}

/// Megabytes in a second.
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

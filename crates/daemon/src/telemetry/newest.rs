//! The newest log lines, in memory, for administrators who cannot see standard error.

use std::{
    collections::VecDeque,
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
};

use jiff::Timestamp;
use protocol::admin::logs::{KEPT_BYTES, LogLevel, LogLine};
use tokio::sync::watch;
use tracing::Level;

/// The most bytes of one line that are kept. The line of a request has some hundred bytes.
const LONGEST: usize = 16 * 1024;

/// The size of a line beside its text, in bytes.
const OVERHEAD: usize = size_of::<LogLine>();

/// The newest lines of this process. They are a static because the log is one, too.
pub(super) static NEWEST: LazyLock<Newest> = LazyLock::new(Newest::default);

/// The newest lines, of [`KEPT_BYTES`] bytes together at most.
#[derive(Default)]
pub(super) struct Newest {
    lines: Mutex<NewestLines>,
    /// The number of the last line.
    last: watch::Sender<u64>,
}

#[derive(Default)]
struct NewestLines {
    lines: VecDeque<LogLine>,
    /// The size of all lines with their overhead.
    bytes: usize,
    /// The number of the last line.
    last: u64,
}

/// Lines after a number.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Batch {
    /// The lines, the oldest first.
    pub(super) lines: Vec<LogLine>,
    /// How many lines after the number are no longer kept, whatever their level.
    pub(super) missed: u64,
    /// The number after which the next batch begins.
    pub(super) last: u64,
}

impl Batch {
    /// Whether there is nothing to tell.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.missed == 0
    }
}

impl Newest {
    /// Adds a line, without its colours and its line end.
    pub(super) fn add(&self, level: LogLevel, line: &str) {
        let (at, text) = (Timestamp::now(), shortened(&without_colours(line.trim_end())));
        let mut held = self.lock();
        held.last += 1;
        let n = held.last;
        held.push(LogLine { n, at, level, text });
        drop(held);
        self.last.send_replace(n);
    }

    /// The last `most` lines of this level and graver ones, the oldest first.
    pub(super) fn last(&self, most: usize, level: LogLevel) -> Batch {
        let held = self.lock();
        let newest = held.lines.iter().rev().filter(|line| line.level <= level).take(most);
        let mut lines: Vec<LogLine> = newest.cloned().collect();
        lines.reverse();
        Batch { lines, missed: 0, last: held.last }
    }

    /// At most `most` lines after the number, of this level and graver ones. A number that is not reached yet is from
    /// an earlier start of the server, so all lines are new.
    pub(super) fn after(&self, number: u64, most: usize, level: LogLevel) -> Batch {
        let held = self.lock();
        let number = if number > held.last { 0 } else { number };
        let first = held.lines.front().map_or(held.last + 1, |line| line.n);
        let missed = first.saturating_sub(number + 1);
        let mut batch = Batch { missed, last: held.last, lines: Vec::new() };
        for line in held.lines.iter().skip_while(|line| line.n <= number) {
            if line.level <= level {
                batch.lines.push(line.clone());
            }
            if batch.lines.len() == most {
                batch.last = line.n;
                break;
            }
        }
        batch
    }

    /// A receiver of the number of the last line, which changes with each line.
    pub(super) fn watch(&self) -> watch::Receiver<u64> {
        self.last.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, NewestLines> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl NewestLines {
    fn push(&mut self, line: LogLine) {
        self.bytes += line.text.len() + OVERHEAD;
        self.lines.push_back(line);
        while self.bytes > KEPT_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.bytes -= oldest.text.len() + OVERHEAD;
        }
    }
}

/// The level in the words of `/admin/logs`.
pub(super) fn level_of(level: Level) -> LogLevel {
    match level {
        Level::ERROR => LogLevel::Error,
        Level::WARN => LogLevel::Warn,
        Level::INFO => LogLevel::Info,
        Level::DEBUG => LogLevel::Debug,
        Level::TRACE => LogLevel::Trace,
    }
}

/// A line without the sequences by which the formatter colours it: `ESC [`, numbers, `m`.
fn without_colours(line: &str) -> String {
    let mut parts = line.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let numbers = part.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';');
        plain.push_str(numbers.strip_prefix('m').unwrap_or(part));
    }
    plain
}

fn shortened(line: &str) -> String {
    if line.len() <= LONGEST {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(LONGEST)])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(lines: &[LogLine]) -> Vec<&str> {
        lines.iter().map(|line| line.text.as_str()).collect()
    }

    #[test]
    fn lines_are_kept_in_order_without_colours_and_found_by_level() {
        let newest = Newest::default();
        newest.add(LogLevel::Info, "\u{1b}[2m12:00\u{1b}[0m \u{1b}[1;32mINFO\u{1b}[0m a\n");
        newest.add(LogLevel::Warn, "b\n");
        newest.add(LogLevel::Debug, "c\n");
        assert_eq!(texts(&newest.last(10, LogLevel::Trace).lines), ["12:00 INFO a", "b", "c"]);
        assert_eq!(texts(&newest.last(1, LogLevel::Info).lines), ["b"]);
        assert_eq!(newest.last(10, LogLevel::Warn).lines[0].n, 2);
    }

    #[test]
    fn memory_stays_within_its_bound_however_many_and_long_lines_are() {
        let newest = Newest::default();
        let long = "é".repeat(LONGEST);
        (0..200).for_each(|_| newest.add(LogLevel::Info, &long));
        (0..50_000).for_each(|_| newest.add(LogLevel::Info, ""));
        let held = newest.lock();
        let bytes: usize = held.lines.iter().map(|line| line.text.len() + OVERHEAD).sum();
        assert_eq!(bytes, held.bytes);
        assert!(bytes <= KEPT_BYTES && bytes > KEPT_BYTES - LONGEST - 2 * OVERHEAD, "{bytes}");
    }

    #[test]
    fn a_long_line_is_cut_between_characters() {
        let newest = Newest::default();
        newest.add(LogLevel::Info, &"é€".repeat(LONGEST));
        let text = &newest.last(1, LogLevel::Info).lines[0].text;
        assert!(text.ends_with('…') && text.len() <= LONGEST + 3, "{}", text.len());
    }

    #[test]
    fn a_reader_goes_on_where_it_was_and_learns_what_it_missed() {
        let newest = Newest::default();
        ["a", "b", "c"].iter().for_each(|text| newest.add(LogLevel::Info, text));
        let first = newest.after(0, 2, LogLevel::Info);
        assert_eq!((texts(&first.lines), first.missed, first.last), (vec!["a", "b"], 0, 2));
        let second = newest.after(first.last, 2, LogLevel::Info);
        assert_eq!((texts(&second.lines), second.last), (vec!["c"], 3));
        assert_eq!(newest.after(3, 2, LogLevel::Info), Batch { last: 3, ..Batch::default() });
        let long = "x".repeat(LONGEST);
        (0..100).for_each(|_| newest.add(LogLevel::Info, &long));
        let later = newest.after(3, 1, LogLevel::Info);
        assert_eq!(later.missed, later.lines[0].n - 4);
        assert!(later.missed > 0);
    }

    #[test]
    fn lines_of_a_lower_level_are_passed_over_and_not_read_again() {
        let newest = Newest::default();
        (0..5).for_each(|_| newest.add(LogLevel::Debug, "noise"));
        assert_eq!(newest.after(0, 10, LogLevel::Warn), Batch { last: 5, ..Batch::default() });
    }

    #[test]
    fn a_number_of_an_earlier_start_means_all() {
        let newest = Newest::default();
        newest.add(LogLevel::Info, "a");
        assert_eq!(texts(&newest.after(7_000, 10, LogLevel::Info).lines), ["a"]);
    }
}

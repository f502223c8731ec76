//! Log lines on standard error, for people or as JSON.
//!
//! Lines are gathered in memory and written by a thread of their own, many at once: whoever logs
//! neither waits for the terminal nor wakes anybody for each line.

use std::{
    io::{self, Write},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    thread::JoinHandle,
    time::Duration,
};

use anyhow::Context;
use base::plain;
use tracing::{Level, Metadata};
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt, fmt::MakeWriter, layer::SubscriberExt,
    util::SubscriberInitExt,
};

use crate::options::LogFormat;

/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);

/// How long [`finish`] waits at most.
const FINISH: Duration = Duration::from_millis(500);

/// Bytes that may wait for standard error; further lines are dropped, and counted.
const WAITING: usize = 4 * 1024 * 1024;

/// Starts logging. Lines are written until the guard is dropped, which writes the last of them.
///
/// # Errors
/// When the filter is not one, or logging was started before.
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<LogGuard> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("{filter:?} is no log filter: try info, or debug,hyper=warn"))?;
    let lines = Lines::default();
    let builder = fmt().with_env_filter(filter).with_writer(lines.clone());
    let started = match format {
        LogFormat::Human => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            builder.with_ansi(colours).finish().with(filter_fn(tells_no_content)).try_init()
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true);
            builder.finish().with(filter_fn(tells_no_content)).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))?;
    // Logging starts once: so does this.
    let _ = LINES.set(lines.clone());
    let writer = lines.clone();
    let thread = std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || writer.write_out(&mut io::stderr()))?;
    Ok(LogGuard { lines, thread: Some(thread) })
}

/// Whether lines of this kind are fit for a log. At its lowest levels the WebSocket library writes
/// whole frames and handshakes: what people ask, and secrets.
fn tells_no_content(line: &Metadata<'_>) -> bool {
    !line.target().starts_with("tungstenite") || *line.level() <= Level::INFO
}

/// Writes what is left of the log and ends it: for a process that ends without dropping its guard.
/// It does not wait long: nobody may be reading standard error.
pub fn finish() {
    if let Some(lines) = LINES.get() {
        lines.close();
        lines.wait_until_written(FINISH);
    }
}

/// The lines of this process's log.
static LINES: OnceLock<Lines> = OnceLock::new();

/// Keeps the log going; dropping it writes what is left.
#[derive(Debug)]
pub struct LogGuard {
    lines: Lines,
    thread: Option<JoinHandle<()>>,
}

impl Drop for LogGuard {
    fn drop(&mut self) {
        self.lines.close();
        // A log thread that panicked has nothing more to write.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Lines that wait to be written.
#[derive(Debug, Clone, Default)]
struct Lines(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Debug, Default)]
struct Waiting {
    text: Vec<u8>,
    dropped: u64,
    closed: bool,
    written: bool,
}

impl Lines {
    fn add(&self, line: &[u8]) {
        let mut waiting = self.lock();
        if waiting.text.len() + line.len() > WAITING {
            waiting.dropped += 1;
            return;
        }
        let first = waiting.text.is_empty();
        waiting.text.extend_from_slice(line);
        drop(waiting);
        if first {
            self.0.1.notify_one();
        }
    }

    fn close(&self) {
        self.lock().closed = true;
        self.0.1.notify_all();
    }

    fn wait_until_written(&self, most: Duration) {
        let unwritten = |waiting: &mut Waiting| !waiting.written;
        drop(self.0.1.wait_timeout_while(self.lock(), most, unwritten));
    }

    /// Writes lines as they come, until closed.
    fn write_out(&self, out: &mut dyn Write) {
        loop {
            let (text, dropped, closed) = self.gathered();
            // Nobody is left to tell when standard error is gone.
            let _ = out.write_all(&text);
            if dropped > 0 {
                let _ = writeln!(out, "{dropped} log lines were dropped: too many at once");
            }
            if closed {
                self.lock().written = true;
                self.0.1.notify_all();
                return;
            }
        }
    }

    /// Waits for a line, then a while for more, and takes them all.
    fn gathered(&self) -> (Vec<u8>, u64, bool) {
        let (_, wake) = &*self.0;
        let empty = |waiting: &mut Waiting| waiting.text.is_empty() && !waiting.closed;
        let open = |waiting: &mut Waiting| !waiting.closed;
        let waiting = wake.wait_while(self.lock(), empty).unwrap_or_else(PoisonError::into_inner);
        let (mut waiting, _) =
            wake.wait_timeout_while(waiting, GATHER, open).unwrap_or_else(PoisonError::into_inner);
        (mem::take(&mut waiting.text), mem::take(&mut waiting.dropped), waiting.closed)
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line(self)
    }
}

/// One event on its way into the lines: the formatter writes it whole.
struct Line<'a>(&'a Lines);

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The formatter does not escape characters in strangers' names that change the direction of
        // writing.
        match std::str::from_utf8(line) {
            Ok(text) => self.0.add(plain::escaped(text).as_bytes()),
            Err(_) => self.0.add(line),
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_written_in_order_and_all_of_them_at_the_end() {
        let lines = Lines::default();
        let writer = lines.clone();
        let thread = std::thread::spawn(move || {
            let mut out = Vec::new();
            writer.write_out(&mut out);
            out
        });
        for number in 0..100 {
            lines.add(format!("line {number}\n").as_bytes());
        }
        lines.close();
        let text = String::from_utf8(thread.join().unwrap()).unwrap();
        let expected: String = (0..100).map(|number| format!("line {number}\n")).collect();
        assert_eq!(text, expected);
    }

    #[test]
    fn names_of_strangers_do_not_turn_a_line_around() {
        let lines = Lines::default();
        let mut line = lines.make_writer();
        line.write_all("\u{1b}[32mINFO\u{1b}[0m gpu\u{202e}\u{2066}\u{9b}é\n".as_bytes()).unwrap();
        lines.close();
        let mut out = Vec::new();
        lines.write_out(&mut out);
        let told = String::from_utf8(out).unwrap();
        assert_eq!(told, "\u{1b}[32mINFO\u{1b}[0m gpu\\u202e\\u2066\\u009bé\n");
    }

    #[test]
    fn who_ends_the_log_waits_until_it_is_written_and_not_for_ever() {
        let lines = Lines::default();
        lines.close();
        lines.wait_until_written(Duration::from_millis(1));
        assert!(!lines.lock().written, "nobody writes");
        let writer = lines.clone();
        let thread = std::thread::spawn(move || writer.write_out(&mut io::sink()));
        lines.wait_until_written(Duration::from_secs(60));
        assert!(lines.lock().written);
        thread.join().unwrap();
    }

    #[test]
    fn over_the_bound_lines_are_dropped_and_counted() {
        let lines = Lines::default();
        let line = vec![b'x'; WAITING / 2];
        for _ in 0..5 {
            lines.add(&line);
        }
        lines.close();
        let mut out = Vec::new();
        lines.write_out(&mut out);
        let tail = String::from_utf8(out.split_off(WAITING)).unwrap();
        assert_eq!(tail, "3 log lines were dropped: too many at once\n");
    }
}

//! Log lines on standard error, for people or as JSON.
//!
//! A thread of its own writes them, many at once: a request neither waits for the terminal nor wakes the
//! thread for each line.

use std::{
    io::{self, BufWriter, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    thread,
    time::Duration,
};

use anyhow::Context;
use base::plain;
use tracing::{Level, Metadata};
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter, filter::filter_fn, fmt, fmt::MakeWriter, layer::SubscriberExt, reload,
    util::SubscriberInitExt,
};

use super::newest::{NEWEST, Newest, level_of};
use crate::options::LogFormat;

/// How long lines are gathered before they are written.
const GATHER: Duration = Duration::from_millis(20);

/// The most lines that wait for standard error. Further ones are dropped, and counted.
const WAITING: usize = 8 * 1024;

/// The size of one write, in bytes.
const BATCH: usize = 64 * 1024;

/// Starts logging. Lines are written until the guard is dropped, which writes the last of them. The newest are also
/// kept in memory, for `/admin/logs`.
///
/// # Errors
/// When the filter cannot be read, or logging was started before.
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<LogGuard> {
    start_showing(format, filter, Level::TRACE)
}

/// Starts logging. Standard error shows only lines of the level `shown` and graver ones; the others are kept in memory
/// alone.
///
/// # Errors
/// As [`start`].
pub fn start_showing(format: LogFormat, filter: &str, shown: Level) -> anyhow::Result<LogGuard> {
    let filter = read_filter(filter)?;
    let (mut lines, thread) = lines(io::stderr(), WAITING);
    (lines.newest, lines.shown) = (Some(&*NEWEST), shown);
    let builder = fmt().with_env_filter(filter).with_writer(lines);
    let started = match format {
        LogFormat::Human => {
            let colours = io::IsTerminal::is_terminal(&io::stderr());
            let builder = builder.with_ansi(colours).with_filter_reloading();
            keep(builder.reload_handle());
            builder.finish().with(filter_fn(tells_no_content)).try_init()
        }
        LogFormat::Json => {
            let builder = builder.json().flatten_event(true).with_filter_reloading();
            keep(builder.reload_handle());
            builder.finish().with(filter_fn(tells_no_content)).try_init()
        }
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))?;
    *THREAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(thread);
    Ok(LogGuard(()))
}

fn read_filter(text: &str) -> anyhow::Result<EnvFilter> {
    let words = || format!("{text:?} is no log filter: try info, or debug,hyper=warn");
    EnvFilter::try_new(text).with_context(words)
}

/// Replaces the filter of a log that was started.
type Refilter = Box<dyn Fn(EnvFilter) -> anyhow::Result<()> + Send + Sync>;

static REFILTER: OnceLock<Refilter> = OnceLock::new();

fn keep<S: 'static>(handle: reload::Handle<EnvFilter, S>) {
    let replace = move |filter| Ok(handle.reload(filter)?);
    // Logging starts once, so there is no earlier value.
    let _started_before = REFILTER.set(Box::new(replace));
}

/// A filter that was read and not applied yet.
pub(crate) struct ReadFilter(EnvFilter);

impl ReadFilter {
    /// Reads a filter.
    ///
    /// # Errors
    /// When the text is not a filter.
    pub(crate) fn new(text: &str) -> anyhow::Result<Self> {
        read_filter(text).map(Self)
    }

    /// Makes the log use this filter from now on. Does nothing if no log was started.
    pub(crate) fn apply(self) -> anyhow::Result<()> {
        REFILTER.get().map_or(Ok(()), |replace| replace(self.0))
    }
}

/// Whether lines of this kind may be logged. At its lowest levels, the WebSocket library logs whole frames and
/// handshakes, and so prompts and secrets.
fn tells_no_content(line: &Metadata<'_>) -> bool {
    !line.target().starts_with("tungstenite") || *line.level() <= Level::INFO
}

/// The thread that writes this process's log. It is a static, because a second signal exits the process without
/// dropping the [`LogGuard`].
static THREAD: Mutex<Option<WorkerGuard>> = Mutex::new(None);

/// Writes the rest of the log and ends it. Waits for a second at most: standard error may be stuck.
pub fn finish() {
    let thread = THREAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    drop(thread);
}

/// Keeps the log going; dropping it writes what is left.
#[derive(Debug)]
pub struct LogGuard(());

impl Drop for LogGuard {
    fn drop(&mut self) {
        finish();
    }
}

/// A writer of lines, and the thread that passes them on to `out`. At most `most` lines may wait.
fn lines(out: impl Write + Send + 'static, most: usize) -> (Lines, WorkerGuard) {
    let dropped = Arc::<OnceLock<ErrorCounter>>::default();
    let out = BufWriter::with_capacity(BATCH, out);
    let batches = Batches { out, dropped: Arc::clone(&dropped), reported: 0 };
    let builder = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(most);
    let (writer, thread) = builder.thread_name("log").finish(batches);
    // Set afterwards: the counter exists only once the batches were handed over.
    let _ = dropped.set(writer.error_counter());
    (Lines { out: writer, newest: None, shown: Level::TRACE }, thread)
}

/// The writer of the log's thread. It is flushed whenever no line waits.
struct Batches<W: Write> {
    out: BufWriter<W>,
    dropped: Arc<OnceLock<ErrorCounter>>,
    /// How many dropped lines have been reported.
    reported: usize,
}

impl<W: Write> Write for Batches<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.out.write(line)
    }

    #[expect(clippy::disallowed_methods, reason = "the log's own thread sleeps, no runtime's")]
    fn flush(&mut self) -> io::Result<()> {
        let dropped = self.dropped.get().map_or(0, ErrorCounter::dropped_lines);
        let new = dropped - self.reported;
        if new > 0 {
            self.reported = dropped;
            writeln!(self.out, "{new} log lines were dropped: too many at once")?;
        }
        self.out.flush()?;
        // Lines that come during the sleep go out in one write, and do not wake this thread.
        thread::sleep(GATHER);
        Ok(())
    }
}

/// Takes the lines of the formatter.
struct Lines {
    out: NonBlocking,
    /// The store of the newest lines.
    newest: Option<&'static Newest>,
    /// The least grave level that standard error gets.
    shown: Level,
}

/// Takes the line of one event, which the formatter writes in one call.
struct Line {
    out: NonBlocking,
    newest: Option<&'static Newest>,
    level: Level,
    is_shown: bool,
}

impl Lines {
    fn line(&self, level: Level) -> Line {
        let is_shown = level <= self.shown;
        Line { out: self.out.clone(), newest: self.newest, level, is_shown }
    }
}

impl MakeWriter<'_> for Lines {
    type Writer = Line;

    fn make_writer(&self) -> Line {
        self.line(Level::INFO)
    }

    fn make_writer_for(&self, event: &Metadata<'_>) -> Line {
        self.line(*event.level())
    }
}

impl Write for Line {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // The formatter does not escape characters that change the direction of writing, which the names of strangers
        // may have.
        let text = String::from_utf8_lossy(line);
        let text = plain::escaped(&text);
        if self.is_shown {
            self.out.write_all(text.as_bytes())?;
        }
        if let Some(newest) = self.newest {
            newest.add(level_of(self.level), &text);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{LazyLock, MutexGuard};

    use protocol::admin::logs::LogLevel;

    use super::*;

    /// Standard error in a test: it is stuck while somebody else holds the lock.
    #[derive(Clone, Default)]
    struct Terminal(Arc<Mutex<Vec<u8>>>);

    impl Terminal {
        fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().unwrap()
        }

        fn text(&self) -> String {
            String::from_utf8(self.lock().clone()).unwrap()
        }
    }

    impl Write for Terminal {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.lock().write(text)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_are_written_in_order_and_all_of_them_at_the_end() {
        let terminal = Terminal::default();
        let (lines, thread) = lines(terminal.clone(), WAITING);
        let mut lines = lines.make_writer();
        let expected: String = (0..100).map(|number| format!("line {number}\n")).collect();
        expected.split_inclusive('\n').for_each(|line| lines.write_all(line.as_bytes()).unwrap());
        drop(thread);
        assert_eq!(terminal.text(), expected);
    }

    #[test]
    fn names_of_strangers_do_not_turn_a_line_around() {
        let terminal = Terminal::default();
        let (lines, thread) = lines(terminal.clone(), WAITING);
        let line = "\u{1b}[32mINFO\u{1b}[0m gpu\u{202e}\u{2066}\u{9b}é\n";
        lines.make_writer().write_all(line.as_bytes()).unwrap();
        drop(thread);
        assert_eq!(terminal.text(), "\u{1b}[32mINFO\u{1b}[0m gpu\\u202e\\u2066\\u009bé\n");
    }

    #[test]
    fn a_line_below_the_shown_level_is_kept_and_not_written() {
        static KEPT: LazyLock<Newest> = LazyLock::new(Newest::default);
        let terminal = Terminal::default();
        let (mut lines, thread) = lines(terminal.clone(), WAITING);
        (lines.newest, lines.shown) = (Some(&*KEPT), Level::WARN);
        lines.line(Level::INFO).write_all(b"quiet\n").unwrap();
        lines.line(Level::WARN).write_all(b"loud\n").unwrap();
        drop(thread);
        assert_eq!(terminal.text(), "loud\n");
        let newest = KEPT.last(10, LogLevel::Trace).lines;
        assert_eq!(newest.iter().map(|line| &line.text).collect::<Vec<_>>(), ["quiet", "loud"]);
    }

    #[test]
    fn the_end_of_the_log_does_not_wait_for_ever_for_a_stuck_terminal() {
        let terminal = Terminal::default();
        let (lines, thread) = lines(terminal.clone(), WAITING);
        let mut lines = lines.make_writer();
        let stuck = terminal.lock();
        lines.write_all(b"a line\n").unwrap();
        drop(thread);
        drop(stuck);
    }

    #[test]
    fn over_the_bound_lines_are_dropped_and_counted() {
        const MOST: usize = 4;
        let terminal = Terminal::default();
        let (lines, thread) = lines(terminal.clone(), MOST);
        let mut lines = lines.make_writer();
        let stuck = terminal.lock();
        // A line longer than the buffer is written at once, so the thread is stuck with it.
        lines.write_all(&[b'x'; BATCH + 1]).unwrap();
        while lines.out.error_counter().dropped_lines() < 3 {
            lines.write_all(b"y\n").unwrap();
        }
        drop(stuck);
        drop(thread);
        let text = terminal.text();
        let count = text.matches("y\n").count();
        assert!((MOST - 1..=MOST).contains(&count), "{count}");
        assert!(text.ends_with("3 log lines were dropped: too many at once\n"), "{text}");
    }
}

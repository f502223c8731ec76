//! Log lines on standard error, for people or as JSON.

use std::io::BufWriter;

use anyhow::Context;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{EnvFilter, fmt};

use crate::options::LogFormat;

/// Lines that may wait for standard error; more are dropped rather than hold up a job.
const WAITING_LINES: usize = 10_000;

/// Bytes that are written at once.
const WRITE: usize = 64 * 1024;

/// Starts logging. Lines are written until the guard is dropped.
///
/// # Errors
/// When the filter is not one, or logging was started before.
pub fn start(format: LogFormat, filter: &str) -> anyhow::Result<WorkerGuard> {
    let filter = EnvFilter::try_new(filter)
        .with_context(|| format!("{filter:?} is no log filter: try info, or debug,hyper=warn"))?;
    let (writer, guard) = NonBlockingBuilder::default()
        .buffered_lines_limit(WAITING_LINES)
        .lossy(true)
        // Flushed whenever no line is waiting: under load many lines are one write.
        .finish(BufWriter::with_capacity(WRITE, std::io::stderr()));
    let builder = fmt().with_env_filter(filter).with_writer(writer);
    let started = match format {
        LogFormat::Human => {
            let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
            builder.with_ansi(colours).try_init()
        }
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("logging cannot start: {error}"))?;
    Ok(guard)
}

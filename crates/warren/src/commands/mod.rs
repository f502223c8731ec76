//! Every command, a file each.

pub(crate) mod serve;
pub(crate) mod up;
pub(crate) mod worker;

use std::io::Write;

/// Writes a line to standard output, at once: whoever started the process waits for it.
pub(crate) fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The runtime that a command runs on.
pub(crate) fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

//! Every command, a file each; and what those share that ask a server: `target`, whom they speak to,
//! `named`, which key is meant, `table`, lists for people, `answer`, a model's answer as it comes, `words`,
//! numbers, `workspace`, which workspace and what in it is meant, and `qr`, text for a
//! camera.

mod answer;
pub(crate) mod cert;
pub(crate) mod files;
pub(crate) mod git;
pub(crate) mod key;
pub(crate) mod mesh;
mod named;
pub(crate) mod open;
pub(crate) mod project;
mod qr;
pub(crate) mod room;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod status;
mod table;
mod target;
pub(crate) mod team;
pub(crate) mod tui;
pub(crate) mod up;
pub(crate) mod usage;
mod words;
pub(crate) mod worker;
mod workspace;

#[cfg(test)]
pub(crate) use target::DEFAULT_SERVER;

use std::io::{self, Write};

use base::plain;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

/// Writes a line to standard output at once: the program that started this process may wait for it.
/// Nothing in it can control a terminal, even if strangers wrote it.
pub(crate) fn say(line: &str) -> io::Result<()> {
    write_line(&plain::lines(line))
}

/// Writes JSON to standard output, laid out so that people can read it too.
pub(crate) fn say_json(value: &impl Serialize) -> io::Result<()> {
    write_line(&plain::escaped(&serde_json::to_string_pretty(value)?))
}

/// Writes JSON to standard output, in one line.
pub(crate) fn say_json_line(value: &impl Serialize) -> io::Result<()> {
    write_line(&plain::escaped(&serde_json::to_string(value)?))
}

fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line to standard error: for people who look on, and not for programs. That nobody looks
/// is no failure.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain::lines(line));
}

/// The runtime of a server: half of the machine's cores. The other half is for whoever asks and
/// answers; and threads that wake each other cost more than a small request.
///
/// A runtime of threads even for one: what a task has woken runs next there, so that a request
/// leaves for its worker while the next one is read. On a single-threaded runtime all requests
/// that came together would leave together, and server, worker and backend take turns.
pub(crate) fn server_runtime() -> std::io::Result<Runtime> {
    process::give_back_memory();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Builder::new_multi_thread().worker_threads((cores / 2).max(1)).enable_all().build()
}

/// The runtime of a worker: one thread forwards more than any backend answers.
pub(crate) fn worker_runtime() -> std::io::Result<Runtime> {
    process::give_back_memory();
    Builder::new_current_thread().enable_all().build()
}

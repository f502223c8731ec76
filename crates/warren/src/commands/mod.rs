//! Every command, in a file each. What they share:
//!
//! - `span_export`: the spans of a worker's jobs, on their way to a collector
//! - `farewell`: what a server or a worker says and asks when it ends
//! - `found`: model servers that come and go; `banner`: what `warren up` says at the start
//! - `servers`: where the server is; the address of a server of this machine, from its settings
//! - `target`: the server that a command works on
//! - `names`: the names of keys and peers, for tables
//! - `named`: finds a key by its id, name or text
//! - `table`: lists for people
//! - `answer`: asks models, and prints their answers as they stream
//! - `words`: numbers for people
//! - `workspace`: finds the workspace, and sessions and projects in it
//! - `prompt`: questions at a terminal; `progress`: how far a transfer is
//! - `qr`: QR codes
//! - `private_file`: what this machine remembers, in files that only its owner can read

mod answer;
pub(crate) mod ask;
pub(crate) mod backup;
mod banner;
pub(crate) mod cert;
pub(crate) mod chat;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod database;
pub(crate) mod doctor;
mod farewell;
pub(crate) mod files;
mod found;
pub(crate) mod git;
pub(crate) mod invite;
pub(crate) mod join;
pub(crate) mod key;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mesh;
pub(crate) mod model;
pub(crate) mod model_engines;
pub(crate) mod models;
mod named;
mod names;
pub(crate) mod open;
mod private_file;
mod progress;
pub(crate) mod project;
mod prompt;
mod qr;
pub(crate) mod restore;
pub(crate) mod room;
pub(crate) mod serve;
mod servers;
pub(crate) mod service;
pub(crate) mod session;
pub(crate) mod span_export;
pub(crate) mod status;
pub(crate) mod stop;
pub(crate) mod table;
mod target;
pub(crate) mod team;
pub(crate) mod tui;
pub(crate) mod up;
pub(crate) mod usage;
pub(crate) mod version;
pub(crate) mod web;
mod words;
pub(crate) mod worker;
mod workspace;

use std::io::{self, Write};

use ::tui::markdown::Size;
use base::plain;
use serde::Serialize;
use tokio::runtime::{Builder, Runtime};

/// Writes a line to standard output and flushes it: the parent process may wait for it. Control characters,
/// which may come from strangers, are replaced.
pub(crate) fn say(line: &str) -> io::Result<()> {
    write_line(&plain::lines(line))
}

/// Writes indented JSON to standard output.
pub(crate) fn say_json(value: &impl Serialize) -> io::Result<()> {
    write_line(&plain::escaped(&serde_json::to_string_pretty(value)?))
}

/// Writes JSON to standard output, on one line.
pub(crate) fn say_json_line(value: &impl Serialize) -> io::Result<()> {
    write_line(&plain::escaped(&serde_json::to_string(value)?))
}

fn write_line(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// Writes a line for people to standard error. A closed standard error is no failure.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", plain::lines(line));
}

/// Whether colours are wanted. Any text in `NO_COLOR` means that they are not.
pub(crate) fn has_colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|no| no.is_empty())
}

/// The size of the terminal; without one, the smallest that is drawn on.
pub(crate) fn terminal_size() -> Size {
    let (width, height) = crossterm::terminal::size().unwrap_or((80, 24));
    Size { width, height }
}

/// The runtime of a server, on half of the machine's cores. Clients and workers on the same machine get the
/// other half, and more threads would spend more time waking each other than a small request takes.
///
/// It is multi-threaded even with one thread: there a woken task runs next, so that a request leaves for its
/// worker while the next one is read. On a single-threaded runtime all requests that came together would leave
/// together, and server, worker and backend would take turns.
pub(crate) fn server_runtime() -> std::io::Result<Runtime> {
    process::give_back_memory();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Builder::new_multi_thread().worker_threads((cores / 2).max(1)).enable_all().build()
}

/// Runs the command of a client. Work that still hangs in the background then does not keep the process
/// alive: a name that no server resolves can take half a minute.
pub(crate) fn run_client<T>(command: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = worker_runtime()?;
    let done = runtime.block_on(command);
    runtime.shutdown_background();
    done
}

/// The runtime of a worker: one thread can forward more than any backend answers.
pub(crate) fn worker_runtime() -> std::io::Result<Runtime> {
    process::give_back_memory();
    Builder::new_current_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_is_done_waits_for_nothing_in_the_background() {
        let (free, hangs) = std::sync::mpsc::channel::<()>();
        let command = async {
            let (begins, has_begun) = tokio::sync::oneshot::channel();
            tokio::task::spawn_blocking(move || {
                begins.send(()).unwrap();
                hangs.recv().unwrap_err();
            });
            Ok(has_begun.await?)
        };
        run_client(command).unwrap();
        drop(free);
    }
}

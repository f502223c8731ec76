//! How each of the command lines speaks.
//!
//! - [`main`]: which one it is
//! - `claude`, `codex`, `gemini`, `opencode`, `acp`: without a person
//! - `terminal`: with a person at a terminal, the same for all
//! - [`Inbox`]: lines of JSON that come while something else is done

mod acp;
mod claude;
mod codex;
mod gemini;
mod opencode;
mod terminal;

use std::{
    collections::VecDeque,
    io::{self, BufRead as _, Read as _, Write as _},
    process::exit,
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{script::pause, setting::Setting};

/// The fake agent, under the name that it was started by.
pub fn main() {
    let setting = Setting::new();
    let first = setting.args.first().map(String::as_str);
    match (setting.name.as_str(), first) {
        ("acp", _) | ("opencode", Some("acp")) => acp::run(&setting),
        ("gemini", _) if setting.has("--acp") => acp::run(&setting),
        ("claude", _) if setting.has("-p") => claude::run(&setting),
        ("codex", Some("exec")) => codex::run(&setting),
        ("gemini", _) if setting.value("--output-format").is_some() => gemini::run(&setting),
        ("opencode", Some("run")) => opencode::run(&setting),
        _ => terminal::run(&setting),
    }
}

/// Prints a line. Ends the program when its reader is gone.
pub(super) fn print(line: &str) {
    let mut out = io::stdout().lock();
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        exit(141);
    }
}

/// The prompt: all of the input.
fn prompt() -> String {
    let mut prompt = String::new();
    io::stdin().read_to_string(&mut prompt).expect("a prompt is text");
    prompt
}

fn pieces(text: &str) -> [&str; 2] {
    let (one, other) = text.split_at(text.floor_char_boundary(text.len() / 2));
    [one, other]
}

/// Lines of JSON that come while something else is done.
struct Inbox {
    lines: Receiver<Value>,
    later: VecDeque<Value>,
}

impl Inbox {
    fn open() -> Self {
        let (came, lines) = sync_channel(1024);
        thread::spawn(move || {
            for line in io::stdin().lock().lines() {
                let Ok(line) = line else { return };
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if came.send(value).is_err() {
                    return;
                }
            }
        });
        Self { lines, later: VecDeque::new() }
    }

    /// The next line; those that were put back come first.
    fn next(&mut self) -> Option<Value> {
        self.later.pop_front().or_else(|| self.lines.recv().ok())
    }

    /// The next new line; not one that was put back.
    fn wait(&mut self) -> Option<Value> {
        self.lines.recv().ok()
    }

    /// Works for `time`, or until a line interrupts it, and returns whether one did. Lines that are kept are put back.
    fn work(
        &mut self,
        time: Option<Duration>,
        interrupts: impl Fn(&Value) -> bool,
        is_kept: impl Fn(&Value) -> bool,
    ) -> bool {
        let deadline = time.map(|time| Instant::now() + time);
        let left = || deadline.map(|at| at.saturating_duration_since(Instant::now()));
        loop {
            let line = match left() {
                None => self.lines.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(left) => self.lines.recv_timeout(left),
            };
            match line {
                Ok(line) if interrupts(&line) => return true,
                Ok(line) if is_kept(&line) => self.put_back(line),
                Ok(_) => {}
                Err(RecvTimeoutError::Timeout) => return false,
                // Without a client it works on.
                Err(RecvTimeoutError::Disconnected) => {
                    pause(left());
                    return false;
                }
            }
        }
    }

    fn put_back(&mut self, line: Value) {
        self.later.push_back(line);
    }
}

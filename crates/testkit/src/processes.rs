//! The processes of this machine, as `/proc` has them, and the programs that are built for tests.

use std::{
    fmt, fs,
    path::{Path, PathBuf},
};

/// A process with its command line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub pid: u32,
    /// Since the machine's start, in ticks: with the number it tells two processes apart.
    started: String,
    line: String,
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} ({})", self.pid, self.line)
    }
}

/// The running processes whose command lines have both texts.
pub fn with(text: &str, other: &str) -> Vec<Process> {
    let entries = fs::read_dir("/proc").expect("it runs on Linux").flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(read).filter(|it| it.line.contains(text) && it.line.contains(other)).collect()
}

/// One that has ended, or is ending, has no command line.
fn read(pid: u32) -> Option<Process> {
    let place = Path::new("/proc").join(pid.to_string());
    let line = fs::read(place.join("cmdline")).ok().filter(|line| !line.is_empty())?;
    let line = String::from_utf8_lossy(&line).replace('\0', " ");
    let stat = fs::read_to_string(place.join("stat")).ok()?;
    // The name, in brackets, may have spaces.
    let (_, after) = stat.rsplit_once(')')?;
    let started = after.split_whitespace().nth(19)?.to_owned();
    Some(Process { pid, started, line: line.trim_end().to_owned() })
}

/// Ends a process without asking it.
pub fn kill9(pid: u32) {
    let command = format!("kill -9 {pid} 2>/dev/null");
    // It may have ended just now.
    let _gone = std::process::Command::new("sh").args(["-c", &command]).status();
}

/// A program that cargo puts beside the tests and the binaries: it is there once the examples of its
/// package are built.
pub fn example(name: &str, package: &str) -> PathBuf {
    let own = std::env::current_exe().expect("this program has a path");
    let places = own.ancestors().skip(1).take(3).map(|dir| dir.join("examples").join(name));
    let found = places.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| panic!("{name} is missing: cargo build -p {package} --examples"))
}

/// The file name of the program that acts like llama.cpp's server, with faults: see its file.
pub const FAKE_ENGINE: &str = "fake_engine";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ChildProcess, DEADLINE, eventually};

    #[tokio::test]
    async fn a_process_is_found_by_its_command_line_until_it_is_killed() {
        let mark = format!("mark-{}", std::process::id());
        let script = format!("echo ready; sleep 60; : {mark}");
        let mut child = ChildProcess::start("shell", Path::new("/bin/sh"), &["-c", &script]);
        child.line_with("ready").await;
        // Until it is another program, what the shell has started has the shell's command line.
        let is_alone = async || {
            let found = with(&mark, "sleep 60");
            found.iter().map(|it| it.pid).collect::<Vec<_>>() == [child.pid()]
        };
        eventually("that it is found", DEADLINE, is_alone).await;
        kill9(child.pid());
        eventually("its end", DEADLINE, async || with(&mark, "sleep").is_empty()).await;
        assert_eq!(child.exit().await, None);
    }
}

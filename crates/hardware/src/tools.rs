//! The programs of the GPUs' makers.

use std::{
    io::Read,
    process::{Child, ChildStdout, Command, Stdio},
    sync::mpsc::sync_channel,
    thread,
    time::Duration,
};

use tracing::debug;

use crate::system::{alone, kill_all};

/// How long a tool may take: `nvidia-smi` takes up to 2 s where it has to wake the driver.
const DEADLINE: Duration = Duration::from_secs(3);

/// The most that is read of a tool's output, in bytes.
const MAX_OUTPUT: u64 = 256 << 10;

/// Runs programs that tell about the machine.
pub trait Tools {
    /// The program's standard output; `None` if it is not installed, or does not
    /// come to an end in time. A program that fails may have written anything.
    fn run(&self, program: &str, arguments: &[&str]) -> Option<String>;
}

/// The programs that are installed here.
#[derive(Debug, Clone)]
pub struct InstalledTools {
    deadline: Duration,
}

impl InstalledTools {
    /// Sets the deadline of each program, instead of 3 s.
    #[must_use]
    pub const fn within(deadline: Duration) -> Self {
        Self { deadline }
    }
}

impl Default for InstalledTools {
    fn default() -> Self {
        Self::within(DEADLINE)
    }
}

impl Tools for InstalledTools {
    fn run(&self, program: &str, arguments: &[&str]) -> Option<String> {
        let mut child = start(program, arguments)?;
        let output = child.stdout.take().and_then(|out| read_within(out, self.deadline));
        if output.is_none() {
            debug!(program, "does not tell in time what the machine is made of; it is killed");
        }
        end(child);
        output
    }
}

fn start(program: &str, arguments: &[&str]) -> Option<Child> {
    let mut command = Command::new(program);
    command.args(arguments).env("LC_ALL", "C");
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    // So that what it starts in turn ends with it.
    alone(&mut command).spawn().ok()
}

/// All that is written, on a thread of its own: a pipe has no deadline.
fn read_within(out: ChildStdout, deadline: Duration) -> Option<String> {
    let (sender, receiver) = sync_channel(1);
    thread::spawn(move || {
        let mut output = Vec::new();
        if out.take(MAX_OUTPUT).read_to_end(&mut output).is_ok() {
            let _ = sender.send(output);
        }
    });
    let output = receiver.recv_timeout(deadline).ok()?;
    Some(String::from_utf8_lossy(&output).into_owned())
}

/// Nothing that it started is left. What hangs in a driver dies only when the driver lets it, so
/// that is waited for elsewhere.
fn end(mut child: Child) {
    kill_all(&mut child);
    thread::spawn(move || child.wait());
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use rustix::fs::{Mode, OFlags};

    use super::*;

    #[test]
    fn the_output_of_a_tool_is_read_and_an_absent_tool_says_nothing() {
        let tools = InstalledTools::default();
        assert_eq!(tools.run("echo", &["one", "two"]).as_deref(), Some("one two\n"));
        assert_eq!(tools.run("warren-no-such-tool", &[]), None);
    }

    #[test]
    fn a_tool_that_takes_too_long_is_given_up_with_all_that_it_started() {
        let directory = tempfile::tempdir().unwrap();
        let held = directory.path().join("held");
        let held = held.to_str().unwrap();
        InstalledTools::default().run("mkfifo", &[held]).unwrap();
        // Opening does not wait for a writer, reading does.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK;
        let mut reader = File::from(rustix::fs::open(held, flags, Mode::empty()).unwrap());
        let tools = InstalledTools::within(Duration::from_millis(300));
        assert_eq!(tools.run("sh", &["-c", &format!("sleep 3600 > {held} & sleep 3600")]), None);
        // This read ends when the last writer has: it hangs if one was left.
        rustix::fs::fcntl_setfl(&reader, OFlags::empty()).unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 0, "nobody holds it any more");
    }

    #[test]
    fn a_tool_that_says_too_much_is_cut_short() {
        let output = InstalledTools::default().run("sh", &["-c", "yes | head -c 9000000"]).unwrap();
        assert_eq!(output.len() as u64, MAX_OUTPUT);
    }
}

//! Child processes that never outlive the suite, however it ends.

use std::{
    fs::{self, File},
    io::Write,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, Lines, stdin},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::timeout,
};

use crate::report;

/// How long a process may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(5);

/// A running child. Dropping it ends the process.
#[derive(Debug)]
pub(crate) struct Process {
    name: String,
    pid: u32,
    has_children: bool,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Option<Lines<BufReader<ChildStdout>>>,
    log: PathBuf,
}

impl Process {
    /// Starts `command` in `dir`, where its stderr is kept as `NAME.log`.
    pub(crate) fn spawn(mut command: Command, name: &str, dir: &Path) -> Result<Self> {
        let log = dir.join(format!("{name}.log"));
        command.current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(&log).context("create a log")?);
        end_with_parent(&mut command);
        let mut child = command.spawn().with_context(|| format!("start {name}"))?;
        let pid = child.id().context("a child without a number")?;
        let lines = child.stdout.take().map(|out| BufReader::new(out).lines());
        let (name, stdin) = (name.to_owned(), child.stdin.take());
        Ok(Self { name, pid, has_children: false, child, stdin, lines, log })
    }

    /// Says that it has processes of its own, which it ends when it is terminated.
    pub(crate) fn with_children(mut self) -> Self {
        self.has_children = true;
        self
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    pub(crate) async fn line(&mut self, limit: Duration) -> Result<String> {
        let lines = self.lines.as_mut().context("stdout is read elsewhere")?;
        match timeout(limit, lines.next_line()).await {
            Ok(Ok(Some(line))) => Ok(line),
            Ok(_) => bail!("{} ended: {}", self.name, self.last_words()),
            Err(_) => bail!("{} said nothing for {limit:?}: {}", self.name, self.last_words()),
        }
    }

    /// Waits until it says `listening on http://ADDR`, or `ws://`; what it says afterwards is discarded.
    pub(crate) async fn listening(&mut self, limit: Duration) -> Result<SocketAddr> {
        let addr = timeout(limit, async {
            loop {
                if let Some(addr) = announced(&self.line(limit).await?) {
                    return anyhow::Ok(addr);
                }
            }
        });
        let addr = addr.await.with_context(|| format!("{} is not ready", self.name))??;
        self.discard_output();
        Ok(addr)
    }

    /// Reads and forgets its stdout, so that it never blocks on it.
    pub(crate) fn discard_output(&mut self) {
        if let Some(mut lines) = self.lines.take() {
            tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        }
    }

    /// Lets one of the suite's own processes do its next part.
    pub(crate) async fn go_on(&mut self) -> Result<()> {
        let stdin = self.stdin.as_mut().context("its stdin is closed")?;
        stdin.write_all(b"\n").await?;
        Ok(stdin.flush().await?)
    }

    /// Closes its stdin: the sign for the suite's own processes to go on or to end.
    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// An error when it has ended unasked.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.child.try_wait()? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}): {}", self.name, self.last_words()),
        }
    }

    /// Ends it, with SIGTERM at first.
    pub(crate) async fn stop(mut self) {
        self.close_stdin();
        terminate(self.pid);
        if timeout(GRACE, self.child.wait()).await.is_err() {
            report::note(&format!("{} did not end within {GRACE:?}: killed", self.name));
            let _ = timeout(GRACE, self.child.kill()).await;
        }
    }

    pub(crate) fn last_words(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let last: Vec<&str> = text.lines().rev().take(5).collect();
        last.into_iter().rev().collect::<Vec<_>>().join(" | ")
    }
}

impl Drop for Process {
    /// A process that is dropped instead of stopped gets no time to finish; but a process with children
    /// of its own, killed, would leave them behind.
    fn drop(&mut self) {
        match self.child.id() {
            Some(_) if self.has_children => terminate(self.pid),
            Some(_) => drop(self.child.start_kill()),
            None => {}
        }
    }
}

pub(crate) fn announce(addr: SocketAddr) -> Result<()> {
    say(&format!("listening on http://{addr}"))
}

pub(crate) fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

/// Waits until the parent lets this process do its next part; an error when it is gone.
pub(crate) async fn told_to_go_on() -> Result<()> {
    let read = stdin().read(&mut [0]).await?;
    ensure!(read > 0, "abandoned");
    Ok(())
}

/// Waits until stdin ends: the parent has finished with this process, or is gone.
pub(crate) async fn abandoned() {
    let (mut input, mut buffer) = (stdin(), [0; 64]);
    while matches!(input.read(&mut buffer).await, Ok(read) if read > 0) {}
}

fn announced(line: &str) -> Option<SocketAddr> {
    let (_, words) = line.split_once("listening on ")?;
    let (_, url) = words.split_once("://")?;
    let end = url.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c)));
    url[..end.unwrap_or(url.len())].parse().ok()
}

/// Has the kernel terminate the child when the suite dies without a chance to do so itself.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "only the child itself can ask the kernel for this")]
fn end_with_parent(command: &mut Command) {
    // SAFETY: this only sets a flag of the calling process; it allocates nothing and takes no lock,
    // as is required between fork and exec.
    unsafe {
        command
            .pre_exec(|| Ok(rustix::process::set_parent_process_death_signal(Some(Signal::TERM))?));
    }
}

#[cfg(not(target_os = "linux"))]
fn end_with_parent(_: &mut Command) {}

/// Sends SIGTERM to a child that has not been waited for, so that its pid cannot be another process's.
fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, dir: &Path) -> Process {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Process::spawn(command, "shell", dir).unwrap()
    }

    #[test]
    fn an_announcement_may_stand_in_a_sentence() {
        let addr = announced("warren: listening on http://127.0.0.1:4711, ready").unwrap();
        assert_eq!(addr, SocketAddr::from(([127, 0, 0, 1], 4711)));
        assert_eq!(announced("listening on ws://127.0.0.1:9").unwrap().port(), 9);
        assert!(announced("http://[::1]:80").is_none());
        assert!(announced("listening on http://[::1]:80/").unwrap().is_ipv6());
    }

    #[tokio::test]
    async fn a_child_that_ends_early_leaves_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = shell("echo no such option >&2; exit 2", dir.path());
        let error = child.listening(Duration::from_secs(20)).await.unwrap_err();
        assert!(format!("{error:#}").contains("no such option"), "{error:#}");
    }

    #[tokio::test]
    async fn a_stopped_child_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let mut child =
            shell("echo listening on http://127.0.0.1:9; while :; do read x; done", dir.path());
        assert_eq!(child.listening(Duration::from_secs(20)).await.unwrap().port(), 9);
        let pid = child.pid();
        child.check().unwrap();
        child.stop().await;
        assert!(crate::proc::cpu(&[pid]).is_err());
    }
}

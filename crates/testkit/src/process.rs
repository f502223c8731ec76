//! A child process with its log, its signals and its exit code.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fmt,
    net::SocketAddr,
    path::Path,
    process::Stdio,
    sync::{Arc, Mutex},
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncRead, BufReader},
    process::{Child, Command},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

use crate::wait::within;

/// Lines of log that are kept; the oldest are dropped.
const MAX_LINES: usize = 5_000;

/// How long the rest of the output may take after the end.
const OUTPUT: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Log {
    lines: VecDeque<String>,
    dropped: usize,
}

impl Log {
    fn push(&mut self, line: String) {
        if self.lines.len() == MAX_LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.lines.push_back(line);
    }
}

/// A running process. Dropping it kills it; when a test fails, its log is printed.
pub struct ChildProcess {
    name: String,
    child: Child,
    pid: u32,
    log: Arc<Mutex<Log>>,
    grown: watch::Receiver<()>,
    outputs: JoinSet<()>,
}

/// How long terminals and agents outlive a server. Those of tests end with it, unless a test says otherwise.
const KEEP_SESSIONS: &str = "WARREN_KEEP_SESSIONS";

/// The variables that are set here and are settings of Warren, of git, which the server runs, or of
/// Ollama, name proxies, or say where people keep their settings. A test starts no program with them.
pub fn settings() -> impl Iterator<Item = OsString> {
    let names = std::env::vars_os().map(|(name, _)| name);
    names.filter(|name| {
        let name = name.to_string_lossy();
        name == "NO_COLOR"
            || name.to_ascii_uppercase().ends_with("_PROXY")
            || ["WARREN_", "GIT_", "OLLAMA_", "XDG_"].iter().any(|start| name.starts_with(start))
    })
}

impl fmt::Debug for ChildProcess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.pid)
    }
}

impl ChildProcess {
    /// Starts `binary` with these arguments and an environment without settings of Warren. What it
    /// prints on stdout and stderr is its log.
    pub fn start<A: AsRef<OsStr>>(name: &str, binary: &Path, args: &[A]) -> Self {
        let mut command = Command::new(binary);
        command.args(args);
        Self::of(name, command)
    }

    /// The same, with a home of its own: there are no settings in it either.
    pub fn start_at<A: AsRef<OsStr>>(home: &Path, name: &str, binary: &Path, args: &[A]) -> Self {
        let mut command = Command::new(binary);
        command.args(args).env("HOME", home);
        Self::of(name, command)
    }

    /// The same, and with these variables.
    pub fn start_with<A: AsRef<OsStr>>(
        home: &Path,
        variables: &[(&str, &str)],
        name: &str,
        binary: &Path,
        args: &[A],
    ) -> Self {
        let mut command = Command::new(binary);
        command.args(args).env("HOME", home);
        Self::of_all(name, command, variables)
    }

    fn of(name: &str, command: Command) -> Self {
        Self::of_all(name, command, &[])
    }

    fn of_all(name: &str, mut command: Command, variables: &[(&str, &str)]) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        for variable in settings() {
            command.env_remove(variable);
        }
        command.env(KEEP_SESSIONS, "0");
        command.envs(variables.iter().copied());
        let mut child = command.kill_on_drop(true).spawn().expect("the binary starts");
        let pid = child.id().expect("it has just started");
        let log = Arc::new(Mutex::new(Log::default()));
        let (grows, grown) = watch::channel(());
        let mut outputs = JoinSet::new();
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        outputs.spawn(collect(stdout.expect("it is piped"), Arc::clone(&log), grows.clone()));
        outputs.spawn(collect(stderr.expect("it is piped"), Arc::clone(&log), grows));
        Self { name: name.to_owned(), child, pid, log, grown, outputs }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn log(&self) -> String {
        let log = self.log.lock().unwrap();
        log.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    /// Waits for a line of its log that contains `text`, and returns the line.
    pub async fn line_with(&self, text: &str) -> String {
        let mut grown = self.grown.clone();
        let found = async move {
            loop {
                grown.borrow_and_update();
                let found = find(&self.log.lock().unwrap(), text);
                if let Some(line) = found {
                    return Some(line);
                }
                if grown.changed().await.is_err() {
                    // It has closed both its outputs; look once more.
                    return find(&self.log.lock().unwrap(), text);
                }
            }
        };
        let line = within(&format!("{text:?} in the log of {}", self.name), found).await;
        line.unwrap_or_else(|| {
            panic!("{} ended without printing {text:?}:\n{}", self.name, self.log())
        })
    }

    /// Waits until it prints `listening on SCHEME://ADDRESS`, and returns that address.
    pub async fn listening(&self, scheme: &str) -> SocketAddr {
        let prints = format!("listening on {scheme}://");
        let line = self.line_with(&prints).await;
        let (_, rest) = line.split_once(&prints).expect("the line has it");
        let address = rest.split_whitespace().next().unwrap_or_default();
        address.parse().unwrap_or_else(|_| panic!("{line:?} has no address"))
    }

    pub async fn lines_with(&self, text: &str, count: usize) {
        let mut grown = self.grown.clone();
        let found = async move {
            while self.log().lines().filter(|line| line.contains(text)).count() < count {
                grown.changed().await.expect("it still runs");
            }
        };
        within(&format!("{count} times {text:?} in the log of {}", self.name), found).await;
    }

    pub fn sigterm(&self) {
        self.signal("TERM");
    }

    pub fn sighup(&self) {
        self.signal("HUP");
    }

    pub fn sigstop(&self) {
        self.signal("STOP");
    }

    pub fn sigcont(&self) {
        self.signal("CONT");
    }

    pub async fn kill9(&mut self) {
        within("killing", self.child.kill()).await.expect("it can be killed");
    }

    /// Waits for its end, and for all it has printed; its exit code, or nothing when a signal ended
    /// it.
    pub async fn exit(&mut self) -> Option<i32> {
        let ended = within(&format!("the end of {}", self.name), self.child.wait()).await;
        let outputs = async { while self.outputs.join_next().await.is_some() {} };
        // A child of its own may hold them open.
        let _held_open = timeout(OUTPUT, outputs).await;
        ended.expect("its status").code()
    }

    pub fn check_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The memory it occupies now, in bytes (`VmRSS`).
    pub fn resident_bytes(&self) -> u64 {
        self.status_bytes("VmRSS:")
    }

    /// The most memory that it has occupied so far, in bytes (`VmHWM`).
    pub fn peak_resident_bytes(&self) -> u64 {
        self.status_bytes("VmHWM:")
    }

    fn status_bytes(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid));
        let status = status.expect("it runs on Linux");
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).expect("such a line");
        kib.parse::<u64>().expect("a number") * 1024
    }

    fn signal(&self, signal: &str) {
        // The shell's own `kill` is everywhere, and needs no unsafe code.
        let command = format!("kill -{signal} {}", self.pid);
        let done = std::process::Command::new("sh").args(["-c", &command]).status();
        assert!(done.expect("a shell").success(), "{command} failed");
    }
}

impl Drop for ChildProcess {
    #[expect(clippy::print_stderr, reason = "the log belongs to the failure of the test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            let dropped = self.log.lock().map_or(0, |log| log.dropped);
            eprintln!("--- {} ({} lines dropped)\n{}---", self.name, dropped, self.log());
        }
    }
}

fn find(log: &Log, text: &str) -> Option<String> {
    log.lines.iter().find(|line| line.contains(text)).cloned()
}

async fn collect(output: impl AsyncRead + Unpin, log: Arc<Mutex<Log>>, grows: watch::Sender<()>) {
    let mut lines = BufReader::new(output).split(b'\n');
    while let Ok(Some(line)) = lines.next_segment().await {
        log.lock().unwrap().push(String::from_utf8_lossy(&line).into_owned());
        grows.send_replace(());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildProcess {
        ChildProcess::start("shell", Path::new("/bin/sh"), &["-c", script])
    }

    #[tokio::test]
    async fn keeps_both_outputs_and_the_exit_code() {
        let mut child = shell("echo out; echo err >&2; exit 3");
        child.line_with("out").await;
        child.line_with("err").await;
        assert_eq!(child.exit().await, Some(3));
    }

    #[tokio::test]
    async fn signals_reach_it() {
        let script = "trap 'echo asked; kill $!; exit 0' TERM; sleep 60 & echo ready; wait";
        let mut child = shell(script);
        child.line_with("ready").await;
        assert!(child.check_running() && child.resident_bytes() > 0);
        child.sigstop();
        child.sigcont();
        child.sigterm();
        child.line_with("asked").await;
        assert_eq!(child.exit().await, Some(0));
        let mut child = shell("echo ready; exec sleep 60");
        child.line_with("ready").await;
        child.kill9().await;
        assert_eq!(child.exit().await, None);
    }

    #[test]
    fn a_log_is_bounded() {
        let mut log = Log::default();
        for line in 0..=MAX_LINES {
            log.push(line.to_string());
        }
        assert_eq!((log.lines.len(), log.dropped), (MAX_LINES, 1));
    }
}

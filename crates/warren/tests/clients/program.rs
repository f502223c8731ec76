//! A client's process: a home of its own, an environment without anything of this machine's, and no
//! way out but loopback.

use std::{
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    time::timeout,
};

/// How long a client may take for anything. They are large, and the machine may be busy.
pub(crate) const DEADLINE: Duration = Duration::from_secs(120);

/// How many lines of output may wait to be read.
const LINES: usize = 1024;

/// A proxy that nobody is: what heeds it and wants to leave the machine fails at once. Where the
/// test runs in a network namespace of its own, there is no way out at all.
const NOWHERE: &str = "http://127.0.0.1:1";

/// The variables that keep a client on the machine.
pub(crate) const HERE: [(&str, &str); 4] = [
    ("HTTP_PROXY", NOWHERE),
    ("HTTPS_PROXY", NOWHERE),
    ("ALL_PROXY", NOWHERE),
    ("NO_PROXY", "127.0.0.1,localhost"),
];

/// Where `cargo xtask clients` has installed a part.
pub(crate) fn installed(part: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let place = root.join("target/clients").join(part);
    assert!(place.exists(), "{part} is not there: run `cargo xtask clients install`");
    place.canonicalize().unwrap()
}

/// A file beside this one.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

/// A program that is not started yet. Its working directory is an empty one in its home.
pub(crate) struct Program {
    command: Command,
    home: TempDir,
}

impl Program {
    pub(crate) fn new(binary: impl AsRef<OsStr>) -> Self {
        let home = tempfile::tempdir().unwrap();
        let mut command = Command::new(binary);
        command.env_clear().env("HOME", home.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(HERE);
        command.env("PYTHONDONTWRITEBYTECODE", "1");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let work = home.path().join("work");
        std::fs::create_dir(&work).unwrap();
        // A group of its own: some are launchers, and their real process must go with them.
        command.current_dir(work).process_group(0).kill_on_drop(true);
        Self { command, home }
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Writes a file, by its path from the home, and gives back where it is.
    pub(crate) fn file(&self, path: &str, content: &str) -> PathBuf {
        let path = self.home.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn start(mut self) -> Running {
        let mut child = self.command.spawn().expect("the program starts");
        let (sender, lines) = mpsc::channel(LINES);
        tokio::spawn(collect(child.stdout.take().unwrap(), sender.clone()));
        tokio::spawn(collect(child.stderr.take().unwrap(), sender));
        let stdin = child.stdin.take();
        Running { child, stdin, lines, log: String::new(), _home: self.home }
    }

    /// Runs it to its end.
    pub(crate) async fn run(self) -> Finished {
        self.start().finish().await
    }
}

/// A running program. Dropping it kills it, and all that it has started.
pub(crate) struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
    log: String,
    _home: TempDir,
}

/// How a program ended, and all it has printed.
pub(crate) struct Finished {
    pub(crate) code: Option<i32>,
    pub(crate) log: String,
}

impl Running {
    /// The next line of its output; nothing at its end.
    pub(crate) async fn line(&mut self) -> Option<String> {
        let line = timeout(DEADLINE, self.lines.recv()).await;
        let line =
            line.unwrap_or_else(|_| panic!("no line in {DEADLINE:?} after\n{}", self.log))?;
        self.log.push_str(&line);
        self.log.push('\n');
        Some(line)
    }

    /// Reads on to a line that contains a text.
    pub(crate) async fn line_with(&mut self, text: &str) -> String {
        while let Some(line) = self.line().await {
            if line.contains(text) {
                return line;
            }
        }
        panic!("it ended without printing {text:?}:\n{}", self.log);
    }

    /// Writes a line to its standard input.
    pub(crate) async fn say(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("it is open until the end");
        stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
    }

    /// Closes its standard input: some programs begin only then.
    pub(crate) fn end_input(&mut self) {
        self.stdin = None;
    }

    /// Closes its standard input and waits for its end.
    pub(crate) async fn finish(mut self) -> Finished {
        self.end_input();
        while self.line().await.is_some() {}
        let ended = timeout(DEADLINE, self.child.wait()).await;
        let status = ended.unwrap_or_else(|_| panic!("it does not end:\n{}", self.log)).unwrap();
        Finished { code: status.code(), log: std::mem::take(&mut self.log) }
    }
}

impl Drop for Running {
    #[expect(clippy::print_stderr, reason = "the log belongs to the failure of the test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            while let Ok(line) = self.lines.try_recv() {
                self.log.push_str(&line);
                self.log.push('\n');
            }
            eprintln!("--- a client, or its model server\n{}---", self.log);
        }
        // Only while it runs: afterwards the number may be another's.
        if let Some(group) = self.child.id() {
            let kill = format!("kill -KILL -{group}");
            let _gone = std::process::Command::new("sh").args(["-c", &kill]).status();
        }
    }
}

impl Finished {
    /// Checks that it has ended well.
    #[track_caller]
    pub(crate) fn well(self) -> String {
        assert_eq!(self.code, Some(0), "it failed:\n{}", self.log);
        self.log
    }
}

async fn collect(output: impl AsyncRead + Unpin, lines: mpsc::Sender<String>) {
    let mut segments = BufReader::new(output).split(b'\n');
    while let Ok(Some(line)) = segments.next_segment().await {
        if lines.send(String::from_utf8_lossy(&line).into_owned()).await.is_err() {
            return;
        }
    }
}

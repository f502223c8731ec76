//! Helpers for tests with real processes: a supervisor, commands, waiting with a deadline.

#![allow(dead_code, reason = "each test binary uses a part of it")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "tests may stop at the first surprise, here too"
)]

use std::{future::Future, path::Path, time::Duration};

use bytes::BytesMut;
use process::{
    Child, ChildIo, Command, Limits, Stdio, Supervisor, Terminal, User, clean_environment,
};
use uuid::Uuid;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) const HOST: &str = env!("CARGO_BIN_EXE_process-test-host");

/// Both kinds of machine: with control groups, and without.
pub(crate) fn ways() -> [Limits; 2] {
    [true, false].map(|control_groups| Limits { control_groups, ..Limits::default() })
}

pub(crate) async fn supervisor() -> Supervisor {
    supervisor_with(Limits::default()).await
}

pub(crate) async fn supervisor_with(limits: Limits) -> Supervisor {
    Supervisor::start_with(Path::new(HOST), &["supervisor"], limits).await.unwrap()
}

/// A shell command, in a terminal.
pub(crate) fn in_terminal(script: &str) -> Command {
    Command { stdio: Stdio::Terminal { cols: 80, rows: 24 }, ..in_pipes(script) }
}

/// A shell command, with pipes.
pub(crate) fn in_pipes(script: &str) -> Command {
    Command {
        id: Uuid::from_u128(rand_id()),
        program: "bash".into(),
        args: ["-c", script].map(Into::into).to_vec(),
        env: clean_environment(&[], &User::current().unwrap()),
        working_dir: "/".into(),
        stdio: Stdio::Pipes,
        run_as: None,
        max_processes: None,
    }
}

/// A unique id.
fn rand_id() -> u128 {
    use std::hash::{BuildHasher, RandomState};
    let half = || u128::from(RandomState::new().hash_one(std::process::id()));
    (half() << 64) | half()
}

pub(crate) fn terminal(child: &mut Child) -> Terminal {
    match child.take_io() {
        ChildIo::Terminal(terminal) => terminal,
        other => panic!("{other:?}"),
    }
}

/// Reads until `end` appears. Returns everything.
pub(crate) async fn read_until(terminal: &mut Terminal, end: &str) -> String {
    let mut read = BytesMut::new();
    let reading = async {
        while !String::from_utf8_lossy(&read).contains(end) {
            assert_ne!(terminal.read(&mut read).await.unwrap(), 0, "ended without {end}: {read:?}");
        }
    };
    let done = tokio::time::timeout(DEADLINE, reading).await;
    let read = String::from_utf8_lossy(&read).into_owned();
    assert!(done.is_ok(), "no {end} in {read}");
    read
}

/// Reads until no process has the terminal open.
pub(crate) async fn read_to_end(terminal: &mut Terminal) -> Vec<u8> {
    let mut read = BytesMut::new();
    within(async { while terminal.read(&mut read).await.unwrap() > 0 {} }).await;
    read.to_vec()
}

/// The whole output of a command with pipes.
pub(crate) async fn output(child: &mut Child) -> String {
    let ChildIo::Pipes { stdin, mut stdout, .. } = child.take_io() else { panic!("no pipes") };
    within(stdin.close()).await;
    let mut read = BytesMut::new();
    within(async { while stdout.read(&mut read).await.unwrap() > 0 {} }).await;
    String::from_utf8(read.to_vec()).unwrap()
}

pub(crate) async fn within<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(DEADLINE, what).await.expect("in time")
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(tokio::time::timeout(DEADLINE, waiting).await.is_ok(), "not in time: {what}");
}

/// The line that a process writes to a file, once it is complete.
pub(crate) async fn line_of(file: &Path) -> String {
    until("a line", || std::fs::read_to_string(file).is_ok_and(|it| it.ends_with('\n'))).await;
    std::fs::read_to_string(file).unwrap().trim().to_owned()
}

/// Whether a process lives; a zombie does not.
pub(crate) fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with(" Z"))
}

/// Prints why a test is skipped.
pub(crate) fn skipped(reason: &str) {
    eprintln!("skipped: {reason}");
}

pub(crate) fn is_root() -> bool {
    User::current().unwrap().uid == 0
}

/// A script that leaves a daemon behind as usual: forked twice, in a session of its own,
/// deaf to polite signals, and without the marker if `is_hidden`. It writes its
/// process id into `file`.
pub(crate) fn daemonise(file: &Path, is_hidden: bool) -> String {
    let environment = if is_hidden { "env -i" } else { "" };
    let file = file.display();
    format!(
        "({environment} setsid {environment} /bin/bash -c 'trap \"\" HUP TERM INT; \
         (echo $BASHPID > {file}.new; mv {file}.new {file}; \
         while true; do /bin/sleep 1000; done) & ' </dev/null >/dev/null 2>&1 &) ; "
    )
}

//! Sessions outlive their daemon: the next one takes them over, or they end.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop, too")]

mod support;

use std::{
    io::{BufRead, BufReader},
    os::unix::net::UnixDatagram,
    path::Path,
    process::{Command as HostCommand, Stdio},
    time::Duration,
};

use bytes::BytesMut;
use nix::{
    sys::signal::{Signal as Raw, kill},
    unistd::Pid,
};
use process::{
    Child, Exit, HeldProcess, Keep, Limits, ProcessError, Supervisor, TakenOver, Terminal,
};
use support::{HOST, in_pipes, in_terminal, lives, output, read_until, terminal, until, within};
use tempfile::TempDir;

const LONG: Duration = Duration::from_secs(600);

/// A daemon with one session, and its and its supervisor's process ids.
struct Daemon {
    process: std::process::Child,
    child: u32,
    supervisor: u32,
}

impl Daemon {
    fn start(dir: &Path, script: &str, keep: Duration) -> Self {
        let mut command = HostCommand::new(HOST);
        let millis = keep.as_millis().to_string();
        command.args(["keeping", dir.to_str().unwrap(), script, &millis]).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut words = line.split_whitespace().skip(1).map(|word| word.parse().unwrap());
        Self { process, child: words.next().unwrap(), supervisor: words.next().unwrap() }
    }

    fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

async fn take_over(dir: &Path) -> (Supervisor, Vec<HeldProcess>) {
    let keep = Keep::new(dir, LONG).unwrap();
    match within(Supervisor::take_over(&keep, Limits::default())).await.unwrap() {
        TakenOver::Yes(supervisor, held) => (supervisor, held),
        other => panic!("{other:?}"),
    }
}

async fn only(dir: &Path) -> (Supervisor, Child) {
    let (supervisor, mut held) = take_over(dir).await;
    assert_eq!(held.len(), 1);
    (supervisor, held.remove(0).child)
}

/// Takes what was read, as a daemon does.
async fn next(child: &Child, terminal: &mut Terminal, taken: &mut u64) -> String {
    let mut read = BytesMut::new();
    *taken += within(terminal.read(&mut read)).await.unwrap() as u64;
    child.journal.note(*taken, 0, b"").unwrap();
    String::from_utf8(read.to_vec()).unwrap()
}

/// A script that writes numbers, each in a line, until its input says that it is enough. A `read` with a time-out in the
/// loop itself could lose what was typed: a shell drops what it has read when the time is over in that moment.
const COUNTS: &str = "stty -echo; trap enough=1 USR1; (read x </dev/tty; kill -USR1 $$) & \
                      n=0; until [ $enough ]; do n=$((n+1)); echo $n; sleep 0.002; done; \
                      echo end $n; exec sleep 1000";

#[tokio::test]
async fn output_goes_on_after_each_death_of_a_daemon_without_a_gap() {
    let dir = TempDir::new().unwrap();
    let mut daemon = Daemon::start(dir.path(), COUNTS, LONG);
    let (mut text, mut taken) = (String::new(), 0);
    daemon.kill();
    for _ in 0..5 {
        let (supervisor, mut child) = only(dir.path()).await;
        assert_eq!((child.pid, supervisor.pid()), (daemon.child, daemon.supervisor));
        let mut terminal = terminal(&mut child);
        let from = text.len();
        while text[from..].lines().count() < 50 {
            text += &next(&child, &mut terminal, &mut taken).await;
        }
        // Read, and not taken: the next daemon gets it again.
        within(terminal.read(&mut BytesMut::new())).await.unwrap();
        drop((terminal, child));
        within(supervisor.detach()).await;
    }
    let (_supervisor, mut child) = only(dir.path()).await;
    let mut terminal = terminal(&mut child);
    terminal.write_all(b"\n").await.unwrap();
    while !text.contains("end ") {
        text += &next(&child, &mut terminal, &mut taken).await;
    }
    let numbers: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    assert!(numbers.len() > 250);
    assert_eq!(numbers, (1..=numbers.len() as u32).collect::<Vec<_>>());
}

#[tokio::test]
async fn everything_ends_when_no_daemon_comes_in_time() {
    let dir = TempDir::new().unwrap();
    let mut daemon =
        Daemon::start(dir.path(), "trap '' HUP TERM; sleep 1000", Duration::from_millis(300));
    daemon.kill();
    until("all have ended", || !lives(daemon.child) && !lives(daemon.supervisor)).await;
    assert!(!dir.path().join("supervisor.socket").exists());
}

#[tokio::test]
async fn a_supervisor_that_is_killed_with_its_daemon_leaves_nothing() {
    let dir = TempDir::new().unwrap();
    let mut daemon = Daemon::start(dir.path(), "trap '' HUP TERM; sleep 1000", LONG);
    kill(Pid::from_raw(daemon.supervisor.try_into().unwrap()), Raw::SIGKILL).unwrap();
    daemon.kill();
    until("it has ended", || !lives(daemon.child)).await;
    let keep = Keep::new(dir.path(), LONG).unwrap();
    let none = Supervisor::take_over(&keep, Limits::default()).await.unwrap();
    assert!(matches!(none, TakenOver::Nothing));
}

#[tokio::test]
async fn a_daemon_with_another_secret_or_directory_takes_nothing_over() {
    let (dir, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let mut daemon = Daemon::start(dir.path(), "sleep 1000", LONG);
    daemon.kill();
    let elsewhere = Keep::new(other.path(), LONG).unwrap();
    let none = Supervisor::take_over(&elsewhere, Limits::default()).await.unwrap();
    assert!(matches!(none, TakenOver::Nothing));
    let secret = dir.path().join("supervisor.secret");
    let true_secret = std::fs::read(&secret).unwrap();
    std::fs::remove_file(&secret).unwrap();
    let guessed = Keep::new(dir.path(), LONG).unwrap();
    let refused = within(Supervisor::take_over(&guessed, Limits::default())).await;
    assert!(matches!(refused, Err(ProcessError::TakeOver { .. })), "{refused:?}");
    std::fs::write(&secret, true_secret).unwrap();
    let (_supervisor, child) = only(dir.path()).await;
    assert_eq!(child.pid, daemon.child);
    // Only its owner may connect.
    assert!(
        UnixDatagram::unbound().unwrap().connect(dir.path().join("supervisor.socket")).is_err()
    );
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(dir.path().join("supervisor.socket")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
}

#[tokio::test]
async fn the_end_of_a_process_meanwhile_is_told_with_its_last_output() {
    let dir = TempDir::new().unwrap();
    let mut daemon = Daemon::start(dir.path(), "read -t 0.3 x; echo last; exit 7", LONG);
    daemon.kill();
    until("it has ended", || !lives(daemon.child)).await;
    let (_supervisor, mut child) = only(dir.path()).await;
    let mut terminal = terminal(&mut child);
    read_until(&mut terminal, "last").await;
    assert_eq!(within(child.wait()).await, Exit::Code(7));
}

#[tokio::test]
async fn a_program_that_writes_more_than_is_held_waits_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let script =
        "stty -opost; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo over; exec sleep 1000";
    let mut daemon = Daemon::start(dir.path(), script, LONG);
    daemon.kill();
    let (_supervisor, mut child) = only(dir.path()).await;
    let mut terminal = terminal(&mut child);
    let (mut count, mut taken, mut end) = (0, 0, String::new());
    while !end.contains("over") {
        let text = next(&child, &mut terminal, &mut taken).await;
        count += text.matches('x').count();
        end = text;
    }
    assert_eq!(count, 3_000_000);
}

#[tokio::test]
async fn a_daemon_that_goes_without_leaving_its_sessions_ends_them() {
    let dir = TempDir::new().unwrap();
    let keep = Keep::new(dir.path(), LONG).unwrap();
    let supervisor =
        Supervisor::start_keeping(Path::new(HOST), &["supervisor"], Limits::default(), Some(&keep));
    let supervisor = supervisor.await.unwrap();
    let child = supervisor.spawn(in_terminal("exec sleep 1000")).await.unwrap();
    let (pid, of) = (child.pid, supervisor.pid());
    drop((child, supervisor));
    until("both have ended", || !lives(pid) && !lives(of)).await;
}

#[tokio::test]
async fn an_input_that_is_closed_ends_for_the_process_though_the_supervisor_keeps_its_session() {
    let dir = TempDir::new().unwrap();
    let keep = Keep::new(dir.path(), LONG).unwrap();
    let supervisor =
        Supervisor::start_keeping(Path::new(HOST), &["supervisor"], Limits::default(), Some(&keep));
    let supervisor = supervisor.await.unwrap();
    let mut child = supervisor.spawn(in_pipes("cat; echo over")).await.unwrap();
    assert_eq!(output(&mut child).await, "over\n");
    assert_eq!(within(child.wait()).await, Exit::Code(0));
}

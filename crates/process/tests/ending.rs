//! No orphans: the end of sessions, by themselves and with the daemon or its supervisor.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests may stop, too")]

mod support;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Command as HostCommand, Stdio},
    time::Duration,
};

use nix::{
    sys::signal::{Signal as Raw, kill},
    unistd::Pid,
};
use process::{Command, Exit, Limits, ProcessError, Signal, User, end_leftovers};
use support::{
    HOST, daemonise, in_pipes, in_terminal, is_root, line_of, lives, output, read_until, skipped,
    supervisor, supervisor_with, terminal, until, ways, within,
};

const GRACE: Duration = Duration::from_millis(200);

async fn daemon_of(file: &Path) -> u32 {
    line_of(file).await.parse().unwrap()
}

fn kill_hard(pid: u32) {
    kill(Pid::from_raw(pid.try_into().unwrap()), Raw::SIGKILL).unwrap();
}

#[tokio::test]
async fn a_stop_takes_the_deaf_and_the_daemonised_with_it() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script =
            daemonise(&file, false) + "trap '' HUP TERM; echo ready; while true; do sleep 1; done";
        let mut child = supervisor.spawn(in_terminal(&script)).await.unwrap();
        let mut terminal = terminal(&mut child);
        read_until(&mut terminal, "ready").await;
        let daemon = daemon_of(&file).await;
        assert!(child.handle().members().await.unwrap().contains(&daemon), "{limits:?}");
        assert_eq!(within(child.handle().stop(GRACE)).await.unwrap(), 0);
        assert!(!lives(daemon) && !lives(child.pid), "{limits:?}");
        assert_eq!(within(child.wait()).await, Exit::Signal(Signal::Kill.number()));
    }
}

#[tokio::test]
async fn a_stop_leaves_other_sessions_alone() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let directory = tempfile::tempdir().unwrap();
        let files = ["one", "other"].map(|name| directory.path().join(name));
        let script = |file| daemonise(file, false) + "exec sleep 1000";
        let one = supervisor.spawn(in_pipes(&script(&files[0]))).await.unwrap();
        let other = supervisor.spawn(in_pipes(&script(&files[1]))).await.unwrap();
        let daemons = [daemon_of(&files[0]).await, daemon_of(&files[1]).await];
        assert_eq!(within(one.handle().stop(Duration::ZERO)).await.unwrap(), 0);
        assert!(!lives(one.pid) && !lives(daemons[0]), "{limits:?}");
        assert!(lives(other.pid) && lives(daemons[1]), "{limits:?}");
    }
}

#[tokio::test]
async fn a_process_that_obeys_a_hangup_ends_before_the_grace_is_over() {
    let supervisor = supervisor().await;
    let mut child = supervisor.spawn(in_terminal("echo up; exec sleep 1000")).await.unwrap();
    let mut terminal = terminal(&mut child);
    read_until(&mut terminal, "up").await;
    let long = support::DEADLINE * 10;
    assert_eq!(within(child.handle().stop(long)).await.unwrap(), 0);
    assert_eq!(within(child.wait()).await, Exit::Signal(Signal::Hangup.number()));
}

#[tokio::test]
async fn a_process_that_ignores_a_hangup_is_terminated_before_it_is_killed() {
    let supervisor = supervisor().await;
    let script = "trap '' HUP; trap 'exit 3' TERM; echo up; while true; do sleep 0.01; done";
    let mut child = supervisor.spawn(in_terminal(script)).await.unwrap();
    let mut terminal = terminal(&mut child);
    read_until(&mut terminal, "up").await;
    assert_eq!(within(child.handle().stop(Duration::from_secs(4))).await.unwrap(), 0);
    assert_eq!(within(child.wait()).await, Exit::Code(3));
}

#[tokio::test]
async fn processes_that_outlive_the_first_are_stopped_by_the_handle() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let mut child = supervisor.spawn(in_pipes(&daemonise(&file, false))).await.unwrap();
        assert_eq!(within(child.wait()).await, Exit::Code(0));
        let daemon = daemon_of(&file).await;
        assert!(lives(daemon));
        assert_eq!(within(child.handle().stop(Duration::ZERO)).await.unwrap(), 0);
        assert!(!lives(daemon), "{limits:?}");
        assert_eq!(child.handle().members().await.unwrap(), [0; 0]);
    }
}

#[tokio::test]
async fn a_process_that_hid_all_traces_is_found_by_its_control_group() {
    let supervisor = supervisor().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let script =
        "grep -q warren- /proc/self/cgroup && echo grouped; ".to_owned() + &daemonise(&file, true);
    let mut child = supervisor.spawn(in_pipes(&script)).await.unwrap();
    let is_grouped = output(&mut child).await.contains("grouped");
    let daemon = daemon_of(&file).await;
    if !is_grouped {
        return skipped("no control group is writable here");
    }
    assert_eq!(within(child.handle().stop(Duration::ZERO)).await.unwrap(), 0);
    assert!(!lives(daemon));
}

#[tokio::test]
async fn a_shutdown_ends_all_sessions_and_who_belongs_to_none() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let mut hidden = supervisor.spawn(in_pipes(&daemonise(&file, true))).await.unwrap();
        within(hidden.wait()).await;
        let daemon = daemon_of(&file).await;
        let mut deaf =
            supervisor.spawn(in_pipes("trap '' HUP TERM; sleep 1000; sleep 1000")).await.unwrap();
        within(supervisor.shutdown(GRACE)).await;
        assert!(!supervisor.is_alive());
        assert!(!lives(daemon) && !lives(deaf.pid) && !lives(supervisor.pid()), "{limits:?}");
        assert!(matches!(within(deaf.wait()).await, Exit::Signal(_)));
        let after = supervisor.spawn(in_pipes("true")).await;
        assert!(matches!(after, Err(ProcessError::SupervisorGone)));
    }
}

#[tokio::test]
async fn a_daemon_that_is_killed_takes_everything_with_it() {
    for groups in ["groups", "none"] {
        let directory = tempfile::tempdir().unwrap();
        let files = ["open", "hidden"].map(|name| directory.path().join(name));
        let script = daemonise(&files[0], false)
            + &daemonise(&files[1], true)
            + "trap '' HUP TERM; while true; do sleep 1; done";
        let mut host = HostCommand::new(HOST);
        host.args(["daemon", directory.path().to_str().unwrap(), &script, groups]);
        let mut host = host.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(host.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut pids: Vec<u32> =
            line.split_whitespace().skip(1).map(|it| it.parse().unwrap()).collect();
        assert_eq!(pids.len(), 2, "{line}");
        pids.extend([daemon_of(&files[0]).await, daemon_of(&files[1]).await]);
        assert!(pids.iter().all(|pid| lives(*pid)), "{groups}: {pids:?}");
        host.kill().unwrap();
        host.wait().unwrap();
        until("all are gone", || !pids.iter().any(|pid| lives(*pid))).await;
    }
}

#[tokio::test]
async fn a_supervisor_that_is_killed_is_noticed_and_its_processes_end() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let script = daemonise(&file, false) + "trap '' HUP TERM; while true; do sleep 1; done";
        let mut child = supervisor.spawn(in_pipes(&script)).await.unwrap();
        let daemon = daemon_of(&file).await;
        kill_hard(supervisor.pid());
        assert_eq!(within(child.wait()).await, Exit::Lost);
        within(supervisor.ended()).await;
        assert!(!supervisor.is_alive());
        until("all are gone", || !lives(daemon) && !lives(child.pid)).await;
        let stop = child.handle().stop(GRACE).await;
        assert!(matches!(stop, Err(ProcessError::SupervisorGone)));
    }
}

#[tokio::test]
async fn dropping_all_that_knows_of_a_supervisor_ends_it_and_everything_below() {
    let supervisor = supervisor().await;
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pid");
    let child =
        supervisor.spawn(in_pipes(&(daemonise(&file, true) + "exec sleep 1000"))).await.unwrap();
    let pids = [supervisor.pid(), child.pid, daemon_of(&file).await];
    drop(supervisor);
    assert!(pids.iter().all(|pid| lives(*pid)), "the child knows of it still");
    drop(child);
    until("all are gone", || !pids.iter().any(|pid| lives(*pid))).await;
}

#[tokio::test]
async fn leftovers_are_found_by_their_marker_and_others_left_alone() {
    let limits = Limits { control_groups: false, ..Limits::default() };
    let supervisor = supervisor_with(limits).await;
    let [marked, other] = ["one", "other"].map(|_| in_pipes("exec sleep 1000"));
    let id = marked.id;
    let mut marked = supervisor.spawn(marked).await.unwrap();
    let other = supervisor.spawn(other).await.unwrap();
    assert_eq!(within(end_leftovers(&[id])).await, 0);
    assert_eq!(within(marked.wait()).await, Exit::Signal(Signal::Kill.number()));
    assert!(lives(other.pid));
}

/// Starts sleeping processes until the kernel refuses, then says so.
const BOMB: &str = "i=0; while [ $i -lt 400 ]; do { sleep 1000 & } 2>/dev/null || break; \
                    i=$((i+1)); done; echo many; sleep 1000; wait";

#[tokio::test]
async fn a_fork_bomb_is_bounded_by_its_control_group() {
    let supervisor = supervisor().await;
    let grouped = "grep -E '(pids|^0:).*warren-' /proc/self/cgroup; cat /proc/self/cgroup >&2";
    let mut probe = Command { max_processes: Some(20), ..in_pipes(grouped) };
    probe.program = "bash".into();
    let mut probe = supervisor.spawn(probe).await.unwrap();
    if !output(&mut probe).await.contains("pids") && !has_unified_pids() {
        return skipped("no control group here can limit processes");
    }
    let bomb = Command { max_processes: Some(20), ..in_pipes(BOMB) };
    let child = supervisor.spawn(bomb).await.unwrap();
    let mut most = 0;
    // It reaches its limit, and never passes it.
    let reaching = async {
        while most < 20 {
            most = most.max(child.handle().members().await.unwrap().len());
        }
        for _ in 0..20 {
            most = most.max(child.handle().members().await.unwrap().len());
        }
    };
    within(reaching).await;
    assert_eq!(most, 20);
    assert_eq!(within(child.handle().stop(Duration::ZERO)).await.unwrap(), 0);
}

fn has_unified_pids() -> bool {
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers");
    controllers.is_ok_and(|it| it.contains("pids"))
}

#[tokio::test]
async fn without_control_groups_a_fork_bomb_of_a_plain_user_is_bounded_and_stopped() {
    if !is_root() {
        return skipped("only root can run something as another user");
    }
    let limits = Limits { control_groups: false, ..Limits::default() };
    let supervisor = supervisor_with(limits).await;
    let run_as = Some(User::lookup("nobody").unwrap());
    let bomb = Command { max_processes: Some(20), run_as, ..in_pipes(BOMB) };
    let child = supervisor.spawn(bomb).await.unwrap();
    let mut most = 0;
    let reaching = async {
        while most < 15 {
            most = most.max(child.handle().members().await.unwrap().len());
        }
        for _ in 0..20 {
            most = most.max(child.handle().members().await.unwrap().len());
        }
    };
    within(reaching).await;
    assert!(most <= 40, "{most}");
    assert_eq!(within(child.handle().stop(Duration::ZERO)).await.unwrap(), 0);
}

#[tokio::test]
async fn processes_that_start_others_all_the_time_are_stopped_all_the_same() {
    for limits in ways() {
        let supervisor = supervisor_with(limits).await;
        let script = "run() { while true; do (sleep 0.01 &) ; done; }; run & run & run";
        let child = supervisor.spawn(in_pipes(script)).await.unwrap();
        while child.handle().members().await.unwrap().len() < 5 {}
        assert_eq!(within(child.handle().stop(Duration::ZERO)).await.unwrap(), 0, "{limits:?}");
        assert!(child.handle().members().await.unwrap().is_empty());
    }
}

//! Terminals outlive a workspace: the next one continues them.

use std::{sync::Arc, time::Duration};

use base::Secret;
use process::{Command, Stdio};
use protocol::workspace::{SessionId, SessionStatus};
use tokio::runtime::Runtime;

use super::seen::{Watcher, type_in};
use crate::{
    Sessions,
    sessions::output::journal::{JournalScreen, OutputJournal, TerminalState},
    testing::{Site, soon},
    users,
};

/// Writes numbers, each in a line, until something is typed. A `read` with a time-out in the loop itself could lose it: a
/// shell drops what it has read when the time is over in that moment.
const COUNTS: &str = "stty -echo; trap enough=1 USR1; (read x </dev/tty; kill -USR1 $$) & \
                      n=0; until [ $enough ]; do n=$((n+1)); echo $n; sleep 0.002; done; \
                      echo end; exec cat";

fn site() -> Site {
    let mut site = Site::new();
    site.settings.keep_sessions = Duration::from_secs(600);
    site
}

/// Runs a workspace, then ends it in the middle of whatever it does, as a kill does: all its tasks are
/// dropped wherever they wait.
fn killed<T>(site: &Site, act: impl AsyncFnOnce(&crate::Workspace) -> T) -> T {
    let runtime = Runtime::new().unwrap();
    let done = runtime.block_on(async {
        let workspace = site.start().await;
        let done = act(&workspace).await;
        workspace.sessions.seem_killed().await;
        std::mem::forget(workspace);
        done
    });
    runtime.shutdown_background();
    done
}

impl Sessions {
    /// Lets what outlives a runtime that is dropped do nothing more: the thread that writes histories waits
    /// for ever, and no thread is in the middle of a read.
    pub(crate) async fn seem_killed(&self) {
        for info in self.list(true) {
            let session = Box::leak(Box::new(self.get(info.id).unwrap()));
            if let Some(engine) = session.engine.get() {
                soon(engine.release()).await;
            }
            std::mem::forget(session.history.lock());
        }
    }

    /// Stores another number of turns than there were.
    pub(crate) fn store_turn(&self, id: SessionId, turn: u64) {
        self.get(id).unwrap().change_stored(|life| life.facts.turn = turn);
    }
}

/// The first and the last number of whole lines in a text, which has all between them once and in order.
fn counted(text: &str) -> (u32, u32) {
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let numbers: Vec<u32> = whole.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let (first, last) = (numbers[0], numbers[numbers.len() - 1]);
    assert_eq!(numbers, (first..=last).collect::<Vec<_>>());
    (first, last)
}

/// Waits for the line of a number, or of a later one.
async fn until_number(watcher: &mut Watcher, number: u32) {
    let is_there = |text: &str| {
        let last = text.rsplit_once('\n').and_then(|(whole, _)| whole.lines().last());
        last.and_then(|line| line.trim().parse::<u32>().ok()).is_some_and(|last| last >= number)
    };
    while !is_there(&watcher.text) {
        assert!(watcher.step().await);
    }
}

#[test]
fn a_terminal_goes_on_after_each_kill_and_a_viewer_misses_nothing() {
    let site = site();
    let (id, mut seq, mut seen) = killed(&site, async |workspace| {
        let info = workspace.sessions.create(site.command("bash", &["-c", COUNTS])).await.unwrap();
        let mut watcher = Watcher::attach(workspace, info.id, 1);
        until_number(&mut watcher, 50).await;
        (info.id, watcher.seq, watcher.text.clone())
    });
    for round in 1..=5_u32 {
        (seq, seen) = killed(&site, async |workspace| {
            let info = workspace.sessions.info(id).unwrap();
            assert_ne!(info.status, SessionStatus::Exited, "{:?}", workspace.sessions.facts(id));
            let mut watcher = Watcher::resume(workspace, id, 1, seq);
            until_number(&mut watcher, 50 + 100 * round).await;
            assert_eq!(watcher.snapshots, 0, "it is sent what it lacks");
            (watcher.seq, seen + &watcher.text)
        });
        counted(&seen);
    }
    Runtime::new().unwrap().block_on(async {
        let workspace = site.start().await;
        let mut watcher = Watcher::resume(&workspace, id, 1, seq);
        type_in(&workspace, id, 1, "\n");
        watcher.until("end").await;
        seen += &watcher.text;
        let past = workspace.sessions.history(id, u64::MAX, 4 << 20).await.unwrap();
        assert_eq!(counted(&past.data), (1, counted(&seen).1));
        let shown = watcher.screen.snapshot();
        assert!(shown.contains("end"), "{shown}");
        workspace.shut_down().await;
    });
}

#[tokio::test]
async fn a_terminal_that_is_released_has_its_screen_size_and_end_in_the_next_workspace() {
    let site = site();
    let workspace = site.start().await;
    let script = "printf '\\033[?1049h\\033[5;5Hin the middle'; stty size; read x; exit 3";
    let mut new = site.command("bash", &["-c", script]);
    new.size = Some((100, 30));
    let info = workspace.sessions.create(new).await.unwrap();
    Watcher::attach(&workspace, info.id, 1).until("30 100").await;
    workspace.release().await;
    drop(workspace);
    let workspace = site.start().await;
    let mut watcher = Watcher::attach(&workspace, info.id, 1);
    watcher.until("in the middle").await;
    let shown = watcher.screen.snapshot();
    assert!(shown.contains("\x1b[?1049h") && shown.contains("in the middle"), "{shown:?}");
    assert_eq!((watcher.screen.size().cols, watcher.screen.size().rows), (100, 30));
    type_in(&workspace, info.id, 1, "\n");
    super::seen::until_status(&workspace, info.id, SessionStatus::Exited).await;
    assert_eq!(workspace.sessions.info(info.id).unwrap().exit_code, Some(3));
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_flood_is_whole_after_a_release_and_its_screen_comes_from_what_was_kept_of_it() {
    let site = site();
    let workspace = site.start().await;
    // More than the log keeps, on the alternate screen from the beginning.
    let script = "printf '\\033[?1049h'; seq 1 600000; read x; seq 600001 600003; sleep 1000";
    let info = workspace.sessions.create(site.command("bash", &["-c", script])).await.unwrap();
    let mut watcher = Watcher::attach(&workspace, info.id, 1);
    watcher.until("600000").await;
    let (seq, before) = (watcher.seq, watcher.screen.snapshot());
    workspace.release().await;
    drop((watcher, workspace));
    let workspace = site.start().await;
    let mut fresh = Watcher::attach(&workspace, info.id, 1);
    fresh.until("600000").await;
    assert_eq!(fresh.screen.snapshot(), before);
    let mut resumed = Watcher::resume(&workspace, info.id, 2, seq);
    type_in(&workspace, info.id, 2, "\n");
    resumed.until("600003").await;
    assert_eq!(resumed.snapshots, 0);
    workspace.shut_down().await;
}

#[test]
fn a_session_that_nobody_knows_is_ended_when_the_next_workspace_takes_over() {
    let site = site();
    let pids = killed(&site, async |workspace| {
        let info = workspace.sessions.create(site.shell("sleep 1000 & echo here; wait")).await;
        let info = info.unwrap();
        Watcher::attach(workspace, info.id, 1).until("here").await;
        let session = workspace.sessions.get(info.id).unwrap();
        let pids = session.live().unwrap().processes().await;
        workspace.sessions.0.shared.keeper.forget_now(info.id).unwrap();
        pids
    });
    Runtime::new().unwrap().block_on(async {
        let workspace = site.start().await;
        assert!(workspace.sessions.list(true).is_empty());
        for pid in pids {
            if let Ok(process) = process::Adopted::open(pid) {
                soon(process.wait()).await.unwrap();
            }
        }
        workspace.shut_down().await;
    });
}

#[tokio::test]
async fn a_screen_that_is_too_long_for_the_journal_does_not_cost_the_agents_key() {
    let (site, workspace) = Site::started().await;
    let command = Command {
        id: SessionId::from_random(rand::random()).uuid(),
        program: "cat".into(),
        args: Vec::new(),
        env: process::clean_environment(&[], &users::current().unwrap()),
        working_dir: site.dir.path().to_owned(),
        stdio: Stdio::Terminal { cols: 80, rows: 24 },
        run_as: None,
        max_processes: None,
    };
    let child = workspace.host.supervisor.spawn(command).await.unwrap();
    let mut journal = OutputJournal::new(Arc::clone(&child.journal), 1 << 20).unwrap();
    journal.keep_key(Secret::from("the key"));
    let screen = |length| JournalScreen { seq: 1, cols: 80, rows: 24, data: "x".repeat(length) };
    journal.keep_screen(screen(1 << 20));
    assert!(TerminalState::of(&child.journal).screen.is_some());
    journal.keep_screen(screen(5 << 20));
    let kept = TerminalState::of(&child.journal);
    assert!(kept.screen.is_none());
    assert_eq!(kept.key().unwrap().expose(), "the key");
    workspace.shut_down().await;
}

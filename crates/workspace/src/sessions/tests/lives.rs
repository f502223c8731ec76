//! Restarts after a shutdown, and after a kill.

use protocol::workspace::{SessionMode, SessionStatus};

use super::seen::{Watcher, type_in, until_status};
use crate::{
    refusal::Refusal,
    testing::{Site, soon},
};

#[tokio::test]
async fn after_a_restart_sessions_are_listed_as_they_are_with_what_they_showed() {
    let (site, workspace) = Site::started().await;
    let new = site.shell("printf '\\033[31mred words'; exec cat");
    let info = workspace.sessions.create(new).await.unwrap();
    let mut seen = Watcher::attach(&workspace, info.id, 1);
    seen.until("red words").await;
    type_in(&workspace, info.id, 1, "typed\n");
    seen.until("typed").await;
    let renamed = workspace.sessions.rename(info.id, "mine".to_owned()).await.unwrap();
    assert_eq!(renamed.name.as_deref(), Some("mine"));
    let workspace = site.restart(workspace).await;
    let sessions = &workspace.sessions;
    let [restored] = &sessions.list(false)[..] else { panic!("it is not listed") };
    assert_eq!((restored.id, restored.status), (info.id, SessionStatus::Exited));
    assert_eq!(restored.name.as_deref(), Some("mine"));
    assert!(sessions.facts(info.id).unwrap().ended.unwrap().contains("with the daemon"));
    let past = sessions.history(info.id, u64::MAX, 1 << 20).await.unwrap();
    assert!(past.data.contains("red words") && past.data.contains("typed"), "{}", past.data);
    assert!(past.from_seq == 1 && !past.more);
    let mut restored = Watcher::attach(&workspace, info.id, 1);
    restored.until("typed").await;
    assert!(
        restored.screen.snapshot().contains("\x1b[31m")
            || restored.screen.snapshot().contains(";31")
    );
    let mut resumed = Watcher::resume(&workspace, info.id, 2, seen.seq);
    resumed.step().await;
    assert_eq!((resumed.snapshots, resumed.seq), (0, seen.seq));
    workspace.shut_down().await;
}

#[test]
fn after_the_daemon_was_killed_nothing_runs_on_and_all_is_listed() {
    let site = Site::new();
    let first = tokio::runtime::Runtime::new().unwrap();
    let (id, pids) = first.block_on(async {
        let workspace = site.start().await;
        // The shell prints the word after the fork, so both processes exist once the word is seen.
        let new = site.shell("setsid sleep 1000 & echo here; sleep 1000");
        let info = workspace.sessions.create(new).await.unwrap();
        Watcher::attach(&workspace, info.id, 1).until("here").await;
        workspace.sessions.0.shared.writer.flush().await;
        let session = workspace.sessions.get(info.id).unwrap();
        let pids = session.live().unwrap().processes().await;
        std::mem::forget(workspace);
        (info.id, pids)
    });
    assert!(pids.len() >= 2);
    // All tasks are dropped wherever they wait. So the connection to the supervisor ends, as it does
    // when the daemon is killed.
    first.shutdown_background();
    let second = tokio::runtime::Runtime::new().unwrap();
    second.block_on(async {
        let workspace = site.start().await;
        let [info] = &workspace.sessions.list(true)[..] else { panic!("it is not listed") };
        assert_eq!((info.id, info.status), (id, SessionStatus::Exited));
        Watcher::attach(&workspace, id, 1).until("here").await;
        for pid in pids {
            if let Ok(process) = process::Adopted::open(pid) {
                soon(process.wait()).await.unwrap();
            }
        }
        workspace.shut_down().await;
    });
}

#[tokio::test]
async fn a_session_is_kept_before_it_is_told_of_and_not_made_where_it_cannot_be() {
    let (site, workspace) = Site::started().await;
    site.store.fail_writes(true);
    let refused = workspace.sessions.create(site.shell("cat")).await;
    assert!(matches!(refused, Err(Refusal::Store(_))), "{refused:?}");
    assert!(workspace.sessions.list(true).is_empty());
    site.store.fail_writes(false);
    let info = workspace.sessions.create(site.shell("exit 0")).await.unwrap();
    until_status(&workspace, info.id, SessionStatus::Exited).await;
    site.store.fail_writes(true);
    let renamed = workspace.sessions.rename(info.id, "new".to_owned()).await;
    assert!(matches!(renamed, Err(Refusal::Store(_))));
    site.store.fail_writes(false);
    let workspace = site.restart(workspace).await;
    assert_eq!(workspace.sessions.list(true).len(), 1);
    workspace.shut_down().await;
}

#[tokio::test]
async fn a_killed_session_does_not_come_back() {
    let (site, workspace) = Site::started().await;
    let info = workspace.sessions.create(site.shell("exec cat")).await.unwrap();
    workspace.sessions.kill(info.id).await.unwrap();
    let workspace = site.restart(workspace).await;
    assert!(workspace.sessions.list(true).is_empty());
    workspace.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_that_has_ended_gives_its_memory_back_and_is_read_again() {
    let bare = super::bare::Bare::new();
    let (session, feed, _) = bare.session(SessionMode::Pty);
    feed.output("words".into());
    feed.ended("exited with 0".to_owned(), Some(0));
    bare.sessions.0.shared.writer.flush().await;
    let mut seen = Watcher::of(bare.attach(session.id, 1, None));
    seen.until("words").await;
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(!session.lock().output.is_unloaded(), "somebody looks at it");
    drop(seen);
    tokio::time::sleep(std::time::Duration::from_secs(60)).await;
    assert!(session.lock().output.is_unloaded());
    let info = session.info();
    assert_eq!((info.exit_code, info.last_seq), (Some(0), Some(1)));
    let mut second = Watcher::of(bare.attach(session.id, 2, Some(0)));
    second.until("words").await;
    assert_eq!((second.snapshots, second.text.as_str()), (0, "words"));
}

//! Ticks: when they come, when they do not, and what happens at every limit.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::{RelPath, Root, change::Upload};

const LONG: Duration = Duration::from_secs(20);
/// Longer than any tick takes to arrive.
const SILENCE: Duration = Duration::from_millis(900);

struct Watched {
    dir: TempDir,
    watches: Arc<Watches>,
    watch: Watch,
}

impl Watched {
    async fn new(prepare: impl FnOnce(&Path)) -> Self {
        Self::with(Limits::default(), Watches::default(), prepare).await
    }

    async fn with(limits: Limits, watches: Watches, prepare: impl FnOnce(&Path)) -> Self {
        let dir = TempDir::new().unwrap();
        prepare(dir.path());
        let watches = Arc::new(watches);
        let limits = Limits { poll_every: Duration::from_millis(50), ..limits };
        let watch = Watch::start(dir.path(), limits, &watches).await.unwrap();
        Self { dir, watches, watch }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn write(&self, name: &str) {
        write(self.dir.path(), name);
    }

    async fn tick(&mut self) {
        assert_eq!(timeout(LONG, self.watch.changed()).await.expect("no tick came"), Some(()));
    }

    /// Waits for a tick and for those that follow from the same change.
    async fn ticks(&mut self) {
        self.tick().await;
        while timeout(SILENCE, self.watch.changed()).await.is_ok() {}
    }

    async fn silence(&mut self) {
        let tick = timeout(SILENCE, self.watch.changed()).await;
        assert!(tick.is_err(), "a tick came: {tick:?}");
    }
}

fn write(dir: &Path, name: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{:?}", Instant::now())).unwrap();
}

fn git(dir: &Path, args: &[&str]) {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=A", "-c", "user.email=a@example.org"]).args(args).current_dir(dir);
    // Nothing of the configuration here, nor of a hook that runs the tests.
    git.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).env("HOME", dir);
    let done = git.env("GIT_CONFIG_NOSYSTEM", "1").output().unwrap();
    assert!(done.status.success(), "{args:?}");
}

#[tokio::test]
async fn every_change_is_told_and_reading_is_none() {
    let mut watched = Watched::new(|dir| write(dir, "sub/f")).await;
    assert_eq!(watched.watch.means(), Means::Watching);
    watched.silence().await;
    fs::read(watched.at("sub/f")).unwrap();
    assert_eq!(fs::read_dir(watched.at("sub")).unwrap().count(), 1);
    watched.silence().await;
    watched.write("sub/f");
    watched.tick().await;
    watched.write("new");
    watched.ticks().await;
    fs::rename(watched.at("new"), watched.at("other")).unwrap();
    watched.ticks().await;
    fs::remove_file(watched.at("other")).unwrap();
    watched.ticks().await;
}

#[tokio::test]
async fn directories_that_come_are_watched_with_all_that_is_in_them() {
    let mut watched = Watched::new(|_| {}).await;
    watched.write("a/b/c/f");
    watched.ticks().await;
    watched.write("a/b/c/f");
    watched.ticks().await;
    fs::rename(watched.at("a"), watched.at("moved")).unwrap();
    watched.ticks().await;
    watched.write("moved/b/c/f");
    watched.tick().await;
    fs::remove_dir_all(watched.at("moved")).unwrap();
    watched.ticks().await;
    assert_eq!(watched.watches.used(), 1);
}

#[tokio::test]
async fn ignored_paths_are_neither_watched_nor_reported() {
    let prepare = |dir: &Path| {
        fs::write(dir.join(".gitignore"), "target/\n*.log\n!keep.log\n").unwrap();
        (0..30).for_each(|n| write(dir, &format!("target/{n}/f")));
        write(dir, "sub/f");
        fs::write(dir.join("sub/.gitignore"), "local\n").unwrap();
    };
    let mut watched = Watched::new(prepare).await;
    assert_eq!(watched.watches.used(), 2);
    watched.write("target/0/f");
    watched.write("target/new/f");
    watched.write("sub/a.log");
    watched.write("sub/local");
    fs::remove_file(watched.at("sub/a.log")).unwrap();
    fs::remove_dir_all(watched.at("target")).unwrap();
    watched.write("target/f");
    watched.silence().await;
    watched.write("sub/keep.log");
    watched.tick().await;
}

fn begun(watched: &Watched) -> Upload {
    let root = Root::open(watched.dir.path()).unwrap();
    Upload::begin(&root, &RelPath::parse("new").unwrap()).unwrap()
}

#[tokio::test]
async fn an_upload_is_reported_when_it_has_its_name() {
    let mut watched = Watched::new(|_| {}).await;
    let mut upload = begun(&watched);
    upload.take(0, b"some").unwrap();
    watched.silence().await;
    upload.take(4, b" more").unwrap();
    drop(upload);
    watched.silence().await;
    begun(&watched).finish().unwrap();
    watched.tick().await;
}

/// Its directory has changed when it began, and a scan sees that.
#[tokio::test]
async fn a_scan_does_not_see_an_upload_grow() {
    let limits = Limits { directories: 0, ..Limits::default() };
    let mut watched = Watched::with(limits, Watches::default(), |_| {}).await;
    let mut upload = begun(&watched);
    watched.ticks().await;
    upload.take(0, b"some").unwrap();
    watched.silence().await;
    upload.finish().unwrap();
    watched.tick().await;
}

#[tokio::test]
async fn other_rules_are_obeyed_from_when_they_are_written() {
    let mut watched = Watched::new(|dir| write(dir, "build/f")).await;
    fs::write(watched.at(".gitignore"), "build\n").unwrap();
    watched.ticks().await;
    watched.write("build/f");
    watched.silence().await;
    fs::remove_file(watched.at(".gitignore")).unwrap();
    watched.ticks().await;
    watched.write("build/f");
    watched.tick().await;
}

#[tokio::test]
async fn a_commit_is_told_and_what_git_does_inside_is_not() {
    let prepare = |dir: &Path| {
        git(dir, &["init", "-q"]);
        write(dir, "f");
        git(dir, &["add", "f"]);
    };
    let mut watched = Watched::new(prepare).await;
    watched.write(".git/objects/ab/cdef");
    watched.write(".git/index.lock");
    fs::remove_file(watched.at(".git/index.lock")).unwrap();
    watched.silence().await;
    git(watched.dir.path(), &["commit", "-q", "-m", "one"]);
    watched.ticks().await;
    git(watched.dir.path(), &["commit", "-q", "--allow-empty", "-m", "two"]);
    watched.tick().await;
}

#[tokio::test]
async fn a_linked_work_tree_and_a_part_of_one_are_told_of_commits_too() {
    let dir = TempDir::new().unwrap();
    git(dir.path(), &["init", "-q", "main"]);
    let main = dir.path().join("main");
    write(&main, "part/f");
    git(&main, &["add", "."]);
    git(&main, &["commit", "-q", "-m", "one"]);
    git(&main, &["worktree", "add", "-q", "../linked"]);
    let watches = Arc::default();
    for root in [dir.path().join("linked"), main.join("part")] {
        let mut watch = Watch::start(&root, Limits::default(), &watches).await.unwrap();
        git(&root, &["commit", "-q", "--allow-empty", "-m", "two"]);
        assert!(timeout(LONG, watch.changed()).await.is_ok());
    }
}

#[tokio::test]
async fn a_repository_that_is_made_later_is_noticed() {
    let mut watched = Watched::new(|dir| write(dir, "f")).await;
    git(watched.dir.path(), &["init", "-q"]);
    watched.ticks().await;
    git(watched.dir.path(), &["add", "f"]);
    watched.tick().await;
}

#[tokio::test]
async fn too_many_directories_for_one_watch_are_polled() {
    let limits = Limits { directories: 5, ..Limits::default() };
    let many = |dir: &Path| (0..5).for_each(|n| write(dir, &format!("{n}/f")));
    let mut watched = Watched::with(limits, Watches::default(), many).await;
    assert_eq!((watched.watch.means(), watched.watches.used()), (Means::Polling, 0));
    watched.silence().await;
    watched.write("4/f");
    watched.tick().await;
    watched.write("new/f");
    watched.tick().await;
    fs::remove_dir_all(watched.at("new")).unwrap();
    watched.ticks().await;
}

#[tokio::test]
async fn a_tree_with_too_many_directories_is_polled() {
    let limits = Limits { directories: 5, ..Limits::default() };
    let mut watched = Watched::with(limits, Watches::default(), |_| {}).await;
    assert_eq!(watched.watch.means(), Means::Watching);
    (0..5).for_each(|n| watched.write(&format!("{n}/f")));
    watched.tick().await;
    while watched.watch.means() == Means::Watching {
        watched.tick().await;
    }
    watched.write("4/f");
    watched.tick().await;
    assert_eq!(watched.watches.used(), 0);
}

#[tokio::test]
async fn a_polled_tree_is_watched_once_it_is_small_enough() {
    let watch_again = Duration::from_millis(50);
    let limits = Limits { directories: 5, watch_again, ..Limits::default() };
    let many = |dir: &Path| (0..5).for_each(|n| write(dir, &format!("{n}/f")));
    let mut watched = Watched::with(limits, Watches::default(), many).await;
    assert_eq!(watched.watch.means(), Means::Polling);
    watched.silence().await;
    fs::remove_dir_all(watched.at("4")).unwrap();
    while watched.watch.means() == Means::Polling {
        watched.tick().await;
    }
    assert_eq!(watched.watches.used(), 5);
    while timeout(SILENCE, watched.watch.changed()).await.is_ok() {}
    watched.write("3/f");
    watched.tick().await;
}

#[tokio::test]
async fn a_polled_tree_is_watched_once_other_watches_leave_room() {
    let three = |dir: &Path| (0..2).for_each(|n| write(dir, &format!("{n}/f")));
    let first = Watched::with(Limits::default(), Watches::new(4), three).await;
    let short = Duration::from_millis(50);
    let limits = Limits { poll_every: short, watch_again: short, ..Limits::default() };
    let mut second = Watch::start(first.dir.path(), limits, &first.watches).await.unwrap();
    assert_eq!(second.means(), Means::Polling);
    assert!(timeout(SILENCE, second.changed()).await.is_err(), "tries are no changes");
    drop(first.watch);
    while second.means() == Means::Polling {
        assert!(timeout(LONG, second.changed()).await.is_ok());
    }
    assert_eq!(first.watches.used(), 3);
}

#[tokio::test]
async fn too_many_directories_of_all_watches_are_polled() {
    let three = |dir: &Path| (0..2).for_each(|n| write(dir, &format!("{n}/f")));
    let first = Watched::with(Limits::default(), Watches::new(4), three).await;
    assert_eq!((first.watch.means(), first.watches.used()), (Means::Watching, 3));
    let limits = Limits::default();
    let second = Watch::start(first.dir.path(), limits, &first.watches).await.unwrap();
    assert_eq!((second.means(), first.watches.used()), (Means::Polling, 3));
}

#[tokio::test]
async fn no_more_is_looked_at_in_a_polling_than_is_said() {
    let limits = Limits { directories: 0, polled: 1, ..Limits::default() };
    let mut watched = Watched::with(limits, Watches::default(), |dir| write(dir, "sub/f")).await;
    watched.write("sub/f");
    watched.silence().await;
    watched.write("new");
    watched.tick().await;
}

#[tokio::test]
async fn constant_change_is_told_now_and_then() {
    let mut watched = Watched::new(|_| {}).await;
    let (path, is_over) = (watched.at("f"), Arc::new(AtomicBool::new(false)));
    let stop = Arc::clone(&is_over);
    let writing = thread::spawn(move || {
        let mut writes = 0;
        while !stop.load(Ordering::Relaxed) {
            fs::write(&path, "x").unwrap();
            writes += 1;
        }
        writes
    });
    // Ticks come although it is never quiet, each for many writes. The tests of `debounce` check
    // the times.
    let ticks = 4;
    for _ in 0..ticks {
        watched.tick().await;
    }
    is_over.store(true, Ordering::Relaxed);
    let writes = writing.join().unwrap();
    assert!(writes > 10 * ticks, "{writes} writes");
}

#[tokio::test]
async fn a_flood_that_the_kernel_cannot_keep_is_looked_through_again() {
    let mut watched = Watched::new(|_| {}).await;
    // Far more events than any queue holds, with new directories among them whose own events are
    // lost.
    for n in 0..3000 {
        watched.write(&format!("d{}/f{n}", n % 50));
        fs::rename(watched.at(&format!("d{}/f{n}", n % 50)), watched.at("moved")).unwrap();
    }
    watched.tick().await;
    while timeout(SILENCE * 2, watched.watch.changed()).await.is_ok() {}
    for n in [0, 25, 49] {
        watched.write(&format!("d{n}/f"));
        watched.ticks().await;
    }
}

#[tokio::test]
async fn a_root_that_goes_is_told_and_watched_again_when_it_is_back() {
    let outer = TempDir::new().unwrap();
    let root = outer.path().join("root");
    write(&root, "sub/f");
    let limits = Limits { poll_every: Duration::from_millis(50), ..Limits::default() };
    let watches = Arc::default();
    let mut watch = Watch::start(&root, limits, &watches).await.unwrap();
    fs::remove_dir_all(&root).unwrap();
    while watch.means() == Means::Watching {
        assert!(timeout(LONG, watch.changed()).await.is_ok());
    }
    write(&root, "sub/f");
    while watch.means() == Means::Polling {
        assert!(timeout(LONG, watch.changed()).await.is_ok());
    }
    while timeout(SILENCE, watch.changed()).await.is_ok() {}
    write(&root, "sub/f");
    assert!(timeout(LONG, watch.changed()).await.is_ok());
}

#[tokio::test]
async fn a_root_that_is_not_there_or_no_directory_is_refused() {
    let dir = TempDir::new().unwrap();
    write(dir.path(), "f");
    for name in ["gone", "f"] {
        let refused =
            Watch::start(&dir.path().join(name), Limits::default(), &Arc::default()).await;
        assert!(matches!(refused, Err(WatchError::Root(_))), "{name}");
    }
}

#[tokio::test]
async fn a_thread_that_does_not_watch_is_said() {
    let (dir, watches) = (TempDir::new().unwrap(), Arc::default());
    let none = |_: Work| Err(io::ErrorKind::OutOfMemory.into());
    let refused = Watch::start_on(dir.path(), Limits::default(), &watches, none).await;
    assert!(matches!(refused, Err(WatchError::Thread(_))), "{refused:?}");
    let idle = |work: Work| {
        drop(work);
        Ok(())
    };
    let refused = Watch::start_on(dir.path(), Limits::default(), &watches, idle).await;
    assert!(matches!(refused, Err(WatchError::Ended)), "{refused:?}");
}

#[tokio::test]
async fn a_dropped_watch_gives_everything_back() {
    let watched = Watched::new(|dir| write(dir, "a/b/f")).await;
    assert_eq!(watched.watches.used(), 3);
    drop(watched.watch);
    let deadline = Instant::now() + LONG;
    while watched.watches.used() > 0 {
        assert!(Instant::now() < deadline, "the thread goes on");
        tokio::task::yield_now().await;
    }
}

/// The variable that is set in the process with few watches.
const LIMITED: &str = "WARREN_FILES_FEW_WATCHES";

#[test]
fn a_tree_is_polled_when_the_kernel_gives_no_more_watches() {
    // In a user namespace the limit can be lowered for one process alone.
    let script = r#"echo 3 > /proc/sys/user/max_inotify_watches || exit 77
        exec "$0" --exact watch::tests::limited --nocapture"#;
    let child = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(env::current_exe().unwrap())
        .env(LIMITED, "1")
        .output();
    let Ok(child) = child else { return println!("no namespaces here") };
    let said = String::from_utf8_lossy(&child.stdout);
    if said.contains("polled as it should be") {
        return;
    }
    let complaint = String::from_utf8_lossy(&child.stderr);
    assert!(!said.contains("limited"), "{said}{complaint}");
    println!("no namespace with a limit of its own here: {complaint}");
}

/// Does nothing unless this is the process with few watches.
#[tokio::test]
async fn limited() {
    if env::var_os(LIMITED).is_none() {
        return;
    }
    println!("limited");
    let many = |dir: &Path| (0..5).for_each(|n| write(dir, &format!("{n}/f")));
    let mut watched = Watched::new(many).await;
    assert_eq!((watched.watch.means(), watched.watches.used()), (Means::Polling, 0));
    watched.write("4/f");
    watched.tick().await;
    println!("polled as it should be");
}

//! A git that is missing, hangs, floods, fails or talks nonsense.

use std::time::Instant;

use rustix::process::{Pid, test_kill_process};

use super::*;

/// A git that answers the requests before a status, and then performs this action.
fn then(repository: &Repository, action: &str) -> Runner {
    let root = fs::canonicalize(repository.root()).unwrap();
    repository.fake(&format!(
        "case \"$*\" in\n*rev-parse*) echo '{}';;\n*\" config \"*) ;;\n*) {action};;\nesac",
        root.display()
    ))
}

async fn status(repository: &Repository, runner: &Runner) -> Result<GitStatus, GitError> {
    repository.git.status(PROJECT, &repository.root(), runner).await
}

#[tokio::test]
async fn a_missing_git_is_said() {
    let repository = Repository::without();
    let runner = Runner { command: vec!["/nowhere/git".into()], ..repository.runner.clone() };
    let missing = status(&repository, &runner).await.unwrap_err();
    assert_eq!(missing.to_string(), "git is not installed, or not on PATH");
    let runner = Runner { command: Vec::new(), ..repository.runner.clone() };
    assert!(matches!(status(&repository, &runner).await, Err(GitError::Missing)));
}

#[tokio::test]
async fn a_git_that_fails_is_quoted() {
    let repository = Repository::without();
    let runner = then(&repository, "echo warning: x >&2; echo fatal: no luck >&2; exit 128");
    let failed = status(&repository, &runner).await.unwrap_err();
    assert_eq!(failed.to_string(), "git failed: no luck");
}

#[tokio::test]
async fn a_git_that_talks_nonsense_is_an_error() {
    let repository = Repository::without();
    let runner = then(&repository, r"printf '1 nonsense\000'");
    assert!(matches!(status(&repository, &runner).await, Err(GitError::Unreadable(_))));
}

#[tokio::test]
async fn a_git_that_hangs_is_ended_with_all_that_it_started() {
    let mut repository = Repository::without();
    let time_out = Duration::from_millis(1500);
    repository.git = Git::new(GitSettings { time_out, ..GitSettings::default() });
    let pids = repository.base.path().join("pids");
    // The child keeps the output open, and ignores SIGTERM.
    let hang =
        format!("(trap '' TERM HUP; sleep 1000) & echo $! > '{}'; sleep 1000", pids.display());
    let runner = then(&repository, &hang);
    // The child would hold the output open for 1000 s.
    assert!(matches!(status(&repository, &runner).await, Err(GitError::TimedOut(_))));
    let child: i32 = fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    assert_ends(child).await;
}

#[tokio::test]
async fn a_request_that_is_given_up_ends_its_git() {
    let repository = Repository::without();
    let pids = repository.base.path().join("pids");
    let hang =
        format!("sleep 1000 & echo $! > '{0}.new'; mv '{0}.new' '{0}'; wait", pids.display());
    let runner = then(&repository, &hang);
    tokio::select! {
        ended = status(&repository, &runner) => panic!("{ended:?}"),
        () = until(|| pids.exists()) => {}
    }
    let child: i32 = fs::read_to_string(&pids).unwrap().trim().parse().unwrap();
    assert_ends(child).await;
}

/// Waits until a killed process is gone, or is a zombie that its new parent has not reaped.
async fn assert_ends(pid: i32) {
    until(|| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.contains(") Z ") || test_kill_process(Pid::from_raw(pid).unwrap()).is_err()
    })
    .await;
}

async fn until(holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "it never happened");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_is_an_error_and_ends_git() {
    let mut repository = Repository::without();
    let settings = GitSettings { max_output: 1 << 20, ..GitSettings::default() };
    repository.git = Git::new(settings);
    let runner = then(&repository, "yes");
    let refused = status(&repository, &runner).await;
    assert!(matches!(refused, Err(GitError::TooLarge { limit: 1_048_576 })), "{refused:?}");
    let real = Repository::new();
    real.write("f", &"a line\n".repeat(2000));
    real.run(&["add", "f"]);
    let git = Git::new(GitSettings { max_output: 10_000, ..GitSettings::default() });
    let refused = git.diff(&real.root(), &RelPath::parse("f").unwrap(), true, &real.runner).await;
    assert!(matches!(refused, Err(GitError::TooLarge { limit: 10_000 })), "{refused:?}");
}

#[tokio::test]
async fn however_much_it_complains_it_is_not_stopped_by_that() {
    let repository = Repository::without();
    let runner = then(&repository, "head -c 3000000 /dev/zero >&2; printf '? f\\000'");
    assert_eq!(status(&repository, &runner).await.unwrap().untracked, ["f"]);
}

#[tokio::test]
async fn one_repository_is_asked_once_at_a_time() {
    let repository = Repository::without();
    let busy = repository.base.path().join("busy");
    let action =
        format!("mkdir '{0}' && sleep 0.05 && rmdir '{0}' && printf '? f\\000'", busy.display());
    let runner = then(&repository, &action);
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (git, root, runner) = (repository.git.clone(), repository.root(), runner.clone());
        running.spawn(async move { git.status(PROJECT, &root, &runner).await });
    }
    for ended in running.join_all().await {
        assert_eq!(ended.unwrap().untracked, ["f"]);
    }
}

#[tokio::test]
async fn no_more_commands_run_at_once_than_is_said() {
    let git = Git::new(GitSettings { at_once: 1, ..GitSettings::default() });
    let repositories: Vec<_> = (0..4).map(|_| Repository::without()).collect();
    let busy = repositories[0].base.path().join("busy");
    let action = format!("mkdir '{0}' && sleep 0.05 && rmdir '{0}'", busy.display());
    let mut running = tokio::task::JoinSet::new();
    for repository in &repositories {
        let (git, root, runner) = (git.clone(), repository.root(), then(repository, &action));
        running.spawn(async move { git.status(PROJECT, &root, &runner).await });
    }
    for ended in running.join_all().await {
        assert!(ended.is_ok(), "{ended:?}");
    }
}

#[tokio::test]
async fn too_many_requests_for_one_repository_are_refused() {
    let repository = Repository::without();
    let runner = then(&repository, "sleep 1000");
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..40 {
        let (git, root, runner) = (repository.git.clone(), repository.root(), runner.clone());
        running.spawn(async move { git.status(PROJECT, &root, &runner).await });
    }
    let first = running.join_next().await.unwrap().unwrap();
    assert!(matches!(first, Err(GitError::Busy)), "{first:?}");
    running.shutdown().await;
}

#[tokio::test]
async fn it_is_given_no_more_of_the_environment_than_is_said() {
    let repository = Repository::without();
    let seen = repository.base.path().join("env");
    let runner = then(&repository, &format!("env > '{}'", seen.display()));
    status(&repository, &runner).await.unwrap();
    let env = fs::read_to_string(seen).unwrap();
    assert!(env.contains("GIT_OPTIONAL_LOCKS=0\n") && env.contains("LC_ALL=C\n"));
    assert!(!env.contains("CARGO"), "{env}");
}

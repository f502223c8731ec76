//! Status and diff of real repositories.

use std::os::unix::ffi::OsStrExt;

use protocol::workspace::client::{ChangeStatus, GitChange};

use super::*;

fn letters(changes: &[GitChange]) -> Vec<(String, ChangeStatus)> {
    changes.iter().map(|change| (change.path.clone(), change.status)).collect()
}

fn one(path: &str, status: ChangeStatus) -> Vec<(String, ChangeStatus)> {
    vec![(path.to_owned(), status)]
}

#[tokio::test]
async fn a_directory_without_a_repository_is_no_error() {
    let repository = Repository::without();
    let none = repository.git.status(PROJECT, &repository.root(), &repository.runner).await;
    assert_eq!(none.unwrap(), GitStatus::no_repository(PROJECT));
    let path = RelPath::parse("f").unwrap();
    let diff = repository.git.diff(&repository.root(), &path, false, &repository.runner).await;
    assert!(matches!(diff, Err(GitError::NoRepository)));
}

#[tokio::test]
async fn a_bare_repository_has_no_status() {
    let repository = Repository::without();
    repository.run(&["init", "-q", "--bare"]);
    let none = repository.git.status(PROJECT, &repository.root(), &repository.runner).await;
    assert_eq!(none.unwrap(), GitStatus::no_repository(PROJECT));
}

#[tokio::test]
async fn a_missing_directory_is_an_error() {
    let repository = Repository::without();
    let gone = repository.git.status(PROJECT, &repository.at("gone"), &repository.runner).await;
    assert!(matches!(gone, Err(GitError::Failed(_))), "{gone:?}");
}

#[tokio::test]
async fn an_unborn_branch_has_a_name_and_staged_files() {
    let repository = Repository::new();
    repository.write("f", "text");
    repository.run(&["add", "f"]);
    let status = repository.status().await;
    assert_eq!(status.branch.as_deref(), Some("main"));
    assert_eq!(letters(&status.staged), one("f", ChangeStatus::Added));
    assert!(repository.diff("f", true).await.contains("+text"));
}

#[tokio::test]
async fn staged_unstaged_and_untracked_are_told_apart() {
    let repository = Repository::new();
    for name in ["both", "gone", "kind", "staged"] {
        repository.write(name, "one\n");
    }
    repository.commit("one");
    repository.write("staged", "two\n");
    repository.write("both", "two\n");
    repository.run(&["add", "staged", "both"]);
    repository.write("both", "three\n");
    fs::remove_file(repository.at("gone")).unwrap();
    fs::remove_file(repository.at("kind")).unwrap();
    std::os::unix::fs::symlink("both", repository.at("kind")).unwrap();
    repository.write("new", "");
    repository.write("dir/new", "");
    let status = repository.status().await;
    let modified = |name: &str| (name.to_owned(), ChangeStatus::Modified);
    assert_eq!(letters(&status.staged), [modified("both"), modified("staged")]);
    let gone = ("gone".to_owned(), ChangeStatus::Deleted);
    let kind = ("kind".to_owned(), ChangeStatus::TypeChanged);
    assert_eq!(letters(&status.unstaged), [modified("both"), gone, kind]);
    assert_eq!(status.untracked, ["dir/", "new"]);
    let unstaged = repository.diff("both", false).await;
    assert!(
        unstaged.contains("-two\n+three\n") && unstaged.starts_with("diff --git a/both b/both\n")
    );
    assert!(repository.diff("both", true).await.contains("-one\n+two\n"));
    assert_eq!(repository.diff("new", false).await, "");
    assert_eq!(repository.diff("nothing there", false).await, "");
    assert!(repository.diff("", false).await.contains("gone"));
}

#[tokio::test]
async fn a_rename_has_its_old_name() {
    let repository = Repository::new();
    repository.write("old name", &"a line\n".repeat(50));
    repository.commit("one");
    repository.run(&["mv", "old name", "new name"]);
    let status = repository.status().await;
    assert_eq!(letters(&status.staged), one("new name", ChangeStatus::Renamed));
    assert_eq!(status.staged[0].from.as_deref(), Some("old name"));
    assert!(status.unstaged.is_empty() && status.untracked.is_empty());
}

#[tokio::test]
async fn a_conflict_is_unmerged() {
    let repository = Repository::new();
    repository.write("f", "one\n");
    repository.commit("one");
    repository.run(&["switch", "-q", "-c", "other"]);
    repository.write("f", "other\n");
    repository.commit("other");
    repository.run(&["switch", "-q", "main"]);
    repository.write("f", "main\n");
    repository.commit("main");
    assert!(!repository.run(&["merge", "-q", "other"]));
    let status = repository.status().await;
    assert_eq!(letters(&status.unstaged), one("f", ChangeStatus::Unmerged));
    assert!(repository.diff("f", false).await.contains("<<<<<<<"));
}

#[tokio::test]
async fn a_detached_head_has_no_branch() {
    let repository = Repository::new();
    repository.write("f", "one");
    repository.commit("one");
    repository.run(&["switch", "-q", "--detach"]);
    assert_eq!(repository.status().await, clean());
}

#[tokio::test]
async fn ahead_and_behind_of_the_upstream_are_counted() {
    let repository = Repository::new();
    repository.write("f", "one");
    repository.commit("one");
    let copy = Repository::without();
    let from = repository.root();
    copy.run(&["clone", "-q", from.to_str().unwrap(), "."]);
    copy.write("g", "ours");
    copy.commit("ours");
    copy.write("g", "ours again");
    copy.commit("ours again");
    repository.write("f", "theirs");
    repository.commit("theirs");
    copy.run(&["fetch", "-q"]);
    let status = copy.status().await;
    assert_eq!((status.ahead, status.behind), (2, 1));
    assert_eq!(status.upstream.as_deref(), Some("origin/main"));
}

#[tokio::test]
async fn odd_names_are_kept() {
    let repository = Repository::new();
    let odd = ["-dash", "a b", "a\nb", "a\tb", "\"q\"", "*", ":(top)x", "é", "a\\b", " ", "->"];
    for name in odd {
        repository.write(name, "one\n");
    }
    fs::write(repository.at(OsStr::from_bytes(b"\xff")), "").unwrap();
    let mut expected: Vec<String> = odd.map(str::to_owned).to_vec();
    expected.push("\u{FFFD}".to_owned());
    expected.sort();
    let mut untracked = repository.status().await.untracked;
    untracked.sort();
    assert_eq!(untracked, expected);
    repository.commit("one");
    repository.write("ab", "not asked for");
    for name in odd {
        repository.write(name, "two\n");
    }
    for name in odd {
        let patch = repository.diff(name, false).await;
        assert_eq!(patch.matches("diff --git").count(), 1, "{name:?}: {patch}");
    }
    assert!(repository.diff("é", false).await.contains("a/é"));
}

#[tokio::test]
async fn a_project_in_a_part_of_a_work_tree_gets_the_status_of_that_part() {
    let repository = Repository::new();
    repository.write("f", "one\n");
    repository.write("part/deep/f", "one\n");
    repository.commit("one");
    repository.write("f", "two\n");
    repository.write("part/deep/f", "two\n");
    repository.write("part/new", "");
    repository.write("new", "");
    let part = repository.at("part");
    let status = repository.git.status(PROJECT, &part, &repository.runner).await.unwrap();
    assert_eq!(letters(&status.unstaged), one("deep/f", ChangeStatus::Modified));
    assert_eq!(status.untracked, ["new"]);
    let path = RelPath::parse("deep/f").unwrap();
    let patch = repository.git.diff(&part, &path, false, &repository.runner).await.unwrap();
    assert!(patch.starts_with("diff --git a/deep/f b/deep/f\n"), "{patch}");
}

#[tokio::test]
async fn a_submodule_on_another_commit_is_modified() {
    let inner = Repository::new();
    inner.write("f", "one");
    inner.commit("one");
    let repository = Repository::new();
    let url = inner.root();
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    assert!(repository.run(&[&add[..], &[url.to_str().unwrap(), "sub"]].concat()));
    repository.commit("with a submodule");
    assert_eq!(repository.status().await.unstaged, []);
    fs::write(repository.at("sub/f"), "two").unwrap();
    repository.run_in(&repository.at("sub"), &["commit", "-q", "-a", "-m", "two"]);
    let status = repository.status().await;
    assert_eq!(letters(&status.unstaged), one("sub", ChangeStatus::Modified));
    assert!(repository.diff("sub", false).await.contains("+Subproject commit"));
}

#[tokio::test]
async fn a_diff_replaces_bytes_that_are_not_utf8() {
    let repository = Repository::new();
    repository.write("f", "one\n");
    repository.commit("one");
    fs::write(repository.at("f"), b"caf\xe9\n").unwrap();
    assert!(repository.diff("f", false).await.contains("+caf\u{FFFD}\n"));
}

#[tokio::test]
async fn the_users_own_settings_of_diffs_have_no_effect() {
    let repository = Repository::new();
    for (name, value) in [
        ("color.ui", "always"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("status.showUntrackedFiles", "no"),
        ("status.renames", "false"),
        ("core.quotePath", "true"),
        ("diff.external", "false"),
    ] {
        repository.run(&["config", "--global", name, value]);
    }
    repository.write("f", "one\n");
    repository.commit("one");
    repository.write("f", "two\n");
    repository.write("new", "");
    let patch = repository.diff("f", false).await;
    assert!(
        patch.starts_with("diff --git a/f b/f\n") && patch.contains("\n-one\n+two\n"),
        "{patch}"
    );
    assert_eq!(repository.status().await.untracked, ["new"]);
}

#[tokio::test]
async fn a_status_takes_no_lock_and_leaves_the_index_alone() {
    let repository = Repository::new();
    repository.write("f", "one\n");
    repository.commit("one");
    // The content is the same and the time is another: a plain status would update the index.
    let later = std::time::SystemTime::now() + Duration::from_secs(5);
    fs::File::options().write(true).open(repository.at("f")).unwrap().set_modified(later).unwrap();
    let index = fs::read(repository.at(".git/index")).unwrap();
    fs::write(repository.at(".git/index.lock"), "").unwrap();
    assert_eq!(repository.status().await.unstaged, []);
    assert_eq!(fs::read(repository.at(".git/index")).unwrap(), index);
}

#[tokio::test]
async fn another_owner_of_the_repository_is_no_obstacle() {
    if !crate::tests::is_root() {
        return;
    }
    let repository = Repository::new();
    repository.write("f", "one");
    for path in [repository.root(), repository.at(".git")] {
        std::os::unix::fs::chown(path, Some(4321), Some(4321)).unwrap();
    }
    assert!(!repository.run(&["status"]));
    assert_eq!(repository.status().await.untracked, ["f"]);
}

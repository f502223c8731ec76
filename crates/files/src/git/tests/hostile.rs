//! Repositories whose configuration names programs: none of them is run.

use std::os::unix::fs::PermissionsExt;

use super::*;

fn trace(repository: &Repository) -> (String, PathBuf) {
    let trace = repository.base.path().join("trace");
    let program = repository.base.path().join("leaves-a-trace");
    fs::write(&program, format!("#!/bin/sh\ntouch '{}'\ncat\n", trace.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (format!("sh '{}'", program.display()), trace)
}

/// Commits a file with the attributes and changes it, so that git has to read it.
fn touched(repository: &Repository) {
    repository.write("f", "one\n");
    repository.write(".gitattributes", "f filter=evil diff=evil\n");
    repository.commit("one");
    repository.write("f", "two\n");
}

#[tokio::test]
async fn no_program_named_by_a_repository_is_executed() {
    let repository = Repository::new();
    let (program, trace) = trace(&repository);
    touched(&repository);
    for name in [
        "core.fsmonitor",
        "core.pager",
        "core.sshCommand",
        "core.editor",
        "diff.external",
        "diff.evil.command",
        "diff.evil.textconv",
        "filter.evil.clean",
        "filter.evil.smudge",
        "filter.evil.process",
        "pager.status",
        "pager.diff",
        "credential.helper",
    ] {
        assert!(repository.run(&["config", name, &program]), "{name}");
    }
    repository.run(&["config", "filter.evil.required", "true"]);
    for hook in ["post-index-change", "fsmonitor-watchman", "pre-commit"] {
        let hook = repository.at(".git/hooks").join(hook);
        fs::copy(repository.base.path().join("leaves-a-trace"), hook).unwrap();
    }
    assert_eq!(repository.status().await.unstaged.len(), 1);
    assert!(repository.diff("f", false).await.contains("+two"));
    assert_eq!(repository.diff("f", true).await, "");
    assert!(!trace.exists());
    // Without the options, git does run the programs: the trap works.
    repository.run(&["status"]);
    assert!(trace.exists());
}

#[tokio::test]
async fn a_filter_of_the_users_own_is_used() {
    let repository = Repository::new();
    let (program, trace) = trace(&repository);
    touched(&repository);
    repository.run(&["config", "--global", "filter.evil.clean", &program]);
    repository.status().await;
    assert!(trace.exists());
}

#[tokio::test]
async fn a_filter_that_the_repository_puts_over_the_users_is_not_used() {
    let repository = Repository::new();
    let (program, trace) = trace(&repository);
    touched(&repository);
    repository.run(&["config", "--global", "filter.evil.clean", "cat"]);
    repository.run(&["config", "filter.evil.clean", &program]);
    assert_eq!(repository.status().await.unstaged.len(), 1);
    assert!(!trace.exists());
}

#[tokio::test]
async fn no_program_named_by_a_submodule_is_executed() {
    let inner = Repository::new();
    touched(&inner);
    inner.commit("two");
    let repository = Repository::new();
    let (program, trace) = trace(&repository);
    let url = inner.root();
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    assert!(repository.run(&[&add[..], &[url.to_str().unwrap(), "sub"]].concat()));
    repository.commit("with a submodule");
    let sub = repository.at("sub");
    repository.run_in(&sub, &["config", "filter.evil.clean", &program]);
    // The content has the same length, so that git has to read it.
    fs::write(sub.join("f"), "six\n").unwrap();
    let status = repository.status().await;
    assert_eq!(status.unstaged.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["sub"]);
    assert!(repository.diff("sub", false).await.contains("-dirty"));
    repository.diff("", false).await;
    assert!(!trace.exists());
    repository.run(&["status"]);
    assert!(trace.exists());
}

/// A repository with a submodule at `sub`.
fn with_submodule(inner: &Repository) -> Repository {
    let repository = Repository::new();
    let url = inner.root();
    let add = ["-c", "protocol.file.allow=always", "submodule", "add", "-q"];
    assert!(repository.run(&[&add[..], &[url.to_str().unwrap(), "sub"]].concat()));
    repository.commit("with a submodule");
    repository
}

#[tokio::test]
async fn what_changes_inside_submodules_is_told_as_git_tells_it() {
    let innermost = Repository::new();
    innermost.write("f", "one\n");
    innermost.commit("one");
    let repository = with_submodule(&with_submodule(&innermost));
    let update = ["-c", "protocol.file.allow=always", "submodule", "update", "-q", "--init"];
    assert!(repository.run(&[&update[..], &["--recursive"]].concat()));
    let (program, trace) = trace(&repository);
    let nested = repository.at("sub/sub");
    repository.run_in(&nested, &["config", "filter.evil.clean", &program]);
    fs::write(nested.join(".gitattributes"), "f filter=evil\n").unwrap();
    assert_eq!(repository.status().await.unstaged.len(), 1, "a file that git does not know");
    fs::write(nested.join("f"), "two\n").unwrap();
    let status = repository.status().await;
    assert_eq!(status.unstaged.iter().map(|change| &*change.path).collect::<Vec<_>>(), ["sub"]);
    assert!(!trace.exists(), "not even a filter of the innermost one is run");
}

#[tokio::test]
async fn a_submodule_that_git_cannot_read_hides_no_other_change() {
    let inner = Repository::new();
    inner.write("f", "one\n");
    inner.commit("one");
    let repository = with_submodule(&inner);
    repository.write("g", "new\n");
    fs::remove_dir_all(repository.at(".git/modules/sub")).unwrap();
    assert_eq!(repository.status().await.untracked, ["g"]);
    fs::remove_dir_all(repository.at("sub")).unwrap();
    let status = repository.status().await;
    assert_eq!((status.untracked.len(), status.unstaged.len()), (1, 1));
}

#[tokio::test]
async fn a_work_tree_somewhere_else_is_refused() {
    let repository = Repository::new();
    repository.run(&["config", "core.worktree", "/etc"]);
    let refused = repository.git.status(PROJECT, &repository.root(), &repository.runner).await;
    assert!(matches!(refused, Err(GitError::Elsewhere(_) | GitError::Failed(_))), "{refused:?}");
    let path = RelPath::parse("passwd").unwrap();
    let refused = repository.git.diff(&repository.root(), &path, false, &repository.runner).await;
    assert!(refused.is_err());
}

#[tokio::test]
async fn a_path_through_a_link_shows_nothing_of_what_is_behind_it() {
    let repository = Repository::new();
    repository.write("f", "one\n");
    std::os::unix::fs::symlink("/etc", repository.at("etc")).unwrap();
    repository.commit("one");
    let path = RelPath::parse("etc/passwd").unwrap();
    let diff = repository.git.diff(&repository.root(), &path, false, &repository.runner).await;
    assert!(diff.map_or(true, |patch| patch.is_empty()));
}

#[tokio::test]
async fn a_file_too_large_to_be_held_is_only_said_to_differ_whatever_the_repository_wants() {
    let repository = Repository::new();
    repository.run(&["config", "core.bigFileThreshold", "100g"]);
    let line = "a line of text\n";
    repository.write("f", &line.repeat((17 << 20) / line.len()));
    repository.commit("one");
    repository.write("f", &"another line\n".repeat((17 << 20) / line.len()));
    let diff = repository.diff("f", false).await;
    assert!(diff.contains("Binary files a/f and b/f differ"), "{diff:.200}");
    assert_eq!(repository.status().await.unstaged.len(), 1);
}

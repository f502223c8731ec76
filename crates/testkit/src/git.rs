//! Git as a person runs it, without this machine's configuration.

use std::path::Path;
use std::process::Command;

/// Runs git in a directory. It sees no configuration but the repository's, and no hook of one that
/// runs the tests: names, branches, signatures and line endings are as a test says.
#[track_caller]
pub fn git(dir: &Path, args: &[&str]) {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut git = Command::new("git");
    git.env_clear().env("PATH", path).env("HOME", dir).current_dir(dir);
    git.envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null")]);
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "t").env(format!("GIT_{who}_EMAIL"), "t@example.org");
    }
    let done = git.args(args).output().expect("git runs");
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

//! Git with real repositories, in directories and with configurations of their own; and with a git
//! that hangs, floods, fails or is missing.

mod faults;
mod hostile;
mod live;
mod recorded;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use tempfile::TempDir;

use super::*;

/// The project of all these statuses.
const PROJECT: ProjectId = ProjectId::from_random(1);

/// The status of a work tree without changes, on no branch.
fn clean() -> GitStatus {
    GitStatus { is_repo: true, ..GitStatus::no_repository(PROJECT) }
}

/// A directory with a home of its own and a repository in it.
struct Repository {
    base: TempDir,
    git: Git,
    runner: Runner,
}

impl Repository {
    fn new() -> Self {
        let repository = Self::without();
        repository.run(&["init", "-q", "-b", "main"]);
        repository
    }

    /// A directory with a home but without a repository.
    fn without() -> Self {
        let base = TempDir::new().unwrap();
        fs::create_dir_all(base.path().join("home")).unwrap();
        fs::create_dir_all(base.path().join("project")).unwrap();
        let path = std::env::var_os("PATH").unwrap();
        let mut env = vec![("PATH".into(), path), ("HOME".into(), base.path().join("home").into())];
        env.push(("GIT_CONFIG_NOSYSTEM".into(), "1".into()));
        for who in ["AUTHOR", "COMMITTER"] {
            env.push((format!("GIT_{who}_NAME").into(), "A".into()));
            env.push((format!("GIT_{who}_EMAIL").into(), "a@example.org".into()));
        }
        let runner = Runner { command: vec!["git".into()], env, as_user: None };
        Self { base, git: Git::default(), runner }
    }

    fn root(&self) -> PathBuf {
        self.base.path().join("project")
    }

    fn at(&self, name: impl AsRef<OsStr>) -> PathBuf {
        self.root().join(name.as_ref())
    }

    fn write(&self, name: impl AsRef<OsStr>, content: &str) {
        let path = self.at(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Runs git as a person would.
    fn run(&self, args: &[&str]) -> bool {
        self.run_in(&self.root(), args)
    }

    fn run_in(&self, dir: &Path, args: &[&str]) -> bool {
        let mut git = Command::new("git");
        git.args(args).current_dir(dir).env_clear().envs(self.runner.env.iter().cloned());
        git.output().unwrap().status.success()
    }

    fn commit(&self, message: &str) {
        assert!(self.run(&["add", "-A"]));
        assert!(self.run(&["commit", "-q", "-m", message]));
    }

    async fn status(&self) -> GitStatus {
        let status = self.git.status(PROJECT, &self.root(), &self.runner).await.unwrap();
        assert!(status.is_repo);
        status
    }

    async fn diff(&self, path: &str, staged: bool) -> String {
        let path = RelPath::parse(path).unwrap();
        self.git.diff(&self.root(), &path, staged, &self.runner).await.unwrap()
    }

    /// A runner with a script of this text in place of git.
    fn fake(&self, text: &str) -> Runner {
        let program = self.base.path().join("fake-git");
        fs::write(&program, format!("{text}\n")).unwrap();
        // The script is not executed directly: a process that is just starting may still have it
        // open for writing.
        Runner { command: vec!["sh".into(), program.into()], ..self.runner.clone() }
    }
}

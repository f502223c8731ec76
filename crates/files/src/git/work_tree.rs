//! The work tree that a project is in.

use std::{
    ffi::OsString,
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
};

use super::{
    Git, GitError, Runner,
    disarm::{FilterOverrides, ask_for_filters},
};

#[derive(Debug)]
pub(super) struct WorkTree {
    /// The project's directory, without links.
    pub(super) root: PathBuf,
    /// The work tree's directory.
    pub(super) top: PathBuf,
    /// The path from `top` to `root` with a slash at its end, or empty.
    prefix: Vec<u8>,
}

impl WorkTree {
    /// Asks git for the work tree. `None` if the directory is in no repository, or in a bare one.
    pub(super) async fn find(
        git: &Git,
        root: &Path,
        runner: &Runner,
    ) -> Result<Option<Self>, GitError> {
        let real = match runner.as_user {
            None => tokio::fs::canonicalize(root).await.ok(),
            Some(_) => None,
        };
        // This process may lack the right to resolve the path; then git gets the path as it is.
        let root = real.unwrap_or_else(|| root.to_owned());
        let args = ["rev-parse", "--show-toplevel"].map(OsString::from);
        let output = git.run(runner, &root, &args).await?;
        let none = ["not a git repository", "must be run in a work tree"];
        if none.iter().any(|complaint| output.complains(complaint)) {
            return Ok(None);
        }
        let mut top = output.succeeded()?;
        top.pop_if(|byte| *byte == b'\n');
        Self::new(root, PathBuf::from(OsString::from_vec(top))).map(Some)
    }

    pub(super) fn new(root: PathBuf, top: PathBuf) -> Result<Self, GitError> {
        let Ok(part) = root.strip_prefix(&top) else { return Err(GitError::Elsewhere(top)) };
        let mut prefix = part.as_os_str().as_bytes().to_vec();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        Ok(Self { root, top, prefix })
    }

    /// The prefix that paths in the work tree have and paths in the project lack.
    pub(super) fn prefix(&self) -> &[u8] {
        &self.prefix
    }

    /// Finds the filters of the repository and its submodules, and the arguments that switch them off.
    pub(super) async fn overrides(
        &self,
        git: &Git,
        runner: &Runner,
    ) -> Result<FilterOverrides, GitError> {
        let answer = git.run(runner, &self.root, &ask_for_filters()).await?.succeeded()?;
        let overrides = FilterOverrides::read(&answer, !self.prefix.is_empty())?;
        if !has_submodules(git, runner, &self.top).await? {
            return Ok(overrides);
        }
        match with_submodules(git, runner, &self.root, overrides.clone()).await {
            Ok(Some(all)) => Ok(all.looking_into()),
            // Not all submodules are known, so git must not look into any.
            Ok(None) | Err(GitError::Failed(_) | GitError::Filter(_)) => Ok(overrides),
            Err(error) => Err(error),
        }
    }
}

/// The most submodules that git looks into.
const MAX_SUBMODULES: usize = 32;

/// Whether a work tree has submodules. Git's answer is one line at most, unlike a listing of the whole index.
async fn has_submodules(git: &Git, runner: &Runner, top: &Path) -> Result<bool, GitError> {
    let args = ["ls-files", "-z", "--", ".gitmodules"].map(OsString::from);
    Ok(!git.run(runner, top, &args).await?.succeeded()?.is_empty())
}

/// Adds the submodules below a directory, and those in them; `None` if there are too many.
async fn with_submodules(
    git: &Git,
    runner: &Runner,
    root: &Path,
    mut overrides: FilterOverrides,
) -> Result<Option<FilterOverrides>, GitError> {
    let mut left = vec![root.to_owned()];
    while let Some(dir) = left.pop() {
        for path in git.submodules(runner, &dir, MAX_SUBMODULES + 1).await? {
            let dir = dir.join(OsString::from_vec(path));
            let answer = git.run(runner, &dir, &ask_for_filters()).await?;
            if answer.complains("cannot change to") {
                continue;
            }
            overrides.add_submodule(dir.clone(), &answer.succeeded()?)?;
            if overrides.submodules() > MAX_SUBMODULES {
                return Ok(None);
            }
            if has_submodules(git, runner, &dir).await? {
                left.push(dir);
            }
        }
    }
    Ok(Some(overrides))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(root: &str, top: &str) -> Result<WorkTree, GitError> {
        WorkTree::new(root.into(), top.into())
    }

    #[test]
    fn a_project_may_be_a_work_tree_or_a_part_of_one_and_nothing_else() {
        assert_eq!(place("/a/b", "/a/b").unwrap().prefix(), b"");
        assert_eq!(place("/a/b/c", "/a").unwrap().prefix(), b"b/c/");
        assert!(matches!(place("/a/b", "/a/bc"), Err(GitError::Elsewhere(_))));
        assert!(matches!(place("/a/b", "/a/b/c"), Err(GitError::Elsewhere(_))));
    }
}

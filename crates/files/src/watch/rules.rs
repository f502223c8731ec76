//! What git ignores, and where its own files are.

use std::{
    fs,
    path::{Path, PathBuf},
};

use ignore::{IncrementalIgnore, WalkBuilder};

/// The files in git's own directory whose change is one of the repository.
const TELLING: [&str; 7] = [
    "HEAD",
    "index",
    "packed-refs",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    // Written by every commit, also by one of nothing.
    "COMMIT_EDITMSG",
];
/// The longest file that says where git's directory is.
const POINTER_MAX: u64 = 8 << 10;

/// Walks a directory and what is in it, as far as git does not ignore it: by `.gitignore` files,
/// also those above and also without a repository, by the repository's excludes and the user's.
/// Links are not followed.
pub(super) fn walk(dir: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(dir);
    walk.hidden(false).ignore(false).require_git(false).follow_links(false);
    walk.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
    walk
}

/// The same rules for single paths below a root.
pub(super) struct Rules(Option<IncrementalIgnore>);

impl Rules {
    pub(super) fn of(root: &Path) -> Self {
        Self(walk(root).build_matchers().pop())
    }

    /// Whether git ignores this path in a directory that it does not ignore.
    pub(super) fn ignore(&mut self, below_root: &Path, is_dir: bool) -> bool {
        self.0.as_mut().is_some_and(|rules| rules.matched(below_root, is_dir).is_ignore())
    }
}

/// The directory of git's own files, of the repository that a root is in.
pub(super) fn git_dir(root: &Path) -> Option<PathBuf> {
    let (dir, git) =
        root.ancestors().map(|dir| (dir, dir.join(".git"))).find(|(_, git)| git.exists())?;
    if git.is_dir() {
        return Some(git);
    }
    // Of a linked work tree or a submodule, a file that says where.
    let small = git.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= POINTER_MAX);
    let pointer = small.then(|| fs::read_to_string(&git).ok())??;
    let said = dir.join(pointer.strip_prefix("gitdir:")?.trim());
    said.is_dir().then_some(said)
}

/// Whether a path in git's own directory is one whose change matters.
pub(super) fn is_telling(path: &Path) -> bool {
    path.file_name().is_some_and(|name| TELLING.iter().any(|telling| name == *telling))
}

/// All of them.
pub(super) fn telling(git_dir: &Path) -> impl Iterator<Item = PathBuf> {
    TELLING.iter().map(|name| git_dir.join(name))
}

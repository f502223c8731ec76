//! The paths that git ignores, and the place of git's own files.
//!
//! A user who can write to a project can write its rules. So the files are read as git reads them,
//! without following links, and only up to a size that a person would write.

use std::{
    collections::BTreeMap,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use ignore::{
    DirEntry, WalkBuilder,
    gitignore::{Gitignore, GitignoreBuilder},
};

use crate::{regular, write::is_temporary};

/// The files in git's own directory whose change means a change of the repository.
const TELLING: [&str; 7] = [
    "HEAD",
    "index",
    "packed-refs",
    "ORIG_HEAD",
    "FETCH_HEAD",
    "MERGE_HEAD",
    // Every commit writes this file, even an empty commit.
    "COMMIT_EDITMSG",
];
/// The longest `.git` file that points to git's directory.
const POINTER_MAX: u64 = 8 << 10;
const RULES: &str = ".gitignore";
/// The longest file of rules that is read, in bytes.
const RULES_MAX: u64 = 64 << 10;
/// The bound on the rules that are held for one tree, in bytes.
const RULES_IN_ALL: u64 = 256 << 10;

/// The paths below a root that git ignores. The rules come from `.gitignore` files below the root,
/// even without a repository; from those above it in its repository; and from the excludes of the
/// repository and the user. Clones share the rules that they have read.
#[derive(Clone)]
pub(super) struct Rules(Arc<Mutex<KnownRules>>);

struct KnownRules {
    root: PathBuf,
    /// The rules from outside the root, the nearest first.
    above: Vec<Gitignore>,
    /// The rules of each directory that were read so far, and their size in bytes.
    below: BTreeMap<PathBuf, (Gitignore, u64)>,
    /// The bytes of rules that may still be read.
    left: u64,
}

impl Rules {
    pub(super) fn of(root: &Path) -> Self {
        let (root, below) = (root.to_owned(), BTreeMap::new());
        let mut known = KnownRules { root, above: Vec::new(), below, left: RULES_IN_ALL };
        known.read_above();
        Self(Arc::new(Mutex::new(known)))
    }

    /// Whether git ignores this path, or it is a temporary file of Warren's. The answer holds only if git does not
    /// ignore the path's directory.
    pub(super) fn ignore(&self, path: &Path, is_dir: bool) -> bool {
        self.lock().ignore(path, is_dir)
    }

    /// Forgets the rules that were read in a directory and below it, so that others may be read within the bound.
    pub(super) fn forget(&self, path: &Path) {
        let known = &mut *self.lock();
        let from = known.below.range(path.to_owned()..).map(|(dir, _)| dir);
        let gone: Vec<PathBuf> = from.take_while(|dir| dir.starts_with(path)).cloned().collect();
        for dir in gone {
            known.left += known.below.remove(&dir).map_or(0, |(_, length)| length);
        }
    }

    /// Walks a directory and everything in it that git does not ignore. Links are not followed.
    pub(super) fn walk(&self, dir: &Path) -> impl Iterator<Item = DirEntry> + use<> {
        let rules = self.clone();
        let mut walk = WalkBuilder::new(dir);
        walk.standard_filters(false).follow_links(false).filter_entry(move |entry| {
            let is_dir = entry.file_type().is_some_and(|kind| kind.is_dir());
            let is_gits = entry.file_name() == ".git";
            entry.depth() == 0 || !(is_gits || rules.ignore(entry.path(), is_dir))
        });
        walk.build().flatten()
    }

    fn lock(&self) -> MutexGuard<'_, KnownRules> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownRules {
    fn ignore(&mut self, path: &Path, is_dir: bool) -> bool {
        if !is_dir && path.file_name().is_some_and(|name| is_temporary(name.as_bytes())) {
            return true;
        }
        let dirs = path.ancestors().skip(1).take_while(|dir| dir.starts_with(&self.root));
        for dir in dirs.map(Path::to_owned).collect::<Vec<_>>() {
            let matched = self.of_dir(dir).matched(path, is_dir);
            if !matched.is_none() {
                return matched.is_ignore();
            }
        }
        let mut above = self.above.iter().map(|rules| rules.matched(path, is_dir));
        above.find(|matched| !matched.is_none()).is_some_and(|matched| matched.is_ignore())
    }

    fn of_dir(&mut self, dir: PathBuf) -> &Gitignore {
        if !self.below.contains_key(&dir) {
            let before = self.left;
            let rules = self.read(&dir, &dir.join(RULES));
            self.below.insert(dir.clone(), (rules, before - self.left));
        }
        &self.below.entry(dir).or_insert_with(|| (Gitignore::empty(), 0)).0
    }

    fn read_above(&mut self) {
        let root = self.root.clone();
        let repository = Repository::of(&root);
        let top = repository.as_ref().map_or(&*root, |repository| &repository.top);
        for dir in root.ancestors().skip(1).take_while(|dir| dir.starts_with(top)) {
            let rules = self.read(dir, &dir.join(RULES));
            self.above.push(rules);
        }
        if let Some(repository) = &repository {
            let rules = self.read(top, &repository.common().join("info/exclude"));
            self.above.push(rules);
        }
        // The user's own file is trusted, so it has no bound.
        self.above.push(GitignoreBuilder::new(top).build_global().0);
    }

    /// Reads the rules in a file, for a directory and below. An unreadable file has no rules.
    fn read(&mut self, dir: &Path, file: &Path) -> Gitignore {
        let Some(text) = regular::small(file, RULES_MAX.min(self.left)) else {
            return Gitignore::empty();
        };
        // Invalid bytes make the text longer than its file.
        self.left = self.left.saturating_sub(text.len() as u64);
        let mut rules = GitignoreBuilder::new(dir);
        for line in text.trim_start_matches('\u{feff}').lines() {
            // An invalid rule is skipped, as git does.
            let _nonsense = rules.add_line(None, line);
        }
        rules.build().unwrap_or_else(|_| Gitignore::empty())
    }
}

/// The repository that a root is in.
struct Repository {
    top: PathBuf,
    git_dir: PathBuf,
}

impl Repository {
    fn of(root: &Path) -> Option<Self> {
        let (top, git) =
            root.ancestors().map(|dir| (dir, dir.join(".git"))).find(|(_, git)| git.exists())?;
        let top = top.to_owned();
        if git.is_dir() {
            return Some(Self { top, git_dir: git });
        }
        // A linked work tree and a submodule have a file here that points to the directory.
        let pointer = regular::small(&git, POINTER_MAX)?;
        let git_dir = top.join(pointer.strip_prefix("gitdir:")?.trim());
        git_dir.is_dir().then_some(Self { top, git_dir })
    }

    /// git's directory that all linked work trees share.
    fn common(&self) -> PathBuf {
        let said = regular::small(&self.git_dir.join("commondir"), POINTER_MAX);
        said.map_or_else(|| self.git_dir.clone(), |dir| self.git_dir.join(dir.trim()))
    }
}

/// The directory of git's own files, in the repository of a root.
pub(super) fn git_dir(root: &Path) -> Option<PathBuf> {
    Repository::of(root).map(|repository| repository.git_dir)
}

/// Whether a change of this path in git's own directory is reported.
pub(super) fn is_telling(path: &Path) -> bool {
    path.file_name().is_some_and(|name| TELLING.iter().any(|telling| name == *telling))
}

/// The paths in git's own directory whose changes are reported.
pub(super) fn telling(git_dir: &Path) -> impl Iterator<Item = PathBuf> {
    TELLING.iter().map(|name| git_dir.join(name))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::{Project, promptly};

    /// The names of all entries that are not ignored, in order.
    fn walked(project: &Project) -> Vec<String> {
        let root = project.root.path().to_owned();
        let mut names: Vec<_> = promptly(move || {
            let below = |entry: DirEntry| entry.path().strip_prefix(&root).unwrap().to_owned();
            Rules::of(&root).walk(&root).map(below).collect::<Vec<_>>()
        });
        names.retain(|name| !name.as_os_str().is_empty() && !name.ends_with(RULES));
        names.sort();
        names.iter().map(|name| name.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_nearest_rules_come_first_and_those_above_the_root_count_in_a_repository() {
        let project = Project::new();
        fs::create_dir_all(project.outside().parent().unwrap().join(".git/info")).unwrap();
        let top = project.outside().parent().unwrap().to_owned();
        fs::write(top.join(RULES), "*.log\n/root/only\n").unwrap();
        fs::write(top.join(".git/info/exclude"), "excluded\n").unwrap();
        project.file("sub/.gitignore", "!keep.log\n/own\n");
        for name in ["a.log", "only", "excluded", "sub/keep.log", "sub/own", "sub/only", "own"] {
            project.file(name, "");
        }
        assert_eq!(walked(&project), ["own", "sub", "sub/keep.log", "sub/only"]);
    }

    #[test]
    fn rules_above_the_root_do_not_count_without_a_repository() {
        let project = Project::new();
        fs::write(project.outside().parent().unwrap().join(RULES), "*\n").unwrap();
        project.file("f", "");
        assert_eq!(walked(&project), ["f"]);
    }

    #[test]
    fn rules_that_are_a_link_a_pipe_or_without_an_end_are_none() {
        let project = Project::new();
        for name in ["link", "pipe", "large", "good"] {
            project.file(&format!("{name}/f"), "");
        }
        // Reading this file line by line would fill the memory.
        project.link(&format!("link/{RULES}"), "/dev/zero");
        let pipe = project.at("pipe").join(RULES);
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, pipe, kind, mode, 0).unwrap();
        project.file(&format!("large/{RULES}"), &"f\n".repeat(64 << 10));
        project.file(&format!("good/{RULES}"), "f\n");
        let found = ["good", "large", "large/f", "link", "link/f", "pipe", "pipe/f"];
        assert_eq!(walked(&project), found);
    }

    #[test]
    fn the_rules_of_a_tree_are_read_up_to_a_bound() {
        let project = Project::new();
        let rules = format!("f\n{}", "# nothing\n".repeat(6000));
        for number in 0..8 {
            project.file(&format!("{number}/{RULES}"), &rules);
            project.file(&format!("{number}/f"), "");
        }
        let obeyed = 8 - walked(&project).iter().filter(|name| name.ends_with("/f")).count();
        assert_eq!(obeyed as u64, RULES_IN_ALL / rules.len() as u64);
    }

    #[test]
    fn rules_that_are_not_text_count_by_the_memory_that_they_take() {
        let project = Project::new();
        let names = ["a", "b", "c"];
        for name in names {
            project.file(&format!("{name}/f"), "");
            let mut rules = b"f\n".to_vec();
            rules.resize(RULES_MAX as usize, 0xff);
            fs::write(project.at(name).join(RULES), rules).unwrap();
        }
        let rules = Rules::of(project.root.path());
        let ignored = || names.map(|name| rules.ignore(&project.at(name).join("f"), false));
        assert_eq!(ignored(), [true, true, false]);
        names.iter().for_each(|name| rules.forget(&project.at(name)));
        assert_eq!(ignored(), [true, true, false], "the bound is neither used up nor gone");
    }

    #[test]
    fn rules_are_read_anew_where_another_directory_has_come() {
        let project = Project::new();
        project.file("a/.gitignore", "f\n");
        let rules = Rules::of(project.root.path());
        assert!(rules.ignore(&project.at("a/f"), false));
        fs::remove_file(project.at("a/.gitignore")).unwrap();
        assert!(rules.ignore(&project.at("a/f"), false));
        rules.forget(&project.at("a"));
        assert!(!rules.ignore(&project.at("a/f"), false));
    }

    #[test]
    fn a_directory_that_comes_and_goes_does_not_use_up_the_bound() {
        let project = Project::new();
        project.file("a/.gitignore", &format!("f\n{}", "# nothing\n".repeat(6000)));
        let rules = Rules::of(project.root.path());
        for _ in 0..10 {
            assert!(rules.ignore(&project.at("a/f"), false));
            rules.forget(&project.at("a"));
        }
    }
}

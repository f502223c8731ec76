//! The watched directories.

use std::{
    collections::BTreeSet,
    io,
    path::{Path, PathBuf},
};

use notify::{
    ErrorKind, Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
    event::{CreateKind, ModifyKind, RemoveKind},
};

use super::{
    rules::{self, Rules},
    total::WatchQuota,
};

/// The reason why a tree cannot be watched, or has to be watched afresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    /// There are too many directories, or the kernel gives no more watches.
    Full,
    /// The root is gone.
    Gone,
    /// The ignored paths have changed, or the repository has appeared or disappeared: the watch
    /// must begin again.
    Changed,
}

/// A tree whose directories are watched, except for those that git ignores.
pub(super) struct Tree {
    root: PathBuf,
    git_dir: Option<PathBuf>,
    rules: Rules,
    watcher: RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    taken: WatchQuota,
    most: usize,
    stop: Stop,
}

/// Whether the owner has dropped the watch.
pub(super) type Stop = Box<dyn Fn() -> bool + Send>;

impl Tree {
    pub(super) fn watch(
        root: &Path,
        most: usize,
        taken: WatchQuota,
        stop: Stop,
        handler: impl EventHandler,
    ) -> Result<Self, Trouble> {
        let watcher = notify::recommended_watcher(handler).map_err(|error| {
            tracing::debug!(%error, "the kernel gives nothing to watch with");
            Trouble::Full
        })?;
        let (git_dir, rules) = (rules::git_dir(root), Rules::of(root));
        let (root, watched) = (root.to_owned(), BTreeSet::new());
        let mut tree = Self { root, git_dir, rules, watcher, watched, taken, most, stop };
        tree.add_all()?;
        Ok(tree)
    }

    fn add_all(&mut self) -> Result<(), Trouble> {
        self.add_below(&self.root.clone())?;
        if let Some(git_dir) = self.git_dir.clone() {
            self.add(git_dir)?;
        }
        if self.watched.contains(&self.root) { Ok(()) } else { Err(Trouble::Gone) }
    }

    /// Handles an event of the kernel. Returns whether it is a change to report.
    pub(super) fn take_in(&mut self, event: &Event) -> Result<bool, Trouble> {
        let mut matters = false;
        for path in &event.paths {
            matters |= self.take_in_path(path, event.kind)?;
        }
        Ok(matters)
    }

    fn take_in_path(&mut self, path: &Path, kind: EventKind) -> Result<bool, Trouble> {
        if self.git_dir.as_deref().is_some_and(|dir| path.parent() == Some(dir)) {
            return Ok(rules::is_telling(path));
        }
        let Ok(below) = path.strip_prefix(&self.root) else { return Ok(false) };
        if below.as_os_str().is_empty() {
            return if self.root.is_dir() { Ok(true) } else { Err(Trouble::Gone) };
        }
        let names = is_about_names(kind);
        if below.components().any(|name| name.as_os_str() == ".git") {
            return if names && below.file_name().is_some_and(|name| name == ".git") {
                Err(Trouble::Changed)
            } else {
                Ok(false)
            };
        }
        if below.file_name().is_some_and(|name| name == ".gitignore") {
            return Err(Trouble::Changed);
        }
        self.take_in_entry(path, names)
    }

    fn take_in_entry(&mut self, path: &Path, names: bool) -> Result<bool, Trouble> {
        let meta = path.symlink_metadata().ok();
        let is_dir = meta.as_ref().is_some_and(std::fs::Metadata::is_dir);
        // The event does not say whether a removed entry was a directory.
        let ignored =
            (meta.is_none() && self.rules.ignore(path, true)) || self.rules.ignore(path, is_dir);
        if names && !is_dir {
            self.remove_below(path);
        }
        if names && is_dir && !ignored {
            // A new directory may have the name of an old one. The watch of the old one would not see
            // changes in the new one.
            self.remove_below(path);
            self.add_below(path)?;
        }
        Ok(!ignored)
    }

    /// Watches a directory and those below it. Each is watched before it is read, so that an entry
    /// created meanwhile is either reported or read.
    fn add_below(&mut self, dir: &Path) -> Result<(), Trouble> {
        for entry in self.rules.walk(dir) {
            if (self.stop)() {
                break;
            }
            if entry.file_type().is_some_and(|kind| kind.is_dir()) {
                self.add(entry.into_path())?;
            }
        }
        Ok(())
    }

    fn add(&mut self, dir: PathBuf) -> Result<(), Trouble> {
        if self.watched.contains(&dir) {
            return Ok(());
        }
        if self.watched.len() >= self.most || !self.taken.one() {
            return Err(Trouble::Full);
        }
        match self.watcher.watch(&dir, RecursiveMode::NonRecursive) {
            Ok(()) => {
                self.watched.insert(dir);
                Ok(())
            }
            Err(error) if is_full(&error) => Err(Trouble::Full),
            // The directory is already gone, or may not be read.
            Err(_) => {
                self.taken.give(1);
                Ok(())
            }
        }
    }

    fn remove_below(&mut self, path: &Path) {
        self.rules.forget(path);
        let from = self.watched.range(path.to_owned()..);
        let gone: Vec<PathBuf> = from.take_while(|dir| dir.starts_with(path)).cloned().collect();
        for dir in &gone {
            // Usually the kernel has already removed the watch.
            let _ = self.watcher.unwatch(dir);
            self.watched.remove(dir);
        }
        self.taken.give(gone.len());
    }
}

/// Whether an entry was created, removed or renamed, as opposed to changed in content.
fn is_about_names(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(CreateKind::File) | EventKind::Modify(ModifyKind::Data(_)) => false,
        EventKind::Modify(ModifyKind::Metadata(_)) | EventKind::Access(_) => false,
        EventKind::Remove(RemoveKind::File) => false,
        EventKind::Any | EventKind::Other => true,
        EventKind::Create(_) | EventKind::Remove(_) | EventKind::Modify(_) => true,
    }
}

fn is_full(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::MaxFilesWatch => true,
        ErrorKind::Io(error) => error.kind() == io::ErrorKind::StorageFull,
        _ => false,
    }
}

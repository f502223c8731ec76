//! Copies of entries, with everything in them.

use std::{
    ffi::{CStr, CString},
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, BorrowedFd},
};

use rustix::fs::{
    Dir, FileType, Mode, OFlags, RawMode, Stat, fchmod, fstat, mkdirat, openat, readlinkat,
    symlinkat,
};

use super::{create::new_place, delete::remove};
use crate::{
    budget::{Budget, MAX_COPIED},
    error::{FileError, doing},
    path::RelPath,
    regular::{self, READ},
    root::{Identity, NameInDir, Root, kind, stat},
};

/// The bytes copied between two checks of the clock.
const STEP: u64 = 8 << 20;
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Copies an entry to an unused name; a directory with everything in it. Links are copied as links.
/// Modes are kept, without the bits that run a file as another user.
///
/// # Errors
///
/// [`FileError::NotFound`], [`FileError::Exists`], [`FileError::NotRegular`] for a FIFO, socket or
/// device anywhere in it, [`FileError::IntoItself`], [`FileError::TooManyEntries`],
/// [`FileError::TooDeep`], [`FileError::TooLong`], [`FileError::NoSpace`], and as for every path.
/// A copy that failed is removed again.
pub fn copy(root: &Root, from: &RelPath, to: &RelPath) -> Result<(), FileError> {
    copy_within(root, from, to, Budget::entries(MAX_COPIED))
}

/// [`copy`] with another budget.
pub(super) fn copy_within(
    root: &Root,
    from: &RelPath,
    to: &RelPath,
    budget: Budget,
) -> Result<(), FileError> {
    let source = root.place(from)?;
    let target = new_place(root, to)?;
    let mut copier = Copier { budget, made: None };
    let copied = copier.entry(
        Entry { dir: source.dir(), name: source.name() },
        Entry { dir: target.dir(), name: target.name() },
        0,
    );
    if copied.is_err() {
        copier.undo(&target);
    }
    copied.map_err(|error| from.explain(error))
}

/// A name in an opened directory.
#[derive(Clone, Copy)]
struct Entry<'a> {
    dir: BorrowedFd<'a>,
    name: &'a CStr,
}

/// A copy in progress.
struct Copier {
    budget: Budget,
    /// The entry that was created first; the rest of the copy is inside it.
    made: Option<Identity>,
}

impl Copier {
    fn entry(&mut self, from: Entry<'_>, to: Entry<'_>, depth: usize) -> Result<(), FileError> {
        self.budget.take(depth)?;
        match kind(&stat(from.dir, from.name)?) {
            FileType::RegularFile => self.file(from, to),
            FileType::Symlink => self.link(from, to),
            FileType::Directory => self.directory(from, to, depth),
            _ => Err(FileError::NotRegular),
        }
    }

    fn file(&mut self, from: Entry<'_>, to: Entry<'_>) -> Result<(), FileError> {
        let flags = READ | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let source = openat(from.dir, from.name, flags, Mode::empty()).map_err(COPYING)?;
        let (source, found) = regular::checked(source)?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        let target = openat(to.dir, to.name, flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
        let mut target = File::from(target.map_err(COPYING)?);
        self.created(&fstat(&target).map_err(COPYING)?);
        self.bytes(&source, &mut target)?;
        fchmod(&target, plain_mode(found.st_mode)).map_err(COPYING)
    }

    fn bytes(&self, source: &File, target: &mut File) -> Result<(), FileError> {
        let mut step = || io::copy(&mut source.take(STEP), target);
        while step().map_err(|error| FileError::of_io("copy it", error))? > 0 {
            self.budget.in_time()?;
        }
        Ok(())
    }

    fn link(&mut self, from: Entry<'_>, to: Entry<'_>) -> Result<(), FileError> {
        let text = readlinkat(from.dir, from.name, Vec::new()).map_err(COPYING)?;
        symlinkat(&*text, to.dir, to.name).map_err(COPYING)?;
        self.created(&stat(to.dir, to.name)?);
        Ok(())
    }

    fn directory(&mut self, from: Entry<'_>, to: Entry<'_>, depth: usize) -> Result<(), FileError> {
        let source = openat(from.dir, from.name, DIRECTORY, Mode::empty()).map_err(COPYING)?;
        let found = fstat(&source).map_err(COPYING)?;
        if self.made == Some(Identity::from(&found)) {
            return Err(FileError::IntoItself);
        }
        // Nobody else may enter the copy until it is complete. The original's mode may forbid even
        // the owner to write, so it is set last.
        mkdirat(to.dir, to.name, Mode::RWXU).map_err(COPYING)?;
        let target = openat(to.dir, to.name, DIRECTORY, Mode::empty()).map_err(COPYING)?;
        self.created(&fstat(&target).map_err(COPYING)?);
        let mut source = Dir::new(source).map_err(COPYING)?;
        while let Some(name) = next_name(&mut source)? {
            let from = Entry { dir: source.fd().map_err(COPYING)?, name: &name };
            self.entry(from, Entry { dir: target.as_fd(), name: &name }, depth + 1)?;
        }
        fchmod(&target, plain_mode(found.st_mode)).map_err(COPYING)
    }

    fn created(&mut self, stat: &Stat) {
        self.made.get_or_insert_with(|| Identity::from(stat));
    }

    /// Removes the unfinished copy, unless another process has meanwhile given its name to another entry.
    fn undo(&self, target: &NameInDir) {
        let Some(made) = self.made else { return };
        if target.stat().is_ok_and(|now| Identity::from(&now) == made)
            && let Err(error) = remove(target.dir(), target.name(), &mut Budget::time(), 0)
        {
            tracing::warn!(%error, "what was copied before an error could not be removed");
        }
    }
}

const COPYING: fn(rustix::io::Errno) -> FileError = |errno| FileError::of("copy it", errno);

fn next_name(dir: &mut Dir) -> Result<Option<CString>, FileError> {
    while let Some(entry) = dir.read() {
        let entry = entry.map_err(doing("copy it"))?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(Some(entry.file_name().to_owned()));
        }
    }
    Ok(None)
}

fn plain_mode(mode: RawMode) -> Mode {
    Mode::from_raw_mode(mode & 0o777)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::tests::{Project, names, path};

    #[test]
    fn an_entry_of_others_in_place_of_a_failed_copy_stays() {
        let project = Project::new();
        project.file("copy/f", "ours");
        let place = project.root.place(&path("copy")).unwrap();
        let mut copier = Copier { budget: Budget::time(), made: None };
        copier.created(&place.stat().unwrap());
        fs::rename(project.at("copy"), project.at("moved")).unwrap();
        project.file("copy/f", "theirs");
        copier.undo(&place);
        assert_eq!(project.read("copy/f"), "theirs");
        fs::remove_dir_all(project.at("copy")).unwrap();
        fs::rename(project.at("moved"), project.at("copy")).unwrap();
        copier.undo(&place);
        assert!(names(project.root.path()).is_empty());
    }
}

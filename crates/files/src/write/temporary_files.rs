//! A list of the temporary files on disk. After a kill, the next start reads it to find the
//! leftover files, and removes nothing else.
//!
//! The list is a file of slots, one for each file that is being written. The file is kept open, so
//! that threads with another user's rights can write to it too. It is never synced, since it has to
//! survive only the death of the process, not of the machine.

use std::{
    ffi::{CStr, CString, OsStr},
    fs::{File, OpenOptions},
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::{
            ffi::OsStrExt,
            fs::{FileExt, OpenOptionsExt},
        },
    },
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, fstat, openat, unlinkat};

use crate::root::{Identity, LOOK, kind, path_of, stat};

/// The most files in the list at once. Further files are written without a slot.
const SLOTS: usize = 128;
/// The size of a slot, in bytes: a line, and the path after it.
const SLOT: usize = 4096 + 256;
/// The beginning of the names of temporary files, and the number of digits after it.
const PREFIX: &str = ".warren-";
const DIGITS: usize = 32;

pub(super) fn name(bits: u128) -> String {
    format!("{PREFIX}{bits:032x}")
}

/// Whether a name has the form of Warren's temporary files.
pub(crate) fn is_temporary(name: &[u8]) -> bool {
    let digits = name.strip_prefix(PREFIX.as_bytes());
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    digits.is_some_and(|digits| digits.len() == DIGITS && digits.iter().all(is_digit))
}

/// The list of temporary files.
#[derive(Debug)]
pub struct TemporaryFiles {
    list: File,
    slots: Mutex<[bool; SLOTS]>,
}

/// A file that an earlier process left behind, and its slot in the list.
#[derive(Debug)]
pub struct LeftFile {
    slot: usize,
    record: Record,
}

/// The location of a temporary file that exists or is about to be created.
#[derive(Debug, PartialEq, Eq)]
struct Record {
    name: String,
    /// The identity of its directory, and the path that the directory had.
    dir: Identity,
    path: PathBuf,
}

impl TemporaryFiles {
    /// Opens the list, or creates an empty one, and returns its entries.
    ///
    /// # Errors
    /// The system's error.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<LeftFile>)> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let list = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path)?;
        let left: Vec<_> = (0..SLOTS)
            .filter_map(|slot| Some(LeftFile { slot, record: Record::read(&list, slot)? }))
            .collect();
        let mut slots = [false; SLOTS];
        // The slot of a leftover file is taken until `remove` has looked for the file.
        left.iter().for_each(|left| slots[left.slot] = true);
        Ok((Self { list, slots: Mutex::new(slots) }, left))
    }

    /// Removes the leftover files, and returns the number of those removed. It removes only regular files with a
    /// temporary name, in the same directory in which they were created, and follows no link of that name. It blocks
    /// if a directory is on a file server that does not answer.
    pub fn remove(&self, left: Vec<LeftFile>) -> usize {
        let removed = left.into_iter().filter(|LeftFile { slot, record }| {
            let removed = record.remove();
            self.free(*slot);
            removed.unwrap_or_else(|error| {
                tracing::warn!(path = %record.path.display(), name = record.name, %error,
                    "what was left of a write cannot be removed");
                false
            })
        });
        removed.count()
    }

    /// Adds a file that is about to be created. `None` if there is no slot, or the list cannot be
    /// written.
    pub(super) fn note(self: &Arc<Self>, dir: BorrowedFd<'_>, name: &CStr) -> Option<NotedFile> {
        let record = Record::of(dir, name)?;
        let slot = self.take()?;
        let noted = NotedFile { list: Arc::clone(self), slot };
        let written = self.list.write_all_at(&record.bytes()?, offset(slot));
        written.inspect_err(|error| tracing::warn!(%error, "a write cannot be noted")).ok()?;
        Some(noted)
    }

    fn take(&self) -> Option<usize> {
        let mut slots = self.lock();
        let free = slots.iter().position(|taken| !taken)?;
        slots[free] = true;
        Some(free)
    }

    fn free(&self, slot: usize) {
        // If the entry cannot be cleared, the next start searches for the file in vain.
        if let Err(error) = self.list.write_all_at(&[0], offset(slot)) {
            tracing::warn!(%error, "a write that has ended cannot be struck out");
        }
        self.lock()[slot] = false;
    }

    fn lock(&self) -> MutexGuard<'_, [bool; SLOTS]> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keeps a file on the list until this is dropped.
#[derive(Debug)]
pub(super) struct NotedFile {
    list: Arc<TemporaryFiles>,
    slot: usize,
}

impl Drop for NotedFile {
    fn drop(&mut self) {
        self.list.free(self.slot);
    }
}

impl Record {
    /// The future location of a file; `None` if the system does not report it.
    fn of(dir: BorrowedFd<'_>, name: &CStr) -> Option<Self> {
        let path = PathBuf::from(OsStr::from_bytes(path_of(dir)?.to_bytes()));
        let dir = Identity::from(&fstat(dir).ok()?);
        Some(Self { name: name.to_str().ok()?.to_owned(), dir, path })
    }

    /// The record's form in the list: a line, then the path. `None` if it is too long for a slot.
    fn bytes(&self) -> Option<Vec<u8>> {
        let Self { name, dir: Identity { device, inode }, path } = self;
        let path = path.as_os_str().as_bytes();
        let line = format!("{name} {device} {inode} {}\n", path.len());
        let bytes = [line.as_bytes(), path].concat();
        (bytes.len() <= SLOT).then_some(bytes)
    }

    /// The record in a slot, if it is complete.
    fn read(list: &File, slot: usize) -> Option<Self> {
        let mut bytes = vec![0; SLOT];
        let mut length = 0;
        while let Ok(read @ 1..) = list.read_at(&mut bytes[length..], offset(slot) + length as u64)
        {
            length += read;
        }
        let end = bytes[..length].iter().position(|byte| *byte == b'\n')?;
        let line = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut words = line.split(' ');
        let name = words.next().filter(|name| is_temporary(name.as_bytes()))?.to_owned();
        let mut number = || words.next()?.parse::<u64>().ok();
        let dir = Identity { device: number()?, inode: number()? };
        let path = usize::try_from(number()?).ok()?;
        let path = bytes[..length].get(end + 1..)?.get(..path)?;
        Some(Self { name, dir, path: OsStr::from_bytes(path).into() })
    }

    /// Removes the file, and returns whether there was one.
    fn remove(&self) -> io::Result<bool> {
        let Ok(name) = CString::new(self.name.as_str()) else { return Ok(false) };
        let flags = LOOK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let Ok(dir) = openat(CWD, &self.path, flags, Mode::empty()) else { return Ok(false) };
        if Identity::from(&fstat(&dir)?) != self.dir {
            return Ok(false);
        }
        let Ok(file) = stat(dir.as_fd(), &name) else { return Ok(false) };
        // A file with a second name belongs to somebody else.
        if kind(&file) != FileType::RegularFile || file.st_nlink != 1 {
            return Ok(false);
        }
        unlinkat(&dir, &name, AtFlags::empty())?;
        Ok(true)
    }
}

const fn offset(slot: usize) -> u64 {
    (slot * SLOT) as u64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        root::Root,
        tests::{Project, names, path},
        write,
    };

    fn noting() -> (Project, PathBuf, Arc<TemporaryFiles>) {
        let mut project = Project::new();
        let list = project.outside().with_file_name("list");
        let (temporary_files, left) = TemporaryFiles::open(&list).unwrap();
        assert!(left.is_empty());
        let temporary_files = Arc::new(temporary_files);
        project.root = Root::open(project.root.path()).unwrap().noting(&temporary_files);
        (project, list, temporary_files)
    }

    /// Leaves a file in the list, as a kill during its write would do.
    fn leave(project: &Project, temporary_files: &Arc<TemporaryFiles>, bits: u128) -> String {
        let name = name(bits);
        let dir = File::open(project.root.path()).unwrap();
        let noted = temporary_files.note(dir.as_fd(), &CString::new(name.clone()).unwrap());
        std::mem::forget(noted.unwrap());
        name
    }

    /// The number of files that the next start removes.
    fn removed(list: &Path) -> usize {
        let (temporary_files, left) = TemporaryFiles::open(list).unwrap();
        let removed = temporary_files.remove(left);
        assert!(TemporaryFiles::open(list).unwrap().1.is_empty(), "it is looked for once");
        removed
    }

    #[test]
    fn only_the_leftovers_of_a_killed_server_are_removed() {
        let (project, list, temporary_files) = noting();
        let ours = leave(&project, &temporary_files, 7);
        project.file(&ours, "half a te");
        project.file(&name(8), "looks like ours, and is not on the list");
        project.file("f", "a user's");
        assert_eq!(removed(&list), 1);
        assert_eq!(names(project.root.path()), [name(8), "f".to_owned()]);
        project.assert_elsewhere_untouched();
    }

    #[test]
    fn an_entry_that_is_no_leftover_stays() {
        let (project, list, temporary_files) = noting();
        let [link, dir, hard] = [1, 2, 3].map(|bits| leave(&project, &temporary_files, bits));
        project.link(&link, project.outside().join("f"));
        fs::create_dir(project.at(&dir)).unwrap();
        project.file("f", "text");
        fs::hard_link(project.at("f"), project.at(&hard)).unwrap();
        assert_eq!(removed(&list), 0);
        assert_eq!(names(project.root.path()).len(), 4);

        let (project, list, temporary_files) = noting();
        let name = leave(&project, &temporary_files, 4);
        let root = project.root.path();
        fs::rename(root, project.outside().with_file_name("moved")).unwrap();
        std::os::unix::fs::symlink(project.outside(), root).unwrap();
        fs::write(project.outside().join(&name), "not ours").unwrap();
        assert_eq!(removed(&list), 0);
        fs::remove_file(root).unwrap();
        fs::create_dir(root).unwrap();
        project.file(&name, "in a directory that was made since");
        assert!(project.at(&name).exists());
    }

    #[test]
    fn a_write_that_ends_is_on_the_list_no_more_however_it_ends() {
        let (project, list, _unfinished) = noting();
        for number in 0..2 * SLOTS {
            write::text(&project.root, &path("f"), &number.to_string(), None).unwrap();
            let refused = write::text(&project.root, &path("f"), "x", Some("wrong"));
            assert!(refused.is_err());
        }
        assert!(TemporaryFiles::open(&list).unwrap().1.is_empty());
        assert!(fs::metadata(&list).unwrap().len() <= (SLOT * 2) as u64);
    }

    #[test]
    fn more_than_there_are_slots_are_written_without_a_note() {
        let (project, list, temporary_files) = noting();
        (0..SLOTS).for_each(|bits| drop(leave(&project, &temporary_files, bits as u128)));
        let dir = File::open(project.root.path()).unwrap();
        assert!(temporary_files.note(dir.as_fd(), c".warren-x").is_none());
        write::text(&project.root, &path("f"), "text", None).unwrap();
        assert_eq!(project.read("f"), "text");
        assert_eq!(TemporaryFiles::open(&list).unwrap().1.len(), SLOTS);
        assert!(fs::metadata(&list).unwrap().len() <= (SLOTS * SLOT) as u64);
    }

    #[test]
    fn a_list_that_makes_no_sense_is_no_list() {
        let (_project, list, _unfinished) = noting();
        let lines = [
            "f 1 2 4\n/tmp".to_owned(),
            format!("../{} 1 2 4\n/tmp", name(1)),
            format!("{} 1 2 99999999999\n/tmp", name(1)),
            format!("{} 1 2\n", name(1)),
            format!("{} 1 2 4", name(1)),
            "\n".to_owned(),
            "x".repeat(SLOT),
        ];
        for line in lines {
            fs::write(&list, &line).unwrap();
            assert!(TemporaryFiles::open(&list).unwrap().1.is_empty(), "{line}");
        }
    }
}

//! Whether the files of an open database are still where they were.
//!
//! SQLite goes on writing to a file that was deleted, moved or replaced, and the next start finds another
//! file, or none. The files are never opened here: to close one would give up SQLite's locks on it.

use std::{
    ffi::OsString,
    fs, io,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};

use base::system::{KEEPS_DATABASES, file_id};

/// The endings that SQLite appends to the database's name for the write-ahead log and for its index.
const BESIDE: [&str; 2] = ["-wal", "-shm"];

/// The database and the files beside it, as they were when it was opened.
pub(super) struct Files(Mutex<[File; 3]>);

struct File {
    path: PathBuf,
    /// The file as it was last seen; `None`: it was never there.
    known: Option<Known>,
}

/// The identity of a file, whatever its name, and its length.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Known {
    id: [u64; 2],
    /// In bytes. An open database shrinks only when another program vacuums it.
    len: u64,
}

/// The fault that the files have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wrong {
    /// The write-ahead log or its index is gone, and nothing else is wrong.
    GoneBeside(String),
    /// Anything else, in words.
    Other(String),
}

impl Files {
    pub(super) fn of(database: &Path) -> Self {
        let beside = |suffix: &str| {
            let mut name = OsString::from(database);
            name.push(suffix);
            PathBuf::from(name)
        };
        let [log, index] = BESIDE.map(beside);
        let file = |path: PathBuf| File { known: Known::of(&path).ok(), path };
        Self(Mutex::new([file(database.to_owned()), file(log), file(index)]))
    }

    /// Looks at all files, which takes a few microseconds.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [database, beside @ ..] = &mut *files;
        database.check().map_err(|(words, _)| Wrong::Other(words))?;
        let mut gone = Ok(());
        for file in beside {
            match file.check() {
                Ok(()) => {}
                Err((words, true)) => gone = Err(Wrong::GoneBeside(words)),
                Err((words, false)) => return Err(Wrong::Other(words)),
            }
        }
        gone
    }

    /// Learns the files beside the database after it was opened again. Returns false, and learns nothing, if the
    /// database itself is another file now.
    pub(super) fn renew(&self, database: &Path) -> bool {
        let new = Self::of(database).0.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |one: Option<Known>, other: Option<Known>| {
            one.zip(other).is_some_and(|(one, other)| one.is_same_file(other))
        };
        let is_same = same(files[0].known, new[0].known);
        if is_same {
            *files = new;
        }
        is_same
    }
}

impl File {
    /// Compares the file with what was known of it. An error has words for people, and whether the file is gone.
    fn check(&mut self) -> Result<(), (String, bool)> {
        let shown = self.path.file_name().unwrap_or_default().display();
        let found = match Known::of(&self.path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.known.is_none() => {
                return Ok(());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err((format!("{shown} is gone"), true));
            }
            Err(error) => return Err((format!("{shown} is not to be seen: {error}"), false)),
        };
        match self.known {
            Some(known) if !known.is_same_file(found) => {
                Err((format!("{shown} is another file now"), false))
            }
            Some(known) if found.len < known.len => {
                // Reported once only: then the rest of the file is looked through, and may be sound.
                self.known = Some(found);
                Err((format!("{shown} was cut from {} to {} bytes", known.len, found.len), false))
            }
            _ => {
                self.known = Some(found);
                Ok(())
            }
        }
    }
}

impl Known {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        Ok(Self { id: file_id(&file), len: file.len() })
    }

    fn is_same_file(self, other: Self) -> bool {
        KEEPS_DATABASES || self.id == other.id
    }
}

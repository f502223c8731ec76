//! The reasons for refusing an operation on files. The texts are shown to people.

use std::io;

use rustix::io::Errno;

/// The reason why a path could not be listed, read, written or changed. Nothing was changed, unless
/// the error says so.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The path is absolute, has `..` in it, or goes through a link that leaves the root.
    #[error("path escapes project root")]
    Escapes,
    /// The path is not valid.
    #[error("the path is not valid: {0}")]
    BadPath(&'static str),
    /// The root itself is missing, or is not a directory.
    #[error("the project's directory cannot be opened: {0}")]
    Root(#[source] io::Error),
    /// There is no such entry.
    #[error("no such file or directory")]
    NotFound,
    /// There is no such entry; the name looks like a listed one that is not UTF-8 on disk.
    #[error(
        "no such file or directory (a name that is not UTF-8 is shown with \u{FFFD} in it and \
         cannot be opened by what is shown; rename it in a terminal)"
    )]
    NotSayable,
    /// The parent directory is missing.
    #[error("the directory of that path does not exist")]
    NoParent,
    /// The name is taken.
    #[error("a file or directory with that name already exists")]
    Exists,
    /// The operation needs a directory.
    #[error("not a directory")]
    NotADirectory,
    /// The operation needs a file.
    #[error("that is a directory, not a file")]
    IsADirectory,
    /// The entry is a FIFO, socket or device.
    #[error("not a regular file: FIFOs, sockets and devices are neither read nor copied")]
    NotRegular,
    /// There are more bytes than may be read or written at once.
    #[error("too large: {size} bytes, and at most {limit} are allowed here")]
    TooLarge {
        /// The number of bytes.
        size: u64,
        /// The most bytes that are allowed.
        limit: u64,
    },
    /// A part of an upload begins after the end of the bytes that have arrived.
    #[error(
        "{expected} bytes of the upload are here: send the part that begins at offset {expected}"
    )]
    Gap {
        /// Where the next part has to begin, in bytes.
        expected: u64,
    },
    /// The file contains a NUL.
    #[error("a binary file cannot be opened as text; download it instead")]
    Binary,
    /// The file is not UTF-8.
    #[error("the file is not UTF-8 text; download it instead")]
    NotUtf8,
    /// There are more entries than are listed or copied at once.
    #[error("too many entries: more than {limit}")]
    TooManyEntries {
        /// The most entries that are allowed.
        limit: usize,
    },
    /// Directories are nested too deeply.
    #[error("directories lie more than {limit} deep in each other; take a part of them")]
    TooDeep {
        /// The deepest nesting that is allowed.
        limit: usize,
    },
    /// The operation took too long. A copy is removed again; what was deleted stays deleted.
    #[error("it took too long and was ended; take a part of it")]
    TooLong,
    /// The root cannot be moved, copied, deleted or written to.
    #[error("the project root itself cannot be moved, copied, deleted or written to")]
    IsRoot,
    /// A directory would be moved or copied into itself.
    #[error("a directory cannot be moved or copied into itself")]
    IntoItself,
    /// The file on disk is not the one that the writer has read.
    #[error("the file has changed since it was read")]
    Conflict {
        /// The digest of the file now; `None` if the file is gone.
        current_sha256: Option<String>,
    },
    /// The file belongs to another user, and the file that would replace it cannot be given to that user.
    #[error("the file belongs to another user, and writing it would change its owner")]
    Owner,
    /// The target is on another file system, or one is mounted inside the entry.
    #[error("another file system is mounted there; do this in a terminal")]
    OtherFileSystem,
    /// Too many links in a row, or a link that may not be followed.
    #[error("too many symbolic links, or one that may not be followed")]
    Links,
    /// The disk or a quota is full.
    #[error("no space is left on the disk")]
    NoSpace,
    /// The system's permissions forbid it.
    #[error("permission denied")]
    Denied,
    /// Other processes kept changing the same entries.
    #[error("the files changed all the time meanwhile; try again")]
    Busy,
    /// Any other error of the system.
    #[error("could not {doing}: {source}")]
    Io {
        /// The operation that failed.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}

impl FileError {
    /// The meaning of a system error for the client.
    pub(crate) fn of(doing: &'static str, errno: Errno) -> Self {
        match errno {
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::NOTDIR => Self::NotADirectory,
            Errno::ISDIR => Self::IsADirectory,
            Errno::LOOP => Self::Links,
            Errno::NXIO | Errno::NODEV => Self::NotRegular,
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoSpace,
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied,
            Errno::AGAIN => Self::Busy,
            Errno::NAMETOOLONG => Self::BadPath("it is too long"),
            other => Self::Io { doing, source: other.into() },
        }
    }

    /// The meaning of an error of the standard library for the client.
    pub(crate) fn of_io(doing: &'static str, error: io::Error) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::of(doing, errno),
            None => Self::Io { doing, source: error },
        }
    }
}

/// `FileError::of`, in the form that `map_err` takes.
pub(crate) fn doing(what: &'static str) -> impl FnOnce(Errno) -> FileError {
    move |errno| FileError::of(what, errno)
}

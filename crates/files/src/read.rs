//! Reading: a whole text, or a window of any file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
    time::{Duration, SystemTime},
};

use protocol::workspace::{
    client::FileVersion,
    limits::{CHUNK_MAX, TEXT_FILE_MAX},
};
use rustix::fs::{Stat, fstat};
use sha2::{Digest, Sha256};

use crate::{
    budget::Budget,
    error::{FileError, doing},
    path::RelPath,
    regular,
    root::Root,
};

/// A text file as it was at one reading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The text.
    pub content: String,
    /// The digest of its bytes, in lower-case hexadecimal digits.
    pub sha256: String,
}

/// A window of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// The bytes; fewer than requested at the end of the file, none after it.
    pub data: Vec<u8>,
    /// The offset of the bytes in the file.
    pub offset: u64,
    /// The size of the file in bytes, after the read.
    pub total_size: u64,
    /// Whether the bytes reach the end of the file.
    pub eof: bool,
    /// Which file the bytes are from, and when it was last changed.
    pub version: FileVersion,
    /// The digest of all bytes before them, if it was asked for and the file has that many bytes.
    pub sha256: Option<String>,
}

/// The most tries to read a text while others write it.
const TRIES: usize = 4;
/// A file whose last change is not older than this may change again and keep the same times: times of files are
/// coarse.
const COARSE: Duration = Duration::from_secs(2);

/// Reads a text file of at most 1 MiB.
///
/// # Errors
///
/// [`FileError::TooLarge`], [`FileError::Binary`] (a NUL in it), [`FileError::NotUtf8`],
/// [`FileError::NotRegular`], [`FileError::Busy`] if it changes during each read, and as for every path.
pub fn text(root: &Root, path: &RelPath) -> Result<Text, FileError> {
    let limit = TEXT_FILE_MAX as u64;
    let mut bytes = Vec::new();
    for attempt in 1.. {
        let (file, before) = regular::open(root, path)?;
        within(regular::size(&before), limit)?;
        bytes.clear();
        // The file may grow during the read, so its size alone is no bound.
        let read = (&file).take(limit + 1).read_to_end(&mut bytes).map_err(reading)?;
        within(read as u64, limit)?;
        let after = stat_of(&file)?;
        if times(&before) == times(&after) {
            break;
        }
        // A log may grow during every try. The bytes that it had before are whole, so the last try counts.
        if attempt == TRIES && has_only_grown(&file, &before, &bytes).map_err(reading)? {
            break;
        }
        if attempt == TRIES {
            return Err(FileError::Busy);
        }
    }
    if bytes.contains(&0) {
        return Err(FileError::Binary);
    }
    let sha256 = digest(&bytes);
    let content = String::from_utf8(bytes).map_err(|_| FileError::NotUtf8)?;
    Ok(Text { content, sha256 })
}

/// Reads the window of a file that begins at `offset`: at most `len` bytes, and at most 8 MiB.
/// Only the window is held in memory. `check` asks for the digest of everything before it.
///
/// # Errors
///
/// [`FileError::NotRegular`]; [`FileError::TooLong`] for a digest that takes longer than ten minutes;
/// and as for every path.
pub fn chunk(
    root: &Root,
    path: &RelPath,
    offset: u64,
    len: u64,
    check: bool,
) -> Result<Chunk, FileError> {
    let (mut file, before) = regular::open(root, path)?;
    let data = window(&mut file, offset, len.min(CHUNK_MAX as u64), regular::size(&before));
    let data = data.map_err(reading)?;
    let sha256 = if check { digest_before(&mut file, offset)? } else { None };
    let after = stat_of(&file)?;
    let total_size = regular::size(&after);
    let eof = offset.saturating_add(data.len() as u64) >= total_size;
    let version = version(&before, &after, SystemTime::now());
    Ok(Chunk { data, offset, total_size, eof, version, sha256 })
}

fn stat_of(file: &File) -> Result<Stat, FileError> {
    fstat(file).map_err(doing("look at it"))
}

/// Whether a file that was read while it changed still begins with what was read, and that is not shorter than the file
/// was before. A file that was truncated and rewritten is not, even if it is longer now.
fn has_only_grown(file: &File, before: &Stat, read: &[u8]) -> io::Result<bool> {
    if (read.len() as u64) < regular::size(before) {
        return Ok(false);
    }
    let (mut file, mut again) = (file, Vec::with_capacity(read.len()));
    file.rewind()?;
    file.take(read.len() as u64).read_to_end(&mut again)?;
    Ok(again == read)
}

/// The size of a file, and the times of the last changes of its content and of its status.
fn times(stat: &Stat) -> (i64, [(i64, i64); 2]) {
    let time = |seconds, nanoseconds| (seconds, nanoseconds as i64);
    let changed =
        [time(stat.st_mtime, stat.st_mtime_nsec), time(stat.st_ctime, stat.st_ctime_nsec)];
    (stat.st_size, changed)
}

/// The version of a file, by its status before and after a read.
fn version(before: &Stat, after: &Stat, now: SystemTime) -> FileVersion {
    let (_, changed) = times(after);
    let is_old = |(seconds, _): (i64, i64)| {
        let time = u64::try_from(seconds).map(|s| SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        time.is_ok_and(|time| now.duration_since(time).is_ok_and(|age| age > COARSE))
    };
    FileVersion {
        file: format!("{:x}-{:x}", after.st_dev, after.st_ino),
        changed: changed.map(|(seconds, ns)| format!("{seconds}.{ns:09}")).join("-"),
        settled: times(before) == times(after) && changed.into_iter().all(is_old),
    }
}

/// The digest of the first bytes of a file; `None` if it has fewer.
fn digest_before(file: &mut File, bytes: u64) -> Result<Option<String>, FileError> {
    let (budget, mut hasher) = (Budget::time(), Sha256::new());
    file.rewind().map_err(reading)?;
    let mut left = bytes;
    while left > 0 {
        budget.in_time()?;
        let mut part = (&*file).take(left.min(CHUNK_MAX as u64));
        let read = io::copy(&mut part, &mut hasher);
        match read.map_err(reading)? {
            0 => return Ok(None),
            read => left -= read,
        }
    }
    Ok(Some(format!("{:x}", hasher.finalize())))
}

fn window(file: &mut File, offset: u64, len: u64, size: u64) -> io::Result<Vec<u8>> {
    if offset >= size {
        return Ok(Vec::new());
    }
    let there = len.min(size - offset);
    let mut data = Vec::with_capacity(usize::try_from(there).unwrap_or(0));
    file.seek(SeekFrom::Start(offset))?;
    file.take(there).read_to_end(&mut data)?;
    Ok(data)
}

/// The digest of bytes, in the protocol's form.
pub(crate) fn digest(bytes: &[u8]) -> String {
    format!("{:x}", Sha256::digest(bytes))
}

/// The digest of a whole file. Fails if the file is larger than `limit` bytes.
pub(crate) fn digest_of(file: &mut File, limit: u64) -> Result<String, FileError> {
    let mut hasher = Sha256::new();
    file.rewind().map_err(reading)?;
    let read = io::copy(&mut file.take(limit + 1), &mut hasher).map_err(reading)?;
    within(read, limit)?;
    Ok(format!("{:x}", hasher.finalize()))
}

pub(crate) fn within(size: u64, limit: u64) -> Result<(), FileError> {
    if size > limit { Err(FileError::TooLarge { size, limit }) } else { Ok(()) }
}

fn reading(error: io::Error) -> FileError {
    FileError::of_io("read it", error)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::tests::{Project, path, promptly};

    fn windowed(
        project: &Project,
        path: &RelPath,
        offset: u64,
        len: u64,
    ) -> Result<Chunk, FileError> {
        chunk(&project.root, path, offset, len, false)
    }

    fn read(project: &Project, name: &str) -> Result<Text, FileError> {
        text(&project.root, &path(name))
    }

    #[test]
    fn a_text_comes_with_the_digest_of_its_bytes() {
        let project = Project::new();
        project.file("f", "abc");
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let found = read(&project, "f").unwrap();
        assert_eq!((&*found.content, &*found.sha256), ("abc", expected));
        project.file("empty", "");
        assert_eq!(read(&project, "empty").unwrap().content, "");
    }

    #[test]
    fn a_text_has_a_mebibyte_at_most() {
        let project = Project::new();
        project.file("f", &"x".repeat(TEXT_FILE_MAX));
        assert_eq!(read(&project, "f").unwrap().content.len(), TEXT_FILE_MAX);
        project.file("f", &"x".repeat(TEXT_FILE_MAX + 1));
        let refused = read(&project, "f").unwrap_err().to_string();
        assert_eq!(refused, "too large: 1048577 bytes, and at most 1048576 are allowed here");
    }

    #[test]
    fn binary_and_other_encodings_are_told_apart() {
        let project = Project::new();
        project.file("nul", "a\0b");
        std::fs::write(project.at("latin"), b"caf\xe9").unwrap();
        std::fs::create_dir(project.at("dir")).unwrap();
        assert!(matches!(read(&project, "nul"), Err(FileError::Binary)));
        assert!(matches!(read(&project, "latin"), Err(FileError::NotUtf8)));
        assert!(matches!(read(&project, "dir"), Err(FileError::IsADirectory)));
        assert!(matches!(read(&project, ""), Err(FileError::IsADirectory)));
        assert!(matches!(read(&project, "gone"), Err(FileError::NotFound)));
    }

    #[test]
    fn a_text_that_grows_is_whole_and_one_that_is_written_anew_is_not() {
        let project = Project::new();
        project.file("f", "one\n");
        let before = stat_of(&File::open(project.at("f")).unwrap()).unwrap();
        let is_whole = |read: &[u8], now: &str| {
            project.file("f", now);
            let file = File::open(project.at("f")).unwrap();
            has_only_grown(&file, &before, read).unwrap()
        };
        assert!(is_whole(b"one\n", "one\ntwo\n") && is_whole(b"one\ntw", "one\ntwo\n"));
        assert!(!is_whole(b"one\nwritten", "anew and written"), "half of the old text");
        assert!(!is_whole(b"ane", "anew and written"), "the beginning of the new text");
        assert!(!is_whole(b"one\n", "on"), "it is shorter now");
    }

    #[test]
    fn fifos_sockets_and_devices_are_refused_without_blocking() {
        let project = Project::new();
        let names = project.special();
        promptly(move || {
            for name in names {
                assert!(matches!(read(&project, name), Err(FileError::NotRegular)), "{name}");
                let window = windowed(&project, &path(name), 0, 1);
                assert!(matches!(window, Err(FileError::NotRegular)), "{name}");
            }
        });
    }

    #[test]
    fn a_window_has_eight_mebibytes_at_most() {
        let project = Project::new();
        let size = CHUNK_MAX as u64 + 1;
        std::fs::File::create(project.at("f")).unwrap().set_len(size).unwrap();
        let window = windowed(&project, &path("f"), 0, u64::MAX).unwrap();
        assert_eq!((window.data.len(), window.total_size, window.eof), (CHUNK_MAX, size, false));
        assert!(window.data.capacity() <= CHUNK_MAX + 64);
        let last = windowed(&project, &path("f"), CHUNK_MAX as u64, u64::MAX).unwrap();
        assert_eq!((last.data.len(), last.eof), (1, true));
    }

    #[test]
    fn a_window_lies_anywhere_in_a_file_of_any_size_and_behind_it_there_is_nothing() {
        let project = Project::new();
        let size = 1 << 36;
        std::fs::File::create(project.at("f")).unwrap().set_len(size).unwrap();
        let middle = windowed(&project, &path("f"), size / 2, 3).unwrap();
        assert_eq!((middle.data, middle.offset), (vec![0; 3], size / 2));
        assert_eq!((middle.total_size, middle.eof, middle.sha256), (size, false, None));
        for offset in [size, size + 1, u64::MAX] {
            let behind = windowed(&project, &path("f"), offset, 10).unwrap();
            assert_eq!((behind.data.len(), behind.offset, behind.eof), (0, offset, true));
        }
        let nothing = windowed(&project, &path("f"), 0, 0).unwrap();
        assert_eq!((nothing.data.len(), nothing.eof), (0, false));
    }

    #[test]
    fn the_version_tells_another_file_and_a_change_and_whether_it_is_certain() {
        let project = Project::new();
        project.file("f", "one");
        let version = || windowed(&project, &path("f"), 0, 9).unwrap().version;
        let first = version();
        assert!(!first.settled, "it was written just now");
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        let set = |time| File::open(project.at("f")).unwrap().set_modified(time).unwrap();
        set(long_ago);
        let changed = version();
        assert_eq!(changed.file, first.file);
        assert_ne!(changed.changed, first.changed);
        project.file("new", "two");
        std::fs::rename(project.at("new"), project.at("f")).unwrap();
        assert_ne!(version().file, first.file);
    }

    #[test]
    fn a_version_is_settled_once_its_last_change_is_two_seconds_old() {
        let project = Project::new();
        project.file("f", "one");
        let stat = stat_of(&File::open(project.at("f")).unwrap()).unwrap();
        project.file("f", "grown");
        let grown = stat_of(&File::open(project.at("f")).unwrap()).unwrap();
        let settled = |seconds, before: &Stat| {
            version(before, &grown, SystemTime::now() + Duration::from_secs(seconds)).settled
        };
        assert!(!settled(0, &grown) && settled(10, &grown));
        assert!(!settled(10, &stat), "it has changed during the read");
    }

    #[test]
    fn the_digest_of_what_is_before_a_window_is_told_when_asked_for() {
        let project = Project::new();
        project.file("f", "abc and more");
        let sha256 = |offset| chunk(&project.root, &path("f"), offset, 0, true).unwrap().sha256;
        assert_eq!(sha256(3), Some(digest(b"abc")));
        assert_eq!(sha256(0), Some(digest(b"")));
        assert_eq!(sha256(12), Some(digest(b"abc and more")));
        assert_eq!(sha256(13), None, "it is not that long");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn windows_put_together_are_the_file(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            len in 1u64..50,
        ) {
            let project = Project::new();
            std::fs::write(project.at("f"), &bytes).unwrap();
            let mut together = Vec::new();
            loop {
                let window = windowed(&project, &path("f"), together.len() as u64, len).unwrap();
                prop_assert_eq!(window.total_size, bytes.len() as u64);
                together.extend(window.data);
                if window.eof {
                    break;
                }
            }
            prop_assert_eq!(together, bytes);
        }
    }
}

//! Reading: a whole text, or a window of any file.

use std::{
    fs::File,
    io::{self, Read, Seek, SeekFrom},
};

use protocol::workspace::limits::{CHUNK_MAX, TEXT_FILE_MAX};
use sha2::{Digest, Sha256};

use crate::{error::FileError, path::RelPath, regular, root::Root};

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
    /// The size of the file after the read.
    pub total_size: u64,
    /// Whether the bytes reach the end of the file.
    pub eof: bool,
}

/// Reads a text file of at most 1 MiB.
///
/// # Errors
///
/// [`FileError::TooLarge`], [`FileError::Binary`] (a NUL in it), [`FileError::NotUtf8`],
/// [`FileError::NotRegular`], and as for every path.
pub fn text(root: &Root, path: &RelPath) -> Result<Text, FileError> {
    let (file, stat) = regular::open(root, path)?;
    let limit = TEXT_FILE_MAX as u64;
    within(regular::size(&stat), limit)?;
    let mut bytes = Vec::new();
    // The file may grow during the read, so its size alone is no bound.
    let read = (&file).take(limit + 1).read_to_end(&mut bytes).map_err(reading)?;
    within(read as u64, limit)?;
    if bytes.contains(&0) {
        return Err(FileError::Binary);
    }
    let sha256 = digest(&bytes);
    let content = String::from_utf8(bytes).map_err(|_| FileError::NotUtf8)?;
    Ok(Text { content, sha256 })
}

/// Reads the window of a file that begins at `offset`: at most `len` bytes, and at most 8 MiB.
/// Only the window is held in memory.
///
/// # Errors
///
/// [`FileError::NotRegular`], and as for every path.
pub fn chunk(root: &Root, path: &RelPath, offset: u64, len: u64) -> Result<Chunk, FileError> {
    let (mut file, stat) = regular::open(root, path)?;
    let data = window(&mut file, offset, len.min(CHUNK_MAX as u64), regular::size(&stat));
    let data = data.map_err(reading)?;
    let total_size = file.metadata().map_err(reading)?.len();
    let eof = offset.saturating_add(data.len() as u64) >= total_size;
    Ok(Chunk { data, offset, total_size, eof })
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
    fn fifos_sockets_and_devices_are_refused_without_blocking() {
        let project = Project::new();
        let names = project.special();
        promptly(move || {
            for name in names {
                assert!(matches!(read(&project, name), Err(FileError::NotRegular)), "{name}");
                let window = chunk(&project.root, &path(name), 0, 1);
                assert!(matches!(window, Err(FileError::NotRegular)), "{name}");
            }
        });
    }

    #[test]
    fn a_window_has_eight_mebibytes_at_most() {
        let project = Project::new();
        let size = CHUNK_MAX as u64 + 1;
        std::fs::File::create(project.at("f")).unwrap().set_len(size).unwrap();
        let window = chunk(&project.root, &path("f"), 0, u64::MAX).unwrap();
        assert_eq!((window.data.len(), window.total_size, window.eof), (CHUNK_MAX, size, false));
        assert!(window.data.capacity() <= CHUNK_MAX + 64);
        let last = chunk(&project.root, &path("f"), CHUNK_MAX as u64, u64::MAX).unwrap();
        assert_eq!((last.data.len(), last.eof), (1, true));
    }

    #[test]
    fn a_window_lies_anywhere_in_a_file_of_any_size_and_behind_it_there_is_nothing() {
        let project = Project::new();
        let size = 1 << 36;
        std::fs::File::create(project.at("f")).unwrap().set_len(size).unwrap();
        let middle = chunk(&project.root, &path("f"), size / 2, 3).unwrap();
        let expected = Chunk { data: vec![0; 3], offset: size / 2, total_size: size, eof: false };
        assert_eq!(middle, expected);
        for offset in [size, size + 1, u64::MAX] {
            let behind = chunk(&project.root, &path("f"), offset, 10).unwrap();
            assert_eq!((behind.data.len(), behind.offset, behind.eof), (0, offset, true));
        }
        let nothing = chunk(&project.root, &path("f"), 0, 0).unwrap();
        assert_eq!((nothing.data.len(), nothing.eof), (0, false));
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
                let window = chunk(&project.root, &path("f"), together.len() as u64, len).unwrap();
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

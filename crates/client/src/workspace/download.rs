//! A file that is fetched in windows, and that others may change meanwhile.

use protocol::workspace::{client::FileVersion, limits::CHUNK_MAX};
use sha2::{Digest, Sha256};

use super::files::{Window, WindowRequest};

/// Fetches the bytes that a file had at the first window, all of one moment. Each window names the file and
/// its version. If the versions differ, or one is so new that a further change could not be seen in it, a
/// last request asks for the digest of the file up to the same length. If it is that of the fetched bytes,
/// they belong together. So a file that only grows can be fetched.
#[derive(Debug, Default)]
pub struct Download {
    first: Option<FirstWindow>,
    /// How many bytes have arrived.
    at: u64,
    digest: Sha256,
    is_doubtful: bool,
    is_checked: bool,
}

/// The file at the first window.
#[derive(Debug)]
struct FirstWindow {
    version: Option<FileVersion>,
    size: u64,
}

/// Windows that do not belong together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it was changed while it was fetched")]
pub struct ChangedFile;

impl Download {
    /// The next window to ask for; `None` at the end.
    pub fn next(&self) -> Option<WindowRequest> {
        let (offset, most) = (self.at, CHUNK_MAX as u64);
        let window = |len, check| Some(WindowRequest { offset, len, check });
        match &self.first {
            None => window(most, false),
            Some(first) if self.at < first.size => window(most.min(first.size - self.at), false),
            // An empty window costs nothing; its digest covers all bytes before it.
            Some(_) if self.is_doubtful && !self.is_checked => window(0, true),
            Some(_) => None,
        }
    }

    /// Takes the window that [`Download::next`] asked for.
    ///
    /// # Errors
    /// When the windows do not belong together.
    pub fn take(&mut self, window: &Window) -> Result<(), ChangedFile> {
        if self.next().is_some_and(|request| request.check) {
            self.is_checked = true;
            // The file was empty at first, because somebody was about to write it again.
            if self.at == 0 && window.total_size > 0 {
                return Err(ChangedFile);
            }
            let own = format!("{:x}", self.digest.clone().finalize());
            return if window.sha256.as_ref() == Some(&own) { Ok(()) } else { Err(ChangedFile) };
        }
        let first = self.first.get_or_insert_with(|| FirstWindow {
            version: window.version.clone(),
            size: window.total_size,
        });
        self.is_doubtful |= first.doubts(window)?;
        self.at += window.data.len() as u64;
        // A file that was shortened has no more bytes.
        if self.at > first.size || window.data.is_empty() && self.at < first.size {
            return Err(ChangedFile);
        }
        self.digest.update(&window.data);
        Ok(())
    }

    /// How many bytes the file has.
    pub fn size(&self) -> u64 {
        self.first.as_ref().map_or(0, |first| first.size)
    }

    /// How many bytes have come.
    pub fn fetched(&self) -> u64 {
        self.at
    }
}

impl FirstWindow {
    /// Whether it is uncertain that a window belongs to this file. If the server sends no versions, only a
    /// change of the size is noticed.
    fn doubts(&self, window: &Window) -> Result<bool, ChangedFile> {
        match (&self.version, &window.version) {
            (Some(first), Some(now)) if first.file == now.file => {
                let is_shorter = window.total_size < self.size;
                if is_shorter { Err(ChangedFile) } else { Ok(*now != *first || !now.settled) }
            }
            (None, None) if window.total_size == self.size => Ok(false),
            _ => Err(ChangedFile),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file on a server. Each change makes its time differ.
    struct ServedFile {
        file: u32,
        time: u32,
        settled: bool,
        bytes: Vec<u8>,
    }

    impl ServedFile {
        fn new(bytes: &[u8]) -> Self {
            Self { file: 1, time: 1, settled: true, bytes: bytes.to_vec() }
        }

        /// Answers, with windows of two bytes.
        fn window(&self, request: WindowRequest) -> Window {
            let at = usize::try_from(request.offset).unwrap().min(self.bytes.len());
            let end = (at + usize::try_from(request.len).unwrap().min(2)).min(self.bytes.len());
            Window {
                data: self.bytes[at..end].to_vec(),
                total_size: self.bytes.len() as u64,
                version: Some(FileVersion {
                    file: self.file.to_string(),
                    changed: self.time.to_string(),
                    settled: self.settled,
                }),
                sha256: request.check.then(|| format!("{:x}", Sha256::digest(&self.bytes[..at]))),
            }
        }
    }

    /// Fetches a file that `meanwhile` changes after the first window. Returns the bytes, and whether the
    /// server had to read them again.
    fn fetched(
        mut served: ServedFile,
        meanwhile: impl FnOnce(&mut ServedFile),
    ) -> Result<(Vec<u8>, bool), ChangedFile> {
        let (mut download, mut bytes) = (Download::default(), Vec::new());
        let (mut meanwhile, mut was_checked) = (Some(meanwhile), false);
        while let Some(request) = download.next() {
            let window = served.window(request);
            download.take(&window)?;
            bytes.extend(window.data);
            was_checked |= request.check;
            if let Some(change) = meanwhile.take() {
                change(&mut served);
            }
        }
        assert_eq!((download.size(), download.fetched()), (bytes.len() as u64, bytes.len() as u64));
        Ok((bytes, was_checked))
    }

    #[test]
    fn a_file_that_nobody_changes_is_fetched_and_not_read_again() {
        assert_eq!(fetched(ServedFile::new(b"abcdefg"), |_| ()), Ok((b"abcdefg".to_vec(), false)));
        assert_eq!(fetched(ServedFile::new(b""), |_| ()), Ok((Vec::new(), false)));
        let young = ServedFile { settled: false, ..ServedFile::new(b"abcdefg") };
        assert_eq!(fetched(young, |_| ()), Ok((b"abcdefg".to_vec(), true)));
    }

    #[test]
    fn a_growing_file_is_fetched_as_it_was_at_the_beginning() {
        let grown = fetched(ServedFile::new(b"abcdefg"), |served| {
            served.bytes.extend(b"hi");
            served.time = 2;
        });
        assert_eq!(grown, Ok((b"abcdefg".to_vec(), true)));
    }

    #[test]
    fn a_mixture_is_an_error() {
        let change = |change: fn(&mut ServedFile)| fetched(ServedFile::new(b"abcdefg"), change);
        // Replaced by another of the same size.
        assert_eq!(change(|it| (it.file, it.bytes) = (2, b"ABCDEFG".to_vec())), Err(ChangedFile));
        // The number of the file was used again.
        assert_eq!(change(|it| (it.time, it.bytes) = (2, b"ABCDEFG".to_vec())), Err(ChangedFile));
        // Cut, and cut and grown again.
        assert_eq!(change(|it| (it.time, it.bytes) = (2, b"ab".to_vec())), Err(ChangedFile));
        assert_eq!(
            change(|it| (it.time, it.bytes) = (2, b"ABCDEFGHIJ".to_vec())),
            Err(ChangedFile)
        );
        // Written in place, so soon that the time is the same.
        let young = ServedFile { settled: false, ..ServedFile::new(b"abcdefg") };
        assert_eq!(fetched(young, |it| it.bytes = b"ABCDEFG".to_vec()), Err(ChangedFile));
    }

    #[test]
    fn a_file_that_was_empty_for_a_moment_is_not_an_empty_file() {
        let young = || ServedFile { settled: false, ..ServedFile::new(b"") };
        assert_eq!(fetched(young(), |it| it.bytes = b"new".to_vec()), Err(ChangedFile));
        assert_eq!(fetched(young(), |_| ()), Ok((Vec::new(), true)));
    }

    #[test]
    fn a_server_without_versions_is_believed_while_the_size_stays() {
        let window = |data: &[u8], total_size| Window {
            data: data.to_vec(),
            total_size,
            version: None,
            sha256: None,
        };
        let mut download = Download::default();
        download.take(&window(b"ab", 4)).unwrap();
        assert_eq!(download.take(&window(b"cd", 5)), Err(ChangedFile));
        assert_eq!(download.take(&window(b"cd", 4)), Ok(()));
        assert_eq!(download.next(), None);
    }
}

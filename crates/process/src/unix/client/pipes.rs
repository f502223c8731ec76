//! The input and output of a process with pipes.

use std::{io, os::fd::OwnedFd, sync::Arc};

use bytes::BytesMut;
use tokio::net::unix::pipe;

use super::Handle;
use crate::unix::journal::{Journal, JournalReader};

/// The most bytes that one read returns.
const MOST_PER_READ: usize = 64 * 1024;

/// The standard input of a process. The process gets its end by [`ChildInput::close`].
#[derive(Debug)]
pub struct ChildInput {
    pipe: pipe::Sender,
    journal: Arc<Journal>,
    handle: Handle,
    written: u64,
}

/// The standard output of a process.
#[derive(Debug)]
pub struct ChildOutput {
    pipe: pipe::Receiver,
    reader: JournalReader,
}

impl ChildInput {
    pub(super) fn new(stdin: OwnedFd, journal: &Arc<Journal>, handle: &Handle) -> io::Result<Self> {
        Ok(Self {
            pipe: pipe::Sender::from_owned_fd(stdin)?,
            journal: Arc::clone(journal),
            handle: handle.clone(),
            written: journal.written().unwrap_or(0),
        })
    }

    /// Writes all bytes. Waits while the process reads nothing. The journal knows how much is written.
    ///
    /// # Errors
    /// The kernel's error: the process reads no more.
    pub async fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.pipe.writable().await?;
            // Noted before and after: a daemon that is killed in between leaves the next one the range in doubt.
            self.journal.writes(self.written + bytes.len() as u64);
            let written = self.pipe.try_write(bytes);
            self.written += *written.as_ref().unwrap_or(&0) as u64;
            self.journal.wrote(self.written);
            match written {
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Ends the input.
    pub async fn close(self) {
        let Self { pipe, handle, .. } = self;
        drop(pipe);
        // The supervisor holds the same end, so the process sees no end of input before it closes its own.
        handle.close_input().await;
    }
}

impl ChildOutput {
    pub(super) fn new(stdout: OwnedFd, journal: &Arc<Journal>) -> io::Result<Self> {
        let reader = JournalReader::new(Arc::clone(journal))?;
        Ok(Self { pipe: pipe::Receiver::from_owned_fd(stdout)?, reader })
    }

    /// Begins again with the output after this many bytes since the start, before the first read.
    ///
    /// # Errors
    /// When it is not there any more.
    pub fn go_back(&mut self, to: u64) -> io::Result<()> {
        self.reader.go_back(to)
    }

    /// Waits for output and appends it: first what an earlier daemon had not taken. Returns the number
    /// of bytes, 0 at the end. The caller has taken the output of one call before it makes the next, but
    /// for the beginning of what is not complete. If the call is dropped, nothing is lost.
    ///
    /// # Errors
    /// The kernel's error; a pipe hardly has any.
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        // Without waiting: what an earlier daemon left is older than anything in the pipe.
        let left = self.reader.left(MOST_PER_READ);
        if !left.is_empty() {
            buffer.extend_from_slice(&left);
            return Ok(left.len());
        }
        let before = buffer.len();
        loop {
            if buffer.len() == before {
                self.pipe.readable().await?;
                self.reader.tidy()?;
            }
            let pipe = &self.pipe;
            match self.reader.read(buffer, |piece| pipe.try_read(piece)) {
                Ok(0) => return Ok(buffer.len() - before),
                Ok(_) if buffer.len() - before + 4096 <= MOST_PER_READ => {}
                Ok(_) => return Ok(buffer.len() - before),
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && buffer.len() == before => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(buffer.len() - before);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

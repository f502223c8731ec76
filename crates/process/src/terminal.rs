//! The master of a child's terminal.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    sync::Arc,
};

use bytes::BytesMut;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    termios::{Winsize, tcgetpgrp, tcsetwinsize},
};
use tokio::{
    io::{Interest, unix::AsyncFd},
    task::yield_now,
};

use crate::unsafe_calls::watch;

/// The most bytes that one read returns.
pub const MOST_PER_READ: usize = 64 * 1024;
/// The most bytes that the kernel returns at once.
const PIECE: usize = 4096;
/// A piece shorter than this, in bytes, is probably the echo of a key, with no more output behind
/// it.
const MUCH: usize = 256;

/// Both halves of the master of a child's terminal.
#[derive(Debug)]
pub struct Terminal {
    reader: TerminalReader,
    writer: TerminalWriter,
}

/// Reads the output of the terminal's programs.
#[derive(Debug)]
pub struct TerminalReader(Arc<AsyncFd<OwnedFd>>);

/// Types into the terminal and sets its size. When all halves are dropped, the terminal is closed,
/// and its foreground programs are hung up.
#[derive(Debug, Clone)]
pub struct TerminalWriter(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Takes over the master. Needs a runtime.
    pub(crate) fn new(master: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let shared = Arc::new(watch(master, Interest::READABLE | Interest::WRITABLE)?);
        Ok(Self { reader: TerminalReader(shared.clone()), writer: TerminalWriter(shared) })
    }

    /// The two halves, for two tasks.
    #[must_use]
    pub fn split(self) -> (TerminalReader, TerminalWriter) {
        (self.reader, self.writer)
    }

    /// See [`TerminalReader::read`].
    ///
    /// # Errors
    /// As for [`TerminalReader::read`].
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.reader.read(buffer).await
    }

    /// See [`TerminalWriter::write_all`].
    ///
    /// # Errors
    /// As for [`TerminalWriter::write_all`].
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await
    }

    /// See [`TerminalWriter::resize`].
    ///
    /// # Errors
    /// As for [`TerminalWriter::resize`].
    pub fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        self.writer.resize(cols, rows)
    }

    /// See [`TerminalWriter::foreground`].
    #[must_use]
    pub fn foreground(&self) -> Option<u32> {
        self.writer.foreground()
    }
}

impl TerminalReader {
    /// Waits for output and appends all of it, up to [`MOST_PER_READ`]. Returns the number of
    /// bytes. 0 means the end: no process has the terminal open, and all output was read.
    ///
    /// Between pieces it yields to the other tasks of the thread, so that a terminal with a flood
    /// of output does not hold up the others. If the call is dropped, the bytes read so far are in
    /// the buffer.
    ///
    /// # Errors
    /// The kernel's error; a terminal hardly has any.
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let before = buffer.len();
        loop {
            let mut ready = self.0.readable().await?;
            let piece = read_piece(self.0.get_ref(), buffer);
            let got = buffer.len() - before;
            match piece {
                Piece::Little if got + PIECE <= MOST_PER_READ => {}
                Piece::Much if got + PIECE <= MOST_PER_READ => {
                    drop(ready);
                    yield_now().await;
                }
                Piece::Empty => {
                    ready.clear_ready();
                    if got > 0 {
                        return Ok(got);
                    }
                }
                Piece::Error(error) if got == 0 => return Err(error),
                Piece::Little | Piece::Much | Piece::Closed | Piece::Error(_) => return Ok(got),
            }
        }
    }
}

impl TerminalWriter {
    /// Types all bytes. Waits while the terminal's programs read nothing, so give it a deadline. If
    /// the call is dropped, some of the bytes may have been typed.
    ///
    /// # Errors
    /// The kernel's error: the terminal is gone.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Types as many bytes as fit now, after waiting for room for one byte. Returns the number of
    /// bytes. If the call is dropped, nothing has been typed.
    ///
    /// # Errors
    /// As for [`TerminalWriter::write_all`].
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.writable().await?;
            // Read before the attempt, since the attempt clears the readiness when nothing fits.
            let has_hung_up = ready.ready().is_write_closed();
            if let Ok(result) = ready.try_io(|master| Ok(rustix::io::write(master, bytes)?)) {
                return result;
            }
            // After the hang-up no program will read the full queue, so waiting would never end.
            if has_hung_up {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }

    /// Types as many bytes as fit now, possibly none. Returns their number.
    ///
    /// # Errors
    /// As for [`TerminalWriter::write_all`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(self.0.get_ref(), bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            written => Ok(written?),
        }
    }

    /// Sets the size, in characters. The programs in the foreground are notified.
    ///
    /// # Errors
    /// The kernel's error: the terminal is gone.
    pub fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.0.as_fd(), size)?)
    }

    /// The process group in the foreground, which has the id of its leader; `None` if there is
    /// none.
    #[must_use]
    pub fn foreground(&self) -> Option<u32> {
        tcgetpgrp(self.0.as_fd()).ok().map(|pid| pid.as_raw_pid().unsigned_abs())
    }
}

/// The result of one read.
enum Piece {
    /// Some bytes, probably the last for now.
    Little,
    /// Enough bytes that more may follow.
    Much,
    /// Nothing for now.
    Empty,
    /// The end of the output.
    Closed,
    Error(io::Error),
}

/// Reads one piece into the buffer. The buffer grows by one piece only: the kernel never returns
/// more at once, and clearing unused room would be wasted work.
fn read_piece(master: &OwnedFd, buffer: &mut BytesMut) -> Piece {
    let length = buffer.len();
    buffer.resize(length + PIECE, 0);
    let read = rustix::io::read(master, &mut buffer[length..]);
    buffer.truncate(length + read.unwrap_or(0));
    match read {
        // On Linux a terminal without any open slave gives EIO instead of the end.
        Ok(0) | Err(Errno::IO) => Piece::Closed,
        Ok(read) if read >= MUCH => Piece::Much,
        Ok(_) | Err(Errno::INTR) => Piece::Little,
        Err(Errno::AGAIN) => Piece::Empty,
        Err(error) => Piece::Error(error.into()),
    }
}

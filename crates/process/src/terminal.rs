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

/// The most that one call of a read brings, in bytes.
pub const MOST_PER_READ: usize = 64 * 1024;
/// The most that the kernel hands over at once.
const PIECE: usize = 4096;
/// After less than this, in bytes, there is hardly more: it was a key that came back.
const MUCH: usize = 256;

/// The master of a child's terminal, both halves of it.
#[derive(Debug)]
pub struct Terminal {
    reader: TerminalReader,
    writer: TerminalWriter,
}

/// What the terminal's programs write.
#[derive(Debug)]
pub struct TerminalReader(Arc<AsyncFd<OwnedFd>>);

/// What is typed, and the terminal's size. The terminal is closed, and its foreground hung up, when
/// all halves are dropped.
#[derive(Debug, Clone)]
pub struct TerminalWriter(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Takes over a master. Only within a runtime.
    pub(crate) fn new(master: OwnedFd) -> io::Result<Self> {
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let shared = Arc::new(watch(master, Interest::READABLE | Interest::WRITABLE)?);
        Ok(Self { reader: TerminalReader(shared.clone()), writer: TerminalWriter(shared) })
    }

    /// Its halves, for two tasks.
    #[must_use]
    pub fn split(self) -> (TerminalReader, TerminalWriter) {
        (self.reader, self.writer)
    }

    /// See [`TerminalReader::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        self.reader.read(buffer).await
    }

    /// See [`TerminalWriter::write_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        self.writer.write_all(bytes).await
    }

    /// See [`TerminalWriter::resize`].
    ///
    /// # Errors
    /// As there.
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
    /// Waits for output and appends all that is there, up to [`MOST_PER_READ`]; how many bytes that
    /// were. None means the end: no process has the terminal open any more, and all is read.
    ///
    /// Whoever shares the thread has a turn in between: a terminal that floods does not hold up
    /// the others. When the call is dropped meanwhile, what it has read is in the buffer.
    ///
    /// # Errors
    /// The kernel's, which a terminal hardly has.
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
    /// Types all of it. Waits while the terminal's programs read nothing: give it a deadline. When
    /// it is dropped meanwhile, some of it has been typed.
    ///
    /// # Errors
    /// The kernel's: the terminal is gone.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = self.write(bytes).await?;
            bytes = bytes.get(written..).unwrap_or_default();
        }
        Ok(())
    }

    /// Types as much as fits now, at least a byte, and tells how many; waits until one fits. When it
    /// is dropped meanwhile, nothing has been typed.
    ///
    /// # Errors
    /// As for [`TerminalWriter::write_all`].
    pub async fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            let mut ready = self.0.writable().await?;
            // To be asked before the attempt, which takes it back when nothing fits.
            let has_hung_up = ready.ready().is_write_closed();
            if let Ok(result) = ready.try_io(|master| Ok(rustix::io::write(master, bytes)?)) {
                return result;
            }
            // What the terminal's programs left unread is still in its queue: it stays full for ever.
            if has_hung_up {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
        }
    }

    /// Types as much as fits now, and tells how many bytes; none if none fits.
    ///
    /// # Errors
    /// As for [`TerminalWriter::write_all`].
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match rustix::io::write(self.0.get_ref(), bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            written => Ok(written?),
        }
    }

    /// Sets the size, in characters; the programs in the foreground are told.
    ///
    /// # Errors
    /// The kernel's: the terminal is gone.
    pub fn resize(&self, cols: u16, rows: u16) -> io::Result<()> {
        let size = Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
        Ok(tcsetwinsize(self.0.as_fd(), size)?)
    }

    /// The process group in the foreground, which is the process id of its first; `None` when there
    /// is none.
    #[must_use]
    pub fn foreground(&self) -> Option<u32> {
        tcgetpgrp(self.0.as_fd()).ok().map(|pid| pid.as_raw_pid().unsigned_abs())
    }
}

/// What a piece of output is.
enum Piece {
    /// Something, and hardly more.
    Little,
    /// So much that more may follow.
    Much,
    /// Nothing for now.
    Empty,
    /// Nothing, ever.
    Closed,
    Error(io::Error),
}

/// Grows the buffer by a piece: the kernel never hands over more at once, and what is not used would
/// have been cleared in vain.
fn read_piece(master: &OwnedFd, buffer: &mut BytesMut) -> Piece {
    let length = buffer.len();
    buffer.resize(length + PIECE, 0);
    let read = rustix::io::read(master, &mut buffer[length..]);
    buffer.truncate(length + read.unwrap_or(0));
    match read {
        // On Linux the end of a terminal is an error.
        Ok(0) | Err(Errno::IO) => Piece::Closed,
        Ok(read) if read >= MUCH => Piece::Much,
        Ok(_) | Err(Errno::INTR) => Piece::Little,
        Err(Errno::AGAIN) => Piece::Empty,
        Err(error) => Piece::Error(error.into()),
    }
}

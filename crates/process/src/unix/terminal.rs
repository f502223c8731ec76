//! The master of a child's terminal.

use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    sync::Arc,
    time::Duration,
};

use bytes::BytesMut;
use rustix::{
    fs::{OFlags, fcntl_getfl, fcntl_setfl},
    io::Errno,
    termios::{Winsize, tcgetpgrp, tcgetwinsize, tcsetwinsize},
};
use tokio::{
    io::{
        Interest,
        unix::{AsyncFd, AsyncFdReadyGuard},
    },
    task::yield_now,
    time::{Instant, Sleep, sleep},
};

use crate::unix::{
    journal::{Journal, JournalReader},
    unsafe_calls::watch,
};

/// The most bytes that one read returns.
pub const MOST_PER_READ: usize = 64 * 1024;
/// The most bytes that the kernel returns at once.
const PIECE: usize = 4096;
/// A piece shorter than this, in bytes, is probably the echo of a key, with no more output behind
/// it.
const MUCH: usize = 256;
/// Output of this many bytes, without a pause of this length, is a flood: nobody waits for its next few
/// lines.
const FLOOD: usize = 64 * 1024;
const PAUSE: Duration = Duration::from_millis(10);
/// How long output of a flood is gathered. Its program writes a few KiB at a time, and each of them would be
/// noted, stored and sent by itself.
const GATHER: Duration = Duration::from_millis(1);

/// Both halves of the master of a child's terminal.
#[derive(Debug)]
pub struct Terminal {
    reader: TerminalReader,
    writer: TerminalWriter,
}

/// Reads the output of the terminal's programs.
#[derive(Debug)]
pub struct TerminalReader {
    master: Arc<AsyncFd<OwnedFd>>,
    journal: JournalReader,
    lately: Lately,
}

/// Types into the terminal and sets its size. When all halves are dropped, the terminal is closed, and
/// its foreground programs are hung up, unless the supervisor keeps it for the next daemon.
#[derive(Debug, Clone)]
pub struct TerminalWriter(Arc<AsyncFd<OwnedFd>>);

impl Terminal {
    /// Takes over the master. Needs a runtime.
    pub(crate) fn new(master: OwnedFd, journal: &Arc<Journal>) -> io::Result<Self> {
        fcntl_setfl(&master, fcntl_getfl(&master)? | OFlags::NONBLOCK)?;
        let shared = Arc::new(watch(master, Interest::READABLE | Interest::WRITABLE)?);
        let journal = JournalReader::new(Arc::clone(journal))?;
        let reader = TerminalReader { master: shared.clone(), journal, lately: Lately::default() };
        Ok(Self { reader, writer: TerminalWriter(shared) })
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

    /// See [`TerminalWriter::size`].
    ///
    /// # Errors
    /// As for [`TerminalWriter::size`].
    pub fn size(&self) -> io::Result<(u16, u16)> {
        self.writer.size()
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
    /// Of a flood it appends what comes within a millisecond or two, so that there is less to do for each
    /// of its bytes.
    ///
    /// The first calls return the output that an earlier daemon had not taken. The caller has taken the
    /// output of one call before it makes the next.
    ///
    /// Between pieces it yields to the other tasks of the thread, so that a terminal with a flood
    /// of output does not hold up the others. If the call is dropped, the bytes read so far are in
    /// the buffer.
    ///
    /// # Errors
    /// The kernel's error; a terminal hardly has any.
    pub async fn read(&mut self, buffer: &mut BytesMut) -> io::Result<usize> {
        let left = self.journal.left(MOST_PER_READ);
        if !left.is_empty() {
            buffer.extend_from_slice(&left);
            return Ok(left.len());
        }
        let before = buffer.len();
        let mut gathered = None;
        loop {
            let Some(mut ready) = readable(&self.master, &mut gathered).await? else {
                return Ok(buffer.len() - before);
            };
            let now = Instant::now();
            if self.lately.is_flood(now) {
                make_room(buffer);
            }
            let piece = read_piece(self.master.get_ref(), &mut self.journal, buffer);
            let got = buffer.len() - before;
            match piece {
                Piece::Little if got + PIECE <= MOST_PER_READ => {}
                Piece::Much(bytes) if got + PIECE <= MOST_PER_READ => {
                    drop(ready);
                    self.lately.note(bytes, now);
                    yield_now().await;
                }
                Piece::Empty => {
                    ready.clear_ready();
                    if got > 0 && !self.lately.is_flood(now) {
                        return Ok(got);
                    }
                    if got > 0 && gathered.is_none() {
                        gathered = Some(Box::pin(sleep(GATHER)));
                    }
                }
                Piece::Error(error) if got == 0 => return Err(error),
                Piece::Little | Piece::Much(_) | Piece::Closed | Piece::Error(_) => return Ok(got),
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

    /// The size, in columns and rows.
    ///
    /// # Errors
    /// The kernel's error: the terminal is gone.
    pub fn size(&self) -> io::Result<(u16, u16)> {
        let size = tcgetwinsize(self.0.as_fd())?;
        Ok((size.ws_col, size.ws_row))
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

/// Waits until there is output. `None` once output that is gathered is due.
async fn readable<'a>(
    master: &'a AsyncFd<OwnedFd>,
    gathered: &mut Option<Pin<Box<Sleep>>>,
) -> io::Result<Option<AsyncFdReadyGuard<'a, OwnedFd>>> {
    let Some(gathered) = gathered else { return master.readable().await.map(Some) };
    tokio::select! {
        biased;
        ready = master.readable() => ready.map(Some),
        () = gathered => Ok(None),
    }
}

/// Makes room for a whole read at once. The buffer would otherwise grow in steps, and be copied in each.
fn make_room(buffer: &mut BytesMut) {
    if buffer.capacity() - buffer.len() < PIECE {
        buffer.reserve(MOST_PER_READ);
    }
}

/// How much output came lately.
#[derive(Debug, Default)]
struct Lately {
    /// The bytes since the last pause.
    bytes: usize,
    last: Option<Instant>,
}

impl Lately {
    fn note(&mut self, bytes: usize, now: Instant) {
        self.bytes = if self.goes_on(now) { self.bytes.saturating_add(bytes) } else { bytes };
        self.last = Some(now);
    }

    fn is_flood(&self, now: Instant) -> bool {
        self.bytes >= FLOOD && self.goes_on(now)
    }

    fn goes_on(&self, now: Instant) -> bool {
        self.last.is_some_and(|last| now < last + PAUSE)
    }
}

/// The result of one read.
enum Piece {
    /// Some bytes, probably the last for now.
    Little,
    /// This number of bytes, and more may follow.
    Much(usize),
    /// Nothing for now.
    Empty,
    /// The end of the output.
    Closed,
    Error(io::Error),
}

/// Reads one piece into the buffer, by way of the journal.
fn read_piece(master: &OwnedFd, journal: &mut JournalReader, buffer: &mut BytesMut) -> Piece {
    let read = journal.read(buffer, |piece| Ok(rustix::io::read(master, piece)?));
    match read {
        Ok(0) => Piece::Closed,
        Ok(read) if read >= MUCH => Piece::Much(read),
        Ok(_) => Piece::Little,
        Err(error) => match Errno::from_io_error(&error) {
            // On Linux a terminal without any open slave gives EIO instead of the end.
            Some(Errno::IO) => Piece::Closed,
            Some(Errno::INTR) => Piece::Little,
            Some(Errno::AGAIN) => Piece::Empty,
            _ => Piece::Error(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_much_output_without_a_pause() {
        let (mut lately, begun) = (Lately::default(), Instant::now());
        let at = |millis| begun + Duration::from_millis(millis);
        for millis in 0..15 {
            lately.note(PIECE, at(millis));
            assert!(!lately.is_flood(at(millis)), "{millis}");
        }
        lately.note(PIECE, at(15));
        assert!(
            lately.is_flood(at(24)) && !lately.is_flood(at(25)),
            "a key's echo is not gathered"
        );
        lately.note(PIECE, at(25));
        assert!(!lately.is_flood(at(25)));
    }
}

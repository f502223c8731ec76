//! This terminal: taken raw, and always given back.

use std::{
    io::{self, IsTerminal, Read, Write, stdin, stdout},
    panic,
    sync::{
        Once,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use tokio::{
    sync::{mpsc, watch},
    time::timeout,
};

use super::modes::SessionModes;
use crate::system::{terminal_input, terminal_output};

/// The most reads of typed bytes that wait to be sent, and the most bytes of each.
const READS: usize = 4;
const READ: usize = 16 * 1024;
/// How long to wait for a terminal that has stopped taking the last output, and how many bytes are
/// written at once. The pieces are small so that a slow terminal does not count as stopped.
const LAST: Duration = Duration::from_secs(2);
const PIECE: usize = 4 * 1024;

/// Whether the terminal is raw now.
static IS_RAW: AtomicBool = AtomicBool::new(false);

/// Whether there is a terminal for input and output.
pub(crate) fn has_terminal() -> bool {
    stdin().is_terminal() && stdout().is_terminal()
}

/// Its size: columns, rows.
pub(crate) fn size() -> io::Result<(u16, u16)> {
    crossterm::terminal::size()
}

/// Begins a line of its own for what follows, and clears what a program has left below: the cursor may be
/// anywhere in it.
pub(super) fn begin_line() {
    if stdout().is_terminal() {
        let mut out = stdout().lock();
        // A terminal that is gone has no line to begin.
        let _ = out.write_all(b"\r\n\x1b[J").and_then(|()| out.flush());
    }
}

/// This terminal, raw. Dropping it gives it back.
pub(super) struct Raw {
    /// The bytes that put its modes back; the screen's own end, once that is known.
    leave: Vec<u8>,
}

impl Raw {
    pub(super) fn take() -> io::Result<Self> {
        give_back_at_panics();
        enable_raw_mode()?;
        IS_RAW.store(true, Ordering::Relaxed);
        Ok(Self { leave: SessionModes::default().reset().into_bytes() })
    }

    /// Gives the terminal back, and writes these bytes.
    pub(super) fn leave(mut self, with: Vec<u8>) {
        self.leave = with;
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        give_back(&self.leave);
    }
}

/// Gives the terminal back. Its own settings come first: writing may take long if it has stopped. Errors are ignored:
/// there may be no terminal any more.
fn give_back(with: &[u8]) {
    if !IS_RAW.swap(false, Ordering::Relaxed) {
        return;
    }
    let _ = disable_raw_mode();
    if let Ok(mut out) = terminal_output() {
        let _ = out.write_all(with);
    }
}

/// Gives the terminal back at a panic, so that its message is readable.
fn give_back_at_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            give_back(SessionModes::default().reset().as_bytes());
            before(panic);
        }));
    });
}

/// The typed bytes, as they come; they end with the terminal. The thread that reads ends with the
/// process: nothing else can wake it.
pub(super) fn typed() -> io::Result<mpsc::Receiver<Vec<u8>>> {
    let mut input = terminal_input()?;
    let (sender, receiver) = mpsc::channel(READS);
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        let mut buffer = vec![0; READ];
        loop {
            let read = match input.read(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(_) | Ok(0) => return,
                Ok(read) => read,
            };
            if sender.blocking_send(buffer[..read].to_vec()).is_err() {
                return;
            }
        }
    })?;
    Ok(receiver)
}

/// Writes to the terminal on a thread of its own: one that stops (Ctrl-S) must not stop what reads
/// the keys and the network.
pub(super) struct Writer {
    batches: mpsc::Sender<Vec<u8>>,
    /// Counts the pieces written. It ends when all are written.
    written: watch::Receiver<u64>,
}

impl Writer {
    pub(super) fn start() -> io::Result<Self> {
        let mut out = terminal_output()?;
        let (batches, mut next) = mpsc::channel::<Vec<u8>>(1);
        let (writes, written) = watch::channel(0);
        thread::Builder::new().name("screen".to_owned()).spawn(move || {
            while let Some(batch) = next.blocking_recv() {
                for piece in batch.chunks(PIECE) {
                    if out.write_all(piece).is_err() {
                        return;
                    }
                    writes.send_modify(|written| *written += 1);
                }
            }
        })?;
        Ok(Self { batches, written })
    }

    /// Waits for room for the next batch; `None` once the terminal is gone.
    pub(super) async fn room(&self) -> Option<mpsc::OwnedPermit<Vec<u8>>> {
        self.batches.clone().reserve_owned().await.ok()
    }

    /// Writes these bytes last, and waits until all is written, or until nothing has been written for some
    /// time.
    pub(super) async fn end(self, last: Vec<u8>) {
        let Self { batches, mut written } = self;
        let sending = async move {
            let _ = batches.send(last).await;
            drop(batches);
            std::future::pending::<()>().await;
        };
        let writing = async { while let Ok(Ok(())) = timeout(LAST, written.changed()).await {} };
        tokio::select! {
            () = sending => {}
            () = writing => {}
        }
    }
}

//! A terminal's session, used from this terminal.

use anyhow::Context;
use client::workspace::{Ending, Following};
use protocol::workspace::SessionInfo;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc::Receiver,
};

use super::{
    keys::DetachKey,
    screen::Painter,
    terminal::{Raw, Writer, size, typed},
};
use crate::commands::{
    note,
    workspace::{
        short,
        terms::{called, ended},
    },
};

/// So much is gathered while the terminal is busy, in bytes; then the server waits.
const BATCH: usize = 256 * 1024;

/// Uses it until it ends, its user detaches, or this process is told to end.
pub(super) async fn use_terminal(
    following: Following,
    session: &SessionInfo,
    detach: DetachKey,
) -> anyhow::Result<()> {
    let mut using = Using::begin(following, detach)?;
    let end = using.run().await;
    let last_words = using.end().await;
    if let Some(words) = last_words {
        note(&format!("[{words}]"));
    }
    let name = called(session);
    match end? {
        End::Detached => {
            let id = short(session.id);
            note(&format!("[detached from {name}; warren session attach {id} comes back]"));
        }
        End::Session(ending) => note(&format!("[{}]", ended(&name, ending))),
    }
    Ok(())
}

/// Why it is not used any more.
enum End {
    Detached,
    Session(Ending),
}

struct Using {
    following: Following,
    detach: DetachKey,
    keys: Receiver<Vec<u8>>,
    signals: Signals,
    painter: Painter,
    out: Vec<u8>,
    writer: Writer,
    // Given back after the writer has ended.
    raw: Raw,
}

impl Using {
    fn begin(following: Following, detach: DetachKey) -> anyhow::Result<Self> {
        let rows = size().map_or(24, |(_, rows)| rows);
        let signals = Signals::new().context("signals cannot be heard")?;
        let raw = Raw::take().context("the terminal cannot be made raw")?;
        Ok(Self {
            following,
            detach,
            keys: typed()?,
            signals,
            painter: Painter::new(rows),
            out: Vec::new(),
            writer: Writer::start()?,
            raw,
        })
    }

    async fn run(&mut self) -> anyhow::Result<End> {
        loop {
            // While the server is lost, keys are taken even when nothing more can be kept: one of
            // them may detach.
            let takes_keys = self.following.has_room() || !self.following.is_connected();
            tokio::select! {
                biased;
                signal = self.signals.next() => match signal {
                    Notice::Resized => self.resize(),
                    Notice::End => return Ok(End::Detached),
                },
                keys = self.keys.recv(), if takes_keys => match keys {
                    Some(keys) if !self.type_in(&keys) => {}
                    _ => return Ok(End::Detached),
                },
                room = self.writer.room(), if !self.out.is_empty() => match room {
                    Some(room) => drop(room.send(std::mem::take(&mut self.out))),
                    None => return Ok(End::Detached),
                },
                seen = self.following.next(), if self.out.len() < BATCH => {
                    match seen? {
                        Some(seen) => self.painter.take(seen, &mut self.out),
                        None => {
                            return Ok(End::Session(self.painter.ended.unwrap_or(Ending::Killed)));
                        }
                    }
                    self.gather()?;
                }
            }
        }
    }

    /// Takes what is here already into the same batch.
    fn gather(&mut self) -> anyhow::Result<()> {
        while self.out.len() < BATCH
            && let Some(seen) = self.following.ready()?
        {
            self.painter.take(seen, &mut self.out);
        }
        Ok(())
    }

    /// Types; whether that detaches.
    fn type_in(&mut self, typed: &[u8]) -> bool {
        let (keys, detaches) = self.detach.split(typed);
        if self.following.has_room() {
            self.following.type_in(keys);
        } else {
            // More than can be kept until the server is back: the bell tells that it is lost.
            self.out.push(0x07);
        }
        detaches
    }

    fn resize(&mut self) {
        if let Ok((cols, rows)) = size() {
            self.following.resize(cols, rows);
        }
    }

    /// Ends, and gives the terminal back; what is to be said then.
    async fn end(mut self) -> Option<String> {
        let leave = self.painter.leave();
        self.writer.end(self.out).await;
        self.raw.leave(leave);
        // What was typed last is still on its way.
        self.following.close().await;
        self.painter.last_words
    }
}

/// What the system tells this process.
enum Notice {
    /// The terminal has another size.
    Resized,
    /// It is to end.
    End,
}

struct Signals {
    resized: Signal,
    ending: [Signal; 3],
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let ending = [SignalKind::terminate(), SignalKind::hangup(), SignalKind::interrupt()];
        let [terminate, hangup, interrupt] = ending.map(signal);
        Ok(Self {
            resized: signal(SignalKind::window_change())?,
            ending: [terminate?, hangup?, interrupt?],
        })
    }

    async fn next(&mut self) -> Notice {
        let [terminate, hangup, interrupt] = &mut self.ending;
        tokio::select! {
            _ = terminate.recv() => Notice::End,
            _ = hangup.recv() => Notice::End,
            _ = interrupt.recv() => Notice::End,
            _ = self.resized.recv() => Notice::Resized,
        }
    }
}

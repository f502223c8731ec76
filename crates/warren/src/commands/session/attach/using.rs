//! A terminal's session, used from this terminal, and the hint about the key that detaches. Each user sees
//! the hint once, in the first terminal that is used.

use std::{
    fs::{DirBuilder, OpenOptions},
    path::Path,
};

use anyhow::Context;
use base::system::Rights;
use client::{
    ClientError,
    workspace::{Ending, Follower, SessionView},
};
use daemon::options::home_directory;
use protocol::workspace::SessionInfo;
use tokio::sync::mpsc::Receiver;

use super::{
    keys::{DetachKey, TypedKeys},
    screen::Painter,
    terminal::{Raw, Writer, begin_line, size, typed},
};
use crate::{
    commands::{
        note,
        workspace::{
            short,
            terms::{called, ended},
        },
    },
    system::{Notice, Notices},
};

/// The most bytes that are gathered while the terminal is busy; then the server waits.
const BATCH: usize = 256 * 1024;

const TOO_MUCH: &str = "more was typed than can wait for the session: the last of it is dropped";

/// Uses the session until it ends, its user detaches, or this process has to end. Returns how it ended, if it did.
pub(super) async fn use_terminal(
    follower: Follower,
    session: &SessionInfo,
    detach: DetachKey,
) -> anyhow::Result<Option<Ending>> {
    let mut using = Attachment::begin(follower, detach)?;
    let end = using.run().await;
    let notes = using.end().await;
    begin_line();
    for words in notes {
        note(&format!("[{words}]"));
    }
    let name = called(session);
    Ok(match end? {
        End::Detached => {
            let id = short(session.id);
            note(&format!("[detached from {name}; warren session attach {id} comes back]"));
            None
        }
        End::Session(ending) => {
            note(&format!("[{}]", ended(&name, ending)));
            Some(ending)
        }
    })
}

/// Why the session is no longer used.
enum End {
    Detached,
    Session(Ending),
}

struct Attachment {
    follower: Follower,
    typed_keys: TypedKeys,
    keys: Receiver<Vec<u8>>,
    notices: Notices,
    painter: Painter,
    out: Vec<u8>,
    writer: Writer,
    // Dropped after the writer has ended.
    raw: Raw,
}

impl Attachment {
    fn begin(follower: Follower, detach: DetachKey) -> anyhow::Result<Self> {
        let size = size().unwrap_or((80, 24));
        let notices = Notices::new().context("signals cannot be heard")?;
        let raw = Raw::take().context("the terminal cannot be made raw")?;
        Ok(Self {
            follower,
            typed_keys: TypedKeys::new(detach),
            keys: typed()?,
            notices,
            painter: Painter::new(size).with_hint(detach_hint(detach)),
            out: Vec::new(),
            writer: Writer::start()?,
            raw,
        })
    }

    async fn run(&mut self) -> anyhow::Result<End> {
        loop {
            // Keys are always read, because one of them may detach. The branches have no fixed order, so that
            // a paste without an end does not keep the server waiting.
            tokio::select! {
                notice = self.notices.next() => match notice {
                    Notice::Resized => self.resize(),
                    Notice::Interrupt | Notice::End => return Ok(End::Detached),
                },
                keys = self.keys.recv() => match keys {
                    Some(keys) if !self.type_in(&keys) => {}
                    _ => return Ok(End::Detached),
                },
                room = self.writer.room(), if !self.out.is_empty() => match room {
                    Some(room) => drop(room.send(std::mem::take(&mut self.out))),
                    None => return Ok(End::Detached),
                },
                seen = next(&mut self.follower, self.out.len() < BATCH) => {
                    match seen? {
                        Some(seen) => self.show(seen),
                        None => {
                            return Ok(End::Session(self.painter.ended.unwrap_or(Ending::Killed)));
                        }
                    }
                    self.gather()?;
                }
            }
        }
    }

    /// Adds the views that are here already to the same batch.
    fn gather(&mut self) -> anyhow::Result<()> {
        while self.out.len() < BATCH
            && let Some(seen) = self.follower.ready()?
        {
            self.show(seen);
        }
        Ok(())
    }

    fn show(&mut self, seen: SessionView) {
        if seen == SessionView::Back {
            // The screen still says that the connection was lost.
            self.follower.repaint();
        }
        self.painter.take(seen, &mut self.out);
    }

    /// Sends typed keys. Returns whether they detach.
    fn type_in(&mut self, typed: &[u8]) -> bool {
        let (keys, detaches) = self.typed_keys.take(typed);
        if self.painter.end_hint() {
            self.follower.repaint();
        }
        if !self.follower.type_in(&keys) {
            self.painter.ring(&mut self.out);
            self.painter.take(SessionView::Refused(TOO_MUCH.to_owned()), &mut self.out);
        }
        detaches
    }

    fn resize(&mut self) {
        if let Ok((cols, rows)) = size() {
            self.follower.resize(cols, rows);
            self.painter.resized((cols, rows));
        }
    }

    /// Ends, and gives the terminal back. Returns the last words.
    async fn end(mut self) -> Vec<String> {
        let unsent = Some(self.follower.waiting()).filter(|bytes| *bytes > 0);
        let unsent =
            unsent.map(|bytes| format!("{bytes} bytes that were typed last were not sent"));
        let leave = self.painter.leave();
        self.writer.end(self.out).await;
        self.raw.leave(leave);
        // The last keys are still on their way.
        self.follower.close().await;
        self.painter.last_words.into_iter().chain(unsent).collect()
    }
}

/// The next view, once there is room for it. Until then typed keys still leave: a terminal that takes no
/// more output must not keep an interrupt from the session.
async fn next(follower: &mut Follower, has_room: bool) -> Result<Option<SessionView>, ClientError> {
    if !has_room {
        follower.write().await;
    }
    follower.next().await
}

/// The file that notes that the hint was shown, in `$XDG_STATE_HOME/warren` or `~/.local/state/warren`.
const FILE: &str = "detach-key-said";

/// The hint to show now. `None`: it was shown before, there is no such key, or it cannot be noted that it
/// was shown.
fn detach_hint(key: DetachKey) -> Option<String> {
    let words = format!("{} detaches, and what runs here goes on", key.name()?);
    let directory = home_directory("XDG_STATE_HOME", ".local/state")?;
    is_first(&directory).then_some(words)
}

fn is_first(directory: &Path) -> bool {
    let made = DirBuilder::new().recursive(true).private().create(directory);
    let file =
        || OpenOptions::new().write(true).create_new(true).private().open(directory.join(FILE));
    made.and_then(|()| file()).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_first_time_once_and_never_where_that_cannot_be_noted() {
        let home = tempfile::tempdir().unwrap();
        let directory = home.path().join("state/warren");
        assert_eq!([is_first(&directory), is_first(&directory)], [true, false]);
        assert!(!is_first(Path::new("/dev/null/warren")));
    }
}

//! One client's attachment to one session: a position in the session's log.
//!
//! A viewer takes little memory and holds no output. It is sent the output after its position as
//! fast as the client reads. A viewer that falls behind slows nobody down: it gets nothing until it
//! has room again, then a snapshot of the screen and the output after the snapshot.

use std::time::{Duration, Instant};

use crate::terminal::log::{Chunks, Log};

/// A viewer without room lags once more than this many bytes wait for it.
pub const BACKLOG: u64 = 256 * 1024;
/// The default time that a lagging viewer may be without room before it is dropped.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes in one step. A longer chunk is sent alone.
pub const STEP: u64 = 64 * 1024;

/// The id of a viewer, chosen by the caller that attaches it and never used twice in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewerId(pub u64);

/// Where a viewer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After the chunk with this number, which the client saw last. If the log cannot go on from
    /// there, with a snapshot.
    After(u64),
    /// With a snapshot.
    Snapshot,
}

/// The next thing to do for a viewer.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// Send the message that begins the history, without a snapshot: the output goes on after this
    /// number. This step comes at most once, as the first.
    Resumed {
        /// The number of the chunk that the client saw last.
        after: u64,
    },
    /// Send these chunks, each with its number. They count as sent.
    Frames(Chunks<'a>),
    /// Send a snapshot: in the message that begins the history to a new viewer, after the notice
    /// `output_lagged` to a viewer that lagged. This step is repeated until the caller reports the
    /// snapshot with [`Viewer::resynced`].
    Resync {
        /// The number of chunks that the client misses, up to the end of the log; 0 for a new
        /// viewer.
        skipped_chunks: u64,
        /// Whether the viewer is new.
        first: bool,
    },
    /// Do nothing until there is more output, or room, or the time of [`Viewer::poll_timeout`].
    Wait,
    /// End the stream with the notice `output_backpressure`: the viewer had no room for too long.
    /// No other step follows.
    Dropped,
}

/// A position in a session's log, and whether its viewer keeps up.
#[derive(Debug, Clone)]
pub struct Viewer {
    /// The number of the chunk that was sent last, or that the last snapshot shows.
    position: u64,
    stage: Stage,
    patience: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// The viewer is new, and nothing was sent to it yet.
    Starting { after: Option<u64>, since: Instant },
    /// The viewer is sent all output.
    Following,
    /// The viewer needs a snapshot, and room for it.
    Behind { first: bool, since: Instant },
    /// The viewer was dropped.
    Over,
}

impl Viewer {
    /// A new viewer of the session with this log. If `start` names a number that the log has not
    /// assigned yet, the number comes from before a restart and is ignored, even if the log soon
    /// reaches it. The viewer is dropped when it has no room for longer than `patience`.
    pub fn new(start: Start, patience: Duration, log: &Log, now: Instant) -> Self {
        // Judged now: until the first step the log may reach this number, with other output.
        let known = |after: &u64| *after <= log.last_seq();
        let after = match start {
            Start::After(after) => Some(after).filter(known),
            Start::Snapshot => None,
        };
        Self { position: 0, stage: Stage::Starting { after, since: now }, patience }
    }

    /// The next thing to do for the viewer. Call this whenever output or room has come, until it
    /// returns [`Step::Wait`]. The caller bounds its own queue to the client; `has_room` says
    /// whether the queue has room for one more step.
    pub fn next<'a>(&mut self, log: &'a Log, has_room: bool, now: Instant) -> Step<'a> {
        match self.stage {
            Stage::Starting { since, .. } | Stage::Behind { since, .. } if !has_room => {
                self.bear_with(since, now)
            }
            Stage::Starting { after, since } => self.begin(log, after, since),
            Stage::Behind { first, .. } => self.resync(log, first),
            Stage::Following => self.follow(log, has_room, now),
            Stage::Over => Step::Dropped,
        }
    }

    /// Notes that the viewer was sent a snapshot of the screen as it was after the chunk with this number.
    pub fn resynced(&mut self, seq: u64) {
        if self.stage != Stage::Over {
            self.position = seq;
            self.stage = Stage::Following;
        }
    }

    /// The time at which to call [`Self::next`] even if nothing has happened.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Starting { since, .. } | Stage::Behind { since, .. } => {
                Some(since + self.patience)
            }
            Stage::Following | Stage::Over => None,
        }
    }

    /// The number of the chunk that was sent last, or that the last snapshot shows.
    pub const fn position(&self) -> u64 {
        self.position
    }

    /// Whether the viewer is sent all output, and at most one step of it is still to be sent.
    pub fn is_near(&self, log: &Log) -> bool {
        self.stage == Stage::Following
            && log.after(self.position).is_ok()
            && log.bytes_after(self.position) <= STEP
    }

    fn bear_with(&mut self, since: Instant, now: Instant) -> Step<'static> {
        if now < since + self.patience {
            return Step::Wait;
        }
        self.stage = Stage::Over;
        Step::Dropped
    }

    fn begin(&mut self, log: &Log, after: Option<u64>, since: Instant) -> Step<'static> {
        if let Some(after) = after.filter(|after| log.after(*after).is_ok()) {
            self.resynced(after);
            return Step::Resumed { after };
        }
        // The patience counts from the attachment, however late the first room comes.
        self.stage = Stage::Behind { first: true, since };
        self.resync(log, true)
    }

    fn follow<'a>(&mut self, log: &'a Log, has_room: bool, now: Instant) -> Step<'a> {
        match log.after(self.position) {
            Ok(chunks) if has_room => self.frames(chunks),
            // A client that only pauses briefly is not sent a snapshot.
            Ok(_) if log.bytes_after(self.position) <= BACKLOG => Step::Wait,
            _ => self.fall_behind(log, has_room, now),
        }
    }

    fn frames<'a>(&mut self, chunks: Chunks<'a>) -> Step<'a> {
        let chunks = chunks.up_to(STEP);
        let Some(last) = chunks.last_seq() else { return Step::Wait };
        self.position = last;
        Step::Frames(chunks)
    }

    fn fall_behind(&mut self, log: &Log, has_room: bool, now: Instant) -> Step<'static> {
        self.stage = Stage::Behind { first: false, since: now };
        if has_room { self.resync(log, false) } else { Step::Wait }
    }

    fn resync(&self, log: &Log, first: bool) -> Step<'static> {
        let missed = log.last_seq().saturating_sub(self.position);
        Step::Resync { skipped_chunks: if first { 0 } else { missed }, first }
    }
}

#[cfg(test)]
mod tests;

//! One client's attachment to one session: a place in its log.
//!
//! A viewer costs next to nothing and holds no output. It is sent what follows its place as fast as
//! it takes it. One that falls behind slows nobody: it is sent nothing more until it has room, and
//! then a snapshot of the screen and what follows that.

use std::time::{Duration, Instant};

use crate::terminal::log::{Chunks, Log};

/// A viewer without room and with this many bytes to come lags.
pub const BACKLOG: u64 = 256 * 1024;
/// How long a lagging viewer may have no room until it is dropped, unless the daemon says otherwise.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// How many bytes one step has, at most; a chunk that is longer comes alone.
pub const STEP: u64 = 64 * 1024;

/// The id of a viewer, chosen by the caller that attaches it and never used twice in a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ViewerId(pub u64);

/// Where a viewer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// After the chunk of this number, which it saw last; with a snapshot where the log cannot go on
    /// from there.
    After(u64),
    /// With a snapshot.
    Snapshot,
}

/// What is to be done for a viewer now.
#[derive(Debug, Clone)]
pub enum Step<'a> {
    /// Once, first of all, where no snapshot is needed: the history without one, which goes on after
    /// this number.
    Resumed {
        /// The number that it saw last.
        after: u64,
    },
    /// These chunks are to be sent, each with its number. They count as sent.
    Frames(Chunks<'a>),
    /// A snapshot is to be sent: with the history to a new viewer, with the notice `output_lagged` to
    /// a viewer that lagged. [`Viewer::resynced`] says that it was; until then this step is repeated.
    Resync {
        /// How many chunks it will have missed, up to the end of the log; 0 for a new viewer.
        skipped_chunks: u64,
        /// Whether it has just come.
        first: bool,
    },
    /// Nothing, until there is more output, or room, or it is [`Viewer::poll_timeout`].
    Wait,
    /// It had no room for too long: its stream ends with the notice `output_backpressure`. Nothing
    /// follows.
    Dropped,
}

/// A place in a session's log, and whether its viewer keeps up.
#[derive(Debug, Clone)]
pub struct Viewer {
    /// The number of the chunk that it was sent last.
    place: u64,
    stage: Stage,
    patience: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// It has come, and was told nothing yet.
    Starting { after: Option<u64>, since: Instant },
    /// It is sent everything.
    Following,
    /// It needs a snapshot, and room for it.
    Behind { first: bool, since: Instant },
    /// It was let go.
    Over,
}

impl Viewer {
    /// One that comes now, to a session whose log is as it is now: a number that was not given yet is
    /// of another life, even if it is given soon. It is let go when it has no room for longer than
    /// `patience`.
    pub fn new(start: Start, patience: Duration, log: &Log, now: Instant) -> Self {
        let known = |after: &u64| *after <= log.last_seq();
        let after = match start {
            Start::After(after) => Some(after).filter(known),
            Start::Snapshot => None,
        };
        Self { place: 0, stage: Stage::Starting { after, since: now }, patience }
    }

    /// What is to be done for it now. To be asked whenever output has come, or room, until it is
    /// [`Step::Wait`]. Who asks keeps its own queue to the client bounded, and says here whether
    /// there is room in it for one more step.
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

    /// It was sent a snapshot of the screen as it was after the chunk of this number.
    pub fn resynced(&mut self, seq: u64) {
        if self.stage != Stage::Over {
            self.place = seq;
            self.stage = Stage::Following;
        }
    }

    /// When it is to be asked again although nothing has happened.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.stage {
            Stage::Starting { since, .. } | Stage::Behind { since, .. } => {
                Some(since + self.patience)
            }
            Stage::Following | Stage::Over => None,
        }
    }

    /// The number of the chunk that it was sent last, or that its snapshot shows.
    pub const fn place(&self) -> u64 {
        self.place
    }

    /// Whether it is sent everything, and lacks no more than one step of it.
    pub fn is_near(&self, log: &Log) -> bool {
        self.stage == Stage::Following
            && log.after(self.place).is_ok()
            && log.bytes_after(self.place) <= STEP
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
        self.stage = Stage::Behind { first: true, since };
        self.resync(log, true)
    }

    fn follow<'a>(&mut self, log: &'a Log, has_room: bool, now: Instant) -> Step<'a> {
        match log.after(self.place) {
            Ok(chunks) if has_room => self.frames(chunks),
            Ok(_) if log.bytes_after(self.place) <= BACKLOG => Step::Wait,
            _ => self.fall_behind(log, has_room, now),
        }
    }

    fn frames<'a>(&mut self, chunks: Chunks<'a>) -> Step<'a> {
        let chunks = chunks.up_to(STEP);
        let Some(last) = chunks.last_seq() else { return Step::Wait };
        self.place = last;
        Step::Frames(chunks)
    }

    fn fall_behind(&mut self, log: &Log, has_room: bool, now: Instant) -> Step<'static> {
        self.stage = Stage::Behind { first: false, since: now };
        if has_room { self.resync(log, false) } else { Step::Wait }
    }

    fn resync(&self, log: &Log, first: bool) -> Step<'static> {
        let missed = log.last_seq().saturating_sub(self.place);
        Step::Resync { skipped_chunks: if first { 0 } else { missed }, first }
    }
}

#[cfg(test)]
mod tests;

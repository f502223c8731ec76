//! The inputs of the machine, in order. Adding one never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ::session::team::{Effect, TeamError};
use protocol::workspace::SessionId;
use protocol::workspace::TurnOutcome;
use tokio::{
    sync::{Notify, oneshot, watch},
    time::{sleep_until, timeout},
};
use uuid::Uuid;
use workspace::Refusal;

use crate::core::{Core, Moment, refusal};

/// The most requests that may wait for the machine. A caller waits for each.
pub(crate) const ASKS: usize = 256;
/// The most notices from sessions that may wait while the store fails.
pub(crate) const NOTICES: usize = 16 * 1024;
/// The most bytes of text in these notices. A text that does not fit is left out.
pub(crate) const TEXT: usize = 64 << 20;
/// The most inputs that are handled and stored in one round.
const AT_ONCE: usize = 256;
/// The deadline of an answer, which has to wait for the store.
const PATIENCE: Duration = Duration::from_secs(30);
/// The text in place of a text that did not fit.
pub(crate) const LEFT_OUT: &str =
    "[the text is lost: it could not be written down, and there were too many]";

/// The inputs that wait for the machine.
#[derive(Default)]
pub(crate) struct Queue {
    waiting: Mutex<Backlog>,
    rung: Notify,
    reports: watch::Sender<u64>,
}

#[derive(Default)]
struct Backlog {
    inputs: VecDeque<Input>,
    asks: usize,
    notices: usize,
    bytes: usize,
}

/// An input of the machine.
pub(crate) enum Input {
    Ask(Ask),
    SessionNotice(SessionNotice),
}

/// A request. It calls the machine, and returns the effects and the way to tell its caller whether
/// the changes are stored.
pub(crate) type Ask = Box<dyn FnOnce(&mut Core, Moment) -> (Vec<Effect>, Tell) + Send>;
/// Tells the caller that the changes are stored; `Err` says why they cannot be.
pub(crate) type Tell = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// Something that happened in a session. It is applied again if its changes could not be stored.
/// `at` is in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SessionNotice {
    /// A turn begins whose prompt is this message.
    Begun {
        team: Uuid,
        seq: u64,
        session: Uuid,
    },
    /// The session had no room for this message.
    NotTaken {
        team: Uuid,
        seq: u64,
        session: Uuid,
    },
    /// A turn of a leader begins whose prompt gives it results.
    NewsBegun {
        leader: Uuid,
    },
    /// The leader had no room for a prompt with results.
    NewsNotTaken {
        leader: Uuid,
    },
    /// A wait has returned these results, each named by its team worker and its number.
    Heard(Vec<(Uuid, u64)>),
    Started {
        session: Uuid,
        turn: u64,
        at: u64,
    },
    Ended {
        session: Uuid,
        turn: u64,
        outcome: TurnOutcome,
        text: String,
        at: u64,
    },
    Gone {
        session: Uuid,
        at: u64,
    },
    /// A waiting caller may have left.
    Left,
}

impl SessionNotice {
    pub(crate) fn ended(
        session: SessionId,
        turn: u64,
        ok: bool,
        text: Option<String>,
        at: u64,
    ) -> Self {
        let outcome = if ok { TurnOutcome::Completed } else { TurnOutcome::Failed };
        let nothing = if ok { "" } else { "the turn failed" };
        let text = text.unwrap_or_else(|| nothing.to_owned());
        Self::Ended { session: session.uuid(), turn, outcome, text, at }
    }

    /// The session that the notice is about; `None` for notices about news or waits.
    pub(crate) fn session(&self) -> Option<Uuid> {
        match *self {
            Self::Begun { session, .. }
            | Self::NotTaken { session, .. }
            | Self::Started { session, .. }
            | Self::Ended { session, .. }
            | Self::Gone { session, .. } => Some(session),
            Self::NewsBegun { .. } | Self::NewsNotTaken { .. } | Self::Heard(_) | Self::Left => {
                None
            }
        }
    }

    /// For the log, which must not have the agents' texts.
    const fn name(&self) -> &'static str {
        match self {
            Self::Begun { .. } => "begun",
            Self::NotTaken { .. } => "not taken",
            Self::NewsBegun { .. } => "news begun",
            Self::NewsNotTaken { .. } => "news not taken",
            Self::Heard(_) => "heard",
            Self::Started { .. } => "started",
            Self::Ended { .. } => "ended",
            Self::Gone { .. } => "gone",
            Self::Left => "left",
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Ended { text, .. } => text.len(),
            _ => 0,
        }
    }
}

/// Calls the machine with `run`, and returns its answer when the changes are stored. If the caller
/// leaves, the call is carried out all the same.
pub(crate) async fn ask<T: Send + 'static>(
    queue: &Queue,
    run: impl FnOnce(&mut Core, Moment) -> (Result<T, TeamError>, Vec<Effect>) + Send + 'static,
) -> Result<T, Refusal> {
    let (answer, answered) = oneshot::channel();
    let ask: Ask = Box::new(move |core, moment| {
        let (given, effects) = run(core, moment);
        let tell: Tell = Box::new(move |stored| {
            let given = given.map_err(refusal);
            let stored = stored.map_err(|why| Refusal::Failed(not_kept(why)));
            let _gone = answer.send(stored.and(given));
        });
        (effects, tell)
    });
    queue.ask(ask)?;
    let late =
        || Refusal::Failed("the store of teams does not answer; it may be done later".into());
    let closed = || Refusal::Failed("the workspace is shutting down".into());
    timeout(PATIENCE, answered).await.map_err(|_| late())?.map_err(|_| closed())?
}

pub(crate) fn not_kept(why: &str) -> String {
    format!("it is not done, since it cannot be written down: {why}")
}

impl Queue {
    /// Adds a notice. If too many are waiting, the new one is logged and dropped.
    pub(crate) fn tell(&self, notice: SessionNotice) {
        let mut waiting = self.lock();
        if waiting.notices >= NOTICES {
            // Memory has a bound even if the store fails for days.
            let (what, session) = (notice.name(), notice.session().map(SessionId::from_uuid));
            tracing::error!(
                what,
                ?session,
                "teams are not told: too much waits to be written down"
            );
            return;
        }
        let notice = fitted(notice, TEXT.saturating_sub(waiting.bytes));
        waiting.count(&notice);
        waiting.inputs.push_back(Input::SessionNotice(notice));
        drop(waiting);
        self.rung.notify_one();
    }

    fn ask(&self, ask: Ask) -> Result<(), Refusal> {
        let mut waiting = self.lock();
        if waiting.asks >= ASKS {
            let what = "requests about teams that wait to be written down";
            return Err(Refusal::TooMany { what, most: ASKS });
        }
        waiting.asks += 1;
        waiting.inputs.push_back(Input::Ask(ask));
        drop(waiting);
        self.rung.notify_one();
        Ok(())
    }

    /// Puts back notices that could not be stored, in their order, before all others.
    pub(crate) fn put_back(&self, notices: Vec<SessionNotice>) {
        let mut waiting = self.lock();
        for notice in notices.into_iter().rev() {
            waiting.count(&notice);
            waiting.inputs.push_front(Input::SessionNotice(notice));
        }
        drop(waiting);
        self.rung.notify_one();
    }

    /// Takes the inputs that wait, at most [`AT_ONCE`], or waits for the next one. Empty once `deadline` has
    /// passed.
    pub(crate) async fn next(&self, deadline: Option<Instant>) -> Vec<Input> {
        loop {
            let taken = self.lock().take();
            if !taken.is_empty() {
                return taken;
            }
            let Some(deadline) = deadline else {
                self.rung.notified().await;
                continue;
            };
            tokio::select! {
                () = self.rung.notified() => {}
                () = sleep_until(deadline.into()) => return Vec::new(),
            }
        }
    }

    /// Notes that reports of the outpost were stored.
    pub(crate) fn reported(&self) {
        self.reports.send_modify(|reports| *reports = reports.wrapping_add(1));
    }

    /// Changes whenever reports of the outpost have been stored.
    pub(crate) fn reports(&self) -> watch::Receiver<u64> {
        self.reports.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Backlog> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backlog {
    fn count(&mut self, notice: &SessionNotice) {
        self.notices += 1;
        self.bytes += notice.bytes();
    }

    fn take(&mut self) -> Vec<Input> {
        // One transaction stores a round, so a round must stay small.
        let most = self.inputs.len().min(AT_ONCE);
        let taken: Vec<_> = self.inputs.drain(..most).collect();
        for input in &taken {
            match input {
                Input::Ask(_) => self.asks -= 1,
                Input::SessionNotice(notice) => {
                    self.notices -= 1;
                    self.bytes -= notice.bytes();
                }
            }
        }
        taken
    }
}

fn fitted(mut notice: SessionNotice, room: usize) -> SessionNotice {
    if let SessionNotice::Ended { text, .. } = &mut notice
        && text.len() > room
    {
        *text = LEFT_OUT.to_owned();
    }
    notice
}

/// Reports, when it is dropped, that a waiting caller may have left.
pub(crate) struct LeaveNotice(pub(crate) Arc<Queue>);

impl Drop for LeaveNotice {
    fn drop(&mut self) {
        self.0.tell(SessionNotice::Left);
    }
}

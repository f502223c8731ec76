//! The inputs of the machine, in order. Putting one in never waits.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use ::session::team::{Effect, TeamError};
use protocol::workspace::SessionId;
use protocol::workspace::TurnOutcome;
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep_until, timeout},
};
use uuid::Uuid;

use super::core::{Core, Moment, refusal};
use crate::refusal::Refusal;

/// The most questions that may wait for the machine. A caller waits for each.
pub(super) const ASKS: usize = 256;
/// The most events of sessions that may wait while the store takes none.
pub(super) const TOLD: usize = 16 * 1024;
/// The most bytes of texts in them. A text that does not fit is left out.
pub(super) const TEXT: usize = 64 << 20;
/// So much is kept in one go.
const AT_ONCE: usize = 256;
/// How long an answer may take: as long as the store takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// What stands for a text that did not fit.
pub(super) const LEFT_OUT: &str =
    "[the text is lost: it could not be written down, and there were too many]";

/// What waits for the machine.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    rung: Notify,
}

#[derive(Default)]
struct Waiting {
    inputs: VecDeque<Input>,
    asks: usize,
    told: usize,
    bytes: usize,
}

/// Something to be said to the machine.
pub(super) enum Input {
    Ask(Ask),
    SessionNotice(SessionNotice),
}

/// A question: what it changes, and how its caller is told that it is kept, or cannot be.
pub(super) type Ask = Box<dyn FnOnce(&mut Core, Moment) -> (Vec<Effect>, Tell) + Send>;
/// Tells the caller; `Err` says why it cannot be kept.
pub(super) type Tell = Box<dyn FnOnce(Result<(), &str>) + Send>;

/// What happened in a session. It is said again, should it not be kept. Times are in milliseconds
/// since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SessionNotice {
    /// The turn begins with which a message was to be delivered.
    Begun {
        team: Uuid,
        seq: u64,
        session: Uuid,
    },
    /// There was no room for it.
    NotTaken {
        team: Uuid,
        seq: u64,
        session: Uuid,
    },
    /// The turn begins with which a leader is told of results.
    NewsBegun {
        leader: Uuid,
    },
    /// There was no room for that.
    NewsNotTaken {
        leader: Uuid,
    },
    /// A waiting caller has been told these results: worker and number.
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
    /// A caller waits no more.
    Left,
}

impl SessionNotice {
    pub(super) fn ended(
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

    fn bytes(&self) -> usize {
        match self {
            Self::Ended { text, .. } => text.len(),
            _ => 0,
        }
    }
}

/// Asks the machine something; the answer comes when what it changed is kept. Who asks may go away.
pub(super) async fn ask<T: Send + 'static>(
    queue: &Queue,
    run: impl FnOnce(&mut Core, Moment) -> (Result<T, TeamError>, Vec<Effect>) + Send + 'static,
) -> Result<T, Refusal> {
    let (answer, answered) = oneshot::channel();
    let ask: Ask = Box::new(move |core, moment| {
        let (given, effects) = run(core, moment);
        let tell: Tell = Box::new(move |kept| {
            let given = given.map_err(refusal);
            let kept = kept.map_err(|why| Refusal::Failed(not_kept(why)));
            let _gone = answer.send(kept.and(given));
        });
        (effects, tell)
    });
    queue.ask(ask)?;
    let late =
        || Refusal::Failed("the store of teams does not answer; it may be done later".into());
    let closed = || Refusal::Failed("the workspace is shutting down".into());
    timeout(PATIENCE, answered).await.map_err(|_| late())?.map_err(|_| closed())?
}

pub(super) fn not_kept(why: &str) -> String {
    format!("it is not done, since it cannot be written down: {why}")
}

impl Queue {
    /// Something happened.
    pub(super) fn tell(&self, told: SessionNotice) {
        let mut waiting = self.lock();
        if waiting.told >= TOLD {
            tracing::error!(?told, "teams are not told: too much waits to be written down");
            return;
        }
        let told = fitted(told, TEXT.saturating_sub(waiting.bytes));
        waiting.count(&told);
        waiting.inputs.push_back(Input::SessionNotice(told));
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

    /// Puts back what was taken and could not be kept, in its order, before all else.
    pub(super) fn put_back(&self, told: Vec<SessionNotice>) {
        let mut waiting = self.lock();
        for told in told.into_iter().rev() {
            waiting.count(&told);
            waiting.inputs.push_front(Input::SessionNotice(told));
        }
        drop(waiting);
        self.rung.notify_one();
    }

    /// What waits now, or the next thing that comes; nothing when it is time for something else.
    pub(super) async fn next(&self, deadline: Option<Instant>) -> Vec<Input> {
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

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn count(&mut self, told: &SessionNotice) {
        self.told += 1;
        self.bytes += told.bytes();
    }

    fn take(&mut self) -> Vec<Input> {
        let most = self.inputs.len().min(AT_ONCE);
        let taken: Vec<_> = self.inputs.drain(..most).collect();
        for input in &taken {
            match input {
                Input::Ask(_) => self.asks -= 1,
                Input::SessionNotice(told) => {
                    self.told -= 1;
                    self.bytes -= told.bytes();
                }
            }
        }
        taken
    }
}

fn fitted(mut told: SessionNotice, room: usize) -> SessionNotice {
    if let SessionNotice::Ended { text, .. } = &mut told
        && text.len() > room
    {
        *text = LEFT_OUT.to_owned();
    }
    told
}

/// Reports, when it is dropped, that a waiting caller may have left.
pub(super) struct Leaving(pub(super) Arc<Queue>);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.tell(SessionNotice::Left);
    }
}

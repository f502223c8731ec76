//! The audit log: who opened, typed into, killed, wrote or deleted something. It does not record
//! typed text.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, Receiver, SyncSender},
    },
    thread,
    time::{Duration, Instant},
};

use protocol::workspace::SessionId;
use store::{Action, AuditStore};

use crate::refusal::Refusal;

/// The most notes that may wait to be written. Further notes are lost, and the log says so.
const WAITING: usize = 4096;
/// The least time between two notes that the same client types into a session.
const BETWEEN_TYPING: Duration = Duration::from_secs(60);
/// The longest target or outcome that is noted, in bytes: room for two paths. Longer ones are cut,
/// because clients can make both of any length.
const LONGEST: usize = 10 * 1024;
/// The number of (typist, session) pairs whose last audit time is kept.
const TYPISTS: usize = 4096;

/// The interface to the audit log. A caller never waits until a note is written.
pub struct Audit {
    notes: SyncSender<Note>,
    typed: Mutex<HashMap<(String, SessionId), Instant>>,
}

enum Note {
    Action(Action),
    /// Confirms that all notes before this one are written.
    Flush(SyncSender<()>),
}

impl Audit {
    /// Starts the writing thread, which ends when this is dropped.
    pub(crate) fn new(store: Arc<dyn AuditStore>) -> Self {
        let (notes, inbox) = mpsc::sync_channel(WAITING);
        // A thread of its own: storing blocks, and must still work while the runtime ends.
        thread::spawn(move || write(&*store, &inbox));
        Self { notes, typed: Mutex::default() }
    }

    /// Notes that `who` did `what` (such as `session.open`) to `target`, and how it went.
    pub fn note(&self, who: &str, what: &'static str, target: &str, outcome: &str) {
        let at = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
        let action = Action {
            at,
            who: who.to_owned(),
            what: what.to_owned(),
            target: shortened(target),
            outcome: shortened(outcome),
        };
        // A slow disk must not hold up the calls of clients.
        if self.notes.try_send(Note::Action(action)).is_err() {
            tracing::error!(
                who,
                what,
                target,
                "the audit log is behind: this is not written in it"
            );
        }
    }

    /// Notes an attempt and its result.
    pub fn note_outcome<T>(
        &self,
        who: &str,
        what: &'static str,
        target: &str,
        result: &Result<T, Refusal>,
    ) {
        match result {
            Ok(_) => self.note(who, what, target, "done"),
            Err(refusal) => self.note(who, what, target, &refusal.to_string()),
        }
    }

    /// Notes that `who` typed into a session: at first, then once a minute at most.
    pub fn typed(&self, who: &str, session: SessionId, now: Instant) {
        if self.admit_typing(who, session, now) {
            self.note(who, "session.type", &session.to_string(), "done");
        }
    }

    /// Waits until all earlier notes are written. It blocks.
    pub fn flush(&self) {
        let (done, wait) = mpsc::sync_channel(1);
        if self.notes.send(Note::Flush(done)).is_ok() {
            let _ended = wait.recv();
        }
    }

    /// Whether to note that a client types into a session: only if the last such note is old enough.
    fn admit_typing(&self, who: &str, session: SessionId, now: Instant) -> bool {
        let mut typed = self.typed.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (who.to_owned(), session);
        let is_recent = |at: &Instant| now.saturating_duration_since(*at) < BETWEEN_TYPING;
        if typed.get(&pair).is_some_and(is_recent) {
            return false;
        }
        if typed.len() >= TYPISTS {
            // Only at the bound, because this examines all pairs.
            typed.retain(|_, at| is_recent(at));
        }
        // A pair beyond the bound is not remembered, so its typing is noted each time.
        if typed.len() < TYPISTS {
            typed.insert(pair, now);
        }
        true
    }
}

fn shortened(text: &str) -> String {
    let end = text.floor_char_boundary(LONGEST);
    let more = if end < text.len() { "…" } else { "" };
    format!("{}{more}", &text[..end])
}

fn write(store: &dyn AuditStore, notes: &Receiver<Note>) {
    for note in notes {
        match note {
            Note::Action(action) => {
                if let Err(error) = store.add_action(&action) {
                    tracing::error!(?action, error = %base::error::chain(&error), "not audited");
                }
            }
            Note::Flush(done) => drop(done.send(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use store::VolatileStore;

    use super::*;

    fn session(bits: u128) -> SessionId {
        SessionId::from_random(bits)
    }

    #[test]
    fn actions_are_recorded_in_order() {
        let store = Arc::new(VolatileStore::default());
        let audit = Audit::new(store.clone());
        audit.note("key-1", "session.open", "s", "done");
        audit.note("key-2", "session.kill", "s", "there is no session s");
        audit.flush();
        let actions = store.actions(10).unwrap();
        let notes: Vec<_> = actions.iter().map(|it| (&*it.who, &*it.what, &*it.outcome)).collect();
        assert_eq!(
            notes,
            [("key-2", "session.kill", "there is no session s"), ("key-1", "session.open", "done")]
        );
    }

    #[test]
    fn no_more_is_noted_of_what_a_client_says_than_the_bound() {
        let store = Arc::new(VolatileStore::default());
        let audit = Audit::new(store.clone());
        audit.note("key-1", "file.create", &"ä".repeat(LONGEST), "done");
        audit.flush();
        let action = store.actions(1).unwrap().remove(0);
        assert_eq!(action.target.len(), LONGEST + "…".len());
        assert!(action.target.ends_with("ä…"));
        assert_eq!(action.outcome, "done");
    }

    #[test]
    fn typing_is_noted_at_first_and_then_once_a_minute_for_each() {
        let audit = Audit::new(Arc::new(VolatileStore::default()));
        let now = Instant::now();
        assert!(audit.admit_typing("anna", session(1), now));
        assert!(!audit.admit_typing("anna", session(1), now + Duration::from_secs(59)));
        assert!(audit.admit_typing("anna", session(2), now));
        assert!(audit.admit_typing("ben", session(1), now));
        assert!(audit.admit_typing("anna", session(1), now + Duration::from_secs(60)));
    }

    #[test]
    fn no_more_typists_are_remembered_than_the_bound() {
        let audit = Audit::new(Arc::new(VolatileStore::default()));
        let now = Instant::now();
        for bits in 0..TYPISTS as u128 + 10 {
            assert!(audit.admit_typing("anna", session(bits), now));
        }
        assert_eq!(audit.typed.lock().unwrap().len(), TYPISTS);
        assert!(audit.admit_typing("anna", session(1 << 64), now + BETWEEN_TYPING));
        assert_eq!(audit.typed.lock().unwrap().len(), 1);
    }
}

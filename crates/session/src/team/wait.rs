//! Waiting for the results of team workers: answered, timed out, resumed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use uuid::Uuid;

use super::{
    Called, Effect, Membership, TeamError, Teams,
    effect::Out,
    record::{Key, Slot, WaitRecord},
};

/// The longest that a caller may wait at once. It can resume the wait.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The subject of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitFor {
    /// In this team.
    pub team: Uuid,
    /// For a result of each of these workers; without them, of all that have been given something
    /// to do. A worker that has done what it was given counts at once, with its newest result.
    pub workers: Option<Vec<Uuid>>,
    /// The longest wait, 24 hours at most.
    pub timeout: Duration,
    /// The wait that is resumed, of which everything but the time-out stays as it was.
    pub resume: Option<Uuid>,
    /// The id of the wait if it is a new one.
    pub new_id: Uuid,
}

/// A waiting caller; unique until the daemon ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(pub(super) u64);

/// How a wait begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// There is nothing to wait for: this is the answer.
    Answered(Answer),
    /// An [`Effect::WaitAnswered`] comes for this caller, unless it
    /// [stops waiting](Teams::stop_waiting).
    Until(Caller),
}

/// The outcome of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// In this team.
    pub team: Uuid,
    /// The workers that have a result.
    pub finished: Vec<Finished>,
    /// The others.
    pub pending: Vec<Uuid>,
    /// When it timed out: what to resume it by.
    pub wait_id: Option<Uuid>,
}

/// A worker that has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// This worker.
    pub worker: Uuid,
    /// Which of its results: they ascend. 0: it ended without ever giving one.
    pub number: u64,
    /// Whether it went well.
    pub success: bool,
    /// Its result.
    pub result: Arc<str>,
}

impl Answer {
    /// Whether the time was over before all results were there.
    pub const fn timed_out(&self) -> bool {
        self.wait_id.is_some()
    }
}

impl Teams {
    /// Waits for results. A wait that times out tells its id: a caller that resumes it by that id gets all
    /// results since it began, as often as it asks. It is kept until it is one of the oldest of
    /// more than may be kept; those whose results were collected go first.
    ///
    /// # Errors
    /// When there is no such team, worker or wait, or too many wait.
    pub fn wait(&mut self, ask: &WaitFor, now: Instant, at: u64) -> Called<Waiting> {
        let mut out = Out::default();
        let waiting = match ask.resume {
            Some(id) => self.resume(ask, id, now, &mut out)?,
            None => self.begin(ask, now, at, &mut out)?,
        };
        Ok((waiting, self.finish(out)))
    }

    /// A caller went away. A wait whose id nobody knows goes with it.
    pub fn stop_waiting(&mut self, caller: Caller) -> Vec<Effect> {
        let mut out = Out::default();
        if let Some(id) = self.waits.leave(caller) {
            self.drop_unknown(id, &mut out);
        }
        self.finish(out)
    }

    /// When [`Teams::handle_timeout`] is to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.waits.next_deadline()
    }

    /// Answers the callers whose time-out is over.
    pub fn handle_timeout(&mut self, now: Instant) -> Vec<Effect> {
        let mut out = Out::default();
        while let Some((caller, id)) = self.waits.overdue(now) {
            if let Some(answer) = self.disclosed(id, &mut out) {
                out.say(Effect::WaitAnswered { caller, answer: Ok(answer) });
            }
        }
        self.finish(out)
    }

    /// A worker has a new result, or has ended: its waits go on, and some end.
    pub(super) fn fill(&mut self, place: Membership, out: &mut Out) {
        for id in self.waits.open_for(place.session) {
            self.refresh(id, out);
            self.answer_if_complete(id, out);
        }
    }

    fn begin(
        &mut self,
        ask: &WaitFor,
        now: Instant,
        at: u64,
        out: &mut Out,
    ) -> Result<Waiting, TeamError> {
        let record = self.draft(ask, at)?;
        if record.is_complete() {
            return Ok(Waiting::Answered(self.answer(&record)));
        }
        let id = record.id;
        if let Some(dropped) = self.waits.insert(record, self.limits.waits)? {
            self.release_all(&dropped, out);
        }
        Ok(self.stay(id, ask.timeout, now, out))
    }

    fn draft(&self, ask: &WaitFor, made_at: u64) -> Result<WaitRecord, TeamError> {
        let team = self.team(ask.team)?;
        let workers = match &ask.workers {
            Some(workers) => workers.iter().copied().collect(),
            None => team.with_work(),
        };
        let slot = |worker| {
            let seat = team.worker(worker)?;
            let (until, after) = (seat.newest(), seat.kept.results);
            Ok((worker, seat.slot(Slot::Open { until, after })))
        };
        let slots = workers.into_iter().map(slot).collect::<Result<_, TeamError>>()?;
        Ok(WaitRecord { id: ask.new_id, team: ask.team, made_at, slots, collected: false })
    }

    fn resume(
        &mut self,
        ask: &WaitFor,
        id: Uuid,
        now: Instant,
        out: &mut Out,
    ) -> Result<Waiting, TeamError> {
        self.team(ask.team)?;
        self.waits.check(id, ask.team, self.limits.callers)?;
        self.refresh(id, out);
        self.answer_if_complete(id, out);
        let record = self.waits.get(id).filter(|record| record.is_complete());
        match record.map(|record| self.answer(record)) {
            Some(answer) => {
                self.collect(id, out);
                Ok(Waiting::Answered(answer))
            }
            None => Ok(self.stay(id, ask.timeout, now, out)),
        }
    }

    /// Waits on, or not when there is no time for it.
    fn stay(&mut self, id: Uuid, timeout: Duration, now: Instant, out: &mut Out) -> Waiting {
        let deadline = now.checked_add(timeout.min(LONGEST)).filter(|deadline| *deadline > now);
        let answer = if deadline.is_none() { self.disclosed(id, out) } else { None };
        let wait = || Waiting::Until(self.waits.join(id, deadline.unwrap_or(now)));
        answer.map_or_else(wait, Waiting::Answered)
    }

    /// The state of a wait that timed out; from now on a caller knows its id.
    fn disclosed(&mut self, id: Uuid, out: &mut Out) -> Option<Answer> {
        self.waits.disclose(id);
        let record = self.waits.get(id)?;
        out.change(Key::wait(record.team, id));
        Some(Answer { wait_id: Some(id), ..self.answer(record) })
    }

    fn refresh(&mut self, id: Uuid, out: &mut Out) {
        let Some(team) = self.waits.get(id).and_then(|record| self.teams.get(&record.team)) else {
            return;
        };
        let seated = |worker: &Uuid| team.seats.get(worker);
        let changed = self.waits.update(id, |worker, slot| {
            seated(worker).map_or(Slot::Done(0), |seat| seat.slot(slot))
        });
        if changed && self.waits.is_disclosed(id) {
            out.change(Key::wait(team.kept.id, id));
        }
    }

    fn answer_if_complete(&mut self, id: Uuid, out: &mut Out) {
        let Some(record) = self.waits.get(id).filter(|record| record.is_complete()) else { return };
        let answer = self.answer(record);
        let callers = self.waits.dismiss(id);
        if !callers.is_empty() {
            self.collect(id, out);
        }
        for caller in callers {
            out.say(Effect::WaitAnswered { caller, answer: Ok(answer.clone()) });
        }
        self.drop_unknown(id, out);
    }

    fn collect(&mut self, id: Uuid, out: &mut Out) {
        if let Some(team) = self.waits.collect(id).filter(|_| self.waits.is_disclosed(id)) {
            out.change(Key::wait(team, id));
        }
    }

    fn drop_unknown(&mut self, id: Uuid, out: &mut Out) {
        if let Some(dropped) = self.waits.drop_unknown(id) {
            self.release_all(&dropped, out);
        }
    }

    /// A wait has ended, and no longer needs its results.
    fn release_all(&mut self, dropped: &WaitRecord, out: &mut Out) {
        out.change(Key::wait(dropped.team, dropped.id));
        for (&session, slot) in &dropped.slots {
            if let Slot::Done(number) = slot {
                self.release(Membership { team: dropped.team, session }, *number, out);
            }
        }
    }

    fn answer(&self, record: &WaitRecord) -> Answer {
        let team = record.team;
        let mut answer = Answer { team, finished: Vec::new(), pending: Vec::new(), wait_id: None };
        for (&worker, slot) in &record.slots {
            match slot {
                Slot::Open { .. } => answer.pending.push(worker),
                Slot::Done(number) => answer.finished.push(self.finished(team, worker, *number)),
            }
        }
        answer
    }

    fn finished(&self, team: Uuid, worker: Uuid, number: u64) -> Finished {
        let kept = self.teams.get(&team).and_then(|team| team.text_of(worker, number));
        let none = || (false, Arc::from("the session ended without a result"));
        let (success, result) = kept.unwrap_or_else(none);
        Finished { worker, number, success, result }
    }
}

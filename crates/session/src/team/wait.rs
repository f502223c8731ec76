//! Waits for the results of team workers: answered, timed out, resumed.

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

/// The longest time of one wait. The caller can resume the wait afterwards.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The subject of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitFor {
    /// The team.
    pub team: Uuid,
    /// The team workers of which a result is awaited; `None` for all that have work to do or done.
    /// A team worker without pending work counts at once, with its newest result.
    pub workers: Option<Vec<Uuid>>,
    /// The time limit, 24 hours at most.
    pub timeout: Duration,
    /// The wait to resume. Only its time-out is taken from this request; all else stays as it was.
    pub resume: Option<Uuid>,
    /// The id for the wait if it is a new one.
    pub new_id: Uuid,
}

/// A waiting caller. The number is unique until the machine is rebuilt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Caller(pub(super) u64);

/// The beginning of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Waiting {
    /// The wait is over at once, with this answer.
    Answered(Answer),
    /// An [`Effect::WaitAnswered`] will come for this caller, unless it [stops
    /// waiting](Teams::stop_waiting).
    Until(Caller),
}

/// The outcome of a wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The team.
    pub team: Uuid,
    /// The team workers that have a result.
    pub finished: Vec<Finished>,
    /// The other team workers of the wait.
    pub pending: Vec<Uuid>,
    /// If the wait timed out: the id to resume it by.
    pub wait_id: Option<Uuid>,
}

/// A team worker that has a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// The team worker.
    pub worker: Uuid,
    /// The number of the result, ascending for each team worker; 0 if the team worker ended without
    /// any result.
    pub number: u64,
    /// Whether the work succeeded.
    pub success: bool,
    /// The text of the result.
    pub result: Arc<str>,
}

impl Answer {
    /// Whether the time-out came before all results.
    pub const fn timed_out(&self) -> bool {
        self.wait_id.is_some()
    }
}

impl Teams {
    /// Waits for results. A wait that times out reports its id. A caller that resumes the wait by
    /// that id gets all results since the wait began, as often as it calls. When there are too many
    /// waits, the oldest without a caller is dropped, preferably one whose results were collected.
    ///
    /// # Errors
    /// When there is no such team, team worker or wait, or too many callers wait.
    pub fn wait(&mut self, ask: &WaitFor, now: Instant, at: u64) -> Called<Waiting> {
        let mut out = Out::default();
        let waiting = match ask.resume {
            Some(id) => self.resume(ask, id, now, &mut out)?,
            None => self.begin(ask, now, at, &mut out)?,
        };
        Ok((waiting, self.finish(out)))
    }

    /// Ends a caller's waiting. A wait whose id was never reported ends with its last caller.
    pub fn stop_waiting(&mut self, caller: Caller) -> Vec<Effect> {
        let mut out = Out::default();
        if let Some(id) = self.waits.leave(caller) {
            self.drop_unknown(id, &mut out);
        }
        self.finish(out)
    }

    /// When to call [`Teams::handle_timeout`] next.
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

    /// Updates the waits for a team worker that has a new result or has ended. Waits that are now
    /// complete are answered.
    pub(super) fn fill(&mut self, membership: Membership, out: &mut Out) {
        for id in self.waits.open_for(membership.session) {
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
        // Answered without a stored wait: nobody needs an id to resume it.
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
            let member = team.worker(worker)?;
            // The result must answer all that was sent before the wait. A result from before the wait does not end
            // the wait while work is open.
            let (until, after) = (member.newest(), member.record.results);
            Ok((worker, member.slot(Slot::Open { until, after })))
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

    /// Lets the caller wait for the rest of the time, or answers at once if there is no time left.
    fn stay(&mut self, id: Uuid, timeout: Duration, now: Instant, out: &mut Out) -> Waiting {
        let deadline = now.checked_add(timeout.min(LONGEST)).filter(|deadline| *deadline > now);
        let answer = if deadline.is_none() { self.disclosed(id, out) } else { None };
        let wait = || Waiting::Until(self.waits.join(id, deadline.unwrap_or(now)));
        answer.map_or_else(wait, Waiting::Answered)
    }

    /// The answer of a wait that timed out. From now on a caller knows the wait's id, so the wait
    /// is stored.
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
        let changed = self.waits.update(id, |worker, slot| {
            team.members.get(worker).map_or(Slot::Done(0), |member| member.slot(slot))
        });
        if changed && self.waits.is_disclosed(id) {
            out.change(Key::wait(team.record.id, id));
        }
    }

    fn answer_if_complete(&mut self, id: Uuid, out: &mut Out) {
        let Some(record) = self.waits.get(id).filter(|record| record.is_complete()) else { return };
        let answer = self.answer(record);
        let callers = self.waits.dismiss(id);
        // Only an answer that somebody gets counts as collected.
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

    /// Handles the end of a wait, which no longer needs its results.
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
        let text = self.teams.get(&team).and_then(|team| team.text_of(worker, number));
        let none = || (false, Arc::from("the session ended without a result"));
        let (success, result) = text.unwrap_or_else(none);
        Finished { worker, number, success, result }
    }
}

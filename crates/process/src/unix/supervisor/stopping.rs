//! The end of one session: SIGHUP, then SIGTERM, then SIGKILL, until no process is left.

use std::{
    collections::HashSet,
    time::{Duration, Instant},
};

use rustix::process::Signal;
use uuid::Uuid;

use super::{events::Supervising, family::Family};
use crate::unix::{
    kernel::HAS_SUBREAPER,
    messages::Event,
    processes::{self, Stat},
};

/// The longest time for killing. Only a process stuck in the kernel takes longer.
const LONGEST_KILL: Duration = Duration::from_secs(5);
/// The time between two kills.
const KILL_AGAIN: Duration = Duration::from_millis(50);
/// The least time between two scans of all processes: during a stop, and otherwise.
const LOOK_AGAIN: Duration = Duration::from_millis(10);
const TIDY_AGAIN: Duration = Duration::from_secs(1);
/// The most times that new processes are searched for while the others are being stopped.
const ROUNDS: usize = 50;

/// A session that is being stopped.
pub(super) struct PendingStop {
    id: Uuid,
    pub(super) request: Option<u64>,
    stage: Stage,
    /// The time of the next stage.
    pub(super) next: Instant,
    grace: Duration,
}

#[derive(Clone, Copy)]
enum Stage {
    Beginning,
    HangingUp,
    Asking,
    Killing { until: Instant },
}

impl Supervising {
    /// Begins to stop a session. The answer follows when no process is left, or at the deadline.
    pub(super) fn stop(&mut self, request: Option<u64>, id: Uuid, grace: Duration) {
        // The stop begins after all waiting requests were handled, so that many stops share one
        // scan.
        let next = Instant::now();
        self.stops.push(PendingStop { id, request, stage: Stage::Beginning, next, grace });
    }

    /// Takes the steps that are due at this time or after the end of a process.
    pub(super) fn advance(&mut self, now: Instant) {
        self.expire_starts(now);
        let is_due = self.stops.iter().any(|stop| stop.next <= now);
        if !is_due && self.next_look().is_none_or(|at| at > now) {
            return;
        }
        let family = self.look();
        self.advance_stops(&family, now);
        // The next daemon has to hear of the sessions that end while there is none.
        if !self.is_holding {
            self.tidy(&family);
        }
    }

    /// The time of the next scan of all processes. `None` unless a process has ended.
    pub(super) fn next_look(&self) -> Option<Instant> {
        let after = match () {
            // Of the ends of orphans it hears only as a sub-reaper.
            () if !self.has_changed && HAS_SUBREAPER => return None,
            () if !self.stops.is_empty() => LOOK_AGAIN,
            () if self.sessions.values().any(|session| !session.is_alive) => TIDY_AGAIN,
            () => return None,
        };
        Some(self.last_scan + after)
    }

    fn advance_stops(&mut self, family: &Family, now: Instant) {
        let mut kill = HashSet::new();
        for mut stop in std::mem::take(&mut self.stops) {
            let left = family.of(stop.id).len();
            let is_over = left == 0 && !self.is_alive(stop.id);

            // A first process that is dead and not reaped is no longer in the family. The session is not over
            // before its end is reported.
            if is_over || stop.has_failed(now) {
                self.tell_stopped(&stop, left);
                continue;
            }
            if stop.next <= now && stop.advance(family, now) {
                kill.insert(stop.id);
            }
            self.stops.push(stop);
        }
        if !kill.is_empty() {
            self.kill_sessions(&kill);
        }
    }

    fn is_alive(&self, id: Uuid) -> bool {
        self.sessions.get(&id).is_some_and(|session| session.is_alive)
    }

    fn tell_stopped(&mut self, stop: &PendingStop, left: usize) {
        if let Some(request) = stop.request {
            let count = u32::try_from(left).unwrap_or(u32::MAX);
            self.tell(&Event::Done { request, count }, Vec::new());
        }
    }

    fn kill_sessions(&mut self, ids: &HashSet<Uuid>) {
        let sessions = self.sessions.iter().filter(|(id, _)| ids.contains(*id));
        sessions.filter_map(|(_, session)| session.group.as_ref()).for_each(|group| group.kill());
        self.kill_members(|family| ids.iter().flat_map(|id| family.of(*id)).copied().collect());
        // Descendants whose parents live end without a signal to this process: look again in any case.
        self.has_changed = true;
    }

    /// Sends SIGSTOP to all processes first, so that none can fork while the others die, then kills
    /// them.
    pub(super) fn kill_members(&mut self, whom: impl Fn(&Family) -> Vec<Stat>) {
        let mut held: HashSet<(u32, u64)> = HashSet::new();
        for _ in 0..ROUNDS {
            let family = self.look();
            let new = |stat: &Stat| !held.contains(&(stat.pid, stat.start_time));
            let new: Vec<_> = whom(&family).into_iter().filter(new).collect();
            if new.is_empty() {
                break;
            }
            send_all(&new, Signal::STOP);
            held.extend(new.iter().map(|stat| (stat.pid, stat.start_time)));
        }
        for (pid, start_time) in held {
            processes::signal_exactly(pid, start_time, Signal::KILL);
        }
    }

    /// Forgets sessions without any process.
    fn tidy(&mut self, family: &Family) {
        let is_over = |id: &Uuid| family.of(*id).is_empty();
        let ended = self.sessions.iter().filter(|(id, session)| !session.is_alive && is_over(id));
        let ended: Vec<Uuid> = ended.map(|(id, _)| *id).collect();
        for id in ended {
            if let Some(group) = self.sessions.remove(&id).and_then(|session| session.group) {
                group.remove();
            }
        }
    }
}

impl PendingStop {
    /// Goes on to the next stage. Returns whether to kill.
    fn advance(&mut self, family: &Family, now: Instant) -> bool {
        let half = self.grace / 2;
        self.stage = match self.stage {
            Stage::Beginning if !self.grace.is_zero() => {
                self.next = now + half;
                send_all(family.of(self.id), Signal::HUP);
                // A stopped process would not handle the signal.
                send_all(family.of(self.id), Signal::CONT);
                Stage::HangingUp
            }
            Stage::HangingUp => {
                self.next = now + half;
                send_all(family.of(self.id), Signal::TERM);
                send_all(family.of(self.id), Signal::CONT);
                Stage::Asking
            }
            Stage::Beginning | Stage::Asking => {
                self.next = now + KILL_AGAIN;
                Stage::Killing { until: now + LONGEST_KILL }
            }
            Stage::Killing { until } => {
                self.next = now + KILL_AGAIN;
                Stage::Killing { until }
            }
        };
        matches!(self.stage, Stage::Killing { .. })
    }

    fn has_failed(&self, now: Instant) -> bool {
        matches!(self.stage, Stage::Killing { until } if until <= now)
    }
}

fn send_all(to: &[Stat], signal: Signal) {
    for stat in to {
        processes::signal_exactly(stat.pid, stat.start_time, signal);
    }
}

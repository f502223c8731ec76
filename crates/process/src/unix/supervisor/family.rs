//! Assigns processes to sessions, and finds descendants that belong to none.

use std::collections::HashMap;

use uuid::Uuid;

use super::spawning::SessionProcesses;
use crate::unix::{
    cgroup::Groups,
    kernel::HAS_SUBREAPER,
    processes::{self, Stat},
};

/// A bound on lines of parents, longer than any real one. A scan does not show a single moment, so
/// the parents could form a circle.
const MOST_PARENTS: usize = 100_000;

/// The process that gets orphans where there is no sub-reaper.
const FIRST_PROCESS: u32 = 1;

/// All descendants of a supervisor at one scan.
pub(super) struct Family {
    members: HashMap<Uuid, Vec<Stat>>,
    all: Vec<Stat>,
}

/// The session of each examined process; `None` if it belongs to none.
type OwnerByPid = HashMap<u32, Option<Uuid>>;

struct FamilySearch<'a> {
    processes: HashMap<u32, Stat>,
    leaders: &'a HashMap<u32, Uuid>,
    /// The sessions by the id of the kernel's session, which is the id of the session's first
    /// process.
    begun: HashMap<u32, Uuid>,
    supervisor: u32,
    groups: &'a Groups,
    owners: OwnerByPid,
}

impl Family {
    pub(super) fn look(
        supervisor: u32,
        sessions: &HashMap<Uuid, SessionProcesses>,
        leaders: &HashMap<u32, Uuid>,
        groups: &Groups,
    ) -> Self {
        let mut begun: HashMap<_, _> = sessions.iter().map(|(id, it)| (it.pid, *id)).collect();
        // An id may be reused. Then it belongs to the living process.
        begun.extend(leaders.iter().map(|(pid, id)| (*pid, *id)));
        let owners = HashMap::new();
        let mut look = FamilySearch {
            processes: processes::all(),
            leaders,
            begun,
            supervisor,
            groups,
            owners,
        };
        if !HAS_SUBREAPER {
            look.adopt_orphans(sessions);
        }
        look.find_owners();
        look.finish()
    }

    /// The living processes of a session.
    pub(super) fn of(&self, id: Uuid) -> &[Stat] {
        self.members.get(&id).map_or(&[], Vec::as_slice)
    }

    /// All living descendants.
    pub(super) fn all(&self) -> &[Stat] {
        &self.all
    }
}

impl FamilySearch<'_> {
    /// Takes orphans of the sessions for children of the supervisor, as a sub-reaper has them.
    fn adopt_orphans(&mut self, sessions: &HashMap<Uuid, SessionProcesses>) {
        let began = self.processes.get(&self.supervisor).map_or(0, |stat| stat.start_time);
        let is_orphan = |stat: &&mut Stat| stat.parent == FIRST_PROCESS && stat.start_time >= began;
        for stat in self.processes.values_mut().filter(is_orphan) {
            let is_marked =
                || processes::marker(stat.pid).is_some_and(|id| sessions.contains_key(&id));
            if self.begun.contains_key(&stat.session) || is_marked() {
                stat.parent = self.supervisor;
            }
        }
    }

    fn find_owners(&mut self) {
        let pids: Vec<u32> = self.processes.keys().copied().collect();
        for pid in pids {
            // From the eldest on, as a child inherits the owner of its parent.
            for step in self.line_of(pid).into_iter().rev() {
                let owner = self.owner_of(step);
                self.owners.insert(step, owner);
            }
        }
    }

    /// A process and its parents, up to one with a known owner or the supervisor's child;
    /// empty if it does not descend from the supervisor.
    fn line_of(&self, pid: u32) -> Vec<u32> {
        let mut line = Vec::new();
        let mut next = pid;
        while line.len() < MOST_PARENTS {
            if next == self.supervisor || self.owners.contains_key(&next) {
                return line;
            }
            let Some(stat) = self.processes.get(&next) else { return Vec::new() };
            line.push(next);
            next = stat.parent;
        }
        Vec::new()
    }

    /// The session of a process, found by its descent. A process that lost its parents is found by
    /// its control group, kernel session or marker.
    fn owner_of(&self, pid: u32) -> Option<Uuid> {
        let stat = self.processes.get(&pid)?;
        let led = self.leaders.get(&pid).copied();
        let inherited = || self.owners.get(&stat.parent).copied().flatten();
        let begun = || self.begun.get(&stat.session).copied();
        let grouped = || self.groups.session_of(pid);
        // The surest sign first. The marker comes last: the process may have changed its environment.
        let known = led.or_else(inherited).or_else(grouped).or_else(begun);
        known.or_else(|| processes::marker(pid))
    }

    fn finish(self) -> Family {
        let mut family = Family { members: HashMap::new(), all: Vec::new() };
        for (pid, owner) in &self.owners {
            let Some(stat) = self.processes.get(pid).filter(|stat| !stat.is_dead) else { continue };
            family.all.push(*stat);
            if let Some(id) = owner {
                family.members.entry(*id).or_default().push(*stat);
            }
        }
        family
    }
}

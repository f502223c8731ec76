//! Two members with disks, a session that moves from one to the other, and everything that can go
//! wrong on the way.

use std::collections::VecDeque;

use super::super::{
    Arrival, ArrivalFact, ArrivalInput, ArrivalOutput, Departure, DepartureFact, DepartureInput,
    DepartureOutput, Word,
};

/// The turns of a session: those that ran, and the prompts that wait.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) done: Vec<u32>,
    pub(super) queue: Vec<u32>,
}

impl Session {
    pub(super) fn prompts(&self) -> Vec<u32> {
        self.done.iter().chain(&self.queue).copied().collect()
    }
}

/// A session's version: whether it is the other end's, and how often it has moved.
type Shown = (bool, u64);

#[derive(Debug, Clone)]
enum ToOther {
    Prepare { id: u64, moves: u64, session: Session },
    Take { id: u64 },
    Word { id: u64, word: Word },
}

#[derive(Debug, Clone, Copy)]
enum ToOwner {
    Prepared(u64),
    Taken(u64),
    Refused(u64),
    Status(u64),
}

/// The member that owns the session at first.
#[derive(Debug, Default)]
pub(super) struct Owner {
    pub(super) is_up: bool,
    // The disk.
    session: Option<Session>,
    left: Option<u64>,
    shown: Shown,
    // The memory.
    pub(super) runs: bool,
    departure: Option<(u64, Departure)>,
    keeping: Option<DepartureFact>,
}

/// The member that the session moves to.
#[derive(Debug, Default)]
pub(super) struct Other {
    pub(super) is_up: bool,
    // The disk.
    session: Option<Session>,
    stored: Option<(u64, u64, ArrivalFact)>,
    staged: Option<Session>,
    // The memory.
    pub(super) runs: bool,
    shown: Shown,
    arrival: Option<(u64, u64, Arrival)>,
    keeping: Option<ArrivalFact>,
    received: Option<Session>,
}

/// Both, and what is under way between them.
#[derive(Debug, Default)]
pub(super) struct World {
    pub(super) owner: Owner,
    pub(super) other: Other,
    to_other: VecDeque<ToOther>,
    to_owner: VecDeque<ToOwner>,
    next_move: u64,
    pub(super) acknowledged: u32,
    /// A fault in the rules, to see that it is noticed: a refusal is said and not stored.
    pub(super) forgets_refusals: bool,
}

impl World {
    pub(super) fn new() -> Self {
        let owner = Owner {
            is_up: true,
            runs: true,
            session: Some(Session::default()),
            ..Owner::default()
        };
        Self { owner, other: Other { is_up: true, ..Other::default() }, ..Self::default() }
    }

    /// Checks the rules that must hold at every moment.
    pub(super) fn check(&self) {
        assert!(!(self.owner.runs && self.other.runs), "two run it: {self:?}");
        let (ours, theirs) = (self.owner.owns(), self.other.session.is_some());
        assert!(!(ours && theirs), "two disks say that they own it: {self:?}");
    }

    /// The session, where it runs; none while nobody runs it.
    pub(super) fn running(&mut self) -> Option<&mut Session> {
        match (self.owner.runs, self.other.runs) {
            (true, _) => self.owner.session.as_mut(),
            (_, true) => self.other.session.as_mut(),
            _ => None,
        }
    }

    /// A client's prompt is acknowledged, where the session takes one.
    pub(super) fn prompt(&mut self) {
        let number = self.acknowledged;
        let freezes =
            self.owner.departure.as_ref().is_some_and(|(_, it)| *it == Departure::begin());
        let session = match freezes && self.owner.is_up {
            true => self.owner.session.as_mut(),
            false => self.running(),
        };
        if let Some(session) = session {
            session.queue.push(number);
            self.acknowledged += 1;
        }
    }

    pub(super) fn turn(&mut self) {
        if let Some(session) = self.running()
            && !session.queue.is_empty()
        {
            let prompt = session.queue.remove(0);
            session.done.push(prompt);
        }
    }

    pub(super) fn begin_move(&mut self) {
        if self.owner.runs && self.owner.departure.is_none() {
            self.next_move += 1;
            self.owner.departure = Some((self.next_move, Departure::begin()));
            self.owner.runs = false;
        }
    }

    pub(super) fn owner_hears(&mut self, input: DepartureInput) {
        let Some((id, departure)) = &mut self.owner.departure else { return };
        let (id, outputs) = (*id, departure.handle(input));
        for output in outputs {
            match output {
                DepartureOutput::Send => {
                    let session = self.owner.session.clone().unwrap_or_default();
                    let moves = self.owner.shown.1 + 1;
                    self.to_other.push_back(ToOther::Prepare { id, moves, session });
                }
                DepartureOutput::Keep(fact) => self.owner.keeping = Some(fact),
                DepartureOutput::Leave => self.owner_asks(),
                DepartureOutput::Run => self.owner.runs = true,
                DepartureOutput::Gone => {}
            }
        }
        if self.owner.departure.as_ref().is_some_and(|(_, departure)| departure.is_over()) {
            self.owner.departure = None;
        }
    }

    pub(super) fn owner_keeps(&mut self, is_kept: bool) {
        if let Some(fact) = self.owner.keeping.take() {
            if is_kept {
                self.owner.store(fact);
            }
            self.owner_hears(DepartureInput::Kept(is_kept));
        }
    }

    pub(super) fn owner_asks(&mut self) {
        if let Some((id, departure)) = &self.owner.departure
            && departure.has_left()
        {
            self.to_other.push_back(ToOther::Take { id: *id });
        }
    }

    pub(super) fn kill_owner(&mut self, stores_last: bool) {
        if let Some(fact) = self.owner.keeping.take().filter(|_| stores_last) {
            self.owner.store(fact);
        }
        (self.owner.is_up, self.owner.runs, self.owner.departure) = (false, false, None);
        (self.to_other, self.to_owner) = Default::default();
    }

    pub(super) fn start_owner(&mut self) {
        if !self.owner.is_up {
            self.owner.is_up = true;
            self.owner.departure = self.owner.left.map(|id| (id, Departure::left()));
            self.owner.runs = self.owner.owns();
        }
    }

    pub(super) fn other_hears(&mut self, input: ArrivalInput) {
        let Some((id, _, arrival)) = &mut self.other.arrival else { return };
        let (id, outputs) = (*id, arrival.handle(input));
        for output in outputs {
            match output {
                ArrivalOutput::Keep(ArrivalFact::Refused) if self.forgets_refusals => {
                    return self.other_hears(ArrivalInput::Kept(true));
                }
                ArrivalOutput::Keep(ArrivalFact::Taken) if self.other.staged.is_none() => {
                    return self.other_hears(ArrivalInput::Lost);
                }
                ArrivalOutput::Keep(fact) => self.other.keeping = Some(fact),
                ArrivalOutput::SayPrepared => self.to_owner.push_back(ToOwner::Prepared(id)),
                ArrivalOutput::SayTaken => self.to_owner.push_back(ToOwner::Taken(id)),
                ArrivalOutput::SayRefused => self.to_owner.push_back(ToOwner::Refused(id)),
                ArrivalOutput::Run => self.other.runs = true,
                ArrivalOutput::Remove => self.other.staged = None,
                ArrivalOutput::Expect | ArrivalOutput::Unexpect | ArrivalOutput::SayUndecided => {}
            }
        }
        if self.other.arrival.as_ref().is_some_and(|(_, _, arrival)| arrival.is_over()) {
            self.other.arrival = None;
        }
    }

    pub(super) fn other_keeps(&mut self, is_kept: bool) {
        if let Some(fact) = self.other.keeping.take() {
            if is_kept {
                self.other.store(fact);
            }
            self.other_hears(ArrivalInput::Kept(is_kept));
        }
    }

    pub(super) fn other_asks(&mut self) {
        if let Some((id, _, _)) = self.other.arrival {
            self.to_owner.push_back(ToOwner::Status(id));
        }
    }

    /// The other end looks at the session's version.
    pub(super) fn other_looks(&mut self) -> bool {
        let Some((_, moves, arrival)) = &self.other.arrival else { return false };
        let (says_so, at) = self.other.shown;
        let is_ours = arrival.is_staged() && says_so && at >= *moves;
        if is_ours {
            self.other_hears(ArrivalInput::Ours);
        }
        is_ours
    }

    pub(super) fn sync(&mut self) {
        if self.owner.is_up && self.other.is_up {
            self.other.shown = self.owner.shown;
        }
    }

    pub(super) fn kill_other(&mut self, stores_last: bool) {
        if let Some(fact) = self.other.keeping.take().filter(|_| stores_last) {
            self.other.store(fact);
        }
        (self.other.is_up, self.other.runs) = (false, false);
        (self.other.arrival, self.other.received) = (None, None);
        (self.to_other, self.to_owner) = Default::default();
    }

    /// Loses the staged parts: the files alone, or also that there was anything.
    pub(super) fn lose_staged(&mut self, whole: bool) {
        let is_staged = matches!(self.other.stored, Some((_, _, ArrivalFact::Staged)));
        if !self.other.is_up && is_staged {
            self.other.staged = None;
            self.other.stored = self.other.stored.filter(|_| !whole);
        }
    }

    pub(super) fn start_other(&mut self) {
        if !self.other.is_up {
            self.other.is_up = true;
            let stored = self.other.stored;
            self.other.arrival = stored.map(|(id, moves, it)| (id, moves, Arrival::stored(it)));
            self.other.runs = self.other.session.is_some();
        }
    }

    pub(super) fn deliver_to_other(&mut self) {
        match self.to_other.pop_front() {
            Some(ToOther::Prepare { id, moves, session }) => self.prepare(id, moves, session),
            Some(ToOther::Take { id }) => self.take(id),
            Some(ToOther::Word { id, word }) if self.is_arriving(id) => self.told(word),
            _ => {}
        }
    }

    fn told(&mut self, word: Word) {
        if !self.other_looks() && word == Word::Aborted {
            self.other_hears(ArrivalInput::Aborted);
        }
    }

    fn prepare(&mut self, id: u64, moves: u64, session: Session) {
        if self.other.keeping.is_some() {
            return;
        }
        if self.other.arrival.as_ref().is_some_and(|(_, _, arrival)| !arrival.is_staged()) {
            return self.to_owner.push_back(ToOwner::Refused(id));
        }
        self.other.arrival = Some((id, moves, Arrival::begin()));
        self.other.received = Some(session);
        self.other_hears(ArrivalInput::Whole);
    }

    fn take(&mut self, id: u64) {
        if self.other.arrival.is_none() {
            self.other.arrival = Some((id, u64::MAX, Arrival::unknown()));
            return self.other_hears(ArrivalInput::Lost);
        }
        if self.is_arriving(id) {
            self.other_looks();
            self.other_hears(ArrivalInput::Asked);
        }
    }

    fn is_arriving(&self, id: u64) -> bool {
        self.other.arrival.as_ref().is_some_and(|(known, _, _)| *known == id)
    }

    pub(super) fn deliver_to_owner(&mut self) {
        let known = self.owner.departure.as_ref().map(|(id, departure)| (*id, departure.word()));
        let (id, input) = match self.to_owner.pop_front() {
            Some(ToOwner::Prepared(id)) => (id, DepartureInput::Prepared),
            Some(ToOwner::Taken(id)) => (id, DepartureInput::Taken),
            Some(ToOwner::Refused(id)) => (id, DepartureInput::Refused),
            Some(ToOwner::Status(id)) => {
                let word = known.filter(|(known, _)| *known == id).map(|(_, word)| word);
                let word = word.unwrap_or(Word::Aborted);
                return self.to_other.push_back(ToOther::Word { id, word });
            }
            None => return,
        };
        if known.is_some_and(|(known, _)| known == id) {
            self.owner_hears(input);
        }
    }

    /// Whether nothing of any move is left.
    pub(super) fn is_settled(&self) -> bool {
        self.owner.departure.is_none() && self.other.arrival.is_none()
    }
}

impl Owner {
    fn owns(&self) -> bool {
        self.session.is_some() && self.left.is_none()
    }

    fn store(&mut self, fact: DepartureFact) {
        match fact {
            DepartureFact::Left => {
                self.left = self.departure.as_ref().map(|(id, _)| *id);
                self.shown = (true, self.shown.1 + 1);
            }
            DepartureFact::Returned => {
                self.left = None;
                self.shown = (false, self.shown.1 + 1);
            }
            DepartureFact::Dropped => (self.left, self.session) = (None, None),
        }
    }
}

impl Other {
    fn store(&mut self, fact: ArrivalFact) {
        let stored = self.arrival.as_ref().map(|(id, moves, _)| (*id, *moves, fact));
        match fact {
            ArrivalFact::Staged => self.staged = self.received.take(),
            ArrivalFact::Taken => self.session = self.staged.take(),
            ArrivalFact::Refused | ArrivalFact::Forgotten => {}
        }
        self.stored = stored.filter(|_| fact != ArrivalFact::Forgotten);
    }
}

/// A disk that cannot be read for a while.
impl World {
    pub(super) fn hide_staged(&mut self) -> Option<Session> {
        self.other.staged.take()
    }

    pub(super) fn show_staged(&mut self, staged: Option<Session>) {
        self.other.staged = staged;
    }
}

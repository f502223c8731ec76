//! Which places at its fellows' providers this server may fill.
//!
//! For each provider of a fellow, the machine asks for as many slots as there are jobs for it, says how
//! many may be used now, and gives back what is not used. A grant is good for a time from when the want
//! was sent that it answers, so a borrower stops before the lender takes the slot back, however late the
//! grant came. A slot stays for a second or two after its last use, so that the next job needs no round trip.

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant},
};

use base::ProviderId;

use crate::{lending::LEASE, message::Message, rules::Rules, server::ServerId};

/// How often a server says that it still wants what it has or has not been given.
pub const RENEWAL: Duration = Duration::from_millis(500);
/// The shortest time between two wants for one provider.
const SHORTEST: Duration = Duration::from_millis(20);
/// After this time without use a slot is given back, at the latest after twice that.
pub const KEEP: Duration = Duration::from_secs(1);
/// The most slots of one provider that a server asks for.
pub const MOST_SLOTS: u32 = 1_024;

/// One event. Inputs about providers that are not known are ignored.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A fellow has a provider that it may lend.
    Offered { fellow: ServerId, provider: ProviderId },
    /// A fellow's provider left, or is lent no more.
    Gone { fellow: ServerId, provider: ProviderId },
    /// A fellow is gone, with all its providers.
    Left { fellow: ServerId },
    /// This number of waiting jobs wants a slot there (`Dispatcher::wants`).
    Demand { fellow: ServerId, provider: ProviderId, jobs: u32 },
    /// The number of this server's jobs there, those that are under way included.
    Used { fellow: ServerId, provider: ProviderId, jobs: u32 },
    /// A message of a fellow.
    Message { from: ServerId, message: Message },
}

/// One action, to be carried out in order.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// The most jobs that may be there at once from now on. Jobs that are there already may stay, even if they
    /// are more.
    Capacity { fellow: ServerId, provider: ProviderId, slots: u32 },
    /// Send a message to a fellow. What was put out before is carried out before it is sent.
    Send { to: ServerId, message: Message },
}

/// The slots of one provider.
#[derive(Debug, Default)]
struct Loan {
    /// How many jobs may be there, while the lease lasts.
    limit: u32,
    /// The end of the lease.
    until: Option<Instant>,
    serial: u64,
    jobs: u32,
    demand: u32,
    /// When each want of the last time was sent.
    sent: VecDeque<(u64, Instant)>,
    /// When the next want is due.
    want_at: Option<Instant>,
    /// The number of slots that the last want asked for.
    last_want: u32,
    /// The last capacity that was put out.
    capacity: u32,
    /// The most slots that were used since the last look at idle ones, and when the next look is.
    peak: u32,
    look_at: Option<Instant>,
}

/// The slots that this server borrows.
#[derive(Debug, Default)]
pub struct Borrowing {
    rules: Rules,
    loans: BTreeMap<(ServerId, ProviderId), Loan>,
    number: u64,
    outputs: VecDeque<Output>,
}

impl Borrowing {
    /// A server that borrows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same under other rules, for tests.
    pub fn under(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        self.handle_timeout(now);
        match input {
            Input::Offered { fellow, provider } => {
                self.loans.entry((fellow, provider)).or_default();
            }
            Input::Gone { fellow, provider } => _ = self.loans.remove(&(fellow, provider)),
            Input::Left { fellow } => self.loans.retain(|(other, _), _| *other != fellow),
            Input::Demand { fellow, provider, jobs } => {
                self.change((fellow, provider), now, |loan| loan.demand = jobs);
            }
            Input::Used { fellow, provider, jobs } => {
                self.change((fellow, provider), now, |loan| loan.jobs = jobs);
            }
            Input::Message { from, message } => self.message(now, from, message),
        }
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = self.loans.iter().filter(|(_, loan)| loan.next().is_some_and(|at| at <= now));
        let due: Vec<_> = due.map(|(id, _)| *id).collect();
        due.into_iter().for_each(|id| self.due(now, id));
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// When to call [`Borrowing::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.loans.values().filter_map(|loan| loan.next()).min()
    }

    /// How many jobs may be at a fellow's provider now.
    pub fn usable(&self, now: Instant, fellow: ServerId, provider: ProviderId) -> u32 {
        self.loans.get(&(fellow, provider)).map_or(0, |loan| loan.usable(now))
    }

    /// How many slots of fellows this server has.
    pub fn borrowed(&self, now: Instant) -> u32 {
        self.loans.values().map(|loan| loan.usable(now)).sum()
    }

    fn change(&mut self, id: (ServerId, ProviderId), now: Instant, change: impl FnOnce(&mut Loan)) {
        let Some(loan) = self.loans.get_mut(&id) else { return };
        let before = loan.keeps();
        change(loan);
        loan.peak = loan.peak.max(loan.needed());
        let (wanted, limit) = (loan.wanted(), loan.usable(now));
        if wanted > limit.max(loan.last_want) {
            let soonest = loan.sent.back().map_or(now, |(_, at)| *at + SHORTEST);
            loan.want_at = Some(loan.want_at.map_or(soonest, |at| at.min(soonest)));
        }
        let is_withdrawn = wanted == 0 && limit == 0 && loan.last_want > 0;
        if is_withdrawn || loan.keeps() < before {
            // A recalled slot is free, or nothing was given yet and nothing is wanted any more.
            return self.give_back(id, now);
        }
        self.due(now, id);
    }

    fn due(&mut self, now: Instant, id: (ServerId, ProviderId)) {
        let Some(loan) = self.loans.get_mut(&id) else { return };
        if loan.usable(now) == 0 {
            (loan.limit, loan.until) = (0, None);
        }
        if loan.look_at.is_some_and(|at| at <= now) {
            self.look(now, id);
        }
        self.tell(now, id);
        let Some(loan) = self.loans.get_mut(&id) else { return };
        if loan.want_at.is_some_and(|at| at <= now) {
            self.want(now, id);
        }
    }

    /// Gives back what was not used for a while.
    fn look(&mut self, now: Instant, id: (ServerId, ProviderId)) {
        let Some(loan) = self.loans.get_mut(&id) else { return };
        let needed = loan.peak.max(loan.needed());
        loan.peak = loan.needed();
        loan.look_at = None;
        if loan.limit > needed {
            loan.limit = needed;
            self.give_back(id, now);
        }
    }

    /// Says what may be used, if that has changed.
    fn tell(&mut self, now: Instant, id: (ServerId, ProviderId)) {
        let Some(loan) = self.loans.get_mut(&id) else { return };
        let slots = loan.usable(now);
        if slots > 0 && loan.look_at.is_none() {
            loan.look_at = Some(now + KEEP);
        } else if slots == 0 {
            loan.look_at = None;
        }
        if loan.capacity != slots {
            loan.capacity = slots;
            let (fellow, provider) = id;
            self.outputs.push_back(Output::Capacity { fellow, provider, slots });
        }
    }

    fn want(&mut self, now: Instant, id: (ServerId, ProviderId)) {
        let Some(loan) = self.loans.get_mut(&id) else { return };
        let (slots, keeps) = (loan.wanted(), loan.keeps());
        if slots == 0 && keeps == 0 {
            (loan.want_at, loan.last_want) = (None, 0);
            return;
        }
        self.number += 1;
        (loan.want_at, loan.last_want) = (Some(now + RENEWAL), slots);
        // What was sent earlier is answered too late.
        while loan.sent.front().is_some_and(|(_, at)| *at + LEASE <= now) {
            loan.sent.pop_front();
        }
        loan.sent.push_back((self.number, now));
        let (provider, number, serial) = (id.1, self.number, loan.serial);
        let message = Message::Want { provider, number, serial, slots, keeps };
        self.outputs.push_back(Output::Send { to: id.0, message });
    }

    /// Promises to use no more than what is needed now.
    fn give_back(&mut self, id: (ServerId, ProviderId), now: Instant) {
        self.tell(now, id);
        let Some(loan) = self.loans.get_mut(&id) else { return };
        self.number += 1;
        loan.last_want = loan.wanted();
        let (provider, number, serial) = (id.1, self.number, loan.serial);
        let (slots, keeps) = (loan.wanted(), loan.keeps());
        let message = Message::Return { provider, number, serial, slots, keeps };
        self.outputs.push_back(Output::Send { to: id.0, message });
    }

    fn message(&mut self, now: Instant, from: ServerId, message: Message) {
        let (number, serial, slots, is_recall) = match message {
            Message::Grant { number, serial, slots, .. } => (number, serial, slots, false),
            Message::Recall { number, serial, slots, .. } => (number, serial, slots, true),
            Message::Want { .. } | Message::Return { .. } => return,
        };
        let id = (from, message.provider());
        let counts_from_want = self.rules.leases;
        let Some(loan) = self.loans.get_mut(&id).filter(|loan| serial > loan.serial) else {
            return;
        };
        loan.serial = serial;
        let sent = loan.sent.iter().find(|(other, _)| *other == number).map(|(_, at)| *at);
        let from_when = if counts_from_want { sent } else { Some(now) };
        loan.until = loan.until.max(from_when.map(|at| at + LEASE));
        loan.limit = slots;
        loan.peak = loan.peak.max(loan.needed());
        if is_recall {
            return self.give_back(id, now);
        }
        self.due(now, id);
    }
}

impl Loan {
    fn usable(&self, now: Instant) -> u32 {
        self.until.filter(|until| now < *until).map_or(0, |_| self.limit)
    }

    fn needed(&self) -> u32 {
        self.jobs.saturating_add(self.demand)
    }

    fn wanted(&self) -> u32 {
        self.needed().min(MOST_SLOTS)
    }

    /// How many slots it may be using until another grant comes.
    fn keeps(&self) -> u32 {
        self.limit.max(self.jobs)
    }

    fn next(&self) -> Option<Instant> {
        [self.until, self.want_at, self.look_at].into_iter().flatten().min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn lender() -> ServerId {
        ServerId::from_random(1)
    }

    fn provider() -> ProviderId {
        ProviderId::from_random(1)
    }

    struct Borrower {
        borrowing: Borrowing,
        now: Instant,
        sent: Vec<Message>,
        slots: Vec<u32>,
        serial: u64,
    }

    impl Borrower {
        fn new() -> Self {
            let (mut borrowing, now) = (Borrowing::new(), Instant::now());
            let (fellow, provider) = (lender(), provider());
            borrowing.handle(now, Input::Offered { fellow, provider });
            Self { borrowing, now, sent: Vec::new(), slots: Vec::new(), serial: 0 }
        }

        fn input(&mut self, input: Input) {
            self.borrowing.handle(self.now, input);
            self.follow();
        }

        fn follow(&mut self) {
            while let Some(output) = self.borrowing.poll_output() {
                match output {
                    Output::Capacity { slots, .. } => self.slots.push(slots),
                    Output::Send { message, .. } => self.sent.push(message),
                }
            }
        }

        fn pass(&mut self, time: Duration) {
            let end = self.now + time;
            while let Some(at) = self.borrowing.poll_timeout().filter(|at| *at <= end) {
                self.now = self.now.max(at);
                self.borrowing.handle_timeout(self.now);
                self.follow();
            }
            self.now = end;
        }

        fn demand(&mut self, jobs: u32) {
            self.input(Input::Demand { fellow: lender(), provider: provider(), jobs });
        }

        fn used(&mut self, jobs: u32) {
            self.input(Input::Used { fellow: lender(), provider: provider(), jobs });
        }

        /// The newest message: its number, and what it wants and keeps.
        fn said(&self) -> (u64, u32, u32) {
            match self.sent.last() {
                Some(
                    Message::Want { number, slots, keeps, .. }
                    | Message::Return { number, slots, keeps, .. },
                ) => (*number, *slots, *keeps),
                other => panic!("{other:?}"),
            }
        }

        fn granted(&mut self, number: u64, slots: u32) {
            self.serial += 1;
            let (provider, serial) = (provider(), self.serial);
            let message = Message::Grant { provider, number, serial, slots };
            self.input(Input::Message { from: lender(), message });
        }

        fn recalled(&mut self, number: u64, slots: u32) {
            self.serial += 1;
            let (provider, serial) = (provider(), self.serial);
            let message = Message::Recall { provider, number, serial, slots };
            self.input(Input::Message { from: lender(), message });
        }

        fn usable(&self) -> u32 {
            self.borrowing.usable(self.now, lender(), provider())
        }
    }

    #[test]
    fn a_want_is_sent_at_once_and_again_and_a_grant_may_be_used() {
        let mut borrower = Borrower::new();
        borrower.demand(1);
        assert_eq!(borrower.said(), (1, 1, 0));
        borrower.demand(3);
        assert_eq!(borrower.sent.len(), 1, "a moment later");
        borrower.pass(SHORTEST);
        assert_eq!(borrower.said(), (2, 3, 0));
        borrower.granted(2, 2);
        assert_eq!(borrower.slots, [2]);
        borrower.pass(RENEWAL);
        assert_eq!(borrower.said(), (3, 3, 2));
    }

    #[test]
    fn a_lease_counts_from_the_want_and_is_over_however_late_the_grant_came() {
        let mut borrower = Borrower::new();
        borrower.demand(1);
        borrower.pass(LEASE - MS);
        borrower.granted(1, 1);
        assert_eq!(borrower.usable(), 1);
        borrower.pass(MS);
        assert_eq!((borrower.usable(), &borrower.slots[..]), (0, &[1, 0][..]));
        borrower.granted(1, 1);
        assert_eq!(borrower.usable(), 0, "that want is too old");
    }

    #[test]
    fn each_renewal_that_is_granted_makes_the_lease_longer() {
        let mut borrower = Borrower::new();
        borrower.demand(1);
        for _ in 0..20 {
            let (number, ..) = borrower.said();
            borrower.granted(number, 1);
            borrower.used(1);
            borrower.pass(RENEWAL);
            assert_eq!(borrower.usable(), 1);
        }
        assert_eq!(borrower.slots, [1]);
    }

    #[test]
    fn an_unused_slot_is_kept_for_a_moment_and_then_given_back() {
        let mut borrower = Borrower::new();
        borrower.demand(2);
        borrower.granted(1, 2);
        borrower.demand(0);
        borrower.used(1);
        borrower.used(0);
        for _ in 0..3 {
            borrower.pass(RENEWAL);
            let (number, ..) = borrower.said();
            borrower.granted(number, 2);
            assert_eq!(borrower.usable(), 2);
        }
        borrower.pass(RENEWAL);
        assert_eq!((borrower.usable(), borrower.said().2), (0, 0));
        assert!(matches!(borrower.sent.last(), Some(Message::Return { .. })));
        borrower.pass(LEASE);
        assert_eq!(borrower.borrowing.poll_timeout(), None);
    }

    #[test]
    fn a_recall_is_answered_at_once_and_again_when_a_job_ends() {
        let mut borrower = Borrower::new();
        borrower.demand(3);
        borrower.granted(1, 3);
        borrower.demand(0);
        borrower.used(2);
        borrower.recalled(1, 1);
        assert_eq!((borrower.usable(), borrower.said().2), (1, 2), "two are in use");
        borrower.used(1);
        assert_eq!(borrower.said().2, 1);
        assert!(matches!(borrower.sent.last(), Some(Message::Return { .. })));
    }

    #[test]
    fn older_words_of_the_lender_are_void() {
        let mut borrower = Borrower::new();
        borrower.demand(3);
        let grant = |serial, slots| Input::Message {
            from: lender(),
            message: Message::Grant { provider: provider(), number: 1, serial, slots },
        };
        borrower.input(grant(2, 1));
        borrower.input(grant(1, 3));
        borrower.input(grant(2, 3));
        assert_eq!(borrower.slots, [1]);
    }

    #[test]
    fn a_want_that_is_not_wanted_any_more_is_withdrawn() {
        let mut borrower = Borrower::new();
        borrower.demand(1);
        borrower.demand(0);
        assert_eq!(borrower.said(), (2, 0, 0));
        borrower.pass(RENEWAL * 4);
        assert_eq!(borrower.sent.len(), 2);
    }

    #[test]
    fn wants_and_what_is_remembered_of_them_are_bounded() {
        let mut borrower = Borrower::new();
        borrower.demand(u32::MAX);
        assert_eq!(borrower.said().1, MOST_SLOTS);
        for jobs in 0..1_000 {
            borrower.demand(jobs);
            borrower.pass(SHORTEST);
        }
        let loan = &borrower.borrowing.loans[&(lender(), provider())];
        assert!(loan.sent.len() <= 1 + (LEASE.as_millis() / SHORTEST.as_millis()) as usize);
    }

    #[test]
    fn nothing_is_left_of_who_is_gone() {
        let mut borrower = Borrower::new();
        borrower.demand(1);
        borrower.input(Input::Left { fellow: lender() });
        borrower.granted(1, 1);
        assert_eq!((borrower.usable(), borrower.borrowing.poll_timeout()), (0, None));
    }
}

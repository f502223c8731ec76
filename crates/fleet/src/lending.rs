//! Which places at this server's providers its fellows may fill.
//!
//! A slot that is lent to a fellow is nobody else's: this server's own jobs have the rest. A fellow asks
//! for what it could use, is granted what is free, and says again every half second that it still wants
//! it. The lender takes a slot back when the fellow has returned it, or when nothing was heard of the
//! fellow for [`LEASE`] and [`MARGIN`] and none of its jobs is on the slot. The borrower counts the lease
//! from when it asked, so it stops first, however late messages are; the margin is for its last jobs that
//! are under way.
//!
//! Own jobs come first: while some wait that a slot could serve, nothing more is lent and as many slots
//! are recalled. Among fellows, the one that has the fewest is given the next; where nothing is free and one
//! has two more than another that wants some, one slot moves.

#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    time::{Duration, Instant},
};

use base::{JobId, ProviderId};

use crate::{message::Message, rules::Rules, server::ServerId};

/// How long a grant is good, from when the want was sent that it answers.
pub const LEASE: Duration = Duration::from_secs(2);
/// How much longer a lender keeps a slot for its borrower.
pub const MARGIN: Duration = Duration::from_millis(500);
/// The most messages to a borrower that are told apart while it has not heard them.
const MOST_UNHEARD: usize = 32;
/// How often a lender looks for free slots while fellows want some, and for own jobs while it lends.
const LOOK: Duration = Duration::from_millis(100);

/// One event. Inputs about providers, fellows and jobs that are not known are ignored.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    /// A provider may be lent from now on.
    Offered { provider: ProviderId },
    /// A provider left, or is lent no more. Nothing is recalled: its fellows hear of it otherwise.
    Gone { provider: ProviderId },
    /// The answer to [`Output::Look`]; welcome at any other time.
    Room {
        provider: ProviderId,
        /// How many slots neither own jobs use nor fellows have, now.
        free: u32,
        /// How many own jobs wait that more slots of this provider could serve.
        waiting: u32,
    },
    /// A message of a fellow.
    Message { from: ServerId, message: Message },
    /// A fellow is there: its messages are answered.
    Joined { fellow: ServerId },
    /// A fellow is gone. Its jobs are cancelled, its slots come back when their lease is over.
    Left { fellow: ServerId },
    /// A job of a fellow has ended.
    Ended { job: JobId },
}

/// One action, to be carried out in order.
#[expect(missing_docs, reason = "ids are what their types say")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Answer with [`Input::Room`] at once. The dispatcher's lock is held from the reading of the numbers
    /// until the outputs of that input are carried out: what is free must not be given to others meanwhile.
    Look { provider: ProviderId },
    /// The number of the provider's slots that are lent in all.
    Lend { provider: ProviderId, slots: u32 },
    /// Send a message to a fellow.
    Send { to: ServerId, message: Message },
    /// Cancel the job of a fellow that is gone.
    Cancel { job: JobId },
}

/// A fellow's loan of a provider.
#[derive(Debug, Default)]
struct Loan {
    /// The number of its newest message, that of its newest want, and when that came.
    number: u64,
    want: u64,
    heard: Option<Instant>,
    /// The limits of the messages to it that it may not have heard, by serial: it may be using the largest.
    unheard: VecDeque<(u64, u32)>,
    wants: u32,
    /// How many slots are its, in use or not.
    granted: u32,
    /// How many it is to keep, of these.
    keep: u32,
    /// The limit that the newest message named.
    sent_keep: u32,
    /// Whether it waits for an answer.
    has_asked: bool,
    jobs: BTreeSet<JobId>,
    /// When it was last given a slot, as a number.
    turn: u64,
}

/// A provider that may be lent.
#[derive(Debug, Default)]
struct Provider {
    loans: BTreeMap<ServerId, Loan>,
    lent: u32,
    look_at: Option<Instant>,
    /// Whether a look is among the outputs: of two, the second would count what the first gives away.
    is_looking: bool,
}

/// The slots that this server lends.
#[derive(Debug, Default)]
pub struct Lending {
    rules: Rules,
    providers: BTreeMap<ProviderId, Provider>,
    jobs: BTreeMap<JobId, (ProviderId, ServerId)>,
    fellows: BTreeSet<ServerId>,
    serial: u64,
    turn: u64,
    outputs: VecDeque<Output>,
}

impl Lending {
    /// A server that lends nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same under other rules, for tests.
    pub fn under(rules: Rules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Handles one event. Poll the outputs afterwards.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::Offered { provider } => _ = self.providers.entry(provider).or_default(),
            Input::Gone { provider } => self.gone(provider),
            Input::Room { provider, free, waiting } => self.deal(now, provider, free, waiting),
            Input::Message { from, message } => self.message(now, from, message),
            Input::Joined { fellow } => _ = self.fellows.insert(fellow),
            Input::Left { fellow } => self.left(fellow),
            Input::Ended { job } => self.ended(now, job),
        }
    }

    /// Whether a job of a fellow may take one of the slots that the fellow has: then it has it until
    /// [`Input::Ended`]. `job` is an id that this server has never used before.
    #[must_use]
    pub fn begin(&mut self, fellow: ServerId, provider: ProviderId, job: JobId) -> bool {
        let loan = self.providers.get_mut(&provider).and_then(|it| it.loans.get_mut(&fellow));
        let Some(loan) = loan.filter(|it| it.in_use() < it.granted) else { return false };
        if !self.fellows.contains(&fellow) || self.jobs.contains_key(&job) {
            return false;
        }
        loan.jobs.insert(job);
        self.jobs.insert(job, (provider, fellow));
        true
    }

    /// Handles every deadline that is due. Poll the outputs afterwards.
    pub fn handle_timeout(&mut self, now: Instant) {
        let ids: Vec<_> = self.providers.keys().copied().collect();
        ids.into_iter().for_each(|id| self.provider_due(now, id));
    }

    /// The next output, to be carried out in order.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front()?;
        if let Output::Look { provider } = output
            && let Some(lender) = self.providers.get_mut(&provider)
        {
            lender.is_looking = false;
        }
        Some(output)
    }

    /// When to call [`Lending::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let ends = self.providers.values().flat_map(|provider| {
            let ends = provider.loans.values().filter_map(|loan| loan.end(self.rules));
            ends.chain(provider.look_at)
        });
        ends.min()
    }

    /// How many slots of a provider a fellow has.
    pub fn lent_to(&self, fellow: ServerId, provider: ProviderId) -> u32 {
        let loan = self.providers.get(&provider).and_then(|it| it.loans.get(&fellow));
        loan.map_or(0, |loan| loan.granted)
    }

    /// How many slots of a provider are lent, to all fellows together.
    pub fn lent(&self, provider: ProviderId) -> u32 {
        self.providers.get(&provider).map_or(0, |it| it.lent)
    }

    fn gone(&mut self, provider: ProviderId) {
        // Its jobs end by themselves.
        let Some(gone) = self.providers.remove(&provider) else { return };
        let jobs = gone.loans.values().flat_map(|loan| &loan.jobs);
        jobs.for_each(|job| _ = self.jobs.remove(job));
    }

    fn left(&mut self, fellow: ServerId) {
        self.fellows.remove(&fellow);
        let its = self.jobs.iter().filter(|(_, (_, other))| *other == fellow);
        let cancels = its.map(|(job, _)| Output::Cancel { job: *job });
        self.outputs.extend(cancels);
        let loans = self.providers.values_mut().filter_map(|it| it.loans.get_mut(&fellow));
        loans.for_each(|loan| (loan.wants, loan.has_asked) = (0, false));
    }

    fn ended(&mut self, now: Instant, job: JobId) {
        let Some((provider, fellow)) = self.jobs.remove(&job) else { return };
        let loan = self.providers.get_mut(&provider).and_then(|it| it.loans.get_mut(&fellow));
        let Some(loan) = loan else { return };
        loan.jobs.remove(&job);
        if loan.heard.is_none() {
            // The lease was over already.
            self.expire(now, provider, fellow);
        }
    }

    fn message(&mut self, now: Instant, from: ServerId, message: Message) {
        if !self.fellows.contains(&from) {
            return;
        }
        let (provider, number, serial, slots, keeps) = match message {
            Message::Want { provider, number, serial, slots, keeps }
            | Message::Return { provider, number, serial, slots, keeps } => {
                (provider, number, serial, slots, keeps)
            }
            Message::Grant { .. } | Message::Recall { .. } => return,
        };
        let Some(lender) = self.providers.get_mut(&provider) else { return };
        let loan = lender.loans.entry(from).or_default();
        if number <= loan.number {
            return;
        }
        (loan.number, loan.wants) = (number, slots);
        // A return promises something, and wants nothing: the lease goes on with the next want.
        let wants = matches!(message, Message::Want { .. });
        if wants {
            (loan.want, loan.has_asked) = (number, true);
        }
        if wants || loan.heard.is_none() {
            loan.heard = Some(now);
        }
        let may_use = keeps.max(loan.unheard_after(serial));
        loan.granted = loan.granted.min(may_use.max(loan.in_use()));
        self.settle(provider);
        self.look(now, provider);
    }

    /// Gives what is free to those that want it, or asks for slots back; then answers.
    fn deal(&mut self, now: Instant, provider: ProviderId, free: u32, waiting: u32) {
        let rules = self.rules;
        let Some(lender) = self.providers.get_mut(&provider) else { return };
        lender.loans.values_mut().for_each(|loan| loan.keep = loan.granted);
        if waiting > 0 {
            if rules.recall {
                lender.recall(waiting);
            }
        } else {
            for _ in 0..free {
                let Some(loan) = lender.next_in_turn() else { break };
                self.turn += 1;
                (loan.granted, loan.turn) = (loan.granted + 1, self.turn);
                loan.keep = loan.granted;
            }
            lender.level();
        }
        let is_busy = lender.loans.values().any(|loan| loan.granted > 0 || loan.wants > 0);
        lender.look_at = is_busy.then(|| now + LOOK);
        self.settle(provider);
        self.answer(provider);
    }

    fn look(&mut self, now: Instant, provider: ProviderId) {
        if let Some(lender) = self.providers.get_mut(&provider) {
            // A driver that does not answer is asked again.
            lender.look_at = Some(now + LOOK);
            if !std::mem::replace(&mut lender.is_looking, true) {
                self.outputs.push_back(Output::Look { provider });
            }
        }
    }

    /// Says how many slots are lent, if that has changed.
    fn settle(&mut self, provider: ProviderId) {
        let Some(lender) = self.providers.get_mut(&provider) else { return };
        let slots = lender.loans.values().map(|loan| loan.granted).sum();
        if lender.lent != slots {
            lender.lent = slots;
            self.outputs.push_back(Output::Lend { provider, slots });
        }
    }

    /// Tells each fellow that asked, and each whose limit has changed.
    fn answer(&mut self, provider: ProviderId) {
        let Some(lender) = self.providers.get_mut(&provider) else { return };
        for (to, loan) in &mut lender.loans {
            let has_news = loan.keep != loan.sent_keep;
            let renews = loan.has_asked && loan.granted > 0;
            if !(has_news || renews) || loan.heard.is_none() {
                continue;
            }
            self.serial += 1;
            (loan.sent_keep, loan.has_asked) = (loan.keep, false);
            loan.say(self.serial, loan.keep);
            let (number, serial, slots) = (loan.want, self.serial, loan.keep);
            let message = match loan.keep < loan.granted {
                true => Message::Recall { provider, number, serial, slots },
                false => Message::Grant { provider, number, serial, slots },
            };
            self.outputs.push_back(Output::Send { to: *to, message });
        }
    }

    fn provider_due(&mut self, now: Instant, id: ProviderId) {
        let Some(lender) = self.providers.get_mut(&id) else { return };
        let look = lender.look_at.is_some_and(|at| at <= now);
        let over = lender
            .loans
            .iter()
            .filter(|(_, loan)| loan.end(self.rules).is_some_and(|end| end <= now));
        let over: Vec<_> = over.map(|(fellow, _)| *fellow).collect();
        over.into_iter().for_each(|fellow| self.expire(now, id, fellow));
        if look {
            self.look(now, id);
        }
    }

    /// A lease is over: the slots that no job is on come back.
    fn expire(&mut self, now: Instant, provider: ProviderId, fellow: ServerId) {
        let Some(lender) = self.providers.get_mut(&provider) else { return };
        let Some(loan) = lender.loans.get_mut(&fellow) else { return };
        (loan.heard, loan.wants, loan.has_asked) = (None, 0, false);
        loan.granted = loan.in_use();
        (loan.keep, loan.sent_keep) = (loan.granted, 0);
        // What earlier messages granted is over.
        loan.unheard.clear();
        if loan.granted == 0 {
            lender.loans.remove(&fellow);
        }
        self.settle(provider);
        self.look(now, provider);
    }
}

impl Loan {
    fn in_use(&self) -> u32 {
        u32::try_from(self.jobs.len()).unwrap_or(u32::MAX)
    }

    /// Notes a limit that it is sent.
    fn say(&mut self, serial: u64, slots: u32) {
        self.unheard.push_back((serial, slots));
        if self.unheard.len() > MOST_UNHEARD
            && let Some((_, oldest)) = self.unheard.pop_front()
            && let Some((_, next)) = self.unheard.front_mut()
        {
            *next = oldest.max(*next);
        }
    }

    /// The largest limit that it was sent after the message that it has heard.
    fn unheard_after(&mut self, serial: u64) -> u32 {
        self.unheard.retain(|(other, _)| *other > serial);
        self.unheard.iter().map(|(_, slots)| *slots).max().unwrap_or(0)
    }

    /// When its lease is over for good.
    fn end(&self, rules: Rules) -> Option<Instant> {
        let margin = if rules.margin { MARGIN } else { Duration::ZERO };
        self.heard.map(|heard| heard + LEASE + margin)
    }
}

impl Provider {
    /// The fellow that is given the next slot: of those that want more, the one that has the fewest, then
    /// the one that has waited longest for one.
    fn next_in_turn(&mut self) -> Option<&mut Loan> {
        let wanting = self.loans.values_mut().filter(|loan| loan.wants > loan.granted);
        wanting.min_by_key(|loan| (loan.granted, loan.turn))
    }

    /// Asks for this number of slots back, each from the fellow that is to keep the most.
    fn recall(&mut self, slots: u32) {
        for _ in 0..slots {
            let largest = self.loans.values_mut().max_by_key(|loan| loan.keep);
            let Some(loan) = largest.filter(|loan| loan.keep > 0) else { return };
            loan.keep -= 1;
        }
    }

    /// Asks a fellow for a slot back that has two more than another that wants more.
    fn level(&mut self) {
        let Some(poorest) = self.next_in_turn().map(|loan| loan.granted) else { return };
        let richest = self.loans.values_mut().max_by_key(|loan| loan.granted);
        if let Some(loan) = richest.filter(|loan| loan.granted >= poorest + 2) {
            loan.keep = loan.granted - 1;
        }
    }
}

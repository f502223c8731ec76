//! What became of everything, and whether all that was taken was given back.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
    time::Duration,
};

use testkit::FakeParticipant;

use crate::settings::Settings;

/// How many wrong things are told one by one.
const MAX_TOLD: usize = 20;

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Answered whole and right.
    Answered,
    /// Its client hung up, as it was meant to.
    HungUp,
    /// Its participant was lost, or failed, after the answer had begun: the stream ended with an
    /// error.
    EndedByEvent,
    /// The same of an answer that is no stream: the connection was cut.
    Cut,
    /// Its client was told that it had missed messages; the end was among them.
    Missed,
    /// Refused, or failed before an answer began, with this status and an error that says why.
    Refused(u16),
    /// None of these.
    Wrong(String),
}

/// What became of all requests of a sort.
#[derive(Debug, Default)]
pub(crate) struct Fates {
    all: u64,
    answered: u64,
    hung_up: u64,
    ended_by_event: u64,
    cut: u64,
    missed: u64,
    refused: BTreeMap<u16, u64>,
    /// How long the longest took.
    longest: Duration,
}

/// What became of participants.
#[derive(Debug, Default)]
pub(crate) struct Lives {
    pub(crate) joined: u64,
    pub(crate) left: u64,
    pub(crate) died: u64,
    pub(crate) superseded: u64,
    pub(crate) froze: u64,
    pub(crate) killed: u64,
}

/// What watchers have seen.
#[derive(Debug, Default)]
pub(crate) struct Sights {
    pub(crate) events: u64,
    pub(crate) tokens: u64,
    pub(crate) lagged: u64,
    pub(crate) resumed: u64,
}

/// The sum of a run.
#[derive(Debug, Default)]
pub(crate) struct Account {
    seed: u64,
    pub(crate) seconds: f64,
    pub(crate) resident_mib: u64,
    pub(crate) requests: Fates,
    pub(crate) messages: Fates,
    lives: Lives,
    sights: Sights,
    wrongs: u64,
    pub(crate) wrong: Vec<String>,
}

/// Where everybody reports.
#[derive(Clone)]
pub(crate) struct Report(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    account: Account,
    /// Participants that are still connected when all have stopped.
    kept: Vec<FakeParticipant>,
}

impl Report {
    pub(crate) fn new(settings: &Settings) -> Self {
        let account = Account { seed: settings.seed, ..Account::default() };
        Self(Arc::new(Mutex::new(Inner { account, kept: Vec::new() })))
    }

    fn with<T>(&self, change: impl FnOnce(&mut Inner) -> T) -> T {
        change(&mut self.0.lock().expect("nobody panics with it"))
    }

    /// Something is not as it should be.
    pub(crate) fn wrong(&self, what: String) {
        self.with(|inner| inner.account.tell(what));
    }

    pub(crate) fn lived(&self, add: impl FnOnce(&mut Lives)) {
        self.with(|inner| add(&mut inner.account.lives));
    }

    pub(crate) fn saw(&self, add: impl FnOnce(&mut Sights)) {
        self.with(|inner| add(&mut inner.account.sights));
    }

    /// What became of a request for a chat, and how long it took.
    pub(crate) fn request(&self, fate: Fate, took: Duration) {
        self.with(|inner| {
            let wrong = inner.account.requests.add(fate, took);
            wrong.into_iter().for_each(|what| inner.account.tell(what));
        });
    }

    /// What became of an `llm:request`, and how long it took.
    pub(crate) fn message(&self, fate: Fate, took: Duration) {
        self.with(|inner| {
            let wrong = inner.account.messages.add(fate, took);
            wrong.into_iter().for_each(|what| inner.account.tell(what));
        });
    }

    /// Keeps a participant connected.
    pub(crate) fn keep(&self, participant: FakeParticipant) {
        self.with(|inner| inner.kept.push(participant));
    }

    /// Those that were kept.
    pub(crate) fn kept(&self) -> Vec<FakeParticipant> {
        self.with(|inner| std::mem::take(&mut inner.kept))
    }

    /// The sum so far.
    pub(crate) fn account(&self) -> Account {
        self.with(|inner| std::mem::take(&mut inner.account))
    }
}

impl Account {
    fn tell(&mut self, what: String) {
        self.wrongs += 1;
        if self.wrong.len() < MAX_TOLD {
            self.wrong.push(what);
        }
    }

    /// A run in which hardly anything was answered has tested nothing. These are the clients of
    /// each sort.
    pub(crate) fn check_that_it_counts(&mut self, clients: usize, message_clients: usize) {
        let requests = ("requests", &self.requests, clients);
        let messages = ("llm:requests", &self.messages, message_clients);
        let few =
            [requests, messages].into_iter().filter(|(_, fates, clients)| fates.are_few(*clients));
        let told = few.map(|(what, fates, _)| format!("too few {what} were answered, of {fates}"));
        told.collect::<Vec<_>>().into_iter().for_each(|few| self.tell(few));
    }
}

impl Fates {
    /// Counts one. What is wrong with it, if anything is.
    fn add(&mut self, fate: Fate, took: Duration) -> Option<String> {
        self.all += 1;
        self.longest = self.longest.max(took);
        match fate {
            Fate::Answered => self.answered += 1,
            Fate::HungUp => self.hung_up += 1,
            Fate::EndedByEvent => self.ended_by_event += 1,
            Fate::Cut => self.cut += 1,
            Fate::Missed => self.missed += 1,
            Fate::Refused(status) => *self.refused.entry(status).or_default() += 1,
            Fate::Wrong(what) => return Some(what),
        }
        None
    }

    /// Whether not even one was answered for each client, or not a quarter of those that could be: a
    /// client that has hung up has no answer, and how many find the queue full or wait in it for
    /// too long is a matter of the machine. Participants that die take the more answers with them
    /// the longer an answer takes.
    fn are_few(&self, clients: usize) -> bool {
        let refused = |status| self.refused.get(&status).copied().unwrap_or_default();
        let no_matter = self.hung_up + self.missed + refused(429) + refused(504);
        self.answered < clients as u64 || self.answered * 4 < self.all - no_matter
    }
}

impl fmt::Display for Fates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { all, answered, hung_up, ended_by_event, cut, missed, refused, longest } = self;
        write!(
            f,
            "{all}: {answered} answered, {hung_up} hung up, {ended_by_event} ended by an error, "
        )?;
        write!(f, "{cut} cut, {missed} missed, {} refused", refused.values().sum::<u64>())?;
        let by_status: Vec<_> =
            refused.iter().map(|(status, count)| format!("{count} with {status}")).collect();
        if !by_status.is_empty() {
            write!(f, " ({})", by_status.join(", "))?;
        }
        write!(f, ", the longest took {:.1} s", longest.as_secs_f64())
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, seconds, requests, messages, lives, sights, .. } = self;
        let Lives { joined, left, died, superseded, froze, killed } = lives;
        let Sights { events, tokens, lagged, resumed } = sights;
        write!(f, "seed {seed}: {seconds:.1} s; requests {requests}; llm:requests {messages}; ")?;
        write!(f, "participants joined {joined} times, {left} left, {died} died, ")?;
        write!(f, "{superseded} were superseded, {froze} froze, {killed} were killed; ")?;
        write!(f, "watchers saw {events} events and {tokens} tokens, {lagged} lagged, ")?;
        write!(f, "{resumed} resumed; the server occupies {} MiB; ", self.resident_mib)?;
        write!(f, "{} wrong", self.wrongs)
    }
}

//! The end of everything, and whether all that was taken was given back.

use std::{collections::BTreeMap, fmt, time::Duration};

use testkit::{FakeParticipant, lab};

use crate::rooms::load::Kind;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestEnd {
    Answered,
    /// Its client hung up, as it was meant to.
    HungUp,
    /// Its participant was lost, or failed, after the answer had begun: the stream ended with an
    /// error.
    EndedByEvent,
    /// The same of an answer that is no stream: the connection was cut.
    Cut,
    /// Its client missed messages, and the end was among them.
    Missed,
    /// Refused, or failed before an answer began, with this status and an error that says why.
    Refused(u16),
    Wrong(String),
}

/// The outcomes of all requests of a sort.
#[derive(Debug, Default)]
pub(crate) struct RequestCounts {
    all: u64,
    answered: u64,
    hung_up: u64,
    ended_by_event: u64,
    cut: u64,
    missed: u64,
    refused: BTreeMap<u16, u64>,
    longest: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct ChurnCounts {
    pub(crate) joined: u64,
    pub(crate) left: u64,
    pub(crate) died: u64,
    pub(crate) superseded: u64,
    pub(crate) froze: u64,
    pub(crate) killed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct EventCounts {
    pub(crate) events: u64,
    pub(crate) tokens: u64,
    pub(crate) lagged: u64,
    pub(crate) resumed: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Chats.
    pub(crate) requests: RequestCounts,
    /// `llm:request`s.
    pub(crate) messages: RequestCounts,
    pub(crate) lives: ChurnCounts,
    pub(crate) events_seen: EventCounts,
    /// Participants that are still connected when all have stopped.
    pub(crate) kept: Vec<FakeParticipant>,
}

pub(crate) type Report = lab::Report<Tally>;

impl Tally {
    pub(crate) fn of(&mut self, kind: Kind) -> &mut RequestCounts {
        match kind {
            Kind::Chat => &mut self.requests,
            Kind::Message => &mut self.messages,
        }
    }

    /// A run in which hardly anything was answered has tested nothing. These are the clients of each kind.
    pub(crate) fn too_few(&self, clients: usize, message_clients: usize) -> Vec<String> {
        let requests = ("requests", &self.requests, clients);
        let messages = ("llm:requests", &self.messages, message_clients);
        let few =
            [requests, messages].into_iter().filter(|(_, fates, clients)| fates.are_few(*clients));
        few.map(|(what, fates, _)| format!("too few {what} were answered, of {fates}")).collect()
    }
}

impl RequestCounts {
    /// Counts one. Returns what is wrong with it.
    pub(crate) fn add(&mut self, fate: RequestEnd, took: Duration) -> Option<String> {
        self.all += 1;
        self.longest = self.longest.max(took);
        match fate {
            RequestEnd::Answered => self.answered += 1,
            RequestEnd::HungUp => self.hung_up += 1,
            RequestEnd::EndedByEvent => self.ended_by_event += 1,
            RequestEnd::Cut => self.cut += 1,
            RequestEnd::Missed => self.missed += 1,
            RequestEnd::Refused(status) => *self.refused.entry(status).or_default() += 1,
            RequestEnd::Wrong(what) => return Some(what),
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

impl fmt::Display for RequestCounts {
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

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, messages, lives, events_seen, .. } = self;
        let ChurnCounts { joined, left, died, superseded, froze, killed } = lives;
        let EventCounts { events, tokens, lagged, resumed } = events_seen;
        write!(f, "requests {requests}; llm:requests {messages}; ")?;
        write!(f, "participants joined {joined} times, {left} left, {died} died, ")?;
        write!(f, "{superseded} were superseded, {froze} froze, {killed} were killed; ")?;
        write!(f, "watchers saw {events} events and {tokens} tokens, {lagged} lagged, ")?;
        write!(f, "{resumed} resumed")
    }
}

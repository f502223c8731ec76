//! The registered nodes, their rights, and the messages to each.
//!
//! A pure state machine. Its driver
//!
//! 1. passes in connections ([`Switchboard::connected`], [`Switchboard::gone`]) and their messages
//!    ([`Switchboard::heard`]), and calls [`Switchboard::sweep`] every few seconds,
//! 2. carries out each [`Output`], in order, after every call.
//!
//! - `register`: registrations; `presence`: their announcements
//! - `forward`: messages from one node to another; `sessions`: relay sessions

mod forward;
mod presence;
mod register;
mod sessions;
#[cfg(test)]
mod tests;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    time::{Duration, Instant},
};

use base::NodeId;
use protocol::mesh::relay::{
    Code, Facts, Fault, Filter, PeerRecord, RegisterChallenge, RelayError, RelayNodeId, ToRelay,
};
use wire::Utf8Bytes;

use self::sessions::Sessions;
use crate::{
    bucket::Bucket,
    counts::{Counts, Summary},
    remember::Remember,
    settings::Settings,
};

/// A connection's number. No number is used twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Connection(u64);

/// The current time.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// By the monotonic clock.
    pub instant: Instant,
    /// By the calendar, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// An action for the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// Send a message.
    Send {
        /// On this connection.
        to: Connection,
        /// The message.
        text: Utf8Bytes,
        /// Whether nothing is read from its sender until there is room for it.
        waits: bool,
    },
    /// Close a connection. It gets no more outputs.
    Close {
        /// The connection.
        connection: Connection,
        /// The WebSocket close code.
        code: u16,
        /// The reason, for people.
        reason: &'static str,
    },
}

/// The content of a challenge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge {
    /// Random digits.
    pub nonce: String,
    /// The name by which the client dialled the relay.
    pub host: String,
}

/// A message of a connection.
#[derive(Debug)]
pub struct ReceivedMessage<'a> {
    /// The message as it came.
    pub text: &'a Utf8Bytes,
    /// The decoded message.
    pub message: Result<ToRelay<'a>, Fault>,
    /// Whether there is room for a long answer.
    pub has_room: bool,
}

/// The state of a connection after a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Standing {
    /// Whether its node is registered.
    pub registered: bool,
    /// How long nothing may be read from it, because its rate is used up.
    pub pause: Duration,
}

/// Checks the signature of a node over a text.
pub type Verify = fn(&NodeId, &str, &str) -> bool;

/// A connection with this many messages in a row refused for its rate is closed.
const MAX_STRIKES: u32 = 1_000;

/// Why a connection is closed.
pub(crate) mod close {
    pub(crate) const REPLACED: (u16, &str) = (1012, "Replaced by newer session");
    pub(crate) const EXPIRED: (u16, &str) = (1008, "Registration expired: nothing was said");
    pub(crate) const UNREGISTERED: (u16, &str) = (1008, "No registration came");
    pub(crate) const NOT_ADMITTED: (u16, &str) = (1008, "This relay does not take this node");
    pub(crate) const FLOOD: (u16, &str) = (1008, "Too many messages");
    pub(crate) const FULL: (u16, &str) = (1013, "The relay is full");
}

/// The registered nodes, their rights, and the messages to each.
pub struct Switchboard {
    settings: Settings,
    verify: Verify,
    memory: Box<dyn Remember>,
    next: u64,
    lines: HashMap<Connection, Line>,
    nodes: HashMap<RelayNodeId, Connection>,
    /// The connections that have asked for the list of nodes. They get joins and leaves.
    watchers: BTreeSet<Connection>,
    sessions: Sessions,
    outputs: VecDeque<Output>,
    counts: Counts,
}

/// A connection.
struct Line {
    challenge: Option<Challenge>,
    /// When it was opened, or when a message last came over it.
    heard: Instant,
    control: Bucket,
    discover: Bucket,
    data: Bucket,
    bytes: Bucket,
    changes: Bucket,
    joins: Bucket,
    leaves: Bucket,
    strikes: u32,
    /// The filter of a `discover` that came before registration, as stock gateways send it.
    early: Option<Filter>,
    node: Option<Node>,
}

/// A node that is registered.
struct Node {
    id: RelayNodeId,
    name: String,
    record: PeerRecord,
    facts: Facts,
    /// The signature with which it registered; empty if there was none.
    signature: String,
    heard_ms: u64,
}

impl Switchboard {
    /// A switchboard without connections.
    pub fn new(settings: Settings, verify: Verify, memory: Box<dyn Remember>) -> Self {
        Self {
            settings,
            verify,
            memory,
            next: 0,
            lines: HashMap::new(),
            nodes: HashMap::new(),
            watchers: BTreeSet::new(),
            sessions: Sessions::default(),
            outputs: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// Adds a connection. If it has a challenge, its registration must answer it. `None` if there
    /// are too many that have not registered.
    pub fn connected(&mut self, now: Now, challenge: Option<Challenge>) -> Option<Connection> {
        let strangers = self.lines.len().saturating_sub(self.nodes.len());
        if strangers >= self.settings.max_strangers {
            self.refused(Code::RelayFull);
            return None;
        }
        let connection = Connection(self.next);
        self.next += 1;
        let nonce = challenge.as_ref().map(|challenge| challenge.nonce.clone());
        self.lines.insert(connection, Line::new(&self.settings, now.instant, challenge));
        if let Some(nonce) = nonce {
            self.send(connection, RegisterChallenge { nonce }.encode());
        }
        Some(connection)
    }

    /// Handles a message of a connection.
    pub fn heard(
        &mut self,
        now: Now,
        connection: Connection,
        heard: ReceivedMessage<'_>,
    ) -> Standing {
        self.counts.received += 1;
        let Some(line) = self.lines.get_mut(&connection) else { return Standing::default() };
        line.heard = now.instant;
        if let Some(node) = &mut line.node {
            node.heard_ms = now.unix_ms;
        }
        let ReceivedMessage { text, message, has_room } = heard;
        let pause = match message {
            Ok(ToRelay::Forward(forward)) if !forward.is_control() => {
                self.forward(now, connection, &forward, text)
            }
            message => {
                self.control(now, connection, message, (text, has_room));
                Duration::ZERO
            }
        };
        let registered = self.lines.get(&connection).is_some_and(|line| line.node.is_some());
        Standing { registered, pause }
    }

    /// Removes a connection that has ended.
    pub fn gone(&mut self, now: Now, connection: Connection) {
        self.leave(now, connection);
        self.lines.remove(&connection);
        self.watchers.remove(&connection);
    }

    /// Closes the connections that were silent for too long.
    pub fn sweep(&mut self, now: Now) {
        let Settings { ttl, register_within, .. } = self.settings;
        let silence = |line: &Line| now.instant.saturating_duration_since(line.heard);
        let over = self.lines.iter().filter_map(|(connection, line)| match &line.node {
            Some(_) if silence(line) >= ttl => Some((*connection, close::EXPIRED)),
            None if silence(line) >= register_within => Some((*connection, close::UNREGISTERED)),
            _ => None,
        });
        for (connection, why) in over.collect::<BTreeMap<_, _>>() {
            self.close(now, connection, why);
        }
    }

    /// The next output. Call it until it returns `None`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Its counts.
    pub fn counts(&self) -> Counts {
        Counts {
            connections: self.lines.len(),
            registered: self.nodes.len(),
            sessions: self.sessions.len(),
            ..self.counts.clone()
        }
    }

    /// The registered nodes, by their ids.
    pub fn peers(&self) -> Vec<Summary> {
        let mut ids: Vec<&RelayNodeId> = self.nodes.keys().collect();
        ids.sort_unstable();
        let cut = |id: &RelayNodeId| id.as_str().chars().take(16).collect();
        ids.into_iter().map(|id| Summary { node: cut(id) }).collect()
    }

    fn control(
        &mut self,
        now: Now,
        connection: Connection,
        message: Result<ToRelay<'_>, Fault>,
        (text, has_room): (&Utf8Bytes, bool),
    ) {
        let Some(line) = self.lines.get_mut(&connection) else { return };
        if let Err(wait) = line.control.take(now.instant) {
            return self.strike(now, connection, wait);
        }
        // Only strikes in a row count. A node that keeps to the limit from time to time is not
        // closed.
        line.strikes = 0;
        match message {
            Err(fault) => self.refuse(connection, fault.code(), &fault.reply()),
            Ok(ToRelay::Register(register)) => self.register(now, connection, *register),
            Ok(ToRelay::Discover { filter, .. }) => {
                self.discover(now, connection, &filter, has_room);
            }
            Ok(ToRelay::Forward(forward)) => {
                self.forward(now, connection, &forward, text);
            }
        }
    }

    fn strike(&mut self, now: Now, connection: Connection, wait: Duration) {
        self.limit(connection, wait);
        let Some(line) = self.lines.get_mut(&connection) else { return };
        line.strikes += 1;
        if line.strikes >= MAX_STRIKES {
            self.close(now, connection, close::FLOOD);
        }
    }

    fn limit(&mut self, connection: Connection, wait: Duration) {
        // Rounded up to a tenth of a second, and never zero. A node that waits this long is let
        // through.
        let seconds = (wait.as_secs_f64() * 10.0).ceil().max(1.0) / 10.0;
        let error = RelayError::new(Code::RateLimited, format!("Try again in {seconds} s"));
        self.refuse(connection, Code::RateLimited, &error.retry_after(seconds));
    }

    fn close(&mut self, now: Now, connection: Connection, (code, reason): (u16, &'static str)) {
        self.gone(now, connection);
        self.outputs.push_back(Output::Close { connection, code, reason });
    }

    fn send(&mut self, to: Connection, text: impl Into<Utf8Bytes>) {
        self.put(to, text.into(), false);
    }

    fn put(&mut self, to: Connection, text: Utf8Bytes, waits: bool) {
        self.counts.sent += 1;
        self.outputs.push_back(Output::Send { to, text, waits });
    }

    fn refuse(&mut self, connection: Connection, code: Code, error: &RelayError) {
        self.refused(code);
        self.send(connection, error.encode());
    }

    fn refused(&mut self, code: Code) {
        *self.counts.refused.entry(code).or_default() += 1;
    }
}

impl std::fmt::Debug for Switchboard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Switchboard").field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Line {
    fn new(settings: &Settings, now: Instant, challenge: Option<Challenge>) -> Self {
        Self {
            challenge,
            heard: now,
            control: Bucket::full(settings.control, now),
            discover: Bucket::full(settings.discover, now),
            data: Bucket::full(settings.data, now),
            bytes: Bucket::full(settings.bytes, now),
            changes: Bucket::full(settings.changes, now),
            joins: Bucket::full(settings.joins, now),
            leaves: Bucket::full(settings.leaves, now),
            strikes: 0,
            early: None,
            node: None,
        }
    }
}

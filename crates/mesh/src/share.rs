//! The rules of sharing: which peers may ask this machine, when, and how much. Pure.

use std::collections::HashMap;

use base::NodeId;
use protocol::mesh::cluster::ErrorCode;

use crate::peer::PeerId;

/// The rules by which this machine shares with peers.
#[derive(Debug, Clone, Default)]
pub struct Share {
    /// The peers that may ask.
    pub with: Sharing,
    /// The only models that they may ask for; all models if it is empty.
    pub models: Vec<String>,
    /// When they may ask, in local time; always if it is empty.
    pub hours: Vec<Hours>,
    /// No request is taken while this machine's own jobs use more of its capacity than this, from 0 to 1.
    pub max_load: Option<f64>,
    /// The most requests of each peer at a time.
    pub jobs_per_peer: Option<u32>,
    /// The most requests of all peers together at a time.
    pub jobs: Option<u32>,
    /// The most tokens of each peer a day. The day begins at midnight UTC, as it does for budgets
    /// of keys.
    pub tokens_per_day: Option<u64>,
    /// Whether no request is taken while this machine runs on battery.
    pub pause_on_battery: bool,
    /// Whether models are passed on as well.
    pub models_offered: bool,
    /// Nodes that may ask under [`Sharing::Peers`] even if they have not proved the passcode.
    pub trusted: Vec<NodeId>,
}

/// The peers that may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sharing {
    /// No peer.
    #[default]
    Off,
    /// Peers that completed a hello, and proved the passcode if there is one; also trusted nodes.
    Peers,
    /// Any peer that reaches this machine.
    Anyone,
}

/// A span of the day, in minutes since midnight. A span that ends before it begins goes over
/// midnight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hours {
    /// Its first minute.
    pub from: u16,
    /// The minute after its last one.
    pub to: u16,
}

/// Milliseconds of a day.
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// The most peers whose use of the day is remembered. When a forgotten peer asks again, the ledger
/// is read again.
const MAX_REMEMBERED: usize = 10_000;

/// The present time, as the rules need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    /// Milliseconds since 1970.
    pub(crate) wall_ms: u64,
    /// Minutes since midnight, in local time.
    pub(crate) minute: u16,
}

impl Moment {
    pub(crate) fn now() -> Self {
        let local = jiff::Zoned::now();
        let minute = i16::from(local.hour()) * 60 + i16::from(local.minute());
        let minute = u16::try_from(minute).unwrap_or_default();
        Self { wall_ms: access::Moment::now().wall_ms, minute }
    }

    /// The last midnight in UTC, in milliseconds since 1970.
    pub(crate) fn midnight_ms(self) -> u64 {
        self.wall_ms - self.wall_ms % DAY_MS
    }
}

/// The state of this machine, for the rules.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct MachineLoad {
    /// The share of its capacity that its own jobs use, from 0 to 1.
    pub(crate) own_load: f64,
    /// The part of its speed that heat and battery leave for peers, in per cent; 0 if they get
    /// nothing.
    pub(crate) throttle: u8,
}

/// The asking peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asker<'a> {
    /// The peer.
    pub(crate) peer: &'a PeerId,
    /// Whether it has completed a hello, and proved the passcode if there is one.
    pub(crate) proved: bool,
    /// Whether the link is sealed, so that its id is proved.
    pub(crate) sealed: bool,
}

/// Why a request gets no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub(crate) struct Refusal {
    /// The code for programs.
    pub(crate) code: ErrorCode,
    /// The text for people.
    pub(crate) words: String,
    /// Status and body of the backend's own answer, for Warrens: they pass them on to the client.
    pub(crate) backend_answer: Option<(u16, String)>,
}

impl Refusal {
    pub(crate) fn new(code: ErrorCode, words: impl Into<String>) -> Self {
        Self { code, words: words.into(), backend_answer: None }
    }
}

/// Counts what peers use, and admits what the rules allow.
#[derive(Debug)]
pub(crate) struct Gate {
    share: Share,
    peers: HashMap<PeerId, PeerUsage>,
    running: u32,
}

/// The use by one peer.
#[derive(Debug, Clone, Copy, Default)]
struct PeerUsage {
    running: u32,
    /// The midnight since which tokens are counted; 0 before the ledger was asked.
    since_ms: u64,
    tokens: u64,
    /// The same two numbers for the day before. They count again if a clock that jumped ahead is
    /// set back.
    before: (u64, u64),
}

impl Gate {
    pub(crate) fn new(share: Share) -> Self {
        Self { share, peers: HashMap::new(), running: 0 }
    }

    /// Whether the ledger must be asked first what the peer has used today.
    pub(crate) fn wants_used(&self, peer: &PeerId) -> bool {
        // For a peer that is known here, all its use of this day was counted here.
        self.share.tokens_per_day.is_some() && !self.peers.contains_key(peer)
    }

    /// Takes in the ledger's count of the peer's tokens since the last midnight.
    pub(crate) fn used(&mut self, now: Moment, peer: &PeerId, tokens: u64) {
        self.make_room();
        let usage = self.peers.entry(peer.clone()).or_default();
        if usage.since_ms != now.midnight_ms() {
            (usage.since_ms, usage.tokens) = (now.midnight_ms(), tokens);
        }
    }

    /// Admits a request, which counts until [`Gate::settle`].
    ///
    /// # Errors
    /// The [`Refusal`] when a rule forbids it.
    pub(crate) fn admit(
        &mut self,
        now: Moment,
        asker: Asker<'_>,
        load: MachineLoad,
    ) -> Result<(), Refusal> {
        self.share.lets_in(asker)?;
        self.share.pauses(now, load).map_or(Ok(()), Err)?;
        let usage = self.usage(now, asker.peer);
        self.within(usage)?;
        self.make_room();
        self.running += 1;
        let usage = PeerUsage { running: usage.running + 1, ..usage };
        self.peers.insert(asker.peer.clone(), usage);
        Ok(())
    }

    /// Records that an admitted request has ended and used `tokens` tokens.
    pub(crate) fn settle(&mut self, now: Moment, peer: &PeerId, tokens: u64) {
        let mut usage = self.usage(now, peer);
        self.running = self.running.saturating_sub(1);
        usage.running = usage.running.saturating_sub(1);
        usage.tokens = usage.tokens.saturating_add(tokens);
        // Without a daily limit, a peer that has no running request need not be remembered.
        if usage.running > 0 || self.share.tokens_per_day.is_some() {
            self.peers.insert(peer.clone(), usage);
        } else {
            self.peers.remove(peer);
        }
    }

    /// The number of peers' requests that are being answered.
    pub(crate) fn running(&self) -> u32 {
        self.running
    }

    /// How many peers are remembered.
    #[cfg(test)]
    fn remembered(&self) -> usize {
        self.peers.len()
    }

    /// The use of a peer as of now. A new day begins with no tokens used.
    fn usage(&self, now: Moment, peer: &PeerId) -> PeerUsage {
        let mut usage = self.peers.get(peer).copied().unwrap_or_default();
        if usage.since_ms != now.midnight_ms() {
            let last_day = (usage.since_ms, usage.tokens);
            let is_back = usage.before.0 == now.midnight_ms();
            usage.tokens = if is_back { usage.before.1 } else { 0 };
            (usage.since_ms, usage.before) = (now.midnight_ms(), last_day);
        }
        usage
    }

    fn within(&self, usage: PeerUsage) -> Result<(), Refusal> {
        let full = |words: &str| Err(Refusal::new(ErrorCode::QueueFull, words));
        let is_over = |limit: Option<u32>, has: u32| limit.is_some_and(|limit| has >= limit);
        if is_over(self.share.jobs, self.running) {
            return full("as many requests of peers are being answered as this machine allows");
        }
        if is_over(self.share.jobs_per_peer, usage.running) {
            return full("as many of your requests are being answered as this machine allows");
        }
        if self.share.tokens_per_day.is_some_and(|limit| usage.tokens >= limit) {
            let words = "you have used the tokens of this day; the next begins at midnight UTC";
            return Err(Refusal::new(ErrorCode::Unavailable, words));
        }
        Ok(())
    }

    /// Forgets peers if too many are remembered. Peers with running requests stay, since their
    /// counts would be lost.
    fn make_room(&mut self) {
        if self.peers.len() >= MAX_REMEMBERED {
            self.peers.retain(|_, usage| usage.running > 0);
        }
    }
}

impl Share {
    /// Checks whether a peer may ask at all.
    ///
    /// # Errors
    /// The [`Refusal`] if it may not.
    pub(crate) fn lets_in(&self, asker: Asker<'_>) -> Result<(), Refusal> {
        let trusted = asker.sealed && asker.peer.node().is_some_and(|id| self.trusted.contains(id));
        match self.with {
            Sharing::Anyone => Ok(()),
            Sharing::Peers if asker.proved || trusted => Ok(()),
            Sharing::Peers => {
                let words = "this machine answers only peers that it knows: complete a hello, with \
                             the passcode if there is one, over a link that nobody else reads";
                Err(Refusal::new(ErrorCode::Unavailable, words))
            }
            Sharing::Off => {
                let words = "this machine answers no peers: it was not told to share";
                Err(Refusal::new(ErrorCode::Unavailable, words))
            }
        }
    }

    /// Why requests of all peers are refused now; `None` if they are not.
    pub(crate) fn pauses(&self, now: Moment, load: MachineLoad) -> Option<Refusal> {
        let paused = |words: &str| Some(Refusal::new(ErrorCode::Unavailable, words));
        if load.throttle == 0 {
            return paused("this machine takes nothing now: it runs on battery, or is too hot");
        }
        if !self.hours.is_empty() && !self.hours.iter().any(|hours| hours.has(now.minute)) {
            return paused("this machine takes nothing at this hour");
        }
        if self.max_load.is_some_and(|most| load.own_load > most) {
            let words = "this machine is busy with its own requests";
            return Some(Refusal::new(ErrorCode::QueueFull, words));
        }
        None
    }

    /// Whether peers may ask for the model that has this name here.
    pub(crate) fn offers(&self, model: &str) -> bool {
        let listed = |listed: &String| listed.eq_ignore_ascii_case(model);
        self.models.is_empty() || self.models.iter().any(listed)
    }
}

impl Hours {
    /// Whether this minute of the day is in the span. A span that ends where it begins is the whole
    /// day.
    fn has(self, minute: u16) -> bool {
        let Self { from, to } = self;
        if from < to { (from..to).contains(&minute) } else { minute >= from || minute < to }
    }
}

#[cfg(test)]
mod tests;

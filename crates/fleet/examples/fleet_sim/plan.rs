//! A run as data, made from a seed.
//!
//! Each step has a random stream of its own, from the seed and its index, so a step stays the same when
//! others are dropped.

/// SplitMix64, by Sebastiano Vigna, in the public domain.
#[derive(Debug, Clone)]
pub(crate) struct Stream(u64);

impl Stream {
    pub(crate) fn new(seed: u64, index: u64) -> Self {
        let mut stream = Self(seed ^ index.wrapping_mul(0xd6e8_feb8_6659_fd93));
        stream.bits();
        stream
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    pub(crate) fn wide(&mut self) -> u128 {
        u128::from(self.bits()) << 64 | u128::from(self.bits())
    }

    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.bits() % end.max(1)
    }

    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or_default()
    }

    pub(crate) fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// A run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    /// For each server, how many slots its worker has, and which models, as bits; 0 slots for none.
    pub(crate) workers: Vec<(u32, u8)>,
    /// Of a hundred messages, how many are lost, and how many come twice.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// How late a message may come, in milliseconds; above 30 they overtake each other.
    pub(crate) late_ms: u64,
    /// Instead, words about slots are lost so often that leases end while their holders are busy, and frames
    /// are late.
    pub(crate) is_noisy: bool,
    pub(crate) steps: Vec<Step>,
}

/// Something that happens, some time after the step before.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    pub(crate) wait_ms: u64,
    pub(crate) act: Act,
    /// For everything that the act chooses when its time comes.
    pub(crate) stream: Stream,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Act {
    /// A client sends some jobs to a server.
    Jobs,
    /// A client hangs up.
    HangUp,
    /// A server's process is stopped for a while.
    Pause,
    /// A server is killed, and starts again.
    Kill,
    /// A server loses the transport.
    Cut,
    /// All servers lose the transport.
    Outage,
    /// Messages between two servers are lost, one way or both.
    Deafen,
    /// Everything is whole again.
    Heal,
    /// A room is created.
    Room,
    /// All rooms get participants at a server, or lose them.
    Use,
    /// The place of the records loses all of them.
    Forget,
}

const ACTS: [(Act, u64); 11] = [
    (Act::Jobs, 50),
    (Act::HangUp, 8),
    (Act::Pause, 5),
    (Act::Kill, 5),
    (Act::Cut, 5),
    (Act::Outage, 2),
    (Act::Deafen, 3),
    (Act::Heal, 8),
    (Act::Room, 6),
    (Act::Use, 10),
    (Act::Forget, 1),
];

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, 0);
        let servers = [2, 2, 3, 3, 4, 5][stream.index(6)];
        let is_harsh = stream.one_in(2);
        let is_kind = stream.one_in(3);
        let is_noisy = is_kind && is_harsh && stream.one_in(2);
        let count = 20 + stream.below(50);
        let workers = (0..servers).map(|_| worker(&mut stream)).collect();
        let steps = (1..=count).map(|index| Step::new(seed, index));
        Self {
            seed,
            workers,
            lost: if is_harsh { stream.below(40) } else { 0 },
            doubled: if is_harsh { stream.below(20) } else { 0 },
            late_ms: if is_harsh { 30 + stream.below(1_500) } else { 10 },
            is_noisy,
            steps: steps.filter(|step| !is_kind || step.act.is_kind()).collect(),
        }
    }
}

fn worker(stream: &mut Stream) -> (u32, u8) {
    let slots = [0, 1, 1, 2, 3, 4][stream.index(6)];
    // One bit at least, of three models.
    let models = 1 + stream.below(7);
    (slots, u8::try_from(models).unwrap_or(1))
}

impl Act {
    /// Whether it harms nobody.
    fn is_kind(self) -> bool {
        matches!(self, Self::Jobs | Self::HangUp | Self::Room | Self::Use)
    }
}

impl Step {
    fn new(seed: u64, index: u64) -> Self {
        let mut stream = Stream::new(seed, index);
        let wait_ms = match stream.below(10) {
            0..=4 => stream.below(60),
            5..=8 => stream.below(700),
            _ => stream.below(5_000),
        };
        Self { wait_ms, act: act(&mut stream), stream }
    }
}

fn act(stream: &mut Stream) -> Act {
    let total = ACTS.iter().map(|(_, weight)| weight).sum();
    let mut at = stream.below(total);
    for (act, weight) in ACTS {
        if at < weight {
            return act;
        }
        at -= weight;
    }
    Act::Jobs
}

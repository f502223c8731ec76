//! A run as data, made from a seed.
//!
//! Each step has a random stream of its own, from the seed and its index. So a step stays the same
//! when others are dropped, and a failing run can be made short.

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
    pub(crate) members: usize,
    /// Which members dial each other: a connected graph.
    pub(crate) edges: Vec<(usize, usize)>,
    /// Of a hundred messages, how many are lost, and how many come twice.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    /// How late a message may come, in milliseconds; above 30 they overtake each other.
    pub(crate) late_ms: u64,
    pub(crate) batch_entries: usize,
    /// Whether the members are equal before the first step.
    pub(crate) begins_equal: bool,
    /// Whether messages go as bytes.
    pub(crate) as_bytes: bool,
    /// Whether the claim of the rules is checked at every member after every step.
    pub(crate) check_each: bool,
    /// Whether the run goes on until tombstones and old incarnations are gone.
    pub(crate) to_the_end: bool,
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
    /// A member makes or changes a project.
    Project,
    /// A member deletes a project.
    DeleteProject,
    /// A member begins or changes a session.
    Session,
    /// A member ends a session of its own.
    EndSession,
    /// A member takes the owner of a session for lost.
    Forget,
    /// A session moves to another member.
    Move,
    /// A plain peer says something to one or two members.
    Plain,
    /// A link loses everything, in one direction or in both.
    Cut,
    /// All links are whole again.
    Heal,
    /// A link breaks, and is dialled again.
    Break,
    /// A member is killed, with the newest writes lost, and starts again.
    Crash,
    /// A member starts from an old disk.
    Restore,
    /// A wall clock jumps.
    Clock,
    /// A copy of a member's disk runs on another machine for some seconds.
    Clone,
    /// A month passes without links, for all or for all but one link.
    Month,
    /// A member drops its tombstones.
    Collect,
    /// A member's disk becomes slow, or fast again.
    Disk,
}

const ACTS: [(Act, u64); 17] = [
    (Act::Project, 22),
    (Act::DeleteProject, 10),
    (Act::Session, 14),
    (Act::EndSession, 5),
    (Act::Forget, 3),
    (Act::Move, 3),
    (Act::Plain, 8),
    (Act::Cut, 6),
    (Act::Heal, 4),
    (Act::Break, 6),
    (Act::Crash, 6),
    (Act::Restore, 3),
    (Act::Clock, 3),
    (Act::Clone, 2),
    (Act::Month, 1),
    (Act::Collect, 6),
    (Act::Disk, 3),
];

impl Plan {
    pub(crate) fn new(seed: u64) -> Self {
        let mut stream = Stream::new(seed, 0);
        let members = [2, 3, 3, 3, 4, 4, 5, 6][stream.index(8)];
        let is_long = seed % 50 == 7;
        let count = if is_long { 300 } else { 20 + stream.index(40) };
        let is_harsh = stream.one_in(2);
        Self {
            seed,
            members,
            edges: edges(members, &mut stream),
            lost: if is_harsh { stream.below(30) } else { 0 },
            doubled: if is_harsh { stream.below(20) } else { 0 },
            late_ms: if is_harsh { 30 + stream.below(3_000) } else { 30 },
            batch_entries: [1, 2, 3, 5, 10, 100][stream.index(6)],
            begins_equal: !stream.one_in(3),
            as_bytes: stream.one_in(16),
            check_each: is_long || stream.one_in(16),
            to_the_end: stream.one_in(12),
            steps: (1..=count as u64).map(|index| Step::new(seed, index)).collect(),
        }
    }
}

/// A tree, and some more.
fn edges(members: usize, stream: &mut Stream) -> Vec<(usize, usize)> {
    let mut edges: Vec<_> = (1..members).map(|member| (stream.index(member), member)).collect();
    let more = stream.below(3);
    for one in 0..members {
        for other in one + 1..members {
            if !edges.contains(&(one, other)) && stream.below(3) < more {
                edges.push((one, other));
            }
        }
    }
    edges
}

impl Step {
    fn new(seed: u64, index: u64) -> Self {
        let mut stream = Stream::new(seed, index);
        let wait_ms = match stream.below(10) {
            0..=3 => stream.below(20),
            4..=7 => stream.below(500),
            8 => stream.below(4_000),
            _ => stream.below(12_000),
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
    Act::Project
}

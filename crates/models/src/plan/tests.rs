//! The plan in simulated time: single rules, and generated histories of good and bad peers.

use proptest::prelude::*;

use super::*;

const START: Duration = Duration::ZERO;

fn piece(piece: u32) -> PieceId {
    PieceId { file: 0, piece }
}

fn plan(count: u32, peers: &[u8]) -> Plan<u8> {
    let mut plan = Plan::new((0..count).map(piece).collect());
    for peer in peers {
        assert_eq!(plan.handle(START, Event::Joined(*peer)), Verdict::Noted);
    }
    plan
}

/// Asks a peer for all that it is to be asked.
fn fill(plan: &mut Plan<u8>, now: Duration, peer: u8) -> Vec<u32> {
    std::iter::from_fn(|| plan.next_for(now, &peer)).map(|piece| piece.piece).collect()
}

#[test]
fn a_peer_is_asked_for_a_window_and_for_one_more_with_each_answer() {
    let mut plan = plan(40, &[1]);
    assert_eq!(fill(&mut plan, START, 1), (0..16).collect::<Vec<_>>());
    assert_eq!(plan.handle(START, Event::Arrived(1, piece(3))), Verdict::Accepted);
    assert_eq!(fill(&mut plan, START, 1), [16]);
    assert_eq!((plan.missing(), plan.open(&1)), (39, 16));
    assert_eq!(plan.next_for(START, &2), None, "one that has not joined is asked nothing");
}

#[test]
fn a_peer_that_leaves_or_stalls_leaves_its_pieces_to_others() {
    let mut plan = plan(32, &[1, 2]);
    fill(&mut plan, START, 1);
    assert_eq!(fill(&mut plan, START, 2), (16..32).collect::<Vec<_>>());
    plan.handle(START, Event::Left(1));
    (16..32).for_each(|i| _ = plan.handle(START, Event::Arrived(2, piece(i))));
    assert_eq!(fill(&mut plan, START, 2), (0..16).collect::<Vec<_>>());

    plan.handle(START, Event::Joined(3));
    assert_eq!(plan.poll_timeout(), Some(STALL));
    assert!(plan.handle_timeout(STALL - Duration::from_millis(1)).is_empty());
    assert_eq!(plan.open(&2), 16);
    assert!(plan.handle_timeout(STALL).is_empty());
    assert_eq!(plan.open(&2), 0);
    assert_eq!(fill(&mut plan, STALL, 2), [0], "it has to answer one before it gets more");
    assert_eq!(fill(&mut plan, STALL, 3).len(), 16);
    let late = Event::Arrived(2, piece(5));
    assert_eq!(plan.handle(STALL, late), Verdict::Accepted, "what comes late is welcome");
    assert_eq!(plan.handle(STALL, Event::Arrived(3, piece(5))), Verdict::Repeated);
}

#[test]
fn a_slow_peer_is_not_stalled_as_long_as_something_comes() {
    let mut plan = plan(16, &[1]);
    fill(&mut plan, START, 1);
    for i in 0..16 {
        let now = Duration::from_secs(29) * (i + 1);
        assert!(plan.handle_timeout(now).is_empty());
        assert_eq!(plan.handle(now, Event::Arrived(1, piece(i))), Verdict::Accepted);
    }
    assert!(plan.is_done() && plan.poll_timeout().is_none());
}

#[test]
fn a_peer_from_which_nothing_comes_is_let_go_and_may_join_again() {
    let mut plan = plan(4, &[1]);
    for stall in 1..=MAX_STALLS {
        fill(&mut plan, STALL * (stall - 1), 1);
        let gone = plan.handle_timeout(STALL * stall);
        assert_eq!(gone.is_empty(), stall < MAX_STALLS);
    }
    assert_eq!((plan.peers().count(), plan.missing()), (0, 4));
    assert_eq!(plan.handle(STALL * 4, Event::Joined(1)), Verdict::Noted);
    assert_eq!(fill(&mut plan, STALL * 4, 1), [0, 1, 2, 3]);
}

#[test]
fn a_peer_with_three_wrong_pieces_is_let_go_for_good() {
    let mut plan = plan(20, &[1, 2]);
    fill(&mut plan, START, 1);
    for i in 0..3 {
        let last = i == 2;
        let verdict = plan.handle(START, Event::Corrupt(1, piece(i)));
        assert_eq!(verdict == Verdict::Dropped, last);
    }
    assert_eq!(plan.handle(START, Event::Joined(1)), Verdict::Dropped);
    assert_eq!(plan.next_for(START, &1), None);
    assert_eq!(fill(&mut plan, START, 2), (0..16).collect::<Vec<_>>());
}

#[test]
fn the_bad_peers_that_are_remembered_are_bounded() {
    let mut plan = Plan::new(vec![piece(0)]);
    for peer in 0..MAX_BANNED as u32 + 10 {
        plan.handle(START, Event::Joined(peer));
        (0..3).for_each(|_| _ = plan.handle(START, Event::Corrupt(peer, piece(0))));
    }
    assert_eq!(plan.banned.len(), MAX_BANNED);
}

#[test]
fn the_last_pieces_are_asked_of_a_second_peer_but_not_of_a_third() {
    let mut plan = plan(6, &[1, 2, 3]);
    assert_eq!(fill(&mut plan, START, 1).len(), 6);
    assert_eq!(fill(&mut plan, START, 2), [0, 1, 2, 3], "no more than MAX_SECOND");
    assert_eq!(fill(&mut plan, START, 3), [4, 5]);
    assert_eq!(plan.handle(START, Event::Arrived(2, piece(0))), Verdict::Accepted);
    assert_eq!(plan.handle(START, Event::Arrived(1, piece(0))), Verdict::Repeated);
    plan.handle(START, Event::Left(1));
    assert!(plan.wants(piece(1)), "the second is still at it");
    assert_eq!(fill(&mut plan, START, 3), [1, 2]);
}

#[test]
fn a_piece_nobody_was_asked_for_is_not_accepted() {
    let mut plan = plan(40, &[1]);
    fill(&mut plan, START, 1);
    assert!(!plan.wants(piece(30)));
    for strange in [piece(30), piece(99), PieceId { file: 7, piece: 0 }] {
        assert_eq!(plan.handle(START, Event::Arrived(1, strange)), Verdict::Repeated);
    }
    assert_eq!(plan.missing(), 40);
}

/// How a simulated peer behaves.
#[derive(Debug, Clone, Copy)]
struct Habit {
    /// In ms.
    answers_after: u64,
    /// One in this many answers is wrong; 0 for never.
    wrong_each: u32,
    /// Stops answering after this many answers.
    silent_after: u32,
    /// Leaves after this many answers, and comes back after a second.
    leaves_after: u32,
}

fn habit() -> impl Strategy<Value = Habit> {
    let after = |most: u32| prop_oneof![Just(u32::MAX), 0..most];
    (1_u64..5_000, 0_u32..5, after(20), after(20)).prop_map(|(ms, wrong, silent, leaves)| Habit {
        answers_after: ms,
        wrong_each: wrong,
        silent_after: silent,
        leaves_after: leaves,
    })
}

const GOOD: Habit =
    Habit { answers_after: 300, wrong_each: 0, silent_after: u32::MAX, leaves_after: u32::MAX };

/// Runs a plan with these peers until it is done; returns how many pieces each brought.
struct Simulation {
    plan: Plan<usize>,
    habits: Vec<Habit>,
    answers: Vec<u32>,
    /// Asked and not answered, with when the answer comes.
    open: Vec<BTreeMap<PieceId, Duration>>,
    asked: BTreeSet<PieceId>,
    accepted: BTreeSet<PieceId>,
    brought: Vec<u32>,
    now: Duration,
}

impl Simulation {
    fn new(count: u32, habits: Vec<Habit>) -> Self {
        let mut plan = Plan::new((0..count).map(piece).collect());
        (0..habits.len()).for_each(|peer| _ = plan.handle(START, Event::Joined(peer)));
        let none = vec![0; habits.len()];
        Self {
            plan,
            open: vec![BTreeMap::new(); habits.len()],
            answers: none.clone(),
            brought: none,
            habits,
            asked: BTreeSet::new(),
            accepted: BTreeSet::new(),
            now: START,
        }
    }

    fn run(mut self, count: u32) -> Vec<u32> {
        for _ in 0..100_000 {
            if self.plan.is_done() {
                let all = (0..count).map(piece).collect();
                assert_eq!((&self.asked, &self.accepted), (&all, &all));
                return self.brought;
            }
            self.ask();
            self.step();
        }
        panic!("it does not end: {:?}", self.plan);
    }

    fn ask(&mut self) {
        for peer in 0..self.habits.len() {
            while let Some(piece) = self.plan.next_for(self.now, &peer) {
                assert!(!self.accepted.contains(&piece), "asked for what is there");
                // One after another: the answer comes after those before it.
                let wait = Duration::from_millis(self.habits[peer].answers_after);
                let last = self.open[peer].values().max().copied().unwrap_or(self.now);
                self.open[peer].insert(piece, last.max(self.now) + wait);
                self.asked.insert(piece);
            }
            assert!(self.plan.open(&peer) <= WINDOW);
        }
    }

    /// The next answer, or the plan's own timeout.
    fn step(&mut self) {
        let answering = |peer: &usize| self.answers[*peer] < self.habits[*peer].silent_after;
        let answers = (0..self.habits.len())
            .filter(answering)
            .flat_map(|peer| self.open[peer].iter().map(move |(piece, at)| (*at, peer, *piece)));
        let next = answers.min();
        let timeout = self.plan.poll_timeout();
        match next {
            Some((at, peer, piece)) if timeout.is_none_or(|timeout| at <= timeout) => {
                self.now = at;
                self.answer(peer, piece);
            }
            _ => {
                self.now = timeout.expect("nothing would ever happen again");
                self.plan
                    .handle_timeout(self.now)
                    .into_iter()
                    .for_each(|gone| self.open[gone].clear());
            }
        }
    }

    fn answer(&mut self, peer: usize, piece: PieceId) {
        self.open[peer].remove(&piece);
        self.answers[peer] += 1;
        let (answers, habit) = (self.answers[peer], self.habits[peer]);
        if habit.wrong_each > 0 && answers.is_multiple_of(habit.wrong_each) {
            if self.plan.handle(self.now, Event::Corrupt(peer, piece)) == Verdict::Dropped {
                self.open[peer].clear();
                assert_eq!(self.plan.next_for(self.now, &peer), None);
            }
        } else if self.plan.handle(self.now, Event::Arrived(peer, piece)) == Verdict::Accepted {
            assert!(self.accepted.insert(piece), "accepted twice");
            self.brought[peer] += 1;
        }
        if answers == habit.leaves_after {
            self.plan.handle(self.now, Event::Left(peer));
            self.open[peer].clear();
            self.plan.handle(self.now, Event::Joined(peer));
        }
    }
}

#[test]
fn a_peer_that_is_four_times_as_fast_brings_about_four_times_as_much() {
    let slow = Habit { answers_after: 400, ..GOOD };
    let fast = Habit { answers_after: 100, ..GOOD };
    let brought = Simulation::new(1_000, vec![slow, fast]).run(1_000);
    assert!((170..230).contains(&brought[0]), "{brought:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn every_piece_arrives_once_whatever_others_do_as_long_as_one_peer_is_good(
        count in 0_u32..120,
        mut habits in prop::collection::vec(habit(), 0..6),
        place in 0_usize..6,
    ) {
        habits.insert(place.min(habits.len()), GOOD);
        Simulation::new(count, habits).run(count);
    }
}

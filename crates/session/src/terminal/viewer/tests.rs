//! What a viewer is sent, whatever it reads and whenever.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use super::*;

const BOUND: usize = 2 * 1024 * 1024;

/// A session and one client of it. `shown` stands for the client's terminal: all output as it
/// arrived. A snapshot replaces it with all output so far.
struct World {
    log: Log,
    output: Vec<u8>,
    /// The length of the output after each number.
    lengths: Vec<usize>,
    viewer: Viewer,
    now: Instant,
    shown: Vec<u8>,
    /// The number of the chunk that the client saw last.
    seen: Option<u64>,
    /// The names of the steps.
    steps: Vec<&'static str>,
}

impl World {
    fn new(start: Start) -> Self {
        Self::with(start, BOUND, &[])
    }

    /// A session that already has chunks of these lengths.
    fn with(start: Start, bound: usize, chunks: &[usize]) -> Self {
        let now = Instant::now();
        let log = Log::new(bound);
        let mut world = Self {
            viewer: Viewer::new(start, PATIENCE, &log, now),
            log,
            output: Vec::new(),
            lengths: vec![0],
            now,
            shown: Vec::new(),
            seen: None,
            steps: Vec::new(),
        };
        chunks.iter().for_each(|length| world.output(*length));
        world.viewer = Viewer::new(start, PATIENCE, &world.log, now);
        if let Start::After(seq) = start
            && let Some(length) = world.lengths.get(seq as usize)
        {
            world.shown = world.output[..*length].to_vec();
        }
        world
    }

    fn output(&mut self, length: usize) {
        let text = vec![b'a' + (self.lengths.len() % 26) as u8; length];
        self.output.extend(&text);
        self.lengths.push(self.output.len());
        self.log.append(Bytes::from(text));
    }

    /// Takes one step; returns whether there may be another.
    fn step(&mut self, has_room: bool) -> bool {
        let step = self.viewer.next(&self.log, has_room, self.now);
        let name = match step {
            Step::Resumed { after } => {
                assert_eq!(self.seen.replace(after), None);
                "resumed"
            }
            Step::Frames(chunks) => {
                let (mut bytes, count) = (0, chunks.len());
                for chunk in chunks {
                    assert_eq!(Some(chunk.seq - 1), self.seen);
                    bytes += chunk.text.len() as u64;
                    self.seen = Some(chunk.seq);
                    self.shown.extend(&chunk.text);
                }
                assert!((1..=STEP).contains(&bytes) || count == 1);
                "frames"
            }
            Step::Resync { skipped_chunks, first } => {
                assert_eq!(first, self.seen.is_none());
                let missed = self.seen.map_or(0, |seen| self.log.last_seq() - seen);
                assert_eq!(skipped_chunks, missed);
                self.shown.clone_from(&self.output);
                self.seen = Some(self.log.last_seq());
                self.viewer.resynced(self.log.last_seq());
                "resync"
            }
            Step::Wait => "wait",
            Step::Dropped => "dropped",
        };
        assert!(has_room || matches!(name, "wait" | "dropped"));
        self.steps.push(name);
        !matches!(name, "wait" | "dropped")
    }

    fn catch_up(&mut self) {
        while self.step(true) {}
    }

    fn steps(&mut self) -> Vec<&'static str> {
        std::mem::take(&mut self.steps)
    }
}

#[test]
fn a_new_viewer_gets_a_snapshot_and_then_the_output() {
    let mut world = World::with(Start::Snapshot, BOUND, &[10, 20]);
    world.catch_up();
    world.output(5);
    world.catch_up();
    assert_eq!(world.steps(), ["resync", "wait", "frames", "wait"]);
    assert_eq!(world.shown, world.output);
}

#[test]
fn a_returning_viewer_gets_the_missed_output_and_no_snapshot() {
    let mut world = World::with(Start::After(1), BOUND, &[10, 20, 30]);
    world.catch_up();
    assert_eq!(world.steps(), ["resumed", "frames", "wait"]);
    assert_eq!(world.shown, world.output);
}

#[test]
fn a_viewer_that_saw_everything_before_the_first_output_resumes() {
    let mut world = World::new(Start::After(0));
    world.catch_up();
    world.output(1);
    world.catch_up();
    assert_eq!(world.steps(), ["resumed", "wait", "frames", "wait"]);
}

#[test]
fn a_viewer_that_returns_late_or_from_another_life_gets_a_snapshot() {
    for seq in [0, 1, 101, u64::MAX] {
        let mut world = World::with(Start::After(seq), 10_000, &[1000; 100]);
        world.catch_up();
        assert_eq!(world.steps(), ["resync", "wait"], "{seq}");
    }
}

#[test]
fn a_number_of_another_life_stays_one_when_it_is_given_again() {
    let mut world = World::with(Start::After(3), BOUND, &[10, 20]);
    (0..3).for_each(|_| world.output(30));
    world.catch_up();
    assert_eq!(world.steps(), ["resync", "wait"]);
    assert_eq!(world.shown, world.output);
}

#[test]
fn a_snapshot_is_asked_for_until_it_was_sent() {
    let mut world = World::new(Start::Snapshot);
    world.output(10);
    for _ in 0..3 {
        let step = world.viewer.next(&world.log, true, world.now);
        assert!(matches!(step, Step::Resync { skipped_chunks: 0, first: true }));
    }
    world.viewer.resynced(0);
    assert!(matches!(world.viewer.next(&world.log, true, world.now), Step::Frames(_)));
}

#[test]
fn a_viewer_that_takes_everything_never_lags() {
    let mut world = World::new(Start::After(0));
    for _ in 0..200 {
        (0..10).for_each(|_| world.output(60_000));
        world.catch_up();
    }
    assert_eq!(world.shown, world.output);
    assert!(!world.steps().contains(&"resync"));
}

#[test]
fn a_viewer_without_room_lags_only_beyond_its_backlog() {
    let mut world = World::new(Start::After(0));
    world.catch_up();
    world.output(BACKLOG as usize - 1);
    world.output(1);
    world.step(false);
    assert_eq!(world.viewer.poll_timeout(), None);
    world.catch_up();
    assert_eq!(world.shown, world.output);
}

#[test]
fn a_lagging_viewer_gets_nothing_until_it_has_room_and_then_a_snapshot() {
    let mut world = World::new(Start::After(0));
    world.catch_up();
    (0..3).for_each(|_| world.output(100_000));
    world.step(false);
    assert_eq!(world.viewer.poll_timeout(), Some(world.now + PATIENCE));
    world.output(10);
    world.step(false);
    world.steps();
    world.catch_up();
    assert_eq!(world.steps(), ["resync", "wait"]);
    assert_eq!((world.seen, world.viewer.poll_timeout()), (Some(4), None));
}

#[test]
fn a_viewer_that_the_log_overtook_lags_and_has_room_at_once() {
    let mut world = World::with(Start::After(0), 200_000, &[]);
    world.catch_up();
    (0..10).for_each(|_| world.output(60_000));
    world.steps();
    world.catch_up();
    assert_eq!(world.steps(), ["resync", "wait"]);
}

#[test]
fn a_viewer_without_room_for_too_long_is_dropped_for_good() {
    let mut world = World::new(Start::After(0));
    world.catch_up();
    (0..3).for_each(|_| world.output(100_000));
    world.step(false);
    world.now += PATIENCE - Duration::from_millis(1);
    assert!(!world.step(false));
    world.steps();
    world.now += Duration::from_millis(1);
    world.step(false);
    world.step(true);
    world.viewer.resynced(1);
    world.step(true);
    assert_eq!(world.steps(), ["dropped"; 3]);
    assert_eq!(world.viewer.poll_timeout(), None);
}

#[test]
fn a_viewer_that_takes_its_snapshot_in_time_may_lag_again() {
    let mut world = World::new(Start::After(0));
    world.catch_up();
    for _ in 0..5 {
        (0..3).for_each(|_| world.output(100_000));
        world.step(false);
        world.now += PATIENCE / 2;
        assert!(world.step(true));
    }
    assert!(!world.steps().contains(&"dropped"));
}

#[test]
fn a_new_viewer_that_never_has_room_is_dropped() {
    let mut world = World::new(Start::After(0));
    world.step(false);
    world.now = world.viewer.poll_timeout().unwrap();
    world.step(false);
    assert_eq!(world.steps(), ["wait", "dropped"]);
}

#[derive(Debug, Clone)]
enum Event {
    Output(usize),
    Step { has_room: bool },
    Later(Duration),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => prop_oneof![1_usize..500, 40_000_usize..65_000, Just(100_000)].prop_map(Event::Output),
        3 => any::<bool>().prop_map(|has_room| Event::Step { has_room }),
        1 => (0_u64..8000).prop_map(|millis| Event::Later(Duration::from_millis(millis))),
    ]
}

proptest! {
    /// In any order of events, a client gets a snapshot or keeps what it had, and then gets every
    /// chunk in order. [`World::step`] checks that no chunk is missing and none comes twice.
    #[test]
    fn each_byte_of_output_arrives_exactly_once(
        before in vec(1_usize..50_000, 0..10),
        start in prop_oneof![(0_u64..12).prop_map(Start::After), Just(Start::Snapshot)],
        bound in prop_oneof![Just(BOUND), 1_usize..400_000],
        events in vec(event(), 0..80),
    ) {
        let mut world = World::with(start, bound, &before);
        for event in events {
            match event {
                Event::Output(length) => world.output(length),
                Event::Step { has_room } => drop(world.step(has_room)),
                Event::Later(passed) => world.now += passed,
            }
            prop_assert!(world.log.size() <= bound || world.log.all().len() == 1);
            prop_assert_eq!(world.seen.unwrap_or(0), world.viewer.place());
        }
        let dropped = world.steps().contains(&"dropped");
        world.catch_up();
        if dropped {
            prop_assert_eq!(world.steps(), ["dropped"]);
        } else {
            prop_assert_eq!(&world.shown, &world.output);
        }
    }
}

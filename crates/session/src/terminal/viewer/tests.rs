//! The frames for a viewer, however fast and however irregularly it reads.

use bytes::Bytes;
use proptest::{collection::vec, prelude::*};

use super::*;

const BOUND: usize = 2 * 1024 * 1024;

/// A session and one client of it. `shown` stands for the client's terminal: all output as it
/// arrived. A snapshot replaces it with all output so far.
struct Rig {
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

impl Rig {
    fn new(start: Start) -> Self {
        Self::with(start, BOUND, &[])
    }

    /// A session that already has chunks of these lengths.
    fn with(start: Start, bound: usize, chunks: &[usize]) -> Self {
        let now = Instant::now();
        let log = Log::new(bound);
        let mut rig = Self {
            viewer: Viewer::new(start, PATIENCE, &log, now),
            log,
            output: Vec::new(),
            lengths: vec![0],
            now,
            shown: Vec::new(),
            seen: None,
            steps: Vec::new(),
        };
        chunks.iter().for_each(|length| rig.output(*length));
        rig.viewer = Viewer::new(start, PATIENCE, &rig.log, now);
        if let Start::After(seq) = start
            && let Some(length) = rig.lengths.get(seq as usize)
        {
            rig.shown = rig.output[..*length].to_vec();
        }
        rig
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
    let mut rig = Rig::with(Start::Snapshot, BOUND, &[10, 20]);
    rig.catch_up();
    rig.output(5);
    rig.catch_up();
    assert_eq!(rig.steps(), ["resync", "wait", "frames", "wait"]);
    assert_eq!(rig.shown, rig.output);
}

#[test]
fn a_returning_viewer_gets_the_missed_output_and_no_snapshot() {
    let mut rig = Rig::with(Start::After(1), BOUND, &[10, 20, 30]);
    rig.catch_up();
    assert_eq!(rig.steps(), ["resumed", "frames", "wait"]);
    assert_eq!(rig.shown, rig.output);
}

#[test]
fn a_viewer_that_saw_everything_before_the_first_output_resumes() {
    let mut rig = Rig::new(Start::After(0));
    rig.catch_up();
    rig.output(1);
    rig.catch_up();
    assert_eq!(rig.steps(), ["resumed", "wait", "frames", "wait"]);
}

#[test]
fn a_viewer_that_returns_late_or_from_another_life_gets_a_snapshot() {
    for seq in [0, 1, 101, u64::MAX] {
        let mut rig = Rig::with(Start::After(seq), 10_000, &[1000; 100]);
        rig.catch_up();
        assert_eq!(rig.steps(), ["resync", "wait"], "{seq}");
    }
}

#[test]
fn a_number_of_another_life_stays_one_when_it_is_given_again() {
    let mut rig = Rig::with(Start::After(3), BOUND, &[10, 20]);
    (0..3).for_each(|_| rig.output(30));
    rig.catch_up();
    assert_eq!(rig.steps(), ["resync", "wait"]);
    assert_eq!(rig.shown, rig.output);
}

#[test]
fn a_snapshot_is_asked_for_until_it_was_sent() {
    let mut rig = Rig::new(Start::Snapshot);
    rig.output(10);
    for _ in 0..3 {
        let step = rig.viewer.next(&rig.log, true, rig.now);
        assert!(matches!(step, Step::Resync { skipped_chunks: 0, first: true }));
    }
    rig.viewer.resynced(0);
    assert!(matches!(rig.viewer.next(&rig.log, true, rig.now), Step::Frames(_)));
}

#[test]
fn a_viewer_that_takes_everything_never_lags() {
    let mut rig = Rig::new(Start::After(0));
    for _ in 0..200 {
        (0..10).for_each(|_| rig.output(60_000));
        rig.catch_up();
    }
    assert_eq!(rig.shown, rig.output);
    assert!(!rig.steps().contains(&"resync"));
}

#[test]
fn a_viewer_without_room_lags_only_beyond_its_backlog() {
    let mut rig = Rig::new(Start::After(0));
    rig.catch_up();
    rig.output(BACKLOG as usize - 1);
    rig.output(1);
    rig.step(false);
    assert_eq!(rig.viewer.poll_timeout(), None);
    rig.catch_up();
    assert_eq!(rig.shown, rig.output);
}

#[test]
fn a_lagging_viewer_gets_nothing_until_it_has_room_and_then_a_snapshot() {
    let mut rig = Rig::new(Start::After(0));
    rig.catch_up();
    (0..3).for_each(|_| rig.output(100_000));
    rig.step(false);
    assert_eq!(rig.viewer.poll_timeout(), Some(rig.now + PATIENCE));
    rig.output(10);
    rig.step(false);
    rig.steps();
    rig.catch_up();
    assert_eq!(rig.steps(), ["resync", "wait"]);
    assert_eq!((rig.seen, rig.viewer.poll_timeout()), (Some(4), None));
}

#[test]
fn a_viewer_that_the_log_overtook_lags_and_has_room_at_once() {
    let mut rig = Rig::with(Start::After(0), 200_000, &[]);
    rig.catch_up();
    (0..10).for_each(|_| rig.output(60_000));
    rig.steps();
    rig.catch_up();
    assert_eq!(rig.steps(), ["resync", "wait"]);
}

#[test]
fn a_viewer_without_room_for_too_long_is_dropped_for_good() {
    let mut rig = Rig::new(Start::After(0));
    rig.catch_up();
    (0..3).for_each(|_| rig.output(100_000));
    rig.step(false);
    rig.now += PATIENCE - Duration::from_millis(1);
    assert!(!rig.step(false));
    rig.steps();
    rig.now += Duration::from_millis(1);
    rig.step(false);
    rig.step(true);
    rig.viewer.resynced(1);
    rig.step(true);
    assert_eq!(rig.steps(), ["dropped"; 3]);
    assert_eq!(rig.viewer.poll_timeout(), None);
}

#[test]
fn a_viewer_that_takes_its_snapshot_in_time_may_lag_again() {
    let mut rig = Rig::new(Start::After(0));
    rig.catch_up();
    for _ in 0..5 {
        (0..3).for_each(|_| rig.output(100_000));
        rig.step(false);
        rig.now += PATIENCE / 2;
        assert!(rig.step(true));
    }
    assert!(!rig.steps().contains(&"dropped"));
}

#[test]
fn a_new_viewer_that_never_has_room_is_dropped() {
    let mut rig = Rig::new(Start::After(0));
    rig.step(false);
    rig.now = rig.viewer.poll_timeout().unwrap();
    rig.step(false);
    assert_eq!(rig.steps(), ["wait", "dropped"]);
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
    /// chunk in order. [`Rig::step`] checks that no chunk is missing and none comes twice.
    #[test]
    fn each_byte_of_output_arrives_exactly_once(
        before in vec(1_usize..50_000, 0..10),
        start in prop_oneof![(0_u64..12).prop_map(Start::After), Just(Start::Snapshot)],
        bound in prop_oneof![Just(BOUND), 1_usize..400_000],
        events in vec(event(), 0..80),
    ) {
        let mut rig = Rig::with(start, bound, &before);
        for event in events {
            match event {
                Event::Output(length) => rig.output(length),
                Event::Step { has_room } => drop(rig.step(has_room)),
                Event::Later(passed) => rig.now += passed,
            }
            prop_assert!(rig.log.size() <= bound || rig.log.all().len() == 1);
            prop_assert_eq!(rig.seen.unwrap_or(0), rig.viewer.position());
        }
        let dropped = rig.steps().contains(&"dropped");
        rig.catch_up();
        if dropped {
            prop_assert_eq!(rig.steps(), ["dropped"]);
        } else {
            prop_assert_eq!(&rig.shown, &rig.output);
        }
    }
}

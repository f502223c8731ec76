//! Streams over a transport that does everything wrong, and their bounds.

use std::{collections::BTreeMap, time::Duration};

use proptest::{collection::vec, prelude::*};

use super::{ended::MOST_ENDED, ended::REMEMBERED, *};

const MS: Duration = Duration::from_millis(1);

/// Two ends, and a transport with a fate for each frame.
struct Pair {
    now: Instant,
    ends: [Option<Stream>; 2],
    ended: [EndedStreams; 2],
    /// The frames under way: when each comes, to which end.
    under_way: BTreeMap<(Instant, u64), (usize, Frame)>,
    frames: u64,
    fates: Vec<u8>,
    got: [Vec<u8>; 2],
    outcomes: [Vec<&'static str>; 2],
    /// Whether what comes is consumed at once.
    reads: bool,
}

impl Pair {
    fn new(fates: Vec<u8>) -> Self {
        let now = Instant::now();
        Self {
            now,
            ends: [Some(Stream::open(now, StreamId::from_random(7))), None],
            ended: [EndedStreams::default(), EndedStreams::default()],
            under_way: BTreeMap::new(),
            frames: 0,
            fates,
            got: Default::default(),
            outcomes: Default::default(),
            reads: true,
        }
    }

    fn end(&mut self, end: usize) -> &mut Stream {
        self.ends[end].as_mut().unwrap()
    }

    fn send(&mut self, to: usize, frame: &Frame) {
        // The bytes are what travels.
        let frame = Frame::decode(frame.encode()).unwrap();
        self.frames += 1;
        let fate = self.fates.get(self.frames as usize).copied().unwrap_or(1);
        let copies = [1, 1, 1, 1, 1, 1, 2, 0][usize::from(fate % 8)];
        for copy in 0..copies {
            let at = self.now + MS * (u32::from(fate / 8) * 4 + copy * 50 + 1);
            self.under_way.insert((at, self.frames * 4 + u64::from(copy)), (to, frame.clone()));
        }
    }

    fn follow(&mut self) {
        for end in 0..2 {
            while let Some(output) = self.ends[end].as_mut().and_then(Stream::poll_output) {
                match output {
                    Output::Send(frame) => self.send(1 - end, &frame),
                    Output::Data(bytes) => {
                        self.got[end].extend_from_slice(&bytes);
                        if self.reads {
                            let now = self.now;
                            self.end(end).consumed(now, bytes.len());
                        }
                    }
                    Output::End => self.outcomes[end].push("end"),
                    Output::Done => self.outcomes[end].push("done"),
                    Output::Reset(..) => self.outcomes[end].push("reset"),
                }
            }
            if let Some(stream) = self.ends[end].take_if(|it| it.is_over()) {
                self.ended[end].note(self.now, &stream);
            }
        }
    }

    /// Lets this much time pass.
    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        self.follow();
        loop {
            let due = self.ends.iter().flatten().filter_map(Stream::poll_timeout).min();
            let comes = self.under_way.keys().next().map(|(at, _)| *at);
            let Some(at) = due.into_iter().chain(comes).min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            let now = self.now;
            while let Some(entry) = self.under_way.first_entry().filter(|it| it.key().0 <= now) {
                let (to, frame) = entry.remove();
                self.arrive(to, frame);
            }
            self.ends.iter_mut().flatten().for_each(|stream| stream.handle_timeout(now));
            self.follow();
        }
        self.now = end;
    }

    fn arrive(&mut self, to: usize, frame: Frame) {
        let now = self.now;
        if let Some(stream) = &mut self.ends[to] {
            return stream.handle(now, frame);
        }
        match self.ended[to].answer(now, &frame) {
            Answer::Open => self.ends[to] = Stream::accept(now, frame),
            Answer::Reply(reply) => self.send(1 - to, &reply),
            Answer::Silence => {}
        }
    }
}

use super::ended::Answer;

fn bytes(count: usize) -> Bytes {
    (0..count).map(|at| (at % 251) as u8).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..Default::default() })]

    #[test]
    fn each_end_has_what_the_other_wrote_in_order_whatever_happens_to_frames(
        fates in vec(any::<u8>(), 0..120),
        pieces in vec((0_usize..2, 0_usize..70_000, 0_u64..300), 0..24),
    ) {
        ends_well(fates, pieces)?;
    }

    #[test]
    fn a_frame_is_read_as_it_was_written(
        code in 0_usize..14, last in any::<bool>(), numbers in any::<[u32; 3]>(),
        payload in vec(any::<u8>(), 0..200),
    ) {
        let kinds = [Kind::Open, Kind::Data, Kind::Probe, Kind::Credit, Kind::Missing];
        let reset = [Reason::Cancelled, Reason::Unknown, Reason::Failed];
        let kind = kinds.get(code).copied().unwrap_or(Kind::Reset(reset[code % 3]));
        let carries = matches!(kind, Kind::Open | Kind::Data | Kind::Reset(_));
        let [offset, received, limit] = numbers.map(u64::from);
        let frame = Frame {
            stream: StreamId::from_random(9),
            kind,
            is_last: last && matches!(kind, Kind::Open | Kind::Data | Kind::Probe),
            offset: if kind == Kind::Open { 0 } else { offset },
            received,
            limit,
            payload: if carries { payload.into() } else { Bytes::new() },
        };
        prop_assert_eq!(Frame::decode(frame.encode()), Ok(frame));
    }

    #[test]
    fn what_is_read_is_written_the_same(mut raw in vec(any::<u8>(), 0..90), code in 0_u8..30) {
        if raw.len() > 2 {
            (raw[0], raw[1]) = (code, raw[1] % 3);
        }
        // Most numbers that are drawn are too large.
        for at in [18, 26, 34] {
            raw.iter_mut().skip(at).take(2).for_each(|byte| *byte = 0);
        }
        let raw = Bytes::from(raw);
        if let Ok(frame) = Frame::decode(raw.clone()) {
            prop_assert_eq!(frame.encode(), raw);
        }
    }
}

#[test]
fn a_request_and_an_answer_cost_three_frames_and_an_acknowledgement() {
    let mut pair = Pair::new(Vec::new());
    let now = pair.now;
    pair.end(0).write(now, bytes(900), true);
    pair.pass(MS * 20);
    assert_eq!((pair.frames, &pair.outcomes[1][..]), (1, &["end"][..]));
    let now = pair.now;
    pair.end(1).write(now, bytes(50), false);
    pair.end(1).write(now, bytes(60), true);
    pair.pass(MS * 20);
    assert_eq!(pair.frames, 4);
    assert_eq!(pair.outcomes, [vec!["end", "done"], vec!["end", "done"]]);
}

#[test]
fn a_writer_waits_for_its_reader_and_goes_on_when_that_reads() {
    let mut pair = Pair::new(Vec::new());
    pair.reads = false;
    let now = pair.now;
    assert_eq!(pair.end(0).write(now, bytes(300_000), false), WINDOW as usize);
    assert_eq!((pair.end(0).room(), pair.end(0).write(now, bytes(1), false)), (0, 0));
    pair.pass(Duration::from_secs(60));
    assert_eq!(pair.got[1].len(), WINDOW as usize);
    let now = pair.now;
    assert_eq!(
        pair.end(0).write(now, bytes(100_000), false),
        100_000,
        "the other end has the rest"
    );
    pair.pass(Duration::from_secs(2));
    assert_eq!(pair.got[1].len(), WINDOW as usize, "and does not read");
    let now = pair.now;
    pair.end(1).consumed(now, WINDOW as usize);
    pair.pass(MS * 20);
    assert_eq!(pair.got[1].len(), WINDOW as usize + 100_000);
}

#[test]
fn a_lost_piece_is_asked_for_when_the_next_comes() {
    let mut pair = Pair::new(vec![1, 1, 7]);
    for _ in 0..3 {
        let now = pair.now;
        pair.end(0).write(now, bytes(10), false);
        pair.pass(MS * 2);
    }
    pair.pass(MS * 20);
    assert_eq!(pair.got[1].len(), 30);
}

#[test]
fn an_idle_stream_lives_and_a_silent_one_ends() {
    let mut pair = Pair::new(Vec::new());
    let now = pair.now;
    pair.end(0).write(now, bytes(1), false);
    pair.pass(Duration::from_secs(60));
    assert!(pair.outcomes.concat().is_empty());
    assert!(pair.frames < 60 * 3, "{} frames", pair.frames);
    let frames = pair.frames as usize;
    pair.fates = vec![7; frames + 100];
    pair.pass(SILENCE + IDLE);
    assert_eq!(pair.outcomes, [["reset"], ["reset"]]);
}

#[test]
fn a_reset_reaches_the_other_end_and_a_lost_one_when_that_says_something() {
    for fates in [vec![], vec![1, 1, 7]] {
        let mut pair = Pair::new(fates);
        let now = pair.now;
        pair.end(0).write(now, bytes(1), false);
        pair.pass(MS * 20);
        let now = pair.now;
        pair.end(0).reset(now, Reason::Cancelled, Bytes::from(vec![b'x'; 2_000]));
        pair.pass(IDLE * 2);
        assert_eq!(pair.outcomes, [vec![], vec!["reset"]]);
    }
}

#[test]
fn more_than_the_window_is_a_breach() {
    let mut pair = Pair::new(Vec::new());
    let now = pair.now;
    pair.end(0).write(now, bytes(1), false);
    pair.pass(MS * 20);
    let frame = |offset, count| Frame {
        stream: StreamId::from_random(7),
        kind: Kind::Data,
        is_last: false,
        offset,
        received: 0,
        limit: 0,
        payload: bytes(count),
    };
    pair.arrive(1, frame(2, WINDOW as usize));
    pair.follow();
    assert_eq!(pair.outcomes[1], ["reset"]);
}

#[test]
fn what_comes_too_early_is_bounded() {
    let mut receiving = Receiving::new(Rules::default());
    for offset in 1..2_000 {
        receiving.take(offset, bytes(200_000));
    }
    assert!(receiving.early_bytes() <= WINDOW as usize);
}

#[test]
fn a_late_copy_of_the_first_frame_does_not_open_a_stream_again() {
    let mut pair = Pair::new(Vec::new());
    let now = pair.now;
    pair.end(0).write(now, bytes(9), true);
    let Some(Output::Send(first)) = pair.end(0).poll_output() else { panic!("no frame") };
    pair.arrive(1, first.clone());
    pair.end(1).write(now, bytes(9), true);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.outcomes[1], ["end", "done"]);
    pair.arrive(1, first.clone());
    assert!(pair.ends[1].is_none());
    assert_eq!(pair.ended[1].answer(pair.now + REMEMBERED, &first), Answer::Open, "for a while");
}

#[test]
fn streams_that_ended_are_bounded_and_strangers_are_answered() {
    let (now, mut ended) = (Instant::now(), EndedStreams::default());
    let mut probe = Frame::unknown(StreamId::from_random(0));
    assert_eq!(ended.answer(now, &probe), Answer::Silence, "a reset");
    probe.kind = Kind::Probe;
    let stranger = Frame::unknown(StreamId::from_random(0));
    assert_eq!(ended.answer(now, &probe), Answer::Reply(stranger));
    for number in 0..MOST_ENDED as u128 + 9 {
        ended.note(now, &Stream::open(now, StreamId::from_random(number)));
    }
    assert_eq!(ended.known(), MOST_ENDED);
}

/// Both ends write these pieces, each of an end, a length and the milliseconds after it, and then end.
fn ends_well(fates: Vec<u8>, pieces: Vec<(usize, usize, u64)>) -> Result<(), TestCaseError> {
    let mut pair = Pair::new(fates);
    let mut written = [Vec::new(), Vec::new()];
    for (end, count, wait) in pieces {
        let now = pair.now;
        if let Some(stream) = &mut pair.ends[end] {
            let piece = bytes(count);
            let taken = stream.write(now, piece.clone(), false);
            written[end].extend_from_slice(&piece[..taken]);
        }
        pair.pass(MS * u32::try_from(wait).unwrap_or(0));
        for end in 0..2 {
            prop_assert!(written[1 - end].starts_with(&pair.got[end]), "a prefix");
        }
    }
    for end in 0..2 {
        let now = pair.now;
        if let Some(stream) = &mut pair.ends[end] {
            stream.write(now, Bytes::new(), true);
        }
        pair.pass(Duration::from_secs(12));
    }
    for end in 0..2 {
        prop_assert!(written[1 - end].starts_with(&pair.got[end]));
        if pair.outcomes[end].contains(&"end") {
            prop_assert_eq!(&pair.got[end], &written[1 - end], "it ended well");
        }
    }
    prop_assert!(pair.ends.iter().all(Option::is_none), "both are over: {:?}", pair.outcomes);
    Ok(())
}

#[test]
fn an_end_whose_last_frames_are_lost_probes_though_the_other_one_probes_it() {
    let fates = vec![
        0, 112, 8, 0, 0, 0, 0, 0, 118, 144, 0, 0, 0, 0, 24, 231, 24, 0, 0, 0, 0, 0, 0, 0, 8, 39,
        24, 0, 48, 71, 7, 71,
    ];
    let pieces = [
        (0, 0, 42),
        (1, 0, 15),
        (1, 19_608, 0),
        (0, 20_222, 0),
        (0, 45_314, 0),
        (0, 1, 251),
        (0, 1, 251),
        (0, 1, 286),
        (1, 68_052, 108),
        (0, 38_197, 30),
        (0, 31_947, 137),
        (1, 31_356, 271),
        (1, 35_606, 67),
        (0, 15_415, 131),
        (1, 29_336, 142),
    ];
    ends_well(fates, pieces.to_vec()).unwrap();
}

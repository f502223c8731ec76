//! Generated histories of a team and the outpost that runs its worker: what they send is lost, comes
//! again, and either machine dies at any time. At the end everything has counted once.

use proptest::{collection::vec, prelude::*};

use super::{
    super::outpost::{self, Outpost, Report, SeatKey, SeatMessage, SeatPart, SeatRecord},
    *,
};

const FAR: &str = "far";
const OWNER: &str = "near";
const STOPPED: &str = "the daemon stopped before this was finished";

#[derive(Debug, Clone)]
enum Step {
    Assign,
    /// The owner sends the message that its outpost has not noted; it may be lost.
    Send {
        arrives: bool,
    },
    /// The session begins a turn with the message that it was given.
    Begin,
    End,
    /// The outpost sends this many of its reports; the acknowledgement may be lost.
    Reports {
        count: usize,
        is_heard: bool,
    },
    OwnerDies,
    OutpostDies,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Assign),
        5 => any::<bool>().prop_map(|arrives| Step::Send { arrives }),
        5 => Just(Step::Begin),
        5 => Just(Step::End),
        5 => (1..4usize, any::<bool>()).prop_map(|(count, is_heard)| Step::Reports { count, is_heard }),
        1 => Just(Step::OwnerDies),
        1 => Just(Step::OutpostDies),
    ]
}

/// The team's machine, the worker's, and what should come of it.
struct Two {
    near: Shell,
    far: Outpost,
    stored: BTreeMap<SeatKey, SeatRecord>,
    /// The message that the session was given.
    given: Option<u64>,
    turn: u64,
    is_working: bool,
    /// The messages whose turn has begun, in order.
    begun: Vec<u64>,
    /// The results that the owner should have, in order.
    wanted: Vec<(bool, String)>,
}

impl Two {
    fn new() -> Self {
        let mut near = Shell::with_team(Limits::default());
        let effects = near.teams.worker_joined_at(TEAM, CAT, FAR, near.at).unwrap();
        near.carry_out(effects);
        let (stored, begun, wanted) = Default::default();
        let far = Outpost::default();
        let mut two =
            Self { near, far, stored, given: None, turn: 0, is_working: false, begun, wanted };
        two.act(|far| far.enlist(CAT, TEAM, OWNER).unwrap());
        two
    }

    fn act(&mut self, call: impl FnOnce(&mut Outpost) -> Vec<Effect>) {
        let effects = call(&mut self.far);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Keep(Change::PutSeat(record)) => {
                    self.stored.insert(record.key(), record);
                }
                Effect::Keep(Change::RemoveSeat(key)) => {
                    assert_ne!(key.part, SeatPart::Seat);
                    self.stored.remove(&key);
                }
                Effect::Deliver(delivery) => self.given = Some(delivery.seq),
                Effect::Show(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Assign => {
                self.near.assign(CAT, "work");
            }
            Step::Send { arrives } => self.send(arrives),
            Step::Begin => self.begin(),
            Step::End => self.end(),
            Step::Reports { count, is_heard } => self.report(count, is_heard),
            Step::OwnerDies => self.near.restart(),
            Step::OutpostDies => self.outpost_dies(),
        }
    }

    fn send(&mut self, arrives: bool) {
        let Some(delivery) = self.near.offers.get(&CAT).filter(|_| arrives) else { return };
        let Delivery { seq, from, kind, ref payload, .. } = *delivery;
        let payload = std::sync::Arc::clone(payload);
        let message = SeatMessage { seq, from, name: None, leads: true, kind, payload };
        let (taken, effects) = self.far.take(CAT, OWNER, message);
        assert_eq!(taken, outpost::Receipt::Noted);
        self.carry_out(effects);
    }

    fn begin(&mut self) {
        let Some(seq) = self.given.take_if(|_| !self.is_working) else { return };
        (self.turn, self.is_working) = (self.turn + 1, true);
        self.begun.push(seq);
        self.act(|far| far.begun(CAT, seq));
        let effects = self.far.turn_started(CAT, self.turn);
        self.carry_out(effects);
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_working) {
            let text = format!("turn {}", self.turn);
            let effects = self.far.turn_ended(CAT, self.turn, true, &text);
            self.carry_out(effects);
            self.wanted.push((true, text));
        }
    }

    fn report(&mut self, count: usize, is_heard: bool) {
        for (session, number, report) in self.far.reports(OWNER, &BTreeMap::new(), count) {
            if let Report::Begun { seq } = report
                && self.near.offers.get(&CAT).is_some_and(|offer| offer.seq == seq)
            {
                self.near.offers.remove(&CAT);
            }
            let effects = self.near.teams.reported(session, number, report, self.near.at);
            self.near.carry_out(effects);
            if is_heard {
                self.act(|far| far.heard(OWNER, session, number));
            }
        }
    }

    fn outpost_dies(&mut self) {
        self.given = None;
        if std::mem::take(&mut self.is_working) {
            self.wanted.push((false, STOPPED.to_owned()));
        }
        let (far, left_out) = Outpost::restore(self.stored.values().cloned());
        assert_eq!(left_out, []);
        self.far = far;
        self.act(|far| far.stopped(CAT));
    }

    /// Nothing is lost any more, and all work is done.
    fn settle(&mut self) {
        for _ in 0..400 {
            self.send(true);
            self.begin();
            self.end();
            self.report(usize::MAX, true);
        }
    }
}

const CAT: Uuid = id(103);

proptest! {
    #[test]
    fn each_message_begins_one_turn_and_each_turn_has_one_result(steps in vec(step(), 0..120)) {
        let mut two = Two::new();
        steps.iter().for_each(|step| two.step(step));
        two.settle();
        let given = steps.iter().filter(|step| matches!(step, Step::Assign)).count() as u64;
        prop_assert_eq!(&two.begun, &(1..=given).collect::<Vec<_>>());
        let results: Vec<(bool, String)> = two.near.results.iter()
            .map(|(_, success, text)| (*success, text.clone())).collect();
        prop_assert_eq!(results, two.wanted);
        let left = two.stored.keys().filter(|key| key.part != SeatPart::Seat).count();
        prop_assert_eq!(left, 0, "nothing is left of it: {:?}", two.stored);
    }
}

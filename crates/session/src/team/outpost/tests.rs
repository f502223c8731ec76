//! Messages for a seat, reports about it, and the roll.

use super::*;
use crate::team::record::Kind;

const ANN: Uuid = Uuid::from_u128(1);
const TEAM: Uuid = Uuid::from_u128(9);
const OWNER: &str = "owner";

/// An outpost, and what is stored of it.
#[derive(Default)]
struct Shell {
    outpost: Outpost,
    stored: BTreeMap<SeatKey, SeatRecord>,
    given: Vec<u64>,
    shown: Vec<u64>,
}

impl Shell {
    fn with_ann() -> Self {
        let mut shell = Self::default();
        shell.act(|outpost| outpost.enlist(ANN, TEAM, OWNER).unwrap());
        shell
    }

    fn act(&mut self, call: impl FnOnce(&mut Outpost) -> Vec<Effect>) {
        let effects = call(&mut self.outpost);
        self.carry_out(effects);
    }

    fn carry_out(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Keep(Change::PutSeat(record)) => {
                    self.stored.insert(record.key(), record);
                }
                Effect::Keep(Change::RemoveSeat(key)) if key.part == SeatPart::Seat => {
                    self.stored.retain(|known, _| known.session != key.session);
                }
                Effect::Keep(Change::RemoveSeat(key)) => {
                    self.stored.remove(&key);
                }
                Effect::Deliver(delivery) => self.given.push(delivery.seq),
                Effect::Show(delivery) => self.shown.push(delivery.seq),
                other => panic!("{other:?}"),
            }
        }
    }

    fn send(&mut self, seq: u64) -> Receipt {
        let message = SeatMessage {
            seq,
            from: Uuid::from_u128(2),
            name: None,
            leads: true,
            kind: Kind::Assignment,
            payload: "work".into(),
        };
        let (taken, effects) = self.outpost.take(ANN, OWNER, message);
        self.carry_out(effects);
        taken
    }

    /// The daemon dies, and starts again.
    fn restart(&mut self) {
        let (outpost, left_out) = Outpost::restore(self.stored.values().cloned());
        assert_eq!(left_out, []);
        self.outpost = outpost;
        self.act(|outpost| outpost.stopped(ANN));
    }

    fn turn(&mut self, turn: u64, seq: u64, text: &str) {
        self.act(|outpost| outpost.begun(ANN, seq));
        self.act(|outpost| outpost.turn_started(ANN, turn));
        self.act(|outpost| outpost.turn_ended(ANN, turn, true, text));
    }

    fn due(&self) -> Vec<Report> {
        let due = self.outpost.reports(OWNER, &BTreeMap::new(), usize::MAX);
        due.into_iter().map(|(.., report)| report).collect()
    }

    fn heard(&mut self, number: u64) {
        self.act(|outpost| outpost.heard(OWNER, ANN, number));
    }
}

#[test]
fn a_message_takes_effect_once_however_often_it_is_sent_and_whichever_restarts_come_between() {
    let mut shell = Shell::with_ann();
    assert_eq!(shell.send(1), Receipt::Noted);
    assert_eq!(shell.send(1), Receipt::Noted);
    assert_eq!((&*shell.given, &*shell.shown), (&[1][..], &[1][..]));
    shell.restart();
    assert_eq!(shell.given, [1, 1], "its prompt was lost with the daemon");
    assert_eq!(shell.send(1), Receipt::Noted);
    shell.turn(1, 1, "done");
    shell.restart();
    assert_eq!(shell.send(1), Receipt::Noted);
    assert_eq!((&*shell.given, &*shell.shown), (&[1, 1][..], &[1][..]));
    assert_eq!(shell.send(2), Receipt::Noted);
    assert_eq!(shell.given, [1, 1, 2]);
}

#[test]
fn a_report_is_sent_until_it_is_acknowledged_also_after_a_restart() {
    let mut shell = Shell::with_ann();
    shell.send(1);
    shell.turn(1, 1, "done");
    let ended = Report::Ended { turn: 1, completed: true, text: "done".to_owned() };
    let all = [Report::Begun { seq: 1 }, Report::Started { turn: 1 }, ended.clone()];
    assert_eq!(shell.due(), all);
    shell.heard(2);
    shell.restart();
    assert_eq!(shell.due(), [ended, Report::Stopped]);
    shell.restart();
    assert_eq!(shell.due().len(), 2, "one more start says nothing new");
    shell.heard(4);
    assert_eq!(shell.due(), []);
    shell.act(|outpost| outpost.turn_started(ANN, 2));
    let due = shell.outpost.reports(OWNER, &BTreeMap::new(), 16);
    assert_eq!(due, [(ANN, 5, Report::Started { turn: 2 })], "numbers never come again");
}

#[test]
fn the_seat_of_a_session_that_has_ended_stays_until_its_owner_has_heard_of_the_end() {
    let mut shell = Shell::with_ann();
    shell.send(1);
    shell.act(|outpost| outpost.gone(ANN));
    assert_eq!(shell.send(2), Receipt::Unknown);
    assert_eq!(shell.due(), [Report::Gone]);
    let known = BTreeSet::from([ANN]);
    assert_eq!(shell.outpost.compare(OWNER, &known), Differences::default());
    shell.heard(1);
    assert!(shell.stored.is_empty() && !shell.outpost.has(ANN), "{:?}", shell.stored);
}

#[test]
fn an_owner_and_its_outpost_find_what_only_one_of_them_knows() {
    let shell = Shell::with_ann();
    let other = Uuid::from_u128(7);
    let found = shell.outpost.compare(OWNER, &BTreeSet::from([other]));
    assert_eq!(found, Differences { missing: vec![other], surplus: vec![ANN] });
    let found = shell.outpost.compare("another owner", &BTreeSet::new());
    assert_eq!(found, Differences::default(), "an owner speaks for its own teams only");
}

#[test]
fn another_member_cannot_send_to_a_session_or_acknowledge_its_reports() {
    let mut shell = Shell::with_ann();
    shell.send(1);
    shell.turn(1, 1, "done");
    assert_eq!(shell.outpost.heard("another", ANN, 9), []);
    assert_eq!(shell.due().len(), 3);
    let message = SeatMessage {
        seq: 2,
        from: ANN,
        name: None,
        leads: true,
        kind: Kind::Message,
        payload: "x".into(),
    };
    assert_eq!(shell.outpost.take(ANN, "another", message), (Receipt::Unknown, Vec::new()));
}

#[test]
fn a_session_without_room_is_given_its_message_again_when_its_turn_ends() {
    let mut shell = Shell::with_ann();
    shell.send(1);
    shell.outpost.not_taken(ANN, 1);
    assert_eq!(shell.outpost.offer_all(), []);
    shell.act(|outpost| outpost.turn_ended(ANN, 4, false, "failed"));
    assert_eq!(shell.given, [1, 1]);
}

#[test]
fn an_owner_that_acknowledges_nothing_gives_no_more_messages() {
    let mut shell = Shell::with_ann();
    for seq in 1..=LASTING as u64 {
        assert_eq!(shell.send(seq), Receipt::Noted);
        shell.turn(seq, seq, "done");
    }
    let next = LASTING as u64 + 1;
    assert_eq!(shell.send(next), Receipt::NoRoom);
    assert_eq!(shell.due().len(), REPORTS);
    shell.heard(shell.outpost.reports(OWNER, &BTreeMap::new(), 1)[0].1);
    assert_eq!(shell.send(next), Receipt::Noted);
}

#[test]
fn messages_reports_texts_and_seats_are_bounded() {
    let mut shell = Shell::with_ann();
    for seq in 1..=MESSAGES as u64 {
        assert_eq!(shell.send(seq), Receipt::Noted);
    }
    assert_eq!(shell.send(99), Receipt::NoRoom);
    shell.act(|outpost| outpost.begun(ANN, 1));
    let long = "x".repeat(TEXT + 1);
    for turn in 1..=REPORTS as u64 {
        shell.act(|outpost| outpost.turn_ended(ANN, turn, true, &long));
    }
    let due = shell.due();
    assert_eq!(due.len(), REPORTS);
    assert_eq!(due[0], Report::Begun { seq: 1 }, "it is never dropped");
    let texts = due.iter().map(Report::bytes).sum::<usize>();
    assert!(texts <= ALL_TEXT + REPORTS * LEFT_OUT.len(), "{texts}");
    for number in 0..SEATS as u128 - 1 {
        shell.outpost.enlist(Uuid::from_u128(100 + number), TEAM, OWNER).unwrap();
    }
    assert_eq!(shell.outpost.enlist(TEAM, TEAM, OWNER), Err(NoSeat::Full));
    assert_eq!(shell.outpost.enlist(ANN, TEAM, OWNER), Err(NoSeat::Taken));
}

//! A lender as its driver drives it, word by word.

use super::*;

const MS: Duration = Duration::from_millis(1);

fn fellow(number: u128) -> ServerId {
    ServerId::from_random(number)
}

fn provider() -> ProviderId {
    ProviderId::from_random(1)
}

fn job(number: u128) -> JobId {
    JobId::from_random(number)
}

/// A lender with a provider of a number of slots, as its driver drives it.
struct Lender {
    lending: Lending,
    now: Instant,
    slots: u32,
    own: u32,
    waiting: u32,
    sent: Vec<(ServerId, Message)>,
    cancelled: Vec<JobId>,
}

impl Lender {
    fn new(slots: u32) -> Self {
        let (sent, cancelled) = (Vec::new(), Vec::new());
        let mut lending = Lending::new();
        let now = Instant::now();
        lending.handle(now, Input::Offered { provider: provider() });
        for number in 1..=3 {
            lending.handle(now, Input::Joined { fellow: fellow(number) });
        }
        Self { lending, now, slots, own: 0, waiting: 0, sent, cancelled }
    }

    fn input(&mut self, input: Input) {
        self.lending.handle(self.now, input);
        self.follow();
    }

    fn follow(&mut self) {
        let provider = provider();
        while let Some(output) = self.lending.poll_output() {
            match output {
                Output::Look { .. } => {
                    let free = self.slots - self.own - self.lending.lent(provider);
                    let room = Input::Room { provider, free, waiting: self.waiting };
                    self.lending.handle(self.now, room);
                }
                Output::Lend { slots, .. } => assert!(slots + self.own <= self.slots),
                Output::Send { to, message } => self.sent.push((to, message)),
                Output::Cancel { job } => self.cancelled.push(job),
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        while let Some(at) = self.lending.poll_timeout().filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.lending.handle_timeout(self.now);
            self.follow();
        }
        self.now = end;
    }

    fn want(&mut self, number: u128, message: u64, serial: u64, slots: u32, keeps: u32) {
        let provider = provider();
        let message = Message::Want { provider, number: message, serial, slots, keeps };
        self.input(Input::Message { from: fellow(number), message });
    }

    fn has(&self, number: u128) -> u32 {
        self.lending.lent_to(fellow(number), provider())
    }

    /// The serial and the limit of the newest message to a fellow.
    fn told(&self, number: u128) -> (u64, u32) {
        let its = self.sent.iter().rev().find(|(to, _)| *to == fellow(number));
        match its.map(|(_, message)| *message) {
            Some(Message::Grant { serial, slots, .. } | Message::Recall { serial, slots, .. }) => {
                (serial, slots)
            }
            _ => (0, 0),
        }
    }

    fn begin(&mut self, number: u128, id: u128) -> bool {
        self.lending.begin(fellow(number), provider(), job(id))
    }
}

#[test]
fn what_is_free_is_lent_evenly() {
    let mut lender = Lender::new(5);
    lender.own = 1;
    lender.want(1, 1, 0, 9, 0);
    assert_eq!(lender.has(1), 4);
    lender.want(2, 1, 0, 9, 0);
    assert_eq!(lender.has(2), 0);
    assert_eq!(lender.told(1).1, 3, "one is asked back");
    for number in 2..=5 {
        let (serial, slots) = lender.told(1);
        lender.want(1, number, serial, 9, slots);
    }
    assert_eq!((lender.has(1), lender.has(2)), (2, 2));
}

#[test]
fn own_jobs_come_first_and_busy_slots_come_back_when_their_jobs_end() {
    let mut lender = Lender::new(2);
    lender.want(1, 1, 0, 2, 0);
    assert!(lender.begin(1, 1) && lender.begin(1, 2) && !lender.begin(1, 3));
    lender.waiting = 1;
    lender.pass(LOOK);
    let (serial, slots) = lender.told(1);
    assert_eq!(slots, 1);
    lender.want(1, 2, serial, 2, 2);
    assert_eq!(lender.has(1), 2, "both are in use");
    lender.input(Input::Ended { job: job(1) });
    let (serial, _) = lender.told(1);
    lender.want(1, 3, serial, 2, 1);
    assert_eq!(lender.has(1), 1);
    lender.want(2, 1, 0, 1, 0);
    assert_eq!(lender.has(2), 0, "nothing is lent while own jobs wait");
}

#[test]
fn a_slot_is_kept_for_a_lease_and_a_margin_after_the_last_want() {
    let mut lender = Lender::new(1);
    lender.want(1, 1, 0, 1, 0);
    lender.pass(LEASE + MARGIN - MS);
    assert_eq!(lender.has(1), 1);
    assert!(lender.begin(1, 1), "its last job was under way");
    lender.pass(MS * 2);
    assert_eq!(lender.has(1), 1, "the job has it");
    assert!(!lender.begin(1, 2));
    lender.input(Input::Ended { job: job(1) });
    assert_eq!((lender.has(1), lender.lending.poll_timeout()), (0, None));
}

#[test]
fn what_a_fellow_may_have_been_granted_meanwhile_is_still_its() {
    let mut lender = Lender::new(4);
    lender.want(1, 1, 0, 2, 0);
    assert_eq!(lender.has(1), 2);
    lender.want(1, 2, 0, 3, 0);
    assert_eq!(lender.has(1), 3, "it has not heard of the first two, and may");
    let (first, _) = lender.told(1);
    lender.want(1, 4, first, 1, 1);
    assert_eq!(lender.has(1), 1);
    lender.want(1, 3, first, 4, 4);
    assert_eq!(lender.has(1), 1, "an older word");
}

#[test]
fn serials_need_not_be_heard_one_by_one() {
    let mut lender = Lender::new(2);
    lender.want(1, 1, 0, 2, 0);
    let (first, _) = lender.told(1);
    lender.waiting = 2;
    for number in 2..2 * MOST_UNHEARD as u64 {
        // It is always some messages behind.
        lender.want(1, number, first, 2, 2);
    }
    let (last, slots) = lender.told(1);
    assert_eq!(slots, 0);
    lender.want(1, 1_000, last - 3, 2, 0);
    assert_eq!(lender.has(1), 0, "none of the unheard ones grants anything");
}

#[test]
fn the_jobs_of_a_fellow_that_left_are_cancelled_and_its_slots_come_back() {
    let mut lender = Lender::new(1);
    lender.want(1, 1, 0, 1, 0);
    assert!(lender.begin(1, 1));
    lender.input(Input::Left { fellow: fellow(1) });
    assert_eq!(lender.cancelled, [job(1)]);
    lender.input(Input::Ended { job: job(1) });
    assert!(!lender.begin(1, 2), "it is gone");
    lender.pass(LEASE + MARGIN);
    assert_eq!(lender.lending.lent(provider()), 0);
}

#[test]
fn strangers_unknown_providers_and_used_ids_have_nothing() {
    let mut lender = Lender::new(1);
    lender.want(9, 1, 0, 1, 0);
    assert_eq!((lender.has(9), lender.begin(9, 1)), (0, false));
    lender.want(1, 1, 0, 1, 0);
    assert!(lender.begin(1, 1));
    lender.input(Input::Gone { provider: provider() });
    lender.want(1, 2, 0, 1, 0);
    assert_eq!((lender.has(1), lender.begin(1, 2)), (0, false));
    assert_eq!(lender.lending.poll_timeout(), None);
}

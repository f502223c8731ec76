//! Homes of one room, as each server sees them.

use super::*;

fn id(number: u128) -> ServerId {
    ServerId::from_random(number)
}

fn name(number: u128) -> ServerName {
    format!("n{number}").as_str().into()
}

fn room() -> RoomId {
    RoomId::from("r")
}

fn epoch(number: u64, home: u128) -> Epoch {
    Epoch { number, home: id(home) }
}

fn placement(number: u64, home: u128) -> Placement {
    Placement { epoch: epoch(number, home), name: name(home % 10) }
}

/// Server 5, whose starts are 5, 15, 25.
struct Bench {
    homes: RoomHomes,
    now: Instant,
}

impl Bench {
    fn new(own: u128, fellows: &[u128]) -> Self {
        let mut bench =
            Self { homes: RoomHomes::new(id(own), name(own % 10)), now: Instant::now() };
        bench.input(Input::Connected);
        for number in fellows {
            bench.joined(*number);
        }
        bench.pass(SETTLING);
        bench
    }

    fn input(&mut self, input: Input) -> Vec<Output> {
        self.homes.handle(self.now, input);
        std::iter::from_fn(|| self.homes.poll_output()).collect()
    }

    fn joined(&mut self, number: u128) -> Vec<Output> {
        self.input(Input::Joined { fellow: id(number), name: name(number % 10) })
    }

    fn left(&mut self, number: u128) -> Vec<Output> {
        let mut outputs = self.input(Input::Left { fellow: id(number) });
        outputs.extend(self.pass(ADOPTION));
        outputs
    }

    fn seen(&mut self, number: u64, home: u128, revision: u64) -> Vec<Output> {
        let placement = placement(number, home);
        self.input(Input::Seen { room: room(), placement, revision })
    }

    fn pass(&mut self, time: Duration) -> Vec<Output> {
        self.now += time;
        self.homes.handle_timeout(self.now);
        std::iter::from_fn(|| self.homes.poll_output()).collect()
    }

    fn claimed(&mut self, number: u64, home: u128, revision: u64) -> Vec<Output> {
        self.input(Input::Claimed { room: room(), epoch: epoch(number, home), revision })
    }

    fn home(&self) -> Home {
        self.homes.home(&room())
    }
}

fn claim(number: u64, home: u128, expected_revision: u64) -> Output {
    Output::Claim { room: room(), epoch: epoch(number, home), expected_revision }
}

fn at_home(number: u64, home: u128) -> Output {
    Output::Home { room: room(), epoch: epoch(number, home) }
}

fn follow(number: u64, home: u128) -> Output {
    Output::Follow { room: room(), epoch: epoch(number, home) }
}

#[test]
fn the_creator_is_the_first_home_and_claims_until_it_is_answered() {
    let mut bench = Bench::new(5, &[]);
    let created = bench.input(Input::Created { room: room() });
    assert_eq!(created, [at_home(1, 5), claim(1, 5, 0)]);
    assert_eq!(bench.pass(CLAIM_AGAIN), [claim(1, 5, 0)]);
    assert_eq!(bench.claimed(1, 5, 7), []);
    assert_eq!(bench.pass(CLAIM_AGAIN), []);
    assert_eq!(bench.input(Input::Created { room: room() }), [], "it is there");
    assert_eq!(bench.home(), Home::Here(epoch(1, 5)));
}

#[test]
fn the_lowest_live_id_follows_a_home_that_is_gone() {
    let mut bench = Bench::new(5, &[3, 4]);
    assert_eq!(bench.seen(1, 3, 9), [follow(1, 3)]);
    assert_eq!(bench.left(3), [], "the next is another one");
    assert_eq!(bench.home(), Home::Nowhere);
    assert_eq!(bench.left(4), [claim(2, 5, 9)]);
    assert_eq!(bench.claimed(2, 5, 10), [at_home(2, 5)]);
    assert_eq!(bench.joined(13), [], "it comes back, and the room stays");
}

#[test]
fn the_next_start_of_the_home_comes_before_the_lowest_id() {
    let mut bench = Bench::new(15, &[2, 5]);
    assert_eq!(bench.seen(1, 5, 9), [follow(1, 5)]);
    assert_eq!(bench.left(5), [claim(2, 15, 9)], "has its name, and not the lowest id");
    let mut bench = Bench::new(2, &[5, 15]);
    bench.seen(1, 5, 9);
    assert_eq!(bench.left(5), []);
}

#[test]
fn a_claim_that_lost_is_followed_by_what_the_record_says() {
    let mut bench = Bench::new(5, &[3, 4]);
    bench.seen(1, 3, 9);
    bench.left(3);
    bench.left(4);
    let found = Some((placement(2, 4), 10));
    assert_eq!(bench.input(Input::ClaimLost { room: room(), found }), [claim(3, 5, 10)]);
    bench.joined(4);
    let found = Some((placement(3, 4), 11));
    let lost = bench.input(Input::ClaimLost { room: room(), found });
    assert_eq!(lost, [follow(3, 4)]);
    assert_eq!(bench.pass(CLAIM_AGAIN), []);
}

#[test]
fn after_a_connection_a_home_that_is_not_seen_may_still_come() {
    let mut bench = Bench::new(5, &[]);
    bench.input(Input::Disconnected);
    bench.input(Input::Connected);
    assert_eq!(bench.seen(1, 3, 9), []);
    assert_eq!(bench.joined(3), [follow(1, 3)]);
    bench.left(3);
    assert_eq!(bench.pass(SETTLING), [claim(2, 5, 9)]);
}

#[test]
fn a_server_that_was_stopped_takes_no_room_from_a_live_home() {
    let mut bench = Bench::new(2, &[3, 4]);
    bench.seen(1, 3, 9);
    for fellow in [3, 4].map(id) {
        assert_eq!(bench.input(Input::Left { fellow }), []);
    }
    bench.joined(3);
    assert_eq!(bench.pass(ADOPTION), []);
    assert_eq!(bench.home(), Home::Fellow(epoch(1, 3)));
}

#[test]
fn both_sides_go_on_and_the_higher_epoch_wins() {
    let mut alone = Bench::new(5, &[3]);
    alone.seen(1, 3, 9);
    alone.input(Input::Disconnected);
    assert_eq!(alone.left(3), [], "nobody is here");
    let used = Input::Used { room: room(), is_used: true };
    assert_eq!(alone.input(used), [at_home(2, 5)]);
    alone.seen(1, 3, 9);
    assert_eq!(alone.input(Input::Connected), [claim(2, 5, 9)]);
    assert_eq!(alone.claimed(2, 5, 10), []);
    let mut home = Bench::new(3, &[5]);
    home.input(Input::Created { room: room() });
    home.claimed(1, 3, 9);
    let yields = Output::Yield { room: room(), to: epoch(2, 5) };
    assert_eq!(home.seen(2, 5, 10), [yields, follow(2, 5)]);
}

#[test]
fn of_two_with_one_number_who_comes_later_takes_the_next() {
    let mut bench = Bench::new(5, &[3]);
    bench.seen(1, 3, 9);
    bench.input(Input::Used { room: room(), is_used: true });
    bench.input(Input::Disconnected);
    assert_eq!(bench.left(3), [at_home(2, 5)]);
    assert_eq!(bench.seen(2, 4, 11), []);
    assert_eq!(bench.input(Input::Connected), [claim(3, 5, 11)]);
    assert_eq!(bench.claimed(3, 5, 12), [at_home(3, 5)]);
}

#[test]
fn records_that_were_lost_are_written_again_and_old_revisions_are_forgotten() {
    let mut bench = Bench::new(5, &[3]);
    bench.input(Input::Created { room: room() });
    bench.claimed(1, 5, 9);
    bench.input(Input::Disconnected);
    assert_eq!(bench.input(Input::Connected), [claim(1, 5, 0)]);
    let mut other = Bench::new(3, &[5]);
    other.seen(4, 5, 9);
    other.input(Input::Disconnected);
    assert_eq!(other.input(Input::Connected), []);
    other.left(5);
    assert_eq!(other.pass(SETTLING), [claim(5, 3, 0)], "the epoch goes on");
}

#[test]
fn a_claim_whose_answer_was_lost_is_seen_in_the_record() {
    let mut bench = Bench::new(5, &[3]);
    bench.seen(1, 3, 9);
    assert_eq!(bench.left(3), [claim(2, 5, 9)]);
    assert_eq!(bench.seen(2, 5, 10), [at_home(2, 5)]);
    assert_eq!(bench.pass(CLAIM_AGAIN), []);
}

#[test]
fn rooms_are_bounded_and_a_closed_one_is_forgotten() {
    let mut bench = Bench::new(5, &[3]);
    for number in 0..MOST_ROOMS + 9 {
        let room = RoomId::from(format!("{number}"));
        let placement = placement(1, 3);
        bench.homes.handle(bench.now, Input::Seen { room, placement, revision: 1 });
    }
    assert_eq!(bench.homes.len(), MOST_ROOMS);
    bench.input(Input::Closed { room: RoomId::from("0") });
    assert_eq!(bench.homes.len(), MOST_ROOMS - 1);
    assert_eq!(bench.seen(1, 3, 1), [follow(1, 3)]);
}

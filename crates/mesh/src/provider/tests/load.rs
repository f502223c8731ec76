//! The load that a peer reports.

use std::time::Duration;

use tokio::time::{Instant, advance, sleep};

use super::*;

impl Bench {
    /// A peer's heartbeat says that `queue_depth` requests wait there.
    fn beats(&self, number: u8, queue_depth: u32) {
        let change = |facts: &mut crate::peer::PeerFacts| {
            (facts.queue_depth, facts.queue_reported) = (queue_depth, Some(Instant::now()));
        };
        self.node.peers.get(&id(number)).unwrap().learn(change);
        self.refresh(number);
    }

    fn load(&self) -> u32 {
        self.server.scheduler.status().workers[0].reported_load
    }

    /// Lets a peer answer what it is asked.
    async fn answers(&mut self, link: &Arc<Link>, far: &mut FarEnd) {
        let request = next_request(far).await.request_id;
        self.chunk(link, &request, DELTA);
        self.complete(link, &request);
    }
}

/// When a wait is over, in milliseconds, of a clock that only stands still while something is to be done.
async fn took(wait: impl Future) -> u128 {
    let begun = Instant::now();
    wait.await;
    begun.elapsed().as_millis()
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_was_busy_is_asked_two_seconds_later() {
    let mut bench = Bench::new();
    let (_link, mut far) = bench.peer(1, Kind::WarrenFar, 1);
    bench.beats(1, 3);
    let _answer = bench.server.ask(true);
    sleep(Duration::from_millis(1_500)).await;
    far.expect_quiet();
    // Other facts about it make its load no newer.
    bench.refresh(1);
    assert!((500..=501).contains(&took(next_request(&mut far)).await));
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_says_again_that_it_is_busy_is_asked_later() {
    let mut bench = Bench::new();
    let (_link, mut far) = bench.peer(1, Kind::WarrenFar, 1);
    bench.beats(1, 3);
    let _answer = bench.server.ask(true);
    for _ in 0..4 {
        sleep(Duration::from_millis(1_500)).await;
        far.expect_quiet();
        bench.beats(1, 3);
    }
    bench.beats(1, 0);
    assert_eq!(took(next_request(&mut far)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_had_no_room_is_asked_two_seconds_later() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenNear, 2);
    let mut refused = bench.server.ask(true);
    let request = next_request(&mut far).await.request_id;
    bench.error(&link, &request, ErrorCode::QueueFull);
    assert_eq!(refused.head().await.unwrap().status, 429);
    let _answer = bench.server.ask(true);
    assert!((2_000..=2_001).contains(&took(next_request(&mut far)).await));
}

#[tokio::test(start_paused = true)]
async fn our_own_queued_requests_count_no_more_once_they_are_answered() {
    let mut bench = Bench::new();
    let (link, mut far) = bench.peer(1, Kind::WarrenFar, 1);
    for _ in 0..2 {
        let mut first = bench.server.ask(true);
        let request = next_request(&mut far).await.request_id;
        // It is the one that waits.
        bench.beats(1, 1);
        let mut second = bench.server.ask(true);
        bench.chunk(&link, &request, DELTA);
        bench.complete(&link, &request);
        let asked_again = took(bench.answers(&link, &mut far)).await;
        assert_eq!(asked_again, 0, "without waiting for what it says next");
        for answer in [&mut first, &mut second] {
            answer.head().await.unwrap();
            assert!(rest(answer).await.1);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_load_that_is_too_old_is_forgotten_though_nobody_asks() {
    let bench = Bench::new();
    let (_link, _far) = bench.peer(1, Kind::WarrenFar, 4);
    bench.beats(1, 2);
    assert_eq!(bench.load(), 2);
    advance(Duration::from_millis(1_990)).await;
    assert_eq!(bench.load(), 2);
    let is_forgotten = async || bench.load() == 0;
    testkit::eventually("the load to be forgotten", Duration::from_millis(100), is_forgotten).await;
}

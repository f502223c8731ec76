//! Clients that hang up: who is told to stop, and when a slot is free.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::kit::{Far, Kit, read};

/// Makes a participant with one slot, whose only client hangs up in the middle, and a next client.
/// Returns the id of the first request.
async fn hung_up(kit: &mut Kit, far: &mut Far) -> (String, scheduler::Answer) {
    let answer = kit.ask();
    let gone = far.request().await;
    far.start(&gone, 200);
    far.chunk(&gone, "aGk=");
    far.settle().await;
    drop(answer);
    (gone, kit.ask())
}

#[tokio::test(start_paused = true)]
async fn a_stock_participants_slot_is_free_when_it_says_that_it_is_over() {
    for over in [Far::end, |far: &Far, id: &str| far.fail(id, "aborted")] {
        let mut kit = Kit::new();
        let mut far = kit.participant("a", 1).await;
        let (gone, mut next) = hung_up(&mut kit, &mut far).await;
        far.chunk(&gone, "bGF0ZQ==");
        far.settle().await;
        over(&far, &gone);
        let id = far.request().await;
        far.chunk(&gone, "bGF0ZQ==");
        far.answer(&id);
        far.settle().await;
        assert_eq!(read(&mut next).await.whole(), (200, "hi"));
    }
}

#[tokio::test(start_paused = true)]
async fn ten_hang_ups_have_no_more_than_one_at_work() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    drop_after_the_request(&mut kit, &mut far).await;
    for _ in 0..9 {
        drop(kit.ask());
    }
    let _next = kit.ask();
    far.settle().await;
}

async fn drop_after_the_request(kit: &mut Kit, far: &mut Far) -> String {
    let answer = kit.ask();
    let id = far.request().await;
    drop(answer);
    id
}

#[tokio::test(start_paused = true)]
async fn a_slot_that_is_never_said_to_be_free_is_free_after_the_request_time_out() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    drop_after_the_request(&mut kit, &mut far).await;
    let since = Instant::now();
    // A participant that pings is not lost, and a waiting client is refused after 30 s.
    let heard = loop {
        let _waits = kit.ask();
        tokio::time::sleep(Duration::from_secs(10)).await;
        far.say(&json!({"type": "tunnel.ping", "timestamp": 1}));
        let heard = far.hear().await;
        if heard["type"] != "tunnel.pong" {
            break heard;
        }
    };
    assert_eq!(heard["type"], "tunnel.request");
    assert!((300..=310).contains(&since.elapsed().as_secs()), "{:?}", since.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_can_be_told_to_stop_is_told() {
    let mut kit = Kit::new();
    kit.join("a", |_| {});
    let mut far = kit.tunnel_as("a", true).await;
    let (gone, _next) = hung_up(&mut kit, &mut far).await;
    let cancel: Value = far.hear().await;
    assert_eq!(cancel, json!({"type": "tunnel.cancel", "requestId": gone}));
    far.settle().await;
    far.fail(&gone, "stopped");
    far.request().await;
}

#[tokio::test(start_paused = true)]
async fn an_end_that_crosses_the_hang_up_frees_the_slot_too() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let answer = kit.ask();
    let gone = far.request().await;
    far.start(&gone, 200);
    far.end(&gone);
    drop(answer);
    let _next = kit.ask();
    far.request().await;
}

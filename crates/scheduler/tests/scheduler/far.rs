//! Providers that are other machines.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use scheduler::{Config, Distance, Head, Offer};

use crate::kit::{JoinedProvider, Kit, offer, ok};

fn peer(kit: &mut Kit, name: &'static str) -> JoinedProvider {
    kit.join_as(name, Offer { distance: Distance::Near, ..offer(1) })
}

fn speed(kit: &Kit, name: &str) -> Option<f64> {
    let status = kit.scheduler.status();
    status.workers.iter().find(|worker| worker.name == name).and_then(|worker| worker.speed)
}

/// Answers one job with `tokens` bytes, each of which is a token here, after two seconds.
async fn answer(kit: &mut Kit, provider: &mut JoinedProvider, head: Head, tokens: usize) {
    let mut answer = kit.submit();
    let mut writer = provider.assigned().await.answer;
    tokio::time::advance(Duration::from_secs(2)).await;
    writer.head(head).unwrap();
    writer.chunk(Bytes::from(vec![b'a'; tokens])).unwrap();
    writer.end();
    answer.head().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_tokens_of_its_answers_tell_how_fast_a_provider_is() {
    let mut kit = Kit::new(Config::default());
    let mut near = peer(&mut kit, "near");
    near.membership.condition(Some(1_500), 100);
    assert_eq!(speed(&kit, "near"), Some(1.5), "as it says");
    answer(&mut kit, &mut near, ok(), 40).await;
    assert_eq!(speed(&kit, "near"), Some(20.0), "as it is");
    answer(&mut kit, &mut near, ok(), 7).await;
    let refused = Head { status: StatusCode::BAD_REQUEST, ..ok() };
    answer(&mut kit, &mut near, refused, 4_000).await;
    assert_eq!(speed(&kit, "near"), Some(20.0), "neither short nor bad answers tell");
}

#[tokio::test(start_paused = true)]
async fn distance_and_throttle_are_told_and_kept_to() {
    let mut kit = Kit::new(Config::default());
    let mut near = peer(&mut kit, "near");
    near.membership.condition(None, 0);
    near.membership.distance(Distance::Far);
    let shown = &kit.scheduler.status().workers[0];
    assert_eq!((shown.distance, shown.throttle, shown.speed), (Distance::Far, 0, None));
    let _answer = kit.submit();
    assert_eq!(kit.slots(), (0, 1), "paused");
    near.membership.condition(None, 50);
    near.assigned().await;
    assert_eq!(kit.slots(), (1, 0));
}

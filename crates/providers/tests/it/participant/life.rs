//! Tunnels that come, live and go.

use std::time::Duration;

use base::{Endpoint, ModelName};
use protocol::room::{Capability, Status, selector};
use scheduler::{Ending, Route};
use serde_json::json;
use tokio::time::Instant;

use super::kit::{HERE, Kit, now, read};

#[tokio::test(start_paused = true)]
async fn a_participant_is_online_while_its_tunnel_stands() {
    let kit = Kit::new();
    let far = kit.participant("a", 1).await;
    assert_eq!(kit.status("a"), Status::Online);
    let names = kit.scheduler.models(&kit.room.scope());
    assert_eq!(names, ["m", "room:any", "room:every", "room:participant/a"].map(ModelName::from));
    assert!(kit.scheduler.models(&base::Scope::server()).is_empty(), "only in its room");
    drop(far);
    kit.gone("a").await;
    assert!(kit.scheduler.status().workers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_ping_is_answered_with_its_timestamp() {
    let kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    far.say(&json!({"type": "tunnel.ping", "timestamp": 1795171909121_u64}));
    assert_eq!(far.hear().await, json!({"type": "tunnel.pong", "timestamp": 1795171909121_u64}));
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_that_is_silent_for_30_s_is_closed_and_its_job_waits_for_another() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    far.request().await;
    let began = Instant::now();
    assert_eq!(far.closed().await, (4001, "no ping for 30 s".to_owned()));
    assert_eq!(began.elapsed().as_secs(), 30);
    assert_eq!(kit.status("a"), Status::Offline);
    let mut other = kit.participant("b", 1).await;
    let id = other.request().await;
    other.answer(&id);
    other.drive();
    assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn any_frame_is_a_sign_of_life() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let _answer = kit.ask();
    let id = far.request().await;
    far.start(&id, 200);
    for _ in 0..5 {
        tokio::time::advance(Duration::from_secs(20)).await;
        far.chunk(&id, "aGk=");
        far.settle().await;
    }
    assert_eq!(kit.status("a"), Status::Online);
}

#[tokio::test(start_paused = true)]
async fn a_newer_tunnel_takes_the_place_and_the_unbegun_jobs_of_the_older() {
    let mut kit = Kit::new();
    let mut older = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let first = older.request().await;
    let mut newer = kit.knock("a");
    assert_eq!(older.closed().await, (1000, "superseded by a newer tunnel".to_owned()));
    let second = newer.request().await;
    assert_ne!(first, second, "the same job under another id");
    newer.answer(&second);
    newer.settle().await;
    assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
    assert_eq!((kit.status("a"), kit.scheduler.status().workers.len()), (Status::Online, 1));
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_leaves_a_room_that_closes_and_a_server_that_stops_end_tunnels() {
    let kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    kit.room.leave("a", None, HERE).unwrap();
    assert_eq!(far.closed().await, (1008, "the participant was removed".to_owned()));
    let mut far = kit.participant("a", 1).await;
    kit.scheduler.shut_down("stop", Duration::from_secs(5));
    assert_eq!(far.closed().await, (1001, "the server is closing".to_owned()));
    let kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    kit.rooms.close(kit.room.id(), "enough").unwrap();
    assert_eq!(far.closed().await, (1001, "the room was closed".to_owned()));
    assert!(kit.scheduler.status().workers.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tunnel_of_nobody_is_closed() {
    let kit = Kit::new();
    let mut far = kit.knock("nobody");
    assert_eq!(far.closed().await, (1008, "the participant was removed".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_dies_in_mid_stream_ends_its_answer_with_a_failure() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.start(&id, 200);
    far.chunk(&id, "aGk=");
    far.settle().await;
    drop(far);
    let cut = read(&mut answer).await;
    assert_eq!((cut.status(), cut.body.as_str()), (200, "hi"));
    assert_eq!(cut.failure.unwrap().ending, Ending::ProviderLost);
}

#[tokio::test(start_paused = true)]
async fn a_denied_endpoint_is_not_asked_for() {
    let mut kit = Kit::new();
    kit.join("a", |joining| joining.capabilities.open_responses = Capability::Unsupported);
    let mut far = kit.tunnel("a").await;
    let any = ModelName::from(selector::ANY);
    let served = kit.scheduler.endpoints(&kit.room.scope(), &any, Route::default());
    assert!(served.contains(Endpoint::ChatCompletions) && !served.contains(Endpoint::Responses));
    let _answer = kit.ask_responses();
    assert_eq!(far.hear().await["path"], "/v1/chat/completions");
}

#[tokio::test(start_paused = true)]
async fn the_defaults_of_participant_and_room_complete_a_request() {
    let mut kit = Kit::new();
    kit.join("a", |joining| {
        joining.config.generation.temperature = Some(0.5);
        joining.config.instructions = Some("be brief".to_owned());
    });
    let mut far = kit.tunnel("a").await;
    let _first = kit.ask();
    let request = far.hear().await;
    assert_eq!(request["body"]["temperature"], 0.5);
    assert_eq!(request["body"]["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(request["body"]["messages"][1]["content"], "hi");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_defaults_holds_from_the_next_request_on() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 2).await;
    let _first = kit.ask();
    assert!(far.hear().await["body"].get("seed").is_none());
    kit.join("a", |joining| joining.config.generation.seed = Some(7));
    let _second = kit.ask();
    assert_eq!(far.hear().await["body"]["seed"], 7);
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_joins_anew_with_another_model_is_found_under_that() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    kit.join("a", |joining| joining.models = vec!["n".to_owned()]);
    far.settle().await;
    let names = kit.scheduler.models(&kit.room.scope());
    assert_eq!(names, ["n", "room:any", "room:every", "room:participant/a"].map(ModelName::from));
    let _answer = kit.ask_for("n");
    assert_eq!(far.hear().await["body"]["model"], "n");
}

#[tokio::test(start_paused = true)]
async fn a_participant_that_joins_anew_and_takes_more_at_once_is_given_more() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let (_first, _second) = (kit.ask(), kit.ask());
    let one = far.request().await;
    kit.join("a", |joining| joining.max_concurrent = 2);
    assert_ne!(far.request().await, one);
}

#[tokio::test(start_paused = true)]
async fn a_thousand_heartbeats_later_a_participant_that_pings_is_still_there() {
    let kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    for count in 0..1000_u64 {
        tokio::time::advance(Duration::from_secs(10)).await;
        far.say(&json!({"type": "tunnel.ping", "timestamp": count}));
        assert_eq!(far.hear().await["timestamp"], count);
    }
    kit.rooms.sweep(now(), now());
    assert_eq!(kit.status("a"), Status::Online);
}

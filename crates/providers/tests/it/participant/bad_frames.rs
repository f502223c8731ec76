//! A participant that talks nonsense: it costs at most the request that it is about.

use bytes::Bytes;
use protocol::room::selector;
use scheduler::Ending;
use serde_json::json;

use super::kit::{Kit, read};

#[tokio::test(start_paused = true)]
async fn garbage_is_passed_over_and_the_tunnel_stays() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    for _ in 0..1000 {
        far.send("no json".to_owned());
        far.send(String::new());
        far.send(Bytes::from_static(b"\x00\x01binary"));
        far.say(&json!({"type": "tunnel.unheard_of", "requestId": "x"}));
        far.say(&json!({"type": "tunnel.response.start"}));
        far.say(&json!({"type": "tunnel.response.chunk", "requestId": 7, "chunk": 7}));
        far.say(&json!({"type": 7}));
        far.say(&json!([1, 2]));
        far.say(&json!({"type": "tunnel.ping", "timestamp": "now"}));
        far.say(&json!({"type": "tunnel.ping", "timestamp": -1e99}));
        far.say(&json!({"type": "tunnel.request", "requestId": "x"}));
        far.say(&json!({"type": "tunnel.response.start", "requestId": [id], "status": 200}));
    }
    for deep in ["[".repeat(100_000), "{\"type\":".repeat(50_000)] {
        far.send(deep);
    }
    far.answer(&id);
    far.settle().await;
    assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn frames_about_unknown_requests_are_ignored() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.answer("r-000000000000000000000000000000ff");
    far.fail("nobody's", "x");
    far.answer(&id);
    // After its end, it is as unknown as the others.
    far.answer(&id);
    far.settle().await;
    assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn nobody_answers_anothers_request() {
    let mut kit = Kit::new();
    let (mut honest, mut liar) = (kit.participant("a", 1).await, kit.participant("b", 1).await);
    let mut answer = kit.ask_for(&selector::participant_name("a"));
    let id = honest.request().await;
    liar.start(&id, 200);
    liar.chunk(&id, "bGll");
    liar.fail(&id, "lie");
    liar.end(&id);
    liar.settle().await;
    honest.answer(&id);
    honest.settle().await;
    assert_eq!(read(&mut answer).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn a_bad_frame_about_a_request_fails_that_request_alone() {
    let bad = |id: &str| {
        [
            json!({"type": "tunnel.response.chunk", "requestId": id, "chunk": "no base64!"}),
            json!({"type": "tunnel.response.chunk", "requestId": id, "chunk": 7}),
            json!({"type": "tunnel.response.chunk", "requestId": id}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": "many"}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": 1000}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": 101}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": 0}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": 99}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": -1}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": "200"}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": null}),
            json!({"type": "tunnel.response.start", "requestId": id, "status": 200, "headers": 7}),
            json!({"type": "tunnel.response.error", "requestId": id, "message": 7}),
            json!({"type": "tunnel.response.unheard_of", "requestId": id}),
        ]
    };
    for number in 0..bad("").len() {
        let mut kit = Kit::new();
        let mut far = kit.participant("a", 2).await;
        let (mut spoilt, mut good) = (kit.ask(), kit.ask());
        let (first, second) = (far.request().await, far.request().await);
        far.start(&second, 200);
        let frame = &bad(&first)[number];
        far.say(frame);
        // What still comes of it is ignored.
        far.answer(&first);
        far.chunk(&second, "aGk=");
        far.end(&second);
        far.settle().await;
        let failure = read(&mut spoilt).await.failure.unwrap_or_else(|| panic!("{frame}"));
        assert_eq!(failure.ending, Ending::ProviderFailed, "{frame}");
        assert_eq!(read(&mut good).await.whole(), (200, "hi"), "{frame}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chunk_before_the_head_fails_its_request() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.chunk(&id, "aGk=");
    far.settle().await;
    assert_eq!(read(&mut answer).await.detail(), "it sent a chunk before the head");
}

#[tokio::test(start_paused = true)]
async fn an_end_before_the_head_fails_its_request_and_a_second_head_is_ignored() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.end(&id);
    far.settle().await;
    assert_eq!(read(&mut answer).await.failure.unwrap().ending, Ending::ProviderFailed);
    let mut answer = kit.ask();
    let id = far.request().await;
    far.start(&id, 201);
    far.start(&id, 500);
    far.chunk(&id, "aGk=");
    far.end(&id);
    far.settle().await;
    assert_eq!(read(&mut answer).await.whole(), (201, "hi"));
}

#[tokio::test(start_paused = true)]
async fn headers_without_end_are_no_harm() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    let headers: serde_json::Map<_, _> =
        (0..40_000).map(|n| (format!("x-many-{n}"), json!("1"))).collect();
    far.say(&json!({
        "type": "tunnel.response.start", "requestId": id, "status": 200, "headers": headers,
    }));
    far.chunk(&id, "aGk=");
    far.end(&id);
    far.settle().await;
    let read = read(&mut answer).await;
    assert_eq!(read.whole(), (200, "hi"));
    assert!(read.head.unwrap().headers.is_empty());
}

/// A header with a line break would be one more header of the client's answer.
#[tokio::test(start_paused = true)]
async fn a_header_that_is_none_is_left_out_or_fails_its_request() {
    for headers in [
        json!({"bad name\n": "x"}),
        json!({"retry-after": "7\r\nset-cookie: b=c"}),
        json!({"content-type": 7}),
    ] {
        let mut kit = Kit::new();
        let mut far = kit.participant("a", 1).await;
        let mut answer = kit.ask();
        let id = far.request().await;
        far.say(&json!({
            "type": "tunnel.response.start", "requestId": id, "status": 200, "headers": headers,
        }));
        far.chunk(&id, "aGk=");
        far.end(&id);
        far.settle().await;
        match read(&mut answer).await {
            answer if answer.failure.is_some() => assert!(answer.head.is_none(), "{headers}"),
            answer => assert!(answer.head.unwrap().headers.is_empty(), "{headers}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_that_nobody_reads_ends_its_job_and_no_other() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 2).await;
    let (mut flooded, mut good) = (kit.ask(), kit.ask());
    let (first, second) = (far.request().await, far.request().await);
    far.start(&first, 200);
    let megabyte = "QUFB".repeat(1024 * 1024 / 3);
    for _ in 0..12 {
        far.chunk(&first, &megabyte);
        far.settle().await;
    }
    far.answer(&second);
    far.settle().await;
    let failure = read(&mut flooded).await.failure.unwrap();
    assert_eq!(failure.ending, Ending::ClientStalled);
    assert_eq!(read(&mut good).await.whole(), (200, "hi"));
}

#[tokio::test(start_paused = true)]
async fn a_chunk_over_16_mib_fails_its_request() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    let mut answer = kit.ask();
    let id = far.request().await;
    far.start(&id, 200);
    far.chunk(&id, &"QUFB".repeat(4 * 1024 * 1024));
    far.settle().await;
    assert_eq!(read(&mut answer).await.detail(), "it sent a chunk over 16 MiB");
}

#[tokio::test(start_paused = true)]
async fn clients_that_leave_without_end_leave_nothing_behind() {
    let mut kit = Kit::new();
    let mut far = kit.participant("a", 1).await;
    for _ in 0..3_000 {
        let answer = kit.ask();
        let id = far.request().await;
        far.start(&id, 200);
        drop(answer);
        far.end(&id);
    }
    let mut last = kit.ask();
    let id = far.request().await;
    far.answer(&id);
    far.settle().await;
    assert_eq!(read(&mut last).await.whole(), (200, "hi"));
}

//! Servers and NATS that die, hang, stop and come back.

use std::time::{Duration, Instant};

use testkit::{Connect, DEADLINE, Daemon, Form, eventually, nats::NatsServer};

use crate::servers::{
    asked, begun, completion, delta, fleet, has_workers, own_group, sees, serve, two, worker,
};

/// How soon the end of a server is noticed at all. On an idle machine it takes 3 s.
const SOON: Duration = Duration::from_secs(10);

/// Waits until a server's health is as expected; returns what it says of it.
async fn is_degraded(daemon: &Daemon, degraded: bool) -> String {
    let so = async || (daemon.health().await["status"] == "degraded") == degraded;
    eventually("what /health says", DEADLINE, so).await;
    daemon.health().await["degraded"].as_str().unwrap_or_default().to_owned()
}

/// A request at a server, answered by this server's own worker.
async fn works_alone(daemon: &Daemon) {
    let mut own = Connect::to(daemon).form(Form::Binary).join("own", &["alone"], 1).await;
    let body = serde_json::json!({"model": "alone", "messages": []});
    let answer = tokio::spawn(daemon.client().post("/v1/chat/completions", &body).start());
    let job = own.expect_job().await;
    own.complete(&job, 200, &completion("x")).await;
    assert_eq!(answer.await.unwrap().finish().await.status, 200);
}

/// The server that has the worker ends or hangs: what has not begun moves, what has begun ends with an error.
async fn the_serving_server_is_lost(lose: impl AsyncFnOnce(&mut Daemon)) {
    let (mut one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    let (begun, _) = begun(&other, &mut lent).await;
    let unbegun = asked(&other, false);
    lent.expect_job().await;
    let mut own = Connect::to(&other).form(Form::Binary).join("own", &["m"], 1).await;
    has_workers(&other, 2).await;
    lose(&mut one).await;
    let lost = Instant::now();
    let moved = own.expect_job().await;
    assert!(lost.elapsed() < SOON, "{:?}", lost.elapsed());
    own.complete(&moved, 200, &completion("moved")).await;
    assert!(unbegun.await.unwrap().finish().await.text().contains("moved"));
    let rest = begun.finish().await.text();
    assert!(lost.elapsed() < SOON, "{:?}", lost.elapsed());
    assert!(rest.starts_with("data: {\"error\":"), "{rest}");
    sees(&other, 0).await;
    has_workers(&other, 1).await;
}

#[tokio::test]
async fn a_server_that_is_killed_takes_no_request_along_that_has_not_begun() {
    the_serving_server_is_lost(async |one| one.kill9().await).await;
}

#[tokio::test]
async fn a_server_that_hangs_is_as_good_as_dead_and_comes_back() {
    the_serving_server_is_lost(async |one| one.sigstop()).await;
    let (one, other) = two(&own_group()).await;
    one.sigstop();
    sees(&other, 0).await;
    one.sigcont();
    sees(&other, 1).await;
    sees(&one, 1).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let answer = asked(&other, false);
    let job = lent.expect_job().await;
    lent.complete(&job, 200, &completion("x")).await;
    assert_eq!(answer.await.unwrap().finish().await.status, 200);
}

#[tokio::test]
async fn a_server_that_stops_finishes_what_it_serves_and_gets_nothing_new() {
    let (mut one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 2, &[&other]).await;
    let (mut answer, job) = begun(&other, &mut lent).await;
    one.sigterm();
    let draining = async || fleet(&other).await["servers"][0]["state"] == "draining";
    eventually("the other server to hear of it", DEADLINE, draining).await;
    let mut own = Connect::to(&other).form(Form::Binary).join("own", &["m"], 1).await;
    let new = asked(&other, false);
    let taken = own.expect_job().await;
    own.complete(&taken, 200, &completion("at home")).await;
    assert!(new.await.unwrap().finish().await.text().contains("at home"));
    lent.chunk(&job, &delta("b")).await;
    answer.expect(&delta("b")).await;
    lent.finish(&job).await;
    assert_eq!(answer.finish().await.text(), "");
    assert_eq!(one.exit().await, Some(0));
    sees(&other, 0).await;
}

#[tokio::test]
async fn without_nats_each_server_works_alone_and_they_join_again_when_it_is_back() {
    let mut nats = NatsServer::start();
    let (one, other) = two(&nats.url("g")).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    nats.kill();
    let why = is_degraded(&other, true).await;
    assert!(why.contains("NATS (nats://127.0.0.1:") && why.contains("works alone"), "{why}");
    for server in [&one, &other] {
        sees(server, 0).await;
        works_alone(server).await;
    }
    nats.run();
    for server in [&one, &other] {
        is_degraded(server, false).await;
        sees(server, 1).await;
    }
    let answer = asked(&other, false);
    let job = lent.expect_job().await;
    lent.complete(&job, 200, &completion("x")).await;
    assert_eq!(answer.await.unwrap().finish().await.status, 200);
}

#[tokio::test]
async fn a_nats_that_hangs_is_as_good_as_away() {
    let nats = NatsServer::start();
    let (one, other) = two(&nats.url("g")).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let (begun, job) = begun(&other, &mut lent).await;
    nats.freeze();
    let rest = begun.finish().await.text();
    assert!(rest.starts_with("data: {\"error\":"), "{rest}");
    for server in [&one, &other] {
        is_degraded(server, true).await;
        sees(server, 0).await;
        works_alone(server).await;
    }
    assert_eq!(lent.expect_cancel().await.0, job.request_id, "nobody reads it any more");
    nats.thaw();
    for server in [&one, &other] {
        is_degraded(server, false).await;
        sees(server, 1).await;
    }
}

#[tokio::test]
async fn a_server_starts_without_nats_and_joins_when_it_comes() {
    let mut nats = NatsServer::start();
    let url = nats.url("g");
    nats.kill();
    let (one, other) = (serve(&url, "one").start().await, serve(&url, "other").start().await);
    is_degraded(&one, true).await;
    works_alone(&one).await;
    nats.run();
    sees(&one, 1).await;
    sees(&other, 1).await;
    is_degraded(&one, false).await;
}

//! Clocks that are apart, and a NATS that is full.

use testkit::{DEADLINE, clock::with_clock, eventually, nats::NatsServer};

use crate::servers::{
    OWNER, asked, binary, completion, fleet, has_workers, own_group, sees, serve, worker,
};

#[tokio::test]
async fn servers_whose_clocks_are_an_hour_apart_act_as_one() {
    let Some((fast, _clock)) = with_clock(binary(), "+1h") else { return };
    let nats = own_group();
    let one = serve(&nats, "one").start().await;
    let fast = fast.set("--cluster", &nats).set("--server-name", "fast");
    let fast = fast.set("--admin-token", OWNER).start().await;
    for server in [&one, &fast] {
        sees(server, 1).await;
    }
    for (home, serving) in [(&one, &fast), (&fast, &one)] {
        let mut lent = worker(serving, 1, &[home]).await;
        let answer = asked(home, false);
        let job = lent.expect_job().await;
        lent.complete(&job, 200, &completion("x")).await;
        assert_eq!(answer.await.unwrap().finish().await.status, 200);
        drop(lent);
        for server in [&one, &fast] {
            has_workers(server, 0).await;
        }
    }
}

#[tokio::test]
async fn a_nats_that_takes_no_more_records_leaves_each_server_to_its_own_workers() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("nats.conf");
    std::fs::write(&file, "jetstream { max_memory_store: 64, max_file_store: 0 }\n").unwrap();
    let nats = NatsServer::start_with(&["-c", file.to_str().unwrap()]);
    let one = serve(&nats.url("g"), "one").start().await;
    let told =
        async || one.health().await["degraded"].as_str().is_some_and(|it| it.contains("NATS"));
    eventually("the server to complain", DEADLINE, told).await;
    assert_eq!(fleet(&one).await["servers"], serde_json::json!([]));
    let mut own = worker(&one, 1, &[]).await;
    let answer = asked(&one, false);
    let job = own.expect_job().await;
    own.complete(&job, 200, &completion("x")).await;
    assert_eq!(answer.await.unwrap().finish().await.status, 200);
}

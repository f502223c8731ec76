//! Workers and backends that die, hang, or come back.

use std::time::Duration;

use testkit::{Gate, MockBackend, Reply};

use crate::common::{CHAT, ask, lend, post, serve};

/// A laptop falls asleep: a request that it was given goes to the other machine, long before its link
/// is given up.
#[tokio::test]
async fn a_request_at_a_worker_that_sleeps_moves_on() {
    let daemon = serve().start().await;
    let backends = [MockBackend::start(&["m"]).await, MockBackend::start(&["m"]).await];
    let sleeper = lend(&daemon, &backends[0], 1).await;
    let _other = lend(&daemon, &backends[1], 1).await;
    sleeper.sigstop();
    let began = std::time::Instant::now();
    let both = [ask(false), ask(true)].map(|body| post(&daemon.client(), CHAT, body));
    for answer in both {
        assert_eq!(answer.await.unwrap().status, 200);
    }
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    daemon.has_workers(2).await;
    sleeper.sigcont();
    daemon.is_idle().await;
}

#[tokio::test]
async fn workers_come_back_to_a_server_that_was_killed() {
    let mut daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let gate = Gate::closed();
    let _first = lend(&daemon, &backend, 1).await;
    let _second = lend(&daemon, &backend, 1).await;
    backend.then(Reply::completion("late").after(&gate));
    let asked = daemon.client().post(CHAT, &ask(false)).open().await;
    backend.request().await;
    daemon.kill_and_restart().await;
    assert!(asked.try_answer().await.is_err(), "its server was killed");
    backend.aborted(1).await;
    daemon.has_workers(2).await;
    assert_eq!(daemon.client().post_json(CHAT, &ask(false)).await.status, 200);
    daemon.is_idle().await;
}

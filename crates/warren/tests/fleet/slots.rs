//! A slot is promised to one server at a time.

use testkit::{Daemon, FakeWorker};

use crate::servers::{asked, completion, fleet, own_group, sees, serve, two, worker};

/// Answers `jobs` jobs, each when no other is there.
async fn answers_alone(lent: &mut FakeWorker, at: &Daemon, jobs: usize) {
    for _ in 0..jobs {
        let job = lent.expect_job().await;
        // Its server is asked, so that another job would have had time to come.
        for _ in 0..5 {
            assert_eq!(at.health().await["in_flight"], 1);
        }
        assert!(!lent.has_unread(), "two jobs at a worker with one slot");
        lent.complete(&job, 200, &completion("x")).await;
    }
}

#[tokio::test]
async fn three_servers_that_want_one_slot_take_turns() {
    let nats = own_group();
    let start = async |name| serve(&nats, name).start().await;
    let (one, two, three) = (start("one").await, start("two").await, start("three").await);
    for server in [&one, &two, &three] {
        sees(server, 2).await;
    }
    let mut lent = worker(&one, 1, &[&two, &three]).await;
    let mut answers = Vec::new();
    for _ in 0..6 {
        for server in [&one, &two, &three] {
            answers.push(asked(server, false));
        }
    }
    answers_alone(&mut lent, &one, answers.len()).await;
    for answer in answers {
        assert_eq!(answer.await.unwrap().finish().await.status, 200);
    }
}

#[tokio::test]
async fn an_own_request_gets_a_slot_back_that_is_lent_and_idle() {
    let (one, other) = two(&own_group()).await;
    let mut lent = worker(&one, 1, &[&other]).await;
    let first = asked(&other, false);
    let job = lent.expect_job().await;
    assert_eq!(fleet(&one).await["slots_lent"], 1);
    assert_eq!(fleet(&other).await["slots_borrowed"], 1);
    lent.complete(&job, 200, &completion("x")).await;
    assert_eq!(first.await.unwrap().finish().await.status, 200);
    let own = asked(&one, false);
    answers_alone(&mut lent, &one, 1).await;
    assert_eq!(own.await.unwrap().finish().await.status, 200);
}

//! Changes at one server hold at the other.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::{Daemon, FakeWorker, postgres::PostgresServer};

use crate::servers::{
    CHAT, answered, answers, ask, make_key, owner, revoke, sharing, status_for, tells_requests,
    two, worker,
};

/// How soon a change of one server holds at all. On a busy machine the fastest of some is looked at.
const SOON: Duration = Duration::from_secs(1);
const TRIES: usize = 5;

#[tokio::test]
async fn a_key_of_one_server_works_at_the_other_and_its_revocation_ends_answers_there() {
    let (one, other) = two(PostgresServer::shared()).await;
    let mut lent = worker(&other).await;
    let (mut made, mut revoked) = (Duration::MAX, Duration::MAX);
    for _ in 0..TRIES {
        let took = made_and_revoked(&one, &other, &mut lent).await;
        (made, revoked) = (made.min(took.0), revoked.min(took.1));
        if made.max(revoked) < SOON {
            return;
        }
    }
    panic!("a new key held after {made:?}, its revocation after {revoked:?}");
}

/// How long it takes until a new key of `one` holds at `other`, and until its revocation ends an answer there.
async fn made_and_revoked(
    one: &Daemon,
    other: &Daemon,
    lent: &mut FakeWorker,
) -> (Duration, Duration) {
    let (id, text) = make_key(one).await;
    let began = Instant::now();
    answers(other, &text, 200).await;
    let made = began.elapsed();
    let asked = other.client().with_token(&text).post(CHAT, &ask(true)).open().await;
    let job = lent.expect_job().await;
    let begun = "data: {\"choices\":[]}\n\n";
    lent.chunk(&job, begun).await;
    let mut answer = asked.answer().await;
    answer.expect(begun).await;
    assert_eq!(revoke(one, &id).await.status, 200);
    let began = Instant::now();
    assert_eq!(lent.expect_cancel().await.0, job.request_id);
    let revoked = began.elapsed();
    assert!(answer.finish().await.text().contains("the API key was revoked"));
    assert_eq!(status_for(other, &text).await, 401);
    (made, revoked)
}

#[tokio::test]
async fn a_change_that_nobody_tells_of_is_found() {
    let postgres = PostgresServer::shared();
    let database = postgres.database();
    let one = sharing(&database).start().await;
    let (id, text) = make_key(&one).await;
    assert_eq!(status_for(&one, &text).await, 200);
    let by_hand =
        format!("SET search_path TO warren; UPDATE keys SET revoked = 7 WHERE id = '{id}'");
    postgres.sql(&database, &by_hand);
    answers(&one, &text, 401).await;
}

#[tokio::test]
async fn usage_and_the_audit_log_are_one() {
    let (one, other) = two(PostgresServer::shared()).await;
    let (id, text) = make_key(&one).await;
    answers(&other, &text, 200).await;
    for daemon in [&one, &other] {
        let mut lent = worker(daemon).await;
        answered(daemon, &mut lent, &text).await;
    }
    for daemon in [&one, &other] {
        tells_requests(daemon, &id, 2).await;
        let log = owner(daemon).get("/admin/audit").await.text();
        assert!(log.contains("key.create") && log.contains(&id), "{log}");
    }
    assert!(!one.log().contains("warren@"), "no user in the log");
}

#[tokio::test]
async fn an_invitation_of_one_server_is_known_to_the_other() {
    let (one, other) = two(PostgresServer::shared()).await;
    let asked = json!({"name": "gpu", "url": "https://gpu.example"});
    let made = owner(&one).post_json("/admin/invitations", &asked).await;
    assert!(made.status == 201 || made.status == 200, "{}", made.text());
    let listed = async || owner(&other).get("/admin/invitations").await.text().contains("gpu");
    testkit::eventually("the invitation at the other server", testkit::DEADLINE, listed).await;
}

//! The shared database is slow: it takes rows, but not now.

use testkit::{DEADLINE, eventually, postgres::PostgresServer};

use crate::servers::{answered, make_key, sharing, status_for, tells_requests, worker};

/// Requests that are answered meanwhile.
const REQUESTS: u64 = 20;

#[tokio::test]
async fn a_database_that_takes_no_rows_for_a_while_holds_no_request_up() {
    let postgres = PostgresServer::shared();
    let database = postgres.database();
    let one = sharing(&database).start().await;
    let (id, text) = make_key(&one).await;
    let mut lent = worker(&one).await;

    let held = postgres.hold(&database, "LOCK TABLE warren.usage IN ACCESS EXCLUSIVE MODE");
    for _ in 0..REQUESTS {
        answered(&one, &mut lent, &text).await;
    }
    let waits = async || one.health().await["status"] == "degraded";
    eventually("that the server says so", DEADLINE * 2, waits).await;
    assert_eq!(status_for(&one, "wk_wrong").await, 401);
    answered(&one, &mut lent, &text).await;

    drop(held);
    tells_requests(&one, &id, REQUESTS + 1).await;
    let is_well = async || one.health().await["status"] == "ok";
    eventually("that all is well again", DEADLINE * 2, is_well).await;
}

//! The shared database hangs, dies, and comes back.

use std::process::Command;

use testkit::{DEADLINE, Daemon, eventually, postgres::PostgresServer};

use crate::servers::{
    answered, answers, binary, make_key, owner, revoke, sharing, status_for, tells_requests, worker,
};

async fn is_degraded(daemon: &Daemon, degraded: bool) {
    let so = async || (daemon.health().await["status"] == "degraded") == degraded;
    eventually("what /health says", DEADLINE, so).await;
}

#[tokio::test]
async fn valid_keys_work_and_usage_waits_while_the_database_hangs_and_while_it_is_dead() {
    let mut postgres = PostgresServer::start();
    let database = postgres.database();
    let mut one = sharing(&database).start().await;
    let (id, text) = make_key(&one).await;
    let (other_id, other_text) = make_key(&one).await;
    let mut lent = worker(&one).await;
    answered(&one, &mut lent, &text).await;
    tells_requests(&one, &id, 1).await;

    postgres.freeze();
    is_degraded(&one, true).await;
    answered(&one, &mut lent, &text).await;
    assert_eq!(status_for(&one, "wk_wrong").await, 401);
    let health = one.health().await.to_string();
    assert!(health.contains("rows of usage wait on this machine's disk"), "{health}");
    postgres.thaw();
    is_degraded(&one, false).await;
    tells_requests(&one, &id, 2).await;

    postgres.kill();
    is_degraded(&one, true).await;
    answered(&one, &mut lent, &text).await;
    assert_eq!(status_for(&one, "wk_wrong").await, 401);
    let refused = owner(&one).post_json("/admin/keys", &serde_json::json!({"name": "n"})).await;
    assert!(refused.status >= 500 && refused.text().contains("tried again"), "{}", refused.text());
    assert!(revoke(&one, &other_id).await.status >= 500, "it cannot be written");
    assert_eq!(status_for(&one, &other_text).await, 401, "and holds here");
    drop(lent);
    let waits = async || one.health().await.to_string().contains("and 1 rows of usage wait");
    eventually("the row on the disk", DEADLINE, waits).await;

    one.kill_and_restart().await;
    is_degraded(&one, true).await;
    assert_eq!((status_for(&one, &text).await, status_for(&one, &other_text).await), (200, 401));
    let mut lent = worker(&one).await;
    answered(&one, &mut lent, &text).await;

    postgres.run();
    is_degraded(&one, false).await;
    tells_requests(&one, &id, 4).await;
    let second = sharing(&database).start().await;
    answers(&second, &other_text, 401).await;
    assert_eq!(status_for(&second, &text).await, 200);
}

#[tokio::test]
async fn a_server_without_a_copy_does_not_start_while_the_database_is_away() {
    let mut postgres = PostgresServer::start();
    let database = postgres.database().replace("warren@", "warren:hunter2@");
    postgres.kill();
    let directory = tempfile::tempdir().unwrap();
    let mut serve = Command::new(binary());
    serve.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path());
    let done = serve.env("WARREN_DATABASE", &database).output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr);
    assert_eq!(done.status.code(), Some(1), "{said}");
    assert!(said.contains("cannot be used now") && !said.contains("hunter2"), "{said}");
}

#[tokio::test]
async fn a_command_without_a_server_works_on_the_shared_keys_or_on_none() {
    let postgres = PostgresServer::shared();
    let database = postgres.database();
    let one = sharing(&database).start().await;
    let other = sharing(&database);
    let key = |database: Option<&str>| {
        let mut command = Command::new(binary());
        command
            .args(["key", "create", "--name", "n", "--json", "--data-dir"])
            .arg(other.data_dir());
        command.env_remove("WARREN_DATABASE").envs(database.map(|url| ("WARREN_DATABASE", url)));
        command.output().unwrap()
    };
    let made = key(Some(&database));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let made: serde_json::Value = serde_json::from_slice(&made.stdout).unwrap();
    answers(&one, made["key"].as_str().unwrap(), 200).await;
    let refused = key(None);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("WARREN_DATABASE"), "{said}");
}

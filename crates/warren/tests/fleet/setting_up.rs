//! How servers are made one, and what they say where that fails.

use std::process::Command;

use testkit::{DEADLINE, Daemon, Serve, eventually, nats::NatsServer};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
};

use crate::servers::{OWNER, binary, fleet, own_group, sees, serve, two};

/// Waits until a server says so of its health.
async fn says(daemon: &Daemon, words: &str) {
    let so = async || {
        let told = daemon.health().await["degraded"].as_str().unwrap_or_default().to_owned();
        told.contains(words)
    };
    eventually(words, DEADLINE, so).await;
}

#[tokio::test]
async fn servers_of_two_groups_do_not_see_each_other() {
    let (one, _other) = two(&own_group()).await;
    let third = serve(&own_group(), "third").start().await;
    let connected = async || fleet(&third).await["connected"] == true;
    eventually("the third server at NATS", DEADLINE, connected).await;
    sees(&one, 1).await;
    assert_eq!(fleet(&third).await["servers"], serde_json::json!([]));
}

#[tokio::test]
async fn a_server_that_starts_again_is_the_same_one_by_name() {
    let (mut one, other) = two(&own_group()).await;
    let before = fleet(&other).await["servers"][0].clone();
    one.kill_and_restart().await;
    let again = async || {
        let servers = fleet(&other).await["servers"].as_array().cloned().unwrap_or_default();
        servers.len() == 1 && servers[0]["id"] != before["id"] && servers[0]["name"] == "one"
    };
    eventually("the new start alone", DEADLINE, again).await;
    sees(&one, 1).await;
}

#[tokio::test]
async fn two_servers_with_one_name_say_so() {
    let nats = own_group();
    let (one, other) = (serve(&nats, "same").start().await, serve(&nats, "same").start().await);
    sees(&one, 1).await;
    sees(&other, 1).await;
    let told = async || {
        let both = [one.health().await, other.health().await];
        both.iter().any(|health| {
            health["degraded"].as_str().is_some_and(|it| it.contains("--server-name"))
        })
    };
    eventually("one of both to complain", DEADLINE, told).await;
}

#[tokio::test]
async fn a_server_with_another_token_is_not_joined_and_both_say_why() {
    let nats = own_group();
    let one = serve(&nats, "one").start().await;
    let strange = Serve::new(binary())
        .set("--cluster", &nats)
        .set("--server-name", "strange")
        .set("--admin-token", "wa_quite-another-one")
        .start()
        .await;
    for server in [&one, &strange] {
        says(server, "another administrator's token").await;
        assert_eq!(fleet(server).await["servers"], serde_json::json!([]));
    }
}

#[tokio::test]
async fn a_nats_without_jetstream_is_told_to_get_it() {
    let nats = NatsServer::start_with(&[]);
    let one = serve(&nats.url("g"), "one").start().await;
    says(&one, "start the NATS server with -js").await;
}

#[tokio::test]
async fn a_nats_that_is_too_old_is_told_to_be_upgraded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    let old = tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let info = r#"{"server_id":"x","server_name":"x","version":"2.9.10","go":"","host":"h","port":1,"max_payload":1048576,"proto":1,"client_id":1,"headers":true,"jetstream":true}"#;
                stream.write_all(format!("INFO {info}\r\n").as_bytes()).await.unwrap();
                let (read, mut write) = stream.split();
                let mut lines = BufReader::new(read).lines();
                while let Ok(Some(line)) = lines.next_line().await {
                    if line.starts_with("PING") {
                        write.write_all(b"PONG\r\n").await.unwrap();
                    }
                }
            });
        }
    });
    let one = serve(&url, "one").start().await;
    says(&one, "it is version 2.9.10, and 2.10 or newer is needed").await;
    old.abort();
}

#[tokio::test]
async fn a_nats_with_a_password_lets_in_who_knows_it_and_nobody_reads_it_in_the_log() {
    let nats = NatsServer::start_with(&["-js", "--user", "warren", "--pass", "hunter2"]);
    let with = |password: &str| format!("nats://warren:{password}@{}/g", nats.address());
    let (one, other) = two(&with("hunter2")).await;
    let stranger = serve(&with("hunter3"), "stranger").start().await;
    says(&stranger, "authorization violation").await;
    sees(&one, 1).await;
    for server in [&one, &other, &stranger] {
        let told = format!("{}{}", server.log(), server.health().await);
        assert!(!told.contains("hunter"), "{told}");
    }
}

#[tokio::test]
async fn a_url_that_makes_no_sense_ends_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let serve = |url: &str| {
        let mut serve = Command::new(binary());
        serve.args(["serve", "--listen", "127.0.0.1:0", "--admin-token", OWNER, "--data-dir"]);
        serve.arg(directory.path()).env("WARREN_CLUSTER", url);
        let done = serve.output().unwrap();
        (done.status.code(), String::from_utf8_lossy(&done.stderr).into_owned())
    };
    for url in ["http://u:hunter2@x", "nats://u:hunter2@x/a.b"] {
        let (code, said) = serve(url);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("--cluster") && !said.contains("hunter2"), "{said}");
    }
}

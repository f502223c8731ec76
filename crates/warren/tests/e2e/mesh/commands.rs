//! `warren mesh` for two servers that are peers.

use serde_json::json;
use testkit::{Daemon, MockBackend, WorkerProcess};

use super::servers::{has_peer, identity, lan_address, mesh, node, offers};
use crate::{
    cli::warren,
    common::{binary, lend, serve},
    room_people::saying,
};

/// A server that lends the model `m` to its peers, and one without a model of its own.
async fn two(backend: &MockBackend) -> (Daemon, WorkerProcess, Daemon) {
    let lender = node("lender").set("--mesh-share", "peers").set("--mesh-passcode", "ours");
    let lender = lender.start().await;
    let worker = lend(&lender, backend, 2).await;
    let address = lan_address(&lender).await;
    let asker = node("asker").set("--mesh-peer", &address).set("--mesh-passcode", "ours");
    (lender, worker, asker.start().await)
}

#[tokio::test]
async fn a_peer_is_seen_and_asked_through_the_other_server() {
    let backend = saying(&["Hel", "lo"]).await;
    let (lender, _worker, asker) = two(&backend).await;
    offers(&asker, "m").await;
    let peer = has_peer(&asker, "a peer", |peer| peer["status"] == "ok").await;
    assert_eq!((&peer["name"], &peer["sealed"]), (&json!("lender"), &json!(true)), "{peer}");
    assert_eq!(peer["id"], identity(&lender).await["id"]);
    assert_eq!(asker.health().await["peers"], 1);
    let table = mesh(&asker, &["peers"]).await;
    assert!(table.out.contains("lender") && table.out.contains("lan 127.0.0.1:"), "{table:?}");
    let models = mesh(&asker, &["models", "--json"]).await.json();
    assert_eq!(models["models"][0]["served_by"], json!([peer["id"]]), "{models}");
    for more in [&[][..], &["--model", "m"]] {
        let asked = mesh(&asker, &[&["ask", "hi"], more].concat()).await;
        assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hello\n"), "{asked:?}");
    }
    let metrics = asker.metrics().await;
    assert!(metrics.contains("warren_mesh_peers{kind=\"lan\"} 1\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    let key = format!("peer:{}", identity(&asker).await["id"].as_str().unwrap());
    testkit::eventually("a row of usage", testkit::DEADLINE, async || {
        lender.admin().get("/admin/usage?by=key").await.text().contains(&key)
    })
    .await;
}

#[tokio::test]
async fn a_mistyped_passcode_is_seen_at_both_ends() {
    let settings = |name, passcode| node(name).set("--mesh-passcode", passcode);
    let one = settings("one", "a long passcode").start().await;
    let address = lan_address(&one).await;
    let other = settings("other", "a log passcode").set("--mesh-peer", &address).start().await;
    for (server, place) in [(&other, &*address), (&one, "127.0.0.1")] {
        testkit::eventually("the reason", testkit::DEADLINE, async || {
            let told = mesh(server, &["peers"]).await.out;
            told.contains(&format!("No link to {place}: ")) && told.contains("another passcode")
        })
        .await;
    }
    let told = mesh(&other, &["peers", "--json"]).await.json();
    assert_eq!((&told["peers"], &told["unlinked"][0]["place"]), (&json!([]), &json!(address)));
}

#[tokio::test]
async fn a_question_without_a_model_goes_to_one_for_chat() {
    let backend = saying(&["Hel", "lo"]).await;
    backend.set_models(&["nomic-embed-text", "qwen3:8b"]);
    let lender = node("lender").set("--mesh-share", "peers").set("--mesh-passcode", "ours");
    let lender = lender.start().await;
    let _worker = WorkerProcess::start(binary(), &lender.url(), &backend.url(), "lender", &[]);
    let address = lan_address(&lender).await;
    let asker = node("asker").set("--mesh-peer", &address).set("--mesh-passcode", "ours");
    let asker = asker.start().await;
    offers(&asker, "qwen3:8b").await;
    let asked = mesh(&asker, &["ask", "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hello\n"), "{asked:?}");
    assert_eq!(backend.request().await.json()["model"], "qwen3:8b");
}

#[tokio::test]
async fn a_server_that_stops_says_goodbye_to_its_peers() {
    let backend = saying(&["a"]).await;
    let (mut lender, _worker, asker) = two(&backend).await;
    offers(&asker, "m").await;
    lender.sigterm();
    assert_eq!(lender.exit().await, Some(0), "{}", lender.log());
    testkit::eventually("no link", testkit::DEADLINE, async || asker.health().await["peers"] == 0)
        .await;
}

#[tokio::test]
async fn a_model_is_fetched_and_what_is_not_there_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.to_le_bytes()[..1].to_vec()).collect();
    std::fs::create_dir_all(folder.path().join("org/tiny")).unwrap();
    std::fs::write(folder.path().join("org/tiny/weights.gguf"), &content).unwrap();
    let models = folder.path().display().to_string();
    let holder = node("holder").set("--mesh-share", "peers").set("--mesh-models", &models);
    let holder = holder.start().await;
    let address = lan_address(&holder).await;
    let taker = node("taker").set("--mesh-peer", &address).start().await;
    has_peer(&taker, "a peer", |peer| peer["link"] == "lan").await;
    let listed = mesh(&taker, &["models"]).await;
    assert!(listed.out.contains("org/tiny"), "{listed:?}");
    let pulled = mesh(&taker, &["pull", "org/tiny", "--from", "holder"]).await;
    assert_eq!(pulled.code, Some(0), "{pulled:?}");
    assert!(pulled.err.contains("done") && pulled.out.contains("models/org/tiny"), "{pulled:?}");
    let arrived = taker.data_dir().join("models/org/tiny/weights.gguf");
    assert!(std::fs::read(arrived).unwrap() == content, "bit by bit the same");
    let transfers = mesh(&taker, &["transfers", "--json"]).await.json();
    assert_eq!(transfers["transfers"][0]["state"], "done", "{transfers}");
    let cases: [&[&str]; 3] = [
        &["pull", "org/tiny", "--from", "nobody"],
        &["pull", "org/tiny", "--cancel"],
        &["transfers", "--cancel", "nothing"],
    ];
    for case in cases {
        let refused = mesh(&taker, case).await;
        assert_eq!(refused.code, Some(4), "{case:?}: {refused:?}");
    }
    assert_eq!(mesh(&taker, &["pull", "../escape"]).await.code, Some(2));
}

#[tokio::test]
async fn a_machine_knows_who_it_is_with_a_server_and_without() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join("new").display().to_string();
    let alone = ["mesh", "id", "--json", "--data-dir", &directory];
    let made = warren(&alone).await.json();
    let id = made["id"].as_str().unwrap();
    assert_eq!((id.len(), made["fingerprint"].as_str().unwrap().len()), (64, 24));
    assert_eq!(warren(&alone).await.json()["id"], id, "made once");
    let shown = warren(&["mesh", "id", "--qr", "--data-dir", &directory]).await;
    assert!(shown.out.contains(id) && shown.out.contains('█'), "{shown:?}");
    let daemon = node("here").start().await;
    let told = mesh(&daemon, &["id", "--json"]).await.json();
    assert_eq!(told["name"], "here");
    assert!(told["listen"].as_str().unwrap().starts_with("127.0.0.1:"), "{told}");
}

#[tokio::test]
async fn a_server_without_a_part_in_the_mesh_says_so() {
    let daemon = serve().start().await;
    for path in ["id", "peers", "models", "transfers"] {
        let path = format!("/admin/mesh/{path}");
        let refused = daemon.admin().get(&path).await;
        assert_eq!(refused.status, 409, "{}", refused.text());
        assert!(refused.text().contains("--mesh-listen"), "{}", refused.text());
        assert_eq!(daemon.client().get(&path).await.status, 401);
    }
    let stranger = daemon.client().post_json("/admin/mesh/pull", &json!({"model": "m"})).await;
    assert_eq!(stranger.status, 401);
    assert_eq!(mesh(&daemon, &["peers"]).await.code, Some(1));
}

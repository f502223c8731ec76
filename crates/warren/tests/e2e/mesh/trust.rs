//! The peers that a server links to, and the reasons that other peers get.

use std::path::Path;

use serde_json::json;
use testkit::{DEADLINE, Serve, eventually};

use super::kit::{LinkKind, Machine, Pair, always, both_ways, listening, saying, whole, with_file};
use crate::{cli::warren, common::serve};

both_ways!(a_peer_with_the_passcode_is_answered, a_trusted_peer_need_not_know_the_passcode);

fn knowing(passcode: &str) -> Serve {
    serve().set("--mesh-passcode", passcode)
}

async fn answers(pair: &Pair, way: LinkKind) {
    always(&pair.lender.mock, "yes");
    assert_eq!(whole(&pair.asker.ask(&saying("hi", false)).await), "yes");
    let peer = pair.asker.is_linked(&pair.lender.id).await;
    assert_eq!((peer["link"].as_str(), &peer["sealed"]), (Some(way.link()), &json!(true)));
}

async fn a_peer_with_the_passcode_is_answered(way: LinkKind) {
    let lender = knowing("open sesame").set("--mesh-share", "peers");
    let pair = Pair::of(way, lender, knowing("open sesame"), 1).await;
    answers(&pair, way).await;
}

async fn a_trusted_peer_need_not_know_the_passcode(way: LinkKind) {
    let asker = serve();
    let id = id_in(asker.data_dir()).await;
    let toml = format!("[mesh]\ntrusted = ['{id}']\nshare = 'peers'\n");
    let lender = with_file(knowing("open sesame"), &toml);
    let pair = Pair::of(way, lender, asker, 1).await;
    assert_eq!(pair.asker.id, id);
    answers(&pair, way).await;
}

/// The id of the node in a data directory, before its server has ever run.
async fn id_in(directory: &Path) -> String {
    let directory = directory.display().to_string();
    let told = warren(&["mesh", "id", "--json", "--data-dir", &directory]).await.json();
    told["id"].as_str().expect("an id").to_owned()
}

const ONE_HAS_NONE: &str = "one of the two nodes has a passcode (--mesh-passcode)";

#[tokio::test]
async fn a_wrong_or_missing_passcode_gives_no_link_and_both_ends_say_why() {
    let lender = Machine::start(knowing("open sesame").set("--mesh-listen", "127.0.0.1:0")).await;
    let lan = lender.lan().await;
    for (asker, here, there) in [
        (
            knowing("open barley"),
            "the other node has another passcode",
            "the other node has another",
        ),
        (serve(), ONE_HAS_NONE, ONE_HAS_NONE),
    ] {
        let asker = Machine::start(asker.set("--mesh-peer", &lan)).await;
        asker.daemon.line_with(here).await;
        lender.daemon.line_with(there).await;
        assert!(asker.peer(&lender.id).await.is_none_or(|peer| peer["link"] == "none"));
    }
    assert!(lender.peers().await.iter().all(|peer| peer["link"] == "none"));
}

#[tokio::test]
async fn two_nodes_with_one_key_are_told_so() {
    let first = Machine::start(listening()).await;
    let settings = serve().set("--mesh-peer", &first.lan().await);
    let key = first.daemon.data_dir().join("mesh.key");
    std::fs::copy(key, settings.data_dir().join("mesh.key")).expect("a copy of the key");
    let second = Machine::start(settings).await;
    assert_eq!(first.id, second.id);
    let told = async || first.problems().await.contains("two machines cannot be one node");
    eventually("a problem that is told", DEADLINE, told).await;
    let listed = first.cli(&["id"]).await;
    assert!(listed.out.contains("PROBLEM"), "{listed:?}");
}

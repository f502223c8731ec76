//! The peers that a server links to, and the reasons that other peers get.

use std::path::Path;

use serde_json::{Value, json};
use testkit::{
    DEADLINE, Serve, eventually,
    mesh::{FakeMac, LanPeer, MacSettings, passcode_hash},
};

use super::kit::{
    LinkKind, Machine, Pair, always, both_ways, listening, saying, serves, whole, with_file,
};
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
async fn a_wrong_passcode_at_a_relay_is_an_error_that_says_so() {
    let asker = knowing("open barley");
    let lender = knowing("open sesame").set("--mesh-share", "anyone");
    let pair = Pair::of(LinkKind::Relay, lender, asker, 1).await;
    let refused = pair.asker.ask(&saying("hi", false)).await;
    assert!([502, 503].contains(&refused.status), "{}", refused.text());
    assert!(refused.text().contains("passcode"), "{}", refused.text());
    assert_eq!(pair.lender.mock.counts().started, 0);
}

#[tokio::test]
async fn stock_peers_send_the_hash_of_the_passcode_or_are_told_and_left() {
    let lender = Machine::lending(knowing("hunter2").set("--mesh-listen", "127.0.0.1:0"), 1).await;
    let address = lender.lan_address().await;
    let hash = passcode_hash("hunter2");
    for (sent, reason) in [
        (None, Some(ONE_HAS_NONE)),
        (Some(passcode_hash("hunter3")), Some("passcode is another one")),
        (Some(hash.clone()), None),
    ] {
        let mut peer = LanPeer::dial(address).await;
        peer.hello(&["m"], sent.as_deref()).await;
        match reason {
            None => assert_eq!(peer.expect("helloAck").await["clusterPasscodeHash"], json!(hash)),
            Some(reason) => refused(&mut peer, reason).await,
        }
    }
}

#[tokio::test]
async fn the_hash_of_the_passcode_goes_to_a_mac_only_where_that_is_wanted() {
    let passcode = Some("hunter2".to_owned());
    let mac = FakeMac::start(MacSettings { passcode, ..MacSettings::default() }).await;
    let settings = || knowing("hunter2").set("--mesh-peer", &mac.address().to_string());
    let careful = Machine::start(settings()).await;
    careful.daemon.line_with("it closed the connection on our hello").await;
    assert!(careful.peers().await.is_empty());
    let open = Machine::start(settings().flag("--mesh-plain-passcode")).await;
    let link = mac.link().await;
    assert_eq!(link.hello["clusterPasscodeHash"], json!(passcode_hash("hunter2")));
    let linked = async || open.peers().await.iter().any(|peer| peer["status"] == "ok");
    eventually("a link to the Mac", DEADLINE, linked).await;
}

/// Waits for the end of a link, before which this was said.
async fn refused(peer: &mut LanPeer, reason: &str) {
    let said = Value::from(peer.closed().await).to_string();
    assert!(said.contains(reason), "{said}");
    assert!(!said.contains("helloAck"), "{said}");
}

#[tokio::test]
async fn only_sealed_links_are_taken_where_that_is_wanted() {
    let settings = listening().flag("--require-sealed");
    let lender = Machine::lending(settings, 1).await;
    let mut stock = LanPeer::dial(lender.lan_address().await).await;
    stock.hello(&["m"], None).await;
    refused(&mut stock, "--require-sealed").await;
    lender.daemon.line_with("no link to a peer").await;
    let settings = serve().flag("--require-sealed").set("--mesh-peer", &lender.lan().await);
    let asker = Machine::start(settings).await;
    assert_eq!(asker.is_linked(&lender.id).await["sealed"], true);
}

#[tokio::test]
async fn two_nodes_with_one_key_are_told_so() {
    for way in [LinkKind::Lan, LinkKind::Relay] {
        let relay = super::kit::RelayProcess::start(&[]).await;
        let first = match way {
            LinkKind::Lan => Machine::start(listening()).await,
            LinkKind::Relay => Machine::start(serve().set("--mesh-relay", &relay.url())).await,
        };
        let settings = match way {
            LinkKind::Lan => serve().set("--mesh-peer", &first.lan().await),
            LinkKind::Relay => serve().set("--mesh-relay", &relay.url()),
        };
        if way == LinkKind::Relay {
            first.is_registered().await;
        }
        let key = first.daemon.data_dir().join("mesh.key");
        std::fs::copy(key, settings.data_dir().join("mesh.key")).expect("a copy of the key");
        let second = Machine::start(settings).await;
        assert_eq!(first.id, second.id);
        let told = async || {
            first.problems().await.contains("same key")
                || first.problems().await.contains("this node's key")
        };
        eventually("a problem that is told", DEADLINE, told).await;
        assert!(first.problems().await.contains("two machines cannot be one node"));
        let listed = first.cli(&["id"]).await;
        assert!(listed.out.contains("PROBLEM"), "{listed:?}");
    }
}

#[tokio::test]
async fn a_stock_peer_s_clock_does_not_matter() {
    let lender = Machine::lending(listening(), 1).await;
    always(&lender.mock, "yes");
    let (mut stock, _) = LanPeer::greeted(lender.lan_address().await, &["theirs"]).await;
    let id = format!("device-{}", stock.device.to_lowercase());
    for days in [-1.0, 0.0, 1.0, -9_000.0, 1e300] {
        let timestamp = testkit::mesh::apple_now() + days * 86_400.0;
        stock.say(&json!({"heartbeat": {"_0": {
            "deviceID": stock.device, "timestamp": timestamp, "thermalLevel": "nominal",
            "throttleLevel": 100, "loadedModels": ["theirs"], "isGenerating": false, "queueDepth": 0,
        }}})).await;
        let ack = stock.expect("heartbeatAck").await;
        assert!((ack["timestamp"].as_f64().unwrap() - testkit::mesh::apple_now()).abs() < 60.0);
    }
    let known = lender.peer(&id).await.expect("it is known");
    assert_eq!((&known["status"], serves(&known)), (&json!("ok"), false));
}

//! Relays: in a server at `/ws?node=`, and alone.

use serde_json::json;
use testkit::{ChildProcess, Client, Way};

use super::{
    kit::RelayProcess,
    servers::{has_peer, identity, mesh},
};
use crate::{
    common::{binary, lend, serve},
    room_people::saying,
};

#[tokio::test]
async fn peers_that_meet_at_a_servers_relay_ask_each_other() {
    let meeting = serve().start().await;
    let relay = meeting.url();
    // It is let to the relay only when it has a model to tell of there.
    let wire = Way::new().await;
    let through = format!("http://{}", wire.address());
    let lender = serve().set("--mesh-relay", &through).set("--mesh-share", "peers");
    let lender = lender.set("--mesh-passcode", "ours").start().await;
    let backend = saying(&["Hi"]).await;
    let _worker = lend(&lender, &backend, 1).await;
    wire.lead_to(meeting.address());
    testkit::eventually("a registration", testkit::DEADLINE, async || {
        identity(&lender).await["relays"][0]["connected"] == true
    })
    .await;
    let asker = serve().set("--mesh-relay", &relay).set("--mesh-passcode", "ours").start().await;
    let lists = |peer: &serde_json::Value| peer["models"] == json!(["m"]);
    has_peer(&asker, "a peer with its model", lists).await;
    let asked = mesh(&asker, &["ask", "--model", "m", "hi"]).await;
    assert_eq!((asked.code, asked.out.as_str()), (Some(0), "Hi\n"), "{asked:?}");
    let peer = has_peer(&asker, "a session", |peer| peer["link"] == "relay").await;
    assert_eq!(peer["sealed"], true, "{peer}");
    let told = identity(&asker).await;
    let at = &told["relays"][0];
    assert_eq!((&at["connected"], &at["challenged"]), (&json!(true), &json!(true)), "{told}");
    assert_eq!(meeting.client().get("/peers").await.json()["count"], 2);
    let metrics = meeting.metrics().await;
    assert!(metrics.contains("warren_mesh_relay_nodes 2\n"), "{metrics}");
}

#[tokio::test]
async fn a_server_that_is_no_relay_says_so() {
    let daemon = serve().set("--mesh-relay-serve", "off").start().await;
    let refused =
        daemon.client().request("GET", "/ws?node=x").header("upgrade", "websocket").send().await;
    assert_eq!(refused.status, 501, "{}", refused.text());
    assert!(refused.text().contains("--mesh-relay-serve"), "{}", refused.text());
    assert_eq!(daemon.client().get("/peers").await.status, 404);
}

/// The status that a page of this origin gets when it calls the relay by this host name.
async fn knock(client: &Client, host: &str, origin: Option<&str>) -> u16 {
    let request = upgrade(client, host);
    let request = match origin {
        Some(origin) => request.header("origin", origin),
        None => request,
    };
    request.open().await.answer().await.status
}

/// A node's request for an upgrade.
fn upgrade(client: &Client, host: &str) -> testkit::Request {
    client
        .request("GET", "/ws?node=x")
        .header("host", host)
        .header("upgrade", "websocket")
        .header("connection", "upgrade")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
}

#[tokio::test]
async fn a_server_on_loopback_relays_for_its_own_machine_only() {
    let daemon = serve().start().await;
    let (client, own) = (daemon.client(), daemon.address().to_string());
    assert_eq!(knock(&client, &own, None).await, 101);
    assert_eq!(knock(&client, "relay.example", None).await, 403);
    for trace in ["x-forwarded-for", "x-forwarded-proto", "forwarded", "via"] {
        let node = upgrade(&client, &own).header(trace, "203.0.113.7");
        assert_eq!(node.open().await.answer().await.status, 403, "{trace}");
    }
    let list =
        client.request("GET", "/peers").header("x-forwarded-for", "203.0.113.7").send().await;
    assert_eq!(list.status, 403);
    assert!(list.text().contains("--mesh-relay-serve open"), "{}", list.text());
}

#[tokio::test]
async fn an_open_relay_serves_nodes_that_come_through_a_proxy() {
    let daemon = serve().set("--mesh-relay-serve", "open").start().await;
    let node = upgrade(&daemon.client(), "relay.example").header("x-forwarded-for", "203.0.113.7");
    assert_eq!(node.open().await.answer().await.status, 101);
}

#[tokio::test]
async fn a_page_of_another_origin_learns_nothing_of_who_is_at_the_relay() {
    let daemon = serve().set("--mesh-relay-serve", "open").start().await;
    let alone = RelayProcess::start(&[]).await;
    for address in [daemon.address(), alone.address] {
        let (client, own) = (Client::new(address), address.to_string());
        let page = format!("http://{own}");
        assert_eq!(knock(&client, &own, Some("https://evil.example")).await, 403);
        // The page's own host name, which its author pointed at this machine.
        assert_eq!(knock(&client, "evil.example", Some("http://evil.example")).await, 403);
        assert_eq!(knock(&client, &own, Some(&page)).await, 101);
        // Programs are not pages, whatever name they dial.
        assert_eq!(knock(&client, "relay.example", None).await, 101);
    }
}

#[tokio::test]
async fn a_relay_runs_alone_and_tells_how_it_is() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().display().to_string();
    let args = ["mesh", "relay", "--listen", "127.0.0.1:0", "--data-dir", &directory];
    let mut relay = ChildProcess::start("relay", binary(), &args);
    let address = relay.listening("ws").await;
    let (url, client) = (format!("ws://{address}"), Client::new(address));
    let node = serve().set("--mesh-relay", &url).start().await;
    testkit::eventually("a node at the relay", testkit::DEADLINE, async || {
        client.get("/peers").await.json()["count"] == 1
    })
    .await;
    assert_eq!(client.get("/health").await.json()["peers"], 1);
    let metrics = client.get("/metrics").await.text();
    assert!(metrics.contains("warren_mesh_relay_nodes 1\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"), "{metrics}");
    relay.sigterm();
    assert_eq!(relay.exit().await, Some(0), "{}", relay.log());
    drop(node);
}

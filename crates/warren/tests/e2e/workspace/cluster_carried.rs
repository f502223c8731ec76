//! Members that see each other only through another one, or through the mesh.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::{Serve, eventually};

use super::{
    cluster_kit::{member, others, peer_address},
    kit::{Viewer, WorkspaceHost, id_of},
};
use crate::common::serve;

/// A link is carried once no direct one has been there for 10 s.
const CARRIED: Duration = Duration::from_secs(60);

/// Waits until `at` shows another member like this.
async fn shows(at: &WorkspaceHost, name: &str, what: &str, wished: impl Fn(&Value) -> bool) {
    let is_it = async || others(at).await.iter().any(|it| it["name"] == name && wished(it));
    eventually(what, CARRIED, is_it).await;
}

/// Waits until `at` is linked to another member through a third.
async fn is_carried(at: &WorkspaceHost, name: &str, through: &str) {
    let is_it = |other: &Value| other["connected"] == true && other["through"] == through;
    shows(at, name, "a carried link", is_it).await;
}

/// A member that dials only these.
async fn line(name: &str, peers: &[&WorkspaceHost]) -> WorkspaceHost {
    dialling(member(name, "secret"), peers).await
}

async fn dialling(member: Serve, peers: &[&WorkspaceHost]) -> WorkspaceHost {
    let mut addresses = Vec::new();
    for peer in peers {
        addresses.push(peer_address(peer).await);
    }
    let member = member.flag("--no-peer-discovery");
    WorkspaceHost::of(addresses.iter().fold(member, |it, to| it.set("--peer", to))).await
}

/// A client of the one member that looks at a new terminal of the other.
async fn terminal(left: &WorkspaceHost, right: &WorkspaceHost) -> Viewer {
    let mut client = left.client().await;
    let open = json!({
        "type": "open_terminal", "working_dir": right.dir(), "command": "sh",
        "args": ["-c", "stty -echo; echo ready; cat"], "node_id": "right",
    });
    let id = id_of(&client.ask(open, "terminal_opened").await["session"]);
    let mut viewer = Viewer::of(client, &id).await;
    viewer.shows("ready").await;
    viewer
}

#[tokio::test]
async fn a_terminal_is_used_over_a_member_in_between_and_over_another_when_that_is_killed() {
    let mut hub = line("hub", &[]).await;
    let (left, right) = (line("left", &[&hub]).await, line("right", &[&hub]).await);
    is_carried(&left, "right", "hub").await;
    is_carried(&right, "left", "hub").await;
    let list = left.cli(&["cluster", "list"], &[]).await;
    assert!(list.out.contains("reachable through hub"), "{list:?}");

    let mut viewer = terminal(&left, &right).await;
    viewer.type_until_applied("over two links\n").await;
    viewer.shows("over two links").await;

    hub.daemon.kill9().await;
    shows(&left, "right", "a lost member", |it| it["connected"] == false).await;
    let _spare = line("spare", &[&left, &right]).await;
    is_carried(&left, "right", "spare").await;
    viewer.type_until_applied("and again\n").await;
    viewer.shows("and again").await;
}

#[tokio::test]
async fn members_that_no_other_one_links_use_each_other_over_a_mesh_relay() {
    let relay = serve().start().await;
    let in_mesh = |name| member(name, "secret").set("--mesh-relay", &relay.url());
    // Members must have heard of each other once.
    let hub = line("hub", &[]).await;
    let left = dialling(in_mesh("left"), &[&hub]).await;
    let right = dialling(in_mesh("right"), &[&hub]).await;
    is_carried(&left, "right", "hub").await;
    let mut viewer = terminal(&left, &right).await;
    drop(hub);
    is_carried(&left, "right", "the mesh").await;
    is_carried(&right, "left", "the mesh").await;
    viewer.type_until_applied("over the relay\n").await;
    viewer.shows("over the relay").await;
    let list = left.cli(&["cluster", "list"], &[]).await;
    assert!(list.out.contains("reachable through the mesh"), "{list:?}");
    drop(relay);
    shows(&left, "right", "a lost member", |it| it["connected"] == false).await;
}

//! Members of a cluster, and what they know of each other.

use std::{net::SocketAddr, path::Path};

use serde_json::{Value, json};
use testkit::{DEADLINE, Serve, eventually};

use super::kit::{WorkspaceHost, serving};

/// A member to be started, which dials no other one.
pub(super) fn member(name: &str, token: &str) -> Serve {
    as_member(serving(), name, token)
}

/// A server of a workspace as a member, which dials no other one.
pub(super) fn as_member(serve: Serve, name: &str, token: &str) -> Serve {
    let serve = serve.set("--cluster-token", token).set("--node-name", name);
    serve.set("--peer-listen", "127.0.0.1:0")
}

/// The address for other members.
pub(super) async fn peer_address(host: &WorkspaceHost) -> String {
    let config = json!({"type": "get_cluster_config"});
    let config = host.client().await.ask(config, "cluster_config").await;
    let port = config["peer_port"].as_u64().expect("a port");
    SocketAddr::new([127, 0, 0, 1].into(), port.try_into().expect("a port")).to_string()
}

/// A member's report of its cluster.
pub(super) async fn cluster(host: &WorkspaceHost) -> Value {
    let status = json!({"type": "cluster_status"});
    host.client().await.ask(status, "cluster_status").await["cluster"].take()
}

/// The other members that a member knows.
pub(super) async fn others(host: &WorkspaceHost) -> Vec<Value> {
    cluster(host).await["peers"].as_array().expect("a list").clone()
}

/// Waits until a member knows this many others, and is linked to all of them.
pub(super) async fn linked(host: &WorkspaceHost, count: usize) {
    let are = async || {
        let others = others(host).await;
        others.len() == count && others.iter().all(|other| other["connected"] == true)
    };
    eventually(&format!("links to {count} members"), DEADLINE, are).await;
}

/// Waits until a member has a notice with these words.
pub(super) async fn has_notice(host: &WorkspaceHost, words: &str) {
    let has = async || {
        let notices = cluster(host).await["notices"].as_array().cloned().unwrap_or_default();
        notices.iter().filter_map(Value::as_str).any(|notice| notice.contains(words))
    };
    eventually(&format!("a notice of {words:?}"), DEADLINE, has).await;
}

pub(super) fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("it can be made");
    for entry in from.read_dir().expect("a directory").flatten() {
        let copy = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_all(&entry.path(), &copy),
            false => drop(std::fs::copy(entry.path(), copy).expect("it can be copied")),
        }
    }
}

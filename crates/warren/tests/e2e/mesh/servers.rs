//! Servers that are peers, and `warren mesh` for one of them.

use serde_json::Value;
use testkit::{DEADLINE, Daemon, Serve, eventually};

use crate::{
    cli::{Ran, warren},
    common::serve,
};

/// A server that takes part in the mesh on loopback, at a port of its own.
pub(crate) fn node(name: &str) -> Serve {
    serve().set("--mesh-listen", "127.0.0.1:0").set("--mesh-name", name)
}

/// A server's identity in the mesh.
pub(crate) async fn identity(daemon: &Daemon) -> Value {
    daemon.admin().get("/admin/mesh/id").await.json()
}

/// Where a server's LAN listener is.
pub(crate) async fn lan_address(daemon: &Daemon) -> String {
    let listens = async || identity(daemon).await["listen"].is_string();
    eventually("the listener of peers", DEADLINE, listens).await;
    identity(daemon).await["listen"].as_str().expect("an address").to_owned()
}

/// A server's peers.
pub(crate) async fn peers(daemon: &Daemon) -> Vec<Value> {
    let answer = daemon.admin().get("/admin/mesh/peers").await.json();
    answer["peers"].as_array().cloned().unwrap_or_default()
}

/// Waits until a server has one peer that is as `is` wants it, and no other.
pub(crate) async fn has_peer(daemon: &Daemon, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    let found = async || matches!(&peers(daemon).await[..], [peer] if is(peer));
    eventually(what, DEADLINE, found).await;
    peers(daemon).await.remove(0)
}

/// Waits until a server offers a model to clients.
pub(crate) async fn offers(daemon: &Daemon, model: &str) {
    let offered = async || {
        let list = daemon.client().get("/v1/models").await.json();
        list["data"].as_array().is_some_and(|models| models.iter().any(|one| one["id"] == model))
    };
    eventually("the model being offered", DEADLINE, offered).await;
}

/// Runs `warren mesh` for a server.
pub(crate) async fn mesh(daemon: &Daemon, args: &[&str]) -> Ran {
    let (url, directory) = (daemon.url(), daemon.data_dir().display().to_string());
    let all = [&["mesh"], args, &["--server", &url, "--data-dir", &directory]].concat();
    warren(&all).await
}

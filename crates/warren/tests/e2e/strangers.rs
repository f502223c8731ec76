//! Names and words of strangers on a terminal: nothing in them controls it, and programs that read JSON
//! get them unchanged.

use serde_json::json;
use testkit::{Client, Connect, DEADLINE, FakeHub, Reply, eventually};

use crate::{
    cli::{Ran, warren},
    common::serve,
    mesh::servers::{has_peer, lan_address, mesh, node, offers},
    room_people::{Person, saying},
};

/// ESC and what follows it, C1, an override, an isolate, a mark, an invisible character.
const STEERING: &str = "\u{1b}[2J\u{9b}\u{202e}\u{2066}\u{200f}\u{200b}";

/// The same without control characters, which most servers refuse in names.
const TURNING: &str = "\u{202e}\u{2066}\u{200f}\u{200b}";

/// Nothing in the output controls a terminal, and the visible part of the name is there.
#[track_caller]
fn is_harmless(ran: &Ran, shown: &str) {
    let printed = format!("{}{}", ran.out, ran.err);
    let steers = |c: char| {
        (c.is_control() && c != '\n')
            || format!("{STEERING}\u{2028}").contains(c) && !"[2J".contains(c)
    };
    assert!(!printed.contains(steers), "{ran:?}");
    assert!(printed.contains(shown), "{ran:?}");
}

#[tokio::test]
async fn a_workers_names_do_nothing_to_the_terminal_of_status() {
    let serve = serve();
    let dir = serve.data_dir().display().to_string();
    let daemon = serve.start().await;
    let (name, model) = (format!("gpu{STEERING}x"), format!("llama{STEERING}x"));
    let _worker = Connect::to(&daemon).join(&name, &[&model], 1).await;
    let url = daemon.url();
    let to = ["status", "--server", &url, "--data-dir", &dir];
    let told = warren(&to).await;
    is_harmless(&told, "gpu\u{fffd}[2J\u{fffd}");
    is_harmless(&told, "llama\u{fffd}[2J\u{fffd}");
    let json = warren(&[&to[..], &["--json"]].concat()).await;
    is_harmless(&json, "\\u202e");
    assert_eq!(json.json()["health"]["workers"][0]["worker_name"], name);
    assert_eq!(json.json()["health"]["workers"][0]["models"], json!([model]));
    let logged = async || daemon.log().contains("worker connected");
    eventually("the log", DEADLINE, logged).await;
    let log = Ran { code: None, out: daemon.log(), err: String::new() };
    is_harmless(&log, "\\u{202e}");
}

#[tokio::test]
async fn participants_of_a_stock_hub_do_nothing_to_the_terminal() {
    let hub = FakeHub::start("ABC123").await;
    let person = Person::of(&hub.url());
    let (nickname, model) = (format!("Ann{STEERING}x"), format!("llama{STEERING}x"));
    let joining = json!({"nickname": nickname, "model": model, "endpoint": "http://127.0.0.1:1"});
    let client = Client::new(hub.address());
    let put = client.request("PUT", "/v1/rooms/ABC123/participants/p1").body(joining.to_string());
    let put = put.send().await;
    assert_eq!(put.status, 201, "{}", put.text());
    let named = json!({"name": format!("Friends{STEERING}")});
    assert_eq!(client.post_json("/v1/rooms", &named).await.status, 201);
    let shown = person.room(&["show", "ABC123"]).await;
    is_harmless(&shown, "Ann\u{fffd}[2J");
    is_harmless(&shown, "llama\u{fffd}[2J");
    is_harmless(&person.room(&["list"]).await, "Friends\u{fffd}[2J");
    let listed = person.room(&["list", "--json"]).await;
    is_harmless(&listed, "Friends\\u001b[2J\\u009b\\u202e\\u2066");
}

#[tokio::test]
async fn text_of_a_backend_cannot_control_the_terminal() {
    let daemon = serve().start().await;
    let person = Person::of(&daemon.url());
    let code = person.creates(&["--name", "x"]).await;
    let backend = saying(&["a"]).await;
    let _join = person.joins(&code, &backend, &["--id", "p1"]).await;
    for way in ["--private", "--model=p1"] {
        let words = json!({"error": {"message": format!("boom{STEERING}x")}});
        backend.then(Reply::json(500, &words));
        let failed = person.room(&["ask", &code, way, "hi"]).await;
        assert_eq!(failed.code, Some(1), "{failed:?}");
        is_harmless(&failed, "boom\u{fffd}[2J");
    }
}

#[tokio::test]
async fn a_peers_names_do_nothing_to_the_terminal_of_mesh() {
    let lender = node(&format!("box{TURNING}x")).set("--mesh-share", "peers");
    let lender = lender.set("--mesh-passcode", "ours").start().await;
    let model = format!("llama{TURNING}x");
    let _worker = Connect::to(&lender).join("w", &[&model], 1).await;
    let address = lan_address(&lender).await;
    let asker = node("asker").set("--mesh-peer", &address).set("--mesh-passcode", "ours");
    let asker = asker.start().await;
    offers(&asker, &model).await;
    let peer = has_peer(&asker, "a peer", |peer| peer["status"] == "ok").await;
    assert_eq!(peer["name"], "boxx");
    is_harmless(&mesh(&asker, &["peers"]).await, "boxx");
    is_harmless(&mesh(&asker, &["models"]).await, "llama\u{fffd}\u{fffd}");
    let models = mesh(&asker, &["models", "--json"]).await;
    is_harmless(&models, "llama\\u202e\\u2066");
    let unknown = mesh(&asker, &["ask", "--model", &format!("none{TURNING}"), "hi"]).await;
    assert_ne!(unknown.code, Some(0), "{unknown:?}");
    is_harmless(&unknown, "");
}

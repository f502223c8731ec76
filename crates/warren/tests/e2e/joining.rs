//! Joining in one line: `warren invite` on one machine, `warren join` on the other.

use std::{net::SocketAddr, path::Path};

use discovery::{Advertiser, rooms};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::{ChildProcess, Client, DEADLINE, RawServer, eventually, within};

use crate::{
    cli::warren,
    common::{CHAT, binary, serve},
    transport::{Certificate, over_h2, trusting},
};

/// A machine with a home of its own.
struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// `warren` on this machine.
    fn runs(&self, args: &[&str]) -> ChildProcess {
        ChildProcess::start_at(self.0.path(), "machine", binary(), args)
    }

    /// Joins by a code, and lends the demo.
    fn joins(&self, code: &str) -> ChildProcess {
        self.runs(&["join", code, "--demo", "--demo-pace", "0", "--name", "laptop"])
    }

    /// The output of a command that succeeds.
    async fn said(&self, args: &[&str]) -> Value {
        let mut command = self.runs(args);
        assert_eq!(command.exit().await, Some(0), "{}", command.log());
        serde_json::from_str(&command.log()).unwrap_or_else(|_| panic!("{}", command.log()))
    }
}

/// Runs `warren invite` for a server with this data directory.
async fn invite(url: &str, data: &Path, args: &[&str]) -> Value {
    let data = data.display().to_string();
    let to = ["--json", "--server", url, "--data-dir", &data];
    let (verb, rest) =
        args.split_at(args.len().min(args.iter().take_while(|arg| !arg.starts_with('-')).count()));
    warren(&[&["invite"], verb, &to[..], rest].concat()).await.json()
}

fn code(made: &Value) -> &str {
    made["code"].as_str().unwrap_or_else(|| panic!("{made}"))
}

/// A chat with the demo, once it is there.
async fn is_answered(address: SocketAddr) {
    let body = json!({"model": "warren-demo", "messages": [{"role": "user", "content": "hi"}]});
    let answer = Client::new(address).post_json(CHAT, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert!(answer.text().contains("Warren"), "{}", answer.text());
}

#[tokio::test]
async fn a_machine_joins_by_one_code_that_is_good_once_and_goes_on_after_a_restart() {
    let mut daemon = serve().start().await;
    let made = invite(&daemon.url(), daemon.data_dir(), &["--expires", "1h"]).await;
    assert_eq!((&made["state"], &made["urls"]), (&"open".into(), &json!([daemon.url()])));
    // The invitation is the server's, not that of its process.
    daemon.stop_and_restart().await;
    let machine = Machine::new();
    let mut joined = machine.joins(code(&made));
    daemon.has_workers(1).await;
    is_answered(daemon.address()).await;

    let mut late = Machine::new().joins(code(&made));
    late.line_with("was used already").await;
    assert_eq!(late.exit().await, Some(1));
    let keys = daemon.admin().get("/admin/keys").await.json();
    let names: Vec<_> = keys["keys"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert_eq!(names, ["laptop"]);
    let list = invite(&daemon.url(), daemon.data_dir(), &["list"]).await;
    let one = &list["invitations"][0];
    assert_eq!(
        (&one["state"], &one["name"], &one["id"]),
        (&"joined".into(), &"laptop".into(), &made["id"])
    );
    assert!(one["last_seen_at"].is_string() && one["code"].is_null(), "{one}");

    joined.sigterm();
    assert_eq!(joined.exit().await, Some(0), "{}", joined.log());
    daemon.has_workers(0).await;
    let _later = machine.runs(&["worker", "--demo", "--demo-pace", "0"]);
    daemon.has_workers(1).await;
    let secret = joined.log() + &daemon.log();
    assert!(!secret.contains("wk_"), "{secret}");
}

#[tokio::test]
async fn over_tls_the_fingerprint_in_the_code_is_all_that_a_machine_needs() {
    let certificate = Certificate::new();
    let data = TempDir::new().unwrap();
    let (_server, address) = certificate.serve(&data).await;
    let (url, dir) = (format!("https://{address}"), data.path().display().to_string());
    let trusted = certificate.file("cert.pem");
    let asked = ["invite", "--json", "--server", &url, "--data-dir", &dir];
    let mut invited = trusting(&trusted, &asked);
    assert_eq!(invited.exit().await, Some(0), "{}", invited.log());
    let made: Value = serde_json::from_str(&invited.log()).unwrap();
    let joined = Machine::new();
    let lends = joined.joins(code(&made));
    lends.line_with("connected").await;
    assert!(!lends.log().contains("Without TLS"), "{}", lends.log());

    let body = json!({"model": "warren-demo", "messages": [{"role": "user", "content": "hi"}]});
    let stream = certificate.connect(address, b"h2").await;
    let request = Request::post(format!("{url}{CHAT}"))
        .header("content-type", "application/json")
        .body(Full::from(body.to_string()))
        .unwrap();
    assert_eq!(over_h2(stream, request).await.status(), 200);
}

#[tokio::test]
async fn a_revoked_machine_loses_its_link_at_once_and_is_let_in_no_more() {
    let daemon = serve().start().await;
    let made = invite(&daemon.url(), daemon.data_dir(), &["--name", "gpu-box"]).await;
    let machine = Machine::new();
    let joined = machine.joins(code(&made));
    daemon.has_workers(1).await;
    let revoked = invite(&daemon.url(), daemon.data_dir(), &["revoke", "gpu-box"]).await;
    assert_eq!(revoked["state"], "revoked");
    daemon.has_workers(0).await;
    joined.line_with("the key is no longer valid").await;
    let again = machine.runs(&["worker", "--demo"]);
    again.line_with("has taken back its key").await;
    assert!(daemon.workers().await.is_empty());
    let open = invite(&daemon.url(), daemon.data_dir(), &[]).await;
    let id = open["id"].as_str().unwrap();
    invite(&daemon.url(), daemon.data_dir(), &["revoke", id]).await;
    Machine::new().joins(code(&open)).line_with("was revoked").await;
}

/// `warren serve` that lets itself be found, on a port of its own.
async fn findable(data: &TempDir) -> (ChildProcess, SocketAddr) {
    let dir = data.path().display().to_string();
    let args = ["serve", "--listen", "127.0.0.1:0", "--data-dir", &dir, "--mdns"];
    let server = ChildProcess::start_at(data.path(), "server", binary(), &args);
    let address = server.listening("http").await;
    (server, address)
}

#[tokio::test]
async fn a_server_is_found_at_its_new_address_and_an_impostor_is_sent_no_key() {
    let data = TempDir::new().unwrap();
    let (mut server, first) = findable(&data).await;
    let made = invite(&format!("http://{first}"), data.path(), &[]).await;
    let machine = Machine::new();
    let joined = machine.joins(code(&made));
    server.line_with("worker connected").await;
    let remembered = machine.said(&["join", "list", "--json"]).await;
    let id = remembered["servers"][0]["id"].as_str().unwrap().to_owned();
    assert!(remembered["servers"][0]["key"].is_null(), "{remembered}");
    server.sigterm();
    assert_eq!(server.exit().await, Some(0));

    let impostor = RawServer::start().await;
    let claimed = rooms(impostor.port, "0", [127, 0, 0, 1].into(), false, &id);
    let _claims = Advertiser::start(&claimed).unwrap();
    let (mut asking, request) = impostor.request().await;
    assert!(request.line == "POST /v1/join/proof", "{request:?}");
    let seen = format!("{request:?} {}", String::from_utf8_lossy(&request.body));
    assert!(!seen.contains("wk_"), "{seen}");
    asking.json("200 OK", "", &json!({"proof": "00".repeat(32)}).to_string()).await;

    let (server, second) = findable(&data).await;
    assert_ne!(first, second);
    // The machine may ask the impostor again, and only for a proof.
    let refuse = async {
        loop {
            let (mut asking, request) = impostor.request().await;
            assert!(request.line == "POST /v1/join/proof", "{request:?}");
            asking.json("404 Not Found", "", "{}").await;
        }
    };
    tokio::select! {
        _line = server.line_with("worker connected") => {}
        () = refuse => {}
    }
    is_answered(second).await;
    let latest = async || {
        let list = machine.said(&["join", "list", "--json"]).await;
        list["servers"][0]["urls"][0] == format!("http://{second}")
    };
    eventually("the new address being remembered", DEADLINE, latest).await;
    assert!(joined.log().contains("now"), "{}", joined.log());
}

#[tokio::test]
async fn a_guest_joins_a_room_with_its_password_by_one_code() {
    let daemon = serve().start().await;
    let room = json!({"name": "Friends", "password": "pw"});
    let room = daemon.client().post_json("/v1/rooms", &room).await.json();
    let room = room["data"]["room"]["code"].as_str().unwrap_or_else(|| panic!("{room}")).to_owned();
    let made =
        invite(&daemon.url(), daemon.data_dir(), &["--room", &room, "--password", "pw"]).await;
    assert_eq!(made["has_password"], true);
    let guest = Machine::new();
    let joined = guest.joins(code(&made));
    within("the guest", joined.line_with("joined ")).await;
    let wrong = warren(&[
        "invite",
        "--room",
        &room,
        "--password",
        "no",
        "--server",
        &daemon.url(),
        "--data-dir",
        &daemon.data_dir().display().to_string(),
    ])
    .await;
    assert!(wrong.code != Some(0) && wrong.err.contains("password"), "{wrong:?}");
}

#[tokio::test]
async fn what_is_no_code_is_refused_before_anything_is_asked() {
    let machine = Machine::new();
    for (text, words) in [("WARRENABC", "damaged"), ("hello", "begins with WARREN")] {
        let mut refused = machine.runs(&["join", text]);
        refused.line_with(words).await;
        assert_eq!(refused.exit().await, Some(2));
    }
    let mut nothing = machine.runs(&["join"]);
    nothing.line_with("has not joined a server yet").await;
    assert_eq!(nothing.exit().await, Some(1));
    let mut named = machine.runs(&["join", "WARRENABC", "--server", "http://127.0.0.1:1"]);
    named.line_with("leave out --server").await;
    assert_eq!(named.exit().await, Some(2));
}

//! The settings of a running server: over HTTP, and by `warren config`.

use serde_json::{Value, json};
use testkit::{ChildProcess, Client};

use crate::{
    cli::{Ran, warren, warren_at},
    common::{binary, serve},
};

/// The secret that no answer may hold.
const HUSH: &str = "hush-hush-hush";

const FILE: &str = r#"
listen = "127.0.0.1:0"
max-queue-len = 7
busy_timeout_secs = 8
log = "debug"
admin_token = "hush-hush-hush"
worker_secret = "worker-hush-hush-hush"
[mesh]
passcode = "hush-hush-hush"
relay = ["ws://someone:hush-hush-hush@127.0.0.1:1"]
[models.fast]
targets = ["m"]
"#;

/// A server with a file, a variable and a flag, which all set how long jobs may wait and what is logged.
struct Set {
    home: tempfile::TempDir,
    process: ChildProcess,
    url: String,
}

impl Set {
    async fn start() -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("warren.toml");
        std::fs::write(&file, FILE).unwrap();
        let (file, data) = (file.display().to_string(), home.path().join("data"));
        let args = [
            "serve",
            "--config",
            &file,
            "--log",
            "warn",
            "--data-dir",
            &data.display().to_string(),
        ];
        let set = [("WARREN_BUSY_TIMEOUT_SECS", "9"), ("WARREN_LOG", "error")];
        let process = ChildProcess::start_with(home.path(), &set, "serve", binary(), &args);
        let url = format!("http://{}", process.listening("http").await);
        Self { home, process, url }
    }

    async fn ran(&self, args: &[&str]) -> Ran {
        let to = ["config", "--server", &self.url, "--admin-token", HUSH];
        warren_at(self.home.path(), &[&to[..], args].concat()).await
    }
}

#[track_caller]
fn assert_setting(config: &Value, name: &str, value: &Value, source: &str, secret: bool) {
    let settings = config["settings"].as_array().expect("a list");
    let found = settings.iter().find(|setting| setting["name"] == name).expect(name);
    let expected = json!({"name": name, "value": value, "source": source, "secret": secret});
    assert_eq!(found, &expected);
}

#[tokio::test]
async fn flag_environment_and_file_win_in_turn_and_no_secret_is_told() {
    let set = Set::start().await;
    let config = set.ran(&["--json"]).await.json();
    for (name, value, source, secret) in [
        ("max_queue_len", json!(7), "file", false),
        ("busy_timeout_secs", json!(9), "environment", false),
        ("log", json!("warn"), "flag", false),
        ("queue_timeout_secs", json!(30), "default", false),
        ("admin_token", Value::Null, "file", true),
        ("worker_secret", Value::Null, "file", true),
        ("client_token", Value::Null, "default", false),
        ("mesh.passcode", Value::Null, "file", true),
        ("mesh.relay", json!(["ws://…@127.0.0.1:1"]), "file", false),
        ("models.fast.targets", json!(["m"]), "file", false),
        ("mesh.share.with", json!("off"), "default", false),
    ] {
        assert_setting(&config, name, &value, source, secret);
    }
    assert!(config["file"].as_str().unwrap().ends_with("warren.toml"), "{config}");
    let readable = set.ran(&[]).await;
    let changed = set.ran(&["--changed"]).await;
    for told in [&config.to_string(), &readable.out, &changed.out, &set.process.log()] {
        assert!(!told.contains(HUSH), "{told}");
    }
    assert!(readable.out.contains("queue_timeout_secs"), "{readable:?}");
    assert!(!changed.out.contains("queue_timeout_secs"), "{changed:?}");
    assert!(changed.out.contains("max_queue_len"), "{changed:?}");
}

#[tokio::test]
async fn the_settings_are_the_operators() {
    let daemon = serve().start().await;
    assert_eq!(daemon.client().get("/admin/config").await.status, 401);
    let config = daemon.admin().get("/admin/config").await;
    assert_eq!(config.status, 200, "{}", config.text());
    let wrong = warren(&["config", "--server", &daemon.url(), "--admin-token", "wrong"]).await;
    assert_eq!(wrong.code, Some(1), "{wrong:?}");
}

#[tokio::test]
async fn up_tells_the_settings_of_its_worker_too() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().display().to_string();
    let args =
        ["up", "--demo", "--name", "box", "--listen", "127.0.0.1:0", "--data-dir", &directory];
    let process = ChildProcess::start("up", binary(), &args);
    let address = process.listening("http").await;
    let token = std::fs::read_to_string(data.path().join("admin.token")).unwrap();
    let config = Client::new(address).with_token(token.trim()).get("/admin/config").await.json();
    assert_setting(&config, "worker.demo", &json!(true), "flag", false);
    assert_setting(&config, "worker.name", &json!("box"), "flag", false);
    assert_setting(&config, "worker.demo_pace", &json!(30), "default", false);
    assert_setting(&config, "data_dir", &json!(directory), "flag", false);
    assert_setting(&config, "mesh.name", &Value::Null, "default", false);
}

//! The findings of `warren doctor` about NATS.

use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use testkit::nats::NatsServer;

use crate::servers::binary;

/// The state and the words of the finding about NATS.
fn finding(url: &str) -> (String, String) {
    let home = TempDir::new().unwrap();
    let mut command = Command::new(binary());
    command.args(["doctor", "--json"]).current_dir(home.path()).env("HOME", home.path());
    command.env("WARREN_CLUSTER", url).env("WARREN_DATA_DIR", home.path());
    let done = command.output().unwrap();
    let told: Value = serde_json::from_slice(&done.stdout).unwrap();
    let checks = told["checks"].as_array().unwrap();
    let of_nats = checks.iter().find(|check| check["check"] == "nats").unwrap();
    let text = |name: &str| of_nats[name].as_str().unwrap().to_owned();
    (text("state"), text("found"))
}

#[tokio::test]
async fn the_doctor_sees_whether_nats_can_be_used() {
    let (state, found) = finding(&NatsServer::shared().url("any"));
    assert!(state == "ok" && found.contains("with JetStream"), "{found}");
    let plain = NatsServer::start_with(&[]);
    let (state, found) = finding(&plain.url("any"));
    assert!(state == "fault" && found.contains("no JetStream"), "{found}");
    let locked = NatsServer::start_with(&["-js", "--user", "warren", "--pass", "hunter2"]);
    let (state, found) = finding(&locked.url("any"));
    assert!(state == "fault" && found.contains("uthorization"), "{found}");
    let (state, found) = finding(&locked.url("any").replace("//", "//warren:hunter2@"));
    assert!(state == "ok" && !found.contains("hunter2"), "{found}");
    let (state, found) = finding("http://box/any");
    assert!(state == "fault" && found.contains("nats://"), "{found}");
}

//! `warren doctor`: what it finds, and its exit code.

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::Value;
use testkit::{
    MockBackend, MockOllama, OLLAMA_CONTEXT, OllamaModel, RawServer, process::settings, within,
};
use tokio::process::Command;

use crate::{
    cli::Ran,
    common::{binary, serve},
};

/// Runs it in a home of its own with this configuration.
async fn doctor(config: &str, args: &[&str]) -> Ran {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("warren.toml"), config).unwrap();
    let mut command = Command::new(binary());
    command.arg("doctor").args(args).current_dir(home.path()).env("HOME", home.path());
    command.stdin(Stdio::null()).kill_on_drop(true);
    for variable in settings() {
        command.env_remove(variable);
    }
    command.env("XDG_DATA_HOME", home.path());
    let output = within("the doctor", command.output()).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
}

/// The finding of a check.
async fn finding(config: &str, check: &str) -> (Option<i32>, Value) {
    let ran = doctor(config, &["--json"]).await;
    let all: Value = serde_json::from_str(&ran.out).unwrap_or_else(|_| panic!("{ran:?}"));
    let checks = all["checks"].as_array().unwrap();
    let found = checks.iter().find(|finding| finding["check"] == check);
    (ran.code, found.unwrap_or_else(|| panic!("no {check}: {ran:?}")).clone())
}

#[tokio::test]
async fn a_machine_with_a_server_and_a_model_server_is_well() {
    let daemon = serve().start().await;
    let backend = MockBackend::start(&["m"]).await;
    let directory = daemon.data_dir().display();
    fs::set_permissions(daemon.data_dir(), fs::Permissions::from_mode(0o700)).unwrap();
    let config = format!(
        "listen = \"{}\"\ndata_dir = \"{directory}\"\n[worker]\nbackend = [\"{}\"]\n",
        daemon.address(),
        backend.url()
    );
    let ran = doctor(&config, &[]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let process = daemon.pid();
    for line in [
        format!("ok     data           {directory}, used by process {process}"),
        format!("{} is used by a Warren (process {process}, warren)", daemon.address()),
        format!("ok     server         {}: ok, version", daemon.url()),
        format!("ok     model server   {}: m; /v1/chat/completions", backend.url()),
        "\n0 faults, ".to_owned(),
    ] {
        assert!(ran.out.contains(&line), "{line}\n{}", ran.out);
    }
}

#[tokio::test]
async fn a_configuration_that_cannot_be_read_is_a_fault_and_the_rest_is_still_checked() {
    let (code, found) = finding("listten = \"127.0.0.1:0\"\n", "configuration").await;
    assert_eq!((code, &found["state"]), (Some(1), &"fault".into()));
    assert!(found["found"].as_str().unwrap().contains("listten"), "{found}");
    let (_, space) = finding("listten = 1\n", "space").await;
    assert!(space["found"].as_str().unwrap().contains("free"), "{space}");
}

#[tokio::test]
async fn a_port_that_another_program_uses_is_a_fault_with_the_programs_name() {
    let other = RawServer::start().await;
    let address = other.url().trim_start_matches("http://").to_owned();
    let (code, found) = finding(&format!("listen = \"{address}\"\n"), "port").await;
    assert_eq!((code, &found["state"]), (Some(1), &"fault".into()));
    let process = format!("process {}", std::process::id());
    assert!(found["found"].as_str().unwrap().contains(&process), "{found}");
    assert!(found["advice"].as_str().unwrap().contains("--listen"), "{found}");
}

#[tokio::test]
async fn a_model_server_that_the_settings_name_and_that_is_down_is_a_fault() {
    let gone = testkit::RefusingPort::take();
    let config = format!("[worker]\nbackend = [\"{}\"]\n", gone.url());
    let (code, found) = finding(&config, "model server").await;
    assert_eq!((code, &found["state"]), (Some(1), &"fault".into()));
    assert!(found["found"].as_str().unwrap().contains(&gone.url()), "{found}");
}

#[tokio::test]
async fn a_certificate_is_shown_with_its_names_and_noted_when_it_soon_expires() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().display().to_string();
    let made = crate::cli::warren(&["cert", "box.lan", "--dir", &path]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let config = format!("tls_cert = \"{path}/cert.pem\"\ntls_key = \"{path}/key.pem\"\n");
    let (_, found) = finding(&config, "certificate").await;
    assert_eq!(found["state"], "ok", "{found}");
    assert!(found["found"].as_str().unwrap().contains("box.lan"), "{found}");
    let made =
        crate::cli::warren(&["cert", "box.lan", "--dir", &path, "--days", "1", "--force"]).await;
    assert_eq!(made.code, Some(0), "{made:?}");
    let (_, found) = finding(&config, "certificate").await;
    assert_eq!(found["state"], "note", "{found}");
}

#[tokio::test]
async fn a_context_that_cuts_prompts_is_noted() {
    let ollama = MockOllama::start(vec![OllamaModel::new("m").loaded_with(OLLAMA_CONTEXT)]).await;
    let config = format!("[worker]\nbackend = [\"{}\"]\n", ollama.url());
    let ran = doctor(&config, &[]).await;
    assert!(ran.out.contains("m: Ollama runs it with a context of 4096 tokens"), "{ran:?}");
    assert!(ran.out.contains("→ set a longer one with context = 32768"), "{ran:?}");
    let config = format!("[[worker.backends]]\nurl = \"{}\"\ncontext = 32768\n", ollama.url());
    let ran = doctor(&config, &[]).await;
    assert!(!ran.out.contains("a context of"), "{ran:?}");
}

//! One scenario of an SDK's script.

use std::{collections::BTreeSet, path::PathBuf};

use serde_json::json;
use testkit::{ChatScript, MockBackend, media_backend};

use crate::{
    house::{House, KEY},
    program::{Program, Running, beside, installed},
};

/// Makes a test of each scenario of a script: those that face the chat-only backend, those that
/// face one that serves them natively, and those that face one of sound and pictures. A last test checks that none is
/// forgotten.
macro_rules! scenarios {
    (
        $script:literal
        $(, translated: [$($name:ident),+ $(,)?])?
        $(, native: [$($any:ident),+ $(,)?])?
        $(, media: [$($media:ident),+ $(,)?])?
        $(,)?
    ) => {
        $($(
            #[tokio::test]
            async fn $name() {
                crate::sdk::translated($script, stringify!($name)).await;
            }
        )+)?
        $($(
            #[tokio::test]
            async fn $any() {
                crate::sdk::with_the_demo($script, stringify!($any)).await;
            }
        )+)?
        $($(
            #[tokio::test]
            async fn $media() {
                crate::sdk::with_media($script, stringify!($media)).await;
            }
        )+)?

        #[tokio::test]
        async fn none_is_forgotten() {
            let run = [
                $($(stringify!($name),)+)? $($(stringify!($any),)+)? $($(stringify!($media),)+)?
            ];
            crate::sdk::are_all($script, &run).await;
        }
    };
}
pub(crate) use scenarios;

/// Runs a scenario against a backend that has Chat Completions only, and calls two tools.
pub(crate) async fn translated(name: &str, scenario: &str) {
    let script = ChatScript::new()
        .calling("get_weather", json!({"city": "Paris"}))
        .calling("get_time", json!({"city": "Paris"}));
    let (house, backend) = House::chat_only(script).await;
    let mut running = program(name, scenario, &house.daemon.url(), "chat").start();
    let hung_up = follow(&mut running, &backend).await;
    running.finish().await.well();
    assert_eq!(hung_up, scenario.contains("cancel"), "hanging up is what cancelling means");
}

/// Runs a scenario against the demo.
pub(crate) async fn with_the_demo(name: &str, scenario: &str) {
    let house = House::demo().await;
    native(name, scenario, &house, "warren-demo").await;
}

/// Runs a scenario against a backend of sound, pictures, judgements and rankings.
pub(crate) async fn with_media(name: &str, scenario: &str) {
    let backend = media_backend(&["m"]).await;
    let house = House::lending(&["--backend", &backend.url()], "m").await;
    native(name, scenario, &house, "m").await;
}

/// Runs a scenario against whatever a house lends.
pub(crate) async fn native(name: &str, scenario: &str, house: &House, model: &str) {
    program(name, scenario, &house.daemon.url(), model).run().await.well();
}

/// Checks that a script has just these scenarios.
pub(crate) async fn are_all(name: &str, run: &[&str]) {
    let listed = program(name, "--list", "http://127.0.0.1:1", "none").run().await.well();
    let (listed, run): (BTreeSet<_>, BTreeSet<_>) =
        (listed.lines().collect(), run.iter().copied().collect());
    assert_eq!(listed, run);
}

/// Answers what a scenario tells; whether it has hung up, as the backend saw it.
async fn follow(running: &mut Running, backend: &MockBackend) -> bool {
    let mut hung_up = false;
    while let Some(line) = running.line().await {
        match line.as_str() {
            "asked" => drop(backend.reaches("a request", |counts| counts.started == 1).await),
            "hung up" => {
                backend.aborted(1).await;
                hung_up = true;
            }
            _ => continue,
        }
        running.say("seen").await;
    }
    hung_up
}

fn program(script: &str, scenario: &str, url: &str, model: &str) -> Program {
    let interpreter = if script.ends_with(".py") {
        installed("python").join("bin/python")
    } else {
        PathBuf::from("node")
    };
    let program = Program::new(interpreter).env("PACKAGES", installed("sdks"));
    let program = program.env("SERVER_URL", url).env("SERVER_KEY", KEY).env("MODEL", model);
    program.args([beside(script).as_os_str(), scenario.as_ref()])
}

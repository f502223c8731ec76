//! Two machines with a network of their own each, and a cable between them: what they find by
//! multicast, and what becomes of them while the cable is out. It takes root; without it the test says
//! so and does nothing. Loss of single packets cannot be had everywhere (`netem`), and is not tested.

use std::{path::Path, process::Command, time::Duration};

use serde_json::Value;
use testkit::{ChildProcess, eventually};

use crate::{cli::Ran, common::binary};

/// TCP tries again ever more seldom, and so notices late that the cable is in again.
const PATIENCE: Duration = Duration::from_secs(90);

/// Two namespaces with a cable between them.
struct Cable {
    names: [String; 2],
}

/// Runs `ip`, and tells whether it did what it should.
fn ip(args: &[&str]) -> bool {
    Command::new("ip").args(args).output().is_ok_and(|ran| ran.status.success())
}

impl Cable {
    /// `None`: there may be no namespaces here.
    fn lay() -> Option<Self> {
        let id = std::process::id();
        let cable = Self { names: [format!("wa{id}"), format!("wb{id}")] };
        let [a, b] = &cable.names;
        let laid = ip(&["netns", "add", a])
            && ip(&["netns", "add", b])
            && ip(&["link", "add", "eth0", "netns", a, "type", "veth", "peer", "eth0", "netns", b]);
        let address = |name: &str, last: u8| {
            ip(&["-n", name, "address", "add", &format!("10.213.7.{last}/24"), "dev", "eth0"])
                && ip(&["-n", name, "link", "set", "lo", "up"])
                && ip(&["-n", name, "link", "set", "eth0", "up"])
                && ip(&["-n", name, "route", "add", "224.0.0.0/4", "dev", "eth0"])
        };
        (laid && address(a, 1) && address(b, 2)).then_some(cable)
    }

    fn set(&self, state: &str) {
        assert!(ip(&["-n", &self.names[0], "link", "set", "eth0", state]));
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&["netns", "delete", name]);
        }
    }
}

/// `warren up`, with the demo model, in a namespace.
struct Machine {
    namespace: String,
    url: String,
    directory: tempfile::TempDir,
    process: ChildProcess,
}

impl Machine {
    async fn start(namespace: &str) -> Self {
        const SAYS: &str = "listening on ";
        let directory = tempfile::tempdir().expect("a directory");
        let data = directory.path().display().to_string();
        let program = binary().display().to_string();
        let mut args = vec!["netns", "exec", namespace, &program, "up", "--data-dir", &data];
        args.extend(["--listen", "127.0.0.1:0", "--mesh-listen", "0.0.0.0:0", "--mesh-advertise"]);
        args.extend(["--mesh-passcode", "a passcode", "--mesh-share", "peers"]);
        let process = ChildProcess::start(namespace, Path::new("ip"), &args);
        let line = process.line_with(SAYS).await;
        let url = line.split_once(SAYS).expect("the line has it").1.trim().to_owned();
        Self { namespace: namespace.to_owned(), url, directory, process }
    }

    /// Runs `warren mesh` there.
    async fn cli(&self, args: &[&str]) -> Ran {
        let data = self.directory.path().display().to_string();
        let mut command = tokio::process::Command::new("ip");
        command.args(["netns", "exec", &self.namespace]).arg(binary()).arg("mesh").args(args);
        command.args(["--server", &self.url, "--data-dir", &data]).kill_on_drop(true);
        let output = testkit::within("a command", command.output()).await.expect("ip runs");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        Ran { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Waits until it has `count` peers that are well.
    async fn has_peers(&self, count: usize) {
        let has = async || {
            let told = self.cli(&["peers", "--json"]).await.json();
            let peers = told.as_array().or_else(|| told["peers"].as_array());
            let well = |peer: &&Value| peer["status"] == "ok";
            peers.is_some_and(|peers| peers.iter().filter(well).count() == count)
        };
        eventually(&format!("{count} peers of {}", self.namespace), PATIENCE, has).await;
    }
}

#[tokio::test]
async fn machines_of_one_network_find_each_other_and_again_after_a_partition() {
    let Some(cable) = Cable::lay() else {
        return println!("left out: no network namespaces can be made here");
    };
    let a = Machine::start(&cable.names[0]).await;
    let b = Machine::start(&cable.names[1]).await;
    a.has_peers(1).await;
    b.has_peers(1).await;
    for machine in [&a, &b] {
        let told = machine.cli(&["peers", "--json"]).await.json();
        assert_eq!(told.get("unlinked"), None, "nobody finds itself: {told}");
        let log = machine.process.log();
        assert!(!log.contains("no link to a peer"), "{log}");
    }
    cable.set("down");
    a.has_peers(0).await;
    b.has_peers(0).await;
    let alone = a.cli(&["ask", "what is Warren?"]).await;
    assert_eq!(alone.code, Some(0), "it has a model of its own: {alone:?}");
    cable.set("up");
    a.has_peers(1).await;
    b.has_peers(1).await;
    let asked = b.cli(&["ask", "what is Warren?"]).await;
    assert_eq!(asked.code, Some(0), "{asked:?}");
}

//! Machines of one workspace, used from the command line.

use serde_json::Value;
use testkit::{DEADLINE, eventually};

use super::attach::{DETACH, ECHO};
use crate::{
    cli::{Ran, warren},
    terminal::Terminal,
    workspace::{
        cluster_faults::Pair,
        cluster_kit::peer_address,
        kit::{TOKEN, WorkspaceHost},
        moves::Moving,
    },
};

/// Opens a detached terminal on a machine that is named.
async fn opened(host: &WorkspaceHost, node: &str, name: &str, script: &str) -> Value {
    let args = [
        "--detached",
        "--json",
        "--node",
        node,
        "--name",
        name,
        "--dir",
        "/",
        "--",
        "sh",
        "-c",
        script,
    ];
    host.cli(&["open"], &args).await.json()
}

/// The machines as `cluster list` has them.
async fn machines(host: &WorkspaceHost) -> Vec<Value> {
    let list = host.cli(&["cluster", "list"], &["--json"]).await.json();
    list["machines"].as_array().expect("a list").clone()
}

/// A command that may use either machine, the first of the two if it can.
async fn at_either(words: &[&str], servers: &str, args: &[&str]) -> Ran {
    warren(&[words, &["--server", servers, "--token", TOKEN], args].concat()).await
}

#[tokio::test]
async fn an_agent_is_moved_and_what_stands_against_it_is_said_before() {
    let moving = Moving::new().await;
    let id = moving.agent().await;
    let hub = &moving.hub.host;
    let would =
        hub.cli(&["session", "move"], &["reviewer", "--node", "two", "--dry-run", "--json"]).await;
    let would = would.json();
    assert_eq!((&would["dry_run"], &would["node_name"]), (&true.into(), &"two".into()), "{would}");
    let moved = hub.cli(&["session", "move"], &["reviewer", "--node", "two"]).await;
    let words = format!("{id} runs now on two in {}", moving.pair[1].host.dir());
    assert!(moved.code == Some(0) && moved.out.contains(&words), "{moved:?}");
    let list = hub.cli(&["session", "list"], &[]).await;
    assert!(list.out.contains("two"), "{list:?}");
    opened(hub, "two", "build", "read x").await;
    let refused = hub.cli(&["session", "move"], &["build", "--node", "one"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("in a terminal cannot"), "{refused:?}");
    let refused = hub.cli(&["session", "move"], &["reviewer", "--node", "two"]).await;
    assert!(refused.code != Some(0) && refused.err.contains("already"), "{refused:?}");
}

#[tokio::test]
async fn machines_are_listed_and_renamed() {
    let Pair { owner, entry } = Pair::new().await;
    let all = machines(&entry).await;
    assert_eq!((&all[0]["name"], &all[0]["this"]), (&"entry".into(), &true.into()), "{all:?}");
    assert_eq!(all[0]["address"], peer_address(&entry).await, "{all:?}");
    assert_eq!((&all[1]["name"], &all[1]["reachable"]), (&"owner".into(), &true.into()));
    let table = entry.cli(&["cluster", "list"], &[]).await;
    assert!(table.out.contains("this machine") && table.out.contains("owner"), "{table:?}");

    for args in [&["owner", "lab"][..], &["door"]] {
        let renamed = entry.cli(&["cluster", "rename"], args).await;
        assert_eq!(renamed.code, Some(0), "{renamed:?}");
    }
    let named = async || {
        let names: Vec<Value> =
            machines(&entry).await.iter().map(|it| it["name"].clone()).collect();
        names == ["door", "lab"]
    };
    eventually("new names", DEADLINE, named).await;
    let unknown = entry.cli(&["cluster", "rename"], &["nobody", "x"]).await;
    assert!(unknown.code != Some(0) && unknown.err.contains("nobody"), "{unknown:?}");

    drop(owner);
    let lost = async || machines(&entry).await[1]["reachable"] == false;
    eventually("a machine that is not reachable", DEADLINE, lost).await;
}

#[tokio::test]
async fn the_addresses_that_are_dialled_are_listed_and_changed() {
    let Pair { owner, entry } = Pair::new().await;
    let peer = peer_address(&entry).await;
    let peers = async |args: &[&str]| peers_of(&owner, args).await;
    assert_eq!(peers(&[]).await.json()["peers"], serde_json::json!([peer]));
    assert_eq!(peers(&["remove", &peer]).await.json()["peers"], serde_json::json!([]));
    assert_eq!(peers(&["remove", &peer]).await.code, Some(4));
    assert_eq!(peers(&["add", &peer]).await.json()["peers"], serde_json::json!([peer]));
    let wrong = peers(&["add", "no address"]).await;
    assert!(wrong.code == Some(1) && wrong.err.contains("no address"), "{wrong:?}");
    let alone = WorkspaceHost::start().await;
    let refused = peers_of(&alone, &["add", &peer]).await;
    assert!(refused.code == Some(1) && refused.err.contains("in no cluster"), "{refused:?}");
    let table = alone.cli(&["cluster", "list"], &[]).await;
    assert!(table.err.contains("warren cluster invite"), "{table:?}");
}

async fn peers_of(host: &WorkspaceHost, args: &[&str]) -> Ran {
    let words = [&["cluster", "peers"], &args[..args.len().min(1)]].concat();
    host.cli(&words, &[args.get(1..).unwrap_or_default(), &["--json"]].concat()).await
}

#[tokio::test]
async fn a_session_of_another_machine_is_made_listed_and_attached_by_name() {
    let Pair { owner, entry } = Pair::new().await;
    let made = opened(&entry, "owner", "echo", ECHO).await;
    let list = entry.cli(&["session", "list"], &["--json"]).await.json();
    assert_eq!(list["sessions"][0]["node_id"], machines(&entry).await[1]["node_id"], "{list}");
    assert_eq!(list["sessions"][0]["reachable"], true, "{list}");
    let table = entry.cli(&["session", "list"], &[]).await;
    assert!(table.out.contains("MACHINE") && table.out.contains("owner"), "{table:?}");
    let mut terminal = entry.terminal(&["session", "attach"], &["echo"]);
    terminal.shows("hello").await;
    terminal.press("there\r").await;
    terminal.shows("<there>").await;
    terminal.press(DETACH).await;
    terminal.ends(0).await;
    let there = owner.listed(made["id"].as_str().unwrap()).await;
    assert!(there.is_some(), "it runs on the machine that was named");

    let project = ["site", "--dir", "/", "--json"];
    let project = owner.cli(&["project", "create"], &project).await.json();
    let listed = async || {
        let list = entry.cli(&["project", "list"], &[]).await;
        list.out.contains(&project["id"].as_str().unwrap()[..8]) && list.out.contains("owner")
    };
    eventually("the project and its machine", DEADLINE, listed).await;
}

#[tokio::test]
async fn a_name_on_two_machines_is_an_error_that_names_both() {
    let Pair { owner: _owner, entry } = Pair::new().await;
    let [here, there] = [
        opened(&entry, "entry", "twin", "read x").await,
        opened(&entry, "owner", "twin", "read x").await,
    ];
    let ran = entry.cli(&["session", "show"], &["twin"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    for (session, node) in [(here, "entry"), (there, "owner")] {
        let id = session["id"].as_str().unwrap();
        assert!(ran.err.contains(&format!("{id} on {node}")), "{ran:?}");
        let by_id = entry.cli(&["session", "show"], &[id, "--json"]).await.json();
        assert_eq!(by_id["id"], id);
    }
}

#[tokio::test]
async fn an_attached_terminal_goes_on_at_another_machine_when_its_server_is_killed() {
    let Pair { owner, entry } = Pair::new().await;
    opened(&entry, "owner", "echo", ECHO).await;
    let servers = format!("{},{}", entry.daemon.url(), owner.daemon.url());
    let args = ["session", "attach", "echo", "--server", &servers, "--token", TOKEN];
    let mut terminal = Terminal::start(&args);
    terminal.shows("hello").await;
    terminal.press("before\r").await;
    terminal.shows("<before>").await;
    drop(entry);
    terminal.press("after\r").await;
    terminal.shows("<after>").await;
    let screen = terminal.screen();
    for shown in ["hello", "<before>", "<after>"] {
        assert_eq!(screen.matches(shown).count(), 1, "{screen}");
    }
    terminal.press(DETACH).await;
    terminal.ends(0).await;
    // Other commands use the next server, too.
    let list = at_either(&["session", "list"], &servers, &["--json"]).await.json();
    assert_eq!(list["sessions"][0]["name"], "echo", "{list}");
    drop(owner);
    let none = at_either(&["session", "list"], &servers, &[]).await;
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(servers.split(',').all(|url| none.err.contains(url)), "{none:?}");
}

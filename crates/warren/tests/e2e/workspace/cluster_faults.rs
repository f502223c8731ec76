//! Members of a cluster that are killed, stopped, copied, given a wrong token, and flooded.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::{eventually, workspace::WorkspaceClient};

use super::{
    cluster_kit::{copy_all, linked, member, others, peer_address},
    kit::{Viewer, WorkspaceHost, about, id_of, listed},
};

/// A key at another member, while that sends a flood to somebody else, takes at most this many times as
/// long as without the flood, and this much more.
const SLOWER: u32 = 20;
const SLOWER_BY: Duration = Duration::from_millis(250);

/// Two members. The sessions are on `owner`, the clients come to `entry`.
pub(super) struct Pair {
    pub(super) owner: WorkspaceHost,
    pub(super) entry: WorkspaceHost,
}

impl Pair {
    /// The owner dials, so that it finds the entry member again after a restart.
    pub(super) async fn new() -> Self {
        let entry = WorkspaceHost::of(member("entry", "secret")).await;
        let owner = member("owner", "secret").set("--peer", &peer_address(&entry).await);
        let pair = Self { owner: WorkspaceHost::of(owner).await, entry };
        linked(&pair.owner, 1).await;
        linked(&pair.entry, 1).await;
        pair
    }

    /// Runs a script in a new terminal of the owner, through the entry member; the session's id.
    async fn runs(&self, client: &mut WorkspaceClient, script: &str) -> String {
        let open = json!({
            "type": "open_terminal", "working_dir": self.owner.dir(), "command": "sh",
            "args": ["-c", script], "node_id": "owner",
        });
        id_of(&client.ask(open, "terminal_opened").await["session"])
    }

    /// A client of the entry member that looks at that script.
    async fn viewer(&self, script: &str) -> Viewer {
        let mut client = self.entry.client().await;
        let id = self.runs(&mut client, script).await;
        Viewer::of(client, &id).await
    }

    /// Waits until the entry member lists the session like this.
    async fn lists(&self, id: &str, wished: impl Fn(&Value) -> bool) {
        let is_it = async || {
            let sessions = listed(&mut self.entry.client().await).await;
            sessions.iter().any(|session| session["id"] == id && wished(session))
        };
        eventually("the session as wished", testkit::DEADLINE, is_it).await;
    }
}

#[tokio::test]
async fn a_killed_owner_is_out_of_reach_until_its_restart_shows_what_became_of_its_sessions() {
    let mut pair = Pair::new().await;
    let mut watcher = pair.entry.client().await;
    let mut viewer = pair.viewer("echo ready; cat").await;
    viewer.shows("ready").await;
    let id = viewer.id();
    // Before its owner dies, the session must be known at the entry member.
    assert_eq!(id_of(&watcher.hear("session_status_changed").await["session"]), id);
    pair.owner.daemon.kill9().await;
    let unreachable = |changed: &Value| changed["session"]["reachable"] == false;
    viewer.told_where("session_status_changed", unreachable).await;
    pair.lists(&id, |session| session["reachable"] == false).await;
    viewer.says("get_history").await;
    let refused = viewer.told("error").await;
    let words = refused["message"].as_str().expect("words");
    assert!(words.contains("owner, which runs it, cannot be reached"), "{words}");
    let notice = viewer.told("client_notice").await;
    assert_eq!(notice["notice"]["code"], "owner_unreachable", "{notice}");
    pair.owner.daemon.start_again().await;
    pair.lists(&id, |session| session["status"] == "exited" && session["reachable"] == true).await;
    let has_ended = |changed: &Value| {
        let session = &changed["session"];
        session["status"] == "exited" && session["reachable"] == true
    };
    viewer.told_where("session_status_changed", has_ended).await;
    // The same client is served again.
    viewer.says("get_history").await;
    assert_eq!(viewer.told("history").await["session_id"], id);
}

#[tokio::test]
async fn a_member_with_a_wrong_token_is_refused_in_words_at_both_ends() {
    let one = WorkspaceHost::of(member("one", "secret")).await;
    let other = member("other", "another secret").set("--peer", &peer_address(&one).await);
    let other = WorkspaceHost::of(other).await;
    let there = one.daemon.line_with("a member's link was refused with these words").await;
    let here = other.daemon.line_with("no link to a peer").await;
    for words in [there, here] {
        assert!(words.contains("different cluster tokens"), "{words}");
    }
    assert_eq!((others(&one).await, others(&other).await), (vec![], vec![]));
}

#[tokio::test]
async fn two_members_with_one_data_directory_copied_both_say_so() {
    let mut one = WorkspaceHost::of(member("one", "secret")).await;
    one.daemon.sigterm();
    assert_eq!(one.daemon.exit().await, Some(0));
    let copy = member("copy", "secret");
    copy_all(one.daemon.data_dir(), copy.data_dir());
    one.daemon.start_again().await;
    let copy = WorkspaceHost::of(copy.set("--peer", &peer_address(&one).await)).await;
    for daemon in [&one.daemon, &copy.daemon] {
        let words = daemon.line_with("same node id").await;
        assert!(words.contains("--data-dir"), "{words}");
    }
    assert_eq!((others(&one).await, others(&copy).await), (vec![], vec![]));
}

#[tokio::test]
async fn a_client_at_a_member_that_is_stopped_for_seconds_loses_nothing() {
    const SCRIPT: &str = "stty -echo; echo ready; read x; i=0; \
        while [ $i -lt 300 ]; do echo \"line $i of 300\"; i=$((i+1)); sleep 0.01; done; \
        echo the end";
    let pair = Pair::new().await;
    let mut viewer = pair.viewer(SCRIPT).await;
    viewer.shows("ready").await;
    let mut there = Viewer::of(pair.owner.client().await, &viewer.id()).await;
    viewer.type_until_applied("\n").await;
    viewer.shows("line 9 of 300").await;
    pair.entry.daemon.sigstop();
    there.shows("the end").await;
    pair.entry.daemon.sigcont();
    viewer.shows("the end").await;
    assert_eq!(viewer.follow.snapshots(), 1, "it did not fall behind");
    for line in 0..300 {
        let line = format!("line {line} of 300\r\n");
        assert_eq!(viewer.follow.text().matches(&line).count(), 1, "{line}");
    }
}

#[tokio::test]
async fn a_flood_to_a_slow_client_delays_no_key_of_another_one_over_the_same_link() {
    let pair = Pair::new().await;
    let mut keys = pair.viewer("stty -echo; echo ready; cat").await;
    keys.shows("ready").await;
    let alone = median_of_keys(&mut keys, "alone").await;
    let mut slow = pair.entry.slow_client().await;
    let flood = "while :; do echo a line of a flood that nobody reads; done";
    let flood = pair.runs(&mut slow, flood).await;
    slow.say(about("attach", &flood)).await;
    slow.hear_where("attached", |attached| attached["session_id"] == *flood).await;
    // Another client reads it to show that it floods.
    let mut other = Viewer::of(pair.entry.client().await, &flood).await;
    while other.follow.seq() < 200 {
        other.step().await;
    }
    drop(other);
    let flooded = median_of_keys(&mut keys, "flooded").await;
    let most = alone * SLOWER + SLOWER_BY;
    assert!(flooded < most, "{flooded:?}, and without the flood {alone:?}");
    pair.owner.client().await.ask(about("kill_session", &flood), "session_killed").await;
}

/// How long a line takes until it is shown.
async fn median_of_keys(viewer: &mut Viewer, word: &str) -> Duration {
    let mut times = Vec::new();
    for number in 0..21 {
        let began = Instant::now();
        viewer.types(&format!("{word} {number}.\n")).await;
        viewer.shows(&format!("{word} {number}.")).await;
        times.push(began.elapsed());
    }
    times.sort();
    times[times.len() / 2]
}

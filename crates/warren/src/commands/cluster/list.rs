//! `warren cluster list`.

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{ClusterMember, ClusterStatus};
use serde_json::{Value, json};

use crate::commands::{
    note, say, say_json,
    table::{plain, table},
    workspace::{Output, machines::beginning},
};

/// List the machines of the workspace
#[derive(Args)]
#[command(after_help = "The machine that is asked comes first. The address is that of the peer \
    port: what --peer of another machine's `warren serve` takes.\n\n\
    Examples:\n  \
    warren cluster list")]
pub(super) struct List {
    #[command(flatten)]
    output: Output,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let cluster = self.output.server.connect(file).await?.cluster_status().await?;
        if self.output.json {
            return Ok(say_json(&all(&cluster))?);
        }
        say(&readable(&cluster))?;
        if cluster.name.is_none() {
            note("This machine is in no cluster. Begin one: warren cluster invite");
        }
        cluster.notices.iter().for_each(|notice| note(&format!("notice: {notice}")));
        Ok(())
    }
}

fn all(cluster: &ClusterStatus) -> Value {
    let this = json!({
        "node_id": cluster.node_id, "name": cluster.name, "address": cluster.address,
        "reachable": true, "this": true,
    });
    let others = cluster.peers.iter().map(|peer| {
        json!({
            "node_id": peer.node_id, "name": peer.name, "address": peer.address,
            "reachable": peer.connected, "through": peer.through, "this": false,
        })
    });
    let machines: Vec<Value> = std::iter::once(this).chain(others).collect();
    json!({"machines": machines, "notices": cluster.notices})
}

fn readable(cluster: &ClusterStatus) -> String {
    let this = (cluster.name.as_deref(), cluster.address.as_deref());
    let mut rows = vec![row(&cluster.node_id, this.0, this.1, "this machine")];
    rows.extend(cluster.peers.iter().map(|peer| {
        row(&peer.node_id, peer.name.as_deref(), peer.address.as_deref(), &state(peer))
    }));
    table(&["id", "name", "address", "status"], &rows, 0)
}

fn state(peer: &ClusterMember) -> String {
    match (peer.connected, &peer.through) {
        (false, _) => "not reachable".to_owned(),
        (true, None) => "reachable".to_owned(),
        (true, Some(carrier)) => format!("reachable through {}", plain(carrier)),
    }
}

fn row(id: &str, name: Option<&str>, address: Option<&str>, state: &str) -> Vec<String> {
    let [name, address] = [name, address].map(|text| plain(text.unwrap_or_default()));
    vec![plain(&beginning(id)), name, address, state.to_owned()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::workspace::machines::tests::cluster;

    #[test]
    fn each_machine_is_a_row_and_the_one_that_is_asked_is_marked() {
        let table = readable(&cluster());
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1], ["n-1", "here", "-", "this", "machine"], "{table}");
        assert_eq!(rows[2], ["n-2", "lab\u{fffd}", "10.0.0.2:9179", "reachable"], "{table}");
        assert_eq!(rows[3], ["n-3-is-l", "-", "10.0.0.2:9179", "not", "reachable"], "{table}");
    }

    #[test]
    fn a_machine_that_is_linked_through_another_says_so() {
        let mut cluster = cluster();
        cluster.peers[0].through = Some("hub\u{1b}".to_owned());
        let table = readable(&cluster);
        assert!(table.contains("reachable through hub\u{fffd}"), "{table}");
        assert_eq!(all(&cluster)["machines"][1]["through"], "hub\u{1b}");
    }

    #[test]
    fn json_has_whole_ids_and_the_notices() {
        let mut cluster = cluster();
        cluster.notices.push("a clock is ahead".to_owned());
        let json = all(&cluster);
        assert_eq!(json["machines"][0]["this"], true, "{json}");
        assert_eq!(json["machines"][2]["node_id"], "n-3-is-long", "{json}");
        assert_eq!(json["machines"][2]["reachable"], false, "{json}");
        assert_eq!(json["notices"], json!(["a clock is ahead"]));
    }
}

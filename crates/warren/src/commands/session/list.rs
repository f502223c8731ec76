//! `warren session list`.

use std::collections::BTreeMap;

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{ClusterStatus, SessionInfo};
use serde_json::json;

use crate::commands::{
    say, say_json,
    table::{plain, table},
    workspace::{
        WorkspaceServer, short,
        terms::{ago, runs, status},
    },
};

/// List the sessions
#[derive(Args)]
pub(super) struct List {
    /// List the hidden ones, too
    #[arg(long)]
    all: bool,
    /// Print JSON, with whole ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    place: WorkspaceServer,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.place.connect(file).await?;
        let sessions = workspace.sessions(self.all).await?;
        if self.json {
            return Ok(say_json(&json!({"sessions": sessions}))?);
        }
        if sessions.is_empty() {
            return Ok(say("There are no sessions. Open a terminal: warren open")?);
        }
        let machines = machines(&workspace.cluster_status().await?);
        Ok(say(&readable(&sessions, &machines))?)
    }
}

/// The names of the machines by their ids, if there are several.
fn machines(cluster: &ClusterStatus) -> BTreeMap<String, String> {
    let own = (cluster.node_id.clone(), cluster.name.clone());
    let others = cluster.peers.iter().map(|peer| (peer.node_id.clone(), peer.name.clone()));
    let named = |(id, name): (String, Option<String>)| {
        let name = name.unwrap_or_else(|| id.chars().take(8).collect());
        (id, plain(&name))
    };
    match cluster.peers.is_empty() {
        true => BTreeMap::new(),
        false => [own].into_iter().chain(others).map(named).collect(),
    }
}

fn readable(sessions: &[SessionInfo], machines: &BTreeMap<String, String>) -> String {
    let mut header = vec!["id", "name", "runs", "status", "directory", "used", "attached"];
    let mut rows: Vec<Vec<String>> = sessions.iter().map(row).collect();
    if !machines.is_empty() {
        header.insert(1, "machine");
        for (row, session) in rows.iter_mut().zip(sessions) {
            let node = session.node_id.as_deref().unwrap_or_default();
            let name = machines.get(node).map_or(node, String::as_str);
            row.insert(1, plain(name));
        }
    }
    table(&header, &rows, 1)
}

fn row(session: &SessionInfo) -> Vec<String> {
    let port = session.dev_server_port.map_or_else(String::new, |port| format!(", port {port}"));
    let reach = if session.reachable { "" } else { ", not reachable" };
    vec![
        short(session.id),
        plain(session.name.as_deref().unwrap_or_default()),
        runs(session),
        format!("{}{port}{reach}", status(session.status)),
        plain(&session.working_dir),
        ago(session.last_active),
        session.attached_clients.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use protocol::workspace::ClusterMember;

    use super::*;
    use crate::commands::session::turn::tests::session;

    #[test]
    fn a_session_is_a_row_without_anything_that_moves_the_cursor() {
        let mut it = session();
        it.name = Some("dev\u{1b}[2J".to_owned());
        it.dev_server_port = Some(5173);
        it.working_dir = "/srv/\n".to_owned();
        let told = readable(&[it], &BTreeMap::new());
        for part in ["dev\u{fffd}[2J", "idle, port 5173", "/srv/\u{fffd}", "claude agent"] {
            assert!(told.contains(part), "{part}: {told}");
        }
        assert_eq!(told.lines().count(), 2);
    }

    #[test]
    fn several_machines_have_a_column() {
        let peer = |id: &str, name| ClusterMember {
            node_id: id.to_owned(),
            name,
            address: None,
            connected: true,
        };
        let mut cluster = ClusterStatus {
            node_id: "n-1".to_owned(),
            role: String::new(),
            term: 0,
            leader_id: None,
            leader_address: None,
            name: Some("here".to_owned()),
            peers: Vec::new(),
        };
        assert!(machines(&cluster).is_empty(), "one machine needs no column");
        cluster.peers = vec![peer("n-2", Some("lab".to_owned())), peer("n-3-is-long", None)];
        let mut it = session();
        it.node_id = Some("n-2".to_owned());
        let told = readable(&[it], &machines(&cluster));
        assert!(told.contains("MACHINE") && told.contains("lab"), "{told}");
        assert_eq!(machines(&cluster)["n-3-is-long"], "n-3-is-l");
    }
}

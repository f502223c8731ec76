//! `warren session list`.

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::SessionInfo;
use serde_json::json;

use crate::commands::{
    say, say_json,
    table::plain,
    workspace::{
        Machines, WorkspaceServer, short,
        terms::{ago, runs, status},
    },
};

/// List the sessions
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session list\n  \
    warren session list --all --json")]
pub(super) struct List {
    /// List the hidden ones, too
    #[arg(long)]
    all: bool,
    /// Print JSON, with whole ids
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: WorkspaceServer,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.server.connect(file).await?;
        let sessions = workspace.sessions(self.all).await?;
        if self.json {
            return Ok(say_json(&json!({"sessions": sessions}))?);
        }
        if sessions.is_empty() {
            return Ok(say("There are no sessions. Open a terminal: warren open")?);
        }
        let machines = Machines::of(&mut workspace).await?;
        Ok(say(&readable(&sessions, &machines))?)
    }
}

fn readable(sessions: &[SessionInfo], machines: &Machines) -> String {
    let header = ["id", "name", "runs", "status", "directory", "used", "attached"];
    let nodes = sessions.iter().map(|session| session.node_id.as_deref());
    machines.table(&header, sessions.iter().map(row).collect(), nodes, 1)
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
    use super::*;
    use crate::commands::session::turn::tests::session;

    #[test]
    fn a_session_is_a_row_without_anything_that_moves_the_cursor() {
        let mut it = session();
        it.name = Some("dev\u{1b}[2J".to_owned());
        it.dev_server_port = Some(5173);
        it.working_dir = "/srv/\n".to_owned();
        let table = readable(&[it], &Machines::default());
        for part in ["dev\u{fffd}[2J", "idle, port 5173", "/srv/\u{fffd}", "claude agent"] {
            assert!(table.contains(part), "{part}: {table}");
        }
        assert_eq!(table.lines().count(), 2);
    }
}

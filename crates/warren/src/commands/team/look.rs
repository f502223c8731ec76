//! `warren team list`, `show` and `remove`.

use std::collections::BTreeSet;

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::{SessionId, SessionInfo, Team, TeamStatus};
use serde_json::json;

use super::{
    Output,
    find::{members, team},
};
use crate::commands::{
    say, say_json, say_json_line,
    table::plain,
    workspace::{
        Machines, short,
        terms::{ago, runs, status},
    },
};

/// List the teams
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team list")]
pub(super) struct List {
    #[command(flatten)]
    output: Output,
}

/// Show a team and its members
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team show review")]
pub(super) struct Show {
    /// The team
    team: String,
    #[command(flatten)]
    output: Output,
}

/// Delete a team, and end its sessions
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren team remove review")]
pub(super) struct Remove {
    /// The team
    team: String,
    #[command(flatten)]
    output: Output,
}

impl List {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let teams = workspace.teams().await?;
        if self.output.json {
            return Ok(say_json(&json!({"teams": teams}))?);
        }
        if teams.is_empty() {
            return Ok(say("There are no teams. Make one: warren team create NAME")?);
        }
        let machines = Machines::of(&mut workspace).await?;
        // A team is kept where its leader runs.
        let sessions = match machines.are_several() {
            true => workspace.sessions(true).await?,
            false => Vec::new(),
        };
        let leader = |team: &Team| sessions.iter().find(|it| it.id == team.leader_session_id);
        let nodes = teams.iter().map(|team| leader(team)?.node_id.as_deref());
        let header = ["id", "name", "status", "used", "team workers"];
        let rows = teams.iter().map(|team| row(team, &elsewhere(team, &sessions, &machines)));
        Ok(say(&machines.table(&header, rows.collect(), nodes, 1))?)
    }
}

impl Show {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        let members = members(&mut workspace, &team).await?;
        if self.output.json {
            let shown = json!({"team": team, "sessions": members});
            return Ok(say_json(&shown)?);
        }
        say(&format!("id      {}", team.id))?;
        say(&format!("name    {}", plain(&team.name)))?;
        say(&format!("status  {}", state(team.status)))?;
        say(&format!("used    {}\n", ago(team.last_active)))?;
        let machines = Machines::of(&mut workspace).await?;
        let rows: Vec<Vec<String>> = members.iter().map(|it| member(&team, it)).collect();
        let nodes = members.iter().map(|session| session.node_id.as_deref());
        let header = ["id", "name", "part", "runs", "status", "used"];
        Ok(say(&machines.table(&header, rows, nodes, 0))?)
    }
}

impl Remove {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let (mut workspace, team) = team(&self.output, file, &self.team).await?;
        workspace.delete_team(team.id).await?;
        match self.output.json {
            true => Ok(say_json_line(&json!({"team_id": team.id, "deleted": true}))?),
            false => Ok(say(&format!("{} is deleted", plain(&team.name)))?),
        }
    }
}

/// The machines that run workers of a team and not its leader, by name.
fn elsewhere(team: &Team, sessions: &[SessionInfo], machines: &Machines) -> Vec<String> {
    let node = |id: &SessionId| sessions.iter().find(|it| it.id == *id)?.node_id.as_deref();
    let own = node(&team.leader_session_id);
    let nodes: BTreeSet<&str> =
        team.worker_session_ids.iter().filter_map(node).filter(|it| Some(*it) != own).collect();
    nodes.into_iter().map(|node| machines.name(Some(node))).collect()
}

fn row(team: &Team, elsewhere: &[String]) -> Vec<String> {
    let on = match elsewhere {
        [] => String::new(),
        names => format!(", also on {}", names.join(", ")),
    };
    vec![
        short(team.id),
        plain(&team.name),
        state(team.status).to_owned(),
        ago(team.last_active),
        format!("{}{on}", team.worker_session_ids.len()),
    ]
}

fn member(team: &Team, session: &SessionInfo) -> Vec<String> {
    let is_leader = session.id == team.leader_session_id;
    let reach = if session.reachable { "" } else { ", not reachable" };
    vec![
        short(session.id),
        plain(session.name.as_deref().unwrap_or_default()),
        if is_leader { "leader" } else { "team worker" }.to_owned(),
        runs(session),
        format!("{}{reach}", status(session.status)),
        ago(session.last_active),
    ]
}

const fn state(status: TeamStatus) -> &'static str {
    match status {
        TeamStatus::Active => "active",
        TeamStatus::Inactive => "inactive",
    }
}

//! `warren session show`.

use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::SessionInfo;

use crate::commands::{
    say, say_json,
    table::plain,
    workspace::{
        Output, named,
        terms::{ago, runs, status},
    },
};

/// Show one session
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session show reviewer")]
pub(super) struct Show {
    /// The session: its id, the beginning of it, or its name
    session: String,
    #[command(flatten)]
    output: Output,
}

impl Show {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        tell(named(&mut workspace, &sessions, &self.session).await?, self.output.json)
    }
}

/// Shows one session.
pub(super) fn tell(session: &SessionInfo, json: bool) -> anyhow::Result<()> {
    if json {
        return Ok(say_json(session)?);
    }
    for (name, value) in fields(session).into_iter().filter(|(_, value)| !value.is_empty()) {
        say(&format!("{name:<11}{value}"))?;
    }
    Ok(())
}

fn fields(session: &SessionInfo) -> [(&'static str, String); 14] {
    let maybe = |text: Option<String>| text.as_deref().map(plain).unwrap_or_default();
    let role = if session.is_team_leader { " (its leader)" } else { "" };
    [
        ("id", session.id.to_string()),
        ("name", maybe(session.name.clone())),
        ("runs", runs(session)),
        ("model", maybe(session.model.clone())),
        ("status", status(session.status).to_owned()),
        ("directory", plain(&session.working_dir)),
        ("project", maybe(session.project_id.map(|id| id.to_string()))),
        ("team", maybe(session.team_id.map(|id| format!("{id}{role}")))),
        ("tags", maybe(Some(session.tags.join(",")).filter(|tags| !tags.is_empty()))),
        ("port", maybe(session.dev_server_port.map(|port| port.to_string()))),
        ("node", maybe(session.node_id.clone())),
        ("attached", session.attached_clients.to_string()),
        ("made", ago(session.created_at)),
        ("used", ago(session.last_active)),
    ]
}

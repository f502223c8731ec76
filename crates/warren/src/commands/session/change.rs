//! `warren session remove` and `warren session rename`.

use clap::Args;
use daemon::ConfigFile;
use serde_json::json;

use super::show::tell;
use crate::commands::{
    say, say_json_line,
    workspace::{Output, named},
};

/// End a session, and all that it started
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session remove reviewer")]
pub(super) struct Remove {
    /// The sessions: their ids, the beginnings of them, or their names
    #[arg(required = true)]
    session: Vec<String>,
    #[command(flatten)]
    output: Output,
}

impl Remove {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        // All are found before one is ended.
        let mut ids = Vec::new();
        for meant in &self.session {
            ids.push(named(&mut workspace, &sessions, meant).await?.id);
        }
        for id in ids {
            workspace.kill_session(id).await?;
            match self.output.json {
                true => say_json_line(&json!({"session_id": id, "killed": true}))?,
                false => say(&format!("{id} is ended"))?,
            }
        }
        Ok(())
    }
}

/// Call a session something else
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session rename claude reviewer")]
pub(super) struct Rename {
    /// The session: its id, the beginning of it, or its name
    session: String,
    /// Its new name
    name: String,
    #[command(flatten)]
    output: Output,
}

impl Rename {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        let id = named(&mut workspace, &sessions, &self.session).await?.id;
        tell(&workspace.rename_session(id, self.name).await?, self.output.json)
    }
}

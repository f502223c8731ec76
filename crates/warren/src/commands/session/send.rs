//! `warren session send`.

use anyhow::anyhow;
use clap::Args;
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{SessionInfo, SessionMode, SessionStatus};

use super::turn;
use crate::{
    commands::{
        answer::prompt,
        workspace::{Place, named, terms::called},
    },
    exit::usage,
};

/// Give a session a whole prompt: an agent works on it, a terminal gets it with one Enter after it
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session send reviewer 'look at the last commit' --wait\n  \
    git diff | warren session send reviewer --wait\n  \
    warren session send build 'make -j4'")]
pub(super) struct Send {
    /// The session: its id, the beginning of it, or its name
    session: String,
    /// The prompt; - reads standard input
    #[arg(default_value = "-")]
    text: String,
    /// Print the agent's answer, when it comes
    #[arg(long)]
    wait: bool,
    /// With --wait, print each event as a line of JSON
    #[arg(long, requires = "wait")]
    json: bool,
    #[command(flatten)]
    place: Place,
}

impl Send {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let text = prompt(&self.text)?;
        let address = self.place.address(file)?;
        let mut workspace = Workspace::connect(&address).await?;
        let sessions = workspace.sessions(true).await?;
        let session = named(&sessions, &self.session)?;
        if !self.wait {
            return hand_over(&mut workspace, session, text).await;
        }
        if session.mode == SessionMode::Pty {
            let words = format!("{} is a terminal, which has no turns", called(session));
            return Err(usage(anyhow!("{words}: leave --wait away")));
        }
        turn::ask(workspace, &address, session, text, self.json).await
    }
}

/// Gives a session a prompt. Nothing says that it was taken, but a refusal comes before the answer to
/// what is asked next.
pub(super) async fn hand_over(
    workspace: &mut Workspace,
    session: &SessionInfo,
    text: String,
) -> anyhow::Result<()> {
    workspace.prompt(session.id, text)?;
    let after = workspace.sessions(true).await?;
    match after.iter().find(|it| it.id == session.id).map(|it| it.status) {
        Some(SessionStatus::Exited) | None => Err(anyhow!("{} has ended", called(session))),
        Some(_) => Ok(()),
    }
}

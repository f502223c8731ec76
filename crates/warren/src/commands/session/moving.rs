//! `warren session move`.

use anyhow::bail;
use clap::Args;
use daemon::ConfigFile;
use protocol::workspace::client::{MoveSession, SessionMoved};

use crate::commands::{
    say, say_json_line,
    table::plain,
    workspace::{Output, named},
};

/// Move an agent to another machine of the cluster
#[derive(Args)]
#[command(after_help = "Conversation, history and prompts that wait go along; the agent must be \
    installed there, and its project (by name) or its directory must exist there. The running turn \
    ends first. Clients follow. Only agents that take turns (mode sdk) and are in no team move.\n\n\
    Examples:\n  \
    warren session move reviewer --node lab --dry-run\n  \
    warren session move reviewer --node lab")]
pub(super) struct Move {
    /// The session: its id, the beginning of it, or its name
    session: String,
    /// The machine that it moves to, by its name or id
    #[arg(long, value_name = "MACHINE")]
    node: String,
    /// The directory to work in there [default: that of the project of the same name, or the same]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    dir: Option<String>,
    /// Interrupt the running turn, instead of waiting for its end (ten minutes at most)
    #[arg(long)]
    interrupt: bool,
    /// Move it although something stays behind
    #[arg(long)]
    yes: bool,
    /// Only say what would happen
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    output: Output,
}

impl Move {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let mut workspace = self.output.server.connect(file).await?;
        let sessions = workspace.sessions(true).await?;
        let session = named(&mut workspace, &sessions, &self.session).await?;
        let request = MoveSession {
            session_id: session.id,
            node_id: self.node,
            working_dir: self.dir,
            interrupt: self.interrupt,
            accept_losses: self.yes,
            dry_run: true,
        };
        let would = workspace.move_session(request.clone()).await?;
        if self.dry_run {
            return tell(&would, self.output.json);
        }
        if !would.stays.is_empty() && !self.yes {
            let stays = plain(&would.stays.join("; "));
            bail!("{stays}. Nothing was moved: --yes moves it all the same");
        }
        let request = MoveSession { dry_run: false, ..request };
        tell(&workspace.move_session(request).await?, self.output.json)
    }
}

fn tell(moved: &SessionMoved, json: bool) -> anyhow::Result<()> {
    match json {
        true => Ok(say_json_line(moved)?),
        false => Ok(say(&words(moved))?),
    }
}

fn words(moved: &SessionMoved) -> String {
    let would = if moved.dry_run { "would move to" } else { "runs now on" };
    let place = format!("{} in {}", plain(&moved.node_name), plain(&moved.working_dir));
    let stays = moved.stays.iter().map(|stays| format!("\n  {}", plain(stays)));
    format!("{} {would} {place}{}", moved.session_id, stays.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_behind_is_said() {
        let moved = SessionMoved {
            session_id: "550e8400-e29b-41d4-a716-446655440000".parse().unwrap(),
            node_id: "n".to_owned(),
            node_name: "lab".to_owned(),
            working_dir: "/p".to_owned(),
            stays: Vec::new(),
            dry_run: false,
        };
        let id = moved.session_id;
        assert_eq!(words(&moved), format!("{id} runs now on lab in /p"));
        let would =
            SessionMoved { stays: vec!["the \u{1b} stays".to_owned()], dry_run: true, ..moved };
        assert_eq!(words(&would), format!("{id} would move to lab in /p\n  the \u{fffd} stays"));
    }
}

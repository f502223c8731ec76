//! `warren session send`.

use anyhow::anyhow;
use clap::Args;
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::SessionMode;
use serde_json::json;

use super::turn;
use crate::{
    commands::{
        answer::prompt,
        say_json_line,
        workspace::{WorkspaceServer, named, terms::called},
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
    #[arg(default_value = "-", allow_hyphen_values = true)]
    text: String,
    /// Print the agent's answer, as it comes; on a terminal the whole turn. Ends with 1 if the turn
    /// fails
    #[arg(long)]
    wait: bool,
    /// Print JSON: which turn the prompt is; with --wait, each event as a line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: WorkspaceServer,
}

impl Send {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        let text = prompt(&self.text)?;
        let addresses = self.server.addresses(file)?;
        let mut workspace = Workspace::connect_to_any(&addresses).await?;
        let sessions = workspace.sessions(true).await?;
        let session = named(&mut workspace, &sessions, &self.session).await?;
        if !self.wait {
            let turn = workspace.prompt(session.id, text).await?;
            if self.json {
                say_json_line(&json!({"session_id": session.id, "turn": turn}))?;
            }
            return Ok(());
        }
        if session.mode == SessionMode::Pty {
            let words = format!("{} is a terminal, which has no turns", called(session));
            return Err(usage(anyhow!("{words}: leave --wait away")));
        }
        turn::ask(workspace, &addresses, session, text, self.json).await
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        send: Send,
    }

    fn sent(args: &[&str]) -> (String, bool) {
        let cli = Cli::try_parse_from([&["send", "fix"], args].concat()).unwrap();
        (cli.send.text, cli.send.wait)
    }

    #[test]
    fn a_prompt_may_begin_with_a_dash_and_options_stay_options() {
        for text in ["- [ ] first", "-1 + 2 = ?", "--force does not work", "-", "--", "-x"] {
            let args = if text == "--" { vec!["--", "--"] } else { vec![text] };
            assert_eq!(sent(&args), (text.to_owned(), false));
        }
        assert_eq!(sent(&["- item", "--wait"]), ("- item".to_owned(), true));
        assert_eq!(sent(&["--wait", "- item"]), ("- item".to_owned(), true));
        assert_eq!(sent(&["--wait"]), ("-".to_owned(), true));
    }
}

//! `warren session new`.

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use client::Workspace;
use daemon::ConfigFile;
use protocol::workspace::{SessionInfo, SessionMode, client::NewSession, session::DEV_SERVER_TAG};

use super::{on_command_line, turn};
use crate::{
    commands::{
        answer::prompt,
        note, say, say_json_line,
        table::plain,
        workspace::{Output, project, terms::runs},
    },
    exit::usage,
};

/// Make a session: an agent, or an agent's own terminal
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    warren session new --provider codex --name reviewer\n  \
    warren session new --prompt 'summarise README.md' --wait\n  \
    warren session new --project site --tag dev-server --mode pty -- npm run dev")]
pub(super) struct New {
    /// How it is driven: turn by turn, or as a terminal
    #[arg(long, value_enum, default_value = "sdk")]
    mode: Mode,
    /// The agent: claude, codex, gemini, opencode, or one that the server is set up for [default: claude]
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The agent's model; warren:NAME is one of the server's, or of its
    /// cluster's [default: the agent's]
    #[arg(long, hide_short_help = true)]
    model: Option<String>,
    /// The directory to start in [default: the project's, or this one]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    dir: Option<String>,
    /// The project that it belongs to
    #[arg(long)]
    project: Option<String>,
    /// The machine of the cluster to run on, by its name or id [default: the project's, or the
    /// server's]
    #[arg(long, value_name = "MACHINE", hide_short_help = true)]
    node: Option<String>,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// Keep it out of listings
    #[arg(long, hide_short_help = true)]
    hidden: bool,
    /// A tag; dev-server is one whose port is found, and runs the arguments after -- (repeatable)
    #[arg(long, hide_short_help = true)]
    tag: Vec<String>,
    /// The user to run as, if the server allows it [default: the project's, or the server's own]
    #[arg(long, value_name = "USER", hide_short_help = true)]
    run_as: Option<String>,
    /// Give it this prompt at once; - reads standard input
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    prompt: Option<String>,
    /// Print the answer to the prompt, as it comes
    ///
    /// On a terminal the whole turn. Ends with 1 if the turn fails.
    #[arg(long, requires = "prompt")]
    wait: bool,
    /// More arguments for the agent's command line, those that the server allows
    #[arg(last = true, value_name = "ARG", hide_short_help = true)]
    args: Vec<String>,
    #[command(flatten)]
    output: Output,
}

/// The mode in which a session is driven.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Turn by turn, by prompts
    Sdk,
    /// As a terminal
    Pty,
}

impl From<Mode> for SessionMode {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Sdk => Self::Sdk,
            Mode::Pty => Self::Pty,
        }
    }
}

impl New {
    pub(super) async fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        self.check().map_err(usage)?;
        let text = self.prompt.as_deref().map(prompt).transpose()?;
        let addresses = self.output.server.addresses(file)?;
        let mut workspace = Workspace::connect_to_any(&addresses).await?;
        let request = self.request(&mut workspace).await?;
        let session = workspace.new_session(request).await?;
        if !self.wait || self.output.json {
            self.tell(&session)?;
        }
        match text {
            None => Ok(()),
            Some(text) if self.wait => {
                turn::ask(workspace, &addresses, &session, text, self.output.json).await
            }
            Some(text) => {
                workspace.prompt(session.id, text).await?;
                if !self.output.json {
                    say_how_to_follow(&session);
                }
                Ok(())
            }
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        if self.wait && self.mode == Mode::Pty {
            return Err(anyhow!("--wait is for agents of mode sdk: a terminal has no turns"));
        }
        let is_server = self.tag.iter().any(|tag| tag == DEV_SERVER_TAG);
        if is_server && (self.args.is_empty() || self.mode != Mode::Pty) {
            return Err(anyhow!(
                "a dev-server is a terminal that runs a command: --mode pty -- COMMAND ARG…"
            ));
        }
        Ok(())
    }

    async fn request(&self, workspace: &mut Workspace) -> anyhow::Result<NewSession> {
        let project_id = match &self.project {
            Some(meant) => Some(project(workspace, meant).await?),
            None => None,
        };
        let (dir, node) = (self.dir.as_deref(), self.node.as_deref());
        Ok(NewSession {
            working_dir: self.output.server.directory_on(node, dir, project_id.is_some())?,
            mode: self.mode.into(),
            model: self.model.clone(),
            name: self.name.clone(),
            extra_args: Some(self.args.clone()).filter(|args| !args.is_empty()),
            run_as_user: self.run_as.clone(),
            provider: self.provider.clone(),
            hidden: self.hidden,
            tags: self.tag.clone(),
            project_id,
            node_id: self.node.clone(),
            ..NewSession::default()
        })
    }

    fn tell(&self, session: &SessionInfo) -> anyhow::Result<()> {
        if self.output.json {
            return Ok(say_json_line(session)?);
        }
        let (id, directory) = (session.id, plain(&session.working_dir));
        Ok(say(&format!("{id}\n{} in {directory}", runs(session)))?)
    }
}

/// For people only: a program that reads the output has the id.
fn say_how_to_follow(session: &SessionInfo) {
    let name = on_command_line(session);
    match session.mode {
        SessionMode::Pty => note(&format!("see it: warren session attach {name}")),
        _ => note(&format!(
            "follow it: warren session attach {name}\nread it:   warren session history {name}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        new: New,
    }

    fn check(args: &[&str]) -> bool {
        let cli = Cli::try_parse_from([&["new"], args].concat());
        cli.is_ok_and(|cli| cli.new.check().is_ok())
    }

    #[test]
    fn a_prompt_may_begin_with_a_dash_and_is_no_argument_of_the_agent() {
        for prompt in ["- [ ] first", "--wait for me", "-p", "--"] {
            let cli = Cli::try_parse_from(["new", "--prompt", prompt, "--", "-x"]).unwrap();
            assert_eq!(cli.new.prompt.as_deref(), Some(prompt));
            assert_eq!(cli.new.args, ["-x"]);
        }
    }

    #[test]
    fn senseless_options_are_refused_before_anything_is_made() {
        assert!(check(&[]));
        assert!(check(&["--prompt", "hi", "--wait"]));
        assert!(!check(&["--wait"]));
        assert!(!check(&["--mode", "pty", "--prompt", "hi", "--wait"]));
        assert!(check(&["--mode", "pty", "--tag", "dev-server", "--", "npm", "run", "dev"]));
        assert!(!check(&["--tag", "dev-server", "--", "npm"]));
        assert!(!check(&["--mode", "pty", "--tag", "dev-server"]));
    }
}

//! `warren open`: a command in a new terminal, here or on another machine, used at once.

use anyhow::anyhow;
use clap::Args;
use client::{Workspace, workspace::Ending};
use daemon::ConfigFile;
use protocol::workspace::{
    SessionInfo,
    client::OpenTerminal,
    limits::{MAX_COLS, MAX_ROWS, MIN_COLS, MIN_ROWS},
};

use super::{
    run_client, say, say_json,
    session::attach::{Keys, has_terminal, size, use_session},
    workspace::{WorkspaceServer, project},
};
use crate::exit::{as_ended, usage};

/// The command for a user's own shell on another machine: the environment there knows it.
const SHELL_THERE: [&str; 3] = ["sh", "-c", "exec \"${SHELL:-/bin/sh}\""];

/// Run a command in a new terminal that stays, here or on another machine, and use it
#[derive(Args)]
#[command(
    after_help = "Ctrl-] detaches: the command goes on, and `warren session attach` comes back to it, from \
    anywhere.\n\n\
    When the command ends, its exit code is that of warren open, and 128 plus the number of a signal; detaching ends with 0.\n\n\
    Examples:\n  \
    warren open\n  \
    warren open --name build -- make -j4\n  \
    warren open --server https://gpu.example --token wk_… -- nvtop\n  \
    warren open --node lab -- htop\n  \
    warren open --detached --name tests -- cargo test"
)]
pub(crate) struct Open {
    /// The machine of the cluster to run on, by its name or id [default: the project's, or the
    /// server's]
    #[arg(long, value_name = "MACHINE")]
    node: Option<String>,
    /// What to call it
    #[arg(long)]
    name: Option<String>,
    /// The directory to start in [default: the project's, or this one]
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    dir: Option<String>,
    /// The project that it belongs to
    #[arg(long, hide_short_help = true)]
    project: Option<String>,
    /// A tag (repeatable)
    #[arg(long, hide_short_help = true)]
    tag: Vec<String>,
    /// Keep it out of listings
    #[arg(long, hide_short_help = true)]
    hidden: bool,
    /// The user to run as, if the server allows it [default: the project's, or the server's own]
    #[arg(long, value_name = "USER", hide_short_help = true)]
    run_as: Option<String>,
    /// Only start it, and print its id
    #[arg(long)]
    detached: bool,
    /// With --detached, print JSON
    #[arg(long, requires = "detached")]
    json: bool,
    /// This user's shell, as the environment says
    #[arg(long, env = "SHELL", hide = true)]
    shell: Option<String>,
    #[command(flatten)]
    keys: Keys,
    #[command(flatten)]
    server: WorkspaceServer,
    /// The command and its arguments [default: the user's shell]
    #[arg(trailing_var_arg = true, value_name = "CMD")]
    command: Vec<String>,
}

impl Open {
    pub(crate) fn run(self, file: &ConfigFile) -> anyhow::Result<()> {
        run_client(self.open(file))
    }

    async fn open(self, file: &ConfigFile) -> anyhow::Result<()> {
        if !self.detached && !has_terminal() {
            return Err(usage(anyhow!(
                "a terminal is needed for input and output; --detached starts the command without"
            )));
        }
        let addresses = self.server.addresses(file)?;
        let mut workspace = Workspace::connect_to_any(&addresses).await?;
        let request = self.request(&mut workspace).await?;
        let session = workspace.open_terminal(request).await?;
        if self.detached {
            return self.tell(&session);
        }
        match use_session(workspace, &addresses, &session, &self.keys, true).await? {
            None => Ok(()),
            Some(Ending::Exited { code }) => as_ended(code),
            Some(Ending::Killed) => as_ended(None),
        }
    }

    async fn request(&self, workspace: &mut Workspace) -> anyhow::Result<OpenTerminal> {
        let project_id = match &self.project {
            Some(meant) => Some(project(workspace, meant).await?),
            None => None,
        };
        let (command, args) = self.command_line()?;
        let size = size().ok().filter(|_| has_terminal());
        let size = size.filter(|&(cols, rows)| cols >= MIN_COLS && rows >= MIN_ROWS);
        let (dir, node) = (self.dir.as_deref(), self.node.as_deref());
        Ok(OpenTerminal {
            working_dir: self.server.directory_on(node, dir, project_id.is_some())?,
            command,
            args: Some(args).filter(|args| !args.is_empty()),
            name: self.name.clone(),
            project_id,
            cols: size.map(|(cols, _)| cols.min(MAX_COLS)),
            rows: size.map(|(_, rows)| rows.min(MAX_ROWS)),
            tags: self.tag.clone(),
            hidden: self.hidden,
            run_as_user: self.run_as.clone(),
            node_id: self.node.clone(),
        })
    }

    fn command_line(&self) -> anyhow::Result<(String, Vec<String>)> {
        let there = SHELL_THERE.map(str::to_owned);
        let words = match (&self.command[..], &self.shell) {
            ([], Some(shell)) if self.server.is_here()? => std::slice::from_ref(shell),
            ([], _) => &there,
            (words, _) => words,
        };
        match words {
            [command, args @ ..] if !command.is_empty() => Ok((command.clone(), args.to_vec())),
            _ => Err(usage(anyhow!("an empty command cannot be run"))),
        }
    }

    fn tell(&self, session: &SessionInfo) -> anyhow::Result<()> {
        match self.json {
            true => Ok(say_json(session)?),
            false => Ok(say(&session.id.to_string())?),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        open: Open,
    }

    fn words(args: &[&str]) -> Vec<String> {
        let all = [&["open", "--shell", "/bin/zsh"], args].concat();
        let (command, args) = Cli::parse_from(all).open.command_line().unwrap();
        [vec![command], args].concat()
    }

    #[test]
    fn a_command_keeps_its_own_options() {
        assert_eq!(words(&["--", "ls", "-l", "--", "x"]), ["ls", "-l", "--", "x"]);
        assert_eq!(words(&["--name", "n", "top", "-b", "--name", "m"])[1..], ["-b", "--name", "m"]);
    }

    #[test]
    fn without_a_command_it_is_the_users_shell() {
        assert_eq!(words(&["--server", "http://localhost:1"]), ["/bin/zsh"]);
        assert_eq!(words(&["--server", "http://10.0.0.1"]), SHELL_THERE);
    }

    #[test]
    fn an_empty_command_is_refused() {
        let cli = Cli::parse_from(["open", "--", ""]);
        assert!(cli.open.command_line().is_err());
    }
}

//! The `warren` binary: joins the machines people own into one place to run language models.
//!
//! - [`commands`]: every command, a file each
//! - [`help`]: the command line as clap has it, with its help
//! - [`exit`]: the exit codes, and the last error
//! - `system`: what differs between systems
//! - `reference`: writes the book's pages of commands and settings

mod commands;
mod exit;
mod help;
#[cfg(test)]
mod reference;
mod system;

use std::{path::PathBuf, process::ExitCode};

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};
use daemon::configuration::Origins;

/// The hidden command with which the daemon starts its supervisor.
const SUPERVISOR: &str = "supervisor";

/// Joins the machines people own into one place to run language models
#[derive(Parser)]
#[command(name = "warren", version, max_term_width = 100)]
struct Cli {
    /// The configuration file [default: ./warren.toml, $XDG_CONFIG_HOME/warren/warren.toml,
    /// /etc/warren/warren.toml, the first there is]
    #[arg(long, global = true, env = "WARREN_CONFIG", value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Start here: a server, and a worker for the model servers here
    Up(Box<commands::up::Up>),
    /// Run the server: queues requests and gives them to workers
    Serve(Box<commands::serve::Serve>),
    /// Lend this machine's model servers to a server
    Worker(Box<commands::worker::Worker>),
    /// Ask a model, once
    Ask(Box<commands::ask::Ask>),
    /// Talk with a model
    Chat(Box<commands::chat::Chat>),
    /// List what can be asked, where it is, and what it costs in memory
    Models(Box<commands::models::Models>),
    /// Fetch models, see which is on which machine and in memory, load and unload them
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren model pull ggml-org/Qwen3-0.6B-GGUF\n  \
        warren model list\n  \
        warren model load qwen3-8b"
    )]
    Model(Box<commands::model::Model>),
    /// Invite a machine, a guest or a member by one code for `warren join`
    Invite(Box<commands::invite::Invite>),
    /// Join a server, a room or a workspace by the code of an invitation
    Join(Box<commands::join::Join>),
    /// Show a server's workers, queues and last requests
    Status(Box<commands::status::Status>),
    /// Stop a server
    Stop(Box<commands::stop::Stop>),
    /// Show the newest lines of a server's log
    Logs(Box<commands::logs::Logs>),
    /// Show the settings of a running server, and where each is from
    Config(Box<commands::config::Config>),
    /// Save a server's data in one file, also while it runs
    Backup(Box<commands::backup::Backup>),
    /// Restore a server's data from such a file
    Restore(Box<commands::restore::Restore>),
    /// Check configuration, data, database, NATS, port, server, clock, limits and model servers, and say what to do
    Doctor(Box<commands::doctor::Doctor>),
    /// Keep Warren running without a terminal, by systemd or launchd
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren service install\n  \
        warren service status\n  \
        warren service remove"
    )]
    Service(Box<commands::service::Service>),
    /// Share models with friends in a room
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren room create --name Tuesday --lend\n  \
        warren room join swift-eagle-42 --server http://192.168.1.20:9178\n  \
        warren room ask swift-eagle-42 'Why is the sky blue?'"
    )]
    Room(Box<commands::room::Room>),
    /// Ask peers, fetch models from them, and see who they are
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren mesh peers\n  \
        warren mesh ask 'Why is the sky blue?'\n  \
        warren mesh pull qwen3-8b"
    )]
    Mesh(Box<commands::mesh::Mesh>),
    /// Run a command in a new terminal that stays, here or on another machine, and use it
    Open(Box<commands::open::Open>),
    /// Make, list, use and end terminals and agents of a machine
    Session(Box<commands::session::Session>),
    /// Make, list and change projects: working directories that the workspace knows
    Project(Box<commands::project::ProjectCommand>),
    /// List, fetch, send and change files of projects
    Files(Box<commands::files::Files>),
    /// See what changed in a project since the last commit
    Git(Box<commands::git::Git>),
    /// Make teams of agents, give them work, and hear what came of it
    Team(Box<commands::team::TeamCommand>),
    /// Join machines into one workspace
    Cluster(Box<commands::cluster::Cluster>),
    /// Open the server's web page in a browser, signed in, here or on a phone
    Web(Box<commands::web::Web>),
    /// Watch servers, rooms, requests, peers and usage live, and ask models
    Tui(Box<commands::tui::Tui>),
    /// Make, list, rotate and remove keys
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren key create --name laptop\n  \
        warren key list\n  \
        warren key remove laptop"
    )]
    Key(Box<commands::key::Key>),
    /// Take what a server has along into a PostgreSQL that several servers share
    #[command(
        subcommand,
        after_help = "Examples:\n  \
        warren database import --dry-run"
    )]
    Database(Box<commands::database::Database>),
    /// Make a self-signed certificate with which a server speaks TLS
    Cert(Box<commands::cert::Cert>),
    /// Show usage by key, model, provider, API or day
    Usage(Box<commands::usage::Usage>),
    /// Show the version of this program, and of the server
    Version(Box<commands::version::Version>),
    /// Print the completions of a shell
    Completions(commands::completions::Completions),
    /// Print a manual page, or write all of them
    Man(commands::man::Man),
}

fn main() -> ExitCode {
    if is_supervisor() {
        // Before any thread or runtime exists: the supervisor must stay single-threaded.
        process::supervisor::main();
    }
    let args: Vec<_> = std::env::args_os().collect();
    let mut command = help::command(&args);
    let parsed = command.try_get_matches_from_mut(&args);
    let parsed = parsed.and_then(|found| Ok((Cli::from_arg_matches(&found)?, found)));
    match parsed {
        Ok((cli, found)) => exit::code(run(cli, &found), help::wants_json(&found)),
        Err(error) => exit::misread(&error.format(&mut command), help::asks_for_json(&args)),
    }
}

/// Whether the daemon has started this process as its supervisor.
fn is_supervisor() -> bool {
    let mut args = std::env::args_os().skip(1);
    args.next().is_some_and(|first| first == SUPERVISOR) && args.next().is_none()
}

/// `found`: the command line as clap has read it, which knows where each setting is from.
fn run(cli: Cli, found: &ArgMatches) -> anyhow::Result<()> {
    // Every connection is an open file.
    base::system::raise_file_limit();
    system::prepare_console();
    let file = daemon::ConfigFile::find(cli.config.as_deref()).map_err(exit::usage);
    if let Command::Doctor(doctor) = cli.command {
        return doctor.run(file, &Cli::command());
    }
    let file = file?;
    let origins = Origins::new(&file, found.subcommand().map_or(found, |(_, found)| found));
    match cli.command {
        // It takes a file that cannot be read, too.
        Command::Doctor(doctor) => doctor.run(Ok(file), &Cli::command()),
        Command::Up(up) => up.run(file, &origins),
        Command::Serve(serve) => serve.run(file, &origins),
        Command::Worker(worker) => worker.run(file),
        Command::Ask(ask) => ask.run(&file),
        Command::Chat(chat) => chat.run(&file),
        Command::Models(models) => models.run(&file),
        Command::Model(model) => model.run(&file),
        Command::Invite(invite) => invite.run(&file),
        Command::Join(join) => join.run(file),
        Command::Status(status) => status.run(&file),
        Command::Stop(stop) => stop.run(&file),
        Command::Room(room) => room.run(&file),
        Command::Mesh(mesh) => mesh.run(file),
        Command::Open(open) => open.run(&file),
        Command::Session(session) => session.run(&file),
        Command::Project(project) => project.run(&file),
        Command::Files(files) => files.run(&file),
        Command::Git(git) => git.run(&file),
        Command::Team(team) => team.run(&file),
        Command::Cluster(cluster) => cluster.run(&file),
        Command::Web(web) => web.run(&file),
        Command::Tui(tui) => tui.run(&file),
        Command::Key(key) => key.run(&file),
        Command::Database(database) => database.run(&file),
        Command::Cert(cert) => cert.run(),
        Command::Usage(usage) => usage.run(&file),
        Command::Logs(logs) => logs.run(&file),
        Command::Config(config) => config.run(&file),
        Command::Backup(backup) => backup.run(&file),
        Command::Restore(restore) => restore.run(&file),
        Command::Service(service) => {
            service.run(commands::service::ServiceContext { cli: &Cli::command(), file: &file })
        }
        Command::Version(version) => version.run(&file),
        Command::Completions(completions) => completions.run(),
        Command::Man(man) => man.run(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}

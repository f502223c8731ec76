//! `warren service`: Warren as a service of systemd, which stays when nobody is logged in; on macOS of launchd.
//!
//! - `role`: what the service runs; `place`: where its files are
//! - `command`: the command line that it gets, without secrets; `environment`: the file with the secrets
//! - `quoting`: words as systemd reads them; `unit`: the text of the unit; `plist`: that of launchd's file
//! - `manager`: the one of the two that is here; `systemd`, `launchd`: their commands and answers
//! - `install`, `status`, `remove`: the commands
//! - `elsewhere`: what to do where neither runs

mod command;
mod elsewhere;
mod environment;
mod install;
mod launchd;
mod manager;
mod place;
mod plist;
mod quoting;
mod remove;
mod role;
mod status;
mod systemd;
mod unit;

use clap::{Args, Subcommand};
use daemon::ServeOptions;

use super::run_client;

pub(crate) use command::ServiceContext;
pub(super) use command::options_of_environment;
pub(super) use manager::Manager;
pub(super) use place::{Place, Scope};
#[cfg(test)]
pub(super) use role::Role;

/// Keep Warren running without a terminal, by systemd or launchd
#[derive(Subcommand)]
pub(crate) enum Service {
    /// Write the unit, and start it now and with the machine
    Install(install::Install),
    /// Show the installed services: state, process, address, data directory
    Status(status::Status),
    /// Stop a service and remove its unit; its data stays
    Remove(remove::Remove),
}

impl Service {
    pub(crate) fn run(self, context: ServiceContext<'_>) -> anyhow::Result<()> {
        match self {
            Self::Install(install) => run_client(install.run(context)),
            Self::Status(status) => run_client(status.run(context)),
            Self::Remove(remove) => run_client(remove.run(context)),
        }
    }
}

/// Whose service it is
#[derive(Args, Clone, Copy)]
struct Whose {
    /// This user's, without root
    #[arg(long, conflicts_with = "system")]
    user: bool,
    /// The machine's, as a user of its own [default for root]
    #[arg(long)]
    system: bool,
}

impl Whose {
    /// The scope that the flags name.
    fn named(self) -> Option<Scope> {
        match (self.user, self.system) {
            (true, _) => Some(Scope::User),
            (_, true) => Some(Scope::System),
            (false, false) => None,
        }
    }

    /// The scope that the flags name, else root's or the user's.
    fn scope(self) -> Scope {
        self.named().unwrap_or_else(Scope::usual)
    }

    /// The scopes to look in.
    fn scopes(self) -> Vec<Scope> {
        self.named().map_or_else(|| vec![Scope::System, Scope::User], |scope| vec![scope])
    }
}

/// All services that are installed, of the machine and of this user.
pub(super) fn installed_anywhere() -> Vec<Place> {
    installed(&[Scope::System, Scope::User])
}

/// The settings of the first installed server, over those of the file.
pub(super) fn server_options(context: ServiceContext<'_>) -> Option<ServeOptions> {
    let commands = installed_anywhere().into_iter().filter_map(|place| {
        let text = std::fs::read_to_string(&place.unit).ok()?;
        status::server_of(&unit::command_of(&text)?, context)
    });
    commands.into_iter().next()
}

/// The services that are installed: those whose unit is there.
pub(super) fn installed(scopes: &[Scope]) -> Vec<Place> {
    let all =
        scopes.iter().flat_map(|scope| role::Role::UNITS.map(|role| Place::new(*scope, role)));
    all.flatten().filter(|place| place.unit.is_file()).collect()
}

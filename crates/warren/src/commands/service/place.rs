//! The files of a service.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use daemon::options::home_directory;

use super::{role::Role, unit::stop_time};
use crate::system::IS_MACOS;

/// The directory of a machine's server, which systemd makes.
pub(super) const SYSTEM_DATA: &str = "/var/lib/warren";

/// The owner of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The machine.
    System,
    /// One user.
    User,
}

impl Scope {
    /// The scope without a flag: the machine's for root, else the user's.
    pub(super) fn usual() -> Self {
        if base::system::is_administrator() { Self::System } else { Self::User }
    }

    /// Its name in the output.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
        }
    }

    /// The option of `systemctl` and `journalctl` for this scope.
    pub(crate) fn option(self) -> Option<&'static str> {
        (self == Self::User).then_some("--user")
    }
}

/// The files of one service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) scope: Scope,
    /// The name of the unit, with its ending.
    pub(crate) name: String,
    pub(super) unit: PathBuf,
    /// The file with its secrets.
    pub(super) environment: PathBuf,
}

impl Place {
    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether it is the service of this role.
    pub(super) fn runs(&self, role: Role) -> bool {
        let name = self.name.strip_suffix(".service").or_else(|| self.name.strip_prefix("org."));
        name == Some(role.unit())
    }

    /// The files of a role's service.
    ///
    /// # Errors
    /// When a user has no home directory, and on macOS for the machine.
    pub(super) fn new(scope: Scope, role: Role) -> anyhow::Result<Self> {
        match scope {
            // launchd makes no user for a service, so it would run as root, with everybody's terminals.
            Scope::System if IS_MACOS => bail!(
                "on macOS a service is a user's: run this without sudo. One for the whole machine is written by hand: \
                 see the book's page on operating systems"
            ),
            Scope::User if IS_MACOS => {
                let home = std::env::home_dir().filter(|home| home.is_absolute());
                let home =
                    home.context("there is no home directory for the service's file: set HOME")?;
                let own = home_directory("XDG_CONFIG_HOME", ".config");
                let own = own.unwrap_or_else(|| home.join(".config/warren"));
                Ok(Self::of_launchd(role, &home.join("Library/LaunchAgents"), &own))
            }
            Scope::System => Ok(Self::below(
                scope,
                role,
                Path::new("/etc/systemd/system"),
                Path::new("/etc/warren"),
            )),
            Scope::User => {
                let own = home_directory("XDG_CONFIG_HOME", ".config");
                let own = own.context("there is no home directory for the unit: set HOME")?;
                let all = own.parent().unwrap_or(&own);
                Ok(Self::below(scope, role, &all.join("systemd/user"), &own))
            }
        }
    }

    fn below(scope: Scope, role: Role, units: &Path, settings: &Path) -> Self {
        let name = format!("{}.service", role.unit());
        let unit = units.join(&name);
        Self { scope, name, unit, environment: settings.join(role.environment()) }
    }

    /// The files of a user's service on macOS.
    pub(crate) fn of_launchd(role: Role, agents: &Path, settings: &Path) -> Self {
        let name = format!("org.{}", role.unit());
        let unit = agents.join(format!("{name}.plist"));
        Self { scope: Scope::User, name, unit, environment: settings.join(role.environment()) }
    }

    /// How long the manager waits for the end of the service, by its file; zero if that does not say.
    pub(super) fn stop_time(&self) -> Duration {
        let text = fs::read_to_string(&self.unit).unwrap_or_default();
        stop_time(&text).unwrap_or_default()
    }

    /// The file for the output of a service of launchd, which keeps no journal.
    pub(crate) fn log(&self) -> PathBuf {
        let library = self.unit.parent().and_then(Path::parent).unwrap_or(Path::new("/tmp"));
        library.join("Logs").join(&self.name).with_added_extension("log")
    }
}

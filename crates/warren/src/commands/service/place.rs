//! The files of a service.

use std::path::{Path, PathBuf};

use anyhow::Context;
use daemon::options::home_directory;

use super::role::Role;

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

    /// The files of a role's service.
    ///
    /// # Errors
    /// When a user has no home directory.
    pub(super) fn new(scope: Scope, role: Role) -> anyhow::Result<Self> {
        match scope {
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
}

//! The program that keeps services running: systemd, or launchd on macOS.

use super::{
    launchd::Launchd,
    place::{Place, Scope},
    systemd::{State, Systemd},
};
use crate::system::IS_MACOS;

/// The manager of the services of a scope, on this system.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Manager {
    Systemd(Systemd),
    Launchd(Launchd),
}

impl Manager {
    pub(crate) fn of(scope: Scope) -> Self {
        if IS_MACOS { Self::Launchd(Launchd::of(scope)) } else { Self::Systemd(Systemd::of(scope)) }
    }

    /// Its name.
    pub(crate) fn name() -> &'static str {
        if IS_MACOS { "launchd" } else { "systemd" }
    }

    /// Whether it runs here, for this scope.
    pub(crate) async fn is_here(self) -> bool {
        match self {
            Self::Systemd(systemd) => systemd.is_here().await,
            Self::Launchd(launchd) => launchd.is_here().await,
        }
    }

    /// Starts a service whose file was written, now and with the machine or the login. One that runs is replaced.
    ///
    /// # Errors
    /// When the manager fails; the text has its own words.
    pub(super) async fn start(self, place: &Place) -> anyhow::Result<()> {
        match self {
            Self::Systemd(systemd) => {
                systemd.run(&["daemon-reload"]).await?;
                systemd.run(&["enable", &place.name]).await?;
                systemd.run_with_stop(place, &["restart", &place.name]).await
            }
            Self::Launchd(launchd) => launchd.start(place).await,
        }
    }

    /// Stops a service, which does not start again by itself.
    ///
    /// # Errors
    /// As [`Manager::start`].
    pub(super) async fn stop(self, place: &Place) -> anyhow::Result<()> {
        match self {
            Self::Systemd(systemd) => {
                systemd.run_with_stop(place, &["disable", "--now", &place.name]).await
            }
            Self::Launchd(launchd) => launchd.stop(place).await,
        }
    }

    /// Drops what the manager knows of a stopped service whose file was removed.
    ///
    /// # Errors
    /// As [`Manager::start`].
    pub(super) async fn forget(self) -> anyhow::Result<()> {
        match self {
            Self::Systemd(systemd) => systemd.run(&["daemon-reload"]).await,
            Self::Launchd(_) => Ok(()),
        }
    }

    /// The state of a service.
    ///
    /// # Errors
    /// When the manager does not answer.
    pub(crate) async fn state(self, place: &Place) -> anyhow::Result<State> {
        match self {
            Self::Systemd(systemd) => systemd.state(place).await,
            Self::Launchd(launchd) => launchd.state(place).await,
        }
    }
}

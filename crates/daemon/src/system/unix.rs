//! Linux and macOS.

use std::{
    fs::{self, Metadata},
    io,
    os::unix::fs::{MetadataExt, chown},
    path::{Path, PathBuf},
};

use base::system::user_home;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::signals::EndSignal;

/// The directory that a variable names, or `$HOME/fallback`.
pub(crate) fn base_directory(variable: &str, fallback: &str) -> Option<PathBuf> {
    set(variable).or_else(|| user_home().map(|home| home.join(fallback)))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The configuration file of the machine, for all its users.
pub(crate) fn machine_configuration() -> Option<PathBuf> {
    Some(PathBuf::from("/etc/warren/warren.toml"))
}

/// The user and the group that own a directory, if the user is not that of this process: then files in it have to be
/// given to them.
pub(crate) fn owner(directory: &Metadata) -> Option<(u32, u32)> {
    let is_own = rustix::process::geteuid().as_raw() == directory.uid();
    (!is_own).then(|| (directory.uid(), directory.gid()))
}

/// Gives everything in a directory to a user and a group.
pub(crate) fn give_all(directory: &Path, uid: u32, gid: u32) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        chown(entry.path(), Some(uid), Some(gid))?;
        if entry.file_type()?.is_dir() {
            give_all(&entry.path(), uid, gid)?;
        }
    }
    Ok(())
}

/// SIGTERM and SIGINT.
pub(crate) struct EndSignals {
    terminate: Signal,
    interrupt: Signal,
}

impl EndSignals {
    pub(crate) fn new() -> io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    pub(crate) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.terminate.recv() => EndSignal::Terminate,
            _ = self.interrupt.recv() => EndSignal::Interrupt,
        }
    }
}

/// SIGHUP.
#[derive(Debug)]
pub(crate) struct HangUpSignal(Signal);

impl HangUpSignal {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(signal(SignalKind::hangup())?))
    }

    /// Waits for the next one.
    pub(crate) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            // No more signals can come.
            std::future::pending::<()>().await;
        }
    }
}

//! Windows.

use std::{
    fs::Metadata,
    io,
    path::{Path, PathBuf},
};

use tokio::signal::windows::{
    CtrlBreak, CtrlC, CtrlClose, CtrlLogoff, CtrlShutdown, ctrl_break, ctrl_c, ctrl_close,
    ctrl_logoff, ctrl_shutdown,
};

use crate::signals::EndSignal;

/// The directory that a variable names. If it is not set: for `XDG_CONFIG_HOME` the user's settings, which follow the
/// user to other machines, and for all other variables the user's data on this machine.
pub(crate) fn base_directory(variable: &str, _fallback: &str) -> Option<PathBuf> {
    let usual = if variable == "XDG_CONFIG_HOME" { "APPDATA" } else { "LOCALAPPDATA" };
    set(variable).or_else(|| set(usual))
}

fn set(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The configuration file of the machine, for all its users.
pub(crate) fn machine_configuration() -> Option<PathBuf> {
    set("PROGRAMDATA").map(|all| all.join("warren").join("warren.toml"))
}

/// The user and the group to which files in a directory have to be given. There are none on Windows.
pub(crate) fn owner(_directory: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Gives everything in a directory to a user and a group, which Windows does not have: always an error.
pub(crate) fn give_all(_directory: &Path, _uid: u32, _gid: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The console's signals: Ctrl-C, Ctrl-Break, and that its window closes, its user logs off or the machine stops.
/// After one of the latter three, Windows lets a process live for a few seconds only.
pub(crate) struct EndSignals {
    interrupt: CtrlC,
    stop: CtrlBreak,
    close: CtrlClose,
    log_off: CtrlLogoff,
    shut_down: CtrlShutdown,
}

impl EndSignals {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            interrupt: ctrl_c()?,
            stop: ctrl_break()?,
            close: ctrl_close()?,
            log_off: ctrl_logoff()?,
            shut_down: ctrl_shutdown()?,
        })
    }

    pub(crate) async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.interrupt.recv() => EndSignal::Interrupt,
            _ = self.stop.recv() => EndSignal::Terminate,
            _ = self.close.recv() => EndSignal::Terminate,
            _ = self.log_off.recv() => EndSignal::Terminate,
            _ = self.shut_down.recv() => EndSignal::Terminate,
        }
    }
}

/// A signal to read the configuration again. Windows has none: `warren config reload` asks for it.
#[derive(Debug)]
pub(crate) struct HangUpSignal;

impl HangUpSignal {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    /// Waits for ever.
    pub(crate) async fn next(&mut self) {
        std::future::pending().await
    }
}

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

/// The directory that a variable names; or the one of settings, which follows a user to other machines, for those; or the one of
/// this machine's data.
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

/// The user and the group of a directory, if this process has to give files to them: nobody has to.
pub(crate) fn owner(_directory: &Metadata) -> Option<(u32, u32)> {
    None
}

/// Gives everything in a directory to a user and a group: there are none to give to.
pub(crate) fn give_all(_directory: &Path, _uid: u32, _gid: u32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The console's signals: Ctrl-C and Ctrl-Break; its window closes, its user logs off, or the machine stops. Of the
/// latter Windows lets a process live for a few seconds only.
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

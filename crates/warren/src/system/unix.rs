//! Linux and macOS.

use std::{
    env::var_os,
    fs::{File, Metadata},
    io::{self, stdin, stdout},
    os::{
        fd::AsFd,
        unix::fs::{MetadataExt, PermissionsExt},
    },
    path::Path,
    process::Command,
};

use rustix::{
    fs::{Access, FileType, access, fstat},
    process::{Pid, Signal as Raw, geteuid, kill_process},
    termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr},
};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{IS_MACOS, Notice};

/// The program that opens an address with the user's choice of browser.
const OPENER: &str = if IS_MACOS { "open" } else { "xdg-open" };

/// The variables by which a program finds the screen.
const SCREENS: [&str; 2] = ["DISPLAY", "WAYLAND_DISPLAY"];

/// Makes the console understand what this program writes: it does.
pub(crate) fn prepare_console() {}

/// The command that opens an address, which is its next argument, in a browser; `None` without a screen.
pub(crate) fn opener() -> Option<Command> {
    let is_set = |name: &&str| var_os(name).is_some_and(|screen| !screen.is_empty());
    (IS_MACOS || SCREENS.iter().any(is_set)).then(|| Command::new(OPENER))
}

/// The user of this process.
pub(crate) fn user_id() -> u32 {
    geteuid().as_raw()
}

/// The user whose file it is.
pub(crate) fn owner(file: &Metadata) -> u32 {
    file.uid()
}

/// Whether this user may make files in a directory.
pub(crate) fn is_writable(directory: &Path) -> bool {
    access(directory, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether a file is a program for somebody.
pub(crate) fn may_be_run(_path: &Path, file: &Metadata) -> bool {
    file.permissions().mode() & 0o111 != 0
}

/// Kills a process of ours. It may have ended just now.
pub(crate) fn kill(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _gone = kill_process(pid, Raw::KILL);
    }
}

/// Whether something is piped into this command. Other things that standard input may be, such as a service's
/// socket, might never end.
pub(crate) fn is_input_piped() -> bool {
    let kind = fstat(stdin()).map(|stat| FileType::from_raw_mode(stat.st_mode));
    kind.is_ok_and(|kind| matches!(kind, FileType::Fifo | FileType::RegularFile))
}

/// The columns of the terminal at standard output, if it is one.
pub(crate) fn output_width() -> Option<usize> {
    tcgetwinsize(stdout()).ok().map(|size| usize::from(size.ws_col))
}

/// The typed bytes of the terminal, without a shared buffer.
pub(crate) fn terminal_input() -> io::Result<File> {
    Ok(stdin().as_fd().try_clone_to_owned()?.into())
}

/// Standard output without a shared buffer.
pub(crate) fn terminal_output() -> io::Result<File> {
    Ok(stdout().as_fd().try_clone_to_owned()?.into())
}

/// A terminal that shows no typed keys and makes no lines of them: each key, Ctrl-D too, is there at once. During an
/// answer of a model the keys would stand among its lines. The terminal is quiet until this is dropped.
pub(crate) struct QuietTerminal(Option<Termios>);

impl QuietTerminal {
    pub(crate) fn new() -> Self {
        let before = tcgetattr(stdin()).ok();
        if let Some(mut quiet) = before.clone() {
            quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ICANON);
            let _ = tcsetattr(stdin(), OptionalActions::Now, &quiet);
        }
        Self(before)
    }
}

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// From now on Ctrl-C does not end this process.
pub(crate) fn take_interrupts() -> io::Result<Signal> {
    signal(SignalKind::interrupt())
}

/// The signals to this process. From its start on they do not end the process.
pub(crate) struct Notices {
    interrupt: Signal,
    ending: [Signal; 2],
    resized: Signal,
}

impl Notices {
    pub(crate) fn new() -> io::Result<Self> {
        let [terminate, hangup] = [SignalKind::terminate(), SignalKind::hangup()].map(signal);
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            ending: [terminate?, hangup?],
            resized: signal(SignalKind::window_change())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Notice {
        let [terminate, hangup] = &mut self.ending;
        tokio::select! {
            _ = terminate.recv() => Notice::End,
            _ = hangup.recv() => Notice::End,
            _ = self.interrupt.recv() => Notice::Interrupt,
            _ = self.resized.recv() => Notice::Resized,
        }
    }
}

//! Linux and macOS: all is read from files and tools.

use std::{
    os::unix::process::CommandExt,
    process::{Child, Command},
};

use rustix::process::{Pid, Signal, kill_process_group};

use super::MachineReport;
use crate::condition::Power;

/// Gives a program a group of its own.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.process_group(0)
}

/// Kills a program with its group.
pub(crate) fn kill_all(child: &mut Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
    }
}

/// The source of power, where the system reports it by calls.
pub(crate) fn power() -> Option<Power> {
    None
}

/// The parts of the machine, where the system reports them by calls.
pub(crate) fn report() -> Option<MachineReport> {
    None
}

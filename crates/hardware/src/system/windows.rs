//! Windows.

use std::{
    os::windows::process::CommandExt,
    process::{Child, Command},
};

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use super::ToldMachine;

/// The flag of a program that opens no window (`CREATE_NO_WINDOW`).
const NO_WINDOW: u32 = 0x0800_0000;

/// Lets a program open no window.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.creation_flags(NO_WINDOW)
}

/// Kills a program. The makers' tools start no others here.
pub(crate) fn kill_all(child: &mut Child) {
    let _ = child.kill();
}

/// What the system tells by calls: its processor and its memory.
pub(crate) fn told() -> Option<ToldMachine> {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what).ok()?;
    let first = system.cpus().first();
    Some(ToldMachine {
        vendor: first.map(|cpu| cpu.vendor_id().to_owned()).unwrap_or_default(),
        processor: first.map(|cpu| cpu.brand().to_owned()).unwrap_or_default(),
        cores: u32::try_from(system.cpus().len()).unwrap_or(u32::MAX),
        memory: system.total_memory(),
    })
}

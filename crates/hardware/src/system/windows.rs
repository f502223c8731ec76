//! Windows.

use std::{
    os::windows::process::CommandExt,
    process::{Child, Command},
};

use sysinfo::{CpuRefreshKind, MemoryRefreshKind, RefreshKind, System};

use windows_sys::Win32::System::Power::{GetSystemPowerStatus, SYSTEM_POWER_STATUS};

use super::MachineReport;
use crate::condition::Power;

/// The flag of a program that opens no window (`CREATE_NO_WINDOW`).
const NO_WINDOW: u32 = 0x0800_0000;

/// The status of a line that does not give power.
const ON_BATTERY: u8 = 0;

/// Lets a program open no window.
pub(crate) fn alone(command: &mut Command) -> &mut Command {
    command.creation_flags(NO_WINDOW)
}

/// Kills a program. The makers' tools start no others here.
pub(crate) fn kill_all(child: &mut Child) {
    let _ = child.kill();
}

/// The source of power, and how full the battery is.
#[expect(unsafe_code, reason = "it has no safe form")]
pub(crate) fn power() -> Option<Power> {
    let mut status = SYSTEM_POWER_STATUS::default();
    // SAFETY: it writes the structure, which is there.
    let is_known = unsafe { GetSystemPowerStatus(&raw mut status) } != 0;
    is_known.then(|| Power {
        on_ac_power: status.ACLineStatus != ON_BATTERY,
        battery_percent: Some(status.BatteryLifePercent).filter(|percent| *percent <= 100),
    })
}

/// The processor and the memory.
pub(crate) fn report() -> Option<MachineReport> {
    let what = RefreshKind::nothing()
        .with_cpu(CpuRefreshKind::nothing())
        .with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(what).ok()?;
    let first = system.cpus().first();
    Some(MachineReport {
        vendor: first.map(|cpu| cpu.vendor_id().to_owned()).unwrap_or_default(),
        processor: first.map(|cpu| cpu.brand().to_owned()).unwrap_or_default(),
        cores: u32::try_from(system.cpus().len()).unwrap_or(u32::MAX),
        memory: system.total_memory(),
    })
}

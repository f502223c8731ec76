//! The machine: its limits, its clock, the service.

use super::finding::{Finding, State};
use crate::{
    commands::{service::Manager, words::bytes},
    system::IS_MACOS,
};

/// A clock that is off by more seconds gets a note.
const SLIGHTLY_OFF: i64 = 5;
/// With a clock that is off by more seconds, certificates and invitations do not work.
const TOO_FAR_OFF: i64 = 300;
/// The open files that a server with some hundred clients needs.
const FEW_FILES: u64 = 4096;
/// With fewer open files no server is of use.
const TOO_FEW_FILES: u64 = 256;
/// The memory that a server with some hundred streams needs.
const LITTLE_MEMORY: u64 = 256 << 20;

/// How far this clock is ahead of others, in seconds, each with the other's address.
pub(super) type Clocks = Vec<(String, i64)>;

pub(super) fn clock(clocks: &Clocks) -> Finding {
    const CHECK: &str = "clock";
    let Some((other, off)) = clocks.iter().max_by_key(|(_, off)| off.abs()) else {
        return Finding::ok(CHECK, "there is no other machine to compare with");
    };
    let found = match off {
        0 => format!("agrees with {other}"),
        1.. => format!("{off} s ahead of {other}"),
        _ => format!("{} s behind {other}", -off),
    };
    let advice = match IS_MACOS {
        true => "let both machines take their time from the network (System Settings, Date & Time)",
        false => "let both machines take their time from the network (`timedatectl set-ntp true`)",
    };
    match off.abs() {
        TOO_FAR_OFF.. => Finding::fault(CHECK, found, advice),
        SLIGHTLY_OFF.. => Finding::note(CHECK, found, advice),
        _ => Finding::ok(CHECK, found),
    }
}

/// The limits of a process here.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Limits {
    /// Open files; `None`: no limit.
    pub(super) files: Option<u64>,
    /// Free memory in bytes, if the system reports it.
    pub(super) memory: Option<u64>,
}

pub(super) fn limits(limits: &Limits) -> Finding {
    const CHECK: &str = "limits";
    let files = limits
        .files
        .map_or("no limit of open files".to_owned(), |files| format!("{files} open files"));
    let memory = limits.memory.map(|memory| format!(", {} of memory free", bytes(memory)));
    let found = format!("{files}{}", memory.unwrap_or_default());
    let raise = match IS_MACOS {
        true => {
            "each connection takes an open file: raise the limit (`ulimit -n`, `launchctl limit maxfiles`)"
        }
        false => {
            "each connection takes an open file: raise the hard limit (`ulimit -Hn`, LimitNOFILE)"
        }
    };
    match (limits.files.unwrap_or(u64::MAX), limits.memory.unwrap_or(u64::MAX)) {
        (files, _) if files < TOO_FEW_FILES => Finding::fault(CHECK, found, raise),
        (files, _) if files < FEW_FILES => Finding::note(CHECK, found, raise),
        (_, memory) if memory < LITTLE_MEMORY => {
            Finding::note(CHECK, found, "close other programs, or lower --max-queued-mib")
        }
        _ => Finding::ok(CHECK, found),
    }
}

/// `MemAvailable` of `/proc/meminfo`, in bytes.
pub(super) fn available_memory(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

/// The installed services.
#[derive(Debug, Clone, Default)]
pub(super) struct Services {
    /// Each installed service with its state, which is empty if no manager of services runs.
    pub(super) installed: Vec<(String, String)>,
}

pub(super) fn service(services: &Services) -> Finding {
    const CHECK: &str = "service";
    if services.installed.is_empty() {
        return Finding::ok(
            CHECK,
            "none is installed; `warren service install` keeps a server running",
        );
    }
    let shown = |(name, state): &(String, String)| match state.as_str() {
        "" => format!("{name}: {} does not run it", Manager::name()),
        state => format!("{name} is {state}"),
    };
    let found = services.installed.iter().map(shown).collect::<Vec<_>>().join(", ");
    let state = services.installed.iter().map(|(_, state)| match state.as_str() {
        "active" => State::Ok,
        "" | "inactive" => State::Note,
        _ => State::Fault,
    });
    match state.max_by_key(|state| *state as u8).unwrap_or(State::Ok) {
        State::Ok => Finding::ok(CHECK, found),
        State::Note => Finding::note(
            CHECK,
            found,
            "`warren service install` starts it, `warren service remove` removes it",
        ),
        State::Fault => Finding::fault(CHECK, found, "`warren logs` shows why"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_that_differs_most_counts() {
        let with = |clocks: &[(&str, i64)]| {
            clock(&clocks.iter().map(|(name, off)| ((*name).to_owned(), *off)).collect())
        };
        assert_eq!(with(&[]).state, State::Ok);
        assert_eq!(with(&[("a", 1)]).state, State::Ok);
        let behind = with(&[("a", 1), ("b", -7)]);
        assert!(behind.state == State::Note && behind.found == "7 s behind b", "{behind:?}");
        assert_eq!(with(&[("a", 300)]).state, State::Fault);
    }

    #[test]
    fn few_files_and_little_memory_are_pointed_out() {
        let state = |files, memory| limits(&Limits { files, memory }).state;
        assert_eq!(state(None, None), State::Ok);
        assert_eq!(state(Some(FEW_FILES), Some(LITTLE_MEMORY)), State::Ok);
        assert_eq!(state(Some(1024), None), State::Note);
        assert_eq!(state(Some(128), None), State::Fault);
        assert_eq!(state(None, Some(1 << 20)), State::Note);
        assert_eq!(available_memory("MemFree: 1 kB\nMemAvailable:    2048 kB\n"), Some(2 << 20));
        assert_eq!(available_memory("MemFree: 1 kB\n"), None);
    }

    #[test]
    fn a_service_that_failed_is_a_fault_and_a_stopped_one_a_note() {
        let with = |states: &[&str]| {
            let installed = states.iter().map(|state| ("w".to_owned(), (*state).to_owned()));
            service(&Services { installed: installed.collect() }).state
        };
        assert_eq!(with(&[]), State::Ok);
        assert_eq!(with(&["active"]), State::Ok);
        assert_eq!(with(&["active", "inactive"]), State::Note);
        assert_eq!(with(&[""]), State::Note);
        assert_eq!(with(&["failed", "active"]), State::Fault);
        assert_eq!(with(&["activating"]), State::Fault);
    }
}

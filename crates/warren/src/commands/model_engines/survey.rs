//! The engines as they would be on this machine, without starting any: for `warren doctor`.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use daemon::{data::MODELS, options::WorkerOptions};
use engines::Memory;
use hardware::Machine;
use models::shelf::PassedOver;

use super::{find::Places, memory, part::Part, wanted::wanted};

/// The longest time in which a program has to print its version.
const PATIENCE: Duration = Duration::from_secs(3);

/// The longest version that is shown, in characters.
const LONGEST: usize = 100;

/// The result of one `[[worker.engines]]`.
#[derive(Debug, Clone)]
pub(crate) struct SurveyedEngine {
    /// Whether people named it. Otherwise it serves pulled models, if there are any.
    pub(crate) is_named: bool,
    /// The program with its version line, or how to get it.
    pub(crate) program: Result<(PathBuf, Option<String>), String>,
    /// Named files and folders that cannot be read.
    pub(crate) unreadable: Vec<(PathBuf, String)>,
    /// Models by name, with the memory that each takes, in bytes.
    pub(crate) models: Vec<(String, u64)>,
    /// Files with no model to serve, with the reason.
    pub(crate) passed_over: Vec<PassedOver>,
    /// The memory for all models together, in bytes.
    pub(crate) memory: u64,
}

/// Examines all engines of the settings. Blocks on the disk, and runs each program for its version.
///
/// # Errors
/// When the settings contradict each other.
pub(crate) fn survey(
    options: &WorkerOptions,
    data_dir: &Path,
) -> anyhow::Result<Vec<SurveyedEngine>> {
    let Some(wanted) = wanted(&mut options.clone())? else { return Ok(Vec::new()) };
    let named = memory::named(&wanted.engines)?;
    let memory = named.unwrap_or_else(|| memory::usual(Memory::of(&Machine::detect())));
    let (places, store) = (Places::here(), data_dir.join(MODELS));
    let of = |options| match Part::new(options, &places, &store) {
        Ok(mut part) => surveyed(&mut part, wanted.is_named, memory),
        Err(missing) => SurveyedEngine {
            is_named: wanted.is_named,
            program: Err(missing.to_string()),
            unreadable: Vec::new(),
            models: Vec::new(),
            passed_over: Vec::new(),
            memory,
        },
    };
    Ok(wanted.engines.into_iter().map(of).collect())
}

fn surveyed(part: &mut Part, is_named: bool, memory: u64) -> SurveyedEngine {
    let stock = part.look(SystemTime::now(), memory);
    let unreadable = part.paths().iter().filter_map(|path| {
        let read = if path.is_dir() {
            std::fs::read_dir(path).map(drop)
        } else {
            std::fs::File::open(path).map(drop)
        };
        read.err().map(|error| (path.clone(), error.to_string()))
    });
    SurveyedEngine {
        is_named,
        program: Ok((part.file().to_owned(), version(part.file()))),
        unreadable: unreadable.collect(),
        models: stock.models.iter().map(|it| (it.name.clone(), it.memory_bytes)).collect(),
        passed_over: stock.passed_over,
        memory,
    }
}

/// The line with the version in its output.
fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().ok()?;
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let pid = child.id();
    std::thread::spawn(move || sender.send(child.wait_with_output()));
    let Ok(output) = receiver.recv_timeout(PATIENCE) else {
        // The thread that reads its output also waits for its end.
        crate::system::kill(pid);
        return None;
    };
    let output = output.ok()?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.contains("version")).or_else(|| lines().next())?;
    Some(line.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_program_is_asked_for_its_version() {
        let place = tempfile::tempdir().unwrap();
        let tells = |script: &str| {
            let program = place.path().join("program");
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
            version(&program)
        };
        assert_eq!(tells("echo; echo 'version: 7' >&2").as_deref(), Some("version: 7"));
        assert_eq!(tells("echo 0.9.1").as_deref(), Some("0.9.1"));
        assert_eq!(tells("exit 1"), None);
    }
}

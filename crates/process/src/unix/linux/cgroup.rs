//! Control groups: one for each session, so that the kernel knows the processes of the session.
//!
//! Version 2 is used if it is writable: `cgroup.kill` ends a whole session at once, and `pids.max`
//! limits the session if that controller is available. If the `pids` controller is still in a
//! version 1 hierarchy, a group there limits the session, but cannot kill it. The name of a
//! supervisor's group holds the supervisor's process id and start time, so that the next supervisor
//! finds the leftovers.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use procfs_core::{FromRead, ProcessCGroup, ProcessCGroups, process::MountInfo};
use rustix::process::Signal;
use uuid::Uuid;

use crate::unix::processes;

/// The group to which the daemon moves when its own group must not hold processes.
const MAIN: &str = "warren-main";
const PREFIX: &str = "warren-";
/// The depth to which groups inside a session's group are searched.
const DEPTH: usize = 8;

/// The groups of one supervisor.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    /// The name of the supervisor's directory in each hierarchy.
    name: String,
    unified: Option<PathBuf>,
    limiting: Option<PathBuf>,
}

/// The directories of the group of one session. If one of them can kill, it is the first.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<PathBuf>,
    limits: bool,
}

impl Groups {
    /// Creates this supervisor's groups where possible, and ends the leftovers of dead supervisors.
    pub(crate) fn prepare() -> Self {
        let me = std::process::id();
        let started = processes::stat(me).map_or(0, |stat| stat.start_time);
        let name = format!("{PREFIX}{me}-{started}");
        let unified = place(None).and_then(|parent| own_group(&parent, &name));
        let has_limits = unified.as_deref().is_some_and(|group| enable(group, "pids"));
        let limiting = if has_limits {
            unified.clone()
        } else {
            place(Some("pids")).and_then(|parent| own_group(&parent, &name))
        };
        Self { name, unified, limiting }
    }

    /// The directories of the groups. The daemon kills everything in them when the supervisor
    /// cannot.
    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        let mut all: Vec<_> =
            [&self.unified, &self.limiting].into_iter().flatten().cloned().collect();
        all.dedup();
        all
    }

    /// The session whose group contains a process, directly or in a group below.
    pub(crate) fn session_of(&self, pid: u32) -> Option<Uuid> {
        let groups = ProcessCGroups::from_file(format!("/proc/{pid}/cgroup")).ok()?;
        groups.into_iter().find_map(|group| session_below(&group.pathname, &self.name))
    }

    /// Creates the group of a session; `None` if there are no control groups.
    pub(crate) fn create(&self, id: Uuid, most: Option<u32>) -> io::Result<Option<Group>> {
        let limiting = self.limiting.as_ref().filter(|_| most.is_some());
        let mut parents: Vec<_> = [self.unified.as_ref(), limiting].into_iter().flatten().collect();
        // Both are the same directory where version 2 limits, too.
        parents.dedup();
        let group = Group {
            directories: parents.iter().map(|parent| parent.join(id.to_string())).collect(),
            limits: limiting.is_some(),
        };
        if let Err(error) = group.make(limiting, id, most) {
            // Half a group would be in the way of the next try.
            group.remove();
            return Err(error);
        }
        Ok((!group.directories.is_empty()).then_some(group))
    }

    /// Removes the groups, which must be empty.
    pub(crate) fn remove(&self) {
        for directory in self.directories() {
            remove_all(&directory, DEPTH);
        }
    }
}

impl Group {
    /// Whether the kernel limits the number of the group's processes.
    pub(crate) fn limits(&self) -> bool {
        self.limits
    }

    pub(crate) fn enter(&self) -> io::Result<()> {
        self.directories.iter().try_for_each(|group| move_in(group, "0"))
    }

    /// Kills all processes in the group at once, if the kernel can do that.
    pub(crate) fn kill(&self) {
        if let Some(directory) = self.directories.first() {
            let _ = fs::write(directory.join("cgroup.kill"), "1");
        }
    }

    /// Removes the group, if it is empty.
    pub(crate) fn remove(&self) {
        for directory in &self.directories {
            remove_all(directory, DEPTH);
        }
    }

    fn make(&self, limiting: Option<&PathBuf>, id: Uuid, most: Option<u32>) -> io::Result<()> {
        self.directories.iter().try_for_each(fs::create_dir)?;
        let (Some(parent), Some(most)) = (limiting, most) else { return Ok(()) };
        fs::write(parent.join(id.to_string()).join("pids.max"), most.to_string())
    }
}

pub(crate) fn kill_below(directory: &Path) {
    let _ = fs::write(directory.join("cgroup.kill"), "1");
    for pid in pids_below(directory, DEPTH) {
        if let Ok(stat) = processes::stat(pid) {
            processes::signal_exactly(pid, stat.start_time, Signal::KILL);
        }
    }
}

pub(crate) fn pids_below(directory: &Path, depth: usize) -> Vec<u32> {
    let own = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    let own = own.lines().filter_map(|pid| pid.parse().ok()).filter(|pid| *pid != 0);
    let inner = below(directory, depth).flat_map(|inner| pids_below(&inner, depth - 1));
    own.chain(inner).collect()
}

/// The directory of this process's group in the version 2 hierarchy, or in the hierarchy of a
/// version 1 controller.
fn place(controller: Option<&str>) -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let groups = ProcessCGroups::from_file("/proc/self/cgroup").ok()?;
    let (mount, root) = mounts.lines().find_map(|line| mount_of(line, controller))?;
    let group = groups.into_iter().find(|group| is_in(group, controller))?;
    // In a container only a part of the hierarchy is mounted.
    let own = mount.join(Path::new(&group.pathname).strip_prefix(root).ok()?);
    let is_main = own.file_name().is_some_and(|name| name == MAIN);
    Some(if is_main { own.parent()?.to_owned() } else { own })
}

/// The mount point of the hierarchy, and the directory of the hierarchy that is mounted there.
fn mount_of(line: &str, controller: Option<&str>) -> Option<(PathBuf, String)> {
    let mount = MountInfo::from_line(line).ok()?;
    let is_it = match controller {
        None => mount.fs_type == "cgroup2",
        Some(name) => mount.fs_type == "cgroup" && mount.super_options.contains_key(name),
    };
    is_it.then_some((mount.mount_point, mount.root))
}

/// Whether a group is in the version 2 hierarchy, or in the hierarchy of a version 1 controller.
fn is_in(group: &ProcessCGroup, controller: Option<&str>) -> bool {
    match controller {
        None => group.controllers.is_empty(),
        Some(name) => group.controllers.iter().any(|it| it == name),
    }
}

/// The session whose group the path leads to or through. The group must be directly below the
/// supervisor's group, which has this name.
fn session_below(path: &str, name: &str) -> Option<Uuid> {
    let mut parts = path.split('/').skip_while(|part| *part != name);
    parts.next().filter(|name| !name.is_empty())?;
    parts.next()?.parse().ok()
}

/// Creates a supervisor's group below `parent`. `None` if processes cannot be moved there and back.
fn own_group(parent: &Path, name: &str) -> Option<PathBuf> {
    end_dead(parent);
    let own = parent.join(name);
    fs::create_dir(&own).ok()?;
    let home = if parent.join(MAIN).is_dir() { parent.join(MAIN) } else { parent.to_owned() };
    // Tried with this process itself: where moving fails, it would fail in each child.
    if move_in(&own, "0").and_then(|()| move_in(&home, "0")).is_ok() {
        return Some(own);
    }
    remove_all(&own, DEPTH);
    None
}

fn end_dead(parent: &Path) {
    for directory in below(parent, 1).filter(|directory| is_of_dead(directory)) {
        kill_below(&directory);
        remove_all(&directory, DEPTH);
    }
}

fn is_of_dead(directory: &Path) -> bool {
    let name = directory.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let Some((pid, started)) = name.strip_prefix(PREFIX).and_then(|it| it.split_once('-')) else {
        return false;
    };
    let (Ok(pid), Ok(started)) = (pid.parse(), started.parse::<u64>()) else { return false };
    let lives = processes::stat(pid).is_ok_and(|stat| stat.start_time == started && !stat.is_dead);
    !lives
}

/// Enables a controller in the groups below `own`. The kernel then forbids processes in `parent`.
/// If only the daemon and its supervisor are there, both are moved to another group.
fn enable(own: &Path, controller: &str) -> bool {
    let Some(parent) = own.parent() else { return false };
    let enabled = pass_on(parent, controller).is_ok()
        || (move_aside(parent, controller).is_ok() && pass_on(parent, controller).is_ok());
    enabled && pass_on(own, controller).is_ok()
}

fn pass_on(group: &Path, controller: &str) -> io::Result<()> {
    fs::write(group.join("cgroup.subtree_control"), format!("+{controller}"))
}

fn move_aside(parent: &Path, controller: &str) -> io::Result<()> {
    let has = fs::read_to_string(parent.join("cgroup.controllers"))?;
    let pids = fs::read_to_string(parent.join("cgroup.procs"))?;
    let ours = [std::process::id(), std::os::unix::process::parent_id()].map(|pid| pid.to_string());
    let has_it = has.split_whitespace().any(|it| it == controller);
    if !has_it || !pids.lines().all(|pid| ours.iter().any(|our| our == pid)) {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let main = parent.join(MAIN);
    fs::create_dir_all(&main)?;
    pids.lines().try_for_each(|pid| move_in(&main, pid))
}

fn move_in(group: &Path, pid: &str) -> io::Result<()> {
    fs::write(group.join("cgroup.procs"), pid)
}

fn below(directory: &Path, depth: usize) -> impl Iterator<Item = PathBuf> {
    let entries = if depth == 0 { None } else { fs::read_dir(directory).ok() };
    let entries = entries.into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|it| it.path())
}

fn remove_all(directory: &Path, depth: usize) {
    below(directory, depth).for_each(|inner| remove_all(&inner, depth - 1));
    let _ = fs::remove_dir(directory);
}

#[cfg(test)]
mod tests;

//! Finds processes that have lost their supervisor, by their marker, and ends them.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use rustix::process::Signal;
use tokio::{task, time};
use uuid::Uuid;

use crate::unix::{cgroup, processes};

/// How often the search is repeated, since a process may start others until it is killed.
const ROUNDS: usize = 50;
const BETWEEN: Duration = Duration::from_millis(20);

/// Ends leftover sessions of an earlier daemon that neither the daemon nor its supervisor could
/// end: processes with the marker of one of `ids`. Returns the number of processes that are left,
/// usually 0.
pub async fn end_leftovers(ids: &[Uuid]) -> usize {
    end(ids.iter().copied().collect(), Vec::new()).await
}

/// The same, also for all processes in these control groups.
pub(crate) async fn end(ids: HashSet<Uuid>, groups: Vec<PathBuf>) -> usize {
    if ids.is_empty() && groups.is_empty() {
        return 0;
    }
    // It reads all of `/proc`, so it runs where blocking is allowed.
    let look = std::sync::Arc::new(move || kill_once(&ids, &groups));
    for _ in 0..ROUNDS {
        let look = look.clone();
        if task::spawn_blocking(move || look()).await.unwrap_or(0) == 0 {
            return 0;
        }
        time::sleep(BETWEEN).await;
    }
    task::spawn_blocking(move || look()).await.unwrap_or(0)
}

/// Kills all processes that are found. Returns their number.
fn kill_once(ids: &HashSet<Uuid>, groups: &[PathBuf]) -> usize {
    let grouped = groups.iter().map(|group| cgroup::pids_below(group, 8).len()).sum::<usize>();
    groups.iter().for_each(|group| cgroup::kill_below(group));
    let marked = processes::all().into_values().filter(|stat| !stat.is_dead);
    let marked: Vec<_> = marked
        .filter(|stat| processes::marker(stat.pid).is_some_and(|marker| ids.contains(&marker)))
        .collect();
    for stat in &marked {
        processes::signal_exactly(stat.pid, stat.start_time, Signal::KILL);
    }
    grouped + marked.len()
}

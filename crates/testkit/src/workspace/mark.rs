//! Processes that a test finds again, whatever process started them or is their parent now.

use std::{
    fs,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use crate::wait::eventually;

/// A word that is in the command line of a test's processes, and in no other's. It is a number of
/// seconds, far more than any test takes: `sleep MARK` has it.
#[derive(Debug, Clone)]
pub struct Mark(String);

impl Default for Mark {
    fn default() -> Self {
        Self::new()
    }
}

impl Mark {
    pub fn new() -> Self {
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        Self(format!("86400.{:07}{number:05}1", std::process::id()))
    }

    /// A mark that a process has already.
    pub fn of(word: &str) -> Self {
        Self(word.to_owned())
    }

    pub fn word(&self) -> &str {
        &self.0
    }

    pub fn processes(&self) -> Vec<u32> {
        let all = fs::read_dir("/proc").expect("processes").flatten();
        let ids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        ids.filter(|id| self.is_in(*id)).collect()
    }

    pub async fn has_processes(&self, count: usize) {
        let what = format!("{count} processes with {}", self.0);
        let deadline = Duration::from_secs(30);
        eventually(&what, deadline, async || self.processes().len() == count).await;
    }

    pub async fn is_gone(&self) {
        self.has_processes(0).await;
    }

    /// A process that is dead and not yet buried has no command line.
    fn is_in(&self, id: u32) -> bool {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        line.windows(self.0.len()).any(|part| part == self.0.as_bytes())
    }
}

//! Control groups, of which this system has none: a session has no group, and nothing is in one.

use std::{
    io,
    path::{Path, PathBuf},
};

use uuid::Uuid;

/// The groups of one supervisor: none.
#[derive(Debug, Default)]
pub(crate) struct Groups;

/// The group of one session. There is no value of it.
#[derive(Debug)]
pub(crate) enum Group {}

impl Groups {
    pub(crate) fn prepare() -> Self {
        Self
    }

    pub(crate) fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    pub(crate) fn session_of(&self, _pid: u32) -> Option<Uuid> {
        None
    }

    pub(crate) fn create(&self, _id: Uuid, _most: Option<u32>) -> io::Result<Option<Group>> {
        Ok(None)
    }

    pub(crate) fn remove(&self) {}
}

impl Group {
    pub(crate) fn limits(&self) -> bool {
        match *self {}
    }

    pub(crate) fn enter(&self) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn kill(&self) {
        match *self {}
    }

    pub(crate) fn remove(&self) {
        match *self {}
    }
}

pub(crate) fn kill_below(_directory: &Path) {}

pub(crate) fn pids_below(_directory: &Path, _depth: usize) -> Vec<u32> {
    Vec::new()
}

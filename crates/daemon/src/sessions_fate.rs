//! The fate of the terminals and agents of a server that stops.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use crate::workspace_part::WorkspacePart;

/// The fate of terminals and agents when the server stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionsFate {
    /// They go on for a while, and the next server with the same data takes them over.
    Keep,
    /// They end.
    End,
}

/// The terminals and agents of a running server, for the caller that stops it. Clones are the same.
#[derive(Clone)]
pub struct RunningSessions {
    workspace: Option<WorkspacePart>,
    ends: Arc<AtomicBool>,
}

impl RunningSessions {
    pub(crate) fn new(workspace: Option<WorkspacePart>) -> Self {
        Self { workspace, ends: Arc::default() }
    }

    /// How many terminals and how many agents run.
    #[must_use]
    pub fn terminals_and_agents(&self) -> (usize, usize) {
        let counts = self.workspace.as_ref().and_then(WorkspacePart::counts);
        counts.map_or((0, 0), |counts| counts.live())
    }

    /// For how long they go on without a server; zero: they do not.
    #[must_use]
    pub fn kept_for(&self) -> Duration {
        self.workspace.as_ref().map(WorkspacePart::keeps_sessions).unwrap_or_default()
    }

    /// Decides what becomes of them. Otherwise they are kept, if the settings say so.
    pub fn decide(&self, fate: SessionsFate) {
        self.ends.store(fate == SessionsFate::End, Ordering::SeqCst);
    }

    /// For how long they go on after this stop; zero: they end with it.
    #[must_use]
    pub fn outlive_by(&self) -> Duration {
        match self.fate() {
            SessionsFate::Keep => self.kept_for(),
            SessionsFate::End => Duration::ZERO,
        }
    }

    pub(crate) fn fate(&self) -> SessionsFate {
        match self.ends.load(Ordering::SeqCst) || self.kept_for().is_zero() {
            true => SessionsFate::End,
            false => SessionsFate::Keep,
        }
    }
}

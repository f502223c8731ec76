//! The state that pulls and the serving side share.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use models::Library;
use protocol::admin::mesh::MeshTransfer;

use super::{counts::Counters, queries::Queries, shelf::Shelf};
use crate::share::Share;

/// The most ended transfers that are remembered.
const MAX_ENDED: usize = 64;

/// The state that pulls and the serving side share.
pub(super) struct Commons {
    pub(super) share: Share,
    pub(super) shelf: Shelf,
    pub(super) queries: Queries,
    pub(super) counts: Counters,
    /// The newest last.
    ended: Mutex<VecDeque<MeshTransfer>>,
}

impl Commons {
    pub(super) fn new(share: Share, library: Arc<Library>, store: PathBuf) -> Self {
        Self {
            share,
            shelf: Shelf::new(library, store),
            queries: Queries::default(),
            counts: Counters::default(),
            ended: Mutex::default(),
        }
    }

    /// Remembers a transfer that is over.
    pub(super) fn ended(&self, transfer: MeshTransfer) {
        let mut ended = self.lock();
        if ended.len() >= MAX_ENDED {
            ended.pop_front();
        }
        ended.push_back(transfer);
    }

    /// The transfers that are over: the newest first.
    pub(super) fn all_ended(&self) -> Vec<MeshTransfer> {
        self.lock().iter().rev().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<MeshTransfer>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

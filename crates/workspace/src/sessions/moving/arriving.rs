//! The machine to which a session moves.

use std::{
    fs::{self, DirBuilder, File},
    os::unix::fs::DirBuilderExt as _,
    path::Path,
    sync::Arc,
};

use protocol::workspace::SessionId;
use session::terminal::log::retention::segment_number;
use tokio::task;

use super::{
    ARRIVAL, ArrivalRecord, ArrivalState, CONVERSATION, HISTORY, Manifest, NotTaken, Staging,
    TURNS, conversation, forget, json, keep, staging,
};
use crate::{
    host::EngineHost,
    refusal::{Refusal, blocking},
    sessions::{
        Facts, Sessions,
        life::facts::{self, KIND, StoredFacts},
        output::history::remove_all,
        shared::SharedState,
    },
};

/// The parts of a taken session that are in memory only.
#[derive(Debug, Default)]
pub struct VolatileState {
    /// The ids of the inputs that were applied.
    applied: Vec<String>,
    /// The number of its newest output.
    last_seq: u64,
}

impl Sessions {
    /// Makes room for a session that moves here.
    ///
    /// # Errors
    /// When it is too large, or cannot be written.
    pub async fn stage(&self, move_id: u64, manifest: Manifest) -> Result<Staging, Refusal> {
        let dir = self.0.shared.staging_dir(move_id);
        blocking(move || Staging::create(dir, manifest)).await
    }

    /// Stores how far a move is.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn keep_arrival(&self, record: &ArrivalRecord) -> Result<(), Refusal> {
        let change = keep(ARRIVAL, record.session_id, json(record));
        self.change(change).await
    }

    /// Forgets what is stored about a move.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn forget_arrival(&self, id: SessionId) -> Result<(), Refusal> {
        self.change(forget(ARRIVAL, id)).await
    }

    /// Removes the staged files of a move. An error is only logged.
    pub async fn remove_staged(&self, move_id: u64) {
        let dir = self.0.shared.staging_dir(move_id);
        let _removed = task::spawn_blocking(move || staging::remove(&dir)).await;
    }

    /// Puts the staged files in their places, and stores that the session runs here. The result is for
    /// [`Sessions::run_taken`].
    ///
    /// # Errors
    /// [`NotTaken`]; the session does not run here then.
    pub async fn take(&self, record: &ArrivalRecord) -> Result<VolatileState, NotTaken> {
        let failed = |refusal: Refusal| NotTaken::Failed(refusal.to_string());
        let host = self.host().map_err(failed)?;
        let (shared, record) = (Arc::clone(&self.0.shared), record.clone());
        let taking = task::spawn_blocking(move || take(&host, &shared, &record)).await;
        taking.map_err(|error| NotTaken::Failed(error.to_string()))?
    }

    /// Runs a session that was taken.
    ///
    /// # Errors
    /// When its facts cannot be read.
    pub async fn run_taken(
        &self,
        record: &ArrivalRecord,
        taken: VolatileState,
    ) -> Result<(), Refusal> {
        // After a restart the session is loaded already.
        if !self.has(record.session_id) {
            self.load_up(record.session_id, Some(taken.last_seq)).await?;
        }
        let session = self.get(record.session_id)?;
        session.lock().inputs.were_applied(&taken.applied);
        // Last: after a restart before this line, the session is taken from the staged files again.
        self.remove_staged(record.move_id).await;
        Ok(())
    }

    async fn change(&self, change: store::Change) -> Result<(), Refusal> {
        let shared = Arc::clone(&self.0.shared);
        blocking(move || shared.keeper.change(&[change])).await
    }
}

fn take(
    host: &EngineHost,
    shared: &SharedState,
    record: &ArrivalRecord,
) -> Result<VolatileState, NotTaken> {
    let dir = shared.staging_dir(record.move_id);
    let manifest = staging::read(&dir)?;
    let read: StoredFacts =
        serde_json::from_str(&manifest.facts).map_err(|error| NotTaken::Lost(error.to_string()))?;
    let facts = Facts { waiting: manifest.queue, ..read.facts };
    let failed = |error: &dyn std::fmt::Display| NotTaken::Failed(error.to_string());
    let history = shared.history_dir(record.session_id);
    let turns = shared.turns_dir(record.session_id);
    // The session may have been here before, and have left files.
    remove_all(&history).map_err(|error| failed(&error))?;
    for (number, file) in manifest.files.iter().enumerate() {
        let staged = staging::path(&dir, number);
        let placed = match kind_and_name(&file.name) {
            Some((HISTORY, name)) => place_history(&history, name, &staged),
            Some((TURNS, name)) => place_history(&turns, name, &staged),
            Some((CONVERSATION, name)) => conversation::place(host, &facts, name, &staged),
            _ => Ok(()),
        };
        placed.map_err(|error| failed(&error))?;
    }
    let written = facts::write(&facts, (0, 0));
    let written = written.ok_or_else(|| failed(&"the session cannot be written down"))?;
    let taken = ArrivalRecord { state: ArrivalState::Taken, ..record.clone() };
    let changes =
        [keep(KIND, record.session_id, written), keep(ARRIVAL, record.session_id, json(&taken))];
    // One transaction: either both the session and the state of the move are stored, or neither.
    shared.keeper.change(&changes).map_err(|error| failed(&error))?;
    Ok(VolatileState { applied: manifest.applied, last_seq: manifest.last_seq })
}

/// The directory of a file that goes along, with its slash, and the file's name there.
fn kind_and_name(name: &str) -> Option<(&str, &str)> {
    name.split_at_checked(name.find('/')? + 1)
}

fn place_history(history: &Path, name: &str, staged: &Path) -> Result<(), Refusal> {
    if segment_number(name).is_none() {
        return Err(Refusal::Failed(format!("{name:?} is no file of a history")));
    }
    let place = || {
        DirBuilder::new().recursive(true).mode(0o700).create(history)?;
        let path = history.join(name);
        fs::copy(staged, &path)?;
        // On the disk before the facts say that the session is here.
        File::open(&path)?.sync_all()?;
        File::open(history)?.sync_all()
    };
    place()
        .map_err(|error| Refusal::Failed(format!("cannot write to {}: {error}", history.display())))
}

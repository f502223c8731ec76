//! The machine from which a session moves away.

use std::{
    fs::File,
    os::unix::fs::FileExt as _,
    path::{Path, PathBuf},
    sync::Arc,
};

use protocol::workspace::{SessionId, SessionMode, SessionStatus, limits::MOVED_CHUNK_MAX};
use tokio::task;

use super::{
    ARRIVAL, CONVERSATION, DEPARTURE, DepartureRecord, HISTORY, LONGEST, TURNS, conversation,
    conversation::Found, forget, read_all,
};
use crate::{
    refusal::{Refusal, blocking},
    sessions::{
        Facts, Sessions,
        clock::now,
        life::facts::{self, KIND, StoredFacts},
        output::history::remove_all,
        session::Session,
    },
};

/// The most files of the history that go along, and the most files of the events of turns. The oldest stay.
const MOST_HISTORY: usize = 256;

/// The facts about a session that decide whether it can move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portable {
    /// Its stored facts.
    pub facts: String,
    /// The name of its project.
    pub project: Option<String>,
    /// The path from the project's directory to the session's working directory; `None` if they are the same, or the
    /// working directory is elsewhere.
    pub below: Option<String>,
    /// How much goes along, in bytes.
    pub bytes: u64,
    /// The things that cannot go along, in words.
    pub stays: Vec<String>,
}

/// Everything that goes along, as it is on this machine. The [`Manifest`](super::Manifest) has it as it will be on the
/// other one.
#[derive(Debug)]
pub struct Parcel {
    /// The session's stored facts, without the prompts that wait.
    pub facts: String,
    /// The number of its last turn.
    pub turn: u64,
    /// The number of its newest output.
    pub last_seq: u64,
    /// The prompts that wait, the oldest first.
    pub queue: Vec<String>,
    /// The ids of the inputs that were applied, the oldest first.
    pub applied: Vec<String>,
    /// Its history, and its conversation.
    pub files: Vec<ParcelFile>,
}

/// A file that goes along.
#[derive(Debug, Clone)]
pub struct ParcelFile {
    /// The kind of the file as a directory, and the file's name in it.
    pub name: String,
    /// Its size in bytes.
    pub size: u64,
    /// Held open: the file may belong to another user, with whose rights it was opened.
    file: Arc<File>,
}

impl ParcelFile {
    fn new(name: String, file: File) -> Result<Self, Refusal> {
        let size = file.metadata().map_err(|error| Refusal::failed(&error))?.len();
        Ok(Self { name, size, file: Arc::new(file) })
    }

    /// The piece of the file that begins at this offset in bytes, at most [`MOVED_CHUNK_MAX`] bytes. It blocks.
    ///
    /// # Errors
    /// When it cannot be read, or has become shorter.
    pub fn piece(&self, offset: u64) -> Result<Vec<u8>, Refusal> {
        let left = self.size.saturating_sub(offset);
        let length = usize::try_from(left).unwrap_or(MOVED_CHUNK_MAX).min(MOVED_CHUNK_MAX);
        let mut piece = vec![0; length];
        let read = self.file.read_exact_at(&mut piece, offset);
        read.map_err(|error| Refusal::Failed(format!("cannot read {}: {error}", self.name)))?;
        Ok(piece)
    }
}

impl Sessions {
    /// The facts about a session that decide whether it can move.
    ///
    /// # Errors
    /// When it cannot move at all.
    pub async fn portable(&self, id: SessionId) -> Result<Portable, Refusal> {
        let session = self.get(id)?;
        may_move(&session)?;
        let facts = session.lock().life.facts.clone();
        let project = facts.project_id.and_then(|id| self.0.projects.get(id).ok());
        let project_dir = project.as_ref().map(|project| project.working_dir.clone());
        let below = project_dir.and_then(|dir| {
            let below = Path::new(&facts.working_dir).strip_prefix(dir).ok()?;
            Some(below.to_str()?.to_owned()).filter(|below| !below.is_empty())
        });
        self.0.shared.writer.flush().await;
        let (bytes, stays) = self.on_disk(&session, &facts).await?;
        let project = project.map(|project| project.name);
        Ok(Portable { facts: written(&facts)?, project, below, bytes, stays })
    }

    /// Lets no further turn begin, and returns when none runs. The caller bounds the wait, and thaws
    /// the session if it does not move.
    ///
    /// # Errors
    /// When it cannot be frozen.
    pub async fn freeze(&self, id: SessionId, interrupt: bool) -> Result<(), Refusal> {
        let session = self.get(id)?;
        may_move(&session)?;
        let engine = session.live()?;
        let freezing = engine.freeze();
        let interrupted = async {
            if interrupt {
                // The engine is frozen by now. If no turn runs, there is nothing to interrupt.
                let _no_turn = engine.interrupt();
            }
            // Only the freezing ends the wait.
            std::future::pending::<()>().await;
        };
        tokio::select! {
            // Freezing first, so that no turn begins after the one that is interrupted.
            biased;
            frozen = freezing => frozen,
            () = interrupted => Ok(()),
        }
    }

    /// Takes no more prompts of a frozen session, stores those that wait, and returns everything that
    /// goes along. Nothing changes the session from here on until it is thawed.
    ///
    /// # Errors
    /// When something cannot be read, or is too large.
    pub async fn pack(&self, id: SessionId, accept_losses: bool) -> Result<Parcel, Refusal> {
        let session = self.get(id)?;
        {
            let mut state = session.lock();
            if state.life.is_removed {
                return Err(Refusal::UnknownSession(id));
            }
            state.life.is_leaving = true;
        }
        let queue = session.live()?.seal();
        session.lock().life.facts.waiting.clone_from(&queue);
        // Before the prompts leave: if this machine dies now, they still wait here.
        self.0.shared.keeper.keep(&session).await?;
        self.0.shared.writer.flush().await;
        let facts = session.lock().life.facts.clone();
        let mut files = self.history_files(&session).await?;
        files.extend(self.conversation(&facts, accept_losses).await?);
        let turn = facts.turn;
        let facts = written(&Facts { waiting: Vec::new(), ended: None, ..facts })?;
        let (applied, last_seq) = {
            let state = session.lock();
            (state.inputs.applied(), state.output.log().last_seq())
        };
        Ok(Parcel { facts, turn, last_seq, queue, applied, files })
    }

    /// Undoes [`Sessions::freeze`] and [`Sessions::pack`] for a session that stays: turns begin again.
    pub fn thaw(&self, id: SessionId) {
        let Ok(session) = self.get(id) else { return };
        session.lock().life.is_leaving = false;
        if let Ok(engine) = session.live() {
            engine.thaw();
        }
        session.announce(now());
    }

    /// Removes a session that is another machine's now from the list. Its data stays on the disk until
    /// [`Sessions::drop_left`].
    pub fn leave(&self, id: SessionId) {
        if let Some(session) = self.remove(id) {
            // Before the viewers wake, so that nothing of the session is stored any more.
            session.lock().life.is_gone = true;
            session.news.notify_waiters();
        }
    }

    /// Removes the data of a session that another machine has taken.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn drop_left(&self, id: SessionId) -> Result<(), Refusal> {
        let shared = Arc::clone(&self.0.shared);
        let dropping = task::spawn_blocking(move || {
            // The facts first: files without facts only take room, but facts without files would be restored.
            shared.keeper.change(&[forget(DEPARTURE, id), forget(KIND, id)])?;
            let history = remove_all(&shared.history_dir(id));
            if let Err(error) = history.and(shared.remove_agent_dir(id)) {
                tracing::debug!(session = %id, %error, "files of a session that has left");
            }
            Ok(())
        });
        dropping.await.map_err(|error| Refusal::failed(&error))?
    }

    /// Restores a session that is this machine's again from its data on the disk. The caller has stored that
    /// the session is back.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn come_back(&self, id: SessionId) -> Result<(), Refusal> {
        self.load_up(id, None).await
    }

    /// Restores a session from its stored facts, and begins with the prompts that waited.
    pub(super) async fn load_up(
        &self,
        id: SessionId,
        last_seq: Option<u64>,
    ) -> Result<(), Refusal> {
        let shared = Arc::clone(&self.0.shared);
        let facts = blocking(move || shared.keeper.load(KIND)).await?;
        let fact = facts.iter().find(|fact| fact.id == id.to_string());
        let fact = fact.ok_or(Refusal::UnknownSession(id))?;
        let stored: StoredFacts =
            serde_json::from_str(&fact.json).map_err(|error| Refusal::failed(&error))?;
        self.take_up(stored, last_seq).await;
        if let Ok(session) = self.get(id) {
            session.go_on();
            session.announce(now());
        }
        Ok(())
    }

    /// The sessions that have left, but of which the other machine has not yet confirmed that it has them.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn departures(&self) -> Result<Vec<DepartureRecord>, Refusal> {
        self.stored(DEPARTURE).await
    }

    /// The sessions that move here.
    ///
    /// # Errors
    /// When they cannot be read.
    pub async fn arrivals(&self) -> Result<Vec<super::ArrivalRecord>, Refusal> {
        self.stored(ARRIVAL).await
    }

    async fn stored<T: serde::de::DeserializeOwned + Send + 'static>(
        &self,
        kind: &'static str,
    ) -> Result<Vec<T>, Refusal> {
        let shared = Arc::clone(&self.0.shared);
        Ok(read_all(&blocking(move || shared.keeper.load(kind)).await?))
    }

    /// How much of a session is on the disk, and what cannot go along.
    async fn on_disk(
        &self,
        session: &Arc<Session>,
        facts: &Facts,
    ) -> Result<(u64, Vec<String>), Refusal> {
        let history: u64 = self.history_files(session).await?.iter().map(|file| file.size).sum();
        let mut stays = Vec::new();
        let conversation: u64 = match self.conversation(facts, false).await {
            Ok(files) => files.iter().map(|file| file.size).sum(),
            Err(refusal) => {
                stays.push(format!(
                    "the agent's conversation stays behind, and a new one begins there: {refusal}"
                ));
                0
            }
        };
        Ok((history + conversation, stays))
    }

    /// The newest files of a session's history and of the events of its turns, each the oldest first.
    async fn history_files(&self, session: &Arc<Session>) -> Result<Vec<ParcelFile>, Refusal> {
        let shared = &self.0.shared;
        let (output, turns) = (shared.history_dir(session.id), shared.turns_dir(session.id));
        let listing = task::spawn_blocking(move || {
            let mut room = LONGEST;
            // The turns first: they are small, and matter most, since they say what happened.
            let mut files = history(&turns, TURNS, &mut room)?;
            files.extend(history(&output, HISTORY, &mut room)?);
            Ok(files)
        });
        let listing = listing.await;
        listing.map_err(|error| Refusal::failed(&error))?
    }

    async fn conversation(
        &self,
        facts: &Facts,
        accept_losses: bool,
    ) -> Result<Vec<ParcelFile>, Refusal> {
        let (host, facts) = (self.host()?, facts.clone());
        let finding = task::spawn_blocking(move || match conversation::find(&host, &facts)? {
            Found::Nothing => Ok(Vec::new()),
            Found::Unknown(_) if accept_losses => Ok(Vec::new()),
            Found::Unknown(words) => Err(Refusal::Invalid(words)),
            Found::File { name, path } => {
                let file = conversation::open(&host, &facts, &path)?;
                let file = ParcelFile::new(format!("{CONVERSATION}{name}"), file)?;
                match file.size > LONGEST {
                    true => Err(Refusal::Invalid(format!("it has {} bytes", file.size))),
                    false => Ok(vec![file]),
                }
            }
        });
        finding.await.map_err(|error| Refusal::failed(&error))?
    }
}

/// Refuses sessions that cannot move: only an agent that takes turns and is in no team can.
fn may_move(session: &Session) -> Result<(), Refusal> {
    let state = session.lock();
    let facts = &state.life.facts;
    if facts.mode != SessionMode::Sdk {
        return Err(Refusal::invalid(
            "only agents that take turns (mode sdk) can move: a program in a terminal cannot",
        ));
    }
    if facts.team_id.is_some() {
        return Err(Refusal::invalid("a member of a team cannot move: its team is kept here"));
    }
    if state.status() == SessionStatus::Exited {
        return Err(Refusal::invalid("it has ended, and nothing of it runs that could move"));
    }
    if state.life.is_leaving {
        return Err(Refusal::invalid("it moves to another machine already"));
    }
    Ok(())
}

fn written(facts: &Facts) -> Result<String, Refusal> {
    let written = facts::write(facts, (0, 0));
    written.ok_or_else(|| Refusal::Failed("the session cannot be written down".to_owned()))
}

/// The newest files of a directory that fit into `room` bytes together, the oldest first. Subtracts their sizes from
/// `room`.
fn history(dir: &Path, prefix: &str, room: &mut u64) -> Result<Vec<ParcelFile>, Refusal> {
    let names = crate::sessions::output::history::segments(dir);
    let names = names.map_err(|error| Refusal::failed(&error))?;
    let mut files = Vec::new();
    for name in names.into_iter().rev().take(MOST_HISTORY) {
        let path: PathBuf = dir.join(&name);
        let file = File::open(path).map_err(|error| Refusal::failed(&error))?;
        let file = ParcelFile::new(format!("{prefix}{name}"), file)?;
        let Some(left) = room.checked_sub(file.size) else { break };
        *room = left;
        files.push(file);
    }
    files.reverse();
    Ok(files)
}

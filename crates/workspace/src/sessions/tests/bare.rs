//! Sessions without processes, whose output comes from the test.

use std::sync::{
    Arc, Mutex, Weak,
    atomic::{AtomicBool, Ordering},
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{SessionId, SessionMode};
use session::terminal::size::Size;
use store::{VolatileStore, WorkspaceStore};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::{
    NodeSlot, Settings,
    audit::Audit,
    engine::{Engine, PermissionAnswer, TypingTime},
    events::Events,
    host::EngineHost,
    identity::ClientId,
    projects::Projects,
    refusal::Refusal,
    sessions::{
        Attachment, Dependencies, EngineStart, EngineStarter, Facts, Feed, NewEngine, NewSession,
        Sessions, TurnFollower, session::Session,
    },
};

/// Sessions, and their store.
pub(super) struct Bare {
    /// The directory of the histories and the agents' files, which is removed when this is dropped.
    pub(super) dir: TempDir,
    pub(super) store: Arc<VolatileStore>,
    pub(super) sessions: Sessions,
}

impl Bare {
    pub(super) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(super) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::with_starter(Weak::<SlowStarter>::new(), change)
    }

    pub(super) fn with_starter(
        engines: Weak<SlowStarter>,
        change: impl FnOnce(&mut Settings),
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let store = Arc::new(VolatileStore::default());
        let mut settings = Settings::new(dir.path().to_owned());
        change(&mut settings);
        let events = Events::default();
        let facts_store: Arc<dyn WorkspaceStore> = store.clone();
        let audit = Arc::new(Audit::new(store.clone()));
        let projects = Projects::new(
            Vec::new(),
            Arc::clone(&facts_store),
            audit,
            events.clone(),
            NodeSlot::default(),
        );
        let dependencies = Dependencies {
            store: facts_store,
            projects: Arc::new(projects),
            events,
            member_tokens: Arc::default(),
            engines,
            turns: Weak::<SlowStarter>::new(),
        };
        let sessions = Sessions::new(&settings, dependencies);
        sessions.begin();
        Self { dir, store, sessions }
    }

    /// A session whose engine notes its commands. The test feeds its output.
    pub(super) fn session(&self, mode: SessionMode) -> (Arc<Session>, Feed, Arc<EngineCalls>) {
        let session = self.sessions.add(facts(mode), Size::DEFAULT).unwrap();
        let heard = Arc::new(EngineCalls::default());
        let _first = session.engine.set(Box::new(Listens(Arc::clone(&heard))));
        let feed = Feed::new(&session);
        (session, feed, heard)
    }

    pub(super) fn attach(&self, id: SessionId, client: u64, after: Option<u64>) -> Attachment {
        self.sessions.attach(id, ClientId(client), after).unwrap()
    }
}

pub(super) fn facts(mode: SessionMode) -> Facts {
    let (provider, model, extra_args) = ("claude".to_owned(), None, Vec::new());
    let engine = NewEngine::Agent { provider, model, extra_args };
    let new = NewSession::new(engine, "/".to_owned());
    let (id, dir) = (SessionId::from_random(rand::random()), new.working_dir.clone());
    Facts { mode, ..new.facts(id, dir, None).unwrap() }
}

/// Starts engines that note their commands, each once the test lets it go on. It follows no turn.
#[derive(Default)]
pub(super) struct SlowStarter {
    /// Notified when an engine is to be started.
    pub(super) begun: Notify,
    /// Notified by the test, to let it go on.
    pub(super) goes_on: Arc<Notify>,
    pub(super) heard: Arc<EngineCalls>,
}

impl EngineStarter for SlowStarter {
    fn start(
        &self,
        _: Facts,
        _: Size,
        _: Feed,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>> {
        self.begun.notify_one();
        let (goes_on, heard) = (Arc::clone(&self.goes_on), Arc::clone(&self.heard));
        async move {
            goes_on.notified().await;
            let engine: Box<dyn Engine> = Box::new(Listens(heard));
            Ok((engine, None))
        }
        .boxed()
    }

    fn take_over(
        &self,
        _: Facts,
        _: Feed,
        _: process::Child,
    ) -> BoxFuture<'static, Result<EngineStart, Refusal>> {
        async { Err(Refusal::invalid("nothing is started")) }.boxed()
    }

    fn find_model(&self, _: &Facts) -> BoxFuture<'static, Result<(), Refusal>> {
        async { Ok(()) }.boxed()
    }

    fn check(&self, _: Facts) -> BoxFuture<'static, Result<(), Refusal>> {
        async { Err(Refusal::invalid("nothing is started")) }.boxed()
    }

    fn host(&self) -> Option<Arc<EngineHost>> {
        None
    }

    fn check_args(&self, _: &[String], _: bool) -> Result<(), Refusal> {
        Ok(())
    }
}

impl TurnFollower for SlowStarter {
    fn turn_started(&self, _: SessionId, _: u64) {}

    fn turn_ended(&self, _: SessionId, _: u64, _: bool, _: Option<String>) {}

    fn session_gone(&self, _: SessionId) {}
}

/// The commands that an engine got.
#[derive(Default)]
pub(super) struct EngineCalls {
    pub(super) typed: Mutex<Vec<Bytes>>,
    pub(super) answers: Mutex<Vec<PermissionAnswer>>,
    pub(super) sizes: Mutex<Vec<Size>>,
    pub(super) refuses: AtomicBool,
    pub(super) is_stopped: AtomicBool,
}

struct Listens(Arc<EngineCalls>);

impl Engine for Listens {
    fn type_in(&self, keys: Bytes) -> Result<TypingTime, Refusal> {
        if self.0.refuses.load(Ordering::Relaxed) {
            return Err(Refusal::invalid("not now"));
        }
        self.0.typed.lock().unwrap().push(keys);
        Ok(TypingTime::Now)
    }

    fn answer(&self, answer: Bytes) {
        self.0.typed.lock().unwrap().push(answer);
    }

    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal> {
        self.type_in(text.into())?;
        Ok(Some(self.0.typed.lock().unwrap().len() as u64))
    }

    fn interrupt(&self) -> Result<(), Refusal> {
        Ok(())
    }

    fn permit(&self, answer: PermissionAnswer) -> Result<(), Refusal> {
        self.0.answers.lock().unwrap().push(answer);
        Ok(())
    }

    fn resize(&self, size: Size) {
        self.0.sizes.lock().unwrap().push(size);
    }

    fn processes(&self) -> BoxFuture<'_, Vec<u32>> {
        async { Vec::new() }.boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        self.0.is_stopped.store(true, Ordering::Relaxed);
        async {}.boxed()
    }
}

//! The planner, and the servers and requests that it decides about, behind one lock that is never
//! held across an await.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
    time::{Instant, SystemTime},
};

use backend::{BackendError, Claim, HttpBackend};
use base::{Continuation, Endpoints, FactsByModel, ModelFacts};
use process::{Limits, ProcessError, Supervisor};
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot, watch},
    time,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::EnginesConfig,
    hold::EngineHold,
    learnt::Learnt,
    memory::Memory,
    model::EngineModel,
    planner::{Input, Output, Planner, Refusal, Spec},
    server::{self, ServerLog, Start},
};

type Answer = oneshot::Sender<Result<Claim, Refusal>>;

type Unloaded = oneshot::Sender<Result<(), Refusal>>;

/// The state that all parts share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) config: EnginesConfig,
    pub(crate) tasks: TaskTracker,
    /// Cancelled when all servers must end.
    over: CancellationToken,
    state: Mutex<State>,
    wake: Arc<Notify>,
    changes: watch::Sender<u64>,
    supervisor: tokio::sync::Mutex<Option<Supervisor>>,
    runtime: Handle,
    start: (Instant, SystemTime),
    /// Held while the learnt load times are written: one writer at a time, and the newest last.
    writing: Mutex<()>,
}

#[derive(Debug)]
struct State {
    planner: Planner,
    models: HashMap<Arc<str>, Listed>,
    running: HashMap<Arc<str>, Running>,
    claims: HashMap<u64, Answer>,
    unloads: HashMap<u64, Unloaded>,
    /// The number of the next claim or ask.
    next: u64,
    learnt: Learnt,
    endpoints: HashMap<String, Endpoints>,
    /// How the servers of models continue answers, for the models whose servers have run and can do
    /// so.
    continuations: HashMap<Arc<str>, Continuation>,
    /// The planner's number of changes that was last announced.
    seen: u64,
    /// When `keep_deadlines` will call the planner again, at the latest.
    timeout: Option<Instant>,
}

/// A model of the list. `revision` counts the changes of its file or command.
#[derive(Debug)]
struct Listed {
    model: Arc<EngineModel>,
    revision: u64,
    log: Arc<ServerLog>,
}

/// A model's server, from its start on.
#[derive(Debug)]
struct Running {
    generation: u64,
    stop: CancellationToken,
    backend: Option<Arc<HttpBackend>>,
    ended: watch::Receiver<Option<Arc<str>>>,
    doubt: Arc<Notify>,
}

/// Answers that are sent once the lock is free. Sending one may drop a claim, and that takes the
/// lock again.
#[derive(Default)]
struct Replies {
    claims: Vec<(Answer, Result<Claim, Refusal>)>,
    unloads: Vec<(Unloaded, Result<(), Refusal>)>,
}

impl Replies {
    fn give(self) {
        for (answer, result) in self.claims {
            // If nobody waits for the claim any more, dropping it gives the model back.
            drop(answer.send(result));
        }
        for (answer, result) in self.unloads {
            drop(answer.send(result));
        }
    }
}

impl Shared {
    pub(crate) fn new(config: EnginesConfig) -> Self {
        let planner = Planner::new(config.rules());
        let learnt = Learnt::read(&config.dir);
        let state = State {
            planner,
            models: HashMap::new(),
            running: HashMap::new(),
            claims: HashMap::new(),
            unloads: HashMap::new(),
            next: 0,
            learnt,
            endpoints: HashMap::new(),
            continuations: HashMap::new(),
            seen: 0,
            timeout: None,
        };
        Self {
            config,
            tasks: TaskTracker::new(),
            over: CancellationToken::new(),
            state: Mutex::new(state),
            wake: Arc::default(),
            changes: watch::Sender::default(),
            supervisor: tokio::sync::Mutex::default(),
            runtime: Handle::current(),
            start: (Instant::now(), SystemTime::now()),
            writing: Mutex::default(),
        }
    }

    /// The server of a model if it is loaded. Never waits for a load.
    pub(crate) fn claim_loaded(self: &Arc<Self>, model: &str) -> Option<Claim> {
        let mut state = self.state();
        let generation = state.planner.claim_loaded(model)?;
        state.claim(self, model, generation)
    }

    /// The server of a model. Waits until the model is loaded.
    pub(crate) async fn claim(self: &Arc<Self>, model: &str) -> Result<Claim, BackendError> {
        if let Some(claim) = self.claim_loaded(model) {
            return Ok(claim);
        }
        let model: Arc<str> = model.into();
        let (answer, answered) = oneshot::channel();
        let wait = self.begin_wait(&model, answer);
        let claimed = answered.await.unwrap_or(Err(Refusal::Gone));
        drop(wait);
        claimed.map_err(|refusal| error(&model, &refusal))
    }

    fn begin_wait(self: &Arc<Self>, model: &Arc<str>, answer: Answer) -> Wait {
        let mut state = self.state();
        state.next += 1;
        let claim = state.next;
        state.claims.insert(claim, answer);
        let wait = Wait { shared: Arc::clone(self), claim, model: Arc::clone(model) };
        self.handle_locked(state, Input::Claim { claim, model: Arc::clone(model) });
        wait
    }

    pub(crate) async fn unload(self: &Arc<Self>, model: &str) -> Result<(), BackendError> {
        let model: Arc<str> = model.into();
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            state.next += 1;
            let ask = state.next;
            state.unloads.insert(ask, answer);
            self.handle_locked(state, Input::Unload { ask, model: Arc::clone(&model) });
        }
        let unloaded = answered.await.unwrap_or(Err(Refusal::Gone));
        unloaded.map_err(|refusal| error(&model, &refusal))
    }

    /// Something happened to a server or a request.
    pub(crate) fn handle(self: &Arc<Self>, input: Input) {
        self.handle_locked(self.state(), input);
    }

    /// Reports that a server answers. Requests reach it from now on.
    pub(crate) fn started(
        self: &Arc<Self>,
        model: &Arc<str>,
        generation: u64,
        backend: Arc<HttpBackend>,
    ) {
        let mut state = self.state();
        match state.running.get_mut(model).filter(|it| it.generation == generation) {
            Some(running) => running.backend = Some(backend),
            None => return,
        }
        self.handle_locked(state, Input::Started { model: Arc::clone(model), generation });
    }

    /// Reports that a server has ended; by itself if there is a reason.
    pub(crate) fn ended(
        self: &Arc<Self>,
        model: &Arc<str>,
        generation: u64,
        reason: Option<Arc<str>>,
    ) {
        let mut state = self.state();
        if state.running.get(model).is_some_and(|it| it.generation == generation) {
            state.running.remove(model);
        }
        let model = Arc::clone(model);
        self.handle_locked(
            state,
            match reason {
                Some(reason) => Input::Failed { model, generation, reason },
                None => Input::Stopped { model, generation },
            },
        );
    }

    /// Reports that a request which had a model has ended. Only a look-up, unless requests wait for
    /// a model.
    pub(crate) fn release(self: &Arc<Self>, model: &Arc<str>, generation: u64, answered: bool) {
        let mut state = self.state();
        if !state.planner.release_quietly(now(), model, generation, answered) {
            let model = Arc::clone(model);
            return self.handle_locked(state, Input::Release { model, generation, answered });
        }
        let end = state.planner.unused_until(model);
        if let Some(end) = end.filter(|end| state.timeout.is_none_or(|at| at > *end)) {
            state.timeout = Some(end);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Calls the planner's `handle_timeout`. Returns when that is due again.
    pub(crate) fn next_timeout(self: &Arc<Self>) -> Option<Instant> {
        let (mut state, mut replies) = (self.state(), Replies::default());
        state.planner.handle_timeout(now());
        self.carry_out(&mut state, &mut replies);
        let next = state.planner.poll_timeout();
        state.timeout = next;
        drop(state);
        replies.give();
        next
    }

    pub(crate) fn wake(&self) -> Arc<Notify> {
        Arc::clone(&self.wake)
    }

    fn handle_locked(self: &Arc<Self>, mut state: MutexGuard<'_, State>, input: Input) {
        let mut replies = Replies::default();
        state.planner.handle(now(), input);
        self.carry_out(&mut state, &mut replies);
        let next = state.planner.poll_timeout();
        let is_sooner = next.is_some_and(|next| state.timeout.is_none_or(|at| at > next));
        if is_sooner {
            state.timeout = next;
        }
        drop(state);
        replies.give();
        if is_sooner {
            self.wake.notify_one();
        }
    }

    fn carry_out(self: &Arc<Self>, state: &mut State, replies: &mut Replies) {
        while let Some(output) = state.planner.poll_output() {
            match output {
                Output::Start { model, generation } => self.start(state, &model, generation),
                Output::Stop { model, generation } => state.stop(&model, generation),
                Output::Grant { claim, model, generation } => {
                    let granted = state.claim(self, &model, generation).ok_or(Refusal::Gone);
                    replies.claims.extend(state.claims.remove(&claim).zip(Some(granted)));
                }
                Output::Refuse { claim, refusal } => {
                    replies.claims.extend(state.claims.remove(&claim).zip(Some(Err(refusal))));
                }
                Output::Unloaded { ask, result } => {
                    replies.unloads.extend(state.unloads.remove(&ask).zip(Some(result)));
                }
            }
        }
        if state.seen != state.planner.changes() {
            state.seen = state.planner.changes();
            self.tell();
        }
    }

    /// Tells that something shown has changed.
    fn tell(&self) {
        self.changes.send_modify(|number| *number += 1);
    }

    fn start(self: &Arc<Self>, state: &mut State, name: &Arc<str>, generation: u64) {
        let Some(listed) = state.models.get(name) else { return };
        let (ending, ended) = watch::channel(None);
        let stop = self.over.child_token();
        let start = Start {
            shared: Arc::clone(self),
            name: Arc::clone(name),
            model: Arc::clone(&listed.model),
            generation,
            log: Arc::clone(&listed.log),
            expected: state.learnt.of(&listed.model),
            stop: stop.clone(),
            ending,
            doubt: Arc::default(),
        };
        let doubt = Arc::clone(&start.doubt);
        let running = Running { generation, stop, backend: None, ended, doubt };
        state.running.insert(Arc::clone(name), running);
        self.tasks.spawn_on(server::run(start), &self.runtime);
    }

    /// Notes how long a load took.
    pub(crate) fn learn(self: &Arc<Self>, model: &EngineModel, took: std::time::Duration) {
        self.state().learnt.note(model, took);
        let shared = Arc::clone(self);
        self.tasks.spawn_blocking_on(move || shared.write_learnt(), &self.runtime);
    }

    /// Writes what is known of load times at the moment of writing.
    fn write_learnt(&self) {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let learnt = self.state().learnt.clone();
        learnt.write(&self.config.dir);
    }

    /// Notes which endpoints the servers of a program have.
    pub(crate) fn learn_endpoints(&self, program: &str, endpoints: Endpoints) {
        let before = self.state().endpoints.insert(program.to_owned(), endpoints);
        if before != Some(endpoints) {
            self.tell();
        }
    }

    /// Notes how the server of a model continues answers; `None`: it cannot.
    pub(crate) fn learn_continuation(&self, model: &Arc<str>, how: Option<Continuation>) {
        let mut state = self.state();
        let before = match how {
            Some(how) if state.models.contains_key(model) => {
                state.continuations.insert(Arc::clone(model), how)
            }
            _ => state.continuations.remove(model),
        };
        drop(state);
        if before != how {
            self.tell();
        }
    }

    pub(crate) fn endpoints(&self, program: &str) -> Option<Endpoints> {
        let state = self.state();
        let models = state.models.values().map(|listed| &listed.model.program);
        let stated = models.filter(|it| it.name == program).find_map(|it| it.endpoints);
        stated.or_else(|| state.endpoints.get(program).copied())
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// The names of a program's models, sorted.
    pub(crate) fn models(&self, program: &str) -> Vec<String> {
        let state = self.state();
        let of = state.models.iter().filter(|(_, listed)| listed.model.program.name == program);
        let mut names: Vec<String> = of.map(|(name, _)| name.to_string()).collect();
        names.sort_unstable();
        names
    }

    pub(crate) fn has(&self, program: &str, model: &str) -> bool {
        let state = self.state();
        state.models.get(model).is_some_and(|listed| listed.model.program.name == program)
    }

    pub(crate) fn facts(&self, program: &str) -> FactsByModel {
        let state = self.state();
        let of = state.models.iter().filter(|(_, listed)| listed.model.program.name == program);
        of.map(|(name, listed)| (name.to_string(), self.facts_of(&state, name, listed))).collect()
    }

    fn facts_of(&self, state: &State, name: &str, listed: &Listed) -> ModelFacts {
        let continuation = state.continuations.get(name).copied();
        let stated = ModelFacts { continuation, ..listed.model.facts.clone() };
        let Some(view) = state.planner.view(name) else { return stated };
        let last_used_ms = view.last_used.map(|used| {
            let (instant, time) = self.start;
            let used = time + used.saturating_duration_since(instant);
            base::unix_ms(used)
        });
        let known = ModelFacts {
            memory_bytes: Some(view.need.total()),
            load: Some(view.load),
            load_ms: state.learnt.of(&listed.model).map(base::millis),
            last_used_ms,
            ..ModelFacts::default()
        };
        known.or(stated)
    }

    pub(crate) fn last_lines(&self, model: &str) -> Vec<String> {
        self.state().models.get(model).map(|listed| listed.log.last_lines()).unwrap_or_default()
    }

    pub(crate) fn set_models(self: &Arc<Self>, models: Vec<EngineModel>) {
        let mut state = self.state();
        // Looked at under the lock: `shut_down` sets it before it clears the models.
        if self.over.is_cancelled() || state.has_exactly(&models) {
            return;
        }
        let mut known = std::mem::take(&mut state.models);
        for model in models {
            if state.models.contains_key(model.name.as_str()) {
                tracing::warn!(model = model.name, "two model files have this name: one is served");
                continue;
            }
            let name: Arc<str> = model.name.as_str().into();
            let listed = Listed::new(model, known.remove(&name), &self.config);
            state.models.insert(name, listed);
        }
        let State { models, continuations, .. } = &mut *state;
        continuations.retain(|name, _| models.contains_key(name));
        let specs = state.models.iter().map(|(name, it)| (Arc::clone(name), self.spec(it)));
        let specs = Input::Models(specs.collect());
        self.handle_locked(state, specs);
        self.tell();
    }

    fn spec(&self, listed: &Listed) -> Spec {
        let model = &listed.model;
        Spec {
            need: self.config.budget.need(model.memory_bytes),
            keep: model.keep,
            ttl: model.ttl,
            group: model.group.clone(),
            revision: listed.revision,
        }
    }

    pub(crate) fn shut_down(self: &Arc<Self>) {
        self.over.cancel();
        let mut state = self.state();
        state.models.clear();
        self.handle_locked(state, Input::Models(Vec::new()));
        self.tasks.close();
    }

    /// The process that holds the servers; it is started when it is first needed, and again if it has ended.
    pub(crate) async fn supervisor(&self) -> Result<Supervisor, ProcessError> {
        let mut supervisor = self.supervisor.lock().await;
        if let Some(alive) = supervisor.as_ref().filter(|it| it.is_alive()) {
            return Ok(alive.clone());
        }
        let started = match &self.config.supervisor {
            None => Supervisor::start_ourselves(Limits::default()).await?,
            Some((program, args)) => {
                let args: Vec<&str> = args.iter().map(String::as_str).collect();
                Supervisor::start(program, &args).await?
            }
        };
        *supervisor = Some(started.clone());
        Ok(started)
    }

    pub(crate) async fn end_supervisor(&self) {
        if let Some(supervisor) = self.supervisor.lock().await.take() {
            supervisor.shutdown(std::time::Duration::ZERO).await;
        }
    }

    /// Reports the memory that a server was seen to take. The part on a GPU is not seen.
    pub(crate) fn measured(self: &Arc<Self>, model: &Arc<str>, generation: u64, bytes: u64) {
        if self.config.budget.vram == 0 {
            let memory = Memory { vram: 0, ram: bytes };
            self.handle(Input::Measured { model: Arc::clone(model), generation, memory });
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Whether the list has exactly these models already.
    fn has_exactly(&self, models: &[EngineModel]) -> bool {
        let is_known = |model: &EngineModel| {
            self.models.get(model.name.as_str()).is_some_and(|listed| *listed.model == *model)
        };
        models.len() == self.models.len() && models.iter().all(is_known)
    }

    fn claim(&self, shared: &Arc<Shared>, model: &str, generation: u64) -> Option<Claim> {
        let (name, running) = self.running.get_key_value(model)?;
        let backend = running.backend.clone()?;
        let hold = EngineHold {
            shared: Arc::clone(shared),
            model: Arc::clone(name),
            generation,
            ended: running.ended.clone(),
            doubt: Arc::clone(&running.doubt),
            answered: AtomicBool::new(false),
        };
        Some(Claim::new(backend, hold))
    }

    fn stop(&self, model: &str, generation: u64) {
        if let Some(running) = self.running.get(model).filter(|it| it.generation == generation) {
            running.stop.cancel();
        }
    }
}

impl Listed {
    fn new(model: EngineModel, before: Option<Self>, config: &EnginesConfig) -> Self {
        let Some(before) = before else {
            let log = Arc::new(ServerLog::new(&config.dir, &model.name));
            return Self { model: Arc::new(model), revision: 0, log };
        };
        let is_same = before.model.starts_like(&model);
        let revision = before.revision + u64::from(!is_same);
        Self { model: Arc::new(model), revision, log: before.log }
    }
}

/// A request that waits for a model. Dropping this cancels the wait.
struct Wait {
    shared: Arc<Shared>,
    claim: u64,
    model: Arc<str>,
}

impl Drop for Wait {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if state.claims.remove(&self.claim).is_some() {
            let (claim, model) = (self.claim, Arc::clone(&self.model));
            self.shared.handle_locked(state, Input::Cancel { claim, model });
        }
    }
}

/// The time by the runtime's clock, which tests can pause.
fn now() -> Instant {
    time::Instant::now().into_std()
}

fn error(model: &Arc<str>, refusal: &Refusal) -> BackendError {
    BackendError::Engine {
        model: Arc::clone(model),
        reason: refusal.to_string().into(),
        busy: refusal.is_passing(),
    }
}

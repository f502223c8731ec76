//! The machine of an agent, and the state beside it.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use base::Secret;
use process::{Command, Handle, Stdio};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use session::agent::{Config, Input, Launch, Line, Output, Turns, TurnsError};
use tokio::sync::{Notify, watch};

use super::input::ProcessState;
use crate::{
    agents::{gateway::SessionKey, plan::Plan},
    engine::Receipt,
    host::EngineHost,
    refusal::Refusal,
    sessions::{Activity, Feed},
    users,
};

/// The state that an engine and its task share.
pub(super) struct Core {
    pub(super) plan: Plan,
    pub(super) feed: Feed,
    /// Weak: the task may outlive the workspace, and must not keep the workspace's supervisor alive.
    pub(super) host: Weak<EngineHost>,
    /// How long a process may take to end after each request to end.
    pub(super) grace: Duration,
    config: Config,
    max_processes: Option<u32>,
    machine: Mutex<Machine>,
    /// Notified when the machine got an input.
    pub(super) news: Notify,
    done: watch::Sender<bool>,
    /// Whether the machine is frozen and at rest, and all its outputs are carried out.
    at_rest: watch::Sender<bool>,
}

/// The facts about an agent that the next daemon has to know.
#[derive(Serialize, Deserialize)]
pub(super) struct AgentState {
    pub(super) process: ProcessState,
    turns: Value,
    /// The agent's key for this server's models, and the server's address.
    key: Option<String>,
    server: Option<String>,
}

impl AgentState {
    pub(super) fn read(state: &[u8]) -> Option<Self> {
        serde_json::from_slice(state).ok()
    }
}

/// The place of a prompt that was taken.
pub(super) struct PromptPosition {
    /// Whether it is the first prompt, so that the task is to be started.
    pub(super) is_first: bool,
    /// The number of its turn, if that is known.
    pub(super) turn: Option<u64>,
}

#[derive(Default)]
struct Machine {
    /// `None` before the first prompt.
    turns: Option<Turns>,
    /// The receipts of prompts whose turns have not begun, in order; `None` for a prompt without
    /// one.
    receipts: VecDeque<Option<Receipt>>,
    key: Option<SessionKey>,
    handle: Option<Handle>,
    is_stopped: bool,
    /// The prompts that waited when the session was stored, until the machine gets them.
    waiting: Vec<String>,
    /// Whether no further turn may begin.
    is_frozen: bool,
    /// Whether prompts are refused.
    is_sealed: bool,
}

/// Why a prompt is refused while the session moves.
const SEALED: &str = "the session moves to another machine just now: send it again in a moment";

impl Core {
    pub(super) fn new(host: &Arc<EngineHost>, plan: Plan, feed: Feed) -> Self {
        let settings = &host.settings;
        let grace = settings.stop_grace;
        let config = Config {
            request_prefix: plan.facts.id.to_string(),
            turn: plan.facts.turn,
            idle_timeout: settings.agents.idle,
            silence_timeout: settings.agents.silence,
            permission_timeout: settings.agents.permission,
            grace,
            exit_timeout: grace * 2,
            interrupt_timeout: grace * 2,
        };
        let waiting = plan.facts.waiting.clone();
        Self {
            plan,
            feed,
            host: Arc::downgrade(host),
            grace,
            config,
            max_processes: settings.max_processes,
            machine: Mutex::new(Machine { waiting, ..Machine::default() }),
            news: Notify::new(),
            done: watch::Sender::new(false),
            at_rest: watch::Sender::new(false),
        }
    }

    /// The core of an agent whose process outlived an earlier daemon.
    pub(super) fn resume(
        host: &Arc<EngineHost>,
        plan: Plan,
        feed: Feed,
        state: &AgentState,
    ) -> Result<Self, Refusal> {
        let core = Self::new(host, plan, feed);
        // The process that runs has the old address in its environment.
        if state.key.is_some() && state.server != host.gateway.get().map(|server| server.url) {
            return Err(Refusal::invalid("this server has another address than the agent knows"));
        }
        let key = state.key.as_deref().map(Secret::from);
        let (dialect, key) = core.plan.running_dialect(host, key)?;
        {
            let mut machine = core.machine();
            let waiting = std::mem::take(&mut machine.waiting);
            // Receipts are in the memory of the daemon that gave them; teams offer their messages
            // again.
            machine.receipts = waiting.iter().map(|_| None).collect();
            let turns =
                Turns::restored(core.config.clone(), dialect, waiting, state.turns.clone(), now());
            let unknown =
                || Refusal::invalid("the state of its turn is not the one that is stored");
            machine.turns = Some(turns.ok_or_else(unknown)?);
            machine.key = key;
        }
        Ok(core)
    }

    /// Asks the open questions again, and announces the running turn.
    pub(super) fn ask_again(&self) {
        let (pending, is_working) = {
            let machine = self.machine();
            let turns = machine.turns.as_ref();
            (turns.map(Turns::pending), turns.and_then(Turns::running_turn).is_some())
        };
        for open in pending.into_iter().flatten() {
            self.feed.ask(open.request_id, open.tool, open.input);
        }
        if is_working {
            self.feed.activity(Activity::Working);
        }
    }

    /// The state for the next daemon.
    pub(super) fn state(&self, process: ProcessState) -> Option<Vec<u8>> {
        let machine = self.machine();
        let turns = machine.turns.as_ref()?.saved_state(now());
        let key = machine.key.as_ref().map(|key| key.secret().expose().to_owned());
        drop(machine);
        let host = self.host.upgrade().filter(|_| key.is_some());
        let server = host.and_then(|host| host.gateway.get()).map(|server| server.url);
        serde_json::to_vec(&AgentState { process, turns, key, server }).ok()
    }

    pub(super) fn prompt(
        &self,
        text: String,
        receipt: Option<Receipt>,
    ) -> Result<PromptPosition, Refusal> {
        let mut machine = self.machine();
        if machine.is_stopped {
            return Err(refusal(&TurnsError::Stopped));
        }
        if machine.is_sealed {
            return Err(Refusal::invalid(SEALED));
        }
        let is_first = machine.turns.is_none();
        let (mut turns, key) = match machine.turns.take() {
            Some(turns) => (turns, machine.key.take()),
            None => self.wake(&mut machine)?,
        };
        let stored = receipt.is_none().then(|| text.clone());
        let outcome = turns.handle(now(), Input::Prompt { text });
        // The prompt is the last in the queue, or the running one.
        let turn = turns.running_turn().map(|running| running + turns.queued() as u64);
        // A first prompt that is refused leaves no machine, because no task is started for it.
        if outcome.is_ok() || !is_first {
            (machine.turns, machine.key) = (Some(turns), key);
        }
        outcome.map_err(|error| refusal(&error))?;
        machine.receipts.push_back(receipt);
        // Under the machine's lock, so that the stored prompts have the order of their turns.
        if let Some(text) = stored {
            self.feed.prompt_waits(text);
        }
        Ok(PromptPosition { is_first, turn })
    }

    /// Begins with the prompts that waited when the session was stored. Returns whether the task is
    /// to be started for them.
    pub(super) fn go_on(&self) -> Result<bool, Refusal> {
        let mut machine = self.machine();
        if machine.waiting.is_empty() || machine.turns.is_some() || machine.is_stopped {
            return Ok(false);
        }
        let (turns, key) = self.wake(&mut machine)?;
        (machine.turns, machine.key) = (Some(turns), key);
        Ok(true)
    }

    /// Lets no further turn begin.
    pub(super) fn freeze(&self) {
        let mut machine = self.machine();
        machine.is_frozen = true;
        match machine.turns.as_mut() {
            // The task notes when the machine is at rest.
            Some(turns) => drop(turns.handle(now(), Input::Freeze)),
            None => drop(self.at_rest.send_replace(true)),
        }
    }

    /// Takes no more prompts, and returns those that wait.
    pub(super) fn seal(&self) -> Vec<String> {
        let mut machine = self.machine();
        machine.is_sealed = true;
        match &machine.turns {
            Some(turns) => turns.waiting().map(str::to_owned).collect(),
            None => machine.waiting.clone(),
        }
    }

    pub(super) fn thaw(&self) {
        let mut machine = self.machine();
        (machine.is_frozen, machine.is_sealed) = (false, false);
        self.at_rest.send_replace(false);
        if let Some(turns) = machine.turns.as_mut() {
            drop(turns.handle(now(), Input::Thaw));
        }
    }

    /// Notes that the machine is at rest, if it is. The caller has carried out all its outputs.
    pub(super) fn note_rest(&self) {
        let machine = self.machine();
        if machine.turns.as_ref().is_some_and(Turns::is_at_rest) {
            self.at_rest.send_replace(true);
        }
    }

    pub(super) async fn at_rest(&self) {
        let mut at_rest = self.at_rest.subscribe();
        let _closed = at_rest.wait_for(|at_rest| *at_rest).await.is_err();
    }

    /// Passes an input to the machine.
    pub(super) fn tell(&self, input: Input) -> Result<(), Refusal> {
        let mut machine = self.machine();
        let turns = machine.turns.as_mut().ok_or(TurnsError::NoTurn);
        let result = turns.and_then(|turns| turns.handle(now(), input));
        result.map_err(|error| refusal(&error))
    }

    pub(super) fn happened(&self, input: Input) {
        // No fault: the turn that the input was for may have just ended.
        if let Err(error) = self.tell(input) {
            tracing::debug!(%error, session = %self.feed.session(), "an agent's turn");
        }
    }

    /// Passes a line to the machine. Returns the outputs that were pending before, and then those
    /// that the line caused.
    pub(super) fn heard(&self, line: Line) -> (Vec<Output>, Vec<Output>) {
        let mut machine = self.machine();
        let Some(turns) = machine.turns.as_mut() else { return Default::default() };
        let before = std::iter::from_fn(|| turns.poll_output()).collect();
        if let Err(error) = turns.handle(now(), Input::Line(line)) {
            tracing::debug!(%error, session = %self.feed.session(), "an agent's line");
        }
        (before, std::iter::from_fn(|| turns.poll_output()).collect())
    }

    /// The next thing to do.
    pub(super) fn next_output(&self) -> Option<Output> {
        self.machine().turns.as_mut()?.poll_output()
    }

    /// When [`Core::timeout`] is to be called.
    pub(super) fn due(&self) -> Option<Instant> {
        self.machine().turns.as_ref()?.poll_timeout()
    }

    pub(super) fn timeout(&self) {
        if let Some(turns) = self.machine().turns.as_mut() {
            turns.handle_timeout(now());
        }
    }

    /// Takes the receipt of the prompt whose turn begins.
    pub(super) fn next_receipt(&self) -> Option<Receipt> {
        self.machine().receipts.pop_front().flatten()
    }

    pub(super) fn is_working(&self) -> bool {
        self.machine().turns.as_ref().is_some_and(|turns| turns.running_turn().is_some())
    }

    /// Whether the agent was stopped and has no process left.
    pub(super) fn is_over(&self) -> bool {
        let machine = self.machine();
        machine.is_stopped && machine.turns.as_ref().is_none_or(|turns| !turns.has_process())
    }

    /// Stops the agent; a second call kills its process. Returns whether the caller has to wait for the
    /// end.
    pub(super) fn stop(&self) -> bool {
        let mut machine = self.machine();
        machine.is_stopped = true;
        let receipts = std::mem::take(&mut machine.receipts);
        let Some(turns) = machine.turns.as_mut() else { return false };
        let stopped = turns.handle(now(), Input::Stop);
        drop(machine);
        // Dropped after the lock is released: the team gets its messages back, and may act at once.
        drop(receipts);
        stopped.is_ok() && !*self.done.borrow()
    }

    pub(super) fn end(&self) {
        // Dropped without the machine's lock, since the drop takes the lock of all keys.
        let key = self.machine().key.take();
        drop(key);
        self.done.send_replace(true);
    }

    pub(super) async fn done(&self) {
        let mut done = self.done.subscribe();
        let _closed = done.wait_for(|done| *done).await.is_err();
    }

    pub(super) fn handle(&self) -> Option<Handle> {
        self.machine().handle.clone()
    }

    pub(super) fn set_handle(&self, handle: Option<Handle>) {
        self.machine().handle = handle;
    }

    /// The command to start, with its user and directory.
    pub(super) fn command(&self, launch: &Launch) -> Result<Command, Refusal> {
        let run_as = self.plan.run_as.clone();
        let user = run_as.clone().map_or_else(users::current, Ok)?;
        Ok(Command {
            id: self.plan.facts.id.uuid(),
            program: launch.program.clone().into(),
            args: launch.args.iter().map(Into::into).collect(),
            env: process::clean_environment(&self.plan.env(launch), &user),
            working_dir: self.plan.facts.working_dir.clone().into(),
            stdio: Stdio::Pipes,
            run_as,
            max_processes: self.max_processes,
        })
    }

    /// Makes the machine, with the prompts that waited when the session was stored.
    fn wake(&self, machine: &mut Machine) -> Result<(Turns, Option<SessionKey>), Refusal> {
        let host = self.host.upgrade().ok_or_else(closing)?;
        let team = self.feed.team().or(self.plan.facts.team_id);
        let (dialect, key) = self.plan.dialect(&host, team)?;
        let conversation = self.plan.facts.conversation.clone();
        let mut turns = Turns::new(self.config.clone(), dialect, conversation);
        if machine.is_frozen {
            turns.handle(now(), Input::Freeze).map_err(|error| refusal(&error))?;
        }
        for text in std::mem::take(&mut machine.waiting) {
            // They were accepted before, so they are neither too long nor too many.
            match turns.handle(now(), Input::Prompt { text }) {
                Ok(()) => machine.receipts.push_back(None),
                Err(error) => tracing::error!(%error, "a prompt that waited is lost"),
            }
        }
        Ok((turns, key))
    }

    fn machine(&self) -> MutexGuard<'_, Machine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An error of the machine as a refusal.
fn refusal(error: &TurnsError) -> Refusal {
    match error {
        TurnsError::Stopped => Refusal::Ended(error.to_string()),
        _ => Refusal::Invalid(error.to_string()),
    }
}

pub(super) fn closing() -> Refusal {
    Refusal::Failed("the workspace is shutting down".to_owned())
}

fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

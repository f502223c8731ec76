//! One agent session, turn by turn.
//!
//! A pure state machine. Its driver
//!
//! 1. passes in events ([`Turns::handle`]) and calls [`Turns::handle_timeout`] when a deadline has
//!    come, at the latest at [`Turns::poll_timeout`],
//! 2. after every call carries out each [`Output`] of [`Turns::poll_output`], in order. After
//!    [`Output::Kill`] it always passes in [`Input::Exited`].
//!
//! Each turn that starts ends exactly once. Prompts are worked on in order. There is never a second
//! process beside the first.
//!
//! - [`Config`], [`Input`], [`Output`], [`TurnsError`]
//! - `process`: the process, from its start to its certain end
//! - `permission`: the agent's permission requests; `lines`: its output
//! - `saved_state`: the state of a session whose process outlives its driver
//! - `halting`: ends a turn before the agent is done
//! - `tail`: the end of the output that is not JSON

mod config;
mod halting;
mod lines;
mod output;
mod permission;
mod process;
mod saved_state;
mod tail;
#[cfg(test)]
mod tests;

use std::{collections::VecDeque, time::Instant};

pub use config::{Config, MAX_LINE, MAX_PENDING, MAX_PROMPT, MAX_QUEUED, MAX_QUEUED_BYTES};
pub use output::{Input, Output, TurnEnd, TurnsError};
pub use permission::Pending;
use protocol::workspace::{AgentEvent, TurnOutcome};
use serde::{Deserialize, Serialize};

use self::{permission::OpenPermission, process::Process, tail::Tail};
use super::dialect::words;
use crate::agent::{
    dialect::contract::{Dialect, TurnResult},
    usage::Usage,
};

/// One agent session.
#[derive(Debug)]
pub struct Turns {
    config: Config,
    dialect: Box<dyn Dialect>,
    conversation: Option<String>,
    queue: VecDeque<String>,
    /// The number of the newest turn.
    number: u64,
    turn: Option<Turn>,
    process: Process,
    /// The time at which the warm process became idle, or last printed a line since then. `None`
    /// while it is not idle.
    idle_since: Option<Instant>,
    permissions: Vec<OpenPermission>,
    /// The number of permission requests in this turn so far.
    requests: u64,
    tail: Tail,
    /// The usage of the conversation so far, as last reported.
    used: Option<Usage>,
    is_stopped: bool,
    /// Whether no further turn may begin.
    is_frozen: bool,
    outputs: VecDeque<Output>,
}

/// A turn that runs.
#[derive(Debug)]
struct Turn {
    number: u64,
    prompt: String,
    stage: Stage,
    /// The time of the agent's last progress.
    last_progress: Instant,
    /// The time by which the turn has to end after an interrupt.
    interrupt_deadline: Option<Instant>,
    /// The time by which the process has to end, since its answer is complete.
    exit_deadline: Option<Instant>,
    /// Whether the agent refused the conversation and the turn began again in a new one.
    is_anew: bool,
    /// Whether a notice about a line that is not JSON was already sent.
    has_noted: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Stage {
    /// The prompt is not given yet: an older process has to end first.
    Waiting,
    Running,
}

impl Turns {
    /// A session that resumes a conversation or begins a new one. No process is started before the
    /// first prompt.
    pub fn new(config: Config, dialect: Box<dyn Dialect>, conversation: Option<String>) -> Self {
        Self {
            number: config.turn,
            config,
            used: dialect.used(),
            dialect,
            conversation: conversation.filter(|id| words::is_id(id)),
            queue: VecDeque::new(),
            turn: None,
            process: Process::None,
            idle_since: None,
            permissions: Vec::new(),
            requests: 0,
            tail: Tail::default(),
            is_stopped: false,
            is_frozen: false,
            outputs: VecDeque::new(),
        }
    }

    /// Handles an input.
    ///
    /// # Errors
    ///
    /// When the input is refused. Nothing has changed then.
    pub fn handle(&mut self, now: Instant, input: Input) -> Result<(), TurnsError> {
        match input {
            Input::Prompt { text } => self.enqueue(text)?,
            Input::Line(line) => self.line(now, &line),
            Input::Stderr(text) => self.tail.push(&text),
            Input::Exited(exit) => self.exited(now, exit),
            Input::SpawnFailed(why) => self.spawn_failed(now, &why),
            Input::Interrupt => self.interrupt(now)?,
            Input::Permission { request_id, allow, message } => {
                self.decide(now, &request_id, allow, message)?;
            }
            Input::Stop => self.stop(now),
            Input::Freeze => self.freeze(now),
            Input::Thaw => self.is_frozen = false,
        }
        self.advance(now);
        Ok(())
    }

    /// Handles the deadlines that have passed.
    pub fn handle_timeout(&mut self, now: Instant) {
        let due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        // First: refusing a request counts as progress, so the turn must not fail for silence as well.
        self.expire(now);
        if due(self.process.deadline()) {
            self.close_harder(now);
        }
        if due(self.turn.as_ref().and_then(|turn| turn.interrupt_deadline)) {
            self.kill_turn(now);
        }
        if due(self.turn.as_ref().and_then(|turn| turn.exit_deadline)) {
            self.end_without_exit(now);
        }
        if due(self.silence_deadline()) {
            self.fail_silent_turn(now);
        }
        if due(self.idle_deadline()) {
            self.idle_since = None;
            self.close_process(now);
        }
        self.advance(now);
    }

    /// The latest time for the next call of [`Turns::handle_timeout`].
    pub fn poll_timeout(&self) -> Option<Instant> {
        let turn = self.turn.as_ref();
        let moments = [
            self.permission_deadline(),
            self.process.deadline(),
            turn.and_then(|turn| turn.interrupt_deadline),
            turn.and_then(|turn| turn.exit_deadline),
            self.silence_deadline(),
            self.idle_deadline(),
        ];
        moments.into_iter().flatten().min()
    }

    /// The next output to carry out.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The number of the running turn.
    pub fn running_turn(&self) -> Option<u64> {
        self.turn.as_ref().map(|turn| turn.number)
    }

    /// The number of prompts that wait.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// The prompts that wait, the oldest first.
    pub fn waiting(&self) -> impl Iterator<Item = &str> {
        self.queue.iter().map(String::as_str)
    }

    fn queued_bytes(&self) -> usize {
        self.queue.iter().map(String::len).sum()
    }

    /// Whether no turn runs, none can begin, and there is no process.
    pub fn is_at_rest(&self) -> bool {
        self.is_frozen && self.turn.is_none() && !self.has_process()
    }

    /// Whether the session has a process, even one that is ending.
    pub fn has_process(&self) -> bool {
        self.process != Process::None
    }

    /// The conversation that the next process would resume.
    pub fn conversation(&self) -> Option<&str> {
        self.conversation.as_deref()
    }

    /// The provider's name.
    pub fn provider(&self) -> &str {
        self.dialect.provider()
    }

    fn enqueue(&mut self, text: String) -> Result<(), TurnsError> {
        match text.len() {
            _ if self.is_stopped => return Err(TurnsError::Stopped),
            _ if text.trim().is_empty() => return Err(TurnsError::EmptyPrompt),
            bytes if bytes > MAX_PROMPT => return Err(TurnsError::PromptTooLong { bytes }),
            _ if (self.turn.is_some() || self.is_frozen) && self.queue.len() >= MAX_QUEUED => {
                return Err(TurnsError::QueueFull);
            }
            bytes if self.queued_bytes() + bytes > MAX_QUEUED_BYTES => {
                return Err(TurnsError::QueueTooLong);
            }
            _ => {}
        }
        self.queue.push_back(text);
        Ok(())
    }

    /// Begins the next turn, and gives its prompt to a process, as far as possible now.
    fn advance(&mut self, now: Instant) {
        if self.turn.is_none()
            && !self.is_frozen
            && let Some(prompt) = self.queue.pop_front()
        {
            self.begin(now, prompt);
        }
        if self.is_waiting() {
            self.give_prompt(now);
        }
    }

    fn begin(&mut self, now: Instant, prompt: String) {
        self.number += 1;
        self.requests = 0;
        self.idle_since = None;
        let shown = Some(words::prompt(&prompt));
        self.turn = Some(Turn::new(self.number, prompt, now));
        self.event(AgentEvent::TurnStarted { turn: self.number, prompt: shown });
    }

    /// Ends the turn. Its open permission requests are cancelled.
    fn end(&mut self, now: Instant, ended: TurnResult) {
        let Some(turn) = self.turn.take() else { return };
        self.cancel_all();
        // If the answer was complete before the interrupt reached the program, the turn counts as completed.
        let was_interrupted =
            turn.interrupt_deadline.is_some() && ended.outcome != TurnOutcome::Completed;
        let outcome = if was_interrupted { TurnOutcome::Interrupted } else { ended.outcome };
        let error = ended.error.filter(|_| outcome == TurnOutcome::Failed);
        let (turn, text) = (turn.number, ended.text);
        self.report_used();
        self.event(AgentEvent::TurnEnded {
            turn,
            outcome,
            error: error.clone(),
            text: text.clone(),
        });
        let end = TurnEnd { turn, outcome, text, error, usage: ended.usage };
        self.outputs.push_back(Output::TurnEnded(end));
        self.release_process(now);
    }

    /// Reports the usage of the whole conversation if it has changed. The driver stores it, since a later
    /// process goes on counting from it.
    fn report_used(&mut self) {
        let used = self.dialect.used().filter(|used| self.used != Some(*used));
        if let Some(used) = used {
            self.used = Some(used);
            self.outputs.push_back(Output::Used(used));
        }
    }

    fn fail(&mut self, now: Instant, why: &str) {
        self.end(now, TurnResult::failed(why, Usage::default()));
    }

    /// The time at which the turn has been silent for too long. `None` while the agent waits for a
    /// person's decision, which has a deadline of its own, and while the turn waits for an older process
    /// to end: the agent has no prompt yet, so it cannot answer.
    fn silence_deadline(&self) -> Option<Instant> {
        let turn =
            self.turn.as_ref().filter(|_| self.is_running() && self.permissions.is_empty())?;
        Some(turn.last_progress + self.config.silence_timeout)
    }

    fn fail_silent_turn(&mut self, now: Instant) {
        let seconds = self.config.silence_timeout.as_secs();
        let why = self.tail.explain(&format!("The agent said nothing for {seconds} s."));
        self.close_process(now);
        self.fail(now, &why);
    }

    /// The time at which a warm, idle process is stopped. A process whose conversation cannot be
    /// resumed is never stopped.
    fn idle_deadline(&self) -> Option<Instant> {
        let since =
            self.idle_since.filter(|_| self.turn.is_none() && self.permissions.is_empty())?;
        let stops = self.process == Process::Live && self.dialect.is_resumable();
        stops.then(|| since + self.config.idle_timeout)
    }

    fn event(&mut self, event: AgentEvent) {
        self.outputs.push_back(Output::Event(event));
    }

    fn notice(&mut self, message: &str) {
        self.event(AgentEvent::Notice { message: words::notice(message) });
    }
}

impl Turn {
    fn new(number: u64, prompt: String, now: Instant) -> Self {
        Self {
            number,
            prompt,
            stage: Stage::Waiting,
            last_progress: now,
            interrupt_deadline: None,
            exit_deadline: None,
            is_anew: false,
            has_noted: false,
        }
    }
}

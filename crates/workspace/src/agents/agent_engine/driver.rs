//! The task that carries out the outputs of an agent's machine, in order.

use std::{sync::Arc, time::Duration};

use protocol::workspace::{AgentEvent, TurnOutcome};
use session::agent::{Input, Launch, Line, Output, TurnEnd};
use tokio::{task, time::Instant};
use tracing::Instrument as _;

use super::{
    core::{Core, closing},
    process::{Process, ProcessEvent, exit as exited_as, signal as to_supervisor, until},
};
use crate::{
    refusal::{Refusal, blocking},
    sessions::{Activity, Feed},
};

/// How long the background processes of an agent have to end after the agent's process.
const LEFT: Duration = Duration::from_secs(1);
/// How long a killed process may still exist. After that it is given up, since the kernel holds it up.
const UNKILLABLE: Duration = Duration::from_secs(15);

/// The warning about a state that the journal does not take.
const TOO_LONG: &str = "an agent would end with this server: its state is too long to be kept";

/// The task of one agent.
pub(super) struct Driver {
    core: Arc<Core>,
    process: Option<Process>,
    /// Whether the state of the process was kept last time, or there was none yet.
    is_kept: bool,
    /// When a process that was killed is given up.
    lost_at: Option<Instant>,
}

/// The next event for the task.
enum DriverEvent {
    /// The machine got an input.
    News,
    /// A deadline of the machine has passed.
    Due,
    Process(ProcessEvent),
    /// A killed process still exists, and is given up.
    Lost,
}

impl Driver {
    pub(super) fn new(core: Arc<Core>, process: Option<Process>) -> Self {
        Self { core, process, is_kept: true, lost_at: None }
    }

    pub(super) async fn run(mut self) {
        loop {
            self.carry_out_all().await;
            // After the outputs: the next daemon carries out again every output that the kept state does not
            // include.
            self.keep_state();
            self.core.note_rest();
            if self.core.is_over() {
                break;
            }
            match self.happens().await {
                DriverEvent::News => {}
                DriverEvent::Due => self.core.timeout(),
                DriverEvent::Process(ProcessEvent::Said(line)) => self.line(line).await,
                DriverEvent::Process(ProcessEvent::Complained(text)) => {
                    self.core.happened(Input::Stderr(text));
                }
                DriverEvent::Process(ProcessEvent::Exited(exit)) => self.exited(exit).await,
                DriverEvent::Lost => self.exited(process::Exit::Lost).await,
            }
        }
        // The private files hold keys, so they are removed before the end is reported.
        let private = self.core.plan.private.clone();
        let _removed = task::spawn_blocking(move || private.remove()).await;
        self.core.end();
    }

    async fn happens(&mut self) -> DriverEvent {
        let due = self.core.due().map(Instant::from_std);
        let lost_at = self.lost_at;
        // A branch that is dropped loses no event.
        tokio::select! {
            () = self.core.news.notified() => DriverEvent::News,
            () = until(due) => DriverEvent::Due,
            event = next(&mut self.process) => DriverEvent::Process(event),
            () = until(lost_at) => DriverEvent::Lost,
        }
    }

    /// Keeps the state for the next daemon; then lets the queued input go to the process. The caller has carried out
    /// all outputs.
    fn keep_state(&mut self) {
        let Some(process) = &mut self.process else { return };
        let state = process.state();
        if let Some(state) = self.core.state(state) {
            match process.journal().keep_state(&state) {
                Ok(is_kept) => {
                    // Once, not after each event.
                    if self.is_kept && !is_kept {
                        tracing::warn!(bytes = state.len(), "{TOO_LONG}");
                    }
                    self.is_kept = is_kept;
                }
                Err(error) => tracing::warn!(%error, "an agent would end with this server"),
            }
        }
        process.release_input();
    }

    async fn carry_out_all(&mut self) {
        while let Some(output) = self.core.next_output() {
            self.carry_out(output).await;
        }
    }

    async fn carry_out(&mut self, output: Output) {
        match output {
            Output::Start(launch) => self.start(launch).await,
            Output::Write(bytes) => self.with(|process| process.write(bytes)),
            Output::CloseStdin => self.with(Process::close_stdin),
            Output::Signal(signal) => {
                if let Some(process) = &self.process {
                    process.signal(to_supervisor(signal)).await;
                }
            }
            Output::Kill => self.kill(),
            Output::Event(event) => self.event(event).await,
            Output::Ask { request_id, tool, input } => self.feed().ask(request_id, tool, input),
            Output::Resolved { request_id, outcome, .. } => {
                self.feed().resolved(&request_id, outcome);
            }
            Output::TurnEnded(end) => self.turn_ended(end),
            Output::Conversation(id) => self.keep(|feed| feed.conversation(id)).await,
            Output::Used(used) => self.keep(move |feed| feed.used(used)).await,
        }
    }

    /// Takes a line of output, and carries out the machine's outputs for it.
    async fn line(&mut self, line: Line) {
        let shown = line.text.clone() + "\n";
        let (before, mut after) = self.core.heard(line);
        for output in before {
            self.carry_out(output).await;
        }
        let is_used = |output: &mut Output| matches!(output, Output::Used(_));
        // The usage is stored before the events of the line are announced, because these events mostly end
        // the turn.
        for output in after.extract_if(.., is_used).collect::<Vec<_>>() {
            self.carry_out(output).await;
        }
        let (events, rest) = of_the_line(after);
        match &self.process {
            Some(process) if !process.was_shown() => {
                self.feed().line_up_to(process.taken(), shown, events);
            }
            // An earlier daemon was killed right after it had shown the line.
            _ => self.feed().line(String::new(), events),
        }
        for output in rest {
            self.carry_out(output).await;
        }
    }

    async fn event(&mut self, event: AgentEvent) {
        if let AgentEvent::TurnStarted { turn, .. } = event {
            let receipt = self.core.next_receipt();
            self.feed().activity(Activity::Working);
            self.keep(move |feed| {
                let is_clients = receipt.is_none();
                if let Some(receipt) = receipt {
                    receipt.turn_begins();
                }
                feed.turn_started(turn, is_clients);
            })
            .await;
        }
        self.feed().event(event);
    }

    fn turn_ended(&self, end: TurnEnd) {
        let ok = end.outcome == TurnOutcome::Completed;
        let text = end.text.or(end.error);
        self.feed().turn_ended(end.turn, ok, text, end.usage);
        if !self.core.is_working() {
            self.feed().activity(Activity::Idle);
        }
    }

    async fn start(&mut self, launch: Launch) {
        match spawn(&self.core, launch).await {
            Ok(process) => {
                self.feed().journal_anew(process.journal());
                self.core.set_handle(Some(process.handle()));
                self.process = Some(process);
            }
            Err(refusal) => self.core.happened(Input::SpawnFailed(refusal.to_string())),
        }
    }

    /// Handles the end of the process. Its background processes are ended, too: nobody needs them any more,
    /// and they would be in the way of the next process.
    async fn exited(&mut self, exit: process::Exit) {
        // Its journal goes with it, so all its output is written to the history first.
        self.feed().written().await;
        (self.process, self.lost_at) = (None, None);
        if let Some(handle) = self.core.handle()
            && let Err(error) = handle.stop(LEFT.min(self.core.grace)).await
        {
            tracing::debug!(%error, "what an agent has left cannot be stopped");
        }
        self.core.set_handle(None);
        self.core.happened(Input::Exited(exited_as(exit)));
    }

    fn kill(&mut self) {
        let Some(process) = &self.process else { return };
        let handle = process.handle();
        self.lost_at = Some(Instant::now() + UNKILLABLE);
        let killing = async move {
            if let Err(error) = handle.stop(Duration::ZERO).await {
                tracing::debug!(%error, "an agent cannot be killed");
            }
        };
        // Not waited for: this task has to give up a process that the kernel holds up.
        tokio::spawn(killing.in_current_span());
    }

    /// Reports something that must be stored before the task goes on. It runs on a thread that may
    /// block, because storing blocks.
    async fn keep(&self, tell: impl FnOnce(&Feed) + Send + 'static) {
        let feed = self.feed().clone();
        if let Err(error) = task::spawn_blocking(move || tell(&feed)).await {
            tracing::error!(%error, "cannot keep what an agent does");
        }
    }

    fn with(&mut self, f: impl FnOnce(&mut Process)) {
        if let Some(process) = &mut self.process {
            f(process);
        }
    }

    fn feed(&self) -> &Feed {
        &self.core.feed
    }
}

/// The next event of the process; waits for ever if there is no process.
async fn next(process: &mut Option<Process>) -> ProcessEvent {
    match process {
        Some(process) => process.next().await,
        None => std::future::pending().await,
    }
}

/// Separates the events that a line means from the other outputs. Events after the end of the turn or the start of the
/// next are not about the line.
fn of_the_line(outputs: Vec<Output>) -> (Vec<AgentEvent>, Vec<Output>) {
    let (mut events, mut rest) = (Vec::new(), Vec::new());
    let mut is_over = false;
    for output in outputs {
        is_over |= matches!(
            output,
            Output::TurnEnded(_) | Output::Start(_) | Output::Event(AgentEvent::TurnStarted { .. })
        );
        match output {
            Output::Event(event) if !is_over => events.push(event),
            other => rest.push(other),
        }
    }
    (events, rest)
}

async fn spawn(core: &Core, launch: Launch) -> Result<Process, Refusal> {
    let host = core.host.upgrade().ok_or_else(closing)?;
    let (private, files) = (core.plan.private.clone(), launch.files.clone());
    blocking(move || private.write(&files)).await?;
    let child = host.supervisor.spawn(core.command(&launch)?).await;
    let process = Process::new(child.map_err(|error| Refusal::failed(&error))?);
    let mut process = process.map_err(|error| Refusal::failed(&error))?;
    if let Some(stdin) = launch.stdin {
        process.write(stdin);
    }
    // Some agents begin only at the end of their input.
    if !launch.keep_stdin_open {
        process.close_stdin();
    }
    Ok(process)
}

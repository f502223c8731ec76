//! The engine of an agent: `session::agent`'s machine with a process, a clock and files.
//!
//! A client's command goes into the machine at once, so that a refusal comes at once. One task
//! carries out the machine's outputs, in order.
//!
//! - [`AgentEngine`]: takes the commands of the session
//! - `core`: the machine, and the state beside it
//! - `driver`: the task
//! - `process`: an agent's process, its pipes and its output; `lines`: the lines of the output; `input`:
//!   the process's input

mod core;
mod driver;
mod input;
mod lines;
mod process;

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::process::Child;
use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use session::{agent::Input, terminal::size::Size};
use tokio::{task::JoinHandle, time::timeout};
use tracing::Instrument as _;

use self::{
    core::{AgentState, Core, PromptPosition},
    driver::Driver,
    process::Process,
};
use super::plan::Plan;
use crate::{
    engine::{Engine, PermissionAnswer, Receipt, TypingTime},
    host::EngineHost,
    refusal::Refusal,
    sessions::Feed,
};

/// The longest wait for the end of a process that was killed.
const KILLED: Duration = Duration::from_secs(15);

/// An agent that takes prompts. No process runs before the first prompt.
pub(crate) struct AgentEngine {
    core: Arc<Core>,
    /// The engine's task, once there is one.
    task: Mutex<Option<JoinHandle<()>>>,
}

impl AgentEngine {
    pub(crate) fn new(host: &Arc<EngineHost>, plan: Plan, feed: Feed) -> Self {
        Self { core: Arc::new(Core::new(host, plan, feed)), task: Mutex::default() }
    }

    /// Continues with the process of an agent that outlived an earlier daemon. Its questions are asked
    /// again.
    ///
    /// # Errors
    /// When the earlier daemon kept no state, or one that does not fit this session or this server.
    pub(crate) fn take_over(
        host: &Arc<EngineHost>,
        plan: Plan,
        feed: Feed,
        child: Child,
    ) -> Result<Self, Refusal> {
        let state = child.journal.state().map_err(|error| Refusal::failed(&error))?;
        let state = state.as_deref().and_then(AgentState::read).ok_or_else(unknown)?;
        let core = Core::resume(host, plan, feed, &state)?;
        core.set_handle(Some(child.handle()));
        let process = Process::take_over(child, &state.process);
        let process = process.map_err(|error| Refusal::failed(&error))?;
        let engine = Self { core: Arc::new(core), task: Mutex::default() };
        // Before the task runs, so that its events come after the questions.
        engine.core.ask_again();
        engine.run(Some(process));
        Ok(engine)
    }

    /// Gives the machine a prompt, and starts the task for the first one. Returns the number of the
    /// prompt's turn, if that is known.
    fn take(&self, text: String, receipt: Option<Receipt>) -> Result<Option<u64>, Refusal> {
        // Prompts that waited when the session was stored come first.
        self.go_on()?;
        let PromptPosition { is_first, turn } = self.core.prompt(text, receipt)?;
        if is_first {
            self.run(None);
        }
        self.core.news.notify_one();
        Ok(turn)
    }

    fn run(&self, process: Option<Process>) {
        let driver = Driver::new(Arc::clone(&self.core), process);
        let task = tokio::spawn(driver.run().instrument(self.core.feed.span()));
        *self.task.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
    }

    fn tell(&self, input: Input) -> Result<(), Refusal> {
        self.core.tell(input)?;
        self.core.news.notify_one();
        Ok(())
    }
}

impl Engine for AgentEngine {
    fn type_in(&self, _: Bytes) -> Result<TypingTime, Refusal> {
        Err(Refusal::invalid(
            "an agent has no terminal: it takes whole prompts (send_input), not keys",
        ))
    }

    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal> {
        self.take(text, None)
    }

    fn prompt_for(&self, text: String, receipt: Receipt) -> Result<(), Refusal> {
        self.take(text, Some(receipt)).map(drop)
    }

    fn interrupt(&self) -> Result<(), Refusal> {
        self.tell(Input::Interrupt)
    }

    fn permit(&self, answer: PermissionAnswer) -> Result<(), Refusal> {
        let PermissionAnswer { request_id, allow, message } = answer;
        self.tell(Input::Permission { request_id, allow, message })
    }

    fn freeze(&self) -> BoxFuture<'_, Result<(), Refusal>> {
        async {
            self.core.freeze();
            self.core.news.notify_one();
            self.core.at_rest().await;
            Ok(())
        }
        .boxed()
    }

    fn seal(&self) -> Vec<String> {
        self.core.seal()
    }

    fn thaw(&self) {
        self.core.thaw();
        self.core.news.notify_one();
    }

    fn go_on(&self) -> Result<(), Refusal> {
        if self.core.go_on()? {
            self.run(None);
        }
        self.core.news.notify_one();
        Ok(())
    }

    fn resize(&self, _: Size) {}

    fn processes(&self) -> BoxFuture<'_, Vec<u32>> {
        async {
            match self.core.handle() {
                Some(handle) => handle.members().await.unwrap_or_default(),
                None => Vec::new(),
            }
        }
        .boxed()
    }

    fn release(&self) -> BoxFuture<'_, ()> {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        async {
            if let Some(task) = task {
                task.abort();
                // Nothing is read from the process any more when this returns.
                let _aborted = task.await;
            }
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            if !self.core.stop() {
                return;
            }
            self.core.news.notify_one();
            // The machine asks twice, and waits for one grace each time.
            let politely = self.core.grace * 2 + Duration::from_secs(1);
            if timeout(politely, self.core.done()).await.is_err() {
                self.core.stop();
                self.core.news.notify_one();
                let _late = timeout(KILLED, self.core.done()).await;
            }
        }
        .boxed()
    }
}

fn unknown() -> Refusal {
    Refusal::invalid("it is not known how far the agent was: the server was killed as it began")
}

/// The first call ends the agent, and the second one kills its process: no session is left that its
/// output could go to.
impl Drop for AgentEngine {
    fn drop(&mut self) {
        self.core.stop();
        self.core.stop();
        self.core.news.notify_one();
    }
}

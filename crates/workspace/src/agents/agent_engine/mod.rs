//! The engine of an agent: `session::agent`'s machine with a process, a clock and files.
//!
//! A client's command goes into the machine at once, so that a refusal comes at once. One task
//! carries out the machine's outputs, in order.
//!
//! - [`AgentEngine`]: takes the commands of the session
//! - `core`: the machine, and the state beside it
//! - `driver`: the task
//! - `process`: an agent's process, its pipes and its output; `lines`: the lines of the output

mod core;
mod driver;
mod lines;
mod process;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use session::{agent::Input, terminal::size::Size};
use tokio::time::timeout;
use tracing::Instrument as _;

use self::{
    core::{Core, Prompted},
    driver::Driver,
};
use super::plan::Plan;
use crate::{
    engine::{Engine, PermissionAnswer, Receipt, Typed},
    host::EngineHost,
    refusal::Refusal,
    sessions::Feed,
};

/// The longest wait for the end of a process that was killed.
const KILLED: Duration = Duration::from_secs(15);

/// An agent that takes prompts. No process runs before the first prompt.
pub(crate) struct AgentEngine {
    core: Arc<Core>,
}

impl AgentEngine {
    pub(crate) fn new(host: &Arc<EngineHost>, plan: Plan, feed: Feed) -> Self {
        Self { core: Arc::new(Core::new(host, plan, feed)) }
    }

    /// Gives the machine a prompt, and starts the task for the first one. Returns the number of the
    /// prompt's turn, if that is known.
    fn take(&self, text: String, receipt: Option<Receipt>) -> Result<Option<u64>, Refusal> {
        // What waited comes first.
        self.go_on()?;
        let Prompted { is_first, turn } = self.core.prompt(text, receipt)?;
        if is_first {
            self.run();
        }
        self.core.news.notify_one();
        Ok(turn)
    }

    fn run(&self) {
        let driver = Driver::new(Arc::clone(&self.core));
        tokio::spawn(driver.run().instrument(self.core.feed.span()));
    }

    fn tell(&self, input: Input) -> Result<(), Refusal> {
        self.core.tell(input)?;
        self.core.news.notify_one();
        Ok(())
    }
}

impl Engine for AgentEngine {
    fn type_in(&self, _: Bytes) -> Result<Typed, Refusal> {
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
            self.run();
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

    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            if !self.core.stop() {
                return;
            }
            self.core.news.notify_one();
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

/// The first call ends the agent, and the second one kills its process: no session is left that its
/// output could go to.
impl Drop for AgentEngine {
    fn drop(&mut self) {
        self.core.stop();
        self.core.stop();
        self.core.news.notify_one();
    }
}

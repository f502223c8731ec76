//! The engine of an agent: `session::agent`'s machine with a process, a clock and files.
//!
//! What clients want goes into the machine at once, so that it is refused at once; what the machine
//! wants is carried out by one task, in order.
//!
//! - [`AgentEngine`]: what the session is told
//! - `core`: the machine, and what it has beside it
//! - `driver`: the task
//! - `process`: an agent's process, its pipes, and what it says on them; `lines`: line by line

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

/// How long it may take until a process that was killed is gone.
const KILLED: Duration = Duration::from_secs(15);

/// An agent that takes prompts. Nothing runs before the first.
pub(crate) struct AgentEngine {
    core: Arc<Core>,
}

impl AgentEngine {
    pub(crate) fn new(host: &Arc<EngineHost>, plan: Plan, feed: Feed) -> Self {
        Self { core: Arc::new(Core::new(host, plan, feed)) }
    }

    /// Which turn the prompt will be.
    fn take(&self, text: String, receipt: Option<Receipt>) -> Result<Option<u64>, Refusal> {
        let Prompted { is_first, turn } = self.core.prompt(text, receipt)?;
        if is_first {
            let driver = Driver::new(Arc::clone(&self.core));
            tokio::spawn(driver.run().instrument(self.core.feed.span()));
        }
        self.core.news.notify_one();
        Ok(turn)
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

/// Without a listener to report to, nothing goes on.
impl Drop for AgentEngine {
    fn drop(&mut self) {
        self.core.stop();
        self.core.stop();
        self.core.news.notify_one();
    }
}

//! The engine of an adopted process.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use process::Adopted;
use session::terminal::size::Size;
use tokio::task::JoinHandle;
use tracing::Instrument as _;

use super::{continuation::Continuation, following::Follower, subject::Subject};
use crate::{
    engine::{Engine, PermissionAnswer, TypingTime},
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed},
};

/// An adopted process, which the daemon watches and can kill.
pub(super) struct AdoptedProcess {
    process: Arc<Adopted>,
    feed: Feed,
    grace: Duration,
    /// Continues the conversation; `None` if the process is no Claude.
    continuation: Option<Continuation>,
    watching: JoinHandle<()>,
    following: Option<JoinHandle<()>>,
}

impl AdoptedProcess {
    pub(super) fn new(
        host: &Arc<EngineHost>,
        facts: &Facts,
        feed: Feed,
        process: Arc<Adopted>,
        subject: Subject,
    ) -> Self {
        let is_claude = subject.claude.is_some();
        let follower = Follower::new(facts, feed.clone(), subject.clone());
        let found = follower.found();
        Self {
            continuation: is_claude
                .then(|| Continuation::new(host, facts, feed.clone(), subject, found)),
            watching: tokio::spawn(
                watch(Arc::clone(&process), feed.clone()).instrument(feed.span()),
            ),
            following: is_claude.then(|| tokio::spawn(follower.run().instrument(feed.span()))),
            process,
            feed,
            grace: host.settings.stop_grace,
        }
    }

    fn continuation(&self) -> Result<&Continuation, Refusal> {
        self.continuation.as_ref().ok_or_else(|| {
            Refusal::invalid("this process was adopted, and is no Claude: it cannot be spoken to")
        })
    }

    fn agent(&self) -> Result<&dyn Engine, Refusal> {
        let agent = self.continuation()?.agent.get();
        let agent = agent.ok_or_else(|| Refusal::invalid("no turn is running"))?;
        Ok(agent)
    }

    /// Whether the session was killed. If the daemon ends instead, the process goes on: it was not
    /// started by the daemon, so it does not end with it.
    fn is_killed(&self) -> bool {
        self.feed.is_removed()
    }

    async fn kill(&self) {
        if let Err(error) = self.process.end(self.grace).await {
            tracing::warn!(pid = self.process.pid(), %error, "cannot be ended");
        }
    }
}

impl Engine for AdoptedProcess {
    fn type_in(&self, _: Bytes) -> Result<TypingTime, Refusal> {
        Err(Refusal::invalid(
            "this process was adopted: its terminal is somebody else's, and takes no keys from here",
        ))
    }

    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal> {
        self.continuation()?.prompt(text)
    }

    fn interrupt(&self) -> Result<(), Refusal> {
        self.agent()?.interrupt()
    }

    fn permit(&self, answer: PermissionAnswer) -> Result<(), Refusal> {
        self.agent()?.permit(answer)
    }

    fn resize(&self, _: Size) {}

    fn processes(&self) -> BoxFuture<'_, Vec<u32>> {
        async {
            let mut all = match self.agent() {
                Ok(agent) => agent.processes().await,
                Err(_) => Vec::new(),
            };
            all.extend(Some(self.process.pid()).filter(|_| self.process.is_alive()));
            all
        }
        .boxed()
    }

    fn stop(&self) -> BoxFuture<'_, ()> {
        async {
            // Read before the first wait: if the session is dropped during a wait, it would count as not
            // removed.
            let is_killed = self.is_killed();
            // Before the kill, so that an end that the kill causes is not reported as the process's own.
            self.watching.abort();
            self.following.iter().for_each(JoinHandle::abort);
            if let Ok(agent) = self.agent() {
                agent.stop().await;
            }
            if is_killed {
                self.kill().await;
            }
        }
        .boxed()
    }
}

impl Drop for AdoptedProcess {
    fn drop(&mut self) {
        self.watching.abort();
        self.following.iter().for_each(JoinHandle::abort);
    }
}

async fn watch(process: Arc<Adopted>, feed: Feed) {
    match process.wait().await {
        Ok(()) => feed.ended("it has ended; how, only its parent was told".to_owned(), None),
        Err(error) => feed.ended(format!("it can be watched no longer: {error}"), None),
    }
}

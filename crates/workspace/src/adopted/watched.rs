//! The engine of a process that was adopted.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use futures_util::{FutureExt as _, future::BoxFuture};
use process::{Adopted, ProcessError, Signal};
use session::{
    agent::{Said, open},
    size::Size,
};
use tokio::{
    task::{self, JoinHandle},
    time::{sleep, timeout},
};

use super::{subject::Subject, talk::Talk, transcript::Transcript};
use crate::{
    agents::running::said,
    engine::{Engine, PermissionAnswer},
    refusal::Refusal,
    sessions::{Facts, Feed},
    work::Shared,
};

/// How often it is looked for what is new in a transcript.
const BETWEEN: Duration = Duration::from_millis(300);
/// How long it may take until a process that was killed is gone.
const KILLED: Duration = Duration::from_secs(5);

/// A process that was adopted.
pub(super) struct Watched {
    shared: Weak<Shared>,
    process: Arc<Adopted>,
    feed: Feed,
    grace: Duration,
    /// With those that have a conversation.
    talk: Option<Talk>,
    watching: JoinHandle<()>,
    following: Option<JoinHandle<()>>,
}

impl Watched {
    pub(super) fn new(
        shared: &Arc<Shared>,
        facts: &Facts,
        feed: Feed,
        process: Arc<Adopted>,
        subject: Subject,
    ) -> Self {
        let is_claude = subject.claude.is_some();
        // What was read in an earlier life is not read again.
        let is_new = facts.adopted.is_none_or(|(_, start_time)| start_time == 0);
        let follower = Follower { feed: feed.clone(), subject: subject.clone(), is_new };
        Self {
            shared: Arc::downgrade(shared),
            talk: is_claude.then(|| Talk::new(shared, facts, feed.clone(), subject)),
            watching: tokio::spawn(watch(Arc::clone(&process), feed.clone())),
            following: is_claude.then(|| tokio::spawn(follower.run())),
            process,
            feed,
            grace: shared.settings.stop_grace,
        }
    }

    fn talk(&self) -> Result<&Talk, Refusal> {
        self.talk.as_ref().ok_or_else(|| {
            Refusal::invalid("this process was adopted, and is no Claude: it cannot be spoken to")
        })
    }

    fn agent(&self) -> Result<&dyn Engine, Refusal> {
        let agent = self.talk()?.agent.get();
        let agent = agent.ok_or_else(|| Refusal::invalid("no turn is running"))?;
        Ok(agent)
    }

    /// Whether it is the session that ends, rather than the daemon: what was not started by the
    /// daemon does not end with it.
    fn is_killed(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        shared.sessions.info(self.feed.session()).is_err()
    }

    async fn kill(&self) {
        for (signal, patience) in [(Signal::Terminate, self.grace), (Signal::Kill, KILLED)] {
            match self.process.signal(signal) {
                Ok(()) => {}
                Err(ProcessError::NoSuchProcess { .. }) => return,
                Err(error) => {
                    tracing::warn!(pid = self.process.pid(), %error, "cannot be ended");
                    return;
                }
            }
            if timeout(patience, self.process.wait()).await.is_ok() {
                return;
            }
        }
    }
}

impl Engine for Watched {
    fn type_in(&self, _: Bytes) -> Result<(), Refusal> {
        Err(Refusal::invalid(
            "this process was adopted: its terminal is somebody else's, and takes no keys from here",
        ))
    }

    fn prompt(&self, text: String) -> Result<(), Refusal> {
        self.talk()?.prompt(text)
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
            let is_killed = self.is_killed();
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

impl Drop for Watched {
    fn drop(&mut self) {
        self.watching.abort();
        self.following.iter().for_each(JoinHandle::abort);
    }
}

/// Waits until the process ends.
async fn watch(process: Arc<Adopted>, feed: Feed) {
    match process.wait().await {
        Ok(()) => feed.ended("it has ended; how, only its parent was told".to_owned()),
        Err(error) => feed.ended(format!("it can be watched no longer: {error}")),
    }
}

/// Reads what a process says to its transcript.
struct Follower {
    feed: Feed,
    subject: Subject,
    is_new: bool,
}

impl Follower {
    async fn run(mut self) {
        let mut transcript = None;
        loop {
            let subject = self.subject.clone();
            let is_new = self.is_new;
            let read = task::spawn_blocking(move || look(&subject, transcript, is_new)).await;
            let Ok((found, lines)) = read else { return };
            transcript = found;
            // One that is found later is new.
            self.is_new = true;
            let is_quiet = lines.is_empty();
            lines.into_iter().for_each(|line| self.tell(line));
            if is_quiet {
                sleep(BETWEEN).await;
            }
        }
    }

    /// What a line of the transcript says is as what it would have printed.
    fn tell(&self, line: String) {
        let events = match (serde_json::from_str(&line), open("claude", &[], Default::default())) {
            (Ok(value), Ok(mut dialect)) => dialect.heard(&value).said,
            _ => Vec::new(),
        };
        let events = events.into_iter().filter_map(|said| match said {
            Said::Event(event) => Some(said::event(event)),
            _ => None,
        });
        self.feed.line(line + "\n", events.collect());
    }
}

/// What is new in the transcript, once there is one.
fn look(
    subject: &Subject,
    transcript: Option<Transcript>,
    is_new: bool,
) -> (Option<Transcript>, Vec<String>) {
    let Some(claude) = &subject.claude else { return (None, Vec::new()) };
    let looked = subject.as_its_user(|| {
        let mut transcript = transcript.or_else(|| {
            let mut found = Transcript::find(claude)?;
            if !is_new {
                found.skip_to_end();
            }
            Some(found)
        })?;
        let mut lines = transcript.read().unwrap_or_default();
        while lines.is_empty() && !transcript.is_at_end() {
            lines = transcript.read().ok()?;
        }
        Some((transcript, lines))
    });
    match looked {
        Ok(Some((transcript, lines))) => (Some(transcript), lines),
        Ok(None) | Err(_) => (None, Vec::new()),
    }
}

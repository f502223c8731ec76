//! An agent's own interface in a terminal, and the cleanup after it.

use std::time::Duration;

use process::Journal;
use protocol::workspace::{SessionKind, SessionStatus};
use tokio::{sync::broadcast, task, time::timeout};
use tracing::Instrument as _;

use super::{gateway::SessionKey, plan::Plan, private::Private};
use crate::{
    engine::CommandLine,
    events::{Event, Events},
    host::EngineHost,
    refusal::Refusal,
    sessions::{Facts, Feed, TerminalState},
};

/// The longest time between two checks that the session still exists.
const AT_LEAST: Duration = Duration::from_secs(60);

/// The command line of an agent's own interface. Its key and its files exist until the session has
/// ended.
pub(crate) fn command(
    host: &EngineHost,
    events: &Events,
    facts: &Facts,
    feed: &Feed,
) -> Result<CommandLine, Refusal> {
    let plan = Plan::new(host, facts)?;
    let (launch, key) = plan.interactive(host)?;
    plan.private.write(&launch.files)?;
    let env = plan.env(&launch);
    if let Some(key) = &key {
        feed.keep_key(key.secret());
    }
    if key.is_some() || !launch.files.is_empty() {
        let cleanup = Cleanup { feed: feed.clone(), key, private: plan.private };
        tokio::spawn(cleanup.run(events.subscribe()).instrument(feed.span()));
    }
    Ok(CommandLine { program: launch.program, args: launch.args, env })
}

/// Continues after an earlier daemon: the agent's key is valid again, and is removed at the session's end
/// together with the agent's files.
pub(crate) fn go_on(
    host: &EngineHost,
    events: &Events,
    facts: &Facts,
    feed: &Feed,
    journal: &Journal,
) -> Result<(), Refusal> {
    if matches!(facts.kind, SessionKind::Shell { .. }) {
        return Ok(());
    }
    let plan = Plan::of_running(host, facts)?;
    let key = TerminalState::of(journal).key();
    let key = key.and_then(|secret| plan.earlier_key(host, secret));
    let cleanup = Cleanup { feed: feed.clone(), key, private: plan.private };
    tokio::spawn(cleanup.run(events.subscribe()).instrument(feed.span()));
    Ok(())
}

/// The key and the files that are removed when a session has ended.
struct Cleanup {
    feed: Feed,
    key: Option<SessionKey>,
    private: Private,
}

impl Cleanup {
    async fn run(self, mut events: broadcast::Receiver<Event>) {
        while self.is_needed() {
            // Any event is a reason to check, and so is the error that events were missed.
            if let Ok(Err(broadcast::error::RecvError::Closed)) =
                timeout(AT_LEAST, events.recv()).await
            {
                break;
            }
        }
        let Self { key, private, .. } = self;
        drop(key);
        let _removed = task::spawn_blocking(move || private.remove()).await;
    }

    fn is_needed(&self) -> bool {
        self.feed.status().is_some_and(|status| status != SessionStatus::Exited)
    }
}

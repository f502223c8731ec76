//! An agent's own interface in a terminal, and what is put away after it.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use protocol::workspace::{SessionId, SessionStatus};
use tokio::{sync::broadcast, task, time::timeout};

use super::{Command, gateway::SessionKey, plan::Plan, private::Private};
use crate::{events::Event, refusal::Refusal, work::Shared};

/// How often it is looked whether the session is still there, even if nothing is told of it.
const AT_LEAST: Duration = Duration::from_secs(60);

/// The command line of an agent's own interface. Its key and its files are there until the session
/// has ended.
pub(super) fn command(shared: &Arc<Shared>, plan: &Plan) -> Result<Command, Refusal> {
    let (launch, key) = plan.interactive(shared)?;
    plan.private.write(&launch.files)?;
    let env = plan.env(&launch);
    if key.is_some() || !launch.files.is_empty() {
        let until = Until {
            shared: Arc::downgrade(shared),
            session: plan.facts.id,
            key,
            private: plan.private.clone(),
        };
        tokio::spawn(until.run(shared.events.subscribe()));
    }
    Ok((launch.program, launch.args, env))
}

/// What is put away when a session has ended.
struct Until {
    shared: Weak<Shared>,
    session: SessionId,
    key: Option<SessionKey>,
    private: Private,
}

impl Until {
    async fn run(self, mut events: broadcast::Receiver<Event>) {
        while self.is_there() {
            // What is told, and whether some of it was missed, is all the same.
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

    fn is_there(&self) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let info = shared.sessions.info(self.session);
        info.is_ok_and(|info| info.status != SessionStatus::Exited)
    }
}

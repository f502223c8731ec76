//! Making a session: its directory, its user and its facts; then its engine.

use std::sync::Arc;

use protocol::workspace::{SessionId, SessionInfo};
use session::terminal::size::Size;
use tracing::Instrument as _;

use super::Sessions;
use crate::{
    projects::{self, Projects},
    refusal::Refusal,
    sessions::{
        clock::now, engine_starter::EngineStarter, feed::Feed, new::NewSession, session::Session,
    },
    users,
};

impl Sessions {
    /// Makes a session, starts its engine and stores its facts.
    pub async fn create(&self, new: NewSession) -> Result<SessionInfo, Refusal> {
        self.create_as(SessionId::from_random(rand::random()), new).await
    }

    /// [`Sessions::create`] with an id that the caller has chosen.
    pub async fn create_as(&self, id: SessionId, new: NewSession) -> Result<SessionInfo, Refusal> {
        if self.has(id) {
            return Err(Refusal::Invalid(format!("there is a session {id} already")));
        }
        let engines = self.engines()?;
        let size = size(new.size)?;
        let (dir, user) = directory_and_user(&self.0.projects, &new).await?;
        let facts = new.facts(id, dir, user)?;
        // Before the session is in the list, so that nothing has to be undone if there is no such model.
        engines.find_model(&facts).await?;
        let session = self.add(facts, size)?;
        let started = start(&session, &*engines, size).await;
        let stored = match started {
            Ok(()) => self.0.shared.keeper.keep(&session).await,
            Err(refusal) => Err(refusal),
        };
        match stored {
            Ok(()) => {
                session.announce(now());
                Ok(session.info())
            }
            Err(refusal) => {
                self.give_up(&session).await;
                Err(refusal)
            }
        }
    }

    /// Removes all traces of a session that could not be made.
    async fn give_up(&self, session: &Arc<Session>) {
        self.remove(session.id);
        if let Some(engine) = session.engine.get() {
            engine.stop().await;
        }
        if let Err(refusal) = session.forget().await {
            tracing::error!(session = %session.id, %refusal, "cannot forget what was not made");
        }
    }
}

/// Starts the engine of a session, for the first time since the daemon started.
pub(super) async fn start(
    session: &Arc<Session>,
    engines: &dyn EngineStarter,
    size: Size,
) -> Result<(), Refusal> {
    let facts = session.lock().life.facts.clone();
    let starting = engines.start(facts, size, Feed::new(session));
    let (engine, start_time) = starting.instrument(session.span.clone()).await?;
    if let (Some((_, at)), Some(start_time)) = (&mut session.lock().life.facts.adopted, start_time)
    {
        *at = start_time;
    }
    let _first = session.engine.set(engine);
    let is_removed = session.lock().life.is_removed;
    if let Some(engine) = session.engine.get().filter(|_| is_removed) {
        // The client that killed the session may have found no engine to stop.
        engine.stop().await;
        return Err(Refusal::Ended("it was killed as it started".to_owned()));
    }
    Ok(())
}

fn size(wanted: Option<(u16, u16)>) -> Result<Size, Refusal> {
    let size = wanted.map(|(cols, rows)| Size::new(cols, rows)).transpose();
    let size = size.map_err(|refused| Refusal::failed(&refused))?;
    Ok(size.unwrap_or(Size::DEFAULT))
}

/// The directory and the user of a new session: its own, or else its project's.
async fn directory_and_user(
    projects: &Projects,
    new: &NewSession,
) -> Result<(String, Option<String>), Refusal> {
    let project = new.project_id.map(|id| projects.get(id)).transpose()?;
    let of_project = project.as_ref().and_then(|project| project.run_as_user.clone());
    let run_as_user = new.run_as_user.clone().or(of_project);
    let user = users::user(projects.run_as(), run_as_user.as_deref()).await?;
    let dir = match (&*new.working_dir, &project) {
        ("", Some(project)) => &project.working_dir,
        ("", None) => return Err(Refusal::invalid("working_dir is missing: say where to start")),
        (dir, _) => dir,
    };
    let dir = projects::working_dir(dir, user.as_ref()).await?;
    Ok((projects::path_text(&dir)?, run_as_user))
}

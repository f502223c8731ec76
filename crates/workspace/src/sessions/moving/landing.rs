//! Whether an agent of another machine could continue here, and in which directory.

use std::path::{Component, Path};

use protocol::workspace::{Project, SessionId, SessionMode};

use crate::{
    projects::{self, path_text},
    refusal::Refusal,
    sessions::{
        Facts, Sessions,
        life::facts::{self, StoredFacts},
        moving::conversation,
    },
};

/// The request of another machine to let an agent move here.
#[derive(Debug, Clone, Copy)]
pub struct LandingRequest<'a> {
    /// The session.
    pub session_id: SessionId,
    /// Its facts there.
    pub facts: &'a str,
    /// The name of its project.
    pub project: Option<&'a str>,
    /// The path from the project's directory to the session's working directory; `None` if they are the same.
    pub below: Option<&'a str>,
    /// The working directory here, if the client names one.
    pub to_dir: Option<&'a str>,
}

/// The place where an agent of another machine can continue here.
#[derive(Debug, Clone)]
pub struct Landing {
    facts: Facts,
}

impl Landing {
    /// The session's working directory here.
    pub fn working_dir(&self) -> &str {
        &self.facts.working_dir
    }

    /// The session's facts as they will be stored here.
    ///
    /// # Errors
    /// When they cannot be read, or are another session's.
    pub fn facts(&self, there: &str) -> Result<String, Refusal> {
        let there = read(self.facts.id, there)?;
        let facts = Facts {
            working_dir: self.facts.working_dir.clone(),
            project_id: self.facts.project_id,
            ..there
        };
        let written = facts::write(&facts, (0, 0));
        written.ok_or_else(|| Refusal::Failed("the session cannot be written down".to_owned()))
    }
}

impl Sessions {
    /// Finds out whether an agent of another machine could continue here, and in which directory.
    ///
    /// # Errors
    /// The objections, in words.
    pub async fn landing(&self, request: LandingRequest<'_>) -> Result<Landing, Refusal> {
        let facts = read(request.session_id, request.facts)?;
        if self.has(request.session_id) {
            return Err(Refusal::invalid("the session runs here already"));
        }
        let departures = self.departures().await?;
        // The session may still come back until the other machine has confirmed that it has the session.
        if departures.iter().any(|left| left.session_id == request.session_id) {
            return Err(Refusal::invalid("it has only just left: try again in a moment"));
        }
        let most = self.0.shared.max_sessions;
        if self.lock().len() >= most {
            return Err(Refusal::TooMany { what: "sessions", most });
        }
        let project = request.project.map(|name| self.project_called(name)).transpose()?;
        let dir = match (request.to_dir, &project) {
            (Some(dir), _) => dir.to_owned(),
            (None, Some(project)) => below(project, request.below)?,
            (None, None) => facts.working_dir.clone(),
        };
        let (host, name) = (self.host()?, facts.run_as_user.clone());
        let user = crate::users::user(&host.settings.run_as, name.as_deref()).await?;
        let dir = projects::working_dir(&dir, user.as_ref()).await?;
        let project_id = project.map(|project| project.id);
        let facts = Facts { working_dir: path_text(&dir)?, project_id, ..facts };
        if let Some(words) = conversation::obstacle(&facts) {
            return Err(Refusal::Invalid(words));
        }
        self.engines()?.check(facts.clone()).await?;
        Ok(Landing { facts })
    }

    fn project_called(&self, name: &str) -> Result<Project, Refusal> {
        let called = self.0.projects.list().into_iter().filter(|project| project.name == name);
        let mut called: Vec<Project> = called.collect();
        match called.len() {
            1 => Ok(called.remove(0)),
            0 => Err(Refusal::Invalid(format!(
                "there is no project {name:?} on that machine: make it there first (warren project \
                 create)"
            ))),
            _ => Err(Refusal::Invalid(format!(
                "there are several projects {name:?} on that machine: give them different names"
            ))),
        }
    }
}

fn below(project: &Project, below: Option<&str>) -> Result<String, Refusal> {
    let Some(below) = below.map(Path::new) else { return Ok(project.working_dir.clone()) };
    if !below.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(Refusal::invalid("its directory is not below its project's"));
    }
    path_text(&Path::new(&project.working_dir).join(below))
}

fn read(id: SessionId, facts: &str) -> Result<Facts, Refusal> {
    let stored: StoredFacts = serde_json::from_str(facts).map_err(|error| {
        Refusal::Invalid(format!(
            "the session cannot be read, it may be of a newer Warren: {error}"
        ))
    })?;
    let facts = stored.facts;
    if facts.id != id || facts.mode != SessionMode::Sdk || facts.team_id.is_some() {
        return Err(Refusal::invalid(
            "only an agent that takes turns, and is in no team, can move",
        ));
    }
    Ok(Facts { waiting: Vec::new(), ended: None, ..facts })
}

//! The messages between a team's owner and the outpost of another member, in JSON. Both ends are
//! Warrens: nobody else reads them.

use ::session::team::outpost::{Report, SeatMessage};
use protocol::workspace::{ProjectId, SessionId, SessionInfo, TeamId};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;
use workspace::{NewEngine, NewSession, Refusal};

/// A message of the member that began the line. That is the team's owner, except for [`Self::Call`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum ToOutpost {
    /// The sender has sessions of the receiver's teams, and waits until the receiver begins a line.
    Call,
    /// The sessions that the owner expects at the outpost. The first message of a line.
    Roll {
        /// The sessions.
        sessions: Vec<Uuid>,
        /// Whether the owner knows all of its sessions. If not, none is ended.
        is_complete: bool,
    },
    /// Makes a session.
    Create(Box<Recruit>),
    /// A message for a session.
    Deliver {
        /// The session.
        session: Uuid,
        /// The message.
        message: SeatMessage,
    },
    /// The reports about this session up to this number are stored.
    Heard {
        /// The session.
        session: Uuid,
        /// The number.
        number: u64,
    },
}

/// From an outpost to a team's owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(crate) enum FromOutpost {
    /// Sessions that the owner expects and that the outpost does not have.
    Missing {
        /// The sessions.
        sessions: Vec<Uuid>,
    },
    /// A session was made, now or before.
    Created {
        /// The session.
        session: Box<SessionInfo>,
    },
    /// A session was not made.
    Refused {
        /// The session.
        session: Uuid,
        /// The reason, in words for the caller.
        why: String,
    },
    /// A message is stored for its session.
    Noted {
        /// The session.
        session: Uuid,
        /// The message.
        seq: u64,
    },
    /// An event of a session.
    Report {
        /// The session.
        session: Uuid,
        /// The report's number among those of the session.
        number: u64,
        /// The report.
        report: Report,
    },
}

/// A session to be made for a team of the sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recruit {
    pub(crate) session: SessionId,
    pub(crate) team: TeamId,
    /// Whether an administrator asks for the session. Administrators may give the agent any arguments.
    pub(crate) administrator: bool,
    /// Whether the session is an agent's own interface in a terminal.
    interactive: bool,
    provider: String,
    model: Option<String>,
    pub(crate) extra_args: Vec<String>,
    name: Option<String>,
    working_dir: String,
    project: Option<ProjectId>,
    run_as_user: Option<String>,
    hidden: bool,
}

impl Recruit {
    /// The message for a new session; `None` if the session is not an agent.
    pub(crate) fn new(
        session: SessionId,
        team: TeamId,
        administrator: bool,
        new: NewSession,
    ) -> Option<Self> {
        let (interactive, provider, model, extra_args) = match new.engine {
            NewEngine::Interactive { provider, model, extra_args } => {
                (true, provider, model, extra_args)
            }
            NewEngine::Agent { provider, model, extra_args } => {
                (false, provider, model, extra_args)
            }
            NewEngine::Shell { .. } | NewEngine::Adopted { .. } => return None,
        };
        Some(Self {
            session,
            team,
            administrator,
            interactive,
            provider,
            model,
            extra_args,
            name: new.name,
            working_dir: new.working_dir,
            project: new.project_id,
            run_as_user: new.run_as_user,
            hidden: new.hidden,
        })
    }

    /// The session, as it is made here. It has no project if this machine does not have the project. A
    /// project of this machine determines the user; outside of such a project, only an administrator may
    /// choose a user.
    ///
    /// # Errors
    /// When a user is chosen, and no administrator asks for the session.
    pub(crate) fn session(
        self,
        has_project: impl Fn(ProjectId) -> bool,
    ) -> Result<NewSession, Refusal> {
        let project_id = self.project.filter(|project| has_project(*project));
        let run_as_user = self.run_as_user.filter(|_| project_id.is_none());
        if let Some(user) = run_as_user.as_ref().filter(|_| !self.administrator) {
            return Err(Refusal::Invalid(format!(
                "the leader runs as the user {user}, and only an administrator may have that on \
                 another machine"
            )));
        }
        let Self { provider, model, extra_args, .. } = self;
        let engine = match self.interactive {
            true => NewEngine::Interactive { provider, model, extra_args },
            false => NewEngine::Agent { provider, model, extra_args },
        };
        Ok(NewSession {
            name: self.name,
            project_id,
            run_as_user,
            hidden: self.hidden,
            team: Some((self.team, false)),
            ..NewSession::new(engine, self.working_dir)
        })
    }
}

/// The text of a message.
pub(crate) fn write(message: &impl Serialize) -> String {
    // Ids, numbers and text are always JSON.
    serde_json::to_string(message).unwrap_or_default()
}

/// The message in a text.
///
/// # Errors
/// When the text is no such message, since a Warren of another version wrote it. The error is meant for the
/// log.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("its message about teams cannot be read, is its Warren of another version? {error}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recruit(administrator: bool) -> Recruit {
        let engine =
            NewEngine::Agent { provider: "claude".to_owned(), model: None, extra_args: Vec::new() };
        let new = NewSession {
            project_id: Some(ProjectId::from_random(3)),
            run_as_user: Some("alice".to_owned()),
            ..NewSession::new(engine, "/work".to_owned())
        };
        let (session, team) = (SessionId::from_random(1), TeamId::from_random(2));
        Recruit::new(session, team, administrator, new).unwrap()
    }

    #[test]
    fn a_leaders_user_is_another_machines_only_by_an_administrator_or_its_own_project() {
        let words = recruit(false).session(|_| false).unwrap_err().to_string();
        assert!(words.contains("alice") && words.contains("administrator"), "{words}");
        let new = recruit(true).session(|_| false).unwrap();
        assert_eq!((new.run_as_user.as_deref(), new.project_id), (Some("alice"), None));
        let new = recruit(false).session(|_| true).unwrap();
        assert_eq!((new.run_as_user, new.project_id), (None, Some(ProjectId::from_random(3))));
    }
}

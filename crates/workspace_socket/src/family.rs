//! Families of errors: the subject of a request decides which message reports its failure.

use protocol::workspace::{
    ProjectId, ServerMessage,
    client::{GitError, OfSession, ProjectFileChunkError, ProjectFileError, ProjectFsActionError},
};
use workspace::Refusal;

/// The subject of an error, which decides the message that reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Family {
    Plain,
    /// A path in a project.
    File(ProjectId, String),
    /// One window of a file, by its `request_id`.
    Chunk(String),
    /// A change of files, by its `request_id`.
    Action(ProjectId, String),
    Git(ProjectId),
}

/// A [`Family`] without its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorFamily {
    Plain,
    File,
    Chunk,
    Action,
    Git,
}

impl Family {
    #[cfg(test)]
    pub(crate) const fn kind(&self) -> ErrorFamily {
        match self {
            Self::Plain => ErrorFamily::Plain,
            Self::File(..) => ErrorFamily::File,
            Self::Chunk(_) => ErrorFamily::Chunk,
            Self::Action(..) => ErrorFamily::Action,
            Self::Git(_) => ErrorFamily::Git,
        }
    }

    pub(crate) fn refused(self, refusal: &Refusal) -> ServerMessage {
        match (self, refusal) {
            (Self::Plain, Refusal::UnknownSession(id)) => {
                ServerMessage::SessionUnknown(OfSession { session_id: *id })
            }
            (family, refusal) => family.error(base::error::chain(refusal)),
        }
    }

    /// The answer with this error message.
    pub(crate) fn error(self, message: String) -> ServerMessage {
        match self {
            Self::Plain => ServerMessage::error(message),
            Self::File(project_id, path) => {
                ServerMessage::ProjectFileError(ProjectFileError { project_id, path, message })
            }
            Self::Chunk(request_id) => {
                ServerMessage::ProjectFileChunkError(ProjectFileChunkError { request_id, message })
            }
            Self::Action(project_id, request_id) => {
                let error = ProjectFsActionError { project_id, request_id, message };
                ServerMessage::ProjectFsActionError(error)
            }
            Self::Git(project_id) => ServerMessage::GitError(GitError { project_id, message }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P: &str = "00000000-0000-4000-8000-000000000001";

    #[test]
    fn an_unknown_session_has_an_answer_of_its_own() {
        let id = P.parse().unwrap();
        let said = Family::Plain.refused(&Refusal::UnknownSession(id));
        assert_eq!(said, ServerMessage::SessionUnknown(OfSession { session_id: id }));
        let refused = Family::Git(P.parse().unwrap()).refused(&Refusal::invalid("no"));
        assert_eq!(refused.name(), "git_error");
    }
}

//! How a message is answered that is not served: each family of messages has its own way to say so.

use protocol::workspace::{
    BadMessage, ClientMessage, ProjectId, ServerMessage,
    client::{GitError, OfSession, ProjectFileChunkError, ProjectFileError, ProjectFsActionError},
    decode_request,
    limits::{PATH_MAX, REQUEST_ID_MAX},
};
use serde::Deserialize;

use crate::refusal::Refusal;

/// Where a failure belongs to, as far as that can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Family {
    /// Nowhere in particular.
    Plain,
    /// A file of a project that was to be listed, read or written.
    File { project_id: ProjectId, path: String },
    /// A window of a file.
    Chunk { request_id: String },
    /// Something made, moved, copied or deleted.
    Action { project_id: ProjectId, request_id: String },
    /// Git.
    Git(ProjectId),
}

/// What a message that cannot be read may still tell.
#[derive(Deserialize)]
struct Hints {
    #[serde(default)]
    project_id: Option<String>,
    #[serde(default)]
    path: Option<String>,
}

/// Reads a message.
///
/// # Errors
/// What its sender is to be told.
pub(super) fn read(text: &str) -> Result<ClientMessage, Box<ServerMessage>> {
    let answer = |bad: BadMessage| Family::of_bad(&bad, text).error(bad.to_string());
    decode_request(text).map_err(|bad| Box::new(answer(bad)))
}

impl Family {
    pub(super) fn of(message: &ClientMessage) -> Self {
        let file = |project_id, path: &str| Self::File { project_id, path: path.to_owned() };
        let action = |project_id, request_id: &str| Self::Action {
            project_id,
            request_id: request_id.to_owned(),
        };
        match message {
            ClientMessage::ListProjectFiles(of) => {
                file(of.project_id, of.path.as_deref().unwrap_or_default())
            }
            ClientMessage::ReadProjectFile(of) => file(of.project_id, &of.path),
            ClientMessage::WriteProjectFile(of) => file(of.project_id, &of.path),
            ClientMessage::WatchProjectFiles(of) => file(of.project_id, ""),
            ClientMessage::ReadProjectFileChunk(of) => {
                Self::Chunk { request_id: of.request_id.clone() }
            }
            ClientMessage::CreateProjectFile(of) | ClientMessage::CreateProjectDirectory(of) => {
                action(of.project_id, &of.request_id)
            }
            ClientMessage::MoveProjectEntry(of) | ClientMessage::CopyProjectEntry(of) => {
                action(of.project_id, &of.request_id)
            }
            ClientMessage::DeleteProjectEntry(of) => action(of.project_id, &of.request_id),
            ClientMessage::UploadProjectFile(of) => action(of.project_id, &of.request_id),
            ClientMessage::GitStatus(of) => Self::Git(of.project_id),
            ClientMessage::GitDiff(of) => Self::Git(of.project_id),
            _ => Self::Plain,
        }
    }

    /// Of a message that cannot be read.
    fn of_bad(bad: &BadMessage, text: &str) -> Self {
        let hints: Option<Hints> = serde_json::from_str(text).ok();
        let project_id = hints.as_ref().and_then(|it| it.project_id.as_deref()?.parse().ok());
        // What is longer than it may be is not said again: nobody has to read our answers.
        let path = hints.and_then(|hints| hints.path).filter(|path| path.len() <= PATH_MAX);
        let path = path.unwrap_or_default();
        let request_id = bad.request_id.clone().filter(|id| id.len() <= REQUEST_ID_MAX);
        let family = match (bad.kind.as_deref(), project_id, request_id) {
            (Some("read_project_file_chunk"), _, Some(request_id)) => {
                Some(Self::Chunk { request_id })
            }
            (Some("git_status" | "git_diff"), Some(project_id), _) => Some(Self::Git(project_id)),
            (
                Some("list_project_files" | "read_project_file" | "write_project_file"),
                Some(project_id),
                _,
            ) => Some(Self::File { project_id, path }),
            (
                Some(
                    "create_project_file"
                    | "create_project_directory"
                    | "move_project_entry"
                    | "copy_project_entry"
                    | "delete_project_entry"
                    | "upload_project_file",
                ),
                Some(project_id),
                Some(request_id),
            ) => Some(Self::Action { project_id, request_id }),
            _ => None,
        };
        family.unwrap_or(Self::Plain)
    }

    /// The answer to a message that was refused.
    pub(super) fn refused(self, refusal: &Refusal) -> ServerMessage {
        match (self, refusal) {
            (Self::Plain, Refusal::UnknownSession(id)) => {
                ServerMessage::SessionUnknown(OfSession { session_id: *id })
            }
            (family, refusal) => family.error(base::error::chain(refusal)),
        }
    }

    /// The answer that says this.
    pub(super) fn error(self, message: String) -> ServerMessage {
        match self {
            Self::Plain => ServerMessage::error(message),
            Self::File { project_id, path } => {
                ServerMessage::ProjectFileError(ProjectFileError { project_id, path, message })
            }
            Self::Chunk { request_id } => {
                ServerMessage::ProjectFileChunkError(ProjectFileChunkError { request_id, message })
            }
            Self::Action { project_id, request_id } => {
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

    /// The type of the answer to a message that cannot be read, and its words.
    fn answer(rest: &str) -> (String, String) {
        let text = rest.replace("$P", P);
        let said = read(&text).unwrap_err().encode();
        let said: serde_json::Value = serde_json::from_str(&said).unwrap();
        let field = |name: &str| said[name].as_str().unwrap().to_owned();
        (field("type"), field("message"))
    }

    #[test]
    fn a_message_that_cannot_be_read_is_answered_in_the_way_of_its_family() {
        for (text, kind) in [
            (r#"{"type":"read_project_file","project_id":"$P"}"#, "project_file_error"),
            (r#"{"type":"write_project_file","project_id":"$P","path":7}"#, "error"),
            (r#"{"type":"list_project_files","project_id":"x"}"#, "error"),
            (
                r#"{"type":"read_project_file_chunk","request_id":"d","project_id":"$P"}"#,
                "project_file_chunk_error",
            ),
            (
                r#"{"type":"delete_project_entry","request_id":"d","project_id":"$P"}"#,
                "project_fs_action_error",
            ),
            (r#"{"type":"git_diff","project_id":"$P"}"#, "git_error"),
            (r#"{"type":"attach"}"#, "error"),
            (r#"{"type":"nonsense","project_id":"$P"}"#, "error"),
            ("[]", "error"),
            ("", "error"),
        ] {
            let (said, words) = answer(text);
            assert_eq!(said, kind, "{text}");
            assert!(!words.is_empty());
        }
    }

    #[test]
    fn an_answer_is_short_however_long_what_cannot_be_read_was() {
        let long = "x".repeat(100_000);
        for kind in
            ["list_project_files", "read_project_file", "delete_project_entry", "attach", &long]
        {
            let text = serde_json::json!({
                "type": kind, "project_id": P, "path": long, "request_id": long, "session_id": long,
            });
            let said = read(&text.to_string()).unwrap_err().encode();
            assert!(said.len() < 2000, "{kind:.20}: {} bytes", said.len());
        }
    }

    #[test]
    fn a_session_that_is_not_there_is_said_by_its_own_message() {
        let id = P.parse().unwrap();
        let said = Family::Plain.refused(&Refusal::UnknownSession(id));
        assert_eq!(said, ServerMessage::SessionUnknown(OfSession { session_id: id }));
        let refused = Family::Git(P.parse().unwrap()).refused(&Refusal::invalid("no"));
        assert_eq!(refused.name(), "git_error");
    }
}

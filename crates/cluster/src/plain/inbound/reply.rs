//! Which message of a workspace answers which request. The clients' protocol does not number
//! requests, so an answer is recognised by its type and subject.

use protocol::workspace::{ClientMessage, ReplyKind, RequestKind, ServerMessage, SessionId};

/// Whether requests of this kind are served one after the other, in order. All others may take
/// long, and are served beside them.
pub(super) fn is_in_turn(kind: RequestKind) -> bool {
    use RequestKind as K;
    is_unanswered(kind)
        || matches!(
            kind,
            K::Keepalive | K::KillSession | K::RenameSession | K::GetHistory | K::GetTurns
        )
}

/// Whether requests of this kind are carried out at once and have no answer of their own unless
/// they fail. A keepalive that is sent after such a request is answered after it.
fn is_unanswered(kind: RequestKind) -> bool {
    use RequestKind as K;
    matches!(
        kind,
        K::SendInput
            | K::TerminalInput
            | K::Resize
            | K::Interrupt
            | K::PermissionResponse
            | K::TakeControl
    )
}

/// Whether a request has no answer of its own, unless it fails.
pub(super) fn has_no_answer(request: &ClientMessage) -> bool {
    is_unanswered(request.kind()) && input_id(request).is_none()
}

/// The id by which input is acknowledged.
pub(crate) fn input_id(request: &ClientMessage) -> Option<&str> {
    match request {
        ClientMessage::SendInput(of) => of.input_id.as_deref(),
        ClientMessage::TerminalInput(of) => of.input_id.as_deref(),
        _ => None,
    }
}

/// Whether a message answers a request.
pub(super) fn is_answer(request: &ClientMessage, reply: &ServerMessage) -> bool {
    use ClientMessage as C;
    use ServerMessage as S;
    match (request, reply) {
        (_, S::Error(_)) => true,
        (_, S::SessionUnknown(of)) => is_about(request, of.session_id),
        (C::KillSession(of), S::SessionKilled(killed)) => of.session_id == killed.session_id,
        (C::RenameSession(of), S::SessionStatusChanged(with)) => {
            with.session.id == of.session_id && with.session.name.as_ref() == Some(&of.name)
        }
        (C::GetHistory(of), S::History(history)) => of.session_id == history.session_id,
        (C::GetTurns(of), S::Turns(turns)) => of.session_id == turns.session_id,
        (C::NewSession(of), S::SessionCreated(with)) => of.name == with.session.name,
        (C::OpenTerminal(of), S::TerminalOpened(with)) => of.name == with.session.name,
        (_, S::InputAck(ack)) => input_id(request) == Some(&ack.input_id),
        (_, reply) => kinds(request.kind()).contains(&reply.kind()),
    }
}

fn is_about(request: &ClientMessage, session: SessionId) -> bool {
    super::place::session_of(request) == Some(session)
}

/// The kinds of messages that answer requests of this kind, for requests with a guest of their own.
fn kinds(request: RequestKind) -> &'static [ReplyKind] {
    use ReplyKind as A;
    use RequestKind as K;
    match request {
        K::Keepalive => &[A::KeepaliveAck],
        K::MoveSession => &[A::SessionMoved],
        K::ListSessions => &[A::SessionList],
        K::AdoptSession => &[A::SessionCreated],
        K::ListDirectory => &[A::DirectoryListing],
        K::CreateProject | K::UpdateProject => &[A::ProjectSaved],
        K::DeleteProject => &[A::ProjectRemoved],
        K::ListProjects => &[A::ProjectList],
        K::ListProjectFiles => &[A::ProjectFileList, A::ProjectFileError],
        K::ReadProjectFile => &[A::ProjectFileContent, A::ProjectFileError],
        K::ReadProjectFileChunk => &[A::ProjectFileChunk, A::ProjectFileChunkError],
        K::WriteProjectFile => {
            &[A::ProjectFileSaved, A::ProjectFileWriteConflict, A::ProjectFileError]
        }
        K::CreateProjectFile
        | K::CreateProjectDirectory
        | K::MoveProjectEntry
        | K::CopyProjectEntry
        | K::DeleteProjectEntry
        | K::UploadProjectFile
        | K::UploadProjectFilePart => &[A::ProjectFsActionResult, A::ProjectFsActionError],
        K::GitStatus => &[A::GitStatusResult, A::GitError],
        K::GitDiff => &[A::GitDiffResult, A::GitError],
        K::CreateTeam => &[A::TeamCreated],
        K::SpawnWorker => &[A::WorkerSpawned],
        K::RelayTeamMessage => &[A::TeamMessageSent],
        K::ListTeams | K::GetTeam => &[A::TeamList],
        K::DeleteTeam => &[A::TeamDeleted],
        K::Handoff => &[A::HandoffResult],
        K::Assign => &[A::WorkerAssigned],
        K::TeamWait => &[A::TeamWaitResult],
        K::GetTeamInbox => &[A::TeamInbox],
        K::ReportResult => &[A::WorkerResultReceived],
        K::ClusterStatus => &[A::ClusterStatus],
        K::GetClusterConfig => &[A::ClusterConfig],
        K::ClusterInvite => &[A::ClusterInvitation],
        K::ClusterInvites => &[A::ClusterInviteList],
        K::UpdateClusterConfig
        | K::ClusterRevokeInvite
        | K::ClusterJoin
        | K::ClusterLeave
        | K::ClusterForget
        | K::RenameNode
        | K::ForceElection
        | K::PromoteNode
        | K::TriggerSync => &[A::ClusterActionAck],
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use protocol::workspace::{decode_reply, decode_request};

    use super::*;

    const ID: SessionId = SessionId::from_random(7);
    const OTHER: SessionId = SessionId::from_random(8);

    fn answers(request: &str, reply: &str) -> bool {
        let fill =
            |text: &str| text.replace("ID", &ID.to_string()).replace("OTHER", &OTHER.to_string());
        let request = decode_request(&fill(request)).unwrap();
        is_answer(&request, &decode_reply(&fill(reply)).unwrap())
    }

    #[test]
    fn an_answer_is_known_by_its_type_and_subject() {
        let kill = r#"{"type":"kill_session","session_id":"ID"}"#;
        assert!(answers(kill, r#"{"type":"session_killed","session_id":"ID"}"#));
        assert!(!answers(kill, r#"{"type":"session_killed","session_id":"OTHER"}"#));
        assert!(answers(kill, r#"{"type":"session_unknown","session_id":"ID"}"#));
        assert!(!answers(kill, r#"{"type":"session_unknown","session_id":"OTHER"}"#));
        assert!(answers(kill, r#"{"type":"error","message":"no"}"#));
        assert!(!answers(kill, r#"{"type":"keepalive_ack"}"#));
        let input = r#"{"type":"send_input","session_id":"ID","input":"a","input_id":"1"}"#;
        assert!(answers(input, r#"{"type":"input_ack","input_id":"1"}"#));
        assert!(!answers(input, r#"{"type":"input_ack","input_id":"2"}"#));
    }

    #[test]
    fn input_without_an_id_has_no_answer() {
        let has_none = |text: &str| {
            has_no_answer(&decode_request(&text.replace("ID", &ID.to_string())).unwrap())
        };
        assert!(has_none(r#"{"type":"send_input","session_id":"ID","input":"a"}"#));
        assert!(!has_none(r#"{"type":"send_input","session_id":"ID","input":"a","input_id":"1"}"#));
        assert!(has_none(r#"{"type":"interrupt","session_id":"ID"}"#));
        assert!(!has_none(r#"{"type":"kill_session","session_id":"ID"}"#));
    }

    #[test]
    fn every_request_that_is_served_has_an_answer() {
        use RequestKind as K;
        let elsewhere =
            [K::Auth, K::Attach, K::Detach, K::WatchProjectFiles, K::UnwatchProjectFiles];
        let by_subject = [
            K::KillSession,
            K::RenameSession,
            K::GetHistory,
            K::GetTurns,
            K::NewSession,
            K::OpenTerminal,
        ];
        for kind in RequestKind::ALL {
            let is_elsewhere = elsewhere.contains(kind) || by_subject.contains(kind);
            assert_eq!(kinds(*kind).is_empty(), is_elsewhere || is_unanswered(*kind), "{kind:?}");
        }
    }
}

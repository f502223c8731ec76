//! The one table of requests. For each message of a client it has the object whose member serves it,
//! the role that it needs, its subject, the form of its errors, the memory of its answer, who gets
//! the answer, its lane and its handler.
//!
//! The compiler demands a row for every message of the protocol. A new message is a type in
//! `protocol::workspace::client`, a row here, and its handler.

use futures_util::future::BoxFuture;
use protocol::workspace::{
    ClientMessage, ProjectId, RequestKind,
    Role::{self, Admin, Read, Write},
    ServerMessage,
    client::Attach,
    limits::{CHUNK_MAX, TEXT_FILE_MAX},
};
use workspace::Refusal;

use crate::{
    answers::{
        asker::{Answer, Asker},
        cluster, files, git, host, lists, make, session_input,
    },
    family::{ErrorFamily, Family},
    lanes::Lane,
    moving,
    policy::{
        Audience,
        Memory::{Long, Request, Short},
        Policy,
        Subject::{self, Connection, Workspace},
        Target::{self, Here, Node, Project, Session, Team},
    },
};

/// The assumed length of lists, in bytes. There is no bound to compute it from.
const LIST: usize = 2 * 1024 * 1024;

/// How a request is served.
pub(crate) enum Work {
    Done(Answer),
    /// The answer may take a while, so the request goes into a lane.
    Later(Lane, BoxFuture<'static, Answer>),
    /// Attaches the connection to a session.
    Attach(Attach),
    Detach,
}

/// Generates the functions that read the table, each as a match without a wildcard.
macro_rules! requests {
    ($asker:ident; $($variant:ident $(($of:ident))? => $target:expr, $role:expr, $subject:expr,
        $family:ident $(($($field:expr),+))?, $memory:expr, $audience:ident,
        $lane:ident: $serve:expr;)+) => {
        impl Policy {
            /// The row of a message.
            #[allow(unused_variables, reason = "not every row looks into its message")]
            pub(crate) fn of(message: &ClientMessage) -> Self {
                match message {
                    $(ClientMessage::$variant $(($of))? => Self {
                        target: $target,
                        role: $role,
                        subject: $subject,
                        family: Family::$family $(($($field),+))?,
                        memory: $memory,
                        audience: Audience::$audience,
                    },)+
                }
            }
        }

        /// The family of errors for messages of this kind, also if the message cannot be read.
        pub(crate) const fn error_family(kind: RequestKind) -> ErrorFamily {
            match kind {
                $(RequestKind::$variant => ErrorFamily::$family,)+
            }
        }

        /// Serves a message, or returns its lane and its work. That work begins when it is polled.
        #[allow(unused_variables, reason = "not every row needs the asker")]
        pub(crate) fn serve($asker: &Asker, message: ClientMessage) -> Work {
            match message {
                $(ClientMessage::$variant $(($of))? => requests!(@ $lane $asker $serve),)+
            }
        }
    };
    (@ Now $asker:ident $serve:expr) => { Work::Done($serve) };
    (@ Client $asker:ident $serve:expr) => { $serve };
    (@ $lane:ident $asker:ident $serve:expr) => {{
        let $asker = $asker.clone();
        Work::Later(Lane::$lane, Box::pin(async move { $serve.await }))
    }};
}

requests! {
    asker;
    // message => the object whose member serves it, role, subject, family of errors, memory,
    // who hears the answer, lane: handler;

    Auth(of) => Here, Read, Connection, Plain, Short, Asker,
        Now: Err(Refusal::invalid("this connection has authenticated already"));
    Keepalive => Here, Read, Connection, Plain, Short, Asker,
        Now: Ok(Some(ServerMessage::KeepaliveAck));
    Attach(of) => Session(of.session_id), Read, Workspace, Plain, Short, Asker,
        Client: Work::Attach(of);
    Detach => Here, Read, Workspace, Plain, Short, Asker, Client: Work::Detach;

    NewSession(of) => made_on(of.node_id.as_deref(), of.project_id),
        running_as(of.run_as_user.as_deref()), Workspace, Plain, Short, Asker,
        Make: make::agent(&asker, *of);
    OpenTerminal(of) => made_on(of.node_id.as_deref(), of.project_id),
        running_as(of.run_as_user.as_deref()), Workspace, Plain, Short, Asker,
        Make: make::terminal(&asker, *of);
    AdoptSession(of) => Here, Admin, Workspace, Plain, Short, Asker, Make: make::adopt(&asker, of);
    RenameSession(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Make: make::rename(&asker, of);
    MoveSession(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Waits: moving::move_session(&asker, of);
    KillSession(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Kill: make::kill(&asker, of);
    ListSessions(of) => Here, Read, Workspace, Plain, Long(LIST), Asker,
        Look: lists::sessions(&asker, of);
    GetHistory(of) => Session(of.session_id), Read, Workspace, Plain,
        Long(length(of.max_bytes, LIST)), Asker, Look: make::history(&asker, of);
    GetTurns(of) => Session(of.session_id), Read, Workspace, Plain,
        Long(length(of.max_bytes, LIST)), Asker, Look: make::turns(&asker, of);

    SendInput(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Now: session_input::prompt(asker, of);
    TerminalInput(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Now: session_input::type_in(asker, of);
    Interrupt(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Now: session_input::interrupt(asker, of);
    PermissionResponse(of) => of.session_id.map_or(Here, Session), Write, Workspace, Plain, Short,
        Asker, Now: session_input::permit(asker, of);
    Resize(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Now: session_input::resize(asker, of);
    TakeControl(of) => Session(of.session_id), Write, Workspace, Plain, Short, Asker,
        Now: session_input::take_control(asker, of);

    ListDirectory(of) => Here, Admin, Workspace, Plain, Long(LIST), Asker,
        Look: host::list(&asker, of);
    CreateProject(of) => Here, Admin, Workspace, Plain, Short, Everyone,
        Make: answer_to(asker.services.projects.create(&asker.me.who, of));
    UpdateProject(of) => Project(of.project_id), Admin, Workspace, Plain, Short, Everyone,
        Make: answer_to(asker.services.projects.update(&asker.me.who, of));
    DeleteProject(of) => Project(of.project_id), Admin, Workspace, Plain, Short, Everyone,
        Make: answer_to(asker.services.projects.delete(&asker.me.who, of));
    ListProjects => Here, Read, Workspace, Plain, Long(LIST), Asker, Look: lists::projects(&asker);

    ListProjectFiles(of) => Project(of.project_id), Read, Workspace,
        File(of.project_id, of.path.clone().unwrap_or_default()), Long(LIST), Asker,
        Files: files::list(&asker, of);
    ReadProjectFile(of) => Project(of.project_id), Read, Workspace,
        File(of.project_id, of.path.clone()), Long(TEXT_FILE_MAX), Asker,
        Files: files::content(&asker, of);
    ReadProjectFileChunk(of) => Project(of.project_id), Read, Workspace,
        Chunk(of.request_id.clone()), Long(length(Some(of.len), CHUNK_MAX)), Asker,
        Files: files::chunk(&asker, of);
    WriteProjectFile(of) => Project(of.project_id), Write, Workspace,
        File(of.project_id, of.path.clone()), Short, Asker, Files: files::write(&asker, of);
    CreateProjectFile(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Short, Asker,
        Files: files::create_file(&asker, of);
    CreateProjectDirectory(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Short, Asker,
        Files: files::create_directory(&asker, of);
    MoveProjectEntry(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Short, Asker,
        Files: files::move_entry(&asker, of);
    CopyProjectEntry(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Short, Asker, Files: files::copy(&asker, of);
    DeleteProjectEntry(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Short, Asker,
        Files: files::delete(&asker, of);
    UploadProjectFile(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Request, Asker,
        Files: files::upload(&asker, of);
    UploadProjectFilePart(of) => Project(of.project_id), Write, Workspace,
        Action(of.project_id, of.request_id.clone()), Request, Asker,
        Files: files::upload_part(&asker, of);
    WatchProjectFiles(of) => Project(of.project_id), Read, Workspace,
        File(of.project_id, String::new()), Short, Asker, Files: files::watch(&asker, of);
    UnwatchProjectFiles(of) => Project(of.project_id), Read, Workspace, Plain, Short, Asker,
        Files: files::unwatch(&asker, of);
    GitStatus(of) => Project(of.project_id), Read, Workspace, Git(of.project_id), Long(CHUNK_MAX),
        Asker, Git: git::status(&asker, of);
    GitDiff(of) => Project(of.project_id), Read, Workspace, Git(of.project_id), Long(CHUNK_MAX),
        Asker, Git: git::diff(&asker, of);

    CreateTeam(of) => of.project_id.map_or(Here, Project), Write, Workspace, Plain, Short, Asker,
        Teams: asker.desk().create(*of);
    SpawnWorker(of) => Team(of.team_id), Write, Subject::Team(of.team_id), Plain, Short, Asker,
        Teams: asker.desk().spawn(*of);
    RelayTeamMessage(of) => Team(of.team_id), Write,
        Subject::Member(of.team_id, of.from_session_id), Plain, Short, Asker,
        Teams: asker.desk().relay(of);
    ListTeams => Here, Read, Workspace, Plain, Long(LIST), Asker, Teams: lists::teams(&asker);
    GetTeam(of) => Team(of.team_id), Read, Subject::Team(of.team_id), Plain, Short, Asker,
        Teams: asker.desk().get(of.team_id);
    DeleteTeam(of) => Team(of.team_id), Write, Workspace, Plain, Short, Everyone,
        Teams: asker.desk().delete(of.team_id);
    Handoff(of) => Team(of.team_id), Write, Subject::Team(of.team_id), Plain, Short, Asker,
        Waits: asker.desk().handoff(of);
    Assign(of) => Team(of.team_id), Write, Subject::Team(of.team_id), Plain, Short, Asker,
        Teams: asker.desk().assign(of);
    TeamWait(of) => Team(of.team_id), Write, Subject::Team(of.team_id), Plain, Short, Asker,
        Waits: asker.desk().wait(of);
    GetTeamInbox(of) => Team(of.team_id), Read, Subject::Member(of.team_id, of.session_id), Plain,
        Long(LIST), Asker, Teams: asker.desk().inbox(of);
    ReportResult(of) => Team(of.team_id), Write, Subject::Member(of.team_id, of.worker_session_id),
        Plain, Short, Everyone, Teams: asker.desk().report(of);

    ClusterStatus => Here, Read, Workspace, Plain, Short, Asker, Now: cluster::status(asker);
    GetClusterConfig => Here, Read, Workspace, Plain, Short, Asker, Now: cluster::config(asker);
    UpdateClusterConfig(of) => Here, Admin, Workspace, Plain, Short, Asker,
        Make: cluster::update(&asker, of);
    RenameNode(of) => Node(of.node_id.clone()), Admin, Workspace, Plain, Short, Asker,
        Make: cluster::rename(&asker, of);
    ClusterInvite => Here, Admin, Workspace, Plain, Short, Asker, Make: cluster::invite(&asker);
    ClusterInvites => Here, Admin, Workspace, Plain, Short, Asker, Make: cluster::invites(&asker);
    ClusterRevokeInvite(of) => Here, Admin, Workspace, Plain, Short, Asker,
        Make: cluster::revoke(&asker, of);
    ClusterJoin(of) => Here, Admin, Workspace, Plain, Short, Asker, Make: cluster::join(&asker, of);
    ClusterLeave => Here, Admin, Workspace, Plain, Short, Asker, Make: cluster::leave(&asker);
    ClusterForget(of) => Here, Admin, Workspace, Plain, Short, Asker,
        Make: cluster::forget(&asker, of);
    ForceElection => Here, Admin, Workspace, Plain, Short, Asker,
        Now: cluster::nothing_to_do(RequestKind::ForceElection);
    PromoteNode(of) => Here, Admin, Workspace, Plain, Short, Asker,
        Now: cluster::nothing_to_do(RequestKind::PromoteNode);
    TriggerSync => Here, Admin, Workspace, Plain, Short, Asker,
        Now: cluster::nothing_to_do(RequestKind::TriggerSync);
}

/// A session is made on the member that its maker names, or where its project's files are.
fn made_on(node: Option<&str>, project: Option<ProjectId>) -> Target {
    match (node, project) {
        (Some(node), _) => Node(node.to_owned()),
        (None, Some(project)) => Project(project),
        (None, None) => Here,
    }
}

/// Running a program as another user is for admins.
const fn running_as(user: Option<&str>) -> Role {
    match user {
        Some(_) => Admin,
        None => Write,
    }
}

/// The answer of a change that is also announced to all clients.
async fn answer_to(change: impl Future<Output = Result<ServerMessage, Refusal>>) -> Answer {
    change.await.map(Some)
}

/// The requested length, or `otherwise` if none was requested.
fn length(bytes: Option<u64>, otherwise: usize) -> usize {
    bytes.map_or(otherwise, |bytes| usize::try_from(bytes).unwrap_or(CHUNK_MAX))
}

#[cfg(test)]
mod tests {
    use protocol::workspace::decode_request;
    use serde_json::{Value, json};

    use super::*;

    /// The requests that need `read`. Those in neither of the two lists need `write`.
    const READ: [RequestKind; 20] = [
        RequestKind::Attach,
        RequestKind::Auth,
        RequestKind::ClusterStatus,
        RequestKind::Detach,
        RequestKind::GetClusterConfig,
        RequestKind::GetHistory,
        RequestKind::GetTeam,
        RequestKind::GetTeamInbox,
        RequestKind::GetTurns,
        RequestKind::GitDiff,
        RequestKind::GitStatus,
        RequestKind::Keepalive,
        RequestKind::ListProjectFiles,
        RequestKind::ListProjects,
        RequestKind::ListSessions,
        RequestKind::ListTeams,
        RequestKind::ReadProjectFile,
        RequestKind::ReadProjectFileChunk,
        RequestKind::UnwatchProjectFiles,
        RequestKind::WatchProjectFiles,
    ];
    const ADMIN: [RequestKind; 16] = [
        RequestKind::AdoptSession,
        RequestKind::ClusterForget,
        RequestKind::ClusterInvite,
        RequestKind::ClusterInvites,
        RequestKind::ClusterJoin,
        RequestKind::ClusterLeave,
        RequestKind::ClusterRevokeInvite,
        RequestKind::CreateProject,
        RequestKind::DeleteProject,
        RequestKind::ForceElection,
        RequestKind::ListDirectory,
        RequestKind::PromoteNode,
        RequestKind::RenameNode,
        RequestKind::TriggerSync,
        RequestKind::UpdateClusterConfig,
        RequestKind::UpdateProject,
    ];

    fn examples() -> impl Iterator<Item = Value> {
        let spec = include_str!("../../protocol/src/workspace/tests/data/requests.jsonl");
        let ours = include_str!("../../protocol/src/workspace/tests/data/requests_ours.jsonl");
        spec.lines().chain(ours.lines()).map(|line| serde_json::from_str(line).unwrap())
    }

    fn policy(message: &Value) -> (RequestKind, Policy) {
        let message = decode_request(&message.to_string()).unwrap();
        (message.kind(), Policy::of(&message))
    }

    #[test]
    fn every_request_has_its_role() {
        let mut kinds = Vec::new();
        for mut example in examples() {
            let is_project = example["type"].as_str().unwrap().ends_with("project");
            if example.get("run_as_user").is_some() && !is_project {
                example["run_as_user"] = json!(null);
            }
            let (kind, policy) = policy(&example);
            let needed = match () {
                () if READ.contains(&kind) => Read,
                () if ADMIN.contains(&kind) => Admin,
                () => Write,
            };
            assert_eq!(policy.role, needed, "{example}");
            kinds.push(kind);
        }
        for kind in RequestKind::ALL {
            assert!(kinds.contains(kind), "{} has no example", kind.name());
        }
    }

    #[test]
    fn being_another_user_is_for_admins() {
        for message in [
            json!({"type": "new_session", "run_as_user": "alice"}),
            json!({"type": "open_terminal", "command": "sh", "run_as_user": "alice"}),
        ] {
            assert_eq!(policy(&message).1.role, Admin);
        }
    }

    #[test]
    fn a_message_and_its_kind_have_the_same_family_of_errors() {
        for example in examples() {
            let (kind, policy) = policy(&example);
            assert_eq!(policy.family.kind(), error_family(kind), "{example}");
        }
    }
}

//! Creates, renames and ends sessions, and reads their history.

use protocol::workspace::{
    Role, ServerMessage, SessionInfo, SessionMode,
    client::{
        AdoptSession, GetHistory, GetTurns, NewSession as NewSessionRequest, OfSession,
        OpenTerminal, RenameSession, WithSession,
    },
    session::{DEFAULT_PROVIDER, DEV_SERVER_TAG},
};
use workspace::{NewEngine, NewSession, Refusal, path_text};

use super::asker::{Answer, Asker};

/// The length of the history that is sent, in bytes: by default, and at most.
const PAST: u64 = 256 * 1024;
const MOST_PAST: u64 = 8 * 1024 * 1024;

pub(crate) async fn agent(asker: &Asker, request: NewSessionRequest) -> Answer {
    let new = of_agent(asker, request)?;
    let made = create(asker, "session.open", new).await?;
    Ok(Some(ServerMessage::SessionCreated(made)))
}

pub(crate) async fn terminal(asker: &Asker, request: OpenTerminal) -> Answer {
    let new = of_terminal(asker, request)?;
    let made = create(asker, "session.open", new).await?;
    Ok(Some(ServerMessage::TerminalOpened(made)))
}

pub(crate) async fn adopt(asker: &Asker, request: AdoptSession) -> Answer {
    let made = create(asker, "session.adopt", of_process(request)?).await?;
    Ok(Some(ServerMessage::SessionCreated(made)))
}

pub(crate) async fn rename(asker: &Asker, request: RenameSession) -> Answer {
    let info = asker.services.sessions.rename(request.session_id, request.name).await?;
    asker.note("session.rename", &request.session_id.to_string(), "done");
    Ok(Some(ServerMessage::SessionStatusChanged(with(info))))
}

pub(crate) async fn history(asker: &Asker, request: GetHistory) -> Answer {
    let GetHistory { session_id, before_seq, max_bytes } = request;
    let (sessions, before_seq) = (&asker.services.sessions, before_seq.unwrap_or(u64::MAX));
    let past = sessions.history(session_id, before_seq, length(max_bytes)).await?;
    Ok(Some(ServerMessage::History(past)))
}

pub(crate) async fn turns(asker: &Asker, request: GetTurns) -> Answer {
    let GetTurns { session_id, before, after, max_bytes } = request;
    let range = (after.unwrap_or(0), before.unwrap_or(u64::MAX));
    let turns = asker.services.sessions.turns(session_id, range, length(max_bytes)).await?;
    Ok(Some(ServerMessage::Turns(turns)))
}

/// The length of the history to send, in bytes.
fn length(wanted: Option<u64>) -> usize {
    usize::try_from(wanted.unwrap_or(PAST).min(MOST_PAST)).unwrap_or(usize::MAX)
}

/// The event of a killed session goes to all clients, the asker included, so it is the answer, too.
/// The event of a hidden session goes only to its viewers; any other asker gets an answer of its
/// own.
pub(crate) async fn kill(asker: &Asker, request: OfSession) -> Answer {
    let id = request.session_id;
    // Read before the kill, because a killed session is no longer known.
    let is_hidden = asker.services.sessions.info(id)?.hidden;
    let killed = asker.services.sessions.kill(id).await;
    asker.note_outcome("session.kill", &id.to_string(), &killed);
    killed?;
    let is_told = asker.hears_events && (!is_hidden || asker.attached == Some(id));
    Ok((!is_told).then_some(ServerMessage::SessionKilled(request)))
}

async fn create(
    asker: &Asker,
    what: &'static str,
    new: NewSession,
) -> Result<WithSession, Refusal> {
    let dir = new.working_dir.clone();
    let made = asker.services.sessions.create(new).await;
    let target = made.as_ref().map_or(dir, |info| info.id.to_string());
    asker.note_outcome(what, &target, &made);
    made.map(with)
}

fn with(info: SessionInfo) -> WithSession {
    WithSession { session: Box::new(info) }
}

fn of_agent(asker: &Asker, request: NewSessionRequest) -> Result<NewSession, Refusal> {
    on_this_node(asker, request.node_id.as_deref())?;
    let provider = request.provider.unwrap_or_else(|| DEFAULT_PROVIDER.to_owned());
    let extra_args = request.extra_args.unwrap_or_default();
    let is_server = request.tags.iter().any(|tag| tag == DEV_SERVER_TAG);
    let is_command_line = is_server && request.mode == SessionMode::Pty;
    if !extra_args.is_empty() && !is_command_line {
        asker.services.sessions.check_args(&extra_args, asker.me.role == Role::Admin)?;
    }
    let model = request.model;
    let engine = match request.mode {
        SessionMode::Sdk => NewEngine::Agent { provider, model, extra_args },
        SessionMode::Pty => NewEngine::Interactive { provider, model, extra_args },
        SessionMode::Adopted => {
            return Err(Refusal::invalid("a process is taken in with adopt_session"));
        }
    };
    Ok(NewSession {
        name: request.name,
        project_id: request.project_id,
        run_as_user: request.run_as_user,
        hidden: request.hidden,
        tags: request.tags,
        size: size(request.cols, request.rows),
        ..NewSession::new(engine, request.working_dir.unwrap_or_default())
    })
}

fn of_terminal(asker: &Asker, request: OpenTerminal) -> Result<NewSession, Refusal> {
    on_this_node(asker, request.node_id.as_deref())?;
    let engine = NewEngine::Shell { command: request.command, args: request.args };
    Ok(NewSession {
        name: request.name,
        project_id: request.project_id,
        run_as_user: request.run_as_user,
        hidden: request.hidden,
        tags: request.tags,
        size: size(request.cols, request.rows),
        ..NewSession::new(engine, request.working_dir.unwrap_or_default())
    })
}

fn of_process(request: AdoptSession) -> Result<NewSession, Refusal> {
    let AdoptSession { pid, name, working_dir } = request;
    let working_dir = match working_dir {
        Some(dir) => dir,
        None => {
            let process = process::Adopted::open(pid).map_err(|error| Refusal::failed(&error))?;
            let dir = process.working_dir().map(|dir| path_text(dir)).transpose()?;
            dir.ok_or_else(|| Refusal::invalid("the process does not say where it runs"))?
        }
    };
    Ok(NewSession { name, ..NewSession::new(NewEngine::Adopted { pid }, working_dir) })
}

/// Refuses other nodes: without a cluster there is only this one. In a cluster the request went to
/// the node that it names.
fn on_this_node(asker: &Asker, node: Option<&str>) -> Result<(), Refusal> {
    let is_alone = asker.services.membership.cluster().is_none();
    match node {
        Some(node) if is_alone && node != asker.services.node.id => Err(Refusal::Invalid(format!(
            "there is no node {node:?}: this server is in no cluster"
        ))),
        _ => Ok(()),
    }
}

/// A terminal's size. If only one of the two is given, the other has its usual value.
fn size(cols: Option<u16>, rows: Option<u16>) -> Option<(u16, u16)> {
    (cols.is_some() || rows.is_some()).then(|| (cols.unwrap_or(80), rows.unwrap_or(24)))
}

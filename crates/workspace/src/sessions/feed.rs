//! The interface by which an engine reports to its session.

use std::sync::{Arc, Weak};

use base::Secret;
use bytes::Bytes;
use protocol::workspace::{
    AgentEvent, PermissionOutcome, ServerMessage, SessionId, SessionStatus, TeamId,
    client::{PermissionResolved, Usage},
};
use session::agent::Usage as TurnUsage;
use tracing::Span;

use super::{
    clock::now,
    life::{Activity, facts::TranscriptPosition},
    session::Session,
    shared::TurnFollower,
};

/// How much of the newest output is searched for lines that were already fed, in bytes.
const NEWEST_LINES: usize = 8 * 1024 * 1024;

/// An engine's handle to its session. It is cheap to clone, and does nothing once the session is
/// gone.
#[derive(Clone)]
pub(crate) struct Feed {
    id: SessionId,
    span: Span,
    session: Weak<Session>,
}

impl Feed {
    pub(super) fn new(session: &Arc<Session>) -> Self {
        let span = session.span.clone();
        Self { id: session.id, span, session: Arc::downgrade(session) }
    }

    /// The span for the tasks of an engine.
    pub(crate) fn span(&self) -> Span {
        self.span.clone()
    }

    pub(crate) fn session(&self) -> SessionId {
        self.id
    }

    /// Takes output of a terminal: any bytes, as read. They are decoded, kept and shown to viewers.
    pub(crate) fn output(&self, bytes: Bytes) {
        if let Some(session) = self.session.upgrade() {
            session.output(bytes);
        }
    }

    /// From now on, notes in this journal what the engine feeds.
    pub(crate) fn journal(&self, journal: &Arc<process::Journal>) {
        let Some(session) = self.session.upgrade() else { return };
        if let Err(error) = session.lock().output.begin_journal(Arc::clone(journal)) {
            tracing::warn!(session = %self.id, %error, "its output would be lost with this server");
        }
    }

    /// Keeps the key of an agent that is about to run in a terminal, for the next daemon.
    pub(crate) fn keep_key(&self, key: &Secret) {
        if let Some(session) = self.session.upgrade() {
            session.lock().output.keep_key(key.clone());
        }
    }

    /// Waits until this many more bytes of a terminal's output can be taken without delaying other
    /// sessions.
    pub(crate) async fn room(&self, bytes: usize) {
        if let Some(session) = self.session.upgrade() {
            session.room(bytes).await;
        }
    }

    /// Takes a raw line of an agent, with its line end, and the events that follow from the line.
    pub(crate) fn line(&self, raw: String, events: Vec<AgentEvent>) {
        if let Some(session) = self.session.upgrade() {
            session.line(raw.into(), events);
        }
    }

    /// [`Feed::line`] for a line that ends after this many bytes of the process's output.
    pub(crate) fn line_up_to(&self, taken: u64, raw: String, events: Vec<AgentEvent>) {
        if let Some(session) = self.session.upgrade() {
            session.lock().output.note_taken(taken);
        }
        self.line(raw, events);
    }

    /// From now on, notes output in the journal of the session's next process, no longer in that of the last one.
    pub(crate) fn journal_anew(&self, journal: &Arc<process::Journal>) {
        if let Some(session) = self.session.upgrade() {
            session.lock().output.end_journal();
        }
        self.journal(journal);
    }

    /// Returns when all output so far is on the disk, or could not be written.
    pub(crate) async fn written(&self) {
        if let Some(session) = self.session.upgrade() {
            session.shared.writer.flush().await;
        }
    }

    /// Takes an event that comes from no line, such as a time-out or a crash.
    pub(crate) fn event(&self, event: AgentEvent) {
        self.line(String::new(), vec![event]);
    }

    pub(crate) fn activity(&self, activity: Activity) {
        if let Some(session) = self.session.upgrade() {
            let before = std::mem::replace(&mut session.lock().life.activity, activity);
            if before != activity {
                session.announce(now());
            }
        }
    }

    /// Takes an agent's question for permission. It stays open until it is resolved; later viewers get it,
    /// too.
    pub(crate) fn ask(&self, request_id: String, tool: String, input: serde_json::Value) {
        if let Some(session) = self.session.upgrade() {
            let question = session.lock().inputs.questions.ask(self.id, request_id, tool, input);
            session.say(ServerMessage::PermissionRequest(question));
            session.announce(now());
        }
    }

    pub(crate) fn resolved(&self, request_id: &str, outcome: PermissionOutcome) {
        let Some(session) = self.session.upgrade() else { return };
        let Some(request_id) = session.lock().inputs.questions.take(request_id) else { return };
        session.say(ServerMessage::PermissionResolved(PermissionResolved {
            session_id: self.id,
            request_id,
            outcome,
            message: None,
        }));
        session.announce(now());
    }

    /// Notes a client's prompt, which waits until [`Feed::turn_started`] and is stored with the facts.
    pub(crate) fn prompt_waits(&self, text: String) {
        if let Some(session) = self.session.upgrade() {
            session.lock().life.facts.waiting.push(text);
        }
    }

    /// Notes that a turn has begun. If `is_clients`, it is the turn of the client's prompt that has waited longest.
    /// The turn's number is stored before this returns.
    pub(crate) fn turn_started(&self, turn: u64, is_clients: bool) {
        let Some(session) = self.session.upgrade() else { return };
        session.change_stored(|life| {
            life.facts.turn = turn;
            if is_clients && !life.facts.waiting.is_empty() {
                life.facts.waiting.remove(0);
            }
            life.touch();
        });
        if let Some(follower) = turn_follower(&session) {
            follower.turn_started(self.id, turn);
        }
    }

    /// Notes that a turn has ended: viewers get `usage`, and the session's team gets the final text.
    pub(crate) fn turn_ended(&self, turn: u64, ok: bool, text: Option<String>, usage: TurnUsage) {
        let Some(session) = self.session.upgrade() else { return };
        let TurnUsage { input_tokens, output_tokens, cost_usd } = usage;
        session.say(ServerMessage::Usage(Usage {
            session_id: self.id,
            turn,
            input_tokens,
            output_tokens,
            cost_usd,
        }));
        session.lock().life.touch();
        session.shared.keeper.keep_soon(&session);
        if let Some(follower) = turn_follower(&session) {
            follower.turn_ended(self.id, turn, ok, text);
        }
    }

    /// Stores the agent's own id of its conversation before it returns. A new id resets the stored
    /// usage.
    pub(crate) fn conversation(&self, id: String) {
        if let Some(session) = self.session.upgrade() {
            session.change_stored(|life| {
                let facts = &mut life.facts;
                if facts.conversation.as_ref() != Some(&id) {
                    (facts.conversation, facts.used) = (Some(id), None);
                }
            });
        }
    }

    /// Stores the usage of the conversation so far, before it returns.
    pub(crate) fn used(&self, used: TurnUsage) {
        if let Some(session) = self.session.upgrade() {
            session.change_stored(|life| life.facts.used = Some(used));
        }
    }

    /// The number of the newest output.
    pub(crate) fn last_seq(&self) -> u64 {
        let session = self.session.upgrade();
        session.map_or(0, |session| session.lock().output.log().last_seq())
    }

    /// Stores how far a transcript is read. The output that was fed before is written to the disk first, so a
    /// reader that continues from this position loses nothing. [`Feed::lines_after`] tells the reader which of the
    /// following lines were fed already.
    pub(crate) async fn followed(&self, followed: TranscriptPosition) {
        let Some(session) = self.session.upgrade() else { return };
        session.shared.writer.flush().await;
        session.lock().life.facts.transcript = Some(followed);
        if let Err(refusal) = session.shared.keeper.keep(&session).await {
            tracing::error!(session = %self.id, %refusal, "cannot keep how far a transcript is read");
        }
    }

    /// The newest lines of output after this number, without their line ends.
    pub(crate) async fn lines_after(&self, seq: u64) -> Vec<String> {
        let Some(session) = self.session.upgrade() else { return Vec::new() };
        let past = session.past(u64::MAX, NEWEST_LINES).await;
        let past =
            past.inspect_err(|refusal| tracing::error!(session = %self.id, %refusal, "output"));
        let chunks = past.map(|past| past.chunks).unwrap_or_default().into_iter();
        let text: Vec<_> = chunks.filter(|chunk| chunk.seq > seq).map(|chunk| chunk.text).collect();
        let text = text.concat();
        String::from_utf8_lossy(&text).split_terminator('\n').map(str::to_owned).collect()
    }

    /// Notes that the process has ended. `how` says it in words (`exited with 0`, `killed by SIGTERM`), and
    /// `exit_code` is given if known. The engine calls this after it has fed all output that it read.
    pub(crate) fn ended(&self, how: String, exit_code: Option<i32>) {
        let Some(session) = self.session.upgrade() else { return };
        if session.end(how, exit_code) && session.lock().life.facts.team_id.is_some() {
            session.shared.member_gone(self.id);
        }
    }

    pub(crate) fn team(&self) -> Option<TeamId> {
        self.session.upgrade()?.lock().life.facts.team_id
    }

    /// The session's status; `None` once the session is gone.
    pub(crate) fn status(&self) -> Option<SessionStatus> {
        let session = self.session.upgrade()?;
        let state = session.lock();
        (!state.life.is_gone).then(|| state.status())
    }

    /// Whether the session was removed from the list of sessions, so that its engine has to end
    /// even a process that would outlive the daemon.
    pub(crate) fn is_removed(&self) -> bool {
        self.session.upgrade().is_some_and(|session| session.lock().life.is_removed)
    }

    /// Whether the program in the terminal has turned on bracketed paste.
    pub(crate) fn takes_pastes(&self) -> bool {
        let session = self.session.upgrade().filter(|session| session.is_terminal);
        // A snapshot turns on the modes that are on.
        session.is_some_and(|session| session.screen_now().data.contains("\x1b[?2004h"))
    }
}

/// The follower of a session's turns, if the session belongs to a team.
fn turn_follower(session: &Session) -> Option<Arc<dyn TurnFollower>> {
    session.lock().life.facts.team_id?;
    session.shared.turns()
}

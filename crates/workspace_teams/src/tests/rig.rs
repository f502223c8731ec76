//! Teams with a store in memory and sessions that do what the test says.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{Arc, Mutex, MutexGuard, Weak},
    time::Duration,
};

use ::session::team::Limits;
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::workspace::{
    ClientMessage, ProjectId, Role, ServerMessage, SessionId, SessionInfo, SessionStatus, Team,
    TeamId, client::TeamCreated, decode_request,
};
use store::{VolatileStore, WorkspaceStore};
use tokio::task::JoinHandle;
use workspace::{Event, Facts, Identity, Member, NewSession, Receipt, Refusal};

use crate::{
    Desk, TeamRequests,
    driver::Driver,
    facts::KIND,
    outposts::Outposts,
    queue::{Queue, SessionNotice, ask},
    team_host::TeamHost,
};

pub(super) async fn answer(desk: Desk, message: ClientMessage) -> Result<ServerMessage, Refusal> {
    let answer = match message {
        ClientMessage::CreateTeam(create) => desk.create(*create).await,
        ClientMessage::SpawnWorker(spawn) => desk.spawn(*spawn).await,
        ClientMessage::RelayTeamMessage(relay) => desk.relay(relay).await,
        ClientMessage::ListTeams => desk.list().await,
        ClientMessage::GetTeam(of) => desk.get(of.team_id).await,
        ClientMessage::DeleteTeam(of) => desk.delete(of.team_id).await,
        ClientMessage::Handoff(handoff) => desk.handoff(handoff).await,
        ClientMessage::Assign(assign) => desk.assign(assign).await,
        ClientMessage::TeamWait(wait) => desk.wait(wait).await,
        ClientMessage::GetTeamInbox(inbox) => desk.inbox(inbox).await,
        ClientMessage::ReportResult(result) => desk.report(result).await,
        other => panic!("{} is not about teams", other.name()),
    };
    answer.map(|answer| answer.expect("every request about teams is answered"))
}

/// A daemon's teams; dropping it is the daemon's death.
pub(super) struct Rig {
    pub(super) store: Arc<VolatileStore>,
    pub(super) sessions: Arc<Sessions>,
    pub(super) queue: Arc<Queue>,
    pub(super) outposts: Arc<Outposts>,
    driving: JoinHandle<()>,
}

/// The sessions, and the events that clients were sent.
pub(super) struct Sessions {
    state: Mutex<FakeSessions>,
    this: Weak<Self>,
}

#[derive(Default)]
pub(super) struct FakeSessions {
    pub(super) all: BTreeMap<SessionId, FakeSession>,
    pub(super) events: Vec<Event>,
    /// Whether requests for new sessions are refused.
    pub(super) refuses: bool,
    /// How long a new session takes.
    pub(super) creation: Duration,
    last: u128,
}

pub(super) struct FakeSession {
    pub(super) facts: Facts,
    /// The prompts that it was given and has not begun.
    pub(super) prompts: VecDeque<(String, Receipt)>,
    pub(super) is_full: bool,
    pub(super) is_idle: bool,
    turn: u64,
}

impl Rig {
    pub(super) async fn start() -> Self {
        Self::within(Limits::default()).await
    }

    pub(super) async fn with_team() -> (Self, Team) {
        let rig = Self::start().await;
        let team = rig.create().await;
        (rig, team)
    }

    pub(super) async fn within(limits: Limits) -> Self {
        Self::go_on(Arc::new(VolatileStore::default()), Sessions::new(), limits).await
    }

    async fn go_on(store: Arc<VolatileStore>, sessions: Arc<Sessions>, limits: Limits) -> Self {
        let (queue, host) =
            (Arc::new(Queue::default()), Arc::clone(&sessions) as Arc<dyn TeamHost>);
        let outposts = Arc::new(Outposts::new(&queue));
        let driver = Driver::restore(store.clone(), host, Arc::clone(&outposts), limits).await;
        let driving = tokio::spawn(driver.unwrap().0.run(Arc::clone(&queue)));
        let rig = Self { store, sessions, queue, outposts, driving };
        rig.settle().await;
        rig
    }

    /// The daemon dies, and starts again. Its sessions have lost what they were given.
    pub(super) async fn restart(self) -> Self {
        self.driving.abort();
        for session in self.sessions.lock().all.values_mut() {
            session.prompts.clear();
        }
        self.sessions.lock().events.clear();
        Self::go_on(self.store.clone(), self.sessions.clone(), Limits::default()).await
    }

    /// Sends a request from outside of all teams.
    pub(super) async fn say(&self, message: &str) -> Result<ServerMessage, Refusal> {
        self.say_as(None, message).await
    }

    /// Sends a request as an agent.
    pub(super) async fn say_as(
        &self,
        member: Option<Member>,
        message: &str,
    ) -> Result<ServerMessage, Refusal> {
        let who = Identity { who: "test".to_owned(), role: Role::Write, member };
        let message = decode_request(message).unwrap();
        answer(self.requests().desk(&who), message).await
    }

    pub(super) fn requests(&self) -> TeamRequests {
        let host = Arc::clone(&self.sessions) as Arc<dyn TeamHost>;
        TeamRequests::new(Arc::clone(&self.queue), host, Arc::clone(&self.outposts))
    }

    /// Waits until everything sent before is done.
    pub(super) async fn settle(&self) {
        for _ in 0..3 {
            ask(&self.queue, |_, _| (Ok(()), Vec::new())).await.unwrap();
        }
    }

    pub(super) async fn create(&self) -> Team {
        let made = self.say(r#"{"type":"create_team","name":"crew","working_dir":"/work"}"#).await;
        let ServerMessage::TeamCreated(TeamCreated { team, .. }) = made.unwrap() else { panic!() };
        team
    }

    /// A worker without work.
    pub(super) async fn spawn(&self, team: TeamId) -> SessionId {
        let spawn = format!(r#"{{"type":"spawn_worker","team_id":"{team}","name":"ann"}}"#);
        match self.say(&spawn).await.unwrap() {
            ServerMessage::WorkerSpawned(made) => made.worker_session.id,
            other => panic!("{other:?}"),
        }
    }

    /// A worker that was given work.
    pub(super) async fn assign(&self, team: TeamId, prompt: &str) -> SessionId {
        let assign = format!(r#"{{"type":"assign","team_id":"{team}","prompt":"{prompt}"}}"#);
        let assigned = self.say(&assign).await.unwrap();
        self.settle().await;
        match assigned {
            ServerMessage::WorkerAssigned(made) => made.worker_session_id,
            other => panic!("{other:?}"),
        }
    }

    /// Sends a message from one member to another. Returns its number.
    pub(super) async fn relay(
        &self,
        team: TeamId,
        from: SessionId,
        to: Option<SessionId>,
        payload: &str,
    ) -> Result<u64, Refusal> {
        let to = to.map(|to| format!(r#""to_session_id":"{to}","#)).unwrap_or_default();
        let relay = format!(
            r#"{{"type":"relay_team_message","team_id":"{team}","from_session_id":"{from}",{to}
            "payload":"{payload}"}}"#
        );
        match self.say(&relay).await? {
            ServerMessage::TeamMessageSent(sent) => Ok(sent.seq),
            other => panic!("{other:?}"),
        }
    }

    pub(super) async fn wait(&self, more: &str) -> protocol::workspace::client::TeamWaitResult {
        match self.say(&format!(r#"{{"type":"team_wait",{more}}}"#)).await.unwrap() {
            ServerMessage::TeamWaitResult(result) => result,
            other => panic!("{other:?}"),
        }
    }

    /// Begins a session's next turn with its oldest prompt, and returns that prompt.
    pub(super) async fn begin(&self, id: SessionId) -> String {
        self.settle().await;
        let (text, receipt) = {
            let mut state = self.sessions.lock();
            let session = state.all.get_mut(&id).unwrap();
            (session.turn, session.is_idle) = (session.turn + 1, false);
            session.prompts.pop_front().expect("it was given nothing")
        };
        receipt.turn_begins();
        let turn = self.turn(id);
        self.queue.tell(SessionNotice::Started { session: id.uuid(), turn, at: turn });
        self.settle().await;
        text
    }

    /// Its turn ends with these words.
    pub(super) async fn end(&self, id: SessionId, ok: bool, text: &str) {
        self.end_unheard(id, ok, text);
        self.settle().await;
    }

    pub(super) fn end_unheard(&self, id: SessionId, ok: bool, text: &str) {
        self.sessions.lock().all.get_mut(&id).unwrap().is_idle = true;
        self.queue.tell(SessionNotice::ended(id, self.turn(id), ok, Some(text.to_owned()), 0));
    }

    pub(super) async fn die(&self, id: SessionId) {
        self.sessions.lock().all.get_mut(&id).unwrap().facts.ended = Some("killed".to_owned());
        self.queue.tell(SessionNotice::Gone { session: id.uuid(), at: 0 });
        self.settle().await;
    }

    pub(super) fn given(&self, id: SessionId) -> Vec<String> {
        let state = self.sessions.lock();
        state.all[&id].prompts.iter().map(|(text, _)| text.clone()).collect()
    }

    /// The messages that clients were sent since the last call.
    pub(super) fn messages(&self) -> Vec<ServerMessage> {
        let events = std::mem::take(&mut self.sessions.lock().events);
        events.into_iter().map(|event| event.message).collect()
    }

    pub(super) fn message_names(&self) -> Vec<&'static str> {
        self.messages().iter().map(ServerMessage::name).collect()
    }

    /// The ids of all facts in the store.
    pub(super) fn stored(&self) -> Vec<String> {
        let facts = self.store.load_facts(KIND).unwrap();
        facts.into_iter().map(|fact| fact.id).collect()
    }

    pub(super) async fn waits(&self) -> usize {
        ask(&self.queue, |core, _| (Ok(core.waits()), Vec::new())).await.unwrap()
    }

    fn turn(&self, id: SessionId) -> u64 {
        self.sessions.lock().all[&id].turn
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        self.driving.abort();
    }
}

impl Sessions {
    fn new() -> Arc<Self> {
        Arc::new_cyclic(|this| Self { state: Mutex::default(), this: this.clone() })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, FakeSessions> {
        self.state.lock().unwrap()
    }
}

impl TeamHost for Sessions {
    fn tell(&self, event: Event) {
        self.lock().events.push(event);
    }

    fn deliver(&self, session: SessionId, text: String, receipt: Receipt) -> Result<(), Refusal> {
        // A refused receipt is dropped after this guard, as all parameters are, and finds nothing
        // locked.
        let mut state = self.lock();
        let found = state.all.get_mut(&session).filter(|session| session.facts.ended.is_none());
        match found {
            Some(session) if !session.is_full => {
                session.prompts.push_back((text, receipt));
                Ok(())
            }
            Some(_) => Err(Refusal::invalid("full")),
            None => Err(Refusal::UnknownSession(session)),
        }
    }

    fn create(&self, new: NewSession) -> BoxFuture<'static, Result<SessionInfo, Refusal>> {
        let mut state = self.lock();
        state.last += 1;
        let id = SessionId::from_random(state.last);
        drop(state);
        self.create_as(id, new)
    }

    fn create_as(
        &self,
        id: SessionId,
        new: NewSession,
    ) -> BoxFuture<'static, Result<SessionInfo, Refusal>> {
        let mut state = self.lock();
        if state.refuses {
            return async { Err(Refusal::invalid("no more sessions")) }.boxed();
        }
        let (dir, user) = (new.working_dir.clone(), new.run_as_user.clone());
        let facts = new.facts(id, dir, user).unwrap();
        let (info, prompts) = (info(&facts), VecDeque::new());
        let session = FakeSession { facts, prompts, is_full: false, is_idle: true, turn: 0 };
        if state.creation.is_zero() {
            state.all.insert(info.id, session);
            return async { Ok(info) }.boxed();
        }
        let (creation, sessions) = (state.creation, self.this.clone());
        async move {
            tokio::time::sleep(creation).await;
            sessions.upgrade().unwrap().lock().all.insert(info.id, session);
            Ok(info)
        }
        .boxed()
    }

    fn info(&self, session: SessionId) -> Option<SessionInfo> {
        self.lock().all.get(&session).map(|session| info(&session.facts))
    }

    fn has_project(&self, _: ProjectId) -> bool {
        false
    }

    fn kill(&self, sessions: Vec<SessionId>) -> BoxFuture<'static, ()> {
        let mut state = self.lock();
        let killed: Vec<_> = sessions.iter().map(|session| state.all.remove(session)).collect();
        drop(state);
        drop(killed);
        async {}.boxed()
    }

    fn facts(&self, session: SessionId) -> Option<Facts> {
        self.lock().all.get(&session).map(|session| session.facts.clone())
    }

    fn is_idle(&self, session: SessionId) -> bool {
        self.lock().all.get(&session).is_some_and(|session| session.is_idle)
    }

    fn check_args(&self, args: &[String], administrator: bool) -> Result<(), Refusal> {
        let is_bad = !administrator && args.iter().any(|arg| arg == "--dangerous");
        if is_bad { Err(Refusal::invalid("--dangerous is not allowed")) } else { Ok(()) }
    }

    fn note(&self, _: &str, _: &'static str, _: &str) {}

    fn note_typing(&self, _: &str, _: SessionId) {}
}

fn info(facts: &Facts) -> SessionInfo {
    SessionInfo {
        id: facts.id,
        name: facts.name.clone(),
        mode: facts.mode,
        status: SessionStatus::Idle,
        working_dir: facts.working_dir.clone(),
        model: facts.model.clone(),
        created_at: facts.created_at,
        last_active: facts.last_active,
        attached_clients: 0,
        adopted_pid: None,
        project_id: facts.project_id,
        node_id: None,
        kind: facts.kind.clone(),
        provider: facts.provider.clone(),
        hidden: facts.hidden,
        team_id: facts.team_id,
        is_team_leader: facts.is_team_leader,
        reachable: true,
        dev_server_port: None,
        exit_code: None,
        last_seq: None,
        asks: 0,
        tags: facts.tags.clone(),
    }
}

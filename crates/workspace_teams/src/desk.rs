//! Answers every request about teams.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use ::session::team::{Effect, NewTeam, Report, TeamError, TeamView, WaitFor};
use protocol::workspace::{
    Role, ServerMessage, SessionId, SessionInfo, Team, TeamId, WaitId,
    client::{
        Assign, CreateTeam, GetTeamInbox, Handoff, OfTeam, RelayTeamMessage, SpawnWorker,
        TeamCreated, TeamList, TeamMessageSent, TeamWait, WorkerAssigned, WorkerResult,
        WorkerSpawned,
    },
};
use tokio::{sync::oneshot, task};
use uuid::Uuid;
use workspace::{Facts, Identity, NewSession, Refusal};

use crate::{
    core::{Core, Moment, WaitResult},
    outposts::{
        Line, Members, Outposts, PendingSession,
        hosting::OutpostEnd,
        message::{self, ToOutpost},
    },
    queue::{LeaveNotice, Queue, ask},
    shown, spawning,
    team_host::TeamHost,
};

/// The answer to a request.
type Answer = Result<Option<ServerMessage>, Refusal>;

/// The time-out of requests that name none.
const USUAL_WAIT: Duration = Duration::from_secs(10 * 60);

/// The handler of requests about teams.
#[derive(Clone)]
pub struct TeamRequests {
    queue: Arc<Queue>,
    host: Arc<dyn TeamHost>,
    outposts: Arc<Outposts>,
}

impl TeamRequests {
    pub(crate) fn new(queue: Arc<Queue>, host: Arc<dyn TeamHost>, outposts: Arc<Outposts>) -> Self {
        Self { queue, host, outposts }
    }

    /// The handler of one client's requests.
    pub fn desk(&self, who: &Identity) -> Desk {
        Desk { parts: self.clone(), who: who.clone() }
    }

    /// Joins a cluster: from now on, this machine's teams may have team workers on these other members, and
    /// the members' teams may have team workers here.
    pub async fn join(&self, members: Arc<dyn Members>) {
        self.outposts.join(members).await;
    }

    /// Leaves the cluster.
    pub fn leave(&self) {
        self.outposts.leave();
    }

    /// Serves the line of another member, until it ends.
    pub async fn serve(&self, from: &str, mut line: Box<dyn Line>) {
        let first = line.next().await.and_then(|text| message::read(&text));
        match first {
            Ok(ToOutpost::Call) => self.outposts.called(from),
            Ok(first) => {
                let (queue, host) = (Arc::clone(&self.queue), Arc::clone(&self.host));
                let (owner, makings) = (from.to_owned(), Arc::clone(&self.outposts.makings));
                let hosting = OutpostEnd { owner, queue, host, makings };
                hosting.serve(&self.outposts.lines, first, line).await;
            }
            Err(why) => tracing::debug!(from, why, "a line of a team's owner"),
        }
    }

    /// The teams of other members that have sessions here.
    pub async fn seated(&self) -> BTreeSet<TeamId> {
        let teams = ask(&self.queue, |core, _| {
            let teams = core.outpost.seats().map(|seat| TeamId::from_uuid(seat.team));
            (Ok(teams.collect()), Vec::new())
        });
        teams.await.unwrap_or_default()
    }

    /// Ends the sessions here that work for a team of another member, since that team is deleted.
    pub async fn end_seats(&self, team: TeamId) {
        let seats = ask(&self.queue, move |core, _| {
            let seats = core.outpost.seats().filter(|seat| seat.team == team.uuid());
            (Ok(seats.map(|seat| SessionId::from_uuid(seat.session)).collect()), Vec::new())
        });
        let seats: Vec<SessionId> = seats.await.unwrap_or_default();
        self.host.kill(seats).await;
    }
}

/// Handles one client's requests. Dropping the future of a request only gives up waiting for its
/// answer.
#[derive(Clone)]
pub struct Desk {
    parts: TeamRequests,
    who: Identity,
}

/// A waiting caller.
struct PendingWait {
    // Dropped before `_leave_notice`. So the driver, when it gets that notice, sees that the caller is
    // gone.
    waited: oneshot::Receiver<WaitResult>,
    _leave_notice: LeaveNotice,
}

impl Desk {
    /// Refuses an agent that does not lead its team. Otherwise team workers could spawn team workers
    /// without end.
    fn check_leads(&self) -> Result<(), Refusal> {
        let Some(member) = self.who.member else { return Ok(()) };
        let facts = self.parts.host.facts(member.session);
        if !facts.is_some_and(|facts| facts.is_team_leader) {
            let words = "only the leader of a team gives work to others: send it a message";
            return Err(Refusal::invalid(words));
        }
        Ok(())
    }

    fn check_args(&self, args: Option<&[String]>) -> Result<(), Refusal> {
        self.parts.host.check_args(args.unwrap_or_default(), self.who.role == Role::Admin)
    }

    /// Makes a team, with the session of its leader.
    pub async fn create(self, create: CreateTeam) -> Answer {
        self.check_args(create.extra_args.as_deref())?;
        let team = TeamId::from_random(rand::random());
        let (name, project) = (create.name.clone(), create.project_id.map(|id| id.uuid()));
        let new = spawning::leader(create, team)?;
        let desk = self.clone();
        // A session without its team, or a team without its leader, must not stay if the client
        // leaves.
        let (leader, made) = undisturbed(async move {
            let leader = desk.parts.host.create(new).await?;
            let new = NewTeam { id: team.uuid(), name, leader: leader.id.uuid(), project };
            let made = ask(&desk.parts.queue, move |core, moment| created(core, new, moment)).await;
            Ok((leader.clone(), desk.or_end(leader.id, made).await?))
        })
        .await?;
        self.parts.host.note(&self.who.who, "team.create", &team.to_string());
        let (team, leader_session) = (self.shown(made), Box::new(leader));
        Ok(Some(ServerMessage::TeamCreated(TeamCreated { team, leader_session })))
    }

    /// Makes a team worker without work.
    pub async fn spawn(self, spawn: SpawnWorker) -> Answer {
        self.check_leads()?;
        self.check_args(spawn.extra_args.as_deref())?;
        let (session, joined) = self.with_worker(spawn, joined).await?;
        let (team, worker_session) = (self.shown(joined), Box::new(session));
        Ok(Some(ServerMessage::WorkerSpawned(WorkerSpawned { team, worker_session })))
    }

    /// Makes a team worker and gives it work.
    pub async fn assign(self, assign: Assign) -> Answer {
        self.check_leads()?;
        check_prompt(&assign.prompt)?;
        let (team_id, (worker, prompt)) = (assign.team_id, spawning::of_assign(assign));
        let is_leaders = self.who.member.is_some();
        let (session, ()) = self
            .with_worker(worker, move |core, membership, moment| {
                assigned(core, membership, &prompt, is_leaders, moment)
            })
            .await?;
        let worker_session_id = session.id;
        Ok(Some(ServerMessage::WorkerAssigned(WorkerAssigned { team_id, worker_session_id })))
    }

    /// Makes a team worker, gives it work and waits for its result.
    pub async fn handoff(self, handoff: Handoff) -> Answer {
        self.check_leads()?;
        check_prompt(&handoff.prompt)?;
        // The work is given out even if the caller leaves.
        let (session, pending) = undisturbed(self.hand_off(handoff)).await?;
        let answer = pending.answer().await?;
        Ok(Some(ServerMessage::HandoffResult(shown::handoff(&answer, session.id))))
    }

    async fn hand_off(self, handoff: Handoff) -> Result<(SessionInfo, PendingWait), Refusal> {
        let is_leaders = self.who.member.is_some();
        let (tell, pending) = self.pending();
        let (team, timeout) = (handoff.team_id, waits_for(handoff.timeout_ms));
        let (worker, prompt) = spawning::of_handoff(handoff);
        let (session, ()) = self
            .with_worker(worker, move |core, membership, moment| {
                let workers = Some(vec![membership.session]);
                let given = assigned(core, membership, &prompt, is_leaders, moment);
                and_wait(core, given, &wait_for(team, workers, timeout, None), moment, tell)
            })
            .await?;
        Ok((session, pending))
    }

    /// Waits for the results of team workers.
    pub async fn wait(self, wait: TeamWait) -> Answer {
        let workers = wait.for_session_ids.map(|ids| ids.iter().map(|id| id.uuid()).collect());
        let timeout = waits_for(wait.timeout_ms);
        let ours = wait_for(wait.team_id, workers, timeout, wait.wait_id);
        let (tell, pending) = self.pending();
        ask(&self.parts.queue, move |core, moment| core.wait(&ours, moment, tell)).await?;
        Ok(Some(ServerMessage::TeamWaitResult(shown::waited(&pending.answer().await?))))
    }

    /// Puts a message into a member's inbox, or into the inboxes of all others.
    pub async fn relay(self, relay: RelayTeamMessage) -> Answer {
        let RelayTeamMessage { team_id, from_session_id: from, to_session_id: to, payload } = relay;
        let seq = ask(&self.parts.queue, move |core, Moment { at, .. }| {
            let to = to.map(SessionId::uuid);
            done(core.machine.relay(team_id.uuid(), from.uuid(), to, payload, at))
        })
        .await?;
        self.parts.host.note_typing(&self.who.who, to.unwrap_or(from));
        Ok(Some(ServerMessage::TeamMessageSent(TeamMessageSent { team_id, seq })))
    }

    /// Takes a team worker's own report of its result.
    pub async fn report(self, report: WorkerResult) -> Answer {
        let WorkerResult { team_id, worker_session_id: worker, success, result } = report;
        let (team, worker) = (team_id.uuid(), worker.uuid());
        let report = Report { success, result };
        let (success, text) = ask(&self.parts.queue, move |core, Moment { at, .. }| {
            done(core.machine.report(team, worker, report, at))
        })
        .await?;
        let counts = shown::result(team, worker, success, &text);
        Ok(Some(ServerMessage::WorkerResultReceived(counts)))
    }

    /// The messages in a member's inbox.
    pub async fn inbox(self, inbox: GetTeamInbox) -> Answer {
        let GetTeamInbox { team_id, session_id, since_seq } = inbox;
        let page = ask(&self.parts.queue, move |core, _| {
            done(core.machine.inbox(team_id.uuid(), session_id.uuid(), since_seq))
        })
        .await?;
        Ok(Some(ServerMessage::TeamInbox(shown::inbox(team_id, session_id, &page))))
    }

    /// Lists all teams. An agent gets only its own team.
    pub async fn list(self) -> Answer {
        let all = ask(&self.parts.queue, |core, _| (Ok(core.machine.list()), Vec::new())).await?;
        let own = |team: &Team| self.who.member.is_none_or(|member| member.team == team.id);
        let teams = all.into_iter().map(|team| self.shown(team)).filter(own).collect();
        Ok(Some(ServerMessage::TeamList(TeamList { teams })))
    }

    /// One team.
    pub async fn get(self, team: TeamId) -> Answer {
        let teams = vec![self.shown(self.team(team).await?)];
        Ok(Some(ServerMessage::TeamList(TeamList { teams })))
    }

    /// Deletes a team, and ends its sessions.
    pub async fn delete(self, team_id: TeamId) -> Answer {
        let desk = self.clone();
        undisturbed(async move {
            let sessions =
                ask(&desk.parts.queue, move |core, _| deleted(core, team_id.uuid())).await?;
            // Other members are told first: ending the sessions of this machine takes seconds.
            desk.parts.outposts.call_roll();
            desk.parts.host.kill(sessions).await;
            Ok(())
        })
        .await?;
        self.parts.host.note(&self.who.who, "team.delete", &team_id.to_string());
        Ok(Some(ServerMessage::TeamDeleted(OfTeam { team_id })))
    }

    /// Creates a team worker's session and calls `join` with its membership. If `join` fails, the
    /// session ends.
    async fn with_worker<T: Send + 'static>(
        &self,
        worker: SpawnWorker,
        join: impl FnOnce(&mut Core, Membership, Moment) -> CallResult<T> + Send + 'static,
    ) -> Result<(SessionInfo, T), Refusal> {
        let (team, node) = (worker.team_id, worker.node_id.as_deref());
        let node = node.map(|node| self.parts.outposts.find(node)).transpose()?;
        let new = spawning::worker(worker, &self.leader(team).await?)?;
        let desk = self.clone();
        let made = undisturbed(async move {
            let (session, making) = desk.make(node.flatten(), team, new).await?;
            let node = making.as_ref().map(|making| making.node().to_owned());
            let membership = Membership { team: team.uuid(), session: session.id.uuid(), node };
            let joined =
                ask(&desk.parts.queue, move |core, moment| join(core, membership, moment)).await;
            // Dropped only now: from here on, the roll names the session because it is in the team.
            drop(making);
            Ok((session.clone(), desk.or_end(session.id, joined).await?))
        });
        let (session, given) = made.await?;
        self.parts.host.note(&self.who.who, "team.spawn", &session.id.to_string());
        Ok((session, given))
    }

    /// Makes a session here or on another member. Until the `PendingSession` is dropped, the other member
    /// does not end the session for not being in the team.
    async fn make(
        &self,
        node: Option<String>,
        team: TeamId,
        new: NewSession,
    ) -> Result<(SessionInfo, Option<PendingSession>), Refusal> {
        let Some(node) = node else { return Ok((self.parts.host.create(new).await?, None)) };
        let is_administrator = self.who.role == Role::Admin;
        let (session, making) =
            self.parts.outposts.create(&node, team, is_administrator, new).await?;
        Ok((session, Some(making)))
    }

    async fn or_end<T>(&self, session: SessionId, made: Result<T, Refusal>) -> Result<T, Refusal> {
        if made.is_err() {
            self.parts.host.kill(vec![session]).await;
        }
        made
    }

    /// The facts about a team's leader. Fails if the team is not active.
    async fn leader(&self, team: TeamId) -> Result<Facts, Refusal> {
        let shown = self.team(team).await?;
        let inactive = || Refusal::Invalid(TeamError::Inactive(shown.id).to_string());
        let facts = self.parts.host.facts(SessionId::from_uuid(shown.leader));
        facts.filter(|_| shown.active).ok_or_else(inactive)
    }

    async fn team(&self, team: TeamId) -> Result<TeamView, Refusal> {
        ask(&self.parts.queue, move |core, _| (core.machine.get(team.uuid()), Vec::new())).await
    }

    fn shown(&self, team: TeamView) -> Team {
        shown::team(team, |session| self.parts.host.is_known(session))
    }

    fn pending(&self) -> (oneshot::Sender<WaitResult>, PendingWait) {
        let (tell, waited) = oneshot::channel();
        (tell, PendingWait { waited, _leave_notice: LeaveNotice(Arc::clone(&self.parts.queue)) })
    }
}

impl PendingWait {
    async fn answer(mut self) -> WaitResult {
        let closed = || Refusal::Failed("the workspace is shutting down".to_owned());
        (&mut self.waited).await.map_err(|_| closed())?
    }
}

/// The answer of a call of the machine, and its effects, which count even if the call failed.
type CallResult<T> = (Result<T, TeamError>, Vec<Effect>);

/// A session in its team, and the node id of the member that runs it; `None` for this machine.
#[derive(Debug, Clone)]
struct Membership {
    team: Uuid,
    session: Uuid,
    node: Option<String>,
}

fn done<T>(done: ::session::team::Called<T>) -> CallResult<T> {
    match done {
        Ok((given, effects)) => (Ok(given), effects),
        Err(error) => (Err(error), Vec::new()),
    }
}

fn created(core: &mut Core, new: NewTeam, Moment { at, .. }: Moment) -> CallResult<TeamView> {
    let id = new.id;
    match core.machine.create(new, at) {
        Ok(effects) => (core.machine.get(id), effects),
        Err(error) => (Err(error), Vec::new()),
    }
}

fn joined(
    core: &mut Core,
    Membership { team, session, node }: Membership,
    Moment { at, .. }: Moment,
) -> CallResult<TeamView> {
    let joined = match node {
        Some(node) => core.machine.worker_joined_at(team, session, &node, at),
        None => core.machine.worker_joined(team, session, at),
    };
    match joined {
        Ok(effects) => (core.machine.get(team), effects),
        Err(error) => (Err(error), Vec::new()),
    }
}

fn assigned(
    core: &mut Core,
    membership: Membership,
    prompt: &str,
    is_leaders: bool,
    moment: Moment,
) -> CallResult<()> {
    let (team, worker) = (membership.team, membership.session);
    let (joined, mut effects) = joined(core, membership, moment);
    let given = joined.and_then(|_| {
        effects.extend(core.machine.assign(team, worker, prompt, moment.at)?.1);
        if is_leaders {
            effects.extend(core.machine.works_for_leader(team, worker)?);
        }
        Ok(())
    });
    (given, effects)
}

fn and_wait(
    core: &mut Core,
    (given, mut effects): CallResult<()>,
    ask: &WaitFor,
    moment: Moment,
    tell: oneshot::Sender<WaitResult>,
) -> CallResult<()> {
    let waits = given.and_then(|()| {
        let (waits, more) = core.wait(ask, moment, tell);
        effects.extend(more);
        waits
    });
    (waits, effects)
}

fn deleted(core: &mut Core, team: Uuid) -> CallResult<Vec<SessionId>> {
    let mut sessions = Vec::new();
    match core.machine.delete(team) {
        Ok(mut effects) => {
            effects.retain(|effect| match effect {
                Effect::KillSessions(ids) => {
                    sessions.extend(ids.iter().map(|id| SessionId::from_uuid(*id)));
                    false
                }
                _ => true,
            });
            (Ok(sessions), effects)
        }
        Err(error) => (Err(error), Vec::new()),
    }
}

fn wait_for(
    team: TeamId,
    workers: Option<Vec<Uuid>>,
    timeout: Duration,
    resume: Option<WaitId>,
) -> WaitFor {
    let new_id = WaitId::from_random(rand::random()).uuid();
    WaitFor { team: team.uuid(), workers, timeout, resume: resume.map(WaitId::uuid), new_id }
}

fn waits_for(timeout_ms: Option<u64>) -> Duration {
    timeout_ms.map_or(USUAL_WAIT, Duration::from_millis)
}

fn check_prompt(prompt: &str) -> Result<(), Refusal> {
    if prompt.trim().is_empty() {
        return Err(Refusal::invalid("prompt is empty: say what is to be done"));
    }
    Ok(())
}

/// Runs work to its end, even if the caller stops waiting for it.
async fn undisturbed<T: Send + 'static>(
    work: impl Future<Output = Result<T, Refusal>> + Send + 'static,
) -> Result<T, Refusal> {
    task::spawn(work).await.map_err(|error| Refusal::failed(&error))?
}

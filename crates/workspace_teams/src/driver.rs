//! The one task that calls the machine. It stores the changes of a call, carries out the other
//! effects, and only then acknowledges. If changes cannot be stored, nothing is carried out: the
//! callers get an error, and the machine is rebuilt from the store.

use std::{
    collections::BTreeMap,
    sync::Arc,
    time::{Duration, Instant},
};

use ::session::team::{
    self, Delivery, Effect, Limits, Teams as Machine,
    outpost::{Outpost, SeatRecord},
};
use protocol::workspace::{
    ServerMessage, SessionId, TeamId,
    client::{OfTeam, TeamMessage, TeamUpdated},
};
use store::{StoreError, WorkspaceStore};
use tokio::time::sleep;
use tracing::Instrument as _;
use uuid::Uuid;
use workspace::Event;

use crate::{
    core::{Core, Moment, now, results, sorted},
    delivery::{Speaker, news_receipt, prompt, receipt},
    facts::{Records, StoredTeams},
    news,
    outposts::Outposts,
    queue::{Input, Queue, SessionNotice, Tell},
    shown,
    team_host::TeamHost,
};

/// The pause before the store is tried again after a failure.
const PAUSE: Duration = Duration::from_secs(1);
/// The pause before a message is offered again to a session that had no room, unless a turn ends first.
const OFFER_AGAIN: Duration = Duration::from_secs(5);

/// The owner and only caller of the machine.
pub(crate) struct Driver {
    core: Core,
    records: Records,
    host: Arc<dyn TeamHost>,
    outposts: Arc<Outposts>,
    /// For each session, the number of the message that it was given and whose turn has not begun.
    in_hand: BTreeMap<Uuid, u64>,
    /// When sessions that had no room are offered their message again.
    offers_due: BTreeMap<Uuid, Instant>,
    /// Effects of the restored machine, which the next round carries out first.
    first: Vec<Effect>,
    /// Whether the effects of the daemon's start were carried out.
    has_started: bool,
    /// Whether the machine may be ahead of the store.
    is_lost: bool,
}

/// One call of the machine, and what it caused.
#[derive(Default)]
struct Call {
    changes: Vec<team::Change>,
    rest: Vec<Effect>,
    tell: Option<Tell>,
    /// The notice that caused the call. It is put back if the changes cannot be stored.
    notice: Option<SessionNotice>,
}

impl Driver {
    /// Restores the machine from the store. Also returns whether all records could be read.
    pub(crate) async fn restore(
        store: Arc<dyn WorkspaceStore>,
        host: Arc<dyn TeamHost>,
        outposts: Arc<Outposts>,
        limits: Limits,
    ) -> Result<(Self, bool), StoreError> {
        let core = Core::new(Machine::new(limits), limits);
        let (in_hand, offers_due, first) = (BTreeMap::new(), BTreeMap::new(), Vec::new());
        let (records, has_started, is_lost) = (Records::new(store), false, false);
        let mut driver = Self {
            core,
            records,
            host,
            outposts,
            in_hand,
            offers_due,
            first,
            has_started,
            is_lost,
        };
        let all_read = driver.find().await?;
        Ok((driver, all_read))
    }

    pub(crate) fn teams(&self) -> Vec<TeamId> {
        self.core.machine.list().iter().map(|team| TeamId::from_uuid(team.id)).collect()
    }

    /// The sessions of the outpost.
    pub(crate) fn seats(&self) -> Vec<SessionId> {
        self.core.outpost.seats().map(|seat| SessionId::from_uuid(seat.session)).collect()
    }

    /// Works until it is aborted.
    pub(crate) async fn run(mut self, queue: Arc<Queue>) {
        let mut inputs = Vec::new();
        loop {
            if self.round(&queue, inputs).await.is_err() {
                sleep(PAUSE).await;
            }
            inputs = queue.next(self.deadline()).await;
        }
    }

    /// Rebuilds the machine from the store, and offers messages that have not reached their
    /// addressees. At the daemon's start, sessions that have ended leave their teams, and turns that
    /// had begun fail. After a failure of the store the sessions are still running, so only the
    /// offers are made again. Returns whether all records could be read.
    async fn find(&mut self) -> Result<bool, StoreError> {
        let StoredTeams { records, seats, all_read } = self.records.load().await?;
        let (machine, left_out) = Machine::restore(self.core.limits, records);
        let (outpost, no_seats) = Outpost::restore(seats);
        (self.core.machine, self.core.outpost) = (machine, outpost);
        let removals = left_out.into_iter().map(team::Change::Remove);
        let removals = removals.chain(no_seats.into_iter().map(team::Change::RemoveSeat));
        self.first = removals.map(Effect::Keep).collect();
        if self.has_started {
            self.offer_all();
        } else {
            self.start(now());
        }
        self.is_lost = false;
        Ok(all_read)
    }

    fn start(&mut self, moment: Moment) {
        for session in self.core.sessions_here() {
            let facts = self.host.facts(SessionId::from_uuid(session));
            let is_gone = facts.is_none_or(|facts| facts.ended.is_some());
            let effects = match (is_gone, self.core.outpost.has(session)) {
                (true, true) => self.core.outpost.gone(session),
                (true, false) => self.core.machine.session_gone(session, moment.at),
                (false, true) => self.core.outpost.stopped(session),
                (false, false) => Vec::new(),
            };
            self.first.extend(effects);
        }
        self.first.extend(self.core.machine.restarted(moment.at));
    }

    fn offer_all(&mut self) {
        for session in self.core.members() {
            self.first.extend(self.core.machine.note_room(session));
        }
        self.first.extend(self.core.outpost.offer_all());
    }

    /// Feeds these inputs to the machine, stores the changes and carries out the effects.
    async fn round(&mut self, queue: &Arc<Queue>, inputs: Vec<Input>) -> Result<(), ()> {
        // A machine that is ahead of the store is rebuilt first. If that fails, it is asked all the same,
        // since only a call knows how to tell its caller; nothing of its answer counts.
        let lost = if self.is_lost { self.find().await.err() } else { None };
        let (moment, news) = (now(), self.core.news.clone());
        let mut calls = vec![Call::of(std::mem::take(&mut self.first))];
        calls.extend(inputs.into_iter().map(|input| self.call(input, moment)));
        // Time-outs come last: an input of this round may answer a wait that would time out now.
        calls.push(Call::of(self.time_passed(moment)));
        let changes: Vec<_> =
            calls.iter_mut().map(|call| std::mem::take(&mut call.changes)).collect();
        let is_reported = changes.iter().flatten().any(is_report);
        let stored = match lost {
            Some(error) => Err(base::error::chain(&error)),
            None => self.records.write(changes).await,
        };
        if let Err(why) = stored {
            self.core.news = news;
            self.fail(queue, calls, &why);
            return Err(());
        }
        self.has_started = true;
        calls.into_iter().for_each(|call| self.finish(queue, call));
        self.tell_leaders(queue);
        if is_reported {
            queue.reported();
        }
        Ok(())
    }

    /// Carries out nothing of these calls. Callers get an error; notices go back into the queue.
    fn fail(&mut self, queue: &Queue, calls: Vec<Call>, why: &str) {
        tracing::error!(why, "what happens in teams cannot be written down");
        self.is_lost = true;
        let mut notices = Vec::new();
        for call in calls {
            notices.extend(call.notice);
            if let Some(tell) = call.tell {
                tell(Err(why));
            }
        }
        self.core.fail_waits(why);
        queue.put_back(notices);
    }

    fn call(&mut self, input: Input, moment: Moment) -> Call {
        match input {
            Input::Ask(ask) => {
                let (effects, tell) = ask(&mut self.core, moment);
                Call { tell: Some(tell), ..Call::of(effects) }
            }
            Input::SessionNotice(notice) => {
                let effects = self.core.apply(&notice);
                Call { notice: Some(notice), ..Call::of(effects) }
            }
        }
    }

    fn time_passed(&mut self, moment: Moment) -> Vec<Effect> {
        let mut effects = self.core.machine.handle_timeout(moment.now);
        while let Some((&session, _)) = self.offers_due.iter().find(|(_, at)| **at <= moment.now) {
            self.offers_due.remove(&session);
            effects.extend(self.core.note_room(session));
        }
        effects
    }

    fn deadline(&self) -> Option<Instant> {
        let times = [
            self.core.machine.poll_timeout(),
            self.offers_due.values().min().copied(),
            self.core.look_at(now().now),
        ];
        times.into_iter().flatten().min()
    }

    fn finish(&mut self, queue: &Arc<Queue>, call: Call) {
        match call.notice {
            Some(SessionNotice::Begun { session, .. }) => {
                self.in_hand.remove(&session);
            }
            Some(SessionNotice::NotTaken { session, .. }) => {
                self.in_hand.remove(&session);
                self.offers_due.insert(session, now().now + OFFER_AGAIN);
            }
            Some(SessionNotice::Gone { session, .. }) => {
                self.in_hand.remove(&session);
                self.offers_due.remove(&session);
                self.core.news.gone(session);
            }
            _ => {}
        }
        call.rest.into_iter().for_each(|effect| self.carry_out(queue, effect));
        if let Some(tell) = call.tell {
            tell(Ok(()));
        }
    }

    fn carry_out(&mut self, queue: &Arc<Queue>, effect: Effect) {
        match effect {
            // Changes were stored before anything is carried out.
            Effect::Keep(_) => {}
            Effect::Show(delivery) => self.show(&delivery),
            Effect::Deliver(delivery) => self.deliver(queue, &delivery),
            Effect::WorkerResult { team, worker, success, result } => {
                let result = shown::result(team, worker, success, &result);
                self.tell(team, ServerMessage::WorkerResultReceived(result));
            }
            Effect::Completed(team) => {
                let team_id = TeamId::from_uuid(team);
                self.tell(team, ServerMessage::TeamCompleted(OfTeam { team_id }));
            }
            Effect::WaitAnswered { caller, answer } => {
                let heard = answer.as_ref().map(results).unwrap_or_default();
                if self.core.answer(caller, answer) && !heard.is_empty() {
                    queue.tell(SessionNotice::Heard(heard));
                }
            }
            Effect::Updated(team) => self.tell_updated(team),
            Effect::Deleted(team) => {
                let team_id = TeamId::from_uuid(team);
                self.tell(team, ServerMessage::TeamDeleted(OfTeam { team_id }));
            }
            Effect::KillSessions(sessions) => {
                let sessions = sessions.into_iter().map(SessionId::from_uuid).collect();
                // Ending a session takes seconds, and this task may not wait.
                tokio::spawn(self.host.kill(sessions).in_current_span());
            }
        }
    }

    /// Shows a message to the viewers of its addressee. If another machine runs that session, that machine
    /// shows the message.
    fn show(&self, delivery: &Delivery) {
        if self.core.machine.node_of(delivery.to).is_some() {
            return;
        }
        let team_id = TeamId::from_uuid(delivery.team);
        let message = ServerMessage::TeamMessage(TeamMessage {
            team_id,
            from_session_id: SessionId::from_uuid(delivery.from),
            payload: delivery.payload.to_string(),
        });
        let only_viewers_of = Some(SessionId::from_uuid(delivery.to));
        self.host.tell(Event { message, only_viewers_of, team: Some(team_id) });
    }

    /// Hands a message to its addressee, unless the addressee was already given it before the store
    /// failed.
    fn deliver(&mut self, queue: &Arc<Queue>, delivery: &Delivery) {
        let speaker = self.speaker(delivery);
        if let Some(node) = self.core.machine.node_of(delivery.to) {
            return self.outposts.deliver(node, delivery.clone(), speaker);
        }
        if self.in_hand.insert(delivery.to, delivery.seq) == Some(delivery.seq) {
            return;
        }
        let text = prompt(delivery, &speaker);
        let (session, receipt) =
            (SessionId::from_uuid(delivery.to), receipt(Arc::clone(queue), delivery));
        if let Err(refusal) = self.host.deliver(session, text, receipt) {
            tracing::debug!(%session, %refusal, "a message waits for its addressee");
        }
    }

    fn speaker(&self, delivery: &Delivery) -> Speaker {
        if let Some((name, leads)) = self.core.outpost.sender(delivery.to, delivery.seq) {
            return Speaker { name, leads };
        }
        let name = self.host.name(SessionId::from_uuid(delivery.from));
        let leads = self.core.machine.team_of(delivery.from).is_some_and(|(_, leads)| leads);
        Speaker { name, leads }
    }

    /// Gives results that no caller waited for to leaders that are idle.
    fn tell_leaders(&mut self, queue: &Arc<Queue>) {
        for (leader, results) in self.core.unheard(now().now) {
            let session = SessionId::from_uuid(leader);
            if !self.host.is_idle(session) {
                continue;
            }
            let name = |worker| self.host.name(SessionId::from_uuid(worker));
            let text = news::prompt(&results, name);
            // Noted before the delivery, whose receipt may come at once.
            self.core.news.tells(leader, &results);
            let receipt = news_receipt(Arc::clone(queue), leader);
            if let Err(refusal) = self.host.deliver(session, text, receipt) {
                tracing::debug!(%session, %refusal, "a leader is not told of results");
            }
        }
    }

    fn tell_updated(&self, team: Uuid) {
        if let Ok(shown) = self.core.machine.get(team) {
            let known = |session| self.host.is_known(session);
            let shown = TeamUpdated { team: shown::team(shown, known) };
            self.tell(team, ServerMessage::TeamUpdated(shown));
        }
    }

    fn tell(&self, team: Uuid, message: ServerMessage) {
        let team = Some(TeamId::from_uuid(team));
        self.host.tell(Event { message, only_viewers_of: None, team });
    }
}

/// Whether a change stores a report of the outpost.
fn is_report(change: &team::Change) -> bool {
    matches!(change, team::Change::PutSeat(SeatRecord::Report { .. }))
}

impl Call {
    fn of(effects: Vec<Effect>) -> Self {
        let (changes, rest) = sorted(effects);
        Self { changes, rest, ..Self::default() }
    }
}

//! Serves the owner of a team that has sessions here: the outpost's end of a line.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::session::team::outpost::{Receipt, SeatMessage};
use protocol::workspace::{SessionId, SessionInfo};
use tokio::{task::JoinSet, time::sleep};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;
use workspace::Refusal;

use super::{
    Line, Members,
    making::Makings,
    message::{FromOutpost, Recruit, ToOutpost, read, write},
};
use crate::{
    queue::{Queue, ask},
    team_host::TeamHost,
};

/// The most reports that an owner has been sent and has not acknowledged.
const UNHEARD: usize = 16;
/// The pause after the outpost could not store something, before it is asked again.
const PAUSE: Duration = Duration::from_secs(1);
/// How often owners without a line are called.
const CALLS: Duration = Duration::from_secs(5);

/// The lines of all owners: the newest of each counts.
#[derive(Default)]
pub(crate) struct Lines(Mutex<BTreeMap<String, CancellationToken>>);

impl Lines {
    /// Begins an owner's newest line, and ends its line before. The returned token is cancelled when a newer
    /// line of this owner begins.
    fn begin(&self, owner: &str) -> CancellationToken {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Lines that have ended are removed here, so that there are no more lines than members.
        all.retain(|_, line| !line.is_cancelled());
        let line = CancellationToken::new();
        if let Some(before) = all.insert(owner.to_owned(), line.clone()) {
            before.cancel();
        }
        line
    }

    /// Whether a line of this owner is open.
    pub(crate) fn has(&self, owner: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(owner).is_some_and(|line| !line.is_cancelled())
    }
}

/// The outpost's end of a line.
#[derive(Clone)]
pub(crate) struct OutpostEnd {
    pub(crate) owner: String,
    pub(crate) queue: Arc<Queue>,
    pub(crate) host: Arc<dyn TeamHost>,
    pub(crate) makings: Arc<Makings>,
}

impl OutpostEnd {
    /// Serves an owner until the line ends, or a newer one begins.
    pub(crate) async fn serve(self, lines: &Lines, roll: ToOutpost, mut line: Box<dyn Line>) {
        let replaced = lines.begin(&self.owner);
        // The line counts as open until this future ends or is dropped.
        let _over = replaced.clone().drop_guard();
        let mut serving = OpenLine { hosting: self, sent: BTreeMap::new(), unheard: 0 };
        let mut creating = JoinSet::new();
        let mut reports = serving.hosting.queue.reports();
        let mut message = Some(roll);
        loop {
            if let Some(message) = message.take()
                && let Err(refusal) = serving.message(message, &*line, &mut creating).await
            {
                // The owner begins another line, and sends again what was not answered.
                return tracing::error!(%refusal, "the outpost ends the line of a team's owner");
            }
            serving.report(&*line).await;
            tokio::select! {
                // In this order, so that a line that was replaced answers nothing any more.
                biased;
                () = replaced.cancelled() => return,
                heard = line.next() => match heard.and_then(|text| read(&text)) {
                    Ok(heard) => message = Some(heard),
                    Err(why) => return tracing::debug!(why, "the line of a team's owner ended"),
                },
                Some(made) = creating.join_next() => {
                    if let Ok(made) = made {
                        line.send(write(&made));
                    }
                }
                _ = reports.changed() => {}
            }
        }
    }

    /// Makes a session, even if the line ends meanwhile; the owner then asks again on its next line.
    async fn create(self, recruit: Recruit) -> FromOutpost {
        let session = recruit.session;
        match self.try_create(recruit).await {
            Ok(made) => FromOutpost::Created { session: Box::new(made) },
            Err(refusal) => {
                FromOutpost::Refused { session: session.uuid(), why: refusal.to_string() }
            }
        }
    }

    async fn try_create(&self, recruit: Recruit) -> Result<SessionInfo, Refusal> {
        let id = recruit.session;
        // An owner whose line was cut asks again.
        if let Some(made) = self.host.info(id) {
            return Ok(made);
        }
        self.host.check_args(&recruit.extra_args, recruit.administrator)?;
        let team = recruit.team.uuid();
        let new = recruit.session(|project| self.host.has_project(project))?;
        // The seat comes before the session: a turn that begins at once must find it.
        self.enlist(id, team).await?;
        let made = self.host.create_as(id, new).await;
        match &made {
            Ok(_) => {
                self.host.note(&format!("teams@{}", self.owner), "team.spawn", &id.to_string());
            }
            Err(_) => {
                let dismissed =
                    ask(&self.queue, move |core, _| (Ok(()), core.outpost.dismiss(id.uuid())));
                dismissed.await?;
            }
        }
        made
    }

    async fn enlist(&self, session: SessionId, team: Uuid) -> Result<(), Refusal> {
        let owner = self.owner.clone();
        let enlisted = ask(&self.queue, move |core, _| {
            match core.outpost.enlist(session.uuid(), team, &owner) {
                Ok(effects) => (Ok(Ok(())), effects),
                Err(no_seat) => (Ok(Err(no_seat)), Vec::new()),
            }
        });
        enlisted.await?.map_err(|no_seat| Refusal::Invalid(no_seat.to_string()))
    }
}

struct OpenLine {
    hosting: OutpostEnd,
    /// The newest report about each session that the owner was sent.
    sent: BTreeMap<Uuid, u64>,
    /// The number of reports that the owner was sent on this line and has not acknowledged.
    unheard: usize,
}

impl OpenLine {
    async fn message(
        &mut self,
        message: ToOutpost,
        line: &dyn Line,
        creating: &mut JoinSet<FromOutpost>,
    ) -> Result<(), Refusal> {
        match message {
            ToOutpost::Call => {}
            ToOutpost::Roll { sessions, is_complete } => {
                self.roll(sessions.into_iter().collect(), is_complete, line).await?;
            }
            ToOutpost::Create(recruit) => {
                let (hosting, session) = (&self.hosting, recruit.session.uuid());
                let create = hosting.clone().create(*recruit);
                creating.spawn(hosting.makings.begin(&hosting.owner, session, create));
            }
            ToOutpost::Deliver { session, message } => {
                self.deliver(session, message, line).await?;
            }
            ToOutpost::Heard { session, number } => {
                self.unheard = self.unheard.saturating_sub(1);
                let owner = self.hosting.owner.clone();
                let heard = ask(&self.hosting.queue, move |core, _| {
                    (Ok(()), core.outpost.heard(&owner, session, number))
                });
                heard.await?;
            }
        }
        Ok(())
    }

    /// Ends the sessions that the owner does not know, and tells the owner which of those that it knows are
    /// not here.
    async fn roll(
        &self,
        known: BTreeSet<Uuid>,
        is_complete: bool,
        line: &dyn Line,
    ) -> Result<(), Refusal> {
        let owner = self.hosting.owner.clone();
        let compared = ask(&self.hosting.queue, move |core, _| {
            (Ok(core.outpost.compare(&owner, &known)), Vec::new())
        });
        let differences = compared.await?;
        line.send(write(&FromOutpost::Missing { sessions: differences.missing }));
        // An owner that cannot read all of its teams may have forgotten some.
        if is_complete && !differences.surplus.is_empty() {
            self.dismiss(differences.surplus);
        }
        Ok(())
    }

    /// Ends these sessions. One that is still being made ends as soon as it is there: its owner did
    /// not wait for it.
    fn dismiss(&self, sessions: Vec<Uuid>) {
        let OutpostEnd { owner, host, makings, .. } = &self.hosting;
        for &session in &sessions {
            if let Some(making) = makings.get(owner, session) {
                let host = Arc::clone(host);
                tokio::spawn(async move {
                    making.await;
                    host.kill(vec![SessionId::from_uuid(session)]).await;
                });
            }
        }
        tokio::spawn(host.kill(sessions.into_iter().map(SessionId::from_uuid).collect()));
    }

    async fn deliver(
        &self,
        session: Uuid,
        message: SeatMessage,
        line: &dyn Line,
    ) -> Result<(), Refusal> {
        let (owner, seq) = (self.hosting.owner.clone(), message.seq);
        let taken = ask(&self.hosting.queue, move |core, _| {
            let (taken, effects) = core.outpost.take(session, &owner, message);
            (Ok(taken), effects)
        });
        match taken.await? {
            Receipt::Noted => line.send(write(&FromOutpost::Noted { session, seq })),
            Receipt::Unknown => {
                line.send(write(&FromOutpost::Missing { sessions: vec![session] }));
            }
            Receipt::NoRoom => {
                return Err(Refusal::invalid("too many messages wait for one team worker"));
            }
        }
        Ok(())
    }

    /// Sends the reports that are due.
    async fn report(&mut self, line: &dyn Line) {
        while self.unheard < UNHEARD {
            let (owner, after) = (self.hosting.owner.clone(), self.sent.clone());
            let most = UNHEARD - self.unheard;
            let due = ask(&self.hosting.queue, move |core, _| {
                (Ok(core.outpost.reports(&owner, &after, most)), Vec::new())
            });
            // The store fails. The next event on the line leads here again.
            let Ok(due) = due.await else { return sleep(PAUSE).await };
            if due.is_empty() {
                return;
            }
            for (session, number, report) in due {
                self.sent.insert(session, number);
                self.unheard += 1;
                line.send(write(&FromOutpost::Report { session, number, report }));
            }
        }
    }
}

/// Calls, again and again, the owners that have sessions here and no open line. An owner that has forgotten its
/// sessions would never begin a line, and the sessions would stay for ever.
pub(crate) async fn call_owners(members: Arc<dyn Members>, queue: Arc<Queue>, lines: Arc<Lines>) {
    loop {
        sleep(CALLS).await;
        let owners = ask(&queue, |core, _| {
            let owners = core.outpost.owners().into_iter().map(str::to_owned);
            (Ok(owners.collect::<Vec<_>>()), Vec::new())
        });
        for owner in owners.await.unwrap_or_default() {
            if !lines.has(&owner) && members.is_reachable(&owner) {
                members.open(&owner).send(write(&ToOutpost::Call));
            }
        }
    }
}

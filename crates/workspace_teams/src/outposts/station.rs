//! The station for one member: what the member's outpost is to do for this machine's teams, and the line to it.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use ::session::team::{
    Delivery,
    outpost::{Report, SeatMessage},
};
use protocol::workspace::SessionInfo;
use tokio::{
    sync::{Notify, oneshot},
    time::{sleep, timeout},
};
use uuid::Uuid;

use super::{
    Line, Members, StationContext,
    message::{FromOutpost, Recruit, ToOutpost, read, write},
};
use crate::{delivery::Speaker, queue::ask};

/// How often a station checks whether its member can be reached, and how long it waits after a line has ended.
const LOOK: Duration = Duration::from_millis(500);
/// How often a station checks whether a member that has left is back, unless there is something to do.
const LOOK_FOR_LEFT: Duration = Duration::from_secs(30);
/// How long a station waits after the outpost sent a message that cannot be read.
const STRANGE: Duration = Duration::from_secs(30);
/// The pause after a report could not be stored, before it is tried again.
const PAUSE: Duration = Duration::from_secs(1);
/// The deadline for a new session.
const CREATION: Duration = Duration::from_secs(60);

/// The outcome of a request for a session: the session, or the reason why it was not made.
type CreationResult = Result<SessionInfo, String>;

/// The station for one member.
pub(super) struct Station {
    node: String,
    shared: Arc<StationContext>,
    errands: Mutex<Errands>,
    rung: Notify,
}

/// The messages that the outpost has still to get, and the requests that it has not answered.
#[derive(Default)]
struct Errands {
    creates: BTreeMap<Uuid, Creation>,
    /// One message for each session at a time, by session.
    messages: BTreeMap<Uuid, Errand>,
    is_roll_due: bool,
}

struct Creation {
    recruit: Recruit,
    is_sent: bool,
    tell: oneshot::Sender<CreationResult>,
}

struct Errand {
    message: SeatMessage,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Due,
    Sent,
    /// The message is stored at the outpost, and its turn has yet to begin.
    Noted,
}

/// Why a line is not used any more.
enum LineEnd {
    Ended(String),
    /// The other end sent a message that cannot be read.
    Strange(String),
}

impl Station {
    pub(super) fn new(node: &str, shared: &Arc<StationContext>) -> Self {
        let (errands, rung) = (Mutex::default(), Notify::new());
        Self { node: node.to_owned(), shared: Arc::clone(shared), errands, rung }
    }

    pub(super) fn node(&self) -> &str {
        &self.node
    }

    /// Makes a session.
    pub(super) async fn create(&self, recruit: Recruit) -> CreationResult {
        let (tell, answer) = oneshot::channel();
        let session = recruit.session.uuid();
        let creation = Creation { recruit, is_sent: false, tell };
        self.errands().creates.insert(session, creation);
        self.rung.notify_one();
        let created = timeout(CREATION, answer).await;
        // An answer that comes later is ignored.
        self.errands().creates.remove(&session);
        match created {
            Ok(Ok(created)) => created,
            Ok(Err(_)) => Err("this machine has left the cluster".to_owned()),
            Err(_) => Err(format!("it did not answer within {CREATION:?}")),
        }
    }

    /// Sends a message until it is stored at its session's machine. A repeated message changes nothing.
    pub(super) fn deliver(&self, delivery: Delivery, from: Speaker) {
        let Delivery { seq, from: sender, to, kind, payload, .. } = delivery;
        let Speaker { name, leads } = from;
        let message = SeatMessage { seq, from: sender, name, leads, kind, payload };
        let mut errands = self.errands();
        if errands.messages.get(&to).is_none_or(|errand| errand.message.seq != seq) {
            errands.messages.insert(to, Errand { message, state: State::Due });
            drop(errands);
            self.rung.notify_one();
        }
    }

    /// Tells the outpost which sessions it should run.
    pub(super) fn call_roll(&self) {
        self.errands().is_roll_due = true;
        self.rung.notify_one();
    }

    /// Works until it is aborted.
    pub(super) async fn run(self: Arc<Self>) {
        loop {
            let Some(members) = self.shared.members() else {
                sleep(LOOK).await;
                continue;
            };
            if !members.is_reachable(&self.node) {
                // A member that is only away keeps its sessions.
                if members.has_left(&self.node).await {
                    self.lost().await;
                    let _late = timeout(LOOK_FOR_LEFT, self.rung.notified()).await;
                } else {
                    sleep(LOOK).await;
                }
                continue;
            }
            let end = self.serve(&*members).await;
            self.errands().begin_again();
            match end {
                LineEnd::Ended(why) => {
                    tracing::debug!(why, "the line to an outpost ended");
                    sleep(LOOK).await;
                }
                LineEnd::Strange(why) => {
                    tracing::warn!(why, "an outpost is not understood");
                    self.errands().give_up(&why);
                    sleep(STRANGE).await;
                }
            }
        }
    }

    async fn serve(&self, members: &dyn Members) -> LineEnd {
        let mut line = members.open(&self.node);
        // The roll is the first message of each line.
        self.errands().is_roll_due = true;
        loop {
            if let Err(why) = self.send_due(&*line).await {
                return LineEnd::Ended(why);
            }
            tokio::select! {
                () = self.rung.notified() => {}
                heard = line.next() => {
                    let text = match heard {
                        Ok(text) => text,
                        Err(why) => return LineEnd::Ended(why),
                    };
                    match read(&text) {
                        Ok(message) => self.hear(message, &*line).await,
                        Err(why) => return LineEnd::Strange(why),
                    }
                }
            }
        }
    }

    async fn send_due(&self, line: &dyn Line) -> Result<(), String> {
        let is_roll_due = std::mem::take(&mut self.errands().is_roll_due);
        if is_roll_due {
            let roll = self.shared.roll(&self.node).await.map_err(|refusal| refusal.to_string())?;
            line.send(write(&roll));
        }
        let due = self.errands().due();
        due.iter().for_each(|message| line.send(write(message)));
        Ok(())
    }

    async fn hear(&self, message: FromOutpost, line: &dyn Line) {
        match message {
            FromOutpost::Missing { sessions } => self.missing(sessions).await,
            FromOutpost::Created { session } => {
                self.created(session.id.uuid(), Ok(*session));
            }
            FromOutpost::Refused { session, why } => self.created(session, Err(why)),
            FromOutpost::Noted { session, seq } => self.errands().noted(session, seq),
            FromOutpost::Report { session, number, report } => {
                self.errands().reported(session, &report);
                // Stored before it is acknowledged, since the outpost forgets a report that was acknowledged.
                self.report(session, number, report).await;
                line.send(write(&ToOutpost::Heard { session, number }));
            }
        }
    }

    fn created(&self, session: Uuid, created: CreationResult) {
        if let Some(creation) = self.errands().creates.remove(&session) {
            let _gave_up = creation.tell.send(created);
        }
    }

    /// Handles sessions that the outpost does not have: they are gone, unless they are still being made.
    async fn missing(&self, sessions: Vec<Uuid>) {
        for session in sessions {
            if self.shared.is_making(session) {
                continue;
            }
            self.errands().messages.remove(&session);
            self.store(move |core, at| core.machine.session_gone(session, at)).await;
        }
    }

    /// Handles a machine that is no member any more: the teams cannot reach its sessions ever again.
    async fn lost(&self) {
        let node = self.node.clone();
        let sessions = ask(&self.shared.queue, move |core, _| {
            (Ok(core.machine.sessions_at(&node)), Vec::new())
        });
        self.missing(sessions.await.unwrap_or_default()).await;
    }

    async fn report(&self, session: Uuid, number: u64, report: Report) {
        self.store(move |core, at| core.machine.reported(session, number, report.clone(), at))
            .await;
    }

    /// Calls the machine until the changes are stored.
    async fn store(
        &self,
        call: impl Fn(&mut crate::core::Core, u64) -> Vec<::session::team::Effect>
        + Clone
        + Send
        + 'static,
    ) {
        loop {
            let call = call.clone();
            let stored =
                ask(&self.shared.queue, move |core, moment| (Ok(()), call(core, moment.at)));
            match stored.await {
                Ok(()) => return,
                Err(refusal) => {
                    tracing::error!(%refusal, "a report about a team worker is tried again");
                }
            }
            sleep(PAUSE).await;
        }
    }

    fn errands(&self) -> MutexGuard<'_, Errands> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Errands {
    /// Marks everything that the outpost has not answered to be sent again.
    fn begin_again(&mut self) {
        self.creates.values_mut().for_each(|creation| creation.is_sent = false);
        for errand in self.messages.values_mut().filter(|errand| errand.state == State::Sent) {
            errand.state = State::Due;
        }
    }

    /// Tells all callers that wait for a session that it will not be made.
    fn give_up(&mut self, why: &str) {
        for (_, creation) in std::mem::take(&mut self.creates) {
            let _gave_up = creation.tell.send(Err(why.to_owned()));
        }
    }

    /// The messages that are to be sent now.
    fn due(&mut self) -> Vec<ToOutpost> {
        let creates = self.creates.values_mut().filter(|creation| !creation.is_sent);
        let creates = creates.map(|creation| {
            creation.is_sent = true;
            ToOutpost::Create(Box::new(creation.recruit.clone()))
        });
        let mut due: Vec<_> = creates.collect();
        let messages = self.messages.iter_mut().filter(|(_, errand)| errand.state == State::Due);
        due.extend(messages.map(|(session, errand)| {
            errand.state = State::Sent;
            ToOutpost::Deliver { session: *session, message: errand.message.clone() }
        }));
        due
    }

    fn noted(&mut self, session: Uuid, seq: u64) {
        let errand = self.messages.get_mut(&session);
        if let Some(errand) = errand.filter(|errand| errand.message.seq == seq) {
            errand.state = State::Noted;
        }
    }

    /// Drops a message whose turn has begun or whose session has ended, according to a report.
    fn reported(&mut self, session: Uuid, report: &Report) {
        let is_over = match report {
            Report::Begun { seq } => {
                self.messages.get(&session).is_some_and(|errand| errand.message.seq <= *seq)
            }
            Report::Gone => true,
            _ => false,
        };
        if is_over {
            self.messages.remove(&session);
        }
    }
}

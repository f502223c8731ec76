//! Carries out the move of a session that this machine gives away.

use std::{sync::Arc, time::Duration};

use cluster::{Cluster, Note};
use protocol::workspace::{
    SessionId, SessionInfo,
    peer::{
        object::ObjectText,
        sealed::{MoveChunk, MoveFile, MovePrepare, OfMove, SealedMessage},
    },
};
use replica::handover::{DepartureFact, DepartureInput as In, DepartureOutput as Out};
use tokio::{
    sync::oneshot,
    time::{sleep, timeout},
};
use workspace::{
    Refusal, blocking,
    moving::{DEPARTURE, DepartureRecord, Parcel},
};

use super::{
    departure::OutgoingMove,
    talk::{SILENCE, Talk, refused},
};
use crate::services::Services;

/// How long a running turn may take to end.
const TURN: Duration = Duration::from_secs(10 * 60);
/// The deadline for the answer to a short question, which is then repeated.
const ANSWER: Duration = Duration::from_secs(5);
/// The pause before the other end is asked again whether it has the session.
const AGAIN: Duration = Duration::from_millis(500);
/// The number of questions after which the client hears that the session has left.
const ATTEMPTS: u32 = 20;

/// Carries out the move of one session.
pub(super) struct Mover {
    services: Arc<Services>,
    cluster: Cluster,
    id: SessionId,
    /// The other end's node id.
    to: String,
    outgoing: Arc<OutgoingMove>,
    pub(super) interrupt: bool,
    pub(super) accept_losses: bool,
    /// The parcel that goes along, once the session is frozen.
    parcel: Option<Parcel>,
    /// The circuit to the other end, until all parts are sent.
    pub(super) talk: Option<Talk>,
    /// Whether the session has left. If it comes back, it is restored from the store.
    has_left: bool,
    /// The reason if the session stays here.
    why: Option<Refusal>,
    /// The client that waits.
    pub(super) client: Option<oneshot::Sender<Result<(), Refusal>>>,
}

impl Mover {
    pub(super) fn new(
        services: &Arc<Services>,
        cluster: &Cluster,
        id: SessionId,
        to: String,
        outgoing: Arc<OutgoingMove>,
    ) -> Self {
        Self {
            services: Arc::clone(services),
            cluster: cluster.clone(),
            id,
            to,
            outgoing,
            interrupt: false,
            accept_losses: false,
            parcel: None,
            talk: None,
            has_left: false,
            why: None,
            client: None,
        }
    }

    /// Carries out a whole move.
    pub(super) async fn run(mut self) {
        let frozen = self.freeze().await;
        self.drive(frozen).await;
    }

    /// Continues a move whose session left before this start.
    pub(super) async fn go_on(mut self) {
        self.has_left = true;
        let answer = self.until_answer().await;
        self.drive(answer).await;
    }

    async fn drive(&mut self, first: In) {
        let mut input = Some(first);
        while let Some(happened) = input.take() {
            let outputs = self.outgoing.machine().handle(happened);
            for output in outputs {
                input = self.carry_out(output).await.or(input);
            }
            if self.outgoing.machine().has_left() && input.is_none() {
                // The last step could not be stored, so it is tried again.
                sleep(AGAIN).await;
                input = Some(self.until_answer().await);
            }
        }
        // First, because the client may request the next move at once.
        self.services.moves.outgoing().remove(&self.id);
        let why = self.why.take();
        self.tell(why.map_or(Ok(()), Err));
    }

    async fn carry_out(&mut self, output: Out) -> Option<In> {
        match output {
            Out::Send => Some(self.send().await),
            Out::Keep(fact) => Some(In::Kept(self.keep(fact).await)),
            Out::Leave => {
                self.services.sessions.leave(self.id);
                self.has_left = true;
                (self.talk, self.parcel) = (None, None);
                Some(self.until_answer().await)
            }
            Out::Run => {
                self.stay().await;
                None
            }
            Out::Gone => {
                tracing::info!(session = %self.id, to = self.to, "a session has moved");
                self.why = None;
                None
            }
        }
    }

    /// Waits for the end of the turn, and gathers what goes along.
    async fn freeze(&mut self) -> In {
        let sessions = &self.services.sessions;
        let freezing = timeout(TURN, sessions.freeze(self.id, self.interrupt)).await;
        let frozen = freezing.unwrap_or_else(|_| {
            let words = "its turn has not ended for ten minutes: interrupt it, and try again";
            Err(Refusal::invalid(words))
        });
        let packed = match frozen {
            Ok(()) => sessions.pack(self.id, self.accept_losses).await,
            Err(refusal) => Err(refusal),
        };
        match packed {
            Ok(parcel) => {
                self.parcel = Some(parcel);
                In::Frozen
            }
            Err(refusal) => self.gives_up(refusal),
        }
    }

    /// Sends everything, and waits until the other end has it on its disk.
    async fn send(&mut self) -> In {
        let (Some(parcel), Some(mut talk)) = (self.parcel.take(), self.talk.take()) else {
            return self.gives_up(Refusal::invalid("nothing is ready to be sent"));
        };
        match self.send_over(&mut talk, &parcel).await {
            Ok(()) => In::Prepared,
            Err(refusal) => self.gives_up(refusal),
        }
    }

    async fn send_over(&self, talk: &mut Talk, parcel: &Parcel) -> Result<(), Refusal> {
        let move_id = self.outgoing.move_id;
        talk.say(&self.prepare(parcel)?)?;
        for (number, file) in parcel.files.iter().enumerate() {
            let mut offset = 0;
            while offset < file.size {
                talk.room().await?;
                let reading = file.clone();
                let data = blocking(move || reading.piece(offset)).await?;
                let file = u32::try_from(number).unwrap_or(u32::MAX);
                let length = data.len() as u64;
                talk.say(&SealedMessage::MoveChunk(MoveChunk { move_id, file, offset, data }))?;
                offset += length;
            }
        }
        match talk.hear(SILENCE).await? {
            SealedMessage::MovePrepared(of) if of.move_id == move_id => Ok(()),
            other => Err(refused(other)
                .unwrap_or_else(|| Refusal::invalid("the other machine answered something else"))),
        }
    }

    fn prepare(&self, parcel: &Parcel) -> Result<SealedMessage, Refusal> {
        let facts = ObjectText::new(parcel.facts.clone());
        let files = parcel.files.iter();
        let files = files.map(|file| MoveFile { name: file.name.clone(), size: file.size });
        Ok(SealedMessage::MovePrepare(MovePrepare {
            move_id: self.outgoing.move_id,
            session_id: self.id,
            moves: self.moves() + 1,
            facts: facts.map_err(|error| Refusal::failed(&error))?,
            turn: parcel.turn,
            last_seq: parcel.last_seq,
            queue: parcel.queue.clone(),
            applied: parcel.applied.clone(),
            files: files.collect(),
        }))
    }

    fn moves(&self) -> u64 {
        self.cluster.session_moves(&self.id.to_string()).map_or(0, |(moves, _)| moves)
    }

    async fn keep(&mut self, fact: DepartureFact) -> bool {
        let stored = match fact {
            DepartureFact::Left => self.give().await,
            DepartureFact::Returned => self.take_back().await,
            DepartureFact::Dropped => self.services.sessions.drop_left(self.id).await,
        };
        if let Err(refusal) = &stored {
            tracing::warn!(session = %self.id, %refusal, "a step of a move cannot be stored");
        }
        stored.map_err(|refusal| self.why = Some(refusal)).is_ok()
    }

    async fn give(&self) -> Result<(), Refusal> {
        let info = self.services.sessions.info(self.id)?;
        let to = self.to.clone();
        let (session_id, move_id) = (self.id, self.outgoing.move_id);
        let record = DepartureRecord { session_id, move_id, to };
        let note = Note { kind: DEPARTURE, json: Some(record.json()) };
        let value = value(SessionInfo { node_id: Some(self.to.clone()), ..info });
        let given = self.cluster.give_session(&self.id.to_string(), &self.to, value, note).await;
        given.map_err(|error| Refusal::failed(&error))
    }

    async fn take_back(&self) -> Result<(), Refusal> {
        let id = self.id.to_string();
        let entry = self.cluster.directory().get(replica::Kind::SESSION, &id);
        let info: Option<SessionInfo> =
            entry.and_then(|entry| serde_json::from_str(&entry.value).ok());
        let node_id = Some(self.cluster.node_id().to_owned());
        // Without an entry, others see the session once it is announced.
        let value =
            info.map_or_else(|| "{}".to_owned(), |info| value(SessionInfo { node_id, ..info }));
        let note = Note { kind: DEPARTURE, json: None };
        let taken = self.cluster.take_session_back(&id, value, note).await;
        taken.map_err(|error| Refusal::failed(&error))
    }

    /// Lets the session run here again.
    async fn stay(&mut self) {
        if !self.has_left {
            return self.services.sessions.thaw(self.id);
        }
        let words = "the other machine has lost what it had got: the session is here again";
        self.why = Some(Refusal::Failed(words.to_owned()));
        if let Err(refusal) = self.services.sessions.come_back(self.id).await {
            tracing::error!(session = %self.id, %refusal, "a session is back and cannot be run");
        }
    }

    /// Asks until the other end has taken the session, or refuses it.
    async fn until_answer(&mut self) -> In {
        for attempt in 0_u32.. {
            if let Some(answer) = self.asks().await {
                return answer;
            }
            if attempt == ATTEMPTS {
                // The session has left, so the client need not wait for the confirmation.
                self.tell(Ok(()));
            }
            sleep(if attempt < ATTEMPTS { AGAIN } else { AGAIN * 10 }).await;
        }
        In::GaveUp
    }

    async fn asks(&self) -> Option<In> {
        if !self.cluster.is_reachable(&self.to) {
            return None;
        }
        let of = OfMove { move_id: self.outgoing.move_id, session_id: self.id };
        let mut talk = Talk::open(&self.cluster, &self.to);
        match talk.ask(&SealedMessage::MoveTake(of), ANSWER).await.ok()? {
            SealedMessage::MoveTaken(taken) if taken == of => Some(In::Taken),
            SealedMessage::MoveRefused(refused) if refused.move_id == of.move_id => {
                tracing::warn!(session = %self.id, why = refused.message, "a move was refused");
                Some(In::Refused)
            }
            _ => None,
        }
    }

    fn gives_up(&mut self, refusal: Refusal) -> In {
        self.why = Some(refusal);
        In::GaveUp
    }

    fn tell(&mut self, outcome: Result<(), Refusal>) {
        if let Some(client) = self.client.take() {
            let _left = client.send(outcome);
        }
    }
}

fn value(info: SessionInfo) -> String {
    // Objects of the protocol are always JSON.
    serde_json::to_string(&SessionInfo { attached_clients: 0, ..info }).unwrap_or_default()
}

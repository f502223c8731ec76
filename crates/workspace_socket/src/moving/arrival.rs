//! The sessions that move to this machine.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use cluster::Cluster;
use protocol::workspace::peer::sealed::{MoveRefused, OfMove, SealedMessage};
use replica::handover::{Arrival, ArrivalFact as Fact, ArrivalInput as In, ArrivalOutput as Out};
use tokio::sync::Mutex;
use workspace::{
    Refusal, blocking,
    moving::{ArrivalRecord, ArrivalState, NotTaken, Staging, VolatileState},
};

use super::talk::Talk;
use crate::services::Services;

/// The deadline for an answer of the former owner, who is then asked again.
const ANSWER: Duration = Duration::from_secs(5);

/// The move of a session to this machine.
pub(super) struct IncomingMove {
    /// Whether the cluster may name this member as the owner before the session runs here.
    coming: AtomicBool,
    /// Locked for a whole step, so that steps do not mix.
    state: Mutex<State>,
}

struct State {
    record: ArrivalRecord,
    machine: Arrival,
    /// The parts that have come so far, until the session is staged.
    staging: Option<Staging>,
    /// The state in memory only, between the taking of the session and its start.
    taken: VolatileState,
    /// The reason for a refusal, for the other end.
    why: String,
}

impl IncomingMove {
    pub(super) fn new(record: ArrivalRecord, machine: Arrival, staging: Option<Staging>) -> Self {
        let is_coming = record.state != ArrivalState::Taken;
        let state = State {
            record,
            machine,
            staging,
            taken: VolatileState::default(),
            why: "it is lost".to_owned(),
        };
        Self { coming: AtomicBool::new(is_coming), state: Mutex::new(state) }
    }

    pub(super) fn is_coming(&self) -> bool {
        self.coming.load(Ordering::Relaxed)
    }

    pub(super) async fn move_id(&self) -> u64 {
        self.state.lock().await.record.move_id
    }

    /// Whether another move of the session may take the place of this one.
    pub(super) async fn may_give_way(&self) -> bool {
        self.state.lock().await.machine.is_staged()
    }

    /// Takes the next piece. Returns whether everything has come.
    pub(super) async fn piece(
        &self,
        file: u32,
        offset: u64,
        data: Vec<u8>,
    ) -> Result<bool, Refusal> {
        let mut state = self.state.lock().await;
        // Not put back after an error: the whole move must then begin again.
        let mut staging =
            state.staging.take().ok_or_else(|| Refusal::invalid("everything has come already"))?;
        let staging = blocking(move || {
            staging.write(file, offset, &data)?;
            Ok::<_, Refusal>(staging)
        })
        .await?;
        let is_whole = staging.is_whole();
        state.staging = Some(staging);
        Ok(is_whole)
    }

    /// Handles an input. Returns the messages for the other end.
    pub(super) async fn handle(
        &self,
        services: &Services,
        cluster: &Cluster,
        input: In,
    ) -> Vec<SealedMessage> {
        let mut state = self.state.lock().await;
        self.step(&mut state, services, cluster, input).await
    }

    /// Breaks the move off, for this reason. Returns the messages for the other end.
    pub(super) async fn fail(
        &self,
        services: &Services,
        cluster: &Cluster,
        why: &Refusal,
    ) -> Vec<SealedMessage> {
        let mut state = self.state.lock().await;
        state.why = why.to_string();
        self.step(&mut state, services, cluster, In::Broken).await
    }

    /// Takes the session if the cluster names this member as its owner.
    pub(super) async fn look(&self, services: &Services, cluster: &Cluster) {
        let mut state = self.state.lock().await;
        if state.is_ours(cluster) {
            self.step(&mut state, services, cluster, In::Ours).await;
        }
    }

    /// Ends the move, because the owner knows of no such move.
    async fn aborted(&self, services: &Services, cluster: &Cluster) {
        let mut state = self.state.lock().await;
        let input = if state.is_ours(cluster) { In::Ours } else { In::Aborted };
        self.step(&mut state, services, cluster, input).await;
    }

    /// Takes the session if this member owns it now. Otherwise asks its former owner.
    pub(super) async fn look_and_ask(&self, services: &Services, cluster: &Cluster) {
        self.look(services, cluster).await;
        let (of, from, is_receiving) = {
            let state = self.state.lock().await;
            (state.of(), state.record.from.clone(), state.staging.is_some())
        };
        if is_receiving || !cluster.is_reachable(&from) {
            return;
        }
        let mut talk = Talk::open(cluster, &from);
        let answer = talk.ask(&SealedMessage::MoveStatus(of), ANSWER).await;
        if answer.is_ok_and(|answer| answer == SealedMessage::MoveAborted(of)) {
            self.aborted(services, cluster).await;
        }
    }

    async fn step(
        &self,
        state: &mut State,
        services: &Services,
        cluster: &Cluster,
        first: In,
    ) -> Vec<SealedMessage> {
        let (mut said, mut input) = (Vec::new(), Some(first));
        while let Some(happened) = input.take() {
            for output in state.machine.handle(happened) {
                input = self.carry_out(state, services, cluster, output, &mut said).await.or(input);
            }
        }
        if state.machine.is_over() {
            self.coming.store(false, Ordering::Relaxed);
            services.moves.incoming().remove(&state.record.session_id);
        }
        said
    }

    async fn carry_out(
        &self,
        state: &mut State,
        services: &Services,
        cluster: &Cluster,
        output: Out,
        said: &mut Vec<SealedMessage>,
    ) -> Option<In> {
        let id = state.record.session_id.to_string();
        match output {
            Out::Keep(fact) => return Some(state.keep(services, fact).await),
            // An error here means that the server is stopping.
            Out::Expect => drop(cluster.expect_session(&id).await),
            Out::Unexpect => drop(cluster.unexpect_session(&id).await),
            Out::Run => {
                state.run(services).await;
                self.coming.store(false, Ordering::Relaxed);
            }
            Out::Remove => services.sessions.remove_staged(state.record.move_id).await,
            Out::SayPrepared => said.push(SealedMessage::MovePrepared(state.of())),
            Out::SayTaken => said.push(SealedMessage::MoveTaken(state.of())),
            Out::SayUndecided => said.push(SealedMessage::MoveStatus(state.of())),
            Out::SayRefused => {
                let (move_id, message) = (state.record.move_id, state.why.clone());
                said.push(SealedMessage::MoveRefused(MoveRefused { move_id, message }));
            }
        }
        None
    }
}

impl State {
    fn of(&self) -> OfMove {
        let ArrivalRecord { move_id, session_id, .. } = self.record;
        OfMove { move_id, session_id }
    }

    fn is_ours(&self, cluster: &Cluster) -> bool {
        let shown = cluster.session_moves(&self.record.session_id.to_string());
        self.machine.is_staged()
            && shown.is_some_and(|(moves, owner)| {
                owner == cluster.node_id() && moves >= self.record.moves
            })
    }

    async fn keep(&mut self, services: &Services, fact: Fact) -> In {
        let stored = match fact {
            Fact::Staged => self.stage(services).await,
            Fact::Taken => match services.sessions.take(&self.record).await {
                Ok(taken) => {
                    (self.taken, self.record.state) = (taken, ArrivalState::Taken);
                    Ok(())
                }
                Err(NotTaken::Lost(why)) => {
                    tracing::error!(session = %self.record.session_id, why, "a move is lost");
                    self.why = format!("what it had got is lost: {why}");
                    return In::Lost;
                }
                Err(NotTaken::Failed(why)) => Err(Refusal::Failed(why)),
            },
            Fact::Refused => self.store(services, ArrivalState::Refused).await,
            Fact::Forgotten => services.sessions.forget_arrival(self.record.session_id).await,
        };
        if let Err(refusal) = &stored {
            let session = self.record.session_id;
            tracing::warn!(%session, %refusal, "a step of a move cannot be stored");
            self.why = refusal.to_string();
        }
        In::Kept(stored.is_ok())
    }

    /// Writes all parts to the disk, and then stores that the session is staged.
    async fn stage(&mut self, services: &Services) -> Result<(), Refusal> {
        if let Some(staging) = self.staging.take() {
            blocking(move || staging.finish()).await?;
        }
        self.store(services, ArrivalState::Staged).await
    }

    async fn store(&mut self, services: &Services, state: ArrivalState) -> Result<(), Refusal> {
        self.record.state = state;
        services.sessions.keep_arrival(&self.record).await
    }

    async fn run(&mut self, services: &Services) {
        let taken = std::mem::take(&mut self.taken);
        let session = self.record.session_id;
        match services.sessions.run_taken(&self.record, taken).await {
            Ok(()) => tracing::info!(%session, from = self.record.from, "a session has come"),
            Err(refusal) => tracing::error!(%session, %refusal, "a session that came cannot run"),
        }
    }
}

/// Restores the moves that an earlier start has stored.
pub(super) async fn restore(services: &Arc<Services>) {
    let arrivals = match services.sessions.arrivals().await {
        Ok(arrivals) => arrivals,
        Err(refusal) => return tracing::error!(%refusal, "sessions that move here"),
    };
    for record in arrivals {
        let fact = match record.state {
            ArrivalState::Staged => Fact::Staged,
            ArrivalState::Taken => Fact::Taken,
            ArrivalState::Refused => Fact::Refused,
        };
        let id = record.session_id;
        let incoming = IncomingMove::new(record, Arrival::stored(fact), None);
        services.moves.incoming().entry(id).or_insert_with(|| Arc::new(incoming));
    }
}

/// Takes the sessions that this member owns now. Asks the former owners of the others.
pub(super) async fn look_at_all(services: &Services, cluster: &Cluster) {
    let all: Vec<Arc<IncomingMove>> = services.moves.incoming().values().cloned().collect();
    for incoming in all {
        incoming.look_and_ask(services, cluster).await;
    }
}

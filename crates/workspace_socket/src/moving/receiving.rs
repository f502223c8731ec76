//! The circuit by which another member moves a session here.

use std::sync::{Arc, Weak};

use cluster::{Cluster, Host, Served};
use protocol::workspace::{
    SessionId,
    limits::MAX_MESSAGE,
    peer::sealed::{
        MoveAnswer, MoveAsk, MoveChunk, MovePrepare, MoveRefused, OfMove, SealedMessage,
        decode_sealed,
    },
};
use replica::handover::{Arrival, ArrivalInput as In};
use wire::{Frame, Outbox};
use workspace::{
    Refusal,
    moving::{ArrivalRecord, ArrivalState, Landing, LandingRequest, Manifest, ManifestFile},
};

use super::{arrival::IncomingMove, departure};
use crate::{admission::Admission, services::Services};

/// Serves the members at the other end of a move.
pub(crate) struct MoveHost(pub(crate) Weak<Admission>);

impl Host for MoveHost {
    fn serve(&self, served: Served) {
        let Some(admission) = self.0.upgrade() else { return };
        let services = Arc::clone(&admission.services);
        let Some(cluster) = services.membership.cluster() else { return served.done.cancel() };
        let closing = admission.closing.clone();
        admission.links.spawn(async move {
            tokio::select! {
                () = serve(services, cluster, served) => {}
                () = closing.cancelled() => {}
            }
        });
    }

    fn max_request(&self) -> usize {
        MAX_MESSAGE
    }
}

/// Serves another member until it leaves.
async fn serve(services: Arc<Services>, cluster: Cluster, served: Served) {
    let Served { from, mut requests, answers, done, .. } = served;
    let mut receiving = MoveReceiver { services, cluster, from, landing: None, coming: None };
    while let Some(Frame::Text(text)) = requests.next().await {
        let Ok(Some(message)) = decode_sealed(&text) else { break };
        let said = receiving.hears(message).await;
        if say(&answers, &said).is_err() {
            break;
        }
    }
    receiving.left().await;
    done.cancel();
}

fn say(answers: &Outbox, said: &[SealedMessage]) -> Result<(), wire::OutboxClosed> {
    said.iter().try_for_each(|message| answers.push(Frame::from(message.encode())))
}

struct MoveReceiver {
    services: Arc<Services>,
    cluster: Cluster,
    /// The other member's node id.
    from: String,
    /// The answer to the last question: the move's id, and where the session would go on.
    landing: Option<(u64, Landing)>,
    /// The move whose parts are coming, with its id.
    coming: Option<(u64, Arc<IncomingMove>)>,
}

impl MoveReceiver {
    async fn hears(&mut self, message: SealedMessage) -> Vec<SealedMessage> {
        match message {
            SealedMessage::MoveAsk(ask) => vec![self.answer(ask).await],
            SealedMessage::MovePrepare(prepare) => {
                let move_id = prepare.move_id;
                let begun = self.begins(prepare).await;
                begun.unwrap_or_else(|refusal| vec![refused(move_id, &refusal)])
            }
            SealedMessage::MoveChunk(chunk) => self.piece(chunk).await,
            SealedMessage::MoveTake(of) => self.take(of).await,
            SealedMessage::MoveStatus(of) => vec![departure::word(&self.services, of)],
            _ => Vec::new(),
        }
    }

    async fn answer(&mut self, ask: MoveAsk) -> SealedMessage {
        let move_id = ask.move_id;
        let landing = self.services.sessions.landing(LandingRequest {
            session_id: ask.session_id,
            facts: ask.facts.as_str(),
            project: ask.project.as_deref(),
            below: ask.below.as_deref(),
            to_dir: ask.to_dir.as_deref(),
        });
        SealedMessage::MoveAnswer(match landing.await {
            Ok(landing) => {
                let working_dir = Some(landing.working_dir().to_owned());
                self.landing = Some((move_id, landing));
                MoveAnswer { move_id, problems: Vec::new(), working_dir }
            }
            Err(refusal) => {
                MoveAnswer { move_id, problems: vec![refusal.to_string()], working_dir: None }
            }
        })
    }

    /// Begins to receive a session, in place of an earlier move of it that may give way.
    async fn begins(&mut self, prepare: MovePrepare) -> Result<Vec<SealedMessage>, Refusal> {
        let MovePrepare { move_id, session_id, moves, .. } = prepare;
        // Taken, because each preparation must follow a question of its own.
        let landing = self.landing.take().filter(|(id, _)| *id == move_id);
        let (_, landing) = landing.ok_or_else(|| Refusal::invalid("nobody asked before"))?;
        self.give_way(session_id).await?;
        let file = |file: &protocol::workspace::peer::sealed::MoveFile| ManifestFile {
            name: file.name.clone(),
            size: file.size,
        };
        let manifest = Manifest {
            facts: landing.facts(prepare.facts.as_str())?,
            last_seq: prepare.last_seq,
            files: prepare.files.iter().map(file).collect(),
            queue: prepare.queue,
            applied: prepare.applied,
        };
        let staging = self.services.sessions.stage(move_id, manifest).await?;
        let is_whole = staging.is_whole();
        let (from, state) = (self.from.clone(), ArrivalState::Staged);
        let record = ArrivalRecord { session_id, move_id, moves, from, state };
        let incoming = Arc::new(IncomingMove::new(record, Arrival::begin(), Some(staging)));
        self.services.moves.incoming().insert(session_id, Arc::clone(&incoming));
        self.coming = Some((move_id, incoming));
        Ok(if is_whole { self.whole().await } else { Vec::new() })
    }

    /// Removes an earlier move of the session that is only staged: its owner has begun another.
    async fn give_way(&self, id: SessionId) -> Result<(), Refusal> {
        let (earlier, count) = {
            let incoming = self.services.moves.incoming();
            (incoming.get(&id).cloned(), incoming.len())
        };
        if let Some(earlier) = &earlier
            && !earlier.may_give_way().await
        {
            // The earlier move may be over without this machine knowing.
            earlier.look_and_ask(&self.services, &self.cluster).await;
            if !self.services.moves.incoming().contains_key(&id) {
                return Ok(());
            }
        }
        match earlier {
            Some(earlier) if !earlier.may_give_way().await => {
                Err(Refusal::invalid("an earlier move of it is not over: try again in a moment"))
            }
            Some(earlier) => {
                self.services.sessions.remove_staged(earlier.move_id().await).await;
                Ok(())
            }
            None if count >= super::MOST => {
                Err(Refusal::TooMany { what: "sessions on their way", most: super::MOST })
            }
            None => Ok(()),
        }
    }

    async fn piece(&mut self, chunk: MoveChunk) -> Vec<SealedMessage> {
        let MoveChunk { move_id, file, offset, data } = chunk;
        let coming = self.coming.as_ref().filter(|(coming, _)| *coming == move_id);
        // Parts that were on their way when the move was refused are dropped.
        let Some((_, incoming)) = coming else { return Vec::new() };
        match incoming.piece(file, offset, data).await {
            Ok(true) => self.whole().await,
            Ok(false) => Vec::new(),
            Err(refusal) => {
                let said = incoming.fail(&self.services, &self.cluster, &refusal).await;
                self.coming = None;
                said
            }
        }
    }

    async fn whole(&mut self) -> Vec<SealedMessage> {
        let Some((_, incoming)) = self.coming.take() else { return Vec::new() };
        incoming.handle(&self.services, &self.cluster, In::Whole).await
    }

    /// Takes the session if it can, for an owner that asks whether it is taken.
    async fn take(&self, of: OfMove) -> Vec<SealedMessage> {
        let known = self.services.moves.incoming().get(&of.session_id).cloned();
        let Some(incoming) = known else { return self.lost(of).await };
        if incoming.move_id().await != of.move_id {
            return vec![SealedMessage::MoveStatus(of)];
        }
        incoming.look(&self.services, &self.cluster).await;
        incoming.handle(&self.services, &self.cluster, In::Asked).await
    }

    /// Refuses a session whose staged parts are lost. The refusal is stored before the owner gets
    /// it.
    async fn lost(&self, of: OfMove) -> Vec<SealedMessage> {
        let OfMove { move_id, session_id } = of;
        let (from, state) = (self.from.clone(), ArrivalState::Refused);
        let record = ArrivalRecord { session_id, move_id, moves: u64::MAX, from, state };
        let incoming = Arc::new(IncomingMove::new(record, Arrival::unknown(), None));
        let inserted = {
            let mut all = self.services.moves.incoming();
            Arc::clone(all.entry(session_id).or_insert(incoming))
        };
        if inserted.move_id().await != move_id {
            return vec![SealedMessage::MoveStatus(of)];
        }
        inserted.handle(&self.services, &self.cluster, In::Lost).await
    }

    /// Removes an incomplete session, because the other member has left.
    async fn left(&mut self) {
        if let Some((_, incoming)) = self.coming.take() {
            let left = Refusal::invalid("the other machine left");
            let _nobody_hears = incoming.fail(&self.services, &self.cluster, &left).await;
        }
    }
}

fn refused(move_id: u64, refusal: &Refusal) -> SealedMessage {
    SealedMessage::MoveRefused(MoveRefused { move_id, message: refusal.to_string() })
}

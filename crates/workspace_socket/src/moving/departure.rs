//! The sessions that this machine gives away, and the answers about them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cluster::Cluster;
use protocol::workspace::peer::sealed::{OfMove, SealedMessage};
use replica::handover::{Departure, Word};
use workspace::moving::DepartureRecord;

use super::mover::Mover;
use crate::services::Services;

/// The move of a session to another machine.
pub(super) struct OutgoingMove {
    pub(super) move_id: u64,
    machine: Mutex<Departure>,
}

impl OutgoingMove {
    pub(super) fn new(move_id: u64, machine: Departure) -> Self {
        Self { move_id, machine: Mutex::new(machine) }
    }

    pub(super) fn machine(&self) -> MutexGuard<'_, Departure> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answer to the other end when it asks for the state of a move.
pub(super) fn word(services: &Services, request: OfMove) -> SealedMessage {
    let outgoing = services.moves.outgoing().get(&request.session_id).cloned();
    let outgoing = outgoing.filter(|outgoing| outgoing.move_id == request.move_id);
    match outgoing.map_or(Word::Aborted, |outgoing| outgoing.machine().word()) {
        Word::Take => SealedMessage::MoveTake(request),
        Word::Undecided => SealedMessage::MoveStatus(request),
        Word::Aborted => SealedMessage::MoveAborted(request),
    }
}

/// Continues the moves of sessions that left before this start.
pub(super) async fn restore(services: &Arc<Services>, cluster: &Cluster) {
    let departures = match services.sessions.departures().await {
        Ok(departures) => departures,
        Err(refusal) => return tracing::error!(%refusal, "sessions that have left"),
    };
    for DepartureRecord { session_id, move_id, to } in departures {
        let outgoing = Arc::new(OutgoingMove::new(move_id, Departure::left()));
        let is_known = services.moves.outgoing().contains_key(&session_id);
        if is_known {
            continue;
        }
        services.moves.outgoing().insert(session_id, Arc::clone(&outgoing));
        let mover = Mover::new(services, cluster, session_id, to, outgoing);
        tokio::spawn(mover.go_on());
    }
}

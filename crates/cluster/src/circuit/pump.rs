//! The task of one end of a circuit. It moves frames between the end's two queues and the present
//! link to the member.

use std::time::Duration;

use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;
use wire::{Outbox, OutboxReader, until};

use super::{
    Caller, Ended, Service, Way,
    end::{CircuitEnd, Piece},
};
use crate::{
    control::Control,
    link::frame::{Channel, LinkFrame},
};

/// Taken bytes are acknowledged after this pause at the latest.
const ACK_PAUSE: Duration = Duration::from_millis(50);

/// The reason that a client gives when it has left.
const LEFT: &str = "the client has left";

/// A message from the far end.
pub(super) enum Inbound {
    Piece(Piece),
    /// All pieces below this number were taken.
    Ack(u64),
    Closed(String),
    /// The member has another incarnation now.
    Restarted,
}

/// One end of a circuit, and everything that its task needs.
pub(super) struct Pump {
    pub(super) end: CircuitEnd,
    /// The channel of frames that leave here.
    pub(super) outgoing: Channel,
    /// Set at the opener's end.
    pub(super) caller: Option<Caller>,
    /// The service, at the opener's end.
    pub(super) service: Service,
    /// The plain peer to which the circuit goes on, at the opener's end.
    pub(super) to: Option<String>,
    pub(super) to_send: OutboxReader,
    pub(super) to_read: Outbox,
    pub(super) received: mpsc::Receiver<Inbound>,
    pub(super) way: watch::Receiver<Option<Way>>,
    /// Cancelled when nothing more will be put into `to_send`.
    pub(super) leaving: CancellationToken,
    /// How long it waits for a link.
    pub(super) patience: Duration,
}

/// The part of its state that changes while it runs.
struct State {
    way: Option<Way>,
    ack_at: Option<Instant>,
    /// When it gives up, if no link comes.
    give_up: Instant,
    /// Whether everything that will be sent has been put into the end.
    is_finishing: bool,
}

impl Pump {
    pub(super) async fn run(mut self) -> Ended {
        let mut state = State {
            way: None,
            ack_at: None,
            give_up: Instant::now() + self.patience,
            is_finishing: false,
        };
        self.follow(&mut state);
        let why = self.until_end(&mut state).await.err();
        let far_end_knows = matches!(why, Some(Ended::Closed(_) | Ended::Restarted));
        if let Some(way) = state.way.filter(|_| !far_end_knows) {
            let Channel { number: channel, to_opener } = self.outgoing;
            let reason = why.as_ref().map_or_else(|| LEFT.to_owned(), ToString::to_string);
            control(&way, &Control::CircuitClosed { channel, to_opener, reason });
        }
        why.unwrap_or_else(|| Ended::Closed(LEFT.to_owned()))
    }

    /// Runs until the writer has left and all its frames are acknowledged, or until the circuit
    /// ends for another reason.
    async fn until_end(&mut self, state: &mut State) -> Result<(), Ended> {
        loop {
            if state.is_finishing && self.end.is_acknowledged() {
                return Ok(());
            }
            let is_blocked = self.give_pieces(state);
            let may_take = !state.is_finishing && self.end.has_room();
            let (way, ack_at, give_up) = (state.way.clone(), state.ack_at, state.give_up);
            tokio::select! {
                frame = self.to_send.next(), if may_take => match frame {
                    Some(frame) => self.end.put(frame),
                    None => state.is_finishing = true,
                },
                inbound = self.received.recv() => self.take(inbound, state)?,
                _room_or_reader_left = self.to_read.room(), if self.end.has_frame() => {
                    self.pass_on(state);
                }
                () = until_room(way.as_ref()), if is_blocked => {}
                changed = self.way.changed() => match changed {
                    Ok(()) => self.follow(state),
                    Err(_) => return Err(Ended::Unreachable),
                },
                () = until(ack_at) => self.ack(state),
                () = sleep_until(give_up), if state.way.is_none() => {
                    return Err(Ended::Unreachable);
                }
                () = self.leaving.cancelled(), if !state.is_finishing => self.finish(state),
            }
        }
    }

    /// Puts in all frames that were written before the writer left.
    fn finish(&mut self, state: &mut State) {
        while let Some(frame) = self.to_send.try_next() {
            self.end.put(frame);
        }
        state.is_finishing = true;
    }

    /// Gives pieces to the link. Returns whether more would follow if the link had room.
    fn give_pieces(&mut self, state: &State) -> bool {
        let Some(way) = &state.way else { return false };
        loop {
            if !way.outbox.has_room() {
                return !way.outbox.is_closed();
            }
            let Some(piece) = self.end.next_piece() else { return false };
            let _link_ended = way.outbox.push(LinkFrame::Piece(self.outgoing, piece).encode());
        }
    }

    fn take(&mut self, inbound: Option<Inbound>, state: &mut State) -> Result<(), Ended> {
        match inbound.ok_or(Ended::Overrun)? {
            Inbound::Ack(number) => self.end.acknowledged(number),
            Inbound::Closed(reason) if reason == "unknown" => return Err(Ended::Restarted),
            Inbound::Closed(reason) => return Err(Ended::Closed(reason)),
            Inbound::Restarted => return Err(Ended::Restarted),
            Inbound::Piece(piece) => {
                self.end.receive(&piece).map_err(|_| Ended::Overrun)?;
                self.pass_on(state);
            }
        }
        Ok(())
    }

    /// Passes whole frames to the reader while it has room. If the reader has left, frames are
    /// discarded.
    fn pass_on(&mut self, state: &mut State) {
        while (self.to_read.has_room() || self.to_read.is_closed())
            && let Some(frame) = self.end.take_frame()
        {
            let _reader_left = self.to_read.push(frame);
        }
        self.ack_soon(state);
    }

    fn ack_soon(&mut self, state: &mut State) {
        match self.end.ack_due() {
            Some(number) => {
                state.ack_at = None;
                self.send_ack(number, state);
            }
            None => {
                state.ack_at.get_or_insert_with(|| Instant::now() + ACK_PAUSE);
            }
        }
    }

    fn ack(&mut self, state: &mut State) {
        state.ack_at = None;
        if let Some(number) = self.end.ack() {
            self.send_ack(number, state);
        }
    }

    fn send_ack(&self, number: u64, state: &State) {
        if let Some(way) = &state.way {
            let _link_ended = way.outbox.push(LinkFrame::Ack(self.outgoing, number).encode());
        }
    }

    /// Changes to the present link, and sends over it what the far end may not have.
    fn follow(&mut self, state: &mut State) {
        state.way = self.way.borrow_and_update().clone();
        state.give_up = Instant::now() + self.patience;
        let Some(way) = &state.way else { return };
        if let Some(caller) = &self.caller {
            let (channel, begun) = (self.outgoing.number, self.end.is_begun());
            let (caller, service, to) = (caller.clone(), self.service, self.to.clone());
            control(way, &Control::CircuitOpen { channel, caller, begun, service, to });
        }
        self.end.relinked();
        let number = self.end.ack_again();
        self.send_ack(number, state);
    }
}

fn control(way: &Way, message: &Control) {
    let _link_ended = way.outbox.push(LinkFrame::Control(message.encode()).encode());
}

async fn until_room(way: Option<&Way>) {
    if let Some(way) = way {
        // An error means that the link has ended. Another one will be announced.
        if way.outbox.room().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

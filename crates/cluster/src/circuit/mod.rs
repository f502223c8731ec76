//! Circuits: a client of one member, served by another. A circuit carries frames both ways, once
//! and in order, and outlives the link on which it began. Each end has an outbox to write to and a
//! reader, as if the other machine were a socket.
//!
//! - [`Circuits`]: all circuits of this machine, those that it opened and those that others opened
//! - `end`: one end, pure: pieces, windows, acknowledgements
//! - `pump`: the task of one end

pub(crate) mod end;
mod pump;
#[cfg(test)]
mod tests;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use protocol::workspace::{Role, SessionId, TeamId};
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wire::{Frame, Outbox, OutboxClosed, OutboxReader};

use crate::{
    control::Control,
    link::frame::{Channel, LinkFrame},
};
use end::{CircuitEnd, WINDOW_PIECES};
use pump::{Inbound, Pump};

/// The serving end waits this many times longer for a link than the client's end. So it never
/// forgets a circuit for which the client's end will ask again.
const SERVING_PATIENCE: u32 = 4;
/// The most circuits that one member may have open here.
const MOST_GUESTS: usize = 4096;
/// The longest answer, in bytes.
const MAX_ANSWER: usize = 64 * 1024 * 1024;

/// The client at the far end of a circuit: what it may do, and as whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// For the audit log: a key's id, or another name of the credential.
    pub who: String,
    /// Its rights.
    pub role: Role,
    /// The team and the session of an agent, if the client is one: it may use that team as that
    /// session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub member: Option<(TeamId, SessionId)>,
}

impl Caller {
    /// A member itself, and none of its clients.
    pub fn member_itself() -> Self {
        Self { who: "cluster".to_owned(), role: Role::Read, member: None }
    }
}

/// The service at the far end of a circuit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Service {
    /// The workspace, for a client.
    #[default]
    Workspace,
    /// The models, for a session.
    Models,
    /// The teams: between the member that owns a team and the one that runs its team workers.
    Teams,
    /// The moves of sessions, for the member at the other end of a move.
    Moves,
}

impl Service {
    /// Whether it is the workspace. A message may leave it out then.
    pub(crate) fn is_workspace(&self) -> bool {
        *self == Self::Workspace
    }
}

/// Why a circuit ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ended {
    /// No link led to the member for as long as the client's end waits.
    #[error("it cannot be reached")]
    Unreachable,
    /// The member's daemon has restarted and knows nothing of the circuit.
    #[error("it has restarted; whether the last request was carried out is not known")]
    Restarted,
    /// The serving end closed it.
    #[error("it closed the connection: {0}")]
    Closed(String),
    /// The far end sent more than its window.
    #[error("it does not keep to the bounds of a connection")]
    Overrun,
}

/// More than a bound allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooMuch;

/// A circuit as its opener sees it.
#[derive(Debug)]
pub struct Circuit {
    requests: Outbox,
    answers: OutboxReader,
    ended: Arc<OnceLock<Ended>>,
    leaving: CancellationToken,
}

/// The far end of a circuit, for a task in this process: it reads the requests and writes the
/// answers.
pub(crate) struct FarEnd {
    pub(crate) requests: OutboxReader,
    pub(crate) answers: Outbox,
    /// Cancelled when the opener has left.
    pub(crate) leaving: CancellationToken,
    end: End,
}

/// How the end of a circuit is announced.
enum End {
    /// To the opener, with the reason.
    Here(Arc<OnceLock<Ended>>),
    /// To the opener's member, which learns of the service by this.
    Served(CancellationToken),
}

impl FarEnd {
    /// Ends the circuit.
    pub(crate) fn end(self, why: Ended) {
        match self.end {
            End::Here(ended) => {
                let _only_once = ended.set(why);
                self.answers.close();
            }
            End::Served(done) => done.cancel(),
        }
    }
}

impl From<Served> for FarEnd {
    fn from(served: Served) -> Self {
        let Served { requests, answers, done, .. } = served;
        // A client that has left closes its requests, so this token is never cancelled.
        Self { requests, answers, leaving: CancellationToken::new(), end: End::Served(done) }
    }
}

impl Circuit {
    /// Both ends of a circuit.
    pub(crate) fn pair() -> (Self, FarEnd) {
        let (requests, to_send) = Outbox::detached();
        let (to_read, answers) = Outbox::detached();
        let (ended, leaving) = (Arc::<OnceLock<Ended>>::default(), CancellationToken::new());
        let far = FarEnd {
            requests: to_send,
            answers: to_read,
            leaving: leaving.clone(),
            end: End::Here(Arc::clone(&ended)),
        };
        (Self { requests, answers, ended, leaving }, far)
    }

    /// Sends a frame to the serving end. Never waits.
    ///
    /// # Errors
    /// [`OutboxClosed`] when the circuit has ended, or ends now because too much waits.
    pub fn send(&self, frame: Frame) -> Result<(), OutboxClosed> {
        self.requests.push(frame)
    }

    /// An outbox for requests, for a caller that writes on its own.
    pub fn requests(&self) -> Outbox {
        self.requests.clone()
    }

    /// The bytes that wait for a link or for the window.
    pub fn waiting(&self) -> usize {
        self.requests.queued()
    }

    /// The next frame from the serving end. Cancel safe.
    ///
    /// # Errors
    /// [`Ended`] once the circuit has ended.
    pub async fn next(&mut self) -> Result<Frame, Ended> {
        match self.answers.next().await {
            Some(frame) => Ok(frame),
            None => Err(self.ended.get().cloned().unwrap_or(Ended::Unreachable)),
        }
    }
}

impl Drop for Circuit {
    /// The frames that were sent are still delivered; then the circuit closes.
    fn drop(&mut self) {
        self.leaving.cancel();
    }
}

/// A circuit as the serving end sees it.
pub struct Served {
    /// The machine of the client: its node id.
    pub from: String,
    /// The client.
    pub caller: Caller,
    /// Its requests. `None` comes once the client has left.
    pub requests: OutboxReader,
    /// The way back.
    pub answers: Outbox,
    /// To be cancelled when no more answers will be written.
    pub done: CancellationToken,
}

/// Serves the circuits of other members' clients.
pub trait Host: Send + Sync {
    /// Serves a client in a task of its own.
    fn serve(&self, served: Served);
    /// The longest request, in bytes.
    fn max_request(&self) -> usize;
}

/// The present link to a member, as its circuits use it.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    /// Tells links to one member apart.
    pub(crate) link: u64,
    pub(crate) outbox: Outbox,
}

/// The circuits with all other members.
pub struct Circuits {
    peers: Mutex<BTreeMap<String, Peer>>,
    hosts: Mutex<BTreeMap<Service, Arc<dyn Host>>>,
    onward: OnceLock<Onward>,
    /// How long a client's end waits for a link.
    patience: Duration,
}

/// Serves a client at the plain peer with this id.
pub(crate) type Onward = Box<dyn Fn(&str, Served) + Send + Sync>;

/// The circuits with one other member.
struct Peer {
    /// `None` until the first link.
    incarnation: Option<u64>,
    way: watch::Sender<Option<Way>>,
    next: u32,
    circuits: BTreeMap<Channel, mpsc::Sender<Inbound>>,
}

impl Peer {
    fn new() -> Self {
        let way = watch::Sender::new(None);
        Self { incarnation: None, way, next: 0, circuits: BTreeMap::new() }
    }

    /// How many circuits the member has open here.
    fn guests(&self) -> usize {
        self.circuits.keys().filter(|channel| !channel.to_opener).count()
    }
}

impl Circuits {
    /// No circuits yet. A client's end waits for a link for `patience`.
    pub(crate) fn new(patience: Duration) -> Self {
        let (peers, hosts, onward) = Default::default();
        Self { peers, hosts, onward, patience }
    }

    /// Sets what serves circuits to this service.
    pub fn set_host(&self, service: Service, host: Arc<dyn Host>) {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).insert(service, host);
    }

    /// Sets the function that serves clients of other members at plain peers. Called once.
    pub(crate) fn set_onward(&self, onward: Onward) {
        let _set_before = self.onward.set(onward);
    }

    /// The host that serves circuits to this service, once it is set.
    pub(crate) fn host(&self, service: Service) -> Option<Arc<dyn Host>> {
        self.hosts.lock().unwrap_or_else(PoisonError::into_inner).get(&service).cloned()
    }

    /// A link to a member is open, and replaces an earlier one.
    pub(crate) fn linked(&self, node: &str, incarnation: u64, way: Way) {
        let mut peers = self.lock();
        let peer = peers.entry(node.to_owned()).or_insert_with(Peer::new);
        if peer.incarnation.is_some_and(|known| known != incarnation) {
            // Dropping their channels ends the circuits that knew the member's former incarnation.
            for inbound in std::mem::take(&mut peer.circuits).into_values() {
                let _full_or_gone = inbound.try_send(Inbound::Restarted);
            }
        }
        peer.incarnation = Some(incarnation);
        peer.way.send_replace(Some(way));
    }

    /// A link has ended. A newer link to the same member is not touched.
    pub(crate) fn unlinked(&self, node: &str, link: u64) {
        let peers = self.lock();
        let Some(peer) = peers.get(node) else { return };
        peer.way.send_if_modified(|way| {
            let is_present = way.as_ref().is_some_and(|way| way.link == link);
            if is_present {
                *way = None;
            }
            is_present
        });
    }

    /// Opens a circuit to a service of a member. The link may come later.
    pub fn open(self: &Arc<Self>, node: &str, service: Service, caller: Caller) -> Circuit {
        self.open_to(node, caller, service, None)
    }

    /// As [`Circuits::open`], or to a plain peer that is linked to the member.
    pub(crate) fn open_to(
        self: &Arc<Self>,
        node: &str,
        caller: Caller,
        service: Service,
        to: Option<String>,
    ) -> Circuit {
        let (circuit, far) = Circuit::pair();
        let (leaving, ended) = (circuit.leaving.clone(), Arc::clone(&circuit.ended));
        let FarEnd { requests: to_send, answers: to_read, .. } = far;
        let (inbound, received) = mpsc::channel(2 * WINDOW_PIECES);
        let mut peers = self.lock();
        let peer = peers.entry(node.to_owned()).or_insert_with(Peer::new);
        let number = peer.next;
        peer.next = peer.next.wrapping_add(1);
        peer.circuits.insert(Channel { number, to_opener: true }, inbound);
        let pump = Pump {
            end: CircuitEnd::new(MAX_ANSWER),
            outgoing: Channel { number, to_opener: false },
            caller: Some(caller),
            service,
            to,
            to_send,
            to_read,
            received,
            way: peer.way.subscribe(),
            leaving,
            patience: self.patience,
        };
        drop(peers);
        self.start(node.to_owned(), pump, ended);
        circuit
    }

    /// A frame of circuits from a member.
    pub(crate) fn received(self: &Arc<Self>, node: &str, frame: LinkFrame) {
        match frame {
            LinkFrame::Piece(channel, piece) => self.pass(node, channel, Inbound::Piece(piece)),
            LinkFrame::Ack(channel, number) => self.pass(node, channel, Inbound::Ack(number)),
            LinkFrame::Control(_) | LinkFrame::Replica(_) | LinkFrame::Carried(_) => {}
        }
    }

    /// A message from a member. Only messages about circuits are handled here.
    pub(crate) fn control(self: &Arc<Self>, node: &str, control: Control) {
        match control {
            Control::CircuitOpen { channel, caller, begun, service, to } => {
                self.opened(node, channel, caller, begun, service, to.as_deref());
            }
            Control::CircuitClosed { channel, to_opener, reason } => {
                let channel = Channel { number: channel, to_opener };
                self.pass(node, channel, Inbound::Closed(reason));
            }
            Control::Ready
            | Control::Unknown
            | Control::Welcome(_)
            | Control::NotInvited(_)
            | Control::NewToken(_) => {}
        }
    }

    /// A member opens a circuit, or says over a new link that the circuit is still open.
    pub(crate) fn opened(
        self: &Arc<Self>,
        node: &str,
        number: u32,
        caller: Caller,
        begun: bool,
        service: Service,
        to: Option<&str>,
    ) {
        let incoming = Channel { number, to_opener: false };
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(node) else { return };
        if peer.circuits.contains_key(&incoming) {
            return;
        }
        let host = match self.host(service) {
            _ if begun => Err("unknown"),
            _ if peer.guests() >= MOST_GUESTS => Err("too many clients"),
            None => Err("it is starting"),
            Some(host) => Ok(host),
        };
        let host = match host {
            Ok(host) => host,
            Err(reason) => return refuse(peer, number, reason),
        };
        let (to_read, requests) = Outbox::detached();
        let (answers, to_send) = Outbox::detached();
        let (inbound, received) = mpsc::channel(2 * WINDOW_PIECES);
        peer.circuits.insert(incoming, inbound);
        let done = CancellationToken::new();
        let pump = Pump {
            end: CircuitEnd::new(host.max_request()),
            outgoing: Channel { number, to_opener: true },
            caller: None,
            service: Service::Workspace,
            to: None,
            to_send,
            to_read,
            received,
            way: peer.way.subscribe(),
            leaving: done.clone(),
            patience: self.patience * SERVING_PATIENCE,
        };
        drop(peers);
        self.start(node.to_owned(), pump, Arc::default());
        let served = Served { from: node.to_owned(), caller, requests, answers, done };
        match (to, self.onward.get()) {
            (Some(to), Some(onward)) => onward(to, served),
            // No plain peer can be reached yet. Cancelling the token says at once that there will
            // be no answer.
            (Some(_), None) => served.done.cancel(),
            (None, _) => host.serve(served),
        }
    }

    /// Passes a message to a circuit. A circuit whose channel is full gets more than its window
    /// allows, and ends.
    fn pass(&self, node: &str, channel: Channel, inbound: Inbound) {
        let mut peers = self.lock();
        let Some(peer) = peers.get_mut(node) else { return };
        if let Some(circuit) = peer.circuits.get(&channel)
            && circuit.try_send(inbound).is_err()
        {
            peer.circuits.remove(&channel);
        }
    }

    fn start(self: &Arc<Self>, node: String, pump: Pump, ended: Arc<OnceLock<Ended>>) {
        let circuits = Arc::clone(self);
        tokio::spawn(async move {
            let outgoing = pump.outgoing;
            let to_read = pump.to_read.clone();
            let why = pump.run().await;
            let _only_once = ended.set(why);
            to_read.close();
            let incoming = Channel { to_opener: !outgoing.to_opener, ..outgoing };
            if let Some(peer) = circuits.lock().get_mut(&node) {
                peer.circuits.remove(&incoming);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Peer>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn refuse(peer: &Peer, channel: u32, reason: &str) {
    let reason = reason.to_owned();
    let closed = Control::CircuitClosed { channel, to_opener: true, reason };
    if let Some(way) = &*peer.way.borrow() {
        let _gone = way.outbox.push(LinkFrame::Control(closed.encode()).encode());
    }
}

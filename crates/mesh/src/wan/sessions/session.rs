//! One relay session, from its opening to the link that it becomes.

use base::NodeId;
use bytes::Bytes;
use protocol::mesh::{
    ClusterMessage, Dialect,
    cluster::{Hello, decode},
    relay::ForwardKind,
};
use seal::{Initiator, Opener, PasscodeKey, Responder, SealError, Sealer, prologue};
use tokio::time::Instant;

use crate::{
    greeting,
    link::Order,
    this_machine::ThisMachine,
    wan::{
        memory::Memory,
        words::{self, kind},
    },
};

use super::{Handle, NewLink, Output};

/// After this many records that do not open, a link is closed: something on the way changes them.
const MAX_REFUSED: u64 = 64;

/// The state that a session needs for a step, and the queue for its outputs.
pub(super) struct Context<'a> {
    pub(super) machine: &'a ThisMachine,
    pub(super) memory: &'a Memory,
    /// Whether the peer is known as a Warren.
    pub(super) warren: bool,
    /// Whether the peer wants the passcode proved, by the mesh relay's list.
    pub(super) wants_passcode: bool,
    pub(super) out: &'a mut std::collections::VecDeque<Output>,
}

pub(super) struct RelaySession {
    pub(super) handle: Handle,
    /// The id, as the opening end wrote it.
    pub(super) id: Box<str>,
    /// Whether this end opened it.
    pub(super) ours: bool,
    /// The time by which it must be a link; `None` once it is one.
    pub(super) until: Option<Instant>,
    state: SessionState,
}

/// A failed step: the session ends, and its other end gets this reason.
pub(super) struct End(pub(super) String);

impl From<SealError> for End {
    fn from(error: SealError) -> Self {
        Self(error.to_string())
    }
}

enum SessionState {
    /// This end has opened it, and waits for `relayReady`.
    Opening,
    /// This end has sent message 1 of the handshake. The flag says whether it was with the
    /// passcode.
    Greeting(Box<Initiator>, bool),
    /// The other end has opened it. Its first message decides whether the link is sealed.
    Awaiting,
    /// This end has sent message 2, and waits for the proof that message 1 was not a recording.
    Proving(Box<UnprovenLink>),
    /// It is a link, sealed or not.
    Live(Option<Box<Opener>>),
}

struct UnprovenLink {
    sealer: Sealer,
    opener: Opener,
    hello: Hello,
    proved: bool,
}

impl RelaySession {
    pub(super) fn new(handle: Handle, id: &str, ours: bool, until: Instant) -> Self {
        let state = if ours { SessionState::Opening } else { SessionState::Awaiting };
        Self { handle, id: id.into(), ours, until: Some(until), state }
    }

    /// Whether it is a link.
    pub(super) fn is_live(&self) -> bool {
        matches!(self.state, SessionState::Live(_))
    }

    /// Whether the other end has opened it, and has sent nothing in it yet.
    pub(super) fn is_awaiting(&self) -> bool {
        matches!(self.state, SessionState::Awaiting)
    }

    /// Handles `relayReady` from the other end.
    pub(super) fn ready(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        if !matches!(self.state, SessionState::Opening) {
            cx.machine.counts.bad("relayReady of a session that was not waited for");
            return Ok(());
        }
        if cx.warren { self.greet(cx) } else { self.begin_plain(cx, Dialect::Wrapped) }
    }

    /// Handles data from the other end.
    pub(super) fn data(&mut self, cx: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        match (&mut self.state, data.split_first()) {
            (SessionState::Greeting(..), Some((&kind::SECOND, message))) => {
                self.finish(cx, message)
            }
            (SessionState::Greeting(..), Some((b'{', _))) => Err(End(PLAIN_ANSWER.to_owned())),
            (SessionState::Awaiting, Some((b'{', _))) => self.first_plain(cx, data),
            (SessionState::Awaiting, Some((&kind::FIRST, message))) => {
                self.answer(cx, message, false)
            }
            (SessionState::Awaiting, Some((&kind::FIRST_WITH_PASSCODE, message))) => {
                self.answer(cx, message, true)
            }
            (SessionState::Proving(_), Some((&kind::SEALED, record))) => self.prove(cx, record),
            (SessionState::Live(Some(_)), Some((&kind::SEALED, record))) => self.record(cx, record),
            (SessionState::Live(None), Some((b'{', _))) => {
                cx.out.push_back(Output::Payload(self.handle, data.into()));
                Ok(())
            }
            _ => {
                cx.machine.counts.bad("relayData that does not belong where its session is");
                Ok(())
            }
        }
    }

    /// Becomes a link in clear text.
    pub(super) fn begin_plain(
        &mut self,
        cx: &mut Context<'_>,
        dialect: Dialect,
    ) -> Result<(), End> {
        if cx.warren {
            return Err(End(NOT_SEALED.to_owned()));
        }
        if cx.machine.settings.require_sealed {
            return Err(End(SEALED_ONLY.to_owned()));
        }
        // Only the mesh relay vouches for the peer's id. So the link counts as proved only if the
        // settings trust that id.
        let proved = cx.machine.trusts(&self.handle.peer);
        self.live(None);
        let (hello, sealer, order) = (None, None, Order::default());
        self.opened(
            cx,
            NewLink { handle: self.handle, ours: self.ours, hello, sealer, dialect, proved, order },
        );
        Ok(())
    }

    fn first_plain(&mut self, cx: &mut Context<'_>, data: Vec<u8>) -> Result<(), End> {
        let dialect = match decode(&data) {
            Ok(decoded) => decoded.dialect,
            Err(bad) => bad.dialect,
        };
        self.begin_plain(cx, dialect)?;
        cx.out.push_back(Output::Payload(self.handle, data.into()));
        Ok(())
    }

    /// Sends message 1 of the handshake.
    fn greet(&mut self, cx: &mut Context<'_>) -> Result<(), End> {
        let peer = self.handle.peer;
        let psk = psk_to_prove(cx, &peer)?;
        let prologue = prologue::relay(&own(cx), &peer, &self.id);
        let mut noise = Initiator::new(&cx.machine.identity, &peer, psk, &prologue)?;
        let first =
            noise.write(&greeting::write(cx.machine.facts.hello(true), ClusterMessage::Hello))?;
        let kind = if psk.is_some() { kind::FIRST_WITH_PASSCODE } else { kind::FIRST };
        self.send(cx, kind, &first);
        self.state = SessionState::Greeting(Box::new(noise), psk.is_some());
        Ok(())
    }

    /// Handles message 2.
    fn finish(&mut self, cx: &mut Context<'_>, message: &[u8]) -> Result<(), End> {
        let SessionState::Greeting(noise, with_passcode) = self.take() else { return Ok(()) };
        let (sealed, payload) = noise.finish(message)?;
        let hello = greeting::read(&payload, &self.handle.peer)?;
        let (mut sealer, opener) = sealed.split();
        // Proves to the other end that message 1 was not a recording.
        let proof = sealer.counted(&[])?;
        self.send(cx, kind::SEALED, &proof);
        let proved = with_passcode || no_proof_wanted(cx, &self.handle.peer);
        self.begin_sealed(cx, hello, sealer, opener, proved);
        Ok(())
    }

    /// Handles message 1.
    fn answer(
        &mut self,
        cx: &mut Context<'_>,
        message: &[u8],
        with_passcode: bool,
    ) -> Result<(), End> {
        let peer = self.handle.peer;
        let psk = psk_that_is_proved(cx, &peer, with_passcode)?;
        let prologue = prologue::relay(&peer, &own(cx), &self.id);
        let mut noise = Responder::new(&cx.machine.identity, psk, &prologue)?;
        let payload = noise.read(message, &peer)?;
        let hello = greeting::read(&payload, &peer)?;
        let own_hello = greeting::write(cx.machine.facts.hello(true), ClusterMessage::HelloAck);
        let (second, sealed) = noise.finish(&own_hello)?;
        self.send(cx, kind::SECOND, &second);
        let (sealer, opener) = sealed.split();
        let proved = with_passcode || no_proof_wanted(cx, &peer);
        self.state =
            SessionState::Proving(Box::new(UnprovenLink { sealer, opener, hello, proved }));
        Ok(())
    }

    /// Handles a record. If it opens, the other end has made this handshake just now.
    fn prove(&mut self, cx: &mut Context<'_>, record: &[u8]) -> Result<(), End> {
        let SessionState::Proving(proving) = &mut self.state else { return Ok(()) };
        let Some(payload) = open(cx.machine, &mut proving.opener, record)? else { return Ok(()) };
        let SessionState::Proving(proving) = self.take() else { return Ok(()) };
        let UnprovenLink { sealer, opener, hello, proved } = *proving;
        self.begin_sealed(cx, hello, sealer, opener, proved);
        if !payload.is_empty() {
            cx.out.push_back(Output::Payload(self.handle, payload));
        }
        Ok(())
    }

    fn record(&mut self, cx: &mut Context<'_>, record: &[u8]) -> Result<(), End> {
        let SessionState::Live(Some(opener)) = &mut self.state else { return Ok(()) };
        match open(cx.machine, opener, record)? {
            Some(payload) if !payload.is_empty() => {
                cx.out.push_back(Output::Payload(self.handle, payload));
            }
            _ => {}
        }
        Ok(())
    }

    fn begin_sealed(
        &mut self,
        cx: &mut Context<'_>,
        hello: Hello,
        sealer: Sealer,
        opener: Opener,
        proved: bool,
    ) {
        cx.memory.sealed(&self.handle.peer);
        self.live(Some(opener));
        let instance = hello.warren.as_ref().and_then(|warren| warren.instance);
        let opened = NewLink {
            handle: self.handle,
            ours: self.ours,
            hello: Some(hello),
            sealer: Some(sealer),
            dialect: Dialect::Flat,
            proved,
            order: Order { instance, dial: 0 },
        };
        self.opened(cx, opened);
    }

    fn opened(&self, cx: &mut Context<'_>, new: NewLink) {
        cx.out.push_back(Output::Opened(Box::new(new)));
    }

    fn live(&mut self, opener: Option<Opener>) {
        self.state = SessionState::Live(opener.map(Box::new));
        self.until = None;
    }

    fn take(&mut self) -> SessionState {
        std::mem::replace(&mut self.state, SessionState::Awaiting)
    }

    fn send(&self, cx: &mut Context<'_>, kind: u8, content: &[u8]) {
        let (own, peer) = (own(cx).to_string(), self.handle.peer.to_string());
        let text = words::data(&own, &peer, &self.id, kind, content);
        cx.out.push_back(Output::Send(text));
    }

    /// Sends a message about the session without data.
    pub(super) fn say(&self, cx: &mut Context<'_>, kind: ForwardKind) {
        let (own, peer) = (own(cx).to_string(), self.handle.peer.to_string());
        let text = protocol::mesh::relay::forward::relay_session(kind, &own, &peer, &self.id);
        cx.out.push_back(Output::Send(text));
    }
}

/// Opens a record. A record that does not open is dropped while such records are few, since a mesh
/// relay may lose or repeat some.
fn open(machine: &ThisMachine, opener: &mut Opener, record: &[u8]) -> Result<Option<Bytes>, End> {
    match opener.counted(record) {
        Ok(payload) => Ok(payload),
        Err(SealError::Exhausted) => Err(SealError::Exhausted.into()),
        Err(error) => {
            machine.counts.bad(refused(&error));
            tracing::debug!(%error, "a sealed record was refused");
            if opener.refused() >= MAX_REFUSED { Err(End(MEDDLED.to_owned())) } else { Ok(None) }
        }
    }
}

fn refused(error: &SealError) -> &'static str {
    match error {
        SealError::Replayed { .. } => "a sealed record that was replayed",
        SealError::Incomplete => "a sealed payload of which pieces were lost",
        _ => "a sealed record that does not open",
    }
}

fn own(cx: &Context<'_>) -> NodeId {
    cx.machine.id()
}

fn no_proof_wanted(cx: &Context<'_>, peer: &NodeId) -> bool {
    cx.machine.psk.as_ref().is_none() || cx.machine.trusts(peer)
}

/// The passcode's key, if either end wants it proved. A node without a passcode tries without one,
/// since the peer may trust it.
fn psk_to_prove<'a>(cx: &Context<'a>, peer: &NodeId) -> Result<Option<&'a PasscodeKey>, End> {
    let Some(psk) = cx.machine.psk.as_ref() else { return Ok(None) };
    match (cx.wants_passcode, cx.machine.trusts(peer)) {
        (true, _) => Ok(Some(psk)),
        (false, true) => Ok(None),
        (false, false) => Err(End(ONE_HAS_NONE.to_owned())),
    }
}

/// The passcode's key, if the peer proves it.
fn psk_that_is_proved<'a>(
    cx: &Context<'a>,
    peer: &NodeId,
    with_passcode: bool,
) -> Result<Option<&'a PasscodeKey>, End> {
    match with_passcode {
        true => cx.machine.psk.as_ref().map(Some).ok_or_else(|| End(ONE_HAS_NONE.to_owned())),
        false if !no_proof_wanted(cx, peer) => Err(End(ONE_HAS_NONE.to_owned())),
        false => Ok(None),
    }
}

const ONE_HAS_NONE: &str =
    "one of the two nodes has a passcode (--mesh-passcode), and the other has none";
pub(super) const SEALED_ONLY: &str = "only sealed sessions are taken here (--require-sealed)";
const NOT_SEALED: &str = "this node is known to seal its links, and this session is in the clear";
const PLAIN_ANSWER: &str = "the answer to a handshake was in the clear";
const MEDDLED: &str = "too many sealed records did not open: somebody changes them on the way";

//! Requests of a plain peer's clients, served here.
//!
//! - [`Inbound`]: all requests of one link
//! - `guest`: a client of this member's workspace that stands for the peer
//! - `place`: where a request is served, pure; `reply`: which message answers which request, pure
//! - `answers`: remembers answers, for requests that come again, pure
//! - `serve`: serves requests through guests, one after the other or beside each other
//! - `output`, `files`: subscriptions

pub(crate) mod answers;
mod files;
mod guest;
mod output;
mod place;
mod reply;
mod serve;

use std::{collections::BTreeMap, sync::Arc};

use protocol::workspace::{
    ClientMessage, Role, ServerMessage, SessionId,
    client::{OfSession, RenameSession},
    decode_request,
    peer::{
        ForwardedRequest, ForwardedResponse, OfSubscriber, PeerMessage, SubscribeOutput,
        SubscribeProjectFiles,
    },
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};
use tokio_util::task::AbortOnDropHandle;
use wire::Outbox;

use crate::{
    plain::outbound::{self, Hops},
    shared::Shared,
};
use answers::Begun;
use guest::Guest;
use place::Place;
pub(crate) use place::{Owner, session_of};
pub(crate) use reply::input_id;

/// The most requests of a link that wait for their turn.
const MOST_WAITING: usize = 256;
/// The most requests of a link that are served beside the one in turn. Each has a guest of its own.
const MOST_BESIDE: usize = 16;
/// The most subscriptions of a link.
const MOST_SUBSCRIPTIONS: usize = 256;

/// All requests and subscriptions of one link.
pub(crate) struct Inbound {
    requester: Requester,
    in_turn: mpsc::Sender<Request>,
    beside: Arc<Semaphore>,
    outbox: Outbox,
    /// The tasks of the subscriptions. Dropping one ends it.
    subscriptions: BTreeMap<String, AbortOnDropHandle<()>>,
}

/// The parts that requests need.
#[derive(Clone)]
struct Requester {
    shared: Arc<Shared>,
    node: String,
}

/// A request of a plain peer.
struct Request {
    /// `None` if the peer does not wait for an answer.
    id: Option<String>,
    message: ClientMessage,
    text: String,
}

impl Inbound {
    pub(crate) fn new(shared: &Arc<Shared>, node: &str, outbox: &Outbox) -> Self {
        let requester = Requester { shared: Arc::clone(shared), node: node.to_owned() };
        let (in_turn, requests) = mpsc::channel(MOST_WAITING);
        tokio::spawn(serve::in_turn(requester.clone(), requests));
        Self {
            requester,
            in_turn,
            beside: Arc::new(Semaphore::new(MOST_BESIDE)),
            outbox: outbox.clone(),
            subscriptions: BTreeMap::new(),
        }
    }

    /// Serves a request, once even if it comes again.
    pub(crate) fn request(&mut self, request: ForwardedRequest) {
        let id = request.request_id.clone();
        match self.requester.begin(&id) {
            Begun::New => self.new_request(request),
            Begun::Waiting => {}
            Begun::Answered(payload) => self.requester.respond(id, payload),
        }
    }

    /// Renames a session of this member, as the peer wishes.
    pub(crate) fn rename(&mut self, session_id: SessionId, name: String) {
        let message = ClientMessage::RenameSession(RenameSession { session_id, name });
        let text = message.encode();
        // Too many renames at once are dropped. The peer gets the present name when it offers its
        // own again.
        let _full = self.in_turn.try_send(Request { id: None, message, text });
    }

    fn new_request(&mut self, request: ForwardedRequest) {
        let ForwardedRequest { request_id: id, payload, hops, visited } = request;
        if hops == 0 || visited.contains(&self.requester.shared.this.node_id) {
            return self
                .requester
                .refuse(id, "the request went around, and found no way to its owner");
        }
        if payload.len()
            > self.requester.shared.host().map_or(usize::MAX, |host| host.max_request())
        {
            return self.requester.refuse(id, "the request is too long");
        }
        let message = match decode_request(&payload) {
            Ok(message) => message,
            Err(bad) => return self.requester.refuse(id, &bad.to_string()),
        };
        match place::of(&message, self.requester.parties(), |id| self.requester.shared.owner_of(id))
        {
            Place::Refused(words) => self.requester.refuse(id, words),
            Place::Unknown(session_id) => {
                let unknown = ServerMessage::SessionUnknown(OfSession { session_id });
                self.requester.answered(id, unknown.encode());
            }
            Place::Peer(owner) => self.relay(id, payload, &owner, hops, visited),
            Place::Here => self.here(Request { id: Some(id), message, text: payload }),
        }
    }

    /// Passes a request on to the plain peer that owns its session.
    fn relay(&self, id: String, text: String, owner: &str, hops: u8, visited: Vec<String>) {
        let (shared, requester) = (&self.requester.shared, self.requester.clone());
        if hops < 2 || visited.iter().any(|node| node == owner) || !shared.plain.is_linked(owner) {
            return self.requester.refuse(id, "there is no way to its owner from here");
        }
        let Ok(place) = Arc::clone(&self.beside).try_acquire_owned() else {
            return self.too_many(Some(id));
        };
        let me = shared.this.node_id.clone();
        let hops = Hops { left: hops - 1, visited: visited.into_iter().chain([me]).collect() };
        let circuit = outbound::open(shared, owner, Role::Write, hops);
        tokio::spawn(serve::relayed(requester, id, text, circuit, place));
    }

    fn here(&mut self, request: Request) {
        if reply::is_in_turn(request.message.kind()) {
            if let Err(error) = self.in_turn.try_send(request) {
                let Request { id, .. } = error.into_inner();
                self.too_many(id);
            }
            return;
        }
        match Arc::clone(&self.beside).try_acquire_owned() {
            Ok(place) => drop(tokio::spawn(serve::beside(self.requester.clone(), request, place))),
            Err(_) => self.too_many(request.id),
        }
    }

    fn too_many(&self, id: Option<String>) {
        if let Some(id) = id {
            self.requester.refuse(id, "this machine takes no more requests of this peer for now");
        }
    }

    /// Sends the peer the output of a session.
    pub(crate) fn subscribe(&mut self, of: SubscribeOutput) {
        let session_id = of.session_id;
        let owner = self.requester.shared.owner_of(session_id);
        match place::of_session(session_id, self.requester.parties(), owner) {
            Place::Here => {}
            Place::Unknown(_) => {
                let unknown = PeerMessage::SessionUnknown(OfSession { session_id });
                let _link_ended = self.outbox.push(unknown.encode());
                return;
            }
            // The protocol has no message that tells the peer to ask another one.
            Place::Peer(_) | Place::Refused(_) => return,
        }
        let Some(guest) = Guest::open(&self.requester) else { return };
        let sending = output::send(guest, session_id, of.after_seq, self.outbox.clone());
        self.keep(of.subscriber_id, sending);
    }

    /// Tells the peer of changes of a project's files.
    pub(crate) fn watch(&mut self, of: SubscribeProjectFiles) {
        let Some(guest) = Guest::open(&self.requester) else { return };
        let id = of.subscriber_id.clone();
        self.keep(id, files::watch(guest, of, self.outbox.clone()));
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, of: &OfSubscriber) {
        self.subscriptions.remove(&of.subscriber_id);
    }

    fn keep(&mut self, id: String, subscription: impl Future<Output = ()> + Send + 'static) {
        self.subscriptions.retain(|_, subscription| !subscription.is_finished());
        if self.subscriptions.len() >= MOST_SUBSCRIPTIONS && !self.subscriptions.contains_key(&id) {
            tracing::warn!(node = self.requester.node, "a plain peer has too many subscriptions");
            return;
        }
        self.subscriptions.insert(id, AbortOnDropHandle::new(tokio::spawn(subscription)));
    }
}

impl Requester {
    fn parties(&self) -> super::rights::Parties<'_> {
        super::rights::Parties { me: &self.shared.this.node_id, peer: &self.node }
    }

    fn begin(&self, id: &str) -> Begun {
        let now = Instant::now().into_std();
        self.shared.plain.answers(&self.node, |answers| answers.begin(now, id))
    }

    fn refuse(&self, id: String, words: &str) {
        self.answered(id, ServerMessage::error(words).encode());
    }

    /// As [`Requester::answered`], once the link has room, since an answer may be long.
    async fn answered_in_time(&self, id: String, payload: String) {
        if let Some(outbox) = self.shared.plain.outbox(&self.node) {
            let _link_ended = outbox.room().await;
        }
        self.answered(id, payload);
    }

    /// Keeps the answer of a request, and sends it.
    fn answered(&self, id: String, payload: String) {
        self.shared.plain.answers(&self.node, |answers| answers.keep(&id, &payload));
        self.respond(id, payload);
    }

    /// Forgets a request that was not begun. It may come again.
    fn forget(&self, id: &str) {
        self.shared.plain.answers(&self.node, |answers| answers.forget(id));
    }

    /// Sends an answer over the newest link, since the link of the request may be gone. If all
    /// links are gone, the peer asks again.
    fn respond(&self, request_id: String, payload: String) {
        let response = ForwardedResponse { request_id, payload };
        if let Some(outbox) = self.shared.plain.outbox(&self.node) {
            let _link_ended = outbox.push(PeerMessage::ForwardedResponse(response).encode());
        }
    }
}

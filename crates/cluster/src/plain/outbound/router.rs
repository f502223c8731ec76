//! Passes a plain peer's messages to the circuits that wait for them.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use protocol::workspace::SessionId;
use tokio::sync::mpsc;

use super::follower::Follower;

/// The most circuits that end at one plain peer.
const MOST: usize = 4096;
/// The most events that wait for one circuit. Its task takes them at once. If a response is lost
/// here, its request ends by its time limit.
const EVENTS: usize = 1024;

/// A peer's message for a circuit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Event {
    /// The response with this id, and its payload.
    Response(String, String),
    /// The peer does not run this session.
    Unknown(SessionId),
    /// Files changed, for the subscription with this id.
    FilesChanged(String),
}

/// The circuits that end at one plain peer, and what they wait for.
#[derive(Default)]
pub(crate) struct Router(Mutex<State>);

#[derive(Default)]
struct State {
    next: u64,
    circuits: BTreeMap<u64, mpsc::Sender<Event>>,
    /// The number of the circuit that waits for a response or for changes of files, by the id of
    /// the request or subscription.
    responses: BTreeMap<String, u64>,
    watches: BTreeMap<String, u64>,
    followers: BTreeMap<SessionId, Vec<Arc<Follower>>>,
}

/// The registration of a circuit, which ends when this is dropped.
pub(super) struct Routed {
    router: Arc<Router>,
    number: u64,
    follower: Option<Arc<Follower>>,
}

impl Router {
    /// Registers a circuit. `None` if there are too many.
    pub(super) fn enter(self: &Arc<Self>) -> Option<(Routed, mpsc::Receiver<Event>)> {
        let (sender, events) = mpsc::channel(EVENTS);
        let mut state = self.lock();
        if state.circuits.len() >= MOST {
            return None;
        }
        let number = state.next;
        state.next += 1;
        state.circuits.insert(number, sender);
        let routed = Routed { router: Arc::clone(self), number, follower: None };
        Some((routed, events))
    }

    /// Passes on a response of the peer. A response that no circuit waits for is dropped.
    pub(crate) fn respond(&self, id: String, payload: String) {
        let mut state = self.lock();
        if let Some(number) = state.responses.remove(&id) {
            state.tell(number, Event::Response(id, payload));
        }
    }

    /// Passes on that the peer does not run a session.
    pub(crate) fn unknown(&self, session: SessionId) {
        let state = self.lock();
        for circuit in state.circuits.values() {
            let _full = circuit.try_send(Event::Unknown(session));
        }
    }

    /// Files changed, for one subscription.
    pub(crate) fn files_changed(&self, subscriber: String) {
        let state = self.lock();
        if let Some(number) = state.watches.get(&subscriber) {
            state.tell(*number, Event::FilesChanged(subscriber));
        }
    }

    /// Passes on output of a session.
    pub(crate) fn output(&self, session: SessionId, seq: u64, data: &str) {
        let followers = self.lock().followers.get(&session).cloned().unwrap_or_default();
        followers.iter().for_each(|follower| follower.output(seq, data));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&self, number: u64, event: Event) {
        if let Some(circuit) = self.circuits.get(&number) {
            let _full = circuit.try_send(event);
        }
    }
}

impl Routed {
    pub(super) fn expect(&self, id: String) {
        self.router.lock().responses.insert(id, self.number);
    }

    pub(super) fn forget(&self, id: &str) {
        self.router.lock().responses.remove(id);
    }

    pub(super) fn watch(&self, id: String) {
        self.router.lock().watches.insert(id, self.number);
    }

    pub(super) fn unwatch(&self, id: &str) {
        self.router.lock().watches.remove(id);
    }

    pub(super) fn follow(&mut self, follower: Follower) {
        self.unfollow();
        let follower = Arc::new(follower);
        let mut state = self.router.lock();
        state.followers.entry(follower.session()).or_default().push(Arc::clone(&follower));
        self.follower = Some(follower);
    }

    pub(super) fn unfollow(&mut self) {
        let Some(follower) = self.follower.take() else { return };
        let mut state = self.router.lock();
        if let Some(followers) = state.followers.get_mut(&follower.session()) {
            followers.retain(|other| !Arc::ptr_eq(other, &follower));
            if followers.is_empty() {
                state.followers.remove(&follower.session());
            }
        }
    }

    pub(super) fn follower(&self) -> Option<&Arc<Follower>> {
        self.follower.as_ref()
    }
}

impl Drop for Routed {
    fn drop(&mut self) {
        self.unfollow();
        let mut state = self.router.lock();
        state.circuits.remove(&self.number);
        state.responses.retain(|_, number| *number != self.number);
        state.watches.retain(|_, number| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: SessionId = SessionId::from_random(7);

    #[tokio::test]
    async fn a_message_goes_to_the_circuit_that_waits_for_it() {
        let router = Arc::<Router>::default();
        let ((one, mut to_one), (other, mut to_other)) =
            (router.enter().unwrap(), router.enter().unwrap());
        one.expect("1".to_owned());
        other.watch("w".to_owned());
        for _ in 0..2 {
            router.respond("1".to_owned(), "answer".to_owned());
            router.files_changed("w".to_owned());
        }
        router.respond("2".to_owned(), "nobody asked".to_owned());
        router.unknown(ID);
        let response = Event::Response("1".to_owned(), "answer".to_owned());
        assert_eq!(to_one.recv().await, Some(response), "once");
        assert_eq!(to_one.recv().await, Some(Event::Unknown(ID)));
        for _ in 0..2 {
            assert_eq!(to_other.recv().await, Some(Event::FilesChanged("w".to_owned())));
        }
    }

    #[test]
    fn circuits_are_bounded_and_leave_nothing_behind() {
        let router = Arc::<Router>::default();
        let mut circuits: Vec<_> = (0..MOST).map(|_| router.enter().unwrap()).collect();
        assert!(router.enter().is_none());
        let (outbox, _reader) = wire::Outbox::detached();
        for (number, (circuit, _)) in circuits.iter_mut().enumerate() {
            circuit.expect(format!("r{number}"));
            circuit.watch(format!("w{number}"));
            circuit.follow(Follower::new(ID, 0, outbox.clone()));
        }
        circuits.clear();
        let state = router.lock();
        assert!(state.circuits.is_empty() && state.responses.is_empty());
        assert!(state.watches.is_empty() && state.followers.is_empty());
    }
}

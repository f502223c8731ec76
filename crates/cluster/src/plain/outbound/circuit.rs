//! The task of a circuit that ends at a plain peer.

use std::sync::Arc;

use protocol::workspace::{Role, ServerMessage, SessionId};
use replica::{Input, Key, Kind};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep_until},
};
use wire::{Frame, Outbox, until};

use super::{
    follower::Follower,
    router::{Event, Routed},
    translation::{Action, Hops, Translation},
};
use crate::{
    circuit::{Circuit, Ended, FarEnd, Served},
    plain::peers::Way,
    shared::Shared,
};

/// Opens a circuit to a plain peer for a client. The link may come later, within the client's
/// patience.
pub(crate) fn open(shared: &Arc<Shared>, node: &str, role: Role, hops: Hops) -> Circuit {
    let (circuit, far) = Circuit::pair();
    run(shared, node, role, hops, far);
    circuit
}

/// Serves a client of another member at a plain peer that is linked here.
pub(crate) fn serve(shared: &Arc<Shared>, node: &str, served: Served) {
    let role = served.caller.role;
    let far = FarEnd::from(served);
    match shared.plain.is_linked(node) {
        true => run(shared, node, role, Hops::default(), far),
        false => far.end(Ended::Unreachable),
    }
}

fn run(shared: &Arc<Shared>, node: &str, role: Role, hops: Hops, far: FarEnd) {
    let Some((router, ways)) = shared.plain.circuits(node) else {
        return far.end(Ended::Unreachable);
    };
    let Some((routed, events)) = router.enter() else {
        return far.end(Ended::Closed("it has too many clients".to_owned()));
    };
    let name = shared.plain.name(node).filter(|name| !name.is_empty());
    let name = name.unwrap_or_else(|| node.to_owned());
    let running = Running {
        shared: Arc::clone(shared),
        node: node.to_owned(),
        translation: Translation::new(name, role, hops, rand::random()),
        way: None,
        give_up: Instant::now() + shared.settings.patience,
        routed,
        far,
    };
    tokio::spawn(running.run(events, ways));
}

struct Running {
    shared: Arc<Shared>,
    node: String,
    translation: Translation,
    far: FarEnd,
    routed: Routed,
    /// The link that it uses until that link ends.
    way: Option<Way>,
    /// When it gives up, if no link comes.
    give_up: Instant,
}

impl Running {
    async fn run(mut self, mut events: mpsc::Receiver<Event>, mut ways: watch::Receiver<Vec<Way>>) {
        self.follow(&ways.borrow_and_update());
        let why = self.until_end(&mut events, &mut ways).await;
        self.translation.leave();
        self.carry_out();
        self.far.end(why);
    }

    async fn until_end(
        &mut self,
        events: &mut mpsc::Receiver<Event>,
        ways: &mut watch::Receiver<Vec<Way>>,
    ) -> Ended {
        let leaving = self.far.leaving.clone();
        loop {
            self.carry_out();
            let outbox = self.way.as_ref().map(|way| way.outbox.clone());
            let has_room = outbox.as_ref().is_some_and(Outbox::has_room);
            let follower = self.routed.follower().cloned();
            let (due, give_up) = (self.translation.due(), self.give_up);
            tokio::select! {
                frame = self.far.requests.next(), if has_room => match frame {
                    Some(frame) => self.request(&frame),
                    None => return left(),
                },
                // The sender stays in the router as long as this circuit exists, so this never ends
                // first.
                Some(event) = events.recv() => self.event(event),
                changed = ways.changed() => match changed {
                    Ok(()) => self.follow(&ways.borrow_and_update()),
                    Err(_) => return Ended::Unreachable,
                },
                () = room(outbox), if !has_room => {}
                () = caught_up(follower.as_deref()) => {
                    self.translation.lagged(follower.map_or(0, |follower| follower.last_seq()));
                }
                () = until(due) => self.translation.overdue(Instant::now().into_std()),
                () = sleep_until(give_up), if self.way.is_none() => return Ended::Unreachable,
                () = leaving.cancelled(), if self.way.is_some() => {
                    // Requests that were sent before the client left are still delivered.
                    while let Some(frame) = self.far.requests.try_next() {
                        self.request(&frame);
                        self.carry_out();
                    }
                    return left();
                }
            }
        }
    }

    fn request(&mut self, frame: &Frame) {
        match frame {
            Frame::Text(text) => self.translation.request(Instant::now().into_std(), text),
            Frame::Binary(_) => self.answer(&ServerMessage::error("messages are text")),
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::Response(id, payload) => self.translation.response(&id, payload),
            Event::Unknown(session) => self.translation.disclaimed(session),
            Event::FilesChanged(subscriber) => self.translation.files_changed(&subscriber),
        }
    }

    /// Keeps to its link until that ends, and then changes to the newest one.
    fn follow(&mut self, ways: &[Way]) {
        if let Some(way) = &self.way
            && ways.iter().any(|present| present.number == way.number)
        {
            return;
        }
        if self.way.take().is_some() {
            self.translation.unlinked();
            self.give_up = Instant::now() + self.shared.settings.patience;
        }
        self.way = ways.last().cloned();
        if self.way.is_some() {
            let last_seq = self.routed.follower().map_or(0, |follower| follower.last_seq());
            self.translation.linked_again(last_seq);
        }
    }

    fn carry_out(&mut self) {
        while let Some(action) = self.translation.next() {
            match action {
                Action::Send(message) => {
                    if let Some(way) = &self.way {
                        let _link_ended = way.outbox.push(message.encode());
                    }
                }
                Action::Answer(reply) => self.answer(&reply),
                Action::Pass(text) => {
                    let _gone = self.far.answers.push(text);
                }
                Action::Expect(id) => self.routed.expect(id),
                Action::Forget(id) => self.routed.forget(&id),
                Action::Watch(id) => self.routed.watch(id),
                Action::Unwatch(id) => self.routed.unwatch(&id),
                Action::Follow(session, after) => {
                    self.routed.follow(Follower::new(session, after, self.far.answers.clone()));
                }
                Action::Unfollow => self.routed.unfollow(),
                Action::Dead(session) => self.bury(session),
            }
        }
    }

    fn answer(&self, reply: &ServerMessage) {
        let _gone = self.far.answers.push(reply.encode());
    }

    /// Deletes the entry of a session that its owner does not run: then no machine runs it.
    fn bury(&self, session: SessionId) {
        let id = session.to_string();
        let entry = self.shared.directory.get(Kind::SESSION, &id);
        if entry.is_none_or(|entry| *entry.owner.as_str() != *self.node) {
            return;
        }
        let (driver, key) = (self.shared.driver.clone(), Key::new(Kind::SESSION, id));
        tokio::spawn(async move {
            // Another member may have deleted it first.
            let _gone = driver.ask(Input::Delete { key }).await;
        });
    }
}

fn left() -> Ended {
    Ended::Closed("the client has left".to_owned())
}

/// Waits for room, if there is a link. The end of a link is reported by `ways`.
async fn room(outbox: Option<Outbox>) {
    match outbox {
        Some(outbox) if outbox.room().await.is_ok() => {}
        _ => std::future::pending().await,
    }
}

async fn caught_up(follower: Option<&Follower>) {
    match follower {
        Some(follower) => follower.caught_up().await,
        None => std::future::pending().await,
    }
}

//! Clients of other members, served here: guests. A guest is served like any client, but over a
//! circuit; it gets the events for all clients from the member that it is connected to.

use std::sync::{Arc, Weak};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use cluster::{Caller, Host, Served};
use protocol::workspace::{ServerMessage, limits::MAX_MESSAGE};
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tracing::Instrument as _;
use wire::{Frame, Outbox, OutboxClosed, OutboxReader};
use workspace::{ClientId, Event, Identity, Member};

use crate::{admission::Admission, reading, request_server::RequestServer};

/// The unread answers, in bytes, at which no more of a guest's requests are read.
const UNREAD: usize = 2 * 1024 * 1024;
/// The first byte of a binary frame that marks a request as answered. A frame of output begins with another byte.
const DONE: u8 = 0x02;

/// Marks a request as answered, for the guest's member. Requests are counted from 1.
fn done(request: u64) -> Bytes {
    let mut mark = BytesMut::with_capacity(9);
    mark.put_u8(DONE);
    mark.put_u64(request);
    mark.freeze()
}

/// The number of the request that a frame marks as answered; `None` for any other frame.
pub(crate) fn read_done(frame: &Bytes) -> Option<u64> {
    let mut rest = frame.clone();
    (rest.len() == 9 && rest.get_u8() == DONE).then(|| rest.get_u64())
}

/// Serves the clients of other members.
pub(crate) struct Guests(pub(crate) Weak<Admission>);

impl Host for Guests {
    fn serve(&self, served: Served) {
        let Some(admission) = self.0.upgrade() else { return };
        let guest = Guest::new(&admission, served);
        let span = tracing::info_span!(parent: None, "workspace_guest", who = guest.who());
        let links = admission.links.clone();
        links.spawn(guest.run().instrument(span));
    }

    fn max_request(&self) -> usize {
        MAX_MESSAGE
    }
}

struct Guest {
    admission: Arc<Admission>,
    server: RequestServer,
    requests: OutboxReader,
    events: Receiver<Event>,
    /// The number of the request that was read last.
    number: u64,
    client: Gone,
    done: tokio_util::sync::CancellationToken,
}

impl Guest {
    fn new(admission: &Arc<Admission>, served: Served) -> Self {
        let Served { from, caller, requests, answers, done } = served;
        let client = admission.next_client();
        let me = identity(admission, &from, caller);
        let services = &admission.services;
        Self {
            server: RequestServer::new(admission, client, me, answers, false)
                .at(own_name(admission)),
            requests,
            events: services.events.subscribe(),
            number: 0,
            client: Gone(Arc::clone(admission), client),
            done,
            admission: Arc::clone(admission),
        }
    }

    fn who(&self) -> &str {
        &self.server.asker.me.who
    }

    async fn run(mut self) {
        // An error means that the circuit has closed.
        let _answers_gone = self.until_end().await;
        let Self { admission, server, client, done, .. } = self;
        let lanes = server.end().await;
        drop(client);
        lanes.finish(admission.closing.cancelled()).await;
        // Last, because the answers to the remaining requests go over the circuit.
        done.cancel();
    }

    async fn until_end(&mut self) -> Result<(), OutboxClosed> {
        let closing = self.admission.closing.clone();
        loop {
            let outbox = &self.server.asker.outbox;
            let (has_room, is_heard) = (outbox.has_room(), outbox.queued() <= UNREAD);
            let outbox = outbox.clone();
            tokio::select! {
                biased;
                () = closing.cancelled() => return Ok(()),
                frame = self.requests.next(), if is_heard => match frame {
                    Some(frame) => self.frame(frame).await?,
                    None => return Ok(()),
                },
                Some(done) = self.server.lanes.next() => {
                    if let Err(error) = done {
                        self.server.failed(&error)?;
                    }
                }
                event = self.events.recv(), if has_room => self.event(event)?,
                room = outbox.room(), if !has_room => room?,
            }
        }
    }

    async fn frame(&mut self, frame: Frame) -> Result<(), OutboxClosed> {
        // Refused frames count, too, because the other end counts all that it sends.
        self.number += 1;
        let answered = mark(self.server.asker.outbox.clone(), self.number);
        let Frame::Text(text) = frame else {
            answered();
            return Ok(());
        };
        match reading::read(&text) {
            Ok(message) => self.server.request(message, None, answered).await,
            Err(answer) => {
                let said = self.server.say(&answer);
                answered();
                said
            }
        }
    }

    /// Sends the guest only those events that the member it is connected to does not know.
    fn event(&self, event: Result<Event, RecvError>) -> Result<(), OutboxClosed> {
        let Ok(event) = event else { return Ok(()) };
        let asker = &self.server.asker;
        let is_for_guest = match asker.me.member {
            Some(member) => event.team == Some(member.team),
            None => {
                let hidden = event.only_viewers_of;
                hidden.is_some() && hidden == asker.attached && !is_killed(&event.message)
            }
        };
        if is_for_guest { self.server.say(&event.message) } else { Ok(()) }
    }
}

/// Whether this is the end of a session, which is an event at every member.
fn is_killed(message: &ServerMessage) -> bool {
    matches!(message, ServerMessage::SessionKilled(_))
}

/// Marks a request as answered, behind its answer.
fn mark(outbox: Outbox, number: u64) -> impl FnOnce() + Send + 'static {
    move || {
        let _answers_gone = outbox.push(done(number));
    }
}

fn identity(admission: &Admission, from: &str, caller: Caller) -> Identity {
    let Caller { who, role, member, .. } = caller;
    let name = admission.services.membership.cluster().map(|cluster| cluster.name_of(from));
    let who = format!("{who}@{}", name.as_deref().unwrap_or(from));
    let member = member.map(|(team, session)| Member { team, session });
    Identity { who, role, member }
}

/// The name of this machine in its cluster.
fn own_name(admission: &Admission) -> Option<Arc<str>> {
    let cluster = admission.services.membership.cluster()?;
    Some(cluster.name_of(cluster.node_id()).into())
}

/// Makes the sessions forget a client when it is dropped, also if its task panics or is aborted.
struct Gone(Arc<Admission>, ClientId);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.services.sessions.client_gone(self.1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_told_from_output() {
        assert_eq!(read_done(&done(7)), Some(7));
        assert_eq!(read_done(&Bytes::from_static(&[1; 9])), None);
        assert_eq!(read_done(&Bytes::from_static(&[DONE; 10])), None);
    }
}

//! Sends the payloads of a relay session, as `relayData`.

use std::sync::{Arc, Mutex, PoisonError};

use protocol::mesh::relay::forward::relay_data;
use seal::Sealer;
use tokio::{sync::Mutex as Turn, time::Instant};
use wire::Outbox;

use super::words::{self, kind};
use crate::link::{Link, Outgoing, Payload};

/// The longest message in clear text, in bytes. In base64 it must fit into what stock mesh relays
/// take.
const MAX_PLAIN: usize = 11 * 1024 * 1024;

/// When a payload other than a heartbeat last went over a link, in either direction.
#[derive(Debug)]
pub(super) struct LastUse(Mutex<Instant>);

impl LastUse {
    pub(super) fn new(now: Instant) -> Self {
        Self(Mutex::new(now))
    }

    /// Notes that a payload goes over the link.
    pub(super) fn passes(&self, payload: &[u8]) {
        if !is_heartbeat(payload) {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        }
    }

    pub(super) fn at(&self) -> Instant {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a payload is a heartbeat, or the answer to one, in either dialect.
fn is_heartbeat(payload: &[u8]) -> bool {
    payload.starts_with(b"{\"heartbeat")
}

/// The sending task of a session.
pub(super) struct Outward {
    pub(super) own: String,
    pub(super) peer: String,
    /// The session's id.
    pub(super) id: Box<str>,
    /// The cipher state, between Warrens.
    pub(super) sealer: Option<Sealer>,
    pub(super) link: Arc<Link>,
    pub(super) outgoing: Outgoing,
    /// The outbox of the connection to the mesh relay.
    pub(super) outbox: Outbox,
    /// Held by the session whose frame goes to the mesh relay next. The lock is fair, so sessions
    /// take turns, and one that sends a model does not delay the others.
    pub(super) turn: Arc<Turn<()>>,
    pub(super) last_use: Arc<LastUse>,
}

impl Outward {
    /// Sends until the link is closed or the connection to the mesh relay has ended.
    pub(super) async fn run(mut self) {
        while let Some(payload) = self.outgoing.next().await {
            let Some(frames) = self.frames(&payload) else { return };
            for frame in frames {
                let turn = self.turn.lock().await;
                if self.outbox.send(frame).await.is_err() {
                    return;
                }
                drop(turn);
            }
        }
    }

    /// A payload as `relayData` frames. `None` if it cannot be sent; then the link is closed.
    fn frames(&mut self, payload: &Payload) -> Option<Vec<String>> {
        let (head, body) = payload.parts();
        self.last_use.passes(head);
        let sealed =
            if body.is_empty() { self.seal(head) } else { self.seal(&[head, body].concat()) };
        sealed.map_err(|why| self.link.close(&why)).ok()
    }

    fn seal(&mut self, payload: &[u8]) -> Result<Vec<String>, String> {
        let Some(sealer) = &mut self.sealer else { return self.plain(payload) };
        let records = sealer.counted_pieces(payload).map_err(|error| error.to_string())?;
        let frame =
            |record: &Vec<u8>| words::data(&self.own, &self.peer, &self.id, kind::SEALED, record);
        Ok(records.iter().map(frame).collect())
    }

    fn plain(&self, payload: &[u8]) -> Result<Vec<String>, String> {
        if payload.len() > MAX_PLAIN {
            return Err(format!("a message is longer than a relay takes: {} bytes", payload.len()));
        }
        Ok(vec![relay_data(&self.own, &self.peer, &self.id, payload)])
    }
}

//! Keys on their way: each is kept until the server has acknowledged it, and sent again when the
//! connection was lost meanwhile. The server applies each once.

use std::collections::VecDeque;

use protocol::workspace::{
    ClientMessage, SessionId, base64,
    client::{Encoding, TerminalInput},
};

/// So many are kept at most.
const MOST: usize = 512;
/// Nothing more is taken while they have so many bytes.
const MOST_BYTES: usize = 256 * 1024;
/// One message has so many bytes of keys at most.
const PIECE: usize = 64 * 1024;

/// The keys of one client that are not acknowledged yet.
#[derive(Debug)]
pub struct Inputs {
    session: SessionId,
    /// What tells its ids from those of other clients.
    prefix: String,
    count: u64,
    open: VecDeque<Open>,
    bytes: usize,
}

#[derive(Debug)]
struct Open {
    id: String,
    data: String,
}

impl Inputs {
    /// Keys for a session. The prefix is of this client alone: random, short.
    pub fn new(session: SessionId, prefix: String) -> Self {
        Self { session, prefix, count: 0, open: VecDeque::new(), bytes: 0 }
    }

    /// Whether more may be typed. If not, it waits until some is acknowledged.
    pub fn has_room(&self) -> bool {
        self.open.len() < MOST && self.bytes < MOST_BYTES
    }

    /// What to send for these keys. Ask [`Inputs::has_room`] first.
    pub fn push(&mut self, keys: &[u8]) -> Vec<ClientMessage> {
        keys.chunks(PIECE).map(|piece| self.piece(piece)).collect()
    }

    /// The server has applied this one.
    pub fn acknowledged(&mut self, input_id: &str) {
        if let Some(at) = self.open.iter().position(|open| open.id == input_id) {
            self.remove(at);
        }
    }

    /// The server has refused something: the oldest, as it reads them in order.
    pub fn refused(&mut self) {
        self.remove(0);
    }

    /// What to send again on another connection, in order.
    pub fn again(&self) -> impl Iterator<Item = ClientMessage> {
        self.open.iter().map(|open| self.message(open))
    }

    fn piece(&mut self, keys: &[u8]) -> ClientMessage {
        self.count += 1;
        let open =
            Open { id: format!("{}-{}", self.prefix, self.count), data: base64::encode(keys) };
        let message = self.message(&open);
        self.bytes += open.data.len();
        self.open.push_back(open);
        message
    }

    fn remove(&mut self, at: usize) {
        if let Some(open) = self.open.remove(at) {
            self.bytes -= open.data.len();
        }
    }

    fn message(&self, open: &Open) -> ClientMessage {
        ClientMessage::TerminalInput(TerminalInput {
            session_id: self.session,
            data: open.data.clone(),
            encoding: Encoding::Base64,
            input_id: Some(open.id.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs() -> Inputs {
        Inputs::new(SessionId::from_random(1), "p".to_owned())
    }

    fn id_and_bytes(message: ClientMessage) -> (String, Vec<u8>) {
        let ClientMessage::TerminalInput(input) = message else { panic!("{message:?}") };
        (input.input_id.clone().unwrap(), input.bytes().unwrap())
    }

    #[test]
    fn what_is_not_acknowledged_is_sent_again_in_order_with_its_id() {
        let mut inputs = inputs();
        let sent: Vec<_> = [&b"a"[..], b"\x00\xff", b"c"].map(|it| inputs.push(it)).concat();
        assert_eq!(id_and_bytes(sent[1].clone()), ("p-2".to_owned(), vec![0, 0xff]));
        inputs.acknowledged("p-2");
        inputs.acknowledged("of another");
        let again: Vec<_> = inputs.again().map(|it| id_and_bytes(it).0).collect();
        assert_eq!(again, ["p-1", "p-3"]);
        inputs.refused();
        assert_eq!(inputs.again().count(), 1);
    }

    #[test]
    fn a_long_paste_is_cut_and_comes_back_whole() {
        let paste: Vec<u8> = (0..=255).cycle().take(3 * PIECE + 1).collect();
        let sent = inputs().push(&paste);
        assert_eq!(sent.len(), 4);
        let whole: Vec<u8> = sent.into_iter().flat_map(|it| id_and_bytes(it).1).collect();
        assert_eq!(whole, paste);
    }

    #[test]
    fn more_than_the_bounds_is_not_taken_until_some_is_acknowledged() {
        let mut inputs = inputs();
        for _ in 0..MOST {
            assert!(inputs.has_room());
            inputs.push(b"k");
        }
        assert!(!inputs.has_room());
        inputs.acknowledged("p-1");
        assert!(inputs.has_room());
        inputs.push(&vec![0; MOST_BYTES]);
        assert!(!inputs.has_room());
    }
}

//! Keys and prompts on their way: each is kept until the server has acknowledged it, and sent again
//! when the connection was lost meanwhile. The server applies each once.

use std::collections::VecDeque;

use protocol::workspace::{
    ClientMessage, SessionId, base64,
    client::{Encoding, SendInput, TerminalInput},
};
use wire::dial::jitter;

/// So many are kept at most.
const MOST: usize = 512;
/// No more keys are taken while all have so many bytes.
const MOST_BYTES: usize = 256 * 1024;
/// One message has so many bytes of keys at most.
const PIECE: usize = 64 * 1024;

/// What tells the inputs of one client from those of all others.
pub fn unique() -> String {
    format!("{:08x}{:08x}", jitter(), jitter())
}

/// What one client has typed that is not acknowledged yet.
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
    typed: Typed,
}

#[derive(Debug, Clone)]
enum Typed {
    /// In base64.
    Keys(String),
    Prompt(String),
}

impl Inputs {
    /// What is typed into a session. The prefix is of this client alone: [`unique`].
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

    /// What to send for a whole prompt.
    pub fn prompt(&mut self, text: String) -> ClientMessage {
        self.keep(Typed::Prompt(text))
    }

    /// The server has applied this one; whether it was a prompt of this client.
    pub fn acknowledged(&mut self, input_id: &str) -> bool {
        let at = self.open.iter().position(|open| open.id == input_id);
        let open = at.and_then(|at| self.remove(at));
        matches!(open, Some(Open { typed: Typed::Prompt(_), .. }))
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
        self.keep(Typed::Keys(base64::encode(keys)))
    }

    fn keep(&mut self, typed: Typed) -> ClientMessage {
        self.count += 1;
        let open = Open { id: format!("{}-{}", self.prefix, self.count), typed };
        let message = self.message(&open);
        self.bytes += open.typed.len();
        self.open.push_back(open);
        message
    }

    fn remove(&mut self, at: usize) -> Option<Open> {
        let open = self.open.remove(at)?;
        self.bytes -= open.typed.len();
        Some(open)
    }

    fn message(&self, open: &Open) -> ClientMessage {
        let (session_id, input_id) = (self.session, Some(open.id.clone()));
        match open.typed.clone() {
            Typed::Keys(data) => ClientMessage::TerminalInput(TerminalInput {
                session_id,
                data,
                encoding: Encoding::Base64,
                input_id,
            }),
            Typed::Prompt(input) => {
                ClientMessage::SendInput(SendInput { session_id, input, input_id })
            }
        }
    }
}

impl Typed {
    fn len(&self) -> usize {
        match self {
            Self::Keys(text) | Self::Prompt(text) => text.len(),
        }
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
    fn unacknowledged_input_is_sent_again_in_order_with_its_id() {
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
    fn a_prompt_is_sent_again_as_well_until_it_is_acknowledged() {
        let mut inputs = inputs();
        inputs.push(b"a");
        let ClientMessage::SendInput(sent) = inputs.prompt("look".to_owned()) else { panic!() };
        assert_eq!((sent.input.as_str(), sent.input_id.as_deref()), ("look", Some("p-2")));
        assert_eq!(inputs.again().last(), Some(ClientMessage::SendInput(sent)));
        assert!(!inputs.acknowledged("p-1"));
        assert!(inputs.acknowledged("p-2") && !inputs.acknowledged("p-2"));
        assert_eq!((inputs.open.len(), inputs.bytes), (0, 0));
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

//! Keys and prompts on their way: each is kept until the server has acknowledged it, and sent again
//! when the connection was lost meanwhile. The server applies each once. Only so much is on its way at
//! once; the rest waits here, so that the keys behind it are still read: one of them may detach.

use std::collections::VecDeque;

use bytes::BytesMut;
use protocol::workspace::{
    ClientMessage, SessionId, base64,
    client::{Encoding, SendInput, TerminalInput},
};
use wire::dial::jitter;

/// So many are on their way at most, and so many bytes of them.
const MOST: usize = 512;
const MOST_BYTES: usize = 256 * 1024;
/// So much waits behind these at most, in bytes and in prompts.
const MOST_WAITING: usize = 32 * 1024 * 1024;
const MOST_PROMPTS: usize = 512;
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
    /// On its way.
    open: VecDeque<Open>,
    bytes: usize,
    waiting: Waiting,
}

/// What waits until more may be on its way. Keys are joined: many small pieces become few messages.
#[derive(Debug, Default)]
struct Waiting {
    keys: BytesMut,
    prompts: VecDeque<String>,
    /// Of all of them.
    bytes: usize,
    /// Whether some was not taken since there was too much. What follows it is not taken either, until
    /// nothing waits: the middle of a paste must not be missing.
    is_cut: bool,
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
        let (open, waiting) = (VecDeque::new(), Waiting::default());
        Self { session, prefix, count: 0, open, bytes: 0, waiting }
    }

    /// Whether more is taken.
    pub fn has_room(&self) -> bool {
        let Waiting { prompts, bytes, is_cut, .. } = &self.waiting;
        !is_cut && *bytes < MOST_WAITING && prompts.len() < MOST_PROMPTS
    }

    /// Takes keys, for [`Inputs::due`]; `false`: there is no room for them, and they are dropped.
    pub fn push(&mut self, keys: &[u8]) -> bool {
        let is_taken = self.take(keys.len());
        if is_taken {
            self.waiting.keys.extend_from_slice(keys);
        }
        is_taken
    }

    /// Takes a whole prompt, for [`Inputs::due`]; `false`: there is no room for it, and it is dropped.
    pub fn prompt(&mut self, text: String) -> bool {
        let is_taken = self.take(text.len());
        if is_taken {
            self.waiting.prompts.push_back(text);
        }
        is_taken
    }

    /// What to send now, until there is nothing more or enough is on its way.
    pub fn due(&mut self) -> Option<ClientMessage> {
        if self.open.len() >= MOST || self.bytes >= MOST_BYTES {
            return None;
        }
        let typed = self.waiting.next()?;
        Some(self.keep(typed))
    }

    /// So many bytes have not been sent yet.
    pub fn waiting(&self) -> usize {
        self.waiting.bytes
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

    fn take(&mut self, length: usize) -> bool {
        let is_taken = self.has_room();
        self.waiting.is_cut |= !is_taken;
        self.waiting.bytes += if is_taken { length } else { 0 };
        is_taken
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

impl Waiting {
    /// A session takes either keys or prompts.
    fn next(&mut self) -> Option<Typed> {
        let prompt = self.prompts.pop_front();
        let piece = self.keys.split_to(self.keys.len().min(PIECE));
        self.bytes -= piece.len() + prompt.as_ref().map_or(0, String::len);
        self.is_cut &= self.bytes > 0;
        match prompt {
            Some(text) => Some(Typed::Prompt(text)),
            None => (!piece.is_empty()).then(|| Typed::Keys(base64::encode(&piece))),
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

    /// What is sent for these keys.
    fn push(inputs: &mut Inputs, keys: &[u8]) -> Vec<ClientMessage> {
        assert!(inputs.push(keys));
        std::iter::from_fn(|| inputs.due()).collect()
    }

    fn id_and_bytes(message: ClientMessage) -> (String, Vec<u8>) {
        let ClientMessage::TerminalInput(input) = message else { panic!("{message:?}") };
        (input.input_id.clone().unwrap(), input.bytes().unwrap())
    }

    #[test]
    fn unacknowledged_input_is_sent_again_in_order_with_its_id() {
        let mut inputs = inputs();
        let keys = [&b"a"[..], b"\x00\xff", b"c"];
        let sent: Vec<_> = keys.into_iter().flat_map(|keys| push(&mut inputs, keys)).collect();
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
        push(&mut inputs, b"a");
        assert!(inputs.prompt("look".to_owned()));
        let Some(ClientMessage::SendInput(sent)) = inputs.due() else { panic!() };
        assert_eq!((sent.input.as_str(), sent.input_id.as_deref()), ("look", Some("p-2")));
        assert_eq!(inputs.again().last(), Some(ClientMessage::SendInput(sent)));
        assert!(!inputs.acknowledged("p-1"));
        assert!(inputs.acknowledged("p-2") && !inputs.acknowledged("p-2"));
        assert_eq!((inputs.open.len(), inputs.bytes, inputs.waiting()), (0, 0, 0));
    }

    #[test]
    fn a_long_paste_goes_out_as_it_is_acknowledged_and_comes_whole() {
        for step in [1, 7, PIECE, 3 * PIECE + 1] {
            let paste: Vec<u8> = (0..=255).cycle().take(10 * PIECE + 1).collect();
            let (mut inputs, mut sent) = (inputs(), Vec::new());
            assert!(paste.chunks(step).all(|keys| inputs.push(keys)));
            loop {
                while let Some(message) = inputs.due() {
                    sent.push(id_and_bytes(message));
                }
                assert!(inputs.open.len() <= MOST && inputs.bytes < MOST_BYTES + 2 * PIECE);
                let Some(first) = inputs.open.front() else { break };
                let id = first.id.clone();
                inputs.acknowledged(&id);
            }
            assert_eq!((sent.len(), inputs.waiting()), (11, 0));
            assert_eq!(sent.into_iter().flat_map(|(_, bytes)| bytes).collect::<Vec<u8>>(), paste);
        }
    }

    #[test]
    fn single_keys_are_joined_once_enough_is_on_its_way() {
        let mut inputs = inputs();
        let sent: usize = (0..MOST + 100).map(|_| push(&mut inputs, b"k").len()).sum();
        assert_eq!((sent, inputs.waiting()), (MOST, 100));
        inputs.acknowledged("p-1");
        let joined = inputs.due().map(id_and_bytes).unwrap().1;
        assert_eq!((joined, inputs.due()), (b"k".repeat(100), None));
    }

    #[test]
    fn a_paste_that_is_too_long_is_cut_once_and_not_in_its_middle() {
        let mut inputs = inputs();
        let taken = (0..).take_while(|_| inputs.push(&[0; PIECE])).count();
        assert_eq!(taken * PIECE, MOST_WAITING);
        while let Some(ClientMessage::TerminalInput(input)) = inputs.due() {
            inputs.acknowledged(&input.input_id.unwrap());
            assert!(inputs.waiting() == 0 || !inputs.push(b"its end"));
        }
        assert!(inputs.waiting() == 0 && inputs.push(b"another"));
    }

    #[test]
    fn no_more_prompts_wait_than_the_bound() {
        let mut inputs = inputs();
        assert_eq!((0..).take_while(|_| inputs.prompt(String::new())).count(), MOST_PROMPTS);
    }
}

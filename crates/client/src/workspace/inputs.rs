//! The input of one client: keys and prompts on their way to the server. Each is kept until the server
//! acknowledges it, and sent again after a loss of the connection; the server applies each only once.
//!
//! The unacknowledged input has a bound. The rest waits here and not in the terminal, so that later
//! keys are still read: one of them may detach the client.

use std::collections::VecDeque;

use bytes::BytesMut;
use protocol::workspace::{
    ClientMessage, SessionId, base64,
    client::{Encoding, SendInput, TerminalInput},
};
use wire::dial::jitter;

/// The most unacknowledged messages, and the most bytes of input in them: all of them are sent again
/// after a loss.
const MOST: usize = 512;
const MOST_BYTES: usize = 256 * 1024;
/// The most bytes, and the most prompts, that wait to be sent. The server may be out of reach for
/// long, and the user goes on typing.
const MOST_WAITING: usize = 32 * 1024 * 1024;
const MOST_PROMPTS: usize = 512;
/// The most bytes of keys in one message.
const PIECE: usize = 64 * 1024;

/// A random prefix for the ids of a client's inputs, which distinguishes them from those of all other
/// clients.
pub fn unique() -> String {
    format!("{:08x}{:08x}", jitter(), jitter())
}

/// The input of one client that is not acknowledged yet.
#[derive(Debug)]
pub struct Inputs {
    session: SessionId,
    /// The beginning of the inputs' ids, unique for this client.
    prefix: String,
    count: u64,
    /// Sent and not acknowledged, oldest first.
    open: VecDeque<Open>,
    bytes: usize,
    waiting: Waiting,
}

/// Input that is not sent yet. Keys are joined, so that many small pieces become few messages.
#[derive(Debug, Default)]
struct Waiting {
    keys: BytesMut,
    prompts: VecDeque<String>,
    /// The bytes of all keys and prompts here.
    bytes: usize,
    /// Whether input was refused because of the bound. Later input is then refused as well, until
    /// nothing waits any more: otherwise the middle of a paste would be missing.
    is_cut: bool,
}

#[derive(Debug)]
struct Open {
    id: String,
    input: Input,
}

#[derive(Debug, Clone)]
enum Input {
    /// Keys, in base64.
    Keys(String),
    Prompt(String),
}

impl Inputs {
    /// No input yet. `prefix` must be unique for this client: [`unique`].
    pub fn new(session: SessionId, prefix: String) -> Self {
        let (open, waiting) = (VecDeque::new(), Waiting::default());
        Self { session, prefix, count: 0, open, bytes: 0, waiting }
    }

    /// Whether more input is accepted.
    pub fn has_room(&self) -> bool {
        let Waiting { prompts, bytes, is_cut, .. } = &self.waiting;
        !is_cut && *bytes < MOST_WAITING && prompts.len() < MOST_PROMPTS
    }

    /// Accepts keys, which [`Inputs::due`] then returns. Returns `false` if there is no room: then the
    /// keys are dropped.
    pub fn push(&mut self, keys: &[u8]) -> bool {
        let is_taken = self.take(keys.len());
        if is_taken {
            self.waiting.keys.extend_from_slice(keys);
        }
        is_taken
    }

    /// Accepts a whole prompt, which [`Inputs::due`] then returns. Returns `false` if there is no room:
    /// then the prompt is dropped.
    pub fn prompt(&mut self, text: String) -> bool {
        let is_taken = self.take(text.len());
        if is_taken {
            self.waiting.prompts.push_back(text);
        }
        is_taken
    }

    /// The next message to send; `None` if no input waits, or the bound on unacknowledged input is
    /// reached.
    pub fn due(&mut self) -> Option<ClientMessage> {
        if self.open.len() >= MOST || self.bytes >= MOST_BYTES {
            return None;
        }
        let input = self.waiting.next()?;
        Some(self.keep(input))
    }

    /// The number of bytes that are not sent yet.
    pub fn waiting(&self) -> usize {
        self.waiting.bytes
    }

    /// Notes that the server has applied the input with this id. Returns whether it was a prompt of this
    /// client.
    pub fn acknowledged(&mut self, input_id: &str) -> bool {
        let at = self.open.iter().position(|open| open.id == input_id);
        let open = at.and_then(|at| self.remove(at));
        matches!(open, Some(Open { input: Input::Prompt(_), .. }))
    }

    /// Notes that the server has refused an input. A refusal does not name its input, but the server
    /// reads them in order, so it was the oldest.
    pub fn refused(&mut self) {
        self.remove(0);
    }

    /// The unacknowledged messages, in order, to send again on a new connection.
    pub fn unacknowledged(&self) -> impl Iterator<Item = ClientMessage> {
        self.open.iter().map(|open| self.message(open))
    }

    fn take(&mut self, length: usize) -> bool {
        let is_taken = self.has_room();
        self.waiting.is_cut |= !is_taken;
        self.waiting.bytes += if is_taken { length } else { 0 };
        is_taken
    }

    fn keep(&mut self, input: Input) -> ClientMessage {
        self.count += 1;
        let open = Open { id: format!("{}-{}", self.prefix, self.count), input };
        let message = self.message(&open);
        // Kept before it is sent: a connection that is lost meanwhile loses nothing.
        self.bytes += open.input.len();
        self.open.push_back(open);
        message
    }

    fn remove(&mut self, at: usize) -> Option<Open> {
        let open = self.open.remove(at)?;
        self.bytes -= open.input.len();
        Some(open)
    }

    fn message(&self, open: &Open) -> ClientMessage {
        let (session_id, input_id) = (self.session, Some(open.id.clone()));
        match open.input.clone() {
            Input::Keys(data) => ClientMessage::TerminalInput(TerminalInput {
                session_id,
                data,
                encoding: Encoding::Base64,
                input_id,
            }),
            Input::Prompt(input) => {
                ClientMessage::SendInput(SendInput { session_id, input, input_id })
            }
        }
    }
}

impl Waiting {
    /// The next input. A session takes either keys or prompts, so their order does not matter.
    fn next(&mut self) -> Option<Input> {
        let (input, length) = match self.prompts.pop_front() {
            Some(text) => {
                let length = text.len();
                (Input::Prompt(text), length)
            }
            None if self.keys.is_empty() => return None,
            None => {
                let piece = self.keys.split_to(self.keys.len().min(PIECE));
                (Input::Keys(base64::encode(&piece)), piece.len())
            }
        };
        self.bytes -= length;
        self.is_cut &= self.bytes > 0;
        Some(input)
    }
}

impl Input {
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

    /// The messages that are sent for these keys.
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
        let ids: Vec<_> = inputs.unacknowledged().map(|it| id_and_bytes(it).0).collect();
        assert_eq!(ids, ["p-1", "p-3"]);
        inputs.refused();
        assert_eq!(inputs.unacknowledged().count(), 1);
    }

    #[test]
    fn a_prompt_is_sent_again_as_well_until_it_is_acknowledged() {
        let mut inputs = inputs();
        push(&mut inputs, b"a");
        assert!(inputs.prompt("look".to_owned()));
        let Some(ClientMessage::SendInput(sent)) = inputs.due() else { panic!() };
        assert_eq!((sent.input.as_str(), sent.input_id.as_deref()), ("look", Some("p-2")));
        assert_eq!(inputs.unacknowledged().last(), Some(ClientMessage::SendInput(sent)));
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
    fn keys_that_wait_beside_a_prompt_are_sent_after_it() {
        let mut inputs = inputs();
        assert!(inputs.push(b"a") && inputs.prompt("look".to_owned()));
        assert!(matches!(inputs.due(), Some(ClientMessage::SendInput(_))));
        assert_eq!((inputs.due().map(id_and_bytes).unwrap().1, inputs.waiting()), (b"a".into(), 0));
    }

    #[test]
    fn no_more_prompts_wait_than_the_bound() {
        let mut inputs = inputs();
        assert_eq!((0..).take_while(|_| inputs.prompt(String::new())).count(), MOST_PROMPTS);
    }
}

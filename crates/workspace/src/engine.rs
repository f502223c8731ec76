//! The engine of a session: a terminal, an agent or an adopted process.
//!
//! A session commands its engine through [`Engine`]. These calls never wait: work that takes time
//! goes into a bounded queue of the engine's own task. The engine reports to its session through
//! [`Feed`](crate::sessions::Feed).

use bytes::Bytes;
use futures_util::future::BoxFuture;
use session::terminal::size::Size;
use tokio::sync::oneshot;

use crate::refusal::Refusal;

/// A program, its arguments and the variables that are added to its environment.
pub(crate) struct CommandLine {
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
}

/// The answer to a question of an agent.
#[derive(Debug, Clone)]
pub struct PermissionAnswer {
    /// The id of the question, as the engine knows it.
    pub request_id: String,
    /// Whether the agent may do what it asked for.
    pub allow: bool,
    /// A remark for the agent.
    pub message: Option<String>,
}

/// When accepted keys are typed.
#[derive(Debug)]
pub enum TypingTime {
    /// The keys are typed, or will be soon.
    Now,
    /// Much waits before these keys, so the client should wait until they are typed. The receiver
    /// then gets a message. It is closed without a message if the keys will never be typed.
    Later(oneshot::Receiver<()>),
}

/// The receipt of a prompt. An engine gives it back exactly once: by [`Receipt::turn_begins`], or by
/// dropping it if the turn with the prompt will never begin.
pub struct Receipt {
    /// Called when the receipt is given back; `None` once that has happened.
    given_back: Option<Box<dyn FnOnce(PromptFate) + Send>>,
}

/// The fate of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptFate {
    /// Its turn begins now.
    Begun,
    /// It was refused or discarded, and its turn will never begin.
    Dropped,
}

impl Receipt {
    /// A receipt that calls `given_back` when the engine gives it back. The call may be made under
    /// an engine's lock, so it must not wait, nor call the engine.
    pub fn new(given_back: impl FnOnce(PromptFate) + Send + 'static) -> Self {
        Self { given_back: Some(Box::new(given_back)) }
    }

    /// Gives the receipt back: the turn with this prompt begins now.
    pub fn turn_begins(mut self) {
        self.give_back(PromptFate::Begun);
    }

    fn give_back(&mut self, fate: PromptFate) {
        if let Some(given_back) = self.given_back.take() {
            given_back(fate);
        }
    }
}

impl Drop for Receipt {
    fn drop(&mut self) {
        self.give_back(PromptFate::Dropped);
    }
}

/// The commands for a live session. An engine refuses commands that make no sense for it, with a reason for
/// the client.
pub(crate) trait Engine: Send + Sync {
    /// Types raw keys.
    fn type_in(&self, keys: Bytes) -> Result<TypingTime, Refusal>;

    /// Types an answer to a query of the program, if the program reads its input. Engines without
    /// a terminal have no queries.
    fn answer(&self, _: Bytes) {}

    /// Gives the engine a whole prompt: for an agent one turn, for a terminal the text and one Enter.
    /// Returns the number of the turn, if there are turns and the number is known already.
    fn prompt(&self, text: String) -> Result<Option<u64>, Refusal>;

    /// Gives the engine a prompt for a caller that has to know when its turn begins. An agent gives the
    /// receipt back right before [`Feed::turn_started`](crate::sessions::Feed::turn_started) of the
    /// turn with this prompt. An engine without turns gives it back at once.
    fn prompt_for(&self, text: String, receipt: Receipt) -> Result<(), Refusal> {
        self.prompt(text)?;
        receipt.turn_begins();
        Ok(())
    }

    /// Ends the current turn; a terminal gets what Ctrl-C types.
    fn interrupt(&self) -> Result<(), Refusal>;

    /// Answers a question that was asked with [`Feed::ask`](crate::sessions::Feed::ask).
    fn permit(&self, answer: PermissionAnswer) -> Result<(), Refusal>;

    /// Lets no further turn begin, because the session moves to another machine: prompts wait.
    /// Returns when no turn runs and no process is left. Only agents support this.
    fn freeze(&self) -> BoxFuture<'_, Result<(), Refusal>> {
        let refused = Err(Refusal::invalid("it is no agent that takes turns"));
        Box::pin(std::future::ready(refused))
    }

    /// Takes no more prompts of a frozen session, and returns those that wait, the oldest first.
    fn seal(&self) -> Vec<String> {
        Vec::new()
    }

    /// Lets turns begin again, and takes prompts again.
    fn thaw(&self) {}

    /// Begins with the prompts that waited when the session was stored, if it has any.
    fn go_on(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Sets the size of the terminal. Engines without a terminal ignore it.
    fn resize(&self, size: Size);

    /// The ids of the processes that belong to the session now.
    fn processes(&self) -> BoxFuture<'_, Vec<u32>>;

    /// Leaves the session's processes to the next daemon: nothing is read from them any more.
    fn release(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    /// Ends all processes of the session, with HUP, TERM and KILL in turn. Returns when none is left,
    /// or when those that are left cannot be ended.
    fn stop(&self) -> BoxFuture<'_, ()>;
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    fn receipt() -> (Receipt, Arc<Mutex<Vec<PromptFate>>>) {
        let fates = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&fates);
        (Receipt::new(move |fate| noted.lock().unwrap().push(fate)), fates)
    }

    #[test]
    fn a_receipt_is_given_back_exactly_once() {
        let (begun, fates) = receipt();
        begun.turn_begins();
        assert_eq!(*fates.lock().unwrap(), [PromptFate::Begun]);
        let (dropped, fates) = receipt();
        drop(dropped);
        assert_eq!(*fates.lock().unwrap(), [PromptFate::Dropped]);
    }
}

//! The process of a session, from its start to its certain end.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    time::Instant,
};

use uuid::{Builder, Uuid};

use super::{Stage, Turn, Turns, output::Output};
use crate::agent::{
    dialect::contract::Start,
    launch::{Exit, Signal},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Process {
    None,
    Live,
    Closing(Closing),
}

/// The stages of closing a process. No other process is started before this one has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Closing {
    /// It should exit by itself before this time.
    Leaving(Instant),
    /// Its input was closed; it should exit before this time.
    Eof(Instant),
    /// It got SIGTERM; it should exit before this time.
    Term(Instant),
    /// It was killed.
    Killed,
}

impl Process {
    pub(super) fn deadline(self) -> Option<Instant> {
        match self {
            Self::Closing(Closing::Leaving(at) | Closing::Eof(at) | Closing::Term(at)) => Some(at),
            Self::Closing(Closing::Killed) | Self::None | Self::Live => None,
        }
    }
}

/// The id of a turn's prompt. It stays the same when the turn is begun once more, and differs from the
/// ids of all other turns of all sessions: a program may ignore a prompt whose id it knows.
fn prompt_id(session: &str, turn: &Turn) -> String {
    // Two hashes, since one has only 64 bits.
    let half = |which: u8| {
        let mut hasher = DefaultHasher::new();
        (which, session, turn.number, &turn.prompt).hash(&mut hasher);
        hasher.finish()
    };
    let bytes = Uuid::from_u64_pair(half(0), half(1)).into_bytes();
    Builder::from_random_bytes(bytes).into_uuid().to_string()
}

impl Turns {
    /// Gives the waiting prompt to a warm process, or to a new one. While an older process is ending, the
    /// prompt goes on waiting.
    pub(super) fn give_prompt(&mut self, now: Instant) {
        let Some(turn) = &mut self.turn else { return };
        let id = prompt_id(&self.config.request_prefix, turn);
        let output = match self.process {
            // Waits: two processes in one conversation would both write the conversation's file.
            Process::Closing(_) => return,
            Process::Live => Some(self.dialect.prompt(&turn.prompt, &id))
                .filter(|b| !b.is_empty())
                .map(Output::Write),
            Process::None => {
                let conversation = self.conversation.as_deref();
                let start = Start { conversation, prompt: &turn.prompt, id: &id };
                // What an earlier process printed would explain a failure of this one wrongly.
                self.tail.clear();
                self.process = Process::Live;
                Some(Output::Start(self.dialect.launch(start)))
            }
        };
        turn.stage = Stage::Running;
        turn.last_progress = now;
        self.outputs.extend(output);
    }

    /// Writes to the process, if it still reads its input.
    pub(super) fn write(&mut self, bytes: Vec<u8>) {
        if self.process == Process::Live {
            self.outputs.push_back(Output::Write(bytes));
        }
    }

    /// Handles the end of a turn: a warm process stays for the next turn, any other must exit by itself
    /// soon.
    pub(super) fn release_process(&mut self, now: Instant) {
        if self.process != Process::Live {
            return;
        }
        match self.dialect.is_warm() {
            // A frozen session is about to move: its process must end, so that it stores the conversation.
            true if self.is_frozen => self.close_process(now),
            true => self.idle_since = Some(now),
            false => {
                let at = now + self.config.exit_timeout;
                self.process = Process::Closing(Closing::Leaving(at));
            }
        }
    }

    /// Begins to close the process. A warm process gets the end of its input before any signal, so that it
    /// can still store what it has not written yet.
    pub(super) fn close_process(&mut self, now: Instant) {
        match self.process {
            Process::Live if self.dialect.is_warm() => {
                self.outputs.push_back(Output::CloseStdin);
                let at = now + self.config.grace;
                self.process = Process::Closing(Closing::Eof(at));
            }
            Process::Live | Process::Closing(Closing::Leaving(_)) => self.terminate(now),
            Process::None | Process::Closing(_) => {}
        }
    }

    /// Takes the next step of closing a process that has not ended in time.
    pub(super) fn close_harder(&mut self, now: Instant) {
        match self.process {
            Process::Closing(Closing::Term(_)) => self.kill_process(),
            Process::Closing(Closing::Leaving(_) | Closing::Eof(_)) => self.terminate(now),
            Process::Closing(Closing::Killed) | Process::None | Process::Live => {}
        }
    }

    pub(super) fn kill_process(&mut self) {
        if !matches!(self.process, Process::None | Process::Closing(Closing::Killed)) {
            self.process = Process::Closing(Closing::Killed);
            self.outputs.push_back(Output::Kill);
        }
    }

    /// Ends a turn whose answer is complete but whose process has not exited in time.
    pub(super) fn end_without_exit(&mut self, now: Instant) {
        self.terminate(now);
        // The answer is complete, so an end by Warren's signal is no failure.
        self.end_by_exit(now, Exit::Code(0));
    }

    pub(super) fn exited(&mut self, now: Instant, exit: Exit) {
        if self.process == Process::None {
            return;
        }
        self.process = Process::None;
        self.idle_since = None;
        self.end_by_exit(now, exit);
        self.cancel_all();
    }

    pub(super) fn spawn_failed(&mut self, now: Instant, why: &str) {
        if self.process == Process::None {
            return;
        }
        self.process = Process::None;
        if self.is_running() {
            self.fail(now, why);
        }
    }

    /// Ends the running turn, since its process has ended.
    fn end_by_exit(&mut self, now: Instant, exit: Exit) {
        if !self.is_running() {
            return;
        }
        // The dialect is asked first: it may know what the exit means.
        for output in self.dialect.exited(exit, self.tail.text()) {
            self.take_output(now, output);
        }
        if self.is_running() {
            let provider = self.dialect.provider();
            let why = format!("{provider} ended within the turn, with {exit}.");
            let why = self.tail.explain(&why);
            self.fail(now, &why);
        }
    }

    fn terminate(&mut self, now: Instant) {
        self.outputs.push_back(Output::Signal(Signal::Term));
        self.process = Process::Closing(Closing::Term(now + self.config.grace));
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.stage == Stage::Waiting)
    }

    pub(super) fn is_running(&self) -> bool {
        self.turn.as_ref().is_some_and(|turn| turn.stage == Stage::Running)
    }

    /// Begins the turn once more in a new conversation, since the agent does not know the present one. If
    /// that happens a second time, or after an interrupt, the turn fails.
    pub(super) fn begin_anew(&mut self, now: Instant) {
        let Some(turn) = self.turn.as_mut().filter(|turn| turn.stage == Stage::Running) else {
            return;
        };
        if turn.is_anew || turn.interrupt_deadline.is_some() {
            self.fail(now, "The agent does not know its conversation.");
            self.close_process(now);
            return;
        }
        turn.is_anew = true;
        turn.stage = Stage::Waiting;
        turn.exit_deadline = None;
        self.conversation = None;
        self.notice("The agent does not know the conversation any more; a new one begins.");
        self.cancel_all();
        self.close_process(now);
    }
}

//! Ends a turn, or the whole session, before the agent is done.

use std::time::Instant;

use protocol::workspace::AgentEvent;

use super::{
    Stage, Turns,
    output::{Output, TurnsError},
};
use crate::agent::dialect::contract::Halt;

impl Turns {
    pub(super) fn interrupt(&mut self, now: Instant) -> Result<(), TurnsError> {
        // The program works on its own, without a prompt: there is no turn to end, but something to interrupt.
        if self.turn.is_none() && self.has_process() && self.dialect.is_working() {
            self.halt();
            return Ok(());
        }
        let turn = self.turn.as_mut().ok_or(TurnsError::NoTurn)?;
        // Read before the new deadline is set.
        let is_second = turn.interrupt_deadline.is_some();
        turn.interrupt_deadline = Some(now + self.config.interrupt_timeout);
        match turn.stage {
            Stage::Waiting => self.fail(now, "interrupted"),
            Stage::Running if is_second => self.kill_turn(now),
            Stage::Running => self.halt(),
        }
        Ok(())
    }

    /// Makes the agent end its turn.
    fn halt(&mut self) {
        // Requests are cancelled first: some programs do not end a turn while one of their requests is open.
        self.cancel_all();
        let halt = self.dialect.interrupt();
        match halt {
            Halt::Write(bytes) => self.write(bytes),
            Halt::Signal(signal) => self.outputs.push_back(Output::Signal(signal)),
        }
    }

    /// Kills the process of a turn that does not end after an interrupt.
    pub(super) fn kill_turn(&mut self, now: Instant) {
        self.kill_process();
        self.fail(now, "interrupted");
    }

    /// Lets no further turn begin, and closes the process as soon as no turn runs.
    pub(super) fn freeze(&mut self, now: Instant) {
        self.is_frozen = true;
        if self.turn.is_none() {
            self.close_process(now);
        }
    }

    /// Stops the session: there are no more turns, and the running process is closed, in the end by
    /// force. A second call kills the process at once.
    pub(super) fn stop(&mut self, now: Instant) {
        if self.is_stopped {
            self.kill_process();
        }
        self.is_stopped = true;
        if !self.queue.is_empty() {
            let message = format!("{} prompts that waited have not begun.", self.queue.len());
            self.queue.clear();
            self.event(AgentEvent::Notice { message });
        }
        if let Some(turn) = &mut self.turn {
            turn.interrupt_deadline = Some(now);
            self.fail(now, "stopped");
        }
        self.close_process(now);
    }
}

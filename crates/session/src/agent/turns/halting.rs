//! Ending a turn, or all of them, before the agent is done.

use std::time::Instant;

use protocol::workspace::AgentEvent;

use super::{
    Stage, Turns,
    output::{Output, TurnsError},
};
use crate::agent::dialect::contract::Halt;

impl Turns {
    pub(super) fn interrupt(&mut self, now: Instant) -> Result<(), TurnsError> {
        if self.turn.is_none() && self.has_process() && self.dialect.is_working() {
            self.halt();
            return Ok(());
        }
        let turn = self.turn.as_mut().ok_or(TurnsError::NoTurn)?;
        let is_second = turn.interrupted.is_some();
        turn.interrupted = Some(now + self.config.interrupt_timeout);
        match turn.stage {
            Stage::Waiting => self.fail(now, "interrupted"),
            Stage::Running if is_second => self.kill_turn(now),
            Stage::Running => self.halt(),
        }
        Ok(())
    }

    /// Tells the agent to end its turn.
    fn halt(&mut self) {
        self.cancel_all();
        let halt = self.dialect.interrupt();
        match halt {
            Halt::Write(bytes) => self.write(bytes),
            Halt::Signal(signal) => self.outputs.push_back(Output::Signal(signal)),
        }
    }

    /// It does not end: its process does.
    pub(super) fn kill_turn(&mut self, now: Instant) {
        self.kill_process();
        self.fail(now, "interrupted");
    }

    /// No more turns. What runs is ended, in the end by force; asked twice, at once.
    pub(super) fn stop(&mut self, now: Instant) {
        if self.is_stopped {
            self.kill_process();
        }
        self.is_stopped = true;
        if !self.queue.is_empty() {
            let message = format!("{} prompts that waited were dropped.", self.queue.len());
            self.queue.clear();
            self.event(AgentEvent::Notice { message });
        }
        if let Some(turn) = &mut self.turn {
            turn.interrupted = Some(now);
            self.fail(now, "stopped");
        }
        self.close_process(now);
    }
}

//! The usage of an answer, shared with the scheduler.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base::Endpoint;
use protocol::usage::AnswerCounter;
use scheduler::{Meter, Usage};

/// The usage of an answer so far. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Cost(Arc<Mutex<Option<AnswerCounter>>>);

impl Cost {
    /// The scheduler's meter for the answer to a prompt of about `prompt_tokens` tokens.
    pub(super) fn meter(&self, prompt_tokens: u64) -> Box<dyn Meter> {
        *self.lock() = Some(AnswerCounter::new(Endpoint::ChatCompletions, prompt_tokens));
        Box::new(self.clone())
    }

    /// The reported usage. Missing counts are estimated.
    pub(super) fn usage(&self) -> Usage {
        Meter::usage(self).or(self.estimate())
    }

    /// The tokens read and written, for a peer's daily limit. A request without an answer costs
    /// nothing.
    pub(super) fn tokens(&self) -> u64 {
        let reported = Meter::usage(self);
        let written = reported.completion_tokens.or(self.estimate().completion_tokens).unwrap_or(0);
        let read = if written > 0 { self.usage().prompt_tokens } else { reported.prompt_tokens };
        read.unwrap_or(0).saturating_add(written)
    }

    fn lock(&self) -> MutexGuard<'_, Option<AnswerCounter>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Meter for Cost {
    fn feed(&mut self, chunk: &[u8]) {
        if let Some(counter) = self.lock().as_mut() {
            counter.feed(chunk);
        }
    }

    fn usage(&self) -> Usage {
        self.lock().as_ref().map(AnswerCounter::told).unwrap_or_default()
    }

    fn has_text(&self) -> bool {
        self.lock().as_ref().is_some_and(AnswerCounter::has_text)
    }

    fn estimate(&self) -> Usage {
        let counted = self.lock().as_ref().map(AnswerCounter::estimate).unwrap_or_default();
        Usage { estimated: true, ..counted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_costs_what_it_reports_or_what_was_counted() {
        let cost = Cost::default();
        assert_eq!(cost.tokens(), 0);
        let mut meter = cost.meter(9);
        assert_eq!(cost.tokens(), 0, "nothing was answered");
        meter.feed(b"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n");
        assert_eq!(cost.tokens(), 10);
        meter.feed(b"data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\n\n");
        assert_eq!(cost.tokens(), 7);
    }
}

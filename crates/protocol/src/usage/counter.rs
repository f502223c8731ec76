//! The tokens of one answer, counted as it passes.

use base::Endpoint;

use super::{GeneratedCounter, Usage, UsageScanner};

/// Reads usage from a side copy of an answer, and estimates it for answers that do not report it.
#[derive(Debug, Clone)]
pub struct AnswerCounter {
    told: UsageScanner,
    /// `None` where nothing is generated.
    generated: Option<GeneratedCounter>,
    /// The estimated tokens of the prompt; `None` without a prompt.
    prompt: Option<u64>,
}

impl AnswerCounter {
    /// A counter for the answer to a request of this shape with this estimated number of prompt
    /// tokens.
    pub fn new(endpoint: Endpoint, prompt_tokens: u64) -> Self {
        let generates = endpoint.generates();
        Self {
            told: UsageScanner::new(),
            generated: generates.then(GeneratedCounter::default),
            prompt: (!endpoint.counts()).then_some(prompt_tokens),
        }
    }

    /// The next bytes of the answer.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.told.feed(chunk);
        // A count that was reported is never taken back, so that nobody asks for an estimate of it.
        if let Some(generated) = &mut self.generated
            && self.told.usage().completion_tokens.is_none()
        {
            generated.feed(chunk);
        }
    }

    /// The usage that the answer has reported.
    pub fn told(&self) -> Usage {
        self.told.usage()
    }

    /// The usage counted from its text, as far as it was read: up to the chunk with which the answer reports its
    /// tokens.
    pub fn estimate(&self) -> Usage {
        let completion_tokens = self.generated.as_ref().map(GeneratedCounter::tokens);
        Usage { prompt_tokens: self.prompt, completion_tokens, cached_tokens: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_reports_is_not_counted_as_well() {
        let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let mut counter = AnswerCounter::new(Endpoint::ChatCompletions, 9);
        counter.feed(delta.as_bytes());
        assert_eq!(counter.estimate().completion_tokens, Some(1));
        counter.feed(b"data: {\"usage\":{\"completion_tokens\":7}}\n\n");
        counter.feed(delta.as_bytes());
        counter.feed(b"data: {\"usage\":{\"completion_tokens\":null}}\n\n");
        assert_eq!(counter.told().completion_tokens, Some(7));
        assert_eq!(counter.estimate().completion_tokens, Some(1));
    }
}

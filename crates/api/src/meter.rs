//! Tokens, counted as they pass.

use base::Endpoint;
use protocol::usage::AnswerCounter;
use scheduler::{Meter, Usage};

/// Reads usage from a copy of the answer, and estimates it for answers that do not report it.
pub(crate) struct UsageMeter(AnswerCounter);

impl UsageMeter {
    /// A meter for a request of this endpoint with about `prompt_tokens` tokens.
    pub(crate) fn new(endpoint: Endpoint, prompt_tokens: u64) -> Self {
        Self(AnswerCounter::new(endpoint, prompt_tokens))
    }
}

impl Meter for UsageMeter {
    fn feed(&mut self, chunk: &[u8]) {
        self.0.feed(chunk);
    }

    fn usage(&self) -> Usage {
        self.0.told()
    }

    fn has_text(&self) -> bool {
        self.0.has_text()
    }

    fn estimate(&self) -> Usage {
        Usage { estimated: true, ..self.0.estimate() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(endpoint: Endpoint, answer: &str) -> (Option<u64>, Option<u64>, bool) {
        let mut meter = UsageMeter::new(endpoint, 9);
        meter.feed(answer.as_bytes());
        let Usage { estimated, prompt_tokens, completion_tokens, .. } =
            meter.usage().or(meter.estimate());
        (prompt_tokens, completion_tokens, estimated)
    }

    #[test]
    fn reported_usage_counts_and_only_gaps_are_estimated() {
        let chat = Endpoint::ChatCompletions;
        let delta = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        assert_eq!(used(chat, &delta.repeat(3)), (Some(9), Some(3), true));
        let told = format!(
            "{delta}data: {{\"usage\":{{\"prompt_tokens\":0,\"completion_tokens\":0}}}}\n\n"
        );
        assert_eq!(used(chat, &told), (Some(0), Some(0), false));
        let half = r#"{"type":"message_start","message":{"usage":{"input_tokens":5}}}"#;
        assert_eq!(
            used(Endpoint::Messages, &format!("data: {half}\n\n")),
            (Some(5), Some(0), true)
        );
    }

    #[test]
    fn where_nothing_is_generated_nothing_is_counted() {
        let embedding = r#"{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":7}}"#;
        assert_eq!(used(Endpoint::Embeddings, embedding), (Some(7), None, false));
        assert_eq!(used(Endpoint::Embeddings, "{}"), (Some(9), None, true));
        let counted = meter_of_a_count();
        assert_eq!((counted.prompt_tokens, counted.completion_tokens), (None, None));
    }

    fn meter_of_a_count() -> Usage {
        let mut meter = UsageMeter::new(Endpoint::CountTokens, 9);
        meter.feed(br#"{"input_tokens":9}"#);
        meter.usage().or(meter.estimate())
    }
}

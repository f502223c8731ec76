//! The tokens of one answer, counted as it passes.

use base::Endpoint;

use super::{GeneratedCounter, Usage, UsageScanner};

/// Reads usage from a side copy of an answer, and estimates it for answers that do not report it.
#[derive(Debug, Clone)]
pub struct AnswerCounter {
    reported: UsageScanner,
    /// `None` where nothing is generated.
    generated: Option<GeneratedCounter>,
    /// The estimated tokens of the prompt; `None` for endpoints without a text prompt.
    prompt: Option<u64>,
}

impl AnswerCounter {
    /// A counter for the answer to a request of this shape with this estimated number of prompt
    /// tokens.
    pub fn new(endpoint: Endpoint, prompt_tokens: u64) -> Self {
        let generates = endpoint.generates();
        Self {
            reported: UsageScanner::new(),
            generated: generates.then(GeneratedCounter::default),
            prompt: (!endpoint.counts() && !endpoint.is_untranslated()).then_some(prompt_tokens),
        }
    }

    /// The next bytes of the answer.
    pub fn feed(&mut self, chunk: &[u8]) {
        self.reported.feed(chunk);
        let is_reported = self.reported.usage().completion_tokens.is_some();
        // A reported count stays, so no estimate is needed after it. But a stream may report one before its first
        // text, and `has_text` has to see that text.
        if let Some(generated) = &mut self.generated
            && (!is_reported || !(generated.has_text() || generated.is_plain_with(chunk)))
        {
            generated.feed(chunk);
        }
    }

    /// Whether text of the model has passed. Not reliable for an answer in one piece that reports its tokens.
    pub fn has_text(&self) -> bool {
        self.generated.as_ref().is_some_and(GeneratedCounter::has_text)
    }

    /// The usage that the answer has reported.
    pub fn told(&self) -> Usage {
        self.reported.usage()
    }

    /// The usage counted from its text, as far as it was read: up to the chunk with which the answer reports its
    /// tokens.
    pub fn estimate(&self) -> Usage {
        let completion_tokens = self.generated.as_ref().map(GeneratedCounter::tokens);
        Usage { prompt_tokens: self.prompt, completion_tokens, ..Usage::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_text_is_seen_behind_a_count_that_came_before_it() {
        let start =
            r#"{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}"#;
        let text = r#"{"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}"#;
        let mut counter = AnswerCounter::new(Endpoint::Messages, 9);
        for (event, has_text) in [(start, false), (start, false), (text, true)] {
            counter.feed(format!("data: {event}\n\n").as_bytes());
            assert_eq!(counter.has_text(), has_text, "{event}");
        }
        assert_eq!(counter.told().completion_tokens, Some(1));
        let mut plain = AnswerCounter::new(Endpoint::Messages, 9);
        plain.feed(br#" {"content":[{"text":"a"}],"usage":{"output_tokens":1}}"#);
        assert!(!plain.has_text(), "nothing is counted that is reported");
    }

    #[test]
    fn of_sound_and_pictures_only_what_is_reported_counts() {
        let mut counter = AnswerCounter::new(Endpoint::Transcriptions, 9);
        counter.feed(br#"{"text":"five words are not counted"}"#);
        assert_eq!((counter.told(), counter.estimate()), (Usage::default(), Usage::default()));
        counter.feed(br#"{"usage":{"type":"duration","seconds":9}}"#);
        assert_eq!(counter.told(), Usage::default());
        counter.feed(br#"{"usage":{"type":"tokens","input_tokens":14,"output_tokens":4}}"#);
        let told = counter.told();
        assert_eq!((told.prompt_tokens, told.completion_tokens), (Some(14), Some(4)));
        let mut ranked = AnswerCounter::new(Endpoint::Rerank, 9);
        ranked.feed(br#"{"results":[],"usage":{"total_tokens":56}}"#);
        let told = ranked.told();
        assert_eq!((told.prompt_tokens, told.completion_tokens), (Some(56), None));
    }

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

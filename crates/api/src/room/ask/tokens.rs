//! The tokens of an answer, taken from a chat answer as it arrives.

use protocol::failure::Failure;
use translate::{
    BadAnswer, Body,
    chat::{Outcome, Part, Writer},
};

/// The new tokens of an answer, and its end.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The new pieces of text.
    pub(super) said: Vec<String>,
    /// How the answer ended, if it has ended.
    pub(super) end: Option<Result<AnswerFacts, String>>,
    /// Whether the current part is text: reasoning and tool calls do not count as tokens.
    is_text: bool,
}

/// The facts of a complete answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct AnswerFacts {
    /// The number of its tokens, if the participant reported it.
    pub(super) tokens: Option<u64>,
}

impl Writer for Tokens {
    fn body(&self) -> Body {
        Body::Events
    }

    fn begin(&mut self, _: &mut Vec<u8>) {}

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.is_text = matches!(part, Part::Text | Part::Refusal);
    }

    fn delta(&mut self, text: &str, _: &mut Vec<u8>) {
        if self.is_text {
            self.said.push(text.to_owned());
        }
    }

    fn close(&mut self, _: &mut Vec<u8>) {
        self.is_text = false;
    }

    fn finish(&mut self, outcome: &Outcome, _: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.end = Some(Ok(AnswerFacts { tokens: outcome.usage.completion_tokens.0 }));
        Ok(())
    }

    fn fail(&mut self, failure: &Failure, _: &mut Vec<u8>) {
        self.end = Some(Err(failure.message.clone()));
    }

    fn refuse(&mut self, status: u16, failure: &Failure, _: &mut Vec<u8>) {
        self.end = Some(Err(format!("{} (status {status})", failure.message)));
    }
}

#[cfg(test)]
mod tests {
    use translate::{Answer, chat::FromChat};

    use super::*;

    /// The text of the answer, and how it ends.
    fn read(
        status: u16,
        body: Body,
        answer: &str,
    ) -> (Vec<String>, Option<Result<AnswerFacts, String>>) {
        let mut reading = FromChat::new(Tokens::default());
        reading.head(status, body);
        let mut nothing = Vec::new();
        reading.feed(answer.as_bytes(), &mut nothing).unwrap();
        reading.end(&mut nothing).unwrap();
        assert!(nothing.is_empty());
        let Tokens { said, end, .. } = std::mem::take(reading.writer());
        (said, end)
    }

    fn delta(delta: &str) -> String {
        format!("data: {{\"choices\":[{{\"delta\":{{{delta}}}}}]}}\n\n")
    }

    #[test]
    fn each_piece_of_text_is_a_token_and_thoughts_are_none() {
        let thought = delta(r#""reasoning_content":"hm""#);
        let usage = "data: {\"choices\":[],\"usage\":{\"completion_tokens\":7}}\n\n";
        let (one, two) = (delta(r#""content":"Hel""#), delta(r#""content":"lo""#));
        let stream = format!("{thought}{one}{two}{usage}data: [DONE]\n\n");
        let (said, end) = read(200, Body::Events, &stream);
        assert_eq!(said, ["Hel", "lo"]);
        assert_eq!(end, Some(Ok(AnswerFacts { tokens: Some(7) })));
    }

    #[test]
    fn an_answer_that_comes_whole_is_one_token() {
        let whole = r#"{"choices":[{"message":{"content":"Hello"},"finish_reason":"stop"}]}"#;
        let (said, end) = read(200, Body::Json, whole);
        assert_eq!((said, end), (vec!["Hello".to_owned()], Some(Ok(AnswerFacts::default()))));
    }

    #[test]
    fn an_error_is_told_in_the_words_of_the_backend() {
        let (said, end) = read(404, Body::Json, r#"{"error":"model not found"}"#);
        assert_eq!((said.len(), end), (0, Some(Err("model not found (status 404)".to_owned()))));
        let stream = format!("{}data: {{\"error\":\"broke\"}}\n\n", delta(r#""content":"a""#));
        let (said, end) = read(200, Body::Events, &stream);
        assert_eq!((said.len(), end), (1, Some(Err("broke".to_owned()))));
        let (_, end) = read(200, Body::Events, &delta(r#""content":"a""#));
        assert!(end.unwrap().unwrap_err().contains("cut off"));
    }
}

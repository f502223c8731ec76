//! A task as a request of the Chat Completions API, and the text of its answer (pure).

use protocol::{
    failure::Failure,
    json::clip,
    node::{Message, Role, Task},
};
use serde::Serialize;
use translate::{
    Answer, BadAnswer, Body,
    chat::{FromChat, Outcome, Part, Writer},
};

/// The backend's path for chat requests.
pub(super) const PATH: &str = "/v1/chat/completions";

/// How many bytes of a backend's own text are logged.
const MAX_WORDS: usize = 300;

/// The body of a streamed chat request for a task.
pub(super) fn request(model: &str, task: &Task) -> Vec<u8> {
    let Task { system, messages, max_new_tokens, temperature, .. } = task;
    let leading = Message { role: Role::System, content: system.clone() };
    let leading = Some(&leading).filter(|_| !system.is_empty());
    let request = ChatRequest {
        model,
        stream: true,
        messages: leading.into_iter().chain(messages).collect(),
        // A server that sets no limit sends 0.
        max_tokens: Some(*max_new_tokens).filter(|limit| *limit > 0),
        temperature: *temperature,
    };
    serde_json::to_vec(&request).unwrap_or_default()
}

#[derive(Serialize)]
struct ChatRequest<'a> {
    model: &'a str,
    stream: bool,
    messages: Vec<&'a Message>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    temperature: f64,
}

/// The error text of a backend, from its status and the beginning of its body.
pub(super) fn refusal(status: u16, body: &[u8]) -> String {
    let words = Failure::read(body).message;
    format!("the backend answered {status}: {}", clip(&words, MAX_WORDS))
}

/// The text in a backend's answer, whether it streams or not.
pub(super) struct TextOf(FromChat<TextOnly>);

impl TextOf {
    /// An answer of this kind.
    pub(super) fn new(body: Body) -> Self {
        let mut reader = FromChat::new(TextOnly::default());
        reader.head(200, body);
        Self(reader)
    }

    /// Appends the text that the next bytes bring: whole characters.
    ///
    /// # Errors
    /// [`BadAnswer`] when the backend reports an error, or sends what is no answer.
    pub(super) fn feed(&mut self, chunk: &[u8], text: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.0.feed(chunk, text)
    }

    /// Whether the text is complete.
    pub(super) fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// Appends the rest of the text.
    ///
    /// # Errors
    /// [`BadAnswer`] when the answer was cut off.
    pub(super) fn end(&mut self, text: &mut Vec<u8>) -> Result<(), BadAnswer> {
        self.0.end(text)
    }
}

/// Writes the text of the model, and its refusals. Thoughts and calls of tools have no place in the
/// node protocol.
#[derive(Debug, Default)]
struct TextOnly {
    wanted: bool,
}

impl Writer for TextOnly {
    /// Not a stream of events, so that an error in the answer becomes a [`BadAnswer`].
    fn body(&self) -> Body {
        Body::Json
    }

    fn open(&mut self, part: &Part, _: &mut Vec<u8>) {
        self.wanted = matches!(part, Part::Text | Part::Refusal);
    }

    fn delta(&mut self, text: &str, out: &mut Vec<u8>) {
        if self.wanted {
            out.extend_from_slice(text.as_bytes());
        }
    }

    fn finish(&mut self, _: &Outcome, _: &mut Vec<u8>) -> Result<(), BadAnswer> {
        Ok(())
    }

    fn refuse(&mut self, _: u16, _: &Failure, _: &mut Vec<u8>) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task() -> Task {
        let said = |role, content: &str| Message { role, content: content.to_owned() };
        Task {
            state: 0,
            id: 1,
            system: "be kind".to_owned(),
            messages: vec![said(Role::User, "hi \"you\""), said(Role::Assistant, "yes?")],
            max_new_tokens: 9,
            temperature: 0.5,
            created_at: 0,
        }
    }

    fn body_of(task: &Task) -> String {
        String::from_utf8(request("m", task)).unwrap()
    }

    fn read(body: Body, chunks: &[&str]) -> Result<String, BadAnswer> {
        let (mut reader, mut text) = (TextOf::new(body), Vec::new());
        for chunk in chunks {
            reader.feed(chunk.as_bytes(), &mut text)?;
        }
        reader.end(&mut text)?;
        Ok(String::from_utf8(text).unwrap())
    }

    #[test]
    fn a_task_becomes_a_streamed_chat() {
        assert_eq!(
            body_of(&task()),
            r#"{"model":"m","stream":true,"messages":[{"role":"system","content":"be kind"},{"role":"user","content":"hi \"you\""},{"role":"assistant","content":"yes?"}],"max_tokens":9,"temperature":0.5}"#
        );
    }

    #[test]
    fn fields_that_a_task_leaves_out_are_not_sent() {
        let bare = Task { system: String::new(), max_new_tokens: 0, ..task() };
        let body = body_of(&bare);
        assert!(!body.contains("system") && !body.contains("max_tokens"), "{body}");
    }

    #[test]
    fn only_the_models_own_text_is_forwarded() {
        let stream = [
            "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"reasoning_content\":\"hm\"}}]}\n\n",
            "data: {\"choices\":[{\"delta\":{\"content\":\"gr\u{fc}",
            "n\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" \u{1f40d}\"},\"finish_reason\":\"stop\"}]}\n\n",
            "data: [DONE]\n\n",
        ];
        assert_eq!(read(Body::Events, &stream).unwrap(), "gr\u{fc}n \u{1f40d}");
        let whole = r#"{"choices":[{"message":{"content":"all at once"},"finish_reason":"stop"}]}"#;
        assert_eq!(read(Body::Json, &[whole]).unwrap(), "all at once");
    }

    #[test]
    fn errors_and_cut_answers_fail() {
        let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
        let error = "data: {\"error\":{\"message\":\"out of memory\"}}\n\n";
        assert_eq!(read(Body::Events, &[begun, error]).unwrap_err().0, "out of memory");
        assert!(read(Body::Events, &[begun]).is_err(), "cut off");
        assert!(read(Body::Events, &["data: nonsense\n\n"]).is_err());
        assert!(read(Body::Json, &["<html>"]).is_err());
    }

    #[test]
    fn a_refusal_repeats_the_backends_words_within_a_bound() {
        let words = refusal(503, br#"{"error":{"message":"Loading model"}}"#);
        assert_eq!(words, "the backend answered 503: Loading model");
        assert!(refusal(500, &[b'x'; 9000]).len() < 2 * MAX_WORDS);
    }
}

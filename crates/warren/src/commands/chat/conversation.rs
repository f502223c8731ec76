//! A conversation, and the file in which the last one is kept.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::{answer::Question, private_file::PrivateFile};

/// The file of the last conversation.
const LAST: &str = "chat.json";

/// A conversation with models.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// The model that answered last.
    pub(super) model: String,
    /// Instructions for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system: Option<String>,
    /// Messages of Chat Completions, in turns; a question at the end was not answered.
    messages: Vec<Value>,
}

impl Conversation {
    /// The conversation that was stored last, if there is one.
    pub(super) fn last() -> Option<Self> {
        file().ok()?.read().ok()?
    }

    /// Stores it in place of the last one.
    pub(super) fn keep(&self) -> anyhow::Result<()> {
        file()?.replace(self)
    }

    /// Deletes the stored conversation. Returns whether there was one.
    pub(super) fn forget() -> anyhow::Result<bool> {
        file()?.forget()
    }

    /// Adds a question. It replaces one that was not answered, because models expect questions and answers in turn.
    pub(super) fn ask(&mut self, question: &Question) {
        if self.is_unanswered() {
            self.messages.pop();
        }
        self.messages.push(json!({"role": "user", "content": question.content()}));
    }

    /// Adds the answer to the last question.
    pub(super) fn answer(&mut self, text: &str) {
        self.messages.push(json!({"role": "assistant", "content": text}));
    }

    /// Takes the last answer back. Returns whether there is a question to ask again.
    pub(super) fn retry(&mut self) -> bool {
        if !self.is_unanswered() {
            self.messages.pop();
        }
        self.is_unanswered()
    }

    pub(super) fn clear(&mut self) {
        self.messages.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// The number of questions.
    pub(super) fn questions(&self) -> u64 {
        self.messages.iter().filter(|message| message["role"] == "user").count() as u64
    }

    /// The last question and its answer, as text.
    pub(super) fn last_turn(&self) -> (String, String) {
        let last = |role| self.messages.iter().rev().find(|message| message["role"] == role);
        let text = |role| last(role).map(|message| text(&message["content"])).unwrap_or_default();
        (text("user"), text("assistant"))
    }

    /// The messages for a model.
    pub(super) fn messages(&self) -> Vec<Value> {
        let system = self.system.as_ref();
        let system = system.map(|text| json!({"role": "system", "content": text}));
        system.into_iter().chain(self.messages.iter().cloned()).collect()
    }

    /// The conversation in Markdown. Pictures are only mentioned.
    pub(super) fn markdown(&self) -> String {
        let system = self.system.as_ref().map(|system| format!("## Instructions\n\n{system}\n"));
        let message = |message: &Value| {
            let author = if message["role"] == "user" { "You" } else { &self.model };
            format!("## {author}\n\n{}\n", text(&message["content"]))
        };
        let all = system.into_iter().chain(self.messages.iter().map(message));
        all.collect::<Vec<_>>().join("\n")
    }

    fn is_unanswered(&self) -> bool {
        self.messages.last().is_some_and(|last| last["role"] == "user")
    }
}

/// The text of a message's content.
fn text(content: &Value) -> String {
    let Some(parts) = content.as_array() else {
        return content.as_str().unwrap_or_default().to_owned();
    };
    let part = |part: &Value| part["text"].as_str().unwrap_or("(a picture)").to_owned();
    parts.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

fn file() -> anyhow::Result<PrivateFile> {
    PrivateFile::of_user(LAST, "the conversation")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn talked() -> Conversation {
        let mut conversation = Conversation { model: "m".to_owned(), ..Conversation::default() };
        conversation.ask(&Question::new("one"));
        conversation.answer("1");
        conversation
    }

    #[test]
    fn questions_and_answers_take_turns() {
        let mut conversation = talked();
        conversation.ask(&Question::new("fails"));
        conversation.ask(&Question::new("two"));
        conversation.system = Some("be brief".to_owned());
        let said: Vec<Value> =
            conversation.messages().iter().map(|m| m["content"].clone()).collect();
        assert_eq!(said, ["be brief", "one", "1", "two"]);
        assert_eq!(conversation.last_turn(), ("two".to_owned(), "1".to_owned()));
    }

    #[test]
    fn the_last_question_is_asked_again() {
        let mut conversation = talked();
        assert!(conversation.retry() && conversation.retry());
        assert_eq!(conversation.messages().len(), 1);
        conversation.clear();
        assert!(!conversation.retry());
    }

    #[test]
    fn a_conversation_is_written_as_markdown() {
        let mut conversation = talked();
        conversation.messages.push(json!({"role": "user", "content": [
            {"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": "data:"}},
        ]}));
        assert_eq!(
            conversation.markdown(),
            "## You\n\none\n\n## m\n\n1\n\n## You\n\nwhat is it?\n\n(a picture)\n"
        );
    }
}

//! The target of a request in a room: its `model`, or the `targetId` of an `llm:request`.

use std::fmt;

use crate::model_use::is_for_chat;

/// The target of a request (spec, "LlmRequestMessage", `targetId`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// Any participant with a model for chat: `*` or `any`.
    Any,
    /// Any participant with this model: `model:NAME`.
    Model(String),
    /// The participant of this id; if there is none, any participant with a model of this name.
    Named(String),
}

/// The prefix of names under which participants offer themselves, besides their models. No model in
/// a room may have it.
pub const RESERVED: &str = "room:";

/// The name under which every participant of a room that has a model for chat offers itself.
pub const ANY: &str = "room:any";

impl Selector {
    /// Parses a selector.
    pub fn parse(text: &str) -> Self {
        match text.trim() {
            "*" | "any" => Self::Any,
            text => match text.strip_prefix("model:") {
                Some(model) => Self::Model(model.trim().to_owned()),
                None => Self::Named(text.to_owned()),
            },
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Model(model) => write!(f, "model:{model}"),
            Self::Named(name) => f.write_str(name),
        }
    }
}

/// The name under which every participant of a room offers itself, for requests that any of them may get.
pub const EVERY: &str = "room:every";

/// The name under which only this participant offers itself.
pub fn participant_name(id: &str) -> String {
    format!("{RESERVED}participant/{id}")
}

/// All names under which a participant with these models offers itself in its room.
pub fn offered_names(id: &str, models: &[String]) -> Vec<String> {
    let any = models.iter().any(|model| is_for_chat(model)).then(|| ANY.to_owned());
    let own = [EVERY.to_owned(), participant_name(id)];
    any.into_iter().chain(own).chain(models.iter().cloned()).collect()
}

/// The model to request from a participant that was found under this name: the name itself if it is
/// one of its models, or else its first model for chat, or else its first model.
pub fn real_model<'a>(name: &'a str, models: &'a [String]) -> Option<&'a str> {
    let own = models.iter().find(|model| *model == name);
    let chat = || models.iter().find(|model| is_for_chat(model));
    own.or_else(chat).or(models.first()).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_told_from_names() {
        assert_eq!(Selector::parse("*"), Selector::Any);
        assert_eq!(Selector::parse(" any "), Selector::Any);
        assert_eq!(Selector::parse("model:llama3:8b"), Selector::Model("llama3:8b".to_owned()));
        assert_eq!(Selector::parse("llama3"), Selector::Named("llama3".to_owned()));
        assert_eq!(Selector::parse("model:llama3").to_string(), "model:llama3");
    }

    #[test]
    fn a_participant_is_found_under_its_models_its_id_and_for_anybody() {
        let models = ["a".to_owned(), "b".to_owned()];
        let names = offered_names("p1", &models);
        assert_eq!(names, ["room:any", "room:every", "room:participant/p1", "a", "b"]);
        assert_eq!(real_model("b", &models), Some("b"));
        assert_eq!(real_model(ANY, &models), Some("a"));
        assert_eq!(real_model(ANY, &[]), None);
    }

    #[test]
    fn anybody_is_somebody_with_a_model_for_chat() {
        let mixed = ["nomic-embed-text".to_owned(), "qwen3:8b".to_owned()];
        assert_eq!(offered_names("p1", &mixed)[0], ANY);
        assert_eq!(real_model(ANY, &mixed), Some("qwen3:8b"));
        assert_eq!(real_model("room:participant/p1", &mixed), Some("qwen3:8b"));
        assert_eq!(real_model("nomic-embed-text", &mixed), Some("nomic-embed-text"));
        let embeds = &mixed[..1];
        assert_eq!(
            offered_names("p1", embeds),
            ["room:every", "room:participant/p1", "nomic-embed-text"]
        );
        assert_eq!(real_model("room:participant/p1", embeds), Some("nomic-embed-text"));
    }
}

//! The shapes of requests, by the path that each is posted to.

use std::fmt;

/// A shape of request, and with it of answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Endpoint {
    /// OpenAI's Chat Completions.
    ChatCompletions,
    /// OpenAI's legacy Completions.
    Completions,
    /// OpenAI's Embeddings.
    Embeddings,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Anthropic's count of a message's tokens.
    CountTokens,
    /// The node protocol's consumer side. No provider serves it as it is.
    NodeChat,
    /// Ollama's chat. It has the path of [`Endpoint::NodeChat`]; the body tells the two apart.
    OllamaChat,
    /// Ollama's generate, with a prompt that the model's template is put around.
    OllamaGenerate,
    /// Ollama's generate, with a prompt that the model gets as it is: `raw`, or with a `suffix`.
    OllamaRaw,
    /// Ollama's embed.
    OllamaEmbed,
    /// Ollama's older embeddings, of one prompt.
    OllamaEmbeddings,
    /// Gemini's generation of content, whole or streamed. No provider serves Gemini's endpoints as they are.
    GeminiGenerate,
    /// Gemini's count of a prompt's tokens.
    GeminiCountTokens,
    /// Gemini's embedding of one content.
    GeminiEmbed,
    /// Gemini's embeddings of several contents.
    GeminiBatchEmbed,
    /// OpenAI's transcription of sound, in its own language.
    Transcriptions,
    /// OpenAI's translation of sound into English.
    SoundTranslations,
    /// OpenAI's speech: text read aloud.
    Speech,
    /// OpenAI's making of pictures.
    ImageGenerations,
    /// OpenAI's edits of pictures.
    ImageEdits,
    /// OpenAI's variations of a picture.
    ImageVariations,
    /// OpenAI's judgement of texts and pictures.
    Moderations,
    /// Documents by how well they fit a query, in Jina's and Cohere's shape.
    Rerank,
    /// How well texts fit each other, in vLLM's shape.
    Score,
}

impl Endpoint {
    /// All there are.
    pub const ALL: [Self; 25] = [
        Self::ChatCompletions,
        Self::Completions,
        Self::Embeddings,
        Self::Responses,
        Self::Messages,
        Self::CountTokens,
        Self::NodeChat,
        Self::OllamaChat,
        Self::OllamaGenerate,
        Self::OllamaRaw,
        Self::OllamaEmbed,
        Self::OllamaEmbeddings,
        Self::GeminiGenerate,
        Self::GeminiCountTokens,
        Self::GeminiEmbed,
        Self::GeminiBatchEmbed,
        Self::Transcriptions,
        Self::SoundTranslations,
        Self::Speech,
        Self::ImageGenerations,
        Self::ImageEdits,
        Self::ImageVariations,
        Self::Moderations,
        Self::Rerank,
        Self::Score,
    ];

    /// Where it is posted to. Gemini's clients name the model in the path; these are the paths without it.
    pub const fn path(self) -> &'static str {
        match self {
            Self::ChatCompletions => "/v1/chat/completions",
            Self::Completions => "/v1/completions",
            Self::Embeddings => "/v1/embeddings",
            Self::Responses => "/v1/responses",
            Self::Messages => "/v1/messages",
            Self::CountTokens => "/v1/messages/count_tokens",
            Self::NodeChat | Self::OllamaChat => "/api/chat",
            Self::OllamaGenerate | Self::OllamaRaw => "/api/generate",
            Self::OllamaEmbed => "/api/embed",
            Self::OllamaEmbeddings => "/api/embeddings",
            Self::GeminiGenerate => "/v1beta/models:generateContent",
            Self::GeminiCountTokens => "/v1beta/models:countTokens",
            Self::GeminiEmbed => "/v1beta/models:embedContent",
            Self::GeminiBatchEmbed => "/v1beta/models:batchEmbedContents",
            Self::Transcriptions => "/v1/audio/transcriptions",
            Self::SoundTranslations => "/v1/audio/translations",
            Self::Speech => "/v1/audio/speech",
            Self::ImageGenerations => "/v1/images/generations",
            Self::ImageEdits => "/v1/images/edits",
            Self::ImageVariations => "/v1/images/variations",
            Self::Moderations => "/v1/moderations",
            Self::Rerank => "/v1/rerank",
            Self::Score => "/v1/score",
        }
    }

    /// Whether it is of Ollama's API.
    pub const fn is_ollamas(self) -> bool {
        use Endpoint::{OllamaChat, OllamaEmbed, OllamaEmbeddings, OllamaGenerate, OllamaRaw};
        matches!(self, OllamaChat | OllamaGenerate | OllamaRaw | OllamaEmbed | OllamaEmbeddings)
    }

    /// Whether its answers are text that a model generates from text, token by token.
    pub const fn generates(self) -> bool {
        use Endpoint::{Embeddings, OllamaEmbed, OllamaEmbeddings};
        let embeds = matches!(self, Embeddings | OllamaEmbed | OllamaEmbeddings)
            || matches!(self, Self::GeminiEmbed | Self::GeminiBatchEmbed);
        !embeds && !self.counts() && !self.is_untranslated()
    }

    /// Whether its requests and answers always pass as they are, and only at a provider that says that it has it: sound,
    /// pictures, and judgements of texts. No tokens are estimated for it.
    pub const fn is_untranslated(self) -> bool {
        Endpoints::UNTRANSLATED.contains(self)
    }

    /// Whether its requests may be forms (`multipart/form-data`), with files in them.
    pub const fn takes_forms(self) -> bool {
        use Endpoint::{ImageEdits, ImageVariations, SoundTranslations, Transcriptions};
        matches!(self, Transcriptions | SoundTranslations | ImageEdits | ImageVariations)
    }

    /// Whether its requests or its answers may be bytes that are no text: they cannot go over a link of JSON.
    pub const fn may_be_bytes(self) -> bool {
        self.takes_forms() || matches!(self, Self::Speech)
    }

    /// Whether it counts tokens, and uses none.
    pub const fn counts(self) -> bool {
        matches!(self, Self::CountTokens | Self::GeminiCountTokens)
    }

    /// The one that is posted to this path, which has no query; the first of several.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|endpoint| endpoint.path() == path)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.path())
    }
}

/// A set of endpoints.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Endpoints(u32);

impl Endpoints {
    /// None.
    pub const NONE: Self = Self(0);

    /// The assumed endpoints of a provider until they are known better: OpenAI's and Anthropic's.
    pub const ASSUMED: Self = Self(0b0011_1111);

    /// Those that are never translated: see [`Endpoint::is_untranslated`].
    pub const UNTRANSLATED: Self = Self(0b1_1111_1111 << Endpoint::Transcriptions as u8);

    /// Those that a provider may serve itself. Requests of the others reach it translated.
    pub const NATIVE: Self = Self::ASSUMED.union(Self::UNTRANSLATED);

    /// This one alone.
    pub const fn only(endpoint: Endpoint) -> Self {
        Self(1 << endpoint as u8)
    }

    /// These and this one.
    #[must_use]
    pub const fn with(self, endpoint: Endpoint) -> Self {
        Self(self.0 | 1 << endpoint as u8)
    }

    /// These but not this one.
    #[must_use]
    pub const fn without(self, endpoint: Endpoint) -> Self {
        Self(self.0 & !(1 << endpoint as u8))
    }

    /// Whether this one is among them.
    pub const fn contains(self, endpoint: Endpoint) -> bool {
        self.0 & 1 << endpoint as u8 != 0
    }

    /// Whether both have one in common.
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// These and those.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These without those whose requests or answers may be bytes, for a link that carries text alone.
    #[must_use]
    pub fn as_text(self) -> Self {
        self.iter().filter(|endpoint| !endpoint.may_be_bytes()).collect()
    }

    /// Whether each of these is among those.
    pub const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Endpoint> {
        Endpoint::ALL.into_iter().filter(move |endpoint| self.contains(*endpoint))
    }
}

impl FromIterator<Endpoint> for Endpoints {
    fn from_iter<T: IntoIterator<Item = Endpoint>>(endpoints: T) -> Self {
        endpoints.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Their paths, for people.
impl fmt::Display for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, endpoint) in self.iter().enumerate() {
            write!(f, "{}{endpoint}", if number > 0 { ", " } else { "" })?;
        }
        Ok(())
    }
}

impl fmt::Debug for Endpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_and_endpoints_are_the_same_thing() {
        use Endpoint::{NodeChat, OllamaChat, OllamaGenerate, OllamaRaw};
        for endpoint in Endpoint::ALL {
            let first = match endpoint {
                OllamaChat => NodeChat,
                OllamaRaw => OllamaGenerate,
                other => other,
            };
            assert_eq!(Endpoint::of_path(endpoint.path()), Some(first));
        }
        assert_eq!(Endpoint::of_path("/v1/models"), None);
        let some = Endpoints::only(Endpoint::Completions).with(Endpoint::Embeddings);
        assert_eq!(some.to_string(), "/v1/completions, /v1/embeddings");
        assert_eq!(Endpoints::NONE.to_string(), "");
    }

    #[test]
    fn what_is_below_v1_may_be_served_and_only_text_is_assumed() {
        let below_v1 = |endpoint: &Endpoint| endpoint.path().starts_with("/v1/");
        let all: Endpoints = Endpoint::ALL.into_iter().filter(below_v1).collect();
        assert_eq!(Endpoints::NATIVE, all);
        let (first, others) = Endpoint::ALL.split_at(6);
        assert_eq!(Endpoints::ASSUMED, first.iter().copied().collect());
        assert!(others.iter().all(|endpoint| !Endpoints::ASSUMED.contains(*endpoint)));
        assert!(Endpoints::NONE.is_empty() && Endpoints::NONE.iter().next().is_none());
    }

    #[test]
    fn what_is_never_translated_generates_no_text_and_may_be_bytes() {
        let untranslated = Endpoints::UNTRANSLATED;
        assert!(untranslated.iter().all(|endpoint| !endpoint.generates() && !endpoint.counts()));
        assert_eq!(untranslated.iter().count(), 9);
        let bytes: Vec<_> = untranslated.iter().filter(|it| it.may_be_bytes()).collect();
        let text = untranslated.as_text();
        assert!(bytes.len() == 5 && bytes.iter().all(|endpoint| !text.contains(*endpoint)));
        assert_eq!(text.union(bytes.into_iter().collect()), untranslated);
        assert_eq!(Endpoints::ASSUMED.as_text(), Endpoints::ASSUMED);
    }

    #[test]
    fn sets_are_joined_and_compared() {
        let chat = Endpoints::only(Endpoint::ChatCompletions);
        let messages = Endpoints::only(Endpoint::Messages);
        let both = chat.union(messages);
        assert_eq!(both, chat.with(Endpoint::Messages));
        assert!(chat.is_within(both) && both.is_within(both) && Endpoints::NONE.is_within(chat));
        assert!(!both.is_within(chat) && !messages.is_within(chat));
    }
}

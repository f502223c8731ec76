//! Jobs: what a consumer asks for, and how it can fail.

use std::sync::Arc;

use base::{Endpoint, Endpoints, JobId, KeyId, ModelName, ProviderId, Scope};
use bytes::Bytes;
use dispatch::{Affinity, Ending, Route};
use http::{HeaderMap, Method};

use crate::translate::{Translator, Untranslated};

/// One inference request, as an API hands it over.
pub struct Job {
    /// Its id, never used before.
    pub id: JobId,
    /// Where its providers are looked for.
    pub scope: Scope,
    /// The model it asks for; under this name it is counted.
    pub model: ModelName,
    /// The models that it is really asked of, in order: the model itself, or an alias's targets.
    /// Not empty.
    pub targets: Vec<ModelName>,
    /// The shape that it has.
    pub endpoint: Endpoint,
    /// The shapes that it can be served in.
    pub serve_as: Endpoints,
    /// Makes of it what a provider is sent.
    pub translator: Arc<dyn Translator>,
    /// The key it is counted for.
    pub key: KeyId,
    /// How large it is on the wire in its largest form, in bytes.
    pub size: u64,
    /// Which conversations it continues.
    pub affinity: Affinity,
    /// The only provider that may serve it, if the consumer named one.
    pub pinned: Option<ProviderId>,
    /// How far it may go.
    pub route: Route,
    /// Whether its model is worth waiting for when nobody serves it now.
    pub known: bool,
    /// What the provider is sent.
    pub request: JobRequest,
    /// Counts tokens as the answer passes.
    pub meter: Box<dyn Meter>,
}

impl Job {
    /// A job for whatever provider of the server has the model that the request names, sent as it is, and
    /// counted for the local user. Its builder changes what is different.
    pub fn new(id: JobId, endpoint: Endpoint, request: JobRequest, meter: Box<dyn Meter>) -> Self {
        Self {
            id,
            scope: Scope::server(),
            model: request.model.clone(),
            targets: vec![request.model.clone()],
            endpoint,
            serve_as: Endpoints::only(endpoint),
            translator: Arc::new(Untranslated(endpoint)),
            key: "local".into(),
            size: request.body.len() as u64,
            affinity: Affinity::default(),
            pinned: None,
            route: Route::default(),
            known: true,
            request,
            meter,
        }
    }
}

/// What the provider is sent: the bytes of the client.
#[derive(Debug, Clone)]
pub struct JobRequest {
    /// `POST`, but for what asks about an earlier answer.
    pub method: Method,
    /// Path and query, such as `/v1/chat/completions?x=1`.
    pub path_and_query: String,
    /// The model it asks for.
    pub model: ModelName,
    /// Whether the client asked for a stream.
    pub streaming: bool,
    /// Headers, without credentials and without those of the connection.
    pub headers: HeaderMap,
    /// The body as the client sent it. UTF-8.
    pub body: Bytes,
}

/// Counts tokens as an answer passes. It sees every byte once, in order, as the provider sent it.
pub trait Meter: Send {
    /// The next bytes of the answer.
    fn feed(&mut self, chunk: &[u8]);

    /// What the answer says has been used so far.
    fn usage(&self) -> Usage;

    /// The usage so far by this meter's own count, for counts that no provider gives. Used only for
    /// answers that began well.
    fn estimate(&self) -> Usage {
        Usage::default()
    }
}

/// Counts nothing.
impl Meter for () {
    fn feed(&mut self, _: &[u8]) {}

    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// Tokens used by one job, as far as they are known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Whether any of it is counted here, or by a provider that can only guess.
    pub estimated: bool,
    /// Tokens read.
    pub prompt_tokens: Option<u64>,
    /// Tokens written.
    pub completion_tokens: Option<u64>,
}

impl Usage {
    /// This, and where it knows nothing, the other.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            estimated: self.estimated || (self.lacks(other) && other.estimated),
            prompt_tokens: self.prompt_tokens.or(other.prompt_tokens),
            completion_tokens: self.completion_tokens.or(other.completion_tokens),
        }
    }

    /// Whether there is nothing that another could add.
    pub(crate) fn is_whole(self) -> bool {
        self.prompt_tokens.is_some() && self.completion_tokens.is_some()
    }

    /// Whether the other knows something that this does not.
    fn lacks(self, other: Self) -> bool {
        let lacks = |this: Option<u64>, other: Option<u64>| this.is_none() && other.is_some();
        lacks(self.prompt_tokens, other.prompt_tokens)
            || lacks(self.completion_tokens, other.completion_tokens)
    }
}

/// Why a job has no answer, or not a whole one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What happened.
    pub ending: Ending,
    /// What the last provider said about it, if it said anything.
    pub detail: Option<String>,
}

impl From<Ending> for Failure {
    fn from(ending: Ending) -> Self {
        Self { ending, detail: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(estimated: bool, prompt: Option<u64>, completion: Option<u64>) -> Usage {
        Usage { estimated, prompt_tokens: prompt, completion_tokens: completion }
    }

    #[test]
    fn known_counts_win_over_reported_ones() {
        let told = usage(false, Some(7), None);
        assert_eq!(told.or(usage(false, Some(1), Some(2))), usage(false, Some(7), Some(2)));
        assert_eq!(Usage::default().or(told), told);
        assert_eq!(told.or(Usage::default()), told);
    }

    #[test]
    fn an_estimate_marks_only_what_it_adds_to() {
        let whole = usage(false, Some(7), Some(3));
        let guess = usage(true, Some(1), Some(2));
        assert_eq!(whole.or(guess), whole);
        assert_eq!(usage(false, Some(7), None).or(guess), usage(true, Some(7), Some(2)));
        let empty_guess = usage(true, None, None);
        assert_eq!(usage(false, Some(7), None).or(empty_guess), usage(false, Some(7), None));
        assert_eq!(guess.or(whole), guess, "an estimate stays one");
    }
}

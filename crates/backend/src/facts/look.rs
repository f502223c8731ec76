//! Asks a model server in its own API for facts that its list does not tell. A fact that it does not
//! answer stays unknown.

use std::{
    collections::{HashMap, HashSet},
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use base::{FactsByModel, LoadState, ModelFacts};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{
    Known, ServerKind, kind, llama_cpp, lm_studio,
    ollama::{self, Shown, Tag},
};
use crate::{
    error::{BackendError, Phase},
    exchange::BackendRequest,
    http::HttpBackend,
    models::{DEADLINE, MAX_LIST},
};

/// How many models of an Ollama are asked about in one look, at most. The next looks ask about the
/// others.
const MAX_SHOWN: usize = 64;

/// How many of them are asked about at the same time.
const SHOWN_AT_ONCE: usize = 4;

/// How long a look may take.
const LOOK: Duration = Duration::from_secs(20);

impl HttpBackend {
    /// The facts about its models, by name, as of the last request.
    pub fn facts(&self) -> FactsByModel {
        self.known().facts(self.continues)
    }

    /// See [`crate::Backend::look_closer`].
    pub async fn look_closer(&self) -> bool {
        if self.is_cloud() || self.is_known {
            return false;
        }
        let before = self.facts();
        // On time-out, the facts that were learned until then are kept.
        let _ = timeout(LOOK, self.look()).await;
        self.log_advice();
        self.facts() != before
    }

    /// Which program it is. Asks the server if that is unknown or may have changed. If it does not answer, the
    /// earlier answer stands.
    pub async fn kind(&self) -> Option<ServerKind> {
        let (kind, is_stale) = self.known().kind_as_known();
        if kind.is_some() && !is_stale || self.is_cloud() {
            return kind;
        }
        let Ok(found) = self.recognise().await else { return kind };
        let mut known = self.known();
        (known.kind, known.is_stale) = (Some(found), false);
        Some(found)
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn recognise(&self) -> Result<ServerKind, BackendError> {
        if self.known().names.is_empty() {
            self.models().await?;
        }
        if let (Some(kind), false) = self.known().kind_as_known() {
            return Ok(kind);
        }
        let version = |body: &[u8]| {
            serde_json::from_slice::<Value>(body).ok()?["version"].is_string().then_some(())
        };
        if self.read("/api/version", None, version).await?.is_some() {
            return Ok(ServerKind::Ollama);
        }
        let listed = self.read("/api/v0/models", None, lm_studio::models).await?;
        Ok(if listed.is_some() { ServerKind::LmStudio } else { ServerKind::Other })
    }

    async fn look(&self) -> Result<(), BackendError> {
        match self.kind().await {
            Some(ServerKind::Ollama) => self.look_at_ollama().await,
            Some(ServerKind::LmStudio) => {
                if let Some(facts) = self.read("/api/v0/models", None, lm_studio::models).await? {
                    self.known().look(facts);
                }
                Ok(())
            }
            Some(ServerKind::LlamaCpp) => self.look_at_llama_cpp().await,
            Some(kind @ (ServerKind::Vllm | ServerKind::Sglang)) => {
                self.look_at_version(kind).await
            }
            _ => Ok(()),
        }
    }

    /// Asks only a server with exactly one model. One with several is a router, which would load a
    /// model to tell its properties.
    async fn look_at_llama_cpp(&self) -> Result<(), BackendError> {
        let only = match self.known().names.as_slice() {
            [only] => only.clone(),
            _ => return Ok(()),
        };
        if let Some(facts) = self.read("/props", None, llama_cpp::props).await? {
            let (path, begun) = ("/apply-template", Some(llama_cpp::begun()));
            let continuation = self.read(path, begun, llama_cpp::continuation).await?;
            self.known().look([(only, ModelFacts { continuation, ..facts })].into());
        }
        Ok(())
    }

    /// vLLM and SGLang continue answers from a certain version on.
    async fn look_at_version(&self, kind: ServerKind) -> Result<(), BackendError> {
        let path = if kind == ServerKind::Vllm { "/version" } else { "/get_server_info" };
        let continuation = self.read(path, None, |body| kind::continuation(kind, body)).await?;
        let mut known = self.known();
        let facts = ModelFacts { continuation, ..ModelFacts::default() };
        let seen = known.names.iter().map(|name| (name.clone(), facts.clone())).collect();
        known.look(seen);
        Ok(())
    }

    async fn look_at_ollama(&self) -> Result<(), BackendError> {
        let Some(tags) = self.read("/api/tags", None, ollama::tags).await? else { return Ok(()) };
        let loaded = self.read("/api/ps", None, ollama::loaded).await?;
        self.take_ollamas(&tags, loaded.as_ref());
        let asked = self.unshown(&tags);
        let mut shown = stream::iter(asked)
            .map(|(digest, name)| async move {
                let shown = self.show(&name).await;
                (digest, shown)
            })
            .buffer_unordered(SHOWN_AT_ONCE);
        while let Some((digest, shown)) = shown.next().await {
            self.known().shown.insert(digest, shown?);
        }
        self.take_ollamas(&tags, loaded.as_ref());
        Ok(())
    }

    /// Stores the facts that are known by now about an Ollama's models.
    fn take_ollamas(&self, tags: &[Tag], loaded: Option<&FactsByModel>) {
        let mut known = self.known();
        let digests: HashSet<&str> = tags.iter().filter_map(|tag| tag.digest.as_deref()).collect();
        known.shown.retain(|digest, _| digests.contains(digest.as_str()));
        let mut facts = of_ollama(tags, loaded, &known.shown);
        if let Some(wanted) = self.context {
            facts.values_mut().for_each(|facts| {
                let longest = facts.max_context_tokens.unwrap_or(wanted);
                facts.context_tokens = Some(wanted.min(longest));
            });
        }
        known.look(facts);
    }

    /// Digest and name of the models that `/api/show` was not asked about yet.
    fn unshown(&self, tags: &[Tag]) -> Vec<(String, String)> {
        let known = self.known();
        let tagged = tags.iter().filter_map(|tag| Some((tag.digest.clone()?, tag.name.clone())));
        let unshown: HashMap<String, String> =
            tagged.filter(|(digest, _)| !known.shown.contains_key(digest)).collect();
        unshown.into_iter().take(MAX_SHOWN).collect()
    }

    /// The facts in `/api/show` about one model; empty if the server refuses.
    async fn show(&self, name: &str) -> Result<Shown, BackendError> {
        let body = Some(json!({"model": name}));
        Ok(self.read("/api/show", body, ollama::shown).await?.unwrap_or_default())
    }

    /// Asks at a path, by POST if there is a `body`, and returns what `content` reads from the answer. `None` if
    /// the server refuses, sends too much or sends something else.
    async fn read<T>(
        &self,
        path: &str,
        body: Option<Value>,
        content: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, BackendError> {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let ask = BackendRequest {
            method: if body.is_some() { Method::POST } else { Method::GET },
            path_and_query: path.to_owned(),
            headers: body.iter().map(|_| json.clone()).collect::<HeaderMap>(),
            body: body.into_iter().map(|body| Bytes::from(body.to_string())).collect(),
            ..BackendRequest::default()
        };
        let asking = async {
            let response = self.exchange(ask, Phase::Models, DEADLINE).await?;
            if response.status() != StatusCode::OK {
                return Ok(None);
            }
            let answer = response.into_body().whole(MAX_LIST).await;
            Ok(answer.ok().and_then(|answer| content(&answer)))
        };
        let late = |_| Err(self.late(Phase::Models, DEADLINE));
        timeout(DEADLINE, asking).await.unwrap_or_else(late)
    }
}

/// The facts of an Ollama's models. `loaded`: `None` if the server did not say which are loaded.
fn of_ollama(
    tags: &[Tag],
    loaded: Option<&FactsByModel>,
    shown: &HashMap<String, Shown>,
) -> FactsByModel {
    let facts = |tag: &Tag| {
        let running = loaded.and_then(|loaded| loaded.get(&tag.name)).cloned();
        let shown = tag.digest.as_ref().and_then(|digest| shown.get(digest)).cloned();
        let mut facts = running.unwrap_or_default().or(tag.facts.clone());
        facts = facts.or(shown.unwrap_or_default().0);
        facts.load = facts.load.or(loaded.map(|_| LoadState::Unloaded));
        (tag.name.clone(), facts)
    };
    tags.iter().map(facts).collect()
}

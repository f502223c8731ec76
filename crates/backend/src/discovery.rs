//! Finds the model servers of this machine at their usual ports, and the Ollama that `OLLAMA_HOST`
//! names.

use std::{env, time::Duration};

use base::{Endpoints, error::chain};
use futures_util::future::join_all;

use crate::{
    config::{BackendConfig, Timeouts},
    http::HttpBackend,
    ollama_host,
};

/// How long a port may take to show that it is a model server.
pub(crate) const DEADLINE: Duration = Duration::from_millis(500);

/// The model servers that are looked for, and their usual ports.
pub const USUAL_PORTS: [(&str, u16); 4] =
    [("Ollama", ollama_host::PORT), ("LM Studio", 1234), ("llama.cpp", 8080), ("vLLM", 8000)];

/// A model server that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalBackend {
    /// The program that usually listens there.
    pub name: String,
    /// Its base URL.
    pub url: String,
    /// Its models; empty if it has none.
    pub models: Vec<String>,
}

/// Asks at the address in `OLLAMA_HOST` and at the usual ports of this machine, all at the same time.
/// Returns the servers that answer with a list of models, except other Warrens. Takes half a second at
/// most.
#[expect(clippy::disallowed_methods, reason = "the variable is Ollama's own")]
pub async fn find_local() -> Vec<LocalBackend> {
    find_at(env::var("OLLAMA_HOST").ok().as_deref(), &USUAL_PORTS).await
}

/// Like [`find_local`], with another value of `OLLAMA_HOST`, and at other ports of this machine.
pub async fn find_at(ollama_host: Option<&str>, ports: &[(&str, u16)]) -> Vec<LocalBackend> {
    let probes = places(ollama_host, ports).map(|(name, url)| probe(name, url));
    join_all(probes).await.into_iter().flatten().collect()
}

/// The findings about a model server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examined {
    /// The names of its models.
    pub models: Vec<String>,
    /// The endpoints that it serves.
    pub endpoints: Endpoints,
    /// Advice about the contexts of its models.
    pub advice: Vec<String>,
}

/// Asks a model server for its models, its endpoints and their facts.
///
/// # Errors
/// Why it cannot be used, in words.
pub async fn examine(config: &BackendConfig) -> Result<Examined, String> {
    let backend = HttpBackend::new(config).map_err(|error| chain(&error))?;
    let models = backend.models().await.map_err(|error| chain(&error))?;
    let endpoints = backend.endpoints().await.map_err(|error| chain(&error))?;
    backend.look_closer().await;
    let named = |(model, words)| match model {
        Some(model) => format!("{model}: {words}"),
        None => words,
    };
    let advice = backend.advice().into_iter().map(named).collect();
    Ok(Examined { models, endpoints: endpoints.unwrap_or(Endpoints::ASSUMED), advice })
}

/// The usual programs and places: the place that `OLLAMA_HOST` names, and these ports of this machine.
pub(crate) fn places<'a>(
    ollama_host: Option<&str>,
    ports: &'a [(&'a str, u16)],
) -> impl Iterator<Item = (&'a str, String)> {
    let moved = ollama_host.filter(|value| !value.trim().is_empty()).map(ollama_host::base_url);
    let known = moved.clone();
    let usual = ports.iter().map(|&(name, port)| (name, format!("http://127.0.0.1:{port}")));
    let usual = usual.filter(move |(_, url)| known.as_ref() != Some(url));
    moved.map(|url| ("Ollama", url)).into_iter().chain(usual)
}

/// The model server at a URL, if there is one.
pub(crate) async fn probe(name: &str, url: String) -> Option<LocalBackend> {
    let timeouts = Timeouts { connect: DEADLINE, first_byte: DEADLINE, idle: DEADLINE };
    let backend = HttpBackend::new(&BackendConfig { timeouts, ..BackendConfig::new(&url) });
    let backend =
        backend.inspect_err(|error| tracing::warn!(name, %error, "not looked for")).ok()?;
    let list = backend.model_list(DEADLINE).await;
    tracing::debug!(name, url, ?list, "looked for a model server");
    let list = list.ok().filter(|list| !list.is_warren)?;
    Some(LocalBackend { name: name.to_owned(), url, models: list.names })
}

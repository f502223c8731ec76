//! The abilities of every backend.

use std::sync::Arc;

use base::{Endpoints, FactsByModel};

use crate::{
    address::NotABackend,
    config::BackendConfig,
    demo::{DemoBackend, DemoConfig},
    error::BackendError,
    exchange::{Answer, BackendRequest},
    http::HttpBackend,
    model_engines::{self, ModelEngines},
};

/// A model server, or what stands for one.
#[derive(Debug)]
pub enum Backend {
    /// A model server over HTTP.
    Http(Box<HttpBackend>),
    /// The built-in demo.
    Demo(DemoBackend),
    /// Models whose servers are started when they are asked for.
    Engines(Arc<dyn ModelEngines>),
}

impl Backend {
    /// A model server at an address.
    ///
    /// # Errors
    /// [`NotABackend`] when the address or the key cannot be used.
    pub fn http(config: &BackendConfig) -> Result<Self, NotABackend> {
        Ok(Self::Http(Box::new(HttpBackend::new(config)?)))
    }

    /// The demo model.
    pub fn demo(config: DemoConfig) -> Self {
        Self::Demo(DemoBackend::new(config))
    }

    /// Asks; the answer is here when its head is. Dropping this future, or the answer, closes the
    /// connection at once.
    ///
    /// # Errors
    /// [`BackendError`] when there is no head. A status of the backend's own, whatever it says, is
    /// an answer.
    pub async fn send(&self, ask: BackendRequest) -> Result<Answer, BackendError> {
        match self {
            Self::Http(backend) => backend.send(ask).await,
            Self::Demo(demo) => Ok(demo.send(&ask)),
            Self::Engines(engines) => model_engines::send(&**engines, ask).await,
        }
    }

    /// The models it has, by the names it knows them by.
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached or gives no list.
    pub async fn models(&self) -> Result<Vec<String>, BackendError> {
        match self {
            Self::Http(backend) => backend.models().await,
            Self::Demo(demo) => Ok(demo.models()),
            Self::Engines(engines) => Ok(engines.models()),
        }
    }

    /// The facts about its models, by the backend's names for them, as of the last request.
    pub fn facts(&self) -> FactsByModel {
        match self {
            Self::Http(backend) => backend.facts(),
            Self::Demo(demo) => demo.facts(),
            Self::Engines(engines) => engines.facts(),
        }
    }

    /// The models that this machine runs itself, if this is them.
    pub fn engines(&self) -> Option<&Arc<dyn ModelEngines>> {
        match self {
            Self::Engines(engines) => Some(engines),
            Self::Http(_) | Self::Demo(_) => None,
        }
    }

    /// Asks for what its list does not tell: which models are loaded, what each can do. Takes 20 s at
    /// most. A cloud is not asked, nor is one whose models and endpoints are configured. Returns whether more, or something else, is known than before.
    pub async fn look_closer(&self) -> bool {
        match self {
            Self::Http(backend) => backend.look_closer().await,
            Self::Demo(_) | Self::Engines(_) => false,
        }
    }

    /// How long a context to ask for with a request for this model, by the name it knows it by. Where there is one,
    /// it is an Ollama, and is asked in its own API.
    pub fn num_ctx(&self, model: &str) -> Option<u64> {
        match self {
            Self::Http(backend) => backend.num_ctx(model),
            Self::Demo(_) | Self::Engines(_) => None,
        }
    }

    /// The endpoints that it serves. A model server whose endpoints are not configured is asked at each, which
    /// takes twice [`crate::probe::DEADLINE`] at most. An endpoint of generated text that gives no clear answer is taken to be
    /// there, any other is not. `None`: its answers do not tell.
    ///
    /// # Errors
    /// [`BackendError`] when it cannot be reached.
    pub async fn endpoints(&self) -> Result<Option<Endpoints>, BackendError> {
        match self {
            Self::Http(backend) => backend.endpoints().await,
            Self::Demo(demo) => Ok(Some(demo.endpoints())),
            Self::Engines(engines) => Ok(engines.endpoints()),
        }
    }

    /// Of those that are never translated, which its last list of models named: another Warren's list does, and changes
    /// as that one's own workers come and go. `None` for any other, and for one whose endpoints are configured.
    pub fn listed_endpoints(&self) -> Option<Endpoints> {
        match self {
            Self::Http(backend) => backend.listed_endpoints(),
            Self::Demo(_) | Self::Engines(_) => None,
        }
    }

    /// Whether it ranks texts in the shape of Text Embeddings Inference, as far as it was asked.
    pub fn ranks_texts(&self) -> bool {
        matches!(self, Self::Http(backend) if backend.ranks_texts())
    }

    /// Whether it is a provider of others.
    pub fn is_cloud(&self) -> bool {
        matches!(self, Self::Http(backend) if backend.is_cloud())
    }

    /// Takes another key if its file has one.
    pub async fn read_key_again(&self) {
        if let Self::Http(backend) = self {
            backend.read_key_again().await;
        }
    }

    /// Its name where it must be told from another: host and port, or `demo`.
    pub fn label(&self) -> &str {
        match self {
            Self::Http(backend) => backend.label(),
            Self::Demo(_) => "demo",
            Self::Engines(engines) => engines.label(),
        }
    }
}

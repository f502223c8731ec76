//! The abilities of every backend, whatever its kind.

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

    /// Sends a request. Returns as soon as the head of the answer is here. Dropping this future, or
    /// the answer, closes the connection at once.
    ///
    /// # Errors
    /// [`BackendError`] when no head came. Any status that the backend sends counts as an
    /// answer.
    pub async fn send(&self, ask: BackendRequest) -> Result<Answer, BackendError> {
        match self {
            Self::Http(backend) => backend.send(ask).await,
            Self::Demo(demo) => Ok(demo.send(&ask)),
            Self::Engines(engines) => model_engines::send(&**engines, ask).await,
        }
    }

    /// The models that it has, by its own names for them.
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

    /// The model engines, if this backend is one of them.
    pub fn engines(&self) -> Option<&Arc<dyn ModelEngines>> {
        match self {
            Self::Engines(engines) => Some(engines),
            Self::Http(_) | Self::Demo(_) => None,
        }
    }

    /// Asks for facts that its list of models does not tell: which models are loaded, and what each can do. Takes 20
    /// s at most. A cloud is not asked, and neither is a backend whose models and endpoints are configured. Returns
    /// whether the known facts have changed.
    pub async fn look_closer(&self) -> bool {
        match self {
            Self::Http(backend) => backend.look_closer().await,
            Self::Demo(_) | Self::Engines(_) => false,
        }
    }

    /// The length of the context to ask for with a request for this model, in tokens. `model`: the backend's name
    /// for it. `Some` only for an Ollama, which then must be asked in its own API.
    pub fn num_ctx(&self, model: &str) -> Option<u64> {
        match self {
            Self::Http(backend) => backend.num_ctx(model),
            Self::Demo(_) | Self::Engines(_) => None,
        }
    }

    /// The endpoints that it serves. A model server whose endpoints are not configured is probed at each, which takes
    /// twice [`crate::probe::DEADLINE`] at most. If a probe gives no clear answer, an endpoint that generates text
    /// counts as served, and any other does not. `None`: its answers do not tell.
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

    /// The endpoints without a translation that its last list of models named. Only another Warren's list names them,
    /// and it changes as that server's workers come and go. `None` for any other backend, and for one whose endpoints
    /// are configured.
    pub fn listed_endpoints(&self) -> Option<Endpoints> {
        match self {
            Self::Http(backend) => backend.listed_endpoints(),
            Self::Demo(_) | Self::Engines(_) => None,
        }
    }

    /// Whether it ranks texts in the shape of Text Embeddings Inference, as the last probe found.
    pub fn ranks_texts(&self) -> bool {
        matches!(self, Self::Http(backend) if backend.ranks_texts())
    }

    /// Whether it is a provider of others.
    pub fn is_cloud(&self) -> bool {
        matches!(self, Self::Http(backend) if backend.is_cloud())
    }

    /// Reads its key file again, and uses the new key if it has changed.
    pub async fn read_key_again(&self) {
        if let Self::Http(backend) = self {
            backend.read_key_again().await;
        }
    }

    /// Its name beside other backends: host and port, the program of model engines, or `demo`.
    pub fn label(&self) -> &str {
        match self {
            Self::Http(backend) => backend.label(),
            Self::Demo(_) => "demo",
            Self::Engines(engines) => engines.label(),
        }
    }
}

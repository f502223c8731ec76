//! Models whose servers are started when they are asked for.
//!
//! An implementation of [`ModelEngines`] starts the servers. This module is what a request does with them:
//! it claims its model, waits while the model is loaded, and asks the model's server. The model stays
//! loaded while the claim is kept: until the answer has ended or is dropped.

use std::{fmt, sync::Arc, time::Duration};

use base::{Endpoints, FactsByModel};
use futures_util::future::BoxFuture;
use http::StatusCode;
use protocol::openai;
use tokio::{sync::watch, time::Instant};

use crate::{
    error::BackendError,
    exchange::{Answer, BackendRequest},
    http::HttpBackend,
};

/// If a server ends within this time after a request began, it was probably ending already, and the
/// request is tried again. After a longer time, the request itself may be why it ended.
const FOUND_ENDING: Duration = Duration::from_secs(1);

/// Models whose servers are started when they are asked for.
pub trait ModelEngines: fmt::Debug + Send + Sync {
    /// Their name beside other backends, such as `llama-server`.
    fn label(&self) -> &str;

    /// The models, by the names that consumers use, loaded or not.
    fn models(&self) -> Vec<String>;

    /// The known facts about the models, including whether they are loaded.
    fn facts(&self) -> FactsByModel;

    /// The endpoints that their servers have; `None` until one of them could be asked.
    fn endpoints(&self) -> Option<Endpoints>;

    /// The server of a model. Loads the model if necessary; the model stays loaded while the claim
    /// lives. Dropping the future cancels the wait.
    ///
    /// # Errors
    /// [`BackendError::Engine`]: there is no such model, or it cannot be loaded.
    fn claim<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<Claim, BackendError>>;

    /// Loads a model, and returns when it is loaded.
    ///
    /// # Errors
    /// As for [`ModelEngines::claim`].
    fn load<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Ends the server of a model that nobody uses, and returns when it has ended.
    ///
    /// # Errors
    /// [`BackendError::Engine`]: there is no such model, or it is in use.
    fn unload<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), BackendError>>;

    /// Gets a new number whenever the list of models changes, or a model is loaded or unloaded.
    fn changes(&self) -> watch::Receiver<u64>;
}

/// The use of a loaded model by one request.
#[derive(Debug)]
pub struct Claim {
    backend: Arc<HttpBackend>,
    hold: Box<dyn Hold>,
}

/// Keeps a model loaded. Dropping it gives the model back.
pub trait Hold: fmt::Debug + Send + Sync {
    /// Notes that the request was answered to its end.
    fn answered(&self);

    /// Reports that the request had no answer in time, so that the model's server may hang.
    fn doubt(&self);

    /// Why the model's server has ended; `None` if it has not. Waits a moment for the news.
    fn why_ended(&self) -> BoxFuture<'_, Option<BackendError>>;
}

impl Claim {
    /// A claim of a model with this server.
    pub fn new(backend: Arc<HttpBackend>, hold: impl Hold + 'static) -> Self {
        Self { backend, hold: Box::new(hold) }
    }

    /// The model's server.
    pub fn backend(&self) -> &HttpBackend {
        &self.backend
    }

    /// Notes that the request was answered to its end.
    pub(crate) fn answered(&self) {
        self.hold.answered();
    }

    /// Replaces the error of a request by the reason why the server has ended, if it has.
    pub(crate) async fn explain(&self, error: BackendError) -> BackendError {
        match error {
            BackendError::Unreachable { .. } | BackendError::Broke { .. } => {
                self.hold.why_ended().await.unwrap_or(error)
            }
            BackendError::Timeout { .. } => {
                self.hold.doubt();
                error
            }
            other => other,
        }
    }
}

/// Asks the server of the request's model.
pub(crate) async fn send(
    engines: &dyn ModelEngines,
    mut request: BackendRequest,
) -> Result<Answer, BackendError> {
    let Some(model) = model_of(&mut request) else { return Ok(without_model(engines, &request)) };
    let (first, begun) = (engines.claim(&model).await?, Instant::now());
    match first.backend.send(request.clone()).await {
        Ok(answer) => return Ok(answer.claimed(first)),
        Err(error) => {
            let is_new = begun.elapsed() < FOUND_ENDING;
            match first.explain(error).await {
                // Nothing was answered yet, so the request claims its model once more, which starts
                // a new server.
                BackendError::Engine { .. } if is_new => drop(first),
                error => return Err(error),
            }
        }
    }
    let again = engines.claim(&model).await?;
    match again.backend.send(request).await {
        Ok(answer) => Ok(answer.claimed(again)),
        Err(error) => Err(again.explain(error).await),
    }
}

/// The model that a request is for: named by the sender, or else by the body.
fn model_of(request: &mut BackendRequest) -> Option<String> {
    if !request.model.is_empty() {
        return Some(std::mem::take(&mut request.model));
    }
    if request.body.len() > 1 {
        request.body = vec![request.body.concat().into()];
    }
    openai::peek(request.body.first()?).ok().map(|peek| peek.model)
}

/// The answer to a request that names no model: the list of models, or an error.
fn without_model(engines: &dyn ModelEngines, request: &BackendRequest) -> Answer {
    let path = request.path_and_query.split('?').next().unwrap_or_default();
    if path == "/v1/models" {
        let models = engines.models();
        let list = models.iter().map(|name| (name.as_str(), 0, "warren"));
        return Answer::json(StatusCode::OK, openai::model_list(list));
    }
    let message = "the request names no model";
    let body = openai::error_body(message, "invalid_request_error", Some("model"), None);
    Answer::json(StatusCode::BAD_REQUEST, body)
}

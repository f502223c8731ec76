//! Models whose servers are started when they are asked for.
//!
//! The trait [`ModelEngines`] starts them. Here is what a request does with them: it
//! claims its model, which waits while that is loaded, and asks the model's server. The model stays loaded
//! while the claim is kept: until the answer has ended or was dropped.

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

/// A request whose server ends within this time found it ending. One that is older may be why it ended.
const FOUND_ENDING: Duration = Duration::from_secs(1);

/// Models whose servers are started when they are asked for.
pub trait ModelEngines: fmt::Debug + Send + Sync {
    /// Their name where one backend must be told from another: `llama-server`.
    fn label(&self) -> &str;

    /// The models, by the names that consumers use, loaded or not.
    fn models(&self) -> Vec<String>;

    /// The known facts about them, with whether they are loaded.
    fn facts(&self) -> FactsByModel;

    /// The endpoints that their servers have; `None` until one of them could be asked.
    fn endpoints(&self) -> Option<Endpoints>;

    /// The server of a model. Loads the model if need be; the model stays loaded while the claim lives.
    /// A future that is dropped waits no longer.
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

    /// A new number whenever there are other models, or one was loaded or unloaded.
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
    /// The request was answered to its end.
    fn answered(&self);

    /// The request had no answer in time: the model's server may hang.
    fn doubt(&self);

    /// Why the model's server has ended, in words, if it has; waits a moment for it.
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

    /// The request was answered to its end.
    pub(crate) fn answered(&self) {
        self.hold.answered();
    }

    /// The error of a request, or why the server has ended.
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
                // Nothing was answered: another server is started for it, once.
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

/// The model that a request is for: as its sender says, else as its body does.
fn model_of(request: &mut BackendRequest) -> Option<String> {
    if !request.model.is_empty() {
        return Some(std::mem::take(&mut request.model));
    }
    if request.body.len() > 1 {
        request.body = vec![request.body.concat().into()];
    }
    openai::peek(request.body.first()?).ok().map(|peek| peek.model)
}

/// The answer to a request for no model: the list of them, or what is missing.
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

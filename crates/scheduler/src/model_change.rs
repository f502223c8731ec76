//! The load or unload of a model that an operator asks a provider for.

use tokio::sync::oneshot;

/// The load or unload of a model, at the provider that is to do it.
#[derive(Debug)]
pub struct ModelChange {
    /// The model, by the name under which it is offered.
    pub model: String,
    /// Whether it is to be loaded; otherwise it is to be unloaded.
    pub loads: bool,
    done: oneshot::Sender<Result<(), ModelChangeError>>,
}

/// Why a model was not loaded or unloaded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelChangeError {
    /// The provider does not load and unload models on request.
    #[error("it does not load or unload models when it is told")]
    NotItsWork,
    /// The provider is busy with as many loads and unloads as it takes.
    #[error("it is busy with too many loads and unloads")]
    TooMany,
    /// The provider could not do it, in its own words.
    #[error("{0}")]
    Failed(String),
    /// The provider left before it said how it went.
    #[error("it has left before it was done")]
    Left,
}

/// The end of a load or unload, for the one who asked for it.
#[derive(Debug)]
pub struct ModelChangeEnd(oneshot::Receiver<Result<(), ModelChangeError>>);

impl ModelChange {
    /// A load or an unload, and the receiver of its end.
    pub(crate) fn new(model: String, loads: bool) -> (Self, ModelChangeEnd) {
        let (done, end) = oneshot::channel();
        (Self { model, loads, done }, ModelChangeEnd(end))
    }

    /// Says how it went. Dropping the change instead says that the provider has left.
    pub fn end(self, how: Result<(), ModelChangeError>) {
        // The one who asked may have stopped waiting.
        let _ = self.done.send(how);
    }

    /// Whether the one who asked no longer waits for its end.
    pub fn is_forgotten(&self) -> bool {
        self.done.is_closed()
    }
}

impl ModelChangeEnd {
    /// Waits for the end.
    ///
    /// # Errors
    /// [`ModelChangeError`] says why it was not done.
    pub async fn end(self) -> Result<(), ModelChangeError> {
        self.0.await.unwrap_or(Err(ModelChangeError::Left))
    }
}

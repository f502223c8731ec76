//! The interface by which sessions find this server's models, and those of other machines.

use base::KeyId;
use futures_util::future::BoxFuture;
use protocol::workspace::SessionId;

/// Where the models are that agents name with `warren:`.
pub trait SessionModels: Send + Sync {
    /// Looks for a model, for a new session.
    ///
    /// # Errors
    /// Words for people if there is no such model anywhere.
    fn find<'a>(&'a self, model: &'a str) -> BoxFuture<'a, Result<(), String>>;

    /// Requests with this key are for this model, wherever it is, until the key ends.
    fn begin(&self, key: &KeyId, session: SessionId, model: &str);

    /// The key has ended, and so has what was made for it on other machines.
    fn end(&self, key: &KeyId);
}

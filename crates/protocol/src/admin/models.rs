//! The JSON of `/admin/workers/{id}/models`: models that are loaded and unloaded.

use serde::{Deserialize, Serialize};

/// Answer to the load or unload of a model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelChanged {
    /// The worker's id.
    pub worker_id: String,
    /// The name that it gave itself.
    pub worker_name: String,
    /// The model.
    pub model: String,
    /// `loaded` or `unloaded`.
    pub done: String,
}

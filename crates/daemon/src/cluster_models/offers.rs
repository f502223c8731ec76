//! The models of this server.

use api::Api;
use base::ModelName;

/// The models of this server, aliases among them.
pub(super) trait Offers: Send + Sync {
    /// Those that are served now.
    fn served(&self) -> Vec<String>;

    /// Whether this one is.
    fn serves(&self, model: &str) -> bool;

    /// Whether it was once, so that requests wait for its return.
    fn has_served(&self, model: &str) -> bool;
}

impl Offers for Api {
    fn served(&self) -> Vec<String> {
        Self::served(self).into_iter().map(|model| model.to_string()).collect()
    }

    fn serves(&self, model: &str) -> bool {
        Self::serves(self, &ModelName::from(model))
    }

    fn has_served(&self, model: &str) -> bool {
        Self::has_served(self, &ModelName::from(model))
    }
}

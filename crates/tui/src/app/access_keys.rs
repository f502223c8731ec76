//! The keys by which consumers, workers and administrators get in.

use client::admin::KeyJson;

use super::{list::List, reading::Reading};

/// The keys.
#[derive(Debug, Default)]
pub struct AccessKeys {
    /// The keys that are not revoked, the oldest first, if the server shows them.
    pub reading: Reading<Vec<KeyJson>>,
    /// The place in the list.
    pub list: List,
    /// Why the last change was refused.
    pub refused: Option<String>,
}

impl AccessKeys {
    /// The chosen key.
    pub fn chosen(&self) -> Option<&KeyJson> {
        self.reading.all().get(self.list.at)
    }
}

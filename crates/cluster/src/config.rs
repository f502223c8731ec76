//! The part of a member's setup that clients may change, and how it is stored.

use serde::{Deserialize, Serialize};
use store::{Change, Fact, StoreError, WorkspaceStore};

use crate::{
    facts::{CONFIG as KIND, Facts},
    settings::Settings,
    tokens::book::{OfSettings, StoredTokens, TokenBook},
};

const ID: &str = "config";

/// The present setup.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) tokens: TokenBook,
    /// The addresses to dial.
    pub(crate) peers: Vec<String>,
    pub(crate) discovery: bool,
    pub(crate) name: String,
}

/// The stored part. An absent field was never changed by a client.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
struct Stored {
    #[serde(flatten)]
    tokens: StoredTokens,
    /// Addresses that were added to those of the settings.
    #[serde(default)]
    added: Vec<String>,
    /// Addresses of the settings that a client removed.
    #[serde(default)]
    dropped: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

/// Whether this machine is stored as a member of a cluster. Blocks.
///
/// # Errors
/// When it cannot be read.
pub fn is_member(store: &dyn WorkspaceStore) -> Result<bool, StoreError> {
    let rows = store.load_facts(KIND)?;
    let stored = rows.iter().find(|row| row.id == ID);
    let stored: Option<Stored> = stored.and_then(|row| serde_json::from_str(&row.json).ok());
    Ok(stored.is_some_and(|stored| stored.tokens.token.is_some()))
}

impl Config {
    /// The setup: the settings with the stored changes. Blocks.
    pub(crate) fn load(settings: &Settings, facts: &Facts) -> Result<Self, StoreError> {
        let stored = facts.setting(KIND, ID)?;
        let stored: Stored =
            stored.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        let kept = settings.peers.iter().filter(|peer| !stored.dropped.contains(peer));
        let mut peers: Vec<String> = kept.cloned().collect();
        peers.extend(stored.added.into_iter().filter(|peer| !settings.peers.contains(peer)));
        let (tokens, of_settings) = TokenBook::load(stored.tokens, settings.token.as_ref());
        let name = stored.name.unwrap_or_else(|| settings.name.clone());
        let config = Self { tokens, peers, discovery: settings.discovery, name };
        if of_settings == OfSettings::New {
            config.keep(settings, facts)?;
        }
        Ok(config)
    }

    /// Stores the differences from the settings. Blocks.
    pub(crate) fn keep(&self, settings: &Settings, facts: &Facts) -> Result<(), StoreError> {
        let not_in = |list: &[String]| {
            let list = list.to_vec();
            move |peer: &&String| !list.contains(peer)
        };
        let stored = Stored {
            tokens: self.tokens.stored(settings.token.as_ref()),
            added: self.peers.iter().filter(not_in(&settings.peers)).cloned().collect(),
            dropped: settings.peers.iter().filter(not_in(&self.peers)).cloned().collect(),
            name: (self.name != settings.name).then(|| self.name.clone()),
        };
        // Text is always JSON.
        let json = serde_json::to_string(&stored).unwrap_or_default();
        let fact = Fact { kind: KIND.to_owned(), id: ID.to_owned(), json };
        facts.keep_settings(&[Change::Keep(fact)])
    }
}

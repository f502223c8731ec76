//! The hub to fetch from, and the account there.

use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

use base::Secret;
use clap::Args;
use model_hub::{Hub, HubConfig, Patience, hub::HUGGING_FACE};

use super::failed;

/// The heading of these options.
const HEADING: &str = "Hub";

/// The longest token that is read, in bytes.
const MAX_TOKEN: u64 = 4096;

/// The hub to fetch from
#[derive(Args)]
pub(super) struct Site {
    /// The hub: Hugging Face, or another one that answers as it does [default: huggingface.co]
    #[arg(long, env = "HF_ENDPOINT", value_name = "URL", hide_short_help = true, help_heading = HEADING)]
    endpoint: Option<String>,
    /// A token of an account there [default: what `hf auth login` has stored, for Hugging Face itself]
    #[arg(long, env = "HF_TOKEN", value_name = "TOKEN", hide_env_values = true, hide_short_help = true,
        help_heading = HEADING)]
    hub_token: Option<Secret>,
}

impl Site {
    pub(super) fn hub(&self) -> anyhow::Result<Hub> {
        let endpoint = self.endpoint.clone().filter(|endpoint| !endpoint.trim().is_empty());
        let given = self.hub_token.clone().filter(|token| !token.expose().trim().is_empty());
        // Another hub has no right to the token of an account at Hugging Face.
        let is_usual =
            endpoint.as_deref().is_none_or(|url| url.trim_end_matches('/') == HUGGING_FACE);
        let stored = || token_file().filter(|_| is_usual).and_then(|file| read(&file));
        let token = given.or_else(stored).map(|token| token.expose().trim().to_owned().into());
        let agent = format!("warren/{}", daemon::VERSION);
        let config = HubConfig { endpoint, token, agent, patience: Patience::default() };
        Hub::new(&config).map_err(failed)
    }
}

/// The file in which the tools of Hugging Face store the token.
fn token_file() -> Option<PathBuf> {
    let said = |name| std::env::var_os(name).filter(|said| !said.is_empty()).map(PathBuf::from);
    let cache = || said("XDG_CACHE_HOME").or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let home = || said("HF_HOME").or_else(|| Some(cache()?.join("huggingface")));
    said("HF_TOKEN_PATH").or_else(|| Some(home()?.join("token")))
}

fn read(file: &Path) -> Option<Secret> {
    let mut text = String::new();
    File::open(file).ok()?.take(MAX_TOKEN).read_to_string(&mut text).ok()?;
    let token = text.trim();
    (!token.is_empty()).then(|| token.into())
}

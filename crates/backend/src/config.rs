//! Where a backend is and how much it takes.

use std::{net::IpAddr, path::PathBuf, str::FromStr, time::Duration};

use base::{Continuation, Endpoints, Fingerprint, Secret};
use serde::{Deserialize, Serialize};

/// How many requests a backend serves at once unless it is told otherwise.
pub const DEFAULT_MAX_CONCURRENT: u32 = 4;

/// The longest context that can be set, in tokens.
pub const MAX_CONTEXT: u64 = 1 << 24;

/// A model server over HTTP.
#[derive(Debug, Clone)]
pub struct BackendConfig {
    /// Its base URL, `http` or `https`. A path is kept as a prefix. A `/v1` at the end may be left out. Another
    /// version, as in `/v1beta/openai`, takes the place of `/v1`.
    pub url: String,
    /// The only address that is connected to, whatever the URL's host resolves to; the port is the
    /// URL's. `None`: the host is looked up for each connection.
    pub address: Option<IpAddr>,
    /// A file of certificates that are trusted for it, beside those that this machine trusts.
    pub ca: Option<PathBuf>,
    /// The fingerprint of its certificate, if it is known by that.
    pub pin: Option<Fingerprint>,
    /// Sent as `Authorization: Bearer`, or as `x-api-key` to a server that expects that header.
    pub api_key: Option<Secret>,
    /// A file from which the key is read again later. `api_key` is its first content; a new content
    /// takes its place.
    pub key_file: Option<PathBuf>,
    /// Whether it is a cloud, the last resort of a job. It is not probed, since answers may cost money.
    /// If it refuses the key, that is an error and not an answer for the client.
    pub cloud: bool,
    /// The models to offer. `None`: all that its list has, which is asked for regularly.
    pub models: Option<Vec<ModelEntry>>,
    /// Whether only those of `models` are offered that are also in the backend's own list.
    pub only_listed: bool,
    /// The endpoints that it serves; `None`: it is asked.
    pub endpoints: Option<Endpoints>,
    /// The length of context that its models are to have, in tokens. Only an Ollama can be asked
    /// for one.
    pub context: Option<u64>,
    /// How it continues answers that have begun; `None`: it is asked, if it is of a kind that can tell.
    pub continues: Option<Continues>,
    /// How many requests it serves at once, from all senders together; 0 counts as 1.
    pub max_concurrent: u32,
    /// How long to wait for each step of an answer.
    pub timeouts: Timeouts,
}

impl BackendConfig {
    /// A backend with all its models, no key and the default bounds.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            address: None,
            ca: None,
            pin: None,
            api_key: None,
            key_file: None,
            cloud: false,
            models: None,
            only_listed: false,
            endpoints: None,
            context: None,
            continues: None,
            max_concurrent: DEFAULT_MAX_CONCURRENT,
            timeouts: Timeouts::default(),
        }
    }
}

/// The setting of how a backend goes on with an answer that has begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Continues {
    /// It goes on with the last message whenever that is the assistant's: llama.cpp.
    LastMessage,
    /// It does so when `continue_final_message` asks for it: vLLM, SGLang.
    FinalMessage,
    /// It does not go on.
    No,
}

impl Continues {
    /// The same, as models' facts have it.
    pub fn how(self) -> Option<Continuation> {
        match self {
            Self::LastMessage => Some(Continuation::LastMessage),
            Self::FinalMessage => Some(Continuation::FinalMessage),
            Self::No => None,
        }
    }
}

/// How long to wait for a backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// Until the connection is established, TLS included.
    pub connect: Duration,
    /// Until the head of the answer. Includes the time to connect and to send the request.
    pub first_byte: Duration,
    /// Between two pieces of the answer.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(300),
        }
    }
}

/// One model of an explicit list: the name that is offered, and the backend's own name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name that consumers use.
    pub offered: String,
    /// The backend's name for it.
    pub real: String,
}

/// The text is not an entry of a list of models.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no model: write NAME, or NAME=NAME_AT_THE_BACKEND")]
pub struct NotAModel(String);

impl FromStr for ModelEntry {
    type Err = NotAModel;

    /// `NAME`, or `NAME=NAME_AT_THE_BACKEND`.
    fn from_str(text: &str) -> Result<Self, NotAModel> {
        let (offered, real) = text.split_once('=').unwrap_or((text, text));
        let (offered, real) = (offered.trim(), real.trim());
        if offered.is_empty() || real.is_empty() {
            return Err(NotAModel(text.to_owned()));
        }
        Ok(Self { offered: offered.to_owned(), real: real.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_may_rename() {
        let entry: ModelEntry = " fast = llama3:8b ".parse().unwrap();
        assert_eq!((entry.offered.as_str(), entry.real.as_str()), ("fast", "llama3:8b"));
        let plain: ModelEntry = "llama3".parse().unwrap();
        assert_eq!(plain.offered, plain.real);
        for bad in ["", " ", "=b", "a="] {
            assert!(bad.parse::<ModelEntry>().is_err(), "{bad}");
        }
    }
}

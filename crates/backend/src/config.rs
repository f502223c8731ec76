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
    /// Its base URL, `http` or `https`. A path is kept as a prefix; a last `/v1` may be left out; a version of its own, as in `/v1beta/openai`, stands for `/v1`.
    pub url: String,
    /// The only address that is connected to, whatever the URL's host stands for now; its port is
    /// the URL's. `None`: the host is looked up for each connection.
    pub address: Option<IpAddr>,
    /// A file of certificates that it may show, beside those that this machine trusts.
    pub ca: Option<PathBuf>,
    /// The fingerprint of its certificate, if that is how it is known.
    pub pin: Option<Fingerprint>,
    /// Sent as `Authorization: Bearer`, or as `x-api-key` to a server that wants it there.
    pub api_key: Option<Secret>,
    /// A file that the key is read from again whenever it has changed. What is in it takes the place of
    /// `api_key`, which is what it held at first.
    pub key_file: Option<PathBuf>,
    /// Whether it is a provider of others, a last resort: it is not probed, since answers may cost money,
    /// and its refusal of the key is no answer to a client.
    pub cloud: bool,
    /// The models to offer; none: all that it has, asked again and again.
    pub models: Option<Vec<ModelEntry>>,
    /// Whether only those of these models are offered that it lists itself.
    pub only_listed: bool,
    /// The endpoints that it serves, if they are known; else it is asked.
    pub endpoints: Option<Endpoints>,
    /// How long a context its models are to have, in tokens. Only an Ollama can be asked for that.
    pub context: Option<u64>,
    /// How it goes on with answers that have begun; `None`: it is asked, where it is of a kind that can tell.
    pub continues: Option<Continues>,
    /// How many requests it serves at once, from all senders together; 0 counts as 1.
    pub max_concurrent: u32,
    /// How long to wait for what.
    pub timeouts: Timeouts,
}

impl BackendConfig {
    /// A backend with all its models, no key and the usual bounds.
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
    /// Until the connection stands, TLS included.
    pub connect: Duration,
    /// Until the head of the answer, with the connection and the sending of the request.
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

/// One model of an explicit list: the name that is offered, and the one the backend knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelEntry {
    /// The name that consumers use.
    pub offered: String,
    /// The backend's name for it.
    pub real: String,
}

/// Not an entry of a list of models.
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

//! Failures of a backend, in words that help people to correct them.

use std::{sync::Arc, time::Duration};

/// The part of an exchange that was waited for when a deadline passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The connection.
    Connect,
    /// The head of the answer.
    FirstByte,
    /// The next piece of the answer.
    Idle,
    /// The list of models.
    Models,
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "did not accept a connection",
            Self::FirstByte => "did not begin to answer",
            Self::Idle => "stopped in the middle of its answer: nothing came",
            Self::Models => "did not give its list of models",
        })
    }
}

/// Why a backend gave no answer, or not the whole of it. The address in it holds no secret.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackendError {
    /// No connection could be made.
    #[error(
        "could not connect to the backend {backend}: {reason}; is the model server running, and \
         is this its address?"
    )]
    Unreachable {
        /// Its address.
        backend: Arc<str>,
        /// Why.
        reason: String,
    },
    /// It did not answer in time.
    #[error("the backend {backend} {phase} within {after:?}")]
    Timeout {
        /// Its address.
        backend: Arc<str>,
        /// The awaited event.
        phase: Phase,
        /// For how long.
        after: Duration,
    },
    /// The connection broke, or what came was not HTTP.
    #[error("the backend {backend} broke off: {reason}; its own log may say why")]
    Broke {
        /// Its address.
        backend: Arc<str>,
        /// The failure in words.
        reason: String,
    },
    /// It answered, but not with a list of models.
    #[error("the backend {backend} gives no list of models: {reason}")]
    NoModels {
        /// Its address.
        backend: Arc<str>,
        /// The answer that it gave instead.
        reason: String,
    },
    /// It refuses the configured API key.
    #[error("the backend {backend} refuses its API key ({status})")]
    KeyRefused {
        /// Its address.
        backend: Arc<str>,
        /// Its status.
        status: u16,
    },
    /// A model that this machine runs itself cannot be loaded, or its server has ended.
    #[error("the model {model}: {reason}")]
    Engine {
        /// The model.
        model: Arc<str>,
        /// The failure and what to do about it. Clients read it as well.
        reason: Arc<str>,
        /// Whether the request may succeed in a moment, or at another machine.
        busy: bool,
    },
    /// The request cannot be sent to any backend.
    #[error("the request cannot be sent to a backend: {0}")]
    BadAsk(String),
}

impl BackendError {
    /// The error in words that name no address of the operator's network: for clients.
    pub fn without_address(&self) -> String {
        match self {
            Self::Unreachable { .. } => "the model server cannot be reached".to_owned(),
            Self::Timeout { phase, after, .. } => {
                format!("the model server {phase} within {after:?}")
            }
            Self::Broke { reason, .. } => format!("the model server broke off: {reason}"),
            Self::NoModels { .. } => "the model server gives no list of models".to_owned(),
            Self::KeyRefused { .. } => {
                "the model server refuses the API key that this Warren has for it".to_owned()
            }
            Self::Engine { .. } | Self::BadAsk(_) => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_read_no_address() {
        let backend: Arc<str> = "http://10.0.0.7:8080".into();
        let reason = "tcp connect error".to_owned();
        let timeout = |phase| BackendError::Timeout {
            backend: Arc::clone(&backend),
            phase,
            after: Duration::from_secs(5),
        };
        let errors = [
            BackendError::Unreachable { backend: Arc::clone(&backend), reason: reason.clone() },
            timeout(Phase::Connect),
            timeout(Phase::FirstByte),
            BackendError::Broke { backend: Arc::clone(&backend), reason: reason.clone() },
            BackendError::NoModels { backend: Arc::clone(&backend), reason },
            BackendError::KeyRefused { backend: Arc::clone(&backend), status: 401 },
        ];
        for error in errors {
            assert!(error.to_string().contains("10.0.0.7"), "{error}");
            let told = error.without_address();
            assert!(told.contains("model server") && !told.contains("10.0.0.7"), "{told}");
        }
    }
}

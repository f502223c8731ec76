//! Which servers, which backends.

use std::{fmt, time::Duration};

use backend::{BackendConfig, DemoConfig};
use base::{Secret, redact_url};
use url::Url;

/// All that a worker needs to know.
#[derive(Debug, Clone)]
pub struct WorkerConfig {
    /// Its name, for people. With several backends each link adds which one it lends.
    pub name: String,
    /// The servers to lend to, all at once.
    pub servers: Vec<ServerTarget>,
    /// The backends to lend.
    pub backends: Vec<Lend>,
    /// How often each backend is asked for its models.
    pub poll_interval: Duration,
    /// How long requests in flight may take to finish when the worker is told to end.
    pub drain_timeout: Duration,
}

impl WorkerConfig {
    /// A worker with nothing to do yet, and the usual bounds.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            servers: Vec::new(),
            backends: Vec::new(),
            poll_interval: Duration::from_secs(10),
            drain_timeout: Duration::from_secs(30),
        }
    }
}

/// A backend to lend.
#[derive(Debug, Clone)]
pub enum Lend {
    /// A model server.
    Http(BackendConfig),
    /// The built-in demo.
    Demo(DemoConfig),
}

/// A server to lend to.
#[derive(Clone)]
pub struct ServerTarget {
    /// Its base URL: `http`, `https`, `ws` or `wss`; a path is kept as a prefix.
    pub url: Url,
    /// The secret that it asks of workers.
    pub secret: Option<Secret>,
}

/// Not the address of a server.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no address of a server: write http://HOST:PORT or https://HOST")]
pub struct NotAServer(String);

impl ServerTarget {
    /// A server at an address.
    ///
    /// # Errors
    /// [`NotAServer`] when it is no `http`, `https`, `ws` or `wss` URL with a host.
    pub fn new(url: &str, secret: Option<Secret>) -> Result<Self, NotAServer> {
        let bad = || NotAServer(redact_url(url));
        let parsed = Url::parse(url.trim()).map_err(|_| bad())?;
        let known = matches!(parsed.scheme(), "http" | "https" | "ws" | "wss");
        if !known || !parsed.has_host() {
            return Err(bad());
        }
        Ok(Self { url: parsed, secret })
    }

    /// Where workers connect.
    pub fn connect_url(&self) -> Url {
        let mut url = self.url.clone();
        let path = format!("{}/v1/worker/connect", url.path().trim_end_matches('/'));
        url.set_path(&path);
        url
    }
}

impl fmt::Display for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(redact_url(self.url.as_str()).trim_end_matches('/'))
    }
}

impl fmt::Debug for ServerTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_prefix_is_kept() {
        let cases = [
            ("http://host:9178", "http://host:9178/v1/worker/connect"),
            ("https://host/", "https://host/v1/worker/connect"),
            ("wss://host/warren//", "wss://host/warren/v1/worker/connect"),
        ];
        for (url, full) in cases {
            assert_eq!(ServerTarget::new(url, None).unwrap().connect_url().as_str(), full);
        }
    }

    #[test]
    fn what_is_no_server_is_refused_and_secrets_are_not_shown() {
        for url in ["", "host:9178", "ftp://host", "http://", "/v1", "x://u:pw@h"] {
            let error = ServerTarget::new(url, None).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
        let target = ServerTarget::new("http://u:pw@host/?token=pw", Some("pw".into())).unwrap();
        assert!(!format!("{target} {target:?}").contains("pw"));
    }
}

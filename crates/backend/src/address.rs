//! A backend's base URL.

use std::{fmt, net::IpAddr};

use bytes::Bytes;
use http::{
    Uri,
    uri::{self, Authority, PathAndQuery, Scheme},
};

/// Why an address cannot be used as a backend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotABackend {
    /// The address is no URL of a model server.
    #[error("{url} is no address of a model server: {reason}")]
    Url {
        /// The address, without its secrets.
        url: String,
        /// The fault of the address.
        reason: &'static str,
    },
    /// The key cannot be sent in a header.
    #[error("the API key of {url} holds characters that no header may hold")]
    Key {
        /// The address.
        url: String,
    },
    /// TLS cannot be used on this machine.
    #[error("no TLS to {url}: {reason}")]
    Tls {
        /// The address.
        url: String,
        /// Why not.
        reason: String,
    },
}

/// Scheme, host, port and path prefix of a backend.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    scheme: Scheme,
    authority: Authority,
    prefix: String,
    version: Version,
}

/// Which version of the API a base URL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    /// None.
    Unnamed,
    /// `/v1` at its end. It is dropped, because the paths of requests begin with it.
    V1,
    /// Another version, as in `/v1beta/openai` or `/api/v3`. Paths below it have no `/v1`.
    Other,
}

impl BaseUrl {
    /// Reads `http://HOST[:PORT][/PREFIX]`, or the same with `https`. A `/v1` at the end may be
    /// left out.
    ///
    /// # Errors
    /// [`NotABackend::Url`] for anything else, a `user:password@` included.
    pub fn parse(url: &str) -> Result<Self, NotABackend> {
        let bad = |reason| NotABackend::Url { url: base::redact_url(url), reason };
        let uri: Uri = url.trim().parse().map_err(|_| bad("it is not a URL"))?;
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(bad("it must begin with http:// or https://"));
        };
        if *scheme != Scheme::HTTP && *scheme != Scheme::HTTPS {
            return Err(bad("it must begin with http:// or https://"));
        }
        if authority.as_str().contains('@') {
            return Err(bad("name and password cannot be part of it, give an API key instead"));
        }
        if uri.query().is_some() {
            return Err(bad("it must not hold a query"));
        }
        let segments: Vec<&str> = uri.path().split('/').filter(|it| !it.is_empty()).collect();
        let (segments, version) = match segments.split_last() {
            Some((&"v1", before)) => (before, Version::V1),
            _ if segments.iter().any(|it| is_version(it)) => (&segments[..], Version::Other),
            _ => (&segments[..], Version::Unnamed),
        };
        let prefix = segments.iter().flat_map(|segment| ["/", segment]).collect();
        Ok(Self { scheme: scheme.clone(), authority: authority.clone(), prefix, version })
    }

    /// Whether paths below this URL have no `/v1`, because it names another version.
    pub fn names_other_version(&self) -> bool {
        self.version == Version::Other
    }

    /// Whether the URL names no version, so that paths below it may or may not begin with `/v1`.
    pub fn names_no_version(&self) -> bool {
        self.version == Version::Unnamed
    }

    /// The path and query below the host, for a path and query below this URL; `None` if the text is
    /// not a path.
    pub fn join(&self, path_and_query: &str) -> Option<PathAndQuery> {
        if !path_and_query.starts_with('/') {
            return None;
        }
        let full = [self.prefix.as_str(), path_and_query].concat();
        PathAndQuery::from_maybe_shared(Bytes::from(full)).ok()
    }

    /// The full address of a path below the host.
    pub fn at(&self, path: PathAndQuery) -> Uri {
        let mut parts = uri::Parts::default();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(path);
        // Cannot fail: scheme, authority and path are all set.
        Uri::from_parts(parts).unwrap_or_default()
    }

    /// Whether it is `https`.
    pub fn is_secure(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// The host, if it is written as an address.
    pub fn ip(&self) -> Option<IpAddr> {
        let host = self.authority.host();
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        host.parse::<IpAddr>().ok().map(|ip| ip.to_canonical())
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        self.authority.as_str()
    }
}

/// Whether a segment is a version, such as `v3` or `v1beta`.
fn is_version(segment: &str) -> bool {
    segment.strip_prefix('v').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_a_prefix_and_drops_a_last_v1() {
        let cases = [
            ("http://127.0.0.1:11434", "http://127.0.0.1:11434/v1/x?a=1"),
            ("http://127.0.0.1:11434/v1/", "http://127.0.0.1:11434/v1/x?a=1"),
            ("https://host/gpu/one/", "https://host/gpu/one/v1/x?a=1"),
            ("http://[::1]:8080/p/v1", "http://[::1]:8080/p/v1/x?a=1"),
            ("http://host//", "http://host/v1/x?a=1"),
            ("http://host//p//v1//", "http://host/p/v1/x?a=1"),
        ];
        for (url, full) in cases {
            let base = BaseUrl::parse(url).unwrap();
            assert_eq!(base.at(base.join("/v1/x?a=1").unwrap()), full);
        }
    }

    #[test]
    fn a_version_of_its_own_is_known() {
        for (url, other, none) in [
            ("https://h/v1beta/openai/", true, false),
            ("https://h/api/paas/v4", true, false),
            ("https://h/v2/models/v1", false, false),
            ("https://h/v1", false, false),
            ("https://h/inference", false, true),
            ("https://h/vllm", false, true),
        ] {
            let url = BaseUrl::parse(url).unwrap();
            let named = (url.names_other_version(), url.names_no_version());
            assert_eq!(named, (other, none), "{url}");
        }
    }

    #[test]
    fn refuses_what_is_no_backend_and_shows_no_password() {
        for url in ["", "localhost:1", "/v1", "ftp://host", "http://u:pw@host", "http://h/?k=v"] {
            let error = BaseUrl::parse(url).unwrap_err().to_string();
            assert!(!error.contains("pw"), "{error}");
        }
    }

    #[test]
    fn a_host_may_be_written_as_an_address() {
        let ip = |url: &str| BaseUrl::parse(url).unwrap().ip().map(|ip| ip.to_string());
        assert_eq!(ip("http://127.0.0.1:1").as_deref(), Some("127.0.0.1"));
        assert_eq!(ip("http://[::ffff:127.0.0.1]:1/p").as_deref(), Some("127.0.0.1"));
        assert_eq!(ip("http://[fe80::1]").as_deref(), Some("fe80::1"));
        assert_eq!((ip("http://localhost"), ip("http://2130706433")), (None, None));
    }

    #[test]
    fn a_path_cannot_leave_the_host() {
        let base = BaseUrl::parse("http://host").unwrap();
        assert_eq!(base.at(base.join("//evil/v1").unwrap()).host(), Some("host"));
        for path in ["@evil/", "", "v1", "/v1 x", "/\n"] {
            assert_eq!(base.join(path), None, "{path:?}");
        }
    }
}

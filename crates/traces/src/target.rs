//! Where a collector is, and what it asks for.

use base::Secret;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::otlp::TRACES;
use url::Url;

/// The most headers that one may ask for.
const MAX_HEADERS: usize = 32;

/// A collector.
#[derive(Debug, Clone)]
pub struct Target {
    /// Where spans are posted to.
    pub(crate) url: Url,
    /// Sent with each request. Their values are secrets.
    pub(crate) headers: HeaderMap,
}

/// Why there is no such collector.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotATarget {
    /// The address.
    #[error("{0:?} is no address of a collector: it is to be like http://localhost:4318")]
    Address(String),
    /// The headers.
    #[error("the headers for the collector are to be like name=value,name=value")]
    Headers,
}

impl Target {
    /// A collector by its endpoint, as `OTEL_EXPORTER_OTLP_ENDPOINT` has it, and its headers, as
    /// `OTEL_EXPORTER_OTLP_HEADERS` has them: `name=value`, with commas between.
    ///
    /// # Errors
    /// [`NotATarget`].
    pub fn new(endpoint: &str, headers: Option<&Secret>) -> Result<Self, NotATarget> {
        let bad = || NotATarget::Address(base::redact_url(endpoint));
        let mut url = Url::parse(endpoint.trim()).map_err(|_| bad())?;
        if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
            return Err(bad());
        }
        let path = url.path().trim_end_matches('/');
        let path = if path.ends_with(TRACES) { path.to_owned() } else { format!("{path}{TRACES}") };
        url.set_path(&path);
        url.set_fragment(None);
        let headers = headers.map(|headers| read(headers.expose())).transpose()?;
        Ok(Self { url, headers: headers.unwrap_or_default() })
    }
}

fn read(text: &str) -> Result<HeaderMap, NotATarget> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or(NotATarget::Headers)?;
        let name = HeaderName::try_from(name.trim()).map_err(|_| NotATarget::Headers)?;
        let mut value = HeaderValue::try_from(value.trim()).map_err(|_| NotATarget::Headers)?;
        value.set_sensitive(true);
        headers.insert(name, value);
        if headers.len() > MAX_HEADERS {
            return Err(NotATarget::Headers);
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_base_of_the_path_for_traces() {
        let url = |endpoint| Target::new(endpoint, None).unwrap().url.to_string();
        assert_eq!(url("http://localhost:4318"), "http://localhost:4318/v1/traces");
        assert_eq!(url("https://a.example/otlp/"), "https://a.example/otlp/v1/traces");
        assert_eq!(url("http://a:1/v1/traces"), "http://a:1/v1/traces");
        for bad in ["", "localhost:4318", "grpc://a:4317", "http://"] {
            assert!(Target::new(bad, None).is_err(), "{bad}");
        }
        let hushed = Target::new("ftp://me:hush@a", None).unwrap_err().to_string();
        assert!(!hushed.contains("hush"), "{hushed}");
    }

    #[test]
    fn headers_are_read_and_never_shown() {
        let headers = |text: &str| Target::new("http://a", Some(&text.into()));
        let target = headers("Authorization=Bearer x=y, x-team = blue").unwrap();
        assert_eq!(target.headers["authorization"], "Bearer x=y");
        assert_eq!(target.headers["x-team"], "blue");
        assert!(!format!("{target:?}").contains("Bearer"));
        for bad in ["novalue", "bad name=1", "a=b\nc"] {
            assert!(headers(bad).is_err(), "{bad}");
        }
        let many: Vec<String> = (0..=MAX_HEADERS).map(|number| format!("x-{number}=1")).collect();
        assert!(headers(&many.join(",")).is_err());
    }
}

//! Which requests the server trusts, and with what.

use access::Moment;
use base::KeyScope;
use http::{Extensions, HeaderMap, Uri};

use super::operator;
use crate::state::{Api, Peer};

impl Api {
    /// Whether a request comes from the operator, or is local and carries no invalid key.
    pub fn is_own(&self, extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.rules().is_local(Peer::of(extensions), uri, headers, Moment::now())
            || operator(self, headers).is_ok()
    }

    /// Whether a request may see the server's state: it is the server's own ([`Api::is_own`]), or
    /// carries any valid key.
    pub fn is_trusted(&self, extensions: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        self.is_own(extensions, uri, headers) || self.rules().has_key(headers, Moment::now())
    }

    /// Whether a request may read `/metrics`: it is local, or carries the administrator's token or
    /// a key of scope `admin` or `metrics`.
    pub fn may_read_metrics(&self, ext: &Extensions, uri: &Uri, headers: &HeaderMap) -> bool {
        let has_key = |text| self.keys().present(text, KeyScope::Metrics, Moment::now());
        self.is_own(ext, uri, headers)
            || access::presented(headers).is_some_and(|text| matches!(has_key(text), Ok(Some(_))))
    }
}

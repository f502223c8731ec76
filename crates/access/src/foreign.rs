//! Why a request from this machine does not count as its user's own: because of the page that sent it, or of the
//! host that it names.

use std::{fmt, net::IpAddr};

use http::{HeaderMap, Uri, header};

use crate::local::{LocalRules, is_forwarded};

/// The most bytes that are quoted of an origin or a host.
const LONGEST: usize = 256;

/// The reasons why a request is not local: its page, the host that it names, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// The origin of the page, as the setting `allow_origin` takes it.
    origin: Option<String>,
    /// The host, as the setting `allow_host` takes it: without a port.
    host: Option<String>,
}

impl Foreign {
    /// Why a request from this machine is not local, if its page or the host that it names is the reason. `None` if
    /// the request is local, comes from another machine or came through a proxy.
    pub fn of_local(
        rules: &LocalRules,
        peer: IpAddr,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Option<Self> {
        let is_from_here = peer.to_canonical().is_loopback() && !is_forwarded(headers);
        is_from_here.then(|| Self::of(rules, uri, headers)).flatten()
    }

    /// The same as [`Foreign::of_local`], for a request from any machine.
    pub fn of(rules: &LocalRules, uri: &Uri, headers: &HeaderMap) -> Option<Self> {
        let origin = headers.get(header::ORIGIN).filter(|_| !rules.takes_page(uri, headers));
        let origin = origin.and_then(|origin| origin.to_str().ok()).map(quoted);
        let host = rules.unknown_host(uri, headers).as_deref().map(quoted);
        (origin.is_some() || host.is_some()).then_some(Self { origin, host })
    }

    /// The page, the host or both that are not allowed, in words for people.
    pub fn reason(&self) -> String {
        let page =
            |origin: &str| format!("pages of {origin} may not use this server without an API key");
        let name = |host: &str| format!("this server does not know itself by the name {host}");
        match (&self.origin, &self.host) {
            (Some(origin), Some(host)) => format!("{}, and {}", page(origin), name(host)),
            (Some(origin), None) => page(origin),
            (None, host) => name(host.as_deref().unwrap_or_default()),
        }
    }

    /// The flags that make the server take such requests.
    pub fn flags(&self) -> String {
        let origin = self.origin.iter().map(|origin| format!("--allow-origin {origin}"));
        let host = self.host.iter().map(|host| format!("--allow-host {host}"));
        origin.chain(host).collect::<Vec<_>>().join(" ")
    }

    /// The word for programs: `origin_not_allowed` or `host_not_allowed`.
    pub fn code(&self) -> &'static str {
        if self.origin.is_some() { "origin_not_allowed" } else { "host_not_allowed" }
    }
}

impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (reason, flags) = (self.reason(), self.flags());
        write!(f, "{reason}: start the server with `{flags}` if you trust it, or send an API key")
    }
}

fn quoted(name: &str) -> String {
    name.get(..LONGEST).unwrap_or(name).to_owned()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn why(peer: [u8; 4], headers: &[(&'static str, &str)]) -> Option<String> {
        let rules = LocalRules {
            allowed_hosts: vec!["box.lan".to_owned()],
            allowed_origins: vec!["https://app.example".to_owned()],
            ..<_>::default()
        };
        let line = |(name, value): &(&'static str, &str)| {
            (http::HeaderName::from_static(name), value.parse().unwrap())
        };
        let headers = headers.iter().map(line).collect();
        let uri = Uri::from_static("/v1/models");
        let peer = Ipv4Addr::from(peer).into();
        Foreign::of_local(&rules, peer, &uri, &headers).map(|foreign| foreign.to_string())
    }

    const HERE: [u8; 4] = [127, 0, 0, 1];
    const OWN: (&str, &str) = ("host", "localhost:9178");
    const PAGE: (&str, &str) = ("origin", "http://localhost:3000");

    #[test]
    fn a_refusal_names_the_page_or_the_host_or_both_and_the_flag_with_its_value() {
        let words = why(HERE, &[OWN, PAGE]).unwrap();
        assert!(words.starts_with("pages of http://localhost:3000 may not"), "{words}");
        assert!(words.contains("`--allow-origin http://localhost:3000`"), "{words}");
        let words = why(HERE, &[("host", "gpu.lan:9178")]).unwrap();
        assert!(words.contains("by the name gpu.lan:"), "{words}");
        assert!(words.contains("`--allow-host gpu.lan`"), "{words}");
        let words = why(HERE, &[("host", "gpu.lan"), PAGE]).unwrap();
        let flags = "`--allow-origin http://localhost:3000 --allow-host gpu.lan`";
        assert!(words.contains(flags), "{words}");
        let rebound = [("host", "evil.example"), ("origin", "http://evil.example")];
        assert!(!why(HERE, &rebound).unwrap().contains("--allow-origin"), "the page is the host's");
    }

    #[test]
    fn nothing_is_said_of_what_is_allowed_or_comes_from_elsewhere() {
        for own in [
            &[OWN][..],
            &[("host", "box.lan")],
            &[OWN, ("origin", "https://app.example")],
            &[PAGE, OWN, ("x-forwarded-for", "10.0.0.7")],
        ] {
            assert_eq!(why(HERE, own), None, "{own:?}");
        }
        assert_eq!(why([10, 0, 0, 7], &[OWN, PAGE]), None);
    }

    #[test]
    fn a_long_name_is_quoted_in_part() {
        let words = why(HERE, &[OWN, ("origin", &format!("http://{}", "a".repeat(9000)))]).unwrap();
        assert!(words.len() < 3 * LONGEST, "{}", words.len());
    }
}

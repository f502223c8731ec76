//! Which requests come from this machine's own user.
//!
//! A TCP peer on loopback is not enough: a reverse proxy makes the whole internet loopback, and a
//! web page anywhere can make a browser here send requests. So a local request also carries no
//! trace of a proxy, names a loopback host, and comes from no foreign page.

use std::net::IpAddr;

use base::ClientAddress;
use http::{HeaderMap, HeaderValue, Uri, header, uri::Authority};

use crate::proxies::TrustedProxies;

/// The header in which a browser says whether the page that sends a request is of the server's own site.
pub(crate) const SITE: &str = "sec-fetch-site";

/// Headers that only a proxy adds.
const PROXY_TRACES: [&str; 4] = ["forwarded", "x-real-ip", "via", "x-forwarded"];

/// The names that count as local besides loopback names and the server's own origin, and the proxies that say
/// where other requests come from.
#[derive(Debug, Clone, Default)]
pub struct LocalRules {
    /// Host names (without port) by which this server is reached locally.
    pub allowed_hosts: Vec<String>,
    /// Origins (`https://app.example`) whose pages may use this server.
    pub allowed_origins: Vec<String>,
    /// Proxies whose headers are believed. Requests that they pass on are never local, though.
    pub trusted_proxies: TrustedProxies,
}

impl LocalRules {
    /// Whether a request with this peer, target and headers is local.
    pub fn is_local(&self, peer: IpAddr, uri: &Uri, headers: &HeaderMap) -> bool {
        peer.to_canonical().is_loopback()
            && !is_forwarded(headers)
            && self.names_local_host(uri, headers)
            && self.takes_page(uri, headers)
    }

    /// The address of a request's client, for everything that is counted by address.
    pub fn client(&self, peer: IpAddr, uri: &Uri, headers: &HeaderMap) -> ClientAddress {
        let client = self.trusted_proxies.client(peer, headers);
        if self.is_of_foreign_page(uri, headers) { client.of_foreign_page() } else { client }
    }

    /// Whether a browser sends a request for a page that is neither the server's own nor an allowed one.
    /// A page counts as foreign, too, if its own host name was made to point to this server. A browser sends no
    /// origin with a plain `GET`, but says whether the page is from another site.
    fn is_of_foreign_page(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let site = headers.get(SITE).map(HeaderValue::as_bytes);
        let is_own = match (headers.contains_key(header::ORIGIN), site) {
            (true, _) => self.takes_page(uri, headers),
            (false, Some(site)) => matches!(site, b"none" | b"same-origin"),
            (false, None) => return false,
        };
        !is_own || !self.is_named_by_nobody_else(uri, headers)
    }

    /// Whether a page of this origin may use the server from a browser.
    pub fn allows_origin(&self, origin: &str) -> bool {
        self.allowed_origins.iter().any(|allowed| allowed == "*" || same_origin(allowed, origin))
    }

    /// Whether a request names this server in a way that no stranger can: by an address, by a
    /// loopback name or by an allowed name. Any other name may belong to a stranger who pointed it here.
    pub fn is_named_by_nobody_else(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let is_address = |own: Authority| bare(own.host()).parse::<IpAddr>().is_ok();
        self.names_local_host(uri, headers) || authority(uri, headers).is_some_and(is_address)
    }

    /// Whether a request for a WebSocket comes from no page, or from an allowed one. A browser
    /// opens sockets without asking the server first. If a page's own host name resolves to this
    /// server, the page is a stranger's even if its origin looks like the server's own. A request through
    /// a proxy names the proxy's host, so only its origin is checked.
    pub fn takes_socket(&self, peer: IpAddr, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        if origin.to_str().is_ok_and(|origin| self.allows_origin(origin)) {
            return true;
        }
        if is_forwarded(headers) {
            return self.takes_page(uri, headers);
        }
        if peer.to_canonical().is_loopback() {
            return self.is_local(peer, uri, headers);
        }
        // Over TLS the browser has made sure that the name is the server's.
        let is_proved = origin.as_bytes().starts_with(b"https://");
        self.takes_page(uri, headers) && (is_proved || self.is_named_by_nobody_else(uri, headers))
    }

    /// The host that a request names, unless it is one of this machine's names.
    pub(crate) fn unknown_host(&self, uri: &Uri, headers: &HeaderMap) -> Option<String> {
        let named = authority(uri, headers)?;
        (!self.names_local_host(uri, headers)).then(|| named.host().to_owned())
    }

    fn names_local_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(authority) = authority(uri, headers) else { return false };
        let host = authority.host();
        is_loopback_name(host)
            || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host))
    }

    /// Whether a request comes from no page, from one of the server's own pages, or from a page
    /// that may use the server. A browser names the page's site in `Origin`.
    pub fn takes_page(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return true };
        let Ok(origin) = origin.to_str() else { return false };
        is_own_origin(origin, uri, headers) || self.allows_origin(origin)
    }
}

/// Whether an origin is the server's own, by the name that the request has for the server.
pub(crate) fn is_own_origin(origin: &str, uri: &Uri, headers: &HeaderMap) -> bool {
    let place = origin.split_once("://").map(|(_, place)| place);
    let own = authority(uri, headers);
    own.zip(place).is_some_and(|(own, place)| place.eq_ignore_ascii_case(own.as_str()))
}

/// Whether a request came through a proxy, so that its TCP peer is not its sender.
pub fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| {
        let name = name.as_str();
        name.starts_with("x-forwarded-") || PROXY_TRACES.contains(&name)
    })
}

/// The host of a request: the target's, if the target names one, as in HTTP/2 and in absolute form
/// (RFC 9112 section 3.2.2); otherwise the `Host` header's, if there is exactly one.
fn authority(uri: &Uri, headers: &HeaderMap) -> Option<Authority> {
    if let Some(authority) = uri.authority() {
        return Some(authority.clone());
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next().filter(|_| hosts.next().is_none())?;
    host.to_str().ok()?.parse().ok()
}

fn is_loopback_name(host: &str) -> bool {
    let bare = bare(host);
    bare.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// An address of IPv6 without its brackets.
fn bare(host: &str) -> &str {
    host.trim_start_matches('[').trim_end_matches(']')
}

fn same_origin(allowed: &str, origin: &str) -> bool {
    allowed.trim_end_matches('/').eq_ignore_ascii_case(origin.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn local(rules: &LocalRules, headers: &[(&'static str, &str)]) -> bool {
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        rules.is_local(Ipv4Addr::LOCALHOST.into(), &Uri::from_static("/v1/models"), &headers)
    }

    #[test]
    fn loopback_names_are_local() {
        let rules = LocalRules::default();
        for host in ["localhost", "LOCALHOST:9178", "127.0.0.1:9178", "127.9.9.9", "[::1]:80"] {
            assert!(local(&rules, &[("host", host)]), "{host}");
        }
    }

    #[test]
    fn foreign_hosts_are_not_unless_allowed() {
        let mut rules = LocalRules::default();
        let foreign = ["evil.example", "localhost.evil.example", "192.168.1.4", "[::2]", ""];
        for host in foreign {
            assert!(!local(&rules, &[("host", host)]), "{host}");
        }
        assert!(!local(&rules, &[]), "no host at all");
        rules.allowed_hosts.push("gpu.lan".into());
        assert!(local(&rules, &[("host", "GPU.lan:9178")]));
    }

    #[test]
    fn the_target_names_the_host_and_two_hosts_name_none() {
        let rules = LocalRules::default();
        let is_local = |uri, host: &str| {
            let headers = HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
            rules.is_local(Ipv4Addr::LOCALHOST.into(), &Uri::from_static(uri), &headers)
        };
        assert!(is_local("http://localhost:9178/v1/models", "evil.example"));
        assert!(!is_local("http://evil.example/v1/models", "localhost:9178"));
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, "localhost".parse().unwrap());
        twice.append(header::HOST, "evil.example".parse().unwrap());
        assert!(!rules.is_local(Ipv4Addr::LOCALHOST.into(), &Uri::from_static("/"), &twice));
    }

    #[test]
    fn a_proxy_gives_itself_away() {
        let rules = LocalRules::default();
        let traces = ["forwarded", "x-forwarded-for", "x-forwarded-proto", "x-real-ip", "via"];
        for trace in traces {
            assert!(!local(&rules, &[("host", "localhost"), (trace, "1")]), "{trace}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_not_local_unless_allowed() {
        let mut rules = LocalRules::default();
        let host = ("host", "localhost:9178");
        assert!(local(&rules, &[host, ("origin", "http://localhost:9178")]));
        assert!(!local(&rules, &[host, ("origin", "http://localhost:3000")]));
        assert!(!local(&rules, &[host, ("origin", "null")]));
        rules.allowed_origins.push("http://localhost:3000/".into());
        assert!(local(&rules, &[host, ("origin", "http://localhost:3000")]));
    }

    #[test]
    fn other_machines_are_never_local() {
        let headers = [(header::HOST, "localhost".parse().unwrap())].into_iter().collect();
        let other = IpAddr::from([192, 168, 1, 9]);
        assert!(!LocalRules::default().is_local(other, &Uri::from_static("/"), &headers));
        let mapped: IpAddr = "::ffff:127.0.0.1".parse().unwrap();
        assert!(LocalRules::default().is_local(mapped, &Uri::from_static("/"), &headers));
    }

    fn taken(from: &str, headers: &[(&'static str, &str)]) -> bool {
        let local = LocalRules {
            allowed_hosts: vec!["box.lan".to_owned()],
            allowed_origins: vec!["https://app.example".to_owned()],
            ..LocalRules::default()
        };
        let headers = headers
            .iter()
            .map(|(name, value)| (http::HeaderName::from_static(name), value.parse().unwrap()))
            .collect();
        local.takes_socket(from.parse().unwrap(), &Uri::from_static("/ws"), &headers)
    }

    #[test]
    fn pages_of_others_are_refused_and_programs_are_not() {
        let host = ("host", "127.0.0.1:9178");
        assert!(taken("127.0.0.1", &[host]));
        assert!(taken("127.0.0.1", &[host, ("origin", "http://127.0.0.1:9178")]));
        assert!(taken("127.0.0.1", &[host, ("origin", "https://app.example")]));
        assert!(!taken("127.0.0.1", &[host, ("origin", "https://evil.example")]));
        assert!(!taken("127.0.0.1", &[host, ("origin", "null")]));
        let far = ("host", "workspace.example");
        assert!(taken("10.0.0.7", &[far, ("origin", "https://workspace.example")]));
        assert!(!taken("10.0.0.7", &[far, ("origin", "https://evil.example")]));
    }

    #[test]
    fn what_pages_of_other_origins_send_is_counted_apart() {
        let rules = LocalRules {
            allowed_origins: vec!["https://app.example".to_owned()],
            ..<_>::default()
        };
        let client = |headers: &[(&'static str, &str)]| {
            let line = |(name, value): &(&'static str, &str)| {
                (http::HeaderName::from_static(name), value.parse().unwrap())
            };
            let headers = headers.iter().map(line).collect();
            rules.client(Ipv4Addr::LOCALHOST.into(), &Uri::from_static("/rooms/A"), &headers)
        };
        let program = ClientAddress::new(Ipv4Addr::LOCALHOST.into());
        let host = ("host", "localhost:9178");
        for own in [
            &[host][..],
            &[host, ("origin", "http://localhost:9178"), (SITE, "same-origin")],
            &[host, ("origin", "https://app.example"), (SITE, "cross-site")],
            &[host, (SITE, "none")],
        ] {
            assert_eq!(client(own), program, "{own:?}");
        }
        for foreign in [
            &[host, ("origin", "https://evil.example")][..],
            &[host, ("origin", "null")],
            &[host, (SITE, "cross-site")],
            &[host, (SITE, "same-site")],
            &[("host", "evil.example"), (SITE, "same-origin")],
            &[("host", "evil.example"), ("origin", "http://evil.example")],
        ] {
            assert_eq!(client(foreign), program.of_foreign_page(), "{foreign:?}");
        }
        let proxied = client(&[host, ("x-forwarded-for", "10.0.0.7")]);
        assert_eq!(proxied, program.by_proxy());
    }

    #[test]
    fn a_page_whose_name_leads_to_this_machine_is_refused_unless_the_name_is_ours() {
        let rebound = [("host", "evil.example:9178"), ("origin", "http://evil.example:9178")];
        assert!(!taken("127.0.0.1", &rebound));
        assert!(taken("127.0.0.1", &[("host", "box.lan"), ("origin", "http://box.lan")]));
        let proxied = [rebound[0], rebound[1], ("x-forwarded-for", "10.0.0.7")];
        assert!(taken("127.0.0.1", &proxied), "by way of a proxy it is the proxy's own name");
    }

    #[test]
    fn from_other_machines_too_a_name_must_be_ours_an_address_or_proved_by_tls() {
        let page = |host, origin| taken("10.0.0.7", &[("host", host), ("origin", origin)]);
        assert!(!page("evil.example:9178", "http://evil.example:9178"), "led here");
        assert!(page("192.168.1.4:9178", "http://192.168.1.4:9178"));
        assert!(page("[fd00::4]:9178", "http://[fd00::4]:9178"));
        assert!(page("box.lan:9178", "http://box.lan:9178"));
        assert!(page("box.example", "https://box.example"));
        assert!(!page("192.168.1.4:9178", "http://192.168.1.5:9178"));
    }
}

//! Which HTTP headers go no further than one connection, and which go to no provider.

/// How far a request may go: `local-only`, `prefer-local` or `mesh`. A client's header is read and
/// stays at the server. A request from a peer of the mesh gets `local-only`, which goes on to the
/// backend: if the backend is a server itself, it must not use its own peers in turn.
pub const ROUTE: &str = "x-warren-route";

/// Whether a header concerns one connection only (RFC 9110 section 7.6.1, and similar headers of
/// older peers). Headers that a `Connection` header names are also such headers: see
/// [`named_by_connection`]. Names are in lower case.
pub fn is_hop_by_hop(name: &str) -> bool {
    const NAMES: [&str; 9] = [
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.contains(&name)
}

/// The headers that the value of a `Connection` header names, in lower case.
pub fn named_by_connection(value: &str) -> impl Iterator<Item = String> + '_ {
    value.split(',').map(|name| name.trim().to_ascii_lowercase()).filter(|name| !name.is_empty())
}

/// Whether a request header goes to no provider: the client's credentials and cookies, headers that
/// reveal its location, and headers that the next connection sets itself. Names are in lower case.
pub fn stays_at_server(name: &str) -> bool {
    const NAMES: [&str; 15] = [
        "authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "cookie",
        "host",
        "content-length",
        "accept-encoding",
        "expect",
        "forwarded",
        "x-real-ip",
        "via",
        "origin",
        "referer",
        "x-worker-secret",
    ];
    const PREFIXES: [&str; 5] = ["x-forwarded-", "x-warren-", "sec-", "cf-", "proxy-"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Whether a response header of a provider goes to no client: it would set something for the server's own
/// origin, redirect clients in the server's name, or open the server to other sites' pages. Names are in
/// lower case.
pub fn stays_at_provider(name: &str) -> bool {
    const NAMES: [&str; 14] = [
        "set-cookie",
        "set-cookie2",
        "alt-svc",
        "strict-transport-security",
        "clear-site-data",
        "location",
        "content-location",
        "refresh",
        "link",
        "service-worker-allowed",
        "speculation-rules",
        "nel",
        "report-to",
        "reporting-endpoints",
    ];
    const PREFIXES: [&str; 3] = ["x-warren-", "access-control-", "content-security-policy"];
    NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_names_more() {
        let named: Vec<_> = named_by_connection("Keep-Alive, X-Hop ,,").collect();
        assert_eq!(named, ["keep-alive", "x-hop"]);
    }

    #[test]
    fn headers_about_the_origin_stay_at_the_provider() {
        let stay = ["set-cookie", "access-control-allow-origin", "clear-site-data", "x-warren-a"];
        assert!(stay.iter().all(|name| stays_at_provider(name)));
        let leads = ["location", "link", "refresh", "content-security-policy"];
        assert!(leads.iter().all(|name| stays_at_provider(name)));
        assert!(stays_at_provider("content-security-policy-report-only"));
        assert!(
            !["content-type", "retry-after", "x-ratelimit"].iter().any(|n| stays_at_provider(n))
        );
    }

    #[test]
    fn credentials_stay_and_the_rest_goes() {
        let stay = ["authorization", "cookie", "x-api-key", "x-forwarded-for", "sec-fetch-mode"];
        assert!(stay.iter().all(|name| stays_at_server(name)));
        let go = ["anthropic-version", "openai-beta", "x-foo", "content-type", "accept"];
        assert!(!go.iter().any(|name| stays_at_server(name)));
    }
}

//! Whether a request comes from the server's own page. Only such requests may use the cookie of a session, or sign
//! in.

use http::{HeaderMap, Uri, header};

use crate::local::{SITE, is_own_origin};

/// The header that the page puts on its requests. A page of another origin cannot send it together with cookies:
/// a browser asks the server first, and the server lets no other origin send credentials.
const MARK: &str = "x-warren-page";

/// Whether a request comes from the server's own page. Browsers name the page's origin in all requests but plain
/// `GET`s. In those they name its site, except in clear text to another machine: there the page's mark counts.
pub fn is_from_own_page(uri: &Uri, headers: &HeaderMap) -> bool {
    match (headers.get(header::ORIGIN), headers.get(SITE)) {
        (Some(origin), _) => {
            origin.to_str().is_ok_and(|origin| is_own_origin(origin, uri, headers))
        }
        (None, Some(site)) => site == "same-origin",
        (None, None) => headers.contains_key(MARK),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    #[test]
    fn only_the_servers_own_page_counts_by_whatever_the_browser_says_of_it() {
        let own = ("origin", "http://192.168.1.4:9178");
        let foreign = ("origin", "https://evil.example");
        let (same, mark) = ((SITE, "same-origin"), (MARK, "1"));
        for (headers, is_own) in [
            (&[][..], false),
            (&[own], true),
            (&[own, same], true),
            (&[same], true),
            (&[mark], true),
            (&[mark, same], true),
            (&[foreign], false),
            (&[foreign, mark], false),
            (&[foreign, same, mark], false),
            (&[("origin", "null"), mark], false),
            (&[("origin", "http://192.168.1.4"), mark], false),
            (&[(SITE, "none"), mark], false),
            (&[(SITE, "same-site"), mark], false),
            (&[(SITE, "cross-site"), mark], false),
        ] {
            let all = headers.iter().chain(&[("host", "192.168.1.4:9178")]);
            let all =
                all.map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
            assert_eq!(
                is_from_own_page(&Uri::from_static("/"), &all.collect()),
                is_own,
                "{headers:?}"
            );
        }
    }
}

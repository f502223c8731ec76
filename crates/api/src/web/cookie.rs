//! The cookie of a session of the page, and when it counts.
//!
//! All ports of a host share their cookies. So the cookie's name has the server's id: two servers on one machine do
//! not overwrite each other's cookies. The cookie's value also has the page's path: a browser deletes a cookie only by
//! the path for which it was set, and a server behind a proxy does not know that path.

use std::{fmt, sync::Arc, time::Duration};

use access::{has_session_form, is_from_own_page};
use base::Secret;
use http::{HeaderMap, HeaderValue, Request, header};
use protocol::invitation::ServerId;

/// The first part of the cookie's name.
const NAME: &str = "warren_session_";

/// How many digits of the server's id are in the name.
const DIGITS: usize = 8;

/// The longest path of the page, in bytes.
const MAX_PATH: usize = 256;

/// The cookie of a server's sessions.
#[derive(Debug, Clone)]
pub struct SessionCookie {
    name: Arc<str>,
}

/// The content of a cookie.
pub(super) struct CookieContent<'a> {
    /// The session's text, which is its credential.
    text: &'a str,
    /// The path for which the cookie is set.
    path: PagePath,
}

/// The path of the page as the browser has it. Behind a proxy it may lie below another path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PagePath(String);

impl SessionCookie {
    pub(super) fn of(server: ServerId) -> Self {
        let digits: String = server.to_string().chars().take(DIGITS).collect();
        Self { name: format!("{NAME}{digits}").into() }
    }

    /// Puts the session in a request's cookie where a key would be, if the request comes from the server's own page
    /// and has no credential of its own. Otherwise the cookie counts for nothing.
    pub(crate) fn present<B>(&self, request: &mut Request<B>) {
        if !request.headers().contains_key(header::COOKIE) {
            return;
        }
        let (uri, headers) = (request.uri(), request.headers());
        if access::presented(headers).is_some() || !is_from_own_page(uri, headers) {
            return;
        }
        let Some(bearer) = self.content(headers).and_then(|content| content.bearer()) else {
            return;
        };
        // Not appended: a proxy's own sign-in, such as `Basic`, is not for this server.
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
    }

    /// The content of the first cookie of this name.
    pub(super) fn content<'a>(&self, headers: &'a HeaderMap) -> Option<CookieContent<'a>> {
        let lines = headers.get_all(header::COOKIE).into_iter();
        let cookies = lines.filter_map(|line| line.to_str().ok()).flat_map(|line| line.split(';'));
        let mut pairs = cookies.filter_map(|cookie| cookie.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| **name == *self.name)?;
        let (text, path) = value.split_once(':').unwrap_or((value, "/"));
        let path = PagePath::of(path).unwrap_or_default();
        has_session_form(text).then_some(CookieContent { text, path })
    }

    /// The header that sets the cookie. `secure`: whether browsers shall send it over TLS only.
    pub(super) fn set(
        &self,
        text: &Secret,
        path: &PagePath,
        lasts: Duration,
        secure: bool,
    ) -> Option<HeaderValue> {
        let value = format!("{}:{path}", text.expose());
        self.header(&value, path, lasts.as_secs(), secure)
    }

    /// The header that deletes the cookie.
    pub(super) fn deleted(&self, path: &PagePath, secure: bool) -> Option<HeaderValue> {
        self.header("", path, 0, secure)
    }

    fn header(
        &self,
        value: &str,
        path: &PagePath,
        lasts: u64,
        secure: bool,
    ) -> Option<HeaderValue> {
        let secure = if secure { "; Secure" } else { "" };
        let name = &self.name;
        let line = format!(
            "{name}={value}; HttpOnly; SameSite=Strict; Path={path}; Max-Age={lasts}{secure}"
        );
        let mut header = HeaderValue::try_from(line).ok()?;
        header.set_sensitive(true);
        Some(header)
    }
}

impl CookieContent<'_> {
    pub(super) const fn text(&self) -> &str {
        self.text
    }

    pub(super) fn path(&self) -> &PagePath {
        &self.path
    }

    fn bearer(&self) -> Option<HeaderValue> {
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", self.text)).ok()?;
        bearer.set_sensitive(true);
        Some(bearer)
    }
}

impl PagePath {
    /// The path, if a cookie can be set for it: it must begin and end with a slash, be short, and have plain
    /// characters only.
    pub(super) fn of(text: &str) -> Option<Self> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._~/-".contains(&byte);
        let is_whole = text.starts_with('/') && text.ends_with('/') && text.len() <= MAX_PATH;
        (is_whole && text.bytes().all(is_plain)).then(|| Self(text.to_owned()))
    }
}

/// The root, for a page that no proxy puts below another path.
impl Default for PagePath {
    fn default() -> Self {
        Self("/".to_owned())
    }
}

impl fmt::Display for PagePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderName;

    use super::*;

    fn cookie() -> SessionCookie {
        SessionCookie::of(ServerId::new([0xab; ServerId::BYTES]))
    }

    /// The credential that a request to `box:1` has then.
    fn presented(headers: &[(&'static str, &str)]) -> Option<String> {
        let mut request = Request::new(());
        request.headers_mut().append("host", "box:1".parse().unwrap());
        for (name, value) in headers {
            request.headers_mut().append(HeaderName::from_static(name), value.parse().unwrap());
        }
        cookie().present(&mut request);
        access::presented(request.headers()).map(str::to_owned)
    }

    const OWN: (&str, &str) = ("origin", "http://box:1");
    const KEPT: (&str, &str) = ("cookie", "a=b; warren_session_abababab=wb_1:/; c=d");

    #[test]
    fn the_cookie_counts_from_the_own_page_only_and_beside_no_other_credential() {
        assert_eq!(presented(&[OWN, KEPT]).as_deref(), Some("wb_1"));
        assert_eq!(presented(&[("x-warren-page", "1"), KEPT]).as_deref(), Some("wb_1"));
        assert_eq!(presented(&[("origin", "http://evil.example"), KEPT]), None);
        assert_eq!(presented(&[KEPT]), None);
        assert_eq!(
            presented(&[OWN, KEPT, ("authorization", "Bearer key")]).as_deref(),
            Some("key")
        );
        assert_eq!(presented(&[OWN, KEPT, ("x-api-key", "key")]).as_deref(), Some("key"));
        let proxys = ("authorization", "Basic YTpi");
        assert_eq!(presented(&[OWN, KEPT, proxys]).as_deref(), Some("wb_1"));
    }

    #[test]
    fn only_this_servers_cookie_counts_and_only_a_session_in_it() {
        for (line, text) in [
            ("warren_session_abababab=wb_1", Some("wb_1")),
            ("warren_session_abababab=wb_1:/warren/", Some("wb_1")),
            ("warren_session_abababac=wb_1:/", None),
            ("xwarren_session_abababab=wb_1:/", None),
            ("warren_session_abababab=wk_1:/", None),
            ("warren_session_abababab=", None),
            ("", None),
        ] {
            assert_eq!(presented(&[OWN, ("cookie", line)]).as_deref(), text, "{line}");
        }
        let lines = [OWN, ("cookie", "a=b"), ("cookie", "warren_session_abababab=wb_2:/")];
        assert_eq!(presented(&lines).as_deref(), Some("wb_2"), "HTTP/2 sends several lines");
    }

    #[test]
    fn it_is_set_and_deleted_for_the_path_of_the_page() {
        let path = PagePath::of("/warren/").unwrap();
        let set = cookie().set(&"wb_1".into(), &path, Duration::from_secs(60), true).unwrap();
        assert_eq!(
            set,
            "warren_session_abababab=wb_1:/warren/; HttpOnly; SameSite=Strict; Path=/warren/; Max-Age=60; Secure"
        );
        let value = set.to_str().unwrap().split(';').next().unwrap().parse().unwrap();
        let headers = HeaderMap::from_iter([(header::COOKIE, value)]);
        let content = cookie().content(&headers).map(|content| content.path);
        assert_eq!(content, Some(path.clone()));
        let deleted = cookie().deleted(&path, false).unwrap();
        assert_eq!(
            deleted,
            "warren_session_abababab=; HttpOnly; SameSite=Strict; Path=/warren/; Max-Age=0"
        );
    }

    #[test]
    fn a_path_adds_nothing_to_the_header() {
        let long = format!("/{}/", "x".repeat(MAX_PATH));
        for wrong in
            ["", "warren/", "/warren", "/a;b/", "/a b/", "/a,b/", "/a:b/", "/\u{e9}/", &long]
        {
            assert_eq!(PagePath::of(wrong), None, "{wrong}");
        }
        assert!(PagePath::of("/").is_some() && PagePath::of("/~me/a-b_c.d/").is_some());
    }
}

//! The files of the web page, compressed within the program, and how HTTP answers with them.
//!
//! The build compresses `web/dist`. Only the compressed form is in the program; a client that does not take it
//! gets the file unpacked.

use std::io::Read;

use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};

/// The policy of the page: what it may load and do. All of it comes from its own server, and nothing is within HTML.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; \
    connect-src 'self'; manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The headers that keep the page apart from others.
const SAFE: [(HeaderName, &str); 4] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The path of the page itself.
const INDEX: &str = "/";

/// Below this path a name changes with the content.
const ASSETS: &str = "/assets/";

static FILES: &[File] = &include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file of the page.
#[derive(Debug)]
pub struct File {
    path: &'static str,
    kind: &'static str,
    /// The beginning of the SHA-256 of its content, in hexadecimal digits.
    hash: &'static str,
    /// In bytes, unpacked.
    length: usize,
    gzip: &'static [u8],
}

/// The file at a path of the server. The page itself is at `/`.
pub fn find(path: &str) -> Option<&'static File> {
    FILES.iter().find(|file| file.path == path)
}

impl File {
    /// Whether it is the page itself, and not one of its parts.
    pub fn is_index(&self) -> bool {
        self.path == INDEX
    }

    /// The answer to a `GET` or `HEAD` with these headers: the file, or 304 to a client that has it.
    pub fn answer(&self, method: &Method, request: &HeaderMap) -> Response<Bytes> {
        let is_packed = takes_gzip(request);
        let tag = self.tag(is_packed);
        if has_current(request, &tag) {
            return self.head(StatusCode::NOT_MODIFIED, &tag);
        }
        let content =
            if is_packed { Bytes::from_static(self.gzip) } else { Bytes::from(self.unpacked()) };
        let mut answer = self.head(StatusCode::OK, &tag);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(self.kind));
        headers.insert(header::CONTENT_LENGTH, content.len().into());
        if is_packed {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if *method != Method::HEAD {
            *answer.body_mut() = content;
        }
        answer
    }

    /// The tag of one of its two forms, which are different bytes.
    fn tag(&self, is_packed: bool) -> String {
        format!("\"{}{}\"", self.hash, if is_packed { "-gzip" } else { "" })
    }

    fn head(&self, status: StatusCode, tag: &str) -> Response<Bytes> {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = status;
        let headers = answer.headers_mut();
        for (name, value) in SAFE {
            headers.insert(name, HeaderValue::from_static(value));
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(self.cached()));
        headers.insert(header::VARY, HeaderValue::from_static(self.varies()));
        // Digits in quotes are a header's value.
        if let Ok(tag) = HeaderValue::try_from(tag) {
            headers.insert(header::ETAG, tag);
        }
        answer
    }

    fn cached(&self) -> &'static str {
        match self.path.starts_with(ASSETS) {
            true => "public, max-age=31536000, immutable",
            false => "no-cache",
        }
    }

    /// At the path of the page itself programs get another answer.
    fn varies(&self) -> &'static str {
        if self.is_index() { "accept, accept-encoding" } else { "accept-encoding" }
    }

    fn unpacked(&self) -> Vec<u8> {
        let mut content = Vec::with_capacity(self.length);
        // The build has packed it: it is whole, and this long.
        let _ = GzDecoder::new(self.gzip).take(self.length as u64).read_to_end(&mut content);
        content
    }
}

/// Whether a client takes gzip (RFC 9110 section 12.5.3). One that says nothing is sent plain text.
fn takes_gzip(request: &HeaderMap) -> bool {
    let weighed = |name: &str| {
        let mut all = items(request, &header::ACCEPT_ENCODING);
        all.find_map(|item| weight(item, name))
    };
    weighed("gzip").or_else(|| weighed("*")).is_some_and(|weight| weight > 0.0)
}

/// Whether a client already has the form of the file with this tag. A proxy may have made the tag a weak one.
fn has_current(request: &HeaderMap, tag: &str) -> bool {
    items(request, &header::IF_NONE_MATCH)
        .any(|item| item == "*" || item.trim_start_matches("W/") == tag)
}

/// The weight of a coding in one item, if the item is about it.
fn weight(item: &str, name: &str) -> Option<f32> {
    let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
    let is_it = coding.trim().eq_ignore_ascii_case(name);
    let given = parameters.split(';').find_map(|one| one.trim().strip_prefix("q="));
    is_it.then(|| given.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

fn items<'a>(request: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = request.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests;

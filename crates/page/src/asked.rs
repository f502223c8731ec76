//! A request's words about caches and compression.

use http::{HeaderMap, HeaderName, header};

/// Whether a client takes gzip (RFC 9110 section 12.5.3). One that says nothing is sent plain text.
pub(crate) fn takes_gzip(asked: &HeaderMap) -> bool {
    let weighed = |name: &str| {
        let mut all = items(asked, &header::ACCEPT_ENCODING);
        all.find_map(|item| weight(item, name))
    };
    weighed("gzip").or_else(|| weighed("*")).is_some_and(|weight| weight > 0.0)
}

/// Whether a client has the form of the file with this tag already. A proxy may have made the tag a weak one.
pub(crate) fn has(asked: &HeaderMap, tag: &str) -> bool {
    items(asked, &header::IF_NONE_MATCH)
        .any(|item| item == "*" || item.trim_start_matches("W/") == tag)
}

/// The weight of a coding in one item, if the item is about it.
fn weight(item: &str, name: &str) -> Option<f32> {
    let (coding, parameters) = item.split_once(';').unwrap_or((item, ""));
    let is_it = coding.trim().eq_ignore_ascii_case(name);
    let told = parameters.split(';').find_map(|one| one.trim().strip_prefix("q="));
    is_it.then(|| told.and_then(|weight| weight.parse().ok()).unwrap_or(1.0))
}

fn items<'a>(asked: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let lines = asked.get_all(name).into_iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).map(str::trim)
}

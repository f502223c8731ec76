//! The head of an answer.

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::{Malformed, body::BodyReader};

/// The longest head that is read, in bytes.
pub const MAX_HEAD: usize = 64 * 1024;

/// The most header lines of an answer.
pub const MAX_FIELDS: usize = 100;

/// The longest body that may be announced, in bytes: the largest signed number of 64 bits, which
/// any reader can hold.
const MAX_LENGTH: u64 = i64::MAX.unsigned_abs();

/// The head of an answer.
#[derive(Debug)]
pub struct Head {
    /// The status.
    pub status: StatusCode,
    /// The headers, including those of the connection.
    pub headers: HeaderMap,
    /// Whether the connection may be used again.
    pub(super) keeps: bool,
}

/// The head that some bytes begin with.
#[derive(Debug)]
pub(super) enum Begin {
    /// An incomplete head.
    Partial,
    /// An interim head (status 1xx) of this length, in bytes.
    Interim(usize),
    /// The head of the answer, its length, and how its body ends.
    Final(usize, Head, BodyReader),
}

/// Reads the head at the beginning. `has_body`: whether the answer to this method may have one.
pub(super) fn read(bytes: &[u8], has_body: bool) -> Result<Begin, Malformed> {
    let mut fields = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let parsed = parser.parse_response_with_uninit_headers(&mut response, bytes, &mut fields);
    let length = match parsed.map_err(no_http)? {
        httparse::Status::Complete(length) if length <= MAX_HEAD => length,
        httparse::Status::Partial if bytes.len() < MAX_HEAD => return Ok(Begin::Partial),
        _ => return Err(Malformed::LongHead),
    };
    let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
    let status = status.ok_or(Malformed::Status)?;
    match status {
        StatusCode::SWITCHING_PROTOCOLS => return Err(Malformed::Switched),
        status if status.is_informational() => return Ok(Begin::Interim(length)),
        _ => {}
    }
    let headers = headers(&bytes[..length], response.headers)?;
    let is_new = response.version == Some(1);
    let has_body =
        has_body && ![StatusCode::NO_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
    let body = if has_body { body(&headers, is_new)? } else { BodyReader::none() };
    let keeps = keeps(&headers, is_new) && body.has_end();
    Ok(Begin::Final(length, Head { status, headers, keeps }, body))
}

fn no_http(error: httparse::Error) -> Malformed {
    match error {
        httparse::Error::TooManyHeaders => Malformed::ManyFields,
        other => Malformed::NoHttp(other),
    }
}

/// The headers; their values share one copy of the head.
fn headers(head: &[u8], fields: &[httparse::Header<'_>]) -> Result<HeaderMap, Malformed> {
    let shared = Bytes::copy_from_slice(head);
    let mut headers = HeaderMap::with_capacity(fields.len());
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        // The value points into `head`, so its offset can be computed.
        let from = field.value.as_ptr().addr() - head.as_ptr().addr();
        let value = shared.slice(from..from + field.value.len());
        let value = HeaderValue::from_maybe_shared(value);
        let bad = Malformed::NoHttp(httparse::Error::HeaderName);
        headers.append(name.map_err(|_| bad)?, value.map_err(|_| bad)?);
    }
    Ok(headers)
}

/// How a body ends (RFC 9112 section 6.3), read more strictly where two readers could differ.
fn body(headers: &HeaderMap, is_new: bool) -> Result<BodyReader, Malformed> {
    let in_length = headers.contains_key(header::CONTENT_LENGTH);
    if !headers.contains_key(header::TRANSFER_ENCODING) {
        return match in_length {
            true => length(headers).map(BodyReader::of_length).ok_or(Malformed::Length),
            false => Ok(BodyReader::until_close()),
        };
    }
    if in_length {
        return Err(Malformed::BothLengths);
    }
    let mut codings = tokens(headers, &header::TRANSFER_ENCODING);
    match (codings.next().flatten(), codings.next()) {
        (Some(only), None) if is_new && only.eq_ignore_ascii_case("chunked") => {
            Ok(BodyReader::chunked())
        }
        (Some(only), None) if is_new && only.eq_ignore_ascii_case("identity") => {
            Ok(BodyReader::until_close())
        }
        _ => Err(Malformed::Coding),
    }
}

/// The announced length, if all `content-length` values agree.
fn length(headers: &HeaderMap) -> Option<u64> {
    let mut told = tokens(headers, &header::CONTENT_LENGTH).map(|token| token.and_then(digits));
    let first = told.next()??;
    told.all(|other| other == Some(first)).then_some(first)
}

fn digits(token: &str) -> Option<u64> {
    // `parse` alone would accept a sign.
    let length = token.bytes().all(|byte| byte.is_ascii_digit()).then(|| token.parse().ok())??;
    Some(length).filter(|&length| length <= MAX_LENGTH)
}

/// Whether the connection may be used again, as far as the head says.
fn keeps(headers: &HeaderMap, is_new: bool) -> bool {
    let says = |word: &str| {
        tokens(headers, &header::CONNECTION).flatten().any(|token| token.eq_ignore_ascii_case(word))
    };
    !says("close") && (is_new || says("keep-alive"))
}

/// The comma-separated parts of all values of a header; `None` for parts of a value that is not
/// text.
fn tokens<'a>(
    headers: &'a HeaderMap,
    name: &HeaderName,
) -> impl Iterator<Item = Option<&'a str>> + 'a {
    headers.get_all(name).iter().flat_map(|value| {
        let text = value.to_str().ok();
        let parts = text.unwrap_or_default().split(',');
        parts.map(move |part| text.map(|_| part.trim()))
    })
}

//! The request's body, within its bounds.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use tokio::time::timeout;

use crate::error::{ApiError, Kind};

/// How long a client may pause while it sends its body.
const PAUSE: Duration = Duration::from_secs(30);

/// The most that is reserved on the word of a client.
const RESERVED: usize = 1024 * 1024;

/// Reads a JSON body of at most `limit` bytes.
///
/// # Errors
/// 415 when it is announced as something else or compressed, 413 when it is longer, 408 when it
/// does not come, 400 when it breaks off.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
) -> Result<Bytes, ApiError> {
    expect_json(headers)?;
    let announced = announced_length(headers);
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    if announced == Some(first.len() as u64) {
        return Ok(first);
    }
    let announced = usize::try_from(announced.unwrap_or(0)).unwrap_or(0);
    let mut whole = BytesMut::with_capacity(announced.min(RESERVED).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = next(&mut body).await? {
        if whole.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        whole.extend_from_slice(&piece);
    }
    if whole.len() > limit { Err(too_large(limit)) } else { Ok(whole.freeze()) }
}

async fn next(body: &mut Body) -> Result<Option<Bytes>, ApiError> {
    loop {
        let late = |_| {
            let words = "the request body did not come within 30 s";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, Kind::Timeout, words)
        };
        let broken = |_| {
            let words = "the request body broke off";
            ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
        };
        match timeout(PAUSE, body.frame()).await.map_err(late)? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.map_err(broken)?.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A missing content type is taken for JSON: many send none.
fn expect_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let unsupported = |words: String| {
        Err(ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Kind::Invalid, words))
    };
    if let Some(encoding) = headers.get(header::CONTENT_ENCODING)
        && encoding != "identity"
    {
        return unsupported("compressed request bodies are not taken: send plain JSON".to_owned());
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let kind = String::from_utf8_lossy(kind.as_bytes()).to_ascii_lowercase();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    if essence == "application/json" || essence.ends_with("+json") {
        return Ok(());
    }
    unsupported(format!("the content type must be application/json, not {essence}"))
}

fn too_large(limit: usize) -> ApiError {
    let words = format!("the request body is over this server's limit of {limit} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, words)
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            })
            .collect()
    }

    async fn status(list: &[(&'static str, &'static str)], body: &'static str) -> u16 {
        let read = read(&headers(list), Body::from(body), 4).await;
        read.map_or_else(|error| error.status.as_u16(), |_| 200)
    }

    #[tokio::test]
    async fn bodies_end_at_the_limit() {
        assert_eq!(status(&[], "1234").await, 200);
        assert_eq!(status(&[], "12345").await, 413);
        assert_eq!(status(&[("content-length", "5")], "").await, 413);
    }

    #[tokio::test]
    async fn only_plain_json_is_taken() {
        assert_eq!(status(&[("content-type", "application/json; charset=utf-8")], "{}").await, 200);
        assert_eq!(status(&[("content-type", "text/plain")], "{}").await, 415);
        assert_eq!(status(&[("content-encoding", "gzip")], "{}").await, 415);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_comes_is_given_up() {
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, axum::Error>>();
        let body = Body::new(StreamBody::new(never));
        assert_eq!(read(&HeaderMap::new(), body, 4).await.unwrap_err().status, 408);
    }
}

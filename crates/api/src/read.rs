//! The request's body, within its bounds.

use std::{
    pin::Pin,
    task::{Context, Poll, Waker},
    time::Duration,
};

use axum::body::Body;
use base::Pace;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, StatusCode, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::{Instant, timeout};

use crate::{
    error::{ApiError, Kind},
    unpack::{Coding, unpack},
    uploads::HeldBody,
};

/// How far a client may fall behind [`SLOWEST`] while it sends its body. A client that was faster before
/// gains no more time than this.
const BEHIND: Duration = Duration::from_secs(20);

/// The lowest permitted rate of a client that sends a body, in bytes per second.
const SLOWEST: u32 = 64 * 1024;

/// How much of a refused request's body is read: at most this many bytes, and for at most this
/// time.
const DISCARDED: (usize, Duration) = (256 * 1024, Duration::from_secs(1));

/// The most memory that is reserved for an announced length. The system provides it only when it is
/// written to.
const RESERVED: usize = 16 * 1024 * 1024;

/// Reads a body of at most `limit` bytes into memory that is reserved through `held`, and unpacks it if it is
/// compressed.
///
/// # Errors
/// 415 when its coding is not known, 413 when it is too long, packed or unpacked, 408 when it does not arrive or
/// arrives too slowly, 429 when there is no memory for it, 400 when it breaks off or cannot be unpacked.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: &mut Body,
    limit: usize,
    held: &mut HeldBody<'_>,
) -> Result<Bytes, ApiError> {
    let coding = Coding::of(headers)?;
    let sent = receive(headers, body, limit, held).await?;
    match coding {
        Some(coding) => unpack(coding, sent, limit, held).await,
        None => Ok(sent),
    }
}

/// Reads a body as it is sent.
async fn receive(
    headers: &HeaderMap,
    body: &mut Body,
    limit: usize,
    held: &mut HeldBody<'_>,
) -> Result<Bytes, ApiError> {
    let announced = announced_length(headers);
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large(limit));
    }
    let mut pace = Pace::new(SLOWEST, BEHIND);
    let Some(first) = next(body, &mut pace).await? else { return Ok(Bytes::new()) };
    held.grow(first.len().min(limit)).await?;
    if announced == Some(first.len() as u64) {
        return Ok(first);
    }
    let announced = usize::try_from(announced.unwrap_or(0)).unwrap_or(0);
    let mut whole = BytesMut::with_capacity(announced.min(RESERVED).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(piece) = next(body, &mut pace).await? {
        if whole.len() + piece.len() > limit {
            return Err(too_large(limit));
        }
        held.grow(whole.len() + piece.len()).await?;
        whole.extend_from_slice(&piece);
    }
    if whole.len() > limit { Err(too_large(limit)) } else { Ok(whole.freeze()) }
}

/// Reads JSON of at most `limit` bytes. `words` are the error for a body that is not such JSON: the body itself is not
/// repeated, because it may have a secret.
///
/// # Errors
/// As [`read`]; 400 when the body is not JSON of this type.
pub(crate) async fn json<T: DeserializeOwned>(
    headers: &HeaderMap,
    mut body: Body,
    limit: usize,
    held: &mut HeldBody<'_>,
    words: &'static str,
) -> Result<T, ApiError> {
    let bytes = match read(headers, &mut body, limit, held).await {
        Ok(bytes) => bytes,
        Err(error) => {
            discard(headers, body).await;
            return Err(error);
        }
    };
    let wrong = |_| ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words);
    serde_json::from_slice(&bytes).map_err(wrong)
}

/// Reads the rest of a refused body, within bounds: a client that is still writing when its
/// connection is closed never reads the error.
pub(crate) async fn discard(headers: &HeaderMap, mut body: Body) {
    // A client that waits for `100 Continue` has not begun to send.
    if body.is_end_stream() || headers.contains_key(header::EXPECT) {
        return;
    }
    let (mut left, within) = DISCARDED;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            let Some(rest) = left.checked_sub(len) else { return };
            left = rest;
        }
    };
    // The answer is the same whether all of the body arrived or not.
    let _ = timeout(within, reading).await;
}

async fn next(body: &mut Body, pace: &mut Pace) -> Result<Option<Bytes>, ApiError> {
    loop {
        let late = |_| {
            let words = "the request body came too slowly";
            ApiError::new(StatusCode::REQUEST_TIMEOUT, Kind::Timeout, words)
        };
        let broken = |_| {
            let words = "the request body broke off";
            ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
        };
        // A frame that has arrived already is taken without a timer.
        let here = Pin::new(&mut *body).poll_frame(&mut Context::from_waker(Waker::noop()));
        let (frame, waited) = match here {
            Poll::Ready(frame) => (frame, Duration::ZERO),
            Poll::Pending => {
                let start = Instant::now();
                let frame = timeout(pace.left(), body.frame()).await.map_err(late)?;
                (frame, start.elapsed())
            }
        };
        let Some(frame) = frame else { return Ok(None) };
        let data = frame.map_err(broken)?.into_data();
        // The pace counts only the time spent waiting for the client, not the time spent waiting for memory.
        pace.came(data.as_ref().map_or(0, Bytes::len), waited);
        if let Ok(data) = data {
            return Ok(Some(data));
        }
    }
}

fn announced_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// Refuses a body whose content type is not JSON. A missing content type counts as JSON, because
/// many clients send none.
///
/// # Errors
/// 415 for another content type.
pub(crate) fn expect_json(headers: &HeaderMap) -> Result<(), ApiError> {
    expect_json_or(headers, "")
}

/// The same for an endpoint that takes another content type as well. `or` names that type in the error.
///
/// # Errors
/// 415 for another content type than JSON.
pub(crate) fn expect_json_or(headers: &HeaderMap, or: &str) -> Result<(), ApiError> {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = kind.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii();
    let suffix = essence.len().checked_sub(b"+json".len()).and_then(|at| essence.get(at..));
    if essence.eq_ignore_ascii_case(b"application/json")
        || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case(b"+json"))
    {
        return Ok(());
    }
    let essence = String::from_utf8_lossy(essence).to_ascii_lowercase();
    Err(unsupported(format!("the content type must be application/json{or}, not {essence}")))
}

pub(crate) fn unsupported(words: String) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, Kind::Invalid, words)
}

pub(crate) fn too_large(limit: usize) -> ApiError {
    let words = format!("the request body is over this server's limit of {limit} bytes");
    ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, Kind::TooLarge, words)
}

#[cfg(test)]
mod tests {
    use http_body_util::StreamBody;

    use super::*;
    use crate::uploads::Uploads;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        list.iter()
            .map(|(name, value)| {
                (http::HeaderName::from_static(name), http::HeaderValue::from_static(value))
            })
            .collect()
    }

    async fn status(list: &[(&'static str, &'static str)], body: &'static str) -> u16 {
        let uploads = Uploads::new(1024);
        let read = read(&headers(list), &mut Body::from(body), 4, &mut uploads.hold()).await;
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
        let expected = |kind: &'static str| expect_json(&headers(&[("content-type", kind)]));
        assert!(
            expected("application/json; charset=utf-8").is_ok()
                && expect_json(&headers(&[])).is_ok()
        );
        assert_eq!(expected("text/plain").unwrap_err().status, 415);
        for coding in ["compress", "identity, deflate", "gzip, gzip", "gzip,zstd"] {
            assert_eq!(status(&[("content-encoding", coding)], "{}").await, 415, "{coding}");
        }
        for none in ["identity", "Identity", "IDENTITY", "", "identity, Identity"] {
            assert_eq!(status(&[("content-encoding", none)], "{}").await, 200, "{none:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_comes_is_given_up() {
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, axum::Error>>();
        assert_eq!(too_slow(Body::new(StreamBody::new(never))).await, BEHIND);
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_trickles_in_is_given_up() {
        // A fast beginning earns no credit for later.
        for at_once in [0, 1 << 19] {
            let took = too_slow(trickling(at_once)).await;
            assert!((BEHIND..BEHIND + Duration::from_secs(1)).contains(&took), "{took:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_comes_as_fast_as_it_must_is_read_however_long_it_takes() {
        const LENGTH: usize = SLOWEST as usize;
        let slow = futures_util::stream::unfold(0, |sent| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let frame = http_body::Frame::data(Bytes::from(vec![b' '; LENGTH]));
            (sent < 100).then(|| (Ok::<_, axum::Error>(frame), sent + 1))
        });
        let (uploads, mut body) = (Uploads::new(16 << 20), Body::new(StreamBody::new(slow)));
        let whole = read(&HeaderMap::new(), &mut body, 16 << 20, &mut uploads.hold()).await;
        assert_eq!(whole.unwrap().len(), 100 * LENGTH);
    }

    /// Sends this many bytes at once, then one every seven seconds.
    fn trickling(at_once: usize) -> Body {
        let trickle = futures_util::stream::unfold(at_once, |length| async move {
            if length <= 1 {
                tokio::time::sleep(Duration::from_secs(7)).await;
            }
            let frame = http_body::Frame::data(Bytes::from(vec![b' '; length.max(1)]));
            Some((Ok::<_, axum::Error>(frame), 1))
        });
        Body::new(StreamBody::new(trickle))
    }

    async fn too_slow(mut body: Body) -> Duration {
        let (uploads, began) = (Uploads::new(1 << 20), Instant::now());
        let read = read(&HeaderMap::new(), &mut body, 1 << 20, &mut uploads.hold()).await;
        assert_eq!(read.unwrap_err().status, 408);
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_body_is_read_within_bounds() {
        let began = Instant::now();
        discard(&HeaderMap::new(), Body::from(vec![0; 2 * DISCARDED.0])).await;
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, axum::Error>>();
        discard(&headers(&[("expect", "100-continue")]), Body::new(StreamBody::new(never))).await;
        assert_eq!(began.elapsed(), Duration::ZERO);
        let never = futures_util::stream::pending::<Result<http_body::Frame<Bytes>, axum::Error>>();
        discard(&HeaderMap::new(), Body::new(StreamBody::new(never))).await;
        assert_eq!(began.elapsed(), DISCARDED.1);
    }
}

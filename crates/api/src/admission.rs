//! Whether a key may have a request served now: its limits, and what its clients are told of them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use access::{Admitted, Gauge, Key, Moment, Standing};
use base::{Endpoint, JobId, ModelName};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::error::{ApiError, Kind};

/// A request that its key's limits have taken in. Dropped before the job is submitted, it gives
/// back what it took; afterwards the job's end does so.
pub(crate) struct Admission {
    key: Option<Arc<Key>>,
    job: JobId,
    standing: Standing,
}

impl Admission {
    /// Takes a request in: it has a model read and write about so many tokens.
    ///
    /// # Errors
    /// 429 when one of the key's limits is used up.
    pub(crate) fn new(admitted: &Admitted, job: JobId, tokens: u64) -> Result<Self, ApiError> {
        let Some(key) = &admitted.key else {
            return Ok(Self { key: None, job, standing: Standing::default() });
        };
        let standing = key.reserve(job, tokens, Moment::now())?;
        Ok(Self { key: Some(Arc::clone(key)), job, standing })
    }

    /// The job is submitted: its end settles what it used.
    pub(crate) fn submitted(mut self) -> Standing {
        self.key = None;
        self.standing
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        if let Some(key) = &self.key {
            key.settle(self.job, 0, Moment::now());
        }
    }
}

/// A model that the key is not for.
pub(crate) fn not_allowed(model: &ModelName) -> ApiError {
    let words = format!("the API key may not be used for the model {model}");
    let error = ApiError::new(StatusCode::FORBIDDEN, Kind::Permission, words);
    ApiError { code: Some("model_not_allowed"), param: Some("model".into()), ..error }
}

/// The headers that tell of one limit: how much it is, how much is left, and when it is whole again.
struct Names {
    openai: [HeaderName; 3],
    anthropic: [HeaderName; 3],
}

const REQUESTS: Names = Names {
    openai: [
        HeaderName::from_static("x-ratelimit-limit-requests"),
        HeaderName::from_static("x-ratelimit-remaining-requests"),
        HeaderName::from_static("x-ratelimit-reset-requests"),
    ],
    anthropic: [
        HeaderName::from_static("anthropic-ratelimit-requests-limit"),
        HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
        HeaderName::from_static("anthropic-ratelimit-requests-reset"),
    ],
};

const TOKENS: Names = Names {
    openai: [
        HeaderName::from_static("x-ratelimit-limit-tokens"),
        HeaderName::from_static("x-ratelimit-remaining-tokens"),
        HeaderName::from_static("x-ratelimit-reset-tokens"),
    ],
    anthropic: [
        HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
        HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
        HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
    ],
};

/// Tells where a key stands: in OpenAI's headers, and where Anthropic's clients ask, in theirs too.
pub(crate) fn put_standing(headers: &mut HeaderMap, endpoint: Endpoint, standing: &Standing) {
    for (names, gauge) in [(REQUESTS, standing.requests), (TOKENS, standing.tokens)] {
        let Some(gauge) = gauge else { continue };
        put(headers, names.openai, &gauge, span(gauge.reset));
        if matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens) {
            put(headers, names.anthropic, &gauge, instant(gauge.reset));
        }
    }
}

fn put(headers: &mut HeaderMap, names: [HeaderName; 3], gauge: &Gauge, reset: String) {
    // In one step: a map that grows by one header after the other is made anew twice.
    headers.reserve(6);
    let [limit, remaining, whole] = names;
    headers.insert(limit, gauge.limit.into());
    headers.insert(remaining, gauge.remaining.into());
    // Made here of digits, letters and a few marks.
    if let Ok(reset) = HeaderValue::try_from(reset) {
        headers.insert(whole, reset);
    }
}

/// When it is so much later, to the second, as Anthropic writes it.
fn instant(later: Duration) -> String {
    let instant = jiff::Timestamp::try_from(SystemTime::now() + later).unwrap_or_default();
    jiff::Timestamp::from_second(instant.as_second()).unwrap_or_default().to_string()
}

/// A span of time as OpenAI writes it: `120ms`, `6s`, `1m30s`, `2h0m5s`.
fn span(span: Duration) -> String {
    if span < Duration::from_secs(1) {
        return format!("{}ms", span.as_millis());
    }
    let seconds = span.as_secs() + u64::from(span.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds}s"),
        (0, _) => format!("{minutes}m{seconds}s"),
        _ => format!("{hours}h{minutes}m{seconds}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_written_as_openai_does() {
        let cases = [(0, "0ms"), (120, "120ms"), (6_000, "6s"), (89_001, "1m30s")];
        for (millis, written) in cases {
            assert_eq!(span(Duration::from_millis(millis)), written);
        }
        assert_eq!(span(Duration::from_secs(7_205)), "2h0m5s");
    }

    #[test]
    fn anthropics_clients_are_told_in_their_own_headers_too() {
        let gauge = Gauge { limit: 10, remaining: 4, reset: Duration::from_secs(36) };
        let standing = Standing { requests: Some(gauge), tokens: None };
        let mut headers = HeaderMap::new();
        put_standing(&mut headers, Endpoint::ChatCompletions, &standing);
        assert_eq!(headers["x-ratelimit-remaining-requests"], "4");
        assert_eq!(headers["x-ratelimit-reset-requests"], "36s");
        assert_eq!(headers.len(), 3);
        put_standing(&mut headers, Endpoint::Messages, &standing);
        assert_eq!(headers["anthropic-ratelimit-requests-limit"], "10");
        let reset = headers["anthropic-ratelimit-requests-reset"].to_str().unwrap();
        assert!(reset.parse::<jiff::Timestamp>().is_ok() && !reset.contains('.'), "{reset}");
    }
}

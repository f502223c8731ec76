//! Whether a key may have a request served now: its models, its limits, and what its clients are
//! told of them.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use access::{Admitted, Gauge, Key, Moment, Standing};
use base::{Endpoint, JobId, ModelName};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;

use crate::{
    error::{ApiError, Kind},
    looked::off_the_way,
};

/// A request that its key's limits have taken in. Dropped before the job is submitted, it gives
/// back what it took; afterwards the job's end does so.
pub(crate) struct Admission {
    key: Option<Arc<Key>>,
    job: JobId,
    standing: Standing,
}

impl Admission {
    /// Takes a request in: it asks for `model`, and has it read about `prompt` tokens.
    ///
    /// # Errors
    /// 403 when the key is not for this model, 429 when one of its limits is used up.
    pub(crate) async fn new(
        admitted: &Admitted,
        job: JobId,
        model: &ModelName,
        prompt: u64,
        body: &Bytes,
    ) -> Result<Self, ApiError> {
        let Some(key) = &admitted.key else {
            return Ok(Self { key: None, job, standing: Standing::default() });
        };
        if !key.allows(model.as_str()) {
            return Err(not_allowed(model));
        }
        let written = if key.counts_tokens() { most_written(body).await? } else { 0 };
        let standing = key.reserve(job, prompt.saturating_add(written), Moment::now())?;
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

/// How many tokens a request lets a model write at most, by the names of each API.
#[derive(Default, Deserialize)]
#[serde(default)]
struct MostWritten {
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    max_output_tokens: Option<u64>,
    max_new_tokens: Option<u64>,
}

/// The tokens that an answer may have, where the request says so. What it says in another way than
/// with a number is its provider's to judge.
async fn most_written(body: &Bytes) -> Result<u64, ApiError> {
    let given = body.clone();
    let read = move || serde_json::from_slice::<MostWritten>(&given).unwrap_or_default();
    let most = off_the_way(body.len(), read).await?;
    let named =
        [most.max_tokens, most.max_completion_tokens, most.max_output_tokens, most.max_new_tokens];
    Ok(named.into_iter().flatten().max().unwrap_or(0))
}

/// Tells where a key stands: in OpenAI's headers, and where Anthropic's clients ask, in theirs too.
pub(crate) fn put_standing(headers: &mut HeaderMap, endpoint: Endpoint, standing: &Standing) {
    let gauges = [("requests", standing.requests), ("tokens", standing.tokens)];
    for (what, gauge) in gauges {
        let Some(gauge) = gauge else { continue };
        put(headers, format!("x-ratelimit-limit-{what}"), &gauge.limit.to_string());
        put(headers, format!("x-ratelimit-remaining-{what}"), &gauge.remaining.to_string());
        put(headers, format!("x-ratelimit-reset-{what}"), &span(gauge.reset));
        if matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens) {
            put_anthropic(headers, what, &gauge);
        }
    }
}

fn put_anthropic(headers: &mut HeaderMap, what: &str, gauge: &Gauge) {
    put(headers, format!("anthropic-ratelimit-{what}-limit"), &gauge.limit.to_string());
    put(headers, format!("anthropic-ratelimit-{what}-remaining"), &gauge.remaining.to_string());
    let reset = jiff::Timestamp::try_from(SystemTime::now() + gauge.reset).unwrap_or_default();
    let reset = jiff::Timestamp::from_second(reset.as_second()).unwrap_or_default();
    put(headers, format!("anthropic-ratelimit-{what}-reset"), &reset.to_string());
}

fn put(headers: &mut HeaderMap, name: String, value: &str) {
    // Both are made here of letters, digits and a few marks.
    if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
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

    #[tokio::test]
    async fn the_most_that_may_be_written_is_read_by_each_apis_name() {
        let cases = [
            (r#"{"max_tokens":7}"#, 7),
            (r#"{"max_tokens":7,"max_completion_tokens":9}"#, 9),
            (r#"{"max_output_tokens":5,"messages":[{"max_tokens":99}]}"#, 5),
            (r#"{"max_new_tokens":3}"#, 3),
            (r#"{"max_tokens":-1}"#, 0),
            (r#"{"max_tokens":null}"#, 0),
            ("{}", 0),
        ];
        for (body, most) in cases {
            let body = Bytes::from_static(body.as_bytes());
            assert_eq!(most_written(&body).await.unwrap(), most, "{body:?}");
        }
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

//! Whether a key may have a request served now: checks its limits and reports them in headers.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use access::{Admitted, Charge, Gauge, Key, Moment, Standing};
use base::{Endpoint, JobId, ModelName};
use bytes::BytesMut;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

use crate::error::{ApiError, Kind};

/// A request admitted by its key's limits. If this is dropped before the job is submitted, it
/// returns what it reserved of the limits. Once the job is submitted, its end settles what was used.
pub(crate) struct Admission {
    key: Option<Arc<Key>>,
    job: JobId,
    standing: Standing,
}

impl Admission {
    /// Admits a request. `charge`: an estimate for its prompt and answer. If other servers hold the part of the key's
    /// limits that the request needs, waits for them to free it, at most a second.
    ///
    /// # Errors
    /// 429 when one of the key's limits is used up.
    pub(crate) async fn new(
        admitted: &Admitted,
        job: JobId,
        charge: Charge,
        now: Moment,
    ) -> Result<Self, ApiError> {
        let Some(key) = &admitted.key else {
            return Ok(Self { key: None, job, standing: Standing::default() });
        };
        let standing = key.admit(job, charge, now).await?;
        Ok(Self { key: Some(Arc::clone(key)), job, standing })
    }

    /// The request's key; `None` if the request needs no key.
    pub(crate) fn key(&self) -> Option<Arc<Key>> {
        self.key.clone()
    }

    /// Marks the job as submitted: from now on its end settles the usage.
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

/// The error for a model that the key may not use.
pub(crate) fn not_allowed(model: &ModelName) -> ApiError {
    let words = format!("the API key may not be used for the model {model}");
    let error = ApiError::new(StatusCode::FORBIDDEN, Kind::Permission, words);
    ApiError { code: Some("model_not_allowed"), param: Some("model".into()), ..error }
}

/// The headers of one limit: the limit, the rest, and the time until it is full again.
type Names = [HeaderName; 3];

const REQUESTS: Names = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];

const TOKENS: Names = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

const ANTHROPIC_REQUESTS: Names = [
    HeaderName::from_static("anthropic-ratelimit-requests-limit"),
    HeaderName::from_static("anthropic-ratelimit-requests-remaining"),
    HeaderName::from_static("anthropic-ratelimit-requests-reset"),
];

const ANTHROPIC_TOKENS: Names = [
    HeaderName::from_static("anthropic-ratelimit-tokens-limit"),
    HeaderName::from_static("anthropic-ratelimit-tokens-remaining"),
    HeaderName::from_static("anthropic-ratelimit-tokens-reset"),
];

/// Adds the state of a key's limits: in OpenAI's headers, and on Anthropic's endpoints also in
/// Anthropic's.
pub(crate) fn put_standing(headers: &mut HeaderMap, endpoint: Endpoint, standing: &Standing) {
    let anthropic = matches!(endpoint, Endpoint::Messages | Endpoint::CountTokens);
    let limits = usize::from(standing.requests.is_some()) + usize::from(standing.tokens.is_some());
    if limits == 0 {
        return;
    }
    let lines = limits * if anthropic { 6 } else { 3 };
    // Reserved at once: a map that grows header by header would allocate two times more.
    headers.reserve(lines);
    // One allocation for all values, which share it.
    let mut room = BytesMut::with_capacity(lines * Short::MAX);
    if let Some(gauge) = &standing.requests {
        put(headers, &mut room, REQUESTS, gauge, span(gauge.reset));
    }
    if let Some(gauge) = &standing.tokens {
        put(headers, &mut room, TOKENS, gauge, span(gauge.reset));
    }
    if anthropic {
        put_anthropics(headers, &mut room, standing);
    }
}

fn put_anthropics(headers: &mut HeaderMap, room: &mut BytesMut, standing: &Standing) {
    for (names, gauge) in
        [(ANTHROPIC_REQUESTS, standing.requests), (ANTHROPIC_TOKENS, standing.tokens)]
    {
        if let Some(gauge) = gauge {
            put(headers, room, names, &gauge, Short::default().text(&instant(gauge.reset)));
        }
    }
}

fn put(headers: &mut HeaderMap, room: &mut BytesMut, names: Names, gauge: &Gauge, reset: Short) {
    let [limit, remaining, whole] = names;
    let number = |number| Short::default().number(number);
    for (name, value) in
        [(limit, number(gauge.limit)), (remaining, number(gauge.remaining)), (whole, reset)]
    {
        room.extend_from_slice(value.bytes());
        // The value consists of digits, letters and a few marks, so it is valid.
        if let Ok(value) = HeaderValue::from_maybe_shared(room.split().freeze()) {
            headers.insert(name, value);
        }
    }
}

/// The time that is `later` after now, to the second, as Anthropic writes it.
fn instant(later: Duration) -> String {
    let instant = SystemTime::now().checked_add(later);
    let instant = instant.and_then(|instant| jiff::Timestamp::try_from(instant).ok());
    // Later than any date that can be written.
    let instant = instant.unwrap_or(jiff::Timestamp::MAX);
    jiff::Timestamp::from_second(instant.as_second()).unwrap_or_default().to_string()
}

/// A span of time as OpenAI writes it: `120ms`, `6s`, `1m30s`, `2h0m5s`.
fn span(span: Duration) -> Short {
    let short = Short::default();
    if span < Duration::from_secs(1) {
        return short.number(span.subsec_millis().into()).text("ms");
    }
    let seconds = span.as_secs().saturating_add(u64::from(span.subsec_nanos() > 0));
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let short = match (hours, minutes) {
        (0, 0) => short,
        (0, _) => short.number(minutes).text("m"),
        _ => short.number(hours).text("h").number(minutes).text("m"),
    };
    short.number(seconds).text("s")
}

/// The text of a header, made without an allocation, because every answer needs several. A piece of text that
/// would make it longer than [`Short::MAX`] is dropped; no text written here is that long.
#[derive(Default)]
struct Short {
    bytes: [u8; Self::MAX],
    len: usize,
}

impl Short {
    const MAX: usize = 32;

    fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }

    fn text(self, text: &str) -> Self {
        self.and(text.as_bytes())
    }

    fn number(self, mut number: u64) -> Self {
        // The digits of the longest number, filled from the last.
        let (mut digits, mut first) = ([0; 20], 20);
        loop {
            first -= 1;
            digits[first] = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                return self.and(&digits[first..]);
            }
        }
    }

    fn and(mut self, more: &[u8]) -> Self {
        if let Some(free) = self.bytes.get_mut(self.len..self.len + more.len()) {
            free.copy_from_slice(more);
            self.len += more.len();
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(short: &Short) -> &str {
        std::str::from_utf8(short.bytes()).unwrap()
    }

    #[test]
    fn spans_are_written_as_openai_does() {
        let cases = [(0, "0ms"), (120, "120ms"), (6_000, "6s"), (89_001, "1m30s")];
        for (millis, expected) in cases {
            assert_eq!(written(&span(Duration::from_millis(millis))), expected);
        }
        assert_eq!(written(&span(Duration::from_secs(7_205))), "2h0m5s");
        assert_eq!(written(&span(Duration::MAX)), "5124095576030431h0m15s");
    }

    #[test]
    fn numbers_are_written_whole() {
        for number in [0, 9, 10, 907, u64::MAX] {
            assert_eq!(written(&Short::default().number(number)), number.to_string());
        }
    }

    #[test]
    fn an_overlong_value_is_left_out() {
        let short = Short::default().text(&"x".repeat(31)).number(12).number(3).number(4);
        assert_eq!(written(&short), format!("{}3", "x".repeat(31)));
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

    #[test]
    fn a_time_that_cannot_be_written_is_the_last_one_that_can() {
        assert_eq!(instant(Duration::MAX), "9999-12-30T22:00:00Z");
        let soon = instant(Duration::from_secs(60)).parse::<jiff::Timestamp>().unwrap();
        assert!(soon > jiff::Timestamp::now(), "{soon}");
    }
}

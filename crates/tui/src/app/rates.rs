//! The rates of the last seconds.

use std::collections::VecDeque;

use client::admin::requests::RequestJson;

/// The seconds that are remembered.
pub const SECONDS: usize = 120;

/// The seconds over which a rate is averaged.
const MEAN: usize = 10;

/// The longest answer that is spread over its time, in seconds.
const LONGEST: i64 = SECONDS as i64;

/// A number for each of the last seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Series {
    /// The second of the last value, since 1970.
    last: i64,
    values: VecDeque<f64>,
}

impl Series {
    /// Adds to a second's value. A second that is too old is ignored.
    pub fn add(&mut self, second: i64, value: f64) {
        if let Some(place) = self.place(second) {
            *place += value;
        }
    }

    /// Sets a second's value.
    pub fn set(&mut self, second: i64, value: f64) {
        if let Some(place) = self.place(second) {
            *place = value;
        }
    }

    /// The last `count` values, the oldest first; fewer when there are no more.
    pub fn last(&self, count: usize) -> Vec<f64> {
        self.values.iter().skip(self.values.len().saturating_sub(count)).copied().collect()
    }

    /// The newest value.
    pub fn now(&self) -> f64 {
        self.values.back().copied().unwrap_or_default()
    }

    /// The mean of the last seconds.
    pub fn mean(&self) -> f64 {
        let last = self.last(MEAN);
        last.iter().fold(0.0, |sum, value| sum + value) / last.len().max(1) as f64
    }

    fn place(&mut self, second: i64) -> Option<&mut f64> {
        if self.values.is_empty() || second - self.last > LONGEST || self.last - second > LONGEST {
            // This is the first value, or the clock was set.
            *self = Self { last: second, values: VecDeque::from(vec![0.0; SECONDS]) };
        }
        while self.last < second {
            self.values.push_back(0.0);
            self.values.pop_front();
            self.last += 1;
        }
        let back = usize::try_from(self.last - second).ok()?;
        self.values.iter_mut().rev().nth(back)
    }
}

/// A server's rates of the last seconds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rates {
    /// Requests that ended.
    pub requests: Series,
    /// Tokens that were written.
    pub tokens: Series,
    /// Requests at providers.
    pub in_flight: Series,
}

impl Rates {
    /// Adds empty seconds up to this one.
    pub fn pass(&mut self, second: i64) {
        self.requests.add(second, 0.0);
        self.tokens.add(second, 0.0);
    }

    /// Counts the requests that ended since the last call: `ended` of them, of which `requests` may hold only
    /// the last ones.
    pub fn take(&mut self, second: i64, requests: &[RequestJson], ended: u64) {
        self.requests.add(second, ended as f64);
        // A busy server's list holds only the last requests: each of them also stands for some that are missing.
        let unseen = ended as f64 / requests.len().max(1) as f64;
        for request in requests {
            self.spread(second, request, unseen.max(1.0));
        }
    }

    /// Adds the tokens of an answer to all seconds that it took: they were written then, not at its end.
    fn spread(&mut self, second: i64, request: &RequestJson, times: f64) {
        let tokens = request.completion_tokens.unwrap_or(0) as f64 * times;
        let took = request.total_ms.saturating_sub(request.first_byte_ms.unwrap_or(0)) / 1_000;
        let seconds = i64::try_from(took).unwrap_or(LONGEST).clamp(0, LONGEST - 1) + 1;
        for back in 0..seconds {
            self.tokens.add(second - back, tokens / seconds as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_pass_and_the_oldest_go() {
        let mut series = Series::default();
        series.add(1_000, 3.0);
        series.add(1_002, 1.0);
        series.add(1_000, 1.0);
        assert_eq!(series.last(3), [4.0, 0.0, 1.0]);
        assert!((series.mean() - 0.5).abs() < 1e-9);
        series.add(1_002 + LONGEST, 2.0);
        assert_eq!((series.values.len(), series.now()), (SECONDS, 2.0));
        assert_eq!(series.values.iter().sum::<f64>(), 2.0);
    }

    #[test]
    fn a_clock_that_was_set_starts_anew() {
        let mut series = Series::default();
        series.add(i64::MAX / 2, 1.0);
        series.add(5, 1.0);
        series.add(4, 1.0);
        assert_eq!(series.last(2), [1.0, 1.0]);
    }
}

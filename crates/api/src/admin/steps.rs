//! The last minutes of the server, in memory: a point for each step.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use base::millis;
use protocol::admin::series::{KEPT, Point, STEP_SECS};
use scheduler::{JobEnd, JobFacts, Observer};

/// The most times of one step that its medians are made of; later times of the step are left out.
const MOST_TIMES: usize = 4_096;

/// The last minutes of a server, in memory.
#[derive(Default)]
pub struct RecentSeries {
    open: Mutex<Step>,
    /// The oldest first, [`KEPT`] at most.
    points: Mutex<VecDeque<Point>>,
}

/// The step that is not over yet.
#[derive(Default)]
struct Step {
    requests: u64,
    errors: u64,
    tokens: u64,
    /// Milliseconds, in the order in which the requests ended.
    first_tokens: Vec<u64>,
    first_bytes: Vec<u64>,
}

impl RecentSeries {
    /// The time between two points.
    pub const STEP: Duration = Duration::from_secs(STEP_SECS);

    /// Ends the current step. `at`: the time, in seconds since 1970. `queued`, `in_flight`: the number of jobs that
    /// wait, and of those at providers.
    pub fn end_step(&self, at: u64, queued: usize, in_flight: usize) {
        let step = std::mem::take(&mut *lock(&self.open));
        let point = step.point(at, queued, in_flight);
        let mut points = lock(&self.points);
        if points.len() == KEPT {
            points.pop_front();
        }
        points.push_back(point);
    }

    /// The points of the last `secs` seconds, the oldest first.
    pub(super) fn since(&self, secs: u64) -> Vec<Point> {
        let points = lock(&self.points);
        let wanted = usize::try_from(secs.div_ceil(STEP_SECS)).unwrap_or(usize::MAX);
        points.range(points.len().saturating_sub(wanted)..).copied().collect()
    }
}

impl Observer for RecentSeries {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        lock(&self.open).add(job, ended);
    }
}

impl Step {
    fn add(&mut self, job: &JobFacts, ended: &JobEnd) {
        self.requests += 1;
        self.errors += u64::from(ended.outcome.is_error());
        let tokens = ended.usage.completion_tokens.unwrap_or(0);
        // Saturating, because some backends report absurd numbers.
        self.tokens = self.tokens.saturating_add(tokens);
        // Without a stream the client sees no first token: it gets the answer whole.
        push(&mut self.first_tokens, ended.first_token.filter(|_| job.streaming));
        push(&mut self.first_bytes, ended.first_byte);
    }

    fn point(mut self, at: u64, queued: usize, in_flight: usize) -> Point {
        Point {
            at,
            requests: self.requests,
            errors: self.errors,
            tokens: self.tokens,
            first_token_ms: median(&mut self.first_tokens),
            first_byte_ms: median(&mut self.first_bytes),
            queued: queued as u64,
            in_flight: in_flight as u64,
        }
    }
}

fn push(times: &mut Vec<u64>, time: Option<Duration>) {
    if times.len() < MOST_TIMES {
        times.extend(time.map(millis));
    }
}

/// The middle time; of an even number of times the smaller of the two in the middle.
fn median(times: &mut [u64]) -> Option<u64> {
    let middle = times.len().checked_sub(1)? / 2;
    Some(*times.select_nth_unstable(middle).1)
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::{Instant, SystemTime};

    use base::{Endpoint, JobId, Scope};
    use http::StatusCode;
    use scheduler::{Outcome, Usage};

    use super::*;

    fn job(streaming: bool) -> JobFacts {
        JobFacts {
            id: JobId::from_random(1),
            scope: Scope::server(),
            model: "m".into(),
            endpoint: Endpoint::ChatCompletions,
            key: "k-1".into(),
            path: "/v1/chat/completions".into(),
            streaming,
            lent: None,
            trace: None,
        }
    }

    fn ended(outcome: Outcome, ms: u64) -> JobEnd {
        JobEnd {
            outcome,
            at: (Instant::now(), SystemTime::now()),
            provider: None,
            provider_name: None,
            served_model: None,
            usage: Usage { completion_tokens: Some(5), ..Usage::default() },
            bytes: 9,
            queued: Duration::ZERO,
            load_wait: None,
            first_byte: Some(Duration::from_millis(ms)),
            first_token: Some(Duration::from_millis(ms + 1)),
            total: Duration::from_millis(ms),
            requeues: 0,
            breaks: Vec::new(),
            cost: None,
        }
    }

    fn answered(ms: u64) -> JobEnd {
        ended(Outcome::Answered(StatusCode::OK), ms)
    }

    #[test]
    fn a_step_has_what_ended_in_it() {
        let series = RecentSeries::default();
        series.ended(&job(true), &answered(10));
        series.ended(&job(true), &ended(Outcome::ClientGone, 30));
        series.ended(&job(false), &ended(Outcome::Answered(StatusCode::BAD_REQUEST), 20));
        series.end_step(100, 3, 4);
        series.end_step(102, 0, 0);
        let expected = Point {
            at: 100,
            requests: 3,
            errors: 1,
            tokens: 15,
            first_token_ms: Some(11),
            first_byte_ms: Some(20),
            queued: 3,
            in_flight: 4,
        };
        let quiet = Point { at: 102, ..Point::default() };
        assert_eq!(series.since(u64::MAX), [expected, quiet]);
        assert_eq!(series.since(2), [quiet]);
        assert_eq!(series.since(3), [expected, quiet], "a step that has begun counts");
        assert_eq!(series.since(0), []);
    }

    #[test]
    fn the_series_and_the_times_of_a_step_are_bounded() {
        let series = RecentSeries::default();
        for at in 0..=KEPT as u64 {
            series.end_step(at, 0, 0);
        }
        let points = series.since(u64::MAX);
        assert_eq!((points.len(), points[0].at), (KEPT, 1));
        // The half that is larger comes beyond the bound.
        for ms in 0..2 * MOST_TIMES as u64 {
            series.ended(&job(true), &answered(ms));
        }
        series.end_step(0, 0, 0);
        let last = *series.since(2).first().unwrap();
        assert_eq!(last.requests, 2 * MOST_TIMES as u64);
        assert_eq!(last.first_byte_ms, Some(MOST_TIMES as u64 / 2 - 1));
    }
}

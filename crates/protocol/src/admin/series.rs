//! The JSON of `/admin/series`: the last minutes of a server, as a series of points.

use serde::{Deserialize, Serialize};

/// The time between two points, in seconds.
pub const STEP_SECS: u64 = 2;

/// Points that a server remembers: a quarter of an hour.
pub const KEPT: usize = 450;

/// Answer of `GET /admin/series?since=SECONDS`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The time between two points, in seconds.
    pub step_secs: u64,
    /// The oldest first, at most [`KEPT`]. A step is there once it is over.
    pub points: Vec<Point>,
}

/// One step. What ended in it counts in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Point {
    /// The end of the step, in seconds since 1970 by the server's clock.
    pub at: u64,
    /// Requests that became jobs and ended.
    pub requests: u64,
    /// Those of them that failed: without an answer, or with one of status 400 or more. That the client left is no
    /// failure.
    pub errors: u64,
    /// Tokens of the answers that ended, as far as known.
    pub tokens: u64,
    /// The median of the milliseconds from a request's acceptance to the first text of its answer; null if no answer
    /// with text ended.
    pub first_token_ms: Option<u64>,
    /// The median of the milliseconds from a request's acceptance to the head of its answer; null if no answer ended.
    pub first_byte_ms: Option<u64>,
    /// Requests that waited for a provider at the end of the step.
    pub queued: u64,
    /// Requests at providers at the end of the step.
    pub in_flight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_points_are_a_quarter_of_an_hour() {
        assert_eq!(KEPT as u64 * STEP_SECS, 15 * 60);
        let point = serde_json::to_value(Point { at: 7, ..Point::default() }).unwrap();
        assert_eq!((&point["at"], &point["first_token_ms"]), (&7.into(), &serde_json::Value::Null));
    }
}

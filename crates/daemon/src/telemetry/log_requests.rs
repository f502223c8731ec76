//! `GET /admin/logs`: the newest lines of the log, and with `follow` further lines as they come.

use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use api::{Api, ApiError, admin, error::Kind};
use axum::{
    Json, Router,
    extract::{Request, State},
    response::{IntoResponse, Response},
    routing::get,
};
use bytes::Bytes;
use futures_util::stream;
use http::StatusCode;
use protocol::admin::logs::{LogEvent, LogLevel, LogList};
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, watch},
    time::{sleep, timeout},
};
use url::form_urlencoded;

use super::newest::{Batch, NEWEST, Newest};
use crate::json_lines::{self, line};

/// The lines of an answer, unless the query sets another number.
const USUAL: usize = 100;

/// How many clients may follow at once.
const FOLLOWERS: usize = 16;

/// The most lines that are sent in one piece.
const PIECE: usize = 500;

/// How long lines gather before they are sent. At low levels, to send lines makes new lines. This pause keeps that
/// from going on without end.
const GATHER: Duration = Duration::from_millis(100);

/// How often a follower gets a sign of life while there are no new lines.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The places of followers.
static PLACES: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(FOLLOWERS)));

pub(crate) fn router(api: Api) -> Router {
    Router::new().route("/admin/logs", get(show)).with_state(api)
}

async fn show(State(api): State<Api>, request: Request) -> Result<Response, ApiError> {
    admin::operator(&api, request.headers())?;
    let query = Query::parse(request.uri().query().unwrap_or_default())?;
    if query.follow {
        return follow(&query, place(&PLACES)?, api.draining());
    }
    Ok(Json(LogList { lines: query.batch(&NEWEST).lines }).into_response())
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Query {
    after: Option<u64>,
    limit: usize,
    level: LogLevel,
    follow: bool,
}

impl Query {
    fn parse(query: &str) -> Result<Self, ApiError> {
        let mut all = Self { after: None, limit: USUAL, level: LogLevel::Trace, follow: false };
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            all.set(&name, &value).ok_or_else(|| {
                let words = format!(
                    "{name}={value} is no parameter of this: only after=N, limit=N, level=LEVEL \
                     and follow=true are"
                );
                ApiError::new(StatusCode::BAD_REQUEST, Kind::Invalid, words)
            })?;
        }
        Ok(all)
    }

    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "after" => self.after = Some(value.parse().ok()?),
            "limit" => self.limit = value.parse().ok()?,
            "level" => self.level = value.parse().ok()?,
            "follow" => self.follow = value.parse().ok()?,
            _ => return None,
        }
        Some(())
    }

    fn batch(&self, newest: &Newest) -> Batch {
        match self.after {
            Some(after) => newest.after(after, self.limit.max(1), self.level),
            None => newest.last(self.limit, self.level),
        }
    }
}

fn place(places: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, ApiError> {
    Arc::clone(places).try_acquire_owned().map_err(|_| {
        let words = format!("{FOLLOWERS} follow this log already: end one of them first");
        ApiError::new(StatusCode::SERVICE_UNAVAILABLE, Kind::Overload, words)
    })
}

fn follow(
    query: &Query,
    permit: OwnedSemaphorePermit,
    draining: watch::Receiver<bool>,
) -> Result<Response, ApiError> {
    let follower = Follower::new(&NEWEST, query, draining);
    let lines = stream::unfold((follower, permit), async |(mut follower, permit)| {
        let piece = follower.next().await?;
        Some((Ok::<_, std::convert::Infallible>(piece), (follower, permit)))
    });
    Ok(json_lines::response(lines))
}

/// A client that follows the log. It has a position in the lines, and no queue of its own.
struct Follower {
    newest: &'static Newest,
    level: LogLevel,
    /// The number of the last line that it has come to.
    position: u64,
    /// The lines that are sent first.
    first: Batch,
    changes: watch::Receiver<u64>,
    draining: watch::Receiver<bool>,
    is_over: bool,
}

impl Follower {
    fn new(newest: &'static Newest, query: &Query, draining: watch::Receiver<bool>) -> Self {
        let changes = newest.watch();
        let first = query.batch(newest);
        let position = first.last;
        Self { newest, level: query.level, position, first, changes, draining, is_over: false }
    }

    /// The next lines, or a sign of life; `None` once the server drains.
    async fn next(&mut self) -> Option<Bytes> {
        let first = std::mem::take(&mut self.first);
        if !first.is_empty() {
            return Some(piece(first));
        }
        if self.is_over {
            return None;
        }
        let _news_or_not = timeout(SIGN_OF_LIFE, self.news()).await;
        let batch = self.newest.after(self.position, PIECE, self.level);
        self.position = batch.last;
        Some(if batch.is_empty() { Bytes::from_static(b"\n") } else { piece(batch) })
    }

    /// Waits for lines after the position, or for the drain, and then for more lines to gather.
    async fn news(&mut self) {
        let position = self.position;
        tokio::select! {
            _ = self.changes.wait_for(|last| *last > position) => {}
            // The sender is gone only with the server.
            _ = self.draining.wait_for(|draining| *draining) => self.is_over = true,
        }
        sleep(GATHER).await;
    }
}

fn piece(Batch { lines, missed, .. }: Batch) -> Bytes {
    let gap = (missed > 0).then_some(LogEvent::Missed { missed });
    let mut piece = Vec::new();
    for event in gap.into_iter().chain(lines.into_iter().map(LogEvent::Line)) {
        // A line can always be written as JSON.
        piece.extend_from_slice(&line(&event).unwrap_or_default());
    }
    piece.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaked() -> &'static Newest {
        Box::leak(Box::default())
    }

    fn query(text: &str) -> Query {
        Query::parse(text).unwrap_or_else(|error| panic!("{}", error.message))
    }

    fn texts(piece: &Bytes) -> Vec<String> {
        let lines = std::str::from_utf8(piece).unwrap().lines().filter(|line| !line.is_empty());
        let text = |line| match serde_json::from_str(line).unwrap() {
            LogEvent::Line(line) => line.text,
            LogEvent::Missed { missed } => format!("missed {missed}"),
        };
        lines.map(text).collect()
    }

    #[test]
    fn a_wrong_parameter_is_named() {
        for text in ["limit=x", "level=loud", "follow=perhaps", "since=7d"] {
            let error = Query::parse(text).unwrap_err();
            assert!(error.message.contains(text), "{}", error.message);
        }
        let read = query("after=7&limit=3&level=WARN&follow=true");
        let expected = Query { after: Some(7), limit: 3, level: LogLevel::Warn, follow: true };
        assert_eq!(read, expected);
    }

    #[test]
    fn the_places_of_followers_are_bounded_and_freed() {
        let places = Arc::new(Semaphore::new(1));
        let Ok(first) = place(&places) else { panic!("there is no place") };
        assert_eq!(place(&places).unwrap_err().status, StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(place(&places).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_gets_the_last_lines_then_the_new_ones_and_ends_with_the_drain() {
        let (newest, drain) = (leaked(), watch::Sender::new(false));
        ["a", "b", "c"].iter().for_each(|text| newest.add(LogLevel::Info, text));
        let mut follower = Follower::new(newest, &query("limit=2"), drain.subscribe());
        assert_eq!(texts(&follower.next().await.unwrap()), ["b", "c"]);
        newest.add(LogLevel::Info, "d");
        assert_eq!(texts(&follower.next().await.unwrap()), ["d"]);
        assert_eq!(follower.next().await.unwrap(), "\n", "a sign of life");
        newest.add(LogLevel::Info, "stopping");
        drain.send_replace(true);
        assert_eq!(texts(&follower.next().await.unwrap()), ["stopping"]);
        while let Some(piece) = follower.next().await {
            assert!(texts(&piece).is_empty());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_follower_that_is_too_slow_learns_what_it_missed() {
        let newest = leaked();
        let draining = watch::Sender::new(false);
        let mut follower = Follower::new(newest, &query("limit=0"), draining.subscribe());
        let long = "x".repeat(10_000);
        (0..300).for_each(|_| newest.add(LogLevel::Info, &long));
        let read = texts(&follower.next().await.unwrap());
        assert!(read[0].starts_with("missed ") && read.len() > 50, "{}", read[0]);
        let mut late = Follower::new(newest, &query("after=1"), draining.subscribe());
        let first = texts(&late.next().await.unwrap());
        assert!(first[0].starts_with("missed ") && first.len() > 50, "{}", first[0]);
    }
}

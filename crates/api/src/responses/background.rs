//! Responses that are made in the background, while no client waits. Each is made by a task of its own, which writes
//! into the store how far the response has come.
//!
//! The store decides. A client that cancels or deletes a response, perhaps at another server, changes it in the store.
//! The task that makes the response looks there every few seconds; if it runs at the same server, it
//! learns of the change immediately.

use std::{pin::pin, time::Duration};

use access::Moment;
use axum::response::Response;
use base::JobId;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::BodyExt;
use protocol::{failure::Failure as BackendFailure, json};
use scheduler::Job;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};
use translate::Context;

use super::{
    caller::Reply, failure, keeping::Keeping, members::Members, plan::Plan, running::Place,
};
use crate::{
    answer::{AdmittedJob, answer},
    blocking::{blocking, off_thread},
    error::{ApiError, Kind},
    head,
    shape::Shape,
    state::Api,
};

/// How often a task notes in the store that it is still at work, and reads there whether it is to go on.
const BEAT: Duration = Duration::from_secs(5);

/// How often a task looks whether a provider has begun its response. A response that ends before the first look is
/// never shown as in progress.
const LOOK: Duration = Duration::from_millis(250);

/// If nothing was noted of a running response for this long, it is lost: its server has died.
const LOST: Duration = Duration::from_secs(60);

/// How much of an answer's end is searched for the reason of a failure, in bytes.
const MAX_REASON: usize = 16 * 1024;

/// Begins a response in the background. Its client gets the response as it is now, or its events as a stream.
///
/// # Errors
/// 429 when too many responses are being made, 503 when the response cannot be stored.
pub(crate) async fn begin(
    api: &Api,
    keeping: &Keeping,
    accepted: AdmittedJob,
) -> Result<Response, ApiError> {
    let Some(plan) = accepted.plan.clone() else {
        return Err(failure::not_kept_here("background"));
    };
    let place = keeping.background().place(plan.id(), &plan.owner, plan.stream)?;
    let (shape, id) = (accepted.shape, accepted.job.id);
    let queued = waiting(&accepted.job, &plan).await?;
    let record = plan.record(queued.clone(), Some(Moment::now().wall_ms));
    let keeper = keeping.clone();
    blocking(move || keeper.save(&record)).await??;
    let log = place.log.clone();
    let task = Task { shape, api: api.clone(), keeping: keeping.clone(), plan, place };
    tokio::spawn(task.run(accepted, queued.clone()));
    let reply = match log {
        Some(log) => Reply::Events(log.reader(None, api.limits().keepalive)),
        None => Reply::Json(queued),
    };
    Ok(reply.response(shape, id))
}

/// The response before its answer has begun.
fn waiting(job: &Job, plan: &Plan) -> impl Future<Output = Result<String, ApiError>> + use<> {
    let request = job.request.body.clone();
    let context = Context {
        id: job.id.digits(),
        created: plan.created / 1000,
        model: job.request.model.to_string(),
        streaming: plan.stream,
    };
    let state = plan.state.clone();
    off_thread(request.len(), move || {
        let waiting = translate::responses_chat::waiting(&context, &request);
        state.put(&waiting).unwrap_or(waiting)
    })
}

/// The task that makes one response.
struct Task {
    shape: &'static dyn Shape,
    api: Api,
    keeping: Keeping,
    plan: Box<Plan>,
    place: Place,
}

/// Why a response failed.
struct Reason {
    code: String,
    words: String,
}

impl Task {
    async fn run(self, accepted: AdmittedJob, queued: String) {
        let job = accepted.job.id;
        let making = async {
            let mut making = pin!(self.make(accepted));
            tokio::select! {
                // `make` first: its first poll submits the job, and `begun` asks the scheduler about that job.
                biased;
                reason = &mut making => return reason,
                () = self.begun(job) => {}
            }
            let begun = with_status(&queued, "in_progress");
            self.note(Some(begun), Some(Moment::now().wall_ms)).await;
            making.await
        };
        let mut making = pin!(making);
        let reason = tokio::select! {
            reason = &mut making => reason,
            // The response's own end looks the same in the store, and its last event has yet to reach the log.
            () = self.stopped() => match self.plan.is_ending() {
                true => making.await,
                false => return,
            },
        };
        // A response that has ended properly has its end in the store already, which this does not change.
        let reason = reason.unwrap_or_else(Reason::none);
        let failed = reason.put(&queued);
        self.note(Some(failed), None).await;
    }

    /// Makes the response. Returns why it failed, if a reason is known.
    async fn make(&self, accepted: AdmittedJob) -> Option<Reason> {
        let answered = answer(&self.api, accepted).await;
        let response = match answered {
            Ok(response) => response,
            Err(error) => {
                if let Some(log) = &self.place.log {
                    log.add(&self.shape.error_event(&error, head::new_id(), 0).into());
                }
                return Some(Reason::of(&error));
            }
        };
        self.read(response).await
    }

    /// Returns when a provider has the job.
    async fn begun(&self, job: JobId) {
        loop {
            sleep(LOOK).await;
            if self.api.scheduler().wait(job).is_none() {
                return;
            }
        }
    }

    /// Reads the answer to its end; the answer's body stores the response by itself. Returns why it failed, if a
    /// reason is known.
    async fn read(&self, response: Response) -> Option<Reason> {
        let (status, mut body) = (response.status(), response.into_body());
        let mut last = Vec::new();
        while let Some(frame) = body.frame().await {
            match frame.map(http_body::Frame::into_data) {
                Ok(Ok(chunk)) => {
                    keep_end(&mut last, &chunk);
                    if let Some(log) = &self.place.log {
                        log.add(&chunk);
                    }
                }
                Ok(Err(_)) => {}
                Err(error) => return Some(Reason::broken(error.to_string())),
            }
        }
        Reason::found(status, &last)
    }

    /// Returns when the response is no longer to be made, because it was cancelled or deleted.
    async fn stopped(&self) {
        let mut beats = interval_at(Instant::now() + BEAT, BEAT);
        beats.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.place.end.notified() => return,
                _ = beats.tick() => {}
            }
            if !self.note(None, Some(Moment::now().wall_ms)).await {
                return;
            }
        }
    }

    /// Notes in the store how far the response has come. Returns whether it is still to be made.
    async fn note(&self, response: Option<String>, beat: Option<u64>) -> bool {
        let (owner, id) = (self.plan.owner.clone(), self.plan.id().to_owned());
        let noting = self
            .keeping
            .ask(move |store| store.change_running(&owner, &id, response.as_deref(), beat));
        noting.await.unwrap_or_else(|error| {
            tracing::warn!(id = self.plan.id(), problem = %error.message, "how far a response is cannot be noted");
            true
        })
    }
}

/// Adds a chunk to the last bytes of an answer, and drops what is over [`MAX_REASON`].
fn keep_end(last: &mut Vec<u8>, chunk: &Bytes) {
    let from = chunk.len().saturating_sub(MAX_REASON);
    last.extend_from_slice(&chunk[from..]);
    let over = last.len().saturating_sub(MAX_REASON);
    last.drain(..over);
}

impl Reason {
    fn of(error: &ApiError) -> Self {
        let code = error.code.unwrap_or("server_error").to_owned();
        Self { code, words: error.message.clone().into_owned() }
    }

    fn broken(words: String) -> Self {
        Self { code: "server_error".to_owned(), words }
    }

    fn none() -> Self {
        Self::broken("the answer ended without the response's end".to_owned())
    }

    /// The reason that the end of an answer gives: a provider's refusal, or the last event of a stream.
    fn found(status: StatusCode, last: &[u8]) -> Option<Self> {
        if !status.is_success() {
            let BackendFailure { message, code, .. } = BackendFailure::read(last);
            let code = code.unwrap_or_else(|| Kind::of_status(status).openai().to_owned());
            return Some(Self { code, words: message });
        }
        let text = String::from_utf8_lossy(last);
        let mut data = text.lines().rev().filter_map(|line| line.strip_prefix("data:"));
        data.find_map(|data| {
            let event = Members::read(data.trim())?;
            let is_error = event.text("type").as_deref() == Some("error");
            let code = event.text("code").unwrap_or_else(|| "server_error".to_owned());
            is_error.then(|| event.text("message").map(|words| Self { code, words })).flatten()
        })
    }

    /// The response, failed for this reason.
    fn put(&self, response: &str) -> String {
        let error = format!(
            r#"{{"code":{},"message":{}}}"#,
            json::write(&self.code),
            json::write(&self.words)
        );
        let Some(members) = Members::read(response) else { return response.to_owned() };
        members.with(&[("status", Some("\"failed\"")), ("error", Some(error.as_str()))])
    }
}

/// The response, with this status.
pub(crate) fn with_status(response: &str, status: &str) -> String {
    let status = json::write(&status);
    match Members::read(response) {
        Some(members) => members.with(&[("status", Some(status.as_str()))]),
        None => response.to_owned(),
    }
}

/// The response as failed, if nothing was noted of it for [`LOST`]: the server that made it has died.
pub(crate) fn lost(response: &str, beat: u64, now_ms: u64) -> Option<String> {
    let is_lost = now_ms.saturating_sub(beat) > base::millis(LOST);
    let words = "the server that made this response has stopped before its end: ask again";
    is_lost.then(|| Reason::broken(words.to_owned()).put(response))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_an_answer_is_looked_through() {
        let mut last = Vec::new();
        keep_end(&mut last, &Bytes::from(vec![b'a'; 2 * MAX_REASON]));
        keep_end(&mut last, &Bytes::from_static(b"bc"));
        assert!(last.len() == MAX_REASON && last.ends_with(b"aabc"));
    }

    #[test]
    fn a_failure_tells_its_reason() {
        let event = b"event: error\ndata: {\"type\":\"error\",\"code\":\"worker_lost\",\"message\":\"gone\"}\n\n";
        let reason = Reason::found(StatusCode::OK, event).unwrap();
        let put = reason.put(r#"{"id":"r","status":"queued","error":null}"#);
        assert_eq!(
            put,
            r#"{"id":"r","status":"failed","error":{"code":"worker_lost","message":"gone"}}"#
        );
        assert!(Reason::found(StatusCode::OK, b"data: [DONE]\n\n").is_none());
        let refused = br#"{"error":{"message":"no such tool","code":"bad_tool"}}"#;
        let reason = Reason::found(StatusCode::BAD_REQUEST, refused).unwrap();
        assert_eq!((&*reason.code, &*reason.words), ("bad_tool", "no such tool"));
    }

    #[test]
    fn a_response_of_which_nothing_is_heard_is_lost() {
        let running = r#"{"status":"in_progress","error":null}"#;
        assert_eq!(lost(running, 1_000, 61_000), None);
        assert!(lost(running, 1_000, 61_001).unwrap().contains("\"failed\""));
        assert_eq!(lost(running, 9_000, 1_000), None, "a clock that went back");
    }
}

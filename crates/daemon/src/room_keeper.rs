//! Reports jobs to the watchers of rooms, and ends unused rooms.

use std::{sync::Arc, time::Duration};

use access::Moment;
use api::{ApiError, MessageJobs};
use base::{Endpoint, ProviderId, millis};
use protocol::room::{Protocol, types::AnswerMetrics};
use rooms::{JobEnded, JobStarted, Room, Rooms, activity::How};
use scheduler::{JobEnd, JobFacts, Observer, Outcome, Scheduler};
use store::AgeClock;
use tokio_util::sync::CancellationToken;

use crate::{rounds::Rounds, storage::aged};

/// How often silent participants and unused rooms are looked for.
const SWEEP: Duration = Duration::from_secs(10);

/// Reports the jobs of a room to its watchers.
pub(crate) struct RoomEvents {
    rooms: Rooms,
    by_message: Arc<MessageJobs>,
}

impl RoomEvents {
    /// `by_message`: the jobs that a message `llm:request` asked for. Their tokens and their end are reported by the
    /// reader of the answer.
    pub(crate) fn new(rooms: Rooms, by_message: Arc<MessageJobs>) -> Self {
        Self { rooms, by_message }
    }

    /// The room of a job. For the server's own jobs, which have none, this is cheap.
    fn room(&self, job: &JobFacts) -> Option<Arc<Room>> {
        self.rooms.of_scope(&job.scope)
    }
}

impl Observer for RoomEvents {
    fn assigned(&self, job: &JobFacts, provider: ProviderId, _: Duration) {
        let Some(room) = self.room(job) else { return };
        let started = JobStarted {
            job: job.id,
            provider,
            model: job.model.to_string(),
            protocol: protocol_of(job.endpoint),
            message: self.by_message.request(job.id),
        };
        room.started(&started, Moment::now().wall_ms);
        if started.message.is_some()
            && let Some(participant) = room.holder(job.id)
        {
            self.by_message.given(job.id, participant);
        }
    }

    fn requeued(&self, job: &JobFacts) {
        if let Some(room) = self.room(job) {
            room.requeued(job.id);
        }
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        let Some(room) = self.room(job) else { return };
        let now = Moment::of(ended.at.0, ended.at.1);
        room.ended(&JobEnded { job: job.id, how: how(job, ended) }, now.wall_ms);
    }
}

fn protocol_of(endpoint: Endpoint) -> Protocol {
    match endpoint {
        Endpoint::Responses => Protocol::OpenResponses,
        _ => Protocol::ChatCompletions,
    }
}

fn how(job: &JobFacts, ended: &JobEnd) -> How {
    match &ended.outcome {
        Outcome::Answered(_) => How::Answered(metrics(ended)),
        Outcome::ClientGone => How::ClientGone,
        Outcome::Failed(failure) => How::Failed {
            begun: ended.first_byte.is_some(),
            error: ApiError::of_failure(failure, job.model.as_str()).message.into_owned(),
        },
    }
}

fn metrics(ended: &JobEnd) -> AnswerMetrics {
    let first = ended.first_byte.unwrap_or(ended.total);
    let usage = ended.usage;
    AnswerMetrics::new(
        millis(first),
        millis(ended.total),
        usage.prompt_tokens,
        usage.completion_tokens,
    )
}

/// Runs until `stop`.
pub(crate) async fn keep(
    rooms: Rooms,
    ages: Arc<AgeClock>,
    scheduler: Scheduler,
    stop: CancellationToken,
) {
    let mut rounds = Rounds::new(SWEEP, stop);
    while rounds.next().await {
        let (rooms, ages) = (rooms.clone(), Arc::clone(&ages));
        let sweep = move || {
            let now = Moment::now();
            rooms.sweep(now.wall_ms, aged(&ages, now))
        };
        let swept = tokio::task::spawn_blocking(sweep).await;
        match swept {
            Ok(ended) => ended.iter().for_each(|scope| scheduler.close(scope)),
            Err(error) => tracing::error!(%error, "rooms are not looked after"),
        }
    }
}

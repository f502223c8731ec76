//! Ends expired keys and sessions of the page, writes when they were last used, and settles what jobs used with their
//! keys.

use std::time::Duration;

use access::{Charge, Keys, Moment};
use scheduler::{JobEnd, JobFacts, Observer, Scheduler};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::rounds::Rounds;

/// How often expired keys are looked for.
const LOOK: Duration = Duration::from_secs(1);

/// How often the last use of keys is written.
const WRITE: Duration = Duration::from_secs(30);

/// Replaces a key's reservation for a job by what the job used.
pub(crate) struct KeySettlement(pub(crate) Keys);

impl Observer for KeySettlement {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        let read = ended.usage.prompt_tokens.unwrap_or(0);
        let written = ended.usage.completion_tokens.unwrap_or(0);
        let (tokens, money) = (read.saturating_add(written), ended.cost.unwrap_or_default());
        let now = Moment::of(ended.at.0, ended.at.1);
        self.0.settle(&job.key, job.id, Charge { tokens, money }, now);
    }
}

/// Runs until `stop`.
pub(crate) async fn keep(keys: Keys, scheduler: Scheduler, stop: CancellationToken) {
    let mut rounds = Rounds::new(LOOK, stop);
    let mut written = Instant::now();
    while rounds.next().await {
        let now = Moment::now();
        end_expired(&keys, &scheduler, now);
        if written.elapsed() >= WRITE || rounds.is_last() {
            written = Instant::now();
            write(&keys, now).await;
        }
    }
}

fn end_expired(keys: &Keys, scheduler: &Scheduler, now: Moment) {
    for id in keys.end_expired(now) {
        tracing::info!(key = %id, "a key has expired");
        scheduler.revoke(&id);
    }
    for id in keys.page_sessions().end_expired(now) {
        tracing::info!(page_session = %id, "a session of the page has expired");
        scheduler.sign_out(&id);
    }
}

/// Writes when keys and sessions of the page were last used. Deletes the sessions that had expired at `now`, whose
/// connections have been ended.
async fn write(keys: &Keys, now: Moment) {
    let keys = keys.clone();
    let save = move || {
        keys.save_last_used()?;
        keys.page_sessions().save_last_used()?;
        keys.page_sessions().forget_expired(now)
    };
    let saved = tokio::task::spawn_blocking(save).await;
    if let Ok(Err(error)) = saved {
        let error = &error as &dyn std::error::Error;
        tracing::warn!(error, "the last use of keys is not written");
    }
}

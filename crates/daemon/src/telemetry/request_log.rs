//! One log line for each job, when it has ended.

use base::millis;
use scheduler::{JobEnd, JobFacts, Observer};

/// Writes the request log.
pub(crate) struct RequestLog;

impl Observer for RequestLog {
    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        let provider = ended.provider.map(tracing::field::display);
        // Of a job of another server the line has that server's id, so that one search finds both.
        let id = job.lent.as_ref().map_or(job.id, |lent| lent.job);
        tracing::info!(
            target: "request",
            request_id = %id,
            path = &*job.path,
            model = job.model.as_str(),
            key = job.key.as_str(),
            stream = job.streaming,
            outcome = ended.outcome.as_str(),
            status = ended.outcome.status(),
            worker = provider,
            lent_to = job.lent.as_ref().map(|lent| &*lent.home),
            requeues = ended.requeues,
            queued_ms = millis(ended.queued),
            load_wait_ms = ended.load_wait.map(millis),
            first_byte_ms = ended.first_byte.map(millis),
            first_token_ms = ended.first_token.map(millis),
            total_ms = millis(ended.total),
            bytes = ended.bytes,
            prompt_tokens = ended.usage.prompt_tokens,
            completion_tokens = ended.usage.completion_tokens,
        );
    }
}

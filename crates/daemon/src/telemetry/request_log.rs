//! The request log: a line for each job when it has ended, and one for each break of an answer.

use base::millis;
use scheduler::{Break, JobEnd, JobFacts, Observer};

/// Writes the request log.
pub(crate) struct RequestLog;

impl Observer for RequestLog {
    fn broke_off(&self, job: &JobFacts, broken: &Break) {
        tracing::info!(
            target: "request",
            request_id = %job.id,
            outcome = broken.outcome.as_str(),
            from = &*broken.from,
            to = broken.to.as_deref(),
            characters = broken.delivered.characters,
            why = broken.why.as_deref(),
            "an answer broke off"
        );
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        let provider = ended.provider.map(tracing::field::display);
        // For a job of a fellow, this is the fellow's id of the job, so that one search finds the lines of both
        // servers.
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
            resumes = Some(ended.breaks.len()).filter(|count| *count > 0),
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

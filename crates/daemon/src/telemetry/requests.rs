//! One log line for each job, when it has ended.

use scheduler::{Ended, JobFacts, Observer, Outcome};

/// Writes the request log.
pub struct RequestLog;

impl Observer for RequestLog {
    fn ended(&self, job: &JobFacts, ended: &Ended) {
        let provider = ended.provider.map(tracing::field::display);
        let status = match &ended.outcome {
            Outcome::Answered(status) => Some(status.as_u16()),
            _ => None,
        };
        tracing::info!(
            target: "request",
            request_id = %job.id,
            path = &*job.path,
            model = job.model.as_str(),
            key = job.key.as_str(),
            stream = job.streaming,
            outcome = outcome(&ended.outcome),
            status,
            worker = provider,
            requeues = ended.requeues,
            queued_ms = millis(ended.queued),
            first_byte_ms = ended.first_byte.map(millis),
            total_ms = millis(ended.total),
            bytes = ended.bytes,
            prompt_tokens = ended.usage.prompt_tokens,
            completion_tokens = ended.usage.completion_tokens,
        );
    }
}

/// An outcome in one word, for logs and metrics.
pub fn outcome(outcome: &Outcome) -> &'static str {
    use scheduler::Ending;
    match outcome {
        Outcome::Answered(status) if status.is_server_error() => "backend_error",
        Outcome::Answered(status) if status.is_client_error() => "backend_refused",
        Outcome::Answered(_) => "answered",
        Outcome::ClientGone => "client_gone",
        Outcome::Failed(failure) => match failure.ending {
            Ending::QueueFull { .. } => "queue_full",
            Ending::NoProvider => "no_provider",
            Ending::TooLarge { .. } => "too_large",
            Ending::QueueTimeout => "queue_timeout",
            Ending::RequestTimeout => "request_timeout",
            Ending::IdleTimeout => "idle_timeout",
            Ending::ClientStalled => "client_stalled",
            Ending::RequeueExhausted => "requeue_exhausted",
            Ending::ProviderLost => "worker_lost",
            Ending::ProviderFailed => "worker_failed",
            Ending::NotServed => "not_served",
            Ending::Untranslatable => "not_translatable",
            Ending::Revoked => "key_revoked",
            Ending::ShuttingDown => "shutting_down",
        },
    }
}

fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! The spans of jobs that are traced: the request, its waits, and its attempts at providers. They have no prompts and
//! no answers.
//!
//! A server that traces nothing does not have this observer.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use base::{Endpoint, JobId, ProviderId, millis, trace::RequestTrace};
use scheduler::{CancelReason, JobEnd, JobFacts, LeaveReason, Observer};
use traces::{
    Span, SpanKind, Traces, Value,
    times::{nanoseconds, new_span},
};

/// The value of `gen_ai.provider.name`. The worker's own spans say which program made the answer.
const PROVIDER: &str = "warren";

/// Makes spans of jobs.
pub(crate) struct TracedJobs {
    traces: Traces,
    open: Mutex<HashMap<JobId, OpenTrace>>,
}

/// A traced job that has not ended. The scheduler bounds the number of jobs, and so of these.
struct OpenTrace {
    trace: RequestTrace,
    accepted: SystemTime,
    /// When its present wait in a queue began; `None` while a provider has the job.
    waits_since: Option<SystemTime>,
    attempt: Option<Attempt>,
    attempts: u32,
}

/// A provider's try at a job.
struct Attempt {
    number: u32,
    provider: ProviderId,
    began: SystemTime,
    first_byte: Option<Duration>,
}

impl TracedJobs {
    pub(crate) fn new(traces: Traces) -> Self {
        Self { traces, open: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<JobId, OpenTrace>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the trace of a job, if it has one.
    fn of(&self, job: &JobFacts, change: impl FnOnce(&mut OpenTrace, &Traces)) {
        if job.trace.is_some()
            && let Some(open) = self.lock().get_mut(&job.id)
        {
            change(open, &self.traces);
        }
    }
}

impl Observer for TracedJobs {
    fn accepted(&self, job: &JobFacts) {
        if let Some(trace) = job.trace {
            let now = SystemTime::now();
            let waits_since = Some(now);
            let open = OpenTrace { trace, accepted: now, waits_since, attempt: None, attempts: 0 };
            self.lock().insert(job.id, open);
        }
    }

    fn assigned(&self, job: &JobFacts, provider: ProviderId, _: Duration) {
        self.of(job, |open, traces| open.assigned(provider, traces));
    }

    fn requeued(&self, job: &JobFacts) {
        self.of(job, |open, traces| open.lost("requeued", traces));
    }

    fn first_byte(&self, job: &JobFacts, _: Duration) {
        self.of(job, |open, _| open.first_byte());
    }

    fn canceled(&self, job: &JobFacts, reason: CancelReason) {
        self.of(job, |open, traces| open.lost(word(reason), traces));
    }

    fn ended(&self, job: &JobFacts, ended: &JobEnd) {
        if job.trace.is_some()
            && let Some(open) = self.lock().remove(&job.id)
        {
            open.ended(job, ended, &self.traces);
        }
    }

    fn left(&self, provider: ProviderId, _: LeaveReason) {
        let mut open = self.lock();
        let with = open.values_mut().filter(|open| open.is_at(provider));
        with.for_each(|open| open.lost("worker_lost", &self.traces));
    }
}

impl OpenTrace {
    fn is_at(&self, provider: ProviderId) -> bool {
        self.attempt.as_ref().is_some_and(|attempt| attempt.provider == provider)
    }

    fn assigned(&mut self, provider: ProviderId, traces: &Traces) {
        let now = SystemTime::now();
        self.end_wait(now, traces);
        self.attempts += 1;
        let (number, began) = (self.attempts, now);
        self.attempt = Some(Attempt { number, provider, began, first_byte: None });
    }

    /// Notes that its provider no longer has the job. From here on, it may wait for another provider.
    fn lost(&mut self, why: &str, traces: &Traces) {
        let now = SystemTime::now();
        if let Some(attempt) = self.attempt.take() {
            traces.record(self.of_attempt(&attempt, now, None, Some(why)));
            self.waits_since = Some(now);
        }
    }

    fn first_byte(&mut self) {
        if let Some(attempt) = &mut self.attempt {
            attempt.first_byte = attempt.began.elapsed().ok();
        }
    }

    fn end_wait(&mut self, now: SystemTime, traces: &Traces) {
        if let Some(since) = self.waits_since.take() {
            traces.record(self.part(new_span(), "queue", SpanKind::Internal, (since, now)));
        }
    }

    fn ended(mut self, job: &JobFacts, ended: &JobEnd, traces: &Traces) {
        let (_, now) = ended.at;
        let failed = ended.outcome.is_error().then(|| ended.outcome.as_str());
        match self.attempt.take() {
            Some(attempt) => {
                let name = ended.provider_name.as_deref();
                traces.record(self.of_attempt(&attempt, now, name, failed));
            }
            // After a lost attempt, the end usually comes at once: no wait is recorded.
            None if self.attempts == 0 => self.end_wait(now, traces),
            None => {}
        }
        traces.record(self.of_request(job, ended, now));
    }

    fn of_request(&self, job: &JobFacts, ended: &JobEnd, now: SystemTime) -> Span {
        let operation = operation(job.endpoint);
        let mut span = self.part(
            self.trace.own.span,
            &format!("{operation} {}", job.model),
            SpanKind::Server,
            (self.accepted, now),
        );
        span.parent = self.trace.parent;
        let served = ended.served_model.as_ref().unwrap_or(&job.model);
        let mut put = |name, value: Value| span.attributes.push((name, value));
        put("gen_ai.operation.name", operation.into());
        put("gen_ai.provider.name", PROVIDER.into());
        put("gen_ai.request.model", job.model.as_str().into());
        put("gen_ai.response.model", served.as_str().into());
        put("http.request.method", "POST".into());
        put("url.path", (&*job.path).into());
        put("warren.request_id", job.id.to_string().into());
        put("warren.key", job.key.as_str().into());
        put("warren.outcome", ended.outcome.as_str().into());
        put("warren.requeues", ended.requeues.into());
        put("warren.stream", job.streaming.into());
        let numbers = [
            ("gen_ai.usage.input_tokens", ended.usage.prompt_tokens),
            ("gen_ai.usage.output_tokens", ended.usage.completion_tokens),
            ("http.response.status_code", ended.outcome.status().map(u64::from)),
            ("warren.first_byte_ms", ended.first_byte.map(millis)),
            ("warren.first_token_ms", ended.first_token.map(millis)),
        ];
        for (name, number) in numbers {
            number.into_iter().for_each(|number| put(name, number.into()));
        }
        fail(&mut span, ended.outcome.is_error().then(|| ended.outcome.as_str()));
        span
    }

    fn of_attempt(
        &self,
        attempt: &Attempt,
        now: SystemTime,
        name: Option<&str>,
        failed: Option<&str>,
    ) -> Span {
        let id = self.trace.own.attempt(attempt.number).span;
        let mut span = self.part(id, "attempt", SpanKind::Client, (attempt.began, now));
        let mut put = |name, value: Value| span.attributes.push((name, value));
        put("warren.attempt", attempt.number.into());
        put("warren.provider.id", attempt.provider.to_string().into());
        if let Some(name) = name {
            put("warren.provider.name", name.into());
        }
        if let Some(after) = attempt.first_byte {
            put("warren.first_byte_ms", millis(after).into());
        }
        fail(&mut span, failed);
        span
    }

    /// A span below the request's.
    fn part(
        &self,
        id: base::trace::SpanId,
        name: &str,
        kind: SpanKind,
        (start, end): (SystemTime, SystemTime),
    ) -> Span {
        let start = nanoseconds(start);
        Span {
            trace: self.trace.own.trace,
            id,
            parent: Some(self.trace.own.span),
            name: name.to_owned(),
            kind,
            start,
            // The wall clock may have been set back meanwhile.
            end: nanoseconds(end).max(start),
            attributes: Vec::new(),
            error: None,
        }
    }
}

fn fail(span: &mut Span, why: Option<&str>) {
    if let Some(why) = why {
        span.attributes.push(("error.type", why.into()));
        span.error = Some(why.to_owned());
    }
}

fn word(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::ClientDisconnect => "client_gone",
        CancelReason::Timeout => "timeout",
        CancelReason::GracefulShutdown => "drained",
        CancelReason::WorkerDisconnect => "worker_lost",
        CancelReason::RequeueExhausted => "requeue_exhausted",
        CancelReason::ServerShutdown => "shutting_down",
    }
}

/// The name of an operation in the semantic conventions for generative AI.
fn operation(endpoint: Endpoint) -> &'static str {
    match endpoint {
        Endpoint::Completions | Endpoint::OllamaGenerate | Endpoint::OllamaRaw => "text_completion",
        Endpoint::Embeddings
        | Endpoint::OllamaEmbed
        | Endpoint::OllamaEmbeddings
        | Endpoint::GeminiEmbed
        | Endpoint::GeminiBatchEmbed => "embeddings",
        Endpoint::GeminiGenerate => "generate_content",
        Endpoint::CountTokens | Endpoint::GeminiCountTokens => "count_tokens",
        Endpoint::Transcriptions => "transcription",
        Endpoint::SoundTranslations => "translation",
        Endpoint::Speech => "speech",
        Endpoint::ImageGenerations | Endpoint::ImageEdits | Endpoint::ImageVariations => "image",
        Endpoint::Moderations => "moderation",
        Endpoint::Rerank => "rerank",
        Endpoint::Score => "score",
        Endpoint::ChatCompletions
        | Endpoint::Responses
        | Endpoint::Messages
        | Endpoint::NodeChat
        | Endpoint::OllamaChat => "chat",
    }
}

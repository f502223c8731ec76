//! A job that has not ended, and the steps that observers see.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use base::{Continuation, Endpoint, Endpoints, ModelName, ProviderId};
use bytes::Bytes;
use dispatch::Ending;
use tracing::Span;

use super::note::{Note, Notes};
use crate::{
    claim::Claim,
    exchange::state::Exchange,
    job::JobRequest,
    observer::{JobEnd, JobFacts, Outcome},
    provider::Terms,
    resume::{Break, Delivered, NextRequest, NoRequest, Record},
    status::RunningJob,
    translate::{ProviderRequest, Translator, Untranslatable},
};

/// Bodies up to this size, in bytes, are edited under the lock.
const EDITED_AT_ONCE: usize = 64 * 1024;

/// A job's facts, and the span of all log lines about it.
pub(super) struct TracedJob {
    pub(super) facts: JobFacts,
    pub(super) span: Span,
}

/// A job that has not ended.
pub(super) struct Entry {
    pub(super) job: Arc<TracedJob>,
    pub(super) exchange: Arc<Exchange>,
    /// The request, kept in case another provider gets the job: until the answer begins, or, if the
    /// answer may be resumed, until its end.
    pub(super) wanted: Option<KeptRequest>,
    pub(super) accepted: Instant,
    pub(super) begun: Option<Instant>,
    /// The last provider that got it.
    pub(super) provider: Option<ProviderId>,
    /// The message of that provider, or of the translator, about a failure.
    pub(super) detail: Option<String>,
    assigned: Option<Instant>,
    /// Whether its provider did not have the model in memory when it got the job.
    loads: bool,
    pub(super) provider_name: Option<Arc<str>>,
    pub(super) served_model: Option<ModelName>,
    /// Whether another provider may resume its answer, as far as the job itself is concerned.
    pub(super) resumes: bool,
    /// The endpoint at which the provider that began the answer was asked, or else the last
    /// provider.
    pub(super) endpoint: Option<Endpoint>,
    /// The shapes in which another provider could resume its answer.
    pub(super) serve_rest_as: Endpoints,
    /// Its answer has broken off, and no provider has resumed it yet.
    pub(super) broken: Option<BrokenAnswer>,
    /// Where its answer broke off and was mended.
    pub(super) breaks: Vec<Break>,
    /// Whether the provider in `provider` still has it.
    held: bool,
    attempt: u32,
    /// How often it was given to a provider.
    given: u32,
    /// The claim that begins once its request is ready. The provider of that claim does not know of
    /// the job yet.
    preparing: Option<Claim>,
}

/// An answer that has broken off.
pub(super) struct BrokenAnswer {
    /// The name of the provider that was lost.
    pub(super) from: Arc<str>,
    pub(super) delivered: Delivered,
    /// How the job ends if no provider resumes the answer.
    pub(super) ending: Ending,
    /// Why the answer cannot be resumed, if that has turned out.
    pub(super) refused: Option<String>,
}

/// The request from which the request of each provider is made.
#[derive(Clone)]
pub(super) struct KeptRequest {
    pub(super) request: Arc<JobRequest>,
    pub(super) translator: Arc<dyn Translator>,
    pub(super) serve_as: Endpoints,
}

impl KeptRequest {
    /// Whether [`KeptRequest::ready`] takes almost no time.
    pub(super) fn is_quick(&self, terms: &Terms, endpoints: Endpoints) -> bool {
        let edits_much = terms.edit.is_some() && self.request.body.len() > EDITED_AT_ONCE;
        !edits_much && self.translator.is_quick(&self.request, &terms.model, endpoints)
    }

    /// Makes the request for a provider that serves these endpoints, on its terms.
    pub(super) fn ready(
        &self,
        claim: Claim,
        terms: Terms,
        endpoints: Endpoints,
    ) -> PreparedRequest {
        let Terms { model, edit } = terms;
        let translated = self.translator.translate(&self.request, &model, endpoints);
        let mut translated = translated.map_err(Unmade::from);
        if let (Ok(translated), Some(edit)) = (&mut translated, edit) {
            let request = Arc::clone(&translated.request);
            translated.request = edit.apply(request, translated.endpoint);
        }
        PreparedRequest { claim, model, translated, record: None }
    }

    /// Makes the request for a provider that is to resume, in the way `how`, an answer that began
    /// at endpoint `first`.
    pub(super) fn ready_to_go_on(
        &self,
        claim: Claim,
        terms: Terms,
        endpoints: Endpoints,
        (first, record, how): (Endpoint, Box<dyn Record>, Continuation),
    ) -> PreparedRequest {
        let Terms { model, edit } = terms;
        // Translated as for the first provider, since its answer is to be continued.
        let begun = self.translator.translate(&self.request, &model, Endpoints::only(first));
        let begun = begun.map_err(Unmade::from);
        let next = begun.and_then(|begun| Ok(record.request(&begun.request, endpoints, how)?));
        let (translated, record) = match next {
            Ok(NextRequest { request, endpoint, record }) => {
                let request = edit.into_iter().fold(request, |it, edit| edit.apply(it, endpoint));
                (Ok(ProviderRequest { request, endpoint, answer: None }), Some(record))
            }
            Err(why) => (Err(why), None),
        };
        PreparedRequest { claim, model, translated, record }
    }
}

/// Why a provider is not sent a request.
pub(super) enum Unmade {
    /// The request cannot be made; the text says why.
    No(String),
    /// Nothing but these bytes is missing of the answer that it was to resume.
    Closing(Bytes),
}

impl From<Untranslatable> for Unmade {
    fn from(Untranslatable(why): Untranslatable) -> Self {
        Self::No(why)
    }
}

impl From<NoRequest> for Unmade {
    fn from(none: NoRequest) -> Self {
        match none {
            NoRequest::Closing(bytes) => Self::Closing(bytes),
            NoRequest::Refused(why) => Self::No(why),
        }
    }
}

/// The request for the provider of a claim, with the provider's own name for the model.
pub(super) struct PreparedRequest {
    pub(super) claim: Claim,
    pub(super) model: ModelName,
    pub(super) translated: Result<ProviderRequest, Unmade>,
    /// The record of the answer, if the provider is to resume one.
    pub(super) record: Option<Box<dyn Record>>,
}

impl Entry {
    pub(super) fn new(
        job: Arc<TracedJob>,
        exchange: Arc<Exchange>,
        wanted: KeptRequest,
        accepted: Instant,
    ) -> Self {
        Self {
            job,
            exchange,
            wanted: Some(wanted),
            accepted,
            begun: None,
            provider: None,
            detail: None,
            assigned: None,
            loads: false,
            provider_name: None,
            served_model: None,
            resumes: false,
            endpoint: None,
            serve_rest_as: Endpoints::NONE,
            broken: None,
            breaks: Vec::new(),
            held: false,
            attempt: 0,
            given: 0,
            preparing: None,
        }
    }

    /// Records that its request is being made for this claim, with no lock held.
    pub(super) fn prepare(&mut self, claim: Claim) {
        self.preparing = Some(claim);
    }

    /// Records that the request for this claim is ready. Returns whether the job still belongs to
    /// that claim.
    pub(super) fn prepared(&mut self, claim: Claim) -> bool {
        self.preparing.take_if(|preparing| *preparing == claim).is_some()
    }

    /// Whether its next provider does not know of it yet.
    pub(super) fn is_preparing(&self) -> bool {
        self.preparing.is_some()
    }

    /// Whether this provider has it, or will get it.
    pub(super) fn is_with(&self, id: ProviderId) -> bool {
        self.provider == Some(id) || self.preparing.is_some_and(|claim| claim.provider == id)
    }

    /// Records that a provider of this name has it now, for this model and at this endpoint.
    pub(super) fn give(
        &mut self,
        claim: Claim,
        name: &str,
        (model, endpoint): (&ModelName, Endpoint),
        at: Instant,
        notes: &mut Notes,
    ) {
        // The first assignment does not count as a requeue.
        if claim.attempt > self.attempt {
            notes.push(Note::Requeued(Arc::clone(&self.job)));
        }
        // What counts is the attempt that began the answer, not one that resumes it.
        if self.begun.is_none() {
            self.assigned = Some(at);
        }
        if self.broken.is_none() {
            self.endpoint = Some(endpoint);
        }
        self.provider = Some(claim.provider);
        self.provider_name = Some(name.into());
        self.served_model = (*model != self.job.facts.model).then(|| model.clone());
        self.held = true;
        self.attempt = claim.attempt;
        self.given += 1;
        let job = Arc::clone(&self.job);
        notes.push(Note::Assigned(job, claim.provider, at - self.accepted));
    }

    /// The request as its present provider gets it: if the job is traced, as a part of that
    /// attempt's span.
    pub(super) fn traced(&self, request: Arc<JobRequest>) -> Arc<JobRequest> {
        match self.job.facts.trace {
            None => request,
            Some(trace) => Arc::new(request.within(trace.own.attempt(self.given))),
        }
    }

    /// Whether the claim still holds.
    pub(super) fn is_at(&self, claim: Claim) -> bool {
        let at = (self.held, self.provider, self.attempt);
        at == (true, Some(claim.provider), claim.attempt)
    }

    /// The endpoints other than this one at which it could be served.
    pub(super) fn alternatives(&self, endpoint: Endpoint) -> Endpoints {
        let serve_as = match (&self.wanted, self.goes_on()) {
            (_, true) => self.serve_rest_as,
            (Some(wanted), false) => wanted.serve_as,
            (None, false) => Endpoints::NONE,
        };
        serve_as.without(endpoint)
    }

    /// Takes it from its provider: later writes of that provider are ignored.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.preparing = None;
        // Done before another provider gets it, since two writers would mix two answers.
        self.exchange.end_attempt();
    }

    /// Records whether its provider has to load the model first.
    pub(super) fn loads(&mut self, loads: bool) {
        self.loads = loads;
    }

    /// The time from its assignment to the head of its answer, if the model had to be loaded for
    /// it.
    fn load_wait(&self) -> Option<Duration> {
        let (begun, assigned) = self.begun.zip(self.assigned).filter(|_| self.loads)?;
        Some(begun.saturating_duration_since(assigned))
    }

    /// Its figures while it has not ended.
    pub(super) fn running(&self, now: Instant) -> RunningJob {
        let assigned = self.assigned.filter(|_| self.held);
        RunningJob {
            job: self.job.facts.clone(),
            provider: self.provider_name.clone().filter(|_| self.held),
            waited: assigned.unwrap_or(now).saturating_duration_since(self.accepted),
            ran: assigned.map(|assigned| now.saturating_duration_since(assigned)),
            tokens: self.exchange.tokens(),
        }
    }

    pub(super) fn ended(&self, outcome: Outcome, at: Instant) -> Note {
        let account = self.exchange.account();
        let ended = JobEnd {
            outcome,
            at: (at, SystemTime::now()),
            provider: self.provider,
            provider_name: self.provider_name.clone(),
            served_model: self.served_model.clone(),
            usage: account.usage,
            bytes: account.bytes,
            queued: self.assigned.unwrap_or(at) - self.accepted,
            first_byte: self.begun.map(|begun| begun - self.accepted),
            first_token: account.first_text.map(|text| text - self.accepted),
            load_wait: self.load_wait(),
            total: at - self.accepted,
            requeues: self.attempt,
            breaks: self.breaks.clone(),
            cost: None,
        };
        Note::Ended(Arc::clone(&self.job), ended)
    }
}

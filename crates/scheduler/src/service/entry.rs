//! A job that has not ended, and what observers are told of it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use base::{Endpoint, Endpoints, ModelName, ProviderId};

use super::{Claim, now};
use crate::{
    exchange::Exchange,
    job::JobRequest,
    observer::{Ended, JobFacts, Outcome},
    translate::{Translated, Translator, Untranslatable},
};

/// A job that has not ended.
pub(super) struct Entry {
    pub(super) facts: Arc<JobFacts>,
    pub(super) exchange: Arc<Exchange>,
    /// Kept until the answer begins, for another provider.
    pub(super) wanted: Option<Wanted>,
    pub(super) accepted: Instant,
    pub(super) begun: Option<Instant>,
    /// The last provider that it was given to.
    pub(super) provider: Option<ProviderId>,
    /// What that provider, or the translator, said of a failure.
    pub(super) detail: Option<String>,
    assigned: Option<Instant>,
    provider_name: Option<Arc<str>>,
    served_model: Option<ModelName>,
    /// Whether it is still at its last provider.
    held: bool,
    attempt: u32,
}

/// What providers are asked for.
pub(super) struct Wanted {
    pub(super) request: Arc<JobRequest>,
    pub(super) translator: Arc<dyn Translator>,
    pub(super) serve_as: Endpoints,
}

/// What observers are to be told, once the lock is free.
pub(super) enum Note {
    Assigned(Arc<JobFacts>, ProviderId, Duration),
    Requeued(Arc<JobFacts>),
    FirstByte(Arc<JobFacts>, Duration),
    Canceled(Arc<JobFacts>, dispatch::CancelReason),
    Ended(Arc<JobFacts>, Box<Ended>),
}

impl Entry {
    pub(super) fn new(
        facts: Arc<JobFacts>,
        exchange: Arc<Exchange>,
        wanted: Wanted,
        accepted: Instant,
    ) -> Self {
        Self {
            facts,
            exchange,
            wanted: Some(wanted),
            accepted,
            begun: None,
            provider: None,
            detail: None,
            assigned: None,
            provider_name: None,
            served_model: None,
            held: false,
            attempt: 0,
        }
    }

    /// What a provider of these endpoints is sent, asked for this model.
    pub(super) fn translate(
        &self,
        model: &ModelName,
        endpoints: Endpoints,
    ) -> Result<Translated, Untranslatable> {
        let begun = || Untranslatable("the answer has begun already".to_owned());
        let wanted = self.wanted.as_ref().ok_or_else(begun)?;
        wanted.translator.translate(&wanted.request, model, endpoints)
    }

    /// It is at a provider of this name, asked for this model.
    pub(super) fn give(
        &mut self,
        claim: Claim,
        name: &str,
        model: &ModelName,
        notes: &mut Vec<Note>,
    ) {
        let at = now();
        if claim.attempt > self.attempt {
            notes.push(Note::Requeued(Arc::clone(&self.facts)));
        }
        self.assigned = Some(at);
        self.provider = Some(claim.provider);
        self.provider_name = Some(name.into());
        self.served_model = (*model != self.facts.model).then(|| model.clone());
        self.held = true;
        self.attempt = claim.attempt;
        let facts = Arc::clone(&self.facts);
        notes.push(Note::Assigned(facts, claim.provider, at - self.accepted));
    }

    /// Whether it is where and what the claim says.
    pub(super) fn is_at(&self, claim: Claim) -> bool {
        let at = (self.held, self.provider, self.attempt);
        at == (true, Some(claim.provider), claim.attempt)
    }

    /// Whether it could be served at another endpoint than this.
    pub(super) fn has_alternatives(&self, endpoint: Endpoint) -> bool {
        let serve_as = self.wanted.as_ref().map_or(Endpoints::NONE, |wanted| wanted.serve_as);
        serve_as.without(endpoint).meets(Endpoints::ASSUMED)
    }

    /// It is no longer its provider's, whatever that still writes.
    pub(super) fn release(&mut self) {
        self.held = false;
        self.exchange.end_attempt();
    }

    pub(super) fn ended(&self, outcome: Outcome) -> Note {
        let at = now();
        let account = self.exchange.account();
        let ended = Ended {
            outcome,
            provider: self.provider,
            provider_name: self.provider_name.clone(),
            served_model: self.served_model.clone(),
            usage: account.usage,
            bytes: account.bytes,
            queued: self.assigned.unwrap_or(at) - self.accepted,
            first_byte: self.begun.map(|begun| begun - self.accepted),
            total: at - self.accepted,
            requeues: self.attempt,
        };
        Note::Ended(Arc::clone(&self.facts), Box::new(ended))
    }
}

//! Answers that break off, and that other providers resume.

use std::{sync::Arc, time::Instant};

use base::{Continuation, Endpoints, JobId};
use bytes::Bytes;
use dispatch::{Ending, Input, Resumable};
use http::header;
use tokio::runtime::Handle;

use super::{
    Scheduler,
    core::Core,
    entry::{BrokenAnswer, Entry, KeptRequest, Unmade},
    note::{Note, Notes},
};
use crate::{
    claim::Claim,
    exchange::{
        Seam,
        traffic::{Head, WriteError},
    },
    provider::Terms,
    resume::{Break, BreakOutcome, Delivered, Record, Rest},
};

/// If the request and the text delivered so far are together no larger than this, in bytes, the
/// next request is made under the lock.
const MADE_AT_ONCE: u64 = 16 * 1024;

impl Core {
    /// Handles an answer that has broken off: it waits for another provider, is closed here, or ends.
    pub(super) fn broken_off(&mut self, job: JobId, ending: Ending, notes: &mut Notes) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        // The lost provider must not write anything more.
        entry.release();
        let rest = entry.exchange.rest();
        let complete = entry.exchange.is_complete();
        entry.breaks_off(&rest, ending);
        match rest {
            _ if complete => {
                entry.broken = None;
                self.answered(job, notes);
                self.dispatcher.handle(self.now, Input::ClientGone { job });
            }
            Rest::Closing(closing) => self.close(job, &closing, notes),
            Rest::No(_) => self.refuse(job, notes),
            // If the request itself rules out a resumption, the job ends now. It need not wait for
            // a provider.
            Rest::Text(_) => match entry.what_speaks_against_it() {
                None => {}
                Some(Unmade::Closing(closing)) => self.close(job, &closing, notes),
                Some(Unmade::No(why)) => {
                    entry.refuses(&why);
                    self.refuse(job, notes);
                }
            },
        }
    }

    /// Adds the end of an answer of which nothing else is missing.
    pub(super) fn close(&mut self, job: JobId, closing: &Bytes, notes: &mut Notes) {
        let Some(entry) = self.jobs.get_mut(&job) else { return };
        match entry.closes(closing, notes) {
            true => self.answered(job, notes),
            false => return self.refuse(job, notes),
        }
        self.dispatcher.handle(self.now, Input::ClientGone { job });
    }

    /// Ends a job whose answer cannot be resumed.
    fn refuse(&mut self, job: JobId, notes: &mut Notes) {
        let ending = self.jobs.get(&job).and_then(Entry::ending);
        self.give_up(job, ending.unwrap_or(Ending::ProviderFailed), notes);
    }

    /// Asks a provider to resume an answer.
    pub(super) fn assign_rest(
        &mut self,
        scheduler: &Scheduler,
        claim: Claim,
        (wanted, terms, endpoints): (KeptRequest, Terms, Endpoints),
        notes: &mut Notes,
    ) {
        let facts = self.providers.get(&claim.provider).map(|provider| provider.facts());
        let how = facts.and_then(|facts| facts.get(terms.model.as_str())?.continuation);
        let Some(entry) = self.jobs.get_mut(&claim.job) else { return };
        let begun = entry.endpoint.zip(entry.exchange.record()).zip(how);
        let Some(((first, record), how)) = begun else {
            let ending = entry.ending().unwrap_or(Ending::ProviderFailed);
            return self.give_up(claim.job, ending, notes);
        };
        let size = wanted.request.body.len() as u64 + entry.delivered().characters;
        let runtime = Handle::try_current().ok().filter(|_| size > MADE_AT_ONCE);
        let make = move || wanted.ready_to_go_on(claim, terms, endpoints, (first, record, how));
        match runtime {
            None => self.hand_over(scheduler, make(), notes),
            Some(runtime) => {
                entry.prepare(claim);
                Self::off_thread(scheduler, &runtime, make);
            }
        }
    }

    /// Takes in the head of a provider that is to resume an answer.
    pub(super) fn goes_on(
        &mut self,
        scheduler: &Scheduler,
        claim: Claim,
        head: &Head,
        notes: &mut Notes,
    ) -> Result<(), WriteError> {
        let now = self.now;
        let entry = self.held(claim).ok_or(WriteError::Over)?;
        let seam = Seam { provider: entry.provider_name.clone(), delivered: entry.delivered() };
        // A head that does not begin a good stream counts as a refusal, as it does before the first
        // byte.
        entry.exchange.go_on(claim, head, now, seam)?;
        let to = entry.provider_name.clone();
        entry.mended(BreakOutcome::Resumed, to, notes);
        let resumable = entry.resumable();
        self.handle(scheduler, Input::Begun { job: claim.job, resumable }, notes);
        Ok(())
    }
}

impl Entry {
    /// Whether its next provider is to resume its answer.
    pub(super) fn goes_on(&self) -> bool {
        self.broken.is_some()
    }

    /// The record of an answer that begins with this head, if it may be resumed. The answer must be
    /// a stream of events without compression.
    pub(super) fn record(&self, head: &Head) -> Option<Box<dyn Record>> {
        let wanted = self.wanted.as_ref().filter(|_| self.resumes && is_event_stream(head))?;
        wanted.translator.record(&wanted.request, self.endpoint?)
    }

    /// Records that its answer begins, and the shapes in which other providers could resume it.
    /// Returns how they could.
    pub(super) fn begins(&mut self, serve_rest_as: Endpoints, at: Instant) -> Option<Resumable> {
        self.begun = Some(at);
        self.serve_rest_as = serve_rest_as;
        if serve_rest_as.is_empty() {
            // The job cannot move any more, so its body need not be kept.
            self.wanted = None;
        }
        self.resumable()
    }

    fn resumable(&self) -> Option<Resumable> {
        let endpoint = self.endpoint.filter(|_| !self.serve_rest_as.is_empty())?;
        Some(Resumable { endpoint, serve_as: self.serve_rest_as })
    }

    fn breaks_off(&mut self, rest: &Rest, ending: Ending) {
        let delivered = match rest {
            Rest::Text(delivered) => *delivered,
            Rest::Closing(_) | Rest::No(_) => Delivered::default(),
        };
        let refused = match rest {
            Rest::No(why) => Some(why.clone()),
            Rest::Text(_) | Rest::Closing(_) => None,
        };
        let from = self.provider_name.clone().unwrap_or_default();
        self.broken = Some(BrokenAnswer { from, delivered, ending, refused });
    }

    /// Adds the end of an answer of which nothing else is missing. Returns whether it is whole.
    fn closes(&mut self, closing: &Bytes, notes: &mut Notes) -> bool {
        let seam = Seam { provider: None, delivered: Delivered::default() };
        let is_whole = self.exchange.close(closing.clone(), seam);
        if is_whole {
            self.mended(BreakOutcome::Closed, None, notes);
        }
        is_whole
    }

    /// Why no provider at all could be asked to resume the answer, as far as the request shows. Not
    /// found out for a large request.
    fn what_speaks_against_it(&self) -> Option<Unmade> {
        let wanted = self.wanted.as_ref().filter(|it| it.request.body.len() as u64 <= MADE_AT_ONCE);
        let (wanted, first, record) = (wanted?, self.endpoint?, self.exchange.record()?);
        let model = self.served_model.as_ref().unwrap_or(&self.job.facts.model);
        let begun = wanted.translator.translate(&wanted.request, model, Endpoints::only(first));
        let begun = begun.map_err(Unmade::from);
        let made = begun.and_then(|begun| {
            let how = Continuation::LastMessage;
            Ok(record.request(&begun.request, self.serve_rest_as, how)?)
        });
        made.err()
    }

    fn delivered(&self) -> Delivered {
        self.broken.as_ref().map(|broken| broken.delivered).unwrap_or_default()
    }

    /// How it ends if no provider resumes it.
    fn ending(&self) -> Option<Ending> {
        self.broken.as_ref().map(|broken| broken.ending.clone())
    }

    /// Records that its answer cannot be resumed. Returns how the job then ends, if the answer has
    /// broken off.
    pub(super) fn refuses(&mut self, why: &str) -> Option<Ending> {
        let broken = self.broken.as_mut()?;
        broken.refused = Some(why.to_owned());
        Some(broken.ending.clone())
    }

    fn mended(&mut self, outcome: BreakOutcome, to: Option<Arc<str>>, notes: &mut Notes) {
        if let Some(BrokenAnswer { from, delivered, .. }) = self.broken.take() {
            let broken = Break { from, to, delivered, outcome, why: None };
            self.breaks.push(broken.clone());
            notes.push(Note::BrokeOff(Arc::clone(&self.job), broken));
        }
    }

    /// Notes an unmended break, if the job ends while its answer is broken off.
    pub(super) fn note_given_up(&mut self, notes: &mut Notes) {
        if let Some(BrokenAnswer { from, delivered, refused, .. }) = self.broken.take() {
            let outcome = match refused {
                Some(_) => BreakOutcome::Refused,
                None => BreakOutcome::GivenUp,
            };
            let broken = Break { from, to: None, delivered, outcome, why: refused };
            notes.push(Note::BrokeOff(Arc::clone(&self.job), broken));
        }
    }
}

fn is_event_stream(head: &Head) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().trim_start();
    let events = "text/event-stream";
    let is_events = kind.get(..events.len()).is_some_and(|it| it.eq_ignore_ascii_case(events));
    // Compressed bytes cannot be read, and a body with a fixed length cannot be made longer.
    let is_plain = !head.headers.contains_key(header::CONTENT_ENCODING)
        && !head.headers.contains_key(header::CONTENT_LENGTH);
    head.status.is_success() && is_events && is_plain
}

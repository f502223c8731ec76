//! One job of a fellow, for a worker of this server.

use std::sync::Arc;

use base::{Endpoints, JobId};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use scheduler::{Answer, Ending, Event, Failure, Job, LentFor, Scheduler};

use super::{
    answer::{Fault, Parts},
    request::{self, LENGTH, MAX_HEAD, RequestHead},
};
use crate::{
    counts::Counts,
    membership::Fleet,
    slots::Slots,
    streams::{FellowStream, Over, end::Reason},
};

/// As much of an answer as is ready goes in one message, up to about this size in bytes.
const TOGETHER: usize = 64 * 1024;

/// Serves the jobs of fellows.
pub(crate) struct Servant {
    pub(crate) scheduler: Scheduler,
    pub(crate) slots: Arc<Slots>,
    pub(crate) fleet: Arc<Fleet>,
    pub(crate) counts: Arc<Counts>,
    /// The longest body of a request, in bytes.
    pub(crate) max_body: usize,
}

/// Why a stream is not served.
#[derive(Debug, thiserror::Error)]
enum NotServed {
    #[error(transparent)]
    Over(#[from] Over),
    #[error("{0}")]
    Bad(&'static str),
}

impl Servant {
    /// Serves the job of this stream, to its end or until its home has no use for it any more.
    pub(crate) async fn serve(self: Arc<Self>, stream: FellowStream) {
        match self.answer(&stream).await {
            Ok(()) => {}
            Err(NotServed::Over(over)) => tracing::debug!(%over, "a job of another server is over"),
            Err(NotServed::Bad(why)) => {
                tracing::warn!(why, fellow = %stream.fellow(), "a job of another server is refused");
                stream.reset(Reason::Breach, why);
            }
        }
    }

    async fn answer(&self, stream: &FellowStream) -> Result<(), NotServed> {
        let mut inbound = Inbound { stream, held: Bytes::new() };
        let mut head = inbound.head().await?;
        let fits = usize::try_from(head.body_len).is_ok_and(|len| len <= self.max_body);
        if !fits {
            return Err(NotServed::Bad("the request is too long"));
        }
        // An id that this server has never used: the same job may have been here before.
        let own = JobId::from_random(rand::random());
        let Some(_slot) = self.slots.begin(stream.fellow(), head.provider, own) else {
            return Ok(decline(stream, "no slot of this worker is lent to the server").await?);
        };
        head.request.body = inbound.body(head.body_len as usize).await?;
        let _running = self.counts.serving();
        let answer = self.scheduler.submit(self.job(own, stream, head));
        Ok(relay(answer, stream).await?)
    }

    fn job(&self, own: JobId, stream: &FellowStream, head: RequestHead) -> Job {
        let home = self.fleet.name_of(stream.fellow());
        let mut job = Job::new(own, head.endpoint, head.request, Box::new(()));
        job.serve_as = Endpoints::only(head.endpoint).union(head.alternatives);
        job.key = format!("server:{home}").into();
        job.pinned = Some(head.provider);
        job.lent = Some(LentFor { home, job: head.job });
        job.known = false;
        job
    }
}

/// Writes the answer to the home, as it comes.
async fn relay(mut answer: Answer, stream: &FellowStream) -> Result<(), Over> {
    let mut parts = Parts::default();
    let head = tokio::select! {
        biased;
        // Dropping the answer cancels the job at its worker.
        over = stream.over() => return Err(over),
        head = answer.head() => head,
    };
    let mut is_last = match head {
        Ok(head) => {
            parts.head(&head);
            false
        }
        Err(failure) => {
            fail(&mut parts, &failure, false);
            true
        }
    };
    loop {
        while !is_last && parts.len() < TOGETHER {
            let Some(event) = tokio::task::unconstrained(answer.next()).now_or_never() else {
                break;
            };
            is_last = put(&mut parts, event, &answer);
        }
        stream.write(std::mem::take(&mut parts).into_bytes(), is_last).await?;
        if is_last {
            return Ok(());
        }
        let event = tokio::select! {
            biased;
            over = stream.over() => return Err(over),
            event = answer.next() => event,
        };
        is_last = put(&mut parts, event, &answer);
    }
}

/// Adds an event. Returns whether it is the last.
fn put(parts: &mut Parts, event: Event, answer: &Answer) -> bool {
    match event {
        Event::Chunk(bytes) => {
            parts.chunk(&bytes);
            return false;
        }
        Event::End => parts.end(answer.usage()),
        Event::Failed(failure) => fail(parts, &failure, true),
    }
    true
}

fn fail(parts: &mut Parts, failure: &Failure, begun: bool) {
    let fault = match failure.ending {
        Ending::NotServed => Fault::Unserved,
        // Whatever was the worker's fault is noted here, where the worker is.
        Ending::ProviderFailed | Ending::RequestTimeout | Ending::IdleTimeout => Fault::Worker,
        _ if begun => Fault::Worker,
        _ => Fault::Declined,
    };
    let words = failure.detail.clone().unwrap_or_else(|| words(&failure.ending).to_owned());
    parts.failed(fault, &words);
}

/// The meaning of a failure without words of its own.
fn words(ending: &Ending) -> &'static str {
    match ending {
        Ending::ProviderLost => "the connection to the worker was lost",
        Ending::ProviderFailed => "the worker failed",
        Ending::RequestTimeout => "the worker did not begin its answer in time",
        Ending::IdleTimeout => "the worker paused for too long",
        Ending::ShuttingDown => "the server that has the worker stops",
        Ending::NoProvider => "the worker is gone",
        Ending::TooLarge { .. } => "the request is too long for the worker",
        _ => "the worker takes no job now",
    }
}

async fn decline(stream: &FellowStream, why: &str) -> Result<(), Over> {
    let mut parts = Parts::default();
    parts.failed(Fault::Declined, why);
    stream.write(parts.into_bytes(), true).await
}

/// A request as its stream brings it.
struct Inbound<'a> {
    stream: &'a FellowStream,
    held: Bytes,
}

impl Inbound<'_> {
    async fn head(&mut self) -> Result<RequestHead, NotServed> {
        let before = self.take(LENGTH).await?;
        let len = u32::from_be_bytes([before[0], before[1], before[2], before[3]]) as usize;
        if len > MAX_HEAD {
            return Err(NotServed::Bad("the head of the request is too long"));
        }
        let head = self.take(len).await?;
        request::decode(&head).map_err(|_| NotServed::Bad("the head of the request makes no sense"))
    }

    /// The body, all of it.
    async fn body(&mut self, len: usize) -> Result<Bytes, NotServed> {
        let body = self.take(len).await?;
        // Its stream ends with it; a home that says more is not understood.
        match self.held.is_empty() {
            true => Ok(body),
            false => Err(NotServed::Bad("the body of the request is longer than it says")),
        }
    }

    /// The next `len` bytes. If they are in one piece, they are not copied.
    async fn take(&mut self, len: usize) -> Result<Bytes, NotServed> {
        if self.held.len() < len {
            let mut taken = BytesMut::with_capacity(len);
            taken.extend_from_slice(&self.held);
            while taken.len() < len {
                let piece = self.stream.piece().await?;
                let piece = piece.ok_or(NotServed::Bad("the request ends before its end"))?;
                self.stream.consumed(piece.len());
                taken.extend_from_slice(&piece);
            }
            self.held = taken.freeze();
        }
        Ok(self.held.split_to(len))
    }
}

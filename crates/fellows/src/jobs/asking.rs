//! One job at a fellow.

use std::{future::poll_fn, sync::Arc};

use base::{JobId, ProviderId};
use bytes::{Buf, Bytes};
use fleet::ServerId;
use scheduler::{AnswerWriter, Assignment, CancelReason, WriteError, exchange::CreditSink};
use tokio::sync::oneshot;

use super::{
    answer::{BadAnswer, Fault, Part, PartReader},
    request,
};
use crate::streams::{
    FellowStream, MOST_FIRST, Over, Service, Streams,
    end::{Consumed, Reason},
};

/// Credit is returned in portions of this size, to save messages.
const CREDIT_PORTION: u32 = 32 * 1024;

/// A fellow's worker that jobs go to.
#[derive(Clone)]
pub(super) struct FellowWorker {
    pub(super) streams: Arc<Streams>,
    pub(super) fellow: ServerId,
    pub(super) provider: ProviderId,
}

/// A job on its way to a fellow.
pub(super) struct RemoteJob {
    /// `None` if the fellow takes no stream.
    stream: Option<FellowStream>,
    /// The part of its body that was not sent.
    rest: Bytes,
    job: JobId,
    writer: AnswerWriter,
}

impl FellowWorker {
    /// Sends the head of a job's request, and as much of its body as may go at once. Waits for nothing.
    pub(super) fn begin(&self, assignment: Assignment) -> RemoteJob {
        let Assignment { job, request, endpoint, alternatives, answer: writer, .. } = assignment;
        let head = request::encode(job, self.provider, (endpoint, alternatives), &request);
        let mut rest = request.body.clone();
        let first = rest.split_to(rest.len().min(MOST_FIRST.saturating_sub(head.len())));
        let stream =
            self.streams.open(self.fellow, Service::JOBS, &[&head, &first], rest.is_empty());
        RemoteJob { stream, rest, job, writer }
    }
}

impl RemoteJob {
    /// Sends the rest, and passes the answer on. Returns the writer if the worker does not serve the endpoint.
    pub(super) async fn run(
        self,
        mut canceled: oneshot::Receiver<CancelReason>,
    ) -> Option<AnswerWriter> {
        let Self { stream, mut rest, job, mut writer } = self;
        let Some(stream) = stream else {
            writer.decline();
            return None;
        };
        let sink: Arc<dyn CreditSink> = Arc::new(Credit(stream.consumption()));
        writer.give_credit(sink, 0, CREDIT_PORTION);
        let mut reader = PartReader::default();
        loop {
            let step = tokio::select! {
                biased;
                reason = &mut canceled => Step::Canceled(reason.ok()),
                piece = poll_fn(|cx| stream.poll_piece(cx)) => Step::Piece(piece),
                written = poll_fn(|cx| stream.poll_write(cx, &rest, true)), if !rest.is_empty() => {
                    Step::Written(written)
                }
            };
            match step {
                Step::Written(Ok(bytes)) => rest.advance(bytes),
                // The reader says so, too, after what came before.
                Step::Written(Err(_)) => rest = Bytes::new(),
                Step::Canceled(reason) => {
                    stream.reset(Reason::Cancelled, reason.map_or("", words));
                    writer.abandon();
                    return None;
                }
                Step::Piece(Ok(Some(piece))) => {
                    reader.push(piece);
                    match pass_on(&mut reader, &mut writer, &stream) {
                        Ok(None) => {}
                        Ok(Some(end)) => return conclude(end, writer),
                        Err(trouble) => {
                            stream.reset(Reason::Cancelled, &trouble.to_string());
                            match trouble {
                                Trouble::Write(error) => writer.give_up(error),
                                Trouble::Bad(bad) => writer.fail(&bad.to_string()),
                            }
                            return None;
                        }
                    }
                }
                Step::Piece(Ok(None)) => {
                    writer.fail("the server that has the worker ended the answer before its end");
                    return None;
                }
                Step::Piece(Err(over)) => {
                    lost(&over, writer, job);
                    return None;
                }
            }
        }
    }
}

enum Step {
    Canceled(Option<CancelReason>),
    Piece(Result<Option<Bytes>, Over>),
    Written(Result<usize, Over>),
}

/// The end of an answer.
enum End {
    Complete,
    Failed(Fault, String),
}

/// Why an answer is not passed on any further.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("{0}")]
    Write(#[from] WriteError),
    #[error("{0}")]
    Bad(#[from] BadAnswer),
}

/// Writes the parts that have come. Returns the end, once that is among them.
fn pass_on(
    reader: &mut PartReader,
    writer: &mut AnswerWriter,
    stream: &FellowStream,
) -> Result<Option<End>, Trouble> {
    while let Some((part, overhead)) = reader.next()? {
        // The rest counts as unread until the client has it.
        stream.consumed(overhead);
        match part {
            Part::Head(head) => writer.head(head)?,
            Part::Chunk(bytes) if bytes.is_empty() => {}
            Part::Chunk(_) if !writer.has_begun() => return Err(BadAnswer.into()),
            Part::Chunk(bytes) => _ = writer.chunk(bytes)?,
            Part::End(usage) => {
                writer.report(usage);
                return Ok(Some(End::Complete));
            }
            Part::Failed(fault, words) => return Ok(Some(End::Failed(fault, words))),
        }
    }
    Ok(None)
}

fn conclude(end: End, writer: AnswerWriter) -> Option<AnswerWriter> {
    let has_begun = writer.has_begun();
    match end {
        End::Complete => writer.end(),
        End::Failed(Fault::Declined, _) if !has_begun => writer.decline(),
        End::Failed(Fault::Unserved, _) if !has_begun => return Some(writer),
        End::Failed(_, words) => writer.fail(&words),
    }
    None
}

/// The stream is over before the answer's end.
fn lost(over: &Over, writer: AnswerWriter, job: JobId) {
    tracing::info!(request_id = %job, %over, "the way to the server that has the worker is lost");
    let takes_none = matches!(over.reason, Reason::Refused | Reason::Stopping);
    match takes_none && !writer.has_begun() {
        true => writer.decline(),
        false => writer.fail(&over.to_string()),
    }
}

fn words(reason: CancelReason) -> &'static str {
    match reason {
        CancelReason::ClientDisconnect => "the client has left",
        CancelReason::Timeout => "its time was over",
        CancelReason::GracefulShutdown | CancelReason::ServerShutdown => "its server stops",
        CancelReason::WorkerDisconnect => "its worker is gone",
        CancelReason::RequeueExhausted => "it was tried too often",
    }
}

/// The fellow may send what the client has read.
struct Credit(Consumed);

impl CreditSink for Credit {
    fn credit(&self, _: u32, bytes: u32) {
        self.0.add(bytes as usize);
    }
}

//! Answers as binary frames: bytes unchanged, within the job's credit. A short answer that comes at once
//! leaves in one frame.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use protocol::relay::{
    BODY_PIECE, FailureCode, JobFailure, ResponseEnd, ResponseHead, Version, WorkerFrame,
};
use tokio::time::timeout;
use wire::{Outbox, OutboxClosed};

use super::ReplyError;
use crate::credit::Credit;

/// How long a job keeps its slot while the server grants no credit. The server has shorter
/// time-outs of its own; this one is for a server that has forgotten the job.
const CREDIT_DEADLINE: Duration = Duration::from_secs(15 * 60);

#[derive(Debug)]
pub(crate) struct BinaryReply {
    version: Version,
    outbox: Outbox,
    job: u32,
    credit: Arc<Credit>,
    /// Head and first bytes that may turn out to be the whole answer.
    pending: Option<(ResponseHead, Bytes)>,
}

impl BinaryReply {
    pub(crate) fn new(version: Version, outbox: Outbox, job: u32, credit: Arc<Credit>) -> Self {
        Self { version, outbox, job, credit, pending: None }
    }

    /// Holds the head back until [`BinaryReply::flush`] is called or more of the answer comes.
    pub(super) async fn head(
        &mut self,
        status: StatusCode,
        headers: &HeaderMap,
    ) -> Result<(), OutboxClosed> {
        let head = ResponseHead { status_code: status.as_u16(), headers: headers.iter().collect() };
        self.pending = Some((head, Bytes::new()));
        // Version two has no frame for a whole answer.
        if self.version == Version::Two { self.flush().await } else { Ok(()) }
    }

    /// Sends bytes of the body. Waits while there is no credit, so that the backend's stream is not
    /// read.
    pub(super) async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReplyError> {
        match &mut self.pending {
            Some((_, pending)) if pending.is_empty() && bytes.len() <= BODY_PIECE => {
                // Does not wait: the initial credit is untouched, and larger than one piece.
                self.credit.take_now(bytes.len());
                *pending = bytes;
                Ok(())
            }
            _ => {
                self.flush().await?;
                self.pieces(bytes).await
            }
        }
    }

    /// Sends what is held back, because the rest of the answer has not come yet.
    pub(super) async fn flush(&mut self) -> Result<(), OutboxClosed> {
        if self.pending.is_some() {
            // Only the first frame waits for room, so that both leave together.
            self.outbox.room().await?;
        }
        self.release()
    }

    fn release(&mut self) -> Result<(), OutboxClosed> {
        let (job, Some((head, bytes))) = (self.job, self.pending.take()) else { return Ok(()) };
        self.push(&WorkerFrame::Head { job, head })?;
        if bytes.is_empty() { Ok(()) } else { self.push(&WorkerFrame::Chunk { job, bytes }) }
    }

    async fn pieces(&self, mut bytes: Bytes) -> Result<(), ReplyError> {
        while !bytes.is_empty() {
            let length = self.credit_for(bytes.len().min(BODY_PIECE)).await?;
            let piece = bytes.split_to(length);
            self.send(&WorkerFrame::Chunk { job: self.job, bytes: piece }).await?;
        }
        Ok(())
    }

    async fn credit_for(&self, most: usize) -> Result<usize, ReplyError> {
        match self.credit.take_now(most) {
            // A timer is set only if there is no credit; most pieces need none.
            0 => timeout(CREDIT_DEADLINE, self.credit.take(most)).await.map_err(|_| forgotten()),
            length => Ok(length),
        }
    }

    pub(super) async fn end(&mut self) -> Result<(), OutboxClosed> {
        let job = self.job;
        let last = match self.pending.take() {
            Some((head, body)) => WorkerFrame::Whole { job, head, body },
            None => WorkerFrame::End { job, end: ResponseEnd::default() },
        };
        self.send(&last).await
    }

    pub(super) fn fail(&mut self, failure: JobFailure) -> Result<(), OutboxClosed> {
        self.release()?;
        self.push(&WorkerFrame::Fail { job: self.job, failure })
    }

    async fn send(&self, frame: &WorkerFrame) -> Result<(), OutboxClosed> {
        self.outbox.send(frame.encode(self.version)).await
    }

    fn push(&self, frame: &WorkerFrame) -> Result<(), OutboxClosed> {
        self.outbox.push(frame.encode(self.version))
    }
}

fn forgotten() -> ReplyError {
    let message = format!("the server took nothing of the answer for {CREDIT_DEADLINE:?}");
    ReplyError::Failed(JobFailure { code: FailureCode::Canceled, message })
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;
    use wire::{Frame, Link, OutboxReader, Role};

    use super::*;
    use protocol::relay::INITIAL_CREDIT;

    fn reply(version: Version) -> (BinaryReply, OutboxReader) {
        let (outbox, frames) = Outbox::detached();
        let credit = Arc::new(Credit::new(INITIAL_CREDIT));
        (BinaryReply::new(version, outbox, 1, credit), frames)
    }

    fn sent(frames: &mut OutboxReader) -> Vec<&'static str> {
        let kind = |frame| match frame {
            Frame::Binary(bytes) => match WorkerFrame::decode(bytes).unwrap() {
                WorkerFrame::Head { .. } => "head",
                WorkerFrame::Chunk { .. } => "chunk",
                WorkerFrame::End { .. } => "end",
                WorkerFrame::Fail { .. } => "fail",
                WorkerFrame::Whole { .. } => "whole",
                WorkerFrame::Accepted { .. } => "accepted",
            },
            Frame::Text(text) => panic!("{text}"),
        };
        std::iter::from_fn(|| frames.try_next()).map(kind).collect()
    }

    #[tokio::test]
    async fn an_answer_that_is_there_at_once_is_one_frame_where_both_ends_know_it() {
        for (version, expected) in
            [(Version::Three, &["whole"][..]), (Version::Two, &["head", "chunk", "end"])]
        {
            let (mut reply, mut frames) = reply(version);
            reply.head(StatusCode::OK, &HeaderMap::new()).await.unwrap();
            reply.chunk(Bytes::from_static(b"abc")).await.unwrap();
            reply.end().await.unwrap();
            assert_eq!(sent(&mut frames), expected);
        }
    }

    #[tokio::test]
    async fn pieces_that_are_there_leave_before_the_wait_for_the_backend() {
        let (mut reply, mut frames) = reply(Version::Three);
        reply.head(StatusCode::OK, &HeaderMap::new()).await.unwrap();
        reply.flush().await.unwrap();
        assert_eq!(sent(&mut frames), ["head"]);
        reply.chunk(Bytes::from_static(b"abc")).await.unwrap();
        assert_eq!(sent(&mut frames), ["chunk"]);
        reply.end().await.unwrap();
        assert_eq!(sent(&mut frames), ["end"]);
    }

    #[tokio::test]
    async fn an_answer_of_several_pieces_keeps_their_order_and_long_ones_are_cut() {
        let (mut reply, mut frames) = reply(Version::Three);
        reply.head(StatusCode::OK, &HeaderMap::new()).await.unwrap();
        reply.chunk(Bytes::from_static(b"abc")).await.unwrap();
        reply.chunk(Bytes::from_static(b"def")).await.unwrap();
        assert_eq!(sent(&mut frames), ["head", "chunk", "chunk"]);
        reply.chunk(vec![0; BODY_PIECE + 1].into()).await.unwrap();
        assert_eq!(sent(&mut frames), ["chunk", "chunk"]);
    }

    #[tokio::test]
    async fn an_answer_that_breaks_off_keeps_its_beginning() {
        let (mut reply, mut frames) = reply(Version::Three);
        reply.head(StatusCode::OK, &HeaderMap::new()).await.unwrap();
        reply.chunk(Bytes::from_static(b"abc")).await.unwrap();
        let failure = JobFailure { code: FailureCode::BackendBroke, message: String::new() };
        reply.fail(failure).unwrap();
        assert_eq!(sent(&mut frames), ["head", "chunk", "fail"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_job_that_the_server_has_forgotten_gives_up_its_slot() {
        let (near, _far) = tokio::io::duplex(64);
        let (_link, outbox) = Link::new(Box::pin(near), Role::Client);
        let credit = Arc::new(Credit::new(2));
        let mut reply = BinaryReply::new(Version::Three, outbox, 1, credit);
        let start = Instant::now();
        let Err(ReplyError::Failed(failure)) = reply.chunk(Bytes::from_static(b"abc")).await else {
            panic!();
        };
        assert_eq!((failure.code, start.elapsed()), (FailureCode::Canceled, CREDIT_DEADLINE));
    }
}

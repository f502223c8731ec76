//! A job's answer, as frames of its link.

mod binary;
mod json;
mod tunnel;
mod utf8;

use backend::BackendError;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use protocol::relay::{FailureCode, JobFailure};
use wire::{Outbox, OutboxClosed};

pub(crate) use binary::BinaryReply;
pub(crate) use json::JsonReply;
pub(crate) use tunnel::{TunnelReply, failed};

/// Why an answer was not sent to its end.
#[derive(Debug)]
pub(crate) enum ReplyError {
    /// The job has failed, and the server must be told.
    Failed(JobFailure),
    /// The link is gone.
    LinkGone,
}

impl From<OutboxClosed> for ReplyError {
    fn from(_: OutboxClosed) -> Self {
        Self::LinkGone
    }
}

impl From<BackendError> for ReplyError {
    fn from(error: BackendError) -> Self {
        // The full error is only logged: a client has no use for addresses of this network. A
        // refused key was logged before.
        if !matches!(error, BackendError::KeyRefused { .. }) {
            tracing::warn!("{error}");
        }
        let code = match error {
            BackendError::Unreachable { .. } => FailureCode::BackendUnreachable,
            BackendError::Timeout { .. } => FailureCode::BackendTimeout,
            BackendError::Broke { .. }
            | BackendError::NoModels { .. }
            | BackendError::KeyRefused { .. } => FailureCode::BackendBroke,
            // A busy engine will be free again, as a backend that cannot be reached may come back. The
            // server may try another worker.
            BackendError::Engine { busy: true, .. } => FailureCode::BackendUnreachable,
            BackendError::Engine { .. } => FailureCode::EngineFailed,
            BackendError::BadAsk(_) => FailureCode::BadRequest,
        };
        Self::Failed(JobFailure { code, message: error.without_address() })
    }
}

/// An answer on its way to the server, in any form. Exactly one of `end` and `fail` comes last.
#[derive(Debug)]
pub(crate) enum Reply {
    Json(JsonReply),
    Binary(BinaryReply),
    Tunnel(TunnelReply),
}

impl Reply {
    pub(crate) async fn head(
        &mut self,
        status: StatusCode,
        headers: HeaderMap,
    ) -> Result<(), ReplyError> {
        match self {
            Self::Json(reply) => reply.head(status, headers),
            Self::Binary(reply) => reply.head(status, &headers).await?,
            Self::Tunnel(reply) => reply.head(status, headers).await?,
        }
        Ok(())
    }

    /// Sends what is held back of the answer. To be called before waiting for the backend.
    pub(crate) async fn flush(&mut self) -> Result<(), ReplyError> {
        match self {
            Self::Binary(reply) => Ok(reply.flush().await?),
            Self::Json(_) | Self::Tunnel(_) => Ok(()),
        }
    }

    pub(crate) async fn chunk(&mut self, bytes: Bytes) -> Result<(), ReplyError> {
        match self {
            Self::Json(reply) => reply.chunk(&bytes).await,
            Self::Binary(reply) => reply.chunk(bytes).await,
            Self::Tunnel(reply) => Ok(reply.chunk(bytes).await?),
        }
    }

    pub(crate) async fn end(&mut self) -> Result<(), ReplyError> {
        match self {
            Self::Json(reply) => reply.end().await,
            Self::Binary(reply) => Ok(reply.end().await?),
            Self::Tunnel(reply) => Ok(reply.end().await?),
        }
    }

    /// Whether the server itself keeps a job waiting if the backend takes no requests.
    pub(crate) fn server_waits(&self) -> bool {
        matches!(self, Self::Binary(_))
    }

    /// Ends a job that has failed. Never waits.
    pub(crate) fn fail(&mut self, failure: JobFailure) {
        // If the link is gone, the server need not be told.
        let _ = match self {
            Self::Json(reply) => reply.fail(&failure),
            Self::Binary(reply) => reply.fail(failure),
            Self::Tunnel(reply) => reply.fail(failure),
        };
    }

    pub(crate) fn json(outbox: Outbox, request_id: String, path: &str, streaming: bool) -> Self {
        Self::Json(JsonReply::new(outbox, request_id, path, streaming))
    }
}

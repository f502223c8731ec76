//! One task: asks the backend, and replies with the text of its answer.

use std::time::Duration;

use backend::{Answer, AnswerBody, BackendError};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use protocol::node::Task;
use tokio::time::timeout;
use translate::{BadAnswer, Body};

use super::{
    chat::{self, TextOf},
    reply::Reply,
};
use crate::{job::wait_for_end, lent::LoadGuard, order::Order};

/// The most bytes of a backend's refusal that are read.
const MAX_REFUSAL: usize = 16 * 1024;

/// How long a task keeps its slot while its answer is not read, because the server does not read or
/// is not connected.
const UNREAD: Duration = Duration::from_secs(5 * 60);

/// A task in its own future. Dropping it closes the backend's connection at once.
#[derive(Debug)]
pub(super) struct TaskJob {
    pub(super) model: String,
    pub(super) task: Task,
    pub(super) lent: LoadGuard,
    pub(super) reply: Reply,
}

/// Why a task was not done.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TaskFailure {
    /// The backend gave no answer, or an incomplete one.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The backend refused the request.
    #[error("{words}")]
    Refused { status: StatusCode, words: String },
    /// The backend's bytes are not an answer.
    #[error("{0}")]
    Answer(#[from] BadAnswer),
    /// The server takes nothing of the answer.
    #[error("the server took nothing of the answer for {UNREAD:?}")]
    Unread,
    /// The task panicked.
    #[error("the worker failed at it")]
    Panicked,
}

impl TaskFailure {
    /// Whether the task itself is at fault, for example because it is too long for the model.
    pub(super) fn is_the_tasks_own(&self) -> bool {
        use StatusCode as Status;
        let own = [Status::BAD_REQUEST, Status::PAYLOAD_TOO_LARGE, Status::UNPROCESSABLE_ENTITY];
        matches!(self, Self::Refused { status, .. } if own.contains(status))
    }

    /// The failure in words that name no address of this network.
    pub(super) fn without_address(&self) -> String {
        match self {
            Self::Backend(error) => error.without_address(),
            other => base::address::without_addresses(&other.to_string()),
        }
    }

    /// Whether the server took nothing of the answer.
    pub(super) fn is_unread(&self) -> bool {
        matches!(self, Self::Unread)
    }
}

impl TaskJob {
    /// Runs to the end of the task.
    ///
    /// # Errors
    /// [`TaskFailure`], of which the server does not know yet.
    pub(super) async fn run(self) -> Result<(), TaskFailure> {
        let _slot = self.lent.slot().await;
        let Answer { status, headers, body } = self.lent.send(&mut self.order(), true).await?;
        if !status.is_success() {
            let beginning = beginning(body).await;
            let words = chat::refusal(status.as_u16(), &beginning);
            return Err(TaskFailure::Refused { status, words });
        }
        let rest = self.forward(TextOf::new(kind(&headers)), body).await?;
        self.reply.end(self.task.id);
        self.lent.count_answer();
        if let Some(body) = rest {
            wait_for_end(body).await;
        }
        Ok(())
    }

    fn order(&self) -> Order {
        let json = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Order {
            model: self.model.clone(),
            path: chat::PATH.to_owned(),
            streaming: true,
            headers: HeaderMap::from_iter([json]),
            body: vec![Bytes::from(chat::request(&self.model, &self.task))],
            ..Order::default()
        }
    }

    /// Sends all text. Returns the body if the text is complete but the backend has not ended the
    /// body yet.
    async fn forward(
        &self,
        mut reader: TextOf,
        mut body: AnswerBody,
    ) -> Result<Option<AnswerBody>, TaskFailure> {
        while let Some(bytes) = body.next().await {
            let (bytes, mut text) = (bytes?, Vec::new());
            self.lent.count_bytes(bytes.len());
            let read = reader.feed(&bytes, &mut text);
            // The text before a fault is sent as well.
            self.say(&text).await?;
            read?;
            if reader.is_over() {
                return Ok(Some(body));
            }
        }
        let mut text = Vec::new();
        reader.end(&mut text)?;
        self.say(&text).await?;
        Ok(None)
    }

    /// Sends text at once, as the backend brought it.
    async fn say(&self, text: &[u8]) -> Result<(), TaskFailure> {
        let text = str::from_utf8(text).map_err(|error| BadAnswer(error.to_string()))?;
        let saying = self.reply.say(self.task.id, text);
        // The time-out is for each piece, so that a long answer that is read slowly is not cut off.
        timeout(UNREAD, saying).await.map_err(|_| TaskFailure::Unread)
    }
}

fn kind(headers: &HeaderMap) -> Body {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    match kind {
        Some(kind) if kind.trim_start().starts_with("application/json") => Body::Json,
        _ => Body::Events,
    }
}

async fn beginning(mut body: AnswerBody) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < MAX_REFUSAL {
        let Some(Ok(bytes)) = body.next().await else { break };
        read.extend_from_slice(&bytes);
    }
    read.truncate(MAX_REFUSAL);
    read
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_refusals_of_the_request_are_the_tasks_own_fault() {
        let own = |status| TaskFailure::Refused { status, words: String::new() }.is_the_tasks_own();
        for status in [400, 413, 422] {
            assert!(own(StatusCode::from_u16(status).unwrap()), "{status}");
        }
        for status in [401, 404, 429, 500, 503] {
            assert!(!own(StatusCode::from_u16(status).unwrap()), "{status}");
        }
        assert!(!TaskFailure::Unread.is_the_tasks_own());
    }
}

//! A request of a session here, carried to the member that has its model.

use std::{future::Future, pin::Pin, sync::Arc, time::Duration};

use api::{
    ApiError,
    elsewhere::{Way, lost},
};
use axum::{body::Body, response::Response};
use bytes::Bytes;
use cluster::{Caller, Circuit, Cluster, Service};
use futures_util::{Stream, StreamExt as _, stream};
use http::{Request, StatusCode};
use protocol::{relay::ResponseHead, workspace::Role};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::task::AbortOnDropHandle;
use wire::{Frame, Outbox, OutboxClosed};

use super::{
    MOST_REQUESTS, Places,
    borrow::{Borrower, LentKey},
    messages::{Ask, Reply, fields, frame, headers, read},
};

/// The longest piece of a body in one frame, in bytes.
const PIECE: usize = 60 * 1024;

/// The time after which a client should try again if too many requests are under way.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The way of a session's requests to the member that has its model.
pub(super) struct Carrier {
    pub(super) cluster: Cluster,
    pub(super) borrower: Arc<Borrower>,
    pub(super) lent: Arc<LentKey>,
    pub(super) places: Places,
}

impl Way for Carrier {
    fn carry(
        self: Box<Self>,
        request: Request<Body>,
    ) -> Pin<Box<dyn Future<Output = Result<Response, ApiError>> + Send>> {
        Box::pin(async move { (*self).carry(request).await })
    }
}

impl Carrier {
    async fn carry(self, request: Request<Body>) -> Result<Response, ApiError> {
        let place = self.places.take(&self.lent.node).ok_or_else(|| self.no_place())?;
        let (parts, body) = request.into_parts();
        let mut circuit =
            self.cluster.open_service(&self.lent.node, Service::Models, self.caller());
        let path = parts.uri.path_and_query().map_or("/", |path| path.as_str()).to_owned();
        let ask =
            Ask::Request { session: self.borrower.session, path, headers: fields(&parts.headers) };
        // If the circuit has ended, the read below fails.
        let _ended = circuit.send(frame(&ask));
        let sending = tokio::spawn(send(body, circuit.requests()));
        let sending = AbortOnDropHandle::new(sending);
        let heard = circuit.next().await.map_err(|ended| lost(self.words(&ended.to_string())))?;
        match read(&heard) {
            Some(Reply::Head(head)) => {
                let words = self.words("the answer broke off");
                Ok(self
                    .response(&head, Answer { circuit, words, _sending: sending, _place: place }))
            }
            Some(Reply::Refused { message }) => {
                self.lent.give_up();
                Err(lost(self.words(&message)))
            }
            _ => Err(lost(self.words("its answer makes no sense"))),
        }
    }

    fn caller(&self) -> Caller {
        Caller { who: self.borrower.who(), role: Role::Write, member: None }
    }

    fn words(&self, what: &str) -> String {
        format!("{}, which has the model {}: {what}", self.lent.name, self.borrower.model)
    }

    fn response(&self, head: &ResponseHead, answer: Answer) -> Response {
        let mut response = Response::new(Body::from_stream(answer.pieces()));
        let status = StatusCode::from_u16(head.status_code).unwrap_or(StatusCode::BAD_GATEWAY);
        let is_gone = matches!(status.as_u16(), 401 | 404 | 503 | 504);
        if is_gone {
            self.lent.give_up();
        }
        *response.status_mut() = status;
        *response.headers_mut() = headers(&head.headers);
        response
    }

    fn no_place(&self) -> ApiError {
        let words = format!("{MOST_REQUESTS} requests are under way to {} already", self.lent.name);
        let kind = api::error::Kind::Overload;
        let error = ApiError::new(StatusCode::TOO_MANY_REQUESTS, kind, words);
        ApiError { retry_after: Some(TRY_AGAIN), ..error }
    }
}

/// An answer on its way. If it is dropped, its circuit closes, and so the member hears that the client has left.
struct Answer {
    circuit: Circuit,
    /// The beginning of the words of an error.
    words: String,
    _sending: AbortOnDropHandle<()>,
    _place: OwnedSemaphorePermit,
}

impl Answer {
    fn pieces(self) -> impl Stream<Item = Result<Bytes, String>> + Send {
        stream::unfold(Some(self), |answer| async move {
            let mut answer = answer?;
            match answer.next().await {
                Ok(Some(bytes)) => Some((Ok(bytes), Some(answer))),
                Ok(None) => None,
                Err(why) => Some((Err(format!("{}: {why}", answer.words)), None)),
            }
        })
    }

    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let heard = self.circuit.next().await.map_err(|ended| ended.to_string())?;
        if let Frame::Binary(bytes) = heard {
            return Ok(Some(bytes));
        }
        match read(&heard) {
            Some(Reply::End) => Ok(None),
            Some(Reply::Broken { message }) => Err(message),
            _ => Err("it makes no sense".to_owned()),
        }
    }
}

/// Sends the body of a request, as fast as the circuit takes it. If the body breaks off, no end is sent: its client is
/// gone, and the circuit closes.
async fn send(body: Body, outbox: Outbox) {
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        let Ok(piece) = piece else { return };
        if send_piece(piece, &outbox).await.is_err() {
            return;
        }
    }
    let _circuit_ended = outbox.push(frame(&Ask::End));
}

async fn send_piece(mut bytes: Bytes, outbox: &Outbox) -> Result<(), OutboxClosed> {
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE));
        outbox.send(Frame::Binary(piece)).await?;
    }
    Ok(())
}

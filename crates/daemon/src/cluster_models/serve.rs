//! A request of another member's session, served here.

use api::elsewhere::Carried;
use axum::{body::Body, response::Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::{HeaderValue, Method, Request, header};
use protocol::relay::{HeaderFields, ResponseHead};
use tokio::{sync::mpsc, time::timeout};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use tower::ServiceExt as _;
use wire::{Frame, Outbox, OutboxClosed, OutboxReader};

use super::{
    MOST_REQUESTS,
    lend::{Borrower, KeyLender, SessionKey, until_left},
    messages::{Ask, Reply, fields, frame, headers, read},
};

/// The most pieces of a body that wait for the API.
const PIECES: usize = 4;

/// A piece of a body, or why it broke off.
type Piece = Result<Bytes, &'static str>;

/// Serves a request. `head` is its path and headers. Returns once the answer is complete and the client has left.
pub(super) async fn request(
    lender: &KeyLender,
    borrowing: &Borrower,
    head: (&str, &HeaderFields),
    mut requests: OutboxReader,
    answers: Outbox,
) {
    let refused = match (lender.get(borrowing), lender.places.take(&borrowing.node)) {
        (None, _) => "it has no key for the session any more; try again".to_owned(),
        (_, None) => format!("{MOST_REQUESTS} requests are under way to it already"),
        (Some(lent), Some(_place)) => match made(head, &lent) {
            Some(made) => return serve(lender, &lent, made, requests, &answers).await,
            None => "the request's path makes no sense".to_owned(),
        },
    };
    let _gone = answers.push(frame(&Reply::refused(refused)));
    let _in_vain = timeout(super::lend::WITHIN, until_left(&mut requests)).await;
}

/// The request with the session's key, without its body.
fn made((path, given): (&str, &HeaderFields), lent: &SessionKey) -> Option<Request<()>> {
    let mut request = Request::builder().method(Method::POST).uri(path).body(()).ok()?;
    *request.headers_mut() = headers(given);
    request.extensions_mut().insert(Carried);
    let bearer = format!("Bearer {}", lent.secret.expose());
    request.headers_mut().insert(header::AUTHORIZATION, HeaderValue::try_from(bearer).ok()?);
    Some(request)
}

async fn serve(
    lender: &KeyLender,
    lent: &SessionKey,
    made: Request<()>,
    requests: OutboxReader,
    answers: &Outbox,
) {
    let (sender, pieces) = mpsc::channel(PIECES);
    let left = CancellationToken::new();
    let reading = tokio::spawn(read_body(requests, sender, left.clone()));
    let _reading = AbortOnDropHandle::new(reading);
    let request = made.map(|()| body(pieces));
    let answering = async {
        // A router never fails: the type of its error has no values.
        let Ok(response) = lender.router.clone().oneshot(request).await;
        let _client_gone = answer(response, answers).await;
        left.cancelled().await;
    };
    let ended = async {
        if let Some(key) = lender.keys.get(&lent.id) {
            key.ended().await;
        }
    };
    tokio::select! {
        () = answering => {}
        () = left.cancelled() => {}
        () = ended => {}
    }
}

fn body(pieces: mpsc::Receiver<Piece>) -> Body {
    let pieces = stream::unfold(pieces, |mut pieces| async move {
        let piece = pieces.recv().await?;
        Some((piece, pieces))
    });
    Body::from_stream(pieces)
}

/// Reads the body, then waits until the client has left. A body that the API does not want is read, too: otherwise
/// nobody would notice that the client has left.
async fn read_body(
    mut requests: OutboxReader,
    sender: mpsc::Sender<Piece>,
    left: CancellationToken,
) {
    let _left = left.drop_guard();
    while let Some(heard) = requests.next().await {
        match heard {
            Frame::Binary(bytes) => {
                let _unwanted = sender.send(Ok(bytes)).await;
            }
            text if matches!(read(&text), Some(Ask::End)) => {
                drop(sender);
                return until_left(&mut requests).await;
            }
            Frame::Text(_) => break,
        }
    }
    let _unwanted = sender.send(Err("the client has left")).await;
}

/// Writes the answer as fast as the circuit takes it.
async fn answer(response: Response, answers: &Outbox) -> Result<(), OutboxClosed> {
    let (parts, body) = response.into_parts();
    let head = ResponseHead { status_code: parts.status.as_u16(), headers: fields(&parts.headers) };
    answers.push(frame(&Reply::Head(head)))?;
    let mut pieces = body.into_data_stream();
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(bytes) => answers.send(Frame::Binary(bytes)).await?,
            Err(error) => {
                return answers.push(frame(&Reply::Broken { message: error.to_string() }));
            }
        }
    }
    answers.push(frame(&Reply::End))
}

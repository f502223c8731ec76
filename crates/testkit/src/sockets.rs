//! The common parts of the servers and WebSockets of this crate.

use std::net::SocketAddr;

use futures_util::{Stream, StreamExt};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        handshake::{
            client,
            server::{ErrorResponse, Request, Response},
        },
        http::{HeaderValue, header::SEC_WEBSOCKET_PROTOCOL},
        protocol::{CloseFrame, frame::coding::CloseCode},
    },
};
use tokio_util::task::AbortOnDropHandle;

use crate::{wait::within, worker::Refused};

pub(crate) type Task = AbortOnDropHandle<()>;

pub(crate) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Task {
    AbortOnDropHandle::new(tokio::spawn(task))
}

pub(crate) fn any_port() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

pub(crate) async fn listen(address: SocketAddr) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(address).await.expect("a port to listen on");
    let address = listener.local_addr().expect("its address");
    (listener, address)
}

/// Gives each connection a task of its own. Dropping the handle ends all of them.
pub(crate) fn accept<F>(
    listener: TcpListener,
    serve: impl Fn(TcpStream) -> F + Send + 'static,
) -> Task
where
    F: Future<Output = ()> + Send + 'static,
{
    spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                Ok((stream, _)) = listener.accept() => drop(connections.spawn(serve(stream))),
                // Ended tasks leave the set, so that it does not grow.
                Some(_) = connections.join_next() => {}
            }
        }
    })
}

/// When this returns, the port is free and every connection is reset.
pub(crate) async fn stop(accepting: Task) {
    accepting.abort();
    // It was aborted, and says so.
    let _aborted = accepting.await;
}

/// Agrees to the first subprotocol that is offered, whatever it is, as stock servers do.
#[expect(clippy::result_large_err, clippy::unnecessary_wraps, reason = "the handshake's own form")]
pub(crate) fn agree(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    let offered = request.headers().get(SEC_WEBSOCKET_PROTOCOL);
    let first = offered.and_then(|names| names.to_str().ok()?.split(',').next());
    if let Some(first) = first.and_then(|name| HeaderValue::from_str(name.trim()).ok()) {
        response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, first);
    }
    Ok(response)
}

/// Connects and upgrades; a refusal is an answer that is no upgrade.
pub(crate) async fn upgrade(
    address: SocketAddr,
    request: impl IntoClientRequest + Unpin,
    nodelay: bool,
) -> Result<(WebSocketStream<TcpStream>, client::Response), Refused> {
    let stream = within("connecting", TcpStream::connect(address)).await;
    let stream = stream.expect("the server takes connections");
    stream.set_nodelay(nodelay).expect("a TCP connection");
    match within("the upgrade", client_async(request, stream)).await {
        Ok(upgraded) => Ok(upgraded),
        Err(Error::Http(response)) => Err(Refused {
            status: response.status().as_u16(),
            body: String::from_utf8_lossy(response.body().as_deref().unwrap_or_default())
                .into_owned(),
        }),
        Err(error) => panic!("the upgrade failed: {error}"),
    }
}

/// Waits for the server to close: the code and the reason, if it said any. What it says before that is passed over.
pub(crate) async fn closed(
    messages: &mut (impl Stream<Item = Result<Message, Error>> + Unpin),
) -> Option<(u16, String)> {
    loop {
        match within("the server closing the connection", messages.next()).await {
            Some(Ok(Message::Close(frame))) => return reason(frame),
            Some(Ok(_)) => {}
            Some(Err(_)) | None => return None,
        }
    }
}

/// Closes a WebSocket, whose other end may have gone first.
pub(crate) async fn close(
    socket: &mut WebSocketStream<TcpStream>,
    code: u16,
    reason: &'static str,
) {
    let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
    let _gone = socket.close(Some(frame)).await;
}

pub(crate) fn reason(frame: Option<CloseFrame>) -> Option<(u16, String)> {
    frame.map(|frame| (frame.code.into(), frame.reason.to_string()))
}

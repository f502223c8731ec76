//! An API server in the hands of a test, as stock nodes meet it.
//!
//! It takes any path, agrees to any subprotocol, lets a node in or closes it as a stock server does,
//! and hands the connection to the test, which says and hears frames. Its JSON is written out
//! literally, and it shares no code with the house.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::{
    net::TcpStream,
    sync::{Mutex as AsyncMutex, mpsc},
};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async,
    tungstenite::{
        Message,
        handshake::server::{Request, Response},
        http::HeaderValue,
    },
};

use crate::{
    sockets::{Task, accept, agree, any_port, close, listen, reason, stop},
    wait::within,
};

/// Frames that are kept until the test takes them; one that takes none fails there.
const MAX_FRAMES: usize = 10_000;

/// Connections that are kept until the test takes them.
const MAX_NODES: usize = 1_000;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeMessage {
    /// The empty text frame that keeps the connection.
    KeepAlive,
    Text(String),
    Piece(u32, String),
    End(u32),
    /// It closed the connection, with this code and reason.
    Closed(Option<(u16, String)>),
}

enum Order {
    Send(Message),
    Close(u16, &'static str),
    Vanish,
}

/// The connections by model and name, each with the way to end it.
type Names = Mutex<HashMap<(String, String), mpsc::Sender<Order>>>;

/// A server on a port of its own. Dropping it resets every connection.
#[derive(Debug)]
pub struct NodeServer {
    address: SocketAddr,
    nodes: AsyncMutex<mpsc::Receiver<NodeLink>>,
    accepting: Task,
}

#[derive(Debug)]
pub struct NodeLink {
    pub path: String,
    /// Its parameters, but for the token.
    pub model: String,
    pub name: String,
    pub max_concurrency: String,
    orders: mpsc::Sender<Order>,
    said: mpsc::Receiver<NodeMessage>,
}

impl NodeServer {
    pub async fn start(token: &str) -> Self {
        Self::start_at(any_port(), token).await
    }

    /// The same at a given address, such as that of a server that was stopped.
    pub async fn start_at(address: SocketAddr, token: &str) -> Self {
        Self::listen(address, token, false).await
    }

    /// A server that says in its answer that it is a Warren.
    pub async fn start_as_warren(token: &str) -> Self {
        Self::listen(any_port(), token, true).await
    }

    async fn listen(address: SocketAddr, token: &str, warren: bool) -> Self {
        let (listener, address) = listen(address).await;
        let ((joined, nodes), names) = (mpsc::channel(MAX_NODES), Arc::<Names>::default());
        let token = token.to_owned();
        let accepting = accept(listener, move |stream| {
            let (token, joined, names) = (token.clone(), joined.clone(), Arc::clone(&names));
            connection(stream, token, warren, joined, names)
        });
        Self { address, nodes: AsyncMutex::new(nodes), accepting }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub async fn node(&self) -> NodeLink {
        let mut nodes = self.nodes.lock().await;
        within("a node", nodes.recv()).await.expect("the server is there")
    }

    /// Ends it: when this returns, its port is free and every connection is reset.
    pub async fn stop(self) {
        stop(self.accepting).await;
    }

    /// Whether no node is there that the test has not taken.
    pub async fn is_deserted(&self) -> bool {
        self.nodes.lock().await.is_empty()
    }
}

impl NodeLink {
    /// Sends a task of one user message, in the form of stock servers.
    pub async fn task(&self, id: u32, content: &str) {
        self.say(&json!({
            "state": 0, "id": id, "resp": "", "modLastCheckedPos": 0, "system": "You are a helper.",
            "messages": [{"role": "user", "content": content}],
            "max_new_tokens": 50, "temperature": 0, "created_at": 1_633_028_302,
            "user": {"token": "-", "name": "alice"},
        }))
        .await;
    }

    pub async fn stop(&self, id: u32) {
        self.say(&json!({"id": id, "stop": true})).await;
    }

    pub async fn say(&self, message: &Value) {
        self.raw(Message::text(message.to_string())).await;
    }

    pub async fn raw(&self, frame: Message) {
        self.order(Order::Send(frame)).await;
    }

    pub async fn close(&self, code: u16, reason: &'static str) {
        self.order(Order::Close(code, reason)).await;
    }

    /// Ends the connection without a word.
    pub async fn vanish(&self) {
        self.order(Order::Vanish).await;
    }

    pub async fn said(&mut self) -> NodeMessage {
        within("a frame of the node", self.said.recv()).await.expect("the node is there")
    }

    /// The node's next message about its tasks.
    pub async fn answer(&mut self) -> NodeMessage {
        loop {
            match self.said().await {
                NodeMessage::KeepAlive => {}
                other => return other,
            }
        }
    }

    /// The whole text of a task, which must be the only one that is answered.
    pub async fn text(&mut self, id: u32) -> String {
        let mut text = String::new();
        loop {
            match self.answer().await {
                NodeMessage::Piece(piece_of, piece) if piece_of == id => text.push_str(&piece),
                NodeMessage::End(end_of) if end_of == id => return text,
                other => panic!("{other:?} instead of the answer to {id}"),
            }
        }
    }

    async fn order(&self, order: Order) {
        self.orders.send(order).await.expect("the connection is there");
    }
}

async fn connection(
    stream: TcpStream,
    token: String,
    warren: bool,
    joined: mpsc::Sender<NodeLink>,
    names: Arc<Names>,
) {
    let mut target = String::new();
    #[expect(clippy::result_large_err, reason = "the library's callback")]
    let look = |request: &Request, response: Response| {
        target = request.uri().to_string();
        let mut response = agree(request, response)?;
        if warren {
            response.headers_mut().insert("x-warren-node", HeaderValue::from_static("1"));
        }
        Ok(response)
    };
    // Other connections do not concern the test.
    let Ok(mut socket) = accept_hdr_async(stream, look).await else { return };
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let query: HashMap<_, _> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let whole = ["token", "model", "max_concurrency", "name"].map(|name| query.get(name).cloned());
    let [Some(given), Some(model), Some(max_concurrency), Some(name)] = whole else {
        return refuse(socket, 4001, "Missing token, model, max_concurrency, or name").await;
    };
    if given != token {
        return refuse(socket, 4002, "Invalid token").await;
    }
    let (orders, ordered) = mpsc::channel(MAX_FRAMES);
    let place = (model.clone(), name.clone());
    let before = names.lock().unwrap().insert(place, orders.clone());
    if let Some(before) = before {
        // A connection that is gone needs no close.
        let _gone = before.send(Order::Close(4000, "Bye")).await;
    }
    let (heard, said) = mpsc::channel(MAX_FRAMES);
    let path = path.to_owned();
    let node = NodeLink { path, model, name, max_concurrency, orders, said };
    joined.send(node).await.expect("the test is there");
    serve(&mut socket, ordered, &heard).await;
}

async fn refuse(mut socket: WebSocketStream<TcpStream>, code: u16, reason: &'static str) {
    close(&mut socket, code, reason).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn serve(
    socket: &mut WebSocketStream<TcpStream>,
    mut ordered: mpsc::Receiver<Order>,
    heard: &mpsc::Sender<NodeMessage>,
) {
    loop {
        tokio::select! {
            Some(order) = ordered.recv() => match order {
                Order::Send(message) => drop(socket.send(message).await),
                Order::Close(code, reason) => close(socket, code, reason).await,
                Order::Vanish => {
                    // A reset, so that nothing waits for a goodbye.
                    return socket.get_ref().set_zero_linger().expect("a TCP connection");
                }
            },
            message = socket.next() => {
                let Some(said) = said(message) else { continue };
                let over = matches!(said, NodeMessage::Closed(_));
                // A test that looks no more may let its connection go.
                let _unheard = heard.send(said).await;
                if over {
                    // The goodbye is answered by reading on.
                    while let Some(Ok(_)) = socket.next().await {}
                    return;
                }
            }
        }
    }
}

fn said(
    message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>,
) -> Option<NodeMessage> {
    Some(match message {
        Some(Ok(Message::Text(text))) if text.is_empty() => NodeMessage::KeepAlive,
        Some(Ok(Message::Text(text))) => NodeMessage::Text(text.to_string()),
        Some(Ok(Message::Binary(bytes))) => {
            let (id, text) = bytes.split_first_chunk().expect("four bytes at least");
            let id = u32::from_be_bytes(*id);
            let text = str::from_utf8(text).expect("whole characters").to_owned();
            if text.is_empty() { NodeMessage::End(id) } else { NodeMessage::Piece(id, text) }
        }
        Some(Ok(Message::Close(frame))) => NodeMessage::Closed(reason(frame)),
        Some(Ok(_)) => return None,
        Some(Err(_)) | None => NodeMessage::Closed(None),
    })
}

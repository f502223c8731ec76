//! A relay on a port of its own, and nodes in the hands of a test.

use std::net::SocketAddr;

use futures_util::{SinkExt, StreamExt};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use mesh_relay::{InMemory, MeshRelay, Settings};
use seal::Identity;
use serde_json::{Value, json};
use testkit::within;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Error, Message, client::IntoClientRequest, http::HeaderValue},
};

pub(crate) struct Kit {
    pub(crate) relay: MeshRelay,
    pub(crate) address: SocketAddr,
}

impl Kit {
    pub(crate) async fn new() -> Self {
        Self::with(Settings::default()).await
    }

    pub(crate) async fn with(settings: Settings) -> Self {
        let relay = MeshRelay::new(settings, Box::new(InMemory::default()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve(listener, relay.clone()));
        Self { relay, address }
    }

    /// A connection that has said nothing yet.
    pub(crate) async fn dial(&self) -> Node {
        self.dial_as(None, None).await.unwrap()
    }

    /// A connection that wants a challenge.
    pub(crate) async fn dial_warren(&self) -> Node {
        self.dial_as(Some("warren.mesh.2"), None).await.unwrap()
    }

    pub(crate) async fn dial_as(
        &self,
        subprotocol: Option<&'static str>,
        host: Option<&'static str>,
    ) -> Result<Node, u16> {
        let url = format!("ws://{}/ws?node=x", self.address);
        let mut request = url.into_client_request().unwrap();
        if let Some(name) = subprotocol {
            let name = HeaderValue::from_static(name);
            request.headers_mut().insert("sec-websocket-protocol", name);
        }
        if let Some(host) = host {
            request.headers_mut().insert("host", HeaderValue::from_static(host));
        }
        let stream = TcpStream::connect(self.address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        match within("the upgrade", client_async(request, stream)).await {
            Ok((socket, response)) => {
                // The answer has the header only if the client asks for a challenge and gets one.
                let says = response.headers().get("x-warren-mesh");
                assert_eq!(says.map(HeaderValue::as_bytes), subprotocol.map(|_| &b"2"[..]));
                Ok(Node { socket, id: String::new() })
            }
            Err(Error::Http(response)) => Err(response.status().as_u16()),
            Err(error) => panic!("{error}"),
        }
    }

    /// A node that has registered as stock ones do.
    pub(crate) async fn node(&self, number: u8) -> Node {
        let mut node = self.dial().await;
        let identity = Identity::from_seed([number; 32]);
        let id = identity.node_id().to_string();
        let signature = seal::sign_hex(&identity, &id);
        node.register(&id, &signature, json!({"loadedModels": [format!("m{number}")]})).await;
        assert_eq!(node.hear().await["registerAck"]["nodeID"], id);
        node
    }

    /// Two nodes with a relay session between them.
    pub(crate) async fn pair(&self) -> (Node, Node) {
        let (mut one, mut two) = (self.node(1).await, self.node(2).await);
        one.pass_on("relayOpen", &two.id, json!({"sessionID": "s"})).await;
        two.hear().await;
        (one, two)
    }
}

async fn serve(listener: TcpListener, relay: MeshRelay) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).unwrap();
        let relay = relay.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            let response = relay.connect(&mut request);
            async move { Ok::<_, std::convert::Infallible>(response) }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::spawn(connection.with_upgrades());
    }
}

pub(crate) struct Node {
    pub(crate) socket: WebSocketStream<TcpStream>,
    pub(crate) id: String,
}

impl Node {
    pub(crate) async fn register(&mut self, id: &str, signature: &str, capabilities: Value) {
        id.clone_into(&mut self.id);
        let register = json!({"nodeID": id, "publicKey": id, "displayName": "node",
                              "capabilities": capabilities, "signature": signature});
        self.say(&json!({ "register": register }).to_string()).await;
    }

    /// Sends a message of a kind to another, with more fields.
    pub(crate) async fn pass_on(&mut self, kind: &str, to: &str, more: Value) {
        let text = self.text(kind, to, more);
        self.say(&text).await;
    }

    pub(crate) fn text(&self, kind: &str, to: &str, more: Value) -> String {
        let mut body = json!({"fromNodeID": self.id, "toNodeID": to});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ kind: body }).to_string()
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.send(Message::text(text)).await;
    }

    pub(crate) async fn send(&mut self, message: Message) {
        within("sending", self.socket.send(message)).await.unwrap();
    }

    /// The next message.
    pub(crate) async fn hear(&mut self) -> Value {
        self.hear_text().await.parse().unwrap()
    }

    /// The next message, as it is.
    pub(crate) async fn hear_text(&mut self) -> String {
        loop {
            match within("a message", self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return text.to_string(),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                other => panic!("{other:?} where a message was expected"),
            }
        }
    }

    /// Waits for the relay to close: the code.
    pub(crate) async fn closed(&mut self) -> Option<u16> {
        loop {
            match within("a close", self.socket.next()).await {
                Some(Ok(Message::Close(frame))) => return frame.map(|frame| frame.code.into()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return None,
            }
        }
    }

    /// Nothing was sent to it that it has not heard: what it asks for now comes next.
    pub(crate) async fn assert_heard_all(&mut self) {
        self.say("{}").await;
        assert_eq!(self.hear().await["error"]["code"], "invalid_message");
    }
}

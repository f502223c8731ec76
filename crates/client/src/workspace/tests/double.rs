//! A server that does as the test says.

use base::Secret;
use futures_util::{SinkExt, StreamExt};
use protocol::workspace::{
    ClientMessage, ServerMessage, SessionId, SessionInfo, SessionKind, SessionMode, SessionStatus,
    client::{Attach, AuthResult, SessionHistory, SessionList, SessionSnapshot},
    decode_request, frame,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_tungstenite::{WebSocketStream, accept_async, tungstenite::Message};

use crate::workspace::Address;

/// The token that it takes.
pub(super) const TOKEN: &str = "wk_right";

pub(super) struct Double {
    listener: TcpListener,
    pub(super) address: Address,
}

/// One connection to it.
pub(super) struct Peer(WebSocketStream<TcpStream>);

impl Double {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let address = Address::new(&url, Some(&Secret::from(TOKEN))).unwrap();
        Self { listener, address }
    }

    pub(super) fn with_token(&self, token: Option<&str>) -> Address {
        Address::new(self.address.shown(), token.map(Secret::from).as_ref()).unwrap()
    }

    /// The next connection, which has shown the right token.
    pub(super) async fn admit(&self) -> Peer {
        let mut peer = self.accept().await;
        let Some(ClientMessage::Auth(auth)) = peer.next().await else { panic!() };
        let success = auth.token.expose() == TOKEN;
        let message = if success { "welcome" } else { "unknown token" }.to_owned();
        peer.tell(ServerMessage::AuthResult(AuthResult { success, message })).await;
        peer
    }

    pub(super) async fn accept(&self) -> Peer {
        Peer(accept_async(self.connection().await).await.unwrap())
    }

    /// The next connection, as it is.
    pub(super) async fn connection(&self) -> TcpStream {
        self.listener.accept().await.unwrap().0
    }

    /// The next connection gets this in place of an answer to its request; `None`: not even its request is
    /// read, and it is reset.
    pub(super) async fn answer_wrongly(&self, answer: Option<&str>) {
        let mut stream = self.connection().await;
        let Some(answer) = answer else { return stream.set_zero_linger().unwrap() };
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut request).await.unwrap(), 0);
        }
        stream.write_all(answer.as_bytes()).await.unwrap();
        // The other end closes first: nothing that was written is lost.
        if !answer.is_empty() {
            let _ended = stream.read_buf(&mut request).await;
        }
    }
}

impl Peer {
    /// The client's next message; `None` once it has gone.
    pub(super) async fn next(&mut self) -> Option<ClientMessage> {
        loop {
            match self.0.next().await?.ok()? {
                Message::Text(text) => return Some(decode_request(text.as_str()).unwrap()),
                Message::Close(_) => return None,
                _ => {}
            }
        }
    }

    pub(super) async fn tell(&mut self, message: ServerMessage) {
        self.tell_text(&message.encode()).await;
    }

    pub(super) async fn tell_text(&mut self, text: &str) {
        self.0.send(Message::text(text)).await.unwrap();
    }

    pub(super) async fn output(&mut self, seq: u64, data: &str) {
        let frame = frame::encode(session(), seq, data.as_bytes());
        self.0.send(Message::Binary(frame)).await.unwrap();
    }

    /// The first message of a client that follows: where it wants to go on.
    pub(super) async fn attached(&mut self) -> Option<u64> {
        let Some(ClientMessage::Attach(Attach { after_seq, .. })) = self.next().await else {
            panic!()
        };
        let Some(ClientMessage::ListSessions(_)) = self.next().await else { panic!() };
        after_seq
    }

    /// Where its output goes on.
    pub(super) async fn history(&mut self, last_seq: u64, screen: Option<&str>) {
        self.tell(history(last_seq, screen)).await;
    }

    pub(super) async fn list(&mut self, status: SessionStatus) {
        let sessions = vec![info(status)];
        self.tell(ServerMessage::SessionList(SessionList { sessions })).await;
    }
}

pub(super) const fn session() -> SessionId {
    SessionId::from_random(7)
}

pub(super) fn history(last_seq: u64, screen: Option<&str>) -> ServerMessage {
    let session_id = session();
    let snapshot = screen.map(|data| SessionSnapshot {
        session_id,
        seq: last_seq,
        cols: 80,
        rows: 24,
        data: data.to_owned(),
    });
    ServerMessage::SessionHistory(SessionHistory { session_id, last_seq, snapshot })
}

pub(super) fn info(status: SessionStatus) -> SessionInfo {
    SessionInfo {
        id: session(),
        name: None,
        mode: SessionMode::Pty,
        status,
        working_dir: "/".to_owned(),
        model: None,
        created_at: jiff::Timestamp::UNIX_EPOCH,
        last_active: jiff::Timestamp::UNIX_EPOCH,
        attached_clients: 0,
        adopted_pid: None,
        project_id: None,
        node_id: None,
        kind: SessionKind::Claude,
        provider: "claude".to_owned(),
        hidden: false,
        team_id: None,
        is_team_leader: false,
        reachable: true,
        dev_server_port: None,
        exit_code: None,
        last_seq: None,
        asks: 0,
        tags: Vec::new(),
    }
}

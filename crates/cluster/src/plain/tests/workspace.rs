//! A workspace that stands for the real one: it answers the clients' protocol, and keeps what it was
//! asked.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicU64, Ordering},
};

use protocol::workspace::{
    ClientMessage, ServerMessage, SessionId,
    client::{
        History, InputAck, OfProject, OfSession, SessionHistory, SessionSnapshot, WithSession,
    },
    decode_request,
    frame::encode,
    peer::SessionObject,
};
use tokio::sync::Notify;
use wire::{Frame, Outbox};

use super::session;
use crate::circuit::{Caller, Host, Served};

/// Lines of output, each of this length in bytes, and how many a flood has.
pub(super) const LINE: usize = 1024;
pub(super) const FLOOD: u64 = 20_000;

#[derive(Default)]
pub(super) struct Workspace {
    pub(super) callers: Mutex<Vec<(String, Caller)>>,
    pub(super) asked: Mutex<Vec<ClientMessage>>,
    pub(super) open: AtomicU64,
    /// The output that the flood has written.
    pub(super) written: AtomicU64,
    pub(super) files_changed: Notify,
}

impl Host for Arc<Workspace> {
    fn serve(&self, served: Served) {
        self.callers.lock().unwrap().push((served.from.clone(), served.caller.clone()));
        self.open.fetch_add(1, Ordering::Relaxed);
        tokio::spawn(Arc::clone(self).guest(served));
    }

    fn max_request(&self) -> usize {
        1024 * 1024
    }
}

impl Workspace {
    pub(super) fn asked(&self) -> Vec<&'static str> {
        self.asked.lock().unwrap().iter().map(ClientMessage::name).collect()
    }

    async fn guest(self: Arc<Self>, mut served: Served) {
        while let Some(frame) = served.requests.next().await {
            let Frame::Text(text) = frame else { panic!("a binary frame") };
            let message = decode_request(&text).unwrap();
            self.asked.lock().unwrap().push(message.clone());
            let answers = served.answers.clone();
            if let ClientMessage::Attach(of) = &message
                && of.session_id != unknown()
            {
                let writing = Arc::clone(&self).output(of.session_id, of.after_seq, answers);
                tokio::spawn(writing);
                continue;
            }
            if let ClientMessage::WatchProjectFiles(of) = message {
                tokio::spawn(Arc::clone(&self).changes(of, answers));
                continue;
            }
            for answer in answers_of(message) {
                let _gone = answers.push(answer.encode());
            }
        }
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Writes as much as its client takes, and leaves out the rest as a session does.
    async fn output(self: Arc<Self>, session_id: SessionId, after: Option<u64>, answers: Outbox) {
        let screen = |seq| SessionSnapshot {
            session_id,
            seq,
            cols: 80,
            rows: 24,
            data: format!("screen at {seq}"),
        };
        let last_seq = after.unwrap_or(7);
        let snapshot = after.is_none().then(|| screen(last_seq));
        let history = SessionHistory { session_id, last_seq, snapshot };
        let _gone = answers.push(ServerMessage::Attached(OfSession { session_id }).encode());
        let _gone = answers.push(ServerMessage::SessionHistory(history).encode());
        let mut is_behind = false;
        for seq in last_seq + 1..=last_seq + FLOOD {
            tokio::task::yield_now().await;
            self.written.store(seq, Ordering::Relaxed);
            is_behind |= !answers.has_room();
            if is_behind && seq < last_seq + FLOOD {
                continue;
            }
            if answers.room().await.is_err() {
                return;
            }
            let frame = match std::mem::take(&mut is_behind) {
                true => Frame::from(ServerMessage::SessionSnapshot(screen(seq)).encode()),
                false => Frame::from(encode(session_id, seq, "x".repeat(LINE).as_bytes())),
            };
            let _gone = answers.push(frame);
        }
    }

    async fn changes(self: Arc<Self>, of: OfProject, answers: Outbox) {
        loop {
            self.files_changed.notified().await;
            let changed = ServerMessage::ProjectFilesChanged(of);
            if answers.push(changed.encode()).is_err() {
                return;
            }
        }
    }
}

/// A session that the workspace does not know.
pub(super) fn unknown() -> SessionId {
    SessionId::from_random(99)
}

fn answers_of(message: ClientMessage) -> Vec<ServerMessage> {
    match message {
        ClientMessage::Keepalive => vec![ServerMessage::KeepaliveAck],
        ClientMessage::SendInput(of) if of.input == "fail" => {
            vec![ServerMessage::error("the agent is busy")]
        }
        ClientMessage::SendInput(of) => {
            let ack = |input_id| ServerMessage::InputAck(InputAck { input_id, turn: Some(3) });
            of.input_id.map(ack).into_iter().collect()
        }
        ClientMessage::RenameSession(of) => {
            let info =
                session(&of.session_id.to_string(), "node-1", &of.name, 0)["info"].to_string();
            let session = Box::new(SessionObject::from_text(&info, 0).unwrap().info());
            vec![ServerMessage::SessionStatusChanged(WithSession { session })]
        }
        ClientMessage::KillSession(of) => vec![ServerMessage::SessionKilled(of)],
        ClientMessage::GetHistory(of) => vec![ServerMessage::History(History {
            session_id: of.session_id,
            from_seq: 1,
            to_seq: 2,
            data: "past".to_owned(),
            more: false,
        })],
        ClientMessage::Attach(of) => {
            vec![ServerMessage::error(format!("there is no session {}", of.session_id))]
        }
        ClientMessage::ListSessions(_) => vec![ServerMessage::SessionList(Default::default())],
        // It takes for ever.
        ClientMessage::Handoff(_) => Vec::new(),
        _ => Vec::new(),
    }
}

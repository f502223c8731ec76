//! A server of the test's own, which says and hears exactly what the test wants.

use std::{collections::VecDeque, sync::Mutex};

use base::CancelReason;
use bytes::Bytes;
use http::HeaderMap;
use protocol::relay::{
    Cancel, CancelCause, HeaderFields, ModelsUpdate, Register, RegisterAck, Request, RequestHead,
    ResponseComplete, ResponseEnd, ServerFrame, ServerMessage, Version, WorkerFrame, WorkerMessage,
};
use tokio::{
    io::duplex,
    sync::{mpsc, oneshot},
    time::timeout,
};
use wire::{DialError, DialedLink, Frame, Link, Outbox, Role};
use worker::{DialFuture, Dialer, ServerTarget};

use super::DEADLINE;

/// Links within the process. Each dial fails with the next of `failures`, or gives the test the
/// server's end.
pub(crate) struct Pipes {
    version: Option<Version>,
    servers: mpsc::Sender<ServerEnd>,
    pub(crate) failures: Mutex<VecDeque<DialError>>,
}

impl Pipes {
    pub(crate) fn new(binary: bool) -> (Self, mpsc::Receiver<ServerEnd>) {
        Self::of(binary.then_some(Version::NEWEST))
    }

    /// Links of a version of the binary form, or of the stock form.
    pub(crate) fn of(version: Option<Version>) -> (Self, mpsc::Receiver<ServerEnd>) {
        let (servers, ends) = mpsc::channel(16);
        (Self { version, servers, failures: Mutex::default() }, ends)
    }
}

impl Dialer for Pipes {
    fn dial<'a>(&'a self, _: &'a ServerTarget) -> DialFuture<'a> {
        let failure = self.failures.lock().unwrap().pop_front();
        Box::pin(async move {
            if let Some(failure) = failure {
                return Err(failure);
            }
            let (near, far) = duplex(1 << 16);
            let (link, outbox) = Link::new(Box::pin(near), Role::Client);
            let far = Link::new(Box::pin(far), Role::Server);
            self.servers.send(ServerEnd::new(self.version.is_some(), far)).await.unwrap();
            let subprotocol = self.version.map(|version| version.name().to_owned());
            Ok(DialedLink { link, outbox, subprotocol, headers: HeaderMap::new() })
        })
    }
}

pub(crate) struct ServerEnd {
    pub(crate) binary: bool,
    outbox: Outbox,
    frames: mpsc::Receiver<Frame>,
    /// The rest of a whole answer.
    rest: VecDeque<WorkerFrame>,
    close: oneshot::Sender<(u16, &'static str)>,
    closed: oneshot::Receiver<Option<(u16, String)>>,
}

impl ServerEnd {
    fn new(binary: bool, (mut link, outbox): (Link, Outbox)) -> Self {
        let (hear, frames) = mpsc::channel(4096);
        let (close, mut closing) = oneshot::channel();
        let (ended, closed) = oneshot::channel();
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    frame = link.next() => match frame {
                        Ok(Some(frame)) => drop(hear.send(frame).await),
                        _ => break,
                    },
                    // A server that is dropped goes away without a word.
                    how = &mut closing => match how {
                        Ok((code, reason)) => return link.close(code, reason).await,
                        Err(_) => return,
                    },
                }
            }
            drop(ended.send(link.close_reason()));
        });
        Self { binary, outbox, frames, rest: VecDeque::new(), close, closed }
    }

    pub(crate) fn close(self, code: u16, reason: &'static str) {
        self.close.send((code, reason)).unwrap();
    }

    /// Waits until the worker has closed, and says how.
    pub(crate) async fn closed(self) -> Option<(u16, String)> {
        timeout(DEADLINE, self.closed).await.unwrap().unwrap()
    }

    pub(crate) fn say(&self, message: &ServerMessage) {
        self.outbox.push(message.encode()).unwrap();
    }

    pub(crate) fn send(&self, frame: &ServerFrame) {
        self.outbox.push(frame.encode(Version::NEWEST)).unwrap();
    }

    /// Asks for something, in the form of the link; `job` is its number and its id `r-JOB`.
    pub(crate) fn request(&self, job: u32, streaming: bool, body: &str) {
        self.request_at("/v1/chat/completions", job, streaming, body);
    }

    pub(crate) fn request_at(&self, path: &str, job: u32, is_streaming: bool, body: &str) {
        let (request_id, model) = (format!("r-{job}"), "m".to_owned());
        let endpoint_path = path.to_owned();
        if self.binary {
            let headers = HeaderFields::from_iter([("x-foo", "2")]);
            let body_len = body.len() as u64;
            let head =
                RequestHead { request_id, model, endpoint_path, is_streaming, headers, body_len };
            self.send(&ServerFrame::Request { job, head, body: body.to_owned().into() });
        } else {
            let headers = [("x-foo".to_owned(), "2".to_owned())].into();
            let body = body.to_owned();
            let request = Request { request_id, model, endpoint_path, is_streaming, body, headers };
            self.say(&ServerMessage::Request(request));
        }
    }

    pub(crate) fn cancel(&self, job: u32) {
        let reason = CancelCause::Known(CancelReason::ClientDisconnect);
        self.say(&ServerMessage::Cancel(Cancel { request_id: format!("r-{job}"), reason }));
    }

    /// Takes the registration, accepts it, and takes the update that follows.
    pub(crate) async fn register(&mut self) -> Register {
        self.register_with(RegisterAck::default()).await
    }

    /// The same with further fields in the answer.
    pub(crate) async fn register_with(&mut self, further: RegisterAck) -> Register {
        let register = match self.message().await {
            WorkerMessage::Register(register) => register,
            other => panic!("{other:?}"),
        };
        let models = register.models.clone();
        let ack = RegisterAck { worker_id: "w-1".to_owned(), models, ..further };
        self.say(&ServerMessage::RegisterAck(ack));
        assert_eq!(self.models().await.models, register.models);
        register
    }

    pub(crate) async fn models(&mut self) -> ModelsUpdate {
        match self.message().await {
            WorkerMessage::ModelsUpdate(update) => update,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) async fn complete(&mut self) -> ResponseComplete {
        match self.message().await {
            WorkerMessage::ResponseComplete(complete) => complete,
            other => panic!("{other:?}"),
        }
    }

    /// The text of the next chunk, which must belong to this job.
    pub(crate) async fn chunk(&mut self, job: u32) -> String {
        match self.message().await {
            WorkerMessage::ResponseChunk(chunk) => {
                assert_eq!(chunk.request_id, format!("r-{job}"));
                chunk.chunk
            }
            other => panic!("{other:?}"),
        }
    }

    /// The bytes of the next binary chunk, which must belong to this job.
    pub(crate) async fn bytes(&mut self, job: u32) -> Bytes {
        match self.frame().await {
            WorkerFrame::Chunk { job: number, bytes } if number == job => bytes,
            other => panic!("{other:?}"),
        }
    }

    /// The next text message.
    pub(crate) async fn message(&mut self) -> WorkerMessage {
        match self.next().await {
            Frame::Text(text) => WorkerMessage::decode(&text).unwrap(),
            Frame::Binary(bytes) => panic!("{:?}", WorkerFrame::decode(bytes)),
        }
    }

    /// The next binary frame. A whole answer is the same as its parts: how much of an answer is there at
    /// once is up to the network.
    pub(crate) async fn frame(&mut self) -> WorkerFrame {
        if let Some(part) = self.rest.pop_front() {
            return part;
        }
        let frame = match self.next().await {
            Frame::Binary(bytes) => WorkerFrame::decode(bytes).unwrap(),
            Frame::Text(text) => panic!("{text}"),
        };
        let WorkerFrame::Whole { job, head, body } = frame else { return frame };
        if !body.is_empty() {
            self.rest.push_back(WorkerFrame::Chunk { job, bytes: body });
        }
        self.rest.push_back(WorkerFrame::End { job, end: ResponseEnd::default() });
        WorkerFrame::Head { job, head }
    }

    pub(crate) async fn next(&mut self) -> Frame {
        timeout(DEADLINE, self.frames.recv()).await.unwrap().unwrap()
    }

    /// Whether nothing is there that has not been taken.
    pub(crate) fn is_silent(&self) -> bool {
        self.frames.is_empty()
    }
}

//! Streams of bytes between servers.
//!
//! A stream is opened with its first bytes, which go in the message that opens it. Both ends are the pure machine
//! of [`fleet::stream`]; this drives it. One task of the node hands frames to the streams (`Streams::arrived`), and one looks at
//! their deadlines (`Streams::keep`).
//!
//! - `cell`: one end of a stream, shared between its user and the node
//! - [`end`]: what a user has of it
//! - `io`: the same as tokio's reader and writer

mod cell;
pub mod end;
mod io;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use fleet::{
    Frame, ServerId, Stream, StreamId,
    stream::{EndedStreams, Reason, WINDOW, ended},
};

use self::cell::Cell;
pub use self::end::{FellowStream, Over};
use crate::{
    clock::now,
    transport::{Kind, Transport},
};

/// How often deadlines of streams are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// The most streams with one fellow.
pub(crate) const MOST_STREAMS: usize = 8_192;

/// The purpose of a stream: its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service(u8);

impl Service {
    /// A job of a fellow for a worker of this server.
    pub const JOBS: Self = Self(1);
    /// A request about a room, for the server that orders its events.
    pub const ROOMS: Self = Self(2);
}

/// Takes the streams that fellows open for one service. It is called by the task that all messages of fellows go
/// through, so it spawns what takes time.
pub type Handler = Arc<dyn Fn(FellowStream) + Send + Sync>;

/// All streams of this server with its fellows.
pub(crate) struct Streams {
    transport: Arc<Transport>,
    table: Mutex<Table>,
    handlers: RwLock<BTreeMap<Service, Handler>>,
}

#[derive(Default)]
struct Table {
    /// The fellows, with their streams.
    fellows: HashMap<ServerId, HashMap<StreamId, Arc<Cell>>>,
    ended: EndedStreams,
}

impl Streams {
    pub(crate) fn new(transport: Arc<Transport>) -> Arc<Self> {
        Arc::new(Self { transport, table: Mutex::default(), handlers: RwLock::default() })
    }

    /// Streams for this service go to this handler from now on.
    pub(crate) fn serve(&self, service: Service, handler: Handler) {
        let mut handlers = self.handlers.write().unwrap_or_else(PoisonError::into_inner);
        handlers.insert(service, handler);
    }

    /// Opens a stream to a fellow, with its first bytes: these are at most [`MOST_FIRST`]. `is_last`: there will be no
    /// more. `None` if the fellow is not there, or has too many.
    pub(crate) fn open(
        self: &Arc<Self>,
        to: ServerId,
        service: Service,
        first: &[&[u8]],
        is_last: bool,
    ) -> Option<FellowStream> {
        let id = StreamId::from_random(rand::random());
        let mut bytes = vec![service.0];
        first.iter().for_each(|part| bytes.extend_from_slice(part));
        let mut stream = Stream::open(now(), id);
        stream.write(now(), bytes.into(), is_last);
        let cell = Cell::new(to, stream, is_last, Arc::clone(&self.transport));
        let mut table = self.lock();
        let streams = table.fellows.get_mut(&to).filter(|its| its.len() < MOST_STREAMS)?;
        streams.insert(id, Arc::clone(&cell));
        drop(table);
        // What is in the table is answered; so it is sent only now.
        cell.settle();
        Some(FellowStream::new(cell, Arc::clone(self)))
    }

    /// A fellow is there: it may open streams, and they may be opened to it.
    pub(crate) fn joined(&self, fellow: ServerId) {
        self.lock().fellows.entry(fellow).or_default();
    }

    /// A fellow is gone: its streams are over.
    pub(crate) fn left(&self, fellow: ServerId) {
        let gone = self.lock().fellows.remove(&fellow);
        gone.into_iter().flatten().for_each(|(_, cell)| cell.break_off(Reason::Left));
    }

    /// All streams are over: this server stops.
    pub(crate) fn shut_down(&self) {
        let fellows = std::mem::take(&mut self.lock().fellows);
        for (_, cell) in fellows.into_values().flatten() {
            cell.reset(Reason::Stopping, Bytes::new());
        }
    }

    /// How many streams there are.
    pub(crate) fn count(&self) -> usize {
        self.lock().fellows.values().map(HashMap::len).sum()
    }

    /// A frame of a fellow.
    pub(crate) fn arrived(self: &Arc<Self>, from: ServerId, frame: Frame) {
        let mut table = self.lock();
        let Some(streams) = table.fellows.get(&from) else { return };
        if let Some(cell) = streams.get(&frame.stream).cloned() {
            drop(table);
            if cell.arrived(frame) {
                self.remove(&cell);
            }
            return;
        }
        let has_room = streams.len() < MOST_STREAMS;
        let answer = table.ended.answer(now(), &frame);
        drop(table);
        match answer {
            ended::Answer::Open => self.opened(from, frame, has_room),
            ended::Answer::Reply(reply) => {
                self.transport.send(from, Kind::Stream, [&reply.encode(), &[]]);
            }
            ended::Answer::Silence => {}
        }
    }

    /// Looks at the deadlines of all streams, for ever.
    pub(crate) async fn keep(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK).await;
            let cells: Vec<_> =
                self.lock().fellows.values().flat_map(HashMap::values).cloned().collect();
            for cell in cells {
                if cell.look() {
                    self.remove(&cell);
                }
            }
        }
    }

    /// Takes a stream that a fellow opens.
    fn opened(self: &Arc<Self>, from: ServerId, frame: Frame, has_room: bool) {
        let service = frame.payload.first().map(|byte| Service(*byte));
        let Some(stream) = Stream::accept(now(), frame) else { return };
        let cell = Cell::new(from, stream, false, Arc::clone(&self.transport));
        let handlers = self.handlers.read().unwrap_or_else(PoisonError::into_inner);
        let handler = service.and_then(|service| handlers.get(&service).cloned());
        drop(handlers);
        let Some(handler) = handler.filter(|_| has_room) else {
            let why = Bytes::from_static(b"it takes no such streams now");
            cell.reset(Reason::Refused, why);
            return self.remove(&cell);
        };
        let mut table = self.lock();
        let Some(streams) = table.fellows.get_mut(&from) else { return };
        streams.insert(cell.id, Arc::clone(&cell));
        drop(table);
        cell.settle();
        cell.skip_service();
        handler(FellowStream::new(cell, Arc::clone(self)));
    }

    /// Takes a stream out that is over.
    pub(self) fn remove(&self, cell: &Arc<Cell>) {
        let mut table = self.lock();
        if let Some(streams) = table.fellows.get_mut(&cell.fellow) {
            streams.remove(&cell.id);
        }
        cell.note(&mut table.ended);
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most bytes that open a stream.
pub(crate) const MOST_FIRST: usize = WINDOW as usize - 1;

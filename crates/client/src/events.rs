//! Streams of events.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use protocol::{
    room::event::EventEnvelope,
    sse::{EventReader, EventTooLong},
};
use tokio::time::timeout;

use crate::error::ClientError;

/// The longest silence of a room's events. A Warren sends a sign of life every ten seconds; a stock server
/// hangs up after that time.
const WATCHING: Duration = Duration::from_secs(45);

/// The longest pause in an answer.
const ANSWERING: Duration = Duration::from_secs(15 * 60);

/// The events of a room, as they happen.
#[derive(Debug)]
pub struct RoomEvents(Events);

impl RoomEvents {
    pub(crate) fn new(body: Incoming, url: String) -> Self {
        Self(Events::new(body, url, WATCHING))
    }

    /// The next event; `None` when the stream has ended. Events that this version does not know are
    /// skipped. Cancel safe.
    ///
    /// # Errors
    /// When the stream broke off.
    pub async fn next(&mut self) -> Result<Option<EventEnvelope>, ClientError> {
        while let Some(data) = self.0.next().await? {
            if let Ok(event) = serde_json::from_slice(&data) {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    /// The id of the last event, after which another watch can go on; empty before the first event.
    pub fn last_id(&self) -> &str {
        self.0.reader.last_id()
    }
}

/// An answer that arrives as events.
#[derive(Debug)]
pub struct AnswerEvents(Events);

impl AnswerEvents {
    pub(crate) fn new(body: Incoming, url: String) -> Self {
        Self(Events::new(body, url, ANSWERING))
    }

    /// The data of the next event; `None` when the stream has ended. Cancel safe.
    ///
    /// # Errors
    /// When the stream broke off.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        self.0.next().await
    }
}

#[derive(Debug)]
struct Events {
    body: Incoming,
    url: String,
    /// The longest silence.
    patience: Duration,
    reader: EventReader,
    /// The data of events that have arrived and were not returned yet.
    ready: VecDeque<Bytes>,
    ended: bool,
}

impl Events {
    fn new(body: Incoming, url: String, patience: Duration) -> Self {
        let (reader, ready) = (EventReader::default(), VecDeque::new());
        Self { body, url, patience, reader, ready, ended: false }
    }

    async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            // Returned before more is read, so that events which came before a failure are not lost.
            if let Some(data) = self.ready.pop_front() {
                return Ok(Some(data));
            }
            if self.ended {
                return Ok(None);
            }
            let frame = timeout(self.patience, self.body.frame()).await;
            match frame.map_err(|_| self.late())? {
                Some(Ok(frame)) => self.take(frame.data_ref())?,
                Some(Err(error)) => return Err(self.broke(error.to_string())),
                None => self.ended = true,
            }
        }
    }

    fn take(&mut self, chunk: Option<&Bytes>) -> Result<(), ClientError> {
        let (reader, ready) = (&mut self.reader, &mut self.ready);
        let read = reader.feed(chunk.map_or(&[][..], |chunk| chunk), |data| {
            // The reader lends its buffer only until the next event.
            ready.push_back(Bytes::copy_from_slice(data));
            Ok(())
        });
        read.map_err(|bad: EventTooLong| ClientError::Strange {
            url: self.url.clone(),
            reason: bad.to_string(),
        })
    }

    fn late(&self) -> ClientError {
        ClientError::Late { url: self.url.clone(), after: self.patience }
    }

    fn broke(&self, reason: String) -> ClientError {
        ClientError::Unreachable { url: self.url.clone(), reason }
    }
}

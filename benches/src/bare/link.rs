//! The link of the pair: frames with a length, the number of a client's connection, and a kind.

use std::{
    io,
    sync::{Mutex, MutexGuard, PoisonError},
};

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, BufMut, BytesMut};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        TcpStream,
        tcp::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Notify,
};

use super::{MAX_HEAD, PIECE};

/// Bytes before a frame's payload.
const HEADER: usize = 9;

/// Bytes that may wait to be written before their writers wait, too.
const FULL: usize = 1 << 20;

/// The meaning of a frame, in either direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// More of a request or an answer.
    More = 0,
    /// The last of it.
    Last = 1,
    /// No more of it will come.
    Broken = 2,
}

/// The frames that wait to be written. All that come until the writer has its turn are one write.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    waiting: Mutex<Vec<u8>>,
    filled: Notify,
    drained: Notify,
}

impl Outbox {
    /// Appends a frame. Waits while too much waits already.
    pub(super) async fn send(&self, id: u32, kind: Kind, payload: &[u8]) {
        while self.is_full() {
            let drained = self.drained.notified();
            if self.is_full() {
                drained.await;
            }
        }
        let mut waiting = self.lock();
        let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
        waiting.extend_from_slice(&length.to_be_bytes());
        waiting.extend_from_slice(&id.to_be_bytes());
        waiting.push(kind as u8);
        waiting.extend_from_slice(payload);
        drop(waiting);
        self.filled.notify_one();
    }

    /// Writes what is sent, until the link breaks.
    pub(super) async fn write_to(&self, mut link: OwnedWriteHalf) -> io::Result<()> {
        let mut batch = Vec::new();
        loop {
            std::mem::swap(&mut batch, &mut self.lock());
            if batch.is_empty() {
                self.filled.notified().await;
                continue;
            }
            self.drained.notify_waiters();
            link.write_all(&batch).await?;
            batch.clear();
        }
    }

    fn is_full(&self) -> bool {
        self.lock().len() >= FULL
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The reading end.
#[derive(Debug)]
pub(super) struct Inbox {
    link: OwnedReadHalf,
    buffer: BytesMut,
}

/// A frame that has come.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) id: u32,
    pub(super) kind: Kind,
    pub(super) payload: BytesMut,
}

impl Inbox {
    /// The next frame; an error when the link is broken.
    pub(super) async fn next(&mut self) -> Result<Frame> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(frame);
            }
            let read = read(&mut self.link, &mut self.buffer).await;
            read.context("the other half of the pair is gone")?;
        }
    }

    fn take(&mut self) -> Result<Option<Frame>> {
        if self.buffer.len() < HEADER {
            return Ok(None);
        }
        let length = (&self.buffer[..]).get_u32() as usize;
        ensure!(length <= PIECE + MAX_HEAD, "a frame of {length} bytes");
        if self.buffer.len() < HEADER + length {
            return Ok(None);
        }
        let mut header = self.buffer.split_to(HEADER);
        header.advance(4);
        let id = header.get_u32();
        let kind = match header.get_u8() {
            0 => Kind::More,
            1 => Kind::Last,
            2 => Kind::Broken,
            other => bail!("a frame of the kind {other}"),
        };
        Ok(Some(Frame { id, kind, payload: self.buffer.split_to(length) }))
    }
}

/// Both ends of a link.
pub(super) fn split(socket: TcpStream) -> io::Result<(Inbox, OwnedWriteHalf)> {
    socket.set_nodelay(true)?;
    let (link, writer) = socket.into_split();
    Ok((Inbox { link, buffer: BytesMut::new() }, writer))
}

/// Writes all, waiting for the socket only when it is full.
pub(super) async fn write(socket: &OwnedWriteHalf, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match socket.try_write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => socket.writable().await?,
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Appends what comes next, at most a piece; an error at the end, too.
pub(super) async fn read(socket: &mut OwnedReadHalf, buffer: &mut BytesMut) -> io::Result<()> {
    buffer.reserve(PIECE);
    match socket.read_buf(&mut buffer.limit(PIECE)).await? {
        0 => Err(io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(()),
    }
}

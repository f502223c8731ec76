//! One stream of events.

use std::{
    net::SocketAddr,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::time::timeout;

use super::{marks::Marks, socket::Socket};

/// How long a stream may take to bring its first event.
const LIMIT: Duration = Duration::from_secs(60);

/// The most that the head of an answer and the first event may take, in bytes.
const HEAD: usize = 16 << 10;

pub(super) struct Stream {
    socket: Socket,
    marks: Marks,
    /// Bytes that came with the first event and are not yet read.
    early: Vec<u8>,
}

impl Stream {
    /// Asks for the events at `path`, those after the event of the id `after` too, and waits for the
    /// first, which says that it is connected.
    pub(super) async fn open(
        addr: SocketAddr,
        path: &str,
        after: Option<u64>,
        narrow: bool,
    ) -> Result<Self> {
        let opening = async {
            let mut socket = Socket::open(addr, narrow).await?;
            let after = after.map(|id| format!("last-event-id: {id}\r\n")).unwrap_or_default();
            let accept = "accept: text/event-stream\r\n";
            let request = format!("GET {path} HTTP/1.1\r\nhost: {addr}\r\n{accept}{after}\r\n");
            socket.write(request.as_bytes()).await?;
            let early = connected(&socket).await?;
            Ok(Self { socket, marks: Marks::default(), early })
        };
        timeout(LIMIT, opening).await.context("time-out")?
    }

    /// Reads the next bytes into `buffer`, and reports the numbers of events and when they
    /// arrived; `false` at the end.
    pub(super) async fn read(
        &mut self,
        buffer: &Mutex<Vec<u8>>,
        mut seen: impl FnMut(u32, Option<u64>),
    ) -> Result<bool> {
        let early = std::mem::take(&mut self.early);
        self.marks.feed(&early, |number| seen(number, None));
        self.socket.readable().await?;
        let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(received) = self.socket.receive(&mut buffer)? else { return Ok(true) };
        self.marks.feed(&buffer[..received.bytes], |number| seen(number, received.arrived));
        Ok(received.bytes > 0)
    }

    /// Reads until `enough` says so of all that came, the first event not included.
    pub(super) async fn gather(mut self, enough: impl Fn(&[u8]) -> bool) -> Result<Vec<u8>> {
        const MOST: usize = 16 << 20;
        let (mut all, mut buffer) = (std::mem::take(&mut self.early), vec![0; 64 << 10]);
        while !enough(&all) {
            self.socket.readable().await?;
            let Some(received) = self.socket.receive(&mut buffer)? else { continue };
            ensure!(received.bytes > 0, "a stream ended without its last frame");
            all.extend_from_slice(&buffer[..received.bytes]);
            ensure!(all.len() <= MOST, "a stream over 16 MiB");
        }
        Ok(all)
    }
}

/// Reads the head of the answer and the first event; returns the bytes after them.
async fn connected(socket: &Socket) -> Result<Vec<u8>> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 4096]);
    loop {
        if let Some(rest) = after_first_event(&all)? {
            return Ok(rest.to_vec());
        }
        ensure!(all.len() < HEAD, "no first event within {HEAD} bytes");
        socket.readable().await?;
        let Some(received) = socket.receive(&mut buffer)? else { continue };
        ensure!(received.bytes > 0, "ended before its first event");
        all.extend_from_slice(&buffer[..received.bytes]);
    }
}

fn after_first_event(all: &[u8]) -> Result<Option<&[u8]>> {
    let after = |text: &[u8], from: usize| {
        memchr::memmem::find(&all[from..], text).map(|at| from + at + text.len())
    };
    let Some(body) = after(b"\r\n\r\n", 0) else { return Ok(None) };
    if !all.starts_with(b"HTTP/1.1 200 ") {
        let line = all.split(|&byte| byte == b'\r').next().unwrap_or_default();
        bail!("{}", String::from_utf8_lossy(line));
    }
    let event = after(b"event: connected\n", body);
    Ok(event.and_then(|from| after(b"\n\n", from)).map(|end| &all[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPEN: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n30\r\n\
        event: connected\ndata: {\"type\":\"connected\"}\n\n\r\n";

    #[test]
    fn a_stream_is_open_with_its_first_event() {
        for end in 0..OPEN.len() - 2 {
            assert_eq!(after_first_event(&OPEN.as_bytes()[..end]).unwrap(), None, "{end}");
        }
        let more = format!("{OPEN}6\r\nevent:");
        assert_eq!(after_first_event(more.as_bytes()).unwrap().unwrap(), b"\r\n6\r\nevent:");
    }

    #[test]
    fn a_refusal_is_told_by_its_status() {
        let error = after_first_event(b"HTTP/1.1 503 Busy\r\nx: y\r\n\r\n{}").unwrap_err();
        assert_eq!(error.to_string(), "HTTP/1.1 503 Busy");
    }
}

//! A WebSocket whose reader blocks, so that nothing is between it and the kernel.

use std::{
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    ops::Range,
    time::Instant,
};

use anyhow::{Context, Result, bail, ensure};

use super::{
    LIMIT,
    frames::{self, BINARY, CLOSE, PING, PONG, TEXT},
};

const BUFFER: usize = 256 << 10;

const MOST: usize = 16 << 20;

const HEAD: usize = 16 << 10;

pub(super) struct Socket {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// The bytes that were read but not taken.
    unread: Range<usize>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Text(&'a [u8]),
    Binary(&'a [u8]),
}

impl Socket {
    /// Connects, and asks for `/ws`, in this subprotocol.
    pub(super) fn open(addr: SocketAddr, protocol: Option<&str>) -> Result<Self> {
        let stream = TcpStream::connect_timeout(&addr, LIMIT).context("connect")?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        let mut socket = Self { stream, buffer: vec![0; BUFFER], unread: 0..0 };
        socket.upgrade(addr, protocol)?;
        Ok(socket)
    }

    pub(super) fn send(&mut self, message: &Message<'_>) -> Result<()> {
        let frame = match message {
            Message::Text(text) => frames::masked(TEXT, text),
            Message::Binary(bytes) => frames::masked(BINARY, bytes),
        };
        self.stream.write_all(&frame).context("the other end does not read")
    }

    pub(super) fn next(&mut self) -> Result<Message<'_>> {
        let (opcode, payload) = self.frame()?;
        match opcode {
            TEXT => Ok(Message::Text(&self.buffer[payload])),
            _ => Ok(Message::Binary(&self.buffer[payload])),
        }
    }

    /// The stream, and the bytes that were read but not taken.
    pub(super) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        let unread = self.buffer[self.unread].to_vec();
        (self.stream, unread)
    }

    /// Where the payload of the next message stands.
    fn frame(&mut self) -> Result<(u8, Range<usize>)> {
        let begun = Instant::now();
        loop {
            let Some((opcode, payload)) = self.whole()? else {
                self.fill()?;
                continue;
            };
            self.unread.start = payload.end;
            match opcode {
                TEXT | BINARY => return Ok((opcode, payload)),
                PING => {
                    ensure!(begun.elapsed() < LIMIT, "nothing but signs of life in time");
                    let pong = frames::masked(PONG, &self.buffer[payload]);
                    self.stream.write_all(&pong)?;
                }
                PONG => {}
                CLOSE => {
                    let why = self.buffer[payload].get(2..).unwrap_or_default();
                    bail!("closed by the other end: {}", String::from_utf8_lossy(why));
                }
                other => bail!("a frame of an unknown kind: {other}"),
            }
        }
    }

    /// The frame that was read, if all of it was.
    fn whole(&self) -> Result<Option<(u8, Range<usize>)>> {
        let unread = &self.buffer[self.unread.clone()];
        let Some(header) = frames::header(unread)? else { return Ok(None) };
        ensure!(header.payload <= MOST, "a message of {} bytes", header.payload);
        let begin = self.unread.start + header.length;
        let payload = begin..begin + header.payload;
        Ok((payload.end <= self.unread.end).then_some((header.opcode, payload)))
    }

    /// Reads what there is, and waits until there is something.
    fn fill(&mut self) -> Result<()> {
        if self.buffer.len() - self.unread.end < BUFFER / 2 {
            self.buffer.copy_within(self.unread.clone(), 0);
            self.unread = 0..self.unread.len();
        }
        if self.buffer.len() - self.unread.end < BUFFER / 2 {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let read = self.stream.read(&mut self.buffer[self.unread.end..]);
        let read = read.context("nothing came in time")?;
        ensure!(read > 0, "the other end is gone");
        self.unread.end += read;
        Ok(())
    }

    fn upgrade(&mut self, addr: SocketAddr, protocol: Option<&str>) -> Result<()> {
        let protocol = protocol.map(|name| format!("sec-websocket-protocol: {name}\r\n"));
        let request = format!(
            "GET /ws HTTP/1.1\r\nhost: {addr}\r\nconnection: upgrade\r\nupgrade: websocket\r\n\
             sec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{}\r\n",
            protocol.unwrap_or_default()
        );
        self.stream.write_all(request.as_bytes())?;
        loop {
            let unread = &self.buffer[self.unread.clone()];
            if let Some(end) = memchr::memmem::find(unread, b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&unread[..end]);
                ensure!(head.starts_with("HTTP/1.1 101"), "no WebSocket: {head}");
                self.unread.start += end + 4;
                return Ok(());
            }
            ensure!(unread.len() < HEAD, "no head within {HEAD} bytes");
            self.fill()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{net::TcpListener, thread};

    use tokio_tungstenite::tungstenite::{self, accept};

    use super::*;

    #[test]
    fn messages_of_a_usual_server_are_read_and_answered() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let long = vec![7; 3 * BUFFER];
        let sent = long.clone();
        let server = thread::spawn(move || {
            let mut socket = accept(listener.accept().unwrap().0).unwrap();
            socket.send(tungstenite::Message::Ping("are you there".into())).unwrap();
            socket.send(tungstenite::Message::text("hello")).unwrap();
            socket.send(tungstenite::Message::binary(sent)).unwrap();
            let heard = [socket.read().unwrap(), socket.read().unwrap(), socket.read().unwrap()];
            socket.close(None).unwrap();
            heard
        });
        let mut socket = Socket::open(addr, None).unwrap();
        assert_eq!(socket.next().unwrap(), Message::Text(b"hello"));
        assert_eq!(socket.next().unwrap(), Message::Binary(&long));
        socket.send(&Message::Text("x".repeat(70_000).as_bytes())).unwrap();
        socket.send(&Message::Binary(&[1; 200])).unwrap();
        let error = socket.next().unwrap_err();
        assert!(error.to_string().contains("closed"), "{error}");
        let [pong, text, binary] = server.join().unwrap();
        assert!(pong.is_pong());
        assert_eq!((text.len(), binary.len()), (70_000, 200));
    }

    #[test]
    fn a_refusal_is_told() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let mut stream = listener.accept().unwrap().0;
            let mut byte = [0];
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n").unwrap();
        });
        let error = Socket::open(addr, Some("tty")).err().unwrap();
        assert!(error.to_string().contains("401"), "{error}");
        server.join().unwrap();
    }
}
